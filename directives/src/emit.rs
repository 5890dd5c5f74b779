//! Writing instructions into a list that is to become a region.

use std::ops::RangeInclusive;

use kiln_device_stdlib::find;
use kiln_jit_core::ir::{
    BinaryOp, CompareOp, Constant, Function, Inst, InstData, IntrinsicId, Location, Module, Region,
    RegionData, Scalar, Type, Unroll, Value, ValueList, Var, VarData,
};

use crate::integer::ceil;

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

    /// The integer that a value is, if it is a constant.
    pub(crate) fn number(&self, value: Value) -> Option<i128> {
        match self.function.constant(value) {
            Some(Constant::Int(number)) => Some(number),
            Some(Constant::Zero) if self.function.type_of(value).as_scalar()?.is_int() => Some(0),
            _ => None,
        }
    }

    /// An operation on two values of one type; of a constant that changes nothing, the other one, and of two constants
    /// their number, if it is one of the type.
    pub(crate) fn binary(&mut self, op: BinaryOp, left: Value, right: Value) -> Value {
        let numbers = (self.number(left), self.number(right));
        match (op, numbers.0, numbers.1) {
            (BinaryOp::Add, Some(0), _) | (BinaryOp::Mul, Some(1), _) => return right,
            (BinaryOp::Add | BinaryOp::Sub, _, Some(0))
            | (BinaryOp::Mul | BinaryOp::Div, _, Some(1))
            | (BinaryOp::Mul, Some(0), _) => return left,
            (BinaryOp::Mul, _, Some(0)) => return right,
            _ => {}
        }
        let ty = self.function.type_of(left);
        if let (Some(left), Some(right)) = numbers
            && let Some(number) = of_numbers(op, left, right, ty)
        {
            return self.int(number, ty);
        }
        let args = [left, right];
        self.value(InstData::Binary { op, args }, ty)
    }

    /// A comparison.
    pub(crate) fn compare(&mut self, op: CompareOp, left: Value, right: Value) -> Value {
        if let (Some(left), Some(right)) = (self.number(left), self.number(right)) {
            let holds = match op {
                CompareOp::Eq => left == right,
                CompareOp::Ne => left != right,
                CompareOp::Lt => left < right,
                CompareOp::Le => left <= right,
                CompareOp::Gt => left > right,
                CompareOp::Ge => left >= right,
            };
            return self.value(InstData::Const(Constant::Bool(holds)), Type::BOOL);
        }
        let args = [left, right];
        self.value(InstData::Compare { op, args }, Type::BOOL)
    }

    /// Whether all of some `bool`s hold; `None` if there are none.
    pub(crate) fn all(&mut self, conditions: &[Value]) -> Option<Value> {
        let (&first, rest) = conditions.split_first()?;
        let both = |holds, &next| self.binary(BinaryOp::And, holds, next);
        Some(rest.iter().fold(first, both))
    }

    /// Whether some of some `bool`s hold; `None` if there are none.
    pub(crate) fn any(&mut self, conditions: &[Value]) -> Option<Value> {
        let (&first, rest) = conditions.split_first()?;
        let either = |holds, &next| self.binary(BinaryOp::Or, holds, next);
        Some(rest.iter().fold(first, either))
    }

    /// One of two values.
    pub(crate) fn select(&mut self, cond: Value, if_true: Value, if_false: Value) -> Value {
        match self.function.constant(cond) {
            Some(Constant::Bool(true)) => return if_true,
            Some(Constant::Bool(false)) => return if_false,
            _ => {}
        }
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
        if self.function.type_of(arg) == ty {
            return arg;
        }
        let number = match self.function.constant(arg) {
            Some(Constant::Bool(holds)) => Some(i128::from(holds)),
            _ => self.number(arg),
        };
        if let Some(number) = number
            && let Some(scalar) = ty.as_scalar().filter(|scalar| scalar.is_int())
            && limits(scalar).contains(&number)
        {
            return self.int(number, ty);
        }
        self.value(InstData::Cast { arg }, ty)
    }

    /// A row without arguments.
    pub(crate) fn row(&mut self, id: IntrinsicId, ty: Type) -> Value {
        let args = ValueList::new();
        self.value(InstData::Intrinsic { id, args }, ty)
    }

    /// A row with arguments.
    pub(crate) fn row_of(&mut self, id: IntrinsicId, args: &[Value], ty: Type) -> Value {
        let args = args.iter().copied().collect();
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

    /// Executes what `write` writes where a condition holds, if there is one.
    pub(crate) fn where_(&mut self, cond: Option<Value>, write: impl FnOnce(&mut Emit<'_>)) {
        match cond {
            Some(cond) => {
                let region = self.region(write);
                self.if_(cond, region);
            }
            None => write(self),
        }
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

    /// A thread's share of the numbers below `count`, each of which `write` is given: as thread `own` of `threads`, neighbours
    /// with neighbouring numbers, in turns that are as many for all threads.
    pub(crate) fn each_of(
        &mut self,
        count: i128,
        (own, threads): (Value, i128),
        write: impl FnOnce(&mut Emit<'_>, Value),
    ) {
        let bounds = [0, ceil(count, threads), 1].map(|number| self.int(number, Type::U32));
        self.for_(bounds, Unroll::Auto, |emit, round| {
            let of_all = emit.int(threads, Type::U32);
            let before = emit.binary(BinaryOp::Mul, round, of_all);
            let number = emit.binary(BinaryOp::Add, before, own);
            let is_there = (count % threads != 0).then(|| {
                let count = emit.int(count, Type::U32);
                emit.compare(CompareOp::Lt, number, count)
            });
            emit.where_(is_there, |emit| write(emit, number));
        });
    }
}

/// The numbers of an integer type.
fn limits(scalar: Scalar) -> RangeInclusive<i128> {
    let (low, high) = crate::affine::limits(scalar);
    low..=high
}

/// The integer that an instruction computes of constants, if it does.
pub(crate) fn folded(function: &Function, inst: Inst) -> Option<i128> {
    let number = |value| match function.constant(value) {
        Some(Constant::Int(number)) => Some(number),
        _ => None,
    };
    let ty = function.type_of(function.insts[inst].result?);
    match function.insts[inst].data {
        InstData::Binary { op, args } => of_numbers(op, number(args[0])?, number(args[1])?, ty),
        InstData::Cast { arg } => {
            let number = number(arg)?;
            let scalar = ty.as_scalar().filter(|scalar| scalar.is_int())?;
            limits(scalar).contains(&number).then_some(number)
        }
        _ => None,
    }
}

/// The result of an operation on two integers of a type, if nothing of it is lost.
fn of_numbers(op: BinaryOp, left: i128, right: i128, ty: Type) -> Option<i128> {
    let number = match op {
        BinaryOp::Add => left.checked_add(right),
        BinaryOp::Sub => left.checked_sub(right),
        BinaryOp::Mul => left.checked_mul(right),
        BinaryOp::Div => left.checked_div(right),
        BinaryOp::Rem => left.checked_rem(right),
        BinaryOp::Min => Some(left.min(right)),
        BinaryOp::Max => Some(left.max(right)),
        _ => None,
    };
    number.filter(|number| {
        ty.as_scalar()
            .is_some_and(|scalar| limits(scalar).contains(number))
    })
}

/// The row of a thread's or block's place along an axis, entered in a module.
pub(crate) fn position_row(module: &mut Module, name: &str, axis: usize) -> IntrinsicId {
    let name = format!("{name}.{}", ["x", "y", "z"][axis]);
    let row = find(&name).expect("the library has rows of positions for each axis");
    module.intrinsic(row)
}
