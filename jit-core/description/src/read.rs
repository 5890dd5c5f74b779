//! Reading. Behind the end of the bytes there are zeros.

use crate::code::HAS_PLACE;
use crate::{Len, LineColumn, Op, TypeOp, When};

/// Reads a description from a position on.
#[derive(Copy, Clone, Debug)]
pub struct Reader<'d> {
    bytes: &'d [u8],
    at: usize,
}

/// A part of a description that is evaluated later.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Region {
    start: usize,
}

/// What a description begins with.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Header<'d> {
    /// The source file.
    pub file: &'d str,
    /// The first line of the function.
    pub line: u32,
    /// How many variables it has.
    pub locals: u32,
    /// How many closures it has.
    pub closures: u32,
}

impl<'d> Reader<'d> {
    /// Reads from the beginning.
    pub fn new(bytes: &'d [u8]) -> Reader<'d> {
        Reader { bytes, at: 0 }
    }

    /// A reader of a region of the same description.
    pub fn in_region(self, region: Region) -> Reader<'d> {
        Reader {
            at: region.start,
            ..self
        }
    }

    fn byte(&mut self) -> u8 {
        let byte = self.bytes.get(self.at).copied();
        self.at += 1;
        byte.unwrap_or(0)
    }

    /// The header.
    pub fn header(&mut self) -> Header<'d> {
        Header {
            file: self.text(),
            line: self.number(),
            locals: self.number(),
            closures: self.number(),
        }
    }

    /// An operation, with its place.
    pub fn op(&mut self) -> (Op, Option<LineColumn>) {
        let byte = self.byte();
        let place = (byte & HAS_PLACE != 0).then(|| LineColumn {
            line: self.int() as i32,
            column: self.number(),
        });
        (Op::of_byte(byte & !HAS_PLACE), place)
    }

    /// How a type is made.
    pub fn type_op(&mut self) -> TypeOp {
        TypeOp::of_byte(self.byte())
    }

    /// A flag.
    pub fn flag(&mut self) -> bool {
        self.byte() != 0
    }

    /// When something is to be done.
    pub fn when(&mut self) -> When {
        match self.count() {
            0 => When::Never,
            1 => When::Always,
            counted => When::Changing((2..counted).map(|_| self.number()).collect()),
        }
    }

    /// A number.
    pub fn number(&mut self) -> u32 {
        self.unsigned() as u32
    }

    /// How many operands come: no more than there are bytes.
    pub fn count(&mut self) -> usize {
        (self.number() as usize).min(self.bytes.len().saturating_sub(self.at))
    }

    /// An integer of any sign.
    pub fn int(&mut self) -> i128 {
        let number = self.unsigned();
        (number >> 1) as i128 ^ -((number & 1) as i128)
    }

    fn unsigned(&mut self) -> u128 {
        let mut number = 0u128;
        for shift in (0..128).step_by(7) {
            let byte = self.byte();
            number |= u128::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        number
    }

    /// A text.
    pub fn text(&mut self) -> &'d str {
        let len = self.count();
        let text = self.bytes.get(self.at..self.at + len).unwrap_or_default();
        self.at += len;
        std::str::from_utf8(text).unwrap_or_default()
    }

    /// A region, which is skipped.
    pub fn region(&mut self) -> Region {
        let len = self.count();
        let start = self.at;
        self.at += len;
        Region { start }
    }

    /// A length.
    pub fn len(&mut self) -> Len {
        match self.flag() {
            false => Len::Pooled(self.number()),
            true => Len::Param(self.number()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;

    #[test]
    fn what_is_written_is_read() {
        let place = LineColumn {
            line: -3,
            column: 300,
        };
        let inner = Code::new(Op::Int, None).int(i128::from(u64::MAX)).int(-1);
        let code = Code::header("a/b.rs", 70_000, 3, 1)
            .code(&Code::new(Op::Add, Some(place)).region(&inner).flag(true))
            .code(&Code::ty(TypeOp::Tuple).len(Len::Param(9)).text("ä"))
            .when(&When::Always)
            .when(&When::Changing(vec![7, 300]))
            .when(&When::Never)
            .flag(true);
        let bytes = code.into_bytes();
        let mut reader = Reader::new(&bytes);
        let header = reader.header();
        assert_eq!((header.file, header.line), ("a/b.rs", 70_000));
        assert_eq!((header.locals, header.closures), (3, 1));
        assert_eq!(reader.op(), (Op::Add, Some(place)));
        let mut region = reader.in_region(reader.region());
        assert_eq!(region.op(), (Op::Int, None));
        assert_eq!((region.int(), region.int()), (u64::MAX.into(), -1));
        assert!(reader.flag());
        assert_eq!(reader.type_op(), TypeOp::Tuple);
        assert_eq!((reader.len(), reader.text()), (Len::Param(9), "ä"));
        assert_eq!(reader.when(), When::Always);
        assert_eq!(reader.when(), When::Changing(vec![7, 300]));
        assert_eq!(reader.when(), When::Never);
        assert!(reader.flag());
    }

    #[test]
    fn operations_have_a_bit_left_for_their_place() {
        assert!(Op::ALL.len() < usize::from(HAS_PLACE));
        for (number, &op) in Op::ALL.iter().enumerate() {
            assert_eq!(op as usize, number);
            assert_eq!(Op::of_byte(number as u8), op);
        }
    }

    #[test]
    fn any_bytes_are_read_to_an_end() {
        for seed in 0..1000u32 {
            let bytes: Vec<u8> = (0..40).map(|i| (seed * 31 + i * i * 7) as u8).collect();
            let mut reader = Reader::new(&bytes);
            for _ in 0..20 {
                reader.header();
                reader.op();
                reader.type_op();
                reader.region();
                reader.len();
                reader.when();
            }
        }
    }
}
