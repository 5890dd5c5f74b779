//! The folder where the system does not say whose a file is in a way that Kiln knows: there is none.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

pub(super) const LOCK: &str = "lock";

/// No value of it is ever made.
#[derive(Debug)]
pub(super) enum Folder {}

impl Folder {
    /// # Errors
    /// Always.
    pub(super) fn open(_path: &Path, _max_bytes: u64) -> Result<Folder, String> {
        Err("compiled kernels are kept on disk on Unix alone".to_owned())
    }

    /// # Errors
    /// Always.
    pub(super) fn open_to_ship(path: &Path) -> Result<Folder, String> {
        Folder::open(path, 0)
    }

    /// # Errors
    /// Always.
    pub(super) fn open_shipped(path: &Path) -> Result<Folder, String> {
        Folder::open(path, 0)
    }

    pub(super) fn path(&self) -> &Path {
        match *self {}
    }

    pub(super) fn file(&self, _name: &str, _ending: &str) -> PathBuf {
        match *self {}
    }

    pub(super) fn read(&self, _name: &str) -> Result<Option<Vec<u8>>, String> {
        match *self {}
    }

    pub(super) fn write(&self, _name: &str, _bytes: &[u8]) -> Result<(), String> {
        match *self {}
    }
}

pub(super) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.write(true)
}
