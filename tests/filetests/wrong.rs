//! Files that expect what is not so: each kind of test can fail.

use libtest_mimic::Trial;
use suite::files::File;

use super::KINDS;
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
    WRONG.into_iter().enumerate().map(named).collect()
}
