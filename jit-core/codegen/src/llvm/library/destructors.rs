//! Keeps alive what libLLVM makes while it works.
//!
//! Each of the library's functions makes the static objects of its own when it is first called, and has the C library
//! destroy them when the process ends: before all that was registered earlier, and while other threads go on. So no
//! handler of ours could come first. The library asks by `__cxa_atexit` (Itanium C++ ABI, 3.3.6), of which it keeps the
//! address in its table of functions from elsewhere (System V ABI, "Procedure Linkage Table"); there a function is put that
//! registers nothing. What the library's constructors have registered by then is destroyed after the handler that
//! `ending.rs` registers behind them.
//!
//! `RTLD_NODELETE` would be of no use: it is about `dlclose`, and destructors run at the process's end even so.

use std::ffi::{CStr, c_int, c_void};
use std::slice;
use std::sync::atomic::{AtomicPtr, Ordering};

/// An entry of a dynamic section (`Elf64_Dyn`).
#[repr(C)]
struct Dynamic {
    tag: i64,
    value: usize,
}

const DT_NULL: i64 = 0;
const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_JMPREL: i64 = 23;

/// How a symbol's address gets into the table: `R_X86_64_GLOB_DAT` and `R_X86_64_JUMP_SLOT`.
#[cfg(target_arch = "x86_64")]
const KINDS: [u64; 2] = [6, 7];
/// How a symbol's address gets into the table: `R_AARCH64_GLOB_DAT` and `R_AARCH64_JUMP_SLOT`.
#[cfg(target_arch = "aarch64")]
const KINDS: [u64; 2] = [1025, 1026];

/// The function that registers destructors.
const REGISTERS: &CStr = c"__cxa_atexit";

/// A library that is loaded: where, and its segments.
#[derive(Clone, Copy)]
struct Loaded {
    base: usize,
    segments: &'static [libc::Elf64_Phdr],
}

/// What is looked for among the libraries that are loaded.
struct Search {
    /// An address of the library's.
    address: usize,
    found: Option<Loaded>,
}

/// Has the library in which the address lies register no more destructors; whether its entry was found.
///
/// # Safety
/// The library is open, has bound its symbols and is never closed.
pub(super) unsafe fn keep_alive(address: *const c_void) -> bool {
    let mut search = Search {
        address: address.addr(),
        found: None,
    };
    // SAFETY: the function has the signature, and what it is handed outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(look_at), (&raw mut search).cast()) };
    let Some(loaded) = search.found else {
        return false;
    };
    // SAFETY: passed on to the caller.
    let entries = unsafe { entries(loaded) };
    for &entry in &entries {
        loaded.replace(entry);
    }
    !entries.is_empty()
}

/// Looks whether it is the library that is looked for.
unsafe extern "C" fn look_at(
    info: *mut libc::dl_phdr_info,
    _: usize,
    search: *mut c_void,
) -> c_int {
    // SAFETY: the C library hands over a description that is valid during the call, and what it was given for `search`.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
    // SAFETY: these are the library's segments, which stay in memory with it.
    let segments = unsafe { slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let loaded = Loaded {
        base: info.dlpi_addr as usize,
        segments,
    };
    if loaded.lies_in(libc::PT_LOAD, search.address) {
        search.found = Some(loaded);
    }
    search.found.is_some().into()
}

impl Loaded {
    /// Whether an address is in a segment of a kind.
    fn lies_in(self, kind: u32, address: usize) -> bool {
        self.segments.iter().any(|segment| {
            let start = self.base + segment.p_vaddr as usize;
            segment.p_type == kind && (start..start + segment.p_memsz as usize).contains(&address)
        })
    }

    /// Puts the function that registers nothing in an entry of the table.
    fn replace(self, entry: usize) {
        // SAFETY: asks for a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let start = (entry & !(page - 1)) as *mut c_void;
        let is_fixed = self.lies_in(libc::PT_GNU_RELRO, entry);
        if is_fixed {
            // SAFETY: the page is the library's, and is only read.
            let code = unsafe { libc::mprotect(start, page, libc::PROT_READ | libc::PROT_WRITE) };
            if code != 0 {
                return;
            }
        }
        // SAFETY: it is an entry of the library's table, aligned as an address, which may be written now. Others may read
        // it meanwhile, as they read an address.
        let entry = unsafe { AtomicPtr::from_ptr(entry as *mut *mut c_void) };
        entry.store(registers_nothing as *mut c_void, Ordering::Release);
        if is_fixed {
            // SAFETY: as above.
            unsafe { libc::mprotect(start, page, libc::PROT_READ) };
        }
    }
}

/// Where the library keeps the address of the function that registers destructors.
///
/// # Safety
/// The library is loaded and stays so.
unsafe fn entries(loaded: Loaded) -> Vec<usize> {
    let is_dynamic = |segment: &&libc::Elf64_Phdr| segment.p_type == libc::PT_DYNAMIC;
    let Some(dynamic) = loaded.segments.iter().find(is_dynamic) else {
        return Vec::new();
    };
    let section = (loaded.base + dynamic.p_vaddr as usize) as *const Dynamic;
    let value = |tag| {
        // SAFETY: the section ends with an entry of tag 0.
        let entries = (0..).map(|at| unsafe { &*section.add(at) });
        let mut entries = entries.take_while(|entry| entry.tag != DT_NULL);
        entries
            .find(|entry| entry.tag == tag)
            .map(|entry| entry.value)
    };
    // glibc has made addresses of them, musl leaves them as they are in the file.
    let address = |tag| {
        value(tag).map(|at| {
            if at < loaded.base {
                at + loaded.base
            } else {
                at
            }
        })
    };
    let (Some(symbols), Some(texts)) = (address(DT_SYMTAB), address(DT_STRTAB)) else {
        return Vec::new();
    };
    let lists = [(DT_JMPREL, DT_PLTRELSZ), (DT_RELA, DT_RELASZ)];
    let lists = lists.map(|(list, bytes)| address(list).zip(value(bytes)));
    let relocations = lists.into_iter().flatten().flat_map(|(list, bytes)| {
        let count = bytes / size_of::<libc::Elf64_Rela>();
        // SAFETY: the section says so.
        unsafe { slice::from_raw_parts(list as *const libc::Elf64_Rela, count) }
    });
    let registers = relocations.filter(|relocation| {
        if !KINDS.contains(&(relocation.r_info & 0xffff_ffff)) {
            return false;
        }
        let at = (relocation.r_info >> 32) as usize;
        // SAFETY: a relocation's number is that of one of the library's symbols, whose name lies among its texts.
        unsafe {
            let symbol = &*(symbols as *const libc::Elf64_Sym).add(at);
            CStr::from_ptr((texts + symbol.st_name as usize) as *const _) == REGISTERS
        }
    });
    registers
        .map(|relocation| loaded.base + relocation.r_offset as usize)
        .collect()
}

/// What the library calls in place of `__cxa_atexit`. It is told that all went well.
extern "C" fn registers_nothing(_: *mut c_void, _: *mut c_void, _: *mut c_void) -> c_int {
    0
}
