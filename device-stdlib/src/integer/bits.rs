//! Integers looked at bit by bit, with the operators that every target has.

use kiln_jit_core::build::Val;
use kiln_jit_core::ir::{Scalar, Type};

use super::{unknown, unsigned};

/// The bits of an integer.
#[derive(Copy, Clone)]
pub(super) struct Bits<'k> {
    /// The bits, and zeros above, as an unsigned integer of 32 or 64 bits.
    value: Val<'k>,
    /// How many the integer has.
    width: u32,
}

impl<'k> Bits<'k> {
    /// A count of the bits of an integer, `u32`.
    #[track_caller]
    pub(super) fn count(x: Val<'k>, count: fn(Self) -> Val<'k>) -> Val<'k> {
        match Bits::of(x) {
            Ok(bits) => count(bits),
            Err(refused) => refused,
        }
    }

    /// An integer whose bits come from those of another.
    #[track_caller]
    pub(super) fn map(x: Val<'k>, map: fn(Self) -> Self) -> Val<'k> {
        match Bits::of(x) {
            Ok(bits) => map(bits).value.cast(x.ty()),
            Err(refused) => refused,
        }
    }

    /// The bits of an integer; where its width is not known, what is left of the refusal.
    #[track_caller]
    fn of(x: Val<'k>) -> Result<Self, Val<'k>> {
        if let Some(refused) = unknown(x) {
            return Err(refused);
        }
        let width = x.ty().as_scalar().map_or(32, Scalar::bits);
        let ty = if width == 64 { Type::U64 } else { Type::U32 };
        let value = x.cast(unsigned(x.ty())).cast(ty);
        Ok(Bits { value, width })
    }

    fn with(self, value: Val<'k>) -> Self {
        Bits { value, ..self }
    }

    /// A pattern of bits, repeated.
    fn mask(self, pattern: u64) -> Val<'k> {
        let ty = self.value.ty();
        let pattern = match ty {
            Type::U64 => pattern,
            _ => pattern & 0xffff_ffff,
        };
        self.value.builder().lit(ty, pattern)
    }

    fn right(self, by: u32) -> Val<'k> {
        self.value >> by
    }

    fn left(self, by: u32) -> Val<'k> {
        self.value << by
    }

    /// How many bits are ones: sums of 2, 4 and 8 neighbours, then all bytes by one multiplication.
    pub(super) fn ones(self) -> Val<'k> {
        let odd = self.right(1) & self.mask(0x5555_5555_5555_5555);
        let pairs = self.with(self.value - odd);
        let two = self.mask(0x3333_3333_3333_3333);
        let fours = self.with((pairs.value & two) + (pairs.right(2) & two));
        let bytes = fours.value + fours.right(4);
        let bytes = bytes & self.mask(0x0f0f_0f0f_0f0f_0f0f);
        let sum = self.with(bytes * self.mask(0x0101_0101_0101_0101));
        let bits = if self.value.ty() == Type::U64 { 64 } else { 32 };
        sum.right(bits - 8).cast(Type::U32)
    }

    /// How many zeros are above the highest one: those that are left when all below it are ones.
    pub(super) fn zeros_above(self) -> Val<'k> {
        let mut filled = self;
        let mut by = 1;
        while by < self.width {
            filled = self.with(filled.value | filled.right(by));
            by *= 2;
        }
        self.value.builder().lit(Type::U32, self.width) - filled.ones()
    }

    /// How many zeros are below the lowest one.
    pub(super) fn zeros_below(self) -> Val<'k> {
        // A one above the integer's own bits ends the count.
        let value = match self.width {
            32.. => self.value,
            width => self.value | self.mask(1 << width),
        };
        self.with(!value & (value - self.mask(1))).ones()
    }

    /// Neighbouring groups of `by` bits exchanged.
    fn exchanged(self, by: u32, low: u64) -> Self {
        let down = self.right(by) & self.mask(low);
        let up = self.value & self.mask(low);
        self.with(down | self.with(up).left(by))
    }

    /// The bytes in the other order.
    pub(super) fn bytes_reversed(self) -> Self {
        let mut bits = self.exchanged(8, 0x00ff_00ff_00ff_00ff);
        bits = bits.exchanged(16, 0x0000_ffff_0000_ffff);
        let total = match self.value.ty() {
            Type::U64 => {
                bits = bits.exchanged(32, 0x0000_0000_ffff_ffff);
                64
            }
            _ => 32,
        };
        match total - self.width {
            0 => bits,
            unused => self.with(bits.right(unused)),
        }
    }

    /// The bits in the other order.
    pub(super) fn reversed(self) -> Self {
        let bits = self.exchanged(1, 0x5555_5555_5555_5555);
        let bits = bits.exchanged(2, 0x3333_3333_3333_3333);
        bits.exchanged(4, 0x0f0f_0f0f_0f0f_0f0f).bytes_reversed()
    }
}
