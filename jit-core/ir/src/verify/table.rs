//! Rules about types, and what later checks ask about them.
//!
//! A type is made of types entered before it, so one pass over the table computes depth and parts
//! of each from those of its parts, without recursion, however the table was made.

use super::{Checker, MAX_TYPE_BYTES, MAX_TYPE_DEPTH, MAX_TYPE_PARTS};
use crate::{AddressSpace, ArrayLen, Entity, Scalar, StructData, Type, TypeData, TypeTable};

/// What is known about a type of the table.
#[derive(Copy, Clone, Default)]
pub(super) struct TypeFacts {
    /// Levels of nesting.
    depth: u32,
    /// Parts and parts of parts, itself included; elements of an array once.
    parts: u64,
    /// Numbers and addresses of a value.
    pub(super) scalars: u64,
    /// One more than the largest type parameter in it.
    pub(super) type_params: u32,
    /// One more than the largest const parameter in it.
    pub(super) const_params: u32,
}

impl TypeFacts {
    /// Whether a type or const parameter occurs in the type.
    pub(super) fn is_generic(self) -> bool {
        self.type_params > 0 || self.const_params > 0
    }

    /// Takes the facts of a part, of which there are `count` in a value.
    fn include(&mut self, part: TypeFacts, count: u64) {
        self.depth = self.depth.max(part.depth.saturating_add(1));
        self.parts = self.parts.saturating_add(part.parts);
        let scalars = part.scalars.saturating_mul(count);
        self.scalars = self.scalars.saturating_add(scalars);
        self.type_params = self.type_params.max(part.type_params);
        self.const_params = self.const_params.max(part.const_params);
    }
}

/// Checks the type table and enters the facts of each type. Whether all is well.
pub(super) fn check(checker: &mut Checker<'_>) -> bool {
    let types = &checker.module.types;
    let mut facts: Vec<TypeFacts> = Vec::new();
    let mut wrong = Vec::new();
    for (ty, data) in types.iter() {
        let this = describe(types, ty, data, &facts);
        facts.push(*this.as_ref().unwrap_or(&TypeFacts::default()));
        wrong.extend(this.err().map(|message| (ty, message)));
    }
    if wrong.is_empty() {
        // Only now can sizes be asked for.
        let sizes = types.iter().zip(&facts);
        wrong.extend(sizes.filter_map(|((ty, _), &this)| Some((ty, check_size(types, ty, this)?))));
    }
    checker.types = facts;
    let well = wrong.is_empty();
    for (ty, message) in wrong {
        checker.report_module(format!("type `{}` {message}", types.display(ty)));
    }
    well
}

/// The facts of one type from those of the types before it.
// flat match
fn describe(
    types: &TypeTable,
    ty: Type,
    data: &TypeData,
    before: &[TypeFacts],
) -> Result<TypeFacts, String> {
    let part = |part: Type| {
        let facts = before.get(part.index()).copied();
        let facts = facts.filter(|_| part != Type::UNIT);
        facts.ok_or_else(|| "is made of nothing, or of a type entered after it".to_owned())
    };
    let mut this = TypeFacts {
        depth: 1,
        parts: 1,
        ..TypeFacts::default()
    };
    match *data {
        TypeData::Unit => {}
        TypeData::Scalar(_) => this.scalars = 1,
        TypeData::Vector { element, lanes } => {
            this.scalars = lanes.into();
            if element == Scalar::Bool || !matches!(lanes, 2 | 4 | 8 | 16) {
                return Err("is no vector; vectors have 2, 4, 8 or 16 lanes of a number".into());
            }
        }
        TypeData::Array { element, len } => {
            let count = match len {
                ArrayLen::Known(0) => return Err("has no elements".to_owned()),
                ArrayLen::Known(count) => count,
                ArrayLen::Param(param) => {
                    this.const_params = one_more(param);
                    1
                }
            };
            this.include(part(element)?, count);
        }
        TypeData::Struct(_) => {
            let Some(StructData { fields, align, .. }) = types.as_struct(ty) else {
                return Err("is a struct of another module".to_owned());
            };
            if !align.is_power_of_two() || *align > StructData::MAX_ALIGN {
                return Err(format!(
                    "is aligned to {align} bytes; structs are to 1, 2, 4, 8 or 16"
                ));
            }
            if fields.is_empty() {
                return Err("has no fields".to_owned());
            }
            for (_, field) in fields {
                this.include(part(*field)?, 1);
            }
        }
        TypeData::Pointer {
            pointee: target,
            space,
            mutable,
        }
        | TypeData::Slice {
            element: target,
            space,
            mutable,
            ..
        } => {
            this.include(part(target)?, 0);
            this.scalars = if types.as_pointer(ty).is_some() { 1 } else { 2 };
            let fixed = matches!(space, AddressSpace::Constant | AddressSpace::Param);
            if mutable && fixed {
                return Err(format!("is mutable, and {} memory is not", space.name()));
            }
        }
        TypeData::Param(param) => {
            this.type_params = one_more(param);
            this.scalars = 1;
        }
    }
    Ok(this)
}

/// Saturates: `from_index` lets an entity hold the largest number in release builds.
fn one_more(entity: impl Entity) -> u32 {
    u32::try_from(entity.index())
        .unwrap_or(u32::MAX)
        .saturating_add(1)
}

/// Whether a type is too large, once its nesting is known to be small enough to ask.
fn check_size(types: &TypeTable, ty: Type, facts: TypeFacts) -> Option<String> {
    if facts.depth > MAX_TYPE_DEPTH {
        return Some(format!("nests more than {MAX_TYPE_DEPTH} deep"));
    }
    if facts.parts > MAX_TYPE_PARTS {
        return Some(format!("has more than {MAX_TYPE_PARTS} parts"));
    }
    let concrete = !facts.is_generic() && ty != Type::UNIT;
    let fits = types.layout(ty).is_some_and(|l| l.size <= MAX_TYPE_BYTES);
    (concrete && !fits).then(|| format!("has more than {MAX_TYPE_BYTES} bytes"))
}
