//! Writing instructions into a list that is to become a region.

use kiln_device_stdlib::find;
use kiln_jit_core::ir::{
    BinaryOp, CompareOp, Constant, Function, Inst, InstData, IntrinsicId, Location, Module, Region,
    RegionData, Type, Unroll, Value, ValueList, Var, VarData,
};

/// A list of instructions of a function, at its end.
pub(crate) struct Emit<'f> {
    pub(crate) function: &'f mut Function,
    pub(crate) list: Vec<Inst>,
    /// The line that new instructions come from.
    pub(crate) at: Location,
}

impl<'f> Emit<'f> {
    /// An empty list.
    pub(crate) fn new(function: &'f mut Function, at: Location) -> Emit<'f> {
        Emit {
            function,
            list: Vec::new(),
            at,
        }
    }

    /// A list within this one: what `write` writes, as a region.
    pub(crate) fn region(&mut self, write: impl FnOnce(&mut Emit<'_>)) -> Region {
        let mut inner = Emit::new(&mut *self.function, self.at);
        write(&mut inner);
        let insts = inner.list;
        self.function.regions.push(RegionData { insts })
    }

    fn put(&mut self, data: InstData, ty: Type) -> Option<Value> {
        let inst = self.function.new_inst(data, ty, self.at);
        self.list.push(inst);
        self.function.insts[inst].result
    }

    /// An operation that gives a value of a type.
    pub(crate) fn value(&mut self, data: InstData, ty: Type) -> Value {
        let value = self.put(data, ty);
        value.expect("the type is no unit")
    }

    /// An integer of a type.
    pub(crate) fn int(&mut self, number: i128, ty: Type) -> Value {
        self.value(InstData::Const(Constant::Int(number)), ty)
    }

    /// An operation on two values of one type; of a constant that changes nothing, the other one.
    pub(crate) fn binary(&mut self, op: BinaryOp, left: Value, right: Value) -> Value {
        let number = |value| match self.function.constant(value) {
            Some(Constant::Int(number)) => Some(number),
            Some(Constant::Zero) => Some(0),
            _ => None,
        };
        match (op, number(left), number(right)) {
            (BinaryOp::Add, Some(0), _) | (BinaryOp::Mul, Some(1), _) => return right,
            (BinaryOp::Add | BinaryOp::Sub, _, Some(0))
            | (BinaryOp::Mul | BinaryOp::Div, _, Some(1)) => return left,
            _ => {}
        }
        let ty = self.function.type_of(left);
        let args = [left, right];
        self.value(InstData::Binary { op, args }, ty)
    }

    /// A comparison.
    pub(crate) fn compare(&mut self, op: CompareOp, left: Value, right: Value) -> Value {
        let args = [left, right];
        self.value(InstData::Compare { op, args }, Type::BOOL)
    }

    /// Whether all of some `bool`s hold; `None` if there are none.
    pub(crate) fn all(&mut self, conditions: &[Value]) -> Option<Value> {
        let (&first, rest) = conditions.split_first()?;
        let both = |holds, &next| self.binary(BinaryOp::And, holds, next);
        Some(rest.iter().fold(first, both))
    }

    /// One of two values.
    pub(crate) fn select(&mut self, cond: Value, if_true: Value, if_false: Value) -> Value {
        let ty = self.function.type_of(if_true);
        let data = InstData::Select {
            cond,
            if_true,
            if_false,
        };
        self.value(data, ty)
    }

    /// A number as one of another type, by Rust's `as`.
    pub(crate) fn cast(&mut self, arg: Value, ty: Type) -> Value {
        match self.function.type_of(arg) == ty {
            true => arg,
            false => self.value(InstData::Cast { arg }, ty),
        }
    }

    /// A row without arguments.
    pub(crate) fn row(&mut self, id: IntrinsicId, ty: Type) -> Value {
        let args = ValueList::new();
        self.value(InstData::Intrinsic { id, args }, ty)
    }

    /// A new variable.
    pub(crate) fn var(&mut self, name: &str, ty: Type) -> Var {
        let name = name.to_owned();
        self.function.vars.push(VarData { name, ty })
    }

    pub(crate) fn get(&mut self, var: Var) -> Value {
        let ty = self.function.vars[var].ty;
        self.value(InstData::VarGet(var), ty)
    }

    pub(crate) fn set(&mut self, var: Var, value: Value) {
        self.put(InstData::VarSet(var, value), Type::UNIT);
    }

    /// How many elements a slice has, a `u64`.
    pub(crate) fn len(&mut self, slice: Value) -> Value {
        self.value(InstData::SliceLen { slice }, Type::U64)
    }

    /// What is at an address, of this type.
    pub(crate) fn load(&mut self, ptr: Value, ty: Type) -> Value {
        let volatile = false;
        self.value(InstData::Load { ptr, volatile }, ty)
    }

    pub(crate) fn store(&mut self, ptr: Value, value: Value) {
        let data = InstData::Store {
            ptr,
            value,
            volatile: false,
        };
        self.put(data, Type::UNIT);
    }

    pub(crate) fn barrier(&mut self) {
        self.put(InstData::Barrier, Type::UNIT);
    }

    /// Ends the launch with a message and two numbers where a condition does not hold.
    pub(crate) fn assert(&mut self, cond: Value, message: &str, values: [Value; 2]) {
        let data = InstData::Assert {
            cond,
            message: message.into(),
            values: Some(values),
        };
        self.put(data, Type::UNIT);
    }

    /// Executes a region when a condition holds.
    pub(crate) fn if_(&mut self, cond: Value, then_region: Region) {
        let data = InstData::If {
            cond,
            then_region,
            else_region: None,
        };
        self.put(data, Type::UNIT);
    }

    /// Executes one region or another.
    pub(crate) fn if_else(&mut self, cond: Value, then_region: Region, else_region: Region) {
        let data = InstData::If {
            cond,
            then_region,
            else_region: Some(else_region),
        };
        self.put(data, Type::UNIT);
    }

    /// A loop whose body `write` writes, from `start` to below `end`; the body.
    pub(crate) fn for_(
        &mut self,
        [start, end, step]: [Value; 3],
        unroll: Unroll,
        write: impl FnOnce(&mut Emit<'_>, Value),
    ) -> Region {
        let ty = self.function.type_of(start);
        // A value whose `for` comes after what is in the loop: the definition is put right below.
        let index = self.function.new_index(ty);
        let body = self.region(|inner| write(inner, index));
        let data = InstData::For {
            index,
            start,
            end,
            step,
            body,
            unroll,
        };
        self.put(data, Type::UNIT);
        body
    }
}

/// The row of a thread's or block's place along an axis, entered in a module.
pub(crate) fn position_row(module: &mut Module, name: &str, axis: usize) -> IntrinsicId {
    let name = format!("{name}.{}", ["x", "y", "z"][axis]);
    let row = find(&name).expect("the library has rows of positions for each axis");
    module.intrinsic(row)
}
