//! The launch, and which limit a refused one exceeded.
//!
//! The launch is the hot path: on success it is one atomic load (poisoned?), one comparison, the
//! driver's `cuCtxGetCurrent` and `cuLaunchKernel`, and a relaxed load; no lock, no allocation.
//! The driver refuses a bad launch without saying why; [`launch_limit`] works it out from the
//! device's limits (CUDA C++ Programming Guide, "Technical Specifications per Compute
//! Capability").

use std::ffi::c_void;
use std::ptr;

use super::context::CudaContext;
use super::device::DeviceInfo;
use super::error::DriverError;
use super::module::{CudaFunction, FunctionAttributes};
use super::stream::StreamHandle;

impl CudaContext {
    /// Starts a kernel and returns without waiting for it. `grid` counts blocks and `block`
    /// threads, in x, y, z; `shared_bytes` is dynamic shared memory for each block. `params` points
    /// at one pointer per kernel parameter, each to that parameter's value; the driver has copied
    /// the values when the call returns.
    ///
    /// # Errors
    /// [`DriverError::LaunchFailed`] with the limit that was exceeded, when the driver refuses the
    /// launch; [`DriverError::OutOfMemory`]; [`DriverError::ForeignHandle`] for a function of
    /// another context; [`DriverError::Poisoned`], also for an earlier launch. What the kernel
    /// itself does wrong appears at a later call.
    ///
    /// # Safety
    /// `params` has as many valid pointers as the kernel has parameters, each to a value of the
    /// parameter's size and alignment; device memory that the kernel reaches through them is valid
    /// until the kernel has ended, and nothing else accesses it in a conflicting way; the stream is
    /// live and of this context.
    #[inline]
    pub unsafe fn launch(
        &self,
        function: &CudaFunction,
        grid: [u32; 3],
        block: [u32; 3],
        shared_bytes: u32,
        stream: StreamHandle,
        params: *mut *mut c_void,
    ) -> Result<(), DriverError> {
        if !ptr::eq(self, &raw const **function.context()) {
            return Err(DriverError::ForeignHandle { what: "kernel" });
        }
        let table = self.enter()?;
        // SAFETY: the context is current and the function loaded; parameters and stream are the
        // caller's promise.
        let code = unsafe {
            (table.cuLaunchKernel)(
                function.handle,
                grid[0],
                grid[1],
                grid[2],
                block[0],
                block[1],
                block[2],
                shared_bytes,
                stream.0,
                params,
                ptr::null_mut(),
            )
        };
        if code == 0 {
            self.recent.note(function.number);
            return Ok(());
        }
        Err(function.launch_error(code, grid, block, shared_bytes))
    }
}

impl CudaFunction {
    /// The error for a launch that the driver refused.
    #[cold]
    pub(super) fn launch_error(
        &self,
        code: u32,
        grid: [u32; 3],
        block: [u32; 3],
        shared_bytes: u32,
    ) -> DriverError {
        let context = self.context();
        match context.error("cuLaunchKernel", code) {
            DriverError::Other { code, .. } => DriverError::LaunchFailed {
                kernel: self.name().clone(),
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
