//! Sentences of documentation that need another one to be understood.
//!
//! A reader meets the first sentence of a doc comment alone: in a list of search results, in a tool tip, in the
//! table of a module's items. One that begins with "It" or "The same" says there neither what it is about nor
//! what it is the same as.

/// First words that stand for something named before, or go on with a sentence before.
const BEGINNINGS: [&str; 14] = [
    "It", "Its", "They", "Their", "Them", "That", "Those", "These", "And", "But", "So", "Also",
    "Likewise", "See",
];

/// Words that ask for the subject, which is then a noun.
const QUESTIONS: [&str; 10] = [
    "Whether", "What", "How", "Where", "When", "Which", "Why", "Who", "As", "If",
];

/// Words in the place of that noun.
const PRONOUNS: [&str; 6] = ["it", "its", "they", "their", "that", "those"];

/// The lines, counted from 1, of doc comments whose first sentence begins so that it says nothing alone, with
/// that beginning.
pub(crate) fn fragments(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (line, text) in (1..).zip(text.lines()) {
        let sentence = text.trim_start().strip_prefix("///");
        let begins = sentence.filter(|_| !inside);
        inside = sentence.is_some();
        found.extend(begins.and_then(fragment).map(|start| (line, start)));
    }
    found
}

/// The beginning of a sentence that names nothing.
fn fragment(sentence: &str) -> Option<String> {
    let mut words = sentence.split_whitespace();
    let (first, second) = (words.next()?, words.next().unwrap_or_default());
    const ENDS: [char; 4] = ['.', ':', ',', ';'];
    let is_whole = first.ends_with(ENDS);
    let (first, second) = (first.trim_end_matches(ENDS), second.trim_end_matches(ENDS));
    if BEGINNINGS.contains(&first) || QUESTIONS.contains(&first) && is_whole {
        return Some(first.to_owned());
    }
    let names_nothing = QUESTIONS.contains(&first) && PRONOUNS.contains(&second)
        || first == "The" && second == "same";
    names_nothing.then(|| format!("{first} {second}"))
}
