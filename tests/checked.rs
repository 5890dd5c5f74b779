//! The cases of the suite with every check that there is: no kernel without a mistake is accused of one.

use kiln::prelude::*;
use libtest_mimic::Trial;
use suite::{Case, Outcome};

use crate::each_case;

/// The tests.
pub fn tests() -> Vec<Trial> {
    each_case("checked", is_clean)
}

/// The race that a case has.
fn race(case: &Case) -> Option<&'static str> {
    match case.name() {
        // Its compare-and-swap loop starts from a plain read, while others swap already.
        "atomics" => Some("thread 1x0x0 of block 0x0x0 reads it"),
        // It races, to reach nothing that it was not given.
        "a_race_on_an_index_reaches_nothing_else" => Some("a race on element 0 of 1 of `index`"),
        _ => None,
    }
}

fn is_clean(case: &Case) -> Outcome {
    let options = JitOptions::default().checks(Checks::all());
    let jit = Jit::with(Device::cpu(), kiln::hooks::standard(), options);
    let result = (case.run)(&jit).map_err(|e| e.to_string());
    match (result, race(case)) {
        (Ok(()), None) => Ok(()),
        (Err(text), Some(race)) if text.contains(race) => Ok(()),
        (result, race) => Err(format!("{result:?}, not {race:?}").into()),
    }
}
