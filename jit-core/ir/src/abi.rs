//! The kernel ABI: which bytes a launch passes, in which order.
//!
//! A kernel parameter becomes one or two slots of the parameter block: a slice is an address and a
//! length, everything else is one slot. Slots follow each other at their natural alignment, as
//! PTX lays out `.param` variables. Hidden parameters ([`crate::HiddenData`]) come last and are laid out as
//! the others: what hooks give, and the address of the fault channel (see [`crate::fault`]) in a kernel
//! that can fault and whose target tells faults so. Code generation, the interpreter and the launch all read this layout,
//! so they cannot disagree. [`LaunchArgs`] is such a block.

mod args;

use std::ops::Range;

use crate::{HiddenSource, Module, Passing};

pub use args::{DeviceAddress, LaunchArg, LaunchArgs, LaunchBlock, LaunchScalar};

/// One value in the parameter block.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ParamSlot {
    /// Offset from the start of the block, in bytes.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
}

impl ParamSlot {
    /// The bytes of the slot in the parameter block.
    #[inline]
    pub fn range(self) -> Range<usize> {
        let start = self.offset as usize;
        start..start + self.size as usize
    }
}

/// How one kernel parameter is passed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ParamKind {
    /// A value whose bytes are in the slot.
    Value(ParamSlot),
    /// The slot holds the device address of its bytes.
    Reference {
        /// Where the address goes.
        address: ParamSlot,
        /// How many bytes the value has.
        bytes: u32,
    },
    /// A slice: the address of the first element, and the number of elements in 4 bytes, or 8 for
    /// a wide slice.
    Slice {
        /// Where the address goes.
        address: ParamSlot,
        /// Where the length goes.
        length: ParamSlot,
    },
}

/// The parameter block of a kernel.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ParamLayout {
    /// The kernel's parameters, in order.
    pub params: Vec<ParamKind>,
    /// How many of them arguments are bound to; those behind are hidden.
    pub visible: usize,
    /// The slot of the fault channel's address, in a kernel that is passed one.
    pub fault_channel: Option<ParamSlot>,
    /// All slots in order.
    pub slots: Vec<ParamSlot>,
    /// Size of the block in bytes.
    pub size: u32,
}

impl ParamLayout {
    /// The layout for the kernel of a module whose types are concrete; `None` when it has no
    /// kernel or a parameter has no layout.
    pub fn of(module: &Module) -> Option<ParamLayout> {
        let kernel = &module.functions[module.kernel()?];
        let mut layout = ParamLayout::default();
        for param in &kernel.params {
            let ty = kernel.type_of(param.value);
            let kind = match (param.passing, module.types.as_slice(ty)) {
                (Passing::Direct, Some((_, wide))) => ParamKind::Slice {
                    address: layout.slot(8, 8),
                    length: if wide {
                        layout.slot(8, 8)
                    } else {
                        layout.slot(4, 4)
                    },
                },
                (Passing::Direct, None) => {
                    let value = module.types.layout(ty)?;
                    ParamKind::Value(layout.slot(value.size, value.align))
                }
                (passing, _) => {
                    let (pointee, _, _) = module.types.as_pointer(ty)?;
                    let value = module.types.layout(pointee)?;
                    if passing == Passing::ByValue {
                        ParamKind::Value(layout.slot(value.size, value.align))
                    } else {
                        let bytes = value.size as u32;
                        ParamKind::Reference {
                            address: layout.slot(8, 8),
                            bytes,
                        }
                    }
                }
            };
            layout.params.push(kind);
            let source = param.hidden.and_then(|id| module.hidden.get(id));
            let source = source.map(|data| &data.source);
            match (source, kind) {
                (None, _) => layout.visible += 1,
                (Some(HiddenSource::FaultChannel), ParamKind::Value(slot)) => {
                    layout.fault_channel = Some(slot);
                }
                (Some(_), _) => {}
            }
        }
        Some(layout)
    }

    fn slot(&mut self, size: u64, align: u64) -> ParamSlot {
        let offset = u64::from(self.size).next_multiple_of(align);
        // A layout beyond 4 GiB is refused by the parameter size limit before it is used.
        self.size = u32::try_from(offset + size).unwrap_or(u32::MAX);
        let slot = ParamSlot {
            offset: offset as u32,
            size: size as u32,
        };
        self.slots.push(slot);
        slot
    }
}
