//! Kiln compiled for notebooks, and the kernel that begins with it.

use std::fs::{self, File};
use std::path::Path;
use std::time::SystemTime;

use super::FOLDER;
use super::compiled;
use super::document::Outputs;
use super::evcxr::{self, Programs, build_folder, versions};
use super::kernel::{Kernel, data_of_user, folders};
use super::session::{Outcome, Session};
use crate::error::{Error, Result};
use crate::workspace::root;

/// What every notebook of the project begins with: it makes evcxr compile Kiln.
pub(super) const FIRST_CELL: &str =
    ":dep kiln = { package = \"kiln-notebook\", path = \".\" }\nuse kiln::prelude::*;";

/// Compiles Kiln for notebooks, makes the kernel one of the user's Jupyter, and says where it is.
///
/// # Errors
/// What notebooks need cannot be installed, or Kiln does not compile.
pub(crate) fn prepare() -> Result<()> {
    let programs = evcxr::setup()?;
    eprintln!("xtask: compiling Kiln for notebooks");
    compile(&programs)?;
    let file = Kernel::of_people(&programs.evcxr).describe(&data_of_user()?)?;
    println!("{}", file.display());
    Ok(())
}

/// Compiles Kiln for notebooks in the folder that those of kernels begin as copies of.
pub(super) fn compile(programs: &Programs) -> Result<()> {
    let folder = folders().join("prepared");
    fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
    // `kernel.sh` copies nothing while this is locked; the lock ends with the file handle.
    let path = folder.join("lock");
    let lock = File::create(&path).map_err(Error::io("create", &path))?;
    lock.lock().map_err(Error::io("lock", &path))?;

    let build = folder.join("build");
    let cells = build_folder(&build)?;
    let kernel = Kernel::in_folder(&programs.evcxr, &cells);
    let started = SystemTime::now();
    let mut session = Session::start(programs, &kernel, &root().join(FOLDER), "prepare")?;
    keeps_versions(&build)?;
    match session.run(FIRST_CELL) {
        Outcome::Ran(outputs) if outputs == Outputs::default() => keeps_versions(&build)?,
        outcome => {
            let found = format!("the first cell ends as {outcome:?}");
            return Err(Error::NotPrepared { found });
        }
    }
    let stamp = folder.join("stamp");
    if !compiled::since(started).is_empty() || !stamp.exists() {
        let now = format!("{:?}", SystemTime::now());
        fs::write(&stamp, now).map_err(Error::io("write", &stamp))?;
    }
    Ok(())
}

/// Holds that Kiln is compiled with the versions of crates of its workspace: others would be compiled at
/// some later start.
fn keeps_versions(folder: &Path) -> Result<()> {
    let (ours, theirs) = (versions(root())?, versions(folder)?);
    let others: Vec<&str> = theirs.difference(&ours).map(String::as_str).collect();
    let found = match (theirs.is_empty(), others.is_empty()) {
        (false, true) => return Ok(()),
        (true, _) => "cargo keeps no versions of what Kiln depends on".to_owned(),
        (false, false) => format!("cargo takes other versions: {}", others.join("; ")),
    };
    Err(Error::NotPrepared { found })
}
