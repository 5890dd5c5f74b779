//! What machine code is for: everything about the target that decides the code.

use std::fmt;

/// The target of a compilation.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Target {
    /// An NVIDIA GPU, through PTX.
    Ptx(PtxTarget),
    /// This machine's CPU, a warp as a vector.
    Cpu,
    /// This machine's CPU, through the interpreter.
    Interpreter,
}

/// An NVIDIA architecture and the PTX language version to write.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct PtxTarget {
    /// Compute capability times ten: 75 is sm_75, 120 is sm_120.
    pub sm: u32,
    /// PTX ISA version times ten: 83 is `.version 8.3`.
    pub ptx: u32,
}

impl PtxTarget {
    /// The oldest architecture Kiln compiles for: Turing, the oldest that ptxas 13 knows.
    pub const MIN_SM: u32 = 75;

    /// The newest architecture that LLVM 22 writes for. Newer devices run its PTX.
    pub const MAX_SM: u32 = 120;

    /// The target for an architecture, in the oldest PTX version Kiln writes that knows it
    /// (PTX ISA, "Release Notes").
    pub fn for_sm(sm: u32) -> PtxTarget {
        let ptx = match sm {
            0..=89 => 78,
            90..=99 => 80,
            100..=102 => 86,
            103 => 88,
            104..=120 => 87,
            _ => 88,
        };
        PtxTarget { sm, ptx }
    }
}

impl Target {
    /// How many bytes of parameters a kernel can have (PTX ISA, "Kernel Function Parameters").
    pub const fn max_param_bytes(&self) -> u32 {
        match self {
            Target::Ptx(PtxTarget { ptx: 0..81, .. }) => 4096,
            Target::Ptx(_) | Target::Cpu | Target::Interpreter => 32_764,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Ptx(PtxTarget { sm, ptx }) => {
                write!(f, "sm_{sm}, PTX {}.{}", ptx / 10, ptx % 10)
            }
            Target::Cpu => f.write_str("this machine's CPU"),
            Target::Interpreter => f.write_str("interpreter"),
        }
    }
}
