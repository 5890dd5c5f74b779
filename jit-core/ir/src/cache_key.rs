//! Cache keys: everything that can change the code, by name, and its digest.
//!
//! What is in: the kernel's content with everything it calls, argument types, argument facts and
//! const arguments, the target (of a CPU with the shape of blocks and the processor's features), the
//! options, the hooks with the rows of intrinsics that they put in, and the versions of Kiln and of what generates the code. What is
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
    pub fn with_all(self, fields: Vec<(&'static str, String)>) -> Self {
        let add = |key: CacheKey, (name, value)| key.with(name, value);
        fields.into_iter().fold(self, add)
    }

    /// The key with what it says of the target said of this one, of the same kind.
    #[must_use]
    pub fn for_target(&self, target: &Target) -> Self {
        let mut key = self.clone();
        for (name, value) in target.settings() {
            let mut fields = key.fields.iter_mut();
            if let Some(field) = fields.find(|(known, _)| *known == name) {
                field.1 = value;
            }
        }
        key
    }

    /// The key with more text in one of its fields; as it is where it has no such field.
    #[must_use]
    pub fn extended(mut self, name: &str, text: &str) -> Self {
        let mut fields = self.fields.iter_mut();
        if let Some(field) = fields.find(|(known, _)| *known == name) {
            field.1 += text;
        }
        self
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

impl fmt::Display for CacheKey {
    /// A field a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in self.fields() {
            writeln!(f, "{name}: {}", value.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_run_into_each_other() {
        let a = CacheKey::default().with("x", "ab").with("y", "c");
        let b = CacheKey::default().with("x", "a").with("y", "bc");
        assert_ne!(a.digest(), b.digest());
        assert_eq!(a.digest(), a.clone().digest());
        assert_eq!(a.to_string(), "x: ab\ny: c\n");
    }
}
