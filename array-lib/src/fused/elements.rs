//! The elements of an expression in its kernel.

use std::collections::HashMap;

use kiln_device_stdlib::index::Index;
use kiln_jit_core::build::{KernelBuilder, Val};
use kiln_jit_core::ir::{Type, Unroll};

use super::{BLOCK, Fused, Operand, What};
use crate::expr::Node;
use crate::function::{FunctionName, NodeFn};
use crate::neighbor::Near;
use crate::space::{Access, Inner};

/// The parameters for an operand.
#[derive(Default)]
pub(super) struct Param<'k> {
    /// The buffer, or the number.
    pub(super) value: Option<Val<'k>>,
    pub(super) offset: Option<Val<'k>>,
    /// The distances in each group.
    pub(super) strides: [Vec<Val<'k>>; 2],
}

/// Which element of the result a thread is at.
#[derive(Copy, Clone)]
pub(super) enum At<'k> {
    /// The one with this index.
    Index(Val<'k>),
    /// An element of an index along all dimensions but the last, and one along the last; its index.
    Row(Val<'k>, Val<'k>, Val<'k>),
}

impl<'k> At<'k> {
    pub(super) fn index(self) -> Val<'k> {
        match self {
            At::Index(index) | At::Row(_, _, index) => index,
        }
    }

    /// The one so many further along the last dimension.
    pub(super) fn further(self, by: u32) -> At<'k> {
        match (self, by) {
            (at, 0) => at,
            (At::Index(index), by) => At::Index(index + by),
            (At::Row(outer, i, index), by) => At::Row(outer, i + by, index + by),
        }
    }
}

/// Where in the operands the elements lie that an index of a group stands for; `None` of those that are not read by
/// places.
pub(crate) type Places<'k> = Vec<Option<Val<'k>>>;

/// The elements of an expression in its kernel.
pub(crate) struct Elements<'f, 'e, 'k> {
    pub(super) fused: &'f Fused<'e>,
    pub(super) k: &'k KernelBuilder,
    pub(super) out: Val<'k>,
    /// Where the further fields of a result go, if it is several.
    pub(crate) more: Vec<Val<'k>>,
    pub(super) counts: [Option<Val<'k>>; 2],
    /// The extents of each group but for the first.
    pub(super) dims: [Vec<Val<'k>>; 2],
    pub(super) params: Vec<Param<'k>>,
    /// Where results go, if that is not one after the other.
    pub(super) to: Option<Param<'k>>,
}

impl<'k> Elements<'_, '_, 'k> {
    /// How many elements a group has: what is passed, or what an array tells that has as many.
    pub(crate) fn count(&self, group: usize) -> Val<'k> {
        if let Some(count) = self.counts[group] {
            return count;
        }
        let is_linear =
            |(operand, _): &(&Operand<'_>, &Param<'_>)| operand.access == Access::Linear;
        let mut operands = self.fused.operands.iter().zip(&self.params);
        let tells = operands.find_map(|pair| is_linear(&pair).then_some(pair.1.value).flatten());
        let tells = tells.unwrap_or(self.out);
        match self.fused.wide {
            false => tells.len(),
            true => tells.len64(),
        }
    }

    /// Whether each array that is read one after the other has an element of this index, of 64 bits; arrays that go together
    /// have as many. Where that was asked of an index, accesses need no check, nor code for one that fails.
    pub(crate) fn has(&self, index: Val<'k>) -> Val<'k> {
        let is_below = |len: Val<'k>| index.lt(len.cast(Type::U64));
        let of_all = is_below(self.count(0));
        self.lens().fold(of_all, |has, len| has & is_below(len))
    }

    /// How many elements each array has that is read one after the other.
    fn lens(&self) -> impl Iterator<Item = Val<'k>> {
        let operands = self.fused.operands.iter().zip(&self.params);
        let arrays = operands.filter(|(operand, _)| {
            operand.access == Access::Linear && matches!(operand.what, What::Buffer(_))
        });
        arrays.filter_map(|(_, param)| {
            let array = param.value?;
            Some(match self.fused.wide {
                false => array.len(),
                true => array.len64(),
            })
        })
    }

    /// How many results an element-wise kernel stores that no array read one after the other is too short for.
    fn results_of_all(&self) -> Val<'k> {
        self.lens().fold(self.results(), |all, len| all.min(len))
    }

    /// How many results an element-wise kernel stores.
    pub(super) fn results(&self) -> Val<'k> {
        match (self.counts[0], self.fused.wide) {
            (Some(count), _) => count,
            (None, false) => self.out.len(),
            (None, true) => self.out.len64(),
        }
    }

    /// Describes the element-wise kernel: each thread stores an element.
    pub(crate) fn store_all(&self) {
        let k = self.k;
        if let Some(dim) = self.fused.tiled.dim {
            return self.store_tiled(dim);
        }
        if let (Some(row), true) = (self.dims[0].last().copied(), self.fused.by_rows) {
            return self.store_rows(row);
        }
        let i = match self.fused.wide {
            false => k.global_id().x(),
            true => k.global_id_u64().x(),
        };
        match (self.fused.items, self.fused.adjacent) {
            (1, _) => {}
            (items, 1) => return self.store_several(items),
            (items, _) => return self.store_adjacent(items),
        }
        k.if_(i.lt(self.results()), || self.store(At::Index(i)));
    }

    /// Describes that blocks go along rows: each row has its blocks, or several rows have the same ones.
    fn store_rows(&self, row: Val<'k>) {
        let (k, fused) = (self.k, self.fused);
        let (items, rows, wide) = (fused.items, fused.rows, fused.adjacent);
        let (here, of_block) = (k.block_idx().x(), k.lit(Type::U32, BLOCK * items * wide));
        let (outer, part) = if fused.rows_of_grid() {
            (k.block_idx().y(), here)
        } else {
            let blocks = (row + (of_block - 1u32)) / of_block;
            let outer = here / blocks;
            (outer, here - outer * blocks)
        };
        let i = part * of_block + k.thread_idx().x() * wide;
        let at = |outer: Val<'k>, i: Val<'k>| At::Row(outer, i, outer * row + i);
        if fused.stencil.is_some() {
            k.if_(i.lt(row), || self.store_stencil(outer * rows, i, row));
        } else if rows > 1 {
            let outer = outer * rows;
            k.if_(i.lt(row), || self.store_below(rows, &|n| at(outer + n, i)));
        } else if items > 1 {
            let last = i + BLOCK * (items - 1);
            let all = || self.store_at_once(items, &|item| at(outer, i + BLOCK * item));
            k.if_(last.lt(row), all).else_(|| {
                k.for_loop(i, row, BLOCK, Unroll::Never, |i| self.store(at(outer, i)));
            });
        } else {
            k.if_(i.lt(row), || match wide {
                1 => self.store(at(outer, i)),
                _ => self.store_run(at(outer, i)),
            });
        }
    }

    /// Stores elements below each other, as far as there are rows, of which what all need is read at once.
    fn store_below(&self, rows: u32, at: &dyn Fn(Val<'k>) -> At<'k>) {
        let (k, results) = (self.k, self.results());
        let number = |n: u32| k.lit(Type::U32, n);
        let is_there = |n: Val<'k>| at(n).index().lt(results);
        let all = || self.store_at_once(rows, &|n| at(number(n)));
        k.if_(is_there(number(rows - 1)), all).else_(|| {
            k.for_loop(0u32, number(rows), 1u32, Unroll::Never, |n| {
                k.if_(is_there(n), || self.store(at(n)));
            });
        });
    }

    /// Stores several elements, of which what all need is read before the first is written.
    fn store_at_once(&self, count: u32, at: &dyn Fn(u32) -> At<'k>) {
        let values = self.values(count, &|item| (self.places_at(None, 0, at(item)), at(item)));
        for (item, value) in (0..).zip(values) {
            self.put(at(item), value);
        }
    }

    /// Stores elements next to each other of a row, which has a multiple of so many.
    fn store_run(&self, at: At<'k>) {
        let places = self.places_at(None, 0, at);
        let beside = |item: u32| (self.beside(&places, 0, item), at.further(item));
        let values = self.values(self.fused.adjacent, &beside);
        for (item, value) in (0..).zip(values) {
            self.put(at.further(item), value);
        }
    }

    /// Describes that each thread stores several elements, each of them beside those of its neighbours: what they need is
    /// read at once.
    fn store_several(&self, items: u32) {
        let (k, results) = (self.k, self.results_of_all());
        let first = k.block_idx().x() * (BLOCK * items) + k.thread_idx().x();
        let place = |item: u32| first + BLOCK * item;
        let all = || self.store_at_once(items, &|item| At::Index(place(item)));
        k.if_(place(items - 1).lt(results), all).else_(|| {
            k.for_loop(first, results, BLOCK, Unroll::Never, |i| {
                self.store(At::Index(i))
            });
        });
    }

    /// Describes that each thread stores elements next to each other, as many as one access has.
    fn store_adjacent(&self, items: u32) {
        let (k, results) = (self.k, self.results_of_all());
        let first = k.global_id().x() * items;
        let all = || match self.fused.stencil {
            Some(_) => self.store_tile(At::Index(first), first, 1),
            None => self.store_at_once(items, &|item| At::Index(first + item)),
        };
        k.if_((first + (items - 1)).lt(results), all).else_(|| {
            k.for_loop(first, results, 1u32, Unroll::Never, |i| {
                self.store(At::Index(i))
            });
        });
    }

    /// Where the operands' elements lie that are so many further along a group.
    pub(crate) fn beside(&self, places: &Places<'k>, group: usize, by: u32) -> Places<'k> {
        if by == 0 {
            return places.clone();
        }
        let operands = self.fused.operands.iter().zip(&self.params).zip(places);
        let place = |((operand, param), place): ((&Operand<'_>, &Param<'k>), &Option<Val<'k>>)| {
            let (Access::Strided(inners), Some(place)) = (operand.access, *place) else {
                return *place;
            };
            Some(match (inners[group], param.strides[group].last()) {
                (Inner::Unit, _) => place + by,
                (Inner::Any, Some(stride)) => place + *stride * by,
                (Inner::Same | Inner::Still | Inner::Any, _) => place,
            })
        };
        operands.map(place).collect()
    }

    /// The index of a group along each of its dimensions.
    pub(super) fn coordinates(&self, group: usize, at: At<'k>) -> Vec<Val<'k>> {
        let mut coordinates = Vec::new();
        let (mut rest, dims) = match (at, self.dims[group].as_slice()) {
            (At::Row(outer, i, _), [dims @ .., _]) => {
                coordinates.push(i);
                (outer, dims)
            }
            (at, dims) => (at.index(), dims),
        };
        for dim in dims.iter().rev() {
            let next = rest / *dim;
            coordinates.push(rest - next * *dim);
            rest = next;
        }
        coordinates.push(rest);
        coordinates.reverse();
        coordinates
    }

    /// How far from its first element an operand has the one at these coordinates.
    pub(super) fn shift(
        &self,
        param: &Param<'k>,
        group: usize,
        inner: Inner,
        at: &[Val<'k>],
    ) -> Option<Val<'k>> {
        let strides = param.strides[group].iter();
        let mut terms: Vec<Val<'k>> = at
            .iter()
            .zip(strides)
            .map(|(i, stride)| *i * *stride)
            .collect();
        match inner {
            Inner::Same => return None,
            Inner::Unit => terms.extend(at.last()),
            Inner::Still | Inner::Any => {}
        }
        terms.into_iter().reduce(|a, b| a + b)
    }

    pub(super) fn moved(
        &self,
        param: &Param<'k>,
        from: Option<Val<'k>>,
        shift: Option<Val<'k>>,
    ) -> Option<Val<'k>> {
        let from = from.or(param.offset);
        match (from, shift) {
            (Some(from), Some(shift)) => Some(from + shift),
            (from, shift) => from.or(shift),
        }
    }

    /// Where the operands' elements lie for an index of a group, from where those lie for one of another group.
    pub(crate) fn places(
        &self,
        from: Option<&Places<'k>>,
        group: usize,
        index: Val<'k>,
    ) -> Places<'k> {
        self.places_at(from, group, At::Index(index))
    }

    pub(super) fn places_at(
        &self,
        from: Option<&Places<'k>>,
        group: usize,
        at: At<'k>,
    ) -> Places<'k> {
        let coordinates = self.coordinates(group, at);
        let operands = self.fused.operands.iter().zip(&self.params).enumerate();
        let place = |(n, (operand, param)): (usize, (&Operand<'_>, &Param<'k>))| {
            let Access::Strided(inners) = operand.access else {
                return None;
            };
            let from = from.and_then(|places| places[n]);
            self.moved(
                param,
                from,
                self.shift(param, group, inners[group], &coordinates),
            )
        };
        operands.map(place).collect()
    }

    /// The element with this index, of an expression of one group.
    pub(crate) fn at(&self, index: Val<'k>) -> Val<'k> {
        self.value_at(At::Index(index))
    }

    fn value_at(&self, at: At<'k>) -> Val<'k> {
        let places = self.places_at(None, 0, at);
        self.read(&places, at)
    }

    /// Stores an element where it goes.
    fn store(&self, at: At<'k>) {
        let value = self.value_at(at);
        self.put(at, value);
    }

    /// Stores a value where it goes, of several each where its own go.
    pub(super) fn put(&self, at: At<'k>, value: Val<'k>) {
        let target = self.target(at);
        if self.more.is_empty() {
            self.out.at(target).set(value);
            return;
        }
        for (n, out) in std::iter::once(&self.out).chain(&self.more).enumerate() {
            out.at(target).set(value.field(&n.to_string()));
        }
    }

    /// Where a result goes.
    fn target(&self, at: At<'k>) -> Val<'k> {
        let index = at.index();
        let (Some(to), Access::Strided([inner, _])) = (&self.to, self.fused.target_access()) else {
            return index;
        };
        let coordinates = self.coordinates(0, at);
        let shift = self.shift(to, 0, inner, &coordinates);
        self.moved(to, None, shift).unwrap_or(index)
    }

    /// Runs of so many elements each with indices one after the other, of an expression of one group.
    pub(crate) fn runs(&self, firsts: &[Val<'k>], count: u32) -> Vec<Val<'k>> {
        self.values(count * firsts.len() as u32, &|item| {
            let by = self.k.lit(Type::U32, item % count);
            let at = At::Index(firsts[(item / count) as usize] + self.fused.widened(by));
            (self.places_at(None, 0, at), at)
        })
    }

    /// Runs of elements, each of an index of a group, whose operands' elements lie beside each other along a group from
    /// these places on.
    pub(crate) fn runs_beside(&self, runs: &[(Places<'k>, Val<'k>)], along: usize) -> Vec<Val<'k>> {
        let count = self.fused.adjacent();
        self.values(count * runs.len() as u32, &|item| {
            let (places, index) = &runs[(item / count) as usize];
            (self.beside(places, along, item % count), At::Index(*index))
        })
    }

    /// Several elements, of which what all need is read before anything is computed of it: accesses beside each other
    /// become one only where nothing is asked between them, as many functions do.
    fn values(&self, count: u32, of: &dyn Fn(u32) -> (Places<'k>, At<'k>)) -> Vec<Val<'k>> {
        let read: Vec<_> = (0..count)
            .map(|item| {
                let (places, at) = of(item);
                let operands: Vec<_> = (0..self.fused.operands.len())
                    .map(|position| self.read_ahead(&places, at, position))
                    .collect();
                (places, at, operands)
            })
            .collect();
        let value = |(places, at, operands): (Places<'k>, At<'k>, Vec<Option<Val<'k>>>)| {
            self.read_with(&places, at, &|position| operands[position], &|_, _| None)
        };
        read.into_iter().map(value).collect()
    }

    /// What an element reads of an array.
    pub(super) fn read_ahead(
        &self,
        places: &Places<'k>,
        at: At<'k>,
        position: usize,
    ) -> Option<Val<'k>> {
        let what = self.fused.operands[position].what;
        matches!(what, What::Buffer(_)).then(|| self.operand(places, at, position))
    }

    /// The element whose operands' elements lie there.
    pub(crate) fn value(&self, places: &Places<'k>, index: Val<'k>) -> Val<'k> {
        self.read(places, At::Index(index))
    }

    fn read(&self, places: &Places<'k>, at: At<'k>) -> Val<'k> {
        self.read_with(places, at, &|_| None, &|_, _| None)
    }

    /// The element of operands that lie there, or are known, as may be neighbours with these operands.
    pub(super) fn read_with(
        &self,
        places: &Places<'k>,
        at: At<'k>,
        known: &dyn Fn(usize) -> Option<Val<'k>>,
        near: &dyn Fn(&Near, &[usize]) -> Option<Val<'k>>,
    ) -> Val<'k> {
        let read =
            |position: usize| known(position).unwrap_or_else(|| self.operand(places, at, position));
        let value = describe(self.fused.node, &self.fused.order, &read, near);
        // Of several results the fields were rounded as they were put together.
        match self.more.is_empty() {
            true => value.rounded((self.fused.ty)(self.k)),
            false => value.value,
        }
    }

    /// What an operand is for an element.
    fn operand(&self, places: &Places<'k>, at: At<'k>, position: usize) -> Val<'k> {
        let (operand, param) = (&self.fused.operands[position], &self.params[position]);
        let place = match operand.access {
            Access::Linear => at.index(),
            Access::Own => self.target(at),
            Access::One | Access::Scalar | Access::Whole => self.k.lit(self.fused.index_type(), 0),
            Access::Strided(_) => places[position].unwrap_or(at.index()),
            Access::Coordinate(dim) => self.coordinates(0, at)[dim],
        };
        match (operand.what, param.value) {
            (What::Number(_) | What::Whole(_), Some(value)) => value,
            (What::Buffer(_), Some(buffer)) => buffer.at(place).get(),
            _ => place.cast(Type::U32),
        }
    }
}

impl Fused<'_> {
    /// How results are stored.
    fn target_access(&self) -> Access {
        match self.out {
            Some(_) => self.out_access(),
            None => Access::Linear,
        }
    }
}

/// A value on the way: that of a half is an `f32`, so that it is rounded where it is stored and nowhere else.
#[derive(Copy, Clone)]
struct Value<'k> {
    value: Val<'k>,
    /// The half that it is the value of.
    half: Option<Type>,
}

impl<'k> Value<'k> {
    /// What a function gives that says to give a `ty`.
    fn of(value: Val<'k>, ty: Type) -> Value<'k> {
        let half = is_half(ty).then_some(ty);
        let value = match is_half(value.ty()) {
            true => value.cast(Type::F32),
            false => value,
        };
        Value { value, half }
    }

    /// The value as its type has it.
    fn whole(self) -> Val<'k> {
        match self.half {
            Some(half) => self.value.cast(half),
            None => self.value,
        }
    }

    /// The value as it is stored to elements of this type.
    fn rounded(self, ty: Type) -> Val<'k> {
        match is_half(ty) {
            true => self.value.cast(ty),
            false => self.value,
        }
    }
}

fn is_half(ty: Type) -> bool {
    ty == Type::F16 || ty == Type::BF16
}

/// A step of [`describe`].
enum Describe<'e> {
    /// The value of a node.
    Node(&'e Node),
    /// The function applied to the values of its arguments, which come last.
    Apply {
        function: &'e NodeFn,
        count: usize,
        ty: fn(&KernelBuilder) -> Type,
        /// Whether the function is an operation of this crate, which takes an `f32` for a half.
        is_own: bool,
    },
}

/// Describes the value of `node`, whose operands are those in `order`; neighbours may be known.
fn describe<'k>(
    node: &Node,
    mut order: &[usize],
    read: &dyn Fn(usize) -> Val<'k>,
    near: &dyn Fn(&Near, &[usize]) -> Option<Val<'k>>,
) -> Value<'k> {
    // What occurs several times is read once.
    let mut known: HashMap<usize, Value<'k>> = HashMap::new();
    let mut values: Vec<Value<'k>> = Vec::new();
    let mut left = vec![Describe::Node(node)];
    while let Some(next) = left.pop() {
        let value = match next {
            Describe::Node(Node::Apply {
                function,
                args,
                name,
                ty,
                ..
            }) => {
                if let Some(FunctionName::Neighbor(by)) = name
                    && let Some((operands, rest)) = order.split_at_checked(args.len())
                    && let Some(value) = near(by, operands)
                {
                    order = rest;
                    values.push(Value::of(value, value.ty()));
                    continue;
                }
                left.push(Describe::Apply {
                    function: &**function,
                    count: args.len(),
                    ty: *ty,
                    is_own: name.as_ref().is_some_and(FunctionName::is_own),
                });
                left.extend(args.iter().rev().map(|arg| Describe::Node(arg)));
                continue;
            }
            Describe::Node(_) => {
                let position = order.split_off_first().copied().unwrap_or_default();
                *known.entry(position).or_insert_with(|| {
                    let value = read(position);
                    Value::of(value, value.ty())
                })
            }
            Describe::Apply {
                function,
                count,
                ty,
                is_own,
            } => {
                let args = values.split_off(values.len().saturating_sub(count));
                let arg = |arg: Value<'k>| if is_own { arg.value } else { arg.whole() };
                let value = function(&args.into_iter().map(arg).collect::<Vec<_>>());
                Value::of(value, ty(value.builder()))
            }
        };
        values.push(value);
    }
    values[0]
}
