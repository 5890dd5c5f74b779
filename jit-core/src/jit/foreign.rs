//! Functions of modules that other code has loaded, launched as kernels are: behind what uses the buffers that they are given.

use std::sync::Arc;

use super::{Jit, Stream};
use kiln_compiler::abi::{ParamKind, ParamLayout, ParamSlot};
use kiln_compiler::args::{Arg, Converted};
use kiln_compiler::code::KernelInfo;
use kiln_compiler::error::Result;
use kiln_compiler::launch::{Dim3, LaunchConfig, LaunchError, check_config};
use kiln_compiler::lent::{DeviceFunction, lent_function};
use kiln_compiler::runtime::{AdoptedFunction, LoadedCode, outside_of_calls};

/// A function of other code's module on a device. Clones are the same function.
///
/// ```no_run
/// use kiln::core::jit::ForeignFunction;
/// use kiln::prelude::*;
///
/// // In C: `void scale(float *x, float by)`, of which each block has 1 KiB of dynamic shared memory.
/// fn scale(scale: &ForeignFunction, jit: &Jit, x: &mut Buffer<f32>) -> kiln::Result<()> {
///     let (stream, config) = (jit.stream()?, LaunchConfig::new(4, 256).shared_bytes(1024));
///     // SAFETY: there is an element for each thread.
///     unsafe { scale.on(&stream)?.launch_with(config, args!(x, 2.0f32)) }
/// }
/// ```
#[derive(Clone)]
pub struct ForeignFunction {
    jit: Jit,
    function: Arc<Function>,
}

struct Function {
    code: Box<dyn LoadedCode>,
    /// What launches know of a kernel whose parameters are values of so many bytes.
    info: Arc<KernelInfo>,
}

impl std::fmt::Debug for ForeignFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ForeignFunction({})", self.function.info.name)
    }
}

impl Jit {
    /// A function of a module that other code in the process has loaded in the device's context, as cudarc with the feature
    /// of this name, to be launched with [`args!`](kiln_compiler::args!) in the order of streams and buffers. `name` is what
    /// errors call it. It is kept until nobody has what is returned, or a clone of it, any more.
    ///
    /// ```no_run
    /// use kiln::core::lent::RawFunction;
    /// use kiln::prelude::*;
    ///
    /// # fn function_of_a_library() -> *mut std::ffi::c_void { std::ptr::null_mut() }
    /// # fn main() -> kiln::Result<()> {
    /// let jit = Jit::new()?;
    /// // SAFETY: the library keeps its modules loaded.
    /// let raw = unsafe { RawFunction::new(function_of_a_library()) };
    /// let saxpy = jit.adopt_function("saxpy", raw)?;
    /// let (x, mut y) = (jit.upload(&[1.0f32; 64])?, jit.upload(&[2.0f32; 64])?);
    /// // SAFETY: in C, `saxpy(float a, const float *x, float *y, unsigned n)`, which stays below n.
    /// unsafe { saxpy.launch(2, 32, args!(3.0f32, &x, &mut y, 64u32))? };
    /// assert_eq!(y.to_vec()?, [5.0; 64]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What the driver does not know as a function; a driver that does not say what parameters it has, which those for CUDA
    /// 12.4 and later do; a device that is no GPU, or that has failed.
    pub fn adopt_function(
        &self,
        name: &str,
        function: impl DeviceFunction,
    ) -> Result<ForeignFunction> {
        outside_of_calls()?;
        let device = &self.0.device;
        let adopted = device
            .backend()
            .adopt_function(&lent_function(function), name);
        let AdoptedFunction { code, params } = device.told(adopted)?;
        let info = Arc::new(info_of(name, params));
        Ok(ForeignFunction {
            jit: self.clone(),
            function: Arc::new(Function { code, info }),
        })
    }
}

/// What launches need to know of a function with these parameters.
fn info_of(name: &str, slots: Vec<ParamSlot>) -> KernelInfo {
    let end = slots.last().map_or(0, |last| last.offset + last.size);
    KernelInfo {
        name: name.to_owned(),
        param_names: (1..=slots.len())
            .map(|n| format!("parameter {n}"))
            .collect(),
        layout: ParamLayout {
            params: slots.iter().map(|slot| ParamKind::Value(*slot)).collect(),
            visible: slots.len(),
            fault_channel: None,
            slots,
            size: end,
        },
        hidden: Vec::new(),
        fault_sites: Vec::new(),
        print_sites: Vec::new(),
        kernel_tag: 0,
        launch_bounds: None,
        shared_bytes: 0,
        waits_for_grid: false,
    }
}

impl ForeignFunction {
    /// The function with launches to a stream of its device.
    ///
    /// # Errors
    /// A stream of another device.
    pub fn on(&self, stream: &Stream) -> Result<ForeignFunction> {
        Ok(ForeignFunction {
            jit: self.jit.in_stream(stream)?,
            function: self.function.clone(),
        })
    }

    /// Launches it, behind what uses the buffers that it is given; [`Jit::adopt_function`] has an example. A buffer is passed
    /// as its address, one behind `&mut` as what may be written; a value as its bytes.
    ///
    /// # Safety
    /// The arguments are of the types that the function has. It accesses memory of them within their lengths, writes what is
    /// behind `&mut` alone, and no other memory that anybody uses meanwhile.
    ///
    /// # Errors
    /// Arguments of other sizes than its parameters, a shape the device does not have, a device that has failed.
    pub unsafe fn launch(
        &self,
        grid: impl Into<Dim3>,
        block: impl Into<Dim3>,
        args: &[Arg<'_>],
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { self.launch_with(LaunchConfig::new(grid, block), args) }
    }

    /// [`ForeignFunction::launch`] with dynamic shared memory, or cooperative.
    ///
    /// # Safety
    /// As there.
    ///
    /// # Errors
    /// As there.
    pub unsafe fn launch_with(&self, config: LaunchConfig, args: &[Arg<'_>]) -> Result<()> {
        let Function { code, info } = &*self.function;
        let converted = self.jit.convert(&|| info.name.clone(), args)?;
        let args = converted.as_ref().map_or(args, Converted::args);
        check_args(info, args)?;
        check_config(&config, &self.jit.0.limits, info)?;
        if config.cooperative {
            self.jit.check_all_at_once(info, &**code, &config)?;
        }
        self.jit.launch_code(info, &**code, &config, args)
    }
}

/// Refuses arguments of other sizes than the parameters.
fn check_args(info: &KernelInfo, args: &[Arg<'_>]) -> Result<(), LaunchError> {
    let slots = &info.layout.slots;
    let fits = |(slot, arg): (&ParamSlot, &Arg<'_>)| {
        // What has no size is refused when it is passed, with its reason.
        arg.bytes_in_c().is_none_or(|bytes| bytes == slot.size)
    };
    if slots.len() == args.len() && slots.iter().zip(args).all(fits) {
        return Ok(());
    }
    let sizes = |sizes: Vec<Option<u32>>| {
        let size = |size: Option<u32>| size.map_or("?".to_owned(), |size| size.to_string());
        let sizes: Vec<String> = sizes.into_iter().map(size).collect();
        sizes.join(", ")
    };
    Err(LaunchError::OtherParameters {
        function: info.name.clone(),
        parameters: sizes(slots.iter().map(|slot| Some(slot.size)).collect()),
        arguments: sizes(args.iter().map(Arg::bytes_in_c).collect()),
    })
}
