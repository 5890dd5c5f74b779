//! The launch, and which limit a refused one exceeded.
//!
//! The launch is the hot path: on success it is one atomic load (poisoned?), one comparison, the
//! driver's `cuCtxGetCurrent` and `cuLaunchKernel`, and a relaxed load; no lock, no allocation.
//! The driver refuses a bad launch without saying why; [`launch_limit`] works it out from the
//! device's limits (CUDA C++ Programming Guide, "Technical Specifications per Compute
//! Capability").

use std::ffi::c_void;
use std::ptr;

use cudarc::driver::sys;
use kiln_ir::launch::LaunchConfig;

use super::context::CudaContext;
use super::device::DeviceInfo;
use super::error::DriverError;
use super::module::{CudaFunction, FunctionAttributes};
use super::stream::StreamHandle;
use super::table::{Code, Table};

impl CudaContext {
    /// Starts a kernel and returns without waiting for it. `params` has the values of the
    /// kernel's parameters, each at its alignment and nothing behind the last; the driver has copied them when the call
    /// returns. The launch is not cooperative.
    ///
    /// # Errors
    /// [`DriverError::LaunchFailed`] with the limit that was exceeded, when the driver refuses the
    /// launch; [`DriverError::OutOfMemory`]; [`DriverError::ForeignHandle`] for a function of
    /// another context; [`DriverError::Poisoned`], also for an earlier launch. What the kernel
    /// itself does wrong appears at a later call.
    ///
    /// # Safety
    /// `params` is such a block of the kernel's parameters; device memory that the kernel reaches through them is valid
    /// until the kernel has ended, and nothing else accesses it in a conflicting way; the stream is
    /// live and of this context.
    #[inline(always)]
    pub unsafe fn launch(
        &self,
        function: &CudaFunction,
        config: &LaunchConfig,
        stream: StreamHandle,
        params: &mut [u8],
    ) -> Result<(), DriverError> {
        // First, as all that is read before has to be kept somewhere meanwhile.
        let table = self.enter_for(function)?;
        // One block has as many bytes to be copied as pointers to them would, and none to be made and followed.
        let mut size = params.len();
        let mut named: [*mut c_void; 5] = [
            ptr::without_provenance_mut(sys::CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT as usize),
            params.as_mut_ptr().cast(),
            ptr::without_provenance_mut(sys::CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT as usize),
            (&raw mut size).cast(),
            ptr::without_provenance_mut(sys::CU_LAUNCH_PARAM_END_AS_INT as usize),
        ];
        let (none, passed) = (
            ptr::null_mut(),
            match size {
                0 => ptr::null_mut(),
                _ => named.as_mut_ptr(),
            },
        );
        let (grid, block, shared) = (config.grid, config.block, config.shared_bytes);
        // SAFETY: the context is current and the function loaded; parameters and stream are the
        // caller's promise.
        let code = unsafe {
            (table.cuLaunchKernel)(
                function.handle,
                grid.x,
                grid.y,
                grid.z,
                block.x,
                block.y,
                block.z,
                shared,
                stream.0,
                none,
                passed,
            )
        };
        self.launched("cuLaunchKernel", function, code, config)
    }

    /// [`CudaContext::enter_at_once`] for a launch of this function.
    #[inline]
    pub(super) fn enter_for(&self, function: &CudaFunction) -> Result<&'static Table, DriverError> {
        if !ptr::eq(self, &raw const **function.context()) {
            return Err(DriverError::ForeignHandle { what: "kernel" });
        }
        self.enter_at_once()
    }

    /// What the driver said to a launch by this call.
    #[inline]
    pub(super) fn launched(
        &self,
        call: &'static str,
        function: &CudaFunction,
        code: Code,
        config: &LaunchConfig,
    ) -> Result<(), DriverError> {
        if code == 0 {
            self.recent.note(function.number);
            return Ok(());
        }
        let (grid, block) = (config.grid.to_array(), config.block.to_array());
        Err(function.launch_error(call, code, grid, block, config.shared_bytes))
    }
}

impl CudaFunction {
    /// The error for a launch that the driver refused in this call.
    #[cold]
    pub(super) fn launch_error(
        &self,
        call: &'static str,
        code: u32,
        grid: [u32; 3],
        block: [u32; 3],
        shared_bytes: u32,
    ) -> DriverError {
        let context = self.context();
        match context.error(call, code) {
            DriverError::Other { code, .. } => DriverError::LaunchFailed {
                kernel: self.name().clone(),
                call,
                code: Box::new(code),
                grid,
                block,
                shared_bytes,
                limit: launch_limit(
                    context.info(),
                    &self.attributes(),
                    grid,
                    block,
                    shared_bytes,
                )
                .map(String::into_boxed_str),
            },
            other => other,
        }
    }
}

/// The first limit of the device or the kernel that a launch exceeds, as a sentence that says what
/// was asked, what is allowed and what to do; `None` when it keeps all of them.
fn launch_limit(
    device: &DeviceInfo,
    kernel: &FunctionAttributes,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
) -> Option<String> {
    const AXES: [&str; 3] = ["x", "y", "z"];
    for (axis, name) in AXES.iter().enumerate() {
        for (what, asked, most) in [
            ("grid", grid[axis], device.max_grid[axis]),
            ("block", block[axis], device.max_block[axis]),
        ] {
            if asked == 0 {
                return Some(format!("The {what} is 0 in {name}: it must be at least 1"));
            }
            if asked > most {
                return Some(format!(
                    "The {what} is {asked} in {name}, and the device allows {most}: use a smaller \
                     one"
                ));
            }
        }
    }
    let threads = block.iter().map(|&n| u64::from(n)).product::<u64>();
    let most = device.max_threads_per_block;
    if threads > u64::from(most) {
        return Some(format!(
            "The block has {threads} threads, and the device allows {most}: use a smaller block"
        ));
    }
    let most = kernel.max_threads_per_block;
    if most != 0 && threads > u64::from(most) {
        return Some(format!(
            "The block has {threads} threads, and this kernel allows {most}, with {} registers a \
             thread of {} a block: use a smaller block, or compile with launch bounds",
            kernel.registers, device.registers_per_block
        ));
    }
    let shared = u64::from(shared_bytes) + u64::from(kernel.static_shared_bytes);
    let most = device.shared_bytes_per_block_optin;
    if shared > u64::from(most) {
        return Some(format!(
            "The block needs {shared} bytes of shared memory ({} static, {shared_bytes} dynamic), \
             and the device allows {most}: use less",
            kernel.static_shared_bytes
        ));
    }
    let most = device.shared_bytes_per_block;
    (shared > u64::from(most)).then(|| {
        format!(
            "The block needs {shared} bytes of shared memory, and more than {most} must be \
             allowed first: call `allow_dynamic_shared`"
        )
    })
}
