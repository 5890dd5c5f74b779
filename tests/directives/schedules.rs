//! Texts of schedules, and what a schedule costs.

use expect_test::{Expect, expect};
use kiln::directives::{Known, Program, Schedule, marks};
use kiln::prelude::*;

use super::{KNOWN, read};

#[test]
fn schedules_are_read_and_refused() -> kiln::Result<()> {
    let refuse = |text: &str, want: Expect| {
        let read: Result<Schedule, _> = text.parse();
        want.assert_eq(&read.expect_err("it is wrong").to_string());
    };
    refuse(
        "grid(2)",
        expect![
            "the schedule says `grid(2)` where `tblock(..) thread(..)` at its start should stand"
        ],
    );
    refuse(
        "tblock(2) thread(a)",
        expect!["the schedule says `a` where numbers with commas between should stand"],
    );
    refuse(
        "tblock(2) thread(4) loop 1: sequential",
        expect![
            "the schedule says `loop 1: sequential` where the loops in order, `loop 0: ..; loop 1: ..` should stand"
        ],
    );
    refuse(
        "tblock(2) thread(4) loop 0: over_cluster",
        expect![
            "the schedule says `over_cluster` where `over_tblock(BLOCK)`, `over_tblock(CYCLIC)`, `over_thread`, `over_warp`, `over_lane`, `independent`, `shared(0,1)`, `whole(1)`, `compute(1)`, `copyout(1)`, `reduction(2)`, `privatize(3)`, `scan`, `nopad`, `interchange`, `peel_first(1)`, `peel_last(1)`, `tile(16)`, `unroll_and_jam(4)`, `unroll`, `unroll(4)`, `unroll(never)` or `sequential` should stand"
        ],
    );
    #[device_fn]
    fn fill(x: &mut [u32]) {
        for i in 0..4usize {
            x[i] = 1;
        }
    }
    let program = Program::of(&DeviceFn::of::<fill>()?)?;
    let other: Schedule = "tblock(2) thread(4)".parse()?;
    let refused = program.verify(&other, &[]).expect_err("it has no loop");
    expect!["the schedule has 0 loops and `fill` has 1; `Program::schedule` gives one that fits"]
        .assert_eq(&refused.to_string());
    Ok(())
}

/// Slices that schedules name by numbers which no mark has.
#[test]
fn slices_of_schedules_are_those_of_the_program() -> kiln::Result<()> {
    #[device_fn]
    fn copy(x: &[u32], y: &mut [u32]) {
        for i in 0..4usize {
            y[i] = x[i];
        }
    }
    let program = Program::of(&DeviceFn::of::<copy>()?)?;
    let schedule: Schedule = "tblock(1) thread(4) loop 0: over_thread shared(0)".parse()?;
    program.verify(&schedule, &KNOWN)?;
    assert_eq!(schedule.to_string().parse(), Ok(schedule));
    let other: Schedule = "tblock(1) thread(4) loop 0: over_thread shared(0,7)".parse()?;
    let refused = program.verify(&other, &KNOWN).expect_err("there is none");
    expect!["tests/directives/schedules.rs:56:9: `7` cannot be staged in shared memory: the region has no such parameter"].assert_eq(&refused.to_string());
    let parsed: Result<Schedule, _> = "tblock(1) thread(4) loop 0: shared(64)".parse();
    expect!["the schedule says `shared(64)` where `over_tblock(BLOCK)`, `over_tblock(CYCLIC)`, `over_thread`, `over_warp`, `over_lane`, `independent`, `shared(0,1)`, `whole(1)`, `compute(1)`, `copyout(1)`, `reduction(2)`, `privatize(3)`, `scan`, `nopad`, `interchange`, `peel_first(1)`, `peel_last(1)`, `tile(16)`, `unroll_and_jam(4)`, `unroll`, `unroll(4)`, `unroll(never)` or `sequential` should stand"].assert_eq(&parsed.expect_err("it is too large").to_string());
    let many = DeviceFn::build("many", |k| {
        let slices: Vec<_> = (0..65)
            .map(|number| k.slice(&format!("x{number}"), Type::U32))
            .collect();
        marks::shared::build(k, slices[64].len());
        k.for_loop(0u32, 4u32, 1u32, Unroll::Auto, |_| {});
    });
    let refused = read(many).expect_err("it has too many").to_string();
    expect!["tests/directives/schedules.rs:73:9: `shared`, `reduction` and `privatize` take the first 64 parameters of a region: let the slice come before others"].assert_eq(&refused);
    Ok(())
}

/// What schedules cost: strides of neighbouring threads, rows of structs, staged slices, shared memory, as text and as JSON.
#[test]
fn costs_are_told_as_numbers() -> kiln::Result<()> {
    #[device_fn]
    fn costs(x: &[f32], y: &mut [f64], z: &[[f32; 4]], at: &[u32], n: usize) {
        marks::partition(1, 1);
        for i in 0..n {
            marks::partition(1, 1);
            marks::shared(x.len() as u32);
            marks::unpadded();
            for j in 0..n {
                let own = x[j * n + i] + x[i] + z[j][1] + z[at[i] as usize][0];
                y[i + j * n] = own as f64;
            }
        }
    }
    let program = Program::of(&DeviceFn::of::<costs>()?)?;
    let n = 64;
    let known = [
        Known::Length(n * n),
        Known::Length(n * n),
        Known::Length(n),
        Known::Length(n),
        Known::Number(n.into()),
    ];
    let guidance = program.guidance(&program.schedule(&[2, 2], &[32, 32]), &known)?;
    expect![[r#"
        tests/directives/schedules.rs:92:49: read of `z`: 25 % of what comes is used: 4 of each 16 bytes are used: have a slice for each part of the elements
        tests/directives/schedules.rs:92:61: read of `at`: 100 % of what comes is used
        tests/directives/schedules.rs:92:59: read of `z`: not known
        tests/directives/schedules.rs:93:17: write of `y`: 25 % of what comes is used: neighbouring threads are 64 elements apart; let the loop at tests/directives/schedules.rs:87:9 be the one that is distributed over the last dimension of threads
        `x` in loop 1: 32 x 32 elements, strides 64 x 1: 4096 bytes, a warp goes to a bank 32 times
        `x` in loop 1: 32 elements, strides 1: 128 bytes, a warp goes to a bank 1 times
        2 blocks at once, 100 % of the warps, limited by threads; up to 32 registers a thread"#]].assert_eq(&guidance.to_string());
    expect![[r#"{"accesses":[{"place":"tests/directives/schedules.rs:92:49","slice":"z","writes":false,"efficiency":0.25,"apart":1,"suggestion":"4 of each 16 bytes are used: have a slice for each part of the elements"},{"place":"tests/directives/schedules.rs:92:61","slice":"at","writes":false,"efficiency":1,"apart":0,"suggestion":null},{"place":"tests/directives/schedules.rs:92:59","slice":"z","writes":false,"efficiency":null,"apart":null,"suggestion":null},{"place":"tests/directives/schedules.rs:93:17","slice":"y","writes":true,"efficiency":0.25,"apart":64,"suggestion":"neighbouring threads are 64 elements apart; let the loop at tests/directives/schedules.rs:87:9 be the one that is distributed over the last dimension of threads"}],"sections":[{"section":"`x` in loop 1: 32 x 32 elements, strides 64 x 1","bytes":4096,"degree":32,"unpadded":32},{"section":"`x` in loop 1: 32 elements, strides 1","bytes":128,"degree":1,"unpadded":1}],"occupancy":{"blocks":2,"warps":1,"limit":"threads","registers":32,"shared":4224}}"#]].assert_eq(&guidance.to_json());
    let refused = program.guidance(&"tblock(1) thread(1)".parse()?, &known);
    assert!(refused.is_err(), "it has other loops");
    Ok(())
}
