//! The code of iterations side by side where they are fewer than are executed so.

use expect_test::expect;
use kiln::directives::{Known, Program, marks};
use kiln::prelude::*;

use super::KNOWN;

/// The code of tiles of iterations side by side in loops that end within a tile: each element is written out for whole
/// tiles and once more for the one that is shorter, and not again for groups that are not full.
#[test]
fn elements_at_the_edge_are_written_out_once() -> kiln::Result<()> {
    #[device_fn]
    fn product(x: &mut [u32], y: &mut [u32], n: usize) {
        marks::partition(1, 1);
        marks::jam(8);
        for i in 0..n {
            marks::partition(1, 1);
            marks::jam(8);
            for j in 0..n {
                let mut sum = 0;
                marks::shared(y.len() as u32);
                marks::tile(4);
                for k in 0..n {
                    sum ^= y[i * n + k] + y[k * n + j];
                }
                x[i * n + j] = sum;
            }
        }
    }
    let program = Program::of(&DeviceFn::of::<product>()?)?;
    let schedule = program.schedule(&[2, 2], &[4, 4]);
    let elements = |n: u64| -> kiln::Result<usize> {
        let known = [
            Known::Length(n * n),
            Known::Length(n * n),
            Known::Number(n.into()),
        ];
        let text = program.apply_for(&schedule, &known)?.module().to_string();
        Ok(text.matches(": u32 = xor").count())
    };
    let (whole, edge) = (elements(64)?, elements(61)?);
    expect!["64 128"].assert_eq(&format!("{whole} {edge}"));
    Ok(())
}

/// At an edge, all copies compute and a guard is around the store alone, as is one around what is read of a slice that
/// the region writes; without a loop within, or with such a part of it, there is a loop for the iterations that are left.
#[test]
fn guards_at_the_edge_are_around_what_is_seen() -> kiln::Result<()> {
    #[device_fn]
    fn rows(x: &mut [u32], y: &mut [u32], n: usize) {
        marks::partition(1, 1);
        marks::jam(4);
        for i in 0..n {
            let mut sum = x[i];
            for j in 0..n {
                sum += y[i * n + j];
            }
            x[i] = sum;
        }
    }
    #[device_fn]
    fn scaled(x: &mut [u32], y: &mut [u32], n: usize) {
        marks::partition(1, 1);
        marks::jam(4);
        for i in 0..n {
            x[i] = 3 * y[i];
        }
    }
    #[device_fn]
    fn in_place(x: &mut [u32], y: &mut [u32], n: usize) {
        marks::partition(1, 1);
        marks::jam(4);
        for i in 0..n {
            for j in 0..n {
                x[i] += y[i * n + j];
            }
        }
    }
    let loops_and_stores = |region: DeviceFn, known: &[Known]| -> kiln::Result<String> {
        let program = Program::of(&region)?;
        let schedule = program.schedule(&[2], &[8]);
        let text = program.apply_for(&schedule, known)?.module().to_string();
        let count = |what: &str| text.matches(what).count();
        Ok(format!(
            "{} loops, {} stores, {} ifs",
            count("for %"),
            count("store "),
            count("if %")
        ))
    };
    let mut found = Vec::new();
    for region in [
        DeviceFn::of::<rows>()?,
        DeviceFn::of::<scaled>()?,
        DeviceFn::of::<in_place>()?,
    ] {
        // A thread has a group or more, and one at most.
        for known in [
            &[][..],
            &KNOWN[..1],
            &[Known::Nothing, Known::Nothing, Known::Number(50)],
        ] {
            found.push(loops_and_stores(region.clone(), known)?);
        }
    }
    expect![[r#"
        2 loops, 4 stores, 6 ifs
        2 loops, 4 stores, 6 ifs
        1 loops, 4 stores, 7 ifs
        2 loops, 5 stores, 0 ifs
        2 loops, 5 stores, 0 ifs
        1 loops, 5 stores, 1 ifs
        4 loops, 5 stores, 0 ifs
        4 loops, 5 stores, 0 ifs
        3 loops, 5 stores, 1 ifs"#]]
    .assert_eq(&found.join("\n"));
    Ok(())
}
