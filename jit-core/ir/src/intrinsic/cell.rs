//! Cells: how the code of a machine has an intrinsic, for one type of its arguments.

use crate::types::Scalar;

/// The machines that a cell is for. A new kind of machine is a variant here, one in [`Processor`], and
/// a line in [`Family::has`].
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Family {
    /// All that LLVM makes code for: an LLVM intrinsic that every back end has instructions for.
    Any,
    /// NVIDIA GPUs.
    Ptx {
        /// The oldest architecture that has it, as in `sm_75`: 75. 0: all have it.
        min_sm: u32,
    },
    /// CPUs, where LLVM makes vectors of it: an overloaded LLVM intrinsic.
    Host,
}

impl Family {
    /// All NVIDIA GPUs.
    pub const PTX: Family = Family::Ptx { min_sm: 0 };

    /// The oldest NVIDIA GPUs that belong to them, if any do.
    pub fn min_sm(self) -> Option<u32> {
        match self {
            Family::Any => Some(0),
            Family::Ptx { min_sm } => Some(min_sm),
            Family::Host => None,
        }
    }

    /// Whether a machine is one of them.
    pub fn has(self, processor: Processor) -> bool {
        match (self, processor) {
            (Family::Any, _) | (Family::Host, Processor::Host) => true,
            (Family::Ptx { min_sm }, Processor::Ptx { sm }) => min_sm <= sm,
            (Family::Ptx { .. }, Processor::Amdgpu | Processor::Host)
            | (Family::Host, Processor::Ptx { .. } | Processor::Amdgpu) => false,
        }
    }
}

/// The machine that code is made for, as far as cells tell machines apart.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Processor {
    /// An NVIDIA GPU.
    Ptx {
        /// The GPU's architecture, as in `sm_75`: 75.
        sm: u32,
    },
    /// An AMD GPU.
    Amdgpu,
    /// A CPU.
    Host,
}

impl Processor {
    /// Whether code may compare and swap an integer of a type. NVIDIA's GPUs have no such operation of 8 bits (PTX ISA,
    /// "atom"); of AMD's, LLVM writes one of the word around it.
    pub fn swaps(self, scalar: Scalar) -> bool {
        scalar.is_int() && (scalar.bits() > 8 || !matches!(self, Processor::Ptx { .. }))
    }
}

/// How a machine's code has an intrinsic.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Lowering {
    /// A call of this LLVM intrinsic. With `overloaded`, the type that selects the cell (see
    /// [`IntrinsicDef::cell_type`](super::IntrinsicDef::cell_type)) selects the overload.
    Llvm {
        /// `llvm.sqrt`, `llvm.nvvm.read.ptx.sreg.tid.x` ...
        name: &'static str,
        /// Whether the name takes a type suffix.
        overloaded: bool,
    },
    /// Inline assembly in LLVM's syntax, for GPUs. On NVIDIA's it is PTX.
    Asm {
        /// The instruction, `$0` the result.
        template: &'static str,
        /// LLVM constraints, such as `=r,r`; with `~{memory}` in a row that synchronizes.
        constraints: &'static str,
    },
    /// A call of the function with this name, for GPUs: one of LLVM IR that a hook links, such as a library's. Values are
    /// those of LLVM's types, an address is one of any memory.
    Function {
        /// The function's name in the linked file.
        name: &'static str,
    },
    /// A call of a function whose PTX is there, for NVIDIA's GPUs: for what is long and seldom executed, which LLVM need not
    /// make again for each kernel. Values are those of LLVM's types.
    Ptx(&'static PtxFunction),
    /// Computed in `f32` by the cell of that type, then rounded.
    ViaF32,
}

/// A function in PTX that cells call ([`Lowering::Ptx`]).
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct PtxFunction {
    /// The name of the function, which no other function of a kernel may have.
    pub name: &'static str,
    /// Variables of the module that it reads, a line each, if there are some; then its body, in braces that each have a line of
    /// their own. A parameter is `<name>_param_0`, `.._1` and so on, and the result `func_retval0`, both as LLVM lays values of
    /// their types out.
    pub text: &'static str,
}

/// How some machines have an intrinsic for some type.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Cell {
    /// The machines.
    pub family: Family,
    /// The type that selects the cell (see
    /// [`IntrinsicDef::cell_type`](super::IntrinsicDef::cell_type)); `None`: any.
    pub ty: Option<Scalar>,
    /// How the machines have the intrinsic.
    pub lowering: Lowering,
}

impl Cell {
    /// An LLVM intrinsic whose name takes the type as a suffix.
    pub const fn overloaded(family: Family, ty: Scalar, name: &'static str) -> Cell {
        Cell {
            family,
            ty: Some(ty),
            lowering: Lowering::Llvm {
                name,
                overloaded: true,
            },
        }
    }

    /// An LLVM intrinsic that has this name for all types of the row.
    pub const fn named(family: Family, name: &'static str) -> Cell {
        Cell {
            family,
            ty: None,
            lowering: Lowering::Llvm {
                name,
                overloaded: false,
            },
        }
    }

    /// Inline assembly: template and constraints; for one type, or for all.
    pub const fn asm(
        family: Family,
        ty: Option<Scalar>,
        template: &'static str,
        constraints: &'static str,
    ) -> Cell {
        Cell {
            family,
            ty,
            lowering: Lowering::Asm {
                template,
                constraints,
            },
        }
    }

    /// A function that a hook links, by its name there; for one type, or for all.
    pub const fn function(family: Family, ty: Option<Scalar>, name: &'static str) -> Cell {
        Cell {
            family,
            ty,
            lowering: Lowering::Function { name },
        }
    }

    /// A function in PTX, for one type, or for all.
    pub const fn ptx(family: Family, ty: Option<Scalar>, function: &'static PtxFunction) -> Cell {
        Cell {
            family,
            ty,
            lowering: Lowering::Ptx(function),
        }
    }

    /// A 16-bit float through the cell of `f32`.
    pub const fn via_f32(family: Family, ty: Scalar) -> Cell {
        Cell {
            family,
            ty: Some(ty),
            lowering: Lowering::ViaF32,
        }
    }

    /// Whether the assembly of the cell lets nothing that is known of memory stand.
    pub(crate) fn clobbers_memory(&self) -> bool {
        match self.lowering {
            Lowering::Asm { constraints, .. } => constraints.contains("~{memory}"),
            Lowering::Llvm { .. }
            | Lowering::Function { .. }
            | Lowering::Ptx(_)
            | Lowering::ViaF32 => false,
        }
    }
}
