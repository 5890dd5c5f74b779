//! What `#[offload]` refuses, and what it says: each file of `tests/refused` does not compile, with the messages of
//! the file beside it.

#[test]
fn refusals() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
