//! Texts of errors have a length that can be read, whatever a user's types and kernels have.

use std::borrow::Cow;
use std::fmt;

/// How many errors are shown of many.
const SHOWN: usize = 20;
/// The most characters of a line of an error, and of a listing of the IR.
const LINE: usize = 600;
const LISTING: usize = 40_000;
/// The most bytes of the text of an error.
pub const READABLE: usize = 16 << 10;

/// A line with its middle left out if it is very long.
pub fn shortened(line: &str) -> Cow<'_, str> {
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

/// The text of an error, with what is long left out of it if it is very long: first of its lines, then of
/// its middle, as an error begins with what is wrong and ends with what to do.
pub fn readable(text: String) -> String {
    if text.len() <= READABLE {
        return text;
    }
    let lines: Vec<_> = text.lines().map(shortened).collect();
    let text = lines.join("\n");
    if text.len() <= READABLE {
        return text;
    }
    let note = "\n  [.. lines left out ..]\n";
    let half = (READABLE - note.len()) / 2;
    let start = text.floor_char_boundary(half);
    let end = text.ceil_char_boundary(text.len() - half);
    format!("{}{note}{}", &text[..start], &text[end..])
}

/// What `format!` makes of its arguments, [`readable`]: the text of each error that names what a user
/// has named, or repeats what another program said.
#[macro_export]
macro_rules! error_text {
    ($($part:tt)*) => {
        $crate::readable(format!($($part)*))
    };
}

/// The `Debug` form of errors is their text, because it is what `main` and `unwrap` print.
#[macro_export]
macro_rules! debug_as_text {
    ($($error:ty),*) => {$(
        impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    )*};
}

/// The first of many.
pub fn first_of<T>(errors: &[T]) -> &[T] {
    &errors[..errors.len().min(SHOWN)]
}

/// Says how many are not among the [`first_of`] many.
pub fn write_rest<T>(f: &mut fmt::Formatter<'_>, errors: &[T]) -> fmt::Result {
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

    #[test]
    fn only_long_texts_are_shortened() {
        let line = "a line of an error\n".repeat(500);
        assert_eq!(readable(line.clone()), line);
        let name = format!(
            "kernel `{}` has no arguments: pass some",
            "\u{e4}".repeat(1 << 20)
        );
        let short = readable(name);
        assert!(short.starts_with("kernel `") && short.ends_with("pass some"));
        assert!(short.len() < 2 * LINE, "{} bytes", short.len());
        let lines = format!("first\n{}last", "\u{e4}\u{e4}\n".repeat(10_000));
        let short = readable(lines);
        assert!(short.starts_with("first") && short.ends_with("last"));
        assert!(short.len() <= READABLE, "{} bytes", short.len());
    }
}
