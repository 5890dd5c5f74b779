//! Programs: the body of a kernel region as a sequential kernel of the IR, with what its marks say.

use std::collections::HashMap;

use kiln_jit_core::ir::{
    Constant, Control, FuncId, Function, FunctionKind, Inst, InstData, IntrinsicDef, Location,
    Module, Region, SharedVar, Type, Unroll, Value, ValueDef,
};

use crate::error::DirectiveError;
use crate::marks;
use crate::schedule::{LoopSchedule, OverBlocks, OverThreads, Partition, Schedule, Slices};

/// A kernel region as a sequential program: a module whose only kernel does, executed by one thread, what the region
/// does, and what the directives in it say.
///
/// ```
/// use kiln::directives::{Program, marks};
/// use kiln::prelude::*;
///
/// #[device_fn]
/// fn double(x: &mut [f32], n: usize) {
///     marks::partition(1, 1); // over_tblock(BLOCK) over_thread
///     for i in 0..n {
///         x[i] *= 2.0;
///     }
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let program = Program::of(&DeviceFn::of::<double>()?)?;
/// let schedule = program.schedule(&[4], &[32]);
/// assert_eq!(schedule.to_string(), "tblock(4) thread(32) loop 0: over_tblock(BLOCK) over_thread");
/// assert!(schedule.loops[0].partition.is_some());
/// assert_eq!((program.name(), program.loop_places().len()), ("double", 1));
/// assert!(!program.sequential_module().to_string().contains("thread_idx"));
/// let (parallel, sequential) = (program.apply(&schedule)?, program.sequential()?);
///
/// let jit = Jit::new()?;
/// let mut x = jit.upload(&[1.0f32; 1000])?;
/// jit.launch(parallel.kernel(), parallel.grid(), parallel.block(), args!(&mut x, 1000u32))?;
/// jit.launch(&sequential, 1, 1, args!(&mut x, 500u32))?;
/// assert_eq!((x.to_vec()?[0], x.to_vec()?[999]), (4.0, 2.0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Program {
    /// The region as a kernel; marks of loops are gone from it, those of `singular` are there.
    pub(crate) module: Module,
    pub(crate) kernel: FuncId,
    /// The `for` loops in the order of the text, with what their marks say.
    pub(crate) loops: Vec<(Inst, LoopSchedule)>,
    /// The `if`s that one thread of each block enters, and the marks that are their conditions.
    pub(crate) singular: HashMap<Inst, Inst>,
    /// Arrays of the block, each with what assigns it where it is declared.
    pub(crate) arrays: HashMap<SharedVar, Inst>,
}

impl Program {
    /// The program of a module whose first function is a region: a device function without a result.
    pub(crate) fn of_module(mut module: Module) -> Result<Program, DirectiveError> {
        let kernel = module.functions.keys().next();
        let Some(kernel) = kernel.filter(|&id| is_region(&module.functions[id])) else {
            let function = module.name;
            return Err(DirectiveError::NoRegion { function });
        };
        module.functions[kernel].kind = FunctionKind::Kernel;
        module.name = module.functions[kernel].name.clone();
        while module.inline_calls(kernel, |_, _| true) > 0 {}
        let mut program = Program {
            module,
            kernel,
            loops: Vec::new(),
            singular: HashMap::new(),
            arrays: HashMap::new(),
        };
        program.refuse_marks_in_calls()?;
        let body = program.function().body;
        program.read_region(body)?;
        program.read_arrays()?;
        program.number_loops();
        program.refuse_placement()?;
        Ok(program)
    }

    /// The function of the region.
    pub(crate) fn function(&self) -> &Function {
        &self.module.functions[self.kernel]
    }

    /// The name of the region.
    pub fn name(&self) -> &str {
        &self.function().name
    }

    /// What the directives say, on a grid of so many blocks of so many threads along each dimension.
    pub fn schedule(&self, blocks: &[u32], threads: &[u32]) -> Schedule {
        Schedule {
            blocks: blocks.to_vec(),
            threads: threads.to_vec(),
            loops: self.loops.iter().map(|(_, marked)| *marked).collect(),
        }
    }

    /// The places of the loops, in the order of [`Schedule::loops`].
    pub fn loop_places(&self) -> Vec<String> {
        let at = |(inst, _): &(Inst, _)| self.place(self.function().insts[*inst].location);
        self.loops.iter().map(at).collect()
    }

    /// The module of the sequential program, which has no marks.
    pub fn sequential_module(&self) -> Module {
        let mut module = self.module.clone();
        self.take_marks_out(&mut module);
        module
    }

    /// Puts `true` in the place of what marks `singular` in a copy of the module.
    pub(crate) fn take_marks_out(&self, module: &mut Module) {
        let function = &mut module.functions[self.kernel];
        for mark in self.singular.values() {
            function.insts[*mark].data = InstData::Const(Constant::Bool(true));
        }
    }

    /// A location as text.
    pub(crate) fn place(&self, at: Location) -> String {
        self.module.display_location(at)
    }

    /// The number of a loop in schedules.
    pub(crate) fn number_of(&self, inst: Inst) -> Option<usize> {
        self.loops.iter().position(|(held, _)| *held == inst)
    }

    /// A call that is left may not hold a directive or a barrier.
    fn refuse_marks_in_calls(&self) -> Result<(), DirectiveError> {
        for callee in self.called() {
            let mut meets = false;
            callee.for_each_inst(|_, inst| {
                let data = &callee.insts[inst].data;
                meets |= data.is_barrier() || self.mark(data).is_some();
            });
            if meets {
                return Err(DirectiveError::Call {
                    place: self.place(callee.location),
                    callee: callee.name.clone(),
                    problem: "has directives or barriers and returns from within a loop, so that it cannot be put in \
                              place of its call: let it end at its end",
                });
            }
        }
        Ok(())
    }

    /// The functions that are called, one by another.
    fn called(&self) -> Vec<&Function> {
        let mut called: Vec<FuncId> = vec![self.kernel];
        let mut next = 0;
        while let Some(&caller) = called.get(next) {
            let function = &self.module.functions[caller];
            function.for_each_inst(|_, inst| {
                let callee = function.insts[inst].data.callee();
                called.extend(callee.filter(|callee| !called.contains(callee)));
            });
            next += 1;
        }
        called[1..]
            .iter()
            .map(|&id| &self.module.functions[id])
            .collect()
    }

    /// Whether an instruction is a mark of `singular`; other marks are no longer there.
    pub(crate) fn is_mark(&self, inst: Inst) -> bool {
        self.singular.values().any(|mark| *mark == inst)
    }

    /// The mark that an operation is.
    fn mark(&self, data: &InstData) -> Option<&'static IntrinsicDef> {
        let row = self.module.intrinsics[data.intrinsic()?.0];
        let marks = [
            marks::partition::row(),
            marks::independent::row(),
            marks::shared::row(),
            marks::whole::row(),
            marks::copyout::row(),
            marks::compute::row(),
            marks::reduction::row(),
            marks::scan::row(),
            marks::privatize::row(),
            marks::unpadded::row(),
            marks::interchange::row(),
            marks::peel_first::row(),
            marks::peel_last::row(),
            marks::tile::row(),
            marks::jam::row(),
            marks::unroll::row(),
            marks::singular::row(),
        ];
        marks.into_iter().find(|mark| row.is_same(mark))
    }

    /// Reads the marks of a region and those within, and takes those of loops out.
    fn read_region(&mut self, region: Region) -> Result<(), DirectiveError> {
        let insts = self.function().regions[region].insts.clone();
        let mut kept = Vec::with_capacity(insts.len());
        let mut pending: Option<(LoopSchedule, Location)> = None;
        for inst in insts {
            let node = self.function().insts[inst].clone();
            let at = node.location;
            match self.mark(&node.data) {
                Some(row) if row.is_same(marks::singular::row()) => kept.push(inst),
                Some(row) => {
                    let (marked, _) = pending.get_or_insert((LoopSchedule::default(), at));
                    if row.is_same(marks::partition::row()) {
                        marked.partition = self.partition_of(&node.data, at)?;
                    } else if row.is_same(marks::independent::row()) {
                        marked.independent = true;
                    } else if row.is_same(marks::interchange::row()) {
                        marked.interchanged = true;
                    } else if row.is_same(marks::unpadded::row()) {
                        marked.unpadded = true;
                    } else if row.is_same(marks::scan::row()) {
                        marked.scan = true;
                    } else if let Some(slices) = slices_of(row, marked) {
                        let slice = self.slice_of(&node.data, at)?;
                        slices
                            .into_iter()
                            .for_each(|slices| *slices = slices.with(slice));
                    } else {
                        self.read_transformation(row, &node.data, at, marked)?;
                    }
                }
                None => {
                    kept.push(inst);
                    match (node.data.control(), pending.take()) {
                        (Control::For { .. }, marked) => {
                            let marked = marked.map(|(marked, _)| marked);
                            self.loops.push((inst, marked.unwrap_or_default()));
                        }
                        (Control::Next, marked) => pending = marked,
                        (_, Some((_, at))) => return Err(self.no_loop(at)),
                        (_, None) => {}
                    }
                    self.read_singular(inst, &node.data)?;
                    for inner in node.data.regions() {
                        self.read_region(inner)?;
                    }
                }
            }
        }
        if let Some((_, at)) = pending {
            return Err(self.no_loop(at));
        }
        self.module.functions[self.kernel].regions[region].insts = kept;
        Ok(())
    }

    fn no_loop(&self, at: Location) -> DirectiveError {
        self.placement(
            at,
            "the directive is for a `for` loop, and none follows it; let the bounds of the loop be variables where \
             they are computed by `if` or by loops",
        )
    }

    /// An error of placement.
    pub(crate) fn placement(&self, at: Location, problem: &str) -> DirectiveError {
        DirectiveError::Placement {
            place: self.place(at),
            problem: problem.to_owned(),
        }
    }

    /// What a mark of a loop's transformation says.
    fn read_transformation(
        &self,
        row: &IntrinsicDef,
        mark: &InstData,
        at: Location,
        marked: &mut LoopSchedule,
    ) -> Result<(), DirectiveError> {
        let number = match self.numbers_of(mark)[..] {
            [Some(number)] => number,
            _ => return Err(self.placement(at, "the number of the mark is a literal")),
        };
        let is_twice = match () {
            () if row.is_same(marks::peel_first::row()) => marked.peel_first.is_some(),
            () if row.is_same(marks::peel_last::row()) => marked.peel_last.is_some(),
            () if row.is_same(marks::tile::row()) => marked.tile.is_some(),
            () if row.is_same(marks::jam::row()) => marked.jam.is_some(),
            () => marked.unroll != Unroll::Auto,
        };
        if is_twice {
            return Err(self.placement(
                at,
                "the loop is transformed so twice (`coarsen` is `unroll_and_jam` of a loop over threads): take one of them \
                 away",
            ));
        }
        if row.is_same(marks::peel_first::row()) {
            marked.peel_first = Some(number);
        } else if row.is_same(marks::peel_last::row()) {
            marked.peel_last = Some(number);
        } else if row.is_same(marks::tile::row()) {
            marked.tile = Some(number);
        } else if row.is_same(marks::jam::row()) {
            marked.jam = Some(number);
        } else {
            marked.unroll = match number {
                marks::UNROLL_FULL => Unroll::Full,
                marks::UNROLL_NEVER => Unroll::Never,
                times => Unroll::By(times),
            };
        }
        Ok(())
    }

    /// The literals of a mark.
    fn numbers_of(&self, mark: &InstData) -> Vec<Option<u32>> {
        let args = mark.intrinsic().map_or(&[][..], |(_, args)| args);
        let number = |value: &Value| match self.function().constant(*value) {
            Some(Constant::Int(number)) => u32::try_from(number).ok(),
            Some(Constant::Zero) => Some(0),
            _ => None,
        };
        args.iter().map(number).collect()
    }

    /// What a mark of a loop says.
    fn partition_of(&self, mark: &InstData, at: Location) -> Result<Partition, DirectiveError> {
        let numbers = self.numbers_of(mark);
        let over_blocks = match numbers.first() {
            Some(Some(marks::NOT_OVER_BLOCKS)) => None,
            Some(Some(marks::BLOCK)) => Some(OverBlocks::Block),
            Some(Some(marks::CYCLIC)) => Some(OverBlocks::Cyclic),
            _ => return Err(self.placement(at, "the clauses of the mark are literals 0, 1 or 2")),
        };
        let over_threads = match numbers.get(1) {
            Some(Some(marks::THREADS)) => Some(OverThreads::Threads),
            Some(Some(marks::WARPS)) => Some(OverThreads::Warps),
            Some(Some(marks::LANES)) => Some(OverThreads::Lanes),
            _ => None,
        };
        let partition = Partition {
            over_blocks,
            over_threads,
        };
        match partition.is_some() {
            true => Ok(partition),
            false => Err(self.placement(
                at,
                "`loop_partition` has no clause: write `over_tblock`, one of `over_thread`, `over_warp` and `over_lane`, or both",
            )),
        }
    }

    /// The number of the parameter that a mark of a slice names by its length.
    fn slice_of(&self, mark: &InstData, at: Location) -> Result<u32, DirectiveError> {
        let function = self.function();
        let mut named = mark.intrinsic().and_then(|(_, args)| args.first().copied());
        // The length is made of the slice alone.
        let param = loop {
            match named.map(|value| function.values[value].def) {
                Some(ValueDef::Param(number)) => break Some(number),
                Some(ValueDef::Inst(inst)) => {
                    let mut operands = Vec::new();
                    let data = &function.insts[inst].data;
                    data.for_each_operand(|operand| operands.push(operand));
                    named = operands.pop().filter(|_| operands.is_empty());
                }
                Some(ValueDef::Index(_)) | None => break None,
            }
        };
        let is_slice = |number: &u32| {
            let param = &function.params[*number as usize];
            self.module
                .types
                .as_slice(function.type_of(param.value))
                .is_some()
        };
        let param = param.filter(is_slice);
        let param = param.ok_or_else(|| {
            self.placement(
                at,
                "`shared`, `reduction` and `privatize` take slices that are parameters of the region: name the slice itself, not a part of it",
            )
        })?;
        match param < Slices::MAX {
            true => Ok(param),
            false => Err(self.placement(
                at,
                "`shared`, `reduction` and `privatize` take the first 64 parameters of a region: let the slice come before others",
            )),
        }
    }

    /// Notes an `if` whose condition is the mark of `singular`.
    fn read_singular(&mut self, inst: Inst, data: &InstData) -> Result<(), DirectiveError> {
        let mut marks = Vec::new();
        data.for_each_operand(|value| marks.extend(self.singular_mark(value)));
        let Some(&mark) = marks.first() else {
            return Ok(());
        };
        match data.control() {
            Control::If {
                else_region: None, ..
            } => {
                self.singular.insert(inst, mark);
                Ok(())
            }
            _ => {
                let at = self.function().insts[inst].location;
                Err(self.placement(
                    at,
                    "the mark of `singular` is the condition of an `if` without `else`",
                ))
            }
        }
    }

    fn singular_mark(&self, value: Value) -> Option<Inst> {
        let ValueDef::Inst(inst) = self.function().values[value].def else {
            return None;
        };
        let row = self.mark(&self.function().insts[inst].data)?;
        row.is_same(marks::singular::row()).then_some(inst)
    }

    /// Brings the loops into the order of the text.
    fn number_loops(&mut self) {
        let mut order = HashMap::new();
        let function = &self.module.functions[self.kernel];
        function.for_each_inst(|_, inst| {
            let next = order.len();
            order.insert(inst, next);
        });
        self.loops.sort_by_key(|(inst, _)| order[inst]);
    }

    /// What no schedule makes right: directives and ends of loops where they have no meaning.
    fn refuse_placement(&self) -> Result<(), DirectiveError> {
        let function = self.function();
        self.refuse_in(function.body, &mut Vec::new(), false)
    }

    /// As [`Program::refuse_placement`], in a region within loops that are distributed by their marks or not.
    fn refuse_in(
        &self,
        region: Region,
        around: &mut Vec<LoopSchedule>,
        in_singular: bool,
    ) -> Result<(), DirectiveError> {
        let function = self.function();
        for &inst in &function.regions[region].insts {
            let node = &function.insts[inst];
            let refuse = |problem: &str| Err(self.placement(node.location, problem));
            if in_singular && node.data.is_barrier() {
                return refuse(
                    "a barrier in `singular`, which one thread of the block executes: put it behind",
                );
            }
            let row = node
                .data
                .intrinsic()
                .map(|(id, _)| self.module.intrinsics[id]);
            if row.is_some_and(|row| is_of_threads(row) && self.mark(&node.data).is_none()) {
                return refuse(
                    "a region is a sequential program, and has no thread that knows its place: use directives, or \
                     write a `#[kernel]`",
                );
            }
            let singular = self.singular.contains_key(&inst);
            if singular && in_singular {
                return refuse("`singular` within `singular`: one of them is enough");
            }
            let held = self.number_of(inst).map(|number| self.loops[number].1);
            if in_singular && held.is_some_and(|held| held.partition.is_some()) {
                return refuse(
                    "`loop_partition` within `singular`, which one thread of the block executes: take one of them away",
                );
            }
            let is_loop = node.data.is_loop();
            if is_loop {
                around.push(held.unwrap_or_default());
            }
            for inner in node.data.regions() {
                self.refuse_in(inner, around, in_singular || singular)?;
            }
            if is_loop {
                around.pop();
            }
        }
        Ok(())
    }
}

/// The slices of a loop to which a mark adds one.
fn slices_of<'l>(row: &IntrinsicDef, marked: &'l mut LoopSchedule) -> Option<Vec<&'l mut Slices>> {
    let LoopSchedule {
        shared,
        whole,
        computed,
        copied_out,
        reduction,
        privatized,
        ..
    } = marked;
    Some(match row {
        row if row.is_same(marks::shared::row()) => vec![shared],
        row if row.is_same(marks::whole::row()) => vec![shared, whole],
        row if row.is_same(marks::compute::row()) => vec![shared, computed],
        row if row.is_same(marks::copyout::row()) => vec![copied_out],
        row if row.is_same(marks::reduction::row()) => vec![reduction],
        row if row.is_same(marks::privatize::row()) => vec![privatized],
        _ => return None,
    })
}

/// Whether a function can be a region.
pub(crate) fn is_region(function: &Function) -> bool {
    function.result == Type::UNIT
        && function.type_params.is_empty()
        && function.const_params.is_empty()
        && !function.is_declaration
}

/// Whether a row gives different results to threads with the same arguments, or asks other threads.
fn is_of_threads(row: &IntrinsicDef) -> bool {
    use kiln_jit_core::ir::{Meaning, Uniformity};
    row.uniformity != Uniformity::Function
        || row.effects.meets()
        || matches!(row.meaning, Meaning::Position(_) | Meaning::Warp(_))
}
