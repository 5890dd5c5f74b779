//! Control flow of the kernel being built. A closure describes a region; it runs once, now.

use crate::ir::{BinaryOp, Entity, Inst, InstData, RegionData, Type, Unroll};

use super::{BuildErrorKind, IntoVal, KernelBuilder, OpenRegion, ScopeId, State, Val, Var};

/// An `if` whose `else` can still be described.
#[derive(Copy, Clone)]
pub struct IfThen<'k> {
    builder: &'k KernelBuilder,
    inst: Option<Inst>,
}

impl<'k> IfThen<'k> {
    /// What happens when the condition is false.
    #[track_caller]
    pub fn else_(self, otherwise: impl FnOnce()) {
        let b = self.builder;
        let last = {
            let state = b.state.borrow();
            state.function.regions[state.here()].insts.last().copied()
        };
        if self.inst.is_none() || last != self.inst {
            b.note(BuildErrorKind::DetachedElse);
            return;
        }
        let region = b.region("the `else`", false, otherwise);
        let mut state = b.state.borrow_mut();
        if let Some(inst) = self.inst
            && let InstData::If { else_region, .. } = &mut state.function.insts[inst].data
        {
            *else_region = Some(region);
        }
    }
}

impl KernelBuilder {
    /// Runs `describe` with a new region open, and returns the region.
    #[track_caller]
    fn region(&self, what: &str, is_loop: bool, describe: impl FnOnce()) -> crate::ir::Region {
        let region = self.open(what, is_loop);
        describe();
        self.state.borrow_mut().open.pop();
        region
    }

    #[track_caller]
    fn open(&self, what: &str, is_loop: bool) -> crate::ir::Region {
        let at = self.here();
        let mut state = self.state.borrow_mut();
        let file = state.module.files[at.file].clone();
        let region = state.function.regions.push(RegionData::default());
        let scope = ScopeId(state.scope_names.len());
        state
            .scope_names
            .push(format!("{what} at {file}:{}", at.line));
        state.open.push(OpenRegion {
            region,
            scope,
            is_loop,
        });
        region
    }

    /// Executes what `then` describes in the threads where `cond` is true.
    #[track_caller]
    pub fn if_<'k>(&'k self, cond: impl IntoVal<'k>, then: impl FnOnce()) -> IfThen<'k> {
        let cond = cond.into_val(self, Some(Type::BOOL));
        let cond = self.expect_bool("the condition of `if_`", cond);
        let then_region = self.region("the `if`", false, then);
        let data = InstData::If {
            cond: cond.id,
            then_region,
            else_region: None,
        };
        self.emit(data, Type::UNIT);
        let state = self.state.borrow();
        let inst = state.function.regions[state.here()].insts.last().copied();
        IfThen {
            builder: self,
            inst,
        }
    }

    /// `left && right`, or `left || right` if not `and`. The right side is executed only where the
    /// left one does not decide, unless that makes no difference and is as quick.
    #[track_caller]
    pub(crate) fn short_circuit<'k>(
        &'k self,
        and: bool,
        left: Val<'k>,
        right: impl FnOnce() -> Val<'k>,
    ) -> Val<'k> {
        let what = if and { "`&&`" } else { "`||`" };
        let left = self.expect_bool(what, left);
        let region = self.open(&format!("the right side of {what}"), false);
        let right = self.expect_bool(what, right());
        if self.state.borrow_mut().join_if_quick(region) {
            let op = if and { BinaryOp::And } else { BinaryOp::Or };
            return self.binary(op, left, right);
        }
        let result = self.uninit_var("condition", Type::BOOL);
        result.set(right);
        self.state.borrow_mut().open.pop();
        result.set(left);
        let cond = if and { left } else { !left };
        let data = InstData::If {
            cond: cond.id,
            then_region: region,
            else_region: None,
        };
        self.emit(data, Type::UNIT);
        result.get()
    }

    /// Repeats what `body` describes until a [`KernelBuilder::break_`] or
    /// [`KernelBuilder::return_`].
    #[track_caller]
    pub fn loop_(&self, body: impl FnOnce()) {
        let body = self.region("the `loop`", true, body);
        self.emit(InstData::Loop { body }, Type::UNIT);
    }

    /// Repeats what `body` describes as long as what `cond` describes is true.
    #[track_caller]
    pub fn while_<'k>(&'k self, cond: impl FnOnce() -> Val<'k>, body: impl FnOnce()) {
        let region = self.open("the `while`", true);
        let cond = self.expect_bool("the condition of `while_`", cond());
        self.if_(!cond, || self.break_());
        body();
        self.state.borrow_mut().open.pop();
        self.emit(InstData::Loop { body: region }, Type::UNIT);
    }

    /// Executes what `body` describes for `start`, `start + 1`, ... below `end`. A literal bound
    /// takes the type of the other one.
    #[track_caller]
    pub fn for_range<'k>(
        &'k self,
        start: impl IntoVal<'k>,
        end: impl IntoVal<'k>,
        body: impl FnOnce(Val<'k>),
    ) {
        self.for_loop(start, end, 1, Unroll::Auto, body);
    }

    /// Like [`KernelBuilder::for_range`], with a step (of the type of the bounds, may be negative)
    /// and a wish how to unroll.
    #[track_caller]
    pub fn for_loop<'k>(
        &'k self,
        start: impl IntoVal<'k>,
        end: impl IntoVal<'k>,
        step: impl IntoVal<'k>,
        unroll: Unroll,
        body: impl FnOnce(Val<'k>),
    ) {
        let like = start.own_type().or(end.own_type()).or(step.own_type());
        let (start, end) = self.pair("for", start.into_val(self, like), Typed(end, like));
        let (start, step) = self.pair("for", start, step);
        if !self.is_integer(start.ty) {
            self.wrong_type("`for`", "bounds of an integer type", start, start.ty);
        }
        let recovered = [start, step].iter().any(|bound| self.is_recovered(*bound));
        let region = self.open("the `for`", true);
        let index = {
            let mut state = self.state.borrow_mut();
            let index = state.function.new_index(start.ty);
            state.enter_values();
            if recovered {
                state.recovery.enter(index);
            }
            index
        };
        body(Val {
            builder: self,
            id: index,
            ty: start.ty,
        });
        self.state.borrow_mut().open.pop();
        // The body may have built instructions: the definition moves to the `for` itself.
        let (start, end, step) = (start.id, end.id, step.id);
        self.emit(
            InstData::For {
                index,
                start,
                end,
                step,
                body: region,
                unroll,
            },
            Type::UNIT,
        );
    }

    /// Leaves the innermost loop.
    #[track_caller]
    pub fn break_(&self) {
        self.break_out(0);
    }

    /// Leaves the loop `depth` loops out; 0 is the innermost.
    #[track_caller]
    pub fn break_out(&self, depth: u32) {
        if self.check_loop("break", depth) {
            self.emit(InstData::Break { depth }, Type::UNIT);
        }
    }

    /// Goes on with the next iteration of the innermost loop.
    #[track_caller]
    pub fn continue_(&self) {
        self.continue_out(0);
    }

    /// Goes on with the next iteration of the loop `depth` loops out; 0 is the innermost.
    #[track_caller]
    pub fn continue_out(&self, depth: u32) {
        if self.check_loop("continue", depth) {
            self.emit(InstData::Continue { depth }, Type::UNIT);
        }
    }

    #[track_caller]
    fn check_loop(&self, what: &'static str, depth: u32) -> bool {
        let loops = self
            .state
            .borrow()
            .open
            .iter()
            .filter(|open| open.is_loop)
            .count();
        if loops > depth as usize {
            return true;
        }
        self.note(BuildErrorKind::NoLoop {
            what,
            function: self.name(),
        });
        false
    }

    /// Ends the thread, in a kernel; leaves a device function that returns nothing.
    #[track_caller]
    pub fn return_(&self) {
        self.emit(InstData::Return { value: None }, Type::UNIT);
    }

    /// Leaves a device function with a result. The first `return_value` fixes the result type.
    #[track_caller]
    pub fn return_value<'k>(&'k self, value: impl IntoVal<'k>) {
        let declared = self.state.borrow().function.result;
        let like = (declared != Type::UNIT).then_some(declared);
        let value = value.into_val(self, like);
        if self.is_recovered(value) {
            return;
        }
        if like.is_some_and(|ty| ty != value.ty) {
            let expected = format!(
                "a `{}`, like the first `return_value`",
                self.type_name(declared)
            );
            self.wrong_type("`return_value`", expected, value, declared);
            return;
        }
        self.state.borrow_mut().function.result = value.ty;
        self.emit(
            InstData::Return {
                value: Some(value.id),
            },
            Type::UNIT,
        );
    }

    /// Waits until all threads of the block are here (CUDA guide, `__syncthreads`): every thread
    /// of the block that has not ended must get to the same barrier.
    #[track_caller]
    pub fn barrier(&self) {
        self.emit(InstData::Barrier, Type::UNIT);
    }

    /// Orders this thread's memory accesses as seen by the threads in `scope`, sequentially
    /// consistent (CUDA guide, `__threadfence`).
    #[track_caller]
    pub fn fence(&self, scope: crate::ir::Scope) {
        self.fence_with(crate::ir::Ordering::SequentiallyConsistent, scope);
    }

    /// Orders this thread's memory accesses as seen by the threads in `scope` (PTX ISA, "fence").
    /// A relaxed fence is an error: it orders nothing.
    #[track_caller]
    pub fn fence_with(&self, ordering: crate::ir::Ordering, scope: crate::ir::Scope) {
        self.emit(InstData::Fence { ordering, scope }, Type::UNIT);
    }

    /// Declares a mutable variable with a first value. A literal has its Rust type; for another
    /// one give `k.lit(ty, 0)`.
    #[track_caller]
    pub fn var<'k>(&'k self, name: &str, first: impl IntoVal<'k>) -> Var<'k> {
        let first = first.into_val(self, None);
        let var = self.uninit_var(name, first.ty);
        var.set(first);
        var
    }

    /// Declares a mutable variable that is zero until it is assigned.
    pub fn uninit_var(&self, name: &str, ty: Type) -> Var<'_> {
        let data = crate::ir::VarData {
            name: name.to_owned(),
            ty,
        };
        let var = self.state.borrow_mut().function.vars.push(data);
        Var {
            builder: self,
            var,
            ty,
        }
    }
}

/// How many instructions are worth executing to save a branch.
const QUICK: usize = 8;

impl State {
    /// Moves what is in the innermost open region, `region`, to the one around it and closes it, if
    /// that is quick and executing it where it was not asked for makes no difference.
    fn join_if_quick(&mut self, region: crate::ir::Region) -> bool {
        let insts = self.function.regions[region].insts.clone();
        let harmless = |&inst: &Inst| {
            let data = &self.function.insts[inst].data;
            data.facts(&self.module.intrinsics).is_harmless()
        };
        if self.here() != region || insts.len() > QUICK || !insts.iter().all(harmless) {
            return false;
        }
        self.open.pop();
        let here = self.here();
        let scope = self.open.last().map_or(ScopeId(0), |open| open.scope);
        for &inst in &insts {
            if let Some(value) = self.function.insts[inst].result {
                self.scopes[value.index()] = scope;
            }
        }
        self.function.regions[region].insts.clear();
        self.function.regions[here].insts.extend(insts);
        true
    }
}

/// An operand that takes a given type if it is a literal.
#[derive(Copy, Clone)]
struct Typed<V>(V, Option<Type>);

impl<'k, V: IntoVal<'k>> IntoVal<'k> for Typed<V> {
    fn own_type(&self) -> Option<Type> {
        self.0.own_type()
    }
    #[track_caller]
    fn into_val(self, builder: &'k KernelBuilder, like: Option<Type>) -> Val<'k> {
        self.0.into_val(builder, self.1.or(like))
    }
}
