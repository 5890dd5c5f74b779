//! Values in memory as numbers: `1 2.5 true`, and `0*32` for 32 zeros.

use half::{bf16, f16};
use kiln::core::ir::{ArrayLen, Scalar, Type, TypeData, TypeTable};

/// How many equal numbers are written as one and their count.
const REPEATED: usize = 4;

/// What values of a type consist of.
#[derive(Debug)]
pub(super) struct Numbers {
    /// Where each number is in a value, in bytes.
    places: Vec<(usize, Scalar)>,
    /// Bytes of a value.
    size: usize,
}

impl Numbers {
    /// Those of a type.
    ///
    /// # Errors
    /// A type that holds addresses.
    pub(super) fn of(types: &TypeTable, ty: Type) -> Result<Numbers, String> {
        let layout = types.layout(ty).ok_or("a type without a size")?;
        let mut numbers = Numbers {
            places: Vec::new(),
            size: layout.size as usize,
        };
        numbers.collect(types, ty, 0)?;
        Ok(numbers)
    }

    fn collect(&mut self, types: &TypeTable, ty: Type, at: usize) -> Result<(), String> {
        let mut elements = |element: Type, count: u64| {
            let size = types.layout(element).map_or(0, |layout| layout.size);
            let mut places = (0..count).map(|i| at + (i * size) as usize);
            places.try_for_each(|place| self.collect(types, element, place))
        };
        match *types.data(ty) {
            TypeData::Scalar(scalar) => self.places.push((at, scalar)),
            TypeData::Vector { element, lanes } => {
                elements(Type::scalar(element), lanes.into())?;
            }
            TypeData::Array {
                element,
                len: ArrayLen::Known(len),
            } => elements(element, len)?,
            TypeData::Struct(id) => {
                let (_, offsets) = types.struct_layout(id).ok_or("a struct without a size")?;
                let fields = types.struct_data(id).fields.iter().zip(offsets);
                for ((_, field), offset) in fields {
                    self.collect(types, *field, at + offset as usize)?;
                }
            }
            _ => return Err(format!("`{}` is no number", types.display(ty))),
        }
        Ok(())
    }

    /// The bytes of values.
    ///
    /// # Errors
    /// A word that is no number of its type, or a value that is not whole.
    pub(super) fn read(&self, text: &str) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        let mut places = self.places.iter().cycle();
        let mut count = 0;
        for word in text.split_whitespace() {
            let (word, times) = match word.split_once('*') {
                Some((word, times)) => (word, times.parse().map_err(|_| no_number(times))?),
                None => (word, 1),
            };
            for _ in 0..times {
                let (at, scalar) = *places.next().ok_or("a type without numbers")?;
                let start = count / self.places.len() * self.size;
                bytes.resize(start + self.size, 0);
                let number = encode(scalar, word)?;
                bytes[start + at..start + at + number.len()].copy_from_slice(&number);
                count += 1;
            }
        }
        match count % self.places.len().max(1) {
            0 => Ok(bytes),
            _ => Err(format!("{count} numbers make no whole values")),
        }
    }

    /// The numbers of values, padding left out.
    pub(super) fn write(&self, bytes: &[u8]) -> String {
        let values = bytes.chunks_exact(self.size.max(1));
        let numbers = values.flat_map(|value| {
            let places = self.places.iter();
            places.map(|&(at, scalar)| decode(scalar, &value[at..at + scalar.bytes() as usize]))
        });
        let numbers: Vec<String> = numbers.collect();
        let groups = numbers.chunk_by(|a, b| a == b).map(|equal| match equal {
            [first, ..] if equal.len() >= REPEATED => format!("{first}*{}", equal.len()),
            _ => equal.join(" "),
        });
        groups.collect::<Vec<_>>().join(" ")
    }
}

fn no_number(word: &str) -> String {
    format!("`{word}` is no number")
}

/// The bytes of a number as it lies in memory.
fn encode(scalar: Scalar, word: &str) -> Result<Vec<u8>, String> {
    let bad = || format!("`{word}` is no `{}`", scalar.name());
    let float = || word.parse::<f64>().map_err(|_| bad());
    Ok(match scalar {
        Scalar::Bool => vec![u8::from(word.parse::<bool>().map_err(|_| bad())?)],
        Scalar::F16 => f16::from_f64(float()?).to_le_bytes().to_vec(),
        Scalar::BF16 => bf16::from_f64(float()?).to_le_bytes().to_vec(),
        Scalar::F32 => {
            let number: f32 = word.parse().map_err(|_| bad())?;
            number.to_le_bytes().to_vec()
        }
        Scalar::F64 => float()?.to_le_bytes().to_vec(),
        _ => {
            let number: i128 = word.parse().map_err(|_| bad())?;
            let (bits, below) = (scalar.bits(), i128::from(scalar.is_signed_int()));
            let range = -(below << (bits - 1))..1 << (bits - below as u32);
            let fits = range.contains(&number);
            let bytes = number.to_le_bytes()[..scalar.bytes() as usize].to_vec();
            fits.then_some(bytes).ok_or_else(bad)?
        }
    })
}

/// The number at these bytes.
fn decode(scalar: Scalar, bytes: &[u8]) -> String {
    let mut word = [0; 16];
    word[..bytes.len()].copy_from_slice(bytes);
    let bits = u128::from_le_bytes(word);
    match scalar {
        Scalar::Bool => (bits != 0).to_string(),
        Scalar::F16 => f16::from_bits(bits as u16).to_string(),
        Scalar::BF16 => bf16::from_bits(bits as u16).to_string(),
        Scalar::F32 => f32::from_bits(bits as u32).to_string(),
        Scalar::F64 => f64::from_bits(bits as u64).to_string(),
        _ if scalar.is_signed_int() => {
            let above = 128 - scalar.bits();
            (((bits << above) as i128) >> above).to_string()
        }
        _ => bits.to_string(),
    }
}
