//! Rules about structs, arrays and vectors as values.

use super::rules::{Rule, Rules};
use crate::{ArrayLen, Type, TypeData, Value};

impl Rules<'_> {
    /// Whether a struct, array or vector has a part `index`.
    pub(super) fn part(&self, whole: Type, index: u32) -> Rule {
        match self.types.part(whole, index) {
            Some(_) => Ok(()),
            None => Err(format!("`{}` has no part {index}", self.name(whole))),
        }
    }

    /// The number of parts, if it is known; `None` for what has no parts.
    fn part_count(&self, whole: Type) -> Option<Option<u64>> {
        match *self.types.data(whole) {
            TypeData::Struct(_) => {
                let fields = self.types.as_struct(whole).map(|s| s.fields.len() as u64);
                fields.map(Some)
            }
            TypeData::Vector { lanes, .. } => Some(Some(lanes.into())),
            TypeData::Array { len, .. } => Some(match len {
                ArrayLen::Known(n) => Some(n),
                ArrayLen::Param(_) => None,
            }),
            _ => None,
        }
    }

    pub(super) fn construct(&self, parts: &[Value], result: Type) -> Rule {
        let given = parts.len() as u64;
        match self.part_count(result) {
            None => {
                let taken = "structs, arrays and vectors are constructed";
                self.expect(false, taken, result)
            }
            Some(Some(count)) if count != given => {
                let result = self.name(result);
                Err(format!("`{result}` has {count} parts, not {given}"))
            }
            Some(_) => Ok(()),
        }
    }
}
