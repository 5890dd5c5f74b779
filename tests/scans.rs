//! Running values that threads do not compute together.

use expect_test::expect;
use kiln::directives::{Known, Program, Schedule, marks};
use kiln::prelude::*;

use super::directives::refused;

/// The arguments of the regions here: two slices of 100 elements, and 100.
const KNOWN: [Known; 3] = [Known::Length(100), Known::Length(100), Known::Number(100)];

/// Regions with what is refused of each.
macro_rules! refused {
    ($($name:ident, |$x:ident, $y:ident, $n:ident| $body:block, $want:expr;)*) => {$(
        #[test]
        fn $name() {
            #[device_fn]
            fn region($x: &mut [u32], $y: &mut [u32], $n: usize) $body
            refused(DeviceFn::of::<region>(), (&[2], &[32]), &KNOWN, $want);
        }
    )*};
}

refused! {
    over_blocks, |x, y, n| {
        let mut sum = 0;
        marks::partition(marks::BLOCK, marks::THREADS);
        marks::scan();
        for i in 0..n {
            sum += x[i];
            y[i] = sum;
        }
    }, expect!["tests/scans.rs:29:9: the running values of the loop cannot be computed by threads together: the threads of one block compute them: let the loop have `over_thread` and neither `over_tblock`, `over_warp` nor `over_lane`"];

    over_lanes, |x, y, n| {
        let mut sum = 0;
        marks::partition(0, marks::LANES);
        marks::scan();
        for i in 0..n {
            sum += x[i];
            y[i] = sum;
        }
    }, expect!["tests/scans.rs:39:9: the running values of the loop cannot be computed by threads together: the threads of one block compute them: let the loop have `over_thread` and neither `over_tblock`, `over_warp` nor `over_lane`"];

    side_by_side, |x, y, n| {
        let mut sum = 0;
        marks::partition(0, marks::THREADS);
        marks::scan();
        marks::jam(2);
        for i in 0..n {
            sum += x[i];
            y[i] = sum;
        }
    }, expect!["tests/scans.rs:50:9: the running values of the loop cannot be computed by threads together: iterations of the loop, or of one around, are executed side by side: take `coarsen` and `unroll_and_jam` away"];

    nothing_that_runs, |x, y, n| {
        marks::partition(0, marks::THREADS);
        marks::scan();
        for i in 0..n {
            y[i] = x[i];
        }
    }, expect!["tests/scans.rs:59:9: the running values of the loop cannot be computed by threads together: no variable is handed on from iteration to iteration: take the clause away"];

    differences, |x, y, n| {
        let mut left = 100;
        marks::partition(0, marks::THREADS);
        marks::scan();
        for i in 0..n {
            left -= x[i];
            y[i] = left;
        }
    }, expect!["tests/scans.rs:69:13: the running values of the loop cannot be computed by threads together: a variable that iterations hand on is combined with a value once in each, by `+`, `*`, `min`, `max`, `&`, `|` or `^`, under no condition and in no loop within: write `sum += x[i]` so, or declare what is not handed on in the loop"];

    sometimes, |x, y, n| {
        let mut sum = 0;
        marks::partition(0, marks::THREADS);
        marks::scan();
        for i in 0..n {
            if x[i] > 3 {
                sum += 1;
            }
            y[i] = sum;
        }
    }, expect!["tests/scans.rs:80:17: the running values of the loop cannot be computed by threads together: a variable that iterations hand on is combined with a value once in each, by `+`, `*`, `min`, `max`, `&`, `|` or `^`, under no condition and in no loop within: write `sum += x[i]` so, or declare what is not handed on in the loop"];

    in_a_loop_within, |x, y, n| {
        let mut sum = 0;
        marks::partition(0, marks::THREADS);
        marks::scan();
        for i in 0..n {
            for _ in 0..3 {
                sum += x[i];
            }
            y[i] = sum;
        }
    }, expect!["tests/scans.rs:92:17: the running values of the loop cannot be computed by threads together: a variable that iterations hand on is combined with a value once in each, by `+`, `*`, `min`, `max`, `&`, `|` or `^`, under no condition and in no loop within: write `sum += x[i]` so, or declare what is not handed on in the loop"];

    of_itself, |x, y, n| {
        let mut sum = 1;
        marks::partition(0, marks::THREADS);
        marks::scan();
        for i in 0..n {
            sum += sum * x[i];
            y[i] = sum;
        }
    }, expect!["tests/scans.rs:103:20: the running values of the loop cannot be computed by threads together: the running value is read before the statement that combines it, and the other value is computed of memory that the region writes, or of variables: let the statement come first, or the value be computed before"];

    what_is_written_between, |x, y, n| {
        let mut sum = 1;
        marks::partition(0, marks::THREADS);
        marks::scan();
        for i in 0..n {
            y[i] = sum;
            x[i] += 1;
            sum += x[i];
        }
    }, expect!["tests/scans.rs:113:13: the running values of the loop cannot be computed by threads together: the running value is read before the statement that combines it, and the other value is computed of memory that the region writes, or of variables: let the statement come first, or the value be computed before"];

    also_another_variable, |x, y, n| {
        let (mut sum, mut last) = (1, 0);
        marks::partition(0, marks::THREADS);
        marks::scan();
        for i in 0..n {
            sum += x[i];
            y[i] = sum + last;
            last = x[i];
        }
    }, expect!["tests/scans.rs:126:13: the running values of the loop cannot be computed by threads together: a variable that iterations hand on is combined with a value once in each, by `+`, `*`, `min`, `max`, `&`, `|` or `^`, under no condition and in no loop within: write `sum += x[i]` so, or declare what is not handed on in the loop"];

    of_some_threads, |x, y, n| {
        marks::partition(0, marks::THREADS);
        for i in 0..n / 10 {
            let mut sum = 0;
            marks::partition(0, marks::THREADS);
            marks::scan();
            for j in 0..i {
                sum += x[j];
                y[10 * i + j] = sum;
            }
        }
    }, expect!["tests/scans.rs:136:13: a barrier, or a loop that stages slices, in a loop whose bounds threads of a block may have different: let them be the same for all iterations of loops over threads"];
}

/// The text of a schedule is read again; the kernel is for its blocks, of any arguments.
#[test]
fn blocks_that_are_others() -> kiln::Result<()> {
    #[device_fn]
    fn region(x: &[u32], y: &mut [u32], n: usize) {
        let mut sum = 0;
        marks::partition(0, marks::THREADS);
        marks::scan();
        for i in 0..n {
            sum += x[i];
            y[i] = sum;
        }
    }
    let program = Program::of(&DeviceFn::of::<region>()?)?;
    let schedule = program.schedule(&[1], &[32]);
    let text = "tblock(1) thread(32) loop 0: over_thread scan";
    assert_eq!(schedule.to_string(), text);
    assert_eq!(text.parse::<Schedule>()?, schedule);
    let scheduled = program.apply(&schedule)?;
    let jit = Jit::on(Device::cpu());
    let x = jit.upload(&[1u32; 100])?;
    let launch = |block: u32, n: u32| {
        let mut y = jit.zeros::<u32>(100)?;
        jit.launch(scheduled.kernel(), 1, block, args!(&x, &mut y, n))?;
        y.to_vec()
    };
    for n in [0, 1, 32, 33, 100] {
        let wanted = (0..100).map(|i| if i < n { i + 1 } else { 0 });
        assert_eq!(launch(32, n)?, wanted.collect::<Vec<u32>>());
    }
    launch(64, 100).expect_err("it is for 32 threads");
    Ok(())
}
