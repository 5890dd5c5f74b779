//! One process makes an entry while the others wait for it.
//!
//! A lock is held by an open file, so the system gives it up when its process ends, however that ends. It is
//! there to save work, and nothing that is right or wrong hangs on it: who cannot have it goes on without.
//! So does who has waited for long, as the one who holds it may be waiting, too, for what this process makes.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use super::folder::private;

/// How long a process waits for another.
const LONGEST: Duration = Duration::from_secs(20);

/// The lock of an entry, held until this is dropped.
pub(crate) struct EntryLock {
    path: PathBuf,
    file: File,
}

impl EntryLock {
    /// Waits for the lock. `None`: there is none to be had.
    pub(super) fn wait(path: PathBuf) -> Option<EntryLock> {
        EntryLock::wait_for(path, LONGEST)
    }

    fn wait_for(path: PathBuf, longest: Duration) -> Option<EntryLock> {
        let file = private(OpenOptions::new().create(true).truncate(false))
            .open(&path)
            .ok()?;
        let start = Instant::now();
        let mut pause = Duration::from_micros(200);
        loop {
            match file.try_lock() {
                Ok(()) => return Some(EntryLock { path, file }),
                Err(TryLockError::WouldBlock) if start.elapsed() < longest => {
                    thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(10));
                }
                Err(_) => return None,
            }
        }
    }
}

impl Drop for EntryLock {
    /// Whoever has the file open still waits for it, and finds the entry; who comes later makes another file.
    fn drop(&mut self) {
        // A folder that cannot be written to has had the file before.
        let _ = std::fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::disk::temporary::TestFolder;

    #[test]
    fn one_holds_it_and_the_other_waits_or_goes_on_without() {
        let place = TestFolder::new();
        std::fs::create_dir_all(&place.0).expect("there is room");
        let path = place.0.join("a.lock");
        let held = EntryLock::wait(path.clone()).expect("nobody has it");
        assert!(EntryLock::wait_for(path.clone(), Duration::from_millis(3)).is_none());
        let waiting = thread::spawn({
            let path = path.clone();
            move || EntryLock::wait(path).is_some()
        });
        thread::sleep(Duration::from_millis(5));
        drop(held);
        assert!(waiting.join().expect("no panic"));
        assert!(!path.exists());
        assert!(EntryLock::wait(place.0.join("nowhere/a.lock")).is_none());
    }
}
