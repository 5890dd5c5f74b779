//! Random expressions, whose value is the same on the host with overflow checks and in a kernel.

use crate::random::Random;

/// The types of variables and expressions.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Ty {
    I32,
    U32,
    I64,
    U8,
    F32,
    Bool,
}

pub const TYPES: [Ty; 6] = [Ty::I32, Ty::U32, Ty::I64, Ty::U8, Ty::F32, Ty::Bool];
const NUMBERS: [Ty; 5] = [Ty::I32, Ty::U32, Ty::I64, Ty::U8, Ty::F32];

impl Ty {
    /// As Rust writes it.
    pub fn name(self) -> &'static str {
        match self {
            Ty::I32 => "i32",
            Ty::U32 => "u32",
            Ty::I64 => "i64",
            Ty::U8 => "u8",
            Ty::F32 => "f32",
            Ty::Bool => "bool",
        }
    }

    fn bits(self) -> u32 {
        match self {
            Ty::U8 => 8,
            Ty::I64 => 64,
            _ => 32,
        }
    }

    /// Whether it is an integer.
    pub fn is_int(self) -> bool {
        !matches!(self, Ty::F32 | Ty::Bool)
    }
}

/// A variable in scope.
#[derive(Clone, Debug)]
pub struct Variable {
    /// As it is written, perhaps with fields or indices.
    pub name: String,
    /// Its type.
    pub ty: Ty,
    /// Whether it can be assigned.
    pub mutable: bool,
}

/// Writes expressions over the variables in scope.
pub struct Expressions {
    pub random: Random,
    pub variables: Vec<Variable>,
}

impl Expressions {
    /// An expression of a type. With `told` its type follows from itself; otherwise from around it.
    pub fn of(&mut self, ty: Ty, depth: u32, told: bool) -> String {
        if depth == 0 || self.random.chance(15) {
            return self.leaf(ty, told);
        }
        if self.random.chance(12) {
            return self.structured(ty, depth - 1);
        }
        match ty {
            Ty::Bool => self.condition(depth - 1),
            Ty::F32 => self.float(depth - 1),
            _ => self.integer(ty, depth - 1),
        }
    }

    /// A variable that can be assigned.
    pub fn place(&mut self, ty: Ty) -> Option<String> {
        let places = self.variables.iter().filter(|v| v.ty == ty && v.mutable);
        let places: Vec<&str> = places.map(|v| v.name.as_str()).collect();
        (!places.is_empty()).then(|| self.random.of(&places).to_owned())
    }

    fn leaf(&mut self, ty: Ty, told: bool) -> String {
        let known = self.variables.iter().filter(|v| v.ty == ty);
        let known: Vec<&str> = known.map(|v| v.name.as_str()).collect();
        if !known.is_empty() && self.random.chance(70) {
            return self.random.of(&known).to_owned();
        }
        self.literal(ty, told)
    }

    /// A literal; a negative one is in parentheses.
    pub fn literal(&mut self, ty: Ty, told: bool) -> String {
        let text = match ty {
            Ty::Bool => return ["true", "false"][self.random.below(2)].to_owned(),
            Ty::F32 => self
                .random
                .of(&["0.0", "1.0", "0.1", "2.5", "1e6", "1e-3", "7.0"])
                .to_owned(),
            Ty::U8 => self.random.of(&["0", "1", "7", "128", "255"]).to_owned(),
            Ty::U32 => self
                .random
                .of(&["0", "3", "31", "0xffff_ffff", "2_654_435_761"])
                .to_owned(),
            Ty::I32 => self
                .random
                .of(&["0", "1", "13", "-2", "2_147_483_647", "0x55"])
                .to_owned(),
            Ty::I64 => self
                .random
                .of(&["0", "9", "-7", "1_000_000_007", "-1"])
                .to_owned(),
        };
        match (told, text.starts_with('-')) {
            (true, false) => format!("{text}{}", ty.name()),
            (true, true) => format!("({text}{})", ty.name()),
            (false, true) => format!("({text})"),
            (false, false) => text,
        }
    }

    fn integer(&mut self, ty: Ty, depth: u32) -> String {
        let left = self.of(ty, depth, true);
        let right = self.of(ty, depth, false);
        match self.random.below(18) {
            n @ 0..5 => {
                let methods = ["wrapping_add", "wrapping_sub", "wrapping_mul", "min", "max"];
                format!("{left}.{}({right})", methods[n])
            }
            13 => self.bits(ty, &left),
            14 => {
                let methods = [
                    "saturating_add",
                    "saturating_sub",
                    "saturating_mul",
                    "midpoint",
                ];
                format!("{left}.{}({right})", self.random.of(&methods))
            }
            15 => {
                let methods = ["rem_euclid", "div_euclid"];
                format!("{left}.{}(({right} & 7) + 1)", self.random.of(&methods))
            }
            16 => {
                let exponent = self.of(Ty::U32, depth, true);
                let method = self.random.of(&["wrapping_pow", "saturating_pow"]);
                format!("{left}.{method}({exponent} & 31)")
            }
            n @ 5..8 => format!("({left} {} {right})", ["&", "|", "^"][n - 5]),
            8 => format!("(!{left})"),
            n @ 9..11 => format!("({left} {} (({right} & 7) + 1))", ["/", "%"][n - 9]),
            n @ 11..13 => {
                let amount = self.of(Ty::U32, depth, true);
                format!(
                    "({left} {} ({amount} & {}))",
                    ["<<", ">>"][n - 11],
                    ty.bits() - 1
                )
            }
            _ => self.cast(ty, depth),
        }
    }

    /// The bits of an integer, turned, reversed or counted.
    fn bits(&mut self, ty: Ty, left: &str) -> String {
        let counts = [
            "count_ones",
            "count_zeros",
            "leading_zeros",
            "leading_ones",
            "trailing_zeros",
            "trailing_ones",
        ];
        let n = self.random.below(64);
        match self.random.below(4) {
            0 => format!(
                "{left}.{}()",
                self.random.of(&["reverse_bits", "swap_bytes"])
            ),
            1 => format!("{left}.rotate_left({n})"),
            2 => format!("{left}.rotate_right({n})"),
            _ => format!("({left}.{}() as {})", self.random.of(&counts), ty.name()),
        }
    }

    /// `x as T`, of another number, a `bool`, or a literal whose type is the cast's.
    fn cast(&mut self, ty: Ty, depth: u32) -> String {
        if self.random.chance(20) {
            return format!("({} as {})", self.literal(ty, false), ty.name());
        }
        if ty.is_int() && self.random.chance(15) {
            return format!("({} as {})", self.condition(depth.min(1)), ty.name());
        }
        let from = self.random.of(&NUMBERS);
        format!("({} as {})", self.of(from, depth, true), ty.name())
    }

    /// What rounds once, or not at all.
    fn float(&mut self, depth: u32) -> String {
        let left = self.of(Ty::F32, depth, true);
        let right = self.of(Ty::F32, depth, false);
        match self.random.below(15) {
            n @ 0..4 => format!("({left} {} {right})", ["+", "-", "*", "/"][n]),
            4 => format!("(-{left})"),
            n @ 5..13 => {
                let methods = [
                    "abs",
                    "sqrt",
                    "floor",
                    "ceil",
                    "trunc",
                    "round_ties_even",
                    "round",
                    "fract",
                ];
                format!("{left}.{}()", methods[n - 5])
            }
            13 => format!(
                "{left}.mul_add({right}, {})",
                self.of(Ty::F32, depth, false)
            ),
            _ => self.cast(Ty::F32, depth),
        }
    }

    fn condition(&mut self, depth: u32) -> String {
        if depth > 0 && self.random.chance(40) {
            let (left, right) = (
                self.of(Ty::Bool, depth - 1, true),
                self.of(Ty::Bool, depth - 1, true),
            );
            return match self.random.below(6) {
                0 => format!("(!{left})"),
                n => format!("({left} {} {right})", ["&&", "||", "^", "&", "|"][n - 1]),
            };
        }
        let ty = self.random.of(&NUMBERS);
        let (left, right) = (self.of(ty, depth, true), self.of(ty, depth, false));
        let operator = self.random.of(&["<", "<=", ">", ">=", "==", "!="]);
        format!("({left} {operator} {right})")
    }

    /// `if`, `match` and blocks as values.
    fn structured(&mut self, ty: Ty, depth: u32) -> String {
        let (one, other) = (self.of(ty, depth, true), self.of(ty, depth, true));
        match self.random.below(3) {
            0 => format!(
                "(if {} {{ {one} }} else {{ {other} }})",
                self.condition(depth)
            ),
            1 => {
                let subject = self.of(Ty::I32, depth, true);
                let arm = self
                    .random
                    .of(&["0", "-3..=9", "..=-100 | 5", "1 | 2 | 40.."]);
                let guard = match self.random.chance(30) {
                    true => format!(" if {}", self.condition(depth.min(1))),
                    false => String::new(),
                };
                format!("(match {subject} {{ {arm}{guard} => {one}, _ => {other} }})")
            }
            _ => {
                let name = format!("t{}", depth);
                format!(
                    "{{ let {name} = {one}; {} }}",
                    match ty {
                        Ty::Bool => format!("{name} ^ {other}"),
                        Ty::F32 => format!("{name} - {other}"),
                        _ => format!("{name} ^ {other}"),
                    }
                )
            }
        }
    }
}
