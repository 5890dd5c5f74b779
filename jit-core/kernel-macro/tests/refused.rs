//! What `#[kernel]` and its kind refuse, and what they say: each file of `tests/refused` does not
//! compile, with the messages of the file beside it. `UPDATE_EXPECT=1 cargo xtask test refusals` writes
//! those anew.

#[test]
fn refusals() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
