//! Bugs to plant, as edits of the backend's source (`mutants.txt`), and a copy of the workspace that has
//! them all: which of them is planted is said by a variable of the environment.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The environment variable that says which bug a program with all of them has.
pub const PLANTED: &str = "KILN_PLANTED";

const TEXT: &str = include_str!("mutants.txt");

/// What is not copied: what git and cargo keep, and what is made of the sources.
const NO_SOURCES: [&str; 3] = [".git", "target", "bundle"];

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

    /// Adds the bug to the workspace in a folder.
    ///
    /// # Errors
    /// Lines that a file does not have, or more than once.
    fn plant(&self, root: &Path) -> Result<(), String> {
        let place = |file: &str| format!("{}: {file}", self.name);
        if self.edits.is_empty() {
            return Err(format!("{}: no file is changed", self.name));
        }
        for edit in &self.edits {
            let path = root.join(edit.file);
            let text =
                fs::read_to_string(&path).map_err(|e| format!("{}: {e}", place(edit.file)))?;
            let edited = edit.apply(&text, self.name);
            let edited = edited.map_err(|why| format!("{} {why}", place(edit.file)))?;
            fs::write(&path, edited).map_err(|e| format!("{}: {e}", place(edit.file)))?;
        }
        Ok(())
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
                "has these lines {found} times, and not once; say in `mutants.txt` what they are now\n{lines}"
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

/// The root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What says in a crate which bug is planted.
const ASKED: &str = "
mod planted {
    pub(crate) fn is(name: &str) -> bool {
        static PLANTED: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
        let planted = PLANTED.get_or_init(|| std::env::var(\"VARIABLE\").ok());
        planted.as_deref() == Some(name)
    }
}
";

/// Writes the workspace with these bugs to a folder. What was written before and is the same stays, so that
/// cargo knows it.
///
/// # Errors
/// A bug that has no place in the sources, and those of writing.
fn write(mutants: &[Mutant], to: &Path) -> Result<(), String> {
    let fresh = to.with_extension("fresh");
    let told = |error: std::io::Error| format!("{}: {error}", to.display());
    let _ = fs::remove_dir_all(&fresh);
    copy(&root(), &fresh).map_err(told)?;
    for mutant in mutants {
        mutant.plant(&fresh)?;
    }
    let files = mutants.iter().flat_map(|mutant| &mutant.edits);
    let crates = files.filter_map(|edit| edit.file.split_once("/src/"));
    for name in crates.map(|(name, _)| name).collect::<BTreeSet<_>>() {
        let library = fresh.join(name).join("src/lib.rs");
        let text = fs::read_to_string(&library).map_err(told)?;
        fs::write(&library, text + &ASKED.replace("VARIABLE", PLANTED)).map_err(told)?;
    }
    copy(&fresh, to).map_err(told)?;
    fs::remove_dir_all(&fresh).map_err(told)
}

/// Makes a folder hold the sources of another; a file that is the same keeps its time.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(to)? {
        let (entry, is_there) = (entry?, |name: &std::ffi::OsStr| from.join(name).exists());
        match (is_there(&entry.file_name()), entry.file_type()?.is_dir()) {
            (true, _) => {}
            (false, true) => fs::remove_dir_all(entry.path())?,
            (false, false) => fs::remove_file(entry.path())?,
        }
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        let to = to.join(&name);
        if kind.is_dir() && !NO_SOURCES.iter().any(|none| name == *none) {
            copy(&entry.path(), &to)?;
        } else if kind.is_file() {
            let bytes = fs::read(entry.path())?;
            if fs::read(&to).ok().as_ref() != Some(&bytes) {
                fs::write(&to, bytes)?;
            }
        }
    }
    Ok(())
}

/// Builds this crate's program with all of these bugs.
///
/// # Errors
/// As [`write`], and what cargo says.
pub fn build(mutants: &[Mutant]) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("planted");
    let (source, target) = (folder.join("source"), folder.join("target"));
    write(mutants, &source)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(&source);
    command.args(["build", "--offline", "--locked", "--quiet"]);
    command.args(["--package", "kiln-random", "--bin", "fuzz-kernels"]);
    // Nobody looks into it with a debugger.
    command.args(["--config", "profile.dev.debug=false", "--target-dir"]);
    command.arg(&target).env("CARGO_INCREMENTAL", "0");
    match command.status() {
        Ok(status) if status.success() => Ok(target.join("debug/fuzz-kernels")),
        Ok(status) => Err(format!("the backend with bugs does not compile: {status}")),
        Err(error) => Err(format!("cargo: {error}")),
    }
}
