//! Cache keys: everything that can change the code, by name, and its digest.
//!
//! What is in: the kernel's content with everything it calls, argument types, argument facts and
//! const arguments, the target (of a CPU with the shape of blocks and the processor's features), the
//! options, the hooks, and the versions of Kiln and of what generates the code. What is
//! deliberately out: grid sizes, and block sizes where code does not depend on them, values of arguments beyond their facts, the device's
//! name, time, and the environment.

use std::fmt;

use crate::target::Target;

/// Everything that decides the code of one compilation. The fields are kept undigested, so that
/// two keys can be compared field by field.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CacheKey {
    fields: Vec<(&'static str, String)>,
}

impl CacheKey {
    /// Adds a field. The order is part of the key.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.fields.push((name, value.to_string()));
        self
    }

    /// Adds fields.
    #[must_use]
    pub(crate) fn with_all(self, fields: Vec<(&'static str, String)>) -> Self {
        let add = |key: CacheKey, (name, value)| key.with(name, value);
        fields.into_iter().fold(self, add)
    }

    /// The key with what it says of the target said of this one, of the same kind.
    #[must_use]
    pub(crate) fn for_target(&self, target: &Target) -> Self {
        let mut key = self.clone();
        for (name, value) in target.settings() {
            let mut fields = key.fields.iter_mut();
            if let Some(field) = fields.find(|(known, _)| *known == name) {
                field.1 = value;
            }
        }
        key
    }

    /// The fields, in order.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.fields
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
    }

    /// The digest of all fields, BLAKE3.
    pub fn digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        for (name, value) in &self.fields {
            // Lengths keep two fields from running into each other.
            for part in [name.as_bytes(), value.as_bytes()] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
        }
        *hasher.finalize().as_bytes()
    }

    /// The leading bytes of the digest as a number: what fault records carry.
    pub fn tag(&self) -> u64 {
        let digest = self.digest();
        u64::from_le_bytes(std::array::from_fn(|i| digest[i]))
    }
}

/// A key field that differs from the nearest earlier compilation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldChange {
    /// Which field.
    pub field: &'static str,
    /// Its value then.
    pub before: String,
    /// Its value now.
    pub after: String,
}

/// Why a kernel was compiled again.
#[derive(Clone, PartialEq, Eq, Debug)]
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
    let pairs = before.fields.iter().zip(&after.fields);
    let differ = pairs.filter(|(b, a)| b != a);
    let change = |(b, a): (&(&'static str, String), &(&'static str, String))| FieldChange {
        field: a.0,
        before: b.1.clone(),
        after: a.1.clone(),
    };
    differ.map(change).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn fields_do_not_run_into_each_other() {
        let a = CacheKey::default().with("x", "ab").with("y", "c");
        let b = CacheKey::default().with("x", "a").with("y", "bc");
        assert_ne!(a.digest(), b.digest());
        assert_eq!(a.digest(), a.clone().digest());
    }

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
