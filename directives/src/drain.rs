//! Copying out: what a turn of a loop writes of a slice is written in shared memory, and copied from there behind the turn.
//!
//! Which elements of the section these are depends on conditions around the writes and on the ends of loops. So there is a byte
//! for each place that says whether it was written: all are 0 when the turn begins, what writes an element sets that of its place,
//! and behind the turn, where all threads meet, each thread copies some of the places that were written, neighbours neighbouring
//! elements. An index was checked where the program writes the element.

use kiln_jit_core::ir::{AddressSpace, CompareOp, InstData, SharedData, SharedVar, Type, Value};

use crate::emit::Emit;
use crate::program::Program;
use crate::section::Section;
use crate::stage::Tile;

/// A section that is copied to a slice, and what tells which elements of it.
#[derive(Debug)]
pub(crate) struct Drain {
    pub(crate) tile: Tile,
    pub(crate) flags: Flags,
}

/// A byte for each place of a section, which is not 0 if the place was written.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Flags {
    shared: SharedVar,
    /// The types of the addresses of all, and of one.
    array: Type,
    one: Type,
    places: i128,
}

impl Flags {
    /// Declares the bytes of a section.
    pub(crate) fn of(program: &mut Program, section: &Section) -> Flags {
        let places = section.held();
        let types = &mut program.module.types;
        let ty = types.array(Type::U8, places as u64);
        let array = types.pointer(ty, AddressSpace::Shared, true);
        let one = types.pointer(Type::U8, AddressSpace::Shared, true);
        let shared = program.module.functions[program.kernel]
            .shared
            .push(SharedData {
                name: format!("offload.written.{}", section.slice()),
                ty,
                align: 1,
            });
        Flags {
            shared,
            array,
            one,
            places,
        }
    }

    fn address(self, emit: &mut Emit<'_>, index: Value) -> Value {
        let ptr = emit.value(InstData::SharedAddr(self.shared), self.array);
        let checked = false;
        let data = InstData::ElementPtr {
            ptr,
            index,
            checked,
        };
        emit.value(data, self.one)
    }

    /// Notes that a place is written.
    pub(crate) fn set(self, emit: &mut Emit<'_>, place: Value) {
        let (address, is_written) = (self.address(emit, place), emit.int(1, Type::U8));
        emit.store(address, is_written);
    }

    /// Notes that none is, as thread `own` of `threads`.
    pub(crate) fn clear(self, emit: &mut Emit<'_>, own: (Value, i128)) {
        emit.each_of(self.places, own, |emit, place| {
            let (address, nothing) = (self.address(emit, place), emit.int(0, Type::U8));
            emit.store(address, nothing);
        });
    }

    /// Copies what is at a place to the slice, if it was written.
    pub(crate) fn drain(self, emit: &mut Emit<'_>, tile: &Tile, (place, index): (Value, Value)) {
        let flag = self.address(emit, place);
        let (flag, nothing) = (emit.load(flag, Type::U8), emit.int(0, Type::U8));
        let was_written = emit.compare(CompareOp::Ne, flag, nothing);
        emit.where_(Some(was_written), |emit| {
            let from = tile.address(emit, place);
            let value = emit.load(from, tile.element.ty);
            let data = InstData::SliceIndex {
                slice: tile.section.slice,
                index,
                checked: false,
            };
            let to = emit.value(data, tile.element.in_slice);
            emit.store(to, value);
        });
    }
}
