//! Numbers of calls in PTX, counted from the text's first.
//!
//! LLVM's code generator counts the calls that a target machine has ever written, in a comment at each and in the name of
//! the prototype of one through an address. A machine serves one compile after another, and the text of a kernel is the same
//! whatever was compiled before it.

/// What such a number stands behind.
const BEFORE: [&str; 2] = ["// callseq ", "prototype_"];

/// The text with numbers that begin at 0.
pub(super) fn from_zero(ptx: String) -> String {
    let mut found: Vec<(usize, usize, u64)> = Vec::new();
    for word in BEFORE {
        found.extend(
            ptx.match_indices(word)
                .filter_map(|(at, _)| number(&ptx, at, word)),
        );
    }
    let Some(first) = found
        .iter()
        .map(|(.., number)| *number)
        .min()
        .filter(|first| *first > 0)
    else {
        return ptx;
    };
    found.sort_unstable();
    let (mut text, mut done) = (String::with_capacity(ptx.len()), 0);
    for (start, end, number) in found {
        text.push_str(&ptx[done..start]);
        text.push_str(&(number - first).to_string());
        done = end;
    }
    text.push_str(&ptx[done..]);
    text
}

/// The number behind a word that is there: where it begins and ends. Of an identifier that the word is only a part of, there is
/// none.
fn number(ptx: &str, at: usize, word: &str) -> Option<(usize, usize, u64)> {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%');
    let start = at + word.len();
    let rest = &ptx[start..];
    let digits = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    if ptx[..at].ends_with(is_inside) || rest[digits..].starts_with(is_inside) {
        return None;
    }
    Some((start, start + digits, rest[..digits].parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_begin_at_0_and_names_stay() {
        let text = |n: u64| {
            format!(
                "\t{{ // callseq {}, 0\n\tprototype_{n} : .callprototype ()_ ();\n\tcall %rd1, (), prototype_{n};\n\t}} \
                 // callseq {}\n.visible .entry prototype_7_a(\n\tmy_prototype_8\n",
                n + 1,
                n + 1
            )
        };
        assert_eq!(from_zero(text(41)), text(0));
        assert_eq!(from_zero(text(0)), text(0));
        assert_eq!(from_zero(String::new()), "");
    }
}
