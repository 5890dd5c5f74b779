//! A whole kernel in two versions: one without checks, for blocks all of whose threads stay in bounds, and the kernel
//! as it was.
//!
//! ```text
//! let i = block_idx * 256 + thread_idx;     let all = block_idx * 256 + 255 < x.len() && ..;
//! y[i] = x[i + 1] - x[i];                   if all { y[i] = x[i + 1] - x[i]; }     // unchecked
//!                                           else { y[i] = x[i + 1] - x[i]; }
//! ```
//!
//! On a CPU a thread that faults leaves the others of its vector going on, under a mask that nothing more is known of.
//! So a check costs what comes behind it more than itself: loads and stores stay masked, and neither they nor loops
//! become what they are where it is known which lanes run. One question for the whole block, at its start, leaves one
//! version as it would be without checks. It is asked only if it stands for all checks of the kernel.
//!
//! On a GPU a loop in which threads meet has two versions anyway. Where memory is read before it, they begin at the
//! start of the kernel: so the question, and where the loop's elements are, is computed while the first loads are under
//! way, and not after the barrier that waits for them. What runs straight on before and behind the loop is asked for
//! with it where it can be: where no thread may fault, loads and stores are predicated and the warp stays together.

use std::collections::{HashMap, HashSet};

use kiln_compiler::ir::{Inst, InstCopy, InstData, Region, Type, Unroll, Value};

use super::before::{Before, Inside, Truth};
use super::clamped;
use super::counter::{Counts, has_few_turns};
use super::proof::{Proof, known_length};
use super::sum::{Sum, Wide};
use super::versions::Versions;

/// A kernel of more instructions stays as it is: it would be compiled twice.
const MAX_KERNEL: usize = 400;

/// What is asked at the start of a kernel.
struct Question {
    /// The kernel's first instruction.
    first: Inst,
    /// What is computed for it.
    before: Vec<Inst>,
    /// Whether no thread of the block leaves its bounds; none if that is known.
    test: Option<Value>,
    /// The checked accesses that it stands for, with their indices.
    proved: Vec<(Inst, Wide)>,
}

impl Versions<'_> {
    /// Gives the kernel two versions, or one without checks, if all of its checks can be asked for at its start.
    pub(super) fn whole(&mut self) {
        let inside = Inside::of_body(self.function);
        let checks = self.checks(inside.insts());
        if let Some(question) = self.question(&inside, (&checks, &HashSet::new())) {
            self.begin_with(&question);
            if question.test.is_some() {
                // Not what was asked for either: this version is for blocks at an edge, and has its arrays in memory.
                self.never_unroll(inside.insts());
            }
        }
    }

    /// Says of loops that none is unrolled.
    pub(super) fn never_unroll(&mut self, insts: impl Iterator<Item = Inst>) {
        for inst in insts {
            if let InstData::For { unroll, .. } = &mut self.function.insts[inst].data {
                *unroll = Unroll::Never;
            }
        }
    }

    /// Gives the kernel two versions if all checks of loops in which threads meet can be asked for at its start, and
    /// memory is accessed before one of them. What stands in no loop is asked for with them where it can be. A kernel
    /// without loops has two versions if the question stands for all of its checks, and threads meet between some.
    pub(super) fn ahead(&mut self) {
        let loops = self.loops_behind_accesses();
        let within = loops
            .iter()
            .map(|&the_loop| Inside::of(self.function, the_loop));
        let within: HashSet<Inst> = within
            .flat_map(|inside| inside.insts().collect::<Vec<_>>())
            .collect();
        let inside = Inside::of_body(self.function);
        let looped = self.in_loops();
        let all = self.checks(inside.insts().filter(|inst| !looped.contains(inst)));
        if loops.is_empty() && !self.is_cut() {
            return;
        }
        let needed = self.checks(within.iter().copied());
        if self.all_at_once(&inside) {
            return;
        }
        // Loops of which nothing is asked are no reason for a second version of what stands in none.
        let stands = |question: &Question| !needed.is_empty() || question.proved.len() == all.len();
        let alone = self.question(&inside, (&needed, &HashSet::new()));
        // No second version is made for what stands in no loop.
        let question = match alone.filter(|question| question.test.is_none()) {
            None => self.question(&inside, (&needed, &all)).filter(stands),
            known => known,
        };
        let Some(question) = question else {
            return;
        };
        self.begin_with(&question);
        if question.test.is_some() {
            self.growth += inside.len();
            self.as_they_were(&inside);
        }
    }

    /// Leaves all loops of a kernel's version with checks as they were, also those that the question does not stand for:
    /// this version is for blocks at an edge, and two versions of a loop in each of two would be compiled four times.
    fn as_they_were(&mut self, inside: &Inside) {
        let is_loop = |inst: &Inst| self.function.insts[*inst].data.is_loop();
        let loops: Vec<Inst> = inside.insts().filter(is_loop).collect();
        for the_loop in loops {
            self.make_slow(the_loop);
            self.asked.insert(the_loop);
        }
    }

    /// Gives a kernel with loops in which threads do not meet two versions, if the question stands for all of its
    /// checks. They make few turns, so that they are unrolled and then run straight on: one of many has two versions of
    /// its own.
    fn all_at_once(&mut self, inside: &Inside) -> bool {
        let mut loops = Vec::new();
        self.function.walk(self.function.body, &mut |_, inst| {
            if self.function.insts[inst].data.is_loop() {
                loops.push(inst);
            }
        });
        let outside = loops.iter().filter(|&&inst| !self.meets_in(inst));
        let outside: Vec<Inst> = outside.copied().collect();
        let is_short = |&inst: &Inst| has_few_turns(self.function, inst);
        if outside.is_empty() || !outside.iter().all(is_short) {
            return false;
        }
        let everything = self.checks(inside.insts());
        let question = self.question(inside, (&HashSet::new(), &everything));
        let stands = |question: &Question| {
            question.test.is_some() && question.proved.len() == everything.len()
        };
        let Some(question) = question.filter(stands) else {
            return false;
        };
        self.begin_with(&question);
        self.growth += inside.len();
        for the_loop in loops {
            self.make_slow(the_loop);
            self.asked.insert(the_loop);
        }
        true
    }

    /// Whether threads meet in a loop.
    fn meets_in(&self, the_loop: Inst) -> bool {
        let inside = Inside::of(self.function, the_loop);
        inside.insts().any(|inst| self.meets(inst))
    }

    /// The instructions of all loops.
    fn in_loops(&self) -> HashSet<Inst> {
        let mut looped = HashSet::new();
        self.function.walk(self.function.body, &mut |_, inst| {
            if self.function.insts[inst].data.is_loop() && !looped.contains(&inst) {
                looped.extend(Inside::of(self.function, inst).insts());
            }
        });
        looped
    }

    /// Whether threads meet between checks, and each loop makes a few turns in which it accesses slices. A loop over
    /// arrays alone is better off with runs: a version of the whole kernel made lud 8 % slower.
    fn is_cut(&self) -> bool {
        let (mut checks, mut is_cut, mut is_long) = (0, false, false);
        let mut cut_at = None;
        self.function.walk(self.function.body, &mut |_, inst| {
            let data = &self.function.insts[inst].data;
            is_long |= data.is_loop() && !self.is_short_walk(inst);
            checks += usize::from(data.check().is_some());
            if checks > 0 && self.meets(inst) {
                cut_at.get_or_insert(checks);
            }
            is_cut |= cut_at.is_some_and(|at| checks > at);
        });
        is_cut && !is_long
    }

    /// Whether a loop makes few turns, in which it checks indices of slices.
    fn is_short_walk(&self, the_loop: Inst) -> bool {
        let inside = Inside::of(self.function, the_loop);
        let is_slice = |inst: Inst| {
            let check = self.function.insts[inst].data.check();
            check.is_some_and(|check| known_length(self.function, self.types, check.base).is_none())
        };
        has_few_turns(self.function, the_loop) && inside.insts().any(is_slice)
    }

    /// The outermost loops in which threads meet, behind the first access to memory.
    fn loops_behind_accesses(&self) -> Vec<Inst> {
        let (mut loops, mut within) = (Vec::new(), HashSet::new());
        let mut accesses = false;
        self.function.walk(self.function.body, &mut |_, inst| {
            let data = &self.function.insts[inst].data;
            let inside = || Inside::of(self.function, inst);
            if accesses
                && data.is_loop()
                && !within.contains(&inst)
                && inside().insts().any(|inst| self.meets(inst))
            {
                within.extend(inside().insts());
                loops.push(inst);
            }
            accesses |= data.access().is_some();
        });
        loops
    }

    /// The instructions among these that check an index, or on a CPU clamp it.
    pub(super) fn checks(&self, insts: impl Iterator<Item = Inst>) -> HashSet<Inst> {
        let checks = |inst: &Inst| {
            clamped::check(self.function, self.types, (*inst, self.by_block)).is_some()
        };
        insts.filter(checks).collect()
    }

    /// Puts what is asked at the start of the kernel, and what follows in two versions.
    fn begin_with(&mut self, question: &Question) {
        let body = self.function.body;
        let mut rest = std::mem::take(&mut self.function.regions[body].insts);
        let is_end = |inst: &mut Inst| self.function.insts[*inst].data.is_return();
        let end = rest.pop_if(is_end);
        // On a GPU private memory is made once for both versions, which unroll their loops over it. On a CPU only one
        // does.
        let by_block = self.by_block;
        let is_place = |inst: &Inst| {
            !by_block && matches!(self.function.insts[*inst].data, InstData::LocalAlloc)
        };
        let (mut made, rest): (Vec<Inst>, Vec<Inst>) = rest.into_iter().partition(is_place);
        made.extend(&question.before);
        let rest = self.new_region(rest);
        match question.test {
            None => {
                let copy = InstCopy::of_itself(question.first);
                self.make_fast(&[rest], &question.proved, &copy);
                made.append(&mut self.function.regions[rest].insts);
            }
            Some(cond) => made.push(self.two_versions(cond, rest, question)),
        }
        made.extend(end);
        self.function.regions[body].insts = made;
    }

    /// A region without checks where a condition holds, and as it is where it does not.
    fn two_versions(&mut self, cond: Value, region: Region, question: &Question) -> Inst {
        let versions = |then_region, else_region| InstData::If {
            cond,
            then_region,
            else_region,
        };
        let at = self.function.insts[question.first].location;
        let one = self
            .function
            .new_inst(versions(region, None), Type::UNIT, at);
        let copy = self.function.copy_inst(one);
        self.own_variables(&copy);
        let fast = self.regions_of(copy.inst);
        self.make_fast(&fast, &question.proved, &copy);
        self.function.insts[one].data = versions(fast[0], Some(region));
        one
    }

    /// Gives a copy variables of its own: one that both versions have would live around them, and not in one.
    fn own_variables(&mut self, copy: &InstCopy) {
        let mut own = HashMap::new();
        let mut insts: Vec<Inst> = copy.insts.values().copied().collect();
        insts.sort_unstable();
        for inst in insts {
            if let InstData::VarGet(var) | InstData::VarSet(var, _) =
                &mut self.function.insts[inst].data
            {
                let vars = &mut self.function.vars;
                *var = *own
                    .entry(*var)
                    .or_insert_with(|| vars.push(vars[*var].clone()));
            }
        }
    }

    /// What is asked, if it stands for the checks that are needed; it may stand for some that are wished, too.
    fn question(
        &mut self,
        inside: &Inside,
        (needed, wished): (&HashSet<Inst>, &HashSet<Inst>),
    ) -> Option<Question> {
        if needed.is_empty() && wished.is_empty() || inside.len() > MAX_KERNEL {
            return None;
        }
        let first = *self.function.regions[self.function.body].insts.first()?;
        let block = Some(self.block.as_ref()?);
        let mut before = Before::new(
            (self.function, self.types),
            self.intrinsics,
            inside,
            (first, block),
        );
        before.on_cpu = self.by_block;
        let Proof {
            test,
            proved,
            counters,
        } = Proof::of_all(&mut before, self.types, (needed, wished))?;
        let wide = |(inst, sum): (Inst, Sum)| {
            let turns = |counter: usize| !matches!(counters[counter].counts, Counts::Lane(_));
            let is_same = !needed.contains(&inst) && !sum.counters().any(turns);
            // What no loop counts is no shorter when it is computed from the sum's parts.
            let wide = match is_same {
                true => Wide::own(),
                false => Wide::of(&sum, &mut before, &counters),
            };
            (inst, wide)
        };
        let proved = proved.into_iter().map(wide).collect();
        let test = match test {
            Truth::Known(false) => return None,
            Truth::Known(true) => None,
            test => Some(before.truth(test)),
        };
        Some(Question {
            first,
            test,
            proved,
            before: before.into_insts(),
        })
    }
}
