//! The CUDA driver layer against a fake driver: no GPU is needed.
//!
//! Covers loading, contexts, memory, modules, launches and streams, and what each error says.
//! `reset` covers devices begun anew after such an error, and who is told of faults;
//! `lost_context` covers errors that end a context, failures at every single call, and the fault
//! channel; `soak` long runs; `scenarios` failures at every call of programs that use a `Jit`.

#[path = "cuda_driver/between.rs"]
mod between;
#[path = "cuda_driver/captures.rs"]
mod captures;
#[path = "cuda_driver/counted.rs"]
mod counted;
#[path = "counting.rs"]
mod counting;
#[path = "fake-cuda/loading.rs"]
mod fake;
#[path = "cuda_driver/first.rs"]
mod first;
#[path = "cuda_driver/given_up.rs"]
mod given_up;
#[path = "cuda_driver/graphs.rs"]
mod graphs;
#[path = "held.rs"]
mod held;
#[path = "cuda_driver/hooked.rs"]
mod hooked;
#[path = "../../benches/instructions.rs"]
mod instructions;
#[path = "cuda_driver/kept.rs"]
mod kept;
#[path = "cuda_driver/launched.rs"]
mod launched;
#[path = "cuda_driver/lent.rs"]
mod lent;
#[path = "cuda_driver/lists.rs"]
mod lists;
#[path = "cuda_driver/lost_context.rs"]
mod lost_context;
#[path = "cuda_driver/meanwhile.rs"]
mod meanwhile;
#[path = "mixed.rs"]
mod mixed;
#[path = "cuda_driver/occupancy.rs"]
mod occupancy;
#[path = "cuda_driver/order.rs"]
mod order;
#[path = "cuda_driver/pool.rs"]
mod pool;
#[path = "cuda_driver/primary.rs"]
mod primary;
#[path = "cuda_driver/regions.rs"]
mod regions;
#[path = "cuda_driver/reset.rs"]
mod reset;
#[path = "cuda_driver/rows.rs"]
mod rows;
#[path = "cuda_driver/scenarios.rs"]
mod scenarios;
#[path = "cuda_driver/sharing.rs"]
mod sharing;
#[path = "cuda_driver/soak.rs"]
mod soak;
#[path = "cuda_driver/tensor.rs"]
mod tensor;
#[path = "cuda_driver/waiting.rs"]
mod waiting;

use std::sync::Arc;

use counting::allocations;
use expect_test::{Expect, expect};
use fake::{Fake, Ledger};
use kiln_jit_core::launch::LaunchConfig;
use kiln_jit_core::runtime::cuda::{
    CudaContext, CudaFunction, Driver, DriverError, StreamHandle, max_ptx_version,
};
use kiln_jit_core::value::bytes_of;

const PTX: &str = "//\n.version 8.0\n.target sm_90\n.global .align 8 .b8 table[16];\n\
                   .visible .entry saxpy(\n.param .u64 a\n)\n{ ret; }\n.visible .entry sum(\n.param .u64 a\n)\n\
                   { ret; }\n";

fn context(fake: &Fake) -> Arc<CudaContext> {
    CudaContext::with_driver(fake.open().unwrap(), 0).unwrap()
}

fn function(context: &Arc<CudaContext>, name: &str) -> CudaFunction {
    let module = context.load_module(PTX.as_bytes(), name).unwrap();
    module.function(name).unwrap()
}

/// Launches a kernel that takes one address.
fn launch(
    context: &CudaContext,
    function: &CudaFunction,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
) -> Result<(), DriverError> {
    let mut params = 0xA5A5u64.to_ne_bytes();
    let stream = StreamHandle::DEFAULT;
    let config = LaunchConfig::new(grid, block).shared_bytes(shared_bytes);
    // SAFETY: the fake runs nothing, and reads one 8-byte parameter.
    unsafe { context.launch(function, &config, stream, &mut params) }
}

#[track_caller]
fn check<T: std::fmt::Debug>(fake: &Fake, result: Result<T, DriverError>, expected: Expect) {
    expected.assert_eq(&fake.text(&result.unwrap_err()));
}

// --- Loading ----------------------------------------------------------------------------------

#[test]
fn missing_library() {
    let error = Driver::open("/nonexistent/libcuda.so.1").unwrap_err();
    let DriverError::LibraryNotFound { tried } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(tried.len(), 1);
    // The reason is the system's text.
    let reason = tried[0].split_once('(').unwrap().1;
    expect!["no CUDA driver library could be opened; tried `/nonexistent/libcuda.so.1` (REASON). Install the NVIDIA driver (in a container, start it with GPU support), or set KILN_LIBCUDA to the full path of libcuda, or use the CPU device"].assert_eq(&error.to_string().replace(reason, "REASON)"));
}

#[test]
fn library_that_is_no_driver() {
    let fake = Fake::empty();
    check(
        &fake,
        fake.open(),
        expect![
            "`FAKE` has no symbol `cuInit`, so it is not a CUDA driver that Kiln can use. Update the NVIDIA driver, or check KILN_LIBCUDA"
        ],
    );
}

#[test]
fn too_old() {
    let fake = Fake::new();
    fake.set(11040, 1, 0, 1 << 30);
    check(
        &fake,
        fake.open(),
        expect![
            "the CUDA driver `FAKE` is of CUDA 11.4, and Kiln needs 11.8 or newer. Update the NVIDIA driver, or use the CPU device"
        ],
    );
}

#[test]
fn stub_library() {
    let fake = Fake::new();
    fake.set(12080, 1, 34, 1 << 30);
    check(
        &fake,
        fake.open(),
        expect![
            "`FAKE` is the CUDA toolkit's stub library, which has no driver behind it. Remove the toolkit's `stubs` folder from the library search path, or set KILN_LIBCUDA to the driver's own libcuda"
        ],
    );
}

#[test]
fn initialization_fails() {
    let fake = Fake::new();
    fake.set(12080, 1, 803, 1 << 30);
    check(
        &fake,
        fake.open(),
        expect![
            "cuInit failed: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803: version mismatch). libcuda and the kernel module are of different versions: reboot after an update"
        ],
    );
}

#[test]
fn no_device() {
    let fake = Fake::new();
    fake.set(12080, 0, 100, 1 << 30);
    check(
        &fake,
        fake.open(),
        expect![
            "the CUDA driver sees no device. Check `nvidia-smi`, and in a container that GPUs are passed through; or use the CPU device"
        ],
    );
    check(
        &fake,
        fake.open_with_visible(""),
        expect![[
            r#"the CUDA driver sees no device. CUDA_VISIBLE_DEVICES is set to "", which may hide the devices: unset it, or use the CPU device"#
        ]],
    );
    fake.set(12080, 0, 0, 1 << 30);
    assert!(matches!(
        CudaContext::with_driver(fake.open().unwrap(), 0),
        Err(DriverError::NoDevice { .. })
    ));
}

#[test]
fn invalid_device() {
    let fake = Fake::new();
    fake.set(12080, 2, 0, 1 << 30);
    check(
        &fake,
        CudaContext::with_driver(fake.open().unwrap(), 2),
        expect![
            "there is no CUDA device 2: the driver sees 2, numbered from 0. Ask for a lower number"
        ],
    );
}

#[test]
fn device_in_prohibited_mode() {
    let fake = Fake::new();
    fake.set_compute_mode(2);
    check(
        &fake,
        CudaContext::with_driver(fake.open().unwrap(), 0),
        expect![
            "CUDA device 0 (Fake GPU) refused a context: CUDA_ERROR_DEVICE_UNAVAILABLE (46: device busy or unavailable). Its compute mode is prohibited: in an exclusive mode end the other process that uses it, in the prohibited mode ask the administrator (`nvidia-smi -c 0`); under MPS check that its server runs"
        ],
    );
    assert_eq!(fake.ledger(), Ledger::default());
}

#[test]
fn versions() {
    let fake = Fake::new();
    let driver = fake.open().unwrap();
    assert_eq!(
        (driver.version(), driver.max_ptx_version()),
        (12080, (8, 7))
    );
    assert_eq!(driver.device_count().unwrap(), 1);
    for (cuda, ptx) in [
        (10020, (6, 5)),
        (11000, (7, 0)),
        (11080, (7, 8)),
        (12000, (8, 0)),
        (12050, (8, 5)),
        (12060, (8, 5)),
        (12070, (8, 6)),
        (12090, (8, 8)),
        (13000, (9, 0)),
        (14000, (9, 1)),
    ] {
        assert_eq!(max_ptx_version(cuda), ptx, "CUDA {cuda}");
    }
}

#[test]
fn device_info() {
    let fake = Fake::new();
    let context = context(&fake);
    let info = context.info();
    assert_eq!((info.name.as_str(), info.sm()), ("Fake GPU", 90));
    assert_eq!(info.max_block, [1024, 1024, 64]);
    assert_eq!(info.max_grid, [i32::MAX as u32, 65535, 65535]);
    assert_eq!(info.shared_bytes_per_block, 48 * 1024);
    assert_eq!(info.shared_bytes_per_block_optin, 227 * 1024);
    assert_eq!((info.multiprocessors, info.warp_size), (132, 32));
    assert_eq!((info.total_memory, info.compute_mode), (1 << 30, "default"));
}

// --- Memory -----------------------------------------------------------------------------------

#[test]
fn copies_and_fills() {
    let fake = Fake::new();
    let context = context(&fake);
    let source: Vec<u8> = (0..=255).collect();
    let (a, b) = (context.alloc(256).unwrap(), context.alloc(256).unwrap());
    context.copy_to_device(a, bytes_of(&source)).unwrap();
    context.copy_on_device(b + 16, a, 240).unwrap();
    context.fill_u8(b, 7, 12).unwrap();
    context.fill_u32(b + 12, 0x0403_0201, 1).unwrap();
    let mut back = [0u8; 256];
    context.copy_to_host(&mut back, b).unwrap();
    assert_eq!(back[..16], [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 1, 2, 3, 4]);
    assert_eq!(back[16..], source[..240]);
    assert_eq!(context.memory_info().unwrap().total, 1 << 30);
    // A free that the driver refuses can be tried again.
    fake.fail("cuMemFree_v2", 1, 1);
    context.free(a).unwrap_err();
    context.free(a).unwrap();
    context.free(b).unwrap();
    drop(context);
    assert_eq!(fake.ledger(), Ledger::default());
}

#[test]
fn zero_bytes_need_no_address() {
    let fake = Fake::new();
    let context = context(&fake);
    assert_eq!(context.alloc(0).unwrap(), 0);
    context.copy_to_device(0, bytes_of::<u8>(&[])).unwrap();
    context.copy_to_host(&mut [], 0).unwrap();
    context.copy_on_device(0, 0, 0).unwrap();
    context.fill_u8(0, 1, 0).unwrap();
    context.fill_u32(0, 1, 0).unwrap();
    context.free(0).unwrap();
}

#[test]
fn out_of_memory() {
    let fake = Fake::new();
    fake.set(12080, 1, 0, 4096);
    let context = context(&fake);
    let kept = context.alloc(1024).unwrap();
    check(
        &fake,
        context.alloc(4096),
        expect![
            "out of device memory in cuMemAlloc: asked for 4096 bytes, 3056 free of 4096; this program's buffers have 1024, and 0 are kept for later ones. Drop buffers, use smaller ones, or end other processes on the device; earlier buffers are intact"
        ],
    );
    context
        .copy_to_device(kept, bytes_of(&[1u8; 1024]))
        .unwrap();
    context.free(kept).unwrap();
    context.alloc(2048).unwrap();
}

#[test]
fn addresses_outside_allocations() {
    let fake = Fake::new();
    let context = context(&fake);
    let a = context.alloc(64).unwrap();
    let mut host = [0u8; 65];
    let error = context.copy_to_host(&mut host, a).unwrap_err();
    let text = error.to_string().replace(&format!("{a:#x}"), "ADDRESS");
    expect!["cuMemcpyDtoH: 65 bytes at device address ADDRESS are not inside a live allocation of this context. Check that the array was not freed, is of this device, and is long enough"].assert_eq(&text);
    // A host address is not device memory, whatever a real driver would make of it.
    let on_host = host.as_ptr() as u64;
    let invalid = |result| matches!(result, Err(DriverError::InvalidAddress { .. }));
    assert!(invalid(context.copy_to_device(on_host, bytes_of(&[1u8]))));
    assert!(invalid(context.fill_u8(a + 64, 0, 1)));
    assert!(invalid(context.fill_u32(a, 0, u64::MAX)));
    assert!(invalid(context.copy_on_device(a, a + 1, 64)));
    assert!(invalid(context.free(a + 8)));
    context.free(a).unwrap();
    assert!(invalid(context.free(a)));
    assert!(invalid(context.copy_to_device(a, bytes_of(&[1u8]))));
    assert_eq!(host, [0; 65]);
}

// --- Modules ----------------------------------------------------------------------------------

#[test]
fn functions_and_globals() {
    let fake = Fake::new();
    let context = context(&fake);
    let module = context.load_module(PTX.as_bytes(), "saxpy").unwrap();
    assert_eq!(module.info_log(), "ptxas info    : Used 32 registers");
    let saxpy = module.function("saxpy").unwrap();
    let attributes = saxpy.attributes();
    assert_eq!((attributes.registers, attributes.local_bytes), (128, 16));
    assert_eq!(
        (
            attributes.static_shared_bytes,
            attributes.max_threads_per_block
        ),
        (1024, 512)
    );
    assert_eq!(saxpy.max_active_blocks(256, 0).unwrap(), 8);
    module.copy_to_global("table", &[9; 16]).unwrap();
    assert_eq!(module.global("table").unwrap().bytes, 16);
    assert!(module.copy_to_global("table", &[9; 17]).is_err());
    check(
        &fake,
        module.function("dot"),
        expect![
            "the module of kernel `saxpy` has no symbol `dot`. Use a name that its PTX declares `.visible`"
        ],
    );
    drop(module);
    // The function keeps the module, the module the context.
    drop(context);
    launch(saxpy.context(), &saxpy, [1; 3], [1; 3], 0).unwrap();
    drop(saxpy);
    assert_eq!(fake.ledger(), Ledger::default());
}

#[test]
fn rejected_ptx() {
    let fake = Fake::new();
    let context = context(&fake);
    check(
        &fake,
        context.load_module(b"nonsense", "saxpy"),
        expect![
            "the driver refused the code of kernel `saxpy`: CUDA_ERROR_INVALID_PTX (218: a PTX JIT compilation failed). If a hook wrote or changed the PTX, correct it at the line the log names; otherwise report it with the PTX. Log: ptxas fatal   : Missing .version directive"
        ],
    );
    fake.reject(
        222,
        "ptxas fatal : Unsupported .version 9.0; current version is '8.7'\n",
    );
    let newer = PTX.replace("8.0", "9.0");
    check(
        &fake,
        context.load_module(newer.as_bytes(), "saxpy"),
        expect![
            "kernel `saxpy` is PTX 9.0, and the driver (CUDA 12.8) knows PTX up to 8.7. Compile for that PTX version, or update the NVIDIA driver. Log: ptxas fatal : Unsupported .version 9.0; current version is '8.7'"
        ],
    );
    check(
        &fake,
        context.load_module(b".version 8.0\0.target", "saxpy"),
        expect![
            "the PTX text or name for kernel `saxpy` has a NUL byte at offset 12. Remove it; if a hook wrote the text, look there"
        ],
    );
    // A NUL at the end is not inside.
    let module = context
        .load_module(format!("{PTX}\0").as_bytes(), "saxpy")
        .unwrap();
    assert!(matches!(
        module.function("sa\0xpy"),
        Err(DriverError::NulByte { offset: 2, .. })
    ));
}

// --- Launches ---------------------------------------------------------------------------------

#[test]
fn launch_passes_everything() {
    let fake = Fake::new();
    let context = context(&fake);
    let saxpy = function(&context, "saxpy");
    saxpy.allow_dynamic_shared(100_000).unwrap();
    launch(&context, &saxpy, [1, 2, 3], [4, 5, 6], 100_000).unwrap();
    assert_eq!(fake.last_launch(), [1, 2, 3, 4, 5, 6, 100_000, 0xA5A5]);
}

#[test]
fn refused_launches() {
    let fake = Fake::new();
    let context = context(&fake);
    let saxpy = function(&context, "saxpy");
    let mut texts = String::new();
    let mut note = |result: Result<(), DriverError>| {
        texts += &format!("{}\n", result.unwrap_err());
    };
    note(launch(&context, &saxpy, [1, 0, 1], [32, 1, 1], 0));
    note(launch(&context, &saxpy, [1, 65536, 1], [32, 1, 1], 0));
    note(launch(&context, &saxpy, [1, 1, 1], [1, 1, 65], 0));
    note(launch(&context, &saxpy, [1, 1, 1], [64, 32, 1], 0));
    note(launch(&context, &saxpy, [1, 1, 1], [1024, 1, 1], 0));
    note(launch(&context, &saxpy, [1, 1, 1], [32, 1, 1], 60_000));
    note(launch(&context, &saxpy, [1, 1, 1], [32, 1, 1], 300_000));
    note(saxpy.allow_dynamic_shared(240_000));
    fake.fail("cuLaunchKernel", 1, 1);
    note(launch(&context, &saxpy, [1, 1, 1], [32, 1, 1], 0));
    expect![[r#"
        launch of kernel `saxpy` refused by cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (1: invalid argument); grid [1, 0, 1], block [32, 1, 1], 0 bytes of dynamic shared memory. The grid is 0 in y: it must be at least 1
        launch of kernel `saxpy` refused by cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (1: invalid argument); grid [1, 65536, 1], block [32, 1, 1], 0 bytes of dynamic shared memory. The grid is 65536 in y, and the device allows 65535: use a smaller one
        launch of kernel `saxpy` refused by cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (1: invalid argument); grid [1, 1, 1], block [1, 1, 65], 0 bytes of dynamic shared memory. The block is 65 in z, and the device allows 64: use a smaller one
        launch of kernel `saxpy` refused by cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (1: invalid argument); grid [1, 1, 1], block [64, 32, 1], 0 bytes of dynamic shared memory. The block has 2048 threads, and the device allows 1024: use a smaller block
        launch of kernel `saxpy` refused by cuLaunchKernel: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701: too many resources requested); grid [1, 1, 1], block [1024, 1, 1], 0 bytes of dynamic shared memory. The block has 1024 threads, and this kernel allows 512, with 128 registers a thread of 65536 a block: use a smaller block, or compile with launch bounds
        launch of kernel `saxpy` refused by cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (1: invalid argument); grid [1, 1, 1], block [32, 1, 1], 60000 bytes of dynamic shared memory. The block needs 61024 bytes of shared memory, and more than 49152 must be allowed first: call `allow_dynamic_shared`
        launch of kernel `saxpy` refused by cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (1: invalid argument); grid [1, 1, 1], block [32, 1, 1], 300000 bytes of dynamic shared memory. The block needs 301024 bytes of shared memory (1024 static, 300000 dynamic), and the device allows 232448: use less
        launch of kernel `saxpy` refused by cuFuncSetAttribute: CUDA_ERROR_INVALID_VALUE (1: invalid argument); grid [1, 1, 1], block [1, 1, 1], 240000 bytes of dynamic shared memory. The block needs 241024 bytes of shared memory (1024 static, 240000 dynamic), and the device allows 232448: use less
        launch of kernel `saxpy` refused by cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (1: invalid argument); grid [1, 1, 1], block [32, 1, 1], 0 bytes of dynamic shared memory. No known limit is exceeded: check the parameters
    "#]].assert_eq(&texts);
    // The context is still usable.
    launch(&context, &saxpy, [1, 1, 1], [32, 1, 1], 0).unwrap();
    context.synchronize().unwrap();
}

#[test]
fn function_of_another_context() {
    let fake = Fake::new();
    let (one, other) = (context(&fake), context(&fake));
    let saxpy = function(&one, "saxpy");
    check(
        &fake,
        launch(&other, &saxpy, [1; 3], [1; 3], 0),
        expect![
            "the kernel belongs to another CUDA context than the one it is used with. Create both from the same context"
        ],
    );
    let stream = other.create_stream().unwrap();
    let event = one.create_event().unwrap();
    assert!(matches!(
        event.record(&stream),
        Err(DriverError::ForeignHandle { .. })
    ));
}

#[test]
fn launches_from_a_fresh_thread() {
    let fake = Fake::new();
    let context = context(&fake);
    let saxpy = function(&context, "saxpy");
    std::thread::scope(|scope| {
        scope.spawn(|| launch(&context, &saxpy, [1; 3], [1; 3], 0).unwrap());
        scope.spawn(|| context.free(context.alloc(8).unwrap()).unwrap());
    });
}

#[test]
fn launch_does_not_allocate() {
    let fake = Fake::new();
    let context = context(&fake);
    let saxpy = function(&context, "saxpy");
    launch(&context, &saxpy, [1; 3], [1; 3], 0).unwrap();
    // The fake driver has an allocator of its own.
    let allocated = allocations(|| {
        for _ in 0..100 {
            launch(&context, &saxpy, [1; 3], [1; 3], 0).unwrap();
        }
    });
    assert_eq!(allocated, 0);
}

// --- Streams and events -----------------------------------------------------------------------

#[test]
fn streams_and_events() {
    let fake = Fake::new();
    let context = context(&fake);
    let stream = context.create_stream().unwrap();
    let (start, end) = (
        context.create_event().unwrap(),
        context.create_event().unwrap(),
    );
    check(
        &fake,
        end.elapsed_ms_since(&start),
        expect![
            "cuEventElapsedTime failed: CUDA_ERROR_INVALID_HANDLE (400: invalid resource handle). See this code in the CUDA Driver API reference; run with CUDA_LAUNCH_BLOCKING=1 to find the call that caused it"
        ],
    );
    start.record(&stream).unwrap();
    end.record(&context.default_stream()).unwrap();
    stream.wait(&end).unwrap();
    stream.synchronize().unwrap();
    fake.fail("cuStreamQuery", 1, 600);
    assert!(!stream.is_done().unwrap());
    assert!(stream.is_done().unwrap());
    fake.fail("cuEventQuery", 1, 600);
    assert!(!end.is_done().unwrap());
    assert!(end.is_done().unwrap());
    assert_eq!(end.elapsed_ms_since(&start).unwrap(), 1.5);
    let function = function(&context, "sum");
    let mut params = 7u64.to_ne_bytes();
    let mut launch_in = |stream| {
        // SAFETY: the fake runs nothing, checks the stream, and reads one 8-byte parameter.
        unsafe { context.launch(&function, &LaunchConfig::new(1, 1), stream, &mut params) }
    };
    launch_in(stream.handle()).unwrap();
    let unknown = StreamHandle::from_raw(std::ptr::without_provenance_mut(8));
    check(
        &fake,
        launch_in(unknown),
        expect![
            "launch of kernel `sum` refused by cuLaunchKernel: CUDA_ERROR_INVALID_HANDLE (400: invalid resource handle); grid [1, 1, 1], block [1, 1, 1], 0 bytes of dynamic shared memory. No known limit is exceeded: check the parameters"
        ],
    );
    drop((function, stream, start, end, context));
    assert_eq!(fake.ledger(), Ledger::default());
}
