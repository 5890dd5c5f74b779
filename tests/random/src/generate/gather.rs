//! Blocks that hand on to each other: the last thread or block to arrive sums up what all have written, and
//! blocks that wait for earlier ones. Where these are in a kernel no thread has ended yet, as others count
//! on it.

use kiln_jit_core::ir::{
    AtomicOp, BinaryOp, CompareOp, InstData, Module, Ordering, Scope, Type, Unroll, Value, Var,
    VarData,
};

use super::Generator;
use super::launch::Plan;
use super::memory::{Place, SCOPES, WIDE_SCOPES};
use super::types::INTS;
use crate::random::Random;

/// What is planned of arrivals: who comes last sums up.
#[derive(Copy, Clone, Debug)]
pub(super) struct ArrivalsPlan {
    /// The parameters with what each thread writes, with how many have arrived, and with the sums.
    parts: usize,
    arrived: usize,
    sums: usize,
    /// The integer type of the count.
    count: Type,
    /// Whether each thread arrives by itself.
    by_thread: bool,
}

/// What is planned of a chain of blocks.
#[derive(Copy, Clone, Debug)]
pub(super) struct ChainPlan {
    /// The parameters with what each block hands on, and with which blocks have.
    sums: usize,
    ready: usize,
    /// The integer type of the flags.
    flag: Type,
}

/// An integer type.
fn int(plan: &Plan, random: &mut Random) -> Type {
    match random.chance(60) {
        true => plan.types.int(random),
        false => Type::scalar(random.of(&INTS)),
    }
}

impl Plan {
    /// Memory for arrivals.
    pub(super) fn arrivals(&mut self, random: &mut Random, module: &mut Module) -> ArrivalsPlan {
        let (total, threads) = (self.total(), self.threads());
        let (element, count) = (
            int(self, random),
            random.of(&[Type::U32, Type::I32, Type::U64]),
        );
        let by_thread = random.chance(50);
        let len = if by_thread { 1 } else { threads };
        ArrivalsPlan {
            parts: self.apart(random, module, "parts", (element, total), false),
            arrived: self.apart(random, module, "arrived", (count, 1), true),
            sums: self.apart(random, module, "sums", (element, len), false),
            count,
            by_thread,
        }
    }

    /// Memory for a chain.
    pub(super) fn chain(&mut self, random: &mut Random, module: &mut Module) -> ChainPlan {
        let (element, flag) = (
            int(self, random),
            random.of(&[Type::U32, Type::I32, Type::U64]),
        );
        let blocks = self.blocks();
        ChainPlan {
            sums: self.apart(random, module, "chain", (element, blocks), false),
            ready: self.apart(random, module, "ready", (flag, blocks), true),
            flag,
        }
    }

    /// The scopes that reach all threads of the launch.
    fn scopes(&self) -> &'static [Scope] {
        match self.blocks() {
            1 => &SCOPES,
            _ => &WIDE_SCOPES,
        }
    }
}

impl Generator {
    /// Whether there is anything to be done while all threads are there.
    pub(super) fn gathers(&self) -> bool {
        self.plan.arrivals.is_some() || self.plan.chain.is_some()
    }

    /// What is done where all threads of the launch come by.
    pub(super) fn gather(&mut self, thread: Value, global: Value) {
        if let Some(plan) = self.plan.chain {
            self.chain(plan, thread);
        }
        if let Some(plan) = self.plan.arrivals {
            match plan.by_thread {
                true => self.arrive_alone(plan, global),
                false => self.arrive_together(plan, thread, global),
            }
        }
    }

    // Arrivals.

    /// Each thread takes a ticket; who has the last one sums up what all have written.
    fn arrive_alone(&mut self, plan: ArrivalsPlan, global: Value) {
        let (parts, sums) = (self.place_apart(plan.parts), self.place_apart(plan.sums));
        self.write_part(&parts, global);
        let total = self.plan.total();
        let last = self.take_ticket(plan, total);
        self.if_unforeseen(last, |g| {
            let [start, end, step] = [0, total as i128, 1].map(|n| g.int(Type::U32, n));
            let sum = g.sum(&parts, [start, end, step], total as usize);
            let zero = g.int(Type::U32, 0);
            let ptr = g.element_address(&sums, zero);
            g.store_at(&sums, ptr, sum);
        });
    }

    /// One thread takes a ticket for its block; all threads of the last block sum up.
    fn arrive_together(&mut self, plan: ArrivalsPlan, thread: Value, global: Value) {
        let (parts, sums) = (self.place_apart(plan.parts), self.place_apart(plan.sums));
        let told = self.static_shared(Type::BOOL, 1);
        let zero = self.int(Type::U32, 0);
        self.write_part(&parts, global);
        self.act(InstData::Barrier);
        let (blocks, threads) = (self.plan.blocks(), self.plan.threads());
        let leads = self.leader(thread);
        self.if_(leads, |g| {
            let last = g.take_ticket(plan, blocks);
            let ptr = g.element_address(&told, zero);
            g.store_at(&told, ptr, last);
        });
        self.act(InstData::Barrier);
        let ptr = self.element_address(&told, zero);
        let volatile = false;
        let last = self.raw_varying(InstData::Load { ptr, volatile }, Type::BOOL);
        self.if_unforeseen(last, |g| {
            let [end, step] = [g.plan.total(), threads].map(|n| g.int(Type::U32, i128::from(n)));
            let sum = g.sum(&parts, [thread, end, step], blocks as usize);
            let ptr = g.element_address(&sums, thread);
            g.store_at(&sums, ptr, sum);
        });
    }

    /// What a thread adds to all.
    fn write_part(&mut self, parts: &Place, global: Value) {
        let value = self.expr(parts.element, 2, false);
        let ptr = self.element_address(parts, global);
        self.store_at(parts, ptr, value);
    }

    /// Says that the thread has arrived; whether it is the last of `count`. What was done before it is
    /// released, what others did before they arrived is acquired: by the ticket or by fences.
    fn take_ticket(&mut self, plan: ArrivalsPlan, count: u64) -> Value {
        use Ordering::{Acquire, AcquireRelease, Relaxed, Release, SequentiallyConsistent};
        let scopes = self.plan.scopes();
        let (releases, acquires) = (self.random.chance(60), self.random.chance(60));
        if !releases {
            let ordering = self
                .random
                .of(&[Release, AcquireRelease, SequentiallyConsistent]);
            let scope = self.random.of(scopes);
            self.act(InstData::Fence { ordering, scope });
        }
        let ordering = match (releases, acquires) {
            (true, true) => self.random.of(&[AcquireRelease, SequentiallyConsistent]),
            (true, false) => Release,
            (false, true) => Acquire,
            (false, false) => Relaxed,
        };
        let place = self.place_apart(plan.arrived);
        let zero = self.int(Type::U32, 0);
        let ptr = self.element_address(&place, zero);
        let ticket = InstData::AtomicRmw {
            op: AtomicOp::Add,
            ptr,
            value: self.int(plan.count, 1),
            ordering,
            scope: self.random.of(scopes),
        };
        let ticket = self.raw_varying(ticket, plan.count);
        if !acquires {
            self.acquiring_fence(scopes);
        }
        let last = self.int(plan.count, i128::from(count - 1));
        self.compare(CompareOp::Eq, ticket, last)
    }

    /// The elements of a place from an index on, combined.
    fn sum(&mut self, place: &Place, bounds: [Value; 3], trips: usize) -> Value {
        let op = self
            .random
            .of(&[BinaryOp::Add, BinaryOp::Xor, BinaryOp::Mul]);
        // Whose it is differs from run to run, so that others must not see it.
        let (name, ty) = ("sum".to_owned(), place.element);
        let sum = self.frame.function.vars.push(VarData { name, ty });
        let one = self.int(place.element, 1);
        self.act(InstData::VarSet(sum, one));
        let unroll = self.random.of(&[Unroll::Auto, Unroll::By(2)]);
        self.counted_loop(Type::U32, bounds, unroll, false, trips, |g, index| {
            let ptr = g.element_address(place, index);
            let volatile = false;
            let part = g.raw_varying(InstData::Load { ptr, volatile }, place.element);
            let before = g.raw_varying(InstData::VarGet(sum), place.element);
            let next = g.raw_binary(op, before, part);
            g.act(InstData::VarSet(sum, next));
        });
        self.raw_varying(InstData::VarGet(sum), place.element)
    }

    // Chains.

    /// Each block takes over from earlier ones, and hands on.
    fn chain(&mut self, plan: ChainPlan, thread: Value) {
        let sums = self.place_apart(plan.sums);
        let group = self.linear("block_idx", "grid_dim", self.plan.grid);
        let taken = self.declare_var("taken", sums.element, false, true);
        let start = self.constant(sums.element);
        self.act(InstData::VarSet(taken.var, start));
        // One thread waits for its block, or all do.
        let leads = self.leader(thread);
        if self.random.chance(50) {
            self.if_(leads, |g| {
                g.take_over(plan, group, taken.var);
                g.hand_on(plan, group, taken.var);
            });
            let told = self.static_shared(sums.element, 1);
            let zero = self.int(Type::U32, 0);
            self.if_(leads, |g| {
                let value = g.raw_varying(InstData::VarGet(taken.var), sums.element);
                let ptr = g.element_address(&told, zero);
                g.store_at(&told, ptr, value);
            });
            self.act(InstData::Barrier);
            let ptr = self.element_address(&told, zero);
            let value = self.load_at(&told, ptr, false);
            self.mix_in(value);
            return;
        }
        self.take_over(plan, group, taken.var);
        self.if_(leads, |g| g.hand_on(plan, group, taken.var));
    }

    /// Waits for an earlier block, or for all of them, and adds what it has handed on.
    fn take_over(&mut self, plan: ChainPlan, group: Value, taken: Var) {
        if self.random.chance(35) {
            let [zero, one] = [0, 1].map(|n| self.int(Type::U32, n));
            let blocks = self.plan.blocks() as usize;
            let bounds = [zero, group, one];
            return self.counted_loop(Type::U32, bounds, Unroll::Auto, false, blocks, |g, n| {
                g.take_from(plan, n, taken);
            });
        }
        let back = self
            .random
            .within(1, (self.plan.blocks() - 1).min(3) as usize);
        let back = self.int(Type::U32, back as i128);
        let follows = self.compare(CompareOp::Ge, group, back);
        self.if_(follows, |g| {
            let index = g.raw_binary(BinaryOp::Sub, group, back);
            g.take_from(plan, index, taken);
        });
    }

    /// Waits until a block has handed on.
    fn take_from(&mut self, plan: ChainPlan, index: Value, taken: Var) {
        let (sums, ready) = (self.place_apart(plan.sums), self.place_apart(plan.ready));
        let scopes = self.plan.scopes();
        let ptr = self.element_address(&ready, index);
        let fenced = self.random.chance(40);
        let ordering = match fenced {
            true => Ordering::Relaxed,
            false => self
                .random
                .of(&[Ordering::Acquire, Ordering::SequentiallyConsistent]),
        };
        let scope = self.random.of(scopes);
        let body = self.branch(false, |g| {
            let load = InstData::AtomicLoad {
                ptr,
                ordering,
                scope,
            };
            let flag = g.raw_varying(load, plan.flag);
            let zero = g.int(plan.flag, 0);
            let raised = g.compare(CompareOp::Ne, flag, zero);
            g.if_(raised, |g| g.act(InstData::Break { depth: 0 }));
        });
        self.act(InstData::Loop { body });
        if fenced {
            self.acquiring_fence(scopes);
        }
        let ptr = self.element_address(&sums, index);
        let volatile = false;
        let value = self.raw_varying(InstData::Load { ptr, volatile }, sums.element);
        let before = self.raw_varying(InstData::VarGet(taken), sums.element);
        let sum = self.raw_binary(BinaryOp::Add, before, value);
        self.act(InstData::VarSet(taken, sum));
    }

    /// Writes what the block adds to what it has taken over, and says so.
    fn hand_on(&mut self, plan: ChainPlan, group: Value, taken: Var) {
        let (sums, ready) = (self.place_apart(plan.sums), self.place_apart(plan.ready));
        let own = self.expr(sums.element, 2, false);
        let before = self.raw_varying(InstData::VarGet(taken), sums.element);
        let sum = self.raw_binary(BinaryOp::Add, before, own);
        let ptr = self.element_address(&sums, group);
        self.store_at(&sums, ptr, sum);
        let ptr = self.element_address(&ready, group);
        let scopes = self.plan.scopes();
        let mark = self.int(plan.flag, 1);
        self.release(ptr, mark, scopes);
    }

    /// Whether the thread is the one that acts for its block.
    fn leader(&mut self, thread: Value) -> Value {
        let leader = self.random.below(self.plan.threads() as usize) as i128;
        let leader = self.int(Type::U32, leader);
        self.compare(CompareOp::Eq, thread, leader)
    }

    /// What threads do that differ from run to run. Nothing in it may be seen from outside.
    pub(super) fn if_unforeseen(&mut self, cond: Value, f: impl FnOnce(&mut Self)) {
        let unforeseen = std::mem::replace(&mut self.frame.unforeseen, true);
        self.if_(cond, f);
        self.frame.unforeseen = unforeseen;
    }

    /// What only some threads do.
    pub(super) fn if_(&mut self, cond: Value, f: impl FnOnce(&mut Self)) {
        let then_region = self.branch(false, f);
        let else_region = None;
        self.act(InstData::If {
            cond,
            then_region,
            else_region,
        });
    }
}
