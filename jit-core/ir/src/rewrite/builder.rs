//! One new instruction at a cursor.

use super::cursor::Cursor;
use crate::{
    AtomicOp, BinaryOp, CompareOp, Constant, FuncId, GlobalId, HiddenParam, InstData, IntrinsicDef,
    Location, Ordering, Region, Scalar, Scope, SharedVar, Type, UnaryOp, Unroll, Value, ValueList,
    Var,
};

/// Where an instruction is put.
#[derive(Copy, Clone, Debug)]
pub(super) enum Place {
    Before,
    After,
    End(Region),
    Instead,
}

/// A constant with its type, as Rust's numbers are.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Literal {
    /// The value of the constant.
    pub constant: Constant,
    /// The type of which it is one.
    pub ty: Type,
}

macro_rules! literals {
    ($($rust:ty, $scalar:ident, |$n:ident| $constant:expr;)*) => {$(
        impl From<$rust> for Literal {
            fn from($n: $rust) -> Literal {
                Literal {
                    constant: $constant,
                    ty: Type::scalar(Scalar::$scalar),
                }
            }
        }
    )*};
}

literals! {
    bool, Bool, |n| Constant::Bool(n);
    i8, I8, |n| Constant::Int(n.into());
    i16, I16, |n| Constant::Int(n.into());
    i32, I32, |n| Constant::Int(n.into());
    i64, I64, |n| Constant::Int(n.into());
    u8, U8, |n| Constant::Int(n.into());
    u16, U16, |n| Constant::Int(n.into());
    u32, U32, |n| Constant::Int(n.into());
    u64, U64, |n| Constant::Int(n.into());
    half::f16, F16, |n| Constant::Float(n.to_f64());
    half::bf16, BF16, |n| Constant::Float(n.to_f64());
    f32, F32, |n| Constant::Float(n.into());
    f64, F64, |n| Constant::Float(n);
}

/// Builds one instruction at a [`Cursor`], by the method that is called.
///
/// The type of the result is [what the operands say](crate::Function::result_type); where they leave a choice
/// the method takes it. The instruction is said to come from the line of the one that the cursor stands at.
/// Operands that an operation does not take are not refused here: the verifier tells them, after the hook.
///
/// ```
/// use kiln_ir::{Type, ValueDef};
///
/// # let text = "module m specialized
/// # kernel @k(%0 x: slice<generic, mut f64>, %1 i: u32) {
/// #   %2: ptr<generic, mut f64> = slice_index %0, %1
/// #   %3: f64 = load %2
/// #   store %2, %3
/// # }
/// # ";
/// # let mut module = kiln_ir::parse(text, &|_| None).unwrap();
/// // What is loaded is cut to 24 bits.
/// module.rewrite_each(|at| {
///     if let (Some(_), Some(value)) = (at.data().loaded(), at.result()) {
///         let cut = at.ins_after().cast(value, Type::F32);
///         let again = at.ins_after().cast(cut, Type::F64);
///         let ValueDef::Inst(cast) = at.function().values[cut].def else { return };
///         at.replace_uses_except(value, again, &[cast]);
///     }
/// });
/// assert!(kiln_ir::verify(&module).is_ok());
/// ```
#[derive(Debug)]
#[must_use = "the method that is called builds the instruction"]
pub struct InstBuilder<'c, 'm> {
    cursor: &'c mut Cursor<'m>,
    place: Place,
    location: Location,
}

impl<'c, 'm> InstBuilder<'c, 'm> {
    pub(super) fn new(cursor: &'c mut Cursor<'m>, place: Place) -> InstBuilder<'c, 'm> {
        let function = cursor.function();
        let here = cursor.inst().map(|inst| function.insts[inst].location);
        let location = here.unwrap_or(function.location);
        InstBuilder {
            cursor,
            place,
            location,
        }
    }

    /// Says which line the instruction comes from.
    pub fn at(self, location: Location) -> InstBuilder<'c, 'm> {
        InstBuilder { location, ..self }
    }

    /// Any operation. `chosen` is the type of the result where the operands leave a choice, and unit where
    /// they do not. The value that it defines, if it does.
    pub fn inst(self, data: InstData, chosen: Type) -> Option<Value> {
        let ty = self.cursor.result_type(&data, chosen);
        self.cursor.put(self.place, data, ty, self.location)
    }

    /// An operation that defines a value.
    fn value(self, data: InstData, chosen: Type) -> Value {
        // Only a wrong operand leaves none; the verifier tells of it, and of this.
        let nothing = crate::Entity::from_index(u32::MAX as usize - 1);
        self.inst(data, chosen).unwrap_or(nothing)
    }

    /// An operation whose operands say what it gives.
    fn decided(self, data: InstData) -> Value {
        self.value(data, Type::UNIT)
    }

    /// An operation that defines nothing.
    fn effect(self, data: InstData) {
        self.inst(data, Type::UNIT);
    }

    /// A number of Rust's: `constant(1.0f32)`, `constant(7u64)`, `constant(true)`.
    pub fn constant(self, number: impl Into<Literal>) -> Value {
        let Literal { constant, ty } = number.into();
        self.constant_of(ty, constant)
    }

    /// A constant of a type.
    pub fn constant_of(self, ty: Type, constant: Constant) -> Value {
        self.value(InstData::Const(constant), ty)
    }

    /// The zero of a type: 0, false, all fields zero, a null pointer.
    pub fn zero(self, ty: Type) -> Value {
        self.constant_of(ty, Constant::Zero)
    }

    /// An operation on one value.
    pub fn unary(self, op: UnaryOp, arg: Value) -> Value {
        self.decided(InstData::Unary { op, arg })
    }

    /// An operation on two values of one type.
    pub fn binary(self, op: BinaryOp, left: Value, right: Value) -> Value {
        let args = [left, right];
        self.decided(InstData::Binary { op, args })
    }

    /// A comparison of two values of one type; a `bool`.
    pub fn compare(self, op: CompareOp, left: Value, right: Value) -> Value {
        let args = [left, right];
        self.decided(InstData::Compare { op, args })
    }

    /// `if_true` where `cond` is true, else `if_false`.
    pub fn select(self, cond: Value, if_true: Value, if_false: Value) -> Value {
        self.decided(InstData::Select {
            cond,
            if_true,
            if_false,
        })
    }

    /// A number as another scalar type, as Rust's `as` does.
    pub fn cast(self, arg: Value, ty: Type) -> Value {
        self.value(InstData::Cast { arg }, ty)
    }

    /// A value's bits as another type of equal size.
    pub fn bitcast(self, arg: Value, ty: Type) -> Value {
        self.value(InstData::Bitcast { arg }, ty)
    }

    /// A struct, array or vector of type `ty` from all its parts.
    pub fn construct(self, ty: Type, parts: &[Value]) -> Value {
        let parts = ValueList::from_slice(parts);
        self.value(InstData::Construct { parts }, ty)
    }

    /// A field, element or lane.
    pub fn extract(self, aggregate: Value, index: u32) -> Value {
        self.decided(InstData::Extract { aggregate, index })
    }

    /// The whole with one part replaced.
    pub fn insert(self, aggregate: Value, index: u32, value: Value) -> Value {
        self.decided(InstData::Insert {
            aggregate,
            index,
            value,
        })
    }

    /// The value of a variable.
    pub fn var_get(self, var: Var) -> Value {
        self.decided(InstData::VarGet(var))
    }

    /// Assigns a variable.
    pub fn var_set(self, var: Var, value: Value) {
        self.effect(InstData::VarSet(var, value));
    }

    /// The value at an address.
    pub fn load(self, ptr: Value) -> Value {
        let volatile = false;
        self.decided(InstData::Load { ptr, volatile })
    }

    /// Writes a value at an address.
    pub fn store(self, ptr: Value, value: Value) {
        self.effect(InstData::Store {
            ptr,
            value,
            volatile: false,
        });
    }

    /// The address so many elements after a pointer, unchecked.
    pub fn ptr_offset(self, ptr: Value, index: Value) -> Value {
        self.decided(InstData::PtrOffset { ptr, index })
    }

    /// The address of a field.
    pub fn field_ptr(self, ptr: Value, field: u32) -> Value {
        self.decided(InstData::FieldPtr { ptr, field })
    }

    /// The address of an element of an array, checked.
    pub fn element_ptr(self, ptr: Value, index: Value) -> Value {
        self.decided(InstData::ElementPtr {
            ptr,
            index,
            checked: true,
        })
    }

    /// A pointer or slice as one of type `ty`: in another address space, or read-only.
    pub fn space_cast(self, arg: Value, ty: Type) -> Value {
        self.value(InstData::SpaceCast { arg }, ty)
    }

    /// A slice from an address and a length, wide if that is a `u64`.
    pub fn slice_new(self, ptr: Value, len: Value) -> Value {
        self.decided(InstData::SliceNew { ptr, len })
    }

    /// The number of elements of a slice, as `u32` (not of a wide one) or `u64`.
    pub fn slice_len(self, slice: Value, ty: Type) -> Value {
        self.value(InstData::SliceLen { slice }, ty)
    }

    /// The address of the first element of a slice.
    pub fn slice_ptr(self, slice: Value) -> Value {
        self.decided(InstData::SlicePtr { slice })
    }

    /// The address of an element of a slice, checked.
    pub fn slice_index(self, slice: Value, index: Value) -> Value {
        self.decided(InstData::SliceIndex {
            slice,
            index,
            checked: true,
        })
    }

    /// The address of a shared variable.
    pub fn shared_addr(self, var: SharedVar) -> Value {
        self.decided(InstData::SharedAddr(var))
    }

    /// All dynamic shared memory, as a slice of type `ty`.
    pub fn dynamic_shared(self, ty: Type) -> Value {
        self.value(InstData::DynamicShared, ty)
    }

    /// Memory of the thread's own, as a pointer of type `ty` into local memory.
    pub fn local_alloc(self, ty: Type) -> Value {
        self.value(InstData::LocalAlloc, ty)
    }

    /// The address of a constant of the module.
    pub fn global_addr(self, global: GlobalId) -> Value {
        self.decided(InstData::GlobalAddr(global))
    }

    /// The value that a launch passes besides the kernel's arguments.
    pub fn hidden(self, hidden: HiddenParam) -> Value {
        self.decided(InstData::Hidden(hidden))
    }

    /// An atomic read.
    pub fn atomic_load(self, ptr: Value, ordering: Ordering, scope: Scope) -> Value {
        self.decided(InstData::AtomicLoad {
            ptr,
            ordering,
            scope,
        })
    }

    /// An atomic write.
    pub fn atomic_store(self, ptr: Value, value: Value, ordering: Ordering, scope: Scope) {
        self.effect(InstData::AtomicStore {
            ptr,
            value,
            ordering,
            scope,
        });
    }

    /// An atomic read-modify-write, relaxed, among all threads of the device; the old value.
    pub fn atomic_rmw(self, op: AtomicOp, ptr: Value, value: Value) -> Value {
        self.decided(InstData::AtomicRmw {
            op,
            ptr,
            value,
            ordering: Ordering::Relaxed,
            scope: Scope::Device,
        })
    }

    /// An atomic compare-and-swap, relaxed, among all threads of the device; the old value.
    pub fn atomic_cas(self, ptr: Value, expected: Value, new: Value) -> Value {
        self.decided(InstData::AtomicCas {
            ptr,
            expected,
            new,
            ordering: Ordering::Relaxed,
            scope: Scope::Device,
        })
    }

    /// Waits for all threads of the block.
    pub fn barrier(self) {
        self.effect(InstData::Barrier);
    }

    /// Ends the thread by a fault if a condition does not hold; what comes behind may be compiled as if it does.
    pub fn assume(self, cond: Value) {
        self.effect(InstData::Assume {
            cond,
            text: Box::default(),
            checked: true,
        });
    }

    /// Ends the thread by a fault if a condition does not hold, in kernels without checks, too; the error has the
    /// message, and behind it two numbers or bools of one type.
    pub fn assert(self, cond: Value, message: &str, values: Option<[Value; 2]>) {
        self.effect(InstData::Assert {
            cond,
            message: message.into(),
            values,
        });
    }

    /// Prints numbers and bools on the host, by a [`Format`](crate::printed::Format).
    pub fn print(self, format: &str, values: &[Value]) {
        self.effect(InstData::Print {
            format: format.into(),
            values: values.into(),
            to_stderr: false,
        });
    }

    /// Orders accesses to memory.
    pub fn fence(self, ordering: Ordering, scope: Scope) {
        self.effect(InstData::Fence { ordering, scope });
    }

    /// Calls a device function that is not generic, as all of a specialized module are. Its result, if it
    /// gives one.
    pub fn call(self, callee: FuncId, args: &[Value]) -> Option<Value> {
        let call = InstData::Call {
            callee,
            type_args: Vec::new(),
            const_args: Vec::new(),
            args: ValueList::from_slice(args),
        };
        self.inst(call, Type::UNIT)
    }

    /// Calls an intrinsic, whose row is entered in the module. Its result, if it gives one.
    pub fn intrinsic(self, def: &'static IntrinsicDef, args: &[Value]) -> Option<Value> {
        let id = self.cursor.intrinsic(def);
        let args = ValueList::from_slice(args);
        self.inst(InstData::Intrinsic { id, args }, Type::UNIT)
    }

    /// Executes the region that it gives, which is empty yet, when `cond` is true.
    pub fn if_(self, cond: Value) -> Region {
        let then_region = self.cursor.new_region();
        self.effect(InstData::If {
            cond,
            then_region,
            else_region: None,
        });
        then_region
    }

    /// Executes one of the two regions that it gives, which are empty yet: the first when `cond` is true.
    pub fn if_else(self, cond: Value) -> (Region, Region) {
        let (then_region, other) = (self.cursor.new_region(), self.cursor.new_region());
        self.effect(InstData::If {
            cond,
            then_region,
            else_region: Some(other),
        });
        (then_region, other)
    }

    /// Executes the region that it gives, which is empty yet, until that leaves it.
    pub fn loop_(self) -> Region {
        let body = self.cursor.new_region();
        self.effect(InstData::Loop { body });
        body
    }

    /// Executes the region that it gives, which is empty yet, with an index from `start` to below `end`.
    pub fn for_(self, start: Value, end: Value, step: Value) -> (Value, Region) {
        let body = self.cursor.new_region();
        let ty = self.cursor.type_of(start);
        let index = self.cursor.function_mut().new_index(ty);
        self.effect(InstData::For {
            index,
            start,
            end,
            step,
            body,
            unroll: Unroll::Auto,
        });
        (index, body)
    }

    /// Leaves the loop so many loops out.
    pub fn break_(self, depth: u32) {
        self.effect(InstData::Break { depth });
    }

    /// Goes on with the loop so many loops out.
    pub fn continue_(self, depth: u32) {
        self.effect(InstData::Continue { depth });
    }

    /// Leaves the function, with its result if it has one; in a kernel, ends the thread.
    pub fn return_(self, value: Option<Value>) {
        self.effect(InstData::Return { value });
    }
}
