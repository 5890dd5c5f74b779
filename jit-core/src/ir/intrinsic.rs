//! Intrinsics as data: an operation known by name is a row, not an arm of a match.
//!
//! A row says what the operation takes and gives, what analyses may assume, how each backend
//! lowers it for each type, and what it means. The rows of the library are in `device-stdlib`,
//! one chapter a file; a program may bring its own. Nothing outside the table of
//! [`PtxCell`]s reaches LLVM: the legality check before code generation refuses an intrinsic that has
//! no cell for its type and target, because LLVM would end the process.

use super::types::{Scalar, Type, TypeData, TypeTable};

/// What a parameter of an intrinsic accepts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum TypePattern {
    /// This scalar type.
    Exact(Scalar),
    /// Any of these scalar types.
    OneOf(&'static [Scalar]),
    /// The type of the parameter with this position.
    SameAs(u8),
    /// No value; for results only.
    Unit,
}

impl TypePattern {
    /// `f32` and `f64`.
    pub const FLOAT: TypePattern = TypePattern::OneOf(&[Scalar::F32, Scalar::F64]);
    /// Integers of 32 and 64 bits.
    pub const INT32_64: TypePattern =
        TypePattern::OneOf(&[Scalar::I32, Scalar::U32, Scalar::I64, Scalar::U64]);

    /// The type this pattern gives for the arguments' types, or `None` when it does not accept
    /// `actual`.
    pub fn accepts(self, actual: Type, args: &[Type]) -> bool {
        match self {
            TypePattern::Exact(s) => actual == Type::scalar(s),
            TypePattern::OneOf(list) => actual.as_scalar().is_some_and(|s| list.contains(&s)),
            TypePattern::SameAs(i) => args.get(usize::from(i)) == Some(&actual),
            TypePattern::Unit => actual == Type::UNIT,
        }
    }
}

/// How far the result can differ between threads given the same arguments.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Uniformity {
    /// The same arguments give the same result in every thread.
    Function,
    /// The same in all threads of a block.
    Block,
    /// May differ from lane to lane.
    Lane,
}

/// What an intrinsic does besides giving a result.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Effects {
    /// Nothing: it can be moved, merged and dropped.
    None,
    /// It communicates within the warp: it must stay where it is, for the threads that are there.
    Convergent,
    /// It reads or writes memory or a clock: it must stay where it is.
    Memory,
}

/// How LLVM's NVPTX backend is given an intrinsic.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PtxLowering {
    /// A call of this LLVM intrinsic. With `overloaded`, the first argument's type (the result's
    /// when there is no argument) selects the overload.
    Llvm {
        /// `llvm.sqrt`, `llvm.nvvm.read.ptx.sreg.tid.x` ...
        name: &'static str,
        /// Whether the name takes a type suffix.
        overloaded: bool,
    },
    /// Inline PTX (LLVM inline assembly syntax).
    Asm {
        /// The instruction, `$0` the result.
        template: &'static str,
        /// LLVM constraints, such as `=r,r`.
        constraints: &'static str,
    },
    /// Computed in `f32` by the cell of that type, then rounded.
    ViaF32,
}

/// One legal (intrinsic, type) cell of the PTX target.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PtxCell {
    /// The type of the first argument, or of the result when there is no argument; `None` for an
    /// intrinsic without either.
    pub ty: Option<Scalar>,
    /// The oldest architecture that has it, as in `sm_75`: 75.
    pub min_sm: u32,
    /// How it is lowered.
    pub lowering: PtxLowering,
}

/// Where a thread is, as an intrinsic's meaning sees it.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct ThreadPosition {
    /// Index of the thread in its block.
    pub thread: [u32; 3],
    /// Index of the block in the grid.
    pub block: [u32; 3],
    /// Threads of a block.
    pub block_dim: [u32; 3],
    /// Blocks of the grid.
    pub grid_dim: [u32; 3],
}

/// What an intrinsic means, for the interpreter and for constant folding. A scalar is carried in
/// the low bits of a `u64`: integers as their two's complement bits (upper bits zero), floats as
/// their IEEE bits, bool as 0 or 1.
#[derive(Copy, Clone)]
pub enum Meaning {
    /// A function of its arguments, for the scalar type of its cell.
    Pure(fn(Scalar, &[u64]) -> u64),
    /// A function of where the thread is.
    Position(fn(&ThreadPosition) -> u64),
}

impl std::fmt::Debug for Meaning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Meaning::Pure(_) => "Pure",
            Meaning::Position(_) => "Position",
        })
    }
}

/// A row of the intrinsic table.
#[derive(Copy, Clone, Debug)]
pub struct IntrinsicDef {
    /// A dotted name: `thread_idx.x`, `math.sqrt`.
    pub name: &'static str,
    /// Parameter types.
    pub params: &'static [TypePattern],
    /// Result type.
    pub result: TypePattern,
    /// How the result can differ between threads.
    pub uniformity: Uniformity,
    /// What else it does.
    pub effects: Effects,
    /// The result is below this bound, for integers; 0: no bound known.
    pub result_below: u64,
    /// The legal cells of the PTX target.
    pub ptx: &'static [PtxCell],
    /// What it means.
    pub meaning: Meaning,
    /// Changes when the row's lowering or meaning does; part of the cache key.
    pub version: u32,
}

impl IntrinsicDef {
    /// The scalar type that selects a cell, for arguments of these types and this result.
    pub fn cell_type(&self, args: &[Type], result: Type) -> Option<Scalar> {
        args.first().copied().unwrap_or(result).as_scalar()
    }

    /// The cell for a type on an architecture, or `None` when it is not legal there.
    pub fn ptx_cell(&self, ty: Option<Scalar>, sm: u32) -> Option<&'static PtxCell> {
        self.ptx
            .iter()
            .find(|c| (c.ty.is_none() || c.ty == ty) && c.min_sm <= sm)
    }

    /// The result type for arguments of these types, or what is wrong with them.
    pub fn result_type(&self, types: &TypeTable, args: &[Type]) -> Result<Type, String> {
        if args.len() != self.params.len() {
            return Err(format!(
                "`{}` takes {} arguments, not {}",
                self.name,
                self.params.len(),
                args.len()
            ));
        }
        for (i, (pattern, &arg)) in self.params.iter().zip(args).enumerate() {
            // A type parameter is checked again once it is bound.
            let open = matches!(types.data(arg), TypeData::Param(_));
            if !open && !pattern.accepts(arg, args) {
                return Err(format!(
                    "argument {i} of `{}` has type {}, which it does not accept",
                    self.name,
                    types.display(arg)
                ));
            }
        }
        Ok(match self.result {
            TypePattern::Exact(s) => Type::scalar(s),
            TypePattern::SameAs(i) => args[usize::from(i)],
            TypePattern::OneOf(list) => Type::scalar(list[0]),
            TypePattern::Unit => Type::UNIT,
        })
    }
}
