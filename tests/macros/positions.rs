//! Errors at run time name the file, line and column of what is written in the kernel: faults in the
//! interpreter and compiled, findings of the checks, and errors of building.
//!
//! Above a line that an error is to name is a comment `// @mark`; [`at`] finds it in this file.

use kiln::Finding;
use kiln::core::front::AsKernel;
use kiln::error::{Error, RunError};
use kiln::prelude::*;

use super::{devices, exact};

/// Where `token` first is in the line below the comment `// @mark`, as `file:line:column`.
#[track_caller]
fn at(mark: &str, token: &str) -> String {
    let comment = format!("// @{mark}");
    let lines: Vec<&str> = include_str!("positions.rs").lines().collect();
    let marked = lines.iter().position(|line| line.trim() == comment);
    let line = 1 + marked.unwrap_or_else(|| panic!("no comment `{mark}`"));
    let text = lines[line];
    let column = text.find(token);
    let column = column.unwrap_or_else(|| panic!("`{token}` is not in `{text}`"));
    format!("{}:{}:{}", file!(), line + 1, column + 1)
}

/// Launches a kernel `(x: &[u32; 4], out: &mut [u32; 32])` with 32 threads on every device and compares
/// where it faults.
#[track_caller]
fn faults_at(kernel: &impl AsKernel, mark: &str, token: &str) {
    for device in devices() {
        let jit = exact(device);
        let x = jit.zeros::<u32>(4).expect("memory");
        let mut out = jit.zeros::<u32>(32).expect("memory");
        let launched = jit.launch(kernel, 1, 32, args!(&x, &mut out));
        launched.expect("it is launched");
        match jit.synchronize() {
            Err(Error::Run(RunError::Fault(fault))) => {
                assert_eq!(fault.location, at(mark, token), "{fault}")
            }
            other => panic!("{mark}: expected a fault, got {other:?}"),
        }
    }
}

#[kernel]
fn reads(x: &[u32], out: &mut [u32]) {
    let i = thread_idx().x;
    // @read
    out[i] = 7 + x[i + 1];
}

#[kernel]
fn writes(x: &[u32], out: &mut [u32]) {
    let i = thread_idx().x;
    // @write
    out[i + 1] = x[i % 4];
}

#[kernel]
fn adds(x: &[u32], out: &mut [u32]) {
    let i = thread_idx().x;
    // @add
    out[i + 1] += x[i % 4];
}

#[kernel]
fn several_lines(x: &[u32], out: &mut [u32]) {
    let i = thread_idx().x;
    out[i] = 7
        + i as u32
        // @lines
        + (3 * x[i + 1])
        + 1;
}

#[kernel]
fn conditions(x: &[u32], out: &mut [u32]) {
    let i = thread_idx().x;
    let mut n = 0;
    while n < 9
        // @condition
        && x[i + n] == 0
    {
        n += 1;
    }
    out[i] = n as u32;
}

#[kernel]
fn subjects(x: &[u32], out: &mut [u32]) {
    let i = thread_idx().x;
    // @subject
    out[i] = match 1 + x[i] {
        0 => 1,
        n if n < 9 => 2,
        _ => 3,
    };
}

#[kernel]
fn arms(x: &[u32], out: &mut [u32]) {
    let i = thread_idx().x;
    out[i] = match i {
        0 => 1,
        // @arm
        3..=9 => 2 + x[i],
        _ => 3,
    };
}

#[kernel]
fn shared_arrays(x: &[u32], out: &mut [u32]) {
    let i = thread_idx().x;
    let tile = shared!([[u32; 8]; 4]);
    // @shared
    tile[i % 4][i] = x[i % 4];
    out[i] = tile[0][0];
}

#[kernel]
fn local_arrays(x: &[u32], out: &mut [u32]) {
    let i = thread_idx().x;
    let mut list = [0; 8];
    list[1] = x[0];
    // @local
    out[i] = 1 + list[i];
}

#[kernel]
fn borrows(x: &[u32], out: &mut [u32]) {
    let i = thread_idx().x;
    // @borrow
    let place = &mut out[i + 9];
    *place = x[0];
}

#[kernel]
fn atomics(x: &[u32], out: &mut [u32]) {
    let i = thread_idx().x;
    // @atomic
    atomic_add(&mut out[i + 9], x[0]);
}

#[kernel]
fn ranges(x: &[u32], out: &mut [u32]) {
    let i = thread_idx().x;
    let mut sum = 0;
    // @range
    for n in 0..1 + x[i] {
        sum += n;
    }
    out[i] = sum;
}

#[test]
fn faults_name_the_index_expression() {
    faults_at(&reads, "read", "x[i + 1]");
    faults_at(&writes, "write", "out[i + 1]");
    faults_at(&adds, "add", "out[i + 1]");
    faults_at(&several_lines, "lines", "x[i + 1]");
    faults_at(&conditions, "condition", "x[i + n]");
    faults_at(&subjects, "subject", "x[i]");
    faults_at(&arms, "arm", "x[i]");
    faults_at(&shared_arrays, "shared", "tile[i % 4][i]");
    faults_at(&local_arrays, "local", "list[i]");
    faults_at(&borrows, "borrow", "out[i + 9]");
    faults_at(&atomics, "atomic", "out[i + 9]");
    faults_at(&ranges, "range", "x[i]");
}

#[device_fn]
fn element(x: &[u32], i: usize) -> u32 {
    if i > 100 {
        return 0;
    }
    // @callee
    5 + x[i]
}

#[device_fn]
fn nested(x: &[u32], i: usize) -> u32 {
    element(x, i) + 1
}

#[kernel]
fn calls(x: &[u32], out: &mut [u32]) {
    out[thread_idx().x] = nested(x, thread_idx().x);
}

#[device_fn]
fn generic_element<T: Num, const N: usize>(x: &[T], more: [T; N], i: usize) -> T {
    // @generic
    let y = x[i + N];
    y + more[0]
}

#[kernel]
fn generic<T: Num>(x: &[T], out: &mut [T]) {
    out[thread_idx().x] = generic_element(x, [T::ONE; 2], thread_idx().x);
}

#[kernel]
fn generic_itself<T: Num>(x: &[T], out: &mut [T]) {
    let i = thread_idx().x;
    // @of_a_parameter
    out[i] = T::ONE + x[i];
}

#[device_fn]
fn applied<F: Fn(usize) -> u32>(n: usize, f: F) -> u32 {
    let mut sum = 0;
    for k in 0..n {
        sum += f(k);
    }
    sum
}

#[device_fn]
fn summed<F: Fn(u32) -> u32>(x: &[u32], n: usize, f: F) -> u32 {
    let mut sum = 0;
    for k in 0..n {
        // @inlined
        sum += f(x[k]);
    }
    sum
}

#[kernel]
fn closures(x: &[u32], out: &mut [u32]) {
    let i = thread_idx().x;
    out[i] = applied(i, |k| {
        let twice = 2 * k;
        // @closure
        1 + x[twice]
    });
}

#[kernel]
fn takes_closures(x: &[u32], out: &mut [u32]) {
    let i = thread_idx().x;
    out[i] = summed(x, i, |v| v + 1);
}

#[test]
fn faults_in_functions_and_closures_name_the_line_in_them() {
    faults_at(&calls, "callee", "x[i]");
    faults_at(&generic, "generic", "x[i + N]");
    faults_at(&generic_itself, "of_a_parameter", "x[i]");
    faults_at(&closures, "closure", "x[twice]");
    faults_at(&takes_closures, "inlined", "x[k]");
}

#[test]
fn faults_in_kernel_expressions_name_their_line() {
    let kernel = kiln::kernel_expr!(expression(x: &[u32], out: &mut [u32]) {
        let i = thread_idx().x;
        // @expression
        out[i] = 2 * x[i];
    });
    faults_at(kernel, "expression", "x[i]");
}

/// Launches a kernel `(out: &mut [u32; 64])` with 32 threads and checks, and gives back what they find.
#[track_caller]
fn finding(kernel: &impl AsKernel, checks: Checks) -> Finding {
    let options = JitOptions::default().checks(checks);
    let jit = Jit::with(Device::cpu(), kiln::hooks::standard(), options);
    let mut out = jit.zeros::<u32>(64).expect("memory");
    let launched = jit.launch(kernel, 1, 32, args!(&mut out));
    match launched.and_then(|()| jit.synchronize()) {
        Err(Error::Run(RunError::Finding(finding))) => *finding,
        other => panic!("expected a finding, got {other:?}"),
    }
}

/// Where the two accesses of a race are.
#[track_caller]
fn race(kernel: &impl AsKernel) -> [String; 2] {
    match finding(kernel, Checks::none().races()) {
        Finding::Race { first, second, .. } => [first.location, second.location],
        other => panic!("expected a race, got {other}"),
    }
}

#[kernel]
fn races(out: &mut [u32]) {
    let tile = shared!([u32; 32]);
    let i = thread_idx().x;
    // @first
    tile[i] = i as u32;
    let next = 1
        // @second
        + tile[(i + 1) % 32];
    out[i] = next;
}

#[device_fn]
fn stores(tile: &mut [u32], i: usize) {
    let twice = 2 * i as u32;
    // @first_in_a_function
    tile[i] = twice;
}

#[device_fn]
fn loads(tile: &[u32], i: usize) -> u32 {
    // @second_in_a_function
    3 * tile[i]
}

#[kernel]
fn races_of_functions(out: &mut [u32]) {
    let tile = shared!([u32; 32]);
    let i = thread_idx().x;
    stores(tile, i);
    out[i] = loads(tile, 31 - i);
}

#[kernel]
fn races_in_closures(out: &mut [u32]) {
    let tile = shared!([u32; 64]);
    let i = thread_idx().x;
    // @before_the_closure
    tile[i] = 5;
    let mut write = |k: usize| {
        // @in_a_closure
        tile[k + 1] = 2 * i as u32;
    };
    write(i);
    out[i] = 1;
}

#[kernel]
fn races_through_references(out: &mut [u32]) {
    let i = thread_idx().x;
    let place = &mut out[i / 2];
    // @through_a_reference
    *place = i as u32;
}

#[kernel]
fn races_of_atomics(out: &mut [u32]) {
    let i = thread_idx().x;
    // @atomically
    atomic_add(&mut out[0], 1);
    // @not_atomically
    let seen = 4 + out[0];
    out[i + 1] = seen;
}

/// The interpreter runs thread 0 first, so that the later access of thread 0 and the earlier one of
/// another thread meet.
#[test]
fn races_name_both_accesses() {
    let later = at("second", "tile[(i");
    assert_eq!(race(&races), [later, at("first", "tile[i]")]);
    let later = at("second_in_a_function", "tile[i]");
    let earlier = at("first_in_a_function", "tile[i]");
    assert_eq!(race(&races_of_functions), [later, earlier]);
    let later = at("in_a_closure", "tile[k");
    let earlier = at("before_the_closure", "tile[i]");
    assert_eq!(race(&races_in_closures), [later, earlier]);
    let only = at("through_a_reference", "*place");
    assert_eq!(race(&races_through_references), [only.clone(), only]);
    let later = at("not_atomically", "out[0]");
    let earlier = at("atomically", "atomic_add");
    assert_eq!(race(&races_of_atomics), [later, earlier]);
}

#[kernel]
fn divergent_barriers(out: &mut [u32]) {
    let i = thread_idx().x;
    if i < 8 {
        // @one_barrier
        barrier();
    } else {
        // @other_barrier
        barrier();
    }
    out[i] = 1;
}

#[kernel]
fn unwritten(out: &mut [u32]) {
    let tile = shared!([u32; 32]);
    let i = thread_idx().x;
    out[i] = 1
        // @unwritten
        + tile[i];
}

#[kernel]
fn endless(out: &mut [u32]) {
    let mut n = 1;
    // @endless
    while n != 0 {
        n += 2;
    }
    out[0] = n;
}

#[test]
fn other_findings_name_their_lines() {
    let Finding::Barrier { sites, .. } = finding(&divergent_barriers, Checks::all()) else {
        panic!("the barriers diverge");
    };
    let sites: Vec<&str> = sites.iter().map(|site| site.location.as_str()).collect();
    let one = at("one_barrier", "barrier");
    assert_eq!(sites, [one, at("other_barrier", "barrier")]);
    let found = finding(&unwritten, Checks::all());
    assert_eq!(found.location(), at("unwritten", "tile[i]"));
    let found = finding(&endless, Checks::none().watchdog(1000));
    assert_eq!(found.location(), at("endless", "while"));
}

/// The text of the error of building and launching a kernel `(out: &mut [f32])`.
#[track_caller]
fn build_error(kernel: &impl AsKernel) -> String {
    let jit = exact(Device::cpu());
    let mut out = jit.zeros::<f32>(8).expect("memory");
    let launched = jit.launch(kernel, 1, 1, args!(&mut out));
    launched.expect_err("it cannot be built").to_string()
}

#[device_fn]
fn repeated(x: f32) -> f32 {
    // @repeat_in_a_function
    let list = [x; 1000];
    list[3]
}

#[kernel]
fn too_many_in_functions(out: &mut [f32]) {
    out[0] = repeated(out[1]);
}

#[kernel]
fn too_many_in_closures(out: &mut [f32]) {
    let repeat = |x: f32| {
        // @repeat_in_a_closure
        let list = [x; 1000];
        list[3]
    };
    out[0] = repeat(out[1]);
}

#[kernel]
fn too_many(out: &mut [f32]) {
    let one = out[0];
    // @repeat
    let list = [one; 1000];
    out[1] = list[3];
}

#[test]
fn errors_of_building_name_the_expression() {
    let cases: [(String, &str, &str); 3] = [
        (build_error(&too_many), "repeat", "[one"),
        (
            build_error(&too_many_in_functions),
            "repeat_in_a_function",
            "[x; 1000]",
        ),
        (
            build_error(&too_many_in_closures),
            "repeat_in_a_closure",
            "[x; 1000]",
        ),
    ];
    for (error, mark, token) in cases {
        let place = at(mark, token);
        assert!(
            error.contains(&format!("{place}:")),
            "{place} is not in: {error}"
        );
    }
    let kernel = kiln::kernel_expr!(expression(out: &mut [f32]) {
        // @repeat_in_an_expression
        let list = [out[1]; 1000];
        out[0] = list[3];
    });
    let place = at("repeat_in_an_expression", "[out[1]; 1000]");
    let error = build_error(kernel);
    assert!(error.contains(&place), "{place} is not in: {error}");
}
