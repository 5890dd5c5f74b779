//! Just enough of Rust's lexical structure to tell code from comments and literals.
//!
//! The rules of `tidy.rs` look for words such as `unsafe`, which may also stand in a comment or in a
//! string. Following the Rust reference, "Lexical structure": comments nest, raw strings end with as
//! many `#` as they begin with, and a quote that begins a lifetime begins no character.

/// The text with everything inside comments, strings and characters replaced by spaces. Line breaks
/// stay, so that lines keep their numbers.
pub(crate) fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    let mut after_word = false;
    while let Some(first) = rest.chars().next() {
        // In `br"x"` the prefix is part of the literal; in `other"x"` it ends a word.
        let length = literal(rest, !after_word);
        let (part, code_part) = match length {
            Some(length) => (&rest[..length], false),
            None => (&rest[..first.len_utf8()], true),
        };
        match code_part {
            true => code.push_str(part),
            false => code.extend(part.chars().map(|c| if c == '\n' { '\n' } else { ' ' })),
        }
        after_word = code_part && (first.is_alphanumeric() || first == '_');
        rest = &rest[part.len()..];
    }
    code
}

/// The bytes of the comment or literal at the start of the text, if there is one.
fn literal(text: &str, prefixes: bool) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(block_comment(text));
    }
    if text.starts_with('\'') {
        return character(text);
    }
    if text.starts_with('"') {
        return Some(string(text));
    }
    if !prefixes {
        return None;
    }
    let prefix = ["br", "cr", "r", "b", "c"].into_iter().find(|p| {
        let after = text
            .strip_prefix(p)
            .map(|rest| rest.trim_start_matches('#'));
        after.is_some_and(|rest| rest.starts_with('"'))
    })?;
    let body = &text[prefix.len()..];
    match prefix.ends_with('r') {
        true => raw_string(body).map(|length| prefix.len() + length),
        false if body.starts_with('"') => Some(prefix.len() + string(body)),
        false => None,
    }
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let step = match &text.as_bytes()[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                2
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                2
            }
            _ => 1,
        };
        at += step;
        if depth == 0 {
            break;
        }
    }
    at
}

fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn raw_string(text: &str) -> Option<usize> {
    let hashes = text.len() - text.trim_start_matches('#').len();
    let inside = text[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = inside.find(&end).map_or(inside.len(), |at| at + end.len());
    Some(hashes + 1 + length)
}

/// A character literal: one character or an escape between quotes. Otherwise it is a lifetime.
fn character(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().skip(1);
    match chars.next()? {
        (_, '\\') => {
            chars.next();
            text.get(3..)?.find('\'').map(|at| at + 4)
        }
        (at, c) => {
            let end = at + c.len_utf8();
            text[end..].starts_with('\'').then_some(end + 1)
        }
    }
}

/// The words of code, each with its line, counted from 1.
pub(crate) fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.lines().enumerate().flat_map(|(number, line)| {
        let words = line.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        words
            .filter(|word| !word.is_empty())
            .map(move |word| (number + 1, word))
    })
}

/// The number of lines before the file's own module of tests.
pub(crate) fn lines_before_tests(code: &str) -> usize {
    let lines: Vec<&str> = code.lines().collect();
    let tests = lines.windows(2).position(|pair| {
        pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{')
    });
    tests.unwrap_or(lines.len())
}

/// What stays of the text, its spaces removed.
#[cfg(test)]
#[track_caller]
fn check(text: &str, expected: &str) {
    let code = code_of(text);
    assert_eq!(
        code.matches('\n').count(),
        text.matches('\n').count(),
        "lines are kept"
    );
    let seen: String = code.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(seen, expected, "{text}");
}

#[test]
fn comments_and_literals_are_blanked() {
    check("a // b\nc", "a c");
    check("a /* b /* c */ d */ e", "a e");
    check("f(\"a \\\" // b\") + g", "f( ) + g");
    check("r#\"a \" b\"# x br\"c\\\" y b\"\\\"\" z", "x y z");
    check("'\\'' a 'b' c '\"' d", "a c d");
    check(
        "fn f<'a>(x: &'a str) -> '\\u{41}'",
        "fn f<'a>(x: &'a str) ->",
    );
    check("\"é\" 'é' x", "x");
    check("for x in r { r#match }", "for x in r { r#match }");
}
