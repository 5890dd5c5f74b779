//! Random statements and functions.

use crate::expression::{Expressions, TYPES, Ty, Variable};
use crate::random::Random;

/// How deep expressions are.
const DEPTH: u32 = 3;

struct Writer {
    expressions: Expressions,
    text: String,
    /// Labels of the loops around, innermost last.
    labels: Vec<String>,
    /// Blocks around.
    nesting: usize,
    fresh: usize,
}

/// A function `name(a: i32, b: u32, c: f32) -> u32`.
pub fn function(name: &str, seed: u64) -> String {
    let parameter = |name: &str, ty, mutable| Variable {
        name: name.to_owned(),
        ty,
        mutable,
    };
    let mut writer = Writer {
        expressions: Expressions {
            random: Random::new(seed),
            variables: vec![
                parameter("a", Ty::I32, false),
                parameter("b", Ty::U32, true),
                parameter("c", Ty::F32, false),
            ],
        },
        text: String::new(),
        labels: Vec::new(),
        nesting: 0,
        fresh: 0,
    };
    for ty in TYPES {
        writer.declare(ty, true);
    }
    let count = writer.random().within(5, 10);
    writer.statements(count);
    let mut value = |ty| writer.expressions.of(ty, 1, true);
    let (i, u, w, f) = (
        value(Ty::I32),
        value(Ty::U32),
        value(Ty::I64),
        value(Ty::F32),
    );
    let text = writer.text;
    format!(
        "#[device_fn]\npub fn {name}(a: i32, mut b: u32, c: f32) -> u32 {{\n{text}    \
         digest({i}, {u}, {w}, {f})\n}}\n\n"
    )
}

impl Writer {
    fn random(&mut self) -> &mut Random {
        &mut self.expressions.random
    }

    fn line(&mut self, text: &str) {
        self.text += &"    ".repeat(self.nesting + 1);
        self.text += text;
        self.text += "\n";
    }

    fn name(&mut self, prefix: &str) -> String {
        self.fresh += 1;
        format!("{prefix}{}", self.fresh)
    }

    fn bind(&mut self, name: &str, ty: Ty, mutable: bool) {
        let name = name.to_owned();
        self.expressions
            .variables
            .push(Variable { name, ty, mutable });
    }

    /// `let`, with a type or with one that follows.
    fn declare(&mut self, ty: Ty, mutable: bool) {
        let name = match self.random().chance(10) {
            true => "shadowed".to_owned(),
            false => self.name("v"),
        };
        let typed = self.random().chance(50);
        let value = self.expressions.of(ty, DEPTH, !typed);
        let annotation = match typed {
            true => format!(": {}", ty.name()),
            false => String::new(),
        };
        let keyword = ["let", "let mut"][usize::from(mutable)];
        self.line(&format!("{keyword} {name}{annotation} = {value};"));
        // The one that is shadowed cannot be named any more.
        self.expressions.variables.retain(|v| v.name != name);
        self.bind(&name, ty, mutable);
    }

    fn statements(&mut self, count: usize) {
        for _ in 0..count {
            self.statement();
        }
    }

    /// A block with a scope of its own.
    fn block(&mut self, head: &str, count: usize, tail: &str) {
        let variables = self.expressions.variables.clone();
        self.line(&format!("{head} {{"));
        self.nesting += 1;
        // What a block shadows comes back at its end, perhaps of another type.
        self.expressions.variables.retain(|v| v.name != "shadowed");
        self.statements(count);
        self.nesting -= 1;
        self.line(&format!("}}{tail}"));
        self.expressions.variables = variables;
    }

    fn statement(&mut self) {
        let nested = self.nesting < 3;
        match self.random().below(18) {
            0..2 => {
                let ty = self.any_type();
                let mutable = self.random().chance(60);
                self.declare(ty, mutable);
            }
            2..6 => self.assign(),
            6..8 if nested => self.branch(),
            8 if nested => self.match_(),
            9..11 if nested => self.counted(),
            11 if nested => self.while_(),
            12 => self.aggregate(),
            13 if self.random().chance(50) => self.closure(),
            13 => self.helper(),
            14 if !self.labels.is_empty() => self.leave(),
            15 if self.nesting > 0 => {
                let (condition, value) = (self.condition(), self.expressions.of(Ty::U32, 2, true));
                self.line(&format!("if {condition} {{ return {value}; }}"));
            }
            16 => self.references(),
            17 => self.calls_alike(),
            _ => self.assign(),
        }
    }

    fn any_type(&mut self) -> Ty {
        self.random().of(&TYPES)
    }

    fn condition(&mut self) -> String {
        self.expressions.of(Ty::Bool, 2, true)
    }

    fn assign(&mut self) {
        let ty = self.any_type();
        let Some(place) = self.expressions.place(ty) else {
            return;
        };
        let value = self.expressions.of(ty, DEPTH, false);
        let operators: &[&str] = match ty {
            Ty::F32 => &["=", "+=", "-=", "*=", "/="],
            _ => &["=", "^=", "|=", "&="],
        };
        let operator = self.random().of(operators);
        self.line(&format!("{place} {operator} {value};"));
    }

    fn branch(&mut self) {
        let condition = self.condition();
        let count = self.random().within(1, 3);
        match self.random().chance(50) {
            true => self.block(&format!("if {condition}"), count, ""),
            false => {
                self.block(&format!("if {condition}"), count, " else {");
                self.nesting += 1;
                let variables = self.expressions.variables.clone();
                self.statements(1);
                self.expressions.variables = variables;
                self.nesting -= 1;
                self.line("}");
            }
        }
    }

    fn match_(&mut self) {
        let subject = self.expressions.of(Ty::U8, 2, true);
        self.line(&format!("match {subject} {{"));
        self.nesting += 1;
        for arm in ["0..=9", "10 | 20 | 200..", "n if n % 3 == 0", "_"] {
            self.block(&format!("{arm} =>"), 1, "");
        }
        self.nesting -= 1;
        self.line("}");
    }

    /// `for` over a short range of some kind.
    fn counted(&mut self) {
        let (index, label) = (self.name("i"), self.name("'l"));
        let ty = self.random().of(&[Ty::I32, Ty::U32, Ty::U8, Ty::I64]);
        let end = self.expressions.of(ty, 1, true);
        let name = ty.name();
        let range = match self.random().below(8) {
            5 => format!("({name}::MAX - ({end} & 3))..={name}::MAX"),
            6 => format!("(({name}::MAX - 9)..{name}::MAX).step_by(4)"),
            7 => format!("({name}::MIN..=({name}::MIN | 3)).rev()"),
            0 => format!("0..({end} & 7)"),
            1 => format!("2..=({end} & 7)"),
            2 => format!("(1..({end} & 7)).rev()"),
            3 => format!("(0..=({end} & 31)).step_by(9)"),
            _ => format!("(3..({end} & 15)).rev().step_by(4)"),
        };
        self.bind(&index, ty, false);
        self.labels.push(label.clone());
        let count = self.random().within(1, 3);
        self.block(&format!("{label}: for {index} in {range}"), count, "");
        self.labels.pop();
        self.expressions.variables.retain(|v| v.name != index);
    }

    /// `while`, and `loop` with a value, both of few rounds.
    fn while_(&mut self) {
        let (counter, label) = (self.name("n"), self.name("'l"));
        let condition = self.condition();
        self.line(&format!("let mut {counter} = 0;"));
        self.labels.push(label.clone());
        let step = format!("{counter} += 1");
        let count = self.random().within(1, 2);
        if self.random().chance(50) {
            let head = format!("{label}: while {{ {step}; {counter} < 5 && {condition} }}");
            self.block(&head, count, "");
        } else {
            let (found, value) = (self.name("v"), self.expressions.of(Ty::I32, 1, true));
            self.labels.pop();
            let head = format!(
                "let {found} = loop {{ {step}; if {counter} > 4 || {condition} {{ break {value}; }}"
            );
            self.block(&head, count, " };");
            self.bind(&found, Ty::I32, false);
            return;
        }
        self.labels.pop();
    }

    fn leave(&mut self) {
        let label = self.labels[self.labels.len() - 1].clone();
        let outer = self.labels[0].clone();
        let (label, word) = match self.random().below(3) {
            0 => (label, "continue"),
            1 => (label, "break"),
            _ => (outer, "break"),
        };
        let condition = self.condition();
        self.line(&format!("if {condition} {{ {word} {label}; }}"));
    }

    /// An array, a tuple or a struct, with parts that are variables from now on.
    fn aggregate(&mut self) {
        let name = self.name("s");
        match self.random().below(3) {
            0 => {
                let elements: Vec<String> = (0..4)
                    .map(|_| self.expressions.of(Ty::I32, 1, true))
                    .collect();
                let index = self.expressions.of(Ty::U32, 1, true);
                self.line(&format!("let mut {name} = [{}];", elements.join(", ")));
                self.bind(&format!("{name}[2]"), Ty::I32, true);
                self.line(&format!("{name}[({index} & 3) as usize] ^= 77;"));
                let index = self.expressions.of(Ty::I32, 1, true);
                let element = self.name("v");
                self.line(&format!("let {element} = {name}[({index} & 3) as usize];"));
                self.bind(&element, Ty::I32, false);
            }
            1 => {
                let (ty, other) = (self.any_type(), self.any_type());
                let (one, two) = (
                    self.expressions.of(ty, 2, true),
                    self.expressions.of(other, 2, true),
                );
                self.line(&format!("let mut {name} = ({one}, {two});"));
                self.bind(&format!("{name}.0"), ty, true);
                self.bind(&format!("{name}.1"), other, true);
            }
            _ => {
                let (x, y) = (
                    self.expressions.of(Ty::I64, 2, false),
                    self.expressions.of(Ty::F32, 2, false),
                );
                self.line(&format!("let mut {name} = Pair {{ y: {y}, x: {x} }};"));
                self.bind(&format!("{name}.x"), Ty::I64, true);
                self.bind(&format!("{name}.y"), Ty::F32, true);
            }
        }
    }

    /// References to an array that is mutable and to one that is not, which meet in branches, in any
    /// order, and perhaps in a variable that moves on.
    fn references(&mut self) {
        let (y, z, s, v) = (
            self.name("y"),
            self.name("z"),
            self.name("s"),
            self.name("v"),
        );
        let mut value = || self.expressions.of(Ty::I32, 1, true);
        let (one, two, three) = (value(), value(), value());
        self.line(&format!("let mut {y} = [{one}, {two}, 3, 4];"));
        self.line(&format!("let {z} = [{three}, 6];"));
        self.line(&format!("{y}[1] ^= 5;"));
        let places = [
            format!("&{y}[..]"),
            format!("&{z}[..]"),
            format!("&{y}[1..3]"),
            format!("&{z}[1..]"),
        ];
        let whole = [
            places[0].clone(),
            format!("&mut {y}[..]"),
            format!("&{y}"),
            format!("&{z}"),
        ];
        let typed = self.random().chance(40);
        let pick = |writer: &mut Self| match typed {
            true => writer.random().of(&[0usize, 1, 2, 3]),
            false => writer.random().below(4),
        };
        let of = |n: usize| match typed {
            true => whole[n].clone(),
            false => places[n].clone(),
        };
        let (a, b, c) = (of(pick(self)), of(pick(self)), of(pick(self)));
        let condition = self.condition();
        let annotation = ["", ": &[i32]"][usize::from(typed)];
        let subject = self.expressions.of(Ty::U8, 1, true);
        match self.random().below(4) {
            0 => self.line(&format!(
                "let {s}{annotation} = if {condition} {{ {a} }} else {{ {b} }};"
            )),
            1 => self.line(&format!(
                "let {s}{annotation} = match {subject} {{ 0..=80 => {a}, 81 | 99.. => {b}, _ => {c} }};"
            )),
            2 => {
                self.line(&format!("let mut {s}: &[i32] = {a};"));
                self.line(&format!("if {condition} {{ {s} = {}; }}", places[1]));
            }
            _ => self.line(&format!(
                "let ({s}, _): (&[i32], u8) = if {condition} {{ ({b}, 1) }} else {{ ({a}, {subject}) }};"
            )),
        }
        let index = self.expressions.of(Ty::U32, 1, true);
        self.line(&format!(
            "let {v} = total({s}).wrapping_add({s}[({index}) as usize % {s}.len()]);"
        ));
        self.bind(&v, Ty::I32, false);
    }

    /// Calls of functions of one name, and of generic ones that take structs.
    fn calls_alike(&mut self) {
        let (value, v) = (self.expressions.of(Ty::I32, 2, true), self.name("v"));
        let module = self.random().of(&["one", "two", "three"]);
        match self.random().below(3) {
            0 => self.line(&format!("let {v} = {module}::step({value});")),
            1 => self.line(&format!("let {v} = {module}::pair({value}, 7);")),
            _ => self.line(&format!(
                "let {v} = {module}::pair({value} as i64, 3) as i32;"
            )),
        }
        self.bind(&v, Ty::I32, false);
    }

    /// A call of a function of `functions.rs`.
    fn helper(&mut self) {
        let value = self.expressions.of(Ty::I32, 2, true);
        let name = self.name("v");
        match (self.random().below(3), self.expressions.place(Ty::I32)) {
            (0, Some(place)) if !place.contains('[') => {
                // The other argument may read what is borrowed.
                self.line(&format!("let {name} = {value};"));
                self.line(&format!("let {name} = bump(&mut {place}, {name});"));
                self.bind(&name, Ty::I32, false);
            }
            (1, _) => {
                let (one, two) = (
                    self.expressions.of(Ty::F32, 1, true),
                    self.expressions.of(Ty::F32, 1, true),
                );
                self.line(&format!("let {name} = largest({one}, {two});"));
                self.bind(&name, Ty::F32, false);
            }
            _ => {
                let other = self.expressions.of(Ty::I32, 1, true);
                self.line(&format!("let {name} = total(&[{value}, {other}, 3]);"));
                self.bind(&name, Ty::I32, false);
            }
        }
    }

    /// A closure that is called here, or passed to a function, perhaps one that assigns a variable.
    fn closure(&mut self) {
        let (ty, name) = (self.random().of(&[Ty::I32, Ty::F32]), self.name("v"));
        let argument = self.expressions.of(ty, 1, true);
        let assigned = self.expressions.place(Ty::U32).filter(|p| !p.contains('['));
        let variables = self.expressions.variables.clone();
        // What is assigned is borrowed for as long as the closure is there.
        let (counts, argument) = match assigned {
            Some(place) if self.random().chance(40) => {
                let root = place.split('.').next().unwrap_or(&place).to_owned();
                let free = |v: &Variable| v.name.split('.').next() != Some(&root);
                self.expressions.variables.retain(free);
                let argument = self.expressions.of(ty, 1, true);
                (format!("{place} ^= 5;"), argument)
            }
            _ => (String::new(), argument),
        };
        self.bind("p", ty, false);
        let value = self.expressions.of(ty, 2, true);
        self.expressions.variables = variables;
        let closure = format!("|p: {}| {{ {counts} {value} }}", ty.name());
        match self.random().below(3) {
            0 => self.line(&format!("let {name} = apply({argument}, {closure});")),
            1 => self.line(&format!("let {name} = repeat(3, {argument}, {closure});")),
            _ => {
                let f = self.name("f");
                let keyword = ["let mut", "let"][usize::from(counts.is_empty())];
                self.line(&format!("{keyword} {f} = {closure};"));
                self.line(&format!("let {name} = {f}({argument});"));
            }
        }
        self.bind(&name, ty, false);
    }
}
