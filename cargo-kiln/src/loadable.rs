//! What the loader of the system reads of a shared library.

use object::elf::{FileHeader64, PT_LOAD};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{LittleEndian, pod};

/// A shared library without what lies behind its last segment, which is the table of its sections and the names that
/// debuggers read: an eighth of Rust's libLLVM. `strip` does not do here: it moves segments that BOLT has laid out, and
/// the library that it makes crashes.
///
/// What is no library for 64-bit ELF comes back as it is.
pub fn loadable(mut library: Vec<u8>) -> Vec<u8> {
    let Some(end) = end_of_segments(&library) else {
        return library;
    };
    let Ok((header, _)) = pod::from_bytes_mut::<FileHeader64<LittleEndian>>(&mut library) else {
        return library;
    };
    header.e_shoff = Default::default();
    header.e_shnum = Default::default();
    header.e_shstrndx = Default::default();
    library.truncate(end);
    library
}

/// Where the last segment ends that is loaded, and the table of segments, too.
fn end_of_segments(library: &[u8]) -> Option<usize> {
    let header = FileHeader64::<LittleEndian>::parse(library).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, library).ok()?;
    let table = header.e_phoff(endian) + size_of_val(segments) as u64;
    let loaded = segments.iter().filter(|s| s.p_type(endian) == PT_LOAD);
    let ends = loaded.map(|s| s.p_offset(endian).checked_add(s.p_filesz(endian)));
    let end = ends.collect::<Option<Vec<u64>>>()?.into_iter().max()?;
    let end = usize::try_from(end.max(table)).ok()?;
    (end <= library.len()).then_some(end)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// This test's own program is such a file, and runs without what debuggers read.
    #[test]
    fn a_program_runs_without_its_sections() {
        let this = std::env::current_exe().expect("a test has a program");
        let whole = std::fs::read(&this).expect("it can be read");
        let cut = loadable(whole.clone());
        assert!(cut.len() < whole.len(), "{} bytes", whole.len());
        assert_eq!(loadable(cut.clone()), cut);
        let file = std::env::temp_dir().join(format!("cargo-kiln-cut-{}", std::process::id()));
        std::fs::copy(&this, &file).expect("a file with its permissions");
        std::fs::write(&file, cut).expect("a file");
        let listed = Command::new(&file).arg("--list").output();
        std::fs::remove_file(&file).expect("it is there");
        let listed = listed.expect("it starts");
        let listed = String::from_utf8_lossy(&listed.stdout);
        assert!(
            listed.contains("a_program_runs_without_its_sections"),
            "{listed}"
        );
    }

    #[test]
    fn what_is_no_library_stays_as_it_is() {
        let this = std::env::current_exe().expect("a test has a program");
        let whole = std::fs::read(&this).expect("it can be read");
        for odd in [&[][..], b"\x7fELF", &whole[..64], &whole[..4096]] {
            assert_eq!(loadable(odd.to_vec()), odd);
        }
    }
}
