//! Executes LLVM's text for AMD's GPUs in the 64 lanes of a wave, as far as a kernel runs straight on and reads no memory:
//! no device runs it here.

use std::collections::HashMap;

/// A number in each lane.
pub type Lanes = [u64; 64];

/// What a wave is given.
pub struct Given<'g> {
    /// The lanes that are here, by their bits; thread `i` is in lane `i`.
    pub active: u64,
    /// The kernel's last parameters that are integers.
    pub params: &'g [u64],
}

/// What the operand of a kernel's last store is in each lane. Nothing is said of lanes that are not here.
///
/// # Panics
/// The text has a branch, or an instruction that is not known here.
pub fn stored(text: &str, given: &Given) -> Lanes {
    let mut lines = text.lines().map(str::trim);
    let define = lines.find(|line| line.starts_with("define amdgpu_kernel "));
    let mut wave = Wave::begin(define.expect("there is a kernel"), given);
    let mut last = None;
    for line in lines.take_while(|line| *line != "}") {
        assert!(!line.starts_with("br i1 "), "a kernel that branches");
        if let Some((name, rest)) = line.split_once(" = ")
            && name.starts_with('%')
        {
            wave.instruction(name, rest);
        }
        if let Some(rest) = line.strip_prefix("store i32 ") {
            last = rest.split(',').next();
        }
    }
    let value = wave.value(last.expect("the kernel stores something"));
    value.map(|number| cut("i32", number))
}

struct Wave<'t> {
    active: u64,
    known: HashMap<&'t str, Lanes>,
}

/// The bits of a number of a type.
fn cut(ty: &str, number: u64) -> u64 {
    number & (u64::MAX >> (64 - width(ty)))
}

fn width(ty: &str) -> u32 {
    match ty {
        "float" => 32,
        "double" => 64,
        _ => ty[1..].parse().expect("a type of numbers"),
    }
}

/// A number of a type, as what has a sign.
fn signed(ty: &str, number: u64) -> i64 {
    let unused = 64 - width(ty);
    (number << unused) as i64 >> unused
}

impl<'t> Wave<'t> {
    fn begin(define: &'t str, given: &Given) -> Wave<'t> {
        let (_, params) = define.split_once('(').expect("parameters");
        let words: Vec<&str> = params
            .split(|c: char| c.is_whitespace() || "(),".contains(c))
            .collect();
        // An attribute of a parameter has parentheses; nothing in it has a name.
        let mut integers = Vec::new();
        let mut is_pointer = true;
        for &word in words.iter().filter(|word| !word.is_empty()) {
            match word {
                "ptr" => is_pointer = true,
                "i8" | "i16" | "i32" | "i64" => is_pointer = false,
                _ if word.starts_with('%') && !is_pointer => integers.push(word),
                _ => {}
            }
        }
        let first = integers.len() - given.params.len();
        let params = integers[first..].iter().zip(given.params);
        Wave {
            active: given.active,
            known: params
                .map(|(&name, &number)| (name, [number; 64]))
                .collect(),
        }
    }

    fn value(&self, name: &str) -> Lanes {
        match name {
            "true" => return [1; 64],
            "false" => return [0; 64],
            _ => {}
        }
        if let Ok(number) = name.parse::<i64>() {
            return [number as u64; 64];
        }
        let known = self.known.get(name);
        *known.unwrap_or_else(|| panic!("nothing makes {name}"))
    }

    fn instruction(&mut self, name: &'t str, text: &str) {
        let words: Vec<&str> = text
            .split([' ', ','])
            .filter(|word| !word.is_empty() && !word.starts_with('!'))
            .collect();
        let value = match words[..] {
            // Addresses are of no use for what is stored.
            ["getelementptr" | "inttoptr" | "addrspacecast", ..] => return,
            ["call" | "tail", ..] => match self.call(text) {
                Some(value) => value,
                None => return,
            },
            ["select", _, cond, _, yes, _, no] => {
                let [cond, yes, no] = [cond, yes, no].map(|name| self.value(name));
                std::array::from_fn(|i| if cond[i] & 1 == 1 { yes[i] } else { no[i] })
            }
            ["icmp", .., how, ty, a, b] => {
                let [a, b] = [a, b].map(|name| self.value(name));
                std::array::from_fn(|i| compare(how, ty, a[i], b[i]).into())
            }
            [op, .., from, name, "to", to] => {
                let value = self.value(name);
                value.map(|number| cut(to, convert(op, from, number)))
            }
            [op, .., ty, a, b] => {
                let [a, b] = [a, b].map(|name| self.value(name));
                std::array::from_fn(|i| cut(ty, binary(op, cut(ty, a[i]), cut(ty, b[i]))))
            }
            _ => panic!("unknown: {text}"),
        };
        self.known.insert(name, value);
    }

    /// What a function gives; of a pointer, nothing.
    fn call(&self, text: &str) -> Option<Lanes> {
        if text.contains("call ptr ") {
            return None;
        }
        let (_, call) = text.split_once('@').expect("a function");
        let (name, args) = call.split_once('(').expect("arguments");
        let args = args.split(')').next().unwrap_or_default();
        let args = args.split(", ").filter(|arg| !arg.is_empty());
        let args = args.map(|arg| arg.rsplit(' ').next().unwrap_or_default());
        let args: Vec<Lanes> = args.map(|name| self.value(name)).collect();
        let each = |of: &dyn Fn(usize) -> u64| -> Lanes { std::array::from_fn(of) };
        let word = |arg: usize, i: usize| args[arg][i] as u32;
        let int = |arg: usize, i: usize| args[arg][i] as i32;
        Some(match name {
            "llvm.amdgcn.workitem.id.x" => each(&|i| i as u64),
            "llvm.amdgcn.mbcnt.lo" => each(&|i| {
                let below = u64::from(word(0, i)) & ((1u64 << i) - 1);
                u64::from(below.count_ones() + word(1, i))
            }),
            "llvm.amdgcn.mbcnt.hi" => each(&|i| {
                let below = (u64::from(word(0, i)) << 32) & ((1u64 << i) - 1);
                u64::from(below.count_ones() + word(1, i))
            }),
            "llvm.amdgcn.ballot.i64" => {
                let lanes: u64 = (0..64).map(|i| (args[0][i] & 1) << i).sum();
                [lanes & self.active; 64]
            }
            // Of a lane that is not here, something that is nobody's value.
            "llvm.amdgcn.ds.bpermute" => each(&|i| {
                let from = args[0][i] as usize / 4 % 64;
                match self.active >> from & 1 {
                    1 => word(1, from).into(),
                    _ => 0xdead_0000 | from as u64,
                }
            }),
            "llvm.cttz.i32" => each(&|i| word(0, i).trailing_zeros().into()),
            "llvm.umin.i32" => each(&|i| word(0, i).min(word(1, i)).into()),
            "llvm.umax.i32" => each(&|i| word(0, i).max(word(1, i)).into()),
            "llvm.smin.i32" => each(&|i| u64::from(int(0, i).min(int(1, i)) as u32)),
            "llvm.smax.i32" => each(&|i| u64::from(int(0, i).max(int(1, i)) as u32)),
            _ => panic!("unknown: {text}"),
        })
    }
}

fn convert(op: &str, from: &str, number: u64) -> u64 {
    match op {
        "zext" | "trunc" | "bitcast" => cut(from, number),
        "sext" => signed(from, number) as u64,
        _ => panic!("unknown: {op}"),
    }
}

fn compare(how: &str, ty: &str, a: u64, b: u64) -> bool {
    let [wide_a, wide_b] = [a, b].map(|number| signed(ty, number));
    let [a, b] = [a, b].map(|number| cut(ty, number));
    match how {
        "eq" => a == b,
        "ne" => a != b,
        "ult" => a < b,
        "ule" => a <= b,
        "sge" => wide_a >= wide_b,
        _ => panic!("unknown: icmp {how}"),
    }
}

fn binary(op: &str, a: u64, b: u64) -> u64 {
    match op {
        "add" => a.wrapping_add(b),
        "sub" => a.wrapping_sub(b),
        "mul" => a.wrapping_mul(b),
        "and" => a & b,
        "or" => a | b,
        "xor" => a ^ b,
        // Of a distance that is not below the width LLVM says nothing; no number here is as wide as two words.
        "shl" => a.checked_shl(b as u32).unwrap_or(0xdead),
        "lshr" => a.checked_shr(b as u32).unwrap_or(0xdead),
        _ => panic!("unknown: {op}"),
    }
}
