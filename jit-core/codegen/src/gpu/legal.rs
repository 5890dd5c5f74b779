//! The table of what a GPU has: (operation, type, architecture).
//!
//! LLVM ends the process when it meets an operation it cannot select, so nothing outside this table
//! reaches it. What is refused here is legal IR that this target has no instruction or no room for. Every cell of the table is compiled and assembled in
//! `tests/ptx_grid.rs`.

use kiln_ir::legal::Legal;
use kiln_ir::target::{PtxTarget, Target};
use kiln_ir::{
    AtomicOp, Cell, FastMath, Function, InstNode, IntrinsicDef, Location, Module, Processor,
    Scalar, Type, TypeTable,
};

use crate::illegal::{Illegal, IllegalOperations};

/// The largest number of scalars in a value that is not behind a pointer. LLVM handles each as a
/// value of its own.
const MAX_VALUE_LEAVES: u64 = 4096;

/// Bytes of constants in a module (CUDA guide, "Compute Capabilities").
const MAX_CONSTANT_BYTES: u64 = 64 << 10;

/// Bytes of static shared memory in a block; more has to be dynamic (CUDA guide, the same table).
const MAX_STATIC_SHARED_BYTES: u64 = 48 << 10;

/// Whether a kernel can be compiled for a target.
///
/// # Errors
/// All operations that cannot, each with its line and a way out.
pub(super) fn check_legal(module: &Legal, machine: &dyn Has) -> Result<(), IllegalOperations> {
    let mut list = Vec::new();
    let mut refuse = |function: &str, location: Location, message: String| {
        list.push(Illegal {
            function: function.to_owned(),
            location: module.display_location(location),
            message,
        });
    };
    for function in module.functions.values() {
        if let Some(message) = check_signature(module, function) {
            refuse(&function.name, function.location, message);
        }
        function.for_each_inst(|_, inst| {
            let node = &function.insts[inst];
            let result = node.result.map_or(Type::UNIT, |r| function.type_of(r));
            let check = Check {
                module,
                function,
                machine,
            };
            if let Err(message) = check.inst(node, result) {
                refuse(&function.name, node.location, message);
            }
        });
    }
    let kernel = module.kernel();
    for message in check_module(module, machine) {
        refuse(&kernel.name, kernel.location, message);
    }
    if list.is_empty() {
        return Ok(());
    }
    Err(IllegalOperations {
        module: module.name.clone(),
        target: machine.name(),
        list,
    })
}

/// What the module as a whole breaks.
fn check_module(module: &Legal, machine: &dyn Has) -> Vec<String> {
    let mut messages = Vec::new();
    let (given, limit) = (module.layout().size, machine.max_param_bytes());
    if given > limit {
        messages.push(format!(
            "the parameters take {given} bytes, of at most {limit}; pass large values by reference"
        ));
    }
    let constants: u64 = module.globals.values().map(|g| g.bytes.len() as u64).sum();
    let limit = machine.max_constant_bytes();
    if constants > limit {
        messages.push(format!(
            "the constants take {constants} bytes, of at most {limit}; pass them as \
             a slice"
        ));
    }
    let size = |ty| module.types.layout(ty).map_or(0, |layout| layout.size);
    let shared: u64 = module
        .functions
        .values()
        .flat_map(|function| function.shared.values())
        .map(|data| size(data.ty))
        .fold(0, u64::saturating_add);
    let limit = machine.max_shared_bytes();
    if shared > limit {
        messages.push(format!(
            "the shared variables take {shared} bytes, of at most {limit}; use \
             dynamic shared memory"
        ));
    }
    messages
}

/// What a function's parameters and variables break.
fn check_signature(module: &Module, function: &Function) -> Option<String> {
    let types = &module.types;
    let params = function.params.iter().map(|p| function.type_of(p.value));
    let vars = function.vars.values().map(|var| var.ty);
    params
        .chain(vars)
        .chain([function.result])
        .find_map(|ty| too_large(types, ty))
}

fn too_large(types: &TypeTable, ty: Type) -> Option<String> {
    let leaves = types.leaf_count(ty);
    (leaves > MAX_VALUE_LEAVES).then(|| {
        format!(
            "a value of type `{}` has {leaves} numbers, of at most {MAX_VALUE_LEAVES}; keep it in \
             memory and go through a pointer to its parts",
            types.display(ty)
        )
    })
}

/// The instruction checks of one function.
struct Check<'a> {
    module: &'a Module,
    function: &'a Function,
    machine: &'a dyn Has,
}

impl Check<'_> {
    fn inst(&self, node: &InstNode, result: Type) -> Result<(), String> {
        let data = &node.data;
        let type_of = |value| self.function.type_of(value);
        let mut types = vec![result];
        data.for_each_operand(|value| types.push(type_of(value)));
        for ty in types {
            if let Some(message) = too_large(&self.module.types, ty) {
                return Err(message);
            }
            self.machine.memory(&self.module.types, ty)?;
        }
        let written = data.atomic_operand();
        if written.is_some_and(|value| self.module.types.is_word_pair(type_of(value))) {
            return self.machine.atomic_of_words();
        }
        if let Some((op, value)) = data.atomic_change() {
            let scalar = type_of(value).as_scalar();
            return scalar.map_or(Ok(()), |scalar| self.machine.atomic(op, scalar));
        }
        if let Some(new) = data.swap() {
            let scalar = type_of(new).as_scalar();
            return scalar.map_or(Ok(()), |scalar| self.machine.swap(scalar));
        }
        let Some((id, args)) = data.intrinsic() else {
            return Ok(());
        };
        let args: Vec<Type> = args.iter().map(|&arg| type_of(arg)).collect();
        let def = self.module.intrinsics[id];
        let selecting = def.cell_type(&self.module.types, &args, result);
        self.machine.intrinsic(def, selecting, node.fast)
    }
}

/// What a GPU has.
pub(super) trait Has {
    /// The GPU's name, for errors.
    fn name(&self) -> String;

    /// How many bytes of parameters a kernel can have.
    fn max_param_bytes(&self) -> u32;

    /// Bytes of constants in a module.
    fn max_constant_bytes(&self) -> u64;

    /// Bytes of static shared memory in a block.
    fn max_shared_bytes(&self) -> u64;

    /// Whether the GPU has a row for the type that selects its cell, and with the flags of an instruction.
    ///
    /// # Errors
    /// That it has not, and the way out.
    fn intrinsic(
        &self,
        def: &IntrinsicDef,
        ty: Option<Scalar>,
        fast: FastMath,
    ) -> Result<(), String>;

    /// The machine as cells tell machines apart.
    fn processor(&self) -> Processor;

    /// Whether the GPU changes a number of a type in one step.
    ///
    /// # Errors
    /// That it does not, and the way out.
    fn atomic(&self, op: AtomicOp, scalar: Scalar) -> Result<(), String> {
        match op.is_native_for(scalar, self.processor()) {
            true => Ok(()),
            false => Err(format!(
                "there is no atomic `{op:?}` of `{}` here; compare and swap in a loop",
                scalar.name()
            )),
        }
    }

    /// Whether the GPU compares and swaps an integer of a type.
    ///
    /// # Errors
    /// That it does not, and the way out.
    fn swap(&self, scalar: Scalar) -> Result<(), String> {
        match self.processor().swaps(scalar) {
            true => Ok(()),
            false => Err(format!(
                "there is no compare-and-swap of `{}` here; swap the word around it",
                scalar.name()
            )),
        }
    }

    /// Whether the GPU exchanges and compares and swaps 16 bytes in one step.
    ///
    /// # Errors
    /// That it does not, and the way out.
    fn atomic_of_words(&self) -> Result<(), String> {
        match self.processor() {
            Processor::Ptx { sm: 90.. } => Ok(()),
            Processor::Ptx { .. } => Err(
                "atomics of 16 bytes exist from sm_90 on; put what changes together into 8 bytes \
                 (an index and a tag of 32 bits each, say), or have a lock around it"
                    .to_owned(),
            ),
            _ => Err(
                "there are no atomics of 16 bytes here; put what changes together into 8 bytes"
                    .to_owned(),
            ),
        }
    }

    /// Whether what a value of a type is, or is the address of, can lie in its memory.
    ///
    /// # Errors
    /// That it cannot, and the way out.
    fn memory(&self, _types: &TypeTable, _ty: Type) -> Result<(), String> {
        Ok(())
    }
}

impl Has for PtxTarget {
    fn name(&self) -> String {
        format!("sm_{}", self.sm)
    }

    fn processor(&self) -> Processor {
        PtxTarget::processor(*self)
    }

    fn max_param_bytes(&self) -> u32 {
        Target::Ptx(*self).max_param_bytes()
    }

    fn max_constant_bytes(&self) -> u64 {
        MAX_CONSTANT_BYTES
    }

    fn max_shared_bytes(&self) -> u64 {
        MAX_STATIC_SHARED_BYTES
    }

    fn intrinsic(
        &self,
        def: &IntrinsicDef,
        ty: Option<Scalar>,
        fast: FastMath,
    ) -> Result<(), String> {
        if def.cell_of(fast, ty, self.processor()).is_some() {
            return Ok(());
        }
        let of = ty.map_or(String::new(), |ty| format!(" of `{}`", ty.name()));
        if let Some(newer) = oldest_architecture(def, ty) {
            return Err(format!("`{}`{of} exists from sm_{newer} on", def.name));
        }
        let here = |cell: &&Cell| cell.family.has(NEWEST);
        let types = def.cells.iter().filter(here).filter_map(|cell| cell.ty);
        let types: Vec<&str> = types.map(Scalar::name).collect();
        let instead = match types[..] {
            [] => "its row needs a cell for them".to_owned(),
            _ => format!("it exists for: {}", types.join(", ")),
        };
        Err(format!(
            "there is no `{}`{of} on NVIDIA GPUs; {instead}",
            def.name
        ))
    }
}

/// An architecture that has all that any has.
const NEWEST: Processor = Processor::Ptx { sm: u32::MAX };

/// The oldest architecture that has a row for a type, if one does.
fn oldest_architecture(def: &IntrinsicDef, ty: Option<Scalar>) -> Option<u32> {
    let mut ages: Vec<u32> = def
        .cells
        .iter()
        .filter_map(|cell| cell.family.min_sm())
        .collect();
    ages.sort_unstable();
    ages.into_iter()
        .find(|&sm| def.cell(ty, Processor::Ptx { sm }).is_some())
}
