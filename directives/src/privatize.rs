//! Slices that each iteration of a loop writes before it reads them: an iteration has elements of its own, in memory of its thread.
//!
//! A sequential program keeps one vector for what each iteration needs for itself. Iterations that different threads execute would
//! write over each other's elements, and none needs those of another one (Tu and Padua, "Automatic array privatization", 1993).
//! Memory of a thread holds nothing at first, so that each element that is read has to be written before, in the same iteration: by
//! statements that stand before the read and that no condition is around, for the numbers of one launch.

use std::collections::HashSet;

use kiln_jit_core::ir::{AddressSpace, Control, Function, Inst, InstData, Type, Value};

use crate::accesses::{Access, Accesses};
use crate::affine::{Affine, Atom, Known, Step};
use crate::error::DirectiveError;
use crate::program::Program;
use crate::schedule::Schedule;
use crate::touched::{Elements, elements, executes};
use crate::uniform::leaves;

/// The most bytes of a slice that an iteration has of its own.
const MAX_BYTES: u64 = 4096;

/// Lets iterations have elements of their own, as a schedule says, for a launch with such arguments.
pub(crate) fn privatize(
    program: &mut Program,
    schedule: &Schedule,
    known: &[Known],
) -> Result<(), DirectiveError> {
    let accesses = Accesses::of(program, schedule)?;
    let mut search = Search {
        program,
        schedule,
        accesses: &accesses,
        affine: Affine::new(program.function(), known),
    };
    let mut found = Vec::new();
    for (number, held) in schedule.loops.iter().enumerate() {
        for param in held.privatized.numbers() {
            found.extend(search.own(number, param)?);
        }
    }
    for own in found {
        own.write(program);
    }
    Ok(())
}

/// Elements of a slice that each iteration of a loop has.
struct Own {
    inst: Inst,
    slice: Value,
    len: u64,
}

impl Own {
    /// Lets the loop use memory of the thread's own.
    fn write(&self, program: &mut Program) {
        let types = &mut program.module.types;
        let function = &mut program.module.functions[program.kernel];
        let (address, _) = types
            .as_slice(function.type_of(self.slice))
            .expect("the parameter is a slice");
        let array = types.array(address.pointee, self.len);
        let of_all = types.pointer(array, AddressSpace::Local, true);
        let of_one = types.pointer(address.pointee, AddressSpace::Local, true);
        let at = function.insts[self.inst].location;
        let made = function.new_inst(InstData::LocalAlloc, of_all, at);
        let ptr = function.insts[made].result.expect("memory has an address");
        for region in function.insts[self.inst].data.regions() {
            let mut indexed = Vec::new();
            function.walk(region, &mut |_, inner| indexed.push(inner));
            for inner in indexed {
                own_element(function, inner, (self.slice, ptr, of_one));
            }
            function.regions[region].insts.insert(0, made);
        }
    }
}

/// Makes the address of an element of a slice that of one at `ptr`.
fn own_element(function: &mut Function, inst: Inst, (own, ptr, ty): (Value, Value, Type)) {
    let node = &mut function.insts[inst];
    if let InstData::SliceIndex {
        slice,
        index,
        checked,
    } = node.data
        && slice == own
    {
        node.data = InstData::ElementPtr {
            ptr,
            index,
            checked,
        };
        if let Some(result) = node.result {
            function.values[result].ty = ty;
        }
    }
}

struct Search<'p> {
    program: &'p Program,
    schedule: &'p Schedule,
    accesses: &'p Accesses,
    affine: Affine<'p>,
}

impl Search<'_> {
    fn refuse(&self, at: Inst, slice: &str, problem: &'static str) -> DirectiveError {
        let at = self.program.function().insts[at].location;
        DirectiveError::Privatized {
            place: self.program.place(at),
            slice: slice.to_owned(),
            problem,
        }
    }

    /// What iterations of a loop have of a slice; none of one without elements.
    fn own(&mut self, number: usize, param: u32) -> Result<Option<Own>, DirectiveError> {
        let (function, inst) = (self.program.function(), self.program.loops[number].0);
        let Some(data) = function.params.get(param as usize) else {
            let number = param.to_string();
            return Err(self.refuse(inst, &number, "the region has no such parameter"));
        };
        let (slice, name) = (data.value, data.name.as_str());
        let Some(len) = self.affine.length(slice) else {
            let problem = "how many elements it has is not known without the arguments of a launch: `Program::apply_for` takes them";
            return Err(self.refuse(inst, name, problem));
        };
        self.fits(slice, len)
            .map_err(|problem| self.refuse(inst, name, problem))?;
        self.check_uses(param, (slice, name))?;
        let within = |access: &&Access| {
            access.base == slice && access.loops.iter().any(|held| held.inst == inst)
        };
        let own: Vec<&Access> = self.accesses.all.iter().filter(within).collect();
        if own.is_empty() {
            let problem = "nothing in the loop uses an element of it: take it out of the clause";
            return Err(self.refuse(inst, name, problem));
        }
        for read in own.iter().filter(|access| access.reads) {
            if !self.is_written_before(read, &own, len as usize) {
                let problem = "not all that is read here is known to be written before, in the same iteration: let statements that no \
                               condition is around write these elements first, at indices that are sums of the counters of loops \
                               within times numbers";
                return Err(self.refuse(read.inst, name, problem));
            }
        }
        let len = len as u64;
        Ok((len > 0).then_some(Own { inst, slice, len }))
    }

    /// Whether a thread has room for the elements.
    fn fits(&self, slice: Value, len: i128) -> Result<(), &'static str> {
        let types = &self.program.module.types;
        let ty = self.program.function().type_of(slice);
        let size = types
            .as_slice(ty)
            .and_then(|(address, _)| types.layout(address.pointee));
        let bytes = size.and_then(|layout| layout.size.checked_mul(u64::try_from(len).ok()?));
        match bytes.is_some_and(|bytes| bytes <= MAX_BYTES) {
            true => Ok(()),
            false => Err(
                "an iteration has at most 4096 bytes of its own: let the slice be shorter, or have a part of it for each iteration",
            ),
        }
    }

    /// Refuses uses of a slice elsewhere than in loops that have elements of their own, and others than to read and to write an
    /// element.
    fn check_uses(&self, param: u32, (slice, name): (Value, &str)) -> Result<(), DirectiveError> {
        let function = self.program.function();
        let loops = self.program.loops.iter().zip(&self.schedule.loops);
        let loops = loops.filter(|(_, held)| held.privatized.contains(param));
        let mut inside = HashSet::new();
        for (&(inst, _), _) in loops {
            if inside.contains(&inst) {
                let problem = "iterations of a loop around have elements of it of their own: take one of the clauses away";
                return Err(self.refuse(inst, name, problem));
            }
            for region in function.insts[inst].data.regions() {
                function.walk(region, &mut |_, inner| {
                    inside.insert(inner);
                });
            }
        }
        let mut wrong = None;
        function.for_each_inst(|_, inst| {
            if !uses(function, inst, slice) {
                return;
            }
            match function.insts[inst].data {
                InstData::SliceLen { .. } => {}
                InstData::SliceIndex { .. } if !inside.contains(&inst) => {
                    wrong.get_or_insert((inst, "it is used outside of the loop, where there is nothing of what iterations have: let nothing else use it"));
                }
                InstData::SliceIndex { .. } if is_element(function, inst) => {}
                _ => {
                    wrong.get_or_insert((inst, "a part of it, or of an element, is used, or an atomic operation is: read and write whole elements"));
                }
            }
        });
        match wrong {
            Some((inst, problem)) => Err(self.refuse(inst, name, problem)),
            None => Ok(()),
        }
    }

    /// Whether all elements of a read are written before it in an iteration.
    fn is_written_before(&mut self, read: &Access, own: &[&Access], len: usize) -> bool {
        if executes(&mut self.affine, read) == Some(false) {
            return true;
        }
        let mut written = vec![false; len];
        for write in own.iter().filter(|access| access.writes) {
            if let Some(elements) = self.written(write, read) {
                elements.each(len, |at| written[at] = true);
            }
        }
        match elements(&mut self.affine, read) {
            None => written.iter().all(|&is_written| is_written),
            Some(elements) => {
                let mut all = true;
                elements.each(len, |at| all &= written[at]);
                all
            }
        }
    }

    /// The elements that a write certainly writes each time before control comes to a read.
    fn written(&mut self, write: &Access, read: &Access) -> Option<Elements> {
        let ways = write.way.iter().zip(&read.way);
        let shared = ways.take_while(|(a, b)| a == b).count();
        let (at, then) = (write.way.get(shared)?, read.way.get(shared)?);
        if at.region != then.region || at.position > then.position {
            return None;
        }
        let function = self.program.function();
        let mut loops = Vec::new();
        for held in &write.way[shared..] {
            let data = &function.insts[held.inst].data;
            match data.control() {
                Control::Next => {}
                Control::For { body, .. } if !leaves(function, body) => {
                    let count = self.affine.turns(held.inst)?.count?;
                    loops.push(held.inst);
                    (count > 0).then_some(())?;
                }
                _ => return None,
            }
        }
        // What is the same in all turns of these is not known.
        let [Step::Index { index, .. }] = write.steps.as_deref()? else {
            return None;
        };
        let form = self.affine.form(*index)?;
        let factors = form.sum.factors.iter().enumerate();
        let mut atoms = factors.filter(|(_, factor)| **factor != 0);
        let is_within = |atom: usize| matches!(&self.affine.atoms[atom], Atom::Turn(inst) if loops.contains(inst));
        if !atoms.all(|(atom, _)| is_within(atom)) {
            return None;
        }
        elements(&mut self.affine, write)
    }
}

/// Whether a value is an operand of an instruction.
fn uses(function: &Function, inst: Inst, value: Value) -> bool {
    let mut found = false;
    function.insts[inst]
        .data
        .for_each_operand(|operand| found |= operand == value);
    found
}

/// Whether an address is one that elements are read from and written to, and nothing else.
fn is_element(function: &Function, inst: Inst) -> bool {
    let Some(address) = function.insts[inst].result else {
        return true;
    };
    let mut is_plain = true;
    function.for_each_inst(|_, user| {
        if uses(function, user, address) {
            is_plain &= match function.insts[user].data {
                InstData::Load { .. } => true,
                InstData::Store { value, .. } => value != address,
                _ => false,
            };
        }
    });
    is_plain
}
