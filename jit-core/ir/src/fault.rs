//! Faults: how a kernel says that a thread did something it must not.
//!
//! A checked access whose index is out of bounds, a checked assumption and an assertion that does not hold, ends its
//! thread and claims the launch's fault
//! record; the first thread to claim it writes where it was and what it asked for. The next
//! synchronizing call returns the record as an error value. No trap is involved: the other
//! threads go on and the device stays usable.
//!
//! On the GPU, a hidden parameter ([`crate::HiddenSource::FaultChannel`]) is the address of a
//! [`FaultChannel`] in device memory; its `record` points at a [`FaultRecord`] in host memory that the device can reach. A
//! faulting thread exchanges `claimed` from 0 to 1, writes the record, makes it visible to the
//! host (PTX `fence.sys`) and stores `state` = 1 last.

use crate::{AddressSpace, Check, FuncId, Inst, Module, Scalar, Told};

/// Device-side head of the fault channel.
#[derive(Copy, Clone, Debug, Default)]
#[repr(C)]
pub struct FaultChannel {
    /// 0, or 1 once a thread has claimed the record.
    pub claimed: u32,
    /// Unused.
    pub padding: u32,
    /// Device-visible address of the record.
    pub record: u64,
}

/// What a faulting thread leaves behind. The layout is part of the kernel ABI.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct FaultRecord {
    /// 0: nothing; 1: the rest is valid.
    pub state: u32,
    /// Which access, as an index into the kernel's fault sites.
    pub site: u32,
    /// Which kernel: the tag that was compiled in.
    pub kernel_tag: u64,
    /// The index asked for, sign-extended to 64 bits if its type is signed; at an assertion with values the bits of the
    /// left one, zero-extended; 0 otherwise.
    pub index: u64,
    /// The number of elements there are; at an assertion with values the bits of the right one; 0 otherwise.
    pub length: u64,
    /// Index of the block in the grid.
    pub block: [u32; 3],
    /// Index of the thread in its block.
    pub thread: [u32; 3],
    /// Unused.
    pub padding: [u32; 2],
}

/// A place in a kernel's code that can fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultSite {
    /// The function it was written in, also where its body was put in place of a call.
    pub function: String,
    /// The line that built it, as `file:line:column`.
    pub location: String,
    /// Whether the index is of a signed type.
    pub signed_index: bool,
    /// Where the slice or array lies, as far as its type says.
    pub space: AddressSpace,
    /// The condition of an assumption as it is written.
    pub assumed: Option<String>,
    /// The message of an assertion.
    pub message: Option<String>,
    /// What the values of an assertion are, if it tells any.
    pub values: Option<Scalar>,
}

/// The instructions of a module that can fault, in the order of their site numbers.
pub fn fault_insts(module: &Module) -> Vec<(FuncId, Inst)> {
    let mut sites = Vec::new();
    for (id, function) in module.functions.iter() {
        function.for_each_inst(|_, inst| {
            if function.insts[inst].data.can_fault() {
                sites.push((id, inst));
            }
        });
    }
    sites
}

/// The fault sites of a module, for turning a record into an error.
pub fn fault_sites(module: &Module) -> Vec<FaultSite> {
    let describe = |(id, inst): (FuncId, Inst)| {
        let function = &module.functions[id];
        let node = &function.insts[inst];
        let site = FaultSite {
            function: module.function_of(node.location, &function.name).to_owned(),
            location: module.display_location(node.location),
            signed_index: false,
            space: AddressSpace::Generic,
            assumed: None,
            message: None,
            values: None,
        };
        match node.data.assumption().map(|assumed| assumed.told) {
            Some(Told::Condition(text)) => {
                let assumed = Some(text.to_owned());
                return Some(FaultSite { assumed, ..site });
            }
            Some(Told::Message(message, values)) => {
                return Some(FaultSite {
                    message: Some(message.to_owned()),
                    values: values.and_then(|[left, _]| function.type_of(left).as_scalar()),
                    ..site
                });
            }
            None => {}
        }
        let Check { base, index } = node.data.check()?;
        let index = function.type_of(index).as_scalar();
        Some(FaultSite {
            signed_index: index.is_some_and(|scalar| scalar.is_signed_int()),
            space: match module.types.address(function.type_of(base)) {
                Some(address) => address.space,
                None => AddressSpace::Generic,
            },
            ..site
        })
    };
    fault_insts(module)
        .into_iter()
        .filter_map(describe)
        .collect()
}
