//! Ops: what the interpreter executes, and the scalar functions they call.
//!
//! A register holds a scalar in 64 bits: integers as their two's complement bits with the upper
//! bits zero, floats as their IEEE bits, bool as 0 or 1, pointers as addresses.

use half::{bf16, f16};

use kiln_ir::rounding::{bf16_from_f64, bf16_from_int, f16_from_f64, f16_from_int};
use kiln_ir::{AtomicOp, BinaryOp, CompareOp, Constant, Ordering, Scalar, ThreadPosition, UnaryOp};

/// A register, by number.
pub(super) type Reg = u32;

/// The index of an op in the program.
pub(super) type OpIndex = u32;

/// A function of one scalar.
pub(super) type Unary = fn(u64) -> u64;

/// A function of two scalars.
pub(super) type Binary = fn(u64, u64) -> u64;

/// One step of a thread. `d` is the register written.
#[derive(Copy, Clone, Debug)]
pub(super) enum Op {
    /// A constant.
    Const { d: Reg, bits: u64 },
    /// `n` registers copied from `s`.
    Move { d: Reg, s: Reg, n: u32 },
    /// `n` registers set to zero.
    Zero { d: Reg, n: u32 },
    /// A function of one register.
    Unary { f: Unary, d: Reg, a: Reg },
    /// A function of two registers.
    Binary { f: Binary, d: Reg, a: Reg, b: Reg },
    /// `n` registers from `a` if `c` is true, else from `b`.
    Select {
        d: Reg,
        c: Reg,
        a: Reg,
        b: Reg,
        n: u16,
    },
    /// Memory at `p + offset` to a register.
    Load {
        d: Reg,
        p: Reg,
        offset: u32,
        bytes: u8,
    },
    /// A register to memory at `p + offset`.
    Store {
        p: Reg,
        v: Reg,
        offset: u32,
        bytes: u8,
    },
    /// `p + i * size`, for a 64-bit `i`.
    Scale { d: Reg, p: Reg, i: Reg, size: u32 },
    /// `p + offset`.
    Offset { d: Reg, p: Reg, offset: u64 },
    /// Ends the thread with a record unless `i < len`, both 64-bit.
    Check { i: Reg, len: Reg, site: u32 },
    /// Ends the thread at a fault site if a condition does not hold; without a site it ends the launch.
    Assume { cond: Reg, site: Option<u32> },
    /// Ends the thread by a fault where the condition does not hold, with two values.
    Assert {
        cond: Reg,
        site: u32,
        values: [Reg; 2],
    },
    /// The address of shared memory.
    Shared { d: Reg, offset: u32 },
    /// The address of dynamic shared memory in `d`, its length in elements in `d + 1`.
    DynamicShared { d: Reg, size: u32 },
    /// The address of local memory of this thread.
    Local { d: Reg, offset: u32 },
    /// Zeros in `bytes` bytes from `p` on. No access of the thread's: what it has not written since
    /// counts as uninitialized.
    Clear { p: Reg, bytes: u32 },
    /// The address of a constant.
    Constant { d: Reg, offset: u32 },
    /// The address of a parameter.
    Param { d: Reg, offset: u32 },
    /// Where the thread is.
    Position {
        row: &'static str,
        f: fn(&ThreadPosition) -> u64,
        d: Reg,
    },
    /// A function of up to three registers.
    Pure {
        row: &'static str,
        f: fn(Scalar, &[u64]) -> u64,
        d: Reg,
        args: [Reg; 3],
        n: u8,
        scalar: Scalar,
    },
    /// A scalar of memory to `d`, atomically.
    AtomicLoad {
        d: Reg,
        p: Reg,
        bytes: u8,
        ordering: Ordering,
    },
    /// A scalar to memory, atomically.
    AtomicStore {
        p: Reg,
        v: Reg,
        bytes: u8,
        ordering: Ordering,
    },
    /// The old value to `d`, `f(old, v)` to memory.
    Atomic {
        f: Binary,
        d: Reg,
        p: Reg,
        v: Reg,
        bytes: u8,
        ordering: Ordering,
    },
    /// The old value to `d`; `new` to memory if it is `expected`.
    Cas {
        d: Reg,
        p: Reg,
        expected: Reg,
        new: Reg,
        bytes: u8,
        ordering: Ordering,
    },
    /// The old 16 bytes to `d` and the register after it; those of `new` to memory, if those of `expected` were there
    /// or nothing is expected.
    SwapWords {
        d: Reg,
        p: Reg,
        expected: Option<Reg>,
        new: Reg,
        ordering: Ordering,
    },
    /// Threads run one after the other: everything is in order, save for who looks for races.
    Fence { ordering: Ordering },
    /// On to another op; backwards closes a loop.
    Jump { to: OpIndex },
    /// On to another op unless `c` is true.
    Unless { c: Reg, to: OpIndex },
    /// On to `to` unless the index in `i` starts a first iteration.
    ForEnter { i: Reg, bounds: Bounds, to: OpIndex },
    /// The next index in `i`, and on to `to`, if there is one.
    ForNext { i: Reg, bounds: Bounds, to: OpIndex },
    /// Waits for the block.
    Barrier,
    /// Waits for one thread of each block.
    Grid,
    /// Comes to the named barrier whose number is in `number`, which so many threads open as `threads` says.
    NamedBarrier {
        number: Reg,
        threads: Reg,
        waits: bool,
    },
    /// Waits for lanes of the warp, and executes this operation of the program's with them.
    Warp { operation: u32 },
    /// Ends the thread.
    End,
}

/// The registers and the type of a `for`'s bounds.
#[derive(Copy, Clone, Debug)]
pub(super) struct Bounds {
    pub(super) end: Reg,
    pub(super) step: Reg,
    pub(super) scalar: Scalar,
}

/// The number that an integer register holds.
pub(super) fn number(scalar: Scalar, bits: u64) -> i128 {
    if scalar.is_signed_int() {
        sign_extend(scalar, bits).into()
    } else {
        bits.into()
    }
}

/// An integer register as a signed 64-bit number.
fn sign_extend(scalar: Scalar, bits: u64) -> i64 {
    let unused = 64 - scalar.bits();
    ((bits << unused) as i64) >> unused
}

/// A byte of memory as a `bool`: its lowest bit, whatever else is there. Memory that nobody wrote, or
/// that was written as another type, holds any byte.
pub(super) fn truth(byte: u64) -> u64 {
    byte & 1
}

/// Calls a macro for the Rust type of an integer scalar: `with_int!(scalar, T => expression)`.
macro_rules! with_int {
    ($scalar:expr, $t:ident => $body:expr) => {
        match $scalar {
            Scalar::I8 => {
                type $t = i8;
                $body
            }
            Scalar::I16 => {
                type $t = i16;
                $body
            }
            Scalar::I32 => {
                type $t = i32;
                $body
            }
            Scalar::I64 => {
                type $t = i64;
                $body
            }
            Scalar::U8 => {
                type $t = u8;
                $body
            }
            Scalar::U16 => {
                type $t = u16;
                $body
            }
            Scalar::U32 => {
                type $t = u32;
                $body
            }
            // Bools and addresses are compared as the numbers in their registers. The verifier lets no
            // float come here.
            Scalar::U64
            | Scalar::Bool
            | Scalar::F16
            | Scalar::BF16
            | Scalar::F32
            | Scalar::F64 => {
                type $t = u64;
                $body
            }
        }
    };
}

/// A Rust integer to and from a register.
trait Register: Sized {
    fn get(bits: u64) -> Self;
    fn put(self) -> u64;
    /// As 64 bits, with its sign.
    fn extended(self) -> u64;
}

macro_rules! int_registers {
    ($($t:ty as $unsigned:ty),*) => {$(
        impl Register for $t {
            fn get(bits: u64) -> Self { bits as $t }
            fn put(self) -> u64 { self as $unsigned as u64 }
            fn extended(self) -> u64 { self as u64 }
        }
    )*};
}
int_registers!(
    i8 as u8, i16 as u16, i32 as u32, i64 as u64, u8 as u8, u16 as u16, u32 as u32, u64 as u64
);

/// A float type as computed: 16-bit floats in `f32`.
trait Float: Copy {
    type Wide: Copy
        + PartialOrd
        + std::ops::Add<Output = Self::Wide>
        + std::ops::Sub<Output = Self::Wide>
        + std::ops::Mul<Output = Self::Wide>
        + std::ops::Div<Output = Self::Wide>
        + std::ops::Neg<Output = Self::Wide>;
    fn get(bits: u64) -> Self::Wide;
    fn put(value: Self::Wide) -> u64;
    fn min(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    fn max(a: Self::Wide, b: Self::Wide) -> Self::Wide;
}

macro_rules! floats {
    ($($t:ty, $wide:ty, |$bits:ident| $get:expr, |$value:ident| $put:expr;)*) => {$(
        impl Float for $t {
            type Wide = $wide;
            fn get($bits: u64) -> $wide { $get }
            fn put($value: $wide) -> u64 { $put }
            fn min(a: $wide, b: $wide) -> $wide { a.min(b) }
            fn max(a: $wide, b: $wide) -> $wide { a.max(b) }
        }
    )*};
}
floats! {
    f16, f32, |bits| f16::from_bits(bits as u16).to_f32(), |x| f16::from_f32(x).to_bits().into();
    bf16, f32, |bits| bf16::from_bits(bits as u16).to_f32(), |x| bf16::from_f32(x).to_bits().into();
    f32, f32, |bits| f32::from_bits(bits as u32), |x| x.to_bits().into();
    f64, f64, |bits| f64::from_bits(bits), |x| x.to_bits();
}

/// Calls a macro for the Rust type of a float scalar.
macro_rules! with_float {
    ($scalar:expr, $t:ident => $body:expr) => {
        match $scalar {
            Scalar::F16 => {
                type $t = f16;
                $body
            }
            Scalar::BF16 => {
                type $t = bf16;
                $body
            }
            Scalar::F64 => {
                type $t = f64;
                $body
            }
            // Of the others the verifier lets none come here.
            Scalar::F32
            | Scalar::Bool
            | Scalar::I8
            | Scalar::I16
            | Scalar::I32
            | Scalar::I64
            | Scalar::U8
            | Scalar::U16
            | Scalar::U32
            | Scalar::U64 => {
                type $t = f32;
                $body
            }
        }
    };
}

/// A constant as a register holds it.
pub(super) fn constant(constant: Constant, scalar: Scalar) -> u64 {
    let float = |x: f64| cast(Scalar::F64, scalar)(x.to_bits());
    match constant {
        Constant::Zero => 0,
        Constant::Bool(b) => b.into(),
        Constant::Int(n) if scalar.is_float() => float(n as f64),
        Constant::Int(n) if scalar.bits() == 64 => n as u64,
        Constant::Int(n) => n as u64 & ((1 << scalar.bits()) - 1),
        Constant::Float(x) => float(x),
    }
}

/// An operation on one scalar.
pub(super) fn unary(op: UnaryOp, scalar: Scalar) -> Unary {
    match op {
        UnaryOp::Neg if scalar.is_float() => {
            with_float!(scalar, T => |a| <T as Float>::put(-<T as Float>::get(a)))
        }
        UnaryOp::Neg => {
            with_int!(scalar, T => |a| <T as Register>::get(a).wrapping_neg().put())
        }
        UnaryOp::Not if scalar.is_bool() => |a| a ^ 1,
        UnaryOp::Not => with_int!(scalar, T => |a| (!<T as Register>::get(a)).put()),
    }
}

/// An operation on two scalars.
pub(super) fn binary(op: BinaryOp, scalar: Scalar) -> Option<Binary> {
    if scalar.is_float() {
        return float_binary(op, scalar);
    }
    if scalar.is_bool() {
        return match op {
            BinaryOp::And => Some(|a, b| a & b),
            BinaryOp::Or => Some(|a, b| a | b),
            BinaryOp::Xor => Some(|a, b| a ^ b),
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Div
            | BinaryOp::Rem
            | BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::Shl
            | BinaryOp::Shr => None,
        };
    }
    Some(with_int!(scalar, T => {
        fn x(bits: u64) -> T { Register::get(bits) }
        match op {
            BinaryOp::Add => |a, b| x(a).wrapping_add(x(b)).put(),
            BinaryOp::Sub => |a, b| x(a).wrapping_sub(x(b)).put(),
            BinaryOp::Mul => |a, b| x(a).wrapping_mul(x(b)).put(),
            // A divisor that has no quotient counts as 1.
            BinaryOp::Div => |a, b| x(a).checked_div(x(b)).unwrap_or(x(a)).put(),
            BinaryOp::Rem => |a, b| x(a).checked_rem(x(b)).unwrap_or(0).put(),
            BinaryOp::Min => |a, b| x(a).min(x(b)).put(),
            BinaryOp::Max => |a, b| x(a).max(x(b)).put(),
            BinaryOp::And => |a, b| a & b,
            BinaryOp::Or => |a, b| a | b,
            BinaryOp::Xor => |a, b| a ^ b,
            BinaryOp::Shl => |a, b| x(a).wrapping_shl(b as u32).put(),
            BinaryOp::Shr => |a, b| x(a).wrapping_shr(b as u32).put(),
        }
    }))
}

fn float_binary(op: BinaryOp, scalar: Scalar) -> Option<Binary> {
    with_float!(scalar, T => {
        fn x(bits: u64) -> <T as Float>::Wide { <T as Float>::get(bits) }
        fn r(value: <T as Float>::Wide) -> u64 { <T as Float>::put(value) }
        Some(match op {
            BinaryOp::Add => |a, b| r(x(a) + x(b)),
            BinaryOp::Sub => |a, b| r(x(a) - x(b)),
            BinaryOp::Mul => |a, b| r(x(a) * x(b)),
            BinaryOp::Div => |a, b| r(x(a) / x(b)),
            BinaryOp::Min => |a, b| r(<T as Float>::min(x(a), x(b))),
            BinaryOp::Max => |a, b| r(<T as Float>::max(x(a), x(b))),
            BinaryOp::Rem
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::Shr => return None,
        })
    })
}

/// A comparison of two scalars.
pub(super) fn compare(op: CompareOp, scalar: Scalar) -> Binary {
    if scalar.is_float() {
        return with_float!(scalar, T => {
            fn x(bits: u64) -> <T as Float>::Wide { <T as Float>::get(bits) }
            match op {
                CompareOp::Eq => |a, b| (x(a) == x(b)).into(),
                CompareOp::Ne => |a, b| (x(a) != x(b)).into(),
                CompareOp::Lt => |a, b| (x(a) < x(b)).into(),
                CompareOp::Le => |a, b| (x(a) <= x(b)).into(),
                CompareOp::Gt => |a, b| (x(a) > x(b)).into(),
                CompareOp::Ge => |a, b| (x(a) >= x(b)).into(),
            }
        });
    }
    with_int!(scalar, T => {
        fn x(bits: u64) -> T { Register::get(bits) }
        match op {
            CompareOp::Eq => |a, b| (a == b).into(),
            CompareOp::Ne => |a, b| (a != b).into(),
            CompareOp::Lt => |a, b| (x(a) < x(b)).into(),
            CompareOp::Le => |a, b| (x(a) <= x(b)).into(),
            CompareOp::Gt => |a, b| (x(a) > x(b)).into(),
            CompareOp::Ge => |a, b| (x(a) >= x(b)).into(),
        }
    })
}

/// An integer as 64 bits, extended as its type says.
pub(super) fn extend(scalar: Scalar) -> Unary {
    with_int!(scalar, T => |a| <T as Register>::get(a).extended())
}

/// Rust's `as` between scalars. Every number passes through the widest type of its kind; that is
/// exact, so each conversion rounds once, except integers to 16-bit floats, which are computed in
/// `f32` as all operations on those are.
pub(super) fn cast(from: Scalar, to: Scalar) -> Unary {
    if from.is_float() {
        return with_float!(from, F => float_cast::<F>(from, to));
    }
    with_int!(from, I => match to {
        Scalar::F16 => |a| f16_from_int(<I as Register>::get(a).into()).to_bits().into(),
        Scalar::BF16 => |a| bf16_from_int(<I as Register>::get(a).into()).to_bits().into(),
        Scalar::F32 => |a| (<I as Register>::get(a) as f32).to_bits().into(),
        Scalar::F64 => |a| (<I as Register>::get(a) as f64).to_bits(),
        Scalar::Bool
        | Scalar::I8
        | Scalar::I16
        | Scalar::I32
        | Scalar::I64
        | Scalar::U8
        | Scalar::U16
        | Scalar::U32
        | Scalar::U64 => with_int!(to, J => |a| (<I as Register>::get(a) as J).put()),
    })
}

/// A float type whose values `f64` holds exactly.
trait Exact {
    fn exact(bits: u64) -> f64;
}
impl Exact for f16 {
    fn exact(bits: u64) -> f64 {
        f16::from_bits(bits as u16).to_f64()
    }
}
impl Exact for bf16 {
    fn exact(bits: u64) -> f64 {
        bf16::from_bits(bits as u16).to_f64()
    }
}
impl Exact for f32 {
    fn exact(bits: u64) -> f64 {
        f32::from_bits(bits as u32).into()
    }
}
impl Exact for f64 {
    fn exact(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
}

fn float_cast<F: Exact>(from: Scalar, to: Scalar) -> Unary {
    if from == to {
        return |a| a;
    }
    match to {
        Scalar::F16 => |a| f16_from_f64(F::exact(a)).to_bits().into(),
        Scalar::BF16 => |a| bf16_from_f64(F::exact(a)).to_bits().into(),
        Scalar::F32 => |a| (F::exact(a) as f32).to_bits().into(),
        Scalar::F64 => |a| F::exact(a).to_bits(),
        Scalar::Bool
        | Scalar::I8
        | Scalar::I16
        | Scalar::I32
        | Scalar::I64
        | Scalar::U8
        | Scalar::U16
        | Scalar::U32
        | Scalar::U64 => with_int!(to, J => |a| (F::exact(a) as J).put()),
    }
}

/// What an atomic operation writes.
pub(super) fn atomic(op: AtomicOp, scalar: Scalar) -> Option<Binary> {
    match op {
        AtomicOp::Add => binary(BinaryOp::Add, scalar),
        AtomicOp::Min => binary(BinaryOp::Min, scalar),
        AtomicOp::Max => binary(BinaryOp::Max, scalar),
        AtomicOp::And => binary(BinaryOp::And, scalar),
        AtomicOp::Or => binary(BinaryOp::Or, scalar),
        AtomicOp::Xor => binary(BinaryOp::Xor, scalar),
        AtomicOp::Exchange => Some(|_, new| new),
        AtomicOp::Increment => Some(|old, limit| if old >= limit { 0 } else { old + 1 }),
        AtomicOp::Decrement => Some(|old, limit| match old == 0 || old > limit {
            true => limit,
            false => old - 1,
        }),
    }
}
