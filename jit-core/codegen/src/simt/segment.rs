//! The pieces of a kernel between its barriers, and what lives from one to another.
//!
//! A segment is a run of instructions without a barrier; it is executed warp by warp. What holds a
//! barrier is executed once for the whole block, which needs its condition to be the same in all
//! threads (MCUDA calls this deep fission; Stratton et al., LCPC 2008). A kernel that does not let
//! itself be cut like this is [`Unfit`].

use std::collections::{HashMap, HashSet};

use kiln_ir::{
    Control, Entity as _, Function, Inst, InstData, Module, Region, Source, Uniformity, Value,
    ValueDef, Var, VarUse,
};

use super::scope::Scopes;
use super::uniformity::{Uniformities, defining_inst};
use super::{BlockShape, Flat};

/// The largest number of operations computed again instead of kept.
const MAX_REMATERIALIZED: u32 = 12;

/// A segment, by position in [`Segments::segments`].
pub(crate) type SegmentId = usize;

/// A step of a block.
#[derive(Debug)]
pub(crate) enum Item {
    /// Run a segment, warp by warp.
    Run(SegmentId),
    /// An `if` of the whole block.
    If {
        /// The condition.
        cond: Value,
        /// When the condition holds.
        then_items: Vec<Item>,
        /// What runs when the condition does not hold.
        else_items: Vec<Item>,
    },
    /// A `loop` or `for` of the whole block.
    Loop {
        /// The instruction.
        inst: Inst,
        /// What the loop repeats.
        body: Vec<Item>,
        /// Whether threads can end inside, so that nobody may be left to leave it.
        can_end: bool,
        /// Whether there can be no thread left from the start: threads can end, but not inside.
        can_start_empty: bool,
    },
    /// A `break` or `continue` of the whole block.
    Leave {
        /// How many loops are between.
        depth: u32,
        /// Whether the block continues the loop, or leaves it.
        again: bool,
    },
}

/// A run of instructions without a barrier, all in one region.
#[derive(Debug, Default)]
pub(crate) struct Segment {
    /// The instructions, in order.
    pub(crate) insts: Vec<Inst>,
    /// Values of other segments that it uses and does not compute again.
    pub(crate) needs: Vec<Value>,
    /// Values of other segments that it computes again.
    pub(crate) again: Vec<Value>,
    /// Variables it reads or writes that live across segments.
    pub(crate) vars: Vec<Var>,
    /// Variables that only it reads or writes, anew each time it is run.
    pub(crate) own: Vec<Var>,
    /// Whether a thread can end in it: by `return`, or by a checked access.
    pub(crate) can_end: bool,
    /// Whether the segment only computes what all threads of the block have in common.
    pub(crate) is_uniform: bool,
    /// Whether no thread can have ended before it.
    pub(crate) all_there: bool,
}

/// A kernel cut at its barriers.
#[derive(Debug)]
pub(crate) struct Segments {
    /// What a block does.
    pub(crate) items: Vec<Item>,
    /// The segments.
    pub(crate) segments: Vec<Segment>,
    /// Values computed in one segment and used in another, or by an item.
    pub(crate) kept: Vec<Value>,
    /// Variables that live across segments.
    pub(crate) kept_vars: Vec<Var>,
    is_kept: HashSet<Value>,
    rematerialized: HashSet<Value>,
}

/// Why a kernel cannot be cut at its barriers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unfit {
    /// The instruction that is in the way.
    pub(crate) inst: Inst,
    /// What about it.
    pub(crate) why: &'static str,
}

impl Segments {
    /// Cuts a kernel for blocks of a shape. A barrier is the last operation of the segment before it if
    /// `keep_barriers`, and else in none.
    pub(crate) fn of(
        module: &Module,
        flat: &Flat,
        scopes: &Scopes,
        uniformity: &Uniformities,
        versions: Option<Versions>,
        (block, keep_barriers): (BlockShape, bool),
    ) -> Result<Segments, Unfit> {
        let function = &flat.function;
        let mut cutter = Cutter {
            module,
            function,
            uniformity,
            meets: meeting_places(function, scopes, block),
            keep_barriers,
            segments: Vec::new(),
        };
        match block.warps() {
            1 => cutter.check_lanes_meet(scopes)?,
            // In one loop over warps, the longer version would keep the shorter from being what it is alone.
            _ => cutter.meets.extend(versions.map(|versions| versions.inst)),
        }
        let items = cutter.items(function.body)?;
        cutter.find_all_there(&items, false);
        let mut segments = Segments {
            items,
            segments: cutter.segments,
            kept: Vec::new(),
            kept_vars: Vec::new(),
            is_kept: HashSet::new(),
            rematerialized: rematerializable(module, function),
        };
        Crossing::new(function, scopes, &segments).find(&mut segments);
        Ok(segments)
    }

    /// A kernel as one segment, for warps that wait at barriers themselves. The lanes of a warp have
    /// to come to a barrier together.
    pub(crate) fn whole(
        module: &Module,
        flat: &Flat,
        scopes: &Scopes,
        uniformity: &Uniformities,
    ) -> Result<Segments, Unfit> {
        let function = &flat.function;
        let mut cutter = Cutter {
            module,
            function,
            uniformity,
            meets: HashSet::new(),
            keep_barriers: true,
            segments: Vec::new(),
        };
        cutter.check_lanes_meet(scopes)?;
        let items = cutter.items(function.body)?;
        if cutter.segments.is_empty() {
            cutter.segments.push(Segment::default());
        }
        let mut segments = Segments {
            items,
            segments: cutter.segments,
            kept: Vec::new(),
            kept_vars: Vec::new(),
            is_kept: HashSet::new(),
            rematerialized: rematerializable(module, function),
        };
        Crossing::new(function, scopes, &segments).find(&mut segments);
        Ok(segments)
    }

    /// Whether a value is one of those that are kept.
    pub(crate) fn is_kept(&self, value: Value) -> bool {
        self.is_kept.contains(&value)
    }

    /// Whether a value is computed again where another segment needs it.
    pub(crate) fn is_rematerialized(&self, value: Value) -> bool {
        self.rematerialized.contains(&value)
    }
}

/// The instructions that are executed for the block as a whole: barriers, what holds them, and
/// what leaves a loop that does.
fn meeting_places(function: &Function, scopes: &Scopes, block: BlockShape) -> HashSet<Inst> {
    let mut meets = HashSet::new();
    if block.warps() == 1 {
        return meets;
    }
    let mut leaves = Vec::new();
    function.for_each_inst(|_, inst| {
        let data = &function.insts[inst].data;
        if data.is_barrier() {
            meets.insert(inst);
            meets.extend(scopes.around(inst, function.body));
        }
        match data.control() {
            Control::Leave { depth, .. } => leaves.push((inst, depth)),
            Control::Next
            | Control::If { .. }
            | Control::Loop { .. }
            | Control::For { .. }
            | Control::Return { .. } => {}
        }
    });
    // Pulling in an `if` never makes a loop a meeting place that was none, save loops between a
    // `break` and the one it leaves: repeat until nothing is added.
    loop {
        let before = meets.len();
        for &(inst, depth) in &leaves {
            let Some((target, between)) = scopes.loop_around(function, inst, depth) else {
                continue;
            };
            if meets.contains(&target) {
                meets.insert(inst);
                meets.extend(between);
            }
        }
        if meets.len() == before {
            return meets;
        }
    }
}

/// A kernel that is one of two as a whole.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Versions {
    /// The `if` that chooses, the last instruction of the kernel.
    pub(crate) inst: Inst,
    /// The condition, which is the same in the block, as all before it is.
    pub(crate) cond: Value,
    /// Whether the condition can be computed anew: nothing before it has to do with variables.
    pub(crate) is_computed: bool,
}

impl Versions {
    /// The versions of a kernel, if it has some.
    pub(crate) fn of(
        module: &Module,
        function: &Function,
        uniformity: &Uniformities,
    ) -> Option<Versions> {
        let insts = without_end(function, function.body);
        let (&inst, before) = insts.split_last()?;
        let Control::If {
            cond,
            else_region: Some(_),
            ..
        } = function.insts[inst].data.control()
        else {
            return None;
        };
        let is_whole = before
            .iter()
            .all(|&inst| is_uniform((module, function), uniformity, inst));
        let is_computed = |&inst: &Inst| function.insts[inst].data.var_use().is_none();
        (is_whole && uniformity.value(cond) == Uniformity::Block).then(|| Versions {
            inst,
            cond,
            is_computed: before.iter().all(is_computed),
        })
    }
}

/// Whether an instruction gives the same in all threads and does nothing else. Memory is left
/// out: there must be a thread for it to be accessed at all.
fn is_uniform(
    (module, function): (&Module, &Function),
    uniformity: &Uniformities,
    inst: Inst,
) -> bool {
    let node = &function.insts[inst];
    let same = |value| uniformity.value(value) == Uniformity::Block;
    match node.data.var_use() {
        Some(VarUse::Set(var, value)) => uniformity.var(var) == Uniformity::Block && same(value),
        Some(VarUse::Get(_)) => node.result.is_some_and(same),
        None => {
            let data = &node.data;
            let harmless = data.facts(&module.intrinsics).is_harmless();
            harmless && is_repeatable(module, data) && node.result.is_some_and(same)
        }
    }
}

struct Cutter<'a> {
    module: &'a Module,
    function: &'a Function,
    uniformity: &'a Uniformities,
    meets: HashSet<Inst>,
    keep_barriers: bool,
    segments: Vec<Segment>,
}

impl Cutter<'_> {
    /// Notes which segments no thread can have ended before; whether one can have ended behind them all.
    fn find_all_there(&mut self, items: &[Item], mut ended: bool) -> bool {
        for item in items {
            ended = match item {
                Item::Run(id) => {
                    let segment = &mut self.segments[*id];
                    segment.all_there = !ended;
                    ended || segment.can_end
                }
                Item::If {
                    then_items,
                    else_items,
                    ..
                } => {
                    let then = self.find_all_there(then_items, ended);
                    self.find_all_there(else_items, ended) || then
                }
                Item::Loop { body, can_end, .. } => self.find_all_there(body, ended || *can_end),
                Item::Leave { .. } => ended,
            };
        }
        ended
    }

    fn items(&mut self, region: Region) -> Result<Vec<Item>, Unfit> {
        let function = self.function;
        let mut items = Vec::new();
        let mut run = Vec::new();
        for &inst in without_end(function, region) {
            if !self.meets.contains(&inst) {
                run.push(inst);
                continue;
            }
            if self.keep_barriers && function.insts[inst].data.is_barrier() {
                run.push(inst);
            }
            self.flush(&mut run, &mut items);
            if let Some(item) = self.item(inst)? {
                items.push(item);
            }
        }
        self.flush(&mut run, &mut items);
        Ok(items)
    }

    fn flush(&mut self, run: &mut Vec<Inst>, items: &mut Vec<Item>) {
        if run.is_empty() {
            return;
        }
        items.push(Item::Run(self.segments.len()));
        let can_end = run.iter().any(|&inst| inst_can_end(self.function, inst));
        let is_uniform = run.iter().all(|&inst| self.is_uniform(inst));
        self.segments.push(Segment {
            insts: std::mem::take(run),
            can_end,
            is_uniform,
            ..Segment::default()
        });
    }

    fn is_uniform(&self, inst: Inst) -> bool {
        is_uniform((self.module, self.function), self.uniformity, inst)
    }

    fn item(&mut self, inst: Inst) -> Result<Option<Item>, Unfit> {
        Ok(match self.function.insts[inst].data.control() {
            Control::If {
                cond,
                then_region,
                else_region,
            } => {
                self.require_uniform(inst, cond)?;
                Some(Item::If {
                    cond,
                    then_items: self.items(then_region)?,
                    else_items: match else_region {
                        Some(region) => self.items(region)?,
                        None => Vec::new(),
                    },
                })
            }
            Control::Loop { body } => Some(self.looping(inst, body)?),
            Control::For { bounds, body, .. } => {
                for bound in bounds {
                    self.require_uniform(inst, bound)?;
                }
                Some(self.looping(inst, body)?)
            }
            Control::Leave { depth, again } => Some(Item::Leave { depth, again }),
            Control::Next | Control::Return { .. } => None,
        })
    }

    fn looping(&mut self, inst: Inst, body: Region) -> Result<Item, Unfit> {
        let ends_inside = can_end(self.function, body);
        // A counted loop ends without anyone.
        let is_counted = self.function.insts[inst].data.index().is_some();
        let ends_elsewhere = can_end(self.function, self.function.body);
        Ok(Item::Loop {
            inst,
            body: self.items(body)?,
            can_end: ends_inside,
            can_start_empty: !is_counted && !ends_inside && ends_elsewhere,
        })
    }

    fn require_uniform(&self, inst: Inst, value: Value) -> Result<(), Unfit> {
        if self.uniformity.value(value) == Uniformity::Block {
            return Ok(());
        }
        Err(Unfit {
            inst,
            why: "a barrier inside depends on a value that may differ between threads",
        })
    }

    /// Within a warp a barrier is nothing, if all lanes come to it together.
    fn check_lanes_meet(&self, scopes: &Scopes) -> Result<(), Unfit> {
        let function = self.function;
        let mut found = Ok(());
        function.for_each_inst(|_, inst| {
            if !function.insts[inst].data.is_barrier() {
                return;
            }
            let mut around = scopes.around(inst, function.body);
            if let Some(inst) = around.find(|&i| self.uniformity.control(i) == Uniformity::Lane) {
                found = Err(Unfit {
                    inst,
                    why: "a barrier inside depends on a value that differs between lanes",
                });
            }
        });
        found
    }
}

/// The instructions of a region but for a `return` at the end of the kernel, where threads end anyway.
fn without_end(function: &Function, region: Region) -> &[Inst] {
    let insts = &function.regions[region].insts;
    match insts.split_last() {
        Some((&last, before))
            if region == function.body && function.insts[last].data.is_return() =>
        {
            before
        }
        _ => insts,
    }
}

/// Whether a thread can end in a region: by `return`, or by a checked access.
fn can_end(function: &Function, region: Region) -> bool {
    let insts = &function.regions[region].insts;
    insts.iter().any(|&inst| inst_can_end(function, inst))
}

fn inst_can_end(function: &Function, inst: Inst) -> bool {
    let data = &function.insts[inst].data;
    data.can_end() || data.regions().iter().any(|&r| can_end(function, r))
}

/// Values that cost little to compute again and give the same wherever that is done.
fn rematerializable(module: &Module, function: &Function) -> HashSet<Value> {
    let mut costs: HashMap<Value, u32> = HashMap::new();
    for param in &function.params {
        costs.insert(param.value, 0);
    }
    function.for_each_inst(|_, inst| {
        let node = &function.insts[inst];
        if let Some(index) = node.data.index() {
            costs.insert(index, 0);
        }
        let Some(result) = node.result else { return };
        if !is_repeatable(module, &node.data) {
            return;
        }
        let mut cost = Some(u32::from(node.data.constant().is_none()));
        node.data.for_each_operand(|operand| {
            cost = cost.zip(costs.get(&operand)).map(|(a, b)| a + b);
        });
        if let Some(cost) = cost.filter(|&c| c <= MAX_REMATERIALIZED) {
            costs.insert(result, cost);
        }
    });
    // Parameters and indices are there already.
    costs.retain(|&value, _| matches!(function.values[value].def, ValueDef::Inst(_)));
    costs.into_keys().collect()
}

/// Whether an instruction gives the same in every segment.
fn is_repeatable(module: &Module, data: &InstData) -> bool {
    let facts = data.facts(&module.intrinsics);
    match facts.source {
        Source::Operands => facts.is_harmless(),
        // What it does besides is done where it is first executed.
        Source::Own => true,
        Source::Row(row) => {
            let mut args = false;
            data.for_each_operand(|_| args = true);
            facts.is_harmless() && (!args || row.uniformity == Uniformity::Function)
        }
        Source::None
        | Source::Variable(_)
        | Source::Memory { .. }
        | Source::Execution
        | Source::Callee => false,
    }
}

/// Finds what lives across segments.
struct Crossing<'a> {
    function: &'a Function,
    scopes: &'a Scopes,
    /// The segment of each instruction, nested ones included.
    segment: HashMap<Inst, SegmentId>,
    /// Segments inside a loop of the block: they run more than once.
    repeated: HashSet<SegmentId>,
}

impl<'a> Crossing<'a> {
    fn new(function: &'a Function, scopes: &'a Scopes, segments: &Segments) -> Crossing<'a> {
        let mut crossing = Crossing {
            function,
            scopes,
            segment: HashMap::new(),
            repeated: HashSet::new(),
        };
        for (id, segment) in segments.segments.iter().enumerate() {
            for &inst in &segment.insts {
                crossing.note(id, inst);
            }
        }
        crossing.note_repeated(&segments.items, false);
        crossing
    }

    fn note(&mut self, id: SegmentId, inst: Inst) {
        self.segment.insert(inst, id);
        for region in self.function.insts[inst].data.regions() {
            for &inner in &self.function.regions[region].insts {
                self.note(id, inner);
            }
        }
    }

    fn note_repeated(&mut self, items: &[Item], repeated: bool) {
        for item in items {
            match item {
                Item::Run(id) if repeated => {
                    self.repeated.insert(*id);
                }
                Item::If {
                    then_items,
                    else_items,
                    ..
                } => {
                    self.note_repeated(then_items, repeated);
                    self.note_repeated(else_items, repeated);
                }
                Item::Loop { body, .. } => self.note_repeated(body, true),
                Item::Run(_) | Item::Leave { .. } => {}
            }
        }
    }

    fn find(&self, segments: &mut Segments) {
        self.find_values(segments);
        self.find_vars(segments);
    }

    fn find_values(&self, segments: &mut Segments) {
        let function = self.function;
        let mut needed = HashSet::new();
        function.for_each_inst(|_, inst| {
            let user = self.segment.get(&inst).copied();
            function.insts[inst].data.for_each_operand(|value| {
                let def = defining_inst(function, value);
                let Some(home) = def.and_then(|d| self.segment.get(&d).copied()) else {
                    return;
                };
                if user == Some(home) {
                    return;
                }
                if segments.is_rematerialized(value) {
                    if let Some(user) = user {
                        segments.segments[user].again.push(value);
                    }
                    return;
                }
                if segments.is_kept.insert(value) {
                    segments.kept.push(value);
                }
                if let Some(user) = user
                    && needed.insert((user, value))
                {
                    segments.segments[user].needs.push(value);
                }
            });
        });
    }

    fn find_vars(&self, segments: &mut Segments) {
        let function = self.function;
        let mut users: Vec<Vec<SegmentId>> = vec![Vec::new(); function.vars.len()];
        function.for_each_inst(|_, inst| {
            if let Some(var) = function.insts[inst].data.var_use().map(VarUse::var)
                && let Some(&id) = self.segment.get(&inst)
                // Segments are come by in order.
                && users[var.index()].last() != Some(&id)
            {
                users[var.index()].push(id);
            }
        });
        for (var, users) in function.vars.keys().zip(users) {
            let home = self.scopes.home(var);
            match users[..] {
                [] => {}
                [id] if home.assigned_first || !self.repeated.contains(&id) => {
                    segments.segments[id].own.push(var);
                }
                _ => {
                    segments.kept_vars.push(var);
                    for id in users {
                        segments.segments[id].vars.push(var);
                    }
                }
            }
        }
    }
}
