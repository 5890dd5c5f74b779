//! Finding the driver library, and what can be asked before a device is opened.
//!
//! The library is opened on first use and never closed: it starts threads and exit routines of its
//! own that must not lose their code. So a [`Driver`] lives as long as the process.

use std::ffi::{CStr, c_int};
use std::fmt;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::ptr;

use libloading::Library;
use once_cell::sync::OnceCell;

use kiln_ir::environment::Environment;

use super::error::{DriverError, ErrorCode};
use super::table::{Code, Table};
use crate::forked::Process;

/// The oldest driver accepted, as `cuDriverGetVersion` counts: CUDA 11.8, the first that accepts
/// PTX 7.8, which is the oldest PTX that [`kiln_ir::target::PtxTarget::for_sm`] chooses.
pub const MIN_DRIVER_VERSION: u32 = 11080;

/// Names of the driver library, in the order in which they are tried.
#[cfg(not(windows))]
const LIBRARY_NAMES: &[&str] = &["libcuda.so.1", "libcuda.so"];
#[cfg(windows)]
const LIBRARY_NAMES: &[&str] = &["nvcuda.dll"];

/// What the user can say about the driver from outside the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriverSettings {
    /// Path of the driver library, tried instead of the usual names (KILN_LIBCUDA).
    pub library: Option<PathBuf>,
    /// The value of CUDA_VISIBLE_DEVICES, for messages only; the driver reads it itself.
    pub visible_devices: Option<String>,
}

impl DriverSettings {
    /// What the process's environment says.
    pub(crate) fn from_environment() -> DriverSettings {
        let environment = Environment::get();
        DriverSettings {
            library: environment.libcuda.clone(),
            visible_devices: environment.cuda_visible_devices.clone(),
        }
    }
}

/// The CUDA driver: its entry points and version.
pub struct Driver {
    pub(super) table: Table,
    library: String,
    version: u32,
    visible_devices: Option<String>,
    process: Process,
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("library", &self.library)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl Driver {
    /// The process's driver: opened at the first call, the same object afterwards. A failure is
    /// not remembered, so a later call tries again.
    ///
    /// # Errors
    /// Those of [`Driver::open_with`].
    pub fn load() -> Result<&'static Driver, DriverError> {
        static DRIVER: OnceCell<&'static Driver> = OnceCell::new();
        DRIVER
            .get_or_try_init(|| Driver::open_with(&DriverSettings::from_environment()))
            .copied()
    }

    /// A driver from the library at this path. Never unloaded: call it once per path.
    ///
    /// # Errors
    /// Those of [`Driver::open_with`].
    pub fn open(path: impl AsRef<Path>) -> Result<&'static Driver, DriverError> {
        Driver::open_with(&DriverSettings {
            library: Some(path.as_ref().to_owned()),
            visible_devices: None,
        })
    }

    /// Opens the library, resolves its entry points, checks its version and initializes it
    /// (`cuInit`).
    ///
    /// # Errors
    /// [`DriverError::LibraryNotFound`], [`DriverError::SymbolMissing`],
    /// [`DriverError::DriverTooOld`], [`DriverError::StubLibrary`], [`DriverError::NoDevice`], or
    /// [`DriverError::Other`] with the code of `cuInit`.
    pub fn open_with(settings: &DriverSettings) -> Result<&'static Driver, DriverError> {
        let (library, name) = open_library(settings.library.as_deref())?;
        let table = Table::resolve(&library, &name)?;
        let mut driver = Driver {
            table,
            library: name,
            version: 0,
            visible_devices: settings.visible_devices.clone(),
            process: Process::this(),
        };
        driver.version = driver.query_version()?;
        if driver.version < MIN_DRIVER_VERSION {
            return Err(DriverError::DriverTooOld {
                version: driver.version,
                required: MIN_DRIVER_VERSION,
                library: driver.library,
            });
        }
        driver.initialize()?;
        Ok(Box::leak(Box::new(driver)))
    }

    /// The newest CUDA version that the driver supports: 12.8 is 12080.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The newest PTX ISA version that the driver accepts: major, minor.
    pub fn max_ptx_version(&self) -> (u32, u32) {
        max_ptx_version(self.version)
    }

    /// Number of devices that the process may use.
    ///
    /// # Errors
    /// [`DriverError::NoDevice`] when there is none, [`DriverError::ForkedProcess`], or [`DriverError::Other`].
    pub fn device_count(&self) -> Result<u32, DriverError> {
        if self.process.is_parent() {
            return Err(DriverError::ForkedProcess {
                parent: self.process.id(),
                child: std::process::id(),
            });
        }
        let mut count: c_int = 0;
        // SAFETY: `count` outlives the call.
        let code = unsafe { (self.table.cuDeviceGetCount)(&mut count) };
        self.check("cuDeviceGetCount", code)?;
        match u32::try_from(count) {
            Ok(count) if count > 0 => Ok(count),
            _ => Err(self.no_device()),
        }
    }

    pub(super) fn visible_devices(&self) -> Option<String> {
        self.visible_devices.clone()
    }

    /// Turns a code that no context is concerned with into a result.
    pub(super) fn check(&self, call: &'static str, code: Code) -> Result<(), DriverError> {
        match code {
            0 => Ok(()),
            34 => Err(DriverError::StubLibrary {
                library: self.library.clone(),
            }),
            100 => Err(self.no_device()),
            _ => Err(DriverError::Other {
                call,
                code: self.describe(code),
            }),
        }
    }

    /// The driver's name and description of a code.
    pub(super) fn describe(&self, code: Code) -> ErrorCode {
        let text = |lookup: unsafe extern "C" fn(Code, *mut *const std::ffi::c_char) -> Code| {
            let mut text = ptr::null();
            // SAFETY: `text` outlives the call.
            let found = unsafe { lookup(code, &mut text) };
            if found != 0 || text.is_null() {
                return None;
            }
            // SAFETY: on success it is a NUL-terminated string that lives as long as the library.
            let text = unsafe { CStr::from_ptr(text) };
            Some(text.to_string_lossy().into_owned())
        };
        ErrorCode {
            code,
            name: text(self.table.cuGetErrorName).unwrap_or_else(|| "unknown code".to_owned()),
            description: text(self.table.cuGetErrorString)
                .unwrap_or_else(|| "the driver has no description of it".to_owned()),
        }
    }

    fn no_device(&self) -> DriverError {
        DriverError::NoDevice {
            visible_devices: self.visible_devices.clone(),
        }
    }

    fn query_version(&self) -> Result<u32, DriverError> {
        let mut version: c_int = 0;
        // SAFETY: `version` outlives the call; it may be called before `cuInit`.
        let code = unsafe { (self.table.cuDriverGetVersion)(&mut version) };
        self.check("cuDriverGetVersion", code)?;
        Ok(u32::try_from(version).unwrap_or(0))
    }

    fn initialize(&self) -> Result<(), DriverError> {
        // SAFETY: the flags must be 0; repeated calls are allowed.
        let code = unsafe { (self.table.cuInit)(0) };
        self.check("cuInit", code)
    }
}

/// Opens the library given, or the first of the usual names that can be opened.
fn open_library(path: Option<&Path>) -> Result<(ManuallyDrop<Library>, String), DriverError> {
    let candidates: Vec<PathBuf> = match path {
        Some(path) => vec![path.to_owned()],
        None => LIBRARY_NAMES.iter().map(PathBuf::from).collect(),
    };
    let mut tried = Vec::new();
    for candidate in candidates {
        let name = candidate.display().to_string();
        // SAFETY: runs the library's initialization routines; libcuda's have no precondition, and
        // another library is the user's explicit choice.
        match unsafe { Library::new(&candidate) } {
            Ok(library) => return Ok((ManuallyDrop::new(library), name)),
            Err(error) => tried.push(format!("`{name}` ({error})")),
        }
    }
    Err(DriverError::LibraryNotFound { tried })
}

/// The newest PTX ISA version that a driver of this CUDA version accepts, as (major, minor): PTX
/// ISA, "Release Notes", table "PTX Release History". A version in between or newer than the table
/// gets the newest row not above it; before CUDA 11.0 it is (6, 5).
pub fn max_ptx_version(driver_version: u32) -> (u32, u32) {
    const RELEASES: &[(u32, (u32, u32))] = &[
        (11000, (7, 0)),
        (11010, (7, 1)),
        (11020, (7, 2)),
        (11030, (7, 3)),
        (11040, (7, 4)),
        (11050, (7, 5)),
        (11060, (7, 6)),
        (11070, (7, 7)),
        (11080, (7, 8)),
        (12000, (8, 0)),
        (12010, (8, 1)),
        (12020, (8, 2)),
        (12030, (8, 3)),
        (12040, (8, 4)),
        (12050, (8, 5)),
        (12070, (8, 6)),
        (12080, (8, 7)),
        (12090, (8, 8)),
        (13000, (9, 0)),
        (13010, (9, 1)),
    ];
    RELEASES
        .iter()
        .rev()
        .find(|(release, _)| *release <= driver_version)
        .map_or((6, 5), |(_, ptx)| *ptx)
}
