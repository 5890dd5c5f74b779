//! Which crates were compiled for cells: what cargo says of it evcxr passes on only in part, so the files
//! are looked at.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::SystemTime;

use super::Problem;
use super::kernel::folders;
use crate::wheels::entries;

/// The crates of which cargo has written a library since a time, in any folder of a kernel, without the
/// cells themselves.
pub(super) fn since(time: SystemTime) -> Vec<String> {
    let kernels = entries(&folders()).map(|folder| folder.join("build/cells/target"));
    let crates: BTreeSet<String> = kernels.flat_map(|target| below(&target, time)).collect();
    crates.into_iter().collect()
}

/// The same as a problem.
pub(super) fn problem_since(time: SystemTime, when: &'static str) -> Option<Problem> {
    let crates = since(time);
    (!crates.is_empty()).then_some(Problem::Compiled { when, crates })
}

/// [`since`] in one target folder, where crates of the host lie beside folders of others.
fn below(target: &Path, time: SystemTime) -> Vec<String> {
    let profiles = entries(target).chain([target.to_owned()]);
    let files = profiles.flat_map(|folder| entries(&folder.join("debug/deps")));
    let new = files.filter(|file| {
        let written = file.metadata().and_then(|data| data.modified());
        written.is_ok_and(|written| written >= time)
    });
    new.filter_map(|file| crate_of(&file)).collect()
}

/// The crate that a library is of; `None` for other files and for cells (`ctx`, later `code_N`).
fn crate_of(file: &Path) -> Option<String> {
    let (name, kind) = file.file_name()?.to_str()?.rsplit_once('.')?;
    let name = name.strip_prefix("lib")?;
    let is_cell = name == "ctx" || name.starts_with("ctx-") || name.starts_with("code_");
    if is_cell || !["rlib", "rmeta", "so"].contains(&kind) {
        return None;
    }
    Some(
        name.rsplit_once('-')
            .map_or(name, |(name, _)| name)
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::Duration;

    use super::*;

    #[test]
    fn libraries_are_told_from_cells_and_by_their_time() {
        let target = std::env::temp_dir().join(format!("kiln-xtask-deps-{}", std::process::id()));
        let old = SystemTime::now() - Duration::from_secs(1000);
        for (file, time) in [
            ("debug/deps/libsyn-0a1b.rmeta", SystemTime::now()),
            (
                "x86_64/debug/deps/libkiln_jit_core-0a1b.rlib",
                SystemTime::now(),
            ),
            ("x86_64/debug/deps/libkiln_notebook.so", SystemTime::now()),
            ("x86_64/debug/deps/libhalf-0a1b.rlib", old),
            ("x86_64/debug/deps/libctx.so", SystemTime::now()),
            ("x86_64/debug/deps/libcode_3.so", SystemTime::now()),
            ("x86_64/debug/deps/kiln-0a1b.d", SystemTime::now()),
        ] {
            let file = target.join(file);
            fs::create_dir_all(file.parent().expect("it has one")).expect("a temporary folder");
            let file = File::create(&file).expect("a temporary file");
            file.set_modified(time).expect("it is ours");
        }
        let found: BTreeSet<String> = below(&target, old + Duration::from_secs(1))
            .into_iter()
            .collect();
        fs::remove_dir_all(&target).expect("it was made above");
        let expected = ["kiln_jit_core", "kiln_notebook", "syn"];
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
    }
}
