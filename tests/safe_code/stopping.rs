//! Kernels that do not end are ended, by a call from another thread and by a time limit, wherever they
//! hang; the device and its buffers stay usable.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kiln::core::launch::LaunchStopped;
use kiln::error::{Error, RunError};
use kiln::prelude::*;

use super::jits;

/// Starts even and never gets to an odd number.
#[kernel]
fn uniform(y: &mut [u32], start: u32) {
    let mut n = start;
    loop {
        n += 2;
        if n == 1 {
            break;
        }
    }
    y[global_id().x] = n;
}

#[kernel]
fn lanes_part(y: &mut [u32], start: u32) {
    let i = global_id().x;
    let mut n = start;
    while n != 2 * i as u32 + 1 {
        n += 2;
    }
    y[i] = n;
}

#[kernel]
fn one_lane(y: &mut [u32], start: u32) {
    let i = global_id().x;
    let mut n = start;
    if i == 3 {
        while n != 1 {
            n += 2;
        }
    }
    y[i] = n;
}

#[kernel]
fn counted_loops(y: &mut [u32], start: u32) {
    let i = global_id().x;
    let mut n = start;
    for a in 0..4_000_000_000u32 {
        for b in 0..1000u32 {
            n = (n ^ a) * 5 + b;
        }
    }
    y[i] = n;
}

#[kernel]
fn counted_with_64_bits(y: &mut [u32], start: u32) {
    let i = global_id().x;
    let mut n = start;
    for a in 0..u64::MAX {
        n = (n ^ a as u32) * 5;
    }
    y[i] = n;
}

#[kernel]
fn barriers(y: &mut [u32], start: u32) {
    let t = thread_idx().x;
    let shared = shared!([u32; 64]);
    let mut n = start;
    loop {
        shared[t] = n;
        barrier();
        n += 2;
        if n == 1 {
            break;
        }
    }
    y[t] = shared[63 - t];
}

#[kernel]
fn barriers_where_lanes_part(y: &mut [u32], start: u32) {
    let t = thread_idx().x;
    let mut n = start;
    if t % 2 == 0 {
        while n != 1 {
            barrier();
            n += 2;
        }
    } else {
        while n != 3 {
            barrier();
            n += 2;
        }
    }
    y[t] = n;
}

/// Halves a number, but not in each turn.
#[kernel]
fn halves_now_and_then(y: &mut [u32], start: u32) {
    let i = global_id().x;
    let mut n = start + 3;
    while n > 0 {
        if y[i] == 0 {
            continue;
        }
        n /= 2;
    }
    y[i] = n;
}

/// All bits of a negative number may be shifted out, and it is never 0.
#[kernel]
fn halves_with_barriers(y: &mut [u32], start: u32) {
    let t = thread_idx().x;
    let mut n = -3 - start as i32;
    while n != 0 {
        barrier();
        n >>= 1;
    }
    y[t] = n as u32;
}

/// Waits for what no other thread does.
#[kernel]
fn waits(y: &mut [u32], start: u32) {
    let i = global_id().x;
    while y[i] != start + 1 {
        y[i] = 0;
    }
}

#[device_fn]
fn search(from: u32) -> u32 {
    let mut n = from;
    loop {
        if n % 2 == 1 {
            return n;
        }
        n += 2;
    }
}

#[kernel]
fn in_a_call(y: &mut [u32], start: u32) {
    y[global_id().x] = search(start);
}

#[kernel]
fn warps(y: &mut [u32], start: u32) {
    let t = thread_idx().x;
    let mut n = start;
    while ballot(FULL_MASK, n == 1) == 0 {
        n += 2;
    }
    y[t] = n;
}

#[kernel]
fn fill(y: &mut [u32], start: u32) {
    y[thread_idx().x] = start;
}

type Launch = fn(&Jit, &mut Buffer<u32>) -> kiln::Result<()>;

/// Kernels that do not end, on one block, which the launching thread may run itself, and on several.
fn endless() -> Vec<(&'static str, Launch)> {
    macro_rules! list {
        ($($kernel:ident $grid:expr;)*) => {
            vec![$((
                stringify!($kernel),
                |jit, y| $kernel.launch(jit, ($grid, 64), y, 0),
            )),*]
        };
    }
    list! {
        uniform 1;
        uniform 5;
        lanes_part 1;
        one_lane 1;
        counted_loops 1;
        counted_loops 5;
        counted_with_64_bits 1;
        barriers 1;
        barriers_where_lanes_part 1;
        halves_now_and_then 1;
        halves_with_barriers 1;
        waits 1;
        in_a_call 5;
        warps 1;
        fill (i32::MAX as u32, 65_535);
    }
}

/// Whether the device still does what it should.
fn check(jit: &Jit, y: &mut Buffer<u32>) {
    fill.launch(jit, (1, 64), &mut *y, 7).expect("a launch");
    let y = y.to_vec().expect("numbers");
    assert_eq!(y[..64], [7; 64]);
}

#[test]
fn by_a_time_limit() {
    for (device, jit) in jits() {
        let options = JitOptions::default().time_limit(Duration::from_millis(30));
        let limited = Jit::with(jit.device().clone(), kiln::hooks::standard(), options);
        for (kernel, launch) in endless() {
            let mut y = limited.zeros::<u32>(5 * 64).expect("memory");
            // What is there to be compiled is no part of the launch.
            let result = launch(&limited, &mut y).and_then(|()| y.to_vec().map(|_| ()));
            match result {
                Err(Error::Run(RunError::Stopped(LaunchStopped::TimeLimit {
                    kernel: named,
                    limit,
                }))) => {
                    assert_eq!(named, kernel, "{device}");
                    assert_eq!(limit, Duration::from_millis(30));
                }
                other => panic!("{device}, {kernel}: {other:?}"),
            }
            // One error is told once, and without a limit the device goes on as well.
            y.to_vec().expect("numbers");
            check(&jit, &mut y);
        }
    }
}

#[test]
fn by_another_thread() {
    for (device, jit) in jits() {
        for (kernel, launch) in endless() {
            let mut y = jit.zeros::<u32>(5 * 64).expect("memory");
            let ended = AtomicBool::new(false);
            let result = std::thread::scope(|scope| {
                scope.spawn(|| {
                    // The launch may not have been made yet.
                    while !ended.load(Ordering::Acquire) {
                        jit.cancel().expect("a CPU can");
                        std::thread::sleep(Duration::from_millis(1));
                    }
                });
                let result = launch(&jit, &mut y).and_then(|()| jit.synchronize());
                ended.store(true, Ordering::Release);
                result
            });
            match result {
                Err(Error::Run(RunError::Stopped(LaunchStopped::Cancelled { kernel: named }))) => {
                    assert_eq!(named, kernel, "{device}");
                }
                other => panic!("{device}, {kernel}: {other:?}"),
            }
            check(&jit, &mut y);
        }
    }
}

/// Launches that were waiting are cancelled, too, and each is told to who reads its buffer.
#[test]
fn what_waits_is_cancelled_as_well() {
    let jit = Jit::on(Device::cpu());
    let mut first = jit.zeros::<u32>(5 * 64).expect("memory");
    let mut second = jit.zeros::<u32>(5 * 64).expect("memory");
    uniform
        .launch(&jit, (5, 64), &mut first, 0)
        .expect("it is queued");
    fill.launch(&jit, (5, 64), &mut second, 9)
        .expect("it is queued");
    jit.cancel().expect("a CPU can");
    for (kernel, buffer) in [("fill", &second), ("uniform", &first)] {
        let error = buffer.to_vec().expect_err("it was cancelled").to_string();
        assert!(
            error.starts_with(&format!("kernel `{kernel}` was cancelled")),
            "{error}"
        );
    }
    assert_eq!(second.to_vec().expect("numbers")[0], 0);
}

/// Whoever drops a buffer does not wait for a launch that was given it and does not end, and nobody else
/// gets its memory before.
#[test]
fn a_buffer_is_dropped_meanwhile() {
    for (device, jit) in jits() {
        if device == "interpreted" {
            // There the launch itself does not return.
            continue;
        }
        // Should it be waited for after all, then not for ever.
        let options = JitOptions::default().time_limit(Duration::from_secs(60));
        let jit = Jit::with(jit.device().clone(), kiln::hooks::standard(), options);
        let mut dropped = jit.zeros::<u32>(5 * 64).expect("memory");
        let address = dropped.address();
        waits
            .launch(&jit, (5, 64), &mut dropped, 0)
            .expect("it is queued");
        drop(dropped);
        let mut next = jit.zeros::<u32>(5 * 64).expect("memory");
        assert_ne!(next.address(), address, "{device}: the kernel writes there");
        jit.cancel().expect("a CPU can");
        let error = jit.synchronize().expect_err("it was cancelled").to_string();
        assert!(error.contains("`waits` was cancelled"), "{device}: {error}");
        check(&jit, &mut next);
        let again = jit.zeros::<u32>(5 * 64).expect("memory");
        assert_eq!(again.address(), address, "{device}: it was given back");
    }
}

/// Buffers that are dropped at once, of more bytes than may be on their way back.
#[test]
fn dropped_buffers_do_not_pile_up() {
    let jit = Jit::on(Device::cpu());
    let mut sum = jit.zeros::<u32>(5 * 64).expect("memory");
    for _ in 0..200 {
        let mut large = jit.zeros::<u32>(4 << 20).expect("memory");
        fill.launch(&jit, (5, 64), &mut large, 3)
            .expect("it is queued");
    }
    check(&jit, &mut sum);
}

/// Nobody can see any more what the launch would do.
#[test]
fn by_the_end_of_the_device() {
    let jit = Jit::on(Device::cpu());
    let kernel = Kernel::build("no_arguments", |k| {
        let n = k.var("n", 0u32);
        k.loop_(|| {
            n.set(n.get() + 2u32);
            k.if_(n.get().eq(1u32), || k.break_());
        });
    });
    jit.launch(&kernel.expect("a kernel"), 5, 64, args!())
        .expect("it is queued");
    drop(jit);
}
