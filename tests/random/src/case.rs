//! A case: a kernel with a launch of it and all the memory it works on.

use kiln_jit_core::ir::{Function, InstData, Module, Passing, Region, Type, TypeData};

/// An argument of a launch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Arg {
    /// The bytes of a scalar, a vector, or a struct that is passed by value.
    Bytes(Vec<u8>),
    /// All of a buffer, by its position in [`Case::buffers`]: for a slice its address and the
    /// number of elements, for a pointer or a reference its address.
    Buffer(usize),
}

/// A kernel, its launch, its arguments.
#[derive(Clone, Debug)]
pub struct Case {
    /// The kernel with everything it calls, in the legal phase.
    pub module: Module,
    /// Blocks of the grid.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub dynamic_shared: u32,
    /// One for each parameter of the kernel, in order.
    pub args: Vec<Arg>,
    /// Device memory as it is before the launch. Addresses are as aligned as the elements need and
    /// the parameters promise.
    pub buffers: Vec<Vec<u8>>,
    /// What the case was generated from.
    pub seed: u64,
}

impl Case {
    /// The kernel.
    ///
    /// # Panics
    /// If the module has none, which the verifier refuses.
    pub fn kernel(&self) -> &Function {
        let id = self
            .module
            .kernel()
            .expect("a verified module has a kernel");
        &self.module.functions[id]
    }

    /// Threads of a block.
    pub fn threads(&self) -> usize {
        self.block.iter().map(|&n| n as usize).product()
    }

    /// The number of instructions in all function bodies.
    pub fn instructions(&self) -> usize {
        let mut count = 0;
        for function in self.module.functions.values() {
            function.for_each_inst(|_, _| count += 1);
        }
        count
    }

    /// Whether there are operations of a warp, which has 32 lanes everywhere.
    pub fn uses_warps(&self) -> bool {
        let mut rows = self.module.intrinsics.values();
        rows.any(|row| row.is_of_warp())
    }

    /// Whether threads wait for others in a loop, so that blocks must begin in order: there is a loop
    /// with an atomic load that changes nothing itself, so that only somebody else can end it.
    pub fn waits(&self) -> bool {
        self.module.functions.values().any(|function| {
            let mut waits = false;
            function.for_each_inst(|_, inst| {
                if let InstData::Loop { body } = function.insts[inst].data {
                    let (loads, changes) = looks(function, body);
                    waits |= loads && !changes;
                }
            });
            waits
        })
    }

    /// What parameter `index` is made of: the element type of a slice, what a pointer points at, or
    /// the type itself.
    pub fn element(&self, index: usize) -> Type {
        let kernel = self.kernel();
        let param = &kernel.params[index];
        let ty = kernel.type_of(param.value);
        match *self.module.types.data(ty) {
            TypeData::Slice { element, .. } => element,
            TypeData::Pointer { pointee, .. } => pointee,
            _ => ty,
        }
    }

    /// The number of elements that a slice has when it is passed buffer `buffer`.
    pub fn slice_len(&self, param: usize, buffer: usize) -> u64 {
        let layout = self.module.types.layout(self.element(param));
        let size = layout.map_or(1, |layout| layout.size).max(1);
        self.buffers.get(buffer).map_or(0, Vec::len) as u64 / size
    }

    /// Whether the kernel could write buffer `buffer`.
    pub fn is_written(&self, buffer: usize) -> bool {
        let kernel = self.kernel();
        kernel.params.iter().zip(&self.args).any(|(param, arg)| {
            let ty = kernel.type_of(param.value);
            *arg == Arg::Buffer(buffer)
                && param.passing == Passing::Direct
                && matches!(
                    self.module.types.data(ty),
                    TypeData::Slice { mutable: true, .. } | TypeData::Pointer { mutable: true, .. }
                )
        })
    }
}

/// Whether a region loads atomically, and whether it changes anything.
fn looks(function: &Function, region: Region) -> (bool, bool) {
    let (mut loads, mut changes) = (false, false);
    for &inst in &function.regions[region].insts {
        let data = &function.insts[inst].data;
        loads |= matches!(data, InstData::AtomicLoad { .. });
        changes |= matches!(
            data,
            InstData::VarSet(..)
                | InstData::Store { .. }
                | InstData::AtomicStore { .. }
                | InstData::AtomicRmw { .. }
                | InstData::AtomicCas { .. }
                | InstData::Call { .. }
        );
        for inner in data.regions() {
            let (inner_loads, inner_changes) = looks(function, inner);
            loads |= inner_loads;
            changes |= inner_changes;
        }
    }
    (loads, changes)
}
