//! What `fuzz-kernels` says of a command line that it does not understand.

use std::process::Command;

/// Whether it succeeds, and what it prints.
fn fuzz_kernels(args: &[&str]) -> (bool, String) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_fuzz-kernels"));
    let output = program.args(args).output().expect("cargo has built it");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let printed = text(&output.stdout) + &text(&output.stderr);
    (output.status.success(), printed)
}

#[test]
fn what_is_not_understood_is_named() {
    for (args, named) in [
        (&["--sed", "5"][..], "invalid option '--sed'"),
        (&["--count"], "missing argument for option '--count'"),
        (
            &["--seed", "x"],
            "cannot parse argument \"x\": invalid digit found in string",
        ),
        (
            &["--large=yes"],
            "unexpected argument for option '--large': \"yes\"",
        ),
        (&["5"], "unexpected argument \"5\""),
    ] {
        let told = format!("{named}; `--help` lists the options\n");
        assert_eq!(fuzz_kernels(args), (false, told), "{args:?}");
    }
}

#[test]
fn a_value_may_stand_behind_an_equals_sign() {
    let (succeeds, case) = fuzz_kernels(&["--show=7"]);
    assert!(succeeds && !case.is_empty());
    assert_eq!(fuzz_kernels(&["--show", "7"]).1, case);
    assert_ne!(fuzz_kernels(&["--show", "8"]).1, case);
}

#[test]
fn a_kernel_that_runs_too_long_is_a_failure() {
    let (succeeds, printed) = fuzz_kernels(&["--first", "--kernel-limit", "0"]);
    let last = printed.lines().last().unwrap_or_default();
    assert!(
        !succeeds && last.ends_with(": it does not end"),
        "{printed}"
    );
    assert!(last.starts_with("seed "), "{printed}");
}
