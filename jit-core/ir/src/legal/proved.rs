//! What is known of a legal module, by whoever does not check it again.

use std::ops::{Deref, Range};

use super::Legal;
use crate::{Address, ArrayLen, Layout, Scalar, Type, TypeTable};

/// What a proof says is there.
///
/// Nobody checks a legal module again: what makes code of one asks for the thing itself, and has no way
/// on without it. The panic is for the day when the verifier has let pass what it should not: a compile
/// thread turns it into an error that names the kernel, so that the process and its other kernels live
/// on. Code that runs elsewhere asks for an [`Option`].
pub trait Proved<T> {
    /// The thing, of which `what` is the name in the panic: `a loop around the jump`.
    fn proved(self, what: &str) -> T;
}

impl<T> Proved<T> for Option<T> {
    #[track_caller]
    fn proved(self, what: &str) -> T {
        match self {
            Some(thing) => thing,
            None => panic!("{what} is not there, though the module is legal"),
        }
    }
}

/// Of what is kept for each loop around a `break` or `continue`, from the outside in, that of the loop it
/// goes to.
#[track_caller]
pub fn jumped_to<T>(loops: &[T], depth: u32) -> &T {
    let outwards = loops.iter().rev().nth(depth as usize);
    outwards.proved("a loop around the jump")
}

/// The types of a legal module: those of its values, where an operation says what they are.
///
/// Each question takes a type that the verifier has seen to be of the kind, and panics at others, as
/// [`Proved`] says. What may be or not be is asked of the [`TypeTable`], which this is besides.
#[derive(Copy, Clone, Debug)]
pub struct LegalTypes<'m>(&'m TypeTable);

impl Legal {
    /// The types of the legal module.
    pub fn legal_types(&self) -> LegalTypes<'_> {
        LegalTypes(&self.module.types)
    }
}

impl Deref for LegalTypes<'_> {
    type Target = TypeTable;

    fn deref(&self) -> &TypeTable {
        self.0
    }
}

impl LegalTypes<'_> {
    #[track_caller]
    fn proved<T>(self, ty: Type, kind: &str, found: Option<T>) -> T {
        match found {
            Some(found) => found,
            None => {
                let name = self.display(ty);
                panic!("type `{name}` is not {kind}, though the module is legal")
            }
        }
    }

    /// The scalar that a type is.
    #[track_caller]
    pub fn scalar_of(self, ty: Type) -> Scalar {
        self.proved(ty, "a scalar", ty.as_scalar())
    }

    /// Size and alignment, which every type of a value has.
    #[track_caller]
    pub fn layout_of(self, ty: Type) -> Layout {
        self.proved(ty, "of a known size", self.layout(ty))
    }

    /// What a pointer or a slice points at, and how.
    #[track_caller]
    pub fn address_of(self, ty: Type) -> Address {
        self.proved(ty, "an address", self.address(ty))
    }

    /// What a pointer points at.
    #[track_caller]
    pub fn pointee_of(self, ty: Type) -> Type {
        let pointee = self.as_pointer(ty).map(|(pointee, ..)| pointee);
        self.proved(ty, "a pointer", pointee)
    }

    /// What a slice points at, and whether its length takes 64 bits.
    #[track_caller]
    pub fn slice_of(self, ty: Type) -> (Address, bool) {
        self.proved(ty, "a slice", self.as_slice(ty))
    }

    /// The element type and the length of an array.
    #[track_caller]
    pub fn array_of(self, ty: Type) -> (Type, u64) {
        let array = match self.as_array(ty) {
            Some((element, ArrayLen::Known(len))) => Some((element, len)),
            Some((_, ArrayLen::Param(_))) | None => None,
        };
        self.proved(ty, "an array", array)
    }

    /// The type and the number of an array's elements or a vector's lanes.
    #[track_caller]
    pub fn indexed_of(self, ty: Type) -> (Type, u64) {
        let indexed = match self.as_indexed(ty) {
            Some((element, ArrayLen::Known(len))) => Some((element, len)),
            Some((_, ArrayLen::Param(_))) | None => None,
        };
        self.proved(ty, "an array or a vector", indexed)
    }

    /// Where a field of a struct lies, in bytes from its start.
    #[track_caller]
    pub fn field_offset(self, ty: Type, field: u32) -> u64 {
        let offset = self.field_offsets(ty);
        let offset = offset.and_then(|offsets| offsets.get(field as usize).copied());
        self.proved(ty, "a struct with the field", offset)
    }

    /// Where a field, element or lane is among the leaves of the whole.
    #[track_caller]
    pub fn leaves_of_part(self, whole: Type, index: u32) -> Range<usize> {
        let part = |index| self.proved(whole, "made of the part", self.part(whole, index));
        let count = |index| self.leaves(part(index)).len();
        let start = (0..index).map(count).sum();
        start..start + count(index)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use expect_test::expect;

    use super::*;
    use crate::row_panic::message;
    use crate::{AddressSpace, StructData};

    fn panic_of<T>(ask: impl FnOnce() -> T) -> String {
        let payload = catch_unwind(AssertUnwindSafe(|| drop(ask())));
        message(&*payload.expect_err("it is not there"))
    }

    #[test]
    fn each_kind_of_type_answers() {
        let mut types = TypeTable::new();
        let pair = types.array(Type::U16, 2);
        let address = types.pointer(pair, AddressSpace::Shared, true);
        let slice = types.slice(Type::F64, AddressSpace::Global, false);
        let fields = [("a", Type::BOOL), ("b", pair), ("c", slice)];
        let whole = types.intern_struct(StructData::new(
            "S".to_owned(),
            fields.map(|(name, ty)| (name.to_owned(), ty)).into(),
        ));
        let legal = LegalTypes(&types);
        assert_eq!(legal.scalar_of(Type::F32), Scalar::F32);
        assert_eq!(legal.layout_of(pair).size, 4);
        assert_eq!(legal.pointee_of(address), pair);
        assert_eq!(legal.address_of(address).space, AddressSpace::Shared);
        assert_eq!(legal.slice_of(slice).0.pointee, Type::F64);
        assert_eq!(legal.array_of(pair), (Type::U16, 2));
        assert_eq!(*jumped_to(&["outer", "inner"], 1), "outer");
        assert_eq!([0, 1, 2].map(|i| legal.field_offset(whole, i)), [0, 2, 8]);
        assert_eq!(
            [0, 1, 2].map(|i| legal.leaves_of_part(whole, i)),
            [0..1, 1..3, 3..5]
        );
    }

    #[test]
    fn what_no_proof_says_is_a_panic_that_names_it() {
        let mut types = TypeTable::new();
        let pair = types.array(Type::U16, 2);
        let slice = types.slice(pair, AddressSpace::Global, true);
        let legal = LegalTypes(&types);
        let panics = [
            panic_of(|| legal.scalar_of(slice)),
            panic_of(|| legal.layout_of(Type::UNIT)),
            panic_of(|| legal.pointee_of(slice)),
            panic_of(|| legal.address_of(pair)),
            panic_of(|| legal.slice_of(pair)),
            panic_of(|| legal.array_of(slice)),
            panic_of(|| legal.field_offset(pair, 0)),
            panic_of(|| legal.leaves_of_part(pair, 2)),
            panic_of(|| *jumped_to(&["outer", "inner"], 2)),
        ];
        expect![[r#"
            type `slice<global, mut [u16; 2]>` is not a scalar, though the module is legal
            type `()` is not of a known size, though the module is legal
            type `slice<global, mut [u16; 2]>` is not a pointer, though the module is legal
            type `[u16; 2]` is not an address, though the module is legal
            type `[u16; 2]` is not a slice, though the module is legal
            type `slice<global, mut [u16; 2]>` is not an array, though the module is legal
            type `[u16; 2]` is not a struct with the field, though the module is legal
            type `[u16; 2]` is not made of the part, though the module is legal
            a loop around the jump is not there, though the module is legal"#]]
        .assert_eq(&panics.join("\n"));
    }
}
