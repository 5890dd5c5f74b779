//! Attributes: what is said of a function for hooks to read. The compiler itself reads none.

use std::fmt;

use crate::print::{name, quote};

/// What an attribute says.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum AttributeValue {
    /// Yes or no; an attribute without a value says yes.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// Text.
    Text(String),
}

impl AttributeValue {
    /// The integer that it is.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            AttributeValue::Int(value) => Some(*value),
            AttributeValue::Bool(_) | AttributeValue::Text(_) => None,
        }
    }

    /// The text that it is.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            AttributeValue::Text(value) => Some(value),
            AttributeValue::Bool(_) | AttributeValue::Int(_) => None,
        }
    }
}

impl From<bool> for AttributeValue {
    fn from(value: bool) -> AttributeValue {
        AttributeValue::Bool(value)
    }
}

impl From<i64> for AttributeValue {
    fn from(value: i64) -> AttributeValue {
        AttributeValue::Int(value)
    }
}

impl From<&str> for AttributeValue {
    fn from(value: &str) -> AttributeValue {
        AttributeValue::Text(value.to_owned())
    }
}

/// The attributes of a function, each name once, in the order in which they were given.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Attributes(Vec<(String, AttributeValue)>);

impl Attributes {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What the attribute of a name says, if it is there.
    pub fn get(&self, name: &str) -> Option<&AttributeValue> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value)
    }

    /// Whether the attribute of a name is there and does not say no.
    pub fn has(&self, name: &str) -> bool {
        (self.get(name)).is_some_and(|value| *value != AttributeValue::Bool(false))
    }

    /// Gives an attribute, in place of one of that name.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<AttributeValue>) {
        let (name, value) = (name.into(), value.into());
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = value,
            None => self.0.push((name, value)),
        }
    }

    /// All, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &AttributeValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl fmt::Display for Attributes {
    /// As in the text form: `fast_math, unroll = 4, note = "by hand"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (known, value)) in self.iter().enumerate() {
            let separator = if i > 0 { ", " } else { "" };
            write!(f, "{separator}{}", name(known))?;
            match value {
                AttributeValue::Bool(true) => {}
                AttributeValue::Bool(false) => f.write_str(" = false")?,
                AttributeValue::Int(value) => write!(f, " = {value}")?,
                AttributeValue::Text(value) => write!(f, " = {}", quote(value))?,
            }
        }
        Ok(())
    }
}
