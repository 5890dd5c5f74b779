//! Arrays of random shapes and layouts beside `ndarray`: views of views, random expressions over them, reductions along
//! any axes, results in parts of arrays.
//!
//! A case is made of a plan, of which there are few, and of what is free besides. The plan has what kernels know: how
//! many dimensions there are, their order, which have one element, how they are cut, the expression. Extents, where
//! parts begin, how far elements are apart and their values are free, so that many cases run the same few kernels. The
//! seed is told when a case goes wrong: `KILN_ARRAY_SEED=17` runs that one alone.

use kiln::array::{SliceItem, keep_dims, where_};
use kiln::prelude::*;
use ndarray::{ArrayD, Axis, Slice, Zip};

use super::{Outcome, chapter};

chapter![
    expressions_over_any_layouts,
    reductions_along_any_axes,
    results_in_parts
];

/// How many cases there are of each kind.
const SEEDS: u64 = 960;

/// How many plans.
const PLANS: u64 = 40;

/// Of how many kernels the cases of a kind may be: layouts differ in what kernels know of them, but not in extents.
const KERNELS: usize = 220;

/// Random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// All numbers below, in some order.
    fn order(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for i in (1..count).rev() {
            order.swap(i, self.below(i + 1));
        }
        order
    }
}

/// What a case is made of.
struct Source {
    plan: Random,
    free: Random,
}

impl Source {
    fn of(seed: u64) -> Source {
        Source {
            plan: Random(seed % PLANS),
            free: Random(!seed),
        }
    }

    fn dims(&mut self) -> Vec<usize> {
        let rank = self.plan.one_of(&[0, 1, 1, 2, 2, 2, 3, 3, 4]);
        let extents: &[usize] = match rank {
            0..=2 => &[2, 3, 5, 7, 8, 31, 32, 33],
            3 => &[2, 3, 5, 8, 13],
            _ => &[2, 3, 5],
        };
        (0..rank)
            .map(|_| match self.plan.below(7) {
                0 => 1,
                _ => self.free.one_of(extents),
            })
            .collect()
    }
}

/// An array on the device, and the same on the host.
struct Both {
    ours: Array<i64>,
    theirs: ArrayD<i64>,
}

impl Both {
    /// An array of this shape, a view of a larger one whose dimensions are in another order, in two steps.
    fn of(arrays: &Arrays, source: &mut Source, dims: &[usize]) -> kiln::Result<Both> {
        let Source { plan, free } = source;
        let order = plan.order(dims.len());
        // What is cut off each dimension, and how: at its start, and every which element is left.
        let cuts: Vec<(usize, usize, isize)> = order
            .iter()
            .map(|axis| match plan.below(3) {
                0 => (0, dims[*axis], 1),
                1 => (1 + free.below(3), dims[*axis], 1),
                _ => (free.below(2), dims[*axis], plan.one_of(&[-1, 2, -2])),
            })
            .collect();
        let whole = cuts
            .iter()
            .map(|(start, count, step)| start + count * step.unsigned_abs());
        let whole: Vec<usize> = whole.collect();
        let values: Vec<i64> = (0..whole.iter().product::<usize>())
            .map(|_| free.below(19) as i64 - 9)
            .collect();
        let (mut ours, all) = (
            arrays.array(&values, &whole[..])?,
            ArrayD::from_shape_vec(whole, values),
        );
        let mut theirs = all.expect("as many values as the shape has");
        for (axis, (start, ..)) in cuts.iter().enumerate() {
            let mut items = vec![SliceItem::from(..); axis];
            items.push(SliceItem::from(*start..));
            ours = ours.slice(&items)?;
            theirs.slice_axis_inplace(Axis(axis), Slice::from(*start..));
        }
        let steps: Vec<SliceItem> = cuts
            .iter()
            .map(|cut| SliceItem::from(..).step_by(cut.2))
            .collect();
        ours = ours.slice(&steps)?;
        for (axis, cut) in cuts.iter().enumerate() {
            theirs.slice_axis_inplace(Axis(axis), Slice::new(0, None, cut.2));
        }
        let mut back = vec![0; dims.len()];
        for (at, axis) in order.iter().enumerate() {
            back[*axis] = at;
        }
        Ok(Both {
            ours: ours.permute(&back)?,
            theirs: theirs.permuted_axes(back),
        })
    }

    /// One that goes with a shape: some of its dimensions are of one element, and the first may be missing.
    fn going_with(arrays: &Arrays, source: &mut Source, dims: &[usize]) -> kiln::Result<Both> {
        let plan = &mut source.plan;
        let missing = match plan.below(3) {
            0 => plan.below(dims.len() + 1),
            _ => 0,
        };
        let dims = dims[missing..].iter().map(|dim| match plan.below(5) {
            0 => 1,
            _ => *dim,
        });
        let dims: Vec<usize> = dims.collect();
        Both::of(arrays, source, &dims)
    }

    fn check(&self) -> kiln::Result<()> {
        assert_eq!(self.ours.dims(), self.theirs.shape());
        assert_eq!(
            self.ours.to_vec()?,
            self.theirs.iter().copied().collect::<Vec<_>>()
        );
        Ok(())
    }
}

/// The shape that these have together.
fn together(parts: &[&ArrayD<i64>]) -> Vec<usize> {
    let rank = parts.iter().map(|part| part.ndim()).max().unwrap_or(0);
    let dim = |at: usize| {
        let dims = parts
            .iter()
            .map(|part| match (at + part.ndim()).checked_sub(rank) {
                Some(own) => part.shape()[own],
                None => 1,
            });
        dims.max().unwrap_or(1)
    };
    (0..rank).map(dim).collect()
}

/// A random expression of three arrays.
enum Tree {
    Leaf(usize),
    Number(i64),
    Negated(Box<Tree>),
    Rest(Box<Tree>),
    Both(usize, Box<[Tree; 2]>),
    Where(Box<[Tree; 4]>),
}

impl Tree {
    fn of(plan: &mut Random, depth: usize) -> Tree {
        let leaf = Tree::Leaf(plan.below(3));
        if depth == 0 {
            return leaf;
        }
        let mut deeper = |depth| Tree::of(plan, depth);
        let (left, right) = (deeper(depth - 1), deeper(depth / 2));
        match plan.below(9) {
            0 => Tree::Negated(Box::new(left)),
            1 => Tree::Rest(Box::new(left)),
            2 => Tree::Where(Box::new([left, leaf, right, Tree::Leaf(plan.below(3))])),
            3 => {
                let number = Tree::Number(plan.below(9) as i64 - 4);
                Tree::Both(plan.below(5), Box::new([left, number]))
            }
            _ => Tree::Both(plan.below(5), Box::new([left, right])),
        }
    }

    fn ours(&self, leaves: &[&Both; 3]) -> Expr<i64> {
        let of = |tree: &Tree| tree.ours(leaves);
        match self {
            Tree::Leaf(at) => leaves[*at].ours.expr(),
            // Beside an array, as no expression is of numbers alone.
            Tree::Number(number) => number.into_expr(),
            Tree::Negated(x) => -of(x),
            Tree::Rest(x) => of(x) % 4,
            Tree::Both(kind, parts) => {
                let (x, y) = (of(&parts[0]), of(&parts[1]));
                match kind {
                    0 => x + y,
                    1 => x - y,
                    2 => x * y,
                    3 => x.minimum(y),
                    _ => x.maximum(y),
                }
            }
            Tree::Where(parts) => {
                let [x, y, z, w] = parts.each_ref().map(of);
                where_(x.lt(y), z, w)
            }
        }
    }

    fn theirs(&self, leaves: [i64; 3]) -> i64 {
        let of = |tree: &Tree| tree.theirs(leaves);
        match self {
            Tree::Leaf(at) => leaves[*at],
            Tree::Number(number) => *number,
            Tree::Negated(x) => of(x).wrapping_neg(),
            Tree::Rest(x) => of(x) % 4,
            Tree::Both(kind, parts) => {
                let (x, y) = (of(&parts[0]), of(&parts[1]));
                match kind {
                    0 => x.wrapping_add(y),
                    1 => x.wrapping_sub(y),
                    2 => x.wrapping_mul(y),
                    3 => x.min(y),
                    _ => x.max(y),
                }
            }
            Tree::Where(parts) => {
                let [x, y, z, w] = parts.each_ref().map(of);
                if x < y { z } else { w }
            }
        }
    }
}

/// A random expression of three arrays, all of which are in it.
fn expression(plan: &mut Random, leaves: [&Both; 3]) -> (Expr<i64>, ArrayD<i64>) {
    let depth = 1 + plan.below(6);
    let all = [0, 1, 2, 0].map(Tree::Leaf);
    let parts = [Tree::of(plan, depth - 1), Tree::Where(Box::new(all))];
    let tree = Tree::Both(1, Box::new(parts));
    let shape = together(&leaves.map(|both| &both.theirs));
    let of = |both: &Both| {
        both.theirs
            .broadcast(&shape[..])
            .map(|view| view.to_owned())
    };
    let [x, y, z] = leaves.map(|both| of(both).expect("it goes with it"));
    let theirs = Zip::from(&x)
        .and(&y)
        .and(&z)
        .map_collect(|a, b, c| tree.theirs([*a, *b, *c]));
    (tree.ours(&leaves), theirs)
}

/// Runs each case, or the one that is asked for, and checks how many kernels they were.
fn each(jit: &Jit, case: impl Fn(&Arrays, &mut Source) -> kiln::Result<()>) -> Outcome {
    let arrays = Arrays::new(jit);
    let only = std::env::var("KILN_ARRAY_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seeds = only.map_or(0..SEEDS, |seed: u64| seed..seed + 1);
    for seed in seeds {
        let mut source = Source::of(seed);
        let run = std::panic::AssertUnwindSafe(|| case(&arrays, &mut source));
        match std::panic::catch_unwind(run) {
            Ok(outcome) => outcome.map_err(|error| format!("KILN_ARRAY_SEED={seed}: {error}"))?,
            Err(panic) => {
                println!("KILN_ARRAY_SEED={seed}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    assert!(arrays.kernels() <= KERNELS, "{} kernels", arrays.kernels());
    Ok(())
}

fn expressions_over_any_layouts(jit: &Jit) -> Outcome {
    each(jit, |arrays, source| {
        let dims = source.dims();
        let operand = |source: &mut Source| Both::going_with(arrays, source, &dims);
        let (a, b, c) = (operand(source)?, operand(source)?, operand(source)?);
        a.check()?;
        let (ours, theirs) = expression(&mut source.plan, [&a, &b, &c]);
        let ours = ours.eval()?;
        Both { ours, theirs }.check()
    })
}

fn reductions_along_any_axes(jit: &Jit) -> Outcome {
    each(jit, |arrays, source| {
        let mut dims = source.dims();
        if source.plan.below(6) == 0 {
            dims.iter_mut().for_each(|dim| *dim = (*dim).min(3));
            if let Some(dim) = dims.last_mut() {
                *dim = source.free.one_of(&[0, 300, 1200]);
            }
        }
        let (a, b) = (
            Both::of(arrays, source, &dims)?,
            Both::going_with(arrays, source, &dims)?,
        );
        let plan = &mut source.plan;
        let product = &a.ours * &b.ours;
        let mut theirs = &a.theirs * &b.theirs;
        let axes: Vec<usize> = (0..dims.len()).filter(|_| plan.below(2) == 0).collect();
        let kept = product.sum_axis(keep_dims(&axes[..]))?;
        let ours = product.sum_axis(&axes[..])?;
        let total = theirs.sum();
        for axis in axes.iter().rev() {
            theirs = theirs.sum_axis(Axis(*axis));
        }
        assert_eq!((kept.rank(), kept.to_vec()?), (dims.len(), ours.to_vec()?));
        Both { ours, theirs }.check()?;
        assert_eq!(product.sum()?, total);
        if !dims.contains(&0) && !dims.is_empty() {
            let axis = plan.below(dims.len());
            let ours = a.ours.argmax_axis(axis as isize)?;
            let first = |lane: ndarray::ArrayView1<'_, i64>| {
                let best = lane.iter().max();
                lane.iter()
                    .position(|value| Some(value) == best)
                    .unwrap_or(0) as u32
            };
            let theirs = a.theirs.map_axis(Axis(axis), first);
            assert_eq!(ours.to_vec()?, theirs.iter().copied().collect::<Vec<_>>());
        }
        Ok(())
    })
}

fn results_in_parts(jit: &Jit) -> Outcome {
    each(jit, |arrays, source| {
        let dims: Vec<usize> = source.dims().iter().map(|dim| dim + 2).collect();
        let mut x = Both::of(arrays, source, &dims)?;
        let (before, old) = (x.ours.clone(), x.theirs.clone());
        let Source { plan, free } = &mut *source;
        let cuts = dims.iter().map(|dim| {
            (
                free.below(2),
                1 + free.below(*dim - 1),
                plan.one_of(&[1, 1, -1, 2]),
            )
        });
        let cuts: Vec<(usize, usize, isize)> = cuts.collect();
        let items = cuts
            .iter()
            .map(|(start, end, step)| SliceItem::from(*start..(*end).max(*start)).step_by(*step));
        let items: Vec<SliceItem> = items.collect();
        let mut part = x.theirs.clone();
        let slice = |axis: usize| {
            let (start, end, step) = cuts[axis];
            Slice::new(start as isize, Some(end.max(start) as isize), step)
        };
        (0..dims.len()).for_each(|axis| part.slice_axis_inplace(Axis(axis), slice(axis)));
        let value = Both::going_with(arrays, source, part.shape())?;
        // What is written is read as well, in its place, and turned round.
        let own = x.ours.slice(&items)?;
        let reads_elsewhere = source.plan.below(2) == 0 && !dims.is_empty();
        let other = if reads_elsewhere {
            own.flip(0)?
        } else {
            own.clone()
        };
        x.ours
            .slice_mut(&items)?
            .assign(&own * 2 + &value.ours - &other)?;
        let mut turned = part.clone();
        if reads_elsewhere {
            turned.invert_axis(Axis(0));
        }
        let result = &part * 2 + &value.theirs - &turned;
        let mut there = x.theirs.view_mut();
        (0..dims.len()).for_each(|axis| there.slice_axis_inplace(Axis(axis), slice(axis)));
        there.assign(&result);
        x.check()?;
        Both {
            ours: before,
            theirs: old,
        }
        .check()
    })
}
