//! What a builder makes: kernels and device functions, which can be redefined.

use std::panic::Location as RustLocation;
use std::sync::Arc;

use crate::definition::{
    Body, Content, CurrentSnapshot, Definition, Fingerprint, ModuleError, Overlays, Snapshot,
};
use crate::error::Error;
use crate::ir::{
    FuncId, Function, FunctionKind, InstData, IntrinsicDef, Location, Module, Type, parse_file,
};
use crate::specialize;

use super::{BuildErrors, BuildOptions, DescriptionId, KernelBuilder};

/// A kernel: what `Jit::launch` launches. Cheap to clone; clones are the same kernel.
///
/// ```
/// use kiln::prelude::*;
///
/// # fn main() -> kiln::Result<()> {
/// let fill = Kernel::build("fill", |k| {
///     let x = k.slice_mut("x", k.ty::<u32>());
///     k.if_(k.thread_idx().x().lt(x.len()), || x.at(k.thread_idx().x()).set(1));
/// })?;
/// let jit = Jit::new()?;
/// let mut x = jit.zeros::<u32>(2)?;
/// jit.launch(&fill, 1, 32, args!(&mut x))?;
/// // From now on it is another one, through whichever clone.
/// fill.clone().redefine(|k| {
///     let x = k.slice_mut("x", k.ty::<u32>());
///     x.at(0).set(x.at(0) + x.at(1));
/// })?;
/// jit.launch(&fill, 1, 1, args!(&mut x))?;
/// assert_eq!(x.to_vec()?, [2, 1]);
/// # Ok(())
/// # }
/// ```
///
/// Unchecked, and of a module of the IR, where the program promises what the compiler does not check:
///
/// ```
/// use kiln::prelude::*;
///
/// # fn main() -> kiln::Result<()> {
/// // SAFETY: the launch below has as many threads as there are elements.
/// let double = unsafe {
///     Kernel::build_unchecked("double", |k| {
///         let x = k.slice_mut("x", k.ty::<u32>()).at(k.global_id().x());
///         x.set(x.get() * 2);
///     })
/// }?;
/// let module = DeviceFn::build("unused", |k| k.return_())?.module();
/// // SAFETY: nothing in it is unchecked.
/// let refused = unsafe { Kernel::from_module(&module) };
/// assert!(refused.is_err()); // it has no kernel
/// // SAFETY: as above.
/// assert!(unsafe { double.redefine_from_module(&module) }.is_err());
/// let jit = Jit::new()?;
/// let mut x = jit.upload(&[4u32; 64])?;
/// jit.launch(&double, 2, 32, args!(&mut x))?;
/// assert_eq!(x.to_vec()?, [8; 64]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Kernel {
    definition: Arc<Definition>,
    snapshot: Arc<CurrentSnapshot>,
    /// Const arguments given to it, by name.
    consts: Arc<[(String, i128)]>,
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Kernel({})", self.name())
    }
}

impl Kernel {
    /// Describes a kernel. The closure runs once, now.
    ///
    /// # Errors
    /// Everything that is wrong with the description, with the Rust lines it is in.
    #[track_caller]
    pub fn build(name: &str, describe: impl FnOnce(&KernelBuilder)) -> Result<Kernel, Error> {
        let body = build_body(
            name,
            FunctionKind::Kernel,
            BuildOptions::default(),
            describe,
        )?;
        Ok(Kernel::from_body(body))
    }

    /// Like [`Kernel::build`], with all indexing of the kernel and of what it calls unchecked, as in CUDA C++.
    ///
    /// # Errors
    /// As [`Kernel::build`].
    ///
    /// # Safety
    /// At every launch, every index must be below the length it is used with.
    #[track_caller]
    pub unsafe fn build_unchecked(
        name: &str,
        describe: impl FnOnce(&KernelBuilder),
    ) -> Result<Kernel, Error> {
        let options = BuildOptions { unchecked: true };
        let body = build_body(name, FunctionKind::Kernel, options, describe)?;
        Ok(Kernel::from_body(body))
    }

    /// A kernel of a `#[kernel]` function, defined at `at`.
    pub(crate) fn describe(
        chain: Vec<DescriptionId>,
        name: &str,
        at: &RustLocation<'_>,
        options: BuildOptions,
        describe: impl FnOnce(&KernelBuilder),
    ) -> Result<Kernel, Error> {
        let mut builder = KernelBuilder::new(name, FunctionKind::Kernel, options, at);
        builder.described_for = chain;
        describe(&builder);
        Ok(Kernel::from_body(finish(builder)?))
    }

    /// A kernel of a module of the IR, in the phase generic or specialized: its only kernel, with all that it calls
    /// there. It is launched, specialized and redefined like any other.
    ///
    /// # Errors
    /// Every rule of the IR that the module breaks, at the places that it names; a module without a kernel or
    /// with a callee that has no body.
    ///
    /// # Safety
    /// At every launch: what the module leaves unchecked is in bounds, addresses that it makes of numbers or moves
    /// are of memory that it may access, and what it says of parameters (alignment, divisors, that nothing else
    /// reaches their memory, the memory that they lie in) is so.
    pub unsafe fn from_module(module: &Module) -> Result<Kernel, Error> {
        Ok(Kernel::from_body(Kernel::body_of(module)?))
    }

    /// [`Kernel::from_module`] of a module in the text form of the IR ([`crate::ir::print()`]). Where an instruction
    /// names no location, errors and faults name its place in `file`. `rows` finds an intrinsic by its name.
    ///
    /// ```
    /// # use kiln::core::build::Kernel;
    /// let text = "module axpy specialized
    ///     kernel @axpy(%0 a: f32, %1 x: slice<generic, mut f32>) {
    ///       %2: u32 = const 0
    ///       %3: ptr<generic, mut f32> = slice_index %1, %2
    ///       %4: f32 = load %3
    ///       %5: f32 = mul %0, %4
    ///       store %3, %5
    ///     }";
    /// // SAFETY: every access is checked.
    /// let axpy = unsafe { Kernel::parse("axpy.kir", text, &|_| None) }?;
    /// # drop(axpy);
    /// # Ok::<(), kiln::core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernel::from_module`]; the first place where the text is not of the form.
    ///
    /// # Safety
    /// As [`Kernel::from_module`].
    pub unsafe fn parse(
        file: &str,
        text: &str,
        rows: &dyn Fn(&str) -> Option<&'static IntrinsicDef>,
    ) -> Result<Kernel, Error> {
        let module = parse_file(file, text, rows).map_err(|error| ModuleError::Text {
            file: file.to_owned(),
            error,
        })?;
        Ok(Kernel::from_body(Kernel::body_of(&module)?))
    }

    /// [`Kernel::redefine`] with the kernel of a module.
    ///
    /// # Errors
    /// As [`Kernel::from_module`]; the kernel then keeps its body.
    ///
    /// # Safety
    /// As [`Kernel::from_module`].
    pub unsafe fn redefine_from_module(&self, module: &Module) -> Result<(), Error> {
        Ok(self.definition.redefine(Kernel::body_of(module)?)?)
    }

    fn body_of(module: &Module) -> Result<Body, Error> {
        crate::ir::verify(module)?;
        Body::of_kernel(module)
    }

    fn from_body(body: Body) -> Kernel {
        let definition = Definition::new(body);
        let snapshot = Arc::new(CurrentSnapshot::new(definition.clone()));
        Kernel {
            definition,
            snapshot,
            consts: Arc::default(),
        }
    }

    /// This kernel with a const parameter bound to a value: another specialization of the same
    /// kernel.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let fill = Kernel::build("fill", |k| {
    ///     let value = k.const_param("VALUE", Type::U32);
    ///     k.slice_mut("x", k.ty::<u32>()).at(k.thread_idx().x()).set(value);
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.zeros::<u32>(2)?;
    /// jit.launch(&fill.with_const("VALUE", 7), 1, 2, args!(&mut x))?;
    /// assert_eq!(x.to_vec()?, [7, 7]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_const(&self, name: &str, value: i128) -> Kernel {
        let mut consts = self.consts.to_vec();
        consts.retain(|(n, _)| n != name);
        consts.push((name.to_owned(), value));
        consts.sort();
        Kernel {
            consts: consts.into(),
            ..self.clone()
        }
    }

    #[doc(hidden)]
    #[inline]
    pub fn consts(&self) -> &[(String, i128)] {
        &self.consts
    }

    /// Gives this kernel another body. The next launch uses it, through whichever clone; launches
    /// under way are not disturbed. Going back to an earlier body finds its compiled code again.
    ///
    /// # Errors
    /// As [`Kernel::build`]; the kernel then keeps its body.
    #[track_caller]
    pub fn redefine(&self, describe: impl FnOnce(&KernelBuilder)) -> Result<(), Error> {
        self.redefine_as(BuildOptions::default(), describe)
    }

    /// [`Kernel::redefine`], built with options.
    #[track_caller]
    pub(crate) fn redefine_as(
        &self,
        options: BuildOptions,
        describe: impl FnOnce(&KernelBuilder),
    ) -> Result<(), Error> {
        let name = self.name();
        let body = build_body(&name, FunctionKind::Kernel, options, describe)?;
        Ok(self.definition.redefine(body)?)
    }

    /// The kernel's name.
    pub fn name(&self) -> String {
        self.definition.name().to_owned()
    }

    /// The content of the kernel with everything it calls, as of now.
    #[doc(hidden)]
    #[inline]
    pub fn fingerprint(&self) -> Result<Fingerprint, Error> {
        Ok(self.snapshot.fingerprint()?)
    }

    /// What the kernel with everything it calls is now, in numbers of this process.
    #[doc(hidden)]
    #[inline]
    pub fn content(&self) -> Result<Content, Error> {
        Ok(self.snapshot.content()?)
    }

    /// The kernel with everything it calls, as of now. Costs a few atomic loads if nothing was
    /// redefined since the last call.
    #[doc(hidden)]
    pub fn snapshot(&self) -> Result<Arc<Snapshot>, Error> {
        Ok(self.snapshot.get()?)
    }

    /// The kernel with everything it calls through overlays, as of now.
    #[doc(hidden)]
    pub fn snapshot_with(&self, overlays: &Arc<Overlays>) -> Result<Arc<Snapshot>, Error> {
        Ok(self.snapshot.get_with(overlays)?)
    }
}

/// A function that kernels and other device functions call.
///
/// ```
/// use kiln::prelude::*;
///
/// # fn main() -> kiln::Result<()> {
/// let step = DeviceFn::build("step", |k| k.return_value(k.param("x", k.ty::<f32>()) + 1.0))?;
/// let walk = Kernel::build("walk", |k| {
///     let x = k.slice_mut("x", k.ty::<f32>());
///     x.at(0).set(k.call(&step, &[x.at(0).get()]));
/// })?;
/// let jit = Jit::new()?;
/// let mut x = jit.zeros::<f32>(1)?;
/// jit.launch(&walk, 1, 1, args!(&mut x))?;
/// step.redefine(|k| k.return_value(k.param("x", k.ty::<f32>()) * 10.0))?;
/// jit.launch(&walk, 1, 1, args!(&mut x))?; // it calls what `step` is now
/// assert_eq!(x.to_vec()?, [10.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct DeviceFn {
    definition: Arc<Definition>,
}

impl std::fmt::Debug for DeviceFn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DeviceFn({})", self.definition.name())
    }
}

impl DeviceFn {
    /// Describes a device function. The closure runs once, now.
    ///
    /// # Errors
    /// Everything that is wrong with the description, with the Rust lines it is in.
    #[track_caller]
    pub fn build(name: &str, describe: impl FnOnce(&KernelBuilder)) -> Result<DeviceFn, Error> {
        let body = build_body(
            name,
            FunctionKind::Device,
            BuildOptions::default(),
            describe,
        )?;
        Ok(DeviceFn {
            definition: Definition::new(body),
        })
    }

    /// Gives this function another body; every kernel that calls it, directly or not, is
    /// recompiled at its next launch.
    ///
    /// # Errors
    /// As [`DeviceFn::build`], or that the new signature is not the old one; the function then
    /// keeps its body.
    #[track_caller]
    pub fn redefine(&self, describe: impl FnOnce(&KernelBuilder)) -> Result<(), Error> {
        let name = self.definition.name().to_owned();
        let body = build_body(
            &name,
            FunctionKind::Device,
            BuildOptions::default(),
            describe,
        )?;
        Ok(self.definition.redefine(body)?)
    }

    /// The function's module at this moment: the function, and a declaration for each one it
    /// calls.
    pub fn module(&self) -> Module {
        self.definition.body().module.clone()
    }

    /// The function, which is not generic, and after it all that it calls, as one module.
    ///
    /// # Errors
    /// A function that calls itself, or that has parameters of types.
    pub fn linked(&self) -> Result<Module, Error> {
        let snapshot = Snapshot::of(&self.definition)?;
        let mut module = Module::new(self.definition.name());
        specialize::link(&mut module, &snapshot, &[], &[])?;
        Ok(module)
    }

    /// Adds the function, for type arguments (types of `module`) and const arguments (integers; 0 and 1 for
    /// `bool`), with all that it calls, to a module that is specialized: what a hook calls in the code that it
    /// writes. Each call of this adds it once more.
    ///
    /// ```
    /// use kiln::core::build::DeviceFn;
    /// use kiln::core::hook::Hook;
    /// use kiln::core::ir::{BinaryOp, InstData, Type};
    ///
    /// /// Each sum of two `f32` is that of a function of ours.
    /// fn sums() -> Result<Hook, kiln::core::error::Error> {
    ///     let add = DeviceFn::build("add", |k| {
    ///         let t = k.type_param("T").num();
    ///         let (x, y) = (k.param("x", t), k.param("y", t));
    ///         k.return_value(x + y);
    ///     })?;
    ///     Ok(Hook::new("sums").key("add", "x + y").rewrite_ir(move |_, module| {
    ///         let add = add.link_into(module, &[Type::F32], &[])?;
    ///         module.rewrite_each(|at| {
    ///             if let InstData::Binary { op: BinaryOp::Add, args } = *at.data()
    ///                 && at.function_id() != add
    ///                 && at.type_of(args[0]) == Type::F32
    ///             {
    ///                 at.replace().call(add, &args);
    ///             }
    ///         });
    ///         Ok(())
    ///     }))
    /// }
    /// # drop(sums().unwrap());
    /// # let add = DeviceFn::build("add", |k| {
    /// #     let t = k.type_param("T").num();
    /// #     let (x, y) = (k.param("x", t), k.param("y", t));
    /// #     k.return_value(x + y);
    /// # }).unwrap();
    /// # let mut module = kiln::core::ir::Module::new("m");
    /// # let linked = add.link_into(&mut module, &[Type::F32], &[]).unwrap();
    /// # assert_eq!(module.functions[linked].name, "add.f32");
    /// # assert!(add.link_into(&mut module, &[], &[]).is_err());
    /// # assert!(add.link_into(&mut module, &[Type::F32], &[7]).is_err());
    /// # assert!(add.link_into(&mut module, &[Type::BOOL], &[]).is_err());
    /// ```
    ///
    /// # Errors
    /// A function that calls itself, other arguments than it has parameters for, an intrinsic of the name of
    /// another one in the module. The module is of no further use then.
    pub fn link_into(
        &self,
        module: &mut Module,
        type_args: &[Type],
        const_args: &[i128],
    ) -> Result<FuncId, Error> {
        let snapshot = Snapshot::of(&self.definition)?;
        Ok(specialize::link(module, &snapshot, type_args, const_args)?)
    }

    /// A device function of a `#[device_fn]` function, defined at `at`.
    pub(crate) fn describe(
        chain: Vec<DescriptionId>,
        name: &str,
        at: &RustLocation<'_>,
        describe: impl FnOnce(&KernelBuilder),
    ) -> Result<DeviceFn, Error> {
        let mut builder =
            KernelBuilder::new(name, FunctionKind::Device, BuildOptions::default(), at);
        builder.described_for = chain;
        describe(&builder);
        let definition = Definition::new(finish(builder)?);
        Ok(DeviceFn { definition })
    }

    pub(crate) fn definition(&self) -> &Arc<Definition> {
        &self.definition
    }

    /// Where the device function is defined, as `file:line:column`.
    pub(super) fn defined_at(&self) -> String {
        let body = self.definition.body();
        body.module
            .display_location(body.module.functions[body.function].location)
    }
}

#[track_caller]
fn build_body(
    name: &str,
    kind: FunctionKind,
    options: BuildOptions,
    describe: impl FnOnce(&KernelBuilder),
) -> Result<Body, Error> {
    let builder = KernelBuilder::new(name, kind, options, RustLocation::caller());
    describe(&builder);
    finish(builder)
}

/// Ends a body that returns nothing with a `return`, unless it ends already. The line is left open:
/// the same description must give the same content wherever it is used.
fn close(function: &mut Function) {
    let last = function.regions[function.body].insts.last();
    let ends = last.is_some_and(|&i| function.insts[i].data.is_terminator());
    if function.result == Type::UNIT && !ends {
        let data = InstData::Return { value: None };
        function.append(function.body, data, Type::UNIT, Location::unknown());
    }
}

/// Closes the body and checks the whole.
fn finish(builder: KernelBuilder) -> Result<Body, Error> {
    let function = builder.name();
    let mut state = builder.state.into_inner();
    close(&mut state.function);
    if !state.errors.is_empty() {
        return Err(BuildErrors {
            function,
            errors: state.errors,
        }
        .into());
    }
    let mut module = state.module;
    let function = module.functions.push(state.function);
    crate::ir::verify(&module)?;
    Ok(Body::new(module, function, state.callees))
}
