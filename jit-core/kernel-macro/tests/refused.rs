//! What `#[kernel]` and its kind refuse, and what they say: each file of `tests/refused` does not
//! compile, with the messages of the file beside it. `UPDATE_EXPECT=1 cargo xtask test refusals` writes
//! those anew.

#[test]
fn refusals() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}

/// What the macros name for themselves is nobody's business: not by the prefix of such names, and not by the numbers that
/// names of methods are.
#[test]
fn messages_have_no_names_of_the_macros_own() {
    let folder = std::fs::read_dir("tests/refused").expect("it is there");
    let paths = folder.map(|entry| entry.expect("it can be read").path());
    let messages = paths.filter(|path| path.extension().is_some_and(|kind| kind == "stderr"));
    let mut count = 0;
    for path in messages {
        let text = std::fs::read_to_string(&path).expect("it is a text");
        let is_number = |word: &str| word.len() > 12 && word.bytes().all(|b| b.is_ascii_digit());
        let number = text
            .split(|c: char| !c.is_alphanumeric())
            .find(|word| is_number(word));
        assert_eq!(number, None, "{}", path.display());
        assert!(
            !text.to_lowercase().contains("__kiln"),
            "{}",
            path.display()
        );
        count += 1;
    }
    assert!(count > 100, "{count}");
}
