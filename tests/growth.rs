//! What LLVM is given grows as the kernel does, and the largest kernels of each kind are compiled.
//!
//! Time is not looked at: instructions are counted, of kernels of one, two and four times a size. Where
//! each part of a kernel adds as much as the one before, the second step adds twice what the first did.

use std::cell::RefCell;

use kiln::core::codegen::OptLevel;
use kiln::core::job::CompileOptions;
use kiln::core::runtime::CpuOptions;
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;

/// Describes a kernel of a size, of the parameters of [`kernel`].
type Family = for<'k> fn(&'k KernelBuilder, &Data<'k>, u32);

/// The parameters, and the thread's index.
struct Data<'k> {
    x: Val<'k>,
    y: Val<'k>,
    z: Val<'k>,
    i: Val<'k>,
}

fn kernel(name: &str, describe: Family, size: u32) -> Kernel {
    let kernel = Kernel::build(name, |k| {
        let data = Data {
            x: k.slice("x", Type::F64),
            y: k.slice_mut("y", Type::F64),
            z: k.slice_mut("z", Type::U32),
            i: k.global_id().x(),
        };
        describe(k, &data, size);
    });
    kernel.expect("a kernel without mistakes")
}

/// Loops in loops, each with a bound that threads read.
fn nested(k: &KernelBuilder, data: &Data<'_>, size: u32) {
    let (z, i) = (&data.z, data.i);
    match size {
        0 => z.at(i).set(1u32),
        _ => k.for_range(0u32, z.at(i).get() + 1u32, |_| nested(k, data, size - 1)),
    }
}

/// Branches in branches.
fn nested_ifs(k: &KernelBuilder, data: &Data<'_>, size: u32) {
    let (z, i) = (&data.z, data.i);
    match size {
        0 => z.at(i).set(1u32),
        _ => {
            k.if_(z.at(i).get().lt(size + 5), || nested_ifs(k, data, size - 1));
        }
    }
}

/// Values that are alive over a barrier, and used in both orders behind it.
fn alive<'k>(k: &'k KernelBuilder, data: &Data<'k>, size: u32) {
    let values: Vec<_> = (0..size).map(|j| data.x.at(data.i + j).get()).collect();
    k.barrier();
    let sum = |values: &mut dyn Iterator<Item = &Val<'k>>| {
        values.fold(k.lit(Type::F64, 0.0), |sum, value| *value - sum)
    };
    let forward = sum(&mut values.iter());
    let backward = sum(&mut values.iter().rev());
    data.y.at(data.i).set(forward * 3.0 + backward);
}

/// Variables, each used on both sides of a barrier of its own.
fn variables(k: &KernelBuilder, data: &Data<'_>, size: u32) {
    for j in 0..size {
        let var = k.var("v", data.z.at(data.i + j).get());
        k.barrier();
        data.z.at(data.i + j).set(var.get() + 1u32);
    }
}

/// Variables that live over the barrier of a loop, each changed at a place where threads may end.
fn variables_of_a_loop(k: &KernelBuilder, data: &Data<'_>, size: u32) {
    let vars: Vec<_> = (0..size)
        .map(|j| k.var("v", data.x.at(data.i + j).get()))
        .collect();
    k.for_range(0u32, data.z.len(), |turn| {
        k.barrier();
        for (j, var) in vars.iter().enumerate() {
            let more = data.x.at(data.i + turn + j as u32).get();
            var.set(var.get() + more);
        }
    });
    for (j, var) in vars.iter().enumerate() {
        data.y.at(data.i + j as u32).set(var.get());
    }
}

/// Loads and stores at places of their own.
fn accesses(_: &KernelBuilder, data: &Data<'_>, size: u32) {
    for j in 0..size {
        let value = data.x.at(data.i + j).get();
        data.y.at(data.i + 3 * j).set(value);
    }
}

const FAMILIES: [(&str, Family); 6] = [
    ("nested", nested),
    ("nested_ifs", nested_ifs),
    ("alive", alive),
    ("variables", variables),
    ("variables_of_a_loop", variables_of_a_loop),
    ("accesses", accesses),
];

/// Sizes of a kernel's code: instructions as Kiln writes them, and words once LLVM has made values of
/// variables. There an instruction may be long: it names each place where a value may come from.
fn sizes(jit: &Jit, name: &str, describe: Family, size: u32) -> [f64; 2] {
    let kernel = kernel(name, describe, size);
    let x = jit.zeros::<f64>(1).expect("memory");
    let mut y = jit.zeros::<f64>(1).expect("memory");
    let mut z = jit.zeros::<u32>(1).expect("memory");
    let inspection = jit.inspect_block(&kernel, 256, args!(&x, &mut y, &mut z));
    let inspection = inspection.expect("arguments that fit");
    let text = inspection.unoptimized_llvm().expect("code for this CPU");
    let written = text.lines().filter(|line| line.starts_with("  ")).count();
    let text = inspection.llvm().expect("code for this CPU");
    let words = text.split_whitespace().count();
    [written as f64, words as f64]
}

#[test]
fn code_grows_as_the_kernel_does() {
    let options = JitOptions::default().compile(CompileOptions::default().opt_level(OptLevel::O0));
    let with = |hooks| Jit::with(Device::cpu(), hooks, options.clone());
    // What this hook gives two versions, up to a size of its own, is twice as much.
    let jit = with(kiln::hooks::standard().without("bounds-checks"));
    let in_versions = with(kiln::hooks::standard());
    let failed = RefCell::new(Vec::new());
    for (name, describe) in FAMILIES {
        let [one, two, four] = [16, 32, 64].map(|size| {
            let plain = sizes(&jit, name, describe, size);
            let versions = sizes(&in_versions, name, describe, size);
            if versions[0] > 2.5 * plain[0] {
                let line = format!("{name}, {size}: {plain:?}, in versions {versions:?}");
                failed.borrow_mut().push(line);
            }
            plain
        });
        for (i, what) in ["instructions", "words of values"].into_iter().enumerate() {
            let growth = (four[i] - two[i]) / (two[i] - one[i]);
            if growth > 2.1 {
                let line = format!("{name}: {}, {}, {} {what}", one[i], two[i], four[i]);
                failed.borrow_mut().push(line);
            }
        }
    }
    let failed = failed.into_inner();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn the_deepest_loops_are_compiled() {
    let jit = Jit::on(Device::cpu());
    let kernel = kernel("deep", nested, 127);
    let x = jit.zeros::<f64>(1).expect("memory");
    let mut y = jit.zeros::<f64>(1).expect("memory");
    // The loops of thread 63 have no turn.
    let turns: Vec<u32> = (0..64)
        .map(|i| if i == 63 { u32::MAX } else { 0 })
        .collect();
    let mut z = jit.upload(&turns).expect("memory");
    let args = args!(&x, &mut y, &mut z);
    jit.launch(&kernel, 1, 64, args).expect("a launch");
    let mut wanted = vec![1; 64];
    wanted[63] = u32::MAX;
    assert_eq!(z.to_vec().expect("no thread failed"), wanted);
}

/// Branches one after the other.
fn branches(k: &KernelBuilder, data: &Data<'_>, size: u32) {
    let most = k.var("most", data.z.at(data.i).get());
    for j in 0..size {
        k.if_(most.get().lt(j), || most.set(j));
    }
    data.z.at(data.i).set(most.get());
}

/// The passes that a kernel for a GPU is compiled with, and why LLVM does less for it than for others.
fn effort(options: CompileOptions, describe: Family, size: u32) -> (String, Option<String>) {
    let target = Target::Ptx(PtxTarget::for_sm(90));
    let options = JitOptions::default().target(target).compile(options);
    let jit = Jit::with(Device::cpu(), kiln::hooks::standard(), options);
    let x = jit.zeros::<f64>(1).expect("memory");
    let mut y = jit.zeros::<f64>(1).expect("memory");
    let mut z = jit.zeros::<u32>(1).expect("memory");
    let inspection = jit.inspect(&kernel("k", describe, size), args!(&x, &mut y, &mut z));
    let inspection = inspection.expect("arguments that fit");
    let passes = inspection.passes().expect("PTX is made by LLVM").to_owned();
    (passes, inspection.reduced().map(str::to_owned))
}

/// Branches one after the other, each with an address of its own.
fn stores_in_branches(k: &KernelBuilder, data: &Data<'_>, size: u32) {
    let most = data.z.at(data.i).get();
    for j in 0..size {
        k.if_(most.lt(j), || data.z.at(data.i * 3u32 + 7 * j).set(j));
    }
}

#[test]
fn inspect_tells_what_is_compiled_by_the_quick_code_generator() {
    // SAFETY: nothing is launched with them.
    let unchecked = unsafe { CompileOptions::default().unchecked() };
    for options in [CompileOptions::default(), unchecked] {
        let (all, none) = effort(options.clone(), stores_in_branches, 100);
        assert_eq!(none, None);
        // A check is two blocks.
        let size = if options == CompileOptions::default() {
            400
        } else {
            600
        };
        let (passes, why) = effort(options.clone(), accesses, size);
        assert_eq!(passes, all, "it is the code generator that does less");
        let why = why.expect("it has more than a thousand addresses");
        assert!(
            why.ends_with(" sums, products and addresses, more than 1000"),
            "{why}"
        );
        // Few passes and the quick code generator.
        let (few, why) = effort(options, stores_in_branches, 2_501);
        assert_ne!(few, all);
        let why = why.expect("it is large");
        assert!(why.ends_with(" blocks, more than 5000"), "{why}");
    }
}

/// Many stores, and an atomic operation on the thread's own memory, which is made an ordinary one by the whole code
/// generator alone.
fn atomic_on_local_memory(k: &KernelBuilder, data: &Data<'_>, size: u32) {
    let cell = k.local(Type::U32);
    cell.set(data.z.at(data.i).get());
    let address = k.var("address", cell.address().to_generic());
    // SAFETY: the address of this thread's cell.
    let place = unsafe { address.get().deref() };
    place.atomic_add(size);
    accesses(k, data, size);
    data.z.at(data.i).set(cell.get());
}

#[test]
fn atomic_operations_on_local_memory_are_compiled_in_large_kernels() {
    let (_, why) = effort(CompileOptions::default(), atomic_on_local_memory, 400);
    assert_eq!(why, None);
}

#[test]
fn inspect_tells_what_is_compiled_with_few_passes() {
    let inspect = |describe, size| effort(CompileOptions::default(), describe, size);
    let (all, none) = inspect(branches, 100);
    assert_eq!(none, None);
    let (few, why) = inspect(nested, 65);
    assert_ne!(few, all);
    assert_eq!(why.as_deref(), Some("its loops are 65 deep, more than 64"));
    let (fewer, why) = inspect(branches, 1_001);
    assert_ne!(fewer, all);
    let why = why.expect("it has a branch and what is behind it 1,001 times");
    assert!(why.ends_with(" blocks, more than 2000"), "{why}");
    let (few, why) = inspect(branches, 2_501);
    assert!(few.len() < fewer.len(), "{few}");
    let why = why.expect("it has a branch and what is behind it 2,501 times");
    assert!(why.ends_with(" blocks, more than 5000"), "{why}");
    let (few, why) = inspect(statements, 30_000);
    assert_ne!(few, all);
    let why = why
        .expect("it has an addition, and a load and a store of a variable, thirty thousand times");
    assert!(why.ends_with(" instructions, more than 64000"), "{why}");
}

/// Statements one after the other.
fn statements(k: &KernelBuilder, data: &Data<'_>, size: u32) {
    let sum = k.var("sum", data.z.at(data.i).get());
    for j in 0..size {
        sum.set(sum.get() + j);
    }
    data.z.at(data.i).set(sum.get());
}

/// Loops in loops, of which the innermost goes out of bounds in some threads after some turns. Threads
/// count the loops that they leave, and have one turn or two, as `z` says.
fn faults<'k>(k: &'k KernelBuilder, data: &Data<'k>, size: u32) {
    let left = k.var("left", 0u32);
    let turns = data.z.at(data.i).get();
    fault_within(k, data, left, turns, size);
    data.z.at(data.i).set(left.get());
}

fn fault_within<'k>(
    k: &'k KernelBuilder,
    data: &Data<'k>,
    left: Var<'k>,
    turns: Val<'k>,
    size: u32,
) {
    if size == 0 {
        data.y.at(data.i + left.get()).set(1.0);
        return;
    }
    k.for_range(0u32, turns, |_| {
        fault_within(k, data, left, turns, size - 1);
    });
    data.z.at(data.i).set(left.get() + 100u32);
    left.set(left.get() + 1u32);
}

#[test]
fn threads_that_end_deep_in_loops_do_nothing_more() {
    const THREADS: usize = 64;
    let kernel = kernel("faults", faults, 11);
    let run = |interpret| {
        let options = CpuOptions::default().interpret(interpret);
        let jit = Jit::on(Device::cpu_with(options));
        let x = jit.zeros::<f64>(1).expect("memory");
        let mut y = jit.zeros::<f64>(THREADS + 10).expect("memory");
        let turns: Vec<u32> = (0..THREADS as u32).map(|i| i % 2 + 1).collect();
        let mut z = jit.upload(&turns).expect("memory");
        let args = args!(&x, &mut y, &mut z);
        jit.launch(&kernel, 1, THREADS as u32, args)
            .expect("a launch");
        z.to_vec().expect_err("threads go out of bounds");
        z.to_vec().expect("it was said once")
    };
    assert_eq!(run(false), run(true));
}

#[test]
fn many_values_live_over_a_barrier() {
    const VALUES: usize = 600;
    const THREADS: usize = 256;
    let jit = Jit::on(Device::cpu());
    let kernel = kernel("alive", alive, VALUES as u32);
    let numbers: Vec<f64> = (0..VALUES + THREADS).map(|i| (i * i % 97) as f64).collect();
    let x = jit.upload(&numbers).expect("memory");
    let mut y = jit.zeros::<f64>(THREADS).expect("memory");
    let mut z = jit.zeros::<u32>(1).expect("memory");
    let args = args!(&x, &mut y, &mut z);
    jit.launch(&kernel, 1, THREADS as u32, args)
        .expect("a launch");
    let wanted: Vec<f64> = (0..THREADS)
        .map(|i| {
            let mine = &numbers[i..i + VALUES];
            let forward = mine.iter().fold(0.0, |sum, value| value - sum);
            let backward = mine.iter().rev().fold(0.0, |sum, value| value - sum);
            forward * 3.0 + backward
        })
        .collect();
    assert_eq!(y.to_vec().expect("no thread failed"), wanted);
}

#[test]
fn many_variables_live_over_the_barrier_of_a_loop() {
    const VARIABLES: usize = 600;
    const THREADS: usize = 256;
    const TURNS: usize = 3;
    let jit = Jit::on(Device::cpu());
    let kernel = kernel("variables_of_a_loop", variables_of_a_loop, VARIABLES as u32);
    let length = VARIABLES + THREADS;
    let numbers: Vec<f64> = (0..length + TURNS).map(|i| (i * i % 97) as f64).collect();
    let x = jit.upload(&numbers).expect("memory");
    let mut y = jit.zeros::<f64>(length).expect("memory");
    let mut z = jit.zeros::<u32>(TURNS).expect("memory");
    let args = args!(&x, &mut y, &mut z);
    // Thread i has elements i to i + VARIABLES, so neighbours write the same.
    jit.launch(&kernel, 1, THREADS as u32, args)
        .expect("a launch");
    let y = y.to_vec().expect("no thread failed");
    let wanted = |i: usize| numbers[i] + numbers[i..i + TURNS].iter().sum::<f64>();
    for (i, &seen) in y.iter().take(length - 1).enumerate() {
        assert_eq!(seen, wanted(i), "{i}");
    }
}
