//! An expression as part of a kernel: what it reads, where that lies, and the value of an element.

mod adjacent;
mod elements;
mod explained;
mod stencil;
mod tiled;

use std::ops::Range;
use std::sync::Arc;

use kiln_jit_core::args::{Arg, IntoArg};
use kiln_jit_core::build::{KernelBuilder, Val};
use kiln_jit_core::error::Error;
use kiln_jit_core::ir::{Type, Unroll};
use kiln_jit_core::jit::Jit;
use kiln_jit_core::jit::Recording;
use kiln_jit_core::launch::grid_for;
use kiln_jit_core::target::Target;
use smallvec::SmallVec;

use crate::eval::BLOCK;
use crate::expr::Node;
use crate::function::{FunctionName, LONG};
use crate::input::{Identity, Input};
use crate::kept::Buffers;
use crate::layout::Layout;
use crate::signature::{Signature, Word};
use crate::space::{Access, Group, Inner};
use crate::{ArrayError, Arrays, Element, Expr, Result, Shape};

pub(crate) use elements::Elements;
use elements::Param;
pub use explained::Explanation;
use stencil::{NearRead, Stencil};
use tiled::Tiled;

/// What an expression is made part of a kernel for.
#[derive(Default)]
pub(crate) struct Purpose<'p> {
    /// For each dimension whether it is folded, if some are and some stay.
    pub(crate) folded: Option<&'p [bool]>,
    /// Whether the kernel needs to know how many elements there are, and no result says so.
    pub(crate) counts: bool,
    /// Where results go, if that is not one after the other.
    pub(crate) out: Option<&'p Layout>,
    /// The buffer that results go to, which may be read where they go.
    pub(crate) own: Option<Identity>,
    /// Where in this buffer results go.
    pub(crate) own_layout: Option<&'p Layout>,
    /// Whether the kernel is for a graph, which passes buffers as a whole.
    pub(crate) recorded: bool,
}

/// What an operand is.
#[derive(Copy, Clone)]
enum What<'e> {
    Buffer(&'e Arc<dyn Input>),
    Place,
    Whole(&'e Arc<dyn Input>),
    Number(&'e Arc<dyn Input>),
}

/// A parameter of the kernel: an array, a number, or where elements lie.
struct Operand<'e> {
    what: What<'e>,
    /// Where the elements lie that it has for those of the result.
    layout: Layout,
    access: Access,
}

impl Operand<'_> {
    fn identity(&self) -> Option<Identity> {
        match self.what {
            What::Buffer(input) | What::Whole(input) => input.identity(),
            What::Place | What::Number(_) => None,
        }
    }

    /// Whether what is read here is this.
    fn is(&self, what: What<'_>, layout: &Layout) -> bool {
        match (self.what, what) {
            (What::Buffer(own), What::Buffer(other)) => {
                own.identity().is_some()
                    && own.identity() == other.identity()
                    && own.element() == other.element()
                    && self.layout == *layout
            }
            (What::Whole(own), What::Whole(other)) => {
                own.identity().is_some()
                    && own.identity() == other.identity()
                    && own.element() == other.element()
            }
            (What::Place, What::Place) => self.layout == *layout,
            // The number of a part that is used several times: one parameter, so that the part is computed once.
            (What::Number(own), What::Number(other)) => Arc::ptr_eq(own, other),
            _ => false,
        }
    }

    /// How an operand is read, if it is the array with this number in these groups.
    fn read_as(&self, array: usize, groups: &[Group], recorded: bool, wide: bool) -> Access {
        let buffer = match self.what {
            What::Number(_) => return Access::Scalar,
            What::Whole(_) => return Access::Whole,
            What::Buffer(input) => Some(input.len()),
            What::Place => None,
        };
        let inner = |group: usize| groups.get(group).map_or(Inner::Same, |g| g.inner(array));
        let inners = [inner(0), inner(1)];
        let is_whole = |len: usize| match buffer {
            Some(buffer) => self.layout.offset == 0 && buffer == len,
            None => self.layout.offset == 0,
        };
        // A graph passes no part of a buffer, and parts of large ones there are not.
        let is_passed = |len: usize| is_whole(len) || buffer.is_some() && !recorded && !wide;
        match groups {
            [all] if all.is_dense(array) && is_passed(self.layout.len()) => Access::Linear,
            _ if inners == [Inner::Same; 2] && is_passed(1) => Access::One,
            _ => Access::Strided(inners),
        }
    }
}

/// What a launch passes for an expression; it needs nothing of that.
pub(crate) enum Passed {
    /// A number, or a buffer, or some of its elements.
    Input(Arc<dyn Input>, Option<Range<usize>>),
    /// An index.
    Index(u32),
    /// An index of 64 bits.
    Wide(u64),
}

impl Passed {
    /// As an argument.
    pub(crate) fn arg(&self) -> Result<Arg<'_>, Error> {
        Ok(match self {
            Passed::Input(input, None) => input.arg(),
            Passed::Input(input, Some(range)) => input.part(range.clone())?,
            Passed::Index(index) => index.into_arg(),
            Passed::Wide(index) => index.into_arg(),
        })
    }

    /// As a graph passes it, which keeps what it needs.
    pub(crate) fn held(self, graph: &mut Recording) -> Result<Passed> {
        Ok(match self {
            Passed::Input(input, range) => {
                Passed::Input(input.hold(graph)?.unwrap_or(input), range)
            }
            passed => passed,
        })
    }
}

/// Indices and distances have 32 bits if no array has more elements than this, nor the result half of that.
const NARROW: usize = u32::MAX as usize;

/// Rows of fewer elements are not gone along by blocks, most of whose threads would have nothing to do.
const LONG_ROW: usize = 64;

/// The most blocks of a grid along y, and along z (CUDA guide, "Compute Capabilities").
pub(crate) const MOST_ALONG_Y: usize = 65_535;

/// How many elements a thread of a GPU stores, of which it reads all that they need at once.
const ITEMS: u32 = 4;

/// Of how many rows below each other a thread stores an element where a function reads what is around it: what it computes
/// for all of them is most of its work otherwise.
const ROWS: u32 = 8;

/// Expressions of more nodes have enough to do with one element.
const FEW_NODES: usize = 64;

/// Whether threads wait for memory one by one: those of a CPU have it read ahead for them.
pub(crate) fn is_gpu(jit: &Jit) -> bool {
    matches!(jit.target(), Target::Ptx(_) | Target::Custom(_))
}

/// An expression that is about to be part of a kernel.
pub(crate) struct Fused<'e> {
    node: &'e Node,
    /// How long the functions take, counted in additions, each wherever it is used.
    pub(crate) weight: usize,
    /// The type of the elements.
    ty: fn(&KernelBuilder) -> Type,
    /// The shape that the kernel goes through.
    pub(crate) shape: Shape,
    arrays: Option<&'e Arrays>,
    operands: Vec<Operand<'e>>,
    /// The operands in the order in which the expression reads them.
    order: Vec<usize>,
    pub(crate) groups: SmallVec<[Group; 2]>,
    counts: [bool; 2],
    out: Option<Layout>,
    wide: bool,
    by_rows: bool,
    /// How many elements a thread stores, of a row if blocks go along rows.
    items: u32,
    /// Of how many rows below each other, if blocks go along rows, a thread stores one.
    rows: u32,
    /// How many elements next to each other a thread has along a group, and which.
    adjacent: u32,
    along: usize,
    tiled: Tiled,
    /// Where neighbours are read whose distances are part of the kernel.
    near: Vec<NearRead<'e>>,
    /// How many nodes there are, of which such a neighbour is one.
    nodes: usize,
    /// Set if threads read once what several of their elements need of these.
    stencil: Option<Stencil>,
}

impl<'e> Fused<'e> {
    /// Enters the operands of an expression, and adds what it computes to the signature of a kernel.
    pub(crate) fn new<T: Element>(
        expr: &'e Expr<T>,
        purpose: &Purpose<'_>,
        signature: &mut Signature,
    ) -> Result<Self> {
        let own = expr.shape.clone()?;
        if own.len() > isize::MAX as usize {
            let operation = "an expression";
            return Err(ArrayError::TooMany {
                operation,
                shape: own,
                most: isize::MAX as usize,
            });
        }
        let to = purpose.own_layout.or(purpose.out);
        let shape = to.map_or(own, |to| to.shape.clone());
        let mut fused = Fused {
            node: &expr.node,
            weight: 1,
            ty: |k| k.ty::<T>(),
            arrays: expr.arrays.as_ref(),
            operands: Vec::with_capacity(8),
            order: Vec::with_capacity(8),
            groups: SmallVec::new(),
            counts: [false; 2],
            out: purpose.out.cloned(),
            wide: false,
            by_rows: false,
            items: 1,
            rows: 1,
            adjacent: 1,
            along: 0,
            tiled: Tiled::default(),
            near: Vec::new(),
            nodes: 0,
            stencil: None,
            shape,
        };
        fused.enter(signature);
        fused.find_groups(purpose);
        fused.find_accesses(purpose)?;
        fused.find_ways(purpose, size_of::<T>(), expr.nodes);
        fused.sign(signature);
        Ok(fused)
    }

    /// Finds which elements threads have and how they read them; of an expression of so many nodes, whose elements have so many
    /// bytes.
    fn find_ways(&mut self, purpose: &Purpose<'_>, bytes: usize, nodes: usize) {
        let is_elementwise = purpose.folded.is_none() && !purpose.counts;
        if is_elementwise {
            self.find_tiled();
        }
        let is_tiled = self.tiled.dim.is_some();
        self.counts[0] |= is_tiled;
        self.by_rows = is_elementwise && !is_tiled && self.has_long_rows();
        if is_elementwise && !is_tiled {
            self.find_stencil();
        }
        let nodes = match self.stencil {
            Some(_) => self.nodes,
            None => nodes,
        };
        let is_even = purpose.folded.is_none() && self.groups[0].dims.len() <= 1 && !self.wide;
        if is_even && nodes <= FEW_NODES && self.is_for_gpu() {
            self.items = ITEMS;
        }
        if nodes <= FEW_NODES || !is_elementwise {
            self.find_adjacent(bytes, !is_elementwise);
        }
        if nodes <= FEW_NODES {
            self.find_several_of_rows(bytes);
        }
    }

    /// Enters all operands. What is left to do is kept here: an expression may be deeper than a thread's stack.
    fn enter(&mut self, signature: &mut Signature) {
        let mut left = Vec::with_capacity(8);
        left.push(self.node);
        while let Some(node) = left.pop() {
            let (what, layout) = match node {
                Node::Read { buffer, layout } => (What::Buffer(buffer), self.layout_of(layout)),
                Node::Place(layout) => (What::Place, self.layout_of(layout)),
                Node::Whole(buffer) => (
                    What::Whole(buffer),
                    self.layout_of(&Layout::dense(Shape::default())),
                ),
                Node::Scalar(number) => (
                    What::Number(number),
                    self.layout_of(&Layout::dense(Shape::default())),
                ),
                Node::Apply { name, args, .. } => {
                    signature.apply(name.as_ref(), args.len());
                    self.nodes += 1;
                    if let Some(FunctionName::Neighbor(near)) = name {
                        self.near
                            .push(NearRead::of(near, self.order.len(), args.len()));
                    }
                    self.weight += name.as_ref().map_or(LONG, FunctionName::weight);
                    left.extend(args.iter().rev().map(|arg| &**arg));
                    continue;
                }
            };
            let known = self
                .operands
                .iter()
                .position(|operand| operand.is(what, &layout));
            let position = known.unwrap_or_else(|| {
                let access = Access::Scalar;
                self.operands.push(Operand {
                    what,
                    layout,
                    access,
                });
                self.operands.len() - 1
            });
            self.order.push(position);
            signature.add(Word::Read(position));
        }
        let of_near: usize = self.near.iter().map(NearRead::operands).sum();
        self.nodes += self.order.len() - of_near;
    }

    /// The layout of an operand for the elements of the result. Shapes were found to go together.
    fn layout_of(&self, layout: &Layout) -> Layout {
        layout
            .broadcast_to(&self.shape)
            .unwrap_or_else(|| layout.clone())
    }

    fn find_groups(&mut self, purpose: &Purpose<'_>) {
        let axes = |folded: bool| -> SmallVec<[usize; 4]> {
            let is = |axis: &usize| purpose.folded.is_none_or(|mask| mask[*axis] == folded);
            (0..self.shape.rank()).filter(is).collect()
        };
        let layouts = self.operands.iter().map(|operand| &operand.layout);
        let layouts = layouts.chain(&self.out);
        // Without an array, as one of numbers is assigned to it, the result's own dimensions count.
        let dense = Layout::dense(self.shape.clone());
        let group = |axes: &[usize]| match layouts.clone().next() {
            Some(_) => Group::of(axes, layouts.clone()),
            None => Group::of(axes, std::iter::once(&dense)),
        };
        let groups = match purpose.folded {
            None => SmallVec::from_iter([group(&axes(false))]),
            Some(_) => SmallVec::from_iter([group(&axes(false)), group(&axes(true))]),
        };
        self.groups = groups;
        let long = |operand: &Operand<'_>| match operand.what {
            What::Buffer(input) | What::Whole(input) => input.len() > NARROW,
            What::Place | What::Number(_) => false,
        };
        let out = self.out.as_ref().filter(|out| !out.shape.is_empty());
        let far = out.is_some_and(|out| out.span().1 > NARROW);
        self.wide = far || self.shape.len() > NARROW / 2 || self.operands.iter().any(long);
    }

    fn find_accesses(&mut self, purpose: &Purpose<'_>) -> Result<()> {
        let is_elementwise = purpose.folded.is_none() && !purpose.counts;
        for (array, operand) in self.operands.iter_mut().enumerate() {
            let is_own = purpose.own.is_some() && operand.identity() == purpose.own;
            let here = match purpose.own_layout {
                _ if matches!(operand.what, What::Whole(_)) => false,
                Some(layout) => operand.layout == *layout,
                None => {
                    operand.layout.offset == 0
                        && operand.layout.is_dense()
                        && operand.len() == self.shape.len()
                }
            };
            operand.access = match (is_own, here) {
                (true, true) => Access::Own,
                (true, false) => return Err(ArrayError::InPlace),
                _ => operand.read_as(array, &self.groups, purpose.recorded, self.wide),
            };
            // Of an index along a dimension nothing is passed: where threads know it, it takes no instruction.
            if is_elementwise
                && let (What::Place, Access::Strided(_), 0) =
                    (operand.what, operand.access, operand.layout.offset)
                && let Some(dim) = self.groups[0].coordinate(array)
            {
                operand.access = Access::Coordinate(dim);
            }
        }
        let is_linear = |operand: &Operand<'_>| {
            operand.access == Access::Linear && matches!(operand.what, What::Buffer(_))
        };
        let tells = self.operands.iter().any(is_linear);
        self.counts = match purpose.folded {
            Some(_) => [true; 2],
            None => [self.out.is_some() || purpose.counts && !tells, false],
        };
        Ok(())
    }

    /// Whether blocks go along rows, so that no thread takes its index apart.
    fn has_long_rows(&self) -> bool {
        let dims = &self.groups[0].dims;
        !self.wide && dims.len() > 1 && dims.last().is_some_and(|row| *row >= LONG_ROW)
    }

    /// Whether the grid says which row it is: on a GPU, where each thread would divide for it, unless there are too many.
    fn rows_of_grid(&self) -> bool {
        self.is_for_gpu() && (1..=MOST_ALONG_Y).contains(&self.rows_of_blocks())
    }

    /// How many rows of blocks an element-wise kernel has whose blocks go along rows; none of others.
    fn rows_of_blocks(&self) -> usize {
        match (self.by_rows, self.groups[0].dims.as_slice()) {
            (true, [outer @ .., _]) => outer.iter().product::<usize>().div_ceil(self.rows as usize),
            _ => 0,
        }
    }

    /// Whether a function reads an array where it likes.
    fn reads_anywhere(&self) -> bool {
        let is_whole = |operand: &Operand<'_>| operand.access == Access::Whole;
        self.operands.iter().any(is_whole)
    }

    /// Finds how many elements a thread of a GPU stores where blocks go along rows, unless they are next to each other:
    /// in one row, or in rows below each other if a function reads an array where it likes. Such a one, as a stencil
    /// has it, reads what is around, and threads of a block then find there what others of it have read.
    fn find_several_of_rows(&mut self, result: usize) {
        if !self.by_rows || !self.is_for_gpu() {
            return;
        }
        match (self.stencil.is_some(), self.reads_anywhere()) {
            (true, _) => self.rows = self.rows_of_stencil(result),
            (false, true) => self.rows = ROWS,
            (false, false) if self.adjacent > 1 => {}
            (false, false) => self.items = ITEMS,
        }
    }

    /// The grid of an element-wise kernel: the blocks of a row along x and rows along y, or all blocks along x.
    pub(crate) fn grid(&self) -> (u32, u32) {
        if let Some(dim) = self.tiled.dim {
            return (self.tiles(dim), 1);
        }
        match (self.by_rows, self.groups[0].dims.last()) {
            (true, Some(row)) => {
                let rows = self.rows_of_blocks() as u32;
                let of_row = grid_for(*row, BLOCK * self.adjacent * self.items);
                match self.rows_of_grid() {
                    true => (of_row, rows),
                    false => (of_row * rows, 1),
                }
            }
            _ => (grid_for(self.shape.len(), BLOCK * self.items), 1),
        }
    }

    /// How a loop over elements is unrolled: where threads wait for memory, so that they read several at once.
    pub(crate) fn unroll(&self) -> Unroll {
        match self.is_for_gpu() {
            true => Unroll::By(8),
            false => Unroll::Auto,
        }
    }

    /// Whether the expression is computed by a GPU.
    pub(crate) fn is_for_gpu(&self) -> bool {
        self.arrays.is_some_and(|arrays| is_gpu(arrays.jit()))
    }

    fn sign(&self, signature: &mut Signature) {
        for (n, operand) in self.operands.iter().enumerate() {
            if let Some(like) = self.like(n) {
                signature.add(Word::Like(like.array, like.place));
            }
            let element = match operand.what {
                What::Buffer(input) | What::Whole(input) | What::Number(input) => {
                    Some(input.element())
                }
                What::Place => None,
            };
            signature.add(Word::Operand(operand.access, element));
        }
        if self.out.is_some() {
            signature.add(Word::Operand(self.out_access(), None));
        }
        let rank = |group: usize| self.groups.get(group).map_or(0, |group| group.dims.len());
        signature.add(Word::Space([rank(0), rank(1)], self.counts, self.wide));
        if self.by_rows {
            signature.add(Word::ByRows(self.rows_of_grid()));
        }
        if self.items > 1 {
            signature.add(Word::Several);
        }
        match self.stencil {
            Some(_) => signature.add(Word::Stencil(self.rows)),
            None if self.rows > 1 => signature.add(Word::Below),
            None => {}
        }
        if let Some(dim) = self.tiled.dim {
            signature.add(Word::Tiled(dim));
        }
        if self.adjacent > 1 {
            signature.add(Word::Adjacent(self.adjacent));
        }
    }

    fn out_access(&self) -> Access {
        let out = self.operands.len();
        Access::Strided([self.groups[0].inner(out), Inner::Same])
    }

    /// Where the expression is computed, if that is said: it is by an array.
    pub(crate) fn arrays(&self) -> Result<&'e Arrays> {
        let is_slot = |operand: &Operand<'_>| match operand.what {
            What::Buffer(input) | What::Whole(input) | What::Number(input) => {
                matches!(input.identity(), Some(Identity::Slot(_)))
            }
            What::Place => false,
        };
        match self.arrays {
            _ if self.operands.iter().any(is_slot) => Err(ArrayError::Slots),
            Some(arrays) => Ok(arrays),
            None => Err(ArrayError::NoArray),
        }
    }

    /// Whether the expression has an array, and not only numbers.
    pub(crate) fn has_array(&self) -> bool {
        !self
            .operands
            .iter()
            .all(|operand| matches!(operand.what, What::Number(_)))
    }

    /// Whether the expression reads this buffer.
    pub(crate) fn reads(&self, buffer: Identity) -> bool {
        self.operands
            .iter()
            .any(|operand| operand.identity() == Some(buffer))
    }

    /// The buffers that the expression reads.
    pub(crate) fn buffers(&self) -> Buffers {
        self.operands.iter().filter_map(Operand::identity).collect()
    }

    /// Of how many operands neighbours along the last dimension of a group lie apart.
    pub(crate) fn apart(&self, group: usize) -> usize {
        let is_apart = |access: Access| matches!(access, Access::Strided(inners) if inners[group] == Inner::Any);
        let operands = self.operands.iter();
        operands.filter(|operand| is_apart(operand.access)).count()
    }

    fn index(&self, index: usize) -> Passed {
        match self.wide {
            // Distances may be negative: sums of them are right modulo 2^32.
            false => Passed::Index(index as u32),
            true => Passed::Wide(index as u64),
        }
    }

    /// What is passed for the expression, in the order of [`Fused::declare`].
    pub(crate) fn passed(&self) -> Vec<Passed> {
        let mut passed = Vec::with_capacity(self.operands.len() + 4);
        for (at, (group, counts)) in self.groups.iter().zip(self.counts).enumerate() {
            if counts {
                passed.push(self.index(group.dims.iter().product()));
            }
            passed.extend(group.passed_dims().iter().map(|dim| self.index(*dim)));
            if at == self.along
                && let [_, .., last] = group.dims.as_slice()
            {
                passed.pop();
                passed.push(self.index(last / self.adjacent as usize));
            }
        }
        for (array, operand) in self.operands.iter().enumerate() {
            self.pass(array, operand, &mut passed);
        }
        if let Some(out) = &self.out {
            self.pass_place(self.operands.len(), out.offset, &mut passed);
        }
        passed
    }

    fn pass(&self, array: usize, operand: &Operand<'_>, to: &mut Vec<Passed>) {
        let offset = operand.layout.offset;
        let len = match operand.access {
            Access::One => 1,
            _ => operand.layout.len(),
        };
        match (operand.what, operand.access) {
            (_, Access::Own) => {}
            (What::Number(input) | What::Whole(input), _) => {
                to.push(Passed::Input(input.clone(), None))
            }
            (What::Buffer(input), Access::Strided(_)) => {
                to.push(Passed::Input(input.clone(), None))
            }
            (What::Buffer(input), _) => {
                let is_whole = offset == 0 && len == input.len();
                let range = (!is_whole).then_some(offset..offset + len);
                to.push(Passed::Input(input.clone(), range));
            }
            (What::Place, _) => {}
        }
        if matches!(operand.access, Access::Strided(_)) {
            self.pass_place(array, offset, to);
        }
    }

    fn pass_place(&self, array: usize, offset: usize, to: &mut Vec<Passed>) {
        let unit = self.place_unit(array);
        to.push(self.index(offset / unit));
        let strides = self.groups.iter().flat_map(|group| group.passed(array));
        to.extend(strides.map(|stride| self.index((stride / unit as isize) as usize)));
    }

    /// The type of indices.
    fn index_type(&self) -> Type {
        match self.wide {
            false => Type::U32,
            true => Type::U64,
        }
    }

    /// An index of a thread or a block as those of the expression.
    pub(crate) fn widened<'k>(&self, index: Val<'k>) -> Val<'k> {
        index.cast(self.index_type())
    }

    /// Declares the parameters that [`Fused::passed`] is for; `out` is that of the result.
    pub(crate) fn declare<'k>(&self, k: &'k KernelBuilder, out: Val<'k>) -> Elements<'_, 'e, 'k> {
        let ty = self.index_type();
        let (mut counts, mut dims) = ([None; 2], [Vec::new(), Vec::new()]);
        for (at, (group, is_counted)) in self.groups.iter().zip(self.counts).enumerate() {
            counts[at] = is_counted.then(|| k.param(&format!("n{at}"), ty));
            let extents = 1..group.dims.len().max(1);
            dims[at] = extents
                .map(|dim| k.param(&format!("n{at}_{dim}"), ty))
                .collect();
        }
        if let Some(last) = dims[self.along].last_mut() {
            *last = self.in_units(*last, self.adjacent);
        }
        let params = self.operands.iter().enumerate().map(|(n, operand)| {
            let name = format!("in{n}");
            let value = match (operand.what, operand.access) {
                (_, Access::Own) => Some(out),
                (What::Buffer(input) | What::Whole(input) | What::Number(input), _) => {
                    Some(input.declare(k, &name))
                }
                (What::Place, _) => None,
            };
            match operand.access {
                Access::Strided(_) => self.declare_place(k, n, &name, value),
                _ => Param {
                    value,
                    ..Param::default()
                },
            }
        });
        let params = params.collect();
        let to = self
            .out
            .as_ref()
            .map(|_| self.declare_place(k, self.operands.len(), "out", None));
        Elements {
            fused: self,
            k,
            out,
            more: Vec::new(),
            counts,
            dims,
            params,
            to,
        }
    }

    fn declare_place<'k>(
        &self,
        k: &'k KernelBuilder,
        array: usize,
        name: &str,
        value: Option<Val<'k>>,
    ) -> Param<'k> {
        let (ty, unit) = (self.index_type(), self.place_unit(array) as u32);
        let place = |name: &str| self.in_units(k.param(name, ty), unit);
        let offset = Some(place(&format!("{name}_at")));
        let mut strides = [Vec::new(), Vec::new()];
        for (at, group) in self.groups.iter().enumerate() {
            let passed = 0..group.passed(array).len();
            strides[at] = passed
                .map(|n| place(&format!("{name}_by{at}_{n}")))
                .collect();
        }
        Param {
            value,
            offset,
            strides,
        }
    }
}

impl Operand<'_> {
    fn len(&self) -> usize {
        match self.what {
            What::Buffer(input) | What::Whole(input) | What::Number(input) => input.len(),
            What::Place => 0,
        }
    }
}
