//! Devices begun anew after an error that lasts, and who is told of faults.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use expect_test::expect;
use kiln::core::runtime::cuda::CudaContext;
use kiln::core::runtime::{Buffer, DeviceId};
use kiln::prelude::*;

use crate::fake::{Fake, Ledger};

fn jit(fake: &Fake) -> Jit {
    Jit::on(Device::cuda_of(fake.open().expect("it opens"), 0).expect("a device"))
}

fn put() -> Kernel {
    crate::hooked::put()
}

/// A launch after which every call fails.
fn lose(fake: &Fake, jit: &Jit) -> String {
    fake.sticky_after(1, 700);
    let mut x = jit.zeros::<u32>(4).expect("memory");
    jit.launch(&put(), 1, 1, args!(&mut x, 7u32))
        .expect("it is launched");
    jit.synchronize()
        .expect_err("the device is lost")
        .to_string()
}

fn reset(jit: &Jit) -> kiln::Result<Jit> {
    // SAFETY: nothing else uses the fake driver.
    unsafe { jit.reset() }
}

fn works(jit: &Jit) {
    let mut x = jit.upload(&[1u32, 2, 3]).expect("memory");
    jit.launch(&put(), 1, 1, args!(&mut x, 7u32))
        .expect("it is launched");
    let stream = jit.stream().expect("a stream");
    stream
        .launch(&put(), 1, 1, args!(&mut x, 7u32))
        .expect("it is launched");
    assert_eq!(x.to_vec().expect("it is read"), [1, 2, 3]);
    jit.synchronize().expect("all is well");
}

#[test]
fn a_lost_device_works_again() {
    let fake = Fake::new();
    let jit = jit(&fake);
    works(&jit);
    let text = lose(&fake, &jit);
    expect!["the CUDA context is unusable: cuCtxSynchronize returned CUDA_ERROR_ILLEGAL_ADDRESS (700: illegal memory access); kernel `put` is the only one launched since the last synchronization. A kernel accessed memory it must not. Reset the device (`Jit::reset`) or start the process again; run with bounds checks on to get the kernel's line"].assert_eq(&text);
    let again = reset(&jit).expect("the fake driver allows it");
    works(&again);
    drop(jit);
    works(&again);
    drop(again);
    assert_eq!(fake.ledger(), Ledger::default());
}

#[test]
fn what_was_made_before_is_lost() {
    let fake = Fake::new();
    let jit = jit(&fake);
    let count = Kernel::build("counts", |k| k.global("count", &[5u32]).at(0).set(1u32));
    let count = count.expect("a kernel");
    jit.launch(&count, 1, 1, args!()).expect("it is launched");
    let global = jit.global::<u32>("count").expect("it is there");
    let (stream, mut x) = (
        jit.stream().expect("a stream"),
        jit.zeros::<u32>(4).expect("memory"),
    );
    let ready = jit.compile(&put(), args!(&mut x, 7u32)).expect("a kernel");
    let there = ready.on(&stream).expect("of this device");
    let event = stream.record().expect("an event");
    let write = |x: &mut Buffer<u32>| x.write_later(jit.pinned(&[1u32]).expect("memory"));
    let (later, given_up) = (write(&mut x), write(&mut x));
    let (later, given_up) = (later.expect("a copy"), given_up.expect("a copy"));
    lose(&fake, &jit);
    let again = reset(&jit).expect("the fake driver allows it");
    let mut y = again.upload(&[9u32; 4]).expect("memory");
    let calls = fake.calls();
    let lost = [
        ("read", x.to_vec().map(drop)),
        ("written", x.write(&[1])),
        ("filled", x.fill(1)),
        ("copied to", x.copy_from(&y)),
        ("copied from", y.copy_from(&x)),
        ("allocates", jit.zeros::<u32>(1).map(drop)),
        ("launches", jit.launch(&put(), 1, 1, args!(&mut x, 7u32))),
        ("compiles", jit.launch(&count, 2, 1, args!())),
        ("ready", ready.launch(1, 1, args!(&mut x, 7u32))),
        ("ready in a stream", there.launch(1, 1, args!(&mut x, 7u32))),
        ("stream", stream.synchronize()),
        ("new stream", jit.stream().map(drop)),
        ("event", event.synchronize()),
        ("global", global.to_vec().map(drop)),
        ("copy under way", later.wait().map(drop)),
        ("waits", jit.synchronize()),
    ];
    let during = fake.calls() - calls;
    assert!(
        during < 6,
        "{during} calls, and one copy of the new device's"
    );
    for (what, result) in lost {
        let text = result.expect_err(what).to_string();
        let want = "CUDA device 0 was reset since this was made, and it is lost: make it again with the `Jit` that \
                    `Jit::reset` gave";
        assert_eq!(text, want, "{what}");
    }
    let others = [
        again.launch(&put(), 1, 1, args!(&mut x, 7u32)),
        ready.launch(1, 1, args!(&mut y, 7u32)),
        ready.on(&again.stream().expect("a stream")).map(drop),
        again.stream().expect("a stream").wait(&event),
    ];
    let others = others.map(|result| result.expect_err("of two devices").to_string());
    expect![[r#"
        kernel `put`: argument 1 (`x`) lies on CUDA device 0, and the launch is on CUDA device 0 after its reset; copy it with `to_vec` and `upload`
        kernel `put`: argument 1 (`x`) lies on CUDA device 0 after its reset, and the launch is on CUDA device 0; copy it with `to_vec` and `upload`
        the stream is of CUDA device 0 after its reset, and the kernel was made ready for CUDA device 0; use a stream of that
        the event belongs to another CUDA context than the one it is used with. Create both from the same context"#]].assert_eq(&others.join("\n"));
    let after = fake.calls();
    drop((x, ready, there, event, given_up, global, stream, jit));
    assert_eq!(
        fake.calls(),
        after,
        "what is lost asks the driver for nothing"
    );
    assert_eq!(y.to_vec().expect("it is read"), [9; 4]);
    drop((y, again));
    assert_eq!(fake.ledger(), Ledger::default());
}

#[test]
fn all_of_a_device_find_what_it_has_become() {
    let fake = Fake::new();
    let driver = fake.open().expect("it opens");
    let jit = |_: &Fake| Jit::on(Device::cuda_of(driver, 0).expect("a device"));
    let (first, second) = (jit(&fake), jit(&fake));
    lose(&fake, &first);
    let again = reset(&first).expect("the fake driver allows it");
    let too = reset(&second).expect("it was reset");
    assert_eq!(again.device().info().id, DeviceId::CudaAgain(0, 1));
    let x = too.upload(&[3u32]).expect("memory");
    assert_eq!(x.to_vec().expect("nobody has reset it again"), [3]);
    let mut y = again.zeros::<u32>(1).expect("memory");
    y.copy_from(&x).expect("of one device");
    let opened = jit(&fake);
    assert_eq!(opened.device().info().id, again.device().info().id);
    // One that works can be reset, too.
    let third = reset(&again).expect("the fake driver allows it");
    works(&third);
    let text = y.to_vec().expect_err("it is lost").to_string();
    assert!(text.contains("was reset"), "{text}");
    drop((again, too, third, opened));
    let opened = jit(&fake);
    assert_eq!(
        opened.device().info().id.to_string(),
        "CUDA device 0 after reset 2"
    );
    works(&opened);
}

#[test]
fn what_cannot_be_reset() {
    let fake = Fake::new();
    let driver = fake.open().expect("it opens");
    let own = CudaContext::with_driver(driver, 0).expect("a context");
    // SAFETY: it lives until the end of the test.
    let device = unsafe { Device::adopt_cuda_of(driver, 0, own.as_raw()) }.expect("a device");
    let refused = [Jit::on(device), Jit::on(Device::cpu())].map(|jit| reset(&jit));
    let refused = refused.map(|jit| jit.expect_err("it is refused").to_string());
    expect![[r#"
        the context on CUDA device 0 was adopted, and is not Kiln's to reset: have the code that made it destroy it, make another, and adopt that
        this machine's CPU is not reset: no error of it lasts, so that it can be used as it is"#]].assert_eq(&refused.join("\n"));
    // A driver that refuses, and one whose device stays as it is.
    let lost = jit(&fake);
    lose(&fake, &lost);
    fake.fail("cuDevicePrimaryCtxReset_v2", 1, 801);
    let refused = reset(&lost).expect_err("the driver refuses").to_string();
    fake.fail("cuMemHostAlloc", 1, 700);
    let stays = reset(&lost).expect_err("it stays lost").to_string();
    // As an H100 does after an illegal address.
    fake.fail("cuDevicePrimaryCtxRetain", 1, 700);
    let kept = reset(&lost).expect_err("it stays lost").to_string();
    expect![[r#"
        cuDevicePrimaryCtxReset failed: unknown code (801: the driver has no description of it). The device or the system does not support this operation
        the driver keeps the error of CUDA device 0 when its context is begun anew: cuMemHostAlloc returned CUDA_ERROR_ILLEGAL_ADDRESS (700: illegal memory access). Start the process again
        the driver keeps the error of CUDA device 0 when its context is begun anew: cuDevicePrimaryCtxRetain returned CUDA_ERROR_ILLEGAL_ADDRESS (700: illegal memory access). Start the process again"#]].assert_eq(&format!("{refused}\n{stays}\n{kept}"));
}

#[test]
fn faults_are_told_to_who_listens() {
    let fake = Fake::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let builder = |told: &Arc<Mutex<Vec<String>>>| {
        let told = told.clone();
        let listen = move |fault: &kiln::core::runtime::DeviceError| {
            told.lock().expect("no panic").push(fault.to_string());
        };
        Jit::builder().on_fault(listen)
    };
    let device = jit(&fake).device().clone();
    let jit = builder(&told).device(device).build().expect("a `Jit`");
    let kernel = Kernel::build("uses_wf", |k| {
        k.slice_mut("x", k.ty::<u32>()).at(9).set(1u32);
    });
    let kernel = kernel.expect("a kernel");
    let stream = jit.stream().expect("a stream");
    let mut x = jit.zeros::<u32>(4).expect("memory");
    let ready = jit.compile(&kernel, args!(&mut x)).expect("a kernel");
    let tag = ready.info().kernel_tag;
    for ready in [&ready, &ready.on(&stream).expect("of this device")] {
        ready.launch(1, 1, args!(&mut x)).expect("it is launched");
        assert!(fake.raise_fault(fake.last_launch()[7], 0, tag, 9, 4));
        assert!(told.lock().expect("no panic").is_empty());
        let error = x.to_vec().expect_err("the fault").to_string();
        assert_eq!(
            std::mem::take(&mut *told.lock().expect("no panic")),
            [error]
        );
    }
    lose(&fake, &jit);
    jit.zeros::<u32>(1).expect_err("it is lost");
    let text = std::mem::take(&mut *told.lock().expect("no panic"));
    assert!(
        matches!(&text[..], [text] if text.contains("unusable")),
        "{text:?}"
    );
    // The new device has the listener, too.
    let again = reset(&jit).expect("the fake driver allows it");
    drop(jit);
    lose(&fake, &again);
    assert_eq!(told.lock().expect("no panic").len(), 1);

    let told = Arc::new(Mutex::new(Vec::new()));
    let jit = builder(&told)
        .device(Device::cpu())
        .build()
        .expect("a `Jit`");
    let mut x = jit.zeros::<u32>(4).expect("memory");
    jit.launch(&kernel, 1, 1, args!(&mut x))
        .expect("it is launched");
    x.to_vec().expect_err("the fault");
    x.to_vec().expect("it was told");
    assert_eq!(told.lock().expect("no panic").len(), 1);
    let other = Jit::on(jit.device().clone());
    drop(jit);
    other
        .launch(&kernel, 1, 1, args!(&mut x))
        .expect("it is launched");
    other.synchronize().expect_err("the fault");
    assert_eq!(
        told.lock().expect("no panic").len(),
        1,
        "who listened is gone"
    );
}

/// What is called may use the device.
#[test]
fn who_listens_may_use_the_device() {
    let (count, place) = (
        Arc::new(AtomicU32::new(0)),
        Arc::new(Mutex::new(None::<Jit>)),
    );
    let (counted, there) = (count.clone(), place.clone());
    let jit = Jit::builder().device(Device::cpu()).on_fault(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        if let Some(jit) = there.lock().expect("no panic").take() {
            let x = jit.upload(&[1u32]).expect("memory");
            assert_eq!(x.to_vec().expect("it is read"), [1]);
        }
    });
    let jit = jit.build().expect("a `Jit`");
    *place.lock().expect("no panic") = Some(jit.clone());
    let kernel = Kernel::build("beyond", |k| {
        k.slice_mut("x", k.ty::<u32>()).at(9).set(1u32);
    });
    let mut x = jit.zeros::<u32>(4).expect("memory");
    let kernel = kernel.expect("a kernel");
    jit.launch(&kernel, 1, 1, args!(&mut x))
        .expect("it is launched");
    x.to_vec().expect_err("the fault");
    assert_eq!(count.load(Ordering::Relaxed), 1);
}
