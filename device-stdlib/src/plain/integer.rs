//! Methods of integers that are made of the operators of the IR. For every input the result is Rust's;
//! where Rust panics, it is what the operators give: overflow wraps, a divisor of 0 is a 1.

use kiln_jit_core::build::Val;
use kiln_jit_core::front::{Front, Operand};
use kiln_jit_core::ir::{Scalar, Type};

/// An unsigned integer, looked at bit by bit.
#[derive(Copy, Clone)]
struct Bits<'k> {
    front: Front<'k>,
    value: Operand<'k>,
    /// The type that is computed in, of 32 or 64 bits, which hold the integer's and zeros.
    ty: Type,
    /// The bits that the integer has.
    width: u32,
}

impl<'k> Bits<'k> {
    /// The bits of an integer, or nothing, with a refusal, where its width is not known.
    fn of(front: Front<'k>, x: Operand<'k>) -> Option<Self> {
        let x = x.read();
        let width = match x.ty().as_scalar().filter(|scalar| scalar.is_int()) {
            Some(scalar) => scalar.bits(),
            None => {
                front.refuse("this method is for integers whose type is known, `u32` for instance");
                return None;
            }
        };
        let ty = if width == 64 { Type::U64 } else { Type::U32 };
        let value = front.value(x.cast(unsigned(x.ty())).cast(ty));
        Some(Bits {
            front,
            value,
            ty,
            width,
        })
    }

    fn with(self, value: Operand<'k>) -> Self {
        Bits { value, ..self }
    }

    fn constant(self, n: u64) -> Operand<'k> {
        self.front.int(self.ty, n.into())
    }

    /// A pattern of bits, repeated.
    fn mask(self, pattern: u64) -> Operand<'k> {
        self.constant(match self.ty {
            Type::U64 => pattern,
            _ => pattern & 0xffff_ffff,
        })
    }

    fn right(self, by: u32) -> Operand<'k> {
        self.front.shr(self.value, self.constant(by.into()))
    }

    fn left(self, by: u32) -> Operand<'k> {
        self.front.shl(self.value, self.constant(by.into()))
    }

    /// How many bits are ones: sums of 2, 4 and 8 neighbours, then all bytes by one multiplication.
    fn ones(self) -> Operand<'k> {
        let f = self.front;
        let odd = f.bitand(self.right(1), self.mask(0x5555_5555_5555_5555));
        let pairs = self.with(f.sub(self.value, odd));
        let two = self.mask(0x3333_3333_3333_3333);
        let fours = f.add(f.bitand(pairs.value, two), f.bitand(pairs.right(2), two));
        let fours = self.with(fours);
        let bytes = self.with(f.add(fours.value, fours.right(4)));
        let bytes = f.bitand(bytes.value, self.mask(0x0f0f_0f0f_0f0f_0f0f));
        let sum = self.with(f.mul(bytes, self.mask(0x0101_0101_0101_0101)));
        let bits = if self.ty == Type::U64 { 64 } else { 32 };
        sum.right(bits - 8).cast(Type::U32)
    }

    /// How many zeros are above the highest one: those that are left when all below it are ones.
    fn zeros_above(self) -> Operand<'k> {
        let mut filled = self;
        let mut by = 1;
        while by < self.width {
            filled = self.with(self.front.bitor(filled.value, filled.right(by)));
            by *= 2;
        }
        let width = self.front.int(Type::U32, self.width.into());
        self.front.sub(width, filled.ones())
    }

    /// How many zeros are below the lowest one.
    fn zeros_below(self) -> Operand<'k> {
        let f = self.front;
        // A one above the integer's own bits ends the count.
        let value = match self.width {
            32.. => self.value,
            width => f.bitor(self.value, self.constant(1 << width)),
        };
        let below = f.bitand(f.not(value), f.sub(value, self.constant(1)));
        self.with(below).ones()
    }

    /// Neighbouring groups of `by` bits exchanged.
    fn exchanged(self, by: u32, low: u64) -> Self {
        let f = self.front;
        let down = f.bitand(self.right(by), self.mask(low));
        let up = f.bitand(self.value, self.mask(low));
        self.with(f.bitor(down, self.with(up).left(by)))
    }

    /// The bytes in the other order.
    fn bytes_reversed(self) -> Self {
        let mut bits = self.exchanged(8, 0x00ff_00ff_00ff_00ff);
        bits = bits.exchanged(16, 0x0000_ffff_0000_ffff);
        let total = match self.ty {
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
}

/// The unsigned integer type of the same width.
fn unsigned(ty: Type) -> Type {
    let Some(scalar) = ty.as_scalar() else {
        return ty;
    };
    match scalar {
        Scalar::I8 => Type::U8,
        Scalar::I16 => Type::U16,
        Scalar::I32 => Type::U32,
        Scalar::I64 => Type::U64,
        Scalar::Bool
        | Scalar::U8
        | Scalar::U16
        | Scalar::U32
        | Scalar::U64
        | Scalar::F16
        | Scalar::BF16
        | Scalar::F32
        | Scalar::F64 => ty,
    }
}

fn is_signed(ty: Type) -> bool {
    unsigned(ty) != ty
}

/// Functions of the bits of an integer.
macro_rules! of_bits {
    ($($(#[$doc:meta])* $name:ident |$bits:ident, $ty:ident| $result:expr;)*) => {$(
        $(#[$doc])*
        pub fn $name<'k>(front: Front<'k>, x: Operand<'k>, _: &[Operand<'k>]) -> Operand<'k> {
            let $ty = x.read().ty();
            let _ = $ty;
            match Bits::of(front, x) {
                Some($bits) => $result,
                None => front.unit(),
            }
        }
    )*};
}
of_bits! {
    /// `x.count_ones()`.
    count_ones |bits, _ty| bits.ones();
    /// `x.leading_zeros()`.
    leading_zeros |bits, _ty| bits.zeros_above();
    /// `x.trailing_zeros()`.
    trailing_zeros |bits, _ty| bits.zeros_below();
    /// `x.swap_bytes()`.
    swap_bytes |bits, ty| bits.bytes_reversed().value.cast(ty);
    /// `x.reverse_bits()`.
    reverse_bits |bits, ty| {
        let bits = bits.exchanged(1, 0x5555_5555_5555_5555);
        let bits = bits.exchanged(2, 0x3333_3333_3333_3333);
        let bits = bits.exchanged(4, 0x0f0f_0f0f_0f0f_0f0f);
        bits.bytes_reversed().value.cast(ty)
    };
}

/// Methods that are others of `!x`.
macro_rules! of_complement {
    ($($name:ident $other:ident;)*) => {$(
        #[doc = concat!("`x.", stringify!($name), "()`.")]
        pub fn $name<'k>(front: Front<'k>, x: Operand<'k>, _: &[Operand<'k>]) -> Operand<'k> {
            $other(front, front.not(x), &[])
        }
    )*};
}
of_complement! {
    count_zeros count_ones;
    leading_ones leading_zeros;
    trailing_ones trailing_zeros;
}

/// `x.is_power_of_two()`, of unsigned integers.
pub fn is_power_of_two<'k>(front: Front<'k>, x: Operand<'k>, _: &[Operand<'k>]) -> Operand<'k> {
    let x = x.read();
    let (zero, one) = (front.int(x.ty(), 0), front.int(x.ty(), 1));
    let x = front.value(x);
    let rest = front.bitand(x, front.sub(x, one));
    front.bitand(front.ne(x, zero), front.eq(rest, zero))
}

/// The amount of a rotation, and what the others are up to the width: both count modulo that, and so do
/// 32-bit integers, as it divides 2^32.
fn rotated<'k>(front: Front<'k>, x: Operand<'k>, amount: Operand<'k>, left: bool) -> Operand<'k> {
    let ty = x.read().ty();
    let unsigned = front.value(x.read().cast(unsigned(ty)));
    let there = front.value(amount.read().cast(Type::U32));
    let back = front.neg(there.cast(Type::I32)).cast(Type::U32);
    let (up, down) = if left { (there, back) } else { (back, there) };
    let rotated = front.bitor(front.shl(unsigned, up), front.shr(unsigned, down));
    rotated.cast(ty)
}

/// `x.rotate_left(n)`.
pub fn rotate_left<'k>(front: Front<'k>, x: Operand<'k>, args: &[Operand<'k>]) -> Operand<'k> {
    match args {
        [n] => rotated(front, x, *n, true),
        _ => front.unit(),
    }
}

/// `x.rotate_right(n)`.
pub fn rotate_right<'k>(front: Front<'k>, x: Operand<'k>, args: &[Operand<'k>]) -> Operand<'k> {
    match args {
        [n] => rotated(front, x, *n, false),
        _ => front.unit(),
    }
}

/// Two integers of one type.
type Two<'k> = (Val<'k>, Val<'k>);

/// Functions of two integers.
macro_rules! of_two {
    ($($(#[$doc:meta])* $name:ident |$front:ident, $two:pat_param| $result:expr;)*) => {$(
        $(#[$doc])*
        pub fn $name<'k>($front: Front<'k>, x: Operand<'k>, args: &[Operand<'k>]) -> Operand<'k> {
            let [y] = args else { return $front.unit() };
            let $two: Two<'k> = super::method::both(x, *y);
            let result: Val<'k> = $result;
            $front.value(result)
        }
    )*};
}
of_two! {
    /// `x.abs_diff(y)`, which is unsigned.
    abs_diff |_front, (x, y)| {
        let difference = x.lt(y).select(y - x, x - y);
        difference.cast(unsigned(x.ty()))
    };
    /// `x.rem_euclid(y)`: never negative.
    rem_euclid |_front, (x, y)| {
        let rest = x % y;
        match is_signed(x.ty()) {
            false => rest,
            true => {
                let zero = x.builder().zero(x.ty());
                let size = y.lt(zero).select(-y, y);
                rest.lt(zero).select(rest + size, rest)
            }
        }
    };
    /// `x.div_euclid(y)`: rounded so that the remainder is not negative.
    div_euclid |front, (x, y)| {
        let quotient = x / y;
        match is_signed(x.ty()) {
            false => quotient,
            true => {
                let zero = x.builder().zero(x.ty());
                let one = front.int(x.ty(), 1).read();
                let rounded = zero.lt(y).select(quotient - one, quotient + one);
                (x % y).lt(zero).select(rounded, quotient)
            }
        }
    };
    /// `x.div_ceil(y)`, of unsigned integers: rounded up.
    div_ceil |front, (x, y)| {
        let one = front.int(x.ty(), 1).read();
        let quotient = x / y;
        let zero = x.builder().zero(x.ty());
        (x % y).ne(zero).select(quotient + one, quotient)
    };
    /// `x.wrapping_div(y)`.
    wrapping_div |_front, (x, y)| x / y;
    /// `x.wrapping_rem(y)`.
    wrapping_rem |_front, (x, y)| x % y;
    /// `x.saturating_add(y)`.
    saturating_add |front, (x, y)| {
        let sum = x + y;
        match limits(front, x.ty()) {
            (_, high) if !is_signed(x.ty()) => sum.lt(x).select(high, sum),
            (low, high) => {
                // It overflows if both have the sign that the sum has not.
                let zero = x.builder().zero(x.ty());
                let limit = x.lt(zero).select(low, high);
                ((x ^ sum) & (y ^ sum)).lt(zero).select(limit, sum)
            }
        }
    };
    /// `x.saturating_sub(y)`.
    saturating_sub |front, (x, y)| {
        let difference = x - y;
        match limits(front, x.ty()) {
            (low, _) if !is_signed(x.ty()) => x.lt(y).select(low, difference),
            (low, high) => {
                let zero = x.builder().zero(x.ty());
                let limit = x.lt(zero).select(low, high);
                ((x ^ y) & (x ^ difference)).lt(zero).select(limit, difference)
            }
        }
    };
}

/// The smallest and the largest integer of a type.
fn limits<'k>(front: Front<'k>, ty: Type) -> Two<'k> {
    let bits = ty.as_scalar().map_or(32, Scalar::bits);
    let (low, high) = match is_signed(ty) {
        true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        false => (0, (1i128 << bits) - 1),
    };
    (front.int(ty, low).read(), front.int(ty, high).read())
}

/// `x.wrapping_abs()`: the smallest integer is its own.
pub fn wrapping_abs<'k>(front: Front<'k>, x: Operand<'k>, args: &[Operand<'k>]) -> Operand<'k> {
    super::method::abs(front, x, args)
}

/// `x.unsigned_abs()`.
pub fn unsigned_abs<'k>(front: Front<'k>, x: Operand<'k>, args: &[Operand<'k>]) -> Operand<'k> {
    let size = super::method::abs(front, x, args);
    size.cast(unsigned(size.read().ty()))
}

/// `x.pow(n)`, by repeated squaring.
pub fn pow<'k>(front: Front<'k>, x: Operand<'k>, args: &[Operand<'k>]) -> Operand<'k> {
    let [n] = args else { return front.unit() };
    let x = x.read();
    let one = front.int(x.ty(), 1).read();
    super::method::power(front, x, *n, one)
}

/// `x.wrapping_pow(n)`.
pub fn wrapping_pow<'k>(front: Front<'k>, x: Operand<'k>, args: &[Operand<'k>]) -> Operand<'k> {
    pow(front, x, args)
}
