//! What is asked at a kernel's start for all of its threads, with sides and first numbers at which sums wrap around, and
//! slices of each length around what is read: the same threads fault.

use kiln_jit_core::hook::HookSet;

use super::{
    Case, InterpreterRunner, Runner, hooked_for, of_text, on_a_cpu, on_a_gpu, standard, unchecked,
};

/// What stands before a barrier and behind it, for a slice `%0`, a side `%1`, a first number `%2` and the thread `%3`.
const FORMS: [&str; 6] = [
    // A stencil: those above, below and beside, and what is below one that something was added to.
    "%10: u32 = add %2, %3\n%11: u32 = add %10, %5\n%12: bool = lt %11, %1\n%13: u32 = mul %11, %1\nif %12 {\n%14: u32 = sub %13, %1\n%15: ptr<generic, u32> = slice_index %0, %14\n%16: u32 = load %15\n%17: u32 = add %13, %1\n%18: ptr<generic, u32> = slice_index %0, %17\n%19: u32 = load %18\n}|if %12 {\n%20: u32 = sub %11, %5\n%21: ptr<generic, u32> = slice_index %0, %20\n%22: u32 = load %21\n%23: ptr<generic, u32> = slice_index %0, %11\n%24: u32 = load %23\n}",
    // Two sums, of which the larger is asked: by the side, by a number.
    "%10: bool = lt %3, %1\nif %10 {\n%11: u32 = mul %3, %1\n%12: u32 = add %11, %6\n%13: ptr<generic, u32> = slice_index %0, %12\n%14: u32 = load %13\n}|if %10 {\n%15: u32 = mul %3, %1\n%16: u32 = add %15, %1\n%17: ptr<generic, u32> = slice_index %0, %16\n%18: u32 = load %17\n%19: ptr<generic, u32> = slice_index %0, %15\n%20: u32 = load %19\n}",
    // Signed rows and columns, as of a tile with a border.
    "%10: i32 = cast %3\n%11: i32 = cast %5\n%12: i32 = sub %10, %11\n%13: i32 = cast %1\n%14: i32 = const 0\n%15: bool = ge %12, %14\n%16: bool = lt %12, %13\n%17: bool = and %15, %16\n%18: i32 = mul %12, %13\n%19: i32 = add %18, %12\n%20: u32 = cast %19\nif %17 {\n%21: ptr<generic, u32> = slice_index %0, %20\n%22: u32 = load %21\n}|if %17 {\n%23: ptr<generic, u32> = slice_index %0, %20\n%24: u32 = load %23\n}",
    // A loop that threads go through alone, and what the first of them reads; a loop in which they meet.
    "%10: bool = eq %3, %4\nif %10 {\n%11: ptr<generic, u32> = slice_index %0, %2\n%12: u32 = load %11\n}\nfor %13: u32 in %4 .. %6 step %5 {\n%14: u32 = mul %13, %1\n%15: u32 = add %14, %3\n%16: ptr<generic, u32> = slice_index %0, %15\n%17: u32 = load %16\n}|for %18: u32 in %4 .. %6 step %5 {\n%19: u32 = add %18, %3\n%20: ptr<generic, u32> = slice_index %0, %19\n%21: u32 = load %20\nbarrier\n}",
    // The same where conditions say how far.
    "%10: u32 = sub %1, %2\nfor %13: u32 in %4 .. %6 step %5 {\n%14: bool = lt %13, %10\nif %14 {\n%15: u32 = mul %13, %1\n%16: u32 = add %15, %3\n%17: ptr<generic, u32> = slice_index %0, %16\n%18: u32 = load %17\n}\n}|for %19: u32 in %4 .. %6 step %5 {\n%20: bool = le %3, %19\nif %20 {\n%21: u32 = sub %19, %3\n%22: ptr<generic, u32> = slice_index %0, %21\n%23: u32 = load %22\n}\nbarrier\n}",
    // One that not every thread reads, asked anyway.
    "%10: ptr<generic, u32> = slice_index %0, %3\n%11: u32 = load %10|for %12: u32 in %4 .. %6 step %5 {\n%13: ptr<generic, u32> = slice_index %0, %3\n%14: u32 = load %13\nbarrier\n}\n%15: bool = lt %3, %1\nif %15 {\n%16: ptr<generic, u32> = slice_index %0, %3\n%17: u32 = load %16\n}",
];

/// One before the first, of which nothing can be asked: to its number nothing was added.
const UNASKED: &str = "%10: u32 = add %2, %3\n%12: bool = lt %10, %1\nif %12 {\n%14: u32 = sub %10, %5\n%15: ptr<generic, u32> = slice_index %0, %14\n%16: u32 = load %15\n}|if %12 {\n%23: ptr<generic, u32> = slice_index %0, %10\n%24: u32 = load %23\n}";

/// Numbers at whose sums and products something wraps around, and others.
const NUMBERS: [u32; 9] = [
    0,
    1,
    2,
    3,
    1 << 16,
    1 << 31,
    u32::MAX - 2,
    u32::MAX - 1,
    u32::MAX,
];

#[test]
fn threads_fault_where_they_did_whatever_is_asked_at_the_start() {
    let hooks = HookSet::new().with_all(&standard().only("bounds-checks"));
    for form in FORMS.into_iter().chain([UNASKED]) {
        let (before, behind) = form.split_once('|').expect("it has two parts");
        let text = format!(
            "module loops legal

kernel @loops(%0 a: slice<generic, u32>, %1 n: u32, %2 m: u32) {{
  %3: u32 = intrinsic thread_idx.x()
  %4: u32 = const 0
  %5: u32 = const 1
  %6: u32 = const 3
  {before}
  barrier
  {behind}
}}
"
        );
        let (mut faults, mut free) = (0, 0);
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
                let module = &without.module;
                assert_eq!(found, expected, "{length} {n} {m} {threads}\n{module}");
                free += usize::from(unchecked(&without) > 0);
            }
            faults += usize::from(expected.is_err());
        }
        let is_asked = free > 10;
        assert!(
            faults > 10 && is_asked == (form != UNASKED),
            "{faults} {free}\n{form}"
        );
    }
}

fn sizes() -> impl Iterator<Item = (usize, u32, u32, u32)> {
    [0, 1, 2, 4, 9, 10, 16].into_iter().flat_map(|length| {
        NUMBERS.into_iter().flat_map(move |n| {
            let numbers = NUMBERS.into_iter();
            numbers.flat_map(move |m| [1, 2, 5].map(|threads| (length, n, m, threads)))
        })
    })
}
