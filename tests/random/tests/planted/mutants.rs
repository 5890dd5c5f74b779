//! Bugs to plant, as edits of the backend's source (`mutants.txt`).

use std::collections::BTreeMap;

const TEXT: &str = include_str!("mutants.txt");

/// Files by their paths from the root of the workspace.
pub type Sources = BTreeMap<&'static str, String>;

/// A bug.
pub struct Mutant {
    /// Its name.
    pub name: &'static str,
    edits: Vec<Edit>,
}

/// Lines of a file, and what is in their place.
struct Edit {
    file: &'static str,
    from: Vec<&'static str>,
    to: Vec<&'static str>,
}

/// All of them.
pub fn all() -> Vec<Mutant> {
    let sections = TEXT.split("\n== ").skip(1);
    sections.map(Mutant::read).collect()
}

impl Mutant {
    fn read(section: &'static str) -> Mutant {
        let mut lines = section.lines();
        let name = lines.next().unwrap_or_default();
        let mut edits: Vec<Edit> = Vec::new();
        for line in lines {
            if let Some(file) = line.strip_prefix("in ") {
                edits.push(Edit {
                    file,
                    from: Vec::new(),
                    to: Vec::new(),
                });
            } else if let Some(edit) = edits.last_mut() {
                match line.split_at_checked(1) {
                    Some(("-", line)) => edit.from.push(line),
                    Some(("+", line)) => edit.to.push(line),
                    _ => {}
                }
            }
        }
        Mutant { name, edits }
    }

    /// Adds the bug to the sources; what is not there yet is read.
    fn plant(
        &self,
        sources: &mut Sources,
        read: impl Fn(&str) -> std::io::Result<String>,
    ) -> Result<(), String> {
        if self.edits.is_empty() {
            return Err(format!("{}: no file is changed", self.name));
        }
        for edit in &self.edits {
            let place = format!("{}: {}", self.name, edit.file);
            let text = match sources.remove(edit.file) {
                Some(text) => text,
                None => read(edit.file).map_err(|error| format!("{place}: {error}"))?,
            };
            let edited = edit.apply(&text, self.name);
            let edited = edited.map_err(|why| format!("{place} {why}"))?;
            sources.insert(edit.file, edited);
        }
        Ok(())
    }
}

/// The files that these bugs change, with all of the bugs in them, one after the other; `read` gives a file
/// as it is, by its path from the root of the workspace.
///
/// # Errors
/// Each bug that has no place in its files, or several.
pub fn plant(
    mutants: &[Mutant],
    read: impl Fn(&str) -> std::io::Result<String>,
) -> Result<Sources, String> {
    let mut sources = Sources::new();
    let planted = mutants
        .iter()
        .map(|mutant| mutant.plant(&mut sources, &read));
    let wrong: Vec<String> = planted.filter_map(Result::err).collect();
    match wrong.is_empty() {
        true => Ok(sources),
        false => Err(wrong.join("\n")),
    }
}

impl Edit {
    fn apply(&self, text: &str, name: &str) -> Result<String, String> {
        let lines: Vec<&str> = text.lines().collect();
        let from: Vec<&str> = self.from.iter().map(|line| line.trim()).collect();
        let is_here = |window: &[&str]| {
            window
                .iter()
                .map(|line| line.trim())
                .eq(from.iter().copied())
        };
        let windows = lines.windows(from.len().max(1)).enumerate();
        let places: Vec<usize> = windows
            .filter(|(_, w)| is_here(w))
            .map(|(at, _)| at)
            .collect();
        let [at] = places[..] else {
            let (found, lines) = (places.len(), from.join("\n"));
            return Err(format!(
                "has these lines {found} times, and not once; say in `tests/random/tests/planted/mutants.txt` what \
                 they are now\n{lines}"
            ));
        };
        let asks = format!("crate::planted::is(\"{name}\")");
        let to = self.to.iter().map(|line| line.replace("planted!()", &asks));
        let before = lines[..at].iter().map(|line| (*line).to_owned());
        let behind = lines[at + from.len()..]
            .iter()
            .map(|line| (*line).to_owned());
        Ok(before
            .chain(to)
            .chain(behind)
            .collect::<Vec<_>>()
            .join("\n")
            + "\n")
    }
}
