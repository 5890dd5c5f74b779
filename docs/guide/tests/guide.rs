//! The guide holds what it says: every program compiles, runs on the CPU and prints what is shown
//! after it; links lead somewhere. What is shown as refused is a test of the macros that refuse it
//! (`tests/refused/refused.rs`), where rustc has checked what it needs of Kiln.
//!
//! `UPDATE_EXPECT=1 cargo xtask test -p kiln-guide` writes what programs print to the chapters. The diff is part of the
//! review.

#[path = "../chapters.rs"]
mod chapters;
#[path = "../shown.rs"]
mod shown;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use chapters::{Program, cells, chapters, folder, links, programs, read};
use shown::{rewrite, with_file};

fn all_programs(refused: bool) -> Vec<Program> {
    let all = chapters();
    let programs = all.iter().flat_map(programs);
    programs
        .filter(|program| program.refused == refused)
        .collect()
}

#[test]
fn the_summary_names_every_chapter_once() {
    let mut named = BTreeSet::new();
    for (_, file) in links(&read("SUMMARY.md")) {
        assert!(named.insert(file.clone()), "SUMMARY.md names {file} twice");
    }
    let entries = fs::read_dir(folder()).expect("the folder is there");
    let mut found: BTreeSet<String> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    found.remove("SUMMARY.md");
    // The pictures.
    found.remove("images");
    assert_eq!(named, found);
}

#[test]
fn links_lead_somewhere() {
    let mut broken = Vec::new();
    for chapter in chapters() {
        for (line, target) in links(&chapter.text) {
            // From the book a file of the repository is a page of its host; only files are checked.
            let host = "https://github.com/kiln-jit/kiln/blob/main/";
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
            let is_there = match target.strip_prefix(host) {
                Some(file) => root.join(file).exists(),
                None if target.contains("://") => true,
                None => {
                    let (file, part) = target.split_once('#').unwrap_or((&target, ""));
                    let text = match file {
                        "" => Some(chapter.text.clone()),
                        file => fs::read_to_string(folder().join(file)).ok(),
                    };
                    text.is_some_and(|text| part.is_empty() || has_heading(&text, part))
                }
            };
            if !is_there {
                broken.push(format!("{}.md:{line}: {target}", chapter.name));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn cells_are_those_of_a_notebook_that_is_run() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../notebook/hello.ipynb");
    let text = fs::read_to_string(&file).expect("the notebook is there");
    let notebook: serde_json::Value = serde_json::from_str(&text).expect("the notebook is JSON");
    let sources: Vec<String> = notebook["cells"]
        .as_array()
        .expect("it has cells")
        .iter()
        .map(|cell| {
            let lines = cell["source"].as_array().expect("a cell has lines");
            let lines = lines.iter().filter_map(serde_json::Value::as_str);
            lines.collect()
        })
        .collect();
    for chapter in chapters() {
        for (line, cell) in cells(&chapter) {
            assert!(
                sources
                    .iter()
                    .any(|source| source.trim_end() == cell.trim_end()),
                "{}.md:{line}: no cell of hello.ipynb is this one",
                chapter.name
            );
        }
    }
}

/// Whether a heading of the text has this anchor, as mdBook makes them.
fn has_heading(text: &str, anchor: &str) -> bool {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let mut anchors = headings.map(|line| {
        let words = line.trim_start_matches('#').trim().to_lowercase();
        let kept = words
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.collect::<String>().replace(' ', "-")
    });
    anchors.any(|found| found == anchor)
}

#[test]
fn every_chapter_has_code_that_is_run() {
    // The last has none.
    const WITHOUT: [&str; 1] = ["where-to-go-on"];
    for chapter in chapters() {
        let has_code = !programs(&chapter).is_empty() || !cells(&chapter).is_empty();
        let may_lack = WITHOUT.contains(&&*chapter.name);
        assert!(may_lack || has_code, "{}.md", chapter.name);
    }
}

#[test]
fn times_are_those_that_were_measured() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let results = fs::read_to_string(root.join("benches/RESULTS.md")).expect("it is there");
    let mut times = 0;
    for chapter in chapters() {
        for (at, _) in chapter.text.match_indices(" ms") {
            let number = chapter.text[..at].rsplit(' ').next().unwrap_or_default();
            if number.starts_with(|c: char| c.is_ascii_digit()) {
                let time = format!(" {number} ms");
                assert!(results.contains(&time), "{}.md:{time}", chapter.name);
                times += 1;
            }
        }
    }
    assert!(times > 0, "no figure is found");
}

#[test]
fn programs_print_what_the_guide_says() {
    let mut wrong = String::new();
    for program in all_programs(false) {
        let output = Command::new(env!("CARGO_BIN_EXE_guide-programs"))
            .arg(&program.name)
            // The guide shows what a machine without a GPU prints.
            .env("CUDA_VISIBLE_DEVICES", "-1")
            .output()
            .expect("the program starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let printed = text(&output.stdout) + &text(&output.stderr);
        let printed = with_file(&printed, &format!("{}.rs", program.name));
        if !output.status.success() {
            wrong += &format!("== {} ends with {}\n{printed}", program.name, output.status);
        } else if program.output.as_ref() != Some(&printed) {
            let shown = program.output.as_deref().unwrap_or("nothing is shown\n");
            wrong += &format!(
                "== {} prints\n{printed}== instead of\n{shown}",
                program.name
            );
            rewrite(&program, &printed);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn programs_are_formatted() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guide-formatted");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("cargo's folder is writable");
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.args(["--check", "--edition", "2024", "--config-path"]);
    rustfmt.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    for program in all_programs(false).into_iter().chain(all_programs(true)) {
        let path = folder.join(format!("{}.rs", program.name));
        fs::write(&path, &program.source).expect("cargo's folder is writable");
        rustfmt.arg(path);
    }
    let output = rustfmt.output().expect("rustup has installed rustfmt");
    let difference = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{difference}");
}

#[test]
fn paths_become_the_readers() {
    assert_eq!(
        with_file("at (/x/y/a.rs:3:4)\n", "a.rs"),
        "at (src/main.rs:3:4)\n"
    );
    assert_eq!(with_file("no path\n", "a.rs"), "no path\n");
}
