//! Texts of errors have a length that can be read, whatever a user's types and kernels have.

use std::borrow::Cow;
use std::fmt;

/// How many errors are shown of many.
const SHOWN: usize = 20;
/// The most characters of a line of an error, and of a listing of the IR.
const LINE: usize = 600;
const LISTING: usize = 40_000;

/// A line with its middle left out if it is very long.
pub(crate) fn shortened(line: &str) -> Cow<'_, str> {
    let count = line.chars().count();
    if count <= LINE {
        return line.into();
    }
    let (start, end) = (LINE * 2 / 3, LINE / 3);
    let first: String = line.chars().take(start).collect();
    let last: String = line.chars().skip(count - end).collect();
    format!("{first} [.. {} characters ..] {last}", count - start - end).into()
}

/// The lines of a listing, each shortened, as far as they are not too many.
pub(crate) fn shortened_listing(listing: &str) -> String {
    let mut text = String::new();
    for line in listing.lines() {
        if text.len() > LISTING {
            text += "  ...\n";
            break;
        }
        text += &shortened(line);
        text.push('\n');
    }
    text
}

/// The first of many.
pub(crate) fn first_of<T>(errors: &[T]) -> &[T] {
    &errors[..errors.len().min(SHOWN)]
}

/// Says how many are not among the [`first_of`] many.
pub(crate) fn write_rest<T>(f: &mut fmt::Formatter<'_>, errors: &[T]) -> fmt::Result {
    match errors.len().saturating_sub(SHOWN) {
        0 => Ok(()),
        more => write!(f, "\n  and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_lines_are_shortened() {
        assert_eq!(shortened("a line"), "a line");
        let long = format!("start{}end", "\u{e4}".repeat(100_000));
        let short = shortened(&long);
        assert!(
            short.starts_with("start") && short.ends_with("end"),
            "{short}"
        );
        assert!(short.chars().count() < LINE + 40, "{short}");
        let listing = format!("{long}\n").repeat(10_000);
        assert!(shortened_listing(&listing).len() < 3 * LISTING);
    }
}
