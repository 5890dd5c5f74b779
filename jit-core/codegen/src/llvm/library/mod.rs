//! libLLVM 22, opened when it is first needed.
//!
//! Nothing is linked against LLVM: a program that only launches kernels from the disk cache never
//! loads it, and one that compiles finds it without a run path or a launcher. [`library`] opens
//! the first suitable libLLVM of a known list of places ([`SearchPlace::known`]), checks its version and
//! its functions, and points the forwarders (`forward.rs`) at them. Whatever calls inkwell or
//! llvm-sys must have called [`library`] before; inside this crate `session.rs` is the one door.

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod destructors;
mod forward;
mod search;
mod targets;

use std::ffi::{CStr, c_uint, c_void};
use std::path::{Path, PathBuf};

use kiln_ir::{debug_as_text, error_text};

use super::ending;

use libloading::Library;
use once_cell::sync::OnceCell;

use forward::Addresses;
pub use search::SearchPlace;

/// The LLVM release line this crate is written for: major version.
const MAJOR: u32 = 22;

/// The libLLVM in use by this process. It stays open until the process ends.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LlvmLibrary {
    /// The file that was opened.
    pub path: PathBuf,
    /// The library's version: major, minor, patch.
    pub version: (u32, u32, u32),
}

/// A place that was looked at, and why it did not give a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Searched {
    /// The folder, the file, or a description of the place.
    pub place: String,
    /// Why the place was passed over.
    pub reason: String,
}

/// Why there is no libLLVM to compile with. Everything that needs no compile goes on working.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LlvmLibraryError {
    /// No file could be opened in any place.
    #[error("{}", error_text!(
        "libLLVM 22, which compiling a kernel needs, was not found{}\n{HELP}",
        list(searched)
    ))]
    NotFound {
        /// The places in the order they were tried.
        searched: Vec<Searched>,
    },
    /// Only libraries of another version were found.
    #[error("{}", error_text!(
        "{} is LLVM {}.{}.{}, but compiling a kernel needs LLVM 22{}\n{HELP}",
        path.display(), version.0, version.1, version.2, list(searched)
    ))]
    WrongVersion {
        /// The first library of another version.
        path: PathBuf,
        /// The library's version: major, minor, patch.
        version: (u32, u32, u32),
        /// The places in the order they were tried.
        searched: Vec<Searched>,
    },
    /// A libLLVM 22 was found that lacks a function of LLVM's C interface.
    #[error("{}", error_text!("{} does not export {symbol}{}\n{HELP}", path.display(), list(searched)))]
    MissingSymbol {
        /// The library.
        path: PathBuf,
        /// The function.
        symbol: String,
        /// The places in the order they were tried.
        searched: Vec<Searched>,
    },
}

debug_as_text!(LlvmLibraryError);

/// What a user can do about each of the errors.
const HELP: &str = "help: install the Rust toolchain 1.95 (`rustup toolchain install 1.95.0`), whose \
                    `lib` folder has libLLVM 22, or set KILN_LIBLLVM to the path of a libLLVM 22 \
                    file or of the folder it is in";

/// The searched places as lines of an error text.
fn list(searched: &[Searched]) -> String {
    let line = |s: &Searched| format!("\n  looked at {}: {}", s.place, s.reason);
    searched.iter().map(line).collect()
}

/// The process's libLLVM, opened on the first call.
///
/// # Errors
/// [`LlvmLibraryError`] if no place of [`SearchPlace::known`] has a usable one. The search is made once;
/// later calls return the first outcome.
pub fn library() -> Result<&'static LlvmLibrary, LlvmLibraryError> {
    static LIBRARY: OnceCell<Result<LlvmLibrary, LlvmLibraryError>> = OnceCell::new();
    let open = || {
        let (library, addresses) = first_usable(&SearchPlace::known())?;
        forward::fill(&addresses);
        Ok(library)
    };
    LIBRARY.get_or_init(open).as_ref().map_err(Clone::clone)
}

/// The libLLVM that [`library`] would use if `places` were the known places. It is opened and
/// checked, but not put to use.
///
/// # Errors
/// [`LlvmLibraryError`], naming every place and why it was passed over.
pub fn find_library(places: &[SearchPlace]) -> Result<LlvmLibrary, LlvmLibraryError> {
    first_usable(places).map(|(library, _)| library)
}

/// The first library of `places` that passes every check, with the addresses of its functions.
fn first_usable(places: &[SearchPlace]) -> Result<(LlvmLibrary, Addresses), LlvmLibraryError> {
    let mut refusals = Vec::new();
    for place in places {
        match place.candidates() {
            Err(reason) => refusals.push((place.describe(), Refusal::Unreadable(reason))),
            Ok(paths) => {
                for path in paths {
                    match open(&path) {
                        Ok(usable) => return Ok(usable),
                        Err(refusal) => refusals.push((path.display().to_string(), refusal)),
                    }
                }
            }
        }
    }
    Err(into_error(refusals))
}

/// Why one file or place was passed over.
enum Refusal {
    Unreadable(String),
    Version(PathBuf, (u32, u32, u32)),
    Symbol(PathBuf, String),
}

impl Refusal {
    fn reason(&self) -> String {
        match self {
            Refusal::Unreadable(reason) => reason.clone(),
            Refusal::Version(_, (major, minor, patch)) => {
                format!("it is LLVM {major}.{minor}.{patch}")
            }
            Refusal::Symbol(_, symbol) => format!("it does not export {symbol}"),
        }
    }
}

/// The error for a search without result: the refusal that came closest to success names it.
fn into_error(refusals: Vec<(String, Refusal)>) -> LlvmLibraryError {
    let searched = refusals
        .iter()
        .map(|(place, refusal)| Searched {
            place: place.clone(),
            reason: refusal.reason(),
        })
        .collect();
    let mut wrong_version = None;
    for (_, refusal) in refusals {
        match refusal {
            Refusal::Symbol(path, symbol) => {
                return LlvmLibraryError::MissingSymbol {
                    path,
                    symbol,
                    searched,
                };
            }
            Refusal::Version(path, version) => {
                wrong_version.get_or_insert((path, version));
            }
            Refusal::Unreadable(_) => {}
        }
    }
    match wrong_version {
        Some((path, version)) => LlvmLibraryError::WrongVersion {
            path,
            version,
            searched,
        },
        None => LlvmLibraryError::NotFound { searched },
    }
}

/// Opens and checks one file.
fn open(path: &Path) -> Result<(LlvmLibrary, Addresses), Refusal> {
    ending::register();
    let library = dlopen(path).map_err(|error| Refusal::Unreadable(cause(&error)))?;
    let version = version(&library).ok_or_else(|| without_version(&library))?;
    if version.0 != MAJOR {
        return Err(Refusal::Version(path.to_path_buf(), version));
    }
    let addresses = forward::addresses(|name| address(&library, name)).map_err(|symbol| {
        Refusal::Symbol(path.to_path_buf(), symbol.to_string_lossy().into_owned())
    })?;
    // Where it cannot be done, a process that ends while it compiles may end in libLLVM's way, as elsewhere than on Linux.
    keep_alive(&library);
    // Code of the library may run until the process ends, so it is never closed.
    std::mem::forget(library);
    ending::register();
    Ok((
        LlvmLibrary {
            path: path.to_path_buf(),
            version,
        },
        addresses,
    ))
}

/// Has the library's functions destroy nothing when the process ends; whether that could be done.
fn keep_alive(library: &Library) -> bool {
    #[cfg(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ))]
    if let Some(address) = address(library, c"LLVMContextCreate") {
        // SAFETY: it was opened with its symbols bound, and whoever calls this never closes it.
        return unsafe { destructors::keep_alive(address) };
    }
    let _ = library;
    false
}

/// Opens the file with its symbols kept to itself (`RTLD_LOCAL`) and bound at once, so that a
/// library with unmet dependencies is refused here and not in the middle of a compile.
#[cfg(unix)]
fn dlopen(path: &Path) -> Result<Library, libloading::Error> {
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
    // SAFETY: opening runs the file's constructors; the file is named like libLLVM and lies in a
    // place its user chose, or is part of a Rust toolchain. libLLVM's constructors have no
    // requirements on the caller.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map(Into::into)
}

/// Opens the file.
#[cfg(not(unix))]
fn dlopen(path: &Path) -> Result<Library, libloading::Error> {
    // SAFETY: as for Unix.
    unsafe { Library::new(path) }
}

/// The dynamic linker's own words, where libloading's text leaves them to the source.
fn cause(error: &libloading::Error) -> String {
    use std::error::Error;
    error
        .source()
        .map_or_else(|| error.to_string(), |source| source.to_string())
}

/// What the library's `LLVMGetVersion` says.
fn version(library: &Library) -> Option<(u32, u32, u32)> {
    type GetVersion = unsafe extern "C" fn(*mut c_uint, *mut c_uint, *mut c_uint);
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: the type is that of LLVMGetVersion in llvm-c/Core.h, the same since LLVM 16, and the
    // three pointers are valid for writing.
    unsafe {
        let get_version = library.get::<GetVersion>(c"LLVMGetVersion").ok()?;
        get_version(&raw mut major, &raw mut minor, &raw mut patch);
    }
    Some((major, minor, patch))
}

/// What a library is that does not say its version: an LLVM from before 16 or none at all.
fn without_version(library: &Library) -> Refusal {
    let reason = match address(library, c"LLVMContextCreate") {
        Some(_) => "it is an LLVM older than 16: it does not export LLVMGetVersion",
        None => "it does not export LLVMGetVersion, so it is no libLLVM",
    };
    Refusal::Unreadable(reason.to_owned())
}

/// The address of a function of the library.
fn address(library: &Library, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the symbol is only turned into an address here; it is called with the type that
    // llvm-sys declares for its name.
    unsafe { library.get::<*mut c_void>(name) }
        .ok()
        .map(|symbol| *symbol)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn what_the_library_makes_is_kept_alive() {
        let path = &library().expect("it is there").path;
        // It is open already and stays so.
        let again = dlopen(path).expect("it can be opened");
        assert!(keep_alive(&again));
        std::mem::forget(again);
    }
}
