//! Files that expect what is not so: each kind of test can fail.

use libtest_mimic::Trial;
use suite::Outcome;
use suite::files::File;

use super::{KINDS, checks};
use crate::test;

/// A file of each kind, with something in what it says.
const WRONG: [(&str, &str, &str); 9] = [
    (
        "text",
        "module m specialized\n\nkernel @m()  {\n}\n",
        "kernel @m() {",
    ),
    (
        "verify",
        "module m specialized\ndevice @f() { ; error: it is too short\n}\n",
        "there is no kernel",
    ),
    (
        "specialize",
        "; arg: f32\nmodule m generic\nkernel @m<$0 T: any>(%0 x: $0) {\n}\n; gives:\n; nothing\n",
        "module m specialized",
    ),
    (
        "hook",
        "module m specialized\nkernel @m() {\n}\n; gives:\n; an error\n",
        "module m legal",
    ),
    (
        "legal",
        "; target: sm_75\nmodule m specialized\nkernel @m() { ; error: it is empty\n}\n",
        "kernel @m() {",
    ),
    (
        "llvm",
        "; target: sm_75\nmodule m specialized\nkernel @m() {\n}\n; sm_75: ret void\n; sm_75: fadd\n",
        "`fadd` is not in what is made for sm_75",
    ),
    (
        "ptx",
        "; target: sm_75\nmodule m specialized\nkernel @m() {\n}\n; sm_75 not: ret\n",
        "`ret` is in what is made",
    ),
    (
        "run",
        "; arg x: 1 2 -> 1 3\nmodule m legal\nkernel @m(%0 x: slice<global, mut u8>) {\n}\n",
        "; arg x: 1 2 -> 1 2",
    ),
    (
        "run",
        "; arg x: 1 -> 1\n; fault: index 1 of 1\nmodule m legal\nkernel @m(%0 x: slice<global, mut u8>) {\n}\n",
        "line 2:",
    ),
];

/// What is made for a target of the file below.
const MADE: &str = "  %4 = add i32 %3, 7\n  %x5 = add <8 x i32> %4, splat (i32 9)\n  \
    add.s64 \t%rd4, %rd1, %tid.x;\n  ret void\n";

/// Checks that do not hold of that, and what is written in their place; none where nothing is alike.
const BLESSED: [(&str, Option<&str>); 9] = [
    ("add i32 .., 7", Some("add i32 .., 7")),
    ("add i32 .., 3", Some("add i32 .., 7")),
    ("add i64", Some("add i32")),
    (
        "add <8 x i32> .., splat (i32 3)",
        Some("add <8 x i32> .., splat (i32 9)"),
    ),
    ("add.s64 .., .., %ntid.x;", Some("add.s64 .., .., %tid.x")),
    ("add.u32", Some("add.s64")),
    ("add <16", Some("add <8")),
    ("sub i32", None),
    ("ret i32", Some("ret void")),
];

fn blessed() -> Outcome {
    for (pattern, wanted) in BLESSED {
        let text = |pattern: &str| format!("module m legal\n  ; cpu: {pattern}\n");
        let found = checks::blessed(&File::of(&text(pattern)), "cpu", MADE).ok();
        if found != wanted.map(text) {
            return Err(format!("`{pattern}` becomes {found:?}").into());
        }
    }
    let nowhere = File::of("module m legal\n; cpu not: ret\n");
    match checks::blessed(&nowhere, "cpu", MADE) {
        Ok(_) => Err("what must be nowhere is passed over".into()),
        Err(_) => Ok(()),
    }
}

pub(super) fn tests() -> Vec<Trial> {
    let named = |(i, (kind, text, says)): (usize, (&'static str, &'static str, &'static str))| {
        test(format!("kir::wrong::{kind}_{i}"), move || {
            let known = KINDS.iter().find(|(known, _)| *known == kind);
            let (_, check) = known.ok_or("an unknown kind")?;
            match check(&File::of(text)) {
                Ok(()) => Err("it passes".into()),
                Err(error) if error.to_string().contains(says) => Ok(()),
                Err(error) => Err(format!("it says nothing of `{says}`:\n{error}").into()),
            }
        })
    };
    let wrong = WRONG.into_iter().enumerate().map(named);
    wrong
        .chain([
            test("kir::checks_are_rewritten", blessed),
            test("kir::each_kind_can_fail", each_kind_can_fail),
        ])
        .collect()
}

fn each_kind_can_fail() -> Outcome {
    let fails = |kind: &str| WRONG.iter().any(|(known, ..)| *known == kind);
    match KINDS.iter().find(|(kind, _)| !fails(kind)) {
        None => Ok(()),
        Some((kind, _)) => Err(format!("no file of kind `{kind}` is wrong; write one here").into()),
    }
}
