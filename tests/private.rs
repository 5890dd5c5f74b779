//! Slices of which iterations are to have elements of their own and cannot.

use expect_test::expect;
use kiln::directives::{Known, Program, Schedule, marks};
use kiln::prelude::*;

use super::directives::refused;

/// The arguments of the regions here: a slice of 8 elements, one of 100, and 100.
const KNOWN: [Known; 3] = [Known::Length(8), Known::Length(100), Known::Number(100)];

/// Regions with what is refused of each.
macro_rules! refused {
    ($($name:ident, |$a:ident, $y:ident, $n:ident| $body:block, $want:expr;)*) => {$(
        #[test]
        fn $name() {
            #[device_fn]
            fn region($a: &mut [u32], $y: &mut [u32], $n: usize) $body
            refused(DeviceFn::of::<region>(), (&[2], &[32]), &KNOWN, $want);
        }
    )*};
}

refused! {
    what_no_iteration_has_written, |a, y, n| {
        marks::partition(1, 1);
        marks::privatize(a.len() as u32);
        for i in 0..n {
            a[1] = 1;
            y[i] = a[0];
        }
    }, expect!["tests/private.rs:30:20: iterations cannot have elements of `a` of their own: not all that is read here is known to be written before, in the same iteration: let statements that no condition is around write these elements first, at indices that are sums of the counters of loops within times numbers"];

    what_is_written_behind, |a, y, n| {
        marks::partition(1, 1);
        marks::privatize(a.len() as u32);
        for i in 0..n {
            y[i] = a[0];
            a[0] = 1;
        }
    }, expect!["tests/private.rs:38:20: iterations cannot have elements of `a` of their own: not all that is read here is known to be written before, in the same iteration: let statements that no condition is around write these elements first, at indices that are sums of the counters of loops within times numbers"];

    what_is_written_sometimes, |a, y, n| {
        marks::partition(1, 1);
        marks::privatize(a.len() as u32);
        for i in 0..n {
            if i % 2 == 0 {
                a[0] = 1;
            }
            y[i] = a[0];
        }
    }, expect!["tests/private.rs:50:20: iterations cannot have elements of `a` of their own: not all that is read here is known to be written before, in the same iteration: let statements that no condition is around write these elements first, at indices that are sums of the counters of loops within times numbers"];

    elements_that_nobody_knows, |a, y, n| {
        marks::partition(1, 1);
        marks::privatize(a.len() as u32);
        for i in 0..n {
            for k in 0..7usize {
                a[k] = 1;
            }
            let last = y[i] as usize;
            y[i] = a[last];
        }
    }, expect!["tests/private.rs:62:20: iterations cannot have elements of `a` of their own: not all that is read here is known to be written before, in the same iteration: let statements that no condition is around write these elements first, at indices that are sums of the counters of loops within times numbers"];

    what_is_read_behind, |a, y, n| {
        marks::partition(1, 1);
        marks::privatize(a.len() as u32);
        for i in 0..n {
            a[0] = i as u32;
            y[i] = a[0];
        }
        y[0] = a[0];
    }, expect!["tests/private.rs:73:16: iterations cannot have elements of `a` of their own: it is used outside of the loop, where there is nothing of what iterations have: let nothing else use it"];

    in_a_loop_around, |a, y, n| {
        marks::partition(1, 0);
        marks::privatize(a.len() as u32);
        for i in 0..10usize {
            marks::partition(0, 1);
            marks::privatize(a.len() as u32);
            for j in 0..n / 10 {
                a[0] = 1;
                y[10 * j + i] = a[0];
            }
        }
    }, expect!["tests/private.rs:82:13: iterations cannot have elements of `a` of their own: iterations of a loop around have elements of it of their own: take one of the clauses away"];

    nothing_in_the_loop, |a, y, n| {
        marks::partition(1, 1);
        marks::privatize(a.len() as u32);
        for i in 0..n {
            y[i] = a.len() as u32;
        }
    }, expect!["tests/private.rs:92:9: iterations cannot have elements of `a` of their own: nothing in the loop uses an element of it: take it out of the clause"];

    an_atomic_operation, |a, y, n| {
        marks::partition(1, 1);
        marks::privatize(a.len() as u32);
        for i in 0..n {
            a[0] = 0;
            atomic_add(&mut a[0], 1);
            y[i] = a[0];
        }
    }, expect!["tests/private.rs:102:29: iterations cannot have elements of `a` of their own: a part of it, or of an element, is used, or an atomic operation is: read and write whole elements"];
}

/// The kernel is for slices of the length that it was made for, and ends other launches.
#[test]
fn lengths_that_are_others() -> kiln::Result<()> {
    #[device_fn]
    fn region(a: &mut [u32], y: &mut [u32], n: usize) {
        marks::partition(1, 1);
        marks::privatize(a.len() as u32);
        for i in 0..n {
            a[3] = i as u32;
            y[i] = a[3];
        }
    }
    let program = Program::of(&DeviceFn::of::<region>()?)?;
    let schedule = program.schedule(&[2], &[32]);
    let text = "tblock(2) thread(32) loop 0: over_tblock(BLOCK) over_thread privatize(0)";
    assert_eq!(schedule.to_string(), text);
    assert_eq!(text.parse::<Schedule>()?, schedule);
    let unknown = program
        .apply(&schedule)
        .expect_err("the length is not known");
    expect!["tests/private.rs:115:9: iterations cannot have elements of `a` of their own: how many elements it has is not known without the arguments of a launch: `Program::apply_for` takes them"].assert_eq(&unknown.to_string());
    let long = [Known::Length(1025), Known::Length(100), Known::Number(100)];
    let refused = program
        .verify(&schedule, &long)
        .expect_err("it is too long");
    expect!["tests/private.rs:115:9: iterations cannot have elements of `a` of their own: an iteration has at most 4096 bytes of its own: let the slice be shorter, or have a part of it for each iteration"].assert_eq(&refused.to_string());

    let scheduled = program.apply_for(&schedule, &KNOWN)?;
    let jit = Jit::on(Device::cpu());
    let launch = |len: usize| {
        let (mut a, mut y) = (jit.zeros::<u32>(len)?, jit.zeros::<u32>(100)?);
        let args = args!(&mut a, &mut y, 100u32);
        let (grid, block) = (scheduled.grid(), scheduled.block());
        jit.launch(scheduled.kernel(), grid, block, args)?;
        y.to_vec()
    };
    assert_eq!(launch(8)?, (0..100).collect::<Vec<u32>>());
    launch(4).expect_err("it is for eight");
    Ok(())
}
