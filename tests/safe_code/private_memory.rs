//! Private memory: it shows nothing of the process, and there may be much of it on any thread.

use super::jits;
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;

/// Reads private memory that nobody wrote: an array by an index and by its address, a value, and an
/// array that is declared anew in each turn of a loop in which lanes part.
fn unwritten() -> Kernel {
    Kernel::build("unwritten", |k| {
        let (y, n) = (k.slice_mut("y", Type::U64), k.param("n", Type::U32));
        let i = k.global_id().x();
        let sum = k.var("sum", 0u64);
        let array = k.local_array(Type::U64, 16);
        sum.set(sum.get() + array.at(i % 16u32).get());
        let single = k.local(Type::U64);
        sum.set(sum.get() + single.get());
        k.for_range(0u32, n + i % 3u32, |turn| {
            let again = k.local_array(Type::U64, 8);
            sum.set(sum.get() + again.at(turn % 8u32).get());
            again.at((turn + 1u32) % 8u32).set(77u64);
        });
        k.if_(i.lt(y.len()), || y.at(i).set(sum.get()));
    })
    .expect("a kernel without mistakes")
}

/// Puts other numbers where the stack and the memory of blocks are.
fn pollute(jit: &Jit) {
    let kernel = Kernel::build("pollute", |k| {
        let y = k.slice_mut("y", Type::U64);
        let i = k.global_id().x();
        let array = k.local_array(Type::U64, 64);
        k.for_range(0u32, 64u32, |at| array.at(at).set(u64::MAX));
        y.at(i).set(array.at(i % 64u32).get());
    });
    let kernel = kernel.expect("a kernel without mistakes");
    let mut y = jit.zeros::<u64>(64).expect("memory");
    jit.launch(&kernel, 1, 64, args!(&mut y)).expect("a launch");
}

#[test]
fn unwritten_private_memory_is_zero() {
    for (name, jit) in jits() {
        pollute(&jit);
        let kernel = unwritten();
        let mut y = jit.upload(&[5u64; 64]).expect("memory");
        jit.launch(&kernel, 1, 64, args!(&mut y, 9u32))
            .expect("a launch");
        assert_eq!(y.to_vec().expect("numbers"), [0; 64], "{name}");
    }
}

#[test]
fn what_was_stored_stays_across_barriers() {
    let kernel = Kernel::build("kept", |k| {
        let y = k.slice_mut("y", Type::U64);
        let i = k.global_id().x();
        let array = k.local_array(Type::U64, 16);
        let single = k.local(Type::U64);
        k.barrier();
        array.at(i % 16u32).set(5u64);
        k.barrier();
        let sum = k.var("sum", 0u64);
        k.for_range(0u32, 16u32, |at| sum.set(sum.get() + array.at(at).get()));
        k.barrier();
        y.at(i).set(sum.get() + single.get());
    })
    .expect("a kernel without mistakes");
    for (name, jit) in jits() {
        pollute(&jit);
        let mut y = jit.upload(&[1u64; 64]).expect("memory");
        jit.launch(&kernel, 1, 64, args!(&mut y)).expect("a launch");
        assert_eq!(y.to_vec().expect("numbers"), [5; 64], "{name}");
    }
}

/// LLVM may take an undefined value for any other, so that not even a bounds check holds.
#[test]
fn nothing_is_undefined_in_gpu_code() {
    let options = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(90)));
    let jit = Jit::with(Device::cpu(), kiln::hooks::standard(), options);
    let mut y = jit.zeros::<u64>(64).expect("memory");
    let inspection = jit.inspect(&unwritten(), args!(&mut y, 9u32));
    let inspection = inspection.expect("a kernel without mistakes");
    let llvm = inspection.llvm().expect("it was compiled");
    assert!(!llvm.contains(" undef"), "{llvm}");

    let shared = Kernel::build("shared", |k| {
        let y = k.slice_mut("y", Type::U64);
        let array = k.shared_array("array", Type::U64, 64);
        let i = k.global_id().x();
        y.at(i).set(array.at(i).get());
    });
    let shared = shared.expect("a kernel without mistakes");
    let inspection = jit.inspect(&shared, args!(&mut y)).expect("a kernel");
    let ptx = inspection.ptx().expect("it was compiled");
    assert!(ptx.contains("ld.shared"), "{ptx}");
}

/// 24 arrays of 64 numbers, written at an index that depends on the thread and read at another.
fn many_arrays() -> Kernel {
    Kernel::build("many_arrays", |k| {
        let y = k.slice_mut("y", Type::U32);
        let i = k.global_id().x();
        let n = y.at(i).get();
        let arrays: Vec<_> = (0..24).map(|_| k.local_array(Type::U32, 64)).collect();
        k.for_range(0u32, n, |j| {
            let at = (i + j) % 64u32;
            for (number, array) in (0u32..).zip(&arrays) {
                array.at(at).set(j + number);
            }
        });
        let sum = k.var("sum", 0u32);
        for array in &arrays {
            sum.set(sum.get() + array.at(n % 64u32).get());
        }
        y.at(i).set(sum.get());
    })
    .expect("a kernel without mistakes")
}

/// 24 arrays of 256 bytes are 384 KiB for the 64 lanes of a vector, more than a thread has that was
/// given 256 KiB.
#[test]
fn many_private_arrays_fit_any_thread() {
    for (name, jit) in jits() {
        let run = move || {
            let mut y = jit.upload(&[3u32; 64])?;
            jit.launch(&many_arrays(), 1, 64, args!(&mut y))?;
            y.to_vec()
        };
        let thread = std::thread::Builder::new().stack_size(256 << 10);
        let result = thread.spawn(run).expect("a thread").join();
        let y = result.expect("no panic").expect("a launch");
        // The last turn writes at `(i + 2) % 64`, and what is read is the number at 3.
        let at_3 = |i: u32| (0..3).rev().find(|j| (i + j) % 64 == 3);
        let want: Vec<u32> = (0..64)
            .map(|i| at_3(i).map_or(0, |j| (0..24).map(|k| j + k).sum()))
            .collect();
        assert_eq!(y, want, "{name}");
    }
}
