//! All that is known of a kernel before a line of it is written.

use std::collections::{HashMap, HashSet};

use kiln_ir::abi::ParamLayout;
use kiln_ir::legal::{Legal, LegalTypes, Proved as _};
use kiln_ir::target::Barriers;
use kiln_ir::{
    Function, Inst, LeafType, Module, SharedVar, Type, Uniformity, Value, Var, debug_as_text,
    error_text,
};

use crate::llvm::error::BackendError;
use crate::private::needs_zeros;
use crate::provenance::Provenance;
use crate::simt::{
    BlockShape, Flat, InlineError, Scopes, Segments, Unfit, Uniformities, Versions, inline,
};

/// Alignment of everything in a block's memory, in bytes: that of the widest vector, twice.
pub(super) const ALIGN: u64 = 128;

/// Private arrays up to this size lie on the stack, where LLVM can turn them into values.
const MAX_STACK_BYTES: u64 = 16 << 10;

/// All private arrays on the stack together: those that come after are in the block's memory.
const STACK_BUDGET: u64 = 64 << 10;

/// What else decides the code.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct PlanOptions {
    /// Whether a multiplication and a following addition may be fused.
    pub(crate) contract: bool,
    /// Whether the processor converts `f16` (F16C).
    pub(crate) has_f16c: bool,
    /// Whether the processor gathers and scatters elements of 4 bytes and more (AVX-512).
    pub(crate) has_gathers: bool,
    /// What happens at barriers.
    pub(crate) barriers: Barriers,
    /// Whether hooks lower operations. Then barriers are operations of segments, as hooks may do something there,
    /// and private memory lies as addresses say, as hooks may use these.
    pub(crate) hooked: bool,
}

/// Why there is no plan.
#[derive(thiserror::Error)]
pub(crate) enum Unplannable {
    /// A barrier lies where only the interpreter can run it.
    #[error("{}", error_text!("{why}, at {location}"))]
    Barrier {
        /// What is in the way.
        why: &'static str,
        /// Where the barrier is, as `file:line:column`.
        location: String,
    },
    /// Calls that cannot be inlined.
    #[error(transparent)]
    Inline(#[from] InlineError),
    /// A type without leaves.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

debug_as_text!(Unplannable);

/// Places in memory, one behind the other.
#[derive(Default)]
struct Places {
    end: u64,
}

impl Places {
    /// Where the next so many bytes lie.
    fn next(&mut self, bytes: u64) -> u64 {
        let at = self.end;
        self.end = (at + bytes).next_multiple_of(ALIGN);
        at
    }
}

/// Where things lie in the memory of a block. What is kept between segments and what the kernel
/// has addresses of are apart, so that LLVM knows that one does not change the other.
#[derive(Debug, Default)]
pub(crate) struct ArenaLayout {
    /// Bytes of what is kept for a block between its segments.
    pub(super) kept: u64,
    /// Values that live across segments: the offset of each leaf among the kept, for warp 0.
    pub(super) values: HashMap<Value, Vec<u64>>,
    /// Variables that live across segments.
    pub(super) vars: HashMap<Var, Vec<u64>>,
    /// The masks of the threads that have not ended, 4 bytes a warp.
    pub(super) live: Option<u64>,
    /// Private memory that is not on the stack, for warp 0.
    pub(super) locals: HashMap<Inst, u64>,
    /// Static shared memory.
    pub(super) shared: HashMap<SharedVar, u64>,
    /// Where dynamic shared memory starts: the end of the memory that is known.
    pub(super) dynamic: u64,
}

/// A kernel, ready to be written.
#[derive(Debug)]
pub(crate) struct Plan<'m> {
    pub(super) module: &'m Module,
    pub(super) types: LegalTypes<'m>,
    pub(super) flat: Flat,
    pub(super) scopes: Scopes,
    pub(super) uniformity: Uniformities,
    pub(super) segments: Segments,
    /// What blocks that are run side by side agree about: the condition of a kernel that is one of two as a whole.
    pub(super) agreed: Option<Value>,
    pub(super) block: BlockShape,
    pub(super) layout: ParamLayout,
    pub(super) arena: ArenaLayout,
    pub(super) provenance: Provenance,
    /// Private memory that is zeroed where it is declared.
    pub(super) zeroed: HashSet<Inst>,
    spread: HashSet<Value>,
    used: HashSet<Value>,
    pub(super) contract: bool,
    pub(super) has_f16c: bool,
    pub(super) has_gathers: bool,
    pub(super) barriers: Barriers,
}

impl<'m> Plan<'m> {
    /// Plans a kernel for blocks of a shape.
    pub(crate) fn new(
        legal: &'m Legal,
        block: BlockShape,
        options: PlanOptions,
    ) -> Result<Plan<'m>, Unplannable> {
        let module = legal.module();
        let flat = inline(module)?;
        let scopes = Scopes::of(&flat.function);
        let (uniformity, versions, agreed) = analyze(module, (&flat.function, &scopes), block);
        let cut = match options.barriers {
            Barriers::Segments => {
                let shape = (block, options.hooked);
                Segments::of(module, &flat, &scopes, &uniformity, versions, shape)
            }
            Barriers::Coroutines => Segments::whole(module, &flat, &scopes, &uniformity),
        };
        let segments = cut.map_err(|Unfit { inst, why }| {
            let at = flat.function.insts[inst].location;
            Unplannable::Barrier {
                why,
                location: module.display_location(at),
            }
        })?;
        let layout = legal.layout().clone();
        let spread = match options.hooked {
            true => HashSet::new(),
            false => spread_memory(&flat),
        };
        let provenance = Provenance::of(module, &flat.function);
        let mut used = HashSet::new();
        flat.function.for_each_inst(|_, inst| {
            flat.function.insts[inst].data.for_each_operand(|v| {
                used.insert(v);
            });
        });
        let mut plan = Plan {
            zeroed: needs_zeros(&flat.function),
            barriers: options.barriers,
            contract: options.contract,
            has_f16c: options.has_f16c,
            has_gathers: options.has_gathers,
            module,
            types: legal.legal_types(),
            flat,
            scopes,
            uniformity,
            segments,
            agreed,
            block,
            layout,
            arena: ArenaLayout::default(),
            provenance,
            spread,
            used,
        };
        plan.arena = plan.lay_out();
        Ok(plan)
    }

    /// Bytes of what is kept between segments, and of a block's memory without dynamic shared
    /// memory. The frames of coroutines are kept, too, behind.
    pub(crate) fn arena_bytes(&self) -> [u64; 2] {
        [self.arena.kept, self.arena.dynamic]
    }

    /// Bytes of the frames of a block's warps, of which each takes this much.
    pub(crate) fn frame_bytes(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(ALIGN) * u64::from(self.block.warps())
    }

    /// Bytes of a mask in memory.
    pub(super) fn mask_bytes(&self) -> u64 {
        u64::from(self.block.lanes.max(32)) / 8
    }

    /// Lanes of a vector.
    pub(crate) fn lanes(&self) -> u32 {
        self.block.lanes
    }

    /// Threads of a block in x, y and z.
    pub(crate) fn block_threads(&self) -> [u32; 3] {
        self.block.threads
    }

    /// What happens at barriers.
    pub(crate) fn barriers(&self) -> Barriers {
        self.barriers
    }

    /// Whether values behind this address lie lane beside lane.
    pub(super) fn is_spread(&self, ptr: Value) -> bool {
        self.spread.contains(&ptr)
    }

    /// Whether an instruction reads a value.
    pub(super) fn is_used(&self, value: Value) -> bool {
        self.used.contains(&value)
    }

    /// The fault site of a checked access.
    pub(super) fn site(&self, inst: Inst) -> u32 {
        self.flat.sites[&inst]
    }

    pub(super) fn leaves(&self, ty: Type) -> Vec<LeafType> {
        self.types.leaves(ty)
    }

    /// Whether a variable has one value for all lanes.
    pub(super) fn is_uniform_var(&self, var: Var) -> bool {
        self.uniformity.var(var) != Uniformity::Lane
    }

    /// The number of copies and the size of each, for a leaf that is so far the same.
    pub(super) fn slot_bytes(&self, leaf: LeafType, uniformity: Uniformity) -> u64 {
        // A bool in all lanes takes a byte each, as vectors of bits have no addressable parts.
        let bytes = u64::from(leaf.bytes().max(1));
        match uniformity {
            Uniformity::Lane => bytes * u64::from(self.block.lanes),
            Uniformity::Function | Uniformity::Block | Uniformity::Warp => bytes,
        }
    }

    fn lay_out(&self) -> ArenaLayout {
        let mut arena = ArenaLayout::default();
        self.lay_out_kept(&mut arena);
        self.lay_out_memory(&mut arena);
        arena
    }

    /// What is kept from one segment to the next.
    fn lay_out_kept(&self, arena: &mut ArenaLayout) {
        let warps = u64::from(self.block.warps());
        let function = &self.flat.function;
        let mut places = Places::default();
        let mut place = |bytes: u64| places.next(bytes);
        for &value in &self.segments.kept {
            let uniformity = self.uniformity.value(value);
            let mut offsets = Vec::new();
            for leaf in self.leaves(function.type_of(value)) {
                offsets.push(place(self.slot_bytes(leaf, uniformity) * warps));
            }
            arena.values.insert(value, offsets);
        }
        for &var in &self.segments.kept_vars {
            let uniformity = self.uniformity.var(var);
            let mut offsets = Vec::new();
            for leaf in self.leaves(function.vars[var].ty) {
                offsets.push(place(self.slot_bytes(leaf, uniformity) * warps));
            }
            arena.vars.insert(var, offsets);
        }
        if self.barriers == Barriers::Coroutines {
            // The handles of the coroutines.
            place(8 * warps);
        }
        let ends = self.segments.segments.iter().any(|s| s.can_end);
        if ends && self.segments.segments.len() > 1 {
            arena.live = Some(place(self.mask_bytes() * warps));
        }
        arena.kept = place(0);
    }

    /// The kernel's own memory: private, then shared.
    fn lay_out_memory(&self, arena: &mut ArenaLayout) {
        let warps = u64::from(self.block.warps());
        let function = &self.flat.function;
        let mut places = Places::default();
        let mut place = |bytes: u64| places.next(bytes);
        let mut locals = Vec::new();
        function.for_each_inst(|_, inst| {
            if function.insts[inst].data.is_local() {
                locals.push(inst);
            }
        });
        let mut stack = 0;
        for inst in locals {
            let bytes = self.local_bytes(inst);
            if self.may_be_on_stack(bytes) && stack + bytes <= STACK_BUDGET {
                stack += bytes;
            } else {
                arena.locals.insert(inst, place(bytes * warps));
            }
        }
        for (var, data) in function.shared.iter() {
            let at = place(self.types.layout_of(data.ty).size);
            arena.shared.insert(var, at);
        }
        arena.dynamic = place(0);
    }

    /// Bytes of a private allocation for all lanes of a warp.
    pub(super) fn local_bytes(&self, inst: Inst) -> u64 {
        let function = &self.flat.function;
        let result = function.insts[inst]
            .result
            .proved("the address of private memory");
        let pointee = self.types.pointee_of(function.type_of(result));
        let size = self.types.layout_of(pointee).size;
        (size * u64::from(self.block.lanes)).next_multiple_of(ALIGN)
    }

    /// Whether a private allocation could be on the stack: it must not outlive its segment.
    fn may_be_on_stack(&self, bytes: u64) -> bool {
        self.segments.segments.len() <= 1
            && self.barriers == Barriers::Segments
            && bytes <= MAX_STACK_BYTES
    }
}

/// What is the same in a kernel run with blocks of a shape, which versions it has, and what blocks side by side agree about.
fn analyze(
    module: &Module,
    (function, scopes): (&Function, &Scopes),
    block: BlockShape,
) -> (Uniformities, Option<Versions>, Option<Value>) {
    let alone = BlockShape { beside: 1, ..block };
    let of_one = Uniformities::of(module, function, scopes, alone);
    let versions = Versions::of(module, function, &of_one);
    if block.beside == 1 {
        return (of_one, versions, None);
    }
    let mut uniformity = Uniformities::of(module, function, scopes, block);
    let versions = versions.filter(|versions| versions.is_computed);
    if let Some(Versions { inst, cond, .. }) = versions {
        uniformity.agree(inst, cond);
    }
    (uniformity, versions, versions.map(|versions| versions.cond))
}

/// Private memory that is only reached through its own address, and the addresses derived from
/// it: there the lanes can lie side by side.
fn spread_memory(flat: &Flat) -> HashSet<Value> {
    let function = &flat.function;
    let mut derived: HashMap<Value, Value> = HashMap::new();
    let mut escaped: HashSet<Value> = HashSet::new();
    let root = |derived: &HashMap<Value, Value>, value: Value| derived.get(&value).copied();
    function.for_each_inst(|_, inst| {
        let node = &function.insts[inst];
        let data = &node.data;
        if let (true, Some(result)) = (data.is_local(), node.result) {
            derived.insert(result, result);
        } else if let (Some(whole), Some(result)) = (data.whole(), node.result) {
            if let Some(root) = root(&derived, whole) {
                derived.insert(result, root);
            }
        } else if let Some((_, value)) = data.stored() {
            escaped.extend(root(&derived, value));
        } else if data.loaded().is_none() {
            data.for_each_operand(|v| escaped.extend(root(&derived, v)));
        }
    });
    derived
        .into_iter()
        .filter(|(_, root)| !escaped.contains(root))
        .map(|(value, _)| value)
        .collect()
}
