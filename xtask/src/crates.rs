//! Programs of others that cargo builds once from their crates: mdBook, evcxr.
//!
//! Each is a pinned version, built by its own lock file, kept beside NVIDIA's tools in a folder with
//! its version in the name. They are built on each new machine, so none is optimized further than what
//! it is asked to do is worth.

use std::fs::{self, File};
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::wheels::remove;
use crate::workspace::{cargo, run, tools_folder};

/// A program to install.
pub(crate) struct Program {
    /// The crate it is in.
    pub(crate) package: &'static str,
    /// The version of the crate.
    pub(crate) version: &'static str,
    /// Its file name.
    pub(crate) name: &'static str,
    /// The features that it is built with; those that it has by default are left out.
    pub(crate) features: &'static [&'static str],
    /// What building it costs, for whoever waits.
    pub(crate) takes: &'static str,
    /// What of cargo's configuration is not that of a development build.
    pub(crate) config: &'static [&'static str],
    /// What to do where it cannot be built.
    pub(crate) help: &'static str,
}

impl Program {
    /// Builds it unless it is there, and says where it is.
    ///
    /// # Errors
    /// There is no network, or the build fails.
    pub(crate) fn install(&self) -> Result<PathBuf> {
        let Program { name, version, .. } = self;
        let folder = tools_folder().join(self.folder());
        let program = folder.join("bin").join(name);
        fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        // Two commands at once would install into the same folder; the lock ends with the file handle.
        let path = folder.join("lock");
        let lock = File::create(&path).map_err(Error::io("create", &path))?;
        lock.lock().map_err(Error::io("lock", &path))?;
        if program.is_file() {
            return Ok(program);
        }
        eprintln!(
            "xtask: building {name} {version} under {}, once; this takes {}",
            folder.display(),
            self.takes
        );
        let build = folder.join("build");
        let mut command = cargo();
        // Without what they have by default they need fewer dependencies.
        command
            .args(["install", "--locked", "--no-default-features"])
            .args(["--features", &self.features.join(",")])
            .args(["--profile", "dev", "--config", "profile.dev.debug=false"])
            .args(self.config.iter().flat_map(|line| ["--config", line]))
            .arg("--root")
            .arg(&folder)
            .arg("--target-dir")
            .arg(&build)
            .arg(format!("{}@{version}", self.package));
        run(&mut command, &format!("installing {name}"), self.help)?;
        remove(&build)?;
        match program.is_file() {
            true => Ok(program),
            false => Err(Error::MissingFile { file: name, folder }),
        }
    }

    /// The name of its folder, which says all that it is built of.
    fn folder(&self) -> String {
        let Program { name, version, .. } = self;
        let parts = [&[*name, *version], self.features].concat();
        parts.join("-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_features_are_another_program() {
        let plain = Program {
            package: "mdbook",
            version: "0.5.4",
            name: "mdbook",
            features: &[],
            takes: "a minute",
            config: &[],
            help: "",
        };
        assert_eq!(plain.folder(), "mdbook-0.5.4");
        let features = &["search"];
        assert_eq!(
            Program { features, ..plain }.folder(),
            "mdbook-0.5.4-search"
        );
    }
}
