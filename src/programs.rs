//! The programs in the documentation of Kiln's macros, as documentation tests of this crate: those of a macro's own crate are
//! linked with what is built for the host, which would be all of Kiln once more.

#[doc = include_str!("../jit-core/kernel-macro/docs/kernel.md")]
struct Kernel;

#[doc = include_str!("../jit-core/kernel-macro/docs/device_fn.md")]
struct DeviceFn;

#[doc = include_str!("../jit-core/kernel-macro/docs/kernel_view.md")]
struct KernelView;

#[doc = include_str!("../directives/macro/docs/offload.md")]
struct Offload;
