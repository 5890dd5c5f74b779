//! How Jupyter starts evcxr: the description of a kernel, and the folders in which cells are compiled.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::error::{Error, Result};
use crate::workspace::{root, target_folder};

/// The name under which Jupyter knows the kernel.
pub(super) const NAME: &str = "kiln";

/// How a kernel is started.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    argv: Vec<String>,
    /// The folder in which it compiles cells, if what it is started with does not choose one.
    build: Option<PathBuf>,
}

impl Kernel {
    /// The kernel that people use: `notebook/kernel.sh` gives each process a folder of its own.
    pub(crate) fn of_people(evcxr: &Path) -> Kernel {
        let script = root().join("notebook/kernel.sh");
        let parts = ["sh".into(), script, evcxr.to_owned(), folders()];
        let parts = parts.iter().map(|part| part.display().to_string());
        Kernel {
            argv: parts.chain(["{connection_file}".to_owned()]).collect(),
            build: None,
        }
    }

    /// evcxr as it is, compiling cells in this folder.
    pub(crate) fn in_folder(evcxr: &Path, build: &Path) -> Kernel {
        let parts = [
            &evcxr.display().to_string(),
            "--control_file",
            "{connection_file}",
        ];
        Kernel {
            argv: parts.map(str::to_owned).to_vec(),
            build: Some(build.to_owned()),
        }
    }

    /// Writes its description below a folder of Jupyter's data, and gives the file.
    pub(crate) fn describe(&self, data: &Path) -> Result<PathBuf> {
        let folder = data.join("kernels").join(NAME);
        fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        let env = match &self.build {
            Some(build) => json!({"EVCXR_TMPDIR": build}),
            None => json!({}),
        };
        let text = json!({
            "argv": self.argv, "display_name": "Rust with Kiln", "language": "rust",
            "interrupt_mode": "message", "env": env,
        });
        let file = folder.join("kernel.json");
        fs::write(&file, format!("{text:#}\n")).map_err(Error::io("write", &file))?;
        Ok(file)
    }
}

/// The folders in which cells are compiled: one for each kernel that runs at once, and `prepared`.
pub(crate) fn folders() -> PathBuf {
    target_folder().join("kiln-notebooks")
}

/// Where the user's Jupyter, of whatever environment, looks for kernels.
///
/// # Errors
/// [`Error::Usage`] if the user has no home folder.
pub(crate) fn data_of_user() -> Result<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let data = variable("JUPYTER_DATA_DIR").map(PathBuf::from);
    let shared = || variable("XDG_DATA_HOME").map(|data| PathBuf::from(data).join("jupyter"));
    let home = || variable("HOME").map(|home| PathBuf::from(home).join(".local/share/jupyter"));
    data.or_else(shared)
        .or_else(home)
        .ok_or_else(|| Error::Usage {
            message: "set JUPYTER_DATA_DIR to the folder where Jupyter looks for kernels"
                .to_owned(),
        })
}
