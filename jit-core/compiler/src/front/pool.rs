//! What a description refers to that only rustc can tell: types, constants, functions.

use crate::build::KernelBuilder;
use crate::ir::{Constant, Scope, Type, TypeTable};
use crate::value::{DeviceType, KernelValue};

use super::operand::Kind;
use super::types::InKernels;
use super::{Front, InlineCall, Operand, Receiver, TypeOf};

/// What a call of a function calls, with the type arguments that are written.
pub type CallFn = for<'k> fn(Front<'k>, &[Type], &[Operand<'k>]) -> Operand<'k>;
/// What a call with closures calls.
pub type InlineFn = for<'k> fn(Front<'k>, &InlineCall<'_, 'k>) -> Operand<'k>;

type TypeFn = fn(&mut TypeTable) -> Type;

/// An entry of a function's pool. Copying one is all there is to it, so that the array of them costs
/// rustc no cleaning up.
#[derive(Copy, Clone)]
pub struct Pooled(pub(super) Entry);

#[derive(Copy, Clone)]
pub(super) enum Entry {
    /// A type of the host.
    Type(TypeFn),
    /// A scalar.
    Scalar(TypeFn, Constant),
    /// Several scalars that are one value, which the builder keeps under a number.
    Aggregate(TypeFn, usize),
    /// A reference to an array of that many elements, or to its elements as a slice.
    Elements(ElementsEntry),
    /// A constant that a reference could be to, in a function that returns references.
    NotAlone,
    /// A device function.
    Function(CallFn),
    /// A device function that takes closures.
    Inline(InlineFn),
    /// A method.
    Method(MethodEntry),
    /// An index of so many numbers.
    Index(ElementEntry),
    /// An operator that is the IR's own.
    Primitive,
}

/// Elements of the host behind a reference, which the builder keeps under a number.
#[derive(Copy, Clone)]
pub(super) struct ElementsEntry {
    element: TypeFn,
    number: usize,
    len: usize,
    is_slice: bool,
}

/// What finds the element for several indices.
#[derive(Copy, Clone)]
pub(super) struct ElementEntry {
    /// The field that has the elements.
    pub(super) field: &'static str,
    /// How many indices there are.
    pub(super) count: usize,
    /// Gives the number of the element.
    pub(super) call: CallFn,
}

/// A method of a pool.
#[derive(Copy, Clone)]
pub(super) struct MethodEntry {
    pub(super) receiver: Receiver,
    /// Whether the method may assign something that is not its own.
    pub(super) changes: bool,
    pub(super) call: CallFn,
}

/// A constant of the host that kernels can hold.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a value that kernels can hold",
    note = "numbers, `bool`, fixed arrays and `#[derive(KernelType)]` structs are; a function is passed \
            on as a closure that calls it, `|x| f(x)`"
)]
pub trait Named: Sized {
    /// The constant's entry in a pool.
    fn pooled(self, front: Front<'_>) -> Pooled;

    /// The entry in the pool of a function that returns references, in which a constant is a number: any other would be
    /// memory of the function's own, which ends with it.
    fn pooled_alone(self, front: Front<'_>) -> Pooled {
        match self.pooled(front) {
            scalar @ Pooled(Entry::Scalar(..)) => scalar,
            _ => Pooled(Entry::NotAlone),
        }
    }
}

impl<T: DeviceType> Named for T {
    fn pooled(self, front: Front<'_>) -> Pooled {
        let mut scalars = Vec::new();
        self.scalars(&mut scalars);
        let is_scalar = front.builder.with_types(T::ir_type).as_scalar().is_some();
        Pooled(match scalars.as_slice() {
            [constant] if is_scalar => Entry::Scalar(T::ir_type, *constant),
            _ => Entry::Aggregate(T::ir_type, front.builder.keep_constants(scalars)),
        })
    }
}

impl<T: DeviceType> Named for &[T] {
    fn pooled(self, front: Front<'_>) -> Pooled {
        elements(self, true, front)
    }
}

impl<T: DeviceType, const N: usize> Named for &[T; N] {
    fn pooled(self, front: Front<'_>) -> Pooled {
        elements(self, false, front)
    }
}

fn elements<T: DeviceType>(all: &[T], is_slice: bool, front: Front<'_>) -> Pooled {
    let mut scalars = Vec::new();
    for element in all {
        element.scalars(&mut scalars);
    }
    Pooled(Entry::Elements(ElementsEntry {
        element: T::ir_type,
        number: front.builder.keep_constants(scalars),
        len: all.len(),
        is_slice,
    }))
}

/// The scope of an atomic or a fence, by its number in [`Scope::ALL`].
impl Named for Scope {
    fn pooled(self, _: Front<'_>) -> Pooled {
        Pooled(Entry::Scalar(u32::ir_type, Constant::Int(self as i128)))
    }
}

impl Pooled {
    /// A type.
    pub const fn ty<T: KernelValue>() -> Pooled {
        Pooled(Entry::Type(T::type_in))
    }

    /// The type that rustc has inferred.
    pub const fn type_of<T: KernelValue>(_: &TypeOf<T>) -> Pooled {
        Pooled::ty::<T>()
    }

    /// The type that rustc has inferred, which may be made of references.
    pub const fn made_of<T: InKernels<How>, How>(_: &TypeOf<T>) -> Pooled {
        Pooled(Entry::Type(T::type_in))
    }

    /// The type of a const parameter in the IR, where lengths have 64 bits.
    pub const fn const_type<T: DeviceType>() -> Pooled {
        fn of<T: DeviceType>(types: &mut TypeTable) -> Type {
            match std::any::TypeId::of::<T>() == std::any::TypeId::of::<usize>() {
                true => Type::U64,
                false => T::ir_type(types),
            }
        }
        Pooled(Entry::Type(of::<T>))
    }

    /// A function, by what calls it.
    pub const fn call(call: CallFn) -> Pooled {
        Pooled(Entry::Function(call))
    }

    /// A function that takes closures, by what describes it.
    pub const fn inline(describe: InlineFn) -> Pooled {
        Pooled(Entry::Inline(describe))
    }

    /// A method, by what calls it; with `changes` it may assign something that is not its own.
    pub const fn method(receiver: Receiver, changes: bool, call: CallFn) -> Pooled {
        Pooled(Entry::Method(MethodEntry {
            receiver,
            changes,
            call,
        }))
    }

    /// An index of so many numbers, of which `call` makes the number of an element of a field.
    pub const fn index(field: &'static str, count: usize, call: CallFn) -> Pooled {
        Pooled(Entry::Index(ElementEntry { field, count, call }))
    }

    /// An operator of numbers, which the IR has itself.
    pub const fn primitive() -> Pooled {
        Pooled(Entry::Primitive)
    }
}

impl<'k> Front<'k> {
    /// The operand that an entry is: a constant.
    pub(super) fn constant(self, entry: Entry) -> Operand<'k> {
        let b = self.builder;
        let of = |ty: TypeFn| b.in_scope(b.with_types(ty));
        match entry {
            Entry::Scalar(ty, constant) => Operand::new(b, Kind::Literal(constant, of(ty))),
            Entry::Aggregate(ty, number) => {
                let mut scalars = b.kept_constants(number).into_iter();
                Operand::new(b, Kind::Value(b.whole(of(ty), &mut scalars)))
            }
            Entry::Elements(elements) => self.constant_elements(elements),
            Entry::NotAlone => self.refuse(
                "a device function that returns a reference has no constants but numbers, as its own memory ends with it; \
                 take this one as a parameter",
            ),
            _ => self.unit(),
        }
    }

    /// A reference to elements of the host: to memory of the thread, which becomes a table in constant memory.
    fn constant_elements(self, elements: ElementsEntry) -> Operand<'k> {
        let b = self.builder;
        if elements.len == 0 {
            return self.refuse("a constant slice of a kernel has at least one element");
        }
        let element = b.in_scope(b.with_types(elements.element));
        let array = b.array(element, elements.len as u64);
        let mut scalars = b.kept_constants(elements.number).into_iter();
        let whole = Operand::new(b, Kind::Value(b.whole(array, &mut scalars)));
        let place = whole.spill(whole.read());
        match elements.is_slice {
            true => place.whole_slice(false),
            false => place.address(false),
        }
    }

    /// A constant of the host.
    pub fn constant_of(self, constant: impl Named) -> Operand<'k> {
        self.constant(constant.pooled(self).0)
    }

    /// The type that an entry is.
    pub(super) fn type_of(self, entry: Entry) -> Type {
        match entry {
            Entry::Type(ty) => self.builder.in_scope(self.builder.with_types(ty)),
            _ => Type::UNIT,
        }
    }
}

impl KernelBuilder {
    /// The IR type of a Rust type that kernels can hold.
    pub fn device_type<T: KernelValue>(&self) -> Type {
        self.in_scope(self.with_types(T::type_in))
    }
}
