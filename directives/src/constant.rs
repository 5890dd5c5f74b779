//! Constants: slices that no region writes, whose elements launches pass by value.
//!
//! The parameters of a launch are in constant memory (PTX ISA, "Kernel Function Parameters"), which gives all threads of a
//! warp that read one element that element at once, and a launch has its own, whatever others do meanwhile. The slice itself
//! stays a parameter, by which indices are checked; the elements come behind all others, as an array of a capacity among
//! few, so that launches with other numbers of elements do not need a kernel of their own. Constants that have no room there
//! are read from global memory, where the same elements are.

use std::collections::HashMap;

use kiln_jit_core::ir::{
    AddressSpace, BinaryOp, CompareOp, FuncId, Function, Inst, InstData, Location, Module, Type,
    TypeTable, Value,
};

use crate::emit::Emit;
use crate::error::DirectiveError;
use crate::lengths::is_all_of;

/// The bytes that the constants of a launch may have (CUDA guide, "Constant Memory").
pub(crate) const MAX_BYTES: u64 = 64 * 1024;

/// How many elements an array of a launch has.
pub(crate) const CAPACITIES: [u64; 8] = [8, 32, 125, 250, 500, 1000, 2000, 4000];

/// The most numbers of an array, which code for GPUs takes as a whole first.
const MAX_NUMBERS: u64 = 4096;

/// Bytes that hidden parameters may have.
const HIDDEN: u64 = 256;

/// Elements of a slice that `constant!(copyin ..)` says.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Chosen {
    /// The first one.
    pub(crate) start: u64,
    /// How many.
    pub(crate) count: u64,
    /// Whether these are all of the slice.
    pub(crate) is_all: bool,
}

/// Elements that launches pass by value.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Constant {
    /// The number of the parameter that is the slice.
    pub(crate) param: usize,
    /// How many elements the array has.
    pub(crate) capacity: u64,
    /// The first element of the slice that is there.
    start: u64,
    is_all: bool,
}

/// Which constants have room in so many bytes of parameters, in the order of the parameters.
///
/// # Errors
/// More bytes than constant memory has.
pub(crate) fn placed(
    module: &Module,
    function: &Function,
    chosen: &[Option<Chosen>],
    limit: u64,
) -> Result<Vec<Constant>, DirectiveError> {
    let types = &module.types;
    let size = |ty| {
        types
            .layout(ty)
            .map_or(0, |layout| layout.size.next_multiple_of(16))
    };
    let params = function.params.iter();
    let others: u64 = params
        .map(|param| size(function.type_of(param.value)))
        .sum();
    let mut room = limit.saturating_sub(others + HIDDEN);
    let (mut all, mut bytes) = (Vec::new(), 0u64);
    for (param, chosen) in chosen.iter().enumerate() {
        let Some(chosen) = chosen else { continue };
        let held = &function.params[param];
        let Some((slice, _)) = types.as_slice(function.type_of(held.value)) else {
            continue;
        };
        let element = size_of_element(types, slice.pointee);
        bytes = bytes.saturating_add(chosen.count.saturating_mul(element));
        if bytes > MAX_BYTES {
            let slice = held.name.clone();
            return Err(DirectiveError::Constants { slice, bytes });
        }
        let numbers = types.leaf_count(slice.pointee);
        let fits = |&capacity: &u64| {
            capacity >= chosen.count
                && capacity.saturating_mul(numbers) <= MAX_NUMBERS
                && capacity * element <= room
        };
        let capacity = CAPACITIES.into_iter().find(fits);
        if let Some(capacity) = capacity.filter(|_| chosen.count > 0) {
            room -= capacity * element;
            let &Chosen { start, is_all, .. } = chosen;
            all.push(Constant {
                param,
                capacity,
                start,
                is_all,
            });
        }
    }
    Ok(all)
}

/// The bytes from one element to the next.
fn size_of_element(types: &TypeTable, element: Type) -> u64 {
    types.layout(element).map_or(0, |layout| layout.size)
}

/// Adds the arrays to a kernel, as its last parameters, and lets what reads the slices read there.
pub(crate) fn read_by_value(module: &mut Module, kernel: FuncId, constants: &[Constant]) {
    let mut start = Vec::new();
    for constant in constants {
        start.extend(read(module, kernel, constant));
    }
    let function = &mut module.functions[kernel];
    let body = function.body;
    function.regions[body].insts.splice(0..0, start);
}

/// Lets what reads a slice read the array of a constant; what stands at the start of the kernel for it.
fn read(module: &mut Module, kernel: FuncId, constant: &Constant) -> Vec<Inst> {
    let Module {
        types, functions, ..
    } = module;
    let function = &mut functions[kernel];
    let slice = function.params[constant.param].value;
    let (address, _) = types
        .as_slice(function.type_of(slice))
        .expect("constants are slices");
    let array = types.array(address.pointee, constant.capacity);
    let of_all = types.pointer(array, AddressSpace::Local, true);
    let of_one = types.pointer(address.pointee, AddressSpace::Local, true);
    let name = format!("offload.constant.{}", function.params[constant.param].name);
    let param = function.add_param(name, array, Location::unknown());
    let at = function.location;
    let mut emit = Emit::new(function, at);
    // The hook `in-place` lets this memory be that of the parameter.
    let memory = emit.value(InstData::LocalAlloc, of_all);
    emit.store(memory, param);
    if constant.is_all {
        let (len, most) = (
            emit.len(slice),
            emit.int(constant.capacity.into(), Type::U64),
        );
        let fits = emit.compare(CompareOp::Le, len, most);
        let message = "a kernel that has a slice in constant memory is for slices of no more elements than that has there";
        emit.assert(fits, message, [len, most]);
    }
    let start = emit.list;
    for (index, parts) in reads(function, slice) {
        redirect(function, types, (constant, memory, of_one), (index, &parts));
    }
    start
}

/// What makes addresses of a slice's elements through which they are only read, each with what makes addresses of parts.
fn reads(function: &Function, slice: Value) -> Vec<(Inst, Vec<Inst>)> {
    let (mut users, mut indices) = (HashMap::<Value, Vec<Inst>>::new(), Vec::new());
    function.for_each_inst(|_, inst| {
        let data = &function.insts[inst].data;
        data.for_each_operand(|operand| users.entry(operand).or_default().push(inst));
        if matches!(*data, InstData::SliceIndex { slice: of, .. } if is_all_of(function, of, slice))
        {
            indices.push(inst);
        }
    });
    let of_parts = |index: &Inst| {
        let (mut parts, mut asked) = (Vec::new(), vec![*index]);
        while let Some(made) = asked.pop() {
            let address = function.insts[made].result?;
            for &user in users.get(&address).into_iter().flatten() {
                match function.insts[user].data {
                    InstData::Load {
                        volatile: false, ..
                    } => parts.push(user),
                    InstData::FieldPtr { .. } | InstData::ElementPtr { .. } => {
                        parts.push(user);
                        asked.push(user);
                    }
                    _ => return None,
                }
            }
        }
        Some((*index, parts))
    };
    indices.iter().filter_map(of_parts).collect()
}

/// Lets what an address of an element is made for have that of the element in the array.
fn redirect(
    function: &mut Function,
    types: &mut TypeTable,
    (constant, memory, of_one): (&Constant, Value, Type),
    (inst, parts): (Inst, &[Inst]),
) {
    let node = &function.insts[inst];
    let (at, old) = (node.location, node.result);
    let (InstData::SliceIndex { index, .. }, Some(old)) = (&node.data, old) else {
        return;
    };
    let index = *index;
    let mut emit = Emit::new(function, at);
    let index = match constant.start {
        0 => index,
        start => {
            let (ahead, start) = (
                emit.cast(index, Type::U64),
                emit.int(start.into(), Type::U64),
            );
            emit.binary(BinaryOp::Sub, ahead, start)
        }
    };
    let new = emit.value(
        InstData::ElementPtr {
            ptr: memory,
            index,
            // Of all of a slice the index is one of the slice, which has no more elements.
            checked: !constant.is_all,
        },
        of_one,
    );
    let list = emit.list;
    let mut place = None;
    function.for_each_inst(|region, held| {
        if held == inst {
            place = Some(region);
        }
    });
    let Some(region) = place else { return };
    let insts = &mut function.regions[region].insts;
    let behind = insts.iter().position(|&held| held == inst);
    let behind = behind.map_or(0, |position| position + 1);
    insts.splice(behind..behind, list);
    for &part in parts {
        let node = &mut function.insts[part];
        node.data
            .map_operands(|operand| if operand == old { new } else { operand });
        let address = node
            .result
            .filter(|_| !matches!(node.data, InstData::Load { .. }));
        if let Some(result) = address {
            let (pointee, ..) = types
                .as_pointer(function.values[result].ty)
                .expect("a part has an address");
            function.values[result].ty = types.pointer(pointee, AddressSpace::Local, true);
        }
    }
}
