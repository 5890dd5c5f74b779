//! An address as an element of a named array, for people.

use kiln_ir::AddressSpace;

use super::Watched;
use crate::InterpretLaunch;
use crate::checks::MemoryPlace;
use crate::flatten::Program;

/// An array or variable of shared or local memory.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) space: AddressSpace,
    pub(crate) name: Option<String>,
    /// Offset in the block's shared memory, or in the thread's local memory.
    pub(crate) offset: u32,
    pub(crate) bytes: u64,
    /// Bytes of an element.
    pub(crate) element: u64,
}

/// A slice parameter of the kernel: where the parameter block has it.
#[derive(Debug)]
pub(crate) struct SliceParam {
    pub(crate) name: String,
    /// Offset of the address, 8 bytes.
    pub(crate) address: u32,
    /// Offset and size of the number of elements.
    pub(crate) length: (u32, u32),
    /// Bytes of an element.
    pub(crate) element: u64,
}

/// What addresses are called in a launch.
pub(crate) struct Names<'a> {
    program: &'a Program,
    params: &'a [u8],
    shared: (u64, u64),
    dynamic: u64,
    dynamic_bytes: u64,
    local: (u64, u64),
    device: &'a [(u64, u64)],
}

/// Something with a start that an address is in.
struct Found<'a> {
    space: AddressSpace,
    name: Option<&'a str>,
    start: u64,
    bytes: u64,
    element: u64,
}

impl Found<'_> {
    fn place(&self, address: u64) -> MemoryPlace {
        let element = self.element.max(1);
        let offset = address.saturating_sub(self.start);
        MemoryPlace {
            space: self.space,
            name: self.name.map(str::to_owned),
            index: offset / element,
            length: self.bytes / element,
            element_bytes: u32::try_from(element).unwrap_or(u32::MAX),
            offset,
        }
    }
}

/// Whether an address is in a range, and how far.
fn offset_in((start, bytes): (u64, u64), address: u64) -> Option<u64> {
    address.checked_sub(start).filter(|offset| *offset < bytes)
}

impl<'a> Names<'a> {
    pub(crate) fn new(
        program: &'a Program,
        launch: &'a InterpretLaunch<'a>,
        watched: &Watched<'a>,
    ) -> Self {
        Names {
            program,
            params: launch.params,
            shared: watched.shared,
            dynamic: watched.dynamic,
            dynamic_bytes: launch.dynamic_shared.into(),
            local: watched.local,
            device: watched.device,
        }
    }

    /// Where an address is.
    pub(crate) fn place(&self, address: u64) -> MemoryPlace {
        let found = self
            .in_shared(address)
            .or_else(|| self.in_local(address))
            .or_else(|| self.in_slice(address));
        found
            .unwrap_or_else(|| self.in_allocation(address))
            .place(address)
    }

    fn in_shared(&self, address: u64) -> Option<Found<'a>> {
        let offset = offset_in(self.shared, address)?;
        if let Some(found) = self.object(AddressSpace::Shared, offset, self.shared.0) {
            return Some(found);
        }
        Some(Found {
            space: AddressSpace::Shared,
            name: None,
            start: self.dynamic,
            bytes: self.dynamic_bytes,
            element: self.program.dynamic_element.into(),
        })
    }

    fn in_local(&self, address: u64) -> Option<Found<'a>> {
        let offset = offset_in(self.local, address)?;
        let bytes = u64::from(self.program.local_bytes).max(1);
        let start = address - offset % bytes;
        let found = self.object(AddressSpace::Local, offset % bytes, start);
        found.or(Some(Found {
            space: AddressSpace::Local,
            name: None,
            start,
            bytes,
            element: 1,
        }))
    }

    fn object(&self, space: AddressSpace, offset: u64, start: u64) -> Option<Found<'a>> {
        let inside = |o: &&Object| {
            o.space == space && offset_in((o.offset.into(), o.bytes), offset).is_some()
        };
        let object = self.program.objects.iter().find(inside)?;
        Some(Found {
            space,
            name: object.name.as_deref(),
            start: start + u64::from(object.offset),
            bytes: object.bytes,
            element: object.element,
        })
    }

    /// The number that the parameter block has in a slot.
    fn param(&self, offset: u32, size: u32) -> u64 {
        let mut word = [0; 8];
        let slot = offset as usize..(offset + size.min(8)) as usize;
        if let Some(bytes) = self.params.get(slot) {
            word[..bytes.len()].copy_from_slice(bytes);
        }
        u64::from_le_bytes(word)
    }

    fn in_slice(&self, address: u64) -> Option<Found<'a>> {
        self.program.slices.iter().find_map(|slice| {
            let start = self.param(slice.address, 8);
            let length = self.param(slice.length.0, slice.length.1);
            let bytes = length.saturating_mul(slice.element);
            offset_in((start, bytes), address)?;
            Some(Found {
                space: AddressSpace::Global,
                name: Some(&slice.name),
                start,
                bytes,
                element: slice.element,
            })
        })
    }

    fn in_allocation(&self, address: u64) -> Found<'a> {
        let mut device = self.device.iter();
        let found = device.find(|range| offset_in(**range, address).is_some());
        let (start, bytes) = found.copied().unwrap_or((address, 0));
        Found {
            space: AddressSpace::Global,
            name: None,
            start,
            bytes,
            element: 1,
        }
    }
}
