//! Reading tables where they are.
//!
//! A `const` array and an array in a struct that a launch passes are values in a kernel, and a value has no elements
//! that a number of run time could choose. So the front end copies it to memory of the thread, where it is indexed: for
//! a table of 256 bytes 256 bytes for each thread, written before one is read. If nothing else is written there, each
//! thread has the same copy, of something that is in memory already or can be: this hook reads that.
//!
//! - A value of constants becomes a constant of the module, in constant memory.
//! - A parameter, or a part of one, is read where the launch has put it: once passed by value, in the parameter block.
//!
//! ```text
//! %2: [f32; 4] = extract %1, 0                  %3: ptr<param, [f32; 4]> = field_ptr %0, 0
//! %3: ptr<local, mut [f32; 4]> = local_alloc =>
//! store %3, %2
//! %4: ptr<local, mut f32> = element_ptr %3, %i  %4: ptr<param, f32> = element_ptr %3, %i
//! ```
//!
//! Constants take at most the 64 KiB that constant memory has (CUDA guide, "Constant Memory"); what has no room stays
//! where it is. Switch it off with `hooks::standard().without("in-place")` to see what it is worth.

use std::collections::{HashMap, HashSet};

use kiln_compiler::hook::Hook;
use kiln_compiler::ir::{
    Constant, Cursor, FuncId, Function, GlobalData, GlobalId, Inst, InstData, Module, Passing,
    Region, Scalar, Type, TypeData, TypeTable, Value, ValueDef,
};

/// Bytes of constant memory that the constants of a kernel may have.
const CONSTANT_BYTES: usize = 64 << 10;

/// Reads tables where they are. See the [module](self) documentation.
///
/// ```
/// use kiln::prelude::*;
///
/// use kiln::core::hook::HookSet;
///
/// const PRIMES: [u32; 4] = [2, 3, 5, 7];
///
/// #[kernel]
/// fn primes(out: &mut [u32]) {
///     let i = global_id().x;
///     out[i] = PRIMES[i % 4];
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let jit = Jit::builder().hooks(HookSet::from(kiln::hooks::in_place())).build()?;
/// let mut out = jit.zeros::<u32>(32)?;
/// primes.launch(&jit, (1, 32), &mut out)?;
/// assert_eq!(out.to_vec()?[..5], [2, 3, 5, 7, 2]);
/// assert!(jit.inspect(&primes, args!(&mut out))?.ir().contains("global_addr"));
/// # Ok(())
/// # }
/// ```
pub fn in_place() -> Hook {
    Hook::new("in-place")
        .version(1)
        .may_be_kept()
        .lower_abi(|_, module| {
            let functions: Vec<FuncId> = module.functions.keys().collect();
            for function in functions {
                read_in_place(module, function);
            }
            Ok(())
        })
}

/// What a copy is a copy of.
#[derive(PartialEq)]
enum Source {
    /// Constants, by their bytes.
    Constant(Vec<u8>),
    /// A part of what a parameter of the kernel points to: the fields and elements on the way there.
    Param(Value, Vec<u32>),
}

fn read_in_place(module: &mut Module, id: FuncId) {
    let function = &module.functions[id];
    let sources = copies(function)
        .into_iter()
        .filter_map(|(address, values)| {
            let mut all = values.iter();
            let of = |value: &Value| source(&module.types, function, *value);
            let first = all.next().and_then(of)?;
            all.all(|value| of(value).as_ref() == Some(&first))
                .then_some((address, first))
        });
    let mut sources: HashMap<Value, Source> = sources.collect();
    if sources.is_empty() {
        return;
    }
    // The addresses that are in other memory now.
    let mut moved: HashSet<Value> = HashSet::new();
    let mut at = Cursor::new(module, id);
    while at.next_inst().is_some() {
        let result = at.result();
        let has_moved = |address| moved.contains(&address);
        if let Some(source) = result.and_then(|result| sources.remove(&result)) {
            moved.extend(put(&mut at, source));
        } else if at.data().whole().is_some_and(has_moved) {
            moved.extend(result);
            let data = at.data().clone();
            at.replace().inst(data, Type::UNIT);
        } else if (at.data().stored()).is_some_and(|(address, _)| has_moved(address)) {
            // One that made the copy. It has no result that could be used.
            let _ = at.erase();
        }
    }
}

/// The copies in memory of the thread: their addresses, and the values that are written there, whole, before all that
/// is read of it. It is only loaded from, whole or in parts. Two versions of a kernel write it once each.
fn copies(function: &Function) -> HashMap<Value, Vec<Value>> {
    let mut copies = Copies::default();
    function.for_each_inst(|region, inst| copies.see(function, region, inst));
    let whole = copies.written.into_iter();
    let kept = whole.filter(|(address, _)| !copies.other.contains(address));
    let values = |written: Vec<(Region, Value)>| written.into_iter().map(|(_, value)| value);
    kept.map(|(address, written)| (address, values(written).collect()))
        .collect()
}

/// What has been seen of copies, in the order of the text.
#[derive(Default)]
struct Copies {
    /// Memory of the thread, and what was written there, in which regions.
    written: HashMap<Value, Vec<(Region, Value)>>,
    /// The regions that regions are in.
    around: HashMap<Region, Region>,
    /// Addresses of parts of it.
    parts: HashMap<Value, Value>,
    /// Memory with which something else is done.
    other: HashSet<Value>,
}

impl Copies {
    fn see(&mut self, function: &Function, region: Region, inst: Inst) {
        let node = &function.insts[inst];
        if let (InstData::LocalAlloc, Some(result)) = (&node.data, node.result) {
            self.written.insert(result, Vec::new());
            return;
        }
        let inner = node.data.regions().into_iter();
        self.around.extend(inner.map(|inner| (inner, region)));
        let memory =
            |parts: &HashMap<Value, Value>, address| *parts.get(&address).unwrap_or(&address);
        let read = node.data.whole().or(match node.data {
            InstData::Load {
                ptr,
                volatile: false,
            } => Some(ptr),
            _ => None,
        });
        if let Some(address) = read {
            let memory = memory(&self.parts, address);
            let Some(written) = self.written.get(&memory) else {
                return;
            };
            // Read before it is written, or where it may not have been.
            if !written.iter().any(|(at, _)| self.is_within(region, *at)) {
                self.other.insert(memory);
            }
            if let Some(part) = node.data.whole().and(node.result) {
                self.parts.insert(part, memory);
            }
            return;
        }
        let whole = match node.data {
            InstData::Store {
                ptr,
                value,
                volatile: false,
            } => self.written.get_mut(&ptr).map(|written| {
                written.push((region, value));
                ptr
            }),
            _ => None,
        };
        node.data.for_each_operand(|operand| {
            let memory = memory(&self.parts, operand);
            if Some(operand) != whole && self.written.contains_key(&memory) {
                self.other.insert(memory);
            }
        });
    }

    /// Whether a region is another one, or in it.
    fn is_within(&self, region: Region, around: Region) -> bool {
        let mut regions = std::iter::successors(Some(region), |at| self.around.get(at).copied());
        regions.any(|at| at == around)
    }
}

/// Where a value is in memory, or can be.
fn source(types: &TypeTable, function: &Function, value: Value) -> Option<Source> {
    if let Some(bytes) = constant_bytes(types, function, value) {
        return Some(Source::Constant(bytes));
    }
    let ValueDef::Inst(inst) = function.values[value].def else {
        return None;
    };
    match function.insts[inst].data {
        InstData::Load {
            ptr,
            volatile: false,
        } => is_parameter(function, ptr).then(|| Source::Param(ptr, Vec::new())),
        InstData::Extract { aggregate, index }
            if types.is_aggregate(function.type_of(aggregate)) =>
        {
            match source(types, function, aggregate)? {
                Source::Param(ptr, mut path) => {
                    path.push(index);
                    Some(Source::Param(ptr, path))
                }
                Source::Constant(_) => None,
            }
        }
        _ => None,
    }
}

/// Whether an address is that of what a launch passes.
fn is_parameter(function: &Function, address: Value) -> bool {
    let mut params = function.params.iter();
    let param = params.find(|param| param.value == address);
    param.is_some_and(|param| param.passing != Passing::Direct)
}

/// The bytes of a value that is made of constants, padding as zeros.
fn constant_bytes(types: &TypeTable, function: &Function, value: Value) -> Option<Vec<u8>> {
    let ty = function.type_of(value);
    let size = types.layout(ty)?.size as usize;
    let mut bytes = vec![0; size.min(CONSTANT_BYTES + 1)];
    (size <= CONSTANT_BYTES).then_some(())?;
    let ValueDef::Inst(inst) = function.values[value].def else {
        return None;
    };
    match function.insts[inst].data {
        InstData::Const(Constant::Zero) if !has_address(types, ty) => {}
        InstData::Const(constant) => {
            let number = scalar_bytes(ty.as_scalar()?, constant)?;
            bytes.copy_from_slice(&number.to_le_bytes()[..size]);
        }
        InstData::Construct { ref parts } => {
            let offsets = types.field_offsets(ty);
            let stride = size.checked_div(parts.len())?;
            for (i, &part) in parts.iter().enumerate() {
                let part = constant_bytes(types, function, part)?;
                let start = offsets.as_ref().map_or(i * stride, |at| at[i] as usize);
                bytes[start..start + part.len()].copy_from_slice(&part);
            }
        }
        _ => return None,
    }
    Some(bytes)
}

/// Whether a value of the type is an address or has one in it, which is no constant.
fn has_address(types: &TypeTable, ty: Type) -> bool {
    match *types.data(ty) {
        TypeData::Pointer { .. } | TypeData::Slice { .. } => true,
        TypeData::Array { element, .. } => has_address(types, element),
        TypeData::Struct(id) => {
            let mut fields = types.struct_data(id).fields.iter();
            fields.any(|(_, ty)| has_address(types, *ty))
        }
        _ => false,
    }
}

/// The bits of a number.
fn scalar_bytes(scalar: Scalar, constant: Constant) -> Option<u64> {
    let float = match constant {
        Constant::Bool(bit) => return Some(bit.into()),
        Constant::Int(number) if !scalar.is_float() => return Some(number as u64),
        Constant::Int(number) => number as f64,
        Constant::Float(number) => number,
        Constant::Zero => 0.0,
    };
    match scalar {
        Scalar::F32 => Some(u64::from((float as f32).to_bits())),
        Scalar::F64 => Some(float.to_bits()),
        // The others are rounded in a way of their own.
        _ => None,
    }
}

/// Puts the address of a source in the place of that of its copy, and gives it; `None` if there is no room.
fn put(at: &mut Cursor<'_>, source: Source) -> Option<Value> {
    let copy = at.result()?;
    match source {
        Source::Constant(bytes) => {
            let ty = at.types().as_pointer(at.type_of(copy))?.0;
            let global = constant(at.module_mut(), ty, bytes)?;
            at.replace().global_addr(global);
            Some(copy)
        }
        Source::Param(param, path) => {
            let mut address = param;
            for index in path {
                let (pointee, ..) = at.types().as_pointer(at.type_of(address))?;
                address = match at.types().as_indexed(pointee) {
                    None => at.ins().field_ptr(address, index),
                    Some(_) => {
                        let index = at.ins().constant_of(Type::U32, Constant::Int(index.into()));
                        let data = InstData::ElementPtr {
                            ptr: address,
                            index,
                            checked: false,
                        };
                        at.ins().inst(data, Type::UNIT)?
                    }
                };
            }
            at.replace_by(address);
            Some(address)
        }
    }
}

/// A constant of the module with these bytes, a new one if there is none; `None` if there is no room.
fn constant(module: &mut Module, ty: Type, bytes: Vec<u8>) -> Option<GlobalId> {
    let same = |global: &GlobalData| global.ty == ty && *global.bytes == *bytes;
    if let Some((id, _)) = module.globals.iter().find(|(_, global)| same(global)) {
        return Some(id);
    }
    // Each begins where the strictest type may.
    let room = |bytes: usize| bytes.next_multiple_of(16);
    let used = module
        .globals
        .values()
        .map(|global| room(global.bytes.len()));
    if used.sum::<usize>() + room(bytes.len()) > CONSTANT_BYTES {
        return None;
    }
    let name = format!("table{}", module.globals.len());
    let bytes = bytes.into();
    Some(module.globals.push(GlobalData { name, ty, bytes }))
}
