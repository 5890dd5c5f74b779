//! Machine code of a kernel, loaded.

use std::sync::atomic::AtomicU64;

use kiln_ir::IntrinsicDef;
use kiln_ir::code::HostCode;
use kiln_ir::host_abi::{BlocksFn, ENTRY};

use super::object::{LoadedObject, ObjectError};
use super::run::Blocks;
use super::symbols;

/// Machine code, loaded.
pub(super) struct HostKernel {
    name: String,
    object: LoadedObject,
    rows: Vec<&'static IntrinsicDef>,
    arena_bytes: [usize; 2],
    blocks_a_call: u64,
    stack_bytes: usize,
    cost: AtomicU64,
}

impl HostKernel {
    /// Makes code runnable.
    pub(super) fn load(name: &str, code: &HostCode) -> Result<HostKernel, ObjectError> {
        Ok(HostKernel {
            name: name.to_owned(),
            object: LoadedObject::load(name, &code.object, ENTRY, &symbols::find)?,
            rows: code.rows.clone(),
            arena_bytes: code.arena_bytes.map(|bytes| bytes as usize),
            blocks_a_call: code.blocks_a_call.max(1),
            stack_bytes: code.stack_bytes as usize,
            cost: AtomicU64::new(0),
        })
    }
}

impl Blocks for HostKernel {
    fn entry(&self) -> BlocksFn {
        // SAFETY: the symbol is the function that `codegen::cpu::vector` declares with this signature;
        // the caller keeps `self` while it runs.
        unsafe { std::mem::transmute::<*const u8, BlocksFn>(self.object.entry()) }
    }

    fn arena_bytes(&self) -> [usize; 2] {
        self.arena_bytes
    }

    fn blocks_a_call(&self) -> u64 {
        self.blocks_a_call
    }

    fn rows(&self) -> &[&'static IntrinsicDef] {
        &self.rows
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn stack_bytes(&self) -> usize {
        self.stack_bytes
    }

    fn cost(&self) -> &AtomicU64 {
        &self.cost
    }
}
