//! Instructions: what there is, and the facts about each that analyses ask for.
//!
//! An instruction reads values, may hold regions, and defines at most one value. [`InstData`] is
//! the whole list; operand visiting and effects are the only places outside the verifier, the
//! printer, the parser and the backends that enumerate it.

use std::hash::{Hash, Hasher};
use std::mem::{Discriminant, discriminant};

use smallvec::SmallVec;

use super::function::{Region, Value, Var};
use super::module::{FuncId, GlobalId, HiddenParam, IntrinsicId};
use super::types::{ConstParam, Scalar, Type};
use super::{FastMath, Location, Processor, SharedVar};
use crate::all_variants;

/// A short list of operands.
pub type ValueList = SmallVec<[Value; 4]>;

/// A constant scalar; its type is the type of the value it defines.
#[derive(Copy, Clone, Debug)]
pub enum Constant {
    /// `bool`
    Bool(bool),
    /// An integer, or an exact integer in a float type or in a generic type.
    Int(i128),
    /// A float, rounded to nearest-even when the type is narrower than `f64`.
    Float(f64),
    /// The zero of any type: 0, 0.0, false, all fields zero, a null pointer.
    Zero,
}

impl Constant {
    /// The constant as a kind and a number, a float as its bits.
    fn identity(self) -> (Discriminant<Constant>, i128) {
        let bits = match self {
            Constant::Bool(bool) => bool.into(),
            Constant::Int(number) => number,
            Constant::Float(float) => float.to_bits().into(),
            Constant::Zero => 0,
        };
        (discriminant(&self), bits)
    }
}

impl PartialEq for Constant {
    /// Floats compare by their bits, so that NaN equals itself and 0.0 differs from -0.0.
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Constant {}

impl Hash for Constant {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

/// Operations with one operand of the result's type.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum UnaryOp {
    /// Negation; integers wrap.
    Neg,
    /// Bitwise complement of an integer, logical complement of a bool.
    Not,
}

/// Operations with two operands of the result's type. See the module doc of [`crate`] for
/// what overflow, a zero divisor and a large shift amount do.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum BinaryOp {
    /// Addition.
    Add,
    /// Subtraction.
    Sub,
    /// Multiplication.
    Mul,
    /// Division; integers truncate towards zero.
    Div,
    /// Remainder of integer division, with the sign of the dividend.
    Rem,
    /// The smaller; of floats the number when the other is NaN (IEEE 754-2008 minNum).
    Min,
    /// The larger; of floats the number when the other is NaN.
    Max,
    /// Bitwise and, logical and.
    And,
    /// Bitwise or, logical or.
    Or,
    /// Bitwise exclusive or, inequality of bools.
    Xor,
    /// Shift left by the second operand modulo the width.
    Shl,
    /// Shift right, arithmetic for signed integers, by the second operand modulo the width.
    Shr,
}

/// What floats have of [`BinaryOp`].
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum FloatOp {
    /// Addition.
    Add,
    /// Subtraction.
    Sub,
    /// Multiplication.
    Mul,
    /// Division.
    Div,
    /// The smaller.
    Min,
    /// The larger.
    Max,
}

impl BinaryOp {
    /// The operation on floats; `None` where a legal module has it on integers and bools only.
    pub fn on_floats(self) -> Option<FloatOp> {
        match self {
            BinaryOp::Add => Some(FloatOp::Add),
            BinaryOp::Sub => Some(FloatOp::Sub),
            BinaryOp::Mul => Some(FloatOp::Mul),
            BinaryOp::Div => Some(FloatOp::Div),
            BinaryOp::Min => Some(FloatOp::Min),
            BinaryOp::Max => Some(FloatOp::Max),
            BinaryOp::Rem
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::Shr => None,
        }
    }
}

/// Comparisons; the result is a `bool`.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum CompareOp {
    /// Equal; false when a float operand is NaN.
    Eq,
    /// Not equal; true when a float operand is NaN.
    Ne,
    /// Less; false when a float operand is NaN, like the following.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
}

/// Atomic read-modify-write operations (PTX ISA, "atom"), of numbers, an exchange also of `u64x2`. The result is the
/// old value.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum AtomicOp {
    /// Addition, of integers and floats.
    Add,
    /// The smaller; of floats the number when the other is NaN.
    Min,
    /// The larger; of floats the number when the other is NaN.
    Max,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Exchange, of numbers and of `u64x2`.
    Exchange,
    /// Of a `u32`: one more, or 0 where it was the operand or more.
    Increment,
    /// Of a `u32`: one less, or the operand where it was 0 or more than that.
    Decrement,
}

/// What floats of 32 and 64 bits have of [`AtomicOp`] in a legal module.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum FloatAtomic {
    /// Addition.
    Add,
    /// Exchange.
    Exchange,
}

impl AtomicOp {
    /// The operation on floats; `None` if there is none.
    pub fn on_floats(self) -> Option<FloatAtomic> {
        match self {
            AtomicOp::Add => Some(FloatAtomic::Add),
            AtomicOp::Exchange => Some(FloatAtomic::Exchange),
            AtomicOp::Min
            | AtomicOp::Max
            | AtomicOp::And
            | AtomicOp::Or
            | AtomicOp::Xor
            | AtomicOp::Increment
            | AtomicOp::Decrement => None,
        }
    }

    /// Whether floats have the operation, too.
    pub fn takes_floats(self) -> bool {
        match self {
            AtomicOp::Add | AtomicOp::Min | AtomicOp::Max | AtomicOp::Exchange => true,
            AtomicOp::And
            | AtomicOp::Or
            | AtomicOp::Xor
            | AtomicOp::Increment
            | AtomicOp::Decrement => false,
        }
    }

    /// Whether `u64x2` has the operation, too.
    pub fn takes_words(self) -> bool {
        match self {
            AtomicOp::Exchange => true,
            AtomicOp::Add
            | AtomicOp::Min
            | AtomicOp::Max
            | AtomicOp::And
            | AtomicOp::Or
            | AtomicOp::Xor
            | AtomicOp::Increment
            | AtomicOp::Decrement => false,
        }
    }

    /// Whether the number goes round at the operand: then it is a `u32`.
    pub fn goes_round(self) -> bool {
        match self {
            AtomicOp::Increment | AtomicOp::Decrement => true,
            AtomicOp::Add
            | AtomicOp::Min
            | AtomicOp::Max
            | AtomicOp::And
            | AtomicOp::Or
            | AtomicOp::Xor
            | AtomicOp::Exchange => false,
        }
    }

    /// Whether numbers of a type can be changed so.
    pub fn is_on(self, scalar: Scalar) -> bool {
        match self.goes_round() {
            true => scalar.is_int() && !scalar.is_signed_int() && scalar.bits() == 32,
            false => !scalar.is_bool() && (!scalar.is_float() || self.takes_floats()),
        }
    }

    /// Whether every target has the operation on a type. Any other becomes a loop around compare-and-swap before
    /// a module is [legal](super::Phase::Legal).
    pub fn is_native_on(self, scalar: Scalar) -> bool {
        match scalar.is_float() {
            true => self.on_floats().is_some() && !scalar.is_half(),
            false => scalar.is_int() && matches!(scalar.bits(), 32 | 64),
        }
    }

    /// Whether code for a processor may have the operation on a type: what is [native](Self::is_native_on)
    /// everywhere, and on NVIDIA's GPUs additions of 16-bit floats (PTX ISA, "atom", `.add.noftz`).
    pub fn is_native_for(self, scalar: Scalar, processor: Processor) -> bool {
        let from = if scalar == Scalar::BF16 { 90 } else { 70 };
        let newer = matches!(processor, Processor::Ptx { sm } if sm >= from);
        self.is_native_on(scalar) || (self == AtomicOp::Add && scalar.is_half() && newer)
    }

    /// Whether [some processor](Self::is_native_for) has the operation on a type.
    pub fn may_be_native_on(self, scalar: Scalar) -> bool {
        self.is_native_for(scalar, Processor::Ptx { sm: u32::MAX })
    }
}

/// Which threads an atomic or a fence is ordered with (PTX ISA, "Scope"), from few to many.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Scope {
    /// The threads of the block (PTX `.cta`).
    Block,
    /// All threads of the device (PTX `.gpu`).
    Device,
    /// Host and all devices (PTX `.sys`).
    System,
}

/// Memory order of an atomic or a fence (PTX ISA, "Memory Consistency Model").
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Ordering {
    /// Atomic, orders nothing else.
    Relaxed,
    /// Later accesses stay later.
    Acquire,
    /// Earlier accesses stay earlier.
    Release,
    /// Both.
    AcquireRelease,
    /// Both, and all threads of the scope see all operations of this ordering in one order.
    SequentiallyConsistent,
}

// Scopes from few threads to many.
all_variants! {
    UnaryOp { Neg, Not }
    BinaryOp { Add, Sub, Mul, Div, Rem, Min, Max, And, Or, Xor, Shl, Shr }
    CompareOp { Eq, Ne, Lt, Le, Gt, Ge }
    AtomicOp { Add, Min, Max, And, Or, Xor, Exchange, Increment, Decrement }
    Scope { Block, Device, System }
    Ordering { Relaxed, Acquire, Release, AcquireRelease, SequentiallyConsistent }
}

impl Ordering {
    /// Whether what another thread released becomes visible.
    pub fn acquires(self) -> bool {
        !matches!(self, Ordering::Relaxed | Ordering::Release)
    }

    /// Whether earlier writes become visible to a thread that acquires.
    pub fn releases(self) -> bool {
        !matches!(self, Ordering::Relaxed | Ordering::Acquire)
    }

    /// The ordering of a compare-and-swap that has found another value: of the load that it then is.
    pub fn of_load(self) -> Ordering {
        match self {
            Ordering::Relaxed | Ordering::Release => Ordering::Relaxed,
            Ordering::Acquire | Ordering::AcquireRelease => Ordering::Acquire,
            Ordering::SequentiallyConsistent => Ordering::SequentiallyConsistent,
        }
    }
}

/// How a counted loop is to be unrolled.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Unroll {
    /// As the optimizer judges.
    #[default]
    Auto,
    /// Not at all.
    Never,
    /// Completely, when the trip count is known.
    Full,
    /// By this factor.
    By(u32),
}

/// What an instruction does. Types of operands are in the verifier's rule list.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum InstData {
    /// A constant of the result's type.
    Const(Constant),
    /// The value of a const parameter; generic phase only.
    ConstParam(ConstParam),
    /// An operation on one value.
    Unary {
        /// The operation.
        op: UnaryOp,
        /// The operand.
        arg: Value,
    },
    /// An operation on two values of one type.
    Binary {
        /// The operation.
        op: BinaryOp,
        /// Left and right operand.
        args: [Value; 2],
    },
    /// A comparison of two values of one type: numbers, bools for equality, or addresses. Which of two
    /// addresses is less says something only where both are of one allocation.
    Compare {
        /// The comparison.
        op: CompareOp,
        /// Left and right operand.
        args: [Value; 2],
    },
    /// `if_true` or `if_false`, both evaluated.
    Select {
        /// A bool.
        cond: Value,
        /// The result when it is true.
        if_true: Value,
        /// The result when it is false.
        if_false: Value,
    },
    /// Conversion between scalar types with the meaning of Rust's `as`: integers truncate or
    /// extend, floats to integers saturate with NaN to 0, integers and floats to floats round to
    /// nearest-even, bool to a number is 0 or 1.
    Cast {
        /// The value to convert.
        arg: Value,
    },
    /// A value's bits as another scalar, vector or pointer type of equal size.
    Bitcast {
        /// The value to reinterpret.
        arg: Value,
    },
    /// A struct, array or vector from all its parts.
    Construct {
        /// Fields, elements or lanes, in order.
        parts: ValueList,
    },
    /// A part of a struct, array or vector value.
    Extract {
        /// The whole.
        aggregate: Value,
        /// Which field, element or lane.
        index: u32,
    },
    /// The whole with one part replaced.
    Insert {
        /// The whole.
        aggregate: Value,
        /// Which field, element or lane.
        index: u32,
        /// The new part.
        value: Value,
    },
    /// The current value of a mutable variable.
    VarGet(Var),
    /// Assigns a mutable variable.
    VarSet(Var, Value),
    /// Reads the value at an address.
    Load {
        /// The address.
        ptr: Value,
        /// Whether the access must happen exactly as written.
        volatile: bool,
    },
    /// Writes a value at an address.
    Store {
        /// The address; mutable.
        ptr: Value,
        /// What to write.
        value: Value,
        /// Whether the access must happen exactly as written.
        volatile: bool,
    },
    /// The address `index` elements after `ptr`, unchecked.
    PtrOffset {
        /// A pointer to the first of several values.
        ptr: Value,
        /// A count of elements, of any integer type.
        index: Value,
    },
    /// The address of a field.
    FieldPtr {
        /// A pointer to a struct.
        ptr: Value,
        /// Which field.
        field: u32,
    },
    /// The address of an element of a fixed array, or of a lane of a vector.
    ElementPtr {
        /// A pointer to an array or a vector.
        ptr: Value,
        /// Which element or lane, of any integer type.
        index: Value,
        /// Whether an index out of bounds ends the thread with a fault record; otherwise it is
        /// undefined behaviour.
        checked: bool,
    },
    /// An address seen as one of another address space, one of the two generic, or as read-only.
    SpaceCast {
        /// The pointer or slice.
        arg: Value,
    },
    /// A slice from an address and a length.
    SliceNew {
        /// The address of the first element.
        ptr: Value,
        /// The number of elements; `u32`, or `u64` for a wide slice.
        len: Value,
    },
    /// The number of elements: `u32` (narrow slices only) or `u64` (any), by the result type.
    SliceLen {
        /// The slice.
        slice: Value,
    },
    /// The address of the first element.
    SlicePtr {
        /// The slice.
        slice: Value,
    },
    /// The address of an element of a slice.
    SliceIndex {
        /// The slice.
        slice: Value,
        /// Which element, of any integer type.
        index: Value,
        /// As in [`InstData::ElementPtr`].
        checked: bool,
    },
    /// The address of a shared variable.
    SharedAddr(SharedVar),
    /// All the dynamic shared memory of the launch, as a slice of the result's element type.
    DynamicShared,
    /// Memory of this thread for one value of the result's pointee type, uninitialized, living as
    /// long as the function call. One place however often the instruction is executed.
    LocalAlloc,
    /// The address of a constant of the module.
    GlobalAddr(GlobalId),
    /// A value that the launch passes besides its arguments; gone in [`Phase::Legal`](super::Phase::Legal).
    Hidden(HiddenParam),
    /// An atomic read of a scalar.
    AtomicLoad {
        /// The address; global, shared or generic.
        ptr: Value,
        /// The load's ordering; one that does not only release.
        ordering: Ordering,
        /// The threads that the load is ordered with.
        scope: Scope,
    },
    /// An atomic write of a scalar.
    AtomicStore {
        /// The address; mutable, global, shared or generic.
        ptr: Value,
        /// What to write.
        value: Value,
        /// The store's ordering; one that does not acquire only.
        ordering: Ordering,
        /// The threads that the store is ordered with.
        scope: Scope,
    },
    /// An atomic read-modify-write; the result is the old value.
    AtomicRmw {
        /// The operation that combines the old value and the operand.
        op: AtomicOp,
        /// The address; mutable, global, shared or generic.
        ptr: Value,
        /// The operand.
        value: Value,
        /// The ordering of the read-modify-write.
        ordering: Ordering,
        /// The threads that the read-modify-write is ordered with.
        scope: Scope,
    },
    /// An atomic compare-and-swap of an integer or of `u64x2`; the result is the old value.
    AtomicCas {
        /// The address; mutable, global, shared or generic.
        ptr: Value,
        /// What must be there for the swap to happen.
        expected: Value,
        /// What is written then.
        new: Value,
        /// The ordering of the compare-and-swap.
        ordering: Ordering,
        /// The threads that the compare-and-swap is ordered with.
        scope: Scope,
    },
    /// Waits until all threads of the block that have not ended are here, and makes their earlier
    /// writes visible to each other (CUDA guide, `__syncthreads`). See [`InstData::orders_memory`].
    Barrier,
    /// Says that a condition holds wherever control comes here, for the compiler to make use of.
    Assume {
        /// A bool.
        cond: Value,
        /// The condition as it is written, for the error; empty if nobody wrote it.
        text: Box<str>,
        /// Whether the thread ends with a fault record where the condition does not hold; otherwise that is undefined
        /// behaviour.
        checked: bool,
    },
    /// Ends the thread with a fault record where a condition does not hold, in kernels without checks, too.
    Assert {
        /// A bool.
        cond: Value,
        /// What the error says.
        message: Box<str>,
        /// Two numbers of one type, or two bools, that the error tells behind the message.
        values: Option<[Value; 2]>,
    },
    /// Prints a line, or a part of one, on the host, once a call there waits for the launch.
    Print {
        /// A [`Format`](crate::printed::Format) for the values.
        format: Box<str>,
        /// Numbers and bools.
        values: ValueList,
        /// Whether the text is for the standard error output.
        to_stderr: bool,
    },
    /// Orders memory accesses of this thread as seen by the others (CUDA guide, `__threadfence`).
    Fence {
        /// Which accesses of this thread the fence orders.
        ordering: Ordering,
        /// For whom.
        scope: Scope,
    },
    /// Calls a device function.
    Call {
        /// The function that is called.
        callee: FuncId,
        /// The call's type arguments; empty after specialization.
        type_args: Vec<Type>,
        /// The call's const arguments; empty after specialization.
        const_args: Vec<ConstArg>,
        /// The call's arguments.
        args: ValueList,
    },
    /// An operation known by name (see [`super::IntrinsicDef`]).
    Intrinsic {
        /// The row of the intrinsic.
        id: IntrinsicId,
        /// The arguments of the intrinsic.
        args: ValueList,
    },
    /// Executes one of two regions.
    If {
        /// A bool.
        cond: Value,
        /// Executed when it is true.
        then_region: Region,
        /// Executed when it is false.
        else_region: Option<Region>,
    },
    /// Executes a region again and again until a `break` or `return`.
    Loop {
        /// What is repeated.
        body: Region,
    },
    /// Executes a region for `index` = `start`, `start + step`, ... while it is below `end`
    /// (above it, for a negative step). The bounds are read once. A step of zero does nothing,
    /// and an index that would overflow its type ends the loop.
    For {
        /// The induction value, defined in `body`; of the type of the bounds, an integer.
        index: Value,
        /// The first index.
        start: Value,
        /// The bound, not reached.
        end: Value,
        /// The increment.
        step: Value,
        /// What is repeated.
        body: Region,
        /// How to unroll.
        unroll: Unroll,
    },
    /// Leaves the loop `depth` loops out (0 is the innermost). Ends its region.
    Break {
        /// How many loops out.
        depth: u32,
    },
    /// Goes on with the next iteration of the loop `depth` loops out. Ends its region.
    Continue {
        /// How many loops out.
        depth: u32,
    },
    /// Leaves the function; in a kernel, ends the thread. Ends its region.
    Return {
        /// The result, unless the function returns nothing.
        value: Option<Value>,
    },
}

/// A const argument of a call.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum ConstArg {
    /// A number.
    Known(Constant),
    /// A const parameter of the caller.
    Param(ConstParam),
}

/// An instruction in place: what it does, what it defines, where it was built.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct InstNode {
    /// What the instruction does.
    pub data: InstData,
    /// The value it defines.
    pub result: Option<Value>,
    /// What floats of the instruction may do besides rounding.
    pub fast: FastMath,
    /// The line of Rust (or of a `.kir` file) it comes from.
    pub location: Location,
}

/// Visits the operands of an operation, in order: `$data` is borrowed or borrowed mutably, and `$f` is given
/// each operand likewise. One list serves reading and rewriting.
macro_rules! visit_operands {
    ($data:expr, $f:expr) => {
        match $data {
            InstData::Const(_)
            | InstData::ConstParam(_)
            | InstData::VarGet(_)
            | InstData::SharedAddr(_)
            | InstData::DynamicShared
            | InstData::LocalAlloc
            | InstData::GlobalAddr(_)
            | InstData::Hidden(_)
            | InstData::Barrier
            | InstData::Fence { .. }
            | InstData::Loop { .. }
            | InstData::Break { .. }
            | InstData::Continue { .. } => {}
            InstData::Unary { arg, .. }
            | InstData::Cast { arg }
            | InstData::Bitcast { arg }
            | InstData::SpaceCast { arg } => $f(arg),
            InstData::Binary { args, .. } | InstData::Compare { args, .. } => {
                for arg in args {
                    $f(arg);
                }
            }
            InstData::Select {
                cond,
                if_true,
                if_false,
            } => {
                $f(cond);
                $f(if_true);
                $f(if_false);
            }
            InstData::Construct { parts: list }
            | InstData::Print { values: list, .. }
            | InstData::Call { args: list, .. }
            | InstData::Intrinsic { args: list, .. } => {
                for arg in list {
                    $f(arg);
                }
            }
            InstData::Extract { aggregate, .. } => $f(aggregate),
            InstData::Insert {
                aggregate, value, ..
            } => {
                $f(aggregate);
                $f(value);
            }
            InstData::VarSet(_, value) => $f(value),
            InstData::Load { ptr, .. }
            | InstData::AtomicLoad { ptr, .. }
            | InstData::FieldPtr { ptr, .. } => $f(ptr),
            InstData::Store { ptr, value, .. }
            | InstData::AtomicStore { ptr, value, .. }
            | InstData::AtomicRmw { ptr, value, .. } => {
                $f(ptr);
                $f(value);
            }
            InstData::PtrOffset { ptr, index } | InstData::ElementPtr { ptr, index, .. } => {
                $f(ptr);
                $f(index);
            }
            InstData::SliceNew { ptr, len } => {
                $f(ptr);
                $f(len);
            }
            InstData::SliceLen { slice } | InstData::SlicePtr { slice } => $f(slice),
            InstData::SliceIndex { slice, index, .. } => {
                $f(slice);
                $f(index);
            }
            InstData::AtomicCas {
                ptr, expected, new, ..
            } => {
                $f(ptr);
                $f(expected);
                $f(new);
            }
            InstData::If { cond, .. } | InstData::Assume { cond, .. } => $f(cond),
            InstData::Assert { cond, values, .. } => {
                $f(cond);
                if let Some([left, right]) = values {
                    $f(left);
                    $f(right);
                }
            }
            InstData::For {
                start, end, step, ..
            } => {
                $f(start);
                $f(end);
                $f(step);
            }
            InstData::Return { value } => {
                if let Some(value) = value {
                    $f(value);
                }
            }
        }
    };
}

impl InstData {
    /// Calls `f` on every operand, in order. The induction value of a `for` is a definition, not an
    /// operand.
    pub fn for_each_operand(&self, mut f: impl FnMut(Value)) {
        visit_operands!(self, |operand: &Value| f(*operand));
    }

    /// Replaces every operand by what `f` makes of it, in the order of [`InstData::for_each_operand`].
    pub fn map_operands(&mut self, mut f: impl FnMut(Value) -> Value) {
        visit_operands!(self, |operand: &mut Value| *operand = f(*operand));
    }
}
