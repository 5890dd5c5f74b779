//! Intrinsics as data: an operation known by name is a row, not an arm of a match.
//!
//! A row says what the operation takes and gives, what analyses may assume, how each backend
//! lowers it for each type, and what it means. The rows of the library are in `device-stdlib`,
//! one chapter a file; a program may bring its own. Nothing outside the table of
//! [`Cell`]s reaches LLVM: the legality check before code generation refuses an intrinsic that has
//! no cell for its type and target, because LLVM would end the process.
//!
//! A row is made with [`IntrinsicDef::new`] and the `with_..` methods, in a `static`:
//!
//! ```
//! use kiln_ir::{Cell, Family, IntrinsicDef, Meaning, Scalar, TypePattern};
//!
//! static POPC: IntrinsicDef = IntrinsicDef::new(
//!     "bits.popc",
//!     &[TypePattern::Exact(Scalar::U32)],
//!     TypePattern::SameAs(0),
//!     Meaning::Pure(|_, args| args[0].count_ones().into()),
//! )
//! .with_cells(&[Cell::overloaded(Family::Any, Scalar::U32, "llvm.ctpop")]);
//! # assert_eq!(POPC.version, 1);
//! ```

mod cell;
mod known;
mod pattern;

use std::hash::{Hash, Hasher};
use std::panic::Location;

pub use cell::{Cell, Family, Lowering, Processor, PtxFunction};
pub use known::{Axis, Known, Match, Reduction, Shuffle, Vote};
pub use pattern::TypePattern;

use super::module::Module;
use super::types::{Scalar, Type, TypeTable};
use crate::FastMath;
use pattern::Given;

/// How far the result can differ between threads given the same arguments.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Uniformity {
    /// Equal arguments give an equal result in every thread.
    Function,
    /// Equal arguments give an equal result in all threads of a block.
    Block,
    /// Equal arguments give an equal result in all lanes of a warp that execute the operation together: with a
    /// member mask those of the mask, else all.
    Warp,
    /// May differ from lane to lane.
    Lane,
}

/// What an intrinsic does besides giving a result.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Effects {
    /// Nothing: it can be moved, merged and dropped.
    None,
    /// Communication within the warp: the operation must stay where it is, for the threads that are there.
    /// Accesses to memory may move across it.
    Convergent,
    /// As [`Effects::Convergent`], and its lanes see after it what they wrote before it.
    Synchronizes,
    /// A read or write of memory, or a look at a clock: the operation must stay where it is.
    Memory,
}

impl Effects {
    /// Whether the lanes of a warp execute it together.
    pub fn meets(self) -> bool {
        match self {
            Effects::Convergent | Effects::Synchronizes => true,
            Effects::None | Effects::Memory => false,
        }
    }
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

impl ThreadPosition {
    /// The number of the thread in its block, x fastest (CUDA guide, "Thread Hierarchy").
    pub fn linear(&self) -> u32 {
        let ([x, y, z], [width, height, _]) = (self.thread, self.block_dim);
        (z * height + y) * width + x
    }

    /// The lane of the thread in its warp: warps are runs of 32 threads in linear order.
    pub fn lane(&self) -> u32 {
        self.linear() % WARP_LANES as u32
    }

    /// The number of the thread's warp in its block.
    pub fn warp(&self) -> u32 {
        self.linear() / WARP_LANES as u32
    }
}

/// Threads of a warp.
pub const WARP_LANES: usize = 32;

/// A scalar of each lane of a warp; of lanes that take no part it says nothing.
pub type Lanes = [u64; WARP_LANES];

/// What the lanes of a warp bring to an operation that they execute together.
#[derive(Copy, Clone, Debug)]
pub struct WarpArgs<'a> {
    /// The lanes that take part, as a mask: those of the member mask that have not ended.
    pub lanes: u32,
    /// For each argument, its value in each lane. The first one is the member mask, if there are
    /// any.
    pub args: &'a [Lanes],
}

impl WarpArgs<'_> {
    /// Whether a lane takes part; false beyond the warp.
    pub fn takes_part(&self, lane: u32) -> bool {
        lane < u32::BITS && self.lanes >> lane & 1 == 1
    }

    /// The lanes that take part, in order.
    pub fn each(&self) -> impl Iterator<Item = usize> {
        let lanes = self.lanes;
        (0..WARP_LANES).filter(move |&lane| lanes >> lane & 1 == 1)
    }
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
    /// A function of what all lanes of a warp bring to it, for the scalar type of its cell: the
    /// results of the lanes that take part. The first parameter is the member mask, a `u32`;
    /// without parameters it is executed by the lanes that are there.
    Warp(fn(Scalar, &WarpArgs<'_>) -> Lanes),
    /// A function of its arguments that is written in the IR: for the scalar type of its cell, a
    /// module whose first function takes and gives what the row does, and calls none but the others. Before
    /// a module becomes legal, calls of the function take the place of the row, but on a GPU for which it has
    /// a cell. `None`: it has no function for this type.
    Body(fn(Scalar) -> Option<Module>),
    /// The wait of a thread until one thread of each block of the grid has come to it: what all of them have written
    /// before, all see after it. It gives nothing, and its arguments are for the cells of machines alone. A kernel with
    /// it is launched cooperatively.
    Grid,
    /// A barrier of whole warps of the block ([`named_barrier`](crate::named_barrier)): its parameters are which one, and
    /// how many threads open it. It gives nothing.
    NamedBarrier {
        /// Whether who comes waits until it opens.
        waits: bool,
    },
}

impl Meaning {
    /// What kind of function it is.
    fn kind(&self) -> &'static str {
        match self {
            Meaning::Pure(_) => "Pure",
            Meaning::Position(_) => "Position",
            Meaning::Warp(_) => "Warp",
            Meaning::Body(_) => "Body",
            Meaning::Grid => "Grid",
            Meaning::NamedBarrier { .. } => "NamedBarrier",
        }
    }
}

impl std::fmt::Debug for Meaning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.kind())
    }
}

/// A row of the intrinsic table.
#[derive(Copy, Clone, Debug)]
#[non_exhaustive]
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
    /// How machines have it: for a type and a machine the first cell that is for both. A CPU needs
    /// none, as it can call the meaning.
    pub cells: &'static [Cell],
    /// How machines have an approximation of it, for instructions that may be one
    /// ([`FastMath::APPROXIMATE`](crate::FastMath::APPROXIMATE)); they come before `cells`.
    pub approximations: &'static [Cell],
    /// The operation that backends understand it to be.
    pub known: Option<Known>,
    /// What the operation means, on every machine.
    pub meaning: Meaning,
    /// Changes when what the row's meaning gives does. All other data of a row is part of the cache key, and
    /// so is where it is written; what a function computes can be read from neither.
    pub version: u32,
    /// Where the program makes it.
    pub place: &'static Location<'static>,
}

/// All of a row that can be compared between programs: everything but the functions of its meaning.
#[derive(PartialEq, Eq, Hash, Debug)]
struct Content {
    name: &'static str,
    params: &'static [TypePattern],
    result: TypePattern,
    uniformity: Uniformity,
    effects: Effects,
    result_below: u64,
    cells: &'static [Cell],
    approximations: &'static [Cell],
    known: Option<Known>,
    meaning: &'static str,
    version: u32,
    place: (&'static str, u32, u32),
}

impl IntrinsicDef {
    /// A row of a function of its arguments, with no cells, of version 1.
    #[track_caller]
    pub const fn new(
        name: &'static str,
        params: &'static [TypePattern],
        result: TypePattern,
        meaning: Meaning,
    ) -> IntrinsicDef {
        IntrinsicDef {
            name,
            params,
            result,
            uniformity: Uniformity::Function,
            effects: Effects::None,
            result_below: 0,
            cells: &[],
            approximations: &[],
            known: None,
            meaning,
            version: 1,
            place: Location::caller(),
        }
    }

    fn content(&self) -> Content {
        let IntrinsicDef {
            name,
            params,
            result,
            uniformity,
            effects,
            result_below,
            cells,
            approximations,
            known,
            ref meaning,
            version,
            place,
        } = *self;
        Content {
            name,
            params,
            result,
            uniformity,
            effects,
            result_below,
            cells,
            approximations,
            known,
            meaning: meaning.kind(),
            version,
            place: (place.file(), place.line(), place.column()),
        }
    }

    /// Hashes everything that the row says, for digests: two rows that hash alike are one row, in two
    /// libraries of a program or in two programs. What its meaning computes is not in it.
    pub fn hash_content(&self, state: &mut impl Hasher) {
        self.content().hash(state);
    }

    /// Whether two rows are the same, perhaps one of them in another library of this program.
    pub fn is_same(&self, other: &IntrinsicDef) -> bool {
        std::ptr::eq(self, other) || self.content() == other.content()
    }

    /// What is wrong with this row and another in one call graph: that they have one name.
    pub fn conflict(&self, other: &IntrinsicDef) -> String {
        format!(
            "two intrinsics are named `{}`: that of {} and that of {}; give one of them another name",
            self.name, self.place, other.place
        )
    }

    /// The row with other [`cells`](IntrinsicDef::cells).
    #[must_use]
    pub const fn with_cells(mut self, cells: &'static [Cell]) -> IntrinsicDef {
        self.cells = cells;
        self
    }

    /// The row with other [`approximations`](IntrinsicDef::approximations).
    #[must_use]
    pub const fn with_approximations(mut self, cells: &'static [Cell]) -> IntrinsicDef {
        self.approximations = cells;
        self
    }

    /// The row with another [`uniformity`](IntrinsicDef::uniformity).
    #[must_use]
    pub const fn with_uniformity(mut self, uniformity: Uniformity) -> IntrinsicDef {
        self.uniformity = uniformity;
        self
    }

    /// The row with other [`effects`](IntrinsicDef::effects).
    #[must_use]
    pub const fn with_effects(mut self, effects: Effects) -> IntrinsicDef {
        self.effects = effects;
        self
    }

    /// The row with another [bound of its result](IntrinsicDef::result_below).
    #[must_use]
    pub const fn with_result_below(mut self, bound: u64) -> IntrinsicDef {
        self.result_below = bound;
        self
    }

    /// The row as one that backends [understand](IntrinsicDef::known).
    #[must_use]
    pub const fn known_as(mut self, known: Known) -> IntrinsicDef {
        self.known = Some(known);
        self
    }

    /// The row with another [`version`](IntrinsicDef::version).
    #[must_use]
    pub const fn with_version(mut self, version: u32) -> IntrinsicDef {
        self.version = version;
        self
    }

    /// Whether the lanes of a warp are told apart by it, or execute it together.
    pub fn is_of_warp(&self) -> bool {
        let of_warp = self.known.is_some_and(Known::is_of_warp);
        of_warp || self.effects.meets() || self.uniformity == Uniformity::Warp
    }

    /// Whether a thread waits in it for one of each block ([`Meaning::Grid`]).
    pub fn waits_for_grid(&self) -> bool {
        let gives_nothing = self.result == TypePattern::Unit;
        matches!(self.meaning, Meaning::Grid) && gives_nothing && self.effects == Effects::Memory
    }

    /// Whether the row is a named barrier, and has the parameters and the effects of one.
    pub fn is_named_barrier(&self) -> bool {
        const NUMBER: TypePattern = TypePattern::Exact(Scalar::U32);
        let takes_both = self.params == [NUMBER, NUMBER] && self.result == TypePattern::Unit;
        let means = matches!(self.meaning, Meaning::NamedBarrier { .. });
        means && takes_both && self.effects == Effects::Synchronizes
    }

    /// Whether all that it takes and gives are scalars.
    pub(crate) fn is_scalar(&self) -> bool {
        let mut patterns = self.params.iter().chain([&self.result]);
        patterns.all(|pattern| pattern.is_scalar())
    }

    /// The position of the parameter that selects a cell: the first that leaves a choice, or else the first.
    fn selecting(&self) -> usize {
        let choice = self.params.iter().position(|pattern| pattern.has_choice());
        choice.unwrap_or(0)
    }

    /// For each parameter whether it takes what a [`TypePattern::Each`] has chosen: the number of a value for which
    /// the row is executed. None of them where the row has no such parameter.
    pub fn each(&self) -> Vec<bool> {
        let at = self.selecting();
        let has_each = matches!(self.params.get(at), Some(TypePattern::Each(_)));
        let of_chosen = |pattern| self.takes_chosen(pattern);
        let params = self.params.iter().enumerate();
        params
            .map(|(n, &pattern)| has_each && (n == at || of_chosen(pattern)))
            .collect()
    }

    /// Whether a parameter or result of this pattern is of the chosen type.
    pub(crate) fn takes_chosen(&self, pattern: TypePattern) -> bool {
        match pattern {
            TypePattern::Chosen => true,
            TypePattern::SameAs(i) => usize::from(i) == self.selecting(),
            TypePattern::Exact(_)
            | TypePattern::OneOf(_)
            | TypePattern::Each(_)
            | TypePattern::Vector(..)
            | TypePattern::Array(..)
            | TypePattern::Tuple(_)
            | TypePattern::Pointer { .. }
            | TypePattern::Unit => false,
        }
    }

    fn given<'a>(&self, types: &TypeTable, args: &'a [Type]) -> Given<'a> {
        let at = self.selecting();
        let pair = self.params.get(at).zip(args.get(at));
        let chosen = pair.and_then(|(pattern, &arg)| pattern.inside(types, arg));
        Given { args, chosen }
    }

    /// The scalar type that selects a cell, for arguments of these types and this result: that of
    /// the first parameter that leaves a choice, or else of the first one; of the result when
    /// there is no argument. Of an address it is what it points to, of a vector what its lanes are; of a value for
    /// each of whose numbers the row is executed there is none.
    pub fn cell_type(&self, types: &TypeTable, args: &[Type], result: Type) -> Option<Scalar> {
        match self.params {
            [] => result.as_scalar(),
            _ => self.given(types, args).chosen?.as_scalar(),
        }
    }

    /// The type that a row's function is told: [`IntrinsicDef::cell_type`], or `u32` where a row neither
    /// takes nor gives anything.
    pub fn meaning_type(&self, types: &TypeTable, args: &[Type], result: Type) -> Scalar {
        self.cell_type(types, args, result).unwrap_or(Scalar::U32)
    }

    /// The type that selects a cell and those of the parameters, of the patterns alone: for the cell of a type,
    /// or the one for all. `None` if a parameter is no scalar.
    pub fn scalars(&self, cell: Option<Scalar>) -> Option<(Scalar, Vec<Scalar>)> {
        let at = self.selecting();
        let named = match self.params.get(at) {
            Some(TypePattern::Exact(scalar)) => Some(*scalar),
            _ => None,
        };
        let chosen = cell.or(named).unwrap_or(Scalar::U32);
        let mut params: Vec<Scalar> = Vec::new();
        for (n, pattern) in self.params.iter().enumerate() {
            params.push(match *pattern {
                TypePattern::Exact(scalar) => scalar,
                TypePattern::SameAs(other) => *params.get(usize::from(other))?,
                TypePattern::OneOf(_) | TypePattern::Each(_) if n == at => chosen,
                TypePattern::Chosen => chosen,
                TypePattern::OneOf(_)
                | TypePattern::Each(_)
                | TypePattern::Unit
                | TypePattern::Vector(..)
                | TypePattern::Array(..)
                | TypePattern::Tuple(_)
                | TypePattern::Pointer { .. } => return None,
            });
        }
        Some((chosen, params))
    }

    /// The type that selects the overload of an LLVM intrinsic: that with the type of the cell, which is a
    /// vector where the parameter is one.
    pub fn overload_type(&self, types: &TypeTable, args: &[Type], result: Type) -> Type {
        let at = self.selecting();
        match (self.params.get(at), args.get(at)) {
            (Some(TypePattern::Vector(..)), Some(&vector)) => vector,
            _ => self.given(types, args).chosen.unwrap_or(result),
        }
    }

    /// The cell for a type on a machine, or `None` when it is not legal there. One that goes through
    /// `f32` is legal if the cell of `f32` is.
    pub fn cell(&self, ty: Option<Scalar>, processor: Processor) -> Option<&'static Cell> {
        let of_type = |ty: Option<Scalar>| {
            let fits = move |c: &&Cell| (c.ty.is_none() || c.ty == ty) && c.family.has(processor);
            self.cells.iter().find(fits)
        };
        let cell = of_type(ty)?;
        match cell.lowering {
            Lowering::ViaF32 => {
                let wide = of_type(Some(Scalar::F32))?;
                (wide.lowering != Lowering::ViaF32).then_some(cell)
            }
            Lowering::Llvm { .. }
            | Lowering::Asm { .. }
            | Lowering::Function { .. }
            | Lowering::Ptx(_) => Some(cell),
        }
    }

    /// The cell for an instruction with flags: an approximation if it may be one and the machine has one, or else
    /// [`IntrinsicDef::cell`].
    pub fn cell_of(
        &self,
        fast: FastMath,
        ty: Option<Scalar>,
        processor: Processor,
    ) -> Option<&'static Cell> {
        let fits = |c: &&Cell| c.ty == ty && c.family.has(processor);
        let approximation = self.approximations.iter().find(fits);
        let may_be = fast.has(FastMath::APPROXIMATE);
        approximation
            .filter(|_| may_be)
            .or_else(|| self.cell(ty, processor))
    }

    /// The result type for arguments of these types, or what is wrong with them.
    pub fn result_type(&self, types: &mut TypeTable, args: &[Type]) -> Result<Type, String> {
        self.accept(types, args)?;
        let given = self.given(types, args);
        let result = self.result.type_of(types, given);
        result.ok_or_else(|| format!("`{}` gives no type that there is", self.name))
    }

    /// The type that a result of type `result` has to have for arguments of these types, or what is wrong.
    pub(crate) fn check(
        &self,
        types: &TypeTable,
        args: &[Type],
        result: Type,
    ) -> Result<Type, String> {
        self.accept(types, args)?;
        let given = self.given(types, args);
        match self.result.scalar_type(given) {
            Some(ty) => Ok(ty),
            None if self.result.accepts(types, result, given) => Ok(result),
            None => Err(format!(
                "`{}` gives {}, not `{}`",
                self.name,
                self.result,
                types.display(result)
            )),
        }
    }

    fn accept(&self, types: &TypeTable, args: &[Type]) -> Result<(), String> {
        if args.len() != self.params.len() {
            return Err(format!(
                "`{}` takes {} arguments, not {}",
                self.name,
                self.params.len(),
                args.len()
            ));
        }
        let given = self.given(types, args);
        for (i, (pattern, &arg)) in self.params.iter().zip(args).enumerate() {
            if !pattern.accepts(types, arg, given) {
                return Err(format!(
                    "argument {} of `{}` has type {}; it takes {}",
                    i + 1,
                    self.name,
                    types.display(arg),
                    pattern.wanted(types, given)
                ));
            }
        }
        Ok(())
    }
}
