//! Where a launch writes what it passes, as far as that is numbers and slices: read off the layout once, when code is
//! loaded.

use kiln_compiler::abi::ParamKind;
use kiln_compiler::code::KernelInfo;

/// Where the words of an argument begin in the block.
#[derive(Copy, Clone)]
pub(crate) struct Place {
    /// Of a number of at most 8 bytes, or of an address.
    pub(crate) first: u32,
    /// Of a slice's length, which is behind its address; 0 of a number.
    pub(crate) length: u32,
}

/// The places of all arguments; none where something is passed by reference, in more than a word or hidden.
pub(super) fn places_of(info: &KernelInfo) -> Option<Box<[Place]>> {
    let layout = &info.layout;
    let place = |kind: &ParamKind| match *kind {
        ParamKind::Value(slot) if slot.size <= 8 => Some(Place {
            first: slot.offset,
            length: 0,
        }),
        ParamKind::Slice { address, length } => Some(Place {
            first: address.offset,
            length: length.offset,
        }),
        ParamKind::Value(_) | ParamKind::Reference { .. } => None,
    };
    let passed = layout.params.iter().take(layout.visible);
    let places = info.hidden.is_empty().then(|| passed.map(place));
    places.and_then(Iterator::collect)
}
