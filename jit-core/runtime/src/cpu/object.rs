//! Loads an object file of the host: places its sections in memory, resolves what they refer to,
//! makes the code executable.
//!
//! Code may refer to its own sections and to the functions of a table, [`super::symbols`] for host
//! code, nothing else: a name that is not there is an error, never a null call. The memory is freed with the object.

use std::collections::HashMap;

use kiln_ir::{debug_as_text, error_text};

use memmap2::{Mmap, MmapMut};
use object::read::{Object as _, ObjectSection as _, ObjectSymbol as _};
use object::{
    Architecture, RelocationFlags, RelocationTarget, SectionIndex, SectionKind, SymbolSection, elf,
};

/// Why an object cannot be loaded.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", error_text!("machine code of kernel `{kernel}` cannot be loaded: {what}"))]
pub struct ObjectError {
    /// The kernel.
    pub kernel: String,
    /// What is wrong.
    pub what: String,
}

debug_as_text!(ObjectError);

/// Where functions and memory outside are, by name.
pub(crate) type Symbols<'a> = &'a dyn Fn(&str) -> Option<usize>;

/// An object in memory.
#[derive(Debug)]
pub(crate) struct LoadedObject {
    memory: Mmap,
    entry: usize,
}

/// A jump to an address far away: `jmp [rip + 0]` and the address (x86-64).
const STUB_BYTES: usize = 16;

/// Where a stub holds the address.
const STUB_ADDRESS: usize = 6;

impl LoadedObject {
    /// Loads an object and finds the function `entry`.
    pub(crate) fn load(
        kernel: &str,
        bytes: &[u8],
        entry: &str,
        symbols: Symbols<'_>,
    ) -> Result<Self, ObjectError> {
        Loader::load(bytes, entry, symbols).map_err(|what| ObjectError {
            kernel: kernel.to_owned(),
            what,
        })
    }

    /// The address of the entry.
    pub(crate) fn entry(&self) -> *const u8 {
        self.memory.as_ptr().wrapping_add(self.entry)
    }
}

/// Relocations that want the place of an address, which a linker would put in a table (System V ABI, AMD64
/// supplement, "Global Offset Table").
const ADDRESS_OF_OUTSIDE: [elf::RelocationType; 3] = [
    elf::R_X86_64_GOTPCREL,
    elf::R_X86_64_GOTPCRELX,
    elf::R_X86_64_REX_GOTPCRELX,
];

struct Loader<'d> {
    file: object::File<'d>,
    /// Offsets of sections in the memory.
    sections: HashMap<SectionIndex, usize>,
    /// Offsets of the stubs for functions outside.
    stubs: HashMap<String, usize>,
    /// Where the next stub goes.
    next_stub: usize,
    symbols: Symbols<'d>,
    memory: MmapMut,
}

type Result<T, E = String> = std::result::Result<T, E>;

impl<'d> Loader<'d> {
    fn load(bytes: &'d [u8], entry: &str, symbols: Symbols<'d>) -> Result<LoadedObject> {
        let file = object::File::parse(bytes).map_err(|e| e.to_string())?;
        if file.architecture() != Architecture::X86_64 {
            return Err(format!(
                "objects of {:?} are not supported; use the interpreter",
                file.architecture()
            ));
        }
        let (sections, end) = place_sections(&file);
        let outside = file.symbols().filter(|s| s.is_undefined()).count();
        let size = end + outside * STUB_BYTES;
        let memory = MmapMut::map_anon(size.max(1)).map_err(|e| e.to_string())?;
        let mut loader = Loader {
            file,
            sections,
            stubs: HashMap::new(),
            next_stub: end,
            symbols,
            memory,
        };
        loader.copy_sections()?;
        loader.relocate()?;
        let entry = loader.find(entry)?;
        let memory = loader.memory.make_exec().map_err(|e| e.to_string())?;
        Ok(LoadedObject { memory, entry })
    }

    fn copy_sections(&mut self) -> Result<()> {
        for section in self.file.sections() {
            let Some(&at) = self.sections.get(&section.index()) else {
                continue;
            };
            let data = section.data().map_err(|e| e.to_string())?;
            let place = self.memory.get_mut(at..at + data.len());
            place
                .ok_or("a section that does not fit")?
                .copy_from_slice(data);
        }
        Ok(())
    }

    /// The offset of a symbol of the object.
    fn find(&self, name: &str) -> Result<usize> {
        let symbol = self.file.symbols().find(|s| s.name() == Ok(name));
        let symbol = symbol.ok_or_else(|| format!("it has no `{name}`"))?;
        self.offset_of(symbol.index())
    }

    fn offset_of(&self, index: object::SymbolIndex) -> Result<usize> {
        let symbol = self
            .file
            .symbol_by_index(index)
            .map_err(|e| e.to_string())?;
        match symbol.section() {
            SymbolSection::Section(section) => {
                let start = self.sections.get(&section);
                let start = start.ok_or("a symbol in a section that is not loaded")?;
                Ok(start + symbol.address() as usize)
            }
            _ => Err(format!(
                "`{}` lies nowhere",
                symbol.name().unwrap_or("a symbol")
            )),
        }
    }

    fn relocate(&mut self) -> Result<()> {
        let mut pending = Vec::new();
        for section in self.file.sections() {
            if let Some(&start) = self.sections.get(&section.index()) {
                for (offset, relocation) in section.relocations() {
                    pending.push((start + offset as usize, relocation));
                }
            }
        }
        for (place, relocation) in pending {
            let RelocationTarget::Symbol(symbol) = relocation.target() else {
                return Err("a relocation without a symbol".to_owned());
            };
            let (flags, target) = match relocation.flags() {
                RelocationFlags::Elf { r_type } if ADDRESS_OF_OUTSIDE.contains(&r_type) => {
                    let r_type = elf::R_X86_64_PC32;
                    (
                        RelocationFlags::Elf { r_type },
                        self.address_of_outside(symbol)?,
                    )
                }
                flags => (flags, self.target(symbol)?),
            };
            self.apply(place, flags, target, relocation.addend())?;
        }
        Ok(())
    }

    /// The offset of what a symbol stands for: in the object, or a stub that jumps there.
    fn target(&mut self, index: object::SymbolIndex) -> Result<usize> {
        let symbol = self
            .file
            .symbol_by_index(index)
            .map_err(|e| e.to_string())?;
        if !symbol.is_undefined() {
            return self.offset_of(index);
        }
        let name = symbol.name().map_err(|e| e.to_string())?.to_owned();
        if let Some(&stub) = self.stubs.get(&name) {
            return Ok(stub);
        }
        let address = (self.symbols)(&name)
            .ok_or_else(|| format!("it calls `{name}`, which Kiln does not offer"))?;
        let stub = self.next_stub;
        let mut code = [0u8; STUB_BYTES];
        code[..6].copy_from_slice(&[0xff, 0x25, 0, 0, 0, 0]);
        code[STUB_ADDRESS..][..8].copy_from_slice(&(address as u64).to_le_bytes());
        let place = self.memory.get_mut(stub..stub + STUB_BYTES);
        place.ok_or("no place for a stub")?.copy_from_slice(&code);
        self.next_stub += STUB_BYTES;
        self.stubs.insert(name, stub);
        Ok(stub)
    }

    /// The offset of the address of a symbol that is not in the object.
    fn address_of_outside(&mut self, index: object::SymbolIndex) -> Result<usize> {
        let symbol = self.file.symbol_by_index(index);
        match symbol.map_err(|e| e.to_string())?.is_undefined() {
            true => Ok(self.target(index)? + STUB_ADDRESS),
            false => Err("an address of its own in a table".to_owned()),
        }
    }

    /// Writes an address (System V ABI, AMD64 supplement, "Relocation Types").
    fn apply(
        &mut self,
        place: usize,
        flags: RelocationFlags,
        target: usize,
        addend: i64,
    ) -> Result<()> {
        let RelocationFlags::Elf { r_type } = flags else {
            return Err("a relocation of another kind of file".to_owned());
        };
        match r_type {
            elf::R_X86_64_PC32 | elf::R_X86_64_PLT32 => {
                let distance = target as i64 + addend - place as i64;
                let distance = i32::try_from(distance).map_err(|_| "code of more than 2 GiB")?;
                self.write(place, &distance.to_le_bytes())
            }
            elf::R_X86_64_64 => {
                let base = self.memory.as_ptr().expose_provenance() as i64;
                let address = base + target as i64 + addend;
                self.write(place, &address.to_le_bytes())
            }
            other => Err(format!("relocation {other:?} is not supported")),
        }
    }

    fn write(&mut self, place: usize, bytes: &[u8]) -> Result<()> {
        let at = self.memory.get_mut(place..place + bytes.len());
        at.ok_or("a relocation outside of its section")?
            .copy_from_slice(bytes);
        Ok(())
    }
}

/// Where each section goes that is needed at run time, and the end.
fn place_sections(file: &object::File<'_>) -> (HashMap<SectionIndex, usize>, usize) {
    let mut sections = HashMap::new();
    let mut end = 0usize;
    for section in file.sections() {
        let needed = matches!(
            section.kind(),
            SectionKind::Text
                | SectionKind::ReadOnlyData
                | SectionKind::ReadOnlyString
                | SectionKind::ReadOnlyDataWithRel
        );
        // Tables for unwinding refer to code by ways that nobody follows here.
        if needed && !section.name().unwrap_or("").starts_with(".eh_frame") {
            let start = end.next_multiple_of(section.align().max(16) as usize);
            sections.insert(section.index(), start);
            end = start + section.size() as usize;
        }
    }
    (sections, end.next_multiple_of(16))
}
