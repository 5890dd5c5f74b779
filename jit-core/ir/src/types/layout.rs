//! How values lie in memory: as in C on a 64-bit machine.

use super::{ArrayLen, StructId, Type, TypeData, TypeTable};

/// Size and alignment in bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Size, a multiple of `align`.
    pub size: u64,
    /// Alignment, a power of two.
    pub align: u64,
}

impl Layout {
    fn uniform(bytes: u64) -> Layout {
        Layout {
            size: bytes,
            align: bytes.max(1),
        }
    }
}

impl TypeTable {
    /// Size and alignment of a value of type `ty` in memory, or `None` for unit, for a type that
    /// is still generic, and for sizes beyond 2^62 bytes. A slice in memory is an address and a
    /// 64-bit length.
    pub fn layout(&self, ty: Type) -> Option<Layout> {
        match self.data(ty) {
            TypeData::Unit | TypeData::Param(_) => None,
            TypeData::Scalar(s) => Some(Layout::uniform(s.bytes().into())),
            TypeData::Vector { element, lanes } => {
                let size = u64::from(element.bytes()) * u64::from(*lanes);
                Some(Layout {
                    size,
                    align: size.min(16),
                })
            }
            TypeData::Array {
                element,
                len: ArrayLen::Known(n),
            } => {
                let element = self.layout(*element)?;
                let size = element.size.checked_mul(*n).filter(|s| *s < 1 << 62)?;
                Some(Layout {
                    size,
                    align: element.align,
                })
            }
            TypeData::Array { .. } => None,
            TypeData::Struct(id) => self.struct_layout(*id).map(|(layout, _)| layout),
            TypeData::Pointer { .. } => Some(Layout::uniform(8)),
            TypeData::Slice { .. } => Some(Layout { size: 16, align: 8 }),
        }
    }

    /// Layout of a struct and the offset of each field, in bytes.
    pub fn struct_layout(&self, id: StructId) -> Option<(Layout, Vec<u64>)> {
        let mut size: u64 = 0;
        let mut align = self.structs[id].align.max(1);
        let mut offsets = Vec::new();
        for (_, ty) in &self.structs[id].fields {
            let field = self.layout(*ty)?;
            size = size.next_multiple_of(field.align);
            offsets.push(size);
            size = size.checked_add(field.size).filter(|s| *s < 1 << 62)?;
            align = align.max(field.align);
        }
        Some((
            Layout {
                size: size.next_multiple_of(align),
                align,
            },
            offsets,
        ))
    }

    /// The offset of each field of a struct type, in bytes; `None` for other types.
    pub fn field_offsets(&self, ty: Type) -> Option<Vec<u64>> {
        match *self.data(ty) {
            TypeData::Struct(id) => self.struct_layout(id).map(|(_, offsets)| offsets),
            _ => None,
        }
    }

    /// The bytes of a value of type `ty` that are not padding, as ranges from its start.
    pub fn defined_ranges(&self, ty: Type) -> Vec<std::ops::Range<usize>> {
        let mut ranges = Vec::new();
        self.collect_ranges(ty, 0, &mut ranges);
        ranges
    }

    fn collect_ranges(&self, ty: Type, at: u64, ranges: &mut Vec<std::ops::Range<usize>>) {
        match self.data(ty) {
            TypeData::Struct(id) => {
                let Some((_, offsets)) = self.struct_layout(*id) else {
                    return;
                };
                for ((_, field), offset) in self.structs[*id].fields.iter().zip(offsets) {
                    self.collect_ranges(*field, at + offset, ranges);
                }
            }
            TypeData::Array {
                element,
                len: ArrayLen::Known(n),
            } => {
                let Some(layout) = self.layout(*element) else {
                    return;
                };
                if self.is_aggregate(*element) {
                    (0..*n)
                        .for_each(|i| self.collect_ranges(*element, at + i * layout.size, ranges));
                } else {
                    ranges.push(at as usize..(at + n * layout.size) as usize);
                }
            }
            TypeData::Unit
            | TypeData::Scalar(_)
            | TypeData::Vector { .. }
            | TypeData::Array {
                len: ArrayLen::Param(_),
                ..
            }
            | TypeData::Pointer { .. }
            | TypeData::Slice { .. }
            | TypeData::Param(_) => {
                let size = self.layout(ty).map_or(0, |l| l.size);
                ranges.push(at as usize..(at + size) as usize);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Scalar, StructData};
    use super::*;

    #[test]
    fn struct_layout_is_cs() {
        let mut t = TypeTable::new();
        let f4 = t.vector(Scalar::F32, 4);
        let inner = t.array(Type::U16, 3);
        let fields = [("a", Type::U8), ("b", Type::F64), ("c", inner), ("d", f4)];
        let ty = t.intern_struct(StructData::new(
            "S".into(),
            fields.iter().map(|(n, t)| (n.to_string(), *t)).collect(),
        ));
        let TypeData::Struct(id) = *t.data(ty) else {
            panic!("not a struct")
        };
        let (layout, offsets) = t.struct_layout(id).unwrap();
        assert_eq!(offsets, [0, 8, 16, 32]);
        assert_eq!(
            layout,
            Layout {
                size: 48,
                align: 16
            }
        );
    }

    #[test]
    fn an_aligned_struct_is_a_multiple_of_its_alignment_wherever_it_is() {
        let mut t = TypeTable::new();
        let fields = vec![("x".to_owned(), Type::F32), ("y".to_owned(), Type::U8)];
        let inner = t.intern_struct(StructData {
            align: 16,
            ..StructData::new("Inner".into(), fields)
        });
        let whole = Layout {
            size: 16,
            align: 16,
        };
        assert_eq!(t.layout(inner), Some(whole));
        assert_eq!(t.defined_ranges(inner), [0..4, 4..5]);
        let fields = vec![("a".to_owned(), Type::U8), ("b".to_owned(), inner)];
        let outer = t.intern_struct(StructData::new("Outer".into(), fields));
        assert_eq!(t.field_offsets(outer), Some(vec![0, 16]));
        assert_eq!(t.layout(outer).map(|layout| layout.size), Some(32));
    }
}
