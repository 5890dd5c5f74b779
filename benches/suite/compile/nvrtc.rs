//! NVRTC, opened where there is one: NVIDIA's compiler from CUDA C++ to PTX as a library, which is what a program that
//! compiles kernels while it runs takes instead of Kiln.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};

use libloading::Library;

/// Names that the system's loader may find the library under, newest first.
const NAMES: [&str; 3] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];

/// Has NVRTC compile what it has compiled before, which it otherwise keeps on disk and only looks up.
const NO_CACHE: &str = "--no-cache";

/// NVRTC's answer to an option that it does not know.
const INVALID_OPTION: c_int = 5;

/// What nvcc has from the C library's `math.h`, which NVRTC does without.
const INFINITY: &str = "-DINFINITY=__int_as_float(0x7f800000)";

/// A program of NVRTC's.
type Program = *mut c_void;

/// Takes the program, a number of options and these.
type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
/// Takes where the program goes, its source, its name, and a number of headers, with their texts and names.
type Create = unsafe extern "C" fn(
    *mut Program,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type Text = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;

/// The library.
pub struct Nvrtc {
    create: Create,
    compile: Compile,
    size: Size,
    ptx: Text,
    log_size: Size,
    log: Text,
    destroy: unsafe extern "C" fn(*mut Program) -> c_int,
    version: Version,
    _library: Library,
}

impl Nvrtc {
    /// The library at a path, or that which the system's loader finds.
    pub fn open(path: Option<&Path>) -> Result<Nvrtc, libloading::Error> {
        // SAFETY: opening NVIDIA's library runs its constructors, which have no requirements.
        let open = |name: &std::ffi::OsStr| unsafe { Library::new(name) };
        let library = match path {
            Some(path) => open(path.as_os_str())?,
            None => {
                let found = NAMES.iter().find_map(|name| open(name.as_ref()).ok());
                found.map_or_else(|| open(NAMES[0].as_ref()), Ok)?
            }
        };
        // SAFETY: these functions have these signatures (nvrtc.h), and the library stays open as long as they are kept.
        unsafe {
            Ok(Nvrtc {
                create: *library.get(b"nvrtcCreateProgram")?,
                compile: *library.get(b"nvrtcCompileProgram")?,
                size: *library.get(b"nvrtcGetPTXSize")?,
                ptx: *library.get(b"nvrtcGetPTX")?,
                log_size: *library.get(b"nvrtcGetProgramLogSize")?,
                log: *library.get(b"nvrtcGetProgramLog")?,
                destroy: *library.get(b"nvrtcDestroyProgram")?,
                version: *library.get(b"nvrtcVersion")?,
                _library: library,
            })
        }
    }

    /// What it is: 13.0.
    pub fn version(&self) -> String {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both are valid for writes.
        let done = unsafe { (self.version)(&raw mut major, &raw mut minor) };
        assert_eq!(done, 0, "NVRTC knows its version");
        format!("{major}.{minor}")
    }

    /// The PTX of a source of CUDA C++, with everything that is in it, optimized as NVRTC does.
    pub fn ptx(&self, source: &str, sm: u32) -> String {
        let source = CString::new(source).expect("a source without zeros");
        let architecture = format!("--gpu-architecture=compute_{sm}");
        self.compile(&source, &[&architecture, INFINITY, NO_CACHE])
            .or_else(|| self.compile(&source, &[&architecture, INFINITY]))
            .expect("NVRTC knows the options")
    }

    /// The PTX of a source; `None` if NVRTC does not know one of the options.
    fn compile(&self, source: &CStr, options: &[&str]) -> Option<String> {
        let options = options
            .iter()
            .map(|&option| CString::new(option).expect("text"));
        let options: Vec<CString> = options.collect();
        let options: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        let mut program = null_mut();
        // SAFETY: the strings end with zeros and outlive the calls; the program is destroyed once, at the end.
        unsafe {
            let name = c"twin.cu".as_ptr();
            let made = (self.create)(&raw mut program, source.as_ptr(), name, 0, null(), null());
            assert_eq!(made, 0, "NVRTC takes the source");
            let compiled = (self.compile)(program, options.len() as c_int, options.as_ptr());
            let ptx = (compiled != INVALID_OPTION).then(|| {
                assert_eq!(compiled, 0, "{}", text(program, self.log_size, self.log));
                text(program, self.size, self.ptx)
            });
            (self.destroy)(&raw mut program);
            ptx
        }
    }
}

/// A text that NVRTC keeps with a program.
///
/// # Safety
/// `program` is one of NVRTC's, and `size` tells how much `get` writes.
unsafe fn text(program: Program, size: Size, get: Text) -> String {
    let mut length = 0;
    // SAFETY: the caller's promise; the memory is as long as was asked for.
    let bytes = unsafe {
        assert_eq!(size(program, &raw mut length), 0, "NVRTC has the text");
        let mut bytes = vec![0u8; length];
        assert_eq!(get(program, bytes.as_mut_ptr().cast()), 0, "NVRTC gives it");
        bytes
    };
    String::from_utf8_lossy(&bytes)
        .trim_end_matches('\0')
        .to_owned()
}
