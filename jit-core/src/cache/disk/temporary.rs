//! Folders of tests.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A place for a folder, which goes with this.
pub(super) struct TestFolder(pub(super) PathBuf);

impl TestFolder {
    /// A place where nothing is.
    pub(super) fn new() -> TestFolder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("kiln-disk-{}-{n}", std::process::id());
        TestFolder(std::env::temp_dir().join(name))
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        // What is left in the temporary folder harms nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
