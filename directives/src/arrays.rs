//! Arrays of a block: variables of a region that are in shared memory, one for all threads of the block.
//!
//! Where such an array is declared, or assigned as a whole, all threads meet before and behind it, so that nobody uses the old
//! elements any more and nobody the new ones before they are there, and each thread writes some of the elements. Besides, it is
//! memory like that of a slice: a statement is executed by the thread that has the iteration, or by the first thread of the
//! block, and what the sequential program does in an order has to keep it. Each block has an array of its own, which begins
//! anew with each turn of a loop around the declaration.

use std::collections::HashMap;

use kiln_jit_core::ir::{
    AddressSpace, ArrayLen, BinaryOp, Constant, Function, Inst, InstData, Module, SharedVar, Type,
    TypeData, Value, ValueDef,
};

use crate::accesses::Access;
use crate::apply::Rewrite;
use crate::emit::Emit;
use crate::error::DirectiveError;
use crate::jam::holds;
use crate::program::Program;

/// The array of a block whose memory a value is.
pub(crate) fn array_of(function: &Function, base: Value) -> Option<SharedVar> {
    let ValueDef::Inst(inst) = function.values[base].def else {
        return None;
    };
    match function.insts[inst].data {
        InstData::SharedAddr(var) => Some(var),
        _ => None,
    }
}

/// The array that an instruction assigns as a whole.
pub(crate) fn assigned(function: &Function, inst: Inst) -> Option<SharedVar> {
    match function.insts[inst].data {
        InstData::Store { ptr, .. } => array_of(function, ptr),
        _ => None,
    }
}

impl Access {
    /// Whether the memory is that of an array of the block.
    pub(crate) fn is_of_block(&self, function: &Function) -> bool {
        array_of(function, self.base).is_some()
    }
}

impl Program {
    /// Notes the arrays of blocks, each with where it is declared, and puts barriers before and behind what assigns one.
    pub(crate) fn read_arrays(&mut self) -> Result<(), DirectiveError> {
        let function = self.function();
        let mut declared: HashMap<SharedVar, Inst> = HashMap::new();
        let mut regions = Vec::new();
        function.for_each_inst(|region, inst| {
            if let InstData::SharedAddr(_) = function.insts[inst].data {
                regions.push((region, inst));
            }
        });
        for (region, made) in regions {
            let uses = |inst: &&Inst| {
                let address = function.insts[made].result;
                let of_array = |data: &InstData| {
                    let mut found = false;
                    data.for_each_operand(|operand| found |= Some(operand) == address);
                    found
                };
                holds(function, **inst, of_array)
            };
            let insts = function.regions[region].insts.iter();
            let mut behind = insts.skip_while(|&&inst| inst != made).skip(1);
            let first = behind.find(uses).copied();
            let InstData::SharedAddr(var) = function.insts[made].data else {
                continue;
            };
            let is_new = first.is_some_and(|first| assigned(function, first) == Some(var));
            match first.filter(|_| is_new && !declared.contains_key(&var)) {
                Some(first) => drop(declared.insert(var, first)),
                None if first.is_none() => {}
                None => {
                    let at = function.insts[made].location;
                    let problem = "memory of the block is a variable of the region: declare it by `#[shared] let mut a: [f32; 64] = \
                                   [0.0; 64];`, or assign all of it where it is declared, before it is used";
                    return Err(self.placement(at, problem));
                }
            }
        }
        self.arrays = declared;
        self.meet_around_assignments();
        Ok(())
    }

    fn meet_around_assignments(&mut self) {
        let function = &mut self.module.functions[self.kernel];
        let mut found = Vec::new();
        function.for_each_inst(|region, inst| {
            if assigned(function, inst).is_some() {
                found.push((region, inst));
            }
        });
        for (region, inst) in found {
            let at = function.insts[inst].location;
            let [before, behind] =
                [(); 2].map(|()| function.new_inst(InstData::Barrier, Type::UNIT, at));
            let insts = &mut function.regions[region].insts;
            if let Some(place) = insts.iter().position(|&held| held == inst) {
                insts.splice(place..=place, [before, inst, behind]);
            }
        }
    }
}

/// An array all of whose elements are one value: how many there are along each dimension, and that value; none if it is zero.
fn alike(module: &Module, function: &Function, value: Value) -> (Vec<i128>, Type, Option<Value>) {
    let (mut dims, mut ty, mut one) = (Vec::new(), function.type_of(value), Some(value));
    while let TypeData::Array { element, len } = *module.types.data(ty) {
        let ArrayLen::Known(len) = len else { break };
        let parts = match one.map(|value| (value, function.values[value].def)) {
            Some((value, ValueDef::Inst(inst))) => match &function.insts[inst].data {
                InstData::Const(Constant::Zero) => None,
                InstData::Construct { parts } => match parts.split_first() {
                    Some((&first, rest)) if rest.iter().all(|&part| part == first) => Some(first),
                    _ => return (dims, ty, Some(value)),
                },
                _ => return (dims, ty, Some(value)),
            },
            Some((value, _)) => return (dims, ty, Some(value)),
            None => None,
        };
        dims.push(i128::from(len));
        (ty, one) = (element, parts);
    }
    (dims, ty, one)
}

impl Rewrite<'_> {
    /// What stands in the place of an assignment of an array of the block all of whose elements are one value: each thread
    /// writes some of them. Another array the first thread writes.
    pub(crate) fn fill_array(&mut self, inst: Inst) -> Option<Vec<Inst>> {
        let function = &self.module.functions[self.kernel];
        assigned(function, inst)?;
        let InstData::Store { ptr, value, .. } = function.insts[inst].data else {
            return None;
        };
        let (dims, element, one) = alike(&self.module, function, value);
        let count: i128 = dims.iter().product();
        if dims.is_empty() || count == 0 {
            return None;
        }
        let mut addresses = Vec::new();
        let mut ty = function.type_of(value);
        for _ in &dims {
            let TypeData::Array { element, .. } = *self.module.types.data(ty) else {
                return None;
            };
            ty = element;
            addresses.push(self.module.types.pointer(ty, AddressSpace::Shared, true));
        }
        let at = self.location(inst);
        let (grid, threads) = (self.grid, &self.schedule.threads);
        let mut emit = Emit::new(&mut self.module.functions[self.kernel], at);
        let own = grid.linear(&mut emit, threads);
        emit.each_of(count, own, |emit, number| {
            let one = one.unwrap_or_else(|| emit.value(InstData::Const(Constant::Zero), element));
            let address = address(emit, ptr, number, (&dims, &addresses));
            emit.store(address, one);
        });
        Some(emit.list)
    }
}

/// The address of an element by its number.
fn address(
    emit: &mut Emit<'_>,
    array: Value,
    number: Value,
    (dims, types): (&[i128], &[Type]),
) -> Value {
    let (mut address, mut rest) = (array, number);
    for (dim, &ty) in types.iter().enumerate() {
        let within: i128 = dims[dim + 1..].iter().product();
        let within = emit.int(within, Type::U32);
        let index = emit.binary(BinaryOp::Div, rest, within);
        if dim + 1 < types.len() {
            rest = emit.binary(BinaryOp::Rem, rest, within);
        }
        let (ptr, checked) = (address, false);
        address = emit.value(
            InstData::ElementPtr {
                ptr,
                index,
                checked,
            },
            ty,
        );
    }
    address
}
