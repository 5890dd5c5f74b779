//! What a chapter shows of a program's output, and putting another one there.

use std::fs;

use super::chapters::{Program, folder, read};

/// The file that a reader copies a program to.
pub const FILE: &str = "src/main.rs";

/// Whether the chapters are to be rewritten.
pub fn rewrites() -> bool {
    std::env::var_os("TRYBUILD").is_some_and(|value| value == "overwrite")
}

/// Puts an output into the chapter of a program.
pub fn rewrite(program: &Program, output: &str) {
    let Some(old) = program.output.as_ref().filter(|_| rewrites()) else {
        return;
    };
    assert!(
        output.ends_with('\n'),
        "{} does not end its last line",
        program.name
    );
    let shown = format!("```\n\n```text\n{old}```\n");
    let file = format!("{}.md", program.chapter);
    let text = read(&file);
    let source = text.find(&program.source).expect("it is in its chapter") + program.source.len();
    let (before, after) = text.split_at(source);
    let after = after.strip_prefix(&shown).expect("its output follows");
    let text = format!("{before}```\n\n```text\n{output}```\n{after}");
    fs::write(folder().join(file), text).expect("the chapter is writable");
}

/// The text with [`FILE`] for the paths that end in `name`.
pub fn with_file(text: &str, name: &str) -> String {
    let mut parts = text.split(name);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let start = out.rfind([' ', '\n', '(']).map_or(0, |at| at + 1);
        out.replace_range(start.., FILE);
        out += part;
    }
    out
}
