//! What `#[kernel]` and its kind refuse, and what they say: each file of `tests/refused` does not
//! compile, with the messages of the file beside it. `TRYBUILD=overwrite cargo test --test refused`
//! writes those anew.

#[test]
fn refusals() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
