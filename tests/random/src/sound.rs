//! Whether the result of a case depends on things it must not depend on.
//!
//! The interpreter runs threads in order, fills memory that nobody wrote with one pattern, and gives
//! NaNs the bits that the host's processor gives them. The changes of this file turn each of these
//! around within the kernel: a case that still gives the same has no race, no uninitialized read and
//! no sight of a NaN's bits that would show. Threads of a warp keep their order where there are operations
//! of one, so the checking interpreter looks for races, too. The reducer asks after each step, because a smaller case
//! with a race says nothing about a backend.

use kiln_jit_core::checks::Checks;
use kiln_jit_core::ir::{
    AddressSpace, BinaryOp, CompareOp, Constant, FastMath, Function, FunctionKind, Inst, InstData,
    IntrinsicDef, Known, Location, Module, Region, RegionData, Type, TypeData, TypeTable, UnaryOp,
    Unroll, Value, verify,
};
use kiln_jit_core::runtime::BlockOrder;

use crate::case::Case;
use crate::run::{InterpreterRunner, Runner, difference, interpret};

/// A NaN that no processor gives by itself, in each of the float types.
const OTHER_NAN: u64 = 0x7FFC_0000_0000_0000;

/// Checks that a case verifies, that the interpreter runs it without a fault, and that the result
/// depends neither on the order of threads, nor on what uninitialized memory holds, nor on the bits
/// of NaNs and which zero is the smaller one.
///
/// # Errors
/// Which of these it is.
pub fn sound(case: &Case) -> Result<(), String> {
    verify(&case.module).map_err(|e| format!("it does not verify: {e}"))?;
    let expected = InterpreterRunner.run(case)?;
    let variants = [
        ("the order of threads", reversed(case)),
        ("what uninitialized memory holds", zero_filled(case)),
        ("the bits of NaNs or the sign of a zero", other_nans(case)),
    ];
    for (what, variant) in variants {
        let found = InterpreterRunner.run(&variant)?;
        if let Some(difference) = difference(case, &expected, &found) {
            return Err(format!("{what} changes the result: {difference:?}"));
        }
    }
    interpret(case, &Checks::none().races(), BlockOrder::Increasing).map(|_| ())
}

/// The case with thread and block indices counted from the other end: the interpreter's first
/// thread does what the last one did. Where there are operations of a warp threads are left as they are,
/// as in another order they make other warps; blocks are where some wait for earlier ones.
pub fn reversed(case: &Case) -> Case {
    let mut case = case.clone();
    let grid = (!case.waits()).then_some(case.grid);
    let block = (!case.uses_warps()).then_some(case.block);
    let rows: Vec<&IntrinsicDef> = case.module.intrinsics.values().copied().collect();
    for (_, function) in case.module.functions.iter_mut() {
        let mut found: Vec<(Region, Inst, i128)> = Vec::new();
        function.for_each_inst(|region, inst| {
            if let InstData::Intrinsic { id, .. } = function.insts[inst].data {
                use kiln_jit_core::ir::Entity;
                let last = last_index(rows[id.index()], grid, block);
                found.extend(last.map(|last| (region, inst, last)));
            }
        });
        for (region, inst, last) in found {
            count_down(function, region, inst, last);
        }
    }
    case
}

/// The largest value of an index, if the intrinsic is one.
fn last_index(row: &IntrinsicDef, grid: Option<[u32; 3]>, block: Option<[u32; 3]>) -> Option<i128> {
    let extent = match row.known? {
        Known::ThreadIdx(axis) => block?[axis.index()],
        Known::BlockIdx(axis) => grid?[axis.index()],
        _ => return None,
    };
    Some(i128::from(extent) - 1)
}

/// Makes `inst` give `last` minus what it gave.
fn count_down(function: &mut Function, region: Region, inst: Inst, last: i128) {
    let data = function.insts[inst].data.clone();
    let new = |function: &mut Function, data| {
        let inst = function.new_inst(data, Type::U32, Location::unknown());
        (inst, function.insts[inst].result)
    };
    let (index, value) = new(function, data);
    let (limit, bound) = new(function, InstData::Const(Constant::Int(last)));
    let (Some(value), Some(bound)) = (value, bound) else {
        return;
    };
    function.insts[inst].data = InstData::Binary {
        op: BinaryOp::Sub,
        args: [bound, value],
    };
    let list = &mut function.regions[region].insts;
    if let Some(at) = list.iter().position(|i| *i == inst) {
        list.splice(at..at, [index, limit]);
    }
}

/// The case with other bits in each NaN that an operation gives, and with the other zero where `min`
/// or `max` gives a zero.
pub fn other_nans(case: &Case) -> Case {
    let mut case = case.clone();
    for (_, function) in case.module.functions.iter_mut() {
        let mut found: Vec<(Region, Inst, Type)> = Vec::new();
        function.for_each_inst(|region, inst| {
            let node = &function.insts[inst];
            let ty = node.result.map_or(Type::UNIT, |v| function.type_of(v));
            let computes = match &node.data {
                InstData::Unary { .. } | InstData::Binary { .. } | InstData::Cast { .. } => true,
                InstData::Intrinsic { args, .. } => !args.is_empty(),
                _ => false,
            };
            if computes && ty.is_float() {
                found.push((region, inst, ty));
            }
        });
        for (region, inst, ty) in found {
            change_nan(function, region, inst, ty);
        }
    }
    case
}

/// Makes `inst` give one NaN instead of any other.
fn change_nan(function: &mut Function, region: Region, inst: Inst, ty: Type) {
    let data = function.insts[inst].data.clone();
    let picks = matches!(
        data,
        InstData::Binary {
            op: BinaryOp::Min | BinaryOp::Max,
            ..
        }
    );
    let mut before: Vec<Inst> = Vec::new();
    let mut new = |data, ty| {
        let inst = function.new_inst(data, ty, Location::unknown());
        before.push(inst);
        function.insts[inst]
            .result
            .expect("it is made with a result")
    };
    let mut value = new(data, ty);
    let op = CompareOp::Eq;
    if picks {
        let zero = new(InstData::Const(Constant::Zero), ty);
        let args = [value, zero];
        let cond = new(InstData::Compare { op, args }, Type::BOOL);
        let op = UnaryOp::Neg;
        let if_true = new(InstData::Unary { op, arg: value }, ty);
        let if_false = value;
        let choice = InstData::Select {
            cond,
            if_true,
            if_false,
        };
        value = new(choice, ty);
    }
    let args = [value, value];
    let cond = new(InstData::Compare { op, args }, Type::BOOL);
    let if_false = new(
        InstData::Const(Constant::Float(f64::from_bits(OTHER_NAN))),
        ty,
    );
    function.insts[inst].fast = FastMath::NONE;
    function.insts[inst].data = InstData::Select {
        cond,
        if_true: value,
        if_false,
    };
    let list = &mut function.regions[region].insts;
    if let Some(at) = list.iter().position(|i| *i == inst) {
        list.splice(at..at, before);
    }
}

/// The case with shared and local memory zero at the start.
pub fn zero_filled(case: &Case) -> Case {
    let mut case = case.clone();
    let Module {
        functions, types, ..
    } = &mut case.module;
    for (_, function) in functions.iter_mut() {
        let mut start = Start::new(function, types);
        start.locals();
        if start.function.kind == FunctionKind::Kernel {
            start.shared();
        }
        let insts = std::mem::take(&mut start.insts);
        let body = function.body;
        function.regions[body].insts.splice(0..0, insts);
    }
    case
}

/// Instructions that are put before all others of a function.
struct Start<'m> {
    function: &'m mut Function,
    types: &'m mut TypeTable,
    insts: Vec<Inst>,
}

impl<'m> Start<'m> {
    fn new(function: &'m mut Function, types: &'m mut TypeTable) -> Self {
        let insts = Vec::new();
        Start {
            function,
            types,
            insts,
        }
    }

    fn make(&mut self, data: InstData, ty: Type) -> (Inst, Option<Value>) {
        let inst = self.function.new_inst(data, ty, Location::unknown());
        (inst, self.function.insts[inst].result)
    }

    fn value(&mut self, data: InstData, ty: Type) -> Value {
        let (inst, value) = self.make(data, ty);
        self.insts.push(inst);
        value.expect("the instruction has a result")
    }

    fn act(&mut self, data: InstData) {
        let (inst, _) = self.make(data, Type::UNIT);
        self.insts.push(inst);
    }

    /// Moves local memory to the start and clears it there.
    fn locals(&mut self) {
        let mut found = Vec::new();
        let function = &*self.function;
        function.for_each_inst(|region, inst| {
            if matches!(function.insts[inst].data, InstData::LocalAlloc) {
                found.push((region, inst));
            }
        });
        for (region, inst) in found {
            self.function.regions[region].insts.retain(|i| *i != inst);
            self.insts.push(inst);
            if let Some(ptr) = self.function.insts[inst].result {
                self.clear(ptr);
            }
        }
    }

    fn clear(&mut self, ptr: Value) {
        let pointer = self.types.as_pointer(self.function.type_of(ptr));
        let pointee = pointer.map_or(Type::UNIT, |(ty, ..)| ty);
        let value = self.value(InstData::Const(Constant::Zero), pointee);
        let volatile = false;
        self.act(InstData::Store {
            ptr,
            value,
            volatile,
        });
    }

    /// Clears shared memory: all threads do, and meet before they go on.
    fn shared(&mut self) {
        let vars = self
            .function
            .shared
            .iter()
            .map(|(var, data)| (var, data.ty));
        let vars: Vec<_> = vars.collect();
        for (var, ty) in vars {
            let pointer = self.types.pointer(ty, AddressSpace::Shared, true);
            let ptr = self.value(InstData::SharedAddr(var), pointer);
            match *self.types.data(ty) {
                TypeData::Array { element, .. } => {
                    let len = self.types.layout(ty).map_or(0, |l| l.size)
                        / self.types.layout(element).map_or(1, |l| l.size).max(1);
                    let len = self.value(InstData::Const(Constant::Int(len.into())), Type::U32);
                    self.clear_elements(element, len, |index| InstData::ElementPtr {
                        ptr,
                        index,
                        checked: true,
                    });
                }
                _ => self.clear(ptr),
            }
        }
        if let Some(ty) = self.dynamic() {
            let slice = self.value(InstData::DynamicShared, ty);
            let len = self.value(InstData::SliceLen { slice }, Type::U32);
            if let TypeData::Slice { element, .. } = *self.types.data(ty) {
                self.clear_elements(element, len, |index| InstData::SliceIndex {
                    slice,
                    index,
                    checked: true,
                });
            }
        }
        self.act(InstData::Barrier);
    }

    /// The type that dynamic shared memory is used as.
    fn dynamic(&self) -> Option<Type> {
        let mut found = None;
        self.function.for_each_inst(|_, inst| {
            let node = &self.function.insts[inst];
            if matches!(node.data, InstData::DynamicShared) {
                found = node.result.map(|v| self.function.type_of(v));
            }
        });
        found
    }

    fn clear_elements(
        &mut self,
        element: Type,
        end: Value,
        address: impl FnOnce(Value) -> InstData,
    ) {
        let start = self.value(InstData::Const(Constant::Int(0)), Type::U32);
        let step = self.value(InstData::Const(Constant::Int(1)), Type::U32);
        let zero = self.value(InstData::Const(Constant::Zero), element);
        let body = self.function.regions.push(RegionData::default());
        let pointer = self.types.pointer(element, AddressSpace::Shared, true);
        let index = self.function.new_index(Type::U32);
        let (at, ptr) = self.make(address(index), pointer);
        let ptr = ptr.expect("an address is a result");
        let volatile = false;
        let value = zero;
        let (store, _) = self.make(
            InstData::Store {
                ptr,
                value,
                volatile,
            },
            Type::UNIT,
        );
        self.function.regions[body].insts.extend([at, store]);
        self.act(InstData::For {
            index,
            start,
            end,
            step,
            body,
            unroll: Unroll::Auto,
        });
    }
}
