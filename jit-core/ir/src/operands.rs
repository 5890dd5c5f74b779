//! What operations ask of their operands: asked by the verifier, and by who rewrites the IR.
//!
//! An operand's type is its own affair (an address may be in any memory, a number of any width) or it is
//! decided by what the operand goes to: a variable, a place in memory, a part, a parameter, a result.
//! [`Function::operand_types`] lists the latter. Who changes the types of values asks it afterwards which
//! operands no longer fit, and the verifier asks nothing else about them.

use std::fmt;

use smallvec::SmallVec;

use super::function::{Function, Value};
use super::inst::{BinaryOp, InstData, UnaryOp};
use super::module::Module;
use super::types::{AddressSpace, Type};

/// An operand whose type is decided by what it goes to.
#[derive(Copy, Clone, Debug)]
pub struct OperandType<'m> {
    /// The operand's position among the operands, in the order of [`InstData::map_operands`].
    pub position: usize,
    /// The operand.
    pub value: Value,
    /// The type that it must have.
    pub ty: Type,
    /// What the operand goes to.
    pub role: OperandRole<'m>,
}

/// What an operand goes to, or is; displays as a message begins.
#[derive(Copy, Clone, Debug)]
pub enum OperandRole<'m> {
    /// What a decision is made on.
    Condition,
    /// Which of a `select`'s choices.
    Choice(u32),
    /// The right one of two operands.
    Second,
    /// Which part of what is constructed.
    Part(u32),
    /// The part that is replaced.
    Inserted,
    /// A variable.
    Variable,
    /// The place of a store.
    Place,
    /// The number of elements of a slice.
    Length,
    /// What an atomic store writes.
    Stored,
    /// What an atomic applies to its place.
    AtomicOperand,
    /// What a compare-and-swap expects.
    Expected,
    /// What a compare-and-swap writes.
    New,
    /// A parameter of a function.
    Argument {
        /// The parameter's name.
        param: &'m str,
        /// The function's name.
        callee: &'m str,
    },
    /// The first index of a loop.
    Start,
    /// The bound of a loop.
    End,
    /// The increment of a loop.
    Step,
    /// The result of the function of this name.
    Result(&'m str),
}

impl fmt::Display for OperandRole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            OperandRole::Condition => f.write_str("the condition"),
            OperandRole::Choice(0) => f.write_str("the choice"),
            OperandRole::Choice(_) => f.write_str("the other choice"),
            OperandRole::Second => f.write_str("the second operand"),
            OperandRole::Part(i) => write!(f, "part {i}"),
            OperandRole::Inserted => f.write_str("the part"),
            OperandRole::Variable => f.write_str("the variable"),
            OperandRole::Place => f.write_str("the place"),
            OperandRole::Length => f.write_str("the length"),
            OperandRole::Stored => f.write_str("the value"),
            OperandRole::AtomicOperand => f.write_str("the operand"),
            OperandRole::Expected => f.write_str("the expected value"),
            OperandRole::New => f.write_str("the new value"),
            OperandRole::Argument { param, callee } => write!(f, "`{param}` of `{callee}`"),
            OperandRole::Start => f.write_str("the start"),
            OperandRole::End => f.write_str("the end"),
            OperandRole::Step => f.write_str("the step"),
            OperandRole::Result(function) => write!(f, "the result of `{function}`"),
        }
    }
}

/// Some operands of an instruction, with the types they must have.
pub type OperandTypes<'m> = SmallVec<[OperandType<'m>; 4]>;

impl Function {
    /// The operands of `data`, an instruction of this function of `module` whose result is of type
    /// `result` (unit: it has none), whose types are decided by what they go to. Where that has no such
    /// type (a field that a struct lacks), or the type depends on arguments of a call, the operand is
    /// left out.
    // flat match
    pub fn operand_types<'m>(
        &'m self,
        module: &'m Module,
        data: &InstData,
        result: Type,
    ) -> OperandTypes<'m> {
        let types = &module.types;
        let ty = |value: Value| self.type_of(value);
        let pointee = |ptr: Value| types.as_pointer(ty(ptr)).map(|(pointee, ..)| pointee);
        let mut list = OperandTypes::new();
        let mut want = |position: usize, value: Value, wanted: Option<Type>, role| {
            let of_type = |ty| OperandType {
                position,
                value,
                ty,
                role,
            };
            list.extend(wanted.map(of_type));
        };
        match *data {
            InstData::Binary { args: [a, b], .. } | InstData::Compare { args: [a, b], .. } => {
                want(1, b, Some(ty(a)), OperandRole::Second);
            }
            InstData::Select {
                cond,
                if_true,
                if_false,
            } => {
                let chosen = (result != Type::UNIT).then_some(result);
                want(0, cond, Some(Type::BOOL), OperandRole::Condition);
                want(1, if_true, chosen, OperandRole::Choice(0));
                want(2, if_false, chosen, OperandRole::Choice(1));
            }
            InstData::Construct { ref parts } => {
                for (i, &part) in parts.iter().enumerate() {
                    let role = OperandRole::Part(i as u32);
                    want(i, part, types.part(result, i as u32), role);
                }
            }
            InstData::Insert {
                aggregate,
                index,
                value,
            } => {
                let part = types.part(ty(aggregate), index);
                want(1, value, part, OperandRole::Inserted);
            }
            InstData::VarSet(var, value) => {
                let wanted = self.vars.get(var).map(|var| var.ty);
                want(0, value, wanted, OperandRole::Variable);
            }
            InstData::Store { ptr, value, .. } => want(1, value, pointee(ptr), OperandRole::Place),
            InstData::SliceNew { len, .. } => {
                let length = types.as_slice(result).map(|(_, wide)| match wide {
                    true => Type::U64,
                    false => Type::U32,
                });
                want(1, len, length, OperandRole::Length);
            }
            InstData::AtomicStore { ptr, value, .. } => {
                want(1, value, pointee(ptr), OperandRole::Stored);
            }
            InstData::AtomicRmw { ptr, value, .. } => {
                want(1, value, pointee(ptr), OperandRole::AtomicOperand);
            }
            InstData::AtomicCas {
                ptr, expected, new, ..
            } => {
                want(1, expected, pointee(ptr), OperandRole::Expected);
                want(2, new, pointee(ptr), OperandRole::New);
            }
            InstData::Intrinsic { id, ref args } => {
                let row = module.intrinsics.get(id);
                let params = row.map_or(&[][..], |row| row.params);
                for (position, (&arg, pattern)) in args.iter().zip(params).enumerate() {
                    let wanted = pattern.address_type(types, ty(arg));
                    let role = OperandRole::Argument {
                        param: "an address",
                        callee: row.map_or("", |row| row.name),
                    };
                    want(position, arg, wanted, role);
                }
            }
            InstData::Call {
                callee, ref args, ..
            } => {
                let Some(callee) = module.functions.get(callee) else {
                    return list;
                };
                for (i, (param, &arg)) in callee.params.iter().zip(args).enumerate() {
                    let wanted = callee.values.get(param.value).map(|value| value.ty);
                    let wanted = wanted.filter(|ty| !types.is_generic(*ty));
                    let role = OperandRole::Argument {
                        param: &param.name,
                        callee: &callee.name,
                    };
                    want(i, arg, wanted, role);
                }
            }
            InstData::If { cond, .. } | InstData::Assume { cond, .. } => {
                want(0, cond, Some(Type::BOOL), OperandRole::Condition);
            }
            InstData::Assert { cond, values, .. } => {
                want(0, cond, Some(Type::BOOL), OperandRole::Condition);
                if let Some([left, right]) = values {
                    want(2, right, Some(ty(left)), OperandRole::Second);
                }
            }
            InstData::For {
                index,
                start,
                end,
                step,
                ..
            } => {
                let counted = Some(ty(index));
                want(0, start, counted, OperandRole::Start);
                want(1, end, counted, OperandRole::End);
                want(2, step, counted, OperandRole::Step);
            }
            InstData::Return { value: Some(value) } => {
                want(0, value, Some(self.result), OperandRole::Result(&self.name));
            }
            InstData::Const(_)
            | InstData::ConstParam(_)
            | InstData::Unary { .. }
            | InstData::Cast { .. }
            | InstData::Bitcast { .. }
            | InstData::Extract { .. }
            | InstData::VarGet(_)
            | InstData::Load { .. }
            | InstData::AtomicLoad { .. }
            | InstData::PtrOffset { .. }
            | InstData::FieldPtr { .. }
            | InstData::ElementPtr { .. }
            | InstData::SpaceCast { .. }
            | InstData::SliceLen { .. }
            | InstData::SlicePtr { .. }
            | InstData::SliceIndex { .. }
            | InstData::SharedAddr(_)
            | InstData::DynamicShared
            | InstData::LocalAlloc
            | InstData::GlobalAddr(_)
            | InstData::Hidden(_)
            | InstData::Print { .. }
            | InstData::Barrier
            | InstData::Fence { .. }
            | InstData::Loop { .. }
            | InstData::Break { .. }
            | InstData::Continue { .. }
            | InstData::Return { value: None } => {}
        }
        list
    }
}

impl InstData {
    /// The address whose memory the result points into, too, for what computes an address from
    /// another. A bit cast does if both sides are pointers; a space cast does not keep the space.
    pub fn address_base(&self) -> Option<Value> {
        match *self {
            InstData::PtrOffset { ptr: base, .. }
            | InstData::FieldPtr { ptr: base, .. }
            | InstData::ElementPtr { ptr: base, .. }
            | InstData::SliceNew { ptr: base, .. }
            | InstData::SlicePtr { slice: base }
            | InstData::SliceIndex { slice: base, .. }
            | InstData::Bitcast { arg: base } => Some(base),
            _ => None,
        }
    }

    /// The address whose memory the result points into, whatever the address space of the result.
    pub fn same_memory(&self) -> Option<Value> {
        match *self {
            InstData::SpaceCast { arg } => Some(arg),
            _ => self.address_base(),
        }
    }

    /// The address of the struct or array of which it gives the address of a part.
    pub fn whole(&self) -> Option<Value> {
        match *self {
            InstData::FieldPtr { ptr, .. } | InstData::ElementPtr { ptr, .. } => Some(ptr),
            _ => None,
        }
    }

    /// The address of a load that is not atomic.
    pub fn loaded(&self) -> Option<Value> {
        match *self {
            InstData::Load { ptr, .. } => Some(ptr),
            _ => None,
        }
    }

    /// The address and the value of a store that is not atomic.
    pub fn stored(&self) -> Option<(Value, Value)> {
        match *self {
            InstData::Store { ptr, value, .. } => Some((ptr, value)),
            _ => None,
        }
    }

    /// The address of an atomic, which is the first operand.
    pub fn atomic_address(&self) -> Option<Value> {
        match *self {
            InstData::AtomicLoad { ptr, .. }
            | InstData::AtomicStore { ptr, .. }
            | InstData::AtomicRmw { ptr, .. }
            | InstData::AtomicCas { ptr, .. } => Some(ptr),
            _ => None,
        }
    }
}

/// The types that both operands, or the one, of an operator can have.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Takes {
    /// Integers and floats.
    Numbers,
    /// Integers.
    Integers,
    /// Integers and `bool`.
    Bits,
}

impl Takes {
    /// The types in words.
    pub const fn words(self) -> &'static str {
        match self {
            Takes::Numbers => "numbers",
            Takes::Integers => "integers",
            Takes::Bits => "integers or bools",
        }
    }
}

impl UnaryOp {
    /// The types that it is defined on.
    pub const fn takes(self) -> Takes {
        match self {
            UnaryOp::Neg => Takes::Numbers,
            UnaryOp::Not => Takes::Bits,
        }
    }
}

impl BinaryOp {
    /// The types that it is defined on.
    pub const fn takes(self) -> Takes {
        match self {
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Div
            | BinaryOp::Rem
            | BinaryOp::Min
            | BinaryOp::Max => Takes::Numbers,
            BinaryOp::Shl | BinaryOp::Shr => Takes::Integers,
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => Takes::Bits,
        }
    }
}

impl AddressSpace {
    /// Whether there are atomics in this memory.
    pub fn has_atomics(self) -> bool {
        use AddressSpace::{Generic, Global, Shared};
        matches!(self, Generic | Global | Shared)
    }
}
