//! Slices that blocks are to compute and cannot, and what the kernel has in the place of the loops.

use expect_test::expect;
use kiln::directives::{Known, Program, Schedule, marks};
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
