//! What is the same in all threads of a block, in all lanes of a warp, or differs.
//!
//! The analysis starts with everything uniform and lowers what it must until nothing changes. A
//! value's uniformity follows its operands. A variable's uniformity follows what it is assigned, and what
//! lies between its home and the assignment: under a condition that differs from lane to lane, or
//! in a loop that lanes leave at different times, some lanes keep the old value. Threads that have
//! ended do not count, as they never read again.
//!
//! A load through a uniform address is uniform: threads that read one place between two barriers
//! read the same, or the kernel has a data race. Where fences or atomics order accesses, too, two
//! warps may read one place before and after another thread writes it, without a race; the lanes of
//! a warp read it at once. An atomic load is never the same in two warps.

use kiln_ir::{
    Axis, Control, Entity as _, Function, Inst, InstData, IntrinsicDef, Known, Module, Read,
    Source, Uniformity, Value, ValueDef, Var, VarUse,
};

use super::BlockShape;
use super::scope::Scopes;

/// How far the values and variables of a function are the same.
#[derive(Debug)]
pub struct Uniformities {
    values: Vec<Uniformity>,
    vars: Vec<Uniformity>,
    /// Of `if`: how the condition differs. Of loops: when lanes leave or skip iterations.
    control: Vec<Uniformity>,
}

impl Uniformities {
    /// The facts of a kernel run with blocks of any shape. What a call gives may differ from lane to lane.
    ///
    /// ```
    /// use kiln_codegen::simt::Uniformities;
    /// use kiln_ir::parse;
    ///
    /// let text = "module m specialized
    ///
    /// kernel @k(%0 n: u32) {
    ///   %1: u32 = const 4
    ///   %2: u32 = add %0, %1
    /// }
    /// ";
    /// let module = parse(text, &|_| None).expect("it is in the notation of the IR");
    /// let kernel = &module.functions[module.kernel().expect("there is one")];
    /// let uniformities = Uniformities::of_any_block(&module, kernel);
    /// assert!(uniformities.is_of_block(kernel.params[0].value));
    /// ```
    pub fn of_any_block(module: &Module, kernel: &Function) -> Uniformities {
        let block = BlockShape {
            threads: [2; 3],
            lanes: 32,
            beside: 1,
        };
        Self::of(module, kernel, &Scopes::of(kernel), block)
    }

    /// The facts of a kernel without calls, run with blocks of this shape.
    pub(crate) fn of(
        module: &Module,
        function: &Function,
        scopes: &Scopes,
        block: BlockShape,
    ) -> Uniformities {
        let uniformity = Uniformities {
            values: vec![Uniformity::Block; function.values.len()],
            vars: vec![Uniformity::Block; function.vars.len()],
            control: vec![Uniformity::Block; function.insts.len()],
        };
        let mut analysis = Analysis {
            module,
            function,
            scopes,
            block,
            uniformity,
            only_barriers: only_barriers(module, function),
            changed: true,
        };
        while std::mem::take(&mut analysis.changed) {
            function.for_each_inst(|_, inst| analysis.visit(inst));
        }
        analysis.uniformity
    }

    /// Whether a value is known to be the same in all threads of a block. Of one that came into the function later
    /// nothing is known.
    pub fn is_of_block(&self, value: Value) -> bool {
        self.values.get(value.index()) == Some(&Uniformity::Block)
    }

    /// Whether a variable is known to be the same in all threads of a block.
    pub fn is_var_of_block(&self, var: Var) -> bool {
        self.vars.get(var.index()) == Some(&Uniformity::Block)
    }

    /// How far a value is the same.
    pub(crate) fn value(&self, value: Value) -> Uniformity {
        self.values[value.index()]
    }

    /// How far a variable is the same.
    pub(crate) fn var(&self, var: Var) -> Uniformity {
        self.vars[var.index()]
    }

    /// For an `if`, that of its condition; for a loop, whether lanes leave it or skip
    /// iterations apart from each other.
    pub(crate) fn control(&self, inst: Inst) -> Uniformity {
        self.control[inst.index()]
    }

    /// Takes the condition of an `if` for the same in all threads: of blocks side by side, those are run that agree.
    pub(crate) fn agree(&mut self, inst: Inst, cond: Value) {
        self.values[cond.index()] = Uniformity::Block;
        self.control[inst.index()] = Uniformity::Block;
    }

    /// Whether some lanes may keep the old value when `inst` assigns a variable that lives in
    /// `home`.
    pub(crate) fn blends(&self, scopes: &Scopes, inst: Inst, home: kiln_ir::Region) -> bool {
        scopes
            .around(inst, home)
            .any(|holder| self.control(holder) == Uniformity::Lane)
    }
}

struct Analysis<'a> {
    module: &'a Module,
    function: &'a Function,
    scopes: &'a Scopes,
    block: BlockShape,
    uniformity: Uniformities,
    /// Whether nothing but barriers orders accesses of different warps.
    only_barriers: bool,
    changed: bool,
}

/// Whether nothing but barriers orders accesses of different warps.
fn only_barriers(module: &Module, function: &Function) -> bool {
    let mut all = true;
    function.for_each_inst(|_, inst| {
        let data = &function.insts[inst].data;
        let facts = data.facts(&module.intrinsics);
        // Where threads meet, it is a barrier, or orders the lanes of a warp and no two warps.
        all &= facts.meets || facts.orders.is_none();
    });
    all
}

impl Analysis<'_> {
    fn lower(slot: &mut Uniformity, to: Uniformity, changed: &mut bool) {
        if to > *slot {
            *slot = to;
            *changed = true;
        }
    }

    fn visit(&mut self, inst: Inst) {
        let function = self.function;
        let node = &function.insts[inst];
        if let Some(result) = node.result {
            let uniformity = self.result(&node.data);
            let slot = &mut self.uniformity.values[result.index()];
            Self::lower(slot, uniformity, &mut self.changed);
        }
        if let Some(VarUse::Set(var, value)) = node.data.var_use() {
            self.assign(inst, var, value);
        }
        match node.data.control() {
            Control::If { cond, .. } => self.lower_control(inst, self.uniformity.value(cond)),
            Control::For {
                index,
                bounds: [start, end, step],
                ..
            } => {
                let first = self
                    .uniformity
                    .value(start)
                    .max(self.uniformity.value(step));
                let slot = &mut self.uniformity.values[index.index()];
                Self::lower(slot, first, &mut self.changed);
                self.lower_control(inst, first.max(self.uniformity.value(end)));
            }
            Control::Leave { depth, .. } => {
                if let Some((target, between)) = self.scopes.loop_around(function, inst, depth) {
                    let crossed = between.iter().map(|&i| self.uniformity.control(i)).max();
                    self.lower_control(target, crossed.unwrap_or(Uniformity::Block));
                }
            }
            Control::Next | Control::Loop { .. } | Control::Return { .. } => {}
        }
    }

    fn assign(&mut self, inst: Inst, var: Var, value: Value) {
        let home = self.scopes.home(var).region;
        let around = self.scopes.around(inst, home);
        let crossed = around.map(|holder| self.uniformity.control(holder)).max();
        let uniformity = self
            .uniformity
            .value(value)
            .max(crossed.unwrap_or(Uniformity::Block));
        let slot = &mut self.uniformity.vars[var.index()];
        Self::lower(slot, uniformity, &mut self.changed);
    }

    fn lower_control(&mut self, inst: Inst, uniformity: Uniformity) {
        let slot = &mut self.uniformity.control[inst.index()];
        Self::lower(slot, uniformity, &mut self.changed);
    }

    fn result(&self, data: &InstData) -> Uniformity {
        let mut operands = Uniformity::Block;
        data.for_each_operand(|v| operands = operands.max(self.uniformity.value(v)));
        match data.facts(&self.module.intrinsics).source {
            Source::None => Uniformity::Block,
            Source::Operands => operands,
            Source::Variable(var) => self.uniformity.var(var),
            // Each thread has its own; each execution sees another value.
            Source::Own | Source::Execution | Source::Callee => lane_shape(self.block),
            Source::Memory { ptr, read } => {
                let same = self.only_barriers && read == Read::Plain;
                let least = if same {
                    Uniformity::Block
                } else {
                    Uniformity::Warp
                };
                self.uniformity.value(ptr).max(least)
            }
            Source::Row(row) => {
                let mut first = None;
                data.for_each_operand(|v| {
                    first.get_or_insert(v);
                });
                let mask = first.map_or(Uniformity::Block, |mask| self.uniformity.value(mask));
                intrinsic_shape(row, mask, operands, self.block)
            }
        }
    }
}

/// What differs from thread to thread: of a single lane it is the warp's.
fn lane_shape(block: BlockShape) -> Uniformity {
    if block.lanes == 1 {
        Uniformity::Warp
    } else {
        Uniformity::Lane
    }
}

/// What differs from block to block: of blocks side by side it is the warp's.
fn of_block(block: BlockShape) -> Uniformity {
    match block.beside {
        1 => Uniformity::Block,
        _ => Uniformity::Warp,
    }
}

/// How far an intrinsic's result is the same, for arguments that are so far and the first of them, which is the
/// member mask of an operation of a warp.
fn intrinsic_shape(
    def: &IntrinsicDef,
    mask: Uniformity,
    args: Uniformity,
    block: BlockShape,
) -> Uniformity {
    match def.uniformity {
        Uniformity::Function => args,
        Uniformity::Block => match def.known {
            Some(
                Known::BlockIdx(Axis::Y | Axis::Z)
                | Known::BlockDim(_)
                | Known::GridDim(_)
                | Known::TargetIsGpu
                | Known::TargetSm,
            ) => Uniformity::Block,
            _ => of_block(block),
        },
        // Lanes of another mask have another result.
        Uniformity::Warp => Uniformity::Warp.max(mask),
        Uniformity::Lane => {
            let [_, y, z] = block.threads;
            match def.known {
                Some(Known::ThreadIdx(Axis::Y)) if y == 1 => Uniformity::Block,
                Some(Known::ThreadIdx(Axis::Z)) if z == 1 => Uniformity::Block,
                Some(Known::ThreadIdx(Axis::Y | Axis::Z)) if block.warps_fit_rows() => {
                    Uniformity::Warp
                }
                _ => lane_shape(block),
            }
        }
    }
}

/// The instruction that defines a value, if one does.
pub(crate) fn defining_inst(function: &Function, value: Value) -> Option<Inst> {
    match function.values[value].def {
        ValueDef::Inst(inst) => Some(inst),
        ValueDef::Param(_) | ValueDef::Index(_) => None,
    }
}
