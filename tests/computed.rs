//! Slices that blocks are to compute and cannot, and what the kernel has in the place of the loops.

use expect_test::expect;
use kiln::directives::{Known, Program, Report, Schedule, marks};
use kiln::prelude::*;

use super::directives::refused;

/// The arguments of the regions here: three slices of 100 elements, and 100.
const KNOWN: [Known; 4] = [
    Known::Length(100),
    Known::Length(100),
    Known::Length(100),
    Known::Number(100),
];

/// Regions with what is refused of each.
macro_rules! refused {
    ($($name:ident, |$a:ident, $x:ident, $y:ident, $n:ident| $body:block, $want:expr;)*) => {$(
        #[test]
        fn $name() {
            #[device_fn]
            fn region($a: &[u32], $x: &mut [u32], $y: &mut [u32], $n: usize) $body
            refused(DeviceFn::of::<region>(), (&[4, 2], &[4, 8]), &KNOWN, $want);
        }
    )*};
}

refused! {
    nothing_writes_it, |a, _x, y, n| {
        marks::partition(1, 1);
        marks::compute(a.len() as u32);
        for i in 0..n {
            y[i] = a[i];
        }
    }, expect!["tests/computed.rs:33:9: blocks cannot compute what they read of `a`: nothing in the region writes it: stage it by `copyin`"];

    two_statements_write_it, |a, x, y, n| {
        for i in 0..n {
            x[i] = a[i];
        }
        x[0] = 1;
        marks::partition(1, 1);
        marks::compute(x.len() as u32);
        for i in 0..n {
            y[i] = x[i];
        }
    }, expect!["tests/computed.rs:42:9: blocks cannot compute what they read of `x`: another statement writes it, too: let one do so"];

    a_sum_writes_it, |a, x, y, n| {
        for i in 0..n {
            x[i] += a[i];
        }
        marks::partition(1, 1);
        marks::compute(x.len() as u32);
        for i in 0..n {
            y[i] = x[i];
        }
    }, expect!["tests/computed.rs:52:13: blocks cannot compute what they read of `x`: the loops that write it read what the region writes: let them read other slices"];

    written_where_a_condition_holds, |a, x, y, n| {
        for i in 0..n {
            if a[i] > 3 {
                x[i] = a[i];
            }
        }
        marks::partition(1, 1);
        marks::compute(x.len() as u32);
        for i in 0..n {
            y[i] = x[i];
        }
    }, expect!["tests/computed.rs:64:17: blocks cannot compute what they read of `x`: it is not written in each iteration of `for` loops that stand in no `if` and in no other loop: write it so"];

    written_in_a_loop_that_is_left, |a, x, y, n| {
        for i in 0..n {
            if a[i] > 3 {
                break;
            }
            x[i] = a[i];
        }
        marks::partition(1, 1);
        marks::compute(x.len() as u32);
        for i in 0..n {
            y[i] = x[i];
        }
    }, expect!["tests/computed.rs:79:13: blocks cannot compute what they read of `x`: it is not written in each iteration of `for` loops that stand in no `if` and in no other loop: write it so"];

    written_by_a_loop_with_directives, |a, x, y, n| {
        marks::partition(1, 1);
        for i in 0..n {
            x[i] = a[i];
        }
        marks::partition(1, 1);
        marks::compute(x.len() as u32);
        for i in 0..n {
            y[i] = x[i];
        }
    }, expect!["tests/computed.rs:90:9: blocks cannot compute what they read of `x`: the loops that write it have directives, and threads that read it execute what is in them: take these away"];

    written_with_something_else, |a, x, y, n| {
        for i in 0..n {
            x[i] = a[i];
            y[i] = 0;
        }
        marks::partition(1, 1);
        marks::compute(x.len() as u32);
        for i in 0..n {
            y[i] = x[i];
        }
    }, expect!["tests/computed.rs:103:13: blocks cannot compute what they read of `x`: the loops that write it write something else, too: give that loops of its own"];

    computed_of_what_changes, |_a, x, y, n| {
        for i in 0..n {
            x[i] = y[i];
        }
        marks::partition(1, 1);
        marks::compute(x.len() as u32);
        for i in 0..n {
            y[i] = x[i];
        }
    }, expect!["tests/computed.rs:114:20: blocks cannot compute what they read of `x`: the loops that write it read what the region writes: let them read other slices"];

    computed_between_barriers, |a, x, y, n| {
        for i in 0..n {
            barrier();
            x[i] = a[i];
        }
        marks::partition(1, 1);
        marks::compute(x.len() as u32);
        for i in 0..n {
            y[i] = x[i];
        }
    }, expect!["tests/computed.rs:125:13: blocks cannot compute what they read of `x`: the loops that write it hold `return`, a barrier or `singular`: take these out"];

    handed_on_from_iteration_to_iteration, |a, x, y, n| {
        let mut sum = 0;
        for i in 0..n {
            sum += a[i];
            x[i] = sum;
        }
        marks::partition(1, 1);
        marks::compute(x.len() as u32);
        for i in 0..n {
            y[i] = x[i];
        }
    }, expect!["tests/computed.rs:138:13: `sum` is written by iterations of the loop or part at tests/computed.rs:137:9, which the threads of several blocks execute, and is read by others or behind it: declare it within, or write to an element of a slice"];

    computed_of_a_variable_that_changes, |a, x, y, n| {
        let mut by = 2;
        for i in 0..n {
            x[i] = by * a[i];
        }
        by += 1;
        marks::partition(1, 1);
        marks::compute(x.len() as u32);
        for i in 0..n {
            y[i] = by * x[i];
        }
    }, expect!["tests/computed.rs:151:20: blocks cannot compute what they read of `x`: the loops that write it read a variable that changes behind them: let it have a name of its own"];

    read_before, |a, x, y, n| {
        y[0] = x[0];
        for i in 0..n {
            x[i] = a[i];
        }
        marks::partition(1, 1);
        marks::compute(x.len() as u32);
        for i in 1..n {
            y[i] = x[i];
        }
    }, expect!["tests/computed.rs:162:16: blocks cannot compute what they read of `x`: it is read before all of it is written, or by the loops that write it: read another slice there"];

    read_elsewhere, |a, x, y, n| {
        for i in 0..n {
            x[i] = a[i];
        }
        marks::partition(1, 1);
        marks::compute(x.len() as u32);
        for i in 0..n / 2 {
            y[i] = x[i];
        }
        marks::partition(1, 1);
        for i in n / 2..n {
            y[i] = x[i];
        }
    }, expect!["tests/computed.rs:184:20: blocks cannot compute what they read of `x`: it is read in a loop that does not say `shared(compute(..))` of it, and is nowhere but in shared memory: say so there, too"];

    two_iterations_write_one_element, |a, x, y, _n| {
        for i in 0..10usize {
            for j in 0..10usize {
                x[9 * i + j] = a[10 * i + j];
            }
        }
        marks::partition(1, 1);
        marks::compute(x.len() as u32);
        for i in 0..10usize {
            y[i] = x[9 * i];
        }
    }, expect!["tests/computed.rs:191:17: blocks cannot compute what they read of `x`: not each iteration of the loops writes another element of it, at an index that is a sum of the loops' counters times numbers: write it so"];

    each_iteration_writes_all, |a, x, y, n| {
        for i in 0..n {
            for j in 0..n {
                x[j] = a[i];
            }
        }
        marks::partition(1, 1);
        marks::compute(x.len() as u32);
        for i in 0..n {
            y[i] = x[i];
        }
    }, expect!["tests/computed.rs:204:17: blocks cannot compute what they read of `x`: not each iteration of the loops writes another element of it, at an index that is a sum of the loops' counters times numbers: write it so"];

    a_triangle_is_written, |a, x, y, _n| {
        for i in 0..10usize {
            for j in 0..i {
                x[10 * i + j] = a[j];
            }
        }
        marks::partition(1, 1);
        marks::compute(x.len() as u32);
        for i in 0..10usize {
            y[i] = x[10 * i];
        }
    }, expect!["tests/computed.rs:223:20: blocks cannot compute what they read of `x`: the loops that write it are not known to write all that is read here: let them write all of the slice"];

    more_is_read_than_is_written, |a, x, y, n| {
        for i in 1..n {
            x[i] = a[i];
        }
        marks::partition(1, 1);
        marks::compute(x.len() as u32);
        for i in 0..n {
            y[i] = x[i];
        }
    }, expect!["tests/computed.rs:234:20: blocks cannot compute what they read of `x`: the loops that write it are not known to write all that is read here: let them write all of the slice"];

    too_much_is_read_in_a_turn, |a, x, y, n| {
        for i in 0..n {
            x[i] = a[i];
        }
        marks::compute(x.len() as u32);
        marks::partition(1, 1);
        for i in 0..n {
            y[i] = x[a[i] as usize];
        }
    }, expect!["tests/computed.rs:245:20: `x` cannot be staged in shared memory: an index of it is not a sum of the loops' counters times numbers: stage slices whose indices are, and let `Program::apply_for` know the numbers of the launch"];
}

/// Schedules that name slices by numbers which no mark has.
#[test]
fn slices_of_schedules_are_those_that_are_staged() -> kiln::Result<()> {
    #[device_fn]
    fn copy(a: &[u32], x: &mut [u32], y: &mut [u32], n: usize) {
        for i in 0..n {
            x[i] = a[i];
        }
        for i in 0..n {
            y[i] = x[i];
        }
    }
    let program = Program::of(&DeviceFn::of::<copy>()?)?;
    let refused = |clauses: &str| -> kiln::Result<String> {
        let text = format!("tblock(4) thread(4) loop 0: sequential; loop 1: over_thread {clauses}");
        let schedule: Schedule = text.parse()?;
        assert_eq!(schedule.to_string(), text);
        let verified = program.verify(&schedule, &KNOWN);
        Ok(verified.map_or_else(|error| error.to_string(), |()| "accepted".to_owned()))
    };
    let texts = [
        "shared(1) compute(1)",
        "compute(1)",
        "shared(1) whole(1) compute(1)",
        "shared(9) compute(9)",
    ];
    let texts: kiln::Result<Vec<_>> = texts.into_iter().map(refused).collect();
    expect![[r#"
        accepted
        tests/computed.rs:258:9: blocks cannot compute what they read of `x`: what a turn reads of it is computed, so that it is among the slices that the loop stages, and not staged whole
        tests/computed.rs:258:9: blocks cannot compute what they read of `x`: what a turn reads of it is computed, so that it is among the slices that the loop stages, and not staged whole
        tests/computed.rs:258:9: blocks cannot compute what they read of `9`: the region has no such parameter"#]].assert_eq(&texts?.join("\n"));
    Ok(())
}

/// The loops that write the slice are gone, with what was written, and the checks that are proved.
#[test]
fn loops_are_gone_that_blocks_execute() -> kiln::Result<()> {
    #[device_fn]
    fn two_steps(a: &[u32], x: &mut [u32], y: &mut [u32], n: usize) {
        for i in 0..n {
            x[i] = 3 * a[i];
        }
        marks::partition(1, 1);
        marks::compute(x.len() as u32);
        for i in 1..n - 1 {
            y[i] = x[i - 1] + x[i + 1];
        }
    }
    let program = Program::of(&DeviceFn::of::<two_steps>()?)?;
    let schedule = program.schedule(&[4], &[32]);
    let sections = program.sections(&schedule, &KNOWN)?;
    assert_eq!(
        sections[0].to_string(),
        "`x` in loop 1: 27 elements, strides 1"
    );
    let text = program.apply_for(&schedule, &KNOWN)?.module().to_string();
    let count = |what: &str| text.matches(what).count();
    assert_eq!(
        count("slice_index ") - count("slice_index unchecked "),
        0,
        "{text}"
    );
    // To the tile and to `y`, and no loop but the rounds of the tile.
    assert_eq!((count("store "), count("for %")), (2, 1), "{text}");
    Ok(())
}

/// Two steps, of which a block computes one row more on each side and one column.
#[kiln::offload]
fn two_steps(x: &[f32], y: &mut [f32], n: usize, m: usize) {
    let mut half: Vec<f32> = vec![0.0; n * m];
    global!(alloc half);
    #[kernel(tblock(n.div_ceil(16), m.div_ceil(32)), thread(16, 32))]
    {
        for i in 0..n {
            for j in 0..m {
                half[i * m + j] = 2.0 * x[i * m + j];
            }
        }
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            #[loop_partition(over_tblock, over_thread)]
            #[shared(compute(half))]
            for j in 0..m {
                let at = i * m + j;
                let north = if i > 0 { half[at - m] } else { 0.0 };
                let south = if i < n - 1 { half[at + m] } else { 0.0 };
                let west = if j > 0 { half[at - 1] } else { 0.0 };
                let east = if j < m - 1 { half[at + 1] } else { 0.0 };
                y[at] = north - south + west - east;
            }
        }
    }
}

/// The same with three rows more on each side.
#[kiln::offload]
fn far_rows(x: &[f32], y: &mut [f32], n: usize, m: usize) {
    let mut half: Vec<f32> = vec![0.0; n * m];
    global!(alloc half);
    #[kernel(tblock(n.div_ceil(16), m.div_ceil(32)), thread(16, 32))]
    {
        for i in 0..n {
            for j in 0..m {
                half[i * m + j] = 2.0 * x[i * m + j];
            }
        }
        #[loop_partition(over_tblock, over_thread)]
        for i in 3..n - 3 {
            #[loop_partition(over_tblock, over_thread)]
            #[shared(compute(half))]
            for j in 0..m {
                let at = i * m + j;
                y[at] = half[at - 3 * m] - half[at + 3 * m];
            }
        }
    }
}

/// Blocks that compute what they read are wider on a CPU than on a GPU, as long as they compute little more for that, and the report
/// says what the program does.
#[test]
fn blocks_that_compute_are_wide_on_a_cpu() -> kiln::Result<()> {
    let jit = Jit::on(Device::cpu());
    let shapes = |report: &Report| {
        let kernel = &report.kernels[0];
        let [grid, block] = [kernel.grid(), kernel.block()].map(|extent| (extent.x, extent.y));
        assert!(report.launches[0].to_string().contains("thread(16, 32)"));
        (grid, block)
    };
    let (n, m) = (64, 1024);
    let (x, mut y) = (vec![1.0; n * m], vec![0.0; n * m]);
    assert_eq!(
        shapes(&two_steps.plan(&x, &mut y, n, m)?),
        ((32, 4), (32, 16))
    );
    assert_eq!(
        shapes(&two_steps.plan_on(&jit, &x, &mut y, n, m)?),
        ((4, 16), (256, 4))
    );
    // Blocks of 8 rows would compute 14.
    assert_eq!(
        shapes(&far_rows.plan_on(&jit, &x, &mut y, n, m)?),
        ((16, 4), (64, 16))
    );
    Ok(())
}

/// What is read to fill rows and what is stored there are whole vectors, or masked ones at their ends, as what a turn reads.
#[test]
fn rows_are_filled_by_whole_vectors_on_a_cpu() -> kiln::Result<()> {
    let jit = Jit::on(Device::cpu());
    let (n, m) = (64, 1024);
    let (x, y) = (vec![1.0; n * m], &mut vec![0.0; n * m]);
    let report = two_steps.plan_on(&jit, &x, y, n, m)?;
    let kernel = &report.kernels[0];
    let (x, mut y, mut half) = (
        jit.upload(&x)?,
        jit.zeros::<f32>(n * m)?,
        jit.zeros::<f32>(n * m)?,
    );
    let args = args!(&x, &mut y, n as u32, m as u32, &mut half);
    let inspection = jit.inspect_block(kernel.kernel(), kernel.block(), args)?;
    let lanes = inspection.host_code().expect("code").lanes;
    let llvm = inspection.llvm()?;
    let calls: String = llvm
        .lines()
        .filter(|line| !line.starts_with("declare"))
        .collect();
    let count = |what: &str| calls.matches(what).count();
    let wide = |plain: &str, masked: &str| {
        count(&format!("{plain} <{lanes} x float>")) + count(&format!("{masked}.v{lanes}f32"))
    };
    // Of `x`, and of `half` on each side.
    assert!(wide("= load", "llvm.masked.load") >= 5, "{llvm}");
    // Of `half` and of `y`.
    assert!(wide("store", "llvm.masked.store") >= 2, "{llvm}");
    Ok(())
}
