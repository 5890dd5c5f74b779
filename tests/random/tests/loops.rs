//! Random loops over indices that stay in bounds or do not, as they are in the interpreter and without the checks
//! that hooks move out of them: the same elements are written, or the same thread faults at the same element.
//!
//! The seeds are always the same; `KILN_FUZZ_SEED` sets another first one, `KILN_FUZZ_COUNT` how many there are.

mod case;
mod starts;

use kiln_hooks::standard;
use kiln_jit_core::hook::HookSet;
use kiln_jit_core::ir::{Bounds, InstData, parse};
use kiln_jit_core::simt::Uniformities;
use kiln_jit_core::target::{CpuTarget, Target};
use kiln_random::run::HostRunner;
use kiln_random::{Arg, Case, InterpreterRunner, OnHostRunner, Runner, hooked, hooked_for};

use case::{case, case_that_calls};

/// How many kernels are compared.
const KERNELS: u64 = 1000;

fn number(name: &str, otherwise: u64) -> u64 {
    let given = std::env::var(name).ok().and_then(|text| text.parse().ok());
    given.unwrap_or(otherwise)
}

/// How many accesses of a kernel are checked.
fn checks(case: &Case) -> usize {
    let insts = case.kernel().insts.values();
    insts.filter(|node| node.data.check().is_some()).count()
}

/// Whether a kernel takes more turns than the interpreter makes.
fn ends_late(result: &Result<Vec<Vec<u8>>, String>) -> bool {
    let late = |error: &String| {
        error.contains("loop iterations") || error.contains("is in a loop that does not end")
    };
    result.as_ref().is_err_and(late)
}

fn unchecked(case: &Case) -> usize {
    let accesses = case.kernel().insts.values();
    let unchecked = |data: &InstData| matches!(data.access(), Some((_, false)));
    accesses.filter(|node| unchecked(&node.data)).count()
}

/// Whether all threads of a block come to each barrier, as far as `if`s decide.
fn meet_alike(case: &Case) -> bool {
    let kernel = case.kernel();
    let known = Uniformities::of_any_block(&case.module, kernel);
    kernel.insts.values().all(|node| {
        let mut barriers = 0;
        if let InstData::If { cond, .. } = node.data
            && !known.is_of_block(cond)
        {
            for region in node.data.regions() {
                kernel.walk(region, &mut |_, inst| {
                    barriers += usize::from(kernel.insts[inst].data.is_barrier());
                });
            }
        }
        barriers == 0
    })
}

#[test]
fn loops_do_the_same_with_fewer_checks() {
    do_the_same(1 << 40, false, on_a_gpu());
}

#[test]
fn kernels_for_cpus_do_the_same_with_fewer_checks() {
    do_the_same(4 << 40, false, on_a_cpu());
}

#[test]
fn kernels_for_cpus_in_which_threads_meet_do_the_same_with_fewer_checks() {
    do_the_same(5 << 40, true, on_a_cpu());
}

fn on_a_gpu() -> Target {
    kiln_jit_core::ir::gpu_on_host::target(90)
}

fn on_a_cpu() -> Target {
    Target::Cpu(CpuTarget::default())
}

#[test]
fn loops_in_which_threads_meet_do_the_same_with_fewer_checks() {
    do_the_same(3 << 40, true, on_a_gpu());
}

/// How many functions the kernels call that do.
const FUNCTIONS: usize = 2;

#[test]
fn functions_do_the_same_with_fewer_checks() {
    let calls = |seed| case_that_calls(seed, false, FUNCTIONS);
    all_do_the_same(6 << 40, (&calls, None), on_a_gpu());
    all_do_the_same(7 << 40, (&calls, None), on_a_cpu());
}

#[test]
fn functions_of_threads_that_meet_do_the_same_with_fewer_checks() {
    let calls = |seed| case_that_calls(seed, true, FUNCTIONS);
    all_do_the_same(8 << 40, (&calls, None), on_a_gpu());
    all_do_the_same(9 << 40, (&calls, None), on_a_cpu());
}

#[test]
fn clamped_kernels_for_cpus_do_the_same_in_two_versions() {
    clamped_do_the_same(10 << 40, false);
    clamped_do_the_same(11 << 40, true);
}

/// Kernels whose indices are clamped, as they are and with the hook; now and then compiled, where one thread alone runs.
fn clamped_do_the_same(first: u64, meet: bool) {
    let hooks = HookSet::new().with_all(&standard().only("bounds-checks"));
    let (first, count) = (
        number("KILN_FUZZ_SEED", first),
        number("KILN_FUZZ_COUNT", KERNELS),
    );
    let (mut ran, mut versions) = (0, 0);
    for seed in first..first + count {
        let mut case = case(seed, meet);
        for (_, function) in case.module.functions.iter_mut() {
            function.choices.bounds = Some(Bounds::Clamped);
        }
        let on_a_cpu = |hooks: &HookSet| {
            hooked_for(on_a_cpu(), &case, hooks)
                .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", case.module))
        };
        let (plain, with) = (on_a_cpu(&HookSet::new()), on_a_cpu(&hooks));
        let expected = InterpreterRunner.run(&plain);
        if ends_late(&expected) {
            continue;
        }
        let found = InterpreterRunner.run(&with);
        if ends_late(&found) {
            continue;
        }
        assert_eq!(
            found, expected,
            "seed {seed}\n{}\n{}",
            case.module, with.module
        );
        assert!(meet_alike(&with), "seed {seed}\n{}", with.module);
        if !meet && seed % 8 == 0 && expected.is_ok() {
            let compiled = HostRunner {
                clamped: true,
                ..HostRunner::new(8)
            };
            assert_eq!(
                compiled.run(&case),
                expected,
                "seed {seed}\n{}",
                case.module
            );
        }
        ran += u64::from(expected.is_ok());
        versions += u64::from(unchecked(&with) > unchecked(&plain));
    }
    println!("of {count} kernels {ran} end, and {versions} have two versions");
    assert!(
        count < KERNELS || ran > count / 2 && versions > count / 5,
        "of {count} {ran} end, {versions} have two versions"
    );
}

fn do_the_same(first: u64, meet: bool, target: Target) {
    all_do_the_same(first, (&|seed| case(seed, meet), Some(4)), target);
}

/// Compares the kernels of seeds from the first on. Checks become at most so many of one.
fn all_do_the_same(
    first: u64,
    (case, most): (&dyn Fn(u64) -> Case, Option<usize>),
    target: Target,
) {
    let hooks = HookSet::new().with_all(&standard().only("bounds-checks"));
    let (first, count) = (
        number("KILN_FUZZ_SEED", first),
        number("KILN_FUZZ_COUNT", KERNELS),
    );
    let (mut faults, mut fewer) = (0, 0);
    for seed in first..first + count {
        let case = case(seed);
        let expected = InterpreterRunner.run(&case);
        if ends_late(&expected) {
            continue;
        }
        let without = hooked_for(target.clone(), &case, &hooks)
            .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", case.module));
        let found = InterpreterRunner.run(&without);
        // A loop that is run again makes its turns twice.
        if ends_late(&found) && expected.is_err() {
            continue;
        }
        assert_eq!(
            found, expected,
            "seed {seed}\n{}\n{}",
            case.module, without.module
        );
        assert!(meet_alike(&without), "seed {seed}\n{}", without.module);
        faults += u64::from(expected.is_err());
        fewer += u64::from(unchecked(&without) > 0);
        if let Some(most) = most {
            assert!(checks(&without) <= most * checks(&case), "seed {seed}");
        }
    }
    println!("of {count} kernels {faults} fault, and {fewer} have accesses without checks");
    assert!(
        count < KERNELS || faults > count / 5 && faults < count * 4 / 5,
        "{faults} of {count} fault"
    );
    assert!(
        count < KERNELS || fewer > count / 4,
        "{fewer} of {count} have fewer checks"
    );
}

/// What threads that meet do with `%0` in turn `%8`, where `%3` is the thread's index and `%2` a number.
const FORMS: [&str; 23] = [
    "%10: ptr<generic, u32> = slice_index %0, %3\n%11: u32 = load %10",
    "%10: u32 = rem %3, %6\n%11: ptr<generic, u32> = slice_index %0, %10\n%12: u32 = load %11",
    "%10: u32 = and %3, %6\n%11: ptr<generic, u32> = slice_index %0, %10\n%12: u32 = load %11",
    "%10: u32 = min %3, %6\n%11: ptr<generic, u32> = slice_index %0, %10\n%12: u32 = load %11",
    "%10: u32 = add %3, %8\n%11: u32 = div %10, %6\n%12: ptr<generic, u32> = slice_index %0, %11\n%13: u32 = load %12",
    "%10: u32 = mul %3, %2\n%11: u32 = add %10, %8\n%12: ptr<generic, u32> = slice_index %0, %11\n%13: u32 = load %12",
    "%10: bool = lt %3, %2\nif %10 {\n%11: ptr<generic, u32> = slice_index %0, %3\n%12: u32 = load %11\n}",
    "%10: bool = le %3, %2\nif %10 {\n%11: ptr<generic, u32> = slice_index %0, %3\n%12: u32 = load %11\n}",
    // What is below one's turn, and how far.
    "%10: bool = le %3, %8\nif %10 {\n%11: u32 = sub %8, %3\n%12: ptr<generic, u32> = slice_index %0, %11\n%13: u32 = load %12\n}",
    "%10: bool = lt %3, %8\nif %10 {\n%11: u32 = sub %3, %8\n%12: u32 = add %11, %6\n%13: ptr<generic, u32> = slice_index %0, %12\n%14: u32 = load %13\n}",
    "%10: bool = le %3, %8\nif %10 {\n%11: u32 = add %8, %8\n%12: u32 = sub %11, %3\n%13: ptr<generic, u32> = slice_index %0, %12\n%14: u32 = load %13\n}",
    // A guard that holds for one of two accesses.
    "%10: bool = lt %3, %2\nif %10 {\n%11: ptr<generic, u32> = slice_index %0, %3\n%12: u32 = load %11\n}\n%13: ptr<generic, u32> = slice_index %0, %3\n%14: u32 = load %13",
    "%10: u32 = const 2\n%11: u32 = div %3, %10\n%12: bool = lt %3, %2\nif %12 {\n%13: ptr<generic, u32> = slice_index %0, %11\n%14: u32 = load %13\n}\n%15: ptr<generic, u32> = slice_index %0, %11\n%16: u32 = load %15",
    // From the other end.
    "%10: u32 = sub %2, %8\n%11: bool = le %3, %10\nif %11 {\n%12: u32 = add %3, %8\n%13: ptr<generic, u32> = slice_index %0, %12\n%14: u32 = load %13\n}",
    // Numbers with a sign, as rows are multiplied.
    "%10: i32 = cast %3\n%11: i32 = cast %2\n%12: bool = lt %10, %11\nif %12 {\n%13: i32 = cast %8\n%14: i32 = mul %13, %11\n%15: i32 = add %14, %10\n%16: u32 = cast %15\n%17: ptr<generic, u32> = slice_index %0, %16\n%18: u32 = load %17\n}",
    "for %10: u32 in %4 .. %8 step %5 {\n%11: ptr<generic, u32> = slice_index %0, %10\n%12: u32 = load %11\n}",
    // What an `if` says where its condition does not hold, and of what is a multiple.
    "%10: bool = lt %3, %6\nif %10 {\n} else {\n%11: u32 = sub %3, %6\n%12: ptr<generic, u32> = slice_index %0, %11\n%13: u32 = load %12\n}",
    "%10: bool = lt %2, %3\n%11: bool = not %10\nif %11 {\n%12: u32 = sub %2, %3\n%13: ptr<generic, u32> = slice_index %0, %12\n%14: u32 = load %13\n}",
    "%10: bool = le %3, %2\nif %10 {\n} else {\n%11: ptr<generic, u32> = slice_index %0, %3\n%12: u32 = load %11\n}",
    "%10: bool = ge %2, %3\nif %10 {\n} else {\n%11: ptr<generic, u32> = slice_index %0, %3\n%12: u32 = load %11\n}",
    "%10: u32 = rem %3, %6\n%11: bool = eq %10, %4\nif %11 {\n%12: u32 = add %3, %5\n%13: ptr<generic, u32> = slice_index %0, %12\n%14: u32 = load %13\n}",
    "%10: u32 = slice_len %0\n%11: bool = lt %3, %10\nif %11 {\n%12: ptr<generic, u32> = slice_index %0, %3\n%13: u32 = load %12\n} else {\n%14: ptr<generic, u32> = slice_index %0, %8\n%15: u32 = load %14\n}",
    // Numbers with a sign: one that is below another may be negative.
    "%10: i32 = cast %3\n%11: i32 = cast %6\n%12: i32 = sub %10, %11\n%13: i32 = cast %2\n%14: bool = lt %12, %13\nif %14 {\n%15: u32 = cast %12\n%16: ptr<generic, u32> = slice_index %0, %15\n%17: u32 = load %16\n}",
];

/// The same of what is one of several numbers; what stands before `|` is done before the loop.
const CHOSEN: [&str; 12] = [
    // What is known in one branch alone.
    "%10: bool = lt %3, %2\nif %10 {\nset var0, %4\n} else {\nset var0, %3\n}\n%11: u32 = get var0\n%12: ptr<generic, u32> = slice_index %0, %11\n%13: u32 = load %12",
    "%10: bool = gt %3, %4\nif %10 {\n%11: u32 = sub %3, %5\nset var0, %11\n} else {\nset var0, %3\n}\n%12: u32 = get var0\n%13: ptr<generic, u32> = slice_index %0, %12\n%14: u32 = load %13",
    // How far above it is.
    "%10: bool = gt %3, %4\n%11: u32 = sub %3, %5\n%12: u32 = sub %11, %5\n%13: u32 = select %10, %12, %4\n%14: ptr<generic, u32> = slice_index %0, %13\n%15: u32 = load %14",
    "%10: bool = ne %3, %6\n%11: u32 = sub %3, %6\n%12: u32 = sub %11, %5\n%13: u32 = select %10, %12, %4\n%14: ptr<generic, u32> = slice_index %0, %13\n%15: u32 = load %14",
    // One of two numbers of which one has no ends.
    "%10: i32 = cast %3\n%11: i32 = cast %6\n%12: i32 = sub %10, %11\n%13: i32 = cast %5\n%14: i32 = div %12, %13\n%15: i32 = min %14, %11\n%16: u32 = cast %15\n%17: ptr<generic, u32> = slice_index %0, %16\n%18: u32 = load %17",
    // The same bound, and only once what is not below.
    "%10: bool = lt %3, %2\n%11: bool = gt %3, %4\n%12: bool = and %10, %11\n%13: u32 = sub %3, %5\nif %12 {\n%14: ptr<generic, u32> = slice_index %0, %13\n%15: u32 = load %14\n}\nif %10 {\n%16: ptr<generic, u32> = slice_index %0, %13\n%17: u32 = load %16\n}",
    // A variable that is another one before the loop.
    "set var1, %6\n%50: bool = gt %3, %4\nif %50 {\n%51: u32 = get var1\nset var0, %51\n} else {\nset var0, %4\n}\n%52: u32 = get var0\nset var1, %4|%10: ptr<generic, u32> = slice_index %0, %52\n%11: u32 = load %10",
    // What is assigned last.
    "set var0, %4\nset var0, %3\n%10: u32 = get var0\n%11: ptr<generic, u32> = slice_index %0, %10\n%12: u32 = load %11",
    // What was assigned before, where a branch assigns nothing.
    "set var0, %3\n%10: bool = gt %2, %6\nif %10 {\nset var0, %4\n}\n%11: u32 = get var0\n%12: ptr<generic, u32> = slice_index %0, %11\n%13: u32 = load %12",
    // Multiplied with what may be negative.
    "%10: i32 = cast %2\n%11: i32 = cast %6\n%12: i32 = sub %10, %11\n%13: i32 = cast %8\n%14: i32 = mul %13, %12\n%15: i32 = cast %3\n%16: i32 = add %14, %15\n%17: u32 = cast %16\n%18: ptr<generic, u32> = slice_index %0, %17\n%19: u32 = load %18",
    // The end that a bound says nothing of.
    "%10: bool = le %3, %8\nif %10 {\n%11: u32 = sub %8, %3\n%12: u32 = add %11, %6\n%13: ptr<generic, u32> = slice_index %0, %12\n%14: u32 = load %13\n}",
    // Wider than it was.
    "%10: u32 = sub %3, %5\n%11: u32 = max %10, %4\n%12: ptr<generic, u32> = slice_index %0, %11\n%13: u32 = load %12",
];

/// The same of what conditions say that were put together before, or that others have returned by.
const SAID: [&str; 20] = [
    // A `&&` whose right side reads memory, and a `||`.
    "%10: bool = lt %3, %2\nset var2, %10\nif %10 {\n%11: ptr<generic, u32> = slice_index %0, %4\n%12: u32 = load %11\n%13: bool = eq %12, %4\nset var2, %13\n}\n%14: bool = get var2\nif %14 {\n%15: ptr<generic, u32> = slice_index %0, %3\n%16: u32 = load %15\n}",
    "%10: bool = ge %3, %2\nset var2, %10\n%11: bool = not %10\nif %11 {\n%12: ptr<generic, u32> = slice_index %0, %4\n%13: u32 = load %12\n%14: bool = ne %13, %4\nset var2, %14\n}\n%15: bool = get var2\n%16: bool = not %15\nif %16 {\n%17: ptr<generic, u32> = slice_index %0, %3\n%18: u32 = load %17\n}",
    // Where the `&&` does not hold either part may not.
    "%10: bool = lt %3, %2\nset var2, %10\nif %10 {\n%11: ptr<generic, u32> = slice_index %0, %4\n%12: u32 = load %11\n%13: bool = ne %12, %4\nset var2, %13\n}\n%14: bool = get var2\nif %14 {\n} else {\n%15: ptr<generic, u32> = slice_index %0, %3\n%16: u32 = load %15\n}",
    // True on two ways, of which one says less; and on one way alone.
    "%10: bool = lt %4, %1\nif %10 {\n%11: bool = lt %3, %2\nset var2, %11\n} else {\n%12: bool = lt %3, %6\nset var2, %12\n}\n%13: bool = get var2\nif %13 {\n%14: ptr<generic, u32> = slice_index %0, %3\n%15: u32 = load %14\n}",
    "%10: bool = const false\nset var2, %10\n%11: bool = lt %3, %2\nif %11 {\n%12: bool = lt %3, %6\nset var2, %12\n}\n%13: bool = get var2\nif %13 {\n%14: ptr<generic, u32> = slice_index %0, %3\n%15: u32 = load %14\n}",
    // What is compared with is made where the variable is.
    "%10: bool = const false\nset var2, %10\n%11: bool = lt %4, %2\nif %11 {\n%12: u32 = add %2, %5\n%13: bool = lt %3, %12\nset var2, %13\n}\n%14: bool = get var2\nif %14 {\n%15: ptr<generic, u32> = slice_index %0, %3\n%16: u32 = load %15\n}",
    "%50: bool = const false\nset var2, %50\n%51: bool = lt %4, %2\nif %51 {\n%52: u32 = add %2, %5\n%53: bool = lt %3, %52\nset var2, %53\n}\n%54: bool = get var2\n%55: bool = not %54\nif %55 {\nreturn\n}|%10: ptr<generic, u32> = slice_index %0, %3\n%11: u32 = load %10",
    // Others have returned, from either branch, within the loop and before it.
    "%10: bool = ge %3, %2\nif %10 {\nreturn\n}\n%11: ptr<generic, u32> = slice_index %0, %3\n%12: u32 = load %11",
    "%10: bool = lt %3, %2\nif %10 {\n} else {\nreturn\n}\n%11: ptr<generic, u32> = slice_index %0, %3\n%12: u32 = load %11",
    "%50: bool = lt %3, %2\n%51: bool = not %50\nif %51 {\nreturn\n}|%10: ptr<generic, u32> = slice_index %0, %3\n%11: u32 = load %10",
    // What is said of the turns themselves: at most a bound or below it, at least a number besides, and of two bounds.
    "%10: bool = lt %8, %2\nif %10 {\n%11: ptr<generic, u32> = slice_index %0, %8\n%12: u32 = load %11\n}",
    "%10: bool = gt %8, %2\nif %10 {\n} else {\n%11: u32 = mul %8, %6\n%12: u32 = add %11, %3\n%13: ptr<generic, u32> = slice_index %0, %12\n%14: u32 = load %13\n}",
    "%10: bool = lt %8, %2\n%11: bool = lt %3, %6\n%12: bool = and %10, %11\nif %12 {\n%13: u32 = mul %8, %6\n%14: u32 = add %13, %3\n%15: ptr<generic, u32> = slice_index %0, %14\n%16: u32 = load %15\n}",
    "%10: bool = ge %8, %5\n%11: bool = le %8, %2\n%12: bool = and %10, %11\nif %12 {\n%13: u32 = sub %8, %5\n%14: ptr<generic, u32> = slice_index %0, %13\n%15: u32 = load %14\n}",
    "%10: bool = lt %8, %2\nif %10 {\n%11: ptr<generic, u32> = slice_index %0, %8\n%12: u32 = load %11\n}\n%13: ptr<generic, u32> = slice_index %0, %8\n%14: u32 = load %13",
    // What is said of what is ahead of a value, which is not said of the value where that has wrapped around.
    "%10: u32 = add %3, %6\n%11: bool = lt %10, %2\nif %11 {\n%12: u32 = add %3, %5\n%13: ptr<generic, u32> = slice_index %0, %12\n%14: u32 = load %13\n}",
    "%10: bool = lt %3, %2\n%11: u32 = add %3, %5\n%12: bool = le %11, %2\n%13: bool = and %10, %12\nif %13 {\n%14: u32 = mul %3, %6\n%15: ptr<generic, u32> = slice_index %0, %14\n%16: u32 = load %15\n}",
    "%10: u32 = sub %3, %6\n%11: u32 = add %10, %6\n%12: bool = lt %11, %2\nif %12 {\n%13: ptr<generic, u32> = slice_index %0, %10\n%14: u32 = load %13\n}\n%15: ptr<generic, u32> = slice_index %0, %4\n%16: u32 = load %15",
    // Nobody has, or not from where it is read.
    "%10: bool = ge %3, %2\nif %10 {\nset var0, %4\n}\n%11: ptr<generic, u32> = slice_index %0, %3\n%12: u32 = load %11",
    "%10: bool = lt %4, %1\nif %10 {\n%11: bool = ge %3, %2\nif %11 {\nreturn\n}\n}\n%12: ptr<generic, u32> = slice_index %0, %3\n%13: u32 = load %12",
];

/// Each form, with slices of each length around what it reads.
#[test]
fn threads_that_meet_fault_where_they_did_at_each_length() {
    let (mut free, mut faults) = (0, 0);
    for form in FORMS.into_iter().chain(CHOSEN) {
        for found in at_each_length(form) {
            faults += usize::from(found.faults);
            free += usize::from(found.unchecked > 0);
        }
    }
    println!("{faults} fault, and {free} have accesses without checks");
    assert!(faults > 100 && free > 100, "{faults} {free}");
}

#[test]
fn what_was_said_before_is_what_it_says() {
    for form in SAID {
        let found = at_each_length(form);
        let free = found.iter().filter(|found| found.unchecked > 0).count();
        assert!(free > 0, "no check has gone:\n{form}");
    }
}

/// What came of a kernel.
struct Found {
    faults: bool,
    unchecked: usize,
}

/// Runs what threads that meet do as it is and with the hook, with slices of each length around what it reads: the same
/// threads fault.
fn at_each_length(form: &str) -> Vec<Found> {
    let hooks = HookSet::new().with_all(&standard().only("bounds-checks"));
    let (first, form) = form.split_once('|').unwrap_or(("", form));
    let text = format!(
        "module loops legal

kernel @loops(%0 a: slice<generic, u32>, %1 n: u32, %2 m: u32) {{
  var var0 v: u32
  var var1 v: u32
  var var2 v: bool
  %3: u32 = intrinsic thread_idx.x()
  %4: u32 = const 0
  %5: u32 = const 1
  %6: u32 = const 3
  {first}
  for %8: u32 in %4 .. %1 step %5 {{
    {form}
    barrier
  }}
}}
"
    );
    let mut all = Vec::new();
    for (length, n, m, threads) in sizes() {
        let case = Case {
            block: [threads, 1, 1],
            buffers: vec![vec![0; 4 * length]],
            ..of_text(&text, [n, m])
        };
        let expected = InterpreterRunner.run(&case);
        for target in [on_a_gpu(), on_a_cpu()] {
            let without = hooked_for(target, &case, &hooks).expect("the hook takes it");
            let found = InterpreterRunner.run(&without);
            assert_eq!(
                found, expected,
                "{length} {n} {m} {threads}\n{}",
                without.module
            );
            all.push(Found {
                faults: expected.is_err(),
                unchecked: unchecked(&without),
            });
        }
    }
    all
}

/// What one thread reads of `%0` behind an `if`, where `%1` is its index: each leaves what is there by one if the condition is
/// taken for one that is a little stronger.
const GUARDED: [&str; 6] = [
    "%5: bool = ge %1, %3\nif %5 {\n%6: u32 = sub %1, %4\n%7: ptr<generic, u32> = slice_index %0, %6\n%8: u32 = load %7\n}",
    "%5: bool = lt %1, %3\nif %5 {\n} else {\n%6: u32 = sub %1, %4\n%7: ptr<generic, u32> = slice_index %0, %6\n%8: u32 = load %7\n}",
    "%5: bool = gt %1, %3\nif %5 {\n%6: u32 = sub %1, %4\n%7: ptr<generic, u32> = slice_index %0, %6\n%8: u32 = load %7\n}",
    "%5: u32 = rem %1, %3\n%6: bool = eq %5, %2\nif %6 {\n%7: u32 = add %1, %4\n%8: ptr<generic, u32> = slice_index %0, %7\n%9: u32 = load %8\n}",
    "%5: u32 = rem %1, %3\n%6: bool = eq %5, %4\nif %6 {\n%7: ptr<generic, u32> = slice_index %0, %1\n%8: u32 = load %7\n}\n%9: bool = ne %5, %2\nif %9 {\n%10: ptr<generic, u32> = slice_index %0, %1\n%11: u32 = load %10\n}",
    "%5: u32 = slice_len %0\n%6: bool = le %1, %5\nif %6 {\n%7: ptr<generic, u32> = slice_index %0, %1\n%8: u32 = load %7\n}",
];

/// Each of them, for each number of threads and each length around it.
#[test]
fn what_a_condition_says_is_no_more_than_it_says() {
    let hooks = HookSet::new().with_all(&standard().only("bounds-checks"));
    let mut free = 0;
    for form in GUARDED {
        // Numbers that are compared with and subtracted.
        for (three, four) in [(3, 4), (3, 1), (2, 2)] {
            let text = format!(
                "module loops legal

kernel @loops(%0 a: slice<generic, u32>) {{
  %1: u32 = intrinsic thread_idx.x()
  %2: u32 = const 0
  %3: u32 = const {three}
  %4: u32 = const {four}
  {form}
}}
"
            );
            for (threads, length) in (1..10).flat_map(|threads| (1..12).map(move |n| (threads, n)))
            {
                let case = Case {
                    block: [threads, 1, 1],
                    args: vec![Arg::Buffer(0)],
                    buffers: vec![vec![0; 4 * length]],
                    ..of_text(&text, [0, 0])
                };
                let without = hooked_for(on_a_cpu(), &case, &hooks).expect("the hook takes it");
                let expected = InterpreterRunner.run(&case);
                let found = InterpreterRunner.run(&without);
                assert_eq!(found, expected, "{threads} {length}\n{}", without.module);
                free += usize::from(unchecked(&without) > 0);
            }
        }
    }
    assert!(free > 500, "{free}");
}

/// Lengths of a slice, turns, numbers and threads.
fn sizes() -> impl Iterator<Item = (usize, u32, u32, u32)> {
    (1..12).flat_map(|length| {
        [1, 4].into_iter().flat_map(move |n| {
            let numbers = [1, 2, 5].into_iter();
            numbers.flat_map(move |m| [1, 3, 8].map(|threads| (length, n, m, threads)))
        })
    })
}

/// A kernel of one thread, with a slice of 12 elements and two numbers.
fn of_text(text: &str, numbers: [u32; 2]) -> Case {
    let numbers = numbers.map(|number| Arg::Bytes(number.to_le_bytes().to_vec()));
    Case {
        module: parse(text, &kiln_device_stdlib::find).expect("it is in the notation of the IR"),
        grid: [1; 3],
        block: [1; 3],
        dynamic_shared: 0,
        args: [Arg::Buffer(0)].into_iter().chain(numbers).collect(),
        buffers: vec![vec![0; 4 * 12]],
        seed: 0,
    }
}

/// What a variable was before the loop says nothing of what it is in it.
#[test]
fn a_test_of_what_the_counter_was_is_none_of_the_counter() {
    let text = |tested: &str, old: &str| {
        format!(
            "module loops legal

kernel @loops(%0 a: slice<generic, u32>, %1 start: u32, %2 end: u32) {{
  var var0 i: u32
  set var0, %1
  %3: u32 = get var0
  %4: u32 = const 1
  loop {{
    %5: u32 = get var0
    %6: bool = lt {tested}, %2
    %7: bool = not %6
    if %7 {{
      break 0
    }}
    %8: ptr<generic, u32> = slice_index %0, %5
    %9: u32 = load %8
    %10: u32 = add {old}, %4
    set var0, %10
  }}
}}
"
        )
    };
    let hooks = HookSet::new().with_all(&standard().only("bounds-checks"));
    let accesses = |tested, old| {
        let case = of_text(&text(tested, old), [0, 5]);
        let without = hooked(&case, &hooks).expect("the hook takes it");
        let expected = InterpreterRunner.run(&case);
        assert_eq!(InterpreterRunner.run(&without), expected, "{tested} {old}");
        unchecked(&without)
    };
    assert_eq!(accesses("%5", "%5"), 1);
    assert_eq!(accesses("%3", "%5"), 0);
    assert_eq!(accesses("%5", "%3"), 0);
}

/// A variable that wraps around goes on below its end: what it was last is then not its largest.
#[test]
fn a_counter_that_begins_anew_is_checked() {
    let text = "module loops legal

kernel @loops(%0 a: slice<generic, u32>, %1 start: u32, %2 end: u32) {
  var var0 i: u32
  set var0, %1
  loop {
    %3: u32 = get var0
    %4: bool = lt %3, %2
    %5: bool = not %4
    if %5 {
      break 0
    }
    %6: u32 = get var0
    %7: u32 = sub %6, %1
    %8: ptr<generic, u32> = slice_index %0, %7
    %9: u32 = load %8
    %10: u32 = get var0
    %11: u32 = const 5
    %12: u32 = add %10, %11
    set var0, %12
  }
}
";
    let case = of_text(text, [u32::MAX - 3, u32::MAX - 1]);
    let expected = InterpreterRunner.run(&case);
    let hooks = HookSet::new().with_all(&standard().only("bounds-checks"));
    let without = hooked(&case, &hooks).expect("the hook takes it");
    assert!(unchecked(&without) > 0, "{}", without.module);
    assert_eq!(InterpreterRunner.run(&without), expected);
    let fault = expected.expect_err("the index leaves the slice");
    assert!(fault.starts_with("fault: index 15 of 12"), "{fault}");
}

/// Of an array of known length it is asked, too, that what counts does not begin anew below its first number.
#[test]
fn threads_that_meet_check_a_counter_that_begins_anew() {
    let text = "module loops legal

kernel @loops(%0 a: slice<generic, u32>, %1 step: u32, %2 more: u32) {
  var var0 i: u32
  shared shared0 tile: [u32; 16] align 4
  %3: ptr<shared, mut [u32; 16]> = shared_addr shared0
  %4: u32 = const 4
  %5: u32 = const 16
  set var0, %4
  loop {
    %6: u32 = get var0
    %7: bool = lt %6, %5
    %8: bool = not %7
    if %8 {
      break 0
    }
    %9: u32 = get var0
    %10: u32 = sub %9, %4
    %11: ptr<shared, mut u32> = element_ptr %3, %10
    %12: u32 = load %11
    barrier
    %13: u32 = get var0
    %14: u32 = add %13, %1
    set var0, %14
  }
}
";
    let case = of_text(text, [u32::MAX - 2, 0]);
    let expected = InterpreterRunner.run(&case);
    let hooks = HookSet::new().with_all(&standard().only("bounds-checks"));
    let without = hooked(&case, &hooks).expect("the hook takes it");
    assert!(unchecked(&without) > 0, "{}", without.module);
    assert_eq!(InterpreterRunner.run(&without), expected);
    let fault = expected.expect_err("the index leaves the array");
    assert!(
        fault.starts_with("fault: index 4294967293 of 16"),
        "{fault}"
    );
}

#[test]
fn loops_do_the_same_in_compiled_code() {
    do_the_same_in_compiled_code(2 << 40, |seed| case(seed, false));
}

#[test]
fn functions_do_the_same_in_compiled_code() {
    do_the_same_in_compiled_code(10 << 40, |seed| case_that_calls(seed, false, FUNCTIONS));
}

fn do_the_same_in_compiled_code(first: u64, case: impl Fn(u64) -> Case) {
    let (first, count) = (
        number("KILN_FUZZ_SEED", first),
        number("KILN_FUZZ_COUNT", KERNELS / 10),
    );
    for seed in first..first + count {
        let case = case(seed);
        let expected = InterpreterRunner.run(&case);
        if ends_late(&expected) {
            continue;
        }
        let found = OnHostRunner::default().run(&case);
        if ends_late(&found) && expected.is_err() {
            continue;
        }
        assert_eq!(found, expected, "seed {seed}\n{}", case.module);
        for target in [on_a_gpu(), on_a_cpu()] {
            let without = hooked_for(target, &case, &standard()).expect("the hooks take it");
            let found = HostRunner::new(8).run(&without);
            assert_eq!(found, expected, "seed {seed}\n{}", case.module);
        }
    }
}
