//! What is computed twice of integers is computed once: then a condition says of an index what it says of the number that
//! was compared, though the kernel has the sum in both places.
//!
//! ```text
//! if row + part < rows {                      let at = row + part;
//!     sum += x[(row + part) * columns];       if at < rows { sum += x[at * columns]; }
//! }
//! ```
//!
//! Only what stands around an operation, or before it in its region, is known there. Variables are not looked into: what
//! they are may change in between.

use std::collections::HashMap;

use kiln_compiler::ir::{
    FastMath, Function, InstData, InstNode, IntrinsicDef, IntrinsicId, PrimaryMap, Region, Source,
    Type, Value,
};

/// Keeps the first of the same operations on the same integers, and takes the others out, where an index is checked.
pub(super) fn make(
    function: &mut Function,
    intrinsics: &PrimaryMap<IntrinsicId, &'static IntrinsicDef>,
) {
    let is_checked = |(_, inst): (_, &InstNode)| inst.data.check().is_some();
    if !function.insts.iter().any(is_checked) {
        return;
    }
    let body = function.body;
    let mut once = Once {
        function,
        intrinsics,
        known: HashMap::new(),
        same: HashMap::new(),
    };
    once.region(body);
}

struct Once<'f> {
    function: &'f mut Function,
    intrinsics: &'f PrimaryMap<IntrinsicId, &'static IntrinsicDef>,
    /// What was computed where control is.
    known: HashMap<(InstData, Type), Value>,
    /// The first ones of values that were taken out.
    same: HashMap<Value, Value>,
}

impl Once<'_> {
    fn region(&mut self, region: Region) {
        let mut insts = std::mem::take(&mut self.function.regions[region].insts);
        let mut own = Vec::new();
        insts.retain(|&inst| {
            let same = &self.same;
            let node = &mut self.function.insts[inst];
            node.data
                .map_operands(|value| same.get(&value).copied().unwrap_or(value));
            let (data, result) = (node.data.clone(), node.result);
            let is_exact = node.fast == FastMath::NONE;
            for inner in data.regions() {
                self.region(inner);
            }
            let number = result.filter(|&value| is_exact && self.is_number(&data, value));
            let Some(value) = number else {
                return true;
            };
            let key = (data, self.function.type_of(value));
            match self.known.get(&key) {
                Some(&first) => {
                    self.same.insert(value, first);
                    false
                }
                None => {
                    own.push(key.clone());
                    self.known.insert(key, value);
                    true
                }
            }
        });
        self.function.regions[region].insts = insts;
        for key in own {
            self.known.remove(&key);
        }
    }

    /// Whether an operation gives an integer or a `bool`, the same one wherever it is done.
    fn is_number(&self, data: &InstData, value: Value) -> bool {
        let facts = data.facts(self.intrinsics);
        let ty = self.function.type_of(value);
        let is_int = ty.as_scalar().is_some_and(|scalar| scalar.is_int());
        matches!(facts.source, Source::Operands | Source::Row(_))
            && facts.is_harmless()
            && (is_int || ty == Type::BOOL)
    }
}
