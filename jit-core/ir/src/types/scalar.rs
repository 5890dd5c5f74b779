//! Numbers, and the memories that addresses point into.

/// The numeric types and `bool`.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Scalar {
    /// True or false; one byte in memory, 0 or 1.
    Bool,
    /// Signed 8-bit integer, two's complement like all signed integers here.
    I8,
    /// Signed 16-bit integer.
    I16,
    /// Signed 32-bit integer.
    I32,
    /// Signed 64-bit integer.
    I64,
    /// Unsigned 8-bit integer.
    U8,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned 64-bit integer.
    U64,
    /// IEEE 754 binary16.
    F16,
    /// bfloat16: the upper half of a binary32.
    BF16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

impl Scalar {
    /// All scalar types, in the order of their fixed type indices.
    pub const ALL: [Scalar; 13] = [
        Scalar::Bool,
        Scalar::I8,
        Scalar::I16,
        Scalar::I32,
        Scalar::I64,
        Scalar::U8,
        Scalar::U16,
        Scalar::U32,
        Scalar::U64,
        Scalar::F16,
        Scalar::BF16,
        Scalar::F32,
        Scalar::F64,
    ];

    /// The name in the text form, which is Rust's where Rust has one.
    pub const fn name(self) -> &'static str {
        match self {
            Scalar::Bool => "bool",
            Scalar::I8 => "i8",
            Scalar::I16 => "i16",
            Scalar::I32 => "i32",
            Scalar::I64 => "i64",
            Scalar::U8 => "u8",
            Scalar::U16 => "u16",
            Scalar::U32 => "u32",
            Scalar::U64 => "u64",
            Scalar::F16 => "f16",
            Scalar::BF16 => "bf16",
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
        }
    }

    /// Size and alignment in memory, in bytes.
    pub fn bytes(self) -> u32 {
        match self {
            Scalar::Bool | Scalar::I8 | Scalar::U8 => 1,
            Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::BF16 => 2,
            Scalar::I32 | Scalar::U32 | Scalar::F32 => 4,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => 8,
        }
    }

    /// Width in bits; 1 for `bool`.
    pub fn bits(self) -> u32 {
        if self == Scalar::Bool {
            1
        } else {
            self.bytes() * 8
        }
    }

    /// Whether this is one of `i8` .. `u64`.
    pub fn is_int(self) -> bool {
        matches!(self as u8, 1..=8)
    }

    /// Whether this is one of `i8` .. `i64`.
    pub fn is_signed_int(self) -> bool {
        matches!(self as u8, 1..=4)
    }

    /// Whether this is `f16`, `bf16`, `f32` or `f64`.
    pub fn is_float(self) -> bool {
        matches!(self as u8, 9..=12)
    }

    /// Whether this is `f16` or `bf16`: stored in 16 bits, computed in `f32` and rounded.
    pub fn is_half(self) -> bool {
        matches!(self, Scalar::F16 | Scalar::BF16)
    }
}

/// Where the memory behind a pointer lies (CUDA guide, "Memory Hierarchy"; PTX ISA, "State
/// Spaces"). The numbers that LLVM gives these exist only in `codegen`.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AddressSpace {
    /// Any of the others; found out at run time by the machine.
    Generic,
    /// Device memory, visible to all threads and to the host.
    Global,
    /// Memory of one thread block, for the block's lifetime.
    Shared,
    /// Read-only memory of a module, filled when it is loaded.
    Constant,
    /// Memory of one thread.
    Local,
    /// The kernel's parameter block: read-only, the same for all threads.
    Param,
}

impl AddressSpace {
    /// All address spaces.
    pub const ALL: [AddressSpace; 6] = [
        AddressSpace::Generic,
        AddressSpace::Global,
        AddressSpace::Shared,
        AddressSpace::Constant,
        AddressSpace::Local,
        AddressSpace::Param,
    ];

    /// The name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            AddressSpace::Generic => "generic",
            AddressSpace::Global => "global",
            AddressSpace::Shared => "shared",
            AddressSpace::Constant => "constant",
            AddressSpace::Local => "local",
            AddressSpace::Param => "param",
        }
    }
}
