//! Control flow of the kernel being built. A closure describes a region; it runs once, now.

use crate::ir::{
    BinaryOp, CompareOp, Constant, Entity, Inst, InstData, RegionData, Type, Unroll, Value,
};

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
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let sign = Kernel::build("sign", |k| {
    ///     let x = k.slice_mut("x", k.ty::<i32>());
    ///     let i = k.global_id().x();
    ///     k.if_(i.lt(x.len()), || {
    ///         k.if_(x.at(i).get().lt(0), || x.at(i).set(-1)).else_(|| x.at(i).set(1));
    ///     });
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.upload(&[-7, 7])?;
    /// jit.launch(&sign, 1, 32, args!(&mut x))?;
    /// assert_eq!(x.to_vec()?, [-1, 1]);
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// // The first pair of numbers whose product is `n`.
    /// let factors = Kernel::build("factors", |k| {
    ///     let (n, x) = (k.param("n", k.ty::<u32>()), k.slice_mut("x", k.ty::<u32>()));
    ///     let a = k.var("a", 1u32);
    ///     k.loop_(|| {
    ///         a.set(a + 1);
    ///         let b = k.var("b", 1u32);
    ///         k.loop_(|| {
    ///             b.set(b + 1);
    ///             k.if_(b.get().gt(a), || k.continue_out(1)); // with the next `a`
    ///             k.if_((a * b).ne(n), || k.continue_());
    ///             x.at(0).set(a.get());
    ///             x.at(1).set(b.get());
    ///             k.break_out(1); // out of both
    ///         });
    ///         k.break_(); // nobody comes here
    ///     });
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.zeros::<u32>(2)?;
    /// jit.launch(&factors, 1, 1, args!(35u32, &mut x))?;
    /// assert_eq!(x.to_vec()?, [7, 5]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn loop_(&self, body: impl FnOnce()) {
        let body = self.region("the `loop`", true, body);
        self.emit(InstData::Loop { body }, Type::UNIT);
    }

    /// Repeats what `body` describes as long as what `cond` describes is true.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let gcd = Kernel::build("gcd", |k| {
    ///     let x = k.slice_mut("x", k.ty::<u32>());
    ///     let (a, b) = (k.var("a", x.at(0)), k.var("b", x.at(1)));
    ///     k.while_(|| b.get().ne(0), || {
    ///         let rest = a % b;
    ///         a.set(b);
    ///         b.set(rest);
    ///     });
    ///     x.at(0).set(a);
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.upload(&[84u32, 36])?;
    /// jit.launch(&gcd, 1, 1, args!(&mut x))?;
    /// assert_eq!(x.to_vec()?[0], 12);
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let total = Kernel::build("total", |k| {
    ///     let (x, out) = (k.slice("x", k.ty::<f32>()), k.slice_mut("out", k.ty::<f32>()));
    ///     let sum = k.var("sum", 0.0f32);
    ///     k.for_range(0, x.len(), |i| sum.set(sum + x.at(i)));
    ///     out.at(0).set(sum);
    /// })?;
    /// let jit = Jit::new()?;
    /// let (x, mut out) = (jit.upload(&[1.0f32, 2.0, 3.0])?, jit.zeros::<f32>(1)?);
    /// jit.launch(&total, 1, 1, args!(&x, &mut out))?;
    /// assert_eq!(out.to_vec()?, [6.0]);
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let stride = Kernel::build("stride", |k| {
    ///     let x = k.slice_mut("x", k.ty::<u32>());
    ///     k.for_loop(k.global_id().x(), x.len(), k.global_size().x(), Unroll::By(4), |i| {
    ///         x.at(i).set(i * 2);
    ///     });
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.zeros::<u32>(100)?;
    /// jit.launch(&stride, 2, 16, args!(&mut x))?;
    /// assert_eq!(x.to_vec()?[99], 198);
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let half = DeviceFn::build("half", |k| {
    ///     let x = k.param("x", k.ty::<f32>());
    ///     k.if_(x.lt(0.0), || k.return_value(0.0f32));
    ///     k.return_value(x * 0.5);
    /// })?;
    /// let halves = Kernel::build("halves", |k| {
    ///     let x = k.slice_mut("x", k.ty::<f32>());
    ///     let i = k.global_id().x();
    ///     k.if_(i.ge(x.len()), || k.return_());
    ///     x.at(i).set(k.call(&half, &[x.at(i).get()]));
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.upload(&[-1.0f32, 3.0])?;
    /// jit.launch(&halves, 1, 32, args!(&mut x))?;
    /// assert_eq!(x.to_vec()?, [0.0, 1.5]);
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let reverse = Kernel::build("reverse", |k| {
    ///     let (x, i) = (k.slice_mut("x", k.ty::<u32>()), k.thread_idx().x());
    ///     let tile = k.shared_array("tile", k.ty::<u32>(), 32);
    ///     tile.at(i).set(x.at(i));
    ///     k.barrier();
    ///     x.at(i).set(tile.at(31 - i));
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.upload(&(0..32).collect::<Vec<u32>>())?;
    /// jit.launch(&reverse, 1, 32, args!(&mut x))?;
    /// assert_eq!(x.to_vec()?[..2], [31, 30]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn barrier(&self) {
        self.emit(InstData::Barrier, Type::UNIT);
    }

    /// Says that a condition holds, for the compiler to make use of. Where it does not hold the thread ends, and the
    /// launch is an error, as with an index out of bounds; a kernel that is built
    /// [without checks](super::Kernel::build_unchecked) promises that it holds.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let halves = Kernel::build("halves", |k| {
    ///     let (x, n) = (k.slice_mut("x", k.ty::<u32>()), k.param("n", k.ty::<u32>()));
    ///     k.assume((n % 2u32).eq(0));
    ///     let i = k.global_id().x();
    ///     k.if_(i.lt(n / 2u32), || x.at(i).set(1));
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.zeros::<u32>(4)?;
    /// jit.launch(&halves, 1, 4, args!(&mut x, 2u32))?;
    /// assert_eq!(x.to_vec()?, [1, 0, 0, 0]);
    /// jit.launch(&halves, 1, 4, args!(&mut x, 3u32))?;
    /// assert!(x.to_vec().unwrap_err().to_string().contains("an assumption does not hold"));
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn assume<'k>(&'k self, condition: impl IntoVal<'k>) {
        let cond = condition.into_val(self, Some(Type::BOOL));
        let cond = self.expect_bool("the condition of `assume`", cond).id;
        let data = InstData::Assume {
            cond,
            text: self.written.get().into(),
            checked: !self.options.unchecked,
        };
        self.emit(data, Type::UNIT);
    }

    /// Ends the thread where a condition does not hold: the launch is an error, which has the message. Unlike
    /// [`KernelBuilder::assume`], it is checked in kernels without checks, too.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let halves = Kernel::build("halves", |k| {
    ///     let (x, i) = (k.slice_mut("x", k.ty::<u32>()), k.global_id().x());
    ///     k.if_(i.lt(x.len()), || {
    ///         k.assert((x.at(i).get() % 2u32).eq(0), "a number is odd");
    ///         x.at(i).set(x.at(i).get() / 2u32);
    ///     });
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.upload(&[2u32, 5, 8])?;
    /// jit.launch(&halves, 1, 4, args!(&mut x))?;
    /// let error = x.to_vec().unwrap_err().to_string();
    /// assert!(error.contains("panicked: a number is odd (block 0x0x0, thread 1x0x0)"), "{error}");
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn assert<'k>(&'k self, condition: impl IntoVal<'k>, message: &str) {
        let cond = condition.into_val(self, Some(Type::BOOL));
        let cond = self.expect_bool("the condition of `assert`", cond);
        self.assertion(cond, message, None);
    }

    /// Ends the thread where two numbers are not equal: the launch is an error, which has the message and both.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let same = Kernel::build("same", |k| {
    ///     let (x, y) = (k.slice("x", k.ty::<i32>()), k.slice("y", k.ty::<i32>()));
    ///     let i = k.global_id().x();
    ///     k.assert_eq(x.at(i), y.at(i), "they differ");
    /// })?;
    /// let jit = Jit::new()?;
    /// let (x, y) = (jit.upload(&[1, 2])?, jit.upload(&[1, -2])?);
    /// jit.launch(&same, 1, 2, args!(&x, &y))?;
    /// let error = jit.synchronize().unwrap_err().to_string();
    /// assert!(error.contains("panicked: they differ (left: 2, right: -2)"), "{error}");
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn assert_eq<'k>(&'k self, left: impl IntoVal<'k>, right: impl IntoVal<'k>, message: &str) {
        self.assert_compared(CompareOp::Eq, left, right, message);
    }

    /// Ends the thread where two numbers are equal, as [`KernelBuilder::assert_eq`] does where they are not.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let divide = Kernel::build("divide", |k| {
    ///     let (x, n) = (k.slice_mut("x", k.ty::<u32>()), k.param("n", k.ty::<u32>()));
    ///     k.assert_ne(n, 0, "the divisor is 0");
    ///     x.at(0).set(x.at(0).get() / n);
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.upload(&[12u32])?;
    /// jit.launch(&divide, 1, 1, args!(&mut x, 4u32))?;
    /// assert_eq!(x.to_vec()?, [3]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn assert_ne<'k>(&'k self, left: impl IntoVal<'k>, right: impl IntoVal<'k>, message: &str) {
        self.assert_compared(CompareOp::Ne, left, right, message);
    }

    /// Ends the thread: the launch is an error, which has the message. Other threads go on.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let sign = Kernel::build("sign", |k| {
    ///     let x = k.slice_mut("x", k.ty::<i32>());
    ///     k.if_(x.at(0).get().lt(0), || k.panic("there is a negative number"));
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.upload(&[-1])?;
    /// jit.launch(&sign, 1, 1, args!(&mut x))?;
    /// let error = x.to_vec().unwrap_err().to_string();
    /// assert!(error.contains("panicked: there is a negative number"), "{error}");
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn panic(&self, message: &str) {
        let never = self.constant(Constant::Bool(false), Type::BOOL);
        self.assertion(never, message, None);
    }

    /// Prints numbers and bools by a format of [`std::fmt`], on the standard output of the host: after the next call
    /// there that waits for the launch. A thread's texts are in its order; those of several threads are in any. There is
    /// room for a mebibyte of them; what finds none is counted. [`JitBuilder::on_print`] has them instead.
    ///
    /// The formats have fill and alignment, `+`, `#`, `0`, width, precision, and `?`, `x`, `X`, `o`, `b`, `e`, `E`.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let show = Kernel::build("show", |k| {
    ///     let (x, i) = (k.slice("x", k.ty::<f32>()), k.global_id().x());
    ///     k.print("x[{}] = {:.2}\n", &[i, x.at(i).get()]);
    ///     k.if_(i.eq(0), || k.eprint("there are {}\n", &[x.len()]));
    /// })?;
    /// let jit = Jit::new()?;
    /// let x = jit.upload(&[0.5f32, 1.25])?;
    /// jit.launch(&show, 1, 2, args!(&x))?;
    /// jit.synchronize()?; // x[0] = 0.50, x[1] = 1.25
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`JitBuilder::on_print`]: https://docs.rs/kiln-jit/latest/kiln/struct.JitBuilder.html#method.on_print
    #[track_caller]
    pub fn print(&self, format: &str, values: &[Val<'_>]) {
        self.print_to(format, values, false);
    }

    /// Prints as [`KernelBuilder::print`] does, on the standard error output of the host.
    #[track_caller]
    pub fn eprint(&self, format: &str, values: &[Val<'_>]) {
        self.print_to(format, values, true);
    }

    #[track_caller]
    pub(crate) fn print_to(&self, format: &str, values: &[Val<'_>], to_stderr: bool) {
        let data = InstData::Print {
            format: format.into(),
            values: values.iter().map(|value| self.adopt(*value).id).collect(),
            to_stderr,
        };
        self.emit(data, Type::UNIT);
    }

    #[track_caller]
    pub(crate) fn assert_compared<'k>(
        &'k self,
        op: CompareOp,
        left: impl IntoVal<'k>,
        right: impl IntoVal<'k>,
        message: &str,
    ) {
        let (left, right) = self.pair("an assertion", left, right);
        let holds = self.compare(op, left, right);
        let holds = self.expect_bool("what is compared in an assertion", holds);
        self.assertion(holds, message, Some([left.id, right.id]));
    }

    #[track_caller]
    fn assertion(&self, cond: Val<'_>, message: &str, values: Option<[Value; 2]>) {
        let data = InstData::Assert {
            cond: cond.id,
            message: message.into(),
            values,
        };
        self.emit(data, Type::UNIT);
    }

    /// Has what is assumed in `describe` be told by a text of the program.
    pub(crate) fn written<R>(&self, text: &'static str, describe: impl FnOnce() -> R) -> R {
        let before = self.written.replace(text);
        let result = describe();
        self.written.set(before);
        result
    }

    /// The text that is told of what is described now.
    #[doc(hidden)]
    pub fn written_text(&self) -> &'static str {
        self.written.get()
    }

    /// Orders this thread's memory accesses as seen by the threads in `scope`, sequentially
    /// consistent (CUDA guide, `__threadfence`).
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// use kiln::core::ir::Ordering;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let publish = Kernel::build("publish", |k| {
    ///     let (data, flag) = (k.slice_mut("data", k.ty::<u32>()), k.slice_mut("flag", k.ty::<u32>()));
    ///     data.at(0).set(42);
    ///     k.fence_with(Ordering::Release, Scope::Device); // or `k.fence(Scope::Device)`, which orders more
    ///     flag.at(0).atomic_store(1, Ordering::Relaxed, Scope::Device);
    ///     k.fence(Scope::Device);
    /// })?;
    /// let jit = Jit::new()?;
    /// let (mut data, mut flag) = (jit.zeros::<u32>(1)?, jit.zeros::<u32>(1)?);
    /// jit.launch(&publish, 1, 1, args!(&mut data, &mut flag))?;
    /// assert_eq!(flag.to_vec()?, [1]);
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let largest = Kernel::build("largest", |k| {
    ///     let t = k.type_param("T").num();
    ///     let x = k.slice_mut("x", t);
    ///     let found = k.var("found", x.at(0));
    ///     let count = k.uninit_var("count", t); // 0
    ///     k.for_range(1, x.len(), |i| {
    ///         found.set(found.get().max(x.at(i)));
    ///         count.set(count + 1);
    ///     });
    ///     x.at(0).set(found);
    ///     x.at(1).set(count);
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.upload(&[3.0f32, 8.0, 5.0])?;
    /// jit.launch(&largest, 1, 1, args!(&mut x))?;
    /// assert_eq!(x.to_vec()?[..2], [8.0, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
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
