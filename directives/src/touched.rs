//! Which elements of a slice a region reads, and which it certainly writes, as boxes: what slices that were not copied to the
//! device must have been written before they are read.
//!
//! An index that is a sum of the turns of loops, each of which has as many turns each time, goes through a box of elements:
//! from its least one on so many in each of some strides. A read is of no more elements than its box has, whatever the
//! conditions around are. A write is of all of them if there is no condition.

use std::ops::Range;

use kiln_jit_core::ir::Control;

use crate::accesses::{Access, Accesses};
use crate::affine::{Affine, Atom, Known, Step};
use crate::error::DirectiveError;
use crate::program::Program;

/// Elements of a slice: from `first` on, `count` of them a `stride` apart along each dimension. Strides fall.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Elements {
    first: i128,
    dims: Vec<Run>,
}

/// A dimension of elements.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Run {
    stride: i128,
    count: i128,
}

impl Elements {
    /// Dimensions of which one goes on where the steps of another end are one.
    fn new(first: i128, mut dims: Vec<Run>) -> Elements {
        dims.retain(|run| run.count > 1);
        dims.sort_by_key(|run| -run.stride);
        let mut merged: Vec<Run> = Vec::new();
        for run in dims.into_iter().rev() {
            match merged.last_mut() {
                Some(inner) if run.stride == inner.stride * inner.count => inner.count *= run.count,
                _ => merged.push(run),
            }
        }
        merged.reverse();
        Elements {
            first,
            dims: merged,
        }
    }

    /// Elements of a slice that has a shape: a range along each dimension, none of which is empty.
    pub(crate) fn boxed(shape: &[usize], ranges: &[Range<usize>]) -> Elements {
        let (mut stride, mut first, mut dims) = (1, 0, Vec::new());
        for (&extent, range) in shape.iter().zip(ranges).rev() {
            first += stride * range.start as i128;
            let count = range.len() as i128;
            dims.push(Run { stride, count });
            stride *= extent as i128;
        }
        Elements::new(first, dims)
    }

    /// All elements of a slice.
    pub(crate) fn all(len: u64) -> Elements {
        let run = Run {
            stride: 1,
            count: len.into(),
        };
        Elements::new(0, vec![run])
    }

    /// Whether these are among others, as far as that is seen by their strides.
    pub(crate) fn are_among(&self, others: &Elements) -> bool {
        let mut ahead = self.first - others.first;
        let mut own = self.dims.clone();
        for run in &others.dims {
            let steps = ahead.div_euclid(run.stride);
            ahead -= steps * run.stride;
            let mut span = 0;
            own.retain(|part| {
                let is_along = part.stride % run.stride == 0;
                if is_along {
                    span += (part.count - 1) * (part.stride / run.stride);
                }
                !is_along
            });
            if steps < 0 || steps + span >= run.count {
                return false;
            }
        }
        ahead == 0 && own.is_empty()
    }

    /// The number of each element, if that is below a length.
    pub(crate) fn each(&self, len: usize, mut use_element: impl FnMut(usize)) {
        let mut turns = vec![0; self.dims.len()];
        loop {
            let steps = self.dims.iter().zip(&turns);
            let at: i128 = self.first + steps.map(|(run, turn)| run.stride * turn).sum::<i128>();
            if let Some(at) = usize::try_from(at).ok().filter(|&at| at < len) {
                use_element(at);
            }
            let mut dim = self.dims.len();
            loop {
                let Some(outer) = dim.checked_sub(1) else {
                    return;
                };
                dim = outer;
                turns[dim] += 1;
                if turns[dim] < self.dims[dim].count {
                    break;
                }
                turns[dim] = 0;
            }
        }
    }
}

/// What a region does to a parameter.
#[derive(Clone, Debug, Default)]
pub(crate) struct Touched {
    /// Each read, by its place; of elements that are not known, or of these.
    pub(crate) reads: Vec<(String, Option<Elements>)>,
    /// Of writes, in the same way.
    pub(crate) stores: Vec<(String, Option<Elements>)>,
    /// What is certainly written.
    pub(crate) writes: Vec<Elements>,
}

/// What a region does to each of its parameters, in a launch with such arguments.
pub(crate) fn touched(program: &Program, known: &[Known]) -> Result<Vec<Touched>, DirectiveError> {
    let function = program.function();
    let schedule = program.schedule(&[1], &[1]);
    let accesses = Accesses::of(program, &schedule)?;
    let mut affine = Affine::new(function, known);
    let mut all = vec![Touched::default(); function.params.len()];
    for access in &accesses.all {
        let param = function
            .params
            .iter()
            .position(|param| param.value == access.base);
        let Some(param) = param else { continue };
        let elements = match executes(&mut affine, access) {
            Some(false) => continue,
            _ => elements(&mut affine, access),
        };
        if access.writes && is_certain(program, &mut affine, access) {
            all[param].writes.extend(elements.clone());
        }
        let place = program.place(function.insts[access.inst].location);
        if access.writes {
            all[param].stores.push((place.clone(), elements.clone()));
        }
        if access.reads {
            all[param].reads.push((place, elements));
        }
    }
    Ok(all)
}

/// Whether all loops around an access have turns, each time; `None` if that is not known.
pub(crate) fn executes(affine: &mut Affine<'_>, access: &Access) -> Option<bool> {
    let mut all = Some(true);
    for held in &access.loops {
        match affine.turns(held.inst).and_then(|turns| turns.count) {
            Some(0) => return Some(false),
            Some(_) => {}
            None => all = None,
        }
    }
    all
}

/// Whether an access is executed whenever the region is.
fn is_certain(program: &Program, affine: &mut Affine<'_>, access: &Access) -> bool {
    let function = program.function();
    let mut around = access.way.iter();
    let is_free = around.all(|held| match function.insts[held.inst].data.control() {
        Control::If { .. } => program.singular.contains_key(&held.inst),
        Control::Loop { .. } => false,
        Control::Next | Control::For { .. } | Control::Leave { .. } | Control::Return { .. } => {
            true
        }
    });
    let mut returns = false;
    function.for_each_inst(|region, inst| {
        let data = &function.insts[inst].data;
        let is_return = matches!(data.control(), Control::Return { .. });
        returns |= is_return && region != function.body;
    });
    is_free && !returns && !access.may_be_left_out && executes(affine, access) == Some(true)
}

/// The elements of an access, if its index goes through a box.
pub(crate) fn elements(affine: &mut Affine<'_>, access: &Access) -> Option<Elements> {
    let Some([Step::Index { index, of: Some(_) }]) = access.steps.as_deref() else {
        return None;
    };
    let form = affine.form(*index)?;
    if !form.is_exact() {
        return None;
    }
    let (mut first, mut dims) = (form.sum.number, Vec::new());
    for (atom, &factor) in form.sum.factors.iter().enumerate() {
        if factor == 0 {
            continue;
        }
        let Atom::Turn(inst) = affine.atoms[atom] else {
            return None;
        };
        let count = affine.turns(inst)?.count?.max(1);
        first = first.checked_add(factor.checked_mul(count - 1)?.min(0))?;
        let stride = factor.abs();
        dims.push(Run { stride, count });
    }
    Some(Elements::new(first, dims))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{Elements, Run};

    /// Numbers from a seed (xorshift64).
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: u64) -> i128 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            ((self.0 >> 11) % end).into()
        }

        fn elements(&mut self) -> (Elements, HashSet<i128>) {
            let dims = (0..self.below(4)).map(|_| Run {
                stride: 1 + self.below(12),
                count: 1 + self.below(4),
            });
            let (dims, first) = (dims.collect::<Vec<_>>(), self.below(6));
            let mut all = HashSet::from([first]);
            for run in &dims {
                let with = |at: &i128| {
                    (0..run.count)
                        .map(|turn| at + turn * run.stride)
                        .collect::<Vec<_>>()
                };
                all = all.iter().flat_map(with).collect();
            }
            (Elements::new(first, dims), all)
        }
    }

    #[test]
    fn boxes_are_what_their_turns_are() {
        let seed = 0x9e37_79b9_7f4a_7c15;
        let mut numbers = Numbers(seed);
        let (mut among, mut missed) = (0, 0);
        for number in 0..20_000 {
            let ((a, all), (b, others)) = (numbers.elements(), numbers.elements());
            let mut each = HashSet::new();
            a.each(1000, |at| {
                each.insert(at as i128);
            });
            assert_eq!(each, all, "{number} of seed {seed}: {a:?}");
            let is_among = a.are_among(&b);
            let wanted = all.is_subset(&others);
            assert!(wanted || !is_among, "{number} of seed {seed}: {a:?} {b:?}");
            among += u32::from(is_among);
            missed += u32::from(wanted && !is_among);
        }
        assert!(
            among > 500 && missed < among / 4,
            "{among} found, {missed} missed"
        );
    }

    #[test]
    fn rows_of_a_matrix_are_among_its_elements() {
        let rows = |first, height, width| {
            let outer = Run {
                stride: 100,
                count: height,
            };
            let inner = Run {
                stride: 1,
                count: width,
            };
            Elements::new(first, vec![inner, outer])
        };
        let within = rows(101, 98, 98);
        assert!(within.are_among(&Elements::all(10_000)) && within.are_among(&within));
        assert!(within.are_among(&rows(0, 100, 100)) && rows(205, 1, 7).are_among(&within));
        assert!(!rows(100, 98, 98).are_among(&within) && !rows(101, 98, 99).are_among(&within));
        assert!(!Elements::all(10_000).are_among(&within));
    }
}
