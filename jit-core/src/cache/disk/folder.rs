//! The folder: whose it is, and files in it that are read and written whole.
//!
//! Machine code from it runs in this process, so the folder and each file must be this user's or the
//! administrator's, and nobody else may write there. A file is written under a name that nobody else has, and
//! renamed when it is whole: a reader finds the old one, the new one or none. It is not forced to the disk; what a
//! failure of power leaves is not whole, which its digest tells.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use std::{fs, process};

/// The most bytes of a file that is read.
const MAX_FILE: u64 = 256 << 20;

/// By how much a file's time of use may be behind.
const STALE_USE: Duration = Duration::from_secs(3600);

/// How long the folder goes without being looked through, unless much is written.
const BETWEEN_SWEEPS: Duration = Duration::from_secs(3600);

/// How old what a process has left behind is that did not come to its end: longer than a compile takes.
const LEFT_BEHIND: Duration = Duration::from_secs(3600);

/// The name of the file whose time says when the folder was last looked through.
const SWEPT: &str = "swept";

/// How names end.
const ENTRY: &str = "kiln";
const TEMPORARY: &str = "tmp";
pub(super) const LOCK: &str = "lock";

/// What a folder is for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Purpose {
    /// This user's processes keep code there, and nobody else reads it.
    Keep,
    /// Code is put there that goes along with a program: whoever runs that reads it, and all of it stays.
    Ship,
    /// A folder that came with the program, and nothing is changed there.
    Shipped,
}

/// A folder of code.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// Whose files are read, beside the administrator's.
    owners: [u32; 2],
    purpose: Purpose,
    /// The most bytes of all entries.
    max_bytes: u64,
    /// What this process has written since the folder was looked through.
    written: AtomicU64,
    /// Where writing fails, for tests.
    #[cfg(test)]
    pub(super) disk_full_after: Option<usize>,
}

impl Folder {
    /// Opens a folder that is this user's alone, which is made if it is not there.
    ///
    /// # Errors
    /// Why it is not used.
    pub(super) fn open(path: &Path, max_bytes: u64) -> Result<Folder, String> {
        made(path, 0o700)?;
        let owner = user(path);
        Folder::of(path, [owner; 2], max_bytes)
    }

    /// Opens a folder that is to go along with a program, which is made if it is not there: who installs the program is
    /// not who runs it, so that all may read it.
    ///
    /// # Errors
    /// Why it is not used.
    pub(super) fn open_to_ship(path: &Path) -> Result<Folder, String> {
        made(path, 0o755)?;
        let owner = user(path);
        let folder = Folder::of(path, [owner; 2], u64::MAX)?;
        Ok(Folder {
            purpose: Purpose::Ship,
            ..folder
        })
    }

    /// Opens a folder that came with the program, which is only read. Beside this user's and the administrator's
    /// it may be of whoever the program's own file is, since that is trusted already.
    ///
    /// # Errors
    /// Why it is not used.
    pub(super) fn open_shipped(path: &Path) -> Result<Folder, String> {
        let program = std::env::current_exe().and_then(fs::metadata);
        let program = program.ok().map(|program| program.uid());
        let folder = Folder::of(path, [user(path), program], u64::MAX)?;
        Ok(Folder {
            purpose: Purpose::Shipped,
            ..folder
        })
    }

    /// A folder that is there, and whose files are read if they are of one of these owners.
    fn of(path: &Path, owners: [Option<u32>; 2], max_bytes: u64) -> Result<Folder, String> {
        let name = path.display().to_string();
        let cannot = |what: &'static str| {
            let name = name.clone();
            move |error: io::Error| format!("`{name}` cannot be {what}: {error}")
        };
        // What a link leads to now is what is used from now on.
        let path = fs::canonicalize(path).map_err(cannot("found"))?;
        let metadata = fs::symlink_metadata(&path).map_err(cannot("looked at"))?;
        let [Some(first), Some(second)] = [owners[0].or(owners[1]), owners[1].or(owners[0])] else {
            return Err(format!("whose `{}` is cannot be told", path.display()));
        };
        if !metadata.is_dir() {
            return Err(format!("`{}` is no folder", path.display()));
        }
        let folder = Folder {
            path,
            owners: [first, second],
            purpose: Purpose::Keep,
            max_bytes,
            written: AtomicU64::new(0),
            #[cfg(test)]
            disk_full_after: None,
        };
        if !folder.is_trusted(&metadata) {
            return Err(format!(
                "`{}` belongs to another user, or others may write there; `chmod go-w` it, or name another folder (that \
                 which kernels are kept in by KILN_CACHE)",
                folder.path.display()
            ));
        }
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether only this user and the administrator can have written something.
    fn is_trusted(&self, metadata: &Metadata) -> bool {
        let ours = metadata.uid() == 0 || self.owners.contains(&metadata.uid());
        ours && metadata.mode() & 0o022 == 0
    }

    /// Where the file of a name is, with this ending.
    pub(super) fn file(&self, name: &str, ending: &str) -> PathBuf {
        self.path.join(name).with_extension(ending)
    }

    /// The bytes of an entry. `None`: there is none, or it is not to be trusted.
    ///
    /// # Errors
    /// What is there and is not used.
    pub(super) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        let path = self.file(name, ENTRY);
        let refused = |why: &str| Err(format!("`{}` is not used: {why}", path.display()));
        // Before it is opened: that would wait for the other end of a pipe. Nobody else can put another thing there.
        let metadata = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return refused(&error.to_string()),
        };
        if !metadata.is_file() {
            return refused("it is no file");
        }
        if !self.is_trusted(&metadata) {
            return refused("it belongs to another user, or others may write to it");
        }
        if metadata.len() > MAX_FILE {
            return refused("it is too large");
        }
        let read = || {
            let file = File::open(&path)?;
            let mut bytes = Vec::with_capacity(metadata.len() as usize);
            (&file).take(MAX_FILE).read_to_end(&mut bytes)?;
            if self.purpose != Purpose::Shipped {
                touch(&file, &metadata);
            }
            Ok(bytes)
        };
        match read() {
            Ok(bytes) => Ok(Some(bytes)),
            // It was removed meanwhile.
            Err(error) if io::Error::kind(&error) == io::ErrorKind::NotFound => Ok(None),
            Err(error) => refused(&error.to_string()),
        }
    }

    /// Writes an entry, in the place of one of this name.
    ///
    /// # Errors
    /// Why it is not there.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        let path = self.file(name, ENTRY);
        let failed = |error: io::Error| format!("`{}` cannot be written: {error}", path.display());
        if bytes.len() as u64 > MAX_FILE {
            return Err(failed(io::ErrorKind::FileTooLarge.into()));
        }
        let (temporary, file) = self.temporary(name).map_err(failed)?;
        let written = self
            .fill(file, bytes)
            .and_then(|()| fs::rename(&temporary, &path));
        if let Err(error) = written {
            // If it cannot be removed either, whoever sweeps will.
            let _ = fs::remove_file(&temporary);
            return Err(failed(error));
        }
        let written = self
            .written
            .fetch_add(bytes.len() as u64, Ordering::Relaxed);
        if written >= self.max_bytes / 16 || self.is_due() {
            self.written.store(0, Ordering::Relaxed);
            self.sweep();
        }
        Ok(())
    }

    /// Files that this user writes, and those may read whom the folder is for.
    fn writable<'o>(&self, options: &'o mut OpenOptions) -> &'o mut OpenOptions {
        match self.purpose {
            Purpose::Ship => options.write(true).mode(0o644),
            Purpose::Keep | Purpose::Shipped => private(options),
        }
    }

    /// A file that nobody else has.
    fn temporary(&self, name: &str) -> io::Result<(PathBuf, File)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let unique = format!("{name}-{}-{number}", process::id());
            let path = self.file(&unique, TEMPORARY);
            match self
                .writable(OpenOptions::new().create_new(true))
                .open(&path)
            {
                Ok(file) => return Ok((path, file)),
                // A process of this number left it behind.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    #[cfg(not(test))]
    fn fill(&self, mut file: File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    /// Writes, up to where the disk of a test is full.
    #[cfg(test)]
    fn fill(&self, mut file: File, bytes: &[u8]) -> io::Result<()> {
        match self.disk_full_after {
            Some(end) if end < bytes.len() => {
                file.write_all(&bytes[..end])?;
                Err(io::ErrorKind::StorageFull.into())
            }
            _ => file.write_all(bytes),
        }
    }

    /// Whether nobody has looked the folder through for a while.
    fn is_due(&self) -> bool {
        let swept = fs::metadata(self.path.join(SWEPT)).and_then(|metadata| metadata.modified());
        !swept.is_ok_and(|at| age(at) < BETWEEN_SWEEPS)
    }

    /// Removes what processes have left behind, and the entries that were not used for the longest time, until the
    /// others are three quarters of what there may be.
    pub(super) fn sweep(&self) {
        // What fails here is tried again by the next.
        let _ = private(OpenOptions::new().create(true).truncate(true)).open(self.path.join(SWEPT));
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            let changed = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let ending = path.extension().and_then(|ending| ending.to_str());
            match ending.filter(|_| metadata.is_file()) {
                Some(ENTRY) => entries.push((changed, metadata.len(), path)),
                Some(TEMPORARY | LOCK) if age(changed) > LEFT_BEHIND => {
                    let _ = fs::remove_file(&path);
                }
                _ => {}
            }
        }
        let mut total: u64 = entries.iter().map(|(_, bytes, _)| bytes).sum();
        if total <= self.max_bytes {
            return;
        }
        entries.sort();
        for (_, bytes, path) in entries {
            if total <= self.max_bytes / 4 * 3 {
                break;
            }
            if fs::remove_file(&path).is_ok() {
                total -= bytes;
            }
        }
    }
}

/// Makes a folder with these permissions, and those it lies in, where there is none.
fn made(path: &Path, mode: u32) -> Result<(), String> {
    let made = DirBuilder::new().recursive(true).mode(mode).create(path);
    made.map_err(|error| format!("`{}` cannot be made: {error}", path.display()))
}

/// Files that only this user reads and writes.
pub(super) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.write(true).mode(0o600)
}

fn age(then: SystemTime) -> Duration {
    SystemTime::now().duration_since(then).unwrap_or_default()
}

/// Notes that a file was used, by its time, which says who goes first. A folder that cannot be written to is as good.
fn touch(file: &File, metadata: &Metadata) {
    let fresh = metadata.modified().is_ok_and(|at| age(at) < STALE_USE);
    if !fresh {
        let _ = file.set_modified(SystemTime::now());
    }
}

/// The user that this process runs as: whoever its own folder of the system belongs to, or a file that it makes.
fn user(folder: &Path) -> Option<u32> {
    if let Ok(own) = fs::metadata("/proc/self") {
        return Some(own.uid());
    }
    let probe = folder.join(format!("{}-user.{TEMPORARY}", process::id()));
    let made = private(OpenOptions::new().create_new(true)).open(&probe);
    let owner = made.and_then(|file| file.metadata()).map(|own| own.uid());
    let _ = fs::remove_file(&probe);
    owner.ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::cache::disk::temporary::TestFolder;

    fn open(place: &TestFolder) -> Folder {
        Folder::open(&place.0, 1 << 20).expect("a folder of its own")
    }

    fn files(folder: &Folder, ending: &str) -> usize {
        let entries = fs::read_dir(folder.path()).expect("it is there");
        let names = entries.map(|entry| entry.expect("it is there").path());
        names
            .filter(|path| path.extension().is_some_and(|e| e == ending))
            .count()
    }

    #[test]
    fn a_file_is_this_user_s_alone_and_replaces_the_one_before() {
        let place = TestFolder::new();
        let folder = open(&place);
        assert_eq!(folder.read("a"), Ok(None));
        for content in [b"one", b"two"] {
            folder.write("a", content).expect("there is room");
            assert_eq!(folder.read("a"), Ok(Some(content.to_vec())));
        }
        let mode = |path: &Path| fs::metadata(path).expect("it is there").mode() & 0o777;
        assert_eq!(mode(folder.path()), 0o700);
        assert_eq!(mode(&folder.file("a", ENTRY)), 0o600);
        assert_eq!(files(&folder, TEMPORARY), 0);
    }

    #[test]
    fn all_may_read_what_is_to_ship() {
        let place = TestFolder::new();
        let folder = Folder::open_to_ship(&place.0).expect("it is made");
        folder.write("a", b"one").expect("there is room");
        for (path, all) in [(folder.path(), 0o755), (&*folder.file("a", ENTRY), 0o644)] {
            let mode = fs::metadata(path).expect("it is there").mode() & 0o777;
            // The user may have it otherwise, by umask, of which the place beside it tells.
            let beside = place.0.with_extension("beside");
            fs::create_dir(&beside).expect("it is ours");
            let may = fs::metadata(&beside).expect("it is there").mode();
            fs::remove_dir(beside).expect("it is ours");
            assert_eq!(mode, all & may, "{}", path.display());
        }
    }

    #[test]
    fn a_folder_that_has_shipped_is_only_read() {
        let place = TestFolder::new();
        Folder::open_shipped(&place.0).expect_err("it is not there");
        assert!(!place.0.exists(), "it is not made");
        open(&place).write("a", b"bytes").expect("there is room");
        let shipped = Folder::open_shipped(&place.0).expect("it is of this user");
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let path = shipped.file("a", ENTRY);
        let file = File::open(&path).expect("it is there");
        file.set_modified(old).expect("it is ours");
        assert_eq!(shipped.read("a"), Ok(Some(b"bytes".to_vec())));
        let changed = || fs::metadata(&path).and_then(|metadata| metadata.modified());
        assert_eq!(changed().expect("it is there"), old);
        open(&place).read("a").expect("it is there");
        assert_ne!(
            changed().expect("it is there"),
            old,
            "a folder of the user's says what was used"
        );
        fs::set_permissions(&place.0, fs::Permissions::from_mode(0o777)).expect("it is ours");
        Folder::open_shipped(&place.0).expect_err("others may write there");
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_refused() {
        let place = TestFolder::new();
        fs::create_dir_all(&place.0).expect("there is room");
        for mode in [0o770, 0o702, 0o777] {
            fs::set_permissions(&place.0, fs::Permissions::from_mode(mode)).expect("it is ours");
            let refused = Folder::open(&place.0, 1).expect_err("others may write there");
            assert!(refused.contains("others may write there"), "{refused}");
        }
        fs::set_permissions(&place.0, fs::Permissions::from_mode(0o755)).expect("it is ours");
        assert!(Folder::open(&place.0, 1).is_ok());
        // A file in the place of a folder, or below one.
        let file = place.0.join("file");
        fs::write(&file, "x").expect("there is room");
        for place in [file.clone(), file.join("below")] {
            assert!(Folder::open(&place, 1).is_err());
        }
    }

    #[test]
    fn what_is_no_file_of_this_user_is_not_read() {
        let place = TestFolder::new();
        let folder = open(&place);
        folder.write("real", b"x").expect("there is room");
        let at = |name: &str| folder.file(name, ENTRY);
        fs::create_dir(at("folder")).expect("there is room");
        symlink(at("real"), at("link")).expect("there is room");
        let made = process::Command::new("mkfifo").arg(at("pipe")).status();
        assert!(made.expect("a tool of the system").success());
        folder.write("open", b"x").expect("there is room");
        fs::set_permissions(at("open"), fs::Permissions::from_mode(0o666)).expect("it is ours");
        for name in ["folder", "link", "pipe", "open"] {
            let refused = folder.read(name).expect_err(name);
            assert!(refused.contains("is not used"), "{refused}");
        }
        // Nor does it stay in the way, but for a folder.
        for name in ["link", "pipe", "open"] {
            folder.write(name, b"new").expect("it is replaced");
            assert_eq!(folder.read(name), Ok(Some(b"new".to_vec())));
        }
        assert!(folder.write("folder", b"new").is_err());
        assert_eq!(folder.read("real"), Ok(Some(b"x".to_vec())));
        assert_eq!(files(&folder, TEMPORARY), 0);
    }

    #[test]
    fn a_full_disk_leaves_the_entry_before() {
        let place = TestFolder::new();
        let mut folder = open(&place);
        folder.write("a", b"before").expect("there is room");
        for end in 0..8 {
            folder.disk_full_after = Some(end);
            let failed = folder.write("a", b"12345678").expect_err("it is full");
            assert!(failed.contains("cannot be written"), "{failed}");
            assert_eq!(folder.read("a"), Ok(Some(b"before".to_vec())));
            assert_eq!(files(&folder, TEMPORARY), 0);
        }
    }

    #[test]
    fn the_entries_that_were_used_last_are_left() {
        let place = TestFolder::new();
        let folder = open(&place);
        let used = |name: &str, seconds: u64| {
            let file = File::open(folder.file(name, ENTRY)).expect("it is there");
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            file.set_modified(at).expect("it is ours");
        };
        for i in 0..10u64 {
            folder.write(&i.to_string(), &[0; 1000]).expect("room");
            used(&i.to_string(), i);
        }
        // Used now, as reading says.
        assert!(folder.read("0").is_ok_and(|bytes| bytes.is_some()));
        fs::write(folder.file("old", TEMPORARY), "x").expect("room");
        fs::write(folder.file("new", TEMPORARY), "x").expect("room");
        let old = File::open(folder.file("old", TEMPORARY)).expect("it is there");
        old.set_modified(SystemTime::UNIX_EPOCH)
            .expect("it is ours");
        let small = Folder::open(&place.0, 8000).expect("a folder of its own");
        small.sweep();
        let left: Vec<bool> = (0..10)
            .map(|i| folder.file(&i.to_string(), ENTRY).exists())
            .collect();
        assert_eq!(files(&folder, ENTRY), 6, "{left:?}");
        assert!(left[0] && left[9] && !left[1] && !left[4], "{left:?}");
        assert_eq!(files(&folder, TEMPORARY), 1);
        assert!(!folder.is_due());
    }

    /// The variable that has a process of the test below write until it is killed.
    const WRITES: &str = "KILN_TEST_WRITES_TO";

    fn content(name: &str) -> Vec<u8> {
        name.repeat(20_000).into_bytes()
    }

    #[test]
    fn writes_until_it_is_killed() {
        let Some(path) = std::env::var_os(WRITES) else {
            return;
        };
        let folder = Folder::open(Path::new(&path), 1 << 30).expect("a folder of its own");
        loop {
            for name in ["one", "two", "three"] {
                let _lock = super::super::lock::EntryLock::wait(folder.file(name, LOCK));
                folder.write(name, &content(name)).expect("room");
            }
        }
    }

    #[test]
    fn a_process_that_is_killed_while_it_writes_leaves_whole_entries_or_none() {
        const KILLS: u64 = 500;
        let place = TestFolder::new();
        let folder = open(&place);
        let program = std::env::current_exe().expect("this program");
        for kill in 0..KILLS {
            let mut child = process::Command::new(&program)
                .args([
                    "--exact",
                    "cache::disk::folder::tests::writes_until_it_is_killed",
                ])
                .env(WRITES, &place.0)
                .stdout(process::Stdio::null())
                .spawn()
                .expect("this program runs");
            // Some before they begin, most while they write.
            std::thread::sleep(Duration::from_micros(1000 + kill * 10));
            child.kill().expect("it runs");
            child.wait().expect("it was killed");
            for name in ["one", "two", "three"] {
                let found = folder.read(name).expect("nothing is refused");
                assert!(found.is_none_or(|bytes| bytes == content(name)), "{name}");
            }
        }
        assert!(files(&folder, ENTRY) > 0, "none came to write");
        let _lock = super::super::lock::EntryLock::wait(folder.file("one", LOCK))
            .expect("the dead hold no lock");
        folder
            .write("one", b"after")
            .expect("the folder can be used");
        assert_eq!(folder.read("one"), Ok(Some(b"after".to_vec())));
    }

    #[test]
    fn much_that_is_written_is_swept_at_once() {
        let place = TestFolder::new();
        let folder = Folder::open(&place.0, 16 << 10).expect("a folder of its own");
        for i in 0..100 {
            folder.write(&i.to_string(), &[0; 1000]).expect("room");
        }
        assert!(files(&folder, ENTRY) <= 18, "{}", files(&folder, ENTRY));
    }
}
