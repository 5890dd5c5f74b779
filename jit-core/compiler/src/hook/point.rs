//! The extension points: one table, and what is made of it.
//!
//! A row is a point's name, the method of [`Hook`] by which a hook comes to it, what has to be there for it to
//! be reached, whether it can change code, and the function that it calls.

use std::any::Any;

use inkwell::module::Module as LlvmModule;
use inkwell::values::BasicValueEnum;

use super::{HiddenArguments, Hook, HookContext, HookResult, LaunchEvent};
use crate::args::Arg;
use crate::codegen::{LoweredOperation, OperationLowering};
use crate::error::Error;
use crate::ir::{FuncId, InstNode, IntrinsicDef, Module};
use crate::job::CompileJob;
use crate::runtime::CodeFacts;

/// What has to be there for a point to be reached.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Needs {
    /// Nothing: it is reached for every target.
    Nothing,
    /// Code that LLVM makes: for GPUs, CPUs, and machines of a program's own that go that way.
    Llvm,
    /// PTX.
    Ptx,
}

/// The functions of a hook at one point.
pub struct At<F: ?Sized> {
    pub(super) point: HookPoint,
    pub(super) functions: fn(&Points) -> &Vec<Box<F>>,
}

impl<F: ?Sized> At<F> {
    /// The point.
    pub(crate) fn point(&self) -> HookPoint {
        self.point
    }
}

macro_rules! points {
    ($(
        $(#[doc = $doc:literal])*
        $point:ident = $method:ident, $needs:ident, $code:literal: [$($function:tt)*]
    )*) => {
        /// Where a hook is called: the methods of [`Hook`] that have a function each.
        ///
        /// ```
        /// use kiln::prelude::*;
        ///
        /// use std::sync::Mutex;
        ///
        /// use kiln::core::hook::{Hook, HookPoint, HookSet};
        ///
        /// #[kernel]
        /// fn double(x: &mut [f32]) {
        ///     x[global_id().x] *= 2.0;
        /// }
        ///
        /// static CALLED: Mutex<Vec<HookPoint>> = Mutex::new(Vec::new());
        ///
        /// fn note(point: HookPoint) {
        ///     CALLED.lock().expect("nobody panics").push(point);
        /// }
        ///
        /// # fn main() -> kiln::Result<()> {
        /// // A function at every point, each of which changes nothing.
        /// let all = Hook::new("all")
        ///     .convert_argument(|_| Ok(None))
        ///     .prepare_job(|_| Ok(note(HookPoint::PrepareJob)))
        ///     .rewrite_ir(|_, _| Ok(note(HookPoint::RewriteIr)))
        ///     .fault_function(|_, _| Ok(None))
        ///     .lower_abi(|_, _| Ok(note(HookPoint::LowerAbi)))
        ///     .lower_inst(|_, _, _| Ok(None))
        ///     .lower_intrinsic(|_, _, _| Ok(None))
        ///     .finish_module(|_, _| Ok(()))
        ///     .pass_pipeline(|_, _| Ok(()))
        ///     .finish_optimized_module(|_, _| Ok(()))
        ///     .rewrite_ptx(|_, _| Ok(()))
        ///     .assemble(|_, _| Ok(None))
        ///     .after_load(|_, _| Ok(()))
        ///     .before_launch(|_| Ok(note(HookPoint::BeforeLaunch)))
        ///     .hidden_arguments(|_, _| Ok(()))
        ///     .after_launch(|_, _| note(HookPoint::AfterLaunch))
        ///     .if_supported();
        /// assert_eq!(all.points().count(), HookPoint::ALL.len());
        /// let jit = Jit::builder().hooks(HookSet::new().with(all)).build()?;
        /// let mut x = jit.upload(&[1.0f32; 32])?;
        /// jit.launch(&double, 1, 32, args!(&mut x))?;
        /// let called = CALLED.lock().expect("nobody panics");
        /// let names: Vec<&str> = called.iter().map(|point| point.name()).collect();
        /// assert_eq!(names, ["prepare_job", "rewrite_ir", "lower_abi", "before_launch", "after_launch"]);
        /// assert!(called[0].changes_code() && !called[3].changes_code());
        /// println!("{:?}", HookPoint::RewritePtx.needs()); // PTX: a CPU has none
        /// # Ok(())
        /// # }
        /// ```
        #[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum HookPoint {
            $(
                #[doc = concat!("[`Hook::", stringify!($method), "`]")]
                $point,
            )*
        }

        impl HookPoint {
            /// All points, in the order in which a kernel comes to them.
            pub const ALL: &[HookPoint] = &[$(HookPoint::$point),*];

            /// The name of the method.
            pub fn name(self) -> &'static str {
                match self {
                    $(HookPoint::$point => stringify!($method),)*
                }
            }

            /// What has to be there for it to be reached.
            pub fn needs(self) -> Needs {
                match self {
                    $(HookPoint::$point => Needs::$needs,)*
                }
            }

            /// Whether what is done there can change code, so that its settings belong to the cache key.
            pub fn changes_code(self) -> bool {
                match self {
                    $(HookPoint::$point => $code,)*
                }
            }
        }

        /// The functions of a hook, by point.
        #[derive(Default)]
        pub struct Points {
            $($method: Vec<Box<dyn $($function)* + Send + Sync>>,)*
        }

        impl Points {
            /// The points that have a function.
            pub(super) fn used(&self) -> impl Iterator<Item = HookPoint> {
                let used = [$((HookPoint::$point, !self.$method.is_empty())),*];
                used.into_iter().filter_map(|(point, used)| used.then_some(point))
            }
        }

        impl Hook {
            $(
                $(#[doc = $doc])*
                #[must_use]
                pub fn $method(
                    mut self,
                    function: impl $($function)* + Send + Sync + 'static,
                ) -> Hook {
                    self.note(HookPoint::$point, size_of_val(&function));
                    self.points.$method.push(Box::new(function));
                    self
                }
            )*
        }

        /// The functions at each point.
        pub mod at {
            use super::*;

            $(
                #[doc = concat!("The functions of `Hook::", stringify!($method), "`.")]
                pub fn $method() -> At<dyn $($function)* + Send + Sync> {
                    At {
                        point: HookPoint::$point,
                        functions: |points| &points.$method,
                    }
                }
            )*
        }
    };
}

points! {
    /// Turns a host value passed with [`crate::args::host`] into an argument, which may be a
    /// [view](crate::view), or gives `None` if it is not this hook's. Runs at every launch.
    ConvertArgument = convert_argument, Nothing, false:
        [for<'a> Fn(&'a (dyn Any + Send + Sync)) -> HookResult<Option<Arg<'a>>>]

    /// Changes target or options, or the module as [`Hook::rewrite_ir`] does. Has run: specialization. A target
    /// that the device does not run makes the launch fail, with an error that names the hook.
    PrepareJob = prepare_job, Nothing, true:
        [Fn(&mut CompileJob) -> HookResult<()>]

    /// Rewrites the module. Has run: specialization, earlier hooks. May assume: it verifies. Must hold after,
    /// which the compiler checks: it verifies, in the same phase; the kernel's parameters have the types that the
    /// arguments were bound to, where addresses may be said to lie in another memory and need not be written
    /// through, and no more is said to be known of them. To compute with another type, convert in the body.
    RewriteIr = rewrite_ir, Nothing, true:
        [Fn(&HookContext<'_>, &mut Module) -> HookResult<()>]

    /// Names a function that each thread calls which is about to fault, before the fault is told and ends it: a device
    /// function that was added to the module, by [`DeviceFn::link_into`](crate::build::DeviceFn::link_into) for one,
    /// and takes `(site: u32, index: u64, length: u64)` as
    /// [`Module::call_before_faults`](crate::ir::Module::call_before_faults) says. `None` leaves the kernel as it is.
    /// Asked for each kernel that has checked accesses. Has run: [`Hook::rewrite_ir`] of all hooks; what operations
    /// are written in the IR has been put in, so that their accesses count. The function's own accesses fault without
    /// a call of it. Must hold after: what holds after [`Hook::rewrite_ir`].
    FaultFunction = fault_function, Nothing, true:
        [Fn(&HookContext<'_>, &mut Module) -> HookResult<Option<FuncId>>]

    /// Changes how kernel parameters are passed. Has run: [`Hook::rewrite_ir`] of all hooks, and the compiler's own
    /// ABI lowering, which passes aggregates by reference. Must hold after: what holds after
    /// [`Hook::rewrite_ir`], in [`crate::ir::Phase::Legal`]; an aggregate is one whether it is passed by reference
    /// or by value. It is given the module and not the parameters alone, as how one is passed is a matter of its uses
    /// and of all functions that are handed its address; what it may not change of them is compared afterwards.
    LowerAbi = lower_abi, Nothing, true:
        [Fn(&HookContext<'_>, &mut Module) -> HookResult<()>]

    /// Lowers one instruction instead of the compiler: builds what it does and gives what it gives, a value, a slice's
    /// address and length or [`LoweredOperation::Done`], or gives `None` to leave it. The last argument is the
    /// operands' LLVM values, in order; a slice is two, address and length
    /// ([`OperationLowering::llvm_type`] says what the others are).
    ///
    /// Asked for every instruction but those that say where control goes (`if`, loops, `break`, `continue`, `return`)
    /// and those of variables: the first have no code in one place, the second no place that code could name. These
    /// are for [`Hook::rewrite_ir`].
    ///
    /// The code is one thread's, on a CPU too, where it is run for each lane that executes the instruction. There
    /// calls of device functions are gone by then, what the threads of a warp do together cannot be lowered by
    /// a hook, and the threads of a block meet at a barrier whatever a hook builds there. Lanes that have the same
    /// operands have to get the same value, as with the instruction's own meaning. Must hold after: the code does to
    /// memory what the instruction does, and no more, as the compiler knows by the instructions which memory is
    /// written and which never changes.
    LowerInst = lower_inst, Llvm, true:
        [for<'ctx> Fn(
            &OperationLowering<'_, 'ctx>,
            &InstNode,
            &[BasicValueEnum<'ctx>],
        ) -> HookResult<Option<LoweredOperation<'ctx>>>]

    /// Lowers one call of an intrinsic instead of the compiler, as [`Hook::lower_inst`]; of a row that gives nothing, too.
    /// Rows whose meaning is a function of the IR are gone by then; replace these by [`Hook::rewrite_ir`].
    LowerIntrinsic = lower_intrinsic, Llvm, true:
        [for<'ctx> Fn(
            &OperationLowering<'_, 'ctx>,
            &IntrinsicDef,
            &[BasicValueEnum<'ctx>],
        ) -> HookResult<Option<LoweredOperation<'ctx>>>]

    /// Changes the LLVM module before it is optimized; link bitcode here. Must hold after, which the compiler
    /// checks: LLVM's verifier accepts it; the kernel is still there; what it calls is in it, or an intrinsic that
    /// the target's back end has an instruction for; inline assembly is that of rows' cells, or a hook vouches for
    /// it.
    FinishModule = finish_module, Llvm, true:
        [for<'ctx> Fn(&HookContext<'_>, &LlvmModule<'ctx>) -> HookResult<()>]

    /// Changes the pass pipeline, in the notation of LLVM's `opt -passes`. LLVM's loop vectorizer looks only at loops
    /// whose metadata asks for vectors, whatever the pipeline says.
    PassPipeline = pass_pipeline, Llvm, true:
        [Fn(&HookContext<'_>, &mut String) -> HookResult<()>]

    /// Inspects or changes the LLVM module after it was optimized. Must hold after: what holds after
    /// [`Hook::finish_module`].
    FinishOptimizedModule = finish_optimized_module, Llvm, true:
        [for<'ctx> Fn(&HookContext<'_>, &LlvmModule<'ctx>) -> HookResult<()>]

    /// Reads or rewrites the PTX text.
    RewritePtx = rewrite_ptx, Ptx, true:
        [Fn(&HookContext<'_>, &mut String) -> HookResult<()>]

    /// Makes machine code of the PTX, which is loaded in its place: an assembler of one's own, `ptxas` with other options.
    /// Gives a `cubin` for the target, or `None` to leave it to the next hook, and then to the driver. Has run:
    /// [`Hook::rewrite_ptx`] of all hooks. Must hold after: the kernel's symbol is the one of the PTX; the code is
    /// trusted as the hook is.
    Assemble = assemble, Ptx, true:
        [Fn(&HookContext<'_>, &str) -> HookResult<Option<Vec<u8>>>]

    /// Is told what the device says of code that it has loaded: registers, spills, shared memory, the driver's log. Has
    /// run: all that makes code. Once for each code that is loaded, on a CPU for each shape of block. An error fails
    /// the launch that needs the code, and the next tries again.
    AfterLoad = after_load, Nothing, false:
        [Fn(&HookContext<'_>, &CodeFacts) -> HookResult<()>]

    /// Is told of a launch about to happen; an error vetoes it. A launch that it makes itself is not told to hooks.
    BeforeLaunch = before_launch, Nothing, false:
        [Fn(&LaunchEvent<'_>) -> HookResult<()>]

    /// Gives the values of the hidden arguments that the hook has declared by
    /// [`Module::add_hidden`](crate::ir::Module::add_hidden), where a kernel reads one of them: at every launch, of
    /// prepared kernels too, so that a launch has the values of its moment. A launch from here of a kernel that
    /// reads hidden arguments of hooks is an error.
    HiddenArguments = hidden_arguments, Nothing, false:
        [Fn(&LaunchEvent<'_>, &mut HiddenArguments<'_>) -> HookResult<()>]

    /// Is told of a launch that was handed to the device, or failed to be, or was vetoed by a later hook.
    AfterLaunch = after_launch, Nothing, false:
        [Fn(&LaunchEvent<'_>, &Result<(), Error>)]
}

impl std::fmt::Display for HookPoint {
    /// The name of the method.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
