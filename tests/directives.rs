//! Directives that are refused, and what becomes of those that are not: a module a subject.

use expect_test::Expect;
use kiln::directives::{Known, Program};
use kiln::error::Error;
use kiln::prelude::*;

fn read(region: Result<DeviceFn, Error>) -> Result<Program, Error> {
    Program::of(&region?)
}

/// What is refused of a program on a grid, for arguments.
pub fn refused(of: Result<DeviceFn, Error>, on: (&[u32], &[u32]), known: &[Known], want: Expect) {
    let verified =
        read(of).and_then(|program| Ok(program.verify(&program.schedule(on.0, on.1), known)?));
    let error = verified.expect_err("it is wrong").to_string();
    want.assert_eq(&error);
}

/// The arguments of the regions here: a slice of 100 elements, another one, and 100.
const KNOWN: [Known; 3] = [Known::Length(100), Known::Length(100), Known::Number(100)];

/// Regions of one loop or nest, with what is refused of each on a grid.
macro_rules! refused {
    ($($name:ident, $blocks:expr, $threads:expr, |$x:ident, $y:ident, $n:ident| $body:block, $want:expr;)*) => {$(
        #[test]
        fn $name() {
            #[device_fn]
            fn region($x: &mut [u32], $y: &mut [u32], $n: usize) $body
            refused(DeviceFn::of::<region>(), (&$blocks, &$threads), &KNOWN, $want);
        }
    )*};
}

mod barriers;
mod edges;
mod interchanged;
mod launched;
mod order;
mod placement;
mod reduced;
mod rows;
mod schedules;
mod staging;
mod transformed;
