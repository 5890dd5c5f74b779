//! Statements: variables, branches, loops and jumps.

use kiln_jit_core::ir::{
    BinaryOp, CompareOp, InstData, Ordering, Region, Scalar, Scope, Type, Unroll, Value, VarData,
};

use super::{Generator, LoopAround, Variable};

/// Where a function may return besides at its end.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Returns {
    /// Wherever it likes.
    Anywhere,
    /// Where all threads of the block return together: it has barriers, and others wait for those
    /// that return.
    Together,
    /// Nowhere.
    Never,
}

/// A kind of statement.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Kind {
    Let,
    Assign,
    Store,
    Load,
    If,
    For,
    Loop,
    Jump,
    Return,
    Atomic,
    Barrier,
    Section,
    Reduction,
    Local,
    Fence,
    Call,
    Mail,
    Slots,
}

const KINDS: [(usize, Kind); 18] = [
    (5, Kind::Let),
    (15, Kind::Assign),
    (7, Kind::Store),
    (4, Kind::Load),
    (12, Kind::If),
    (7, Kind::For),
    (7, Kind::Loop),
    (9, Kind::Jump),
    (3, Kind::Return),
    (3, Kind::Atomic),
    (2, Kind::Barrier),
    (7, Kind::Section),
    (1, Kind::Reduction),
    (3, Kind::Local),
    (1, Kind::Fence),
    (4, Kind::Call),
    (10, Kind::Mail),
    (25, Kind::Slots),
];

impl Generator {
    /// One statement of a kind that can be here.
    pub(super) fn statement(&mut self) {
        if self.plan.warps && self.random.chance(15) {
            return self.warp_statement();
        }
        let frame = &self.frame;
        let deeper = frame.depth < self.budget.depth;
        let kinds = KINDS.map(|(weight, kind)| {
            let possible = match kind {
                Kind::If => deeper,
                Kind::For | Kind::Loop => deeper && self.trips() > 0,
                Kind::Jump => !self.targets().is_empty(),
                Kind::Return => match frame.returns {
                    Returns::Anywhere => true,
                    Returns::Together => frame.uniform,
                    Returns::Never => false,
                },
                Kind::Barrier => frame.uniform,
                Kind::Section => frame.uniform && self.has_shared(),
                Kind::Reduction => frame.uniform && self.has_shared() && frame.repeats < 4,
                Kind::Call => !self.callees.is_empty(),
                Kind::Mail => frame.mail.is_some(),
                Kind::Slots => frame.members.is_some() && !frame.slots.is_empty(),
                _ => true,
            };
            (if possible { weight } else { 0 }, kind)
        });
        match self.random.weighted(&kinds) {
            Kind::Let => self.let_statement(),
            Kind::Assign => self.assign_statement(),
            Kind::Store => self.store_statement(),
            Kind::Load => self.load_statement(),
            Kind::If => self.if_statement(),
            Kind::For => self.for_statement(),
            Kind::Loop => self.loop_statement(),
            Kind::Jump => self.jump_statement(),
            Kind::Return => self.return_statement(),
            Kind::Atomic => self.atomic_statement(),
            Kind::Barrier => self.act(InstData::Barrier),
            Kind::Section => self.section_statement(),
            Kind::Reduction => self.reduction_statement(),
            Kind::Local => self.local_statement(),
            Kind::Fence => self.fence_statement(),
            Kind::Call => self.call_statement(),
            Kind::Mail => self.mail_statement(),
            Kind::Slots => self.slots_statement(),
        }
    }

    /// Up to `count` statements.
    pub(super) fn statements(&mut self, count: usize) {
        for _ in 0..count {
            if self.frame.ended || self.frame.left <= 0 {
                return;
            }
            self.statement();
        }
    }

    /// A value of some type.
    pub(super) fn let_statement(&mut self) {
        let ty = self.any_type();
        let uniform = self.random.chance(20);
        let value = self.expr(ty, 2, uniform);
        if ty.is_int() && self.apart.chance(25) {
            self.assumption(value);
        }
    }

    fn fence_statement(&mut self) {
        let ordering = self.random.of(&[
            Ordering::Acquire,
            Ordering::Release,
            Ordering::AcquireRelease,
            Ordering::SequentiallyConsistent,
        ]);
        let scope = self.random.of(&Scope::ALL);
        self.act(InstData::Fence { ordering, scope });
    }

    // Variables.

    /// Some variables, of which some are not assigned here.
    pub(super) fn declare_vars(&mut self, kernel: bool) {
        for i in 0..self.random.within(1, 4) {
            let ty = self.any_type();
            let uniform = self.frame.uniform && self.random.chance(25);
            let variable = self.declare_var(&format!("v{i}"), ty, uniform, false);
            if self.random.chance(if kernel { 45 } else { 30 }) {
                let value = self.expr(ty, 1, uniform);
                self.act(InstData::VarSet(variable.var, value));
            }
        }
    }

    pub(super) fn declare_var(
        &mut self,
        name: &str,
        ty: Type,
        uniform: bool,
        reserved: bool,
    ) -> Variable {
        let name = name.to_owned();
        let var = self.frame.function.vars.push(VarData { name, ty });
        let variable = Variable {
            var,
            ty,
            uniform,
            reserved,
        };
        self.frame.vars.push(variable);
        variable
    }

    /// The value of a variable.
    pub(super) fn get(&mut self, variable: Variable) -> Value {
        let value = self.emit(InstData::VarGet(variable.var), variable.ty);
        self.frame.set_uniform(value, variable.uniform);
        value
    }

    /// The value of a variable of type `ty`, if there is one.
    pub(super) fn variable_of(&mut self, ty: Type, uniform: bool) -> Option<Value> {
        let fits = |v: &&Variable| v.ty == ty && (v.uniform || !uniform);
        let found: Vec<Variable> = self.frame.vars.iter().filter(fits).copied().collect();
        if found.is_empty() {
            return None;
        }
        let variable = self.random.of(&found);
        Some(self.get(variable))
    }

    /// Assigns a variable.
    pub(super) fn assign_statement(&mut self) {
        let here = self.frame.uniform;
        let fits = |v: &&Variable| !v.reserved && (here || !v.uniform);
        let found: Vec<Variable> = self.frame.vars.iter().filter(fits).copied().collect();
        if found.is_empty() {
            return self.let_statement();
        }
        let variable = self.random.of(&found);
        let value = self.expr(variable.ty, 2, variable.uniform);
        self.assign(variable, value);
    }

    /// Assigns a variable; often together with what it was, so that this is seen in the end.
    pub(super) fn assign(&mut self, variable: Variable, value: Value) {
        use BinaryOp::{Add, Mul, Sub, Xor};
        let ty = variable.ty;
        let value = match ty.as_scalar() {
            Some(scalar) if self.random.chance(60) => {
                let before = self.get(variable);
                let op = match scalar {
                    Scalar::Bool => Xor,
                    s if s.is_float() => self.random.of(&[Add, Sub]),
                    _ => self.random.of(&[Add, Sub, Xor, Mul]),
                };
                self.binary(op, before, value)
            }
            _ => value,
        };
        self.act(InstData::VarSet(variable.var, value));
    }

    // Branches.

    fn if_statement(&mut self) {
        let uniform = self.frame.uniform && self.random.chance(50);
        let cond = self.condition(2, uniform);
        let then_region = self.branch(uniform, |g| g.some_statements());
        let other = self.random.chance(45);
        let else_region = other.then(|| self.branch(uniform, |g| g.some_statements()));
        self.act(InstData::If {
            cond,
            then_region,
            else_region,
        });
    }

    /// What a branch decides on: the same for all threads, or most likely not.
    pub(super) fn condition(&mut self, depth: usize, uniform: bool) -> Value {
        if !uniform && self.random.chance(35) {
            return self.some_of_threads();
        }
        let cond = self.expr(Type::BOOL, depth, uniform);
        match !uniform && self.frame.is_uniform(cond) && self.random.chance(85) {
            true => self.some_of_threads(),
            false => cond,
        }
    }

    /// A condition on the low bits of a number that differs between threads, or on which thread it is.
    fn some_of_threads(&mut self) -> Value {
        if self.random.chance(15) {
            return self.one_thread();
        }
        let ty = match self.random.chance(60) {
            true => Type::U32,
            false => self.int_type(),
        };
        let number = self.leaf(ty, false);
        let bits = self.random.of(&[1, 1, 2, 3]);
        let mask = self.int(ty, (1 << bits) - 1);
        let low = self.raw_binary(BinaryOp::And, number, mask);
        let limit = self.random.below(1 << bits) as i128;
        let limit = self.int(ty, limit);
        let op = self
            .random
            .of(&[CompareOp::Eq, CompareOp::Ne, CompareOp::Le, CompareOp::Gt]);
        self.compare(op, low, limit)
    }

    /// A condition that one thread of a row fulfils, sometimes with another one.
    fn one_thread(&mut self) -> Value {
        let mut number = self.position("thread_idx.x");
        let mut which = self.random.below(self.plan.block[0] as usize) as i128;
        if self.random.chance(40) {
            let more = self.random.of(&[1, 7, 100]);
            let step = self.int(Type::U32, more);
            number = self.raw_binary(BinaryOp::Add, number, step);
            which += more;
        }
        let which = self.int(Type::U32, which);
        let args = match self.random.chance(50) {
            true => (number, which),
            false => (which, number),
        };
        let this = self.compare(CompareOp::Eq, args.0, args.1);
        if self.random.chance(60) {
            return this;
        }
        let other = self.expr(Type::BOOL, 1, false);
        self.raw_binary(BinaryOp::And, this, other)
    }

    /// A region that only some threads come to, unless `uniform`.
    pub(super) fn branch(&mut self, uniform: bool, f: impl FnOnce(&mut Self)) -> Region {
        self.region(|g| {
            g.frame.uniform &= uniform;
            g.frame.members = g.frame.members.filter(|_| uniform);
            f(g);
        })
    }

    pub(super) fn some_statements(&mut self) {
        let count = self.random.within(1, 4);
        self.statements(count);
        // Sometimes a branch ends in a jump, without a condition of its own.
        if !self.frame.ended && self.random.chance(10) && !self.targets().is_empty() {
            self.jump();
        }
    }

    // Jumps.

    /// The loops that can be left or continued from here, as depths: where not all threads come by,
    /// only loops that not all have to go through together.
    fn targets(&self) -> Vec<u32> {
        let loops = self.frame.loops.iter().rev().enumerate();
        let fits = |&(_, around): &(usize, &LoopAround)| self.frame.uniform || !around.uniform;
        loops.filter(fits).map(|(depth, _)| depth as u32).collect()
    }

    /// A `break` or `continue`.
    fn jump(&mut self) {
        let targets = self.targets();
        let depth = match self.random.chance(40) {
            true => targets[0],
            false => self.random.of(&targets),
        };
        let jump = match self.random.chance(55) {
            true => InstData::Break { depth },
            false => InstData::Continue { depth },
        };
        self.act(jump);
    }

    fn jump_statement(&mut self) {
        let uniform = self.frame.uniform;
        let cond = self.condition(1, uniform);
        let then_region = self.branch(uniform, |g| {
            if g.random.chance(50) {
                g.statements(1);
            }
            if !g.frame.ended {
                g.jump();
            }
        });
        let else_region = None;
        self.act(InstData::If {
            cond,
            then_region,
            else_region,
        });
    }

    fn return_statement(&mut self) {
        let uniform = self.frame.returns == Returns::Together;
        let cond = match self.known_guard() {
            Some(guard) if !uniform => guard,
            _ => self.condition(1, uniform),
        };
        let then_region = self.branch(uniform, |g| {
            if g.random.chance(40) {
                g.statements(1);
            }
            if !g.frame.ended {
                g.leave();
            }
        });
        let else_region = None;
        self.act(InstData::If {
            cond,
            then_region,
            else_region,
        });
    }

    /// Sometimes the guard that most kernels begin with: the index is at or beyond a parameter.
    fn known_guard(&mut self) -> Option<Value> {
        let u32s = |v: &&Value| self.frame.ty(**v) == Type::U32;
        let known: Vec<Value> = self.frame.pool.iter().filter(u32s).copied().collect();
        if known.is_empty() || self.random.chance(50) {
            return None;
        }
        let (a, b) = (self.random.of(&known), self.random.of(&known));
        Some(self.compare(CompareOp::Ge, a, b))
    }

    /// A `return` with what the function returns.
    pub(super) fn leave(&mut self) {
        let ty = self.frame.function.result;
        let value = match ty {
            Type::UNIT => None,
            _ => Some(self.expr(ty, 1, false)),
        };
        self.act(InstData::Return { value });
    }

    // Loops.

    /// How many iterations a loop here may make.
    fn trips(&self) -> usize {
        let trips = self.budget.trips;
        match self.frame.repeats {
            1 => trips,
            2..=8 => trips.min(4),
            9..=32 => trips.min(2),
            _ => 0,
        }
    }

    /// A `for` with what `body` emits for an index.
    pub(super) fn counted_loop(
        &mut self,
        ty: Type,
        [start, end, step]: [Value; 3],
        unroll: Unroll,
        uniform: bool,
        trips: usize,
        body: impl FnOnce(&mut Self, Value),
    ) {
        let index = self.frame.function.new_index(ty);
        let same = [start, end, step].iter().all(|v| self.frame.is_uniform(*v));
        self.frame.set_uniform(index, same);
        let body = self.repeated(uniform, trips, |g| {
            g.frame.pool.push(index);
            body(g, index);
        });
        self.act(InstData::For {
            index,
            start,
            end,
            step,
            body,
            unroll,
        });
    }

    /// A region that is repeated.
    fn repeated(&mut self, uniform: bool, trips: usize, f: impl FnOnce(&mut Self)) -> Region {
        self.frame.loops.push(LoopAround { uniform });
        let repeats = self.frame.repeats;
        self.frame.repeats = repeats * trips.max(1);
        let region = self.branch(uniform, f);
        self.frame.repeats = repeats;
        self.frame.loops.pop();
        region
    }

    /// A number up to `trips`, which differs between threads unless `uniform`.
    fn trip_count(&mut self, ty: Type, trips: usize, uniform: bool) -> Value {
        if self.random.chance(25) {
            let n = self.random.within(1, trips) as i128;
            return self.int(ty, n);
        }
        let any = self.expr(ty, 1, uniform);
        let mask = (trips + 2).next_power_of_two() / 2 - 1;
        let mask = self.int(ty, mask as i128);
        self.raw_binary(BinaryOp::And, any, mask)
    }

    fn for_statement(&mut self) {
        // Lanes that come by together make the same iterations if the bounds are the same.
        let together = self.frame.uniform || self.frame.members.is_some();
        let uniform = together && self.random.chance(50);
        let ty = self.int_type();
        let trips = self.trips();
        let bounds = self.bounds(ty, trips, uniform);
        let unroll = self.random.of(&[
            Unroll::Auto,
            Unroll::Auto,
            Unroll::Never,
            Unroll::Full,
            Unroll::By(2),
        ]);
        self.counted_loop(ty, bounds, unroll, uniform, trips, |g, _| g.loop_body());
    }

    /// Statements of a loop: often a loop in the loop, and jumps.
    fn loop_body(&mut self) {
        self.some_statements();
        if !self.frame.ended
            && self.random.chance(30)
            && self.trips() > 0
            && self.frame.depth < self.budget.depth
        {
            match self.random.chance(50) {
                true => self.for_statement(),
                false => self.loop_statement(),
            }
        }
        if !self.frame.ended && self.random.chance(30) && !self.targets().is_empty() {
            self.jump_statement();
        }
        if !self.frame.ended && self.random.chance(50) {
            self.assign_statement();
        }
    }

    /// Start, end and step of a `for` of at most `trips` iterations.
    fn bounds(&mut self, ty: Type, trips: usize, uniform: bool) -> [Value; 3] {
        let scalar = ty.as_scalar().unwrap_or(Scalar::U32);
        let signed = scalar.is_signed_int();
        let bits = scalar.bits() - u32::from(signed);
        let max = (1i128 << bits) - 1;
        match self.random.below(8) {
            // From anywhere: where the end overflows there is no iteration.
            0 => {
                let start = self.expr(ty, 1, uniform);
                let count = self.trip_count(ty, trips, uniform);
                let end = self.raw_binary(BinaryOp::Add, start, count);
                [start, end, self.int(ty, 1)]
            }
            1 if signed => {
                let start = self.expr(ty, 1, uniform);
                let count = self.trip_count(ty, trips, uniform);
                let end = self.raw_binary(BinaryOp::Sub, start, count);
                [start, end, self.int(ty, -1)]
            }
            2 if signed => {
                let start = self.trip_count(ty, trips, uniform);
                let step = -(self.random.within(1, 3) as i128);
                [start, self.int(ty, 0), self.int(ty, step)]
            }
            // The index would overflow its type.
            3 => {
                let step = self.random.within(2, 5) as i128;
                let start = max - self.random.within(1, trips) as i128;
                [self.int(ty, start), self.int(ty, max), self.int(ty, step)]
            }
            // A step that may be 0.
            4 => {
                let step = self.trip_count(ty, 3, uniform);
                [self.int(ty, 0), self.int(ty, trips as i128), step]
            }
            _ => {
                let start = self.random.below(2) as i128;
                let end = self.trip_count(ty, trips, uniform);
                let step = self.random.within(1, 2) as i128;
                [self.int(ty, start), end, self.int(ty, step)]
            }
        }
    }

    /// A `loop` with a counter, so that it ends; and often it ends before.
    fn loop_statement(&mut self) {
        let uniform = self.frame.uniform && self.random.chance(50);
        let ty = self.int_type();
        let trips = self.trips();
        let limit = self.trip_count(ty, trips, uniform);
        let counter = self.declare_var("count", ty, uniform, true);
        let zero = self.int(ty, 0);
        self.act(InstData::VarSet(counter.var, zero));
        let body = self.repeated(uniform, trips, |g| {
            g.loop_guard(counter, limit, uniform);
            g.loop_body();
        });
        self.act(InstData::Loop { body });
    }

    /// Leaves the loop, or sometimes the function, when the counter is at the limit; else counts.
    fn loop_guard(&mut self, counter: Variable, limit: Value, uniform: bool) {
        // Counted first, so that no `continue` goes around it.
        let count = self.get(counter);
        let one = self.int(counter.ty, 1);
        let next = self.raw_binary(BinaryOp::Add, count, one);
        self.act(InstData::VarSet(counter.var, next));
        let exits = self.frame.returns == Returns::Anywhere && self.random.chance(4);
        let leave = |g: &mut Self| match exits && !uniform {
            true => g.leave(),
            false => g.act(InstData::Break { depth: 0 }),
        };
        let (cond, then_region, else_region) = if self.random.chance(75) {
            let cond = self.compare(CompareOp::Ge, count, limit);
            (cond, self.branch(uniform, leave), None)
        } else {
            let cond = self.compare(CompareOp::Lt, count, limit);
            let go_on = self.branch(uniform, |g| g.statements(1));
            (cond, go_on, Some(self.branch(uniform, leave)))
        };
        self.act(InstData::If {
            cond,
            then_region,
            else_region,
        });
    }
}
