//! Why a kernel was compiled again: keys compared field by field.

use std::fmt;

pub use kiln_compiler::ir::CacheKey;

/// A key field that differs from the nearest earlier compilation.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FieldChange {
    /// Which field.
    pub field: &'static str,
    /// The field's value then.
    pub before: String,
    /// The field's value now.
    pub after: String,
}

/// Why a kernel was compiled again.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct RecompileReport {
    /// The kernel.
    pub kernel: String,
    /// How often it has been compiled.
    pub compilations: usize,
    /// What differs from the earlier compilation that is most like the latest; empty for the first
    /// compilation.
    pub changes: Vec<FieldChange>,
}

impl fmt::Display for RecompileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.changes.is_empty() {
            return write!(f, "`{}` was compiled once: its first launch", self.kernel);
        }
        let n = self.compilations;
        write!(
            f,
            "`{}` was compiled {n} times; the latest differs in",
            self.kernel
        )?;
        for change in &self.changes {
            let (before, after) = (change.before.trim_end(), change.after.trim_end());
            write!(f, "\n  {}: {before} -> {after}", change.field)?;
        }
        Ok(())
    }
}

/// Compares `latest` with the one of `earlier` that shares most fields with it, the newest of
/// those.
pub(super) fn explain<K: AsRef<CacheKey>>(
    kernel: &str,
    latest: &CacheKey,
    earlier: &[K],
) -> RecompileReport {
    let changes = earlier
        .iter()
        .rev()
        .map(|key| changes(key.as_ref(), latest));
    RecompileReport {
        kernel: kernel.to_owned(),
        compilations: earlier.len() + 1,
        changes: changes.min_by_key(Vec::len).unwrap_or_default(),
    }
}

fn changes(before: &CacheKey, after: &CacheKey) -> Vec<FieldChange> {
    let pairs = before.fields().zip(after.fields());
    let differ = pairs.filter(|(b, a)| b != a);
    let change = |((_, before), (field, after)): ((_, &str), (_, &str))| FieldChange {
        field,
        before: before.to_owned(),
        after: after.to_owned(),
    };
    differ.map(change).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn the_nearest_earlier_key_explains() {
        let key = |t: &str, o: &str| Arc::new(CacheKey::default().with("types", t).with("opt", o));
        let earlier = [key("f32", "O0"), key("f64", "O3")];
        let report = explain("k", &key("f32", "O3"), &earlier);
        assert_eq!(report.changes.len(), 1);
        assert_eq!(report.changes[0].field, "types");
        assert_eq!(
            report.to_string(),
            "`k` was compiled 3 times; the latest differs in\n  types: f64 -> f32"
        );
    }
}
