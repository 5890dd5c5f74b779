//! Which constructs a case has: of which types, how deep, where threads diverge.
//!
//! What diverges is found by an analysis of the module alone, without what the generator knows. So
//! it also checks the generator: [`Coverage::divergent_barriers`] is 0.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;

use kiln_jit_core::ir::{
    AddressSpace, BinaryOp, CompareOp, Control, FuncId, Function, FunctionKind, Inst, InstData,
    Module, Ordering, Read, Region, Scope, Source, Type, TypeData, Uniformity, Value, Var, VarUse,
};

use crate::case::Case;
use crate::operations;

/// A construct in a place of some kind.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Construct {
    /// What it is: `binary.add`, `break.outer`, `load.shared`, `launch.block.2d` ...
    pub kind: String,
    /// The type it is about; empty for none.
    pub ty: String,
    /// How many regions are around it.
    pub depth: usize,
    /// Whether the threads of a block may come by apart from each other; for a branch or loop,
    /// whether they part there.
    pub divergent: bool,
}

/// How often each construct occurs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Coverage {
    /// By construct.
    pub counts: BTreeMap<Construct, u64>,
    /// The names of the operations that there are ([`operations`]).
    pub operations: BTreeSet<String>,
    /// The number of cases.
    pub cases: u64,
    /// Barriers, and calls of functions with barriers, that not all threads come to together.
    pub divergent_barriers: u64,
}

impl Coverage {
    /// Adds the counts of other cases.
    pub fn merge(&mut self, other: &Coverage) {
        for (construct, n) in &other.counts {
            *self.counts.entry(construct.clone()).or_default() += n;
        }
        self.operations.extend(other.operations.iter().cloned());
        self.cases += other.cases;
        self.divergent_barriers += other.divergent_barriers;
    }

    /// How often a kind occurs, or all kinds that begin with it and a dot.
    pub fn total(&self, kind: &str) -> u64 {
        self.sum(|c| matches(c, kind))
    }

    /// How often a kind occurs where threads diverge.
    pub fn divergent(&self, kind: &str) -> u64 {
        self.sum(|c| matches(c, kind) && c.divergent)
    }

    /// How often a kind occurs for a type, by the type's name.
    pub fn typed(&self, kind: &str, ty: &str) -> u64 {
        self.sum(|c| matches(c, kind) && c.ty == ty)
    }

    /// The deepest that a kind occurs.
    pub fn deepest(&self, kind: &str) -> usize {
        let found = self.counts.keys().filter(|c| matches(c, kind));
        found.map(|c| c.depth).max().unwrap_or(0)
    }

    fn sum(&self, fits: impl Fn(&Construct) -> bool) -> u64 {
        let found = self.counts.iter().filter(|(c, _)| fits(c));
        found.map(|(_, n)| n).sum()
    }
}

fn matches(construct: &Construct, kind: &str) -> bool {
    let rest = construct.kind.strip_prefix(kind);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl fmt::Display for Coverage {
    /// A line for each kind: how often, how often divergent, how deep, which types.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} cases", self.cases)?;
        writeln!(
            f,
            "{:28} {:>9} {:>9} {:>5}  types",
            "construct", "count", "divergent", "deep"
        )?;
        let kinds: BTreeSet<&str> = self.counts.keys().map(|c| c.kind.as_str()).collect();
        for kind in kinds {
            let exact = |c: &Construct| c.kind == kind;
            let all = self.sum(exact);
            let divergent = self.sum(|c| exact(c) && c.divergent);
            let here = || self.counts.keys().filter(|c| exact(c));
            let deep = here().map(|c| c.depth).max().unwrap_or(0);
            let types: HashSet<&str> = here().map(|c| c.ty.as_str()).collect();
            let scalar = |ty: &&&str| ty.chars().all(char::is_alphanumeric) && !ty.is_empty();
            let mut scalars: Vec<&str> = types.iter().filter(scalar).copied().collect();
            scalars.sort_unstable();
            let others = types.len() - scalars.len() - usize::from(types.contains(""));
            write!(
                f,
                "{kind:28} {all:9} {divergent:9} {deep:5}  {}",
                scalars.join(" ")
            )?;
            let more = if others > 0 {
                format!(" + {others} more")
            } else {
                String::new()
            };
            writeln!(f, "{more}")?;
        }
        Ok(())
    }
}

/// The constructs of a case.
pub fn coverage(case: &Case) -> Coverage {
    let mut coverage = Coverage {
        cases: 1,
        ..Coverage::default()
    };
    launch(case, &mut coverage);
    for (id, function) in case.module.functions.iter() {
        let divergence = Divergence::of(&case.module, function);
        let mut walk = Walk {
            module: &case.module,
            function,
            divergence: &divergence,
            coverage: &mut coverage,
            loops: 0,
            exits: false,
        };
        walk.signature(id);
        walk.region(function.body, 0, false);
    }
    coverage
}

fn launch(case: &Case, coverage: &mut Coverage) {
    let mut count = |kind: &str, ty: String| {
        let construct = Construct {
            kind: kind.to_owned(),
            ty,
            depth: 0,
            divergent: false,
        };
        *coverage.counts.entry(construct).or_default() += 1;
    };
    let dimensions = |extents: [u32; 3]| match extents {
        [_, 1, 1] => "1d",
        [_, _, 1] => "2d",
        _ => "3d",
    };
    count(
        &format!("launch.block.{}", dimensions(case.block)),
        String::new(),
    );
    count(
        &format!("launch.grid.{}", dimensions(case.grid)),
        String::new(),
    );
    if !case.threads().is_multiple_of(32) {
        count("launch.partial_warp", String::new());
    }
    if case.waits() {
        count("launch.waits", String::new());
    }
    if case.dynamic_shared > 0 {
        count("launch.dynamic_shared", String::new());
    }
    for (i, arg) in case.args.iter().enumerate() {
        if matches!(arg, crate::case::Arg::Buffer(_)) && case.args[..i].contains(arg) {
            count("param.alias", case.module.types.display(case.element(i)));
        }
        let name = case.kernel().params[i]
            .name
            .trim_end_matches(|c: char| c.is_ascii_digit());
        count(&format!("param.named.{name}"), String::new());
        let kind = match arg {
            crate::case::Arg::Bytes(_) => "param.value",
            crate::case::Arg::Buffer(_) => "param.buffer",
        };
        count(kind, case.module.types.display(case.element(i)));
    }
}

/// What differs between the threads of a block in one function.
struct Divergence<'m> {
    module: &'m Module,
    function: &'m Function,
    values: HashSet<Value>,
    vars: HashSet<Var>,
    /// Loops whose iterations not all threads make together.
    loops: HashSet<Inst>,
}

impl<'m> Divergence<'m> {
    fn of(module: &'m Module, function: &'m Function) -> Self {
        let mut this = Divergence {
            module,
            function,
            values: HashSet::new(),
            vars: HashSet::new(),
            loops: HashSet::new(),
        };
        if function.kind == FunctionKind::Device {
            this.values.extend(function.params.iter().map(|p| p.value));
        }
        // Sets only grow, so this ends.
        loop {
            let before = (this.values.len(), this.vars.len(), this.loops.len());
            this.region(function.body, false, &mut Vec::new());
            if before == (this.values.len(), this.vars.len(), this.loops.len()) {
                return this;
            }
        }
    }

    /// `around`: the loops around, the outermost first, and whether control diverged inside each.
    fn region(&mut self, region: Region, divergent: bool, around: &mut Vec<Inst>) {
        let function = self.function;
        for &inst in &function.regions[region].insts {
            let node = &function.insts[inst];
            if self.result_varies(&node.data)
                && let Some(value) = node.result
            {
                self.values.insert(value);
            }
            if let Some(VarUse::Set(var, value)) = node.data.var_use()
                && (divergent || self.values.contains(&value))
            {
                self.vars.insert(var);
            }
            match node.data.control() {
                Control::Leave { depth, .. } if divergent => {
                    // All loops up to the one that is named are left by some threads only.
                    let count = (depth as usize + 1).min(around.len());
                    self.loops.extend(around.iter().rev().take(count));
                }
                Control::For { index, .. } if self.any_varies(&node.data) => {
                    self.values.insert(index);
                }
                Control::Next
                | Control::If { .. }
                | Control::Loop { .. }
                | Control::For { .. }
                | Control::Leave { .. }
                | Control::Return { .. } => {}
            }
            let inner = divergent || self.parts(inst);
            let is_loop = node.data.is_loop();
            if is_loop {
                around.push(inst);
            }
            for region in node.data.regions() {
                self.region(region, inner, around);
            }
            if is_loop {
                around.pop();
            }
        }
    }

    fn any_varies(&self, data: &InstData) -> bool {
        let mut varies = false;
        data.for_each_operand(|v| varies |= self.values.contains(&v));
        varies
    }

    fn result_varies(&self, data: &InstData) -> bool {
        match data.facts(&self.module.intrinsics).source {
            Source::None | Source::Operands => self.any_varies(data),
            Source::Variable(var) => self.vars.contains(&var),
            Source::Own | Source::Execution | Source::Callee => true,
            Source::Row(row) => {
                let differs = matches!(row.uniformity, Uniformity::Lane | Uniformity::Warp);
                differs || self.any_varies(data)
            }
            Source::Memory { ptr, read } => {
                let pointer = self.module.types.as_pointer(self.function.type_of(ptr));
                let fixed = pointer.is_some_and(|(_, space, mutable)| {
                    !mutable && !matches!(space, AddressSpace::Shared | AddressSpace::Local)
                });
                read != Read::Plain || !fixed || self.any_varies(data)
            }
        }
    }

    /// Whether threads part at an instruction with regions.
    fn parts(&self, inst: Inst) -> bool {
        let data = &self.function.insts[inst].data;
        match data.control() {
            Control::If { .. } => self.any_varies(data),
            Control::For { .. } | Control::Loop { .. } => {
                self.any_varies(data) || self.loops.contains(&inst)
            }
            Control::Next | Control::Leave { .. } | Control::Return { .. } => false,
        }
    }
}

/// Whether a function has barriers, itself or in what it calls.
fn has_barriers(module: &Module, id: FuncId) -> bool {
    let function = &module.functions[id];
    let mut found = false;
    function.for_each_inst(|_, inst| {
        let data = &function.insts[inst].data;
        let callee = data.callee();
        found |= data.is_barrier() || callee.is_some_and(|callee| has_barriers(module, callee));
    });
    found
}

struct Walk<'c> {
    module: &'c Module,
    function: &'c Function,
    divergence: &'c Divergence<'c>,
    coverage: &'c mut Coverage,
    loops: usize,
    /// Whether threads may have ended before.
    exits: bool,
}

impl Walk<'_> {
    fn count(&mut self, kind: impl Into<String>, ty: Type, depth: usize, divergent: bool) {
        let ty = match ty {
            Type::UNIT => String::new(),
            _ => self.module.types.display(ty),
        };
        let construct = Construct {
            kind: kind.into(),
            ty,
            depth,
            divergent,
        };
        *self.coverage.counts.entry(construct).or_default() += 1;
    }

    fn signature(&mut self, id: FuncId) {
        if self.function.kind == FunctionKind::Device {
            let kind = match has_barriers(self.module, id) {
                true => "function.barriers",
                false => "function.plain",
            };
            self.count(kind, self.function.result, 0, false);
        }
        for var in self.function.vars.values() {
            self.count("var.declared", var.ty, 0, false);
        }
        for shared in self.function.shared.values() {
            self.count("shared.static", shared.ty, 0, false);
        }
    }

    fn region(&mut self, region: Region, depth: usize, divergent: bool) {
        let function = self.function;
        for &inst in &function.regions[region].insts {
            self.inst(inst, depth, divergent);
            let data = &function.insts[inst].data;
            let is_loop = matches!(data, InstData::For { .. } | InstData::Loop { .. });
            self.loops += usize::from(is_loop);
            let inner = divergent || self.divergence.parts(inst);
            for region in data.regions() {
                self.region(region, depth + 1, inner);
            }
            self.loops -= usize::from(is_loop);
        }
    }

    fn ty(&self, value: Value) -> Type {
        self.function.type_of(value)
    }

    fn is_address(&self, ty: Type) -> bool {
        let data = self.module.types.data(ty);
        matches!(data, TypeData::Pointer { .. } | TypeData::Slice { .. })
    }

    fn pointee(&self, ptr: Value) -> (Type, &'static str) {
        let pointer = self.module.types.as_pointer(self.ty(ptr));
        pointer.map_or((Type::UNIT, ""), |(ty, space, _)| (ty, space.name()))
    }

    fn inst(&mut self, inst: Inst, depth: usize, divergent: bool) {
        let function = self.function;
        let node = &function.insts[inst];
        let result = node.result.map_or(Type::UNIT, |v| self.ty(v));
        self.coverage
            .operations
            .insert(operations::name(&node.data));
        let parts = self.divergence.parts(inst);
        let (kind, ty, here) = match &node.data {
            InstData::If { else_region, .. } => {
                let kind = if else_region.is_some() {
                    "if.else"
                } else {
                    "if.plain"
                };
                (kind.to_owned(), Type::UNIT, divergent || parts)
            }
            InstData::Loop { .. } => ("loop".to_owned(), Type::UNIT, divergent || parts),
            InstData::For { index, .. } => ("for".to_owned(), self.ty(*index), divergent || parts),
            InstData::Barrier => (
                self.barrier(depth, divergent).to_owned(),
                Type::UNIT,
                divergent,
            ),
            InstData::Return { .. } => {
                self.exits = true;
                let place = if self.loops > 0 { "in_loop" } else { "plain" };
                let kind = match function.kind {
                    FunctionKind::Kernel => "return",
                    FunctionKind::Device => "function_return",
                };
                (format!("{kind}.{place}"), Type::UNIT, divergent)
            }
            InstData::Call { callee, .. } => {
                let barriers = has_barriers(self.module, *callee);
                self.coverage.divergent_barriers += u64::from(barriers && divergent);
                let kind = if barriers {
                    "call.barriers"
                } else {
                    "call.plain"
                };
                (kind.to_owned(), result, divergent)
            }
            data => {
                let (kind, ty) = self.plain(data, result);
                (kind, ty, divergent)
            }
        };
        self.count(kind, ty, depth, here);
        if let Some((what, ordering, scope)) = orders(&node.data) {
            let kind = format!("order.{what}.{ordering:?}.{scope:?}").to_lowercase();
            self.count(kind, Type::UNIT, depth, divergent);
        }
    }

    fn barrier(&mut self, depth: usize, divergent: bool) -> &'static str {
        self.coverage.divergent_barriers += u64::from(divergent);
        if self.exits {
            self.count("barrier_after_exit", Type::UNIT, depth, divergent);
        }
        match (self.loops, depth) {
            (0, 0) => "barrier.plain",
            (0, _) => "barrier.in_if",
            (1, _) => "barrier.in_loop",
            _ => "barrier.in_loops",
        }
    }

    /// The kind and the type of an instruction that is no control flow. Flat match.
    fn plain(&self, data: &InstData, result: Type) -> (String, Type) {
        let jump = |name: &str, depth: u32| {
            let target = if depth == 0 { "inner" } else { "outer" };
            (format!("{name}.{target}"), Type::UNIT)
        };
        let memory = |name: &str, ptr: &Value| {
            let (ty, space) = self.pointee(*ptr);
            (format!("{name}.{space}"), ty)
        };
        let checked = |name: &str, checked: bool| {
            let kind = if checked { "checked" } else { "unchecked" };
            (
                format!("{name}.{kind}"),
                self.module.types.as_pointer(result).map_or(result, |p| p.0),
            )
        };
        match data {
            InstData::Const(_) => ("const".to_owned(), result),
            InstData::ConstParam(_) => ("const_param".to_owned(), result),
            InstData::Unary { op, .. } => (format!("unary.{op:?}").to_lowercase(), result),
            InstData::Binary { op, .. } => (binary_name(*op), result),
            InstData::Compare { op, args } => (compare_name(*op), self.ty(args[0])),
            InstData::Select { .. } if self.is_address(result) => {
                ("select.address".to_owned(), Type::UNIT)
            }
            InstData::Select { .. } => ("select".to_owned(), result),
            InstData::Cast { arg } => (format!("cast.{:?}", self.ty(*arg)), result),
            InstData::Bitcast { arg } => match self.module.types.data(self.ty(*arg)) {
                TypeData::Scalar(from) => (format!("bitcast.{}", from.name()), result),
                TypeData::Pointer { .. } if self.is_address(result) => {
                    ("bitcast.address".to_owned(), Type::UNIT)
                }
                TypeData::Pointer { .. } => ("bitcast.address_as_number".to_owned(), Type::UNIT),
                _ => ("bitcast.vector".to_owned(), result),
            },
            InstData::Construct { parts } if parts.iter().any(|p| self.is_address(self.ty(*p))) => {
                ("construct.addresses".to_owned(), Type::UNIT)
            }
            InstData::Construct { .. } => ("construct".to_owned(), result),
            InstData::Extract { aggregate, .. } => ("extract".to_owned(), self.ty(*aggregate)),
            InstData::Insert { value, .. } if self.is_address(self.ty(*value)) => {
                ("insert.address".to_owned(), Type::UNIT)
            }
            InstData::Insert { .. } => ("insert".to_owned(), result),
            InstData::VarGet(_) => ("var.get".to_owned(), result),
            InstData::VarSet(_, value) if self.is_address(self.ty(*value)) => {
                ("var.set.address".to_owned(), Type::UNIT)
            }
            InstData::VarSet(_, value) => ("var.set".to_owned(), self.ty(*value)),
            InstData::Load { ptr, .. } => memory("load", ptr),
            InstData::Store { ptr, .. } => memory("store", ptr),
            InstData::PtrOffset { .. } => ("ptr_offset".to_owned(), Type::UNIT),
            InstData::FieldPtr { .. } => ("field_ptr".to_owned(), Type::UNIT),
            InstData::ElementPtr { checked: c, .. } => checked("element_ptr", *c),
            InstData::SpaceCast { .. } => ("space_cast".to_owned(), Type::UNIT),
            InstData::SliceNew { .. } => ("slice_new".to_owned(), Type::UNIT),
            InstData::SliceLen { .. } => ("slice_len".to_owned(), result),
            InstData::SlicePtr { .. } => ("slice_ptr".to_owned(), Type::UNIT),
            InstData::SliceIndex { checked: c, .. } => checked("slice_index", *c),
            InstData::SharedAddr(_) => ("shared_addr".to_owned(), Type::UNIT),
            InstData::DynamicShared => ("dynamic_shared".to_owned(), Type::UNIT),
            InstData::LocalAlloc => ("local_alloc".to_owned(), Type::UNIT),
            InstData::GlobalAddr(_) => ("global_addr".to_owned(), Type::UNIT),
            InstData::Hidden(_) => ("hidden".to_owned(), result),
            InstData::AtomicLoad { ptr, .. } => memory("atomic.load", ptr),
            InstData::AtomicStore { ptr, .. } => memory("atomic.store", ptr),
            InstData::AtomicRmw { op, ptr, .. } => {
                memory(&format!("atomic.{op:?}").to_lowercase(), ptr)
            }
            InstData::AtomicCas { ptr, .. } => memory("atomic.cas", ptr),
            InstData::Assume { checked: c, .. } => checked("assume", *c),
            InstData::Assert { values, .. } => {
                let told = match values {
                    Some(_) => "assert.values",
                    None => "assert.plain",
                };
                (told.to_owned(), Type::UNIT)
            }
            InstData::Print { .. } => ("print".to_owned(), Type::UNIT),
            InstData::Fence { .. } => ("fence".to_owned(), Type::UNIT),
            InstData::Intrinsic { id, .. } => (
                format!("intrinsic.{}", self.module.intrinsics[*id].name),
                result,
            ),
            InstData::Break { depth } => jump("break", *depth),
            InstData::Continue { depth } => jump("continue", *depth),
            // Control flow is not asked about here.
            InstData::If { .. }
            | InstData::Loop { .. }
            | InstData::For { .. }
            | InstData::Barrier
            | InstData::Call { .. }
            | InstData::Return { .. } => ("control".to_owned(), Type::UNIT),
        }
    }
}

/// What a fence or an atomic is, with its ordering and its scope.
fn orders(data: &InstData) -> Option<(&'static str, Ordering, Scope)> {
    Some(match *data {
        InstData::AtomicLoad {
            ordering, scope, ..
        } => ("load", ordering, scope),
        InstData::AtomicStore {
            ordering, scope, ..
        } => ("store", ordering, scope),
        InstData::AtomicRmw {
            ordering, scope, ..
        } => ("change", ordering, scope),
        InstData::AtomicCas {
            ordering, scope, ..
        } => ("swap", ordering, scope),
        InstData::Fence { ordering, scope } => ("fence", ordering, scope),
        _ => return None,
    })
}

fn binary_name(op: BinaryOp) -> String {
    format!("binary.{op:?}").to_lowercase()
}

fn compare_name(op: CompareOp) -> String {
    format!("compare.{op:?}").to_lowercase()
}
