//! The numbers and addresses that values are made of.

use super::{ArrayLen, Scalar, Type, TypeData, TypeTable};

/// A leaf of a type: where it lies in memory, and what it is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LeafType {
    /// Offset in bytes from the start of the value.
    pub offset: u64,
    /// What the leaf is.
    pub kind: LeafKind,
}

/// What a leaf is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum LeafKind {
    /// A number or a bool.
    Scalar(Scalar),
    /// An address.
    Address,
    /// The length of a slice, an integer of this type. In memory it takes 8 bytes whatever its type.
    Length(Scalar),
}

impl LeafType {
    /// Size in memory, in bytes.
    pub fn bytes(self) -> u32 {
        match self.kind {
            LeafKind::Scalar(scalar) => scalar.bytes(),
            LeafKind::Address | LeafKind::Length(_) => 8,
        }
    }

    /// Whether the leaf is a `bool`.
    pub fn is_bool(self) -> bool {
        self.scalar().is_some_and(Scalar::is_bool)
    }

    /// The type of the number, unless it is an address.
    pub fn scalar(self) -> Option<Scalar> {
        match self.kind {
            LeafKind::Scalar(scalar) | LeafKind::Length(scalar) => Some(scalar),
            LeafKind::Address => None,
        }
    }
}

impl TypeTable {
    /// The leaves of a type, in memory order. What is open until specialization has none. Ask
    /// [`TypeTable::leaf_count`] first where a type may be of any size.
    pub fn leaves(&self, ty: Type) -> Vec<LeafType> {
        let mut leaves = Vec::new();
        self.collect_leaves(ty, 0, &mut leaves);
        leaves
    }

    /// The number of leaves of a type; `u64::MAX` stands for all that are more.
    pub fn leaf_count(&self, ty: Type) -> u64 {
        match *self.data(ty) {
            TypeData::Unit | TypeData::Param(_) => 0,
            TypeData::Scalar(_) | TypeData::Pointer { .. } => 1,
            TypeData::Slice { .. } => 2,
            TypeData::Vector { lanes, .. } => lanes.into(),
            TypeData::Array { element, len } => match len {
                ArrayLen::Known(len) => self.leaf_count(element).saturating_mul(len),
                ArrayLen::Param(_) => 0,
            },
            TypeData::Struct(id) => {
                let fields = self.structs[id].fields.iter();
                fields
                    .map(|(_, field)| self.leaf_count(*field))
                    .fold(0, u64::saturating_add)
            }
        }
    }

    /// Whether a type is a scalar that is `taken`, or made of nothing else. What is open until specialization may be.
    pub(crate) fn is_made_of(&self, ty: Type, taken: &impl Fn(Scalar) -> bool) -> bool {
        match *self.data(ty) {
            TypeData::Param(_) => true,
            TypeData::Scalar(scalar)
            | TypeData::Vector {
                element: scalar, ..
            } => taken(scalar),
            TypeData::Array { element, .. } => self.is_made_of(element, taken),
            TypeData::Struct(id) => {
                let mut fields = self.structs[id].fields.iter();
                fields.all(|(_, field)| self.is_made_of(*field, taken))
            }
            TypeData::Unit | TypeData::Pointer { .. } | TypeData::Slice { .. } => false,
        }
    }

    fn collect_leaves(&self, ty: Type, offset: u64, leaves: &mut Vec<LeafType>) {
        let mut leaf = |offset, kind| leaves.push(LeafType { offset, kind });
        match *self.data(ty) {
            TypeData::Unit | TypeData::Param(_) => {}
            TypeData::Scalar(scalar) => leaf(offset, LeafKind::Scalar(scalar)),
            TypeData::Pointer { .. } => leaf(offset, LeafKind::Address),
            TypeData::Slice { wide, .. } => {
                let length = if wide { Scalar::U64 } else { Scalar::U32 };
                leaf(offset, LeafKind::Address);
                leaf(offset + 8, LeafKind::Length(length));
            }
            TypeData::Vector { element, lanes } => {
                for lane in 0..u64::from(lanes) {
                    let at = offset + lane * u64::from(element.bytes());
                    leaf(at, LeafKind::Scalar(element));
                }
            }
            TypeData::Array { element, len } => match (len, self.layout(element)) {
                (ArrayLen::Known(len), Some(layout)) if layout.size > 0 => {
                    for i in 0..len {
                        self.collect_leaves(element, offset + i * layout.size, leaves);
                    }
                }
                (ArrayLen::Known(_) | ArrayLen::Param(_), _) => {}
            },
            TypeData::Struct(id) => {
                let Some((_, offsets)) = self.struct_layout(id) else {
                    return;
                };
                for ((_, field), at) in self.structs[id].fields.iter().zip(offsets) {
                    self.collect_leaves(*field, offset + at, leaves);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{AddressSpace, StructData, TypeParam};
    use super::*;
    use crate::Entity as _;

    #[test]
    fn leaves_lie_as_the_layout_says() {
        let mut types = TypeTable::new();
        let pair = types.array(Type::U16, 2);
        let lanes = types.vector(Scalar::F32, 2);
        let slice = types.slice(Type::F64, AddressSpace::Global, true);
        let address = types.pointer(Type::F64, AddressSpace::Shared, true);
        let fields = [Type::BOOL, pair, lanes, slice, address];
        let whole = types.intern_struct(StructData::new(
            "S".to_owned(),
            fields.map(|ty| ("field".to_owned(), ty)).into(),
        ));
        let number = LeafKind::Scalar;
        let expected = [
            (0, number(Scalar::Bool), 1),
            (2, number(Scalar::U16), 2),
            (4, number(Scalar::U16), 2),
            (8, number(Scalar::F32), 4),
            (12, number(Scalar::F32), 4),
            (16, LeafKind::Address, 8),
            (24, LeafKind::Length(Scalar::U32), 8),
            (32, LeafKind::Address, 8),
        ];
        let leaves = types.leaves(whole);
        let found: Vec<_> = leaves
            .iter()
            .map(|leaf| (leaf.offset, leaf.kind, leaf.bytes()))
            .collect();
        assert_eq!(found, expected);
        assert_eq!(types.leaf_count(whole), expected.len() as u64);
    }

    #[test]
    fn what_is_open_or_empty_has_no_leaves() {
        let mut types = TypeTable::new();
        let none = types.array(Type::F32, 0);
        let nothing_often = types.array(none, u64::MAX);
        let open = types.intern(TypeData::Param(TypeParam::from_index(0)));
        for ty in [Type::UNIT, none, nothing_often, open] {
            assert_eq!(types.leaves(ty), []);
            assert_eq!(types.leaf_count(ty), 0);
        }
        let many = types.array(Type::F32, u64::MAX);
        let more = types.array(many, 2);
        assert_eq!(types.leaf_count(more), u64::MAX);
    }
}
