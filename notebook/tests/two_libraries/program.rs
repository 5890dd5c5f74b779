//! A program that shares its device with the two libraries that it is given.

use std::any::TypeId;
use std::ffi::{CString, c_char, c_int, c_void};

use kiln::prelude::*;

type Identity = fn() -> (TypeId, &'static str, usize);
type Run = fn(&Jit, &Arrays) -> Result<(), String>;

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// All of a library's symbols are looked up when it is loaded.
const RTLD_NOW: c_int = 2;

struct Library {
    identity: Identity,
    run: Run,
}

impl Library {
    fn load(path: &str) -> Library {
        let path = CString::new(path).expect("a path");
        // SAFETY: it is Rust's, and has no routines that run when it is loaded.
        let library = unsafe { dlopen(path.as_ptr(), RTLD_NOW) };
        assert!(!library.is_null(), "{path:?} cannot be loaded");
        let symbol = |name: &str| {
            let name = CString::new(name).expect("a name");
            // SAFETY: the library stays loaded.
            let address = unsafe { dlsym(library, name.as_ptr()) };
            assert!(!address.is_null(), "{name:?} is not there");
            address
        };
        // SAFETY: the types are those of the functions in `library.rs`.
        unsafe {
            Library {
                identity: std::mem::transmute::<*mut c_void, Identity>(symbol("identity")),
                run: std::mem::transmute::<*mut c_void, Run>(symbol("run")),
            }
        }
    }
}

fn main() {
    let libraries: Vec<Library> = std::env::args().skip(1).map(|p| Library::load(&p)).collect();
    let [narrow, wide] = libraries.as_slice() else {
        panic!("two libraries are needed");
    };
    let ((id, name, bytes), other) = ((narrow.identity)(), (wide.identity)());
    assert_eq!((id, name), (other.0, other.1), "Rust tells the types apart");
    assert_eq!((bytes, other.2), (8, 16));
    for order in [[narrow, wide, narrow], [wide, narrow, wide]] {
        let jit = Jit::on(Device::cpu());
        let arrays = Arrays::new(&jit);
        for (turn, library) in order.into_iter().enumerate() {
            assert_eq!((library.run)(&jit, &arrays), Ok(()), "turn {turn}");
        }
        println!("{} compiles", jit.cache_stats().compiles);
    }
}
