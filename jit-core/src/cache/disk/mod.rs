//! Compiled kernels on disk, so that a process begins with what earlier ones have compiled.
//!
//! ```text
//! memory (launch map, code map)  -> hit: nothing here is asked
//!   -> this build, the library that was named, the cache key: an `EntryKey`     format.rs
//!   -> the file of its digest in the user's folder -> whole, of this key: hit   folder.rs
//!   -> the entry's lock: one process compiles                                   lock.rs
//!   -> compiled -> written under another name, renamed
//! ```
//! Any doubt is a miss: never an error of a launch, never another kernel's code. Who wants to know asks
//! [`Jit::disk_cache`](crate::jit::Jit::disk_cache) for what was not used and why.
//!
//! What is kept is plain data ([`KernelInfo`], [`Code`]): PTX, with the machine code that the driver or a hook has made
//! of it, and objects of the host, which name the functions that they call. What is not kept: modules for the
//! interpreter; code of an `Isa`'s own form; kernels that a hook has sent to another target, or put rows of intrinsics
//! into which it does not list; and all of a `Jit` that has a hook which does not say that its code may be kept, or an observer, who is
//! to see every stage. A row of intrinsics is a function of the program: an object has the names and digests of its
//! rows, which are looked for among those of the kernel at hand and those that hooks list.
//!
//! An entry is of one build of Kiln (`build.rs`). The libLLVM that made it is written down as its file's size and time
//! of change, and while that file is there it has to be that one; where it is not, as on a machine
//! without LLVM, the entry is as good. `KILN_LIBLLVM` is part of the key, where it names something.
//!
//! A folder that goes along with a program (`CacheFolder::ToShip`) has entries that name no library. Whoever has such
//! folders (`JitBuilder::shipped`) only reads them, and looks there for code of lesser machines, too, which its own runs: an older
//! architecture's PTX, a lower level of x86-64.

#[cfg_attr(unix, path = "folder.rs")]
#[cfg_attr(not(unix), path = "no_folder.rs")]
mod folder;
mod format;
mod lock;
mod rows;
#[cfg(test)]
mod temporary;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use once_cell::sync::OnceCell;
use parking_lot::Mutex;

use super::{CacheKey, CacheStats};
use folder::{Folder, LOCK};
use format::{Entry, MadeBy};
use kiln_compiler::code::{Code, FindRow, KernelInfo};
use kiln_compiler::environment::Environment;

pub(crate) use format::EntryKey;
pub(crate) use lock::EntryLock;
pub(crate) use rows::{KernelRows, own_functions};

/// The most bytes of all entries in a folder.
const MAX_BYTES: u64 = 1 << 30;

/// The value of `KILN_CACHE` that switches the folder off.
const OFF: &str = "off";

/// Where a [`Jit`](crate::jit::Jit) keeps compiled kernels for later processes.
///
/// ```
/// use kiln::prelude::*;
///
/// use kiln::core::cache::CacheFolder;
///
/// # fn main() -> kiln::Result<()> {
/// let folder = std::env::temp_dir().join(format!("kiln-example-{}", std::process::id()));
/// let jit = Jit::builder()
///     .device(Device::cpu())
///     .cache(CacheFolder::At(folder.clone()))
///     .build()?;
/// assert_eq!(jit.disk_cache().note, None);
/// assert_eq!(jit.disk_cache().folder, Some(folder.canonicalize().expect("it was made")));
/// # let _ = std::fs::remove_dir_all(folder);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum CacheFolder {
    /// The folder that the environment variable `KILN_CACHE` names, nowhere if that is `off`; without it `kiln` in the
    /// user's folder for caches (`$XDG_CACHE_HOME`, `~/.cache`).
    #[default]
    User,
    /// This folder, whatever the environment says. It is made if it is not there.
    At(PathBuf),
    /// This folder, to go along with a program: what is in it is found on machines with another libLLVM or none.
    /// [`JitBuilder::shipped`](crate::jit::JitBuilder::shipped) is for whoever has it.
    ToShip(PathBuf),
    /// Nowhere.
    Off,
}

impl CacheFolder {
    /// The folder.
    ///
    /// # Errors
    /// Why there is none.
    fn path(&self, environment: &Environment) -> Result<PathBuf, String> {
        let home = || {
            let below = if cfg!(target_os = "macos") {
                "Library/Caches"
            } else {
                ".cache"
            };
            environment.home.as_ref().map(|home| home.join(below))
        };
        match (self, &environment.cache) {
            (CacheFolder::At(path) | CacheFolder::ToShip(path), _) => Ok(path.clone()),
            (CacheFolder::Off, _) => Err("it is switched off by `CacheFolder::Off`".to_owned()),
            (CacheFolder::User, Some(path)) if path.as_os_str().eq_ignore_ascii_case(OFF) => {
                Err("it is switched off by KILN_CACHE".to_owned())
            }
            // A word that was meant to switch it off is no folder of wherever the program happens to run.
            (CacheFolder::User, Some(path)) if !path.is_absolute() => Err(format!(
                "KILN_CACHE is `{}`, which is neither `{OFF}` nor a path from the root",
                path.display()
            )),
            (CacheFolder::User, Some(path)) => Ok(path.clone()),
            (CacheFolder::User, None) => {
                let caches = environment.cache_home.clone().or_else(home);
                let caches = caches.filter(|path| path.is_absolute());
                caches.map(|path| path.join("kiln")).ok_or_else(|| {
                    "there is no folder for it: neither HOME nor XDG_CACHE_HOME is set".to_owned()
                })
            }
        }
    }
}

/// What a [`Jit`](crate::jit::Jit) keeps compiled kernels in; [`CacheFolder`] has an example.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DiskCache {
    /// The folder; `None` if nothing is kept.
    pub folder: Option<PathBuf>,
    /// Why nothing is kept, or what was met first that was not used or not written. Nothing of it fails a launch.
    pub note: Option<String>,
}

/// The folder of one `Jit`.
pub(crate) struct Disk {
    /// The folder, or why there is none.
    place: Result<PathBuf, String>,
    folder: OnceCell<Option<Folder>>,
    /// Folders that came with the program.
    shipped: Vec<PathBuf>,
    opened: OnceCell<Vec<Folder>>,
    /// Whether the folder is to go along with a program.
    ships: bool,
    /// The library that the user has named.
    named_library: String,
    pub(crate) verify: bool,
    note: Mutex<Option<String>>,
    hits: AtomicU64,
    misses: AtomicU64,
    writes: AtomicU64,
    refused: AtomicU64,
    from_shipped: AtomicU64,
}

/// What was kept of a kernel.
pub(crate) struct Kept {
    pub(crate) info: KernelInfo,
    /// What the key says of the rows of intrinsics that hooks have put in.
    pub(crate) put_in: String,
    pub(crate) code: Option<Code>,
}

impl Disk {
    /// The folder of a `Jit`, where nothing about it stands against keeping its code. It is opened when it is
    /// first needed.
    pub(crate) fn new(place: &CacheFolder, shipped: &[PathBuf], against: Option<String>) -> Disk {
        let environment = Environment::get();
        let ships = matches!(place, CacheFolder::ToShip(_));
        let shipped = match against {
            Some(_) => Vec::new(),
            None => shipped.to_vec(),
        };
        let place = match against {
            Some(against) => Err(against),
            None => place.path(environment),
        };
        let named = environment.libllvm.as_deref().filter(|_| !ships);
        let named = named.and_then(made_by);
        Disk {
            note: Mutex::new(place.as_ref().err().cloned()),
            place,
            folder: OnceCell::new(),
            shipped,
            opened: OnceCell::new(),
            ships,
            named_library: named.map_or_else(String::new, |file| {
                format!("{} bytes, changed {}", file.bytes, file.changed)
            }),
            verify: environment.cache_verify,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            from_shipped: AtomicU64::new(0),
        }
    }

    /// The folders that came with the program, as far as they can be used.
    fn opened(&self) -> &[Folder] {
        self.opened.get_or_init(|| {
            let open = |path: &PathBuf| {
                let folder = Folder::open_shipped(path);
                folder.map_err(|why| self.refuse(why)).ok()
            };
            self.shipped.iter().filter_map(open).collect()
        })
    }

    /// Whether anything came with the program.
    pub(crate) fn has_shipped(&self) -> bool {
        !self.opened().is_empty()
    }

    /// The folder, if it can be used.
    fn folder(&self) -> Option<&Folder> {
        let path = self.place.as_ref().ok()?;
        let open = || {
            let folder = match self.ships {
                true => Folder::open_to_ship(path),
                false => Folder::open(path, MAX_BYTES),
            };
            folder.map_err(|why| self.refuse(why)).ok()
        };
        self.folder.get_or_init(open).as_ref()
    }

    /// Whether there is a folder to look into.
    pub(crate) fn is_on(&self) -> bool {
        self.folder().is_some()
    }

    pub(crate) fn report(&self) -> DiskCache {
        let folder = self.folder().map(|folder| folder.path().to_owned());
        let note = self.note.lock().clone();
        DiskCache { folder, note }
    }

    /// What something is kept under that has this cache key. `functions` are those that rows mean which are not Kiln's
    /// own; `assembler` is what makes machine code of PTX here.
    pub(crate) fn key(
        &self,
        what: &str,
        asked: &CacheKey,
        functions: &str,
        assembler: Option<&str>,
    ) -> EntryKey {
        self.key_by(&self.named_library, what, asked, functions, assembler)
    }

    /// What something has shipped under, that was made on another machine.
    pub(crate) fn shipped_key(&self, what: &str, asked: &CacheKey, functions: &str) -> EntryKey {
        self.key_by("", what, asked, functions, None)
    }

    fn key_by(
        &self,
        library: &str,
        what: &str,
        asked: &CacheKey,
        functions: &str,
        assembler: Option<&str>,
    ) -> EntryKey {
        let own = [
            ("entry", what),
            ("build", env!("KILN_BUILD")),
            ("library", library),
            ("functions", functions),
            ("assembler", assembler.unwrap_or_default()),
        ];
        // The names of the cache key's fields are static, which those here need not be.
        let asked = asked
            .fields()
            .map(|(name, value)| -> (&str, &str) { (name, value) });
        EntryKey::new(own.into_iter().chain(asked))
    }

    /// What is kept under a key.
    pub(crate) fn find(&self, key: &EntryKey, rows: FindRow<'_>) -> Option<Kept> {
        self.find_in(self.folder()?, key, rows)
    }

    /// What has come with the program under a key.
    pub(crate) fn find_shipped(&self, key: &EntryKey, rows: FindRow<'_>) -> Option<Kept> {
        let folders = self.opened().iter();
        folders
            .filter_map(|folder| self.find_in(folder, key, rows))
            .next()
    }

    fn find_in(&self, folder: &Folder, key: &EntryKey, rows: FindRow<'_>) -> Option<Kept> {
        let name = key.file_name();
        let found = folder.read(&name).and_then(|bytes| {
            let refused = |why: &str| {
                let file = folder.file(&name, "kiln");
                format!("`{}` is not used: {why}", file.display())
            };
            let Some(bytes) = bytes else {
                return Ok(None);
            };
            let entry = Entry::read(&bytes, key)
                .ok_or_else(|| refused("it is not as it was written, or of another version"))?;
            if !entry.made_by.is_none_or(|library| is_unchanged(&library)) {
                return Err(refused("the libLLVM that made it has changed"));
            }
            let read = || {
                let info = KernelInfo::read_kept(&entry.info)?;
                let code = match &entry.code {
                    Some(code) => Some(Code::read_kept(code, rows)?),
                    None => None,
                };
                let put_in = String::from_utf8(entry.put_in.clone()).ok()?;
                Some(Kept { info, put_in, code })
            };
            let kept = read().ok_or_else(|| refused("this program lacks a part of it"))?;
            Ok(Some(kept))
        });
        found.unwrap_or_else(|why| {
            self.refuse(why);
            None
        })
    }

    /// Keeps what launches need to know of a kernel, and its code; whether it does.
    pub(crate) fn write(
        &self,
        key: &EntryKey,
        (info, put_in): (&KernelInfo, &str),
        code: Option<&Code>,
    ) -> bool {
        let Some(folder) = self.folder() else {
            return false;
        };
        let library = || kiln_compiler::codegen::library().ok();
        let made_by = match code {
            // Whoever has it has another library at the path of this, or none.
            None => None,
            Some(_) if self.ships => None,
            Some(_) => match library().and_then(|library| made_by(&library.path)) {
                Some(library) => Some(library),
                None => {
                    self.refuse("the file of libLLVM is no longer there".to_owned());
                    return false;
                }
            },
        };
        let entry = Entry {
            info: info.keep(),
            put_in: put_in.as_bytes().to_vec(),
            code: code.and_then(Code::keep),
            made_by,
        };
        let written = folder.write(&key.file_name(), &entry.write(key));
        let is_there = written.is_ok();
        match written {
            Ok(()) => drop(self.writes.fetch_add(1, Ordering::Relaxed)),
            Err(why) => self.refuse(why),
        }
        is_there
    }

    /// The lock of an entry, for who is about to make it.
    pub(crate) fn lock(&self, key: &EntryKey) -> Option<EntryLock> {
        EntryLock::wait(self.folder()?.file(&key.file_name(), LOCK))
    }

    /// Counts code that was found.
    pub(crate) fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts code that has come with the program.
    pub(crate) fn hit_shipped(&self) {
        self.from_shipped.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts code that was not.
    pub(crate) fn miss(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts what is not used, and notes the first.
    pub(crate) fn refuse(&self, why: String) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.note.lock().get_or_insert(why);
    }

    pub(crate) fn count(&self, stats: &mut CacheStats) {
        stats.disk_hits = self.hits.load(Ordering::Relaxed);
        stats.disk_misses = self.misses.load(Ordering::Relaxed);
        stats.disk_writes = self.writes.load(Ordering::Relaxed);
        stats.shipped_hits = self.from_shipped.load(Ordering::Relaxed);
        stats.disk_refused = self.refused.load(Ordering::Relaxed);
    }
}

/// What tells a file apart without reading it. A name that is no text cannot be written down.
fn made_by(path: &Path) -> Option<MadeBy> {
    path.to_str()?;
    let metadata = std::fs::metadata(path).ok()?;
    let changed = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(MadeBy {
        path: path.to_owned(),
        bytes: metadata.len(),
        changed: changed.as_nanos(),
    })
}

/// Whether a library is the same, or no longer there.
fn is_unchanged(library: &MadeBy) -> bool {
    made_by(&library.path).is_none_or(|now| now == *library)
}

/// What differs between code that was kept and code that was made now; `None` if nothing does. Machine code that the
/// driver made of PTX is its own affair.
pub(crate) fn difference(
    kept: (&KernelInfo, Option<&Code>),
    now: (&KernelInfo, Option<&Code>),
) -> Option<String> {
    if kept.0 != now.0 {
        return Some("what launches need to know of it".to_owned());
    }
    match (kept.1, now.1) {
        (None, None) => None,
        (Some(Code::Ptx(kept)), Some(Code::Ptx(now))) => {
            let mut lines = kept.text.lines().zip(now.text.lines()).enumerate();
            let other = lines.find(|(_, (kept, now))| kept != now);
            match other {
                Some((line, (kept, now))) => Some(format!(
                    "line {} of its PTX, `{}`, which is `{}` now",
                    line + 1,
                    kept.trim(),
                    now.trim()
                )),
                None if kept.text != now.text => Some("the length of its PTX".to_owned()),
                None => (kept.entry != now.entry).then(|| "the name of its entry".to_owned()),
            }
        }
        (Some(kept), Some(now)) => {
            (kept.keep() != now.keep()).then(|| "its machine code".to_owned())
        }
        (Some(_), None) | (None, Some(_)) => Some("whether there is code".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(set: impl Fn(&mut Environment)) -> Environment {
        let mut environment = Environment::default();
        set(&mut environment);
        environment
    }

    #[test]
    fn where_the_folder_is() {
        let path = |folder: CacheFolder, set: &dyn Fn(&mut Environment)| {
            folder.path(&environment(set)).ok()
        };
        let named = |e: &mut Environment| e.cache = Some("/named".into());
        let off = |e: &mut Environment| e.cache = Some(OFF.into());
        let home = |e: &mut Environment| e.home = Some("/h".into());
        let xdg =
            |e: &mut Environment| (e.home, e.cache_home) = (Some("/h".into()), Some("/x".into()));
        let nowhere = |_: &mut Environment| ();
        let is = |path: &str| Some(PathBuf::from(path));
        assert_eq!(path(CacheFolder::User, &named), is("/named"));
        assert_eq!(path(CacheFolder::User, &off), None);
        assert_eq!(path(CacheFolder::User, &xdg), is("/x/kiln"));
        assert!(path(CacheFolder::User, &home).is_some_and(|path| path.starts_with("/h")));
        assert_eq!(path(CacheFolder::User, &nowhere), None);
        for set in [&named as &dyn Fn(&mut Environment), &off, &nowhere] {
            assert_eq!(path(CacheFolder::At("/at".into()), set), is("/at"));
            assert_eq!(path(CacheFolder::Off, set), None);
        }
    }

    #[test]
    fn each_field_changes_the_key() {
        let disk = Disk::new(&CacheFolder::Off, &[], None);
        let asked = |value: &str| CacheKey::default().with("content", value);
        let named = Disk {
            named_library: "1 bytes, changed 2".to_owned(),
            ..Disk::new(&CacheFolder::Off, &[], None)
        };
        let keys = [
            disk.key("code", &asked("a"), "", None),
            disk.key("info", &asked("a"), "", None),
            disk.key("code", &asked("b"), "", None),
            disk.key("code", &asked("a").with("hooks", ""), "", None),
            disk.key("code", &asked("a"), "f 1", None),
            disk.key("code", &asked("a"), "", Some("driver 13.0, sm_90")),
            disk.key("code", &asked("a"), "", Some("driver 13.1, sm_90")),
            named.key("code", &asked("a"), "", None),
        ];
        for (i, key) in keys.iter().enumerate() {
            for other in &keys[..i] {
                assert_ne!(key.file_name(), other.file_name());
            }
        }
    }
}
