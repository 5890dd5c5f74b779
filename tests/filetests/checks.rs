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
//! written by hand.
//!
//! With `UPDATE_EXPECT=1` a check that finds nothing becomes the start of the line that is most like it, among
//! those that no check finds: as many words as it had, `..` for registers. What begins with another
//! operation is not like it, and what must be nowhere is not rewritten: that is decided by hand.

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
    let (unmet, _) = compared(file, target, text)?;
    unmet
        .first()
        .map_or(Ok(()), |check| Err(told(file, target, text, check)))
}

/// The file's text with checks that find what was made for a target.
///
/// # Errors
/// A check to which nothing is alike, and one of what must be nowhere and is there.
pub(super) fn blessed(file: &File, target: &str, text: &str) -> Result<String, Error> {
    let (unmet, mut left) = compared(file, target, text)?;
    let mut lines: Vec<String> = file.text.lines().map(str::to_owned).collect();
    for check in unmet {
        let alike = most_alike(check.pattern, &left).filter(|_| !check.absent);
        let (at, pattern) = alike.ok_or_else(|| told(file, target, text, &check))?;
        left.remove(at);
        let line = &mut lines[check.line - 1];
        let start = line.rfind(check.pattern).unwrap_or(line.len());
        line.replace_range(start.., &pattern);
    }
    Ok(lines.join("\n") + "\n")
}

type Error = Box<dyn std::error::Error>;

/// The checks that do not hold, and the lines that no check found.
fn compared<'a>(
    file: &'a File,
    target: &str,
    text: &str,
) -> Result<(Vec<Check<'a>>, Vec<String>), Error> {
    let is_made = |line: &&str| !line.starts_with("declare ");
    let mut lines: Vec<String> = text.lines().filter(is_made).map(spaced).collect();
    let checks = of(file, &[target]);
    if checks.is_empty() {
        return Err(format!("the file has no line `; {target}: ..`").into());
    }
    let mut unmet = Vec::new();
    for check in checks {
        let found = lines.iter().position(|line| matches(check.pattern, line));
        match (check.absent, found) {
            (false, Some(at)) => drop(lines.remove(at)),
            (true, None) => {}
            (false, None) | (true, Some(_)) => unmet.push(check),
        }
    }
    Ok((unmet, lines))
}

/// Why a check does not hold.
fn told(file: &File, target: &str, text: &str, check: &Check<'_>) -> Error {
    let why = if check.absent { "is" } else { "is not" };
    let (name, line, pattern) = (file.name(), check.line, check.pattern);
    let what = format!("`{pattern}` {why} in what is made for {target}");
    format!("{name}.kir:{line}: {what}:\n{text}").into()
}

/// The line that is most like what a pattern looks for, and the pattern that looks for it.
fn most_alike(pattern: &str, lines: &[String]) -> Option<(usize, String)> {
    let wanted = spaced(pattern);
    let wanted_parts: Vec<&str> = parts(&wanted).collect();
    let likeness = |line: &str| {
        let shared = parts(line)
            .filter(|part| wanted_parts.contains(part))
            .count();
        let pairs = line.chars().zip(wanted.chars());
        (shared, pairs.take_while(|(a, b)| a == b).count())
    };
    let lines = lines.iter().map(|line| generalized(line)).enumerate();
    let alike = lines.filter(|(_, line)| parts(line).next() == wanted_parts.first().copied());
    // The first of those that are alike in the same way.
    let (at, line) = alike.rev().max_by_key(|(_, line)| likeness(line))?;
    let start: Vec<&str> = line.split(' ').take(wanted.split(' ').count()).collect();
    let start = start.join(" ");
    Some((at, start.trim_end_matches([',', ';', '.', ' ']).to_owned()))
}

/// The parts of a line, the operation first: words, and what is between dots in them
/// (`atom.relaxed.cta`).
fn parts(line: &str) -> impl Iterator<Item = &str> {
    line.split([' ', '.']).filter(|part| !part.is_empty())
}

/// A line without its result, with `..` for registers.
fn generalized(line: &str) -> String {
    let is_result = |(name, _): &(&str, &str)| name.starts_with('%') && !name.contains(' ');
    let line = line
        .split_once(" = ")
        .filter(is_result)
        .map_or(line, |(_, rest)| rest);
    let mut parts = line.split('%');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = part.find(|c| !is_name(c)).unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        // Others are blocks and what PTX has names for.
        match name.ends_with(|c: char| c.is_ascii_digit()) {
            true => text += "..",
            false => text += &format!("%{name}"),
        }
        text += rest;
    }
    text
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
