//! What is printed: `println!("{i}: {v:?}")`. A value made of several is printed part by part, as `#[derive(Debug)]`
//! has it on the host; of an `Option` what it is, in one of two instructions.

use crate::build::Val;
use crate::ir::printed::{MAX_VALUES, Spec};
use crate::ir::{ArrayLen, Scalar, Type};

use super::binding::tuple_parts;
use super::{Front, Operand};

/// How many options one text may have: it is there once for each of their states.
const MAX_OPTIONS: usize = 4;

const TOO_MANY_OPTIONS: &str =
    "a text of a kernel has four values of type `Option` at most; print several";

const BY_DEBUG: &str = "what is made of several numbers is printed by `{:?}`, as `#[derive(Debug)]` has it, or a number \
     at a time";

const NOT_PRINTED: &str = "kernels print numbers, bools, and tuples, arrays of 64 elements at most, structs and options \
     of them; of a slice print elements";

/// A part of a text that is yet to be written.
#[derive(Clone)]
enum Part<'k> {
    Text(String),
    /// A value, how it is written, and how deep it lies in what is written a part a line.
    Value(Val<'k>, String, usize),
}

/// What is written of a text.
#[derive(Clone, Default)]
struct Written<'k> {
    format: String,
    values: Vec<Val<'k>>,
    options: usize,
}

/// What a type is as something that is printed part by part.
enum Parts {
    Number,
    Option,
    /// Of so many elements, behind the name of the type if it has one.
    List {
        name: Option<String>,
        len: u64,
    },
    Tuple {
        name: String,
        len: usize,
    },
    Struct {
        name: String,
        fields: Vec<String>,
    },
    /// None of these.
    Other,
}

impl<'k> Front<'k> {
    /// Prints values by a format in which each place has the number of its value.
    pub(super) fn print(self, format: &str, values: &[Operand<'k>], to_stderr: bool) {
        let values: Vec<Val<'k>> = values.iter().map(|value| value.target().read()).collect();
        let mut parts = parts_of(format, &values);
        parts.reverse();
        self.write(parts, Written::default(), to_stderr);
    }

    /// Writes parts, of which the last comes first.
    fn write(self, mut parts: Vec<Part<'k>>, mut written: Written<'k>, to_stderr: bool) {
        while let Some(part) = parts.pop() {
            let (value, spec, depth) = match part {
                Part::Text(text) => {
                    written.format += &text;
                    continue;
                }
                Part::Value(value, spec, depth) => (value, spec, depth),
            };
            match self.parts_of_type(value.ty()) {
                Parts::Number => written.value(value, &spec),
                Parts::Other => {
                    self.refuse(NOT_PRINTED);
                    return;
                }
                _ if !Spec::parse(&spec).is_some_and(|spec| spec.is_debug()) => {
                    self.refuse(BY_DEBUG);
                    return;
                }
                Parts::Option if written.options == MAX_OPTIONS => {
                    self.refuse(TOO_MANY_OPTIONS);
                    return;
                }
                Parts::Option => {
                    written.options += 1;
                    return self.write_option(value, (&spec, depth), parts, written, to_stderr);
                }
                of_type => push(&mut parts, of_type.parts(value, &spec, depth)),
            }
        }
        let Written { format, values, .. } = written;
        self.builder.print_to(&format, &values, to_stderr);
    }

    /// Writes an option, and the parts behind it, once for each of what it may be.
    fn write_option(
        self,
        option: Val<'k>,
        (spec, depth): (&str, usize),
        parts: Vec<Part<'k>>,
        written: Written<'k>,
        to_stderr: bool,
    ) {
        let option = self.value(option);
        let (mut some, mut none) = (parts.clone(), parts);
        let inner = vec![(None, option.some_value().read())];
        push(&mut some, listed("Some(", inner, ")", false, (spec, depth)));
        none.push(Part::Text("None".to_owned()));
        let of_some = written.clone();
        self.if_else(
            option.is_some(),
            || self.write(some, of_some, to_stderr),
            || self.write(none, written, to_stderr),
        );
    }

    fn parts_of_type(self, ty: Type) -> Parts {
        if ty == Type::BOOL || self.builder.is_number(ty) {
            return Parts::Number;
        }
        self.builder.with_types(|types| {
            if super::option::is_option(types, ty) {
                return Parts::Option;
            }
            if super::result::is_result(types, ty) {
                return Parts::Other;
            }
            if let Some(parts) = tuple_parts(types, ty) {
                let name = String::new();
                return Parts::Tuple {
                    name,
                    len: parts.len(),
                };
            }
            if let Some((lane, lanes)) = types.as_vector(ty) {
                let name = Some(vector_name(lane, lanes));
                return Parts::List {
                    name,
                    len: lanes.into(),
                };
            }
            if let Some((_, len)) = types.as_array(ty) {
                return match len {
                    ArrayLen::Known(len) if len <= MAX_VALUES as u64 => {
                        Parts::List { name: None, len }
                    }
                    _ => Parts::Other,
                };
            }
            let Some(data) = types.as_struct(ty) else {
                return Parts::Other;
            };
            let path = data.name.split('<').next().unwrap_or(&data.name);
            let name = path.rsplit("::").next().unwrap_or(path).to_owned();
            let fields: Vec<String> = data.fields.iter().map(|(field, _)| field.clone()).collect();
            let is_tuple = !fields.is_empty()
                && fields
                    .iter()
                    .enumerate()
                    .all(|(i, field)| *field == i.to_string());
            match is_tuple {
                true => Parts::Tuple {
                    name,
                    len: fields.len(),
                },
                false => Parts::Struct { name, fields },
            }
        })
    }
}

impl Parts {
    /// The parts of a value of the type.
    fn parts<'k>(self, value: Val<'k>, spec: &str, depth: usize) -> Vec<Part<'k>> {
        match self {
            Parts::List { name, len } => {
                let elements = (0..len as u32).map(|i| (None, value.element(i))).collect();
                let (open, close, deeper) = around(name.as_deref(), spec, depth);
                let mut parts = vec![Part::Text(open)];
                parts.extend(listed("[", elements, "]", false, (spec, deeper)));
                parts.push(Part::Text(close));
                parts
            }
            Parts::Tuple { name, len } => {
                let fields = (0..len)
                    .map(|i| (None, value.field(&i.to_string())))
                    .collect();
                let is_alone = name.is_empty() && len == 1;
                listed(&format!("{name}("), fields, ")", is_alone, (spec, depth))
            }
            Parts::Struct { name, fields } if fields.is_empty() => vec![Part::Text(escaped(&name))],
            Parts::Struct { name, fields } => {
                let field = |field: String| {
                    let value = value.field(&field);
                    (Some(field), value)
                };
                let fields = fields.into_iter().map(field).collect();
                listed(&format!("{name} {{"), fields, "}", false, (spec, depth))
            }
            Parts::Number | Parts::Option | Parts::Other => Vec::new(),
        }
    }
}

impl<'k> Written<'k> {
    fn value(&mut self, value: Val<'k>, spec: &str) {
        self.format += "{";
        if !spec.is_empty() {
            self.format += ":";
            self.format += spec;
        }
        self.format += "}";
        self.values.push(value);
    }
}

/// The name of the type of a vector on the host.
fn vector_name(lane: Scalar, lanes: u8) -> String {
    format!("{}x{lanes}", lane.name().to_uppercase())
}

/// The parts of a format, in order.
fn parts_of<'k>(format: &str, values: &[Val<'k>]) -> Vec<Part<'k>> {
    let mut parts = Vec::new();
    let mut rest = format;
    while let Some(at) = rest.find('{') {
        let behind = &rest[at + 1..];
        // `{{` and `{@}` are no places for values.
        let is_text = behind.starts_with(['{', '@']);
        let (place, end) = match behind.split_once('}') {
            Some((place, end)) if !is_text => (place, end),
            _ => {
                let (text, end) = rest.split_at(at + 2);
                parts.push(Part::Text(text.to_owned()));
                rest = end;
                continue;
            }
        };
        parts.push(Part::Text(rest[..at].to_owned()));
        let (number, spec) = place.split_once(':').unwrap_or((place, ""));
        let value = number
            .parse::<usize>()
            .ok()
            .and_then(|number| values.get(number));
        parts.extend(value.map(|value| Part::Value(*value, spec.to_owned(), 0)));
        rest = end;
    }
    parts.push(Part::Text(rest.to_owned()));
    parts
}

/// Puts parts, in order, before the others.
fn push<'k>(parts: &mut Vec<Part<'k>>, mut more: Vec<Part<'k>>) {
    more.reverse();
    parts.append(&mut more);
}

/// A text as it stands in a format.
fn escaped(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

/// Parts between a beginning and an end, with their names, as `Formatter::debug_struct` and its kind have them. Behind
/// one that `is_alone` is a comma, as in `(1,)`.
fn listed<'k>(
    open: &str,
    inner: Vec<(Option<String>, Val<'k>)>,
    close: &str,
    is_alone: bool,
    (spec, depth): (&str, usize),
) -> Vec<Part<'k>> {
    let is_pretty = is_pretty(spec) && !inner.is_empty();
    let is_named = inner.iter().any(|(name, _)| name.is_some());
    let (last, indent) = (inner.len().saturating_sub(1), "    ".repeat(depth));
    let mut parts = vec![Part::Text(escaped(open))];
    for (i, (name, value)) in inner.into_iter().enumerate() {
        let name = name.map_or_else(String::new, |name| format!("{name}: "));
        let before = match is_pretty {
            true => format!("\n{indent}    {name}"),
            false if is_named => format!(" {name}"),
            false if i > 0 => format!(" {name}"),
            false => name,
        };
        let deeper = depth + usize::from(is_pretty);
        parts.push(Part::Text(before));
        parts.push(Part::Value(value, spec.to_owned(), deeper));
        let comma = is_pretty || i < last || is_alone;
        parts.push(Part::Text(if comma { "," } else { "" }.to_owned()));
    }
    let before_close = match (is_pretty, is_named) {
        (true, _) => format!("\n{indent}"),
        (false, true) => " ".to_owned(),
        (false, false) => String::new(),
    };
    parts.push(Part::Text(before_close + &escaped(close)));
    parts
}

/// What is around the only field of a struct of this name, and how deep that lies.
fn around(name: Option<&str>, spec: &str, depth: usize) -> (String, String, usize) {
    let indent = "    ".repeat(depth);
    match (name, is_pretty(spec)) {
        (None, _) => (String::new(), String::new(), depth),
        (Some(name), false) => (format!("{name}("), ")".to_owned(), depth),
        (Some(name), true) => (
            format!("{name}(\n{indent}    "),
            format!(",\n{indent})"),
            depth + 1,
        ),
    }
}

fn is_pretty(spec: &str) -> bool {
    Spec::parse(spec).is_some_and(|spec| spec.is_pretty())
}
