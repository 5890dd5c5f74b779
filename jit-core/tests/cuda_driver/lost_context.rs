//! Errors that end a context, failures at every single call, and the fault channel.
//!
//! A lost context must be left alone: no driver call, no hang, the first cause in every answer. And
//! whichever call fails, nothing panics and nothing leaks.

use expect_test::expect;
use kiln_jit_core::args;
use kiln_jit_core::fault::FaultRecord;
use kiln_jit_core::jit::Jit;
use kiln_jit_core::runtime::Device;
use kiln_jit_core::runtime::cuda::{CudaContext, DriverError};
use std::sync::Arc;

use crate::fake::{Fake, Ledger};
use crate::{check, context, function, launch};

#[test]
fn fault_of_the_only_kernel() {
    let fake = Fake::new();
    let context = context(&fake);
    let saxpy = function(&context, "saxpy");
    launch(&context, &saxpy, [1; 3], [1; 3], 0).unwrap();
    context.synchronize().unwrap();
    fake.sticky_after(1, 700);
    launch(&context, &saxpy, [1; 3], [1; 3], 0).unwrap();
    check(
        &fake,
        context.synchronize(),
        expect![
            "the CUDA context is unusable: cuCtxSynchronize returned CUDA_ERROR_ILLEGAL_ADDRESS (700: illegal memory access); kernel `saxpy` is the only one launched since the last synchronization. A kernel accessed memory it must not. Reset the device (`Jit::reset`) or start the process again; run with bounds checks on to get the kernel's line"
        ],
    );
}

#[test]
fn fault_of_one_of_several_kernels() {
    let fake = Fake::new();
    let context = context(&fake);
    let (saxpy, sum) = (function(&context, "saxpy"), function(&context, "sum"));
    fake.sticky_after(1, 719);
    launch(&context, &saxpy, [1; 3], [1; 3], 0).unwrap();
    // The second launch meets the first one's error.
    check(
        &fake,
        launch(&context, &sum, [1; 3], [1; 3], 0),
        expect![
            "the CUDA context is unusable: cuLaunchKernel returned CUDA_ERROR_LAUNCH_FAILED (719: unspecified launch failure); kernel `saxpy` is the only one launched since the last synchronization. A kernel failed on the device. Reset the device (`Jit::reset`) or start the process again; run with bounds checks on to find an invalid access"
        ],
    );

    let fake = Fake::new();
    let context = crate::context(&fake);
    let (saxpy, sum) = (function(&context, "saxpy"), function(&context, "sum"));
    fake.sticky_after(2, 719);
    launch(&context, &saxpy, [1; 3], [1; 3], 0).unwrap();
    launch(&context, &sum, [1; 3], [1; 3], 0).unwrap();
    check(
        &fake,
        context.default_stream().synchronize(),
        expect![
            "the CUDA context is unusable: cuStreamSynchronize returned CUDA_ERROR_LAUNCH_FAILED (719: unspecified launch failure); kernel `sum` was launched last, other kernels were launched since the last synchronization: synchronize after each launch to find which one it was. A kernel failed on the device. Reset the device (`Jit::reset`) or start the process again; run with bounds checks on to find an invalid access"
        ],
    );
}

#[test]
fn stream_0_synchronization_clears_the_suspects() {
    let fake = Fake::new();
    let context = context(&fake);
    let saxpy = function(&context, "saxpy");
    launch(&context, &saxpy, [1; 3], [1; 3], 0).unwrap();
    context.default_stream().synchronize().unwrap();
    fake.fail("cuCtxSynchronize", 1, 999);
    check(
        &fake,
        context.synchronize(),
        expect![
            "the CUDA context is unusable: cuCtxSynchronize returned unknown code (999: the driver has no description of it); no kernel was launched since the last synchronization. The device, another process or the driver caused it, not necessarily a kernel of yours. Check `nvidia-smi` and the system log, then reset the device (`Jit::reset`) or start the process again"
        ],
    );

    // Not when the launch may have been in another stream.
    let fake = Fake::new();
    let context = crate::context(&fake);
    let saxpy = function(&context, "saxpy");
    let _stream = context.create_stream().unwrap();
    launch(&context, &saxpy, [1; 3], [1; 3], 0).unwrap();
    context.default_stream().synchronize().unwrap();
    fake.fail("cuCtxSynchronize", 1, 999);
    context.synchronize().unwrap_err();
    assert_eq!(
        context.poison_cause().unwrap().kernel.as_deref(),
        Some("saxpy")
    );
}

#[test]
fn lost_context_is_left_alone() {
    let fake = Fake::new();
    let context = context(&fake);
    let saxpy = function(&context, "saxpy");
    let stream = context.create_stream().unwrap();
    let (event, end) = (
        context.create_event().unwrap(),
        context.create_event().unwrap(),
    );
    let a = context.alloc(64).unwrap();
    fake.sticky_after(1, 700);
    launch(&context, &saxpy, [1; 3], [1; 3], 0).unwrap();
    let first = context.synchronize().unwrap_err();
    let calls = fake.calls();

    let module = context.load_module(crate::PTX.as_bytes(), "saxpy");
    let answers = [
        context.synchronize(),
        context.alloc(8).map(drop),
        context.alloc(0).map(drop),
        context.free(a),
        context.copy_to_device(a, kiln_jit_core::value::bytes_of(&[1u8])),
        context.copy_to_host(&mut [1], a),
        context.copy_on_device(a, a + 8, 8),
        context.fill_u8(a, 0, 1),
        context.fill_u32(a, 0, 1),
        context.memory_info().map(drop),
        module.map(drop),
        context.create_stream().map(drop),
        context.create_event().map(drop),
        launch(&context, &saxpy, [1; 3], [1; 3], 0),
        launch(&context, &saxpy, [0; 3], [1; 3], 0),
        saxpy.allow_dynamic_shared(8),
        saxpy.max_active_blocks(32, 0).map(drop),
        stream.synchronize(),
        stream.is_done().map(drop),
        stream.wait(&event),
        event.record(&stream),
        event.is_done().map(drop),
        event.synchronize(),
        end.elapsed_ms_since(&event).map(drop),
    ];
    for (index, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.as_ref(), Err(&first), "operation {index}");
    }
    assert_eq!(context.take_fault(), None);
    drop((saxpy, stream, event, end, context));
    assert_eq!(fake.calls(), calls);
}

#[test]
fn exiting_process() {
    let fake = Fake::new();
    let context = context(&fake);
    let saxpy = function(&context, "saxpy");
    fake.fail("*", 1, 4);
    drop(saxpy);
    let calls = fake.calls();
    drop(context);
    assert_eq!(fake.calls(), calls);
}

#[cfg(unix)]
#[test]
fn forked_process() {
    unsafe extern "C" {
        fn fork() -> i32;
        fn _exit(status: i32) -> !;
        fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    }
    let fake = Fake::new();
    let context = context(&fake);
    let jits = [
        Jit::on(Device::cuda_of(fake.open().unwrap(), 0).unwrap()),
        Jit::on(Device::cpu()),
    ];
    let mut buffers = jits.each_ref().map(|jit| jit.zeros::<u32>(4).unwrap());
    let kernel = crate::hooked::put();
    for (jit, x) in jits.iter().zip(&mut buffers) {
        jit.launch(&kernel, 64, 32, args!(x, 7u32)).unwrap();
        jit.synchronize().unwrap();
    }
    // SAFETY: the child makes calls that are refused before they reach the driver or take a lock, and ends at once.
    let child = unsafe { fork() };
    if child == 0 {
        let mut forked = matches!(
            context.synchronize(),
            Err(DriverError::ForkedProcess { parent, child }) if parent != child
        );
        for (jit, mut x) in jits.into_iter().zip(buffers) {
            let is_refused = |result: kiln_jit_core::error::Result<()>| {
                result.is_err_and(|error| error.to_string().contains("its child"))
            };
            forked &= is_refused(jit.launch(&kernel, 64, 32, args!(&mut x, 7u32)))
                && is_refused(x.to_vec().map(drop))
                && is_refused(jit.synchronize())
                && is_refused(jit.stream().and_then(|stream| stream.synchronize()))
                && is_refused(jit.record().and_then(|event| event.synchronize()));
        }
        drop(context);
        // SAFETY: ends the child without running the parent's exit routines.
        unsafe { _exit(if forked { 42 } else { 1 }) };
    }
    drop((jits, buffers));
    let mut status = 0;
    // SAFETY: `status` outlives the call; the child is ours.
    assert_eq!(unsafe { waitpid(child, &mut status, 0) }, child);
    assert_eq!(status >> 8, 42);
    fake.fail("cuCtxSynchronize", 1, 3);
    // Nothing of it is left in the child; here the code that the driver gives there is an ordinary error.
    assert!(matches!(
        context.synchronize(),
        Err(DriverError::Other { .. })
    ));
    let error = DriverError::ForkedProcess {
        parent: 10,
        child: 11,
    };
    expect!["CUDA was initialized in process 10 and is used in its child 11: a CUDA context does not survive fork. Start workers with exec or spawn, or open the device after the fork"].assert_eq(&error.to_string());
}

/// An allocation that is freed when dropped; a failed release is tried once more.
struct Allocation<'c>(&'c CudaContext, u64);

impl Drop for Allocation<'_> {
    fn drop(&mut self) {
        if self.0.free(self.1).is_err() {
            let _ = self.0.free(self.1);
        }
    }
}

/// Alloc, copy, load, launch, synchronize, read back.
fn scenario(fake: &Fake) -> Result<Arc<CudaContext>, DriverError> {
    let context = CudaContext::with_driver(fake.open()?, 0)?;
    let run = || {
        let a = Allocation(&context, context.alloc(16)?);
        context.copy_to_device(a.1, kiln_jit_core::value::bytes_of(&[1u8; 16]))?;
        let module = context.load_module(crate::PTX.as_bytes(), "saxpy")?;
        let saxpy = module.function("saxpy")?;
        let stream = context.create_stream()?;
        let (start, end) = (context.create_event()?, context.create_event()?);
        start.record(&stream)?;
        launch(&context, &saxpy, [1; 3], [1; 3], 0)?;
        end.record(&stream)?;
        context.synchronize()?;
        end.elapsed_ms_since(&start)?;
        let mut back = [0; 16];
        context.copy_to_host(&mut back, a.1)?;
        assert_eq!(back, [1; 16]);
        Ok(())
    };
    run().map(|()| Arc::clone(&context))
}

/// The calls that release something; a driver that fails one keeps the thing.
pub(super) const RELEASES: [&str; 10] = [
    "cuMemFree_v2",
    "cuMemFreeAsync",
    "cuMemPoolDestroy",
    "cuMemFreeHost",
    "cuModuleUnload",
    "cuStreamDestroy_v2",
    "cuEventDestroy_v2",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuDevicePrimaryCtxRelease_v2",
];

#[test]
fn every_call_fails_once() {
    let fake = Fake::new();
    for code in [1, 2, 3, 600, 46, 700, 999, 4] {
        let fatal = ![1, 2, 3, 600].contains(&code);
        for nth in 1.. {
            fake.reset();
            fake.fail("*", nth, code);
            let result = scenario(&fake);
            let poisoned = match &result {
                Ok(context) => context.poison_cause().is_some(),
                Err(error) => matches!(error, DriverError::Poisoned { .. }),
            };
            let failed_early = result.is_err();
            drop(result);
            let Some(failed) = fake.failed() else {
                assert!(nth > 60, "the scenario made only {nth} calls");
                break;
            };
            let at = format!("call {nth} ({failed}) returned {code}");
            assert!(fatal || !poisoned, "{at}");
            let ledger = fake.ledger();
            let released = RELEASES.contains(&failed.as_str());
            // A fatal code that did not end a context came before there was one, or while dropping.
            if !released && (!fatal || failed_early && !poisoned) {
                assert_eq!(ledger, Ledger::default(), "{at}");
            }
            if !fatal && released {
                assert!(ledger.total() <= 1, "{at}: {ledger:?}");
            }
        }
    }
}

#[test]
fn fault_record_is_read_and_armed_again() {
    let fake = Fake::new();
    let context = context(&fake);
    let channel = context.channel_address();
    assert_eq!(context.take_fault(), None);
    assert!(fake.raise_fault(channel, 7, 0xABCD, 100, 64));
    // The first to claim wins.
    assert!(!fake.raise_fault(channel, 8, 1, 1, 1));
    context.synchronize().unwrap();
    let expected = FaultRecord {
        state: 1,
        site: 7,
        kernel_tag: 0xABCD,
        index: 100,
        length: 64,
        block: [1, 2, 3],
        thread: [4, 5, 6],
        ..FaultRecord::default()
    };
    assert_eq!(context.take_fault(), Some(expected));
    assert_eq!(context.take_fault(), None);
    assert!(fake.raise_fault(channel, 9, 1, u64::MAX, 0));
    // The record is handed out though arming fails, and arming is retried.
    fake.fail("cuMemsetD32Async", 1, 1);
    assert_eq!(context.take_fault().unwrap().index, u64::MAX);
    assert!(!fake.raise_fault(channel, 10, 1, 1, 1));
    assert_eq!(context.take_fault(), None);
    assert!(fake.raise_fault(channel, 10, 1, 1, 1));
    // It survives the loss of the context.
    fake.fail("cuCtxSynchronize", 1, 700);
    context.synchronize().unwrap_err();
    assert_eq!(context.take_fault().unwrap().site, 10);
}
