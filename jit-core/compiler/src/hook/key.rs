//! What a hook says of its settings for the cache key.

use std::fmt::{Debug, Write};

/// The settings of a hook, in order, as text: none can be taken for two, nor two for one.
#[derive(Default)]
pub(super) struct Settings {
    text: String,
    any: bool,
}

impl Settings {
    /// Adds a setting, its value with its length in bytes.
    pub(super) fn add(&mut self, name: &str, value: &dyn Debug) {
        self.any = true;
        let value = format!("{value:?}");
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        // Writing to a String cannot fail.
        let _ = match name.chars().all(plain) {
            true => write!(self.text, " {name}={}:{value}", value.len()),
            false => write!(self.text, " {name:?}={}:{value}", value.len()),
        };
    }

    /// Whether there is a setting.
    pub(super) fn any(&self) -> bool {
        self.any
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::Settings;

    fn text(settings: &[(&str, &dyn std::fmt::Debug)]) -> String {
        let mut all = Settings::default();
        for (name, value) in settings {
            all.add(name, value);
        }
        all.text().to_owned()
    }

    struct Raw(&'static str);

    impl std::fmt::Debug for Raw {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(self.0)
        }
    }

    #[test]
    fn no_setting_looks_like_two() {
        assert_eq!(text(&[("a", &1), ("b", &"x")]), " a=1:1 b=3:\"x\"");
        let one = [
            text(&[("a", &Raw("1 b=1:2"))]),
            text(&[("a=1:1 b", &Raw("2"))]),
            text(&[("a", &Raw("1")), ("b", &Raw("2"))]),
        ];
        assert!(
            one[0] != one[1] && one[1] != one[2] && one[0] != one[2],
            "{one:?}"
        );
    }
}
