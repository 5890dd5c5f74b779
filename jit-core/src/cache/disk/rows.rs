//! The rows of intrinsics that code names, among those of the program.
//!
//! A program has no list of its rows: a kernel has those that it names, and a row that means a function of the IR
//! brings those of the function. Most code calls none, or some of the first kind, so functions are
//! written out only where a row is looked for that is not of the first.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use kiln_compiler::definition::{Body, Snapshot};
use kiln_compiler::hook::HookSet;
use kiln_compiler::ir::{IntrinsicDef, Meaning, Module, Scalar};

type Row = &'static IntrinsicDef;

/// The rows of a kernel, of its hooks, and of the functions that these rows mean.
pub(crate) struct KernelRows(RefCell<Found>);

struct Found {
    rows: Vec<Row>,
    /// How many of them have given the rows of their functions.
    written_out: usize,
}

impl KernelRows {
    pub(crate) fn of(snapshot: &Snapshot, hooks: &HookSet) -> KernelRows {
        let modules = snapshot.bodies.iter().map(|(_, body)| &body.module);
        let rows = modules.flat_map(|module| module.intrinsics.values().copied());
        let put_in = hooks.iter().flat_map(|hook| hook.rows().iter().copied());
        KernelRows(RefCell::new(Found {
            rows: rows.chain(put_in).collect(),
            written_out: 0,
        }))
    }

    /// The row of a name and a digest.
    pub(crate) fn find(&self, name: &str, digest: &[u8; 32]) -> Option<Row> {
        let Found { rows, written_out } = &mut *self.0.borrow_mut();
        let is = |row: &Row| row.name == name && row.digest() == *digest;
        let mut looked_at = 0;
        loop {
            if let Some(row) = rows[looked_at..].iter().find(|row| is(row)) {
                return Some(row);
            }
            looked_at = rows.len();
            let row = rows.get(*written_out)?;
            *written_out += 1;
            for new in of_body(row) {
                if !rows.iter().any(|known| std::ptr::eq(*known, new)) {
                    rows.push(new);
                }
            }
        }
    }
}

/// What the functions are that rows of a kernel mean, of those that are not Kiln's own: a row's key has its version and
/// its place, and neither changes with the function. `None` if one cannot be told.
pub(crate) fn own_functions(snapshot: &Snapshot) -> Option<String> {
    let modules = snapshot.bodies.iter().map(|(_, body)| &body.module);
    let mut rows: Vec<Row> = modules
        .flat_map(|module| module.intrinsics.values().copied())
        .collect();
    let mut text = String::new();
    let mut next = 0;
    while let Some(&row) = rows.get(next) {
        next += 1;
        if is_of_kiln(row.place.file(), file!()) {
            continue;
        }
        for module in bodies(row)? {
            for &new in module.intrinsics.values() {
                if !rows.iter().any(|known| std::ptr::eq(*known, new)) {
                    rows.push(new);
                }
            }
            let function = module.functions.keys().next()?;
            let content = Body::new(module, function, Vec::new()).fingerprint;
            text.push_str(&format!("{} {content}\n", row.name));
        }
    }
    Some(text)
}

/// Whether a row is written in Kiln's library, which is part of its build. `this` is where this file lies, from which
/// the library does: beside it in a checkout, in a folder with its version where both are from a registry.
fn is_of_kiln(file: &str, this: &str) -> bool {
    let Some(crate_folder) = this.strip_suffix("/src/cache/disk/rows.rs") else {
        return false;
    };
    let (root, name) = crate_folder.rsplit_once('/').unwrap_or(("", crate_folder));
    let library = match name {
        "jit-core" => "device-stdlib/src/",
        _ => "kiln-device-stdlib-",
    };
    let below = file.strip_prefix(root).unwrap_or_default();
    below.trim_start_matches('/').starts_with(library)
}

/// The rows of the functions that a row means.
fn of_body(row: &IntrinsicDef) -> Vec<Row> {
    let modules = bodies(row).unwrap_or_default().into_iter();
    let rows = modules.flat_map(|module| module.intrinsics.values().copied().collect::<Vec<_>>());
    rows.collect()
}

/// The functions that a row means, for all types; `None` if it panics at one.
fn bodies(row: &IntrinsicDef) -> Option<Vec<Module>> {
    let Meaning::Body(body) = row.meaning else {
        return Some(Vec::new());
    };
    let all = || Scalar::ALL.iter().filter_map(|scalar| body(*scalar));
    catch_unwind(AssertUnwindSafe(|| all().collect())).ok()
}

#[cfg(test)]
mod tests {
    use super::is_of_kiln;

    #[test]
    fn the_library_lies_beside_this_crate() {
        let here = "jit-core/src/cache/disk/rows.rs";
        assert!(is_of_kiln("device-stdlib/src/math/rows.rs", here));
        assert!(!is_of_kiln("tests/suite/rows.rs", here));
        assert!(!is_of_kiln("src/main.rs", here));
        assert!(!is_of_kiln("hooks/src/x.rs", here));
        let checkout = "/c/kiln-1/2/jit-core/src/cache/disk/rows.rs";
        assert!(is_of_kiln(
            "/c/kiln-1/2/device-stdlib/src/bits.rs",
            checkout
        ));
        assert!(!is_of_kiln("src/device-stdlib/src/bits.rs", checkout));
        let registry = "/r/index/kiln-jit-core-0.1.0/src/cache/disk/rows.rs";
        assert!(is_of_kiln(
            "/r/index/kiln-device-stdlib-0.1.2/src/bits.rs",
            registry
        ));
        assert!(!is_of_kiln("/r/index/other-0.1.0/src/bits.rs", registry));
        assert!(!is_of_kiln("device-stdlib/src/bits.rs", "elsewhere.rs"));
    }
}
