//! Launches that cannot be, and whom it concerns when one went wrong.

use expect_test::{Expect, expect};
use kiln::core::ir::{IntrinsicDef, Meaning, Scalar, TypePattern};
use kiln::core::runtime::CpuOptions;
use kiln::prelude::*;

use super::jits;

fn check<T>(result: kiln::Result<T>, want: Expect) {
    let error = result.err().expect("an error");
    want.assert_eq(&error.to_string());
}

#[kernel]
fn count(y: &mut [u32], n: u32) {
    let i = global_id().x;
    let mut sum = 0;
    for j in 0..n {
        sum = sum * 3 + j;
    }
    y[i] = sum;
}

/// Out of bounds for each buffer but the empty one.
#[kernel]
fn beyond(y: &mut [u32]) {
    let n = y.len();
    y[n + global_id().x] = 1;
}

#[test]
fn events_of_two_devices() {
    let (a, b) = (Jit::on(Device::cpu()), Jit::on(Device::cpu()));
    let mut y = b.zeros::<u32>(64 * 64).expect("memory");
    let first = a.record().expect("an event");
    count
        .launch(&b, (64, 64), &mut y, 20_000)
        .expect("a launch");
    let second = b.record().expect("an event");
    let want = || expect!["the two events are of different devices; record both on one"];
    check(first.elapsed_ms(&second), want());
    check(second.elapsed_ms(&first), want());
    assert!(
        second
            .elapsed_ms(&b.record().expect("an event"))
            .expect("one device")
            >= 0.0
    );
}

#[test]
fn shapes_whose_product_overflows() {
    let jit = Jit::on(Device::cpu());
    let mut y = jit.zeros::<u32>(1).expect("memory");
    let all = u32::MAX;
    check(
        count.launch(&jit, (1, (all, all, all)), &mut y, 0),
        expect![
            "kernel `count`: the number of threads of a block is 79228162458924105385300197375, the device's limit is 1024; use a smaller block and a larger grid"
        ],
    );
    check(
        count.launch(&jit, (1, (1 << 22, 1 << 21, 1 << 21)), &mut y, 0),
        expect![
            "kernel `count`: the number of threads of a block is 18446744073709551616, the device's limit is 1024; use a smaller block and a larger grid"
        ],
    );
    check(
        count.launch(&jit, ((all, all, all), 1), &mut y, 0),
        expect![
            "kernel `count`: the grid's x is 4294967295, the device's limit is 2147483647; use a larger block or a loop over the grid in the kernel"
        ],
    );
}

/// A grid that covers only a part would leave the rest undone in silence.
#[test]
fn grids_for_too_many_elements() {
    assert_eq!(grid_for(i32::MAX as usize, 1), i32::MAX as u32);
    let jit = Jit::on(Device::cpu());
    let mut y = jit.zeros::<u32>(1).expect("memory");
    check(
        count.launch(&jit, (grid_for(1 << 40, 1), 1), &mut y, 0),
        expect![
            "kernel `count`: the grid's x is 4294967295, the device's limit is 2147483647; use a larger block or a loop over the grid in the kernel"
        ],
    );
}

#[test]
fn blocks_to_prepare_that_no_device_has() {
    let jit = Jit::on(Device::cpu());
    let mut y = jit.zeros::<u32>(1).expect("memory");
    for block in [
        (u32::MAX, u32::MAX, u32::MAX),
        (1025, 1, 1),
        (1, 1, 65),
        (0, 1, 1),
    ] {
        let args = args!(&mut y, 0u32);
        let prepared = jit.compile(&count, args).expect("a kernel");
        assert!(matches!(
            prepared.prepare_block(block),
            Err(kiln::Error::Launch(_))
        ));
        assert!(matches!(
            jit.inspect_block(&count, block, args),
            Err(kiln::Error::Launch(_))
        ));
    }
}

#[test]
fn lanes_that_no_vector_has() {
    for lanes in [0, 3, 5, 128, 1 << 20] {
        let jit = Jit::on(Device::cpu_with(CpuOptions::default().lanes(lanes)));
        let mut y = jit.zeros::<u32>(64).expect("memory");
        let error = count
            .launch(&jit, (1, 64), &mut y, 0)
            .expect_err("no such vector");
        let want =
            format!("vectors of {lanes} lanes were asked for; a vector has 1, 8, 16, 32 or 64");
        assert!(error.to_string().ends_with(&want), "{error}");
    }
}

static PANICS: IntrinsicDef = IntrinsicDef::new(
    "user.panics",
    &[TypePattern::Exact(Scalar::U32)],
    TypePattern::SameAs(0),
    Meaning::Pure(|_, args| {
        assert!(args[0] != 3, "no value for 3");
        args[0] + 1
    }),
);

#[test]
fn a_row_whose_function_panics() {
    let kernel = Kernel::build("uses_a_row", |k| {
        let y = k.slice_mut("y", Type::U32);
        let i = k.global_id().x();
        y.at(i).set(k.intrinsic(&PANICS, &[y.at(i).get()]));
    });
    let kernel = kernel.expect("a kernel without mistakes");
    for (name, jit) in jits() {
        let numbers: Vec<u32> = (0..64).collect();
        let mut y = jit.upload(&numbers).expect("memory");
        let launched = jit.launch(&kernel, 1, 64, args!(&mut y));
        let error = launched.and_then(|()| y.to_vec()).expect_err(name);
        expect!["kernel `uses_a_row`: the function that says what the intrinsic `user.panics` means panicked: no value for 3; it must give a value for all arguments"].assert_eq(&error.to_string());
        // The next launch is fine.
        let mut y = jit.upload(&[5u32; 64]).expect("memory");
        jit.launch(&kernel, 1, 64, args!(&mut y)).expect(name);
        assert_eq!(y.to_vec().expect(name), [6; 64]);
    }
}

/// Threads that share a `Jit` and not their buffers hear nothing of each other's faults.
#[test]
fn faults_of_another_thread() {
    for (name, jit) in jits() {
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let mut y = jit.zeros::<u32>(64).expect("memory");
                        beyond.launch(&jit, (1, 64), &mut y).expect("a launch");
                        let error = y.to_vec().expect_err("it is told").to_string();
                        assert!(error.contains("kernel `beyond`"), "{name}: {error}");
                        assert_eq!(y.to_vec().expect("it is told once"), [0; 64]);
                    }
                });
                scope.spawn(|| {
                    for n in 0..20u32 {
                        let mut y = jit.zeros::<u32>(64).expect("memory");
                        count.launch(&jit, (1, 64), &mut y, n).expect("a launch");
                        let want = (0..n).fold(0u32, |s, j| s.wrapping_mul(3).wrapping_add(j));
                        assert_eq!(y.to_vec().expect(name), [want; 64], "{name}");
                    }
                });
            }
        });
        jit.synchronize().expect("all faults were told");
    }
}

/// Who waits for the device hears of faults of any buffer.
#[test]
fn a_fault_is_told_who_waits_for_all() {
    for (name, jit) in jits() {
        let mut y = jit.zeros::<u32>(64).expect("memory");
        beyond.launch(&jit, (1, 64), &mut y).expect("a launch");
        jit.synchronize().expect_err(name);
        jit.synchronize().expect(name);
        y.to_vec().expect(name);
    }
}
