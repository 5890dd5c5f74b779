//! What a function chooses of what is usually left to the compilation.

use crate::ir::{Bounds, FastMath, FunctionKind, Unroll};

use super::{BuildErrorKind, KernelBuilder};

impl KernelBuilder {
    /// Has an index out of bounds end its thread in this kernel and all that it calls, whatever the compile
    /// options say.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// use kiln::core::job::CompileOptions;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let set = Kernel::build("set", |k| {
    ///     k.checked();
    ///     k.slice_mut("x", k.ty::<u32>()).at(2).set(1);
    /// })?;
    /// let jit = Jit::builder().compile(CompileOptions::default().clamped()).build()?;
    /// let mut x = jit.zeros::<u32>(2)?;
    /// jit.launch(&set, 1, 1, args!(&mut x))?;
    /// assert!(x.to_vec().unwrap_err().to_string().contains("index 2"));
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn checked(&self) {
        self.bounds(Bounds::Checked);
    }

    /// Has an index out of bounds be that of the last element, in this kernel and all that it calls. An access
    /// of a slice without elements still ends its thread, as do wrong bounds of a part of a slice. Without any
    /// checks kernels are built by [`Kernel::build_unchecked`](super::Kernel::build_unchecked).
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let shifted = Kernel::build("shifted", |k| {
    ///     k.clamped();
    ///     let (x, y) = (k.slice("x", k.ty::<f32>()), k.slice_mut("y", k.ty::<f32>()));
    ///     let i = k.global_id().x();
    ///     k.if_(i.lt(y.len()), || y.at(i).set(x.at(i + 1)));
    /// })?;
    /// let jit = Jit::new()?;
    /// let (x, mut y) = (jit.upload(&[1.0f32, 2.0, 4.0])?, jit.zeros::<f32>(3)?);
    /// jit.launch(&shifted, 1, 32, args!(&x, &mut y))?;
    /// assert_eq!(y.to_vec()?, [2.0, 4.0, 4.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn clamped(&self) {
        self.bounds(Bounds::Clamped);
    }

    #[track_caller]
    fn bounds(&self, bounds: Bounds) {
        if self.is_kernel(
            "what an index out of bounds does is said by the kernel, for all that it calls",
        ) {
            self.state.borrow_mut().function.choices.bounds = Some(bounds);
        }
    }

    /// Lets the floats of this function do what the flags permit, and those of all that it calls if it is a
    /// kernel.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// use kiln::core::ir::FastMath;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let divide = Kernel::build("divide", |k| {
    ///     k.fast_math(FastMath::APPROXIMATE | FastMath::FLUSH);
    ///     let (x, by) = (k.slice_mut("x", k.ty::<f32>()), k.param("by", k.ty::<f32>()));
    ///     let i = k.global_id().x();
    ///     k.if_(i.lt(x.len()), || x.at(i).set(x.at(i) / by));
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.upload(&[1.0f32])?;
    /// jit.launch(&divide, 1, 32, args!(&mut x, 3.0f32))?;
    /// assert!((x.to_vec()?[0] - 1.0 / 3.0).abs() < 1e-6);
    /// # Ok(())
    /// # }
    /// ```
    pub fn fast_math(&self, flags: FastMath) {
        let choices = &mut self.state.borrow_mut().function.choices;
        choices.fast = choices.fast | flags;
    }

    /// Lets the floats that are computed in `describe` do what the flags permit; what it calls does what it
    /// says itself. [`FastMath::FLUSH`] is of whole kernels, and an error here.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// use kiln::core::ir::FastMath;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let norm = Kernel::build("norm", |k| {
    ///     let (x, y) = (k.slice_mut("x", k.ty::<f32>()), k.slice("y", k.ty::<f32>()));
    ///     let scale = k.fast(FastMath::APPROXIMATE, || 3.0 / y.at(0));
    ///     x.at(0).set(x.at(0) * scale); // exact
    /// })?;
    /// let jit = Jit::new()?;
    /// let (mut x, y) = (jit.upload(&[2.0f32])?, jit.upload(&[4.0f32])?);
    /// jit.launch(&norm, 1, 1, args!(&mut x, &y))?;
    /// assert!((x.to_vec()?[0] - 1.5).abs() < 1e-6);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn fast<R>(&self, flags: FastMath, describe: impl FnOnce() -> R) -> R {
        if flags.has(FastMath::FLUSH) {
            let message = "numbers are flushed to zero in whole kernels; say so by `fast_math`";
            self.note(BuildErrorKind::Declaration(message.to_owned()));
        }
        let before = self.fast.get();
        self.fast.set(before | flags.of_expressions());
        let result = describe();
        self.fast.set(before);
        result
    }

    /// Limits the registers of a thread to a number from 16 to 255: more threads are resident on a
    /// multiprocessor of NVIDIA's GPUs, and what does not fit lies in local memory. It changes no result, and
    /// means nothing to the CPU, whose registers nobody shares.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// use kiln::core::target::{PtxTarget, Target};
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let double = Kernel::build("double", |k| {
    ///     k.max_registers(32);
    ///     let x = k.slice_mut("x", k.ty::<f32>());
    ///     x.at(k.global_id().x()).set(x.at(k.global_id().x()) * 2.0);
    /// })?;
    /// let target = Target::Ptx(PtxTarget::for_sm(90));
    /// let jit = Jit::builder().device(Device::cpu()).target(target).build()?;
    /// let mut x = jit.zeros::<f32>(1)?;
    /// assert!(jit.inspect(&double, args!(&mut x))?.ptx()?.contains(".maxnreg 32"));
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn max_registers(&self, registers: u32) {
        if self.is_kernel("registers are limited by the kernel, for all that it calls") {
            self.state.borrow_mut().function.choices.max_registers = registers;
        }
    }

    /// Has loops of this kernel and of all that it calls be unrolled so that do not say it themselves: not at all, or
    /// by a factor from 1 to 1024. It changes no result. On CPUs it holds for loops
    /// whose bounds are the same in all threads of a warp.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let sum = Kernel::build("sum", |k| {
    ///     k.unroll(Unroll::Never);
    ///     let x = k.slice_mut("x", k.ty::<f32>());
    ///     k.for_range(1, x.len(), |i| x.at(0).set(x.at(0) + x.at(i)));
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.upload(&[1.0f32, 2.0, 3.0])?;
    /// assert!(jit.inspect(&sum, args!(&mut x))?.ir().contains("unroll(never)"));
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn unroll(&self, unroll: Unroll) {
        if self.is_kernel("how loops are unrolled is said by the kernel, for all that it calls") {
            self.state.borrow_mut().function.choices.unroll = unroll;
        }
    }

    /// Has functions be inlined in this kernel up to a cost, those that do not say it themselves by
    /// [`KernelBuilder::inline`]. The cost is LLVM's, about five for an instruction. It changes no result; code for CPUs
    /// has no calls.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let double = Kernel::build("double", |k| {
    ///     k.inline_threshold(0);
    ///     let x = k.slice_mut("x", k.ty::<f32>());
    ///     x.at(0).set(x.at(0) * 2.0);
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.zeros::<f32>(1)?;
    /// assert!(jit.inspect(&double, args!(&mut x))?.ir().contains("inline_threshold(0)"));
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn inline_threshold(&self, cost: u32) {
        if self
            .is_kernel("what is inlined by its cost is said by the kernel, for all that it calls")
        {
            self.state.borrow_mut().function.choices.inline_threshold = Some(cost);
        }
    }

    /// Whether this is a kernel; otherwise that is noted.
    #[track_caller]
    fn is_kernel(&self, otherwise: &str) -> bool {
        let is_kernel = self.state.borrow().function.kind == FunctionKind::Kernel;
        if !is_kernel {
            self.note(BuildErrorKind::Declaration(otherwise.to_owned()));
        }
        is_kernel
    }
}
