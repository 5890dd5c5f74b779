//! What a row takes and gives for a type, as its patterns say.

use kiln::core::ir::{AddressSpace, IntrinsicDef, Known, Meaning, Scalar, TypePattern};
use kiln::prelude::*;

/// A value in memory: a number, or a vector of so many.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Form {
    pub(super) scalar: Scalar,
    /// 1 for a number.
    pub(super) lanes: usize,
}

impl Form {
    fn number(scalar: Scalar) -> Form {
        Form { scalar, lanes: 1 }
    }

    /// The type in a kernel; of a vector that kernels have no name for that of a number, which no row takes in its place.
    pub(super) fn ty(self, k: &KernelBuilder) -> Type {
        match (self.scalar, self.lanes) {
            (Scalar::F16, 2) => k.ty::<F16x2>(),
            (Scalar::BF16, 2) => k.ty::<BF16x2>(),
            (Scalar::F32, 2) => k.ty::<F32x2>(),
            (Scalar::F64, 2) => k.ty::<F64x2>(),
            (Scalar::U64, 2) => k.ty::<U64x2>(),
            (Scalar::F32, 4) => k.ty::<F32x4>(),
            (Scalar::I32, 4) => k.ty::<I32x4>(),
            (Scalar::U32, 4) => k.ty::<U32x4>(),
            (scalar, _) => Type::scalar(scalar),
        }
    }
}

/// What is passed for a parameter.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Param {
    /// A value of each thread's.
    Value(Form),
    /// The address of a value of each thread's, which may be written.
    Place(Form, bool),
    /// The lanes that come to it.
    Members,
    /// The width of a shuffle.
    Width(u32),
}

/// A row and the type that it is called with.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The type that the row leaves open; of no meaning if it leaves none.
    pub(super) open: Scalar,
    pub(super) params: Vec<Param>,
    pub(super) results: Vec<Form>,
}

/// The widths of shuffles, which take turns.
const WIDTHS: [u32; 6] = [32, 16, 8, 4, 2, 1];

/// The types that a pattern leaves open.
fn open_types(pattern: TypePattern) -> Option<Vec<Scalar>> {
    match pattern {
        TypePattern::OneOf(list) | TypePattern::Each(list) => Some(list.to_vec()),
        TypePattern::Vector(inner, _)
        | TypePattern::Array(inner, _)
        | TypePattern::Pointer { to: inner, .. } => open_types(*inner),
        _ => None,
    }
}

/// The types that the row's parameters leave open; one of no meaning if they leave none.
pub(super) fn opens(def: &IntrinsicDef) -> Vec<Scalar> {
    let open = def.params.iter().find_map(|&pattern| open_types(pattern));
    open.unwrap_or(vec![Scalar::U32])
}

/// Whether a row is a shuffle.
pub(super) fn is_shuffle(def: &IntrinsicDef) -> bool {
    matches!(def.known, Some(Known::Shuffle(_)))
}

/// Whether the lanes of a warp come to a row together, which says which: with its first parameter.
pub(super) fn has_members(def: &IntrinsicDef) -> bool {
    let first = def.params.first() == Some(&TypePattern::Exact(Scalar::U32));
    first && (def.effects.meets() || matches!(def.meaning, Meaning::Warp(_)))
}

/// A row's call for each of its types.
///
/// # Errors
/// A parameter or a result that no launch here has.
pub(super) fn calls(def: &IntrinsicDef) -> Result<Vec<Call>, String> {
    let opens = opens(def).into_iter().enumerate();
    opens.map(|(turn, open)| call(def, turn, open)).collect()
}

fn call(def: &IntrinsicDef, turn: usize, open: Scalar) -> Result<Call, String> {
    let unknown = |what: &str, pattern: TypePattern| {
        format!(
            "`{}` has a {what} of {pattern}, with which no launch is made: make one in `cells/call.rs`, or name the row in \
             `cells::APART` with a case that launches it",
            def.name
        )
    };
    let param = |(n, &pattern): (usize, &TypePattern)| {
        let param = match (n, pattern) {
            (0, _) if has_members(def) => Some(Param::Members),
            (3, _) if is_shuffle(def) => Some(Param::Width(WIDTHS[turn % WIDTHS.len()])),
            (
                _,
                TypePattern::Pointer {
                    to,
                    space: AddressSpace::Generic,
                    mutable,
                },
            ) => form(def, *to, open).map(|form| Param::Place(form, mutable)),
            _ => form(def, pattern, open).map(Param::Value),
        };
        param.ok_or_else(|| unknown("parameter", pattern))
    };
    let result =
        |&pattern: &TypePattern| form(def, pattern, open).ok_or_else(|| unknown("result", pattern));
    let results = match &def.result {
        TypePattern::Unit => &[],
        TypePattern::Tuple(parts) => *parts,
        one => std::slice::from_ref(one),
    };
    Ok(Call {
        open,
        params: def
            .params
            .iter()
            .enumerate()
            .map(param)
            .collect::<Result<_, _>>()?,
        results: results.iter().map(result).collect::<Result<_, _>>()?,
    })
}

/// The value that a pattern stands for when the open type is `open`; none of addresses, arrays, tuples and of nothing.
fn form(def: &IntrinsicDef, pattern: TypePattern, open: Scalar) -> Option<Form> {
    match pattern {
        TypePattern::Exact(scalar) => Some(Form::number(scalar)),
        TypePattern::OneOf(_) | TypePattern::Each(_) | TypePattern::Chosen => {
            Some(Form::number(open))
        }
        TypePattern::SameAs(n) => form(def, def.params[usize::from(n)], open),
        TypePattern::Vector(lane, lanes) => {
            let Form { scalar, .. } = form(def, *lane, open)?;
            let lanes = lanes.into();
            Some(Form { scalar, lanes })
        }
        TypePattern::Array(..)
        | TypePattern::Tuple(_)
        | TypePattern::Pointer { .. }
        | TypePattern::Unit => None,
    }
}
