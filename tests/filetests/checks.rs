//! Lines that look for something in a text, below the line of IR that makes it.
//!
//! ```text
//!   %3: f32 = add %1, %2
//!   ; sm_90: fadd contract float
//!   ; cpu: fadd contract <8 x float>
//! ```
//!
//! `; TARGET: pattern` has to be in what is made for that target, in a line of its own: what two checks
//! look for has to be there twice. `; TARGET not: pattern` must be nowhere. In a pattern `..` stands for
//! anything within a line, and a space for any number of them. A check says what matters about a line and
//! nothing else (no register, no place: blocks of code lie in the order in which they were begun), so it is
//! written by hand, and there is nothing to bless.

use suite::Outcome;
use suite::files::File;

/// A check.
pub(super) struct Check<'a> {
    /// Where it is in the file, from 1.
    line: usize,
    /// The line above that is no comment, from 1.
    pub(super) about: usize,
    /// Whether it must be nowhere.
    absent: bool,
    pattern: &'a str,
}

/// The checks of a file about these targets.
pub(super) fn of<'a>(file: &'a File, targets: &[&str]) -> Vec<Check<'a>> {
    let mut checks = Vec::new();
    let mut about = 0;
    for (i, line) in file.text.lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix(';') else {
            about = i + 1;
            continue;
        };
        let Some((head, pattern)) = comment.split_once(':') else {
            continue;
        };
        let (head, absent) = match head.trim().strip_suffix(" not") {
            Some(head) => (head, true),
            None => (head.trim(), false),
        };
        if targets.contains(&head) {
            checks.push(Check {
                line: i + 1,
                about,
                absent,
                pattern: pattern.trim(),
            });
        }
    }
    checks
}

/// Whether everything that a file looks for is in what was made for a target.
pub(super) fn check(file: &File, target: &str, text: &str) -> Outcome {
    let is_made = |line: &&str| !line.starts_with("declare ");
    let mut lines: Vec<String> = text.lines().filter(is_made).map(spaced).collect();
    let checks = of(file, &[target]);
    if checks.is_empty() {
        return Err(format!("the file has no line `; {target}: ..`").into());
    }
    for check in checks {
        let found = lines.iter().position(|line| matches(check.pattern, line));
        let why = match (check.absent, found) {
            (false, Some(at)) => {
                lines.swap_remove(at);
                continue;
            }
            (true, None) => continue,
            (false, None) => "is not",
            (true, Some(_)) => "is",
        };
        let (name, line, pattern) = (file.name(), check.line, check.pattern);
        let what = format!("`{pattern}` {why} in what is made for {target}");
        return Err(format!("{name}.kir:{line}: {what}:\n{text}").into());
    }
    Ok(())
}

/// The text with one space where there are several.
fn spaced(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a line has the parts of a pattern, in order.
fn matches(pattern: &str, line: &str) -> bool {
    let mut rest = line;
    pattern.split("..").all(|part| {
        let part = spaced(part);
        let at = rest.find(&part);
        rest = at.map_or("", |at| &rest[at + part.len()..]);
        at.is_some()
    })
}
