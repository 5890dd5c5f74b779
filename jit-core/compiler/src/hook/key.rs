//! What a hook says of its settings for the cache key.

use std::borrow::Cow;
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
        // Writing to a String cannot fail.
        let _ = write!(self.text, " {}={}:{value}", word(name), value.len());
    }

    /// Whether there is a setting.
    pub(super) fn any(&self) -> bool {
        self.any
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// A name that ends where one sees it end: quoted if it is more than a word.
pub(super) fn word(name: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    match name.chars().all(plain) {
        true => Cow::Borrowed(name),
        false => Cow::Owned(format!("{name:?}")),
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
