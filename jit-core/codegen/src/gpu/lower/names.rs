//! Names that PTX accepts, from names that users chose.
//!
//! A user's name may hold anything, an interior NUL included; PTX identifiers are letters, digits
//! and underscores (PTX ISA, "Identifiers"), at most 1024 characters.

/// The longest part taken from a user's name, in bytes.
const MAX_NAME: usize = 200;

/// `name` with everything that is not an ASCII letter, digit or underscore replaced by `_`, not
/// starting with a digit, not empty, and cut to a length that every tool accepts.
pub(crate) fn sanitize(name: &str) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut clean: String = name.chars().take(MAX_NAME).map(legal).collect();
    if !clean.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        clean.insert(0, '_');
    }
    clean
}

/// The name of a kernel's PTX entry: its own and its tag, so that two kernels of one name differ.
pub fn kernel_entry_name(name: &str, kernel_tag: u64) -> String {
    format!("{}_{kernel_tag:016x}", sanitize(name))
}

/// The name of a device function, distinct from every other by its position in the module.
pub(super) fn device_function_name(name: &str, index: usize) -> String {
    format!("{}_fn{index}", sanitize(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_becomes_an_identifier() {
        assert_eq!(sanitize("saxpy"), "saxpy");
        assert_eq!(sanitize("a::<f32>\0é"), "a___f32___");
        assert_eq!(sanitize("3d"), "_3d");
        assert_eq!(sanitize(""), "_");
        assert_eq!(sanitize(&"x".repeat(10_000)).len(), MAX_NAME);
        assert_eq!(kernel_entry_name("k", 0xab), "k_00000000000000ab");
    }
}
