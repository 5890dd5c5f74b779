//! The chapters of the guide and the code blocks in them: what the build script and the tests of
//! this package read, and with them `cargo xtask newcomer` and the test of what macros refuse.
//!
//! A block that opens with ```` ```rust ```` is a whole program, `src/main.rs` of a reader who copies
//! it. If the next block of the chapter opens with ```` ```text ````, that is what the program prints.
//! A program that opens with ```` ```rust,compile_fail ```` does not compile; what follows it is what
//! rustc says. A block that opens with ```` ```rust,cell ```` is a cell of a notebook in `notebook/`,
//! where `cargo xtask notebook` runs it. Other blocks (`sh`, `toml`, `cpp`, `python`) are for readers only, and so are
//! those that open with ```` ```rust,ignore ````, which need a GPU or a program of their own.

use std::fs;
use std::path::{Path, PathBuf};

/// A file that SUMMARY.md names.
pub struct Chapter {
    /// The name of its file without `.md`.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// A program of the guide.
pub struct Program {
    /// The name of its chapter.
    pub chapter: String,
    /// The chapter, `_`, and the line of the block in it.
    pub name: String,
    /// What stands in the block.
    pub source: String,
    /// The block that follows, if it is output.
    pub output: Option<String>,
    /// Whether it is there because it does not compile.
    pub refused: bool,
}

/// What a block opens with that is a cell of a notebook.
const CELL: &str = "rust,cell";

/// A code block as it is written.
struct Block {
    line: usize,
    info: String,
    text: String,
}

/// The folder with the chapters, for any package of the workspace.
pub fn folder() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = package
        .ancestors()
        .map(|folder| folder.join("docs/guide/src"));
    let found = folders.find(|folder| folder.is_dir());
    found.expect("the guide is in the workspace")
}

/// Reads a file of the guide.
pub fn read(file: &str) -> String {
    let path = folder().join(file);
    match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => panic!("cannot read {}: {error}", path.display()),
    }
}

/// The chapters, in the order of SUMMARY.md.
pub fn chapters() -> Vec<Chapter> {
    let chapter = |file: String| Chapter {
        name: file.trim_end_matches(".md").to_owned(),
        text: read(&file),
    };
    let files = links(&read("SUMMARY.md"));
    files.into_iter().map(|(_, file)| chapter(file)).collect()
}

/// The links of a text outside of its code blocks, each with its line.
pub fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    let mut in_block = false;
    for (number, line) in text.lines().enumerate() {
        in_block ^= line.starts_with("```");
        if in_block {
            continue;
        }
        for part in line.split("](").skip(1) {
            if let Some((target, _)) = part.split_once(')') {
                links.push((number + 1, target.to_owned()));
            }
        }
    }
    links
}

/// The programs of a chapter.
///
/// # Panics
/// A block of output that belongs to no program, or a block that does not end.
pub fn programs(chapter: &Chapter) -> Vec<Program> {
    let mut programs: Vec<Program> = Vec::new();
    let mut may_print = false;
    for block in blocks(chapter) {
        match block.info.as_str() {
            "rust" | "rust,compile_fail" => programs.push(Program {
                chapter: chapter.name.clone(),
                name: format!("{}_{}", chapter.name.replace('-', "_"), block.line),
                source: block.text,
                output: None,
                refused: block.info != "rust",
            }),
            "text" => match programs.last_mut().filter(|_| may_print) {
                Some(program) => program.output = Some(block.text),
                None => panic!(
                    "{}.md:{}: output of no program; it must be the block after one",
                    chapter.name, block.line
                ),
            },
            CELL | "rust,ignore" | "sh" | "toml" | "cpp" | "python" => {}
            other => panic!(
                "{}.md:{}: no block is a `{other}`; see chapters.rs",
                chapter.name, block.line
            ),
        }
        may_print = matches!(block.info.as_str(), "rust" | "rust,compile_fail");
    }
    programs
}

/// The cells of notebooks in a chapter, each with its line.
pub fn cells(chapter: &Chapter) -> Vec<(usize, String)> {
    blocks_of(chapter, CELL)
}

/// The blocks that open with ```` ``` ```` and `info`, each with its line.
pub fn blocks_of(chapter: &Chapter, info: &str) -> Vec<(usize, String)> {
    let mut blocks = blocks(chapter);
    blocks.retain(|block| block.info == info);
    blocks
        .into_iter()
        .map(|block| (block.line, block.text))
        .collect()
}

fn blocks(chapter: &Chapter) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in chapter.text.lines().enumerate() {
        match (line.strip_prefix("```"), open.take()) {
            (Some(_), Some(block)) => blocks.push(block),
            (Some(info), None) => {
                open = Some(Block {
                    line: number + 1,
                    info: info.to_owned(),
                    text: String::new(),
                });
            }
            (None, Some(mut block)) => {
                block.text += line;
                block.text.push('\n');
                open = Some(block);
            }
            (None, None) => {}
        }
    }
    assert!(
        open.is_none(),
        "{}.md: the last block does not end",
        chapter.name
    );
    blocks
}
