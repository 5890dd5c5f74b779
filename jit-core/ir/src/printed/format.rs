//! Formats as [`std::fmt`] has them, for values that are known by their bits.

use std::fmt::{self, Write};

use half::{bf16, f16};

use super::MAX_VALUES;
use crate::{Half, Scalar, ScalarKind, debug_as_text, error_text};

/// A format: texts, and between them how values are written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Format {
    pieces: Vec<Piece>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Piece {
    Text(String),
    /// `{:>8.3}`: the next value.
    Value(Spec),
    /// `{@}`: file, line and column of the instruction.
    Place,
}

/// How a value is written: what stands behind the colon of `{:>+8.3e}` ([`std::fmt`], "Formatting Parameters").
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spec {
    /// What fills the width, and where the value stands in it.
    align: Option<(char, Align)>,
    plus: bool,
    alternate: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
    notation: Notation,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Align {
    Left,
    Center,
    Right,
}

/// The trait by which a value is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Notation {
    #[default]
    Display,
    Debug,
    /// `{:x?}`: of integers hexadecimal digits.
    DebugLowerHex,
    DebugUpperHex,
    LowerHex,
    UpperHex,
    Octal,
    Binary,
    LowerExp,
    UpperExp,
}

impl Notation {
    const TABLE: [(Notation, &str); 10] = [
        (Notation::Display, ""),
        (Notation::Debug, "?"),
        (Notation::DebugLowerHex, "x?"),
        (Notation::DebugUpperHex, "X?"),
        (Notation::LowerHex, "x"),
        (Notation::UpperHex, "X"),
        (Notation::Octal, "o"),
        (Notation::Binary, "b"),
        (Notation::LowerExp, "e"),
        (Notation::UpperExp, "E"),
    ];

    fn is_debug(self) -> bool {
        matches!(
            self,
            Notation::Debug | Notation::DebugLowerHex | Notation::DebugUpperHex
        )
    }

    /// What stands before the digits of the bits of an integer, where it is written so, and these.
    fn digits(self, bits: u64) -> Option<(&'static str, String)> {
        Some(match self {
            Notation::LowerHex | Notation::DebugLowerHex => ("0x", format!("{bits:x}")),
            Notation::UpperHex | Notation::DebugUpperHex => ("0x", format!("{bits:X}")),
            Notation::Octal => ("0o", format!("{bits:o}")),
            Notation::Binary => ("0b", format!("{bits:b}")),
            _ => return None,
        })
    }
}

/// How a format is wrong.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// A brace that opens or closes nothing.
    #[error("{}", error_text!("there is a `{brace}` alone; `{brace}{brace}` prints one"))]
    Brace {
        /// The brace.
        brace: char,
    },
    /// A place for a value that is written in no way that there is.
    #[error("{}", error_text!(
        "`{{{place}}}` is no place for a value; behind a colon may stand fill and alignment, `+`, `#`, `0`, width, `.` with a \
         precision, and `?`, `x`, `X`, `o`, `b`, `e`, `E`, as in `{{:>+8.3e}}`"
    ))]
    Place {
        /// What stands between the braces.
        place: String,
    },
    /// Another number of values than of places for them.
    #[error("{}", error_text!("the format has {wanted} places for values, and {given} are given"))]
    Count {
        /// How many places.
        wanted: usize,
        /// How many values.
        given: usize,
    },
    /// A value that cannot be written so.
    #[error("{}", error_text!("a value of type `{ty}` cannot be printed by `{{:{spec}}}`"))]
    Type {
        /// What the value is.
        ty: &'static str,
        /// What stands behind the colon.
        spec: String,
    },
    /// Too many values.
    #[error("{}", error_text!("{given} values are printed at once, and at most {MAX_VALUES} can be; print several lines"))]
    TooMany {
        /// How many.
        given: usize,
    },
}

debug_as_text!(FormatError);

impl Format {
    /// Reads a format.
    ///
    /// # Errors
    /// A brace alone; a format that there is not.
    pub fn parse(format: &str) -> Result<Format, FormatError> {
        let mut pieces = Vec::new();
        let mut text = String::new();
        let mut rest = format;
        while let Some(at) = rest.find(['{', '}']) {
            text += &rest[..at];
            let (brace, behind) = (&rest[at..=at], &rest[at + 1..]);
            if let Some(behind) = behind.strip_prefix(brace) {
                text += brace;
                rest = behind;
                continue;
            }
            let inside = match brace {
                "{" => behind.split_once('}'),
                _ => None,
            };
            let brace = brace.chars().next().unwrap_or('{');
            let (inside, behind) = inside.ok_or(FormatError::Brace { brace })?;
            if !text.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut text)));
            }
            pieces.push(Piece::parse(inside)?);
            rest = behind;
        }
        text += rest;
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
        Ok(Format { pieces })
    }

    /// How the values are written, in order.
    pub fn specs(&self) -> impl Iterator<Item = &Spec> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Value(spec) => Some(spec),
            Piece::Text(_) | Piece::Place => None,
        })
    }

    /// Whether values of these types can be written so; one of a type parameter is asked about once it has a type.
    ///
    /// # Errors
    /// Another number of values; too many; one that cannot be written as it says.
    pub fn accept(&self, values: &[Option<Scalar>]) -> Result<(), FormatError> {
        let (wanted, given) = (self.specs().count(), values.len());
        if wanted != given {
            return Err(FormatError::Count { wanted, given });
        }
        if given > MAX_VALUES {
            return Err(FormatError::TooMany { given });
        }
        let known = self
            .specs()
            .zip(values)
            .filter_map(|(spec, ty)| Some((spec, (*ty)?)));
        let mut refused = known.filter(|(spec, ty)| !spec.takes(*ty));
        match refused.next() {
            None => Ok(()),
            Some((spec, ty)) => Err(FormatError::Type {
                ty: ty.name(),
                spec: spec.to_string(),
            }),
        }
    }

    /// The text of values, each as its bits.
    pub fn text(&self, place: &str, values: impl IntoIterator<Item = (Scalar, u64)>) -> String {
        let mut text = String::new();
        let mut values = values.into_iter();
        for piece in &self.pieces {
            match piece {
                Piece::Text(plain) => text += plain,
                Piece::Place => text += place,
                Piece::Value(spec) => {
                    if let Some((ty, bits)) = values.next() {
                        spec.write(ty, bits, &mut text);
                    }
                }
            }
        }
        text
    }
}

impl Piece {
    fn parse(inside: &str) -> Result<Piece, FormatError> {
        if inside == "@" {
            return Ok(Piece::Place);
        }
        let spec = match inside {
            "" => Some(""),
            _ => inside.strip_prefix(':'),
        };
        let spec = spec.and_then(Spec::parse).map(Piece::Value);
        spec.ok_or_else(|| FormatError::Place {
            place: inside.to_owned(),
        })
    }
}

impl Spec {
    /// Reads what stands behind the colon, if it is a way to write a value.
    pub fn parse(written: &str) -> Option<Spec> {
        let mut spec = Spec::default();
        let mut rest = spec.take_align(written);
        for (mark, flag) in [
            ("+", &mut spec.plus),
            ("#", &mut spec.alternate),
            ("0", &mut spec.zeros),
        ] {
            if let Some(behind) = rest.strip_prefix(mark) {
                (*flag, rest) = (true, behind);
            }
        }
        spec.width = take_number(&mut rest)?.unwrap_or(0);
        if let Some(behind) = rest.strip_prefix('.') {
            rest = behind;
            spec.precision = Some(take_number(&mut rest)??);
        }
        let known = Notation::TABLE.iter().find(|(_, name)| *name == rest);
        spec.notation = known?.0;
        Some(spec)
    }

    fn take_align<'a>(&mut self, written: &'a str) -> &'a str {
        let align = |c: Option<char>| match c {
            Some('<') => Some(Align::Left),
            Some('^') => Some(Align::Center),
            Some('>') => Some(Align::Right),
            _ => None,
        };
        let mut chars = written.chars();
        let first = chars.next();
        let behind_first = chars.as_str();
        if let (Some(fill), Some(align)) = (first, align(chars.next())) {
            self.align = Some((fill, align));
            return chars.as_str();
        }
        if let Some(align) = align(first) {
            self.align = Some((' ', align));
            return behind_first;
        }
        written
    }

    /// Whether a value of the type can be written so.
    pub fn takes(&self, ty: Scalar) -> bool {
        match ty.kind() {
            ScalarKind::Bool => self.is_debug() || self.notation == Notation::Display,
            ScalarKind::Float(_) => self.is_debug() || self.notation.digits(0).is_none(),
            ScalarKind::Int { .. } => true,
        }
    }

    /// Whether a value made of several is written with one of them a line: `{:#?}`.
    pub fn is_pretty(&self) -> bool {
        self.alternate && self.is_debug()
    }

    /// Whether a value made of several can be written so.
    pub fn is_debug(&self) -> bool {
        self.notation.is_debug()
    }

    /// Writes a value, of which these are the bits, as [`std::fmt`] does.
    pub fn write(&self, ty: Scalar, bits: u64, text: &mut String) {
        match ty.kind() {
            ScalarKind::Bool => {
                let name = if bits & 1 == 1 { "true" } else { "false" };
                let shown = self
                    .precision
                    .map_or(name, |most| &name[..most.min(name.len())]);
                self.pad(shown, Align::Left, text);
            }
            ScalarKind::Int { signed } => self.write_int(bits, ty.bits(), signed, text),
            ScalarKind::Float(_) => {
                let narrow = match (ty.as_half(), ty.bytes()) {
                    (Some(Half::F16), _) => Some(f16::from_bits(bits as u16).to_f32()),
                    (Some(Half::BF16), _) => Some(bf16::from_bits(bits as u16).to_f32()),
                    (None, 4) => Some(f32::from_bits(bits as u32)),
                    (None, _) => None,
                };
                let value = narrow.map_or(f64::from_bits(bits), f64::from);
                self.write_float(value, narrow.is_some(), text);
            }
        }
    }

    fn write_int(&self, bits: u64, width: u32, signed: bool, text: &mut String) {
        let unused = 64 - width;
        let unsigned = bits << unused >> unused;
        if let Some((prefix, digits)) = self.notation.digits(unsigned) {
            let prefix = if self.alternate { prefix } else { "" };
            return self.number(false, prefix, &digits, text);
        }
        let value = match signed {
            true => i128::from((bits << unused) as i64 >> unused),
            false => i128::from(unsigned),
        };
        let size = value.unsigned_abs();
        let digits = match (self.notation, self.precision) {
            (Notation::LowerExp, None) => format!("{size:e}"),
            (Notation::LowerExp, Some(n)) => format!("{size:.n$e}"),
            (Notation::UpperExp, None) => format!("{size:E}"),
            (Notation::UpperExp, Some(n)) => format!("{size:.n$E}"),
            _ => size.to_string(),
        };
        self.number(value < 0, "", &digits, text);
    }

    fn write_float(&self, value: f64, is_narrow: bool, text: &mut String) {
        let size = value.abs();
        // The shortest digits that are the number's alone are fewer among those of 32 bits.
        let digits = match (is_narrow, self.precision) {
            (true, None) => self.float_digits(size as f32),
            _ => self.float_digits(size),
        };
        if value.is_nan() {
            return self.number_without_sign(&digits, text);
        }
        self.number(value.is_sign_negative(), "", &digits, text);
    }

    fn float_digits<F>(&self, size: F) -> String
    where
        F: fmt::Display + fmt::Debug + fmt::LowerExp + fmt::UpperExp,
    {
        match (self.notation, self.precision) {
            (notation, None) if notation.is_debug() => format!("{size:?}"),
            (Notation::LowerExp, None) => format!("{size:e}"),
            (Notation::UpperExp, None) => format!("{size:E}"),
            (Notation::LowerExp, Some(n)) => format!("{size:.n$e}"),
            (Notation::UpperExp, Some(n)) => format!("{size:.n$E}"),
            (_, None) => format!("{size}"),
            (_, Some(n)) => format!("{size:.n$}"),
        }
    }

    fn number(&self, negative: bool, prefix: &str, digits: &str, text: &mut String) {
        let sign = match (negative, self.plus) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        };
        let all = format!("{sign}{prefix}{digits}");
        match self.zeros {
            true => {
                let zeros = self.width.saturating_sub(all.len());
                let _ = write!(text, "{sign}{prefix}{:0<zeros$}{digits}", "");
            }
            false => self.pad(&all, Align::Right, text),
        }
    }

    fn number_without_sign(&self, digits: &str, text: &mut String) {
        let plain = Spec {
            plus: false,
            ..*self
        };
        plain.number(false, "", digits, text);
    }

    fn pad(&self, shown: &str, usual: Align, text: &mut String) {
        let (fill, align) = self.align.unwrap_or((' ', usual));
        let missing = self.width.saturating_sub(shown.chars().count());
        let before = match align {
            Align::Left => 0,
            Align::Center => missing / 2,
            Align::Right => missing,
        };
        text.extend(std::iter::repeat_n(fill, before));
        *text += shown;
        text.extend(std::iter::repeat_n(fill, missing - before));
    }
}

/// A number at the start of what is left; `Some(None)` if there is none, `None` if it is too large.
fn take_number(rest: &mut &str) -> Option<Option<usize>> {
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, behind) = rest.split_at(digits);
    if number.is_empty() {
        return Some(None);
    }
    *rest = behind;
    // As many as `std::fmt` takes.
    number.parse::<u16>().ok().map(|number| Some(number.into()))
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((fill, align)) = self.align {
            let align = match align {
                Align::Left => '<',
                Align::Center => '^',
                Align::Right => '>',
            };
            write!(f, "{fill}{align}")?;
        }
        for (mark, flag) in [("+", self.plus), ("#", self.alternate), ("0", self.zeros)] {
            f.write_str(if flag { mark } else { "" })?;
        }
        if self.width > 0 {
            write!(f, "{}", self.width)?;
        }
        if let Some(precision) = self.precision {
            write!(f, ".{precision}")?;
        }
        let name = Notation::TABLE
            .iter()
            .find(|(known, _)| *known == self.notation);
        f.write_str(name.map_or("", |(_, name)| name))
    }
}

#[cfg(test)]
mod check {
    use super::*;

    /// A format, and what `std::fmt` makes of a value by it.
    type Case<T> = (&'static str, fn(T) -> String);

    /// A [`Case`] for each format.
    macro_rules! cases {
        ($ty:ident, [$($format:literal),*]) => {
            {
                const CASES: &[Case<$ty>] = &[$(($format, |value| format!($format, value))),*];
                CASES
            }
        };
    }

    /// Compares the text of values in formats with what `std::fmt` makes of them. A function and no macro: each value
    /// and format in a statement of its own took LLVM more than a minute.
    fn same<T: Bits>(values: &[T], cases: &[Case<T>]) {
        for &(text, by_std) in cases {
            let format = Format::parse(text).expect("it is a format");
            let accepted = format.accept(&[Some(T::SCALAR)]);
            assert_eq!(accepted, Ok(()), "{text} {:?}", T::SCALAR);
            for &value in values {
                let written = format.text("", [(T::SCALAR, value.bits())]);
                assert_eq!(written, by_std(value), "{text} of {value:?}");
            }
        }
    }

    trait Bits: Copy + fmt::Debug {
        const SCALAR: Scalar;
        fn bits(self) -> u64;
    }

    macro_rules! bits {
        ($($ty:ident $scalar:ident $value:ident $bits:expr;)*) => {$(
            impl Bits for $ty {
                const SCALAR: Scalar = Scalar::$scalar;
                fn bits(self) -> u64 {
                    let $value = self;
                    $bits
                }
            }
        )*};
    }
    bits! {
        bool Bool v u64::from(v);
        i8 I8 v (v as u8).into();
        u16 U16 v v.into();
        i32 I32 v (v as u32).into();
        u32 U32 v v.into();
        i64 I64 v v as u64;
        u64 U64 v v;
        f32 F32 v v.to_bits().into();
        f64 F64 v v.to_bits();
    }

    #[test]
    fn integers_are_written_as_by_std() {
        macro_rules! of {
            ($ty:ident) => {
                let values = [0, 1, 7, 42, $ty::MAX, $ty::MIN, $ty::MAX / 3, $ty::MIN / 2];
                same(
                    &values,
                    cases!(
                        $ty,
                        [
                            "{}",
                            "{:?}",
                            "{:5}",
                            "{:<5}|",
                            "{:^6}|",
                            "{:*^9}|",
                            "{:>+7}",
                            "{:+}",
                            "{:05}",
                            "{:+06}",
                            "{:x}",
                            "{:X}",
                            "{:#x}",
                            "{:#010x}",
                            "{:o}",
                            "{:#o}",
                            "{:b}",
                            "{:#b}",
                            "{:#014b}",
                            "{:e}",
                            "{:E}",
                            "{:.2e}",
                            "{:12.1e}|",
                            "{:#?}",
                            "{:x?}",
                            "{:#06X?}",
                            "{:-<8}",
                            "{:é>12}",
                            "a{{{}}}b",
                            "{:<05}",
                            "{:.3}"
                        ]
                    ),
                );
            };
        }
        of!(i8);
        of!(u16);
        of!(i32);
        of!(u32);
        of!(i64);
        of!(u64);
    }

    #[test]
    fn floats_are_written_as_by_std() {
        macro_rules! of {
            ($ty:ident) => {
                let values = [
                    0.0,
                    -0.0,
                    1.0,
                    -1.5,
                    0.1,
                    1e-7,
                    3.5e-5,
                    1e15,
                    1e16,
                    1.25e20,
                    $ty::MAX,
                    $ty::MIN_POSITIVE,
                    $ty::INFINITY,
                    $ty::NEG_INFINITY,
                    $ty::NAN,
                    -$ty::NAN,
                    2.5,
                    3.5,
                    0.125,
                    123456.79,
                ];
                same(
                    &values,
                    cases!(
                        $ty,
                        [
                            "{}",
                            "{:?}",
                            "{:10}|",
                            "{:<10}|",
                            "{:^10}|",
                            "{:+}",
                            "{:.0}",
                            "{:.3}",
                            "{:10.2}|",
                            "{:+010.2}|",
                            "{:e}",
                            "{:E}",
                            "{:.4e}",
                            "{:12.1E}|",
                            "{:.2?}",
                            "{:#?}",
                            "{:x?}",
                            "{:_>15?}",
                            "{:08}"
                        ]
                    ),
                );
            };
        }
        of!(f32);
        of!(f64);
    }

    #[test]
    fn bools_are_written_as_by_std() {
        let cases = cases!(
            bool,
            ["{}", "{:?}", "{:7}|", "{:>7}|", "{:.2}", "{:07}|", "{:#?}"]
        );
        same(&[true, false], cases);
    }

    #[test]
    fn formats_print_as_they_are_read() {
        for spec in ["", "?", "*^+#08.3e", ">5", "<x", "#?", ".0", "+"] {
            let read = Spec::parse(spec).expect("it is one").to_string();
            let fill_of_spaces = spec.replace(['<', '>'], " <").replace(" <5", " >5");
            assert!(read == spec || read == fill_of_spaces, "{spec}: {read}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let told = |format: &str, values: &[Scalar]| {
            let values: Vec<_> = values.iter().copied().map(Some).collect();
            let read = Format::parse(format).and_then(|format| format.accept(&values));
            read.expect_err(format).to_string()
        };
        let texts = [
            told("a { b", &[]),
            told("a } b", &[]),
            told("{:w$}", &[Scalar::U32]),
            told("{x}", &[Scalar::U32]),
            told("{:.}", &[Scalar::U32]),
            told("{:99999}", &[Scalar::U32]),
            told("{} {}", &[Scalar::U32]),
            told("{:x}", &[Scalar::F32]),
            told("{:e}", &[Scalar::Bool]),
            told(&"{}".repeat(65), &[Scalar::U32; 65]),
        ];
        expect_test::expect![[r#"
            there is a `{` alone; `{{` prints one
            there is a `}` alone; `}}` prints one
            `{:w$}` is no place for a value; behind a colon may stand fill and alignment, `+`, `#`, `0`, width, `.` with a precision, and `?`, `x`, `X`, `o`, `b`, `e`, `E`, as in `{:>+8.3e}`
            `{x}` is no place for a value; behind a colon may stand fill and alignment, `+`, `#`, `0`, width, `.` with a precision, and `?`, `x`, `X`, `o`, `b`, `e`, `E`, as in `{:>+8.3e}`
            `{:.}` is no place for a value; behind a colon may stand fill and alignment, `+`, `#`, `0`, width, `.` with a precision, and `?`, `x`, `X`, `o`, `b`, `e`, `E`, as in `{:>+8.3e}`
            `{:99999}` is no place for a value; behind a colon may stand fill and alignment, `+`, `#`, `0`, width, `.` with a precision, and `?`, `x`, `X`, `o`, `b`, `e`, `E`, as in `{:>+8.3e}`
            the format has 2 places for values, and 1 are given
            a value of type `f32` cannot be printed by `{:x}`
            a value of type `bool` cannot be printed by `{:e}`
            65 values are printed at once, and at most 64 can be; print several lines"#]].assert_eq(&texts.join("\n"));
    }
}
