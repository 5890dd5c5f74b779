//! Functions of other code's modules, to be launched with Kiln's arguments; what is done with them is [`kiln_runtime`]'s.

use std::ffi::c_void;
use std::sync::Arc;

use kiln_runtime::LentFunction;

/// A function of a module that other code has loaded, for `Jit::adopt_function`. With the feature `cudarc` its
/// `CudaFunction` is one.
///
/// # Safety
/// What `as_raw` gives is always the same `CUfunction`, whose module stays loaded as long as the value, on whichever
/// thread that is.
pub unsafe trait DeviceFunction: Send + Sync + 'static {
    /// The function as the driver knows it: a `CUfunction`.
    fn as_raw(&self) -> *mut c_void;
}

/// A function by its handle, where no type owns it.
#[derive(Debug)]
pub struct RawFunction(*mut c_void);

// SAFETY: a handle, which the driver takes on any thread.
unsafe impl Send for RawFunction {}
// SAFETY: as above.
unsafe impl Sync for RawFunction {}

impl RawFunction {
    /// A function of which somebody else sees to it that its module stays loaded; `Jit::adopt_function` has an example.
    ///
    /// # Safety
    /// `function` is a `CUfunction` whose module stays loaded as long as this value and what is made of it.
    pub unsafe fn new(function: *mut c_void) -> RawFunction {
        RawFunction(function)
    }
}

// SAFETY: whoever made it has promised that its module stays loaded.
unsafe impl DeviceFunction for RawFunction {
    fn as_raw(&self) -> *mut c_void {
        self.0
    }
}

/// A function with what keeps it, as devices take it.
#[doc(hidden)]
pub fn lent_function(function: impl DeviceFunction) -> LentFunction {
    let (raw, keep) = (function.as_raw(), Arc::new(function));
    // SAFETY: so the trait's implementation has promised.
    unsafe { LentFunction::new(raw, keep) }
}
