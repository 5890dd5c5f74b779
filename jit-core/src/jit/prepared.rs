//! Kernels made ready, whose launches skip the look-up.

use std::ffi::c_void;
use std::sync::Arc;

use super::load::type_forms;
use super::{Jit, Recording, Stream};
use crate::cache::{CodeOrigin, KeptSignatures, Passing, Specialized};
use kiln_compiler::args::{Arg, ArgSignature, Converted, Unfit};
use kiln_compiler::code::KernelInfo;
use kiln_compiler::error::{GraphError, Result};
use kiln_compiler::launch::{Dim3, LaunchConfig, LaunchError};

/// A kernel compiled for arguments of certain types, loaded on a device.
///
/// ```
/// use kiln::prelude::*;
///
/// #[kernel]
/// fn double(x: &mut [u32]) {
///     x[global_id().x] *= 2;
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let jit = Jit::new()?;
/// let mut x = jit.upload(&[1u32; 64])?;
/// let ready = jit.compile(&double, args!(&mut x))?.prepare_block(32)?;
/// assert_eq!(ready.info().name, "double");
/// println!("{:?}", ready.origin(32)); // compiled, kept on disk by a process before, ..
/// ready.launch(2, 32, args!(&mut x))?;
/// ready.launch_with(LaunchConfig::new(2, 32), args!(&mut x))?;
/// assert_eq!(x.to_vec()?, [4; 64]);
/// ready.on(&jit.stream()?)?.launch(2, 32, args!(&mut x))?;
/// assert_eq!(x.to_vec()?, [8; 64]);
/// let mut graph = jit.graph((&mut x,), |g, (mut x,)| ready.record(g, (2, 32), args!(&mut x)))?;
/// graph.replay(args!(&mut x))?;
/// assert_eq!(x.to_vec()?, [16; 64]);
/// # Ok(())
/// # }
/// ```
pub struct Prepared {
    pub(super) jit: Jit,
    pub(super) specialized: Arc<Specialized>,
    pub(super) signature: Box<[ArgSignature]>,
    /// The signature as launches are looked up by it.
    pub(super) looked_up: KeptSignatures,
    pub(super) types: String,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Prepared({}({}))",
            self.specialized.info().name,
            self.types
        )
    }
}

impl Prepared {
    /// What is known of it whatever its code is.
    pub fn info(&self) -> &KernelInfo {
        self.specialized.info()
    }

    /// Where the kernel's code came from: that for blocks of a shape, if it depends on that. `None` if there is none yet.
    pub fn origin(&self, block: impl Into<Dim3>) -> Option<CodeOrigin> {
        self.specialized.origin(Some(block.into()))
    }

    /// Makes the code for blocks of a shape, where it depends on that, as on a CPU device; otherwise
    /// the first launch with the shape does so.
    ///
    /// # Errors
    /// A block that the device does not have, or code that cannot be compiled.
    pub fn prepare_block(self, block: impl Into<Dim3>) -> Result<Prepared> {
        let config = LaunchConfig::new(1, block);
        self.jit.code_for(&self.specialized, &config)?;
        Ok(self)
    }

    /// The kernel's code for blocks of a shape as other code can launch it: on a GPU of NVIDIA's a `CUfunction`, which lives as
    /// long as this. What it takes is [`KernelInfo::layout`] of [`Prepared::info`]: of a slice an address of 8 bytes and a
    /// length of 4, or 8 where it is wide; behind them, where it can fault, the address of a
    /// [`FaultChannel`](kiln_compiler::fault::FaultChannel) that the code which launches it has set up. Kernels without
    /// checks have none. Kiln orders nothing of such launches. A CPU has no such functions.
    ///
    /// ```
    /// use kiln::core::job::CompileOptions;
    /// use kiln::prelude::*;
    ///
    /// #[kernel]
    /// fn double(x: &mut [f32]) {
    ///     x[global_id().x] *= 2.0;
    /// }
    ///
    /// # fn main() -> kiln::Result<()> {
    /// // SAFETY: each thread has an element.
    /// let options = unsafe { CompileOptions::default().unchecked() };
    /// let jit = Jit::builder().compile(options).build()?;
    /// let ready = jit.compile(&double, args!(&mut jit.zeros::<f32>(64)?))?;
    /// let layout = &ready.info().layout;
    /// assert_eq!((layout.params.len(), layout.slots.len()), (1, 2)); // an address and a length
    /// if let Some(function) = ready.raw_function(64)? {
    ///     println!("a CUfunction at {function:?}, for `cuLaunchKernel`");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A block that the device does not have, or code that cannot be compiled.
    pub fn raw_function(&self, block: impl Into<Dim3>) -> Result<Option<*mut c_void>> {
        let config = LaunchConfig::new(1, block);
        let loaded = self.jit.code_for(&self.specialized, &config)?;
        Ok(loaded
            .code()
            .cuda_function()
            .map(|function| function.as_raw()))
    }

    /// The kernel with launches to a stream of its device.
    ///
    /// # Errors
    /// A stream of another device.
    pub fn on(&self, stream: &Stream) -> Result<Prepared> {
        Ok(Prepared {
            jit: self.jit.in_stream(stream)?,
            specialized: self.specialized.clone(),
            signature: self.signature.clone(),
            looked_up: self.looked_up.clone(),
            types: self.types.clone(),
        })
    }

    /// Launches it.
    ///
    /// # Errors
    /// Arguments of other types or facts than it was prepared for, a shape the device does not
    /// have, a device that has failed.
    pub fn launch(
        &self,
        grid: impl Into<Dim3>,
        block: impl Into<Dim3>,
        args: &[Arg<'_>],
    ) -> Result<()> {
        self.launch_with(LaunchConfig::new(grid, block), args)
    }

    /// [`Prepared::launch`] with dynamic shared memory.
    ///
    /// # Errors
    /// As [`Prepared::launch`].
    pub fn launch_with(&self, config: LaunchConfig, args: &[Arg<'_>]) -> Result<()> {
        // What is to be converted is of no type that a kernel is prepared for.
        if self.looked_up.are_at_once(args)
            && let Some(loaded) = self.specialized.for_all_blocks()
        {
            return self
                .jit
                .launch_loaded(loaded, &config, Passing::Words, args);
        }
        self.launch_alike(&config, args)
    }

    /// The launch of code for one shape of block, or with arguments of which more has to be looked at.
    #[inline(never)]
    fn launch_alike(&self, config: &LaunchConfig, args: &[Arg<'_>]) -> Result<()> {
        if let Some(passing) = self.looked_up.passing(args)
            && let Some(loaded) = self.specialized.find(config.block)
        {
            return self.jit.launch_loaded(&loaded, config, passing, args);
        }
        self.launch_others(config, args)
    }

    /// Records a launch in a graph of the `Jit` that has prepared it, with slots in the place of arguments.
    ///
    /// # Errors
    /// As [`Prepared::launch`] and [`Recording::launch`]; a graph of another `Jit`.
    pub fn record(
        &self,
        graph: &mut Recording,
        config: impl Into<LaunchConfig>,
        args: &[Arg<'_>],
    ) -> Result<()> {
        let name = || self.specialized.info().name.clone();
        if !graph.is_of(&self.jit) {
            return Err(GraphError::OtherJit { kernel: name() }.into());
        }
        let (config, converted) = (config.into(), graph.converted(name, args)?);
        let args = converted.as_ref().map_or(args, Converted::args);
        self.accepts(args)?;
        let loaded = self.jit.code_for(&self.specialized, &config)?;
        graph.add_launch(loaded, config, args)
    }

    /// The launch with arguments that are not quite those it was prepared for, or for another block.
    #[cold]
    fn launch_others(&self, config: &LaunchConfig, args: &[Arg<'_>]) -> Result<()> {
        let name = || self.specialized.info().name.clone();
        let converted = self.jit.convert(&name, args)?;
        let args = converted.as_ref().map_or(args, Converted::args);
        self.accepts(args)?;
        if let Some(loaded) = self.specialized.find(config.block) {
            return self.jit.launch_first(&loaded, config, args);
        }
        let loaded = self.jit.code_for(&self.specialized, config)?;
        self.jit.launch_first(&loaded, config, args)
    }

    /// Whether the kernel was prepared for arguments like these: of the same types, of which as much is known as was
    /// compiled in.
    fn accepts(&self, args: &[Arg<'_>]) -> Result<(), LaunchError> {
        let keep = self.jit.0.options.specialize_facts;
        let both = |(arg, made_for): (&Arg<'_>, &ArgSignature)| {
            let (given, made_for) = (arg.signature(), *made_for);
            (given.keeping_facts(keep), made_for.keeping_facts(keep))
        };
        let pairs = || args.iter().zip(&self.signature).map(both);
        let fits = |(given, made_for): (ArgSignature, ArgSignature)| {
            given == made_for || given.fits(made_for).is_ok()
        };
        if args.len() == self.signature.len() && pairs().all(fits) {
            return Ok(());
        }
        let unfit = pairs().map(|(given, made_for)| given.fits(made_for).err());
        Err(self.refused(args, &unfit.collect::<Vec<_>>()))
    }

    #[cold]
    fn refused(&self, args: &[Arg<'_>], unfit: &[Option<Unfit>]) -> LaunchError {
        let kernel = self.specialized.info().name.clone();
        let of_type = args.len() != self.signature.len() || unfit.contains(&Some(Unfit::Type));
        let lacking = unfit.iter().enumerate().find_map(|(i, unfit)| match unfit {
            Some(Unfit::Fact(fact)) => Some((i, *fact)),
            _ => None,
        });
        match lacking {
            Some((position, fact)) if !of_type => LaunchError::OtherFacts {
                kernel,
                argument: position + 1,
                fact,
            },
            _ => LaunchError::OtherSignature {
                kernel,
                prepared: self.types.clone(),
                given: type_forms(args),
            },
        }
    }
}
