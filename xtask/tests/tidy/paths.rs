//! The paths that a document names: what stands in backquotes or after `](` and looks like one.

/// Endings by which a word without a folder is a file.
const ENDINGS: [&str; 9] = [
    ".rs", ".md", ".toml", ".sh", ".txt", ".ipynb", ".kir", ".ptx", ".json",
];

/// Crates inside a folder; a short path begins with the name of one.
const INSIDE: (&str, [&str; 7]) = (
    "jit-core",
    [
        "ir",
        "interp",
        "codegen",
        "compiler",
        "runtime",
        "description",
        "kernel-macro",
    ],
);

/// What is made where Kiln is built, and by nobody kept.
const MADE: [&str; 2] = ["target/", "bundle/"];

/// A path as a document names it.
struct Named<'a> {
    line: usize,
    path: &'a str,
    /// What the row of the code map is about in which it stands.
    place: Option<&'a str>,
}

/// The lines of a document that name a path which none of the files has, each with that path.
pub(crate) fn missing(document: &str, files: &[String]) -> Vec<(usize, String)> {
    let is_made = |path: &str| MADE.iter().any(|made| path.starts_with(made));
    let mut missing = Vec::new();
    for Named { line, path, place } in named(document) {
        let places = place.map_or(Vec::new(), expanded);
        for path in expanded(path) {
            let beside = places.iter().any(|place| is_beside(&path, place, files));
            if !is_made(&path) && !beside && !exists(&path, files) {
                missing.push((line, path));
            }
        }
    }
    missing
}

/// The paths that a document names.
fn named(document: &str) -> Vec<Named<'_>> {
    let (mut found, mut fenced, mut is_map) = (Vec::new(), false, false);
    for (line, text) in (1..).zip(document.lines()) {
        is_map = text.starts_with("| place ") || is_map && text.starts_with('|');
        if text.starts_with("```") {
            fenced = !fenced;
        } else if fenced {
            found.extend(drawn(text).map(|path| (line, path, None)));
        } else {
            let column = text.split(" | ").next().filter(|_| is_map);
            let place = column.and_then(|column| column.split('`').nth(1));
            // The first column of the map has places alone, be they single words.
            let places = column.into_iter().flat_map(quoted);
            let paths = quoted(text).filter(|word| is_path(word));
            let all = places.chain(paths).chain(links(text));
            found.extend(all.map(|path| (line, path, place)));
        }
    }
    found.dedup();
    let named = found.into_iter();
    named
        .map(|(line, path, place)| Named { line, path, place })
        .collect()
}

/// What stands in backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The files that links lead to.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1);
    let targets = targets.filter_map(|link| link.split([')', '#']).next());
    targets.filter(|target| !target.is_empty() && !target.contains("://"))
}

/// The paths of a line of a picture, which may have commas behind them.
fn drawn(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split_whitespace();
    let words = words.map(|word| word.trim_end_matches(','));
    words.filter(|word| is_path(word) && word.contains('/'))
}

/// Whether a word is a path: with a folder, or with an ending.
fn is_path(word: &str) -> bool {
    let of_path = |c: char| c.is_ascii_alphanumeric() || "._-/{},*".contains(c);
    let has_ending = ENDINGS.iter().any(|ending| {
        word.strip_suffix(ending)
            .is_some_and(|name| !name.is_empty())
    });
    let is_name = |part: &str| part.is_empty() || part.contains(|c: char| c.is_ascii_alphabetic());
    let has_folder = word.contains('/') && word.split('/').all(is_name) && !word.contains("//");
    let begins = word.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.');
    begins && word.chars().all(of_path) && (has_folder || has_ending)
}

/// A path for each way of taking one of the words between braces.
fn expanded(path: &str) -> Vec<String> {
    let Some(open) = path.find('{') else {
        return vec![path.to_owned()];
    };
    let (mut depth, mut start, mut words) = (0, open + 1, Vec::new());
    for (at, c) in path.char_indices().skip(open) {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if depth == 1 && c == ',' || depth == 0 {
            words.push(&path[start..at]);
            start = at + 1;
        }
        if depth == 0 {
            let (before, behind) = (&path[..open], &path[at + 1..]);
            let whole = words.iter().map(|word| format!("{before}{word}{behind}"));
            return whole.flat_map(|path| expanded(&path)).collect();
        }
    }
    vec![path.to_owned()]
}

/// Whether a file or folder has this path, or the one that it is short for: a path begins at its crate and
/// leaves `src` out, one of no crate begins in `jit-core/src` or that of `compiler`, and a name alone is that of any file.
fn exists(path: &str, files: &[String]) -> bool {
    let path = path.trim_end_matches('/');
    let (outer, crates) = INSIDE;
    let mut long = vec![
        path.to_owned(),
        format!("{outer}/src/{path}"),
        format!("{outer}/compiler/src/{path}"),
    ];
    if let Some((name, rest)) = path.split_once('/') {
        let folder = match crates.contains(&name) {
            true => format!("{outer}/{name}"),
            false => name.to_owned(),
        };
        long.push(format!("{folder}/src/{rest}"));
    }
    let is_alone = !path.contains('/');
    files.iter().any(|file| {
        let has_name = is_alone && file.rsplit('/').next() == Some(path);
        has_name || long.iter().any(|long| is_at(file, long))
    })
}

/// Whether a path begins at a place: in its folder, or in that of a crate's sources.
fn is_beside(path: &str, place: &str, files: &[String]) -> bool {
    let path = path.trim_end_matches('/');
    let folder = match place.rsplit_once('/') {
        Some((folder, _)) if place.ends_with(".rs") => folder,
        _ => place,
    };
    let long = [format!("{folder}/{path}"), format!("{folder}/src/{path}")];
    let mut files = files.iter();
    files.any(|file| long.iter().any(|long| is_at(file, long)))
}

/// Whether a file has a path or lies in the folder of that path; a `*` at its end stands for any rest.
fn is_at(file: &str, path: &str) -> bool {
    match path.strip_suffix('*') {
        Some(start) => file.starts_with(start),
        None => file
            .strip_prefix(path)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
    }
}
