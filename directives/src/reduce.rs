//! Reductions: elements of slices that iterations of a loop combine with values, in whatever order.
//!
//! Of a slice that a loop reduces, each access in the loop is part of `x[i] op= v`, by one operation that takes numbers in any
//! order (of floats it rounds in another way then). Such a statement becomes one atomic operation, behind a loop of whose iterations all
//! combine values with one element ([`combine`](crate::combine)). Where it is known how many
//! elements there are, and they fit into shared memory, a block has elements of its own: they are set to what changes
//! nothing before the loop, and combined with those of the slice behind it, each by one thread.

use std::collections::HashMap;

use kiln_jit_core::ir::{
    AddressSpace, AtomicOp, BinaryOp, CompareOp, Constant, Control, Function, Inst, InstData,
    Ordering, Region, Scalar, Scope, SharedData, SharedVar, Type, Value, ValueDef, VarUse,
};

use crate::affine::{Affine, Known, Step, path_of};
use crate::combine::Combined;
use crate::emit::Emit;
use crate::error::DirectiveError;
use crate::jam::holds;
use crate::program::Program;
use crate::schedule::Schedule;
use crate::transform::{insert_before, region_of};
use crate::uniform::base_of;

/// The atomic operations that reductions have become, and the operation of each.
pub(crate) type Reduced = HashMap<Inst, AtomicOp>;

/// Makes atomic operations of what loops reduce.
pub(crate) fn reduce(
    program: &mut Program,
    schedule: &Schedule,
) -> Result<Reduced, DirectiveError> {
    let mut reduced = Reduced::new();
    for (number, held) in schedule.loops.iter().enumerate() {
        for param in held.reduction.numbers() {
            let inst = program.loops[number].0;
            let search = Search { program, inst };
            for found in search.statements(param)? {
                let atomic = found.write(program);
                reduced.insert(atomic, found.op);
            }
        }
    }
    Ok(reduced)
}

/// `x[i] op= v`.
struct Statement {
    op: AtomicOp,
    load: Inst,
    combine: Inst,
    store: Inst,
    ptr: Value,
    value: Value,
}

impl Statement {
    /// Puts an atomic operation in its place.
    fn write(&self, program: &mut Program) -> Inst {
        let function = &mut program.module.functions[program.kernel];
        let ty = function.type_of(self.value);
        let data = InstData::AtomicRmw {
            op: self.op,
            ptr: self.ptr,
            value: self.value,
            ordering: Ordering::Relaxed,
            scope: Scope::Device,
        };
        let atomic = function.new_inst(data, ty, function.insts[self.store].location);
        for inst in [self.load, self.combine, self.store] {
            let region = region_of(function, inst);
            let insts = &mut function.regions[region].insts;
            let place = insts.iter().position(|&held| held == inst);
            let place = place.expect("an instruction is in its region");
            match inst == self.store {
                true => insts[place] = atomic,
                false => drop(insts.remove(place)),
            }
        }
        atomic
    }
}

/// What a loop reduces of a slice.
struct Search<'p> {
    program: &'p Program,
    inst: Inst,
}

const NOT_REDUCED: &str = "it is used here otherwise than by `x[i] += v`, or `&=`, `|=`, `^=`, or `x[i] = x[i].min(v)` or `max` of integers, \
                           with one of them for all of the loop: write it so, or take it out of the clause";

impl Search<'_> {
    fn function(&self) -> &Function {
        self.program.function()
    }

    fn refuse(&self, at: Inst, slice: &str, problem: &'static str) -> DirectiveError {
        let at = self.function().insts[at].location;
        DirectiveError::Reduction {
            place: self.program.place(at),
            slice: slice.to_owned(),
            problem,
        }
    }

    /// The statements of a slice in the loop, which are all that uses its elements there.
    fn statements(&self, param: u32) -> Result<Vec<Statement>, DirectiveError> {
        let function = self.function();
        let data = function.params.get(param as usize);
        let Some(data) = data else {
            let number = param.to_string();
            return Err(self.refuse(self.inst, &number, "the region has no such parameter"));
        };
        let mut used = Vec::new();
        for region in function.insts[self.inst].data.regions() {
            function.walk(region, &mut |_, inst| {
                if self.accesses(inst, data.value) {
                    used.push(inst);
                }
            });
        }
        let facts = |inst: &Inst| {
            let facts = function.insts[*inst]
                .data
                .facts(&self.program.module.intrinsics);
            facts.writes && !facts.reads
        };
        let stores: Vec<Inst> = used.iter().copied().filter(facts).collect();
        let mut found = Vec::new();
        for store in stores {
            let statement = self.statement(store, data.value);
            found.push(statement.ok_or_else(|| self.refuse(store, &data.name, NOT_REDUCED))?);
        }
        let Some(first) = found.first() else {
            let at = used.first().copied().unwrap_or(self.inst);
            return Err(self.refuse(at, &data.name, "nothing in the loop combines an element of it with a value: take it out of the clause"));
        };
        let other = found.iter().find(|held| held.op != first.op);
        let parts = |inst: &&Inst| {
            found
                .iter()
                .any(|held| [held.load, held.store].contains(inst))
        };
        let other = other
            .map(|held| held.store)
            .or(used.iter().copied().find(|inst| !parts(&inst)));
        match other {
            Some(inst) => Err(self.refuse(inst, &data.name, NOT_REDUCED)),
            None => Ok(found),
        }
    }

    /// Whether an instruction reads or writes memory of a slice.
    fn accesses(&self, inst: Inst, slice: Value) -> bool {
        let function = self.function();
        let data = &function.insts[inst].data;
        let facts = data.facts(&self.program.module.intrinsics);
        let is_of =
            address_of(self.program, inst).is_some_and(|ptr| base_of(function, ptr) == slice);
        is_of && (facts.reads || facts.writes)
    }

    fn statement(&self, store: Inst, slice: Value) -> Option<Statement> {
        let function = self.function();
        let InstData::Store {
            ptr,
            value,
            volatile: false,
        } = function.insts[store].data
        else {
            return None;
        };
        let combine = self.made_by(value)?;
        let InstData::Binary { op, args } = function.insts[combine].data else {
            return None;
        };
        let op = match op {
            BinaryOp::Add => AtomicOp::Add,
            BinaryOp::Min => AtomicOp::Min,
            BinaryOp::Max => AtomicOp::Max,
            BinaryOp::And => AtomicOp::And,
            BinaryOp::Or => AtomicOp::Or,
            BinaryOp::Xor => AtomicOp::Xor,
            _ => return None,
        };
        let is_number = function
            .type_of(value)
            .as_scalar()
            .is_some_and(|scalar| op.is_on(scalar));
        let (load, value) = [(args[0], args[1]), (args[1], args[0])]
            .into_iter()
            .find_map(|(old, value)| {
                let load = self.made_by(old)?;
                let InstData::Load {
                    ptr: from,
                    volatile: false,
                } = function.insts[load].data
                else {
                    return None;
                };
                let is_it = self.is_one_place(from, ptr, slice) && self.uses(old) == 1;
                is_it.then_some((load, value))
            })?;
        let is_whole = self.uses(function.insts[combine].result?) == 1;
        (is_number && is_whole).then_some(Statement {
            op,
            load,
            combine,
            store,
            ptr,
            value,
        })
    }

    fn made_by(&self, value: Value) -> Option<Inst> {
        match self.function().values[value].def {
            ValueDef::Inst(inst) => Some(inst),
            ValueDef::Param(_) | ValueDef::Index(_) => None,
        }
    }

    /// How many operands a value is.
    fn uses(&self, value: Value) -> usize {
        let function = self.function();
        let mut count = 0;
        function.for_each_inst(|_, inst| {
            let data = &function.insts[inst].data;
            data.for_each_operand(|operand| count += usize::from(operand == value));
        });
        count
    }

    /// Whether two addresses are of one element of a slice, and of all of it.
    fn is_one_place(&self, a: Value, b: Value, slice: Value) -> bool {
        let index = |ptr: Value| match path_of(self.function(), ptr) {
            (base, Some(steps)) if base == slice => match steps[..] {
                [Step::Index { index, .. }] => Some(index),
                _ => None,
            },
            _ => None,
        };
        let (Some(first), Some(second)) = (index(a), index(b)) else {
            return false;
        };
        a == b || first == second || self.is_one_variable(first, second)
    }

    /// Whether two values are of one variable that nothing assigns between.
    fn is_one_variable(&self, a: Value, b: Value) -> bool {
        let function = self.function();
        let read = |value: Value| {
            let inst = self.made_by(value)?;
            match function.insts[inst].data.var_use() {
                Some(VarUse::Get(var)) => Some((var, region_of(function, inst), inst)),
                _ => None,
            }
        };
        let (Some((var, region, a)), Some((other, other_region, b))) = (read(a), read(b)) else {
            return false;
        };
        let insts = &function.regions[region].insts;
        let [a, b] = [a, b].map(|inst| insts.iter().position(|&held| held == inst));
        let (Some(a), Some(b)) = (a, b) else {
            return false;
        };
        let sets =
            |data: &InstData| matches!(data.var_use(), Some(VarUse::Set(set, _)) if set == var);
        let mut between = insts[a.min(b)..a.max(b)].iter();
        var == other && region == other_region && !between.any(|&inst| holds(function, inst, sets))
    }
}

/// A block's own elements of a slice that a loop reduces.
#[derive(Debug)]
pub(crate) struct Own {
    slice: Value,
    op: AtomicOp,
    len: i128,
    element: Type,
    /// Of the addresses of an element in the slice and in shared memory, and of all elements there.
    in_slice: Type,
    in_shared: Type,
    array: Type,
    shared: SharedVar,
    atomics: Vec<Inst>,
}

impl Own {
    /// The elements of a slice that a loop reduces, if there are `room` bytes for them.
    pub(crate) fn of(
        program: &mut Program,
        (inst, slice): (Inst, Value),
        (reduced, behind, known): (&Reduced, &[Inst], &[Known]),
        room: u64,
    ) -> Option<(Own, u64)> {
        let kernel = program.kernel;
        let len = Affine::new(&program.module.functions[kernel], known).length(slice)?;
        let function = &program.module.functions[kernel];
        let mut atomics = behind.to_vec();
        for region in function.insts[inst].data.regions() {
            function.walk(region, &mut |_, inner| {
                if reduced.contains_key(&inner) {
                    atomics.push(inner);
                }
            });
        }
        atomics.retain(|&inner| {
            address_of(program, inner).is_some_and(|ptr| base_of(function, ptr) == slice)
        });
        let op = *reduced.get(atomics.first()?)?;
        let ty = function.type_of(slice);
        let types = &mut program.module.types;
        let (address, _) = types.as_slice(ty)?;
        let layout = types.layout(address.pointee)?;
        let bytes = u64::try_from(len).ok()?.checked_mul(layout.size)?;
        if len == 0 || bytes > room {
            return None;
        }
        let array = types.array(address.pointee, len as u64);
        let of_all = types.pointer(array, AddressSpace::Shared, true);
        let own = Own {
            slice,
            op,
            len,
            element: address.pointee,
            in_slice: types.pointer(address.pointee, address.space, true),
            in_shared: types.pointer(address.pointee, AddressSpace::Shared, true),
            array: of_all,
            shared: program.module.functions[kernel].shared.push(SharedData {
                name: "offload.reduction".to_owned(),
                ty: array,
                align: layout.align as u32,
            }),
            atomics,
        };
        Some((own, bytes))
    }

    fn scalar(&self) -> Scalar {
        self.element
            .as_scalar()
            .expect("what is combined is a number")
    }

    /// What changes nothing.
    fn identity(&self) -> Constant {
        identity(self.op, self.scalar())
    }

    fn address(&self, emit: &mut Emit<'_>, index: Value) -> Value {
        let ptr = emit.value(InstData::SharedAddr(self.shared), self.array);
        let checked = false;
        let data = InstData::ElementPtr {
            ptr,
            index,
            checked,
        };
        emit.value(data, self.in_shared)
    }

    /// Whether there are fewer elements than threads, or iterations change any of them: setting and merging them is less than what
    /// threads change in the slice otherwise.
    pub(crate) fn is_worth_it(&self, combined: &Combined, threads: i128) -> bool {
        let mut atomics = self.atomics.iter();
        self.len <= threads || !atomics.all(|inst| combined.contains_key(inst))
    }

    /// Sets the elements to what changes nothing.
    pub(crate) fn begin(&self, emit: &mut Emit<'_>, own: (Value, i128)) {
        emit.each_of(self.len, own, |emit, number| {
            let identity = emit.value(InstData::Const(self.identity()), self.element);
            let to = self.address(emit, number);
            emit.store(to, identity);
        });
    }

    /// Combines the elements with those of the slice.
    pub(crate) fn end(&self, emit: &mut Emit<'_>, own: (Value, i128)) {
        emit.each_of(self.len, own, |emit, number| {
            let from = self.address(emit, number);
            let value = emit.load(from, self.element);
            let identity = emit.value(InstData::Const(self.identity()), self.element);
            let changes = self
                .scalar()
                .is_int()
                .then(|| emit.compare(CompareOp::Ne, value, identity));
            emit.where_(changes, |emit| {
                let index = emit.cast(number, Type::U64);
                let (slice, checked) = (self.slice, false);
                let ptr = emit.value(
                    InstData::SliceIndex {
                        slice,
                        index,
                        checked,
                    },
                    self.in_slice,
                );
                let data = InstData::AtomicRmw {
                    op: self.op,
                    ptr,
                    value,
                    ordering: Ordering::Relaxed,
                    scope: Scope::Device,
                };
                emit.value(data, self.element);
            });
        });
    }

    /// Lets the loop's atomic operations be on the block's elements.
    pub(crate) fn redirect(&self, program: &mut Program) {
        for &inst in &self.atomics {
            let steps = address_of(program, inst).map(|ptr| path_of(program.function(), ptr).1);
            let Some(Some([Step::Index { index, .. }])) = steps.as_ref().map(Option::as_deref)
            else {
                continue;
            };
            let function = &mut program.module.functions[program.kernel];
            let at = function.insts[inst].location;
            let mut emit = Emit::new(function, at);
            let index = emit.cast(*index, Type::U32);
            let to = self.address(&mut emit, index);
            let list = emit.list;
            if let InstData::AtomicRmw { ptr, scope, .. } = &mut function.insts[inst].data {
                (*ptr, *scope) = (to, Scope::Block);
            }
            insert_before(function, inst, list);
        }
    }
}

/// What an operation combines with any number of a type to that number.
pub(crate) fn identity(op: AtomicOp, scalar: Scalar) -> Constant {
    let (low, high) = crate::affine::limits(scalar);
    match op {
        // Of two floats the smaller is the number if the other one is none.
        AtomicOp::Min | AtomicOp::Max if scalar.is_float() => Constant::Float(f64::NAN),
        AtomicOp::Add if scalar.is_float() => Constant::Float(-0.0),
        AtomicOp::Min => Constant::Int(high),
        AtomicOp::Max => Constant::Int(low),
        AtomicOp::And => Constant::Int(if scalar.is_signed_int() { -1 } else { high }),
        AtomicOp::Add
        | AtomicOp::Or
        | AtomicOp::Xor
        | AtomicOp::Exchange
        | AtomicOp::Increment
        | AtomicOp::Decrement => Constant::Zero,
    }
}

/// The address that an instruction has.
pub(crate) fn address_of(program: &Program, inst: Inst) -> Option<Value> {
    let function = program.function();
    let mut found = None;
    function.insts[inst].data.for_each_operand(|value| {
        if program.module.types.has_references(function.type_of(value)) {
            found = Some(value);
        }
    });
    found
}

/// Whether all threads of a block come to an instruction together, whatever the schedule's numbers are: nothing is around but
/// loops that are not distributed over threads.
pub(crate) fn is_for_block(program: &Program, schedule: &Schedule, inst: Inst) -> bool {
    let search = Around {
        program,
        schedule,
        inst,
    };
    search.reaches(program.function().body)
}

struct Around<'p> {
    program: &'p Program,
    schedule: &'p Schedule,
    inst: Inst,
}

impl Around<'_> {
    fn reaches(&self, region: Region) -> bool {
        let function = self.program.function();
        function.regions[region].insts.iter().any(|&inst| {
            if inst == self.inst {
                return true;
            }
            let data = &function.insts[inst].data;
            let number = self.program.number_of(inst);
            let held = number.map(|number| self.schedule.loops[number].partition);
            let passes = matches!(data.control(), Control::For { .. })
                && held.is_none_or(|partition| partition.over_threads.is_none());
            passes
                && data
                    .regions()
                    .into_iter()
                    .any(|region| self.reaches(region))
        })
    }
}
