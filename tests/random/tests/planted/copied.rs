//! A copy of the workspace that has all bugs: which of them is planted is said by a variable of the
//! environment. What other people's crates became for this test serves the copy, too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::mutants::{self, Mutant};

/// The environment variable that says which bug a program with all of them has.
pub(super) const PLANTED: &str = "KILN_PLANTED";

/// What is not copied: what git and cargo keep, and what is made of the sources.
const NO_SOURCES: [&str; 3] = [".git", "target", "bundle"];

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
    let told = |error: io::Error| format!("{}: {error}", to.display());
    let _ = fs::remove_dir_all(&fresh);
    copy(&root(), &fresh).map_err(told)?;
    let changed = mutants::plant(mutants, |path| fs::read_to_string(fresh.join(path)))?;
    for (path, text) in &changed {
        fs::write(fresh.join(path), text).map_err(told)?;
    }
    let crates = changed.keys().filter_map(|path| path.split_once("/src/"));
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

/// A package of `Cargo.lock`.
#[derive(Default)]
struct Package<'a> {
    /// Whether it comes from elsewhere.
    is_foreign: bool,
    needs: Vec<&'a str>,
}

/// The packages that one needs, with itself, by their names.
fn closure<'a>(lock: &'a str, of: &'a str) -> BTreeMap<&'a str, Package<'a>> {
    let mut all: BTreeMap<&str, Package<'_>> = BTreeMap::new();
    for section in lock.split("[[package]]").skip(1) {
        let field = |line: &'a str, key: &str| line.strip_prefix(key)?.split('"').nth(1);
        let Some(name) = section.lines().find_map(|line| field(line, "name = ")) else {
            continue;
        };
        // Of a package of several versions the needs of all.
        let package = all.entry(name).or_default();
        package.is_foreign |= section.contains("\nsource = ");
        let needed = section.lines().filter_map(|line| field(line, " "));
        package
            .needs
            .extend(needed.filter_map(|line| line.split(' ').next()));
    }
    let mut found = BTreeMap::new();
    let mut open = vec![of];
    while let Some(name) = open.pop() {
        if let Some(package) = all.remove(name) {
            open.extend(&package.needs);
            found.insert(name, package);
        }
    }
    found
}

/// Gives the copy what cargo made of foreign packages where it built this test. Cargo knows them by their
/// names, versions, features and profile, and builds what does not fit.
fn share(packages: &BTreeMap<&str, Package<'_>>, from: &Path, to: &Path) -> io::Result<()> {
    let made = names(&from.join("deps"))?;
    let ends = |file: &str, endings: &[&str]| endings.iter().any(|ending| file.ends_with(ending));
    let whole = made.iter().filter(|file| ends(file, &[".rlib", ".so"]));
    let whole: BTreeSet<&str> = whole.map(|file| hash_of(file)).collect();
    let only_checked = made.iter().filter(|file| ends(file, &[".rmeta"]));
    let only_checked = only_checked.map(|file| hash_of(file));
    let only_checked: BTreeSet<&str> = only_checked.filter(|hash| !whole.contains(hash)).collect();
    let is_shared = |unit: &String| {
        let name = unit.rsplit_once('-').map(|(name, _)| name);
        let package = name.and_then(|name| packages.get(name));
        package.is_some_and(|package| package.is_foreign) && !only_checked.contains(hash_of(unit))
    };
    // What cargo knows of a unit comes last: if this is ended, it knows of nothing that is not whole.
    let mut known = names(&from.join(".fingerprint"))?;
    known.retain(is_shared);
    let hashes: BTreeSet<&str> = known.iter().map(|unit| hash_of(unit)).collect();
    for (folder, units) in [("deps", &made), ("build", &names(&from.join("build"))?)] {
        for unit in units.iter().filter(|unit| hashes.contains(hash_of(unit))) {
            keep_times(&from.join(folder).join(unit), &to.join(folder).join(unit))?;
        }
    }
    let (from, to) = (from.join(".fingerprint"), to.join(".fingerprint"));
    known
        .iter()
        .try_for_each(|unit| keep_times(&from.join(unit), &to.join(unit)))
}

/// By what cargo tells units of one name apart: `0f` of `libhalf-0f.rlib`.
fn hash_of(unit: &str) -> &str {
    let stem = unit.split('.').next().unwrap_or_default();
    stem.rsplit_once('-').map_or("", |(_, hash)| hash)
}

/// The names in a folder.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(folder)?;
    entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}

/// Copies a file or a folder, unless it is there. By their times cargo knows what is older than what it was
/// made of.
fn keep_times(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        let inside = names(from)?;
        return inside
            .iter()
            .try_for_each(|name| keep_times(&from.join(name), &to.join(name)));
    }
    if !to.exists() {
        fs::create_dir_all(to.parent().unwrap_or(to))?;
        let part = to.with_extension("part");
        fs::copy(from, &part)?;
        let modified = fs::metadata(from)?.modified()?;
        let copied = fs::File::options().append(true).open(&part)?;
        copied.set_modified(modified)?;
        fs::rename(part, to)?;
    }
    Ok(())
}

/// The folder of this test's profile in cargo's target folder, if the test lies in it.
fn profile_folder() -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    Some(test.parent()?.parent()?.to_owned())
}

/// Builds this crate's program with all of these bugs.
///
/// # Errors
/// As [`write`], and what cargo says.
pub(super) fn build(mutants: &[Mutant]) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("planted");
    let (source, target) = (folder.join("source"), folder.join("target"));
    write(mutants, &source)?;
    let lock = fs::read_to_string(source.join("Cargo.lock")).map_err(|e| e.to_string())?;
    let packages = closure(&lock, "kiln-random");
    if let Some(made) = profile_folder()
        && let Err(error) = share(&packages, &made, &target.join("debug"))
    {
        println!("everything is compiled anew: {error}");
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(&source);
    command.args(["build", "--offline", "--locked", "--quiet"]);
    // With the features that all of the workspace asks for, as its tests are built: with others a library is
    // another.
    command.args(["--workspace", "--bin", "fuzz-kernels"]);
    // Nobody looks into it with a debugger. What is shared is built as everywhere.
    let ours = packages.iter().filter(|(_, package)| !package.is_foreign);
    for (name, _) in ours {
        let quick = format!("profile.dev.package.{name}.debug=false");
        command.args(["--config", &quick]);
    }
    command.arg("--target-dir").arg(&target);
    command.env("CARGO_INCREMENTAL", "0");
    match command.status() {
        Ok(status) if status.success() => Ok(target.join("debug/fuzz-kernels")),
        Ok(status) => Err(format!("the backend with bugs does not compile: {status}")),
        Err(error) => Err(format!("cargo: {error}")),
    }
}
