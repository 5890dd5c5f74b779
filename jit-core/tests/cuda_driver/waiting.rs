//! A kernel that does not end: every call that would wait comes back, and nothing is freed under it.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use expect_test::expect;
use kiln_jit_core::args;
use kiln_jit_core::build::Kernel;
use kiln_jit_core::hook::HookSet;
use kiln_jit_core::ir::Type;
use kiln_jit_core::jit::{Jit, JitOptions};
use kiln_jit_core::runtime::Device;
use kiln_jit_core::runtime::cuda::{DriverError, KeptMemory};
use kiln_jit_core::value::bytes_of;

use crate::fake::Fake;
use crate::{check, context, function, launch};

const LIMIT: Duration = Duration::from_millis(5);

#[test]
fn every_call_that_waits_comes_back() {
    let fake = Fake::new();
    let context = context(&fake);
    context.set_wait_limit(Some(LIMIT));
    let saxpy = function(&context, "saxpy");
    let address = context.alloc(64).unwrap();
    launch(&context, &saxpy, [1; 3], [1; 3], 0).unwrap();
    let event = context.create_event().unwrap();
    fake.set_busy(true);
    check(
        &fake,
        context.synchronize(),
        expect![
            "cuCtxSynchronize: the device has not finished after 5ms, the time limit; kernel `saxpy` is the only one launched since the last synchronization. No call can end a kernel on a GPU: look for a loop or a wait that does not end, raise `JitOptions::time_limit`, or end the process. No buffer waits to be freed"
        ],
    );
    let mut bytes = [0u8; 64];
    let results = [
        context.copy_to_host(&mut bytes, address),
        context.copy_to_device(address, bytes_of(&[1u8; 64])),
        context.default_stream().synchronize(),
        event.synchronize(),
    ];
    for result in results {
        assert!(
            matches!(result, Err(DriverError::StillRunning { .. })),
            "{result:?}"
        );
    }
    fake.set_busy(false);
    context.synchronize().unwrap();
    context.copy_to_host(&mut bytes, address).unwrap();
    context.free(address).unwrap();
}

#[test]
fn memory_is_kept_while_a_kernel_may_use_it() {
    let fake = Fake::new();
    let context = context(&fake);
    let before = fake.ledger().memory;
    context.set_wait_limit(Some(LIMIT));
    let addresses = [context.alloc(64).unwrap(), context.alloc(32).unwrap()];
    fake.set_busy(true);
    for address in addresses {
        // The fake driver fails if memory is freed now.
        context.free(address).unwrap();
    }
    let kept = KeptMemory {
        allocations: 2,
        bytes: 96,
    };
    assert_eq!(context.kept_memory(), kept);
    let text = context.synchronize().unwrap_err().to_string();
    assert!(
        text.ends_with(
            "2 buffers of 96 bytes that were dropped meanwhile are kept until it has finished"
        ),
        "{text}"
    );
    // It can no longer be used.
    assert!(context.copy_to_host(&mut [0; 8], addresses[0]).is_err());
    fake.set_busy(false);
    context.synchronize().unwrap();
    assert_eq!(context.kept_memory(), KeptMemory::default());
    assert_eq!(fake.ledger().memory, before);
}

/// Unloading a module would wait for the kernel, too.
#[test]
fn modules_stay_loaded_while_a_kernel_may_be_of_them() {
    let fake = Fake::new();
    let context = context(&fake);
    context.set_wait_limit(Some(LIMIT));
    let [saxpy, other] = ["saxpy"; 2].map(|name| function(&context, name));
    fake.set_busy(true);
    drop(saxpy);
    assert_eq!(fake.ledger().modules, 2);
    fake.set_busy(false);
    drop(other);
    assert_eq!(fake.ledger().modules, 1);
}

/// A task that awaits a copy behind such a kernel is woken in the end, and told; the memory is the copy's until it is done.
#[test]
fn a_task_that_waits_comes_back() -> Result<(), kiln_jit_core::error::Error> {
    let fake = Fake::new();
    let device = Device::cuda_of(fake.open()?, 0)?;
    let options = JitOptions::default().time_limit(LIMIT);
    let jit = Jit::with(device, HookSet::new(), options);
    let kernel = Kernel::build("uses_w", |k| k.slice_mut("x", Type::U32).at(0).set(1u32))?;
    let mut x = jit.zeros::<u32>(2)?;
    jit.launch(&kernel, 1, 1, args!(&mut x))?;
    let before = fake.ledger().pinned;
    fake.set_busy(true);
    let later = x.read_later(jit.pinned(&[7u32, 7])?)?;
    let text = awaited(later)
        .map(drop)
        .expect_err("it does not end")
        .to_string();
    assert!(
        text.starts_with("cuEventQuery: the device has not finished after 5ms, the time limit; kernel `uses_w` is"),
        "{text}"
    );
    assert_eq!(fake.ledger().pinned, before + 1);
    fake.set_busy(false);
    assert_eq!(*awaited(x.read_later(jit.pinned(&[7u32, 7])?)?)?, [0, 0]);
    Ok(())
}

/// So are one that awaits a launch and one that awaits an event; who drops them ends no work.
#[test]
fn a_task_that_awaits_a_launch_comes_back() -> Result<(), kiln_jit_core::error::Error> {
    let fake = Fake::new();
    let device = Device::cuda_of(fake.open()?, 0)?;
    let jit = Jit::with(
        device,
        HookSet::new(),
        JitOptions::default().time_limit(LIMIT),
    );
    let kernel = Kernel::build("uses_w", |k| k.slice_mut("x", Type::U32).at(0).set(1u32))?;
    let mut x = jit.zeros::<u32>(2)?;
    jit.launch(&kernel, 1, 1, args!(&mut x))?;
    jit.synchronize()?;
    let stream = jit.stream()?;
    stream.launch(&kernel, 1, 1, args!(&mut x))?;
    let before = fake.ledger();
    for jit in [&jit, &*stream] {
        fake.set_busy(true);
        let (event, launched) = (jit.record()?, jit.finish_later()?);
        for told in [awaited((&event).into_future()), awaited(launched)] {
            let text = told.expect_err("it does not end").to_string();
            let start = "cuEventQuery: the device has not finished after 5ms, the time limit; ";
            assert!(text.starts_with(start), "{text}");
        }
        let mut given_up = pin!(jit.finish_later()?);
        let mut context = Context::from_waker(Waker::noop());
        assert!(given_up.as_mut().poll(&mut context).is_pending());
        fake.set_busy(false);
        awaited(event.into_future())?;
        awaited(given_up)?;
    }
    wait_until(|| fake.ledger() == before);
    drop(x);
    assert_eq!(fake.race(), None);
    Ok(())
}

/// An error that ends the context comes out of what is awaited.
#[test]
fn a_lost_context_is_told_to_tasks() -> Result<(), kiln_jit_core::error::Error> {
    for code in [700, 719] {
        let fake = Fake::new();
        let jit = Jit::with(
            Device::cuda_of(fake.open()?, 0)?,
            HookSet::new(),
            JitOptions::default(),
        );
        let kernel = Kernel::build("nothing", |_| {})?;
        let (event, earlier) = (jit.record()?, jit.finish_later()?);
        fake.sticky_after(1, code);
        jit.launch(&kernel, 1, 1, args!())?;
        for told in [awaited(earlier), awaited(event.into_future())] {
            let text = told.expect_err("the context is lost").to_string();
            assert!(text.contains(&format!("({code}:")), "{text}");
        }
    }
    Ok(())
}

/// The thread that wakes tasks has their marks for a moment more.
fn wait_until(holds: impl Fn() -> bool) {
    for _ in 0..1000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("it does not come to that");
}

/// Runs one task on this thread.
fn awaited<F: Future>(task: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut task = std::pin::pin!(task);
    loop {
        match task.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Releasing the context would wait for the kernel, so it is left to the end of the process.
#[test]
fn the_end_of_a_context_does_not_wait() {
    let fake = Fake::new();
    // The process keeps this one's reference, so that the next one's would be released.
    drop(context(&fake));
    let context = context(&fake);
    context.set_wait_limit(Some(LIMIT));
    fake.set_busy(true);
    assert!(context.synchronize().is_err());
    drop(context);
    assert_eq!(fake.ledger().contexts, 1);
}
