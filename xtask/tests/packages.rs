//! What a crate needs that is published: a licence's text, what its page on the registry says, and dependencies that
//! a user can update.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The keys of a manifest that the registry and docs.rs read.
const KEYS: [&str; 9] = [
    "description = ",
    "license.workspace",
    "repository.workspace",
    "documentation.workspace",
    "readme.workspace",
    "keywords.workspace",
    "categories.workspace",
    "include = ",
    "[package.metadata.docs.rs]",
];

/// The dependencies of which one version was tried with what is opened at run time.
const PINNED: [&str; 3] = ["cudarc", "inkwell", "llvm-sys"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The manifests of the repository.
fn manifests() -> Vec<PathBuf> {
    let mut git = Command::new("git");
    git.args(["ls-files", "*Cargo.toml"]).current_dir(root());
    let listed = git.output().expect("git starts");
    let listed = String::from_utf8(listed.stdout).expect("paths are text");
    listed.lines().map(|path| root().join(path)).collect()
}

/// What a published package lacks.
fn lacks(manifest: &str, files: &[&str]) -> Vec<String> {
    let has = |key: &&str| manifest.lines().any(|line| line.starts_with(key));
    let keys = KEYS.iter().filter(|key| !has(key)).map(ToString::to_string);
    let included = manifest.lines().find(|line| line.starts_with("include = "));
    let included = included.unwrap_or_default();
    let left_out = files
        .iter()
        .filter(|file| !included.contains(&format!("\"/{file}")));
    let left_out = left_out.map(|file| format!("`/{file}` in `include`"));
    keys.chain(left_out).collect()
}

#[test]
fn published_crates_have_what_the_registry_reads() {
    let mut problems = Vec::new();
    for path in manifests() {
        let text = fs::read_to_string(&path).expect("it is there");
        if !text.contains("[package]") || text.contains("publish = false") {
            continue;
        }
        let folder = path.parent().expect("it is in a folder");
        let licences = ["LICENSE-MIT", "LICENSE-APACHE"];
        let no_licence = licences.iter().any(|file| !folder.join(file).is_file());
        let needed = ["src", "build.rs"].into_iter();
        let needed: Vec<&str> = needed.filter(|file| folder.join(file).exists()).collect();
        let mut lacking = lacks(&text, &needed);
        lacking.extend(lacks_licence(&text, no_licence));
        problems.extend(
            lacking
                .iter()
                .map(|what| format!("{}: {what}", path.display())),
        );
    }
    assert!(problems.is_empty(), "published crates lack: {problems:#?}");
}

fn lacks_licence(manifest: &str, is_missing: bool) -> Option<String> {
    let is_packed = manifest.contains("\"/LICENSE-*\"");
    (is_missing || !is_packed)
        .then(|| "the texts of both licences, as links to those of the root".to_owned())
}

#[test]
fn what_is_left_out_is_found() {
    let manifest = "[package]\ndescription = \"x\"\ninclude = [\"/src/**\"]\n";
    let lacking = lacks(manifest, &["src", "build.rs"]);
    assert_eq!(lacking.len(), KEYS.len() - 2 + 1, "{lacking:?}");
    assert!(lacking.contains(&"`/build.rs` in `include`".to_owned()));
    assert!(lacks_licence(manifest, false).is_some());
}

/// The dependencies of a manifest that are pinned to one version.
fn pinned(manifest: &str) -> Vec<&str> {
    let lines = manifest.lines().filter(|line| line.contains("\"="));
    let mut names: Vec<&str> = lines.filter_map(|line| line.split(' ').next()).collect();
    names.sort_unstable();
    names
}

#[test]
fn users_can_update_dependencies() {
    let text = fs::read_to_string(root().join("Cargo.toml")).expect("it is there");
    assert_eq!(
        pinned(&text),
        PINNED,
        "a range lets `cargo update` take what is mended"
    );
    assert_eq!(pinned("half = \"=2.7.1\"\nquote = \"1.0.47\"\n"), ["half"]);
}

/// What a program names that its user does not depend on: crates that `kiln` is made of.
fn crates_within(text: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let words = text.split(|c| !is_part(c));
    words.filter(|word| word.starts_with("kiln_")).collect()
}

/// In the workspace an example may name any dependency of the package, and in a user's crate it does not compile then.
#[test]
fn examples_compile_in_a_crate_of_a_user() {
    let mut git = Command::new("git");
    git.args(["ls-files", "examples/*.rs"]).current_dir(root());
    let listed = git.output().expect("git starts");
    let listed = String::from_utf8(listed.stdout).expect("paths are text");
    assert!(listed.lines().count() > 3, "{listed}");
    for path in listed.lines() {
        let text = fs::read_to_string(root().join(path)).expect("it is there");
        let named = crates_within(&text);
        assert!(named.is_empty(), "{path} names {named:?}, and not `kiln`");
    }
    let wrong = "use kiln_jit_core::inkwell::AddressSpace;\nuse kiln::prelude::*;\n";
    assert_eq!(crates_within(wrong), ["kiln_jit_core"]);
}
