//! The driver's entry points, resolved once into a table of function pointers.
//!
//! Names are the exported symbols with their version suffixes, as `cuda.h` maps them (CUDA Driver
//! API, "Driver Entry Point Access"). Types are those of `cudarc::driver::sys`, and a constant per
//! entry makes the compiler compare our signature with that binding. One thing differs on
//! purpose: a result is a plain `u32`, because a newer driver may return a code that the binding's
//! enum does not have, which would be undefined behaviour for the enum.

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_void};

use cudarc::driver::sys;
use libloading::Library;

use super::error::DriverError;

/// A `CUresult` as a number; 0 is success.
pub(super) type Code = u32;

/// Declares the table, its resolution, and the comparison of signatures with the binding.
macro_rules! driver_table {
    (
        required { $( fn $name:ident($($arg:ty),* $(,)?); )* }
        required_unlike_binding { $( fn $other:ident($($other_arg:ty),* $(,)?); )* }
        optional { $( fn $new:ident($($new_arg:ty),* $(,)?); )* }
    ) => {
        #[allow(non_snake_case, reason = "fields carry the driver's symbol names")]
        pub(super) struct Table {
            $( pub(super) $name: unsafe extern "C" fn($($arg),*) -> Code, )*
            $( pub(super) $other: unsafe extern "C" fn($($other_arg),*) -> Code, )*
            $( pub(super) $new: Option<unsafe extern "C" fn($($new_arg),*) -> Code>, )*
        }

        impl Table {
            /// Looks every entry up in `library`, which messages call `path`.
            pub(super) fn resolve(library: &Library, path: &str) -> Result<Table, DriverError> {
                Ok(Table {
                    // SAFETY: the symbol of this name has this signature (compared below).
                    $( $name: unsafe { required(library, stringify!($name), path)? }, )*
                    // SAFETY: as above, compared by hand below.
                    $( $other: unsafe { required(library, stringify!($other), path)? }, )*
                    // SAFETY: the symbol of this name has this signature (compared below).
                    $( $new: unsafe { optional(library, stringify!($new)) }, )*
                })
            }
        }

        $( const _: unsafe fn($($arg),*) -> sys::CUresult = sys::$name; )*
        $( const _: unsafe fn($($new_arg),*) -> sys::CUresult = sys::$new; )*
    };
}

driver_table! {
    required {
        fn cuInit(c_uint);
        fn cuDriverGetVersion(*mut c_int);
        fn cuDeviceGetCount(*mut c_int);
        fn cuDeviceGet(*mut sys::CUdevice, c_int);
        fn cuDeviceGetName(*mut c_char, c_int, sys::CUdevice);
        fn cuDeviceGetAttribute(*mut c_int, sys::CUdevice_attribute, sys::CUdevice);
        fn cuDeviceTotalMem_v2(*mut usize, sys::CUdevice);
        fn cuDevicePrimaryCtxRetain(*mut sys::CUcontext, sys::CUdevice);
        fn cuDevicePrimaryCtxRelease_v2(sys::CUdevice);
        fn cuDevicePrimaryCtxReset_v2(sys::CUdevice);
        fn cuCtxGetCurrent(*mut sys::CUcontext);
        fn cuCtxSetCurrent(sys::CUcontext);
        fn cuCtxSynchronize();
        fn cuMemGetInfo_v2(*mut usize, *mut usize);
        fn cuMemAlloc_v2(*mut sys::CUdeviceptr, usize);
        fn cuMemFree_v2(sys::CUdeviceptr);
        fn cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
        fn cuMemHostGetDevicePointer_v2(*mut sys::CUdeviceptr, *mut c_void, c_uint);
        fn cuMemFreeHost(*mut c_void);
        fn cuMemcpyHtoD_v2(sys::CUdeviceptr, *const c_void, usize);
        fn cuMemcpyDtoH_v2(*mut c_void, sys::CUdeviceptr, usize);
        fn cuMemcpyDtoD_v2(sys::CUdeviceptr, sys::CUdeviceptr, usize);
        fn cuMemcpyHtoDAsync_v2(sys::CUdeviceptr, *const c_void, usize, sys::CUstream);
        fn cuMemcpyDtoHAsync_v2(*mut c_void, sys::CUdeviceptr, usize, sys::CUstream);
        fn cuMemcpy3DAsync_v2(*const sys::CUDA_MEMCPY3D, sys::CUstream);
        fn cuMemcpyDtoDAsync_v2(sys::CUdeviceptr, sys::CUdeviceptr, usize, sys::CUstream);
        fn cuMemcpyPeerAsync(sys::CUdeviceptr, sys::CUcontext, sys::CUdeviceptr, sys::CUcontext, usize, sys::CUstream);
        fn cuMemsetD8Async(sys::CUdeviceptr, c_uchar, usize, sys::CUstream);
        fn cuMemsetD32Async(sys::CUdeviceptr, c_uint, usize, sys::CUstream);
        fn cuModuleLoadDataEx(
            *mut sys::CUmodule,
            *const c_void,
            c_uint,
            *mut sys::CUjit_option,
            *mut *mut c_void,
        );
        fn cuModuleUnload(sys::CUmodule);
        fn cuModuleGetFunction(*mut sys::CUfunction, sys::CUmodule, *const c_char);
        fn cuModuleGetGlobal_v2(
            *mut sys::CUdeviceptr,
            *mut usize,
            sys::CUmodule,
            *const c_char,
        );
        fn cuFuncGetAttribute(*mut c_int, sys::CUfunction_attribute, sys::CUfunction);
        fn cuFuncSetAttribute(sys::CUfunction, sys::CUfunction_attribute, c_int);
        fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
            *mut c_int,
            sys::CUfunction,
            c_int,
            usize,
        );
        fn cuOccupancyMaxPotentialBlockSize(
            *mut c_int,
            *mut c_int,
            sys::CUfunction,
            sys::CUoccupancyB2DSize,
            usize,
            c_int,
        );
        fn cuLaunchCooperativeKernel(
            sys::CUfunction,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            sys::CUstream,
            *mut *mut c_void,
        );
        fn cuLaunchKernel(
            sys::CUfunction,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            sys::CUstream,
            *mut *mut c_void,
            *mut *mut c_void,
        );
        fn cuCtxGetStreamPriorityRange(*mut c_int, *mut c_int);
        fn cuStreamCreate(*mut sys::CUstream, c_uint);
        fn cuStreamCreateWithPriority(*mut sys::CUstream, c_uint, c_int);
        fn cuStreamDestroy_v2(sys::CUstream);
        fn cuStreamSynchronize(sys::CUstream);
        fn cuStreamQuery(sys::CUstream);
        fn cuStreamGetCtx(sys::CUstream, *mut sys::CUcontext);
        fn cuStreamWaitEvent(sys::CUstream, sys::CUevent, c_uint);
        fn cuLaunchHostFunc(sys::CUstream, sys::CUhostFn, *mut c_void);
        fn cuEventCreate(*mut sys::CUevent, c_uint);
        fn cuEventDestroy_v2(sys::CUevent);
        fn cuEventRecord(sys::CUevent, sys::CUstream);
        fn cuEventQuery(sys::CUevent);
        fn cuEventSynchronize(sys::CUevent);
    }
    required_unlike_binding {
        fn cuGetErrorName(Code, *mut *const c_char);
        fn cuGetErrorString(Code, *mut *const c_char);
        // Still exported by CUDA 13 drivers, though 13.0's header names only `_v2`.
        fn cuEventElapsedTime(*mut f32, sys::CUevent, sys::CUevent);
    }
    optional {
        // CUDA 11.2: memory that is allocated and freed in the order of a stream.
        fn cuMemPoolCreate(*mut sys::CUmemoryPool, *const sys::CUmemPoolProps);
        fn cuMemPoolDestroy(sys::CUmemoryPool);
        fn cuMemPoolSetAttribute(sys::CUmemoryPool, sys::CUmemPool_attribute, *mut c_void);
        fn cuMemPoolGetAttribute(sys::CUmemoryPool, sys::CUmemPool_attribute, *mut c_void);
        fn cuMemPoolTrimTo(sys::CUmemoryPool, usize);
        fn cuMemAllocFromPoolAsync(
            *mut sys::CUdeviceptr,
            usize,
            sys::CUmemoryPool,
            sys::CUstream,
        );
        fn cuMemFreeAsync(sys::CUdeviceptr, sys::CUstream);
        // What makes machine code of PTX without loading it.
        fn cuLinkCreate_v2(
            c_uint,
            *mut sys::CUjit_option,
            *mut *mut c_void,
            *mut sys::CUlinkState,
        );
        fn cuLinkAddData_v2(
            sys::CUlinkState,
            sys::CUjitInputType,
            *mut c_void,
            usize,
            *const c_char,
            c_uint,
            *mut sys::CUjit_option,
            *mut *mut c_void,
        );
        fn cuLinkComplete(sys::CUlinkState, *mut *mut c_void, *mut usize);
        fn cuLinkDestroy(sys::CUlinkState);
        // Graphs, in the form that CUDA 12 gave them.
        fn cuGraphCreate(*mut sys::CUgraph, c_uint);
        fn cuGraphDestroy(sys::CUgraph);
        fn cuGraphInstantiateWithFlags(*mut sys::CUgraphExec, sys::CUgraph, u64);
        fn cuGraphExecDestroy(sys::CUgraphExec);
        fn cuGraphLaunch(sys::CUgraphExec, sys::CUstream);
        fn cuGraphAddKernelNode_v2(
            *mut sys::CUgraphNode,
            sys::CUgraph,
            *const sys::CUgraphNode,
            usize,
            *const sys::CUDA_KERNEL_NODE_PARAMS,
        );
        fn cuGraphAddMemcpyNode(
            *mut sys::CUgraphNode,
            sys::CUgraph,
            *const sys::CUgraphNode,
            usize,
            *const sys::CUDA_MEMCPY3D,
            sys::CUcontext,
        );
        fn cuGraphAddMemsetNode(
            *mut sys::CUgraphNode,
            sys::CUgraph,
            *const sys::CUgraphNode,
            usize,
            *const sys::CUDA_MEMSET_NODE_PARAMS,
            sys::CUcontext,
        );
        fn cuGraphExecKernelNodeSetParams_v2(
            sys::CUgraphExec,
            sys::CUgraphNode,
            *const sys::CUDA_KERNEL_NODE_PARAMS,
        );
        fn cuGraphKernelNodeSetAttribute(
            sys::CUgraphNode,
            sys::CUlaunchAttributeID,
            *const sys::CUlaunchAttributeValue,
        );
        fn cuGraphExecMemcpyNodeSetParams(
            sys::CUgraphExec,
            sys::CUgraphNode,
            *const sys::CUDA_MEMCPY3D,
            sys::CUcontext,
        );
        fn cuGraphExecMemsetNodeSetParams(
            sys::CUgraphExec,
            sys::CUgraphNode,
            *const sys::CUDA_MEMSET_NODE_PARAMS,
            sys::CUcontext,
        );
        // CUDA 10.1: what captures of other code refuse to a thread, and whether a stream is in one.
        fn cuThreadExchangeStreamCaptureMode(*mut sys::CUstreamCaptureMode);
        fn cuStreamIsCapturing(sys::CUstream, *mut sys::CUstreamCaptureStatus);
        // CUDA 12.4: loads a function now instead of at its first launch.
        fn cuFuncLoad(sys::CUfunction);
        // CUDA 12.4: what parameters a function has.
        fn cuFuncGetParamInfo(sys::CUfunction, usize, *mut usize, *mut usize);
        // CUDA 12.8.
        fn cuEventElapsedTime_v2(*mut f32, sys::CUevent, sys::CUevent);
    }
}

const _: unsafe fn(sys::CUresult, *mut *const c_char) -> sys::CUresult = sys::cuGetErrorName;
const _: unsafe fn(sys::CUresult, *mut *const c_char) -> sys::CUresult = sys::cuGetErrorString;
const _: () = assert!(size_of::<sys::CUresult>() == size_of::<Code>());

/// # Safety
/// `F` is a function pointer type of the symbol's signature.
unsafe fn required<F: Copy>(
    library: &Library,
    symbol: &'static str,
    path: &str,
) -> Result<F, DriverError> {
    // SAFETY: passed on to the caller.
    unsafe { optional(library, symbol) }.ok_or_else(|| DriverError::SymbolMissing {
        symbol,
        library: path.to_owned(),
    })
}

/// # Safety
/// `F` is a function pointer type of the symbol's signature.
unsafe fn optional<F: Copy>(library: &Library, symbol: &str) -> Option<F> {
    // SAFETY: passed on to the caller; the library is never closed (see `Driver`), so the copied
    // pointer stays valid.
    unsafe { library.get::<F>(symbol) }.ok().map(|found| *found)
}
