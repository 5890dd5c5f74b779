//! Writing.

use crate::{Len, LineColumn, Op, TypeOp, When};

/// The bit of an operation's byte that says that its place follows.
pub(crate) const HAS_PLACE: u8 = 0x80;

/// A piece of a description: an operation with its operands, which are appended one after the other.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub struct Code {
    bytes: Vec<u8>,
}

impl Code {
    /// An operation, at a place.
    pub fn new(op: Op, place: Option<LineColumn>) -> Code {
        let code = Code::default();
        match place {
            None => code.byte(op as u8),
            Some(place) => code
                .byte(op as u8 | HAS_PLACE)
                .int(place.line.into())
                .number(place.column),
        }
    }

    /// A type.
    pub fn ty(op: TypeOp) -> Code {
        Code::default().byte(op as u8)
    }

    /// The beginning of a description: where the function is, and how many variables and closures it
    /// has.
    pub fn header(file: &str, line: u32, locals: u32, closures: u32) -> Code {
        let code = Code::default().text(file).number(line);
        code.number(locals).number(closures)
    }

    /// Expressions as one, whose value is that of the last.
    pub fn block(mut parts: Vec<Code>) -> Code {
        match parts.len() {
            1 => parts.remove(0),
            _ => Code::new(Op::Block, None).list(&parts),
        }
    }

    fn byte(mut self, byte: u8) -> Code {
        self.bytes.push(byte);
        self
    }

    /// Appends an operand.
    pub fn code(mut self, operand: &Code) -> Code {
        self.bytes.extend_from_slice(&operand.bytes);
        self
    }

    /// Appends operands, and before them how many there are.
    pub fn list(self, operands: &[Code]) -> Code {
        let counted = self.number(operands.len() as u32);
        operands.iter().fold(counted, Code::code)
    }

    /// Appends whether there is an operand, and the operand.
    pub fn option(self, operand: Option<&Code>) -> Code {
        let flagged = self.flag(operand.is_some());
        operand.into_iter().fold(flagged, Code::code)
    }

    /// Appends an operand that is evaluated later, or not at all.
    pub fn region(self, region: &Code) -> Code {
        self.number(region.bytes.len() as u32).code(region)
    }

    /// Appends a flag.
    pub fn flag(self, flag: bool) -> Code {
        self.byte(flag.into())
    }

    /// Appends when something is to be done.
    pub fn when(self, when: &When) -> Code {
        match when {
            When::Never => self.number(0),
            When::Always => self.number(1),
            When::Changing(methods) => {
                let counted = self.number(methods.len() as u32 + 2);
                methods.iter().copied().fold(counted, Code::number)
            }
        }
    }

    /// Appends a number.
    pub fn number(self, number: u32) -> Code {
        self.unsigned(number.into())
    }

    /// Appends an integer of any sign.
    pub fn int(self, int: i128) -> Code {
        self.unsigned(((int << 1) ^ (int >> 127)) as u128)
    }

    /// Appends a text.
    pub fn text(mut self, text: &str) -> Code {
        self = self.number(text.len() as u32);
        self.bytes.extend_from_slice(text.as_bytes());
        self
    }

    /// Appends a length.
    pub fn len(self, len: Len) -> Code {
        match len {
            Len::Pooled(entry) => self.flag(false).number(entry),
            Len::Param(param) => self.flag(true).number(param),
        }
    }

    /// Appends const arguments, and before them how many there are.
    pub fn consts(self, consts: &[Len]) -> Code {
        let counted = self.number(consts.len() as u32);
        consts.iter().copied().fold(counted, Code::len)
    }

    /// Appends an operation by itself.
    pub fn op(self, op: Op) -> Code {
        self.byte(op as u8)
    }

    /// Seven bits a byte, the lowest first.
    fn unsigned(mut self, mut number: u128) -> Code {
        while number >= 0x80 {
            self = self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8)
    }

    /// The bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
