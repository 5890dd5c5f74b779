//! What breaks each rule, and what does not.

use super::*;

/// Checks one file against all rules: `expected` are parts of the problems, in order.
#[track_caller]
fn check(path: &str, text: &str, expected: &[&str]) {
    let found = problems(path, text);
    let as_expected = found.len() == expected.len()
        && found
            .iter()
            .zip(expected)
            .all(|(problem, part)| problem.contains(part));
    assert!(as_expected, "expected {expected:?}, found {found:#?}");
}

#[test]
fn a_guess_is_found() {
    let path = "jit-core/src/x.rs";
    let found = |body: &str| problems(path, &format!("//! X.\nfn f() {{\n{body}\n}}\n"));
    for guess in [
        "match x { Scalar::F32 => 1, _ => 2 };",
        "match x { ir::Scalar::F32 => 1, other => 2 };",
        "match (x, y) { (A, Scalar::F32) => 1, (B, _) => 2 };",
        "match x { Some(Scalar::F32) => 1, Some(_) | None => 2 };",
        "match &x { Leaf { scalar: Scalar::F32 } => 1, Leaf { scalar } => 2 };",
        "if matches!(x, InstData::Barrier) {}",
        "if let InstData::If { .. } = x {}",
        "while let TypeData::Array { element, .. } = x {}",
        "let TypeData::Struct(id) = x else { return };",
        "if x == Scalar::F32 {}",
        "assert!(BinaryOp::Div != x);",
        "call(|| assert!(matches!(x, InstData::Barrier)));",
        "macro_rules! m { ($x:expr) => { match $x { Scalar::F32 => 1, _ => 2 } } }",
    ] {
        let found = found(guess);
        assert_eq!(found.len(), 1, "{guess}\n{found:?}");
        assert!(
            found[0].starts_with("jit-core/src/x.rs:3: variants of `"),
            "{}",
            found[0]
        );
    }
    for right in [
        "match x { Scalar::F32 | Scalar::F64 => 1, Scalar::Bool => 2 };",
        "match x { InstData::Const(_) => 1, InstData::Load { ptr, .. } => 2 };",
        "match (x, y) { (_, Scalar::F32) => 1, (_, Scalar::F64) => 2 };",
        "match x { Control::If { .. } => 1, _ => 2 };",
        "let x = TypeData::Struct(id);",
    ] {
        assert_eq!(found(right), Vec::<String>::new(), "{right}");
    }
    let code = "//! X.\nfn f() { matches!(x, InstData::Barrier); }\n";
    check("jit-core/tests/x.rs", code, &[]);
    let tested = "//! X.\n#[cfg(test)]\nmod tests { fn f() { matches!(x, InstData::Barrier); } }\n";
    check(path, tested, &[]);
}

#[test]
fn a_long_function_is_found() {
    let path = "jit-core/src/x.rs";
    let of = |lines: usize, before: &str, around: [&str; 2]| {
        let body = "    g();\n".repeat(lines - 2);
        let [open, close] = around;
        format!("//! X.\n{open}{before}fn f() {{\n{body}}}\n{close}")
    };
    let plain = ["", ""];
    let problem = ["x.rs:2: `f` has 61 lines"];
    check(path, &of(60, "", plain), &[]);
    check(path, &of(61, "", plain), &problem);
    let others = "/// F.\n#[must_use]\n// Not flat match.\n";
    check(path, &of(61, others, plain), &["x.rs:5: `f` has 61 lines"]);
    for around in ["impl X {", "trait X {", "mod x {"] {
        check(path, &of(61, "", [around, "}\n"]), &problem);
    }
    let inside = of(61, "", ["fn g() {\n", "}\n"]);
    check(path, &inside, &["`g` has 63 lines", "`f` has 61 lines"]);
    // One match over a closed list, and tests.
    check(
        path,
        &of(61, "/// F.\n// flat match\n#[must_use]\n", plain),
        &[],
    );
    check(path, &of(61, "", ["#[cfg(test)]\nmod x {", "}\n"]), &[]);
    check("jit-core/tests/x.rs", &of(61, "", plain), &[]);
}

#[test]
fn guesses_are_counted() {
    let path = "jit-core/compiler/src/specialize/wide.rs";
    let guess = "if let InstData::Barrier = x {}";
    let file = |guesses: usize| format!("//! X.\nfn f() {{ {} }}\n", guess.repeat(guesses));
    check(path, &file(1), &[]);
    let two = "(2 places here, 1 allowed)";
    check(path, &file(2), &[two, two]);
    check(path, &file(0), &["counts 1: lower the number there"]);
    let files = files();
    for (path, ..) in guesses::ALLOWED {
        assert!(files.iter().any(|file| file == path), "there is no {path}");
    }
}

#[test]
fn a_type_id_is_found() {
    let code = "//! X.\nuse std::any::TypeId;\n";
    check(
        "a/src/x.rs",
        code,
        &["a/src/x.rs:2: a type that is defined"],
    );
    check("jit-core/compiler/src/front/pool.rs", code, &[]);
    check("a/src/x.rs", "//! No `TypeId` here.\nfn f() {}\n", &[]);
}

#[test]
fn an_import_from_above_is_found() {
    let manifest = "[dependencies]\nkiln-ir.workspace = true\nhalf.workspace = true\n";
    check("jit-core/interp/Cargo.toml", manifest, &[]);
    check(
        "jit-core/ir/Cargo.toml",
        manifest,
        &["jit-core/ir/Cargo.toml:2: `kiln-ir` is above this layer"],
    );
    check("jit-core/Cargo.toml", manifest, &[]);
}

#[test]
fn an_error_without_end_is_found() {
    let error =
        "//! X.\n#[derive(Clone, Debug, thiserror::Error)]\n#[error(\n    \"a {name}\"\n)]\n";
    check(
        "jit-core/src/x.rs",
        error,
        &[
            "jit-core/src/x.rs:3: a text with parts is `\"{}\", error_text!(..)`, which bounds it",
            "jit-core/src/x.rs:2: the `Debug` form of an error is its text: `debug_as_text!`",
        ],
    );
    let right =
        "//! X.\n#[derive(Clone, thiserror::Error)]\n#[error(\"{}\", error_text!(\"a {name}\"))]\n";
    check("jit-core/src/x.rs", right, &[]);
    check("jit-core/src/x.rs", "//! X.\n#[error(\"none\")]\n", &[]);
}

#[test]
fn a_file_left_at_the_root_is_found() {
    check(
        "t.ptx",
        ".version 8.5\n",
        &["t.ptx:1: the root is no place"],
    );
    for path in [
        "LICENSE-MIT",
        ".gitignore",
        "deny.toml",
        "docs/upstream/x.ptx",
    ] {
        check(path, "x\n", &[]);
    }
}

#[test]
fn a_missing_doc_is_found() {
    check(
        "a/src/x.rs",
        "fn f() {}\n",
        &["a/src/x.rs:1: open the file"],
    );
    check("a/src/x.rs", "//! What x is.\nfn f() {}\n", &[]);
    check("a/x.toml", "x = 1\n", &[]);
}

#[test]
fn a_long_file_is_found() {
    let long = format!("//! X.\n{}", "fn f() {}\n".repeat(MAX_LINES));
    check("a/src/x.rs", &long, &["a/src/x.rs:801: 801 lines"]);
    check("a/tests/x.rs", &long, &[]);
    check("a/src/x/tests.rs", &long, &[]);
    check("a/src/machine_tests.rs", &long, &[]);
    let tests = format!(
        "//! X.\n#[cfg(test)]\nmod tests {{\n{}}}\n",
        "\n".repeat(MAX_LINES)
    );
    check("a/src/x.rs", &tests, &[]);
}

#[test]
fn an_empty_name_is_found() {
    check("a/src/util.rs", "//! X.\n", &["`util` says nothing"]);
    check(
        "a/src/helpers/x.rs",
        "//! X.\n",
        &["`helpers` says nothing"],
    );
    check(
        "a/src/x.rs",
        "//! X.\n\npub mod common;\n",
        &["a/src/x.rs:3: `mod common`"],
    );
    check("a/src/x.rs", "//! X.\n// mod common\nmod utility;\n", &[]);
}

#[test]
fn a_lint_without_reason_is_found() {
    check(
        "a/src/x.rs",
        "//! X.\n#[allow(dead_code)]\nfn f() {}\n",
        &["a/src/x.rs:2: give `allow`"],
    );
    check(
        "a/src/x.rs",
        "//! X.\n#![expect(unused)]\n",
        &["a/src/x.rs:2: give `expect`"],
    );
    check(
        "a/src/x.rs",
        "//! X.\n#[allow(dead_code, reason = \"x\")]\nfn f() {}\n",
        &[],
    );
    check(
        "a/src/x.rs",
        "//! X: `#[allow(dead_code)]`.\nfn f() { g(\"#[allow(x)]\") }\n",
        &[],
    );
}

#[test]
fn unsafe_elsewhere_is_found() {
    check(
        "hooks/src/x.rs",
        "//! X.\nunsafe fn f() {}\n",
        &["hooks/src/x.rs:2: no `unsafe`"],
    );
    check(
        "jit-core/codegen/src/llvm/x.rs",
        "//! X.\nunsafe fn f() {}\n",
        &[],
    );
    check(
        "jit-core/compiler/src/value.rs.rs",
        "//! X.\nunsafe fn f() {}\n",
        &["no `unsafe`"],
    );
    check(
        "hooks/src/x.rs",
        "//! X, unsafe.\n#![forbid(unsafe_code)]\nconst X: &str = r#\"unsafe\"#;\n",
        &[],
    );
}

#[test]
fn a_lost_test_is_found() {
    let manifest = "[package]\n\n[lib]\n# None.\ntest = false\n\n[[bin]]\n";
    check(
        "device-stdlib/Cargo.toml",
        manifest,
        &["device-stdlib/Cargo.toml:1: `device-stdlib/src/"],
    );
    check("notebook/Cargo.toml", manifest, &[]);
    let of_a_program = "[lib]\npath = \"x\"\n\n[[bin]]\ntest = false\n";
    check("device-stdlib/Cargo.toml", of_a_program, &[]);
}

#[test]
fn a_path_to_nothing_is_found() {
    let missing = |line: &str| problems("README.md", &format!("A\n{line}\n"));
    for right in [
        "`jit-core/compiler/src/compile.rs`, `xtask`, `tidy.rs`, `jit-core/compiler/src/definition*`, `tests/`",
        "`codegen/admitted.rs`, `specialize/instance.rs`, `device-stdlib/table.rs`, `codegen/gpu`",
        "`jit-core/{ir/src,compiler/src/{front,build}}`, `target/guide`, [guide](docs/guide/src/hooks.md#top)",
        "`a / b`, `cargo run a/b.rs`, `https://a/b`, `1/2`, `i/o b`, `.rs`, [x](https://a.b/c)",
        "```text\na job.rs, codegen/isa.rs  jit-core/{ir,interp}\n```",
        "| place | what |\n| `xtask`, `jit-core/codegen/src/isa.rs` | `src/commands.rs`, `a word` |",
        "| place | what |\n| `jit-core/codegen/src/isa.rs` | `gpu/ptx.rs` |",
    ] {
        assert_eq!(missing(right), Vec::<String>::new(), "{right}");
    }
    for (wrong, path) in [
        ("`jit-core/src/compiled.rs`", "jit-core/src/compiled.rs"),
        ("`no_such_file.rs`", "no_such_file.rs"),
        ("`codegen/admitted_not.rs`", "codegen/admitted_not.rs"),
        ("`jit-core/{ir,ri}`", "jit-core/ri"),
        ("`jit-core/src/definitions*`", "jit-core/src/definitions*"),
        ("[guide](docs/guide/src/hook.md)", "docs/guide/src/hook.md"),
        ("| place | what |\n| `nowhere` | `word` |", "nowhere"),
        (
            "```text\na  codegen/no.rs, codegen/isa.rs\n```",
            "codegen/no.rs",
        ),
        ("`codegen/src/isa.rs`", "codegen/src/isa.rs"),
    ] {
        let found = missing(wrong);
        let [problem] = &found[..] else {
            panic!("{wrong}: {found:?}")
        };
        assert!(
            problem.contains(&format!("there is no `{path}`")),
            "{problem}"
        );
    }
}

#[test]
fn code_generation_that_knows_what_is_above_it_is_found() {
    let knows = |path: &str, what: &str, problems: &[&str]| {
        let path = format!("jit-core/codegen/src/{path}");
        check(&path, &format!("//! X.\nuse crate::{what};\n"), problems);
    };
    knows(
        "isa.rs",
        "cpu::isa::CpuIsa",
        &["isa.rs:2: `isa` knows `crate::cpu`"],
    );
    knows(
        "cpu/x.rs",
        "gpu::legal::Illegal",
        &["`cpu` knows `crate::gpu`"],
    );
    knows(
        "gpu/x.rs",
        "targets::Isas",
        &["`gpu` knows `crate::targets`"],
    );
    knows("gpu/x.rs", "Isas", &["`gpu` knows `crate::Isas`"]);
    knows("x.rs", "isa::Isa", &["`x` has no floor"]);
    knows("gpu/x.rs", "gpu::legal::Has", &[]);
    knows("gpu/x.rs", "isa::Isa", &[]);
    knows("llvm/x_tests.rs", "gpu::ptx::PtxIsa", &[]);
}

#[test]
fn a_machine_path_is_found() {
    let path = ["", "root", "x"].join("/");
    check("x.md", &format!("see\n`{path}`\n"), &["x.md:2: `/ro"]);
    check(
        "a/x.sh",
        "cd tests/work/x ../root/x ~/root/x $X/home/x\n",
        &[],
    );
}

#[test]
fn a_sentence_that_says_nothing_alone_is_found() {
    let comment = |sentence: &str| format!("//! X.\n/// {sentence}\n/// More.\nfn f() {{}}\n");
    for sentence in [
        "Its name.",
        "It.",
        "The same of a block.",
        "Those of the processor.",
        "That and a value, combined.",
        "And the index.",
        "Which.",
        "Where: in global memory.",
        "Whether it is a number.",
        "What they choose.",
        "As it comes.",
        "See [`Op::Add`].",
    ] {
        let expected = "src/x.rs:2: the documentation begins with";
        check("src/x.rs", &comment(sentence), &[expected]);
        check("tests/suite/x.rs", &comment(sentence), &[]);
    }
    for sentence in [
        "The value's name.",
        "Itself, as text.",
        "Which threads a fence is for.",
        "Whether the type is a number.",
        "The samples.",
        "This machine's CPU.",
        "`it`, a variable.",
    ] {
        check("src/x.rs", &comment(sentence), &[]);
    }
    check(
        "src/x.rs",
        "//! X.\n/// A value.\n/// It is a number.\nfn f() {}\n",
        &[],
    );
}

#[test]
fn what_no_example_shows_is_found() {
    let methods = "impl X { pub fn a(&self) {} pub(crate) fn b(&self) {} fn c(&self) {} }\n";
    let table = "operations! { fn d() -> u32 { 0 } = row(|fn_of| fn_of); fn e(self) = 1; }\n";
    let hidden = "#[doc(hidden)]\npub fn f() {}\n#[cfg(test)]\nmod tests { pub fn g() {} }\n";
    let file = |doc: &str| format!("//! X.\n{doc}\n{methods}{table}{hidden}");
    let all = ["no example shows `a`", "`d`", "`e`"];
    check(
        "hooks/src/x.rs",
        &file("//! ```text\n//! a d e\n//! ```"),
        &all,
    );
    check("hooks/src/x.rs", &file("//!\n//! a d e\n"), &all);
    let shown = file("//!\n//! ```\n//! x.a(e()); // and d\n//! ```");
    check("hooks/src/x.rs", &shown, &[]);
    check(
        "jit-core/codegen/src/isa.rs",
        "//! X.\npub fn a() {}\n",
        &[],
    );
}
