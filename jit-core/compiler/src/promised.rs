//! Sums that unchecked accesses promise not to wrap around.
//!
//! An index of 32 bits wraps around, so that what is added to it cannot become an offset of an address: each of the
//! accesses of an unrolled `x[first + i]` has an addition and a multiplication of its own. No slice has an element 2^32 - 1, as its
//! length has 32 bits. Whoever goes through a slice one by one, by accesses that are promised to be in bounds, comes
//! by that number before its index wraps, and so its index never does:
//!
//! ```text
//! for i in 0..n { x[first + i] }      =>   for i in 0..n { x[first as u64 + i as u64] }
//! x[i - 1] + x[i] + x[i + 1]          =>   let j = (i - 1) as u64; x[j] + x[j + 1] + x[j + 2]
//! ```
//!
//! The first holds where the access is made in each turn of a loop that counts from 0 by one; the second where one is made
//! before the other, whatever the slices are.
//!
//! Where slices have fewer than 2^31 elements, as a launch says of nearly all ([`ParamFacts::short`]), two indices in bounds are
//! less than 2^31 apart, and so as far as they are modulo 2^32. Then it holds for any distance and any step:
//!
//! ```text
//! for i in 0..n { x[first + 128 * i] }      =>   for i in 0..n { x[first as u64 + 128 * (i as u64)] }
//! x[i] + x[i + 512]                         =>   let j = i as u64; x[j] + x[j + 512]
//! ```
//!
//! [`ParamFacts::short`]: crate::ir::ParamFacts::short
//!
//! It is done for GPUs, which address memory by a register and a constant.

use std::collections::{BTreeMap, HashMap};

use crate::ir::{
    AddressSpace, ArrayLen, BinaryOp, Constant, Control, Function, FunctionKind, Inst, InstData,
    Module, ParamFacts, Region, Type, TypeTable, Value, ValueDef,
};
use crate::target::Target;

/// How deep operands of operands are looked at.
const MAX_DEPTH: u32 = 8;

/// No sum has more terms.
const MAX_TERMS: usize = 6;

/// Has accesses select elements by sums of 64 bits where these are promised to be the indices.
pub(crate) fn widen(module: &mut Module, target: &Target) {
    if matches!(target, Target::Cpu(_) | Target::Interpreter) {
        return;
    }
    for (_, function) in module.functions.iter_mut() {
        let mut promises = Promises {
            positions: HashMap::new(),
            numbers: HashMap::new(),
            sums: HashMap::new(),
            seen: HashMap::new(),
            order: Vec::new(),
            function,
            types: &module.types,
        };
        if !promises.are_there() {
            continue;
        }
        let mut positions = HashMap::new();
        promises.function.for_each_inst(|_, inst| {
            positions.insert(inst, positions.len());
        });
        promises.positions = positions;
        promises.region(promises.function.body, None);
    }
}

/// What is added up, modulo 2^32: values, by what stands for all that are the same, each so many times, and a number.
#[derive(Clone, Default)]
struct Sum {
    terms: BTreeMap<Value, (Value, u32)>,
    constant: u32,
}

/// The values of a sum and how often each is in it.
type Terms = Vec<(Value, u32)>;

impl Sum {
    fn of(number: Value, value: Value) -> Sum {
        Sum {
            terms: BTreeMap::from([(number, (value, 1))]),
            constant: 0,
        }
    }

    fn constant(constant: u32) -> Sum {
        Sum {
            constant,
            ..Sum::default()
        }
    }

    fn plus(mut self, other: &Sum, times: u32) -> Sum {
        for (&number, &(value, count)) in &other.terms {
            let (_, sum) = self.terms.entry(number).or_insert((value, 0));
            *sum = sum.wrapping_add(count.wrapping_mul(times));
        }
        self.terms.retain(|_, (_, count)| *count != 0);
        self.constant = (self.constant).wrapping_add(other.constant.wrapping_mul(times));
        self
    }

    fn terms(&self) -> Terms {
        let terms = self.terms.iter();
        terms
            .map(|(&number, &(_, count))| (number, count))
            .collect()
    }
}

/// What a value is made of.
#[derive(PartialEq, Eq, Hash)]
enum Number {
    Known(u32, Type),
    Binary(BinaryOp, [Value; 2], Type),
    Cast(Value, Type),
}

/// An access that promises that its index is in bounds.
#[derive(Copy, Clone)]
struct Promise {
    index: Value,
    /// Of fewer than [`ParamFacts::SHORT`] elements.
    is_short: bool,
}

/// An index that was in bounds: a number of 32 or 64 bits, and what is added to that as one of 64.
#[derive(Copy, Clone)]
struct Seen {
    /// Of fewer than [`ParamFacts::SHORT`] elements.
    is_short: bool,
    /// What the sum has besides its terms.
    constant: u32,
    root: Value,
    offset: i64,
}

/// A loop that counts upwards from 0, at each turn of which what is looked at is executed.
#[derive(Copy, Clone)]
struct Turn {
    the_loop: Inst,
    index: Value,
    step: u32,
}

struct Promises<'m> {
    function: &'m mut Function,
    types: &'m TypeTable,
    /// Where instructions stand, in the order of the text.
    positions: HashMap<Inst, usize>,
    /// What stands for all values that are the same operation of the same.
    numbers: HashMap<Number, Value>,
    sums: HashMap<Value, Sum>,
    /// Indices that were in bounds where control comes from, by their terms.
    seen: HashMap<Terms, Vec<Seen>>,
    /// The terms in the order in which they were seen.
    order: Vec<Terms>,
}

impl Promises<'_> {
    /// Whether the function promises anything.
    fn are_there(&self) -> bool {
        let mut insts = self.function.insts.keys();
        insts.any(|inst| self.promise(inst).is_some())
    }

    /// The promise of an instruction about an index of 32 bits and fewer than 2^32 elements.
    fn promise(&self, inst: Inst) -> Option<Promise> {
        let (access, false) = self.function.insts[inst].data.access()? else {
            return None;
        };
        let base = self.function.type_of(access.base);
        let elements = match self.types.as_slice(base) {
            Some((_, true)) => return None,
            Some((_, false)) if self.is_short(access.base) => ParamFacts::SHORT - 1,
            Some((_, false)) => u64::from(u32::MAX),
            None => {
                let array =
                    (self.types.as_pointer(base)).and_then(|(of, ..)| self.types.as_indexed(of));
                match array? {
                    (_, ArrayLen::Known(len)) => len,
                    _ => return None,
                }
            }
        };
        // Others have addresses of 32 bits, or are registers in the end.
        let spaces = [AddressSpace::Global, AddressSpace::Generic];
        let space = self.types.address(base)?.space;
        let is_one = elements <= u64::from(u32::MAX)
            && spaces.contains(&space)
            && self.is_word(access.index);
        is_one.then_some(Promise {
            index: access.index,
            is_short: elements < ParamFacts::SHORT,
        })
    }

    /// Whether a slice is an argument of which a launch says so.
    fn is_short(&self, slice: Value) -> bool {
        let ValueDef::Param(position) = self.function.values[slice].def else {
            return false;
        };
        let is_kernel = self.function.kind == FunctionKind::Kernel;
        is_kernel && self.function.params[position as usize].facts.short
    }

    fn is_word(&self, value: Value) -> bool {
        let scalar = self.function.type_of(value).as_scalar();
        scalar.is_some_and(|scalar| scalar.is_int() && scalar.bits() == 32)
    }

    fn region(&mut self, region: Region, mut turn: Option<Turn>) {
        let insts = std::mem::take(&mut self.function.regions[region].insts);
        let mut made = Vec::with_capacity(insts.len());
        let known = self.order.len();
        for inst in insts {
            if let Some(promise) = self.promise(inst) {
                self.access((inst, promise), turn, &mut made);
            }
            self.inner(inst);
            turn = turn.filter(|_| !self.goes_on(inst, 0));
            made.push(inst);
        }
        for terms in self.order.drain(known..) {
            self.seen.entry(terms).or_default().pop();
        }
        self.function.regions[region].insts = made;
    }

    fn inner(&mut self, inst: Inst) {
        let turn = match self.function.insts[inst].data.control() {
            Control::For {
                index,
                bounds: [start, _, step],
                ..
            } if self.known(start) == Some(0) => {
                let upwards = self.known(step).filter(|step| step.cast_signed() > 0);
                upwards.map(|step| Turn {
                    the_loop: inst,
                    index,
                    step,
                })
            }
            _ => None,
        };
        for region in self.function.insts[inst].data.regions() {
            self.region(region, turn);
        }
    }

    /// Whether an instruction, `depth` loops within a loop, may go on with the next turn of it.
    fn goes_on(&self, inst: Inst, depth: u32) -> bool {
        let data = &self.function.insts[inst].data;
        let control = data.control();
        if let Control::Leave { depth: out, again } = control {
            return again && out == depth;
        }
        let is_loop = matches!(control, Control::Loop { .. } | Control::For { .. });
        let depth = depth + u32::from(is_loop);
        let mut inner =
            (data.regions().into_iter()).flat_map(|region| &self.function.regions[region].insts);
        inner.any(|&inst| self.goes_on(inst, depth))
    }

    /// Has an access select by a sum of 64 bits, if that is known to be its index.
    fn access(
        &mut self,
        (inst, promise): (Inst, Promise),
        turn: Option<Turn>,
        made: &mut Vec<Inst>,
    ) {
        let Promise { index, is_short } = promise;
        let sum = self.sum(index, 0);
        let terms = sum.terms();
        if terms.len() > MAX_TERMS {
            return;
        }
        let beside = (self.seen.get(&terms).into_iter().flatten()).find_map(|seen| {
            let apart = sum.constant.wrapping_sub(seen.constant) as i32;
            let offset = seen.offset + i64::from(apart);
            let is_so = seen.is_short && is_short || (-1..=1).contains(&apart);
            is_so.then_some((seen.root, offset))
        });
        let (root, offset) = match (beside, turn) {
            (Some(beside), _) => beside,
            (None, Some(turn)) => {
                let wide = self.in_turn((inst, is_short), turn, &sum, made);
                (wide.unwrap_or(index), 0)
            }
            (None, None) => (index, 0),
        };
        if root != index {
            let root = self.wide(inst, root, made);
            let to = match offset {
                0 => root,
                _ => {
                    let offset = self.number(inst, (offset.cast_unsigned(), Type::U64), made);
                    self.binary(inst, (BinaryOp::Add, [root, offset], Type::U64), made)
                }
            };
            self.select(inst, to);
        }
        let seen = Seen {
            is_short,
            constant: sum.constant,
            root,
            offset,
        };
        self.seen.entry(terms.clone()).or_default().push(seen);
        self.order.push(terms);
    }

    /// The index of an access in each turn of a loop as a sum of 64 bits, if it grows by one with each, or as much with each
    /// of a short slice.
    fn in_turn(
        &mut self,
        (inst, is_short): (Inst, bool),
        turn: Turn,
        sum: &Sum,
        made: &mut Vec<Inst>,
    ) -> Option<Value> {
        let times = i64::from(sum.terms.get(&turn.index)?.1.cast_signed());
        let growth = times.checked_mul(i64::from(turn.step.cast_signed()))?;
        if growth != 1 && !(is_short && growth.unsigned_abs() < ParamFacts::SHORT) {
            return None;
        }
        let others = sum
            .terms
            .iter()
            .filter(|(number, _)| **number != turn.index);
        let others: Vec<(Value, u32)> = others.map(|(_, other)| *other).collect();
        let stays = |&(value, _): &(Value, u32)| self.stays(value, turn.the_loop, 0);
        if others.is_empty() && sum.constant == 0 || !others.iter().all(stays) {
            return None;
        }
        let mut first = None;
        for (value, count) in others {
            let mut term = self.cast(inst, (value, Type::U32), made);
            if count != 1 {
                let count = self.number(inst, (count.into(), Type::U32), made);
                term = self.binary(inst, (BinaryOp::Mul, [term, count], Type::U32), made);
            }
            first = Some(match first {
                Some(first) => self.binary(inst, (BinaryOp::Add, [first, term], Type::U32), made),
                None => term,
            });
        }
        if sum.constant != 0 || first.is_none() {
            let constant = self.number(inst, (sum.constant.into(), Type::U32), made);
            first = Some(match first {
                Some(first) => {
                    self.binary(inst, (BinaryOp::Add, [first, constant], Type::U32), made)
                }
                None => constant,
            });
        }
        let [first, mut grown] = [first?, turn.index].map(|term| self.wide(inst, term, made));
        if times != 1 {
            let times = self.number(inst, (times.cast_unsigned(), Type::U64), made);
            grown = self.binary(inst, (BinaryOp::Mul, [grown, times], Type::U64), made);
        }
        Some(self.binary(inst, (BinaryOp::Add, [first, grown], Type::U64), made))
    }

    /// Whether a value is the same in each turn of a loop.
    fn stays(&self, value: Value, the_loop: Inst, depth: u32) -> bool {
        let position = |inst: Inst| self.positions.get(&inst).copied();
        let inst = match self.function.values[value].def {
            ValueDef::Param(_) => return true,
            ValueDef::Index(other) => return position(other) < position(the_loop),
            ValueDef::Inst(inst) => inst,
        };
        let Some(at) = position(inst) else {
            // Put in by this pass.
            return false;
        };
        if Some(at) < position(the_loop) {
            return true;
        }
        let stays = |value| depth < MAX_DEPTH && self.stays(value, the_loop, depth + 1);
        match self.function.insts[inst].data {
            InstData::Binary { args: [a, b], .. } => stays(a) && stays(b),
            InstData::Cast { arg } => stays(arg),
            InstData::Const(_) => true,
            _ => false,
        }
    }

    /// What a number of 32 bits is the sum of.
    fn sum(&mut self, value: Value, depth: u32) -> Sum {
        if let Some(sum) = self.sums.get(&value) {
            return sum.clone();
        }
        let sum = self.sum_of(value, depth);
        self.sums.insert(value, sum.clone());
        sum
    }

    fn sum_of(&mut self, value: Value, depth: u32) -> Sum {
        if let Some(constant) = self.known(value) {
            return Sum::constant(constant);
        }
        let of_itself = |promises: &mut Self| Sum::of(promises.number_of(value, depth), value);
        let ValueDef::Inst(inst) = self.function.values[value].def else {
            return of_itself(self);
        };
        match self.function.insts[inst].data {
            _ if depth == MAX_DEPTH => of_itself(self),
            InstData::Cast { arg } if self.is_word(arg) => self.sum(arg, depth + 1),
            InstData::Binary {
                op: op @ (BinaryOp::Add | BinaryOp::Sub),
                args: [a, b],
            } => {
                let times = if op == BinaryOp::Add { 1 } else { u32::MAX };
                let (a, b) = (self.sum(a, depth + 1), self.sum(b, depth + 1));
                a.plus(&b, times)
            }
            InstData::Binary {
                op: BinaryOp::Mul,
                args: [a, b],
            } => match (self.known(a), self.known(b)) {
                (Some(times), _) => Sum::default().plus(&self.sum(b, depth + 1), times),
                (_, Some(times)) => Sum::default().plus(&self.sum(a, depth + 1), times),
                _ => of_itself(self),
            },
            _ => of_itself(self),
        }
    }

    /// The value that stands for all that are the same operation of the same.
    fn number_of(&mut self, value: Value, depth: u32) -> Value {
        let ValueDef::Inst(inst) = self.function.values[value].def else {
            return value;
        };
        if depth >= MAX_DEPTH {
            return value;
        }
        let ty = self.function.type_of(value);
        let number = match self.function.insts[inst].data {
            InstData::Const(_) => match self.known(value) {
                Some(known) => Number::Known(known, ty),
                None => return value,
            },
            InstData::Binary { op, args } => {
                Number::Binary(op, args.map(|arg| self.number_of(arg, depth + 1)), ty)
            }
            InstData::Cast { arg } => Number::Cast(self.number_of(arg, depth + 1), ty),
            _ => return value,
        };
        *self.numbers.entry(number).or_insert(value)
    }

    /// A constant of 32 bits.
    fn known(&self, value: Value) -> Option<u32> {
        match self.function.constant(value)? {
            Constant::Int(known) if self.is_word(value) => Some(known as u32),
            Constant::Zero if self.is_word(value) => Some(0),
            _ => None,
        }
    }

    fn select(&mut self, inst: Inst, to: Value) {
        if let InstData::SliceIndex { index, .. } | InstData::ElementPtr { index, .. } =
            &mut self.function.insts[inst].data
        {
            *index = to;
        }
    }

    fn put(&mut self, at: Inst, (data, ty): (InstData, Type), made: &mut Vec<Inst>) -> Value {
        let location = self.function.insts[at].location;
        let inst = self.function.new_inst(data, ty, location);
        made.push(inst);
        let value = self.function.insts[inst].result;
        value.expect("the operation has a result, of a type that is not unit")
    }

    fn number(&mut self, at: Inst, (number, ty): (u64, Type), made: &mut Vec<Inst>) -> Value {
        let constant = Constant::Int(number.into());
        self.put(at, (InstData::Const(constant), ty), made)
    }

    fn binary(
        &mut self,
        at: Inst,
        (op, args, ty): (BinaryOp, [Value; 2], Type),
        made: &mut Vec<Inst>,
    ) -> Value {
        self.put(at, (InstData::Binary { op, args }, ty), made)
    }

    fn cast(&mut self, at: Inst, (arg, ty): (Value, Type), made: &mut Vec<Inst>) -> Value {
        match self.function.type_of(arg) == ty {
            true => arg,
            false => self.put(at, (InstData::Cast { arg }, ty), made),
        }
    }

    /// A number of 32 bits as one of 64, whatever its sign; one of 64 as it is.
    fn wide(&mut self, at: Inst, value: Value, made: &mut Vec<Inst>) -> Value {
        if !self.is_word(value) {
            return value;
        }
        let unsigned = self.cast(at, (value, Type::U32), made);
        self.cast(at, (unsigned, Type::U64), made)
    }
}
