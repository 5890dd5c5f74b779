//! The reducer: from a case that fails to a small one that still does.
//!
//! It tries one change after the other and keeps each that verifies, makes the case smaller, and
//! still fails, until none is left: a smaller launch, fewer instructions, branches, loops and calls
//! replaced by what is in them, constants, simpler data, fewer parameters and functions. `edit` has
//! the changes.
//!
//! A change can bring in a race or a read of memory that nobody wrote, which makes backends
//! disagree for no fault of theirs: ask [`crate::sound()`] in `still_fails` when backends are
//! compared.

mod edit;

use kiln_jit_core::ir::{
    Constant, FuncId, Inst, InstData, ParamFacts, PrintOptions, Region, Type, Unroll, parse, print,
    verify,
};

use crate::case::{Arg, Case};

/// An instruction in its place.
type Place = (FuncId, Region, Inst);

/// The smallest case found for which `still_fails` holds, which it does for `case`.
pub fn reduce(case: Case, still_fails: &dyn Fn(&Case) -> bool) -> Case {
    let mut reducer = Reducer {
        best: case,
        still_fails,
    };
    reducer.change(|_| true);
    // First, so that no bound that grows makes a backend unroll without end.
    reducer.change(edit::forget_promises);
    while reducer.round() || reducer.reduce_without_calls() {}
    reducer.best
}

struct Reducer<'f> {
    best: Case,
    still_fails: &'f dyn Fn(&Case) -> bool,
}

/// How large a case is: code first, then what it names, then the launch, then data.
type Cost = (u64, usize, usize, usize);

fn cost(case: &Case) -> Cost {
    let (mut code, mut entities) = (0, case.args.len() + case.buffers.len());
    for function in case.module.functions.values() {
        function.for_each_inst(|_, inst| {
            let data = &function.insts[inst].data;
            let mut operands = 0;
            data.for_each_operand(|_| operands += 1);
            code += match data {
                InstData::Const(Constant::Zero) => 1,
                InstData::Const(Constant::Int(0 | 1)) => 2,
                InstData::Const(_) => 3,
                InstData::For { unroll, .. } => 8 + u64::from(*unroll != Unroll::Auto),
                _ => 5 + operands,
            };
        });
        let known = function
            .params
            .iter()
            .filter(|p| p.facts != ParamFacts::default());
        entities += usize::from(function.launch_bounds.is_some()) + known.count();
        entities += 1 + function.params.len() + function.vars.len() + function.shared.len();
    }
    entities += case.module.globals.len();
    let grid: u32 = case.grid.iter().product();
    let data = case
        .buffers
        .iter()
        .flatten()
        .chain(case.args.iter().flat_map(|arg| match arg {
            Arg::Bytes(bytes) => &bytes[..],
            Arg::Buffer(_) => &[],
        }));
    let nonzero = data.filter(|b| **b != 0).count();
    let bytes: usize = case.buffers.iter().map(Vec::len).sum();
    let bytes = bytes + nonzero + case.dynamic_shared as usize;
    (code, entities, grid as usize * case.threads(), bytes)
}

/// The case with its module read from its text, which leaves out what has no place any more, and numbers
/// the rest anew.
fn tidied(mut case: Case) -> Option<Case> {
    let text = print(&case.module, PrintOptions::default());
    case.module = parse(&text, &kiln_device_stdlib::find).ok()?;
    Some(case)
}

fn grid_of(case: &mut Case) -> &mut [u32; 3] {
    &mut case.grid
}

fn block_of(case: &mut Case) -> &mut [u32; 3] {
    &mut case.block
}

impl Reducer<'_> {
    /// Keeps a changed case if it is smaller and still fails: best without code whose result nobody
    /// uses, which goes with what used it, unless that is what fails.
    fn attempt(&mut self, case: Case) -> bool {
        let mut clean = case.clone();
        let removed = edit::remove_unused(&mut clean.module);
        self.keep(clean) || removed && self.keep(case)
    }

    fn keep(&mut self, case: Case) -> bool {
        let smaller = tidied(case).filter(|case| cost(case) < cost(&self.best));
        match smaller.filter(|case| self.fails(case)) {
            Some(case) => {
                self.best = case;
                true
            }
            None => false,
        }
    }

    fn fails(&self, case: &Case) -> bool {
        verify(&case.module).is_ok() && (self.still_fails)(case)
    }

    /// Tries each kind of change everywhere.
    fn round(&mut self) -> bool {
        let mut progress = self.shrink_launch();
        progress |= self.remove_instructions();
        progress |= self.splice_regions();
        progress |= self.simplify_values();
        progress |= self.remove_entities();
        progress |= self.simplify_data();
        progress
    }

    /// Puts callees in the place of their calls, although a callee that returns early makes the case
    /// larger by that, and keeps what it becomes if that is smaller.
    fn reduce_without_calls(&mut self) -> bool {
        let mut case = self.best.clone();
        if !edit::inline_calls(&mut case.module) {
            return false;
        }
        let Some(case) = tidied(case).filter(|case| self.fails(case)) else {
            return false;
        };
        let mut flat = Reducer {
            best: case,
            still_fails: self.still_fails,
        };
        while flat.round() {}
        let smaller = cost(&flat.best) < cost(&self.best);
        if smaller {
            self.best = flat.best;
        }
        smaller
    }

    /// Tries a change of the best case, which says whether it can be made.
    fn change(&mut self, f: impl FnOnce(&mut Case) -> bool) -> bool {
        let mut case = self.best.clone();
        f(&mut case) && self.attempt(case)
    }

    fn shrink_launch(&mut self) -> bool {
        let mut progress = false;
        for dimension in 0..3 {
            for extents in [grid_of, block_of] {
                for smaller in [|_| 1, |n| n / 2, |n| n - 1] as [fn(u32) -> u32; 3] {
                    while self.change(|case| {
                        let extent = &mut extents(case)[dimension];
                        *extent = smaller(*extent).max(1);
                        true
                    }) {
                        progress = true;
                    }
                }
            }
        }
        progress
    }

    /// All instructions, in the order of the text.
    fn places(&self) -> Vec<Place> {
        let mut places = Vec::new();
        for (id, function) in self.best.module.functions.iter() {
            function.for_each_inst(|region, inst| places.push((id, region, inst)));
        }
        places
    }

    /// Removes runs of instructions, shorter and shorter ones; what a removed one gave is zero.
    fn remove_instructions(&mut self) -> bool {
        let mut progress = false;
        let mut size = self.places().len().div_ceil(2).max(1);
        loop {
            let mut at = 0;
            loop {
                let places = self.places();
                if at >= places.len() {
                    break;
                }
                let chunk = &places[at..(at + size).min(places.len())];
                if self.change(|case| {
                    chunk
                        .iter()
                        .for_each(|place| edit::remove(&mut case.module, *place));
                    true
                }) {
                    progress = true;
                } else {
                    at += size;
                }
            }
            if size == 1 {
                return progress;
            }
            size = size.div_ceil(2);
        }
    }

    /// Tries a change at each instruction.
    fn at_each(&mut self, mut f: impl FnMut(&mut Case, Place) -> bool) -> bool {
        let (mut progress, mut at) = (false, 0);
        loop {
            let places = self.places();
            let Some(&place) = places.get(at) else {
                return progress;
            };
            if self.change(|case| f(case, place)) {
                progress = true;
            } else {
                at += 1;
            }
        }
    }

    /// Replaces branches, loops and calls by what is in them.
    fn splice_regions(&mut self) -> bool {
        let mut progress = false;
        for which in 0..2 {
            for jumps in [true, false] {
                progress |=
                    self.at_each(|case, place| edit::splice(&mut case.module, place, which, jumps));
            }
        }
        progress |= self.at_each(|case, place| edit::merge_returns(&mut case.module, place));
        progress |= self.change(|case| edit::inline_calls(&mut case.module));
        progress
    }

    /// Replaces values by what they were computed from, or by constants.
    fn simplify_values(&mut self) -> bool {
        let mut progress = false;
        for operand in 0..3 {
            progress |= self
                .at_each(|case, place| edit::replace_by_operand(&mut case.module, place, operand));
        }
        for number in 0..4 {
            progress |= self
                .at_each(|case, place| edit::replace_by_origin(&mut case.module, place, number));
        }
        for constant in [Constant::Zero, Constant::Int(1), Constant::Bool(true)] {
            progress |= self.at_each(|case, place| {
                edit::replace_by_constant(&mut case.module, place, constant)
            });
        }
        progress |= self.at_each(|case, place| edit::simplify(&mut case.module, place));
        progress |= self.change(edit::forget_promises);
        progress
    }

    /// Removes parameters, variables, shared memory, constants and functions that are not used.
    fn remove_entities(&mut self) -> bool {
        let mut progress = false;
        let functions: Vec<FuncId> = self.best.module.functions.keys().rev().collect();
        for id in functions {
            progress |= self.change(|case| edit::remove_function(&mut case.module, id));
        }
        let functions: Vec<FuncId> = self.best.module.functions.keys().collect();
        for id in functions {
            let params = self.best.module.functions[id].params.len();
            for param in (0..params).rev() {
                progress |= self.change(|case| edit::remove_param(case, id, param));
            }
            progress |= self.change(|case| edit::remove_vars(&mut case.module, id));
            progress |= self.change(|case| edit::remove_shared(&mut case.module, id));
        }
        progress |= self.change(|case| edit::remove_globals(&mut case.module));
        for buffer in (0..self.best.buffers.len()).rev() {
            progress |= self.change(|case| edit::remove_buffer(case, buffer));
        }
        progress
    }

    /// Zeroes buffers and arguments, and shortens buffers.
    fn simplify_data(&mut self) -> bool {
        let mut progress = false;
        for buffer in 0..self.best.buffers.len() {
            progress |= self.change(|case| {
                case.buffers[buffer].fill(0);
                true
            });
            let size = self.element_size(buffer);
            for shorter in [|_| 1, |n| n / 2, |n| n - 1] as [fn(usize) -> usize; 3] {
                while self.change(|case| {
                    let elements = case.buffers[buffer].len() / size;
                    let kept = shorter(elements.max(1)).max(1);
                    case.buffers[buffer].truncate(kept * size);
                    true
                }) {
                    progress = true;
                }
            }
        }
        for arg in 0..self.best.args.len() {
            progress |= self.change(|case| match &mut case.args[arg] {
                Arg::Bytes(bytes) => {
                    bytes.fill(0);
                    true
                }
                Arg::Buffer(_) => false,
            });
        }
        progress |= self.change(|case| {
            case.dynamic_shared = 0;
            true
        });
        progress
    }

    fn element_size(&self, buffer: usize) -> usize {
        let param = self
            .best
            .args
            .iter()
            .position(|arg| *arg == Arg::Buffer(buffer));
        let ty = param.map_or(Type::U8, |p| self.best.element(p));
        let layout = self.best.module.types.layout(ty);
        layout.map_or(1, |l| l.size as usize).max(1)
    }
}
