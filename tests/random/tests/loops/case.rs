//! Kernels of random loops over slices of a few elements, as text of the IR.

use std::fmt::Write;

use kiln_jit_core::ir::parse;
use kiln_random::random::Random;
use kiln_random::{Arg, Case};

/// How deep loops are in each other.
const MAX_DEPTH: usize = 3;

/// Text of a kernel while it is written.
struct Writer {
    random: Random,
    text: String,
    next: usize,
    /// Values of type `u32` that can be used here.
    known: Vec<usize>,
    /// The last one that an index was, if it can be used.
    recent: Option<usize>,
    /// Variables that count turns of loops around, which can be read here.
    counting: Vec<usize>,
    /// How many variables there are: the sum is the first.
    vars: usize,
    depth: usize,
    /// How many loops there are around.
    loops: usize,
    /// Whether there are threads, which meet.
    meet: bool,
    /// Whether all threads come here.
    together: bool,
    /// How many functions there are to call.
    callable: usize,
    /// Whether it is one of them, which gives a number.
    is_function: bool,
}

impl Writer {
    fn new(random: Random, meet: bool, callable: usize) -> Writer {
        Writer {
            random,
            text: String::new(),
            next: 7,
            known: vec![3, 4, 5],
            meet,
            together: true,
            recent: None,
            counting: Vec::new(),
            vars: 1,
            depth: 0,
            loops: 0,
            callable,
            is_function: false,
        }
    }

    /// The declarations of variables.
    fn vars(&self) -> String {
        let vars = (0..self.vars).map(|n| format!("  var var{n} v: u32\n"));
        vars.collect()
    }

    fn line(&mut self, what: &str) {
        let indent = 2 * (self.depth + 1);
        let _ = writeln!(self.text, "{:indent$}{what}", "");
    }

    fn value(&mut self, ty: &str, what: &str) -> usize {
        let number = self.next;
        self.next += 1;
        self.line(&format!("%{number}: {ty} = {what}"));
        number
    }

    fn constant(&mut self) -> usize {
        let small = self.random.below(12) as u32;
        let number = match self.random.below(20) {
            0 => u32::MAX - small,
            1 => 1 << 31,
            2 => 1 << self.random.below(32),
            _ => small,
        };
        self.value("u32", &format!("const {number}"))
    }

    /// An expression of type `u32`.
    fn number(&mut self, depth: usize) -> usize {
        let leaf = depth == 0 || self.random.chance(35);
        if leaf {
            let counting = self.counting.len();
            return match self.random.below(10) {
                0..3 if counting > 0 => {
                    let var = self.counting[self.random.below(counting)];
                    self.value("u32", &format!("get var{var}"))
                }
                0..6 => self.known[self.random.below(self.known.len())],
                6 => {
                    let at = self.element("%0", depth);
                    self.value("u32", &format!("load %{at}"))
                }
                7 if self.depth > 0 => {
                    let sum = self.value("u32", "get var0");
                    let few = self.value("u32", "const 15");
                    self.value("u32", &format!("and %{sum}, %{few}"))
                }
                _ => self.constant(),
            };
        }
        if !self.counting.is_empty() && self.random.chance(10) {
            let var = self.counting[self.random.below(self.counting.len())];
            let counter = self.value("u32", &format!("get var{var}"));
            let from = self.known[self.random.below(self.known.len())];
            return self.value("u32", &format!("sub %{counter}, %{from}"));
        }
        if !self.counting.is_empty() && self.random.chance(10) {
            let var = self.counting[self.random.below(self.counting.len())];
            let counter = self.value("u32", &format!("get var{var}"));
            let from = self.known[self.random.below(self.known.len())];
            return self.value("u32", &format!("sub %{counter}, %{from}"));
        }
        if self.random.chance(12) {
            return self.chosen(depth);
        }
        let op = self.random.of(&[
            "add", "add", "add", "sub", "mul", "mul", "shl", "rem", "and", "neg", "cast",
        ]);
        let a = self.number(depth - 1);
        if self.meet && self.random.chance(25) {
            let (op, most) = self
                .random
                .of(&[("div", 7), ("rem", 12), ("shr", 3), ("min", 9)]);
            let few = self.random.within(1, most);
            let few = self.value("u32", &format!("const {few}"));
            return self.value("u32", &format!("{op} %{a}, %{few}"));
        }
        match op {
            "neg" => self.value("u32", &format!("neg %{a}")),
            "cast" => {
                let ty = self.random.of(&["i32", "u64", "i64", "u16", "i8"]);
                let other = self.value(ty, &format!("cast %{a}"));
                self.value("u32", &format!("cast %{other}"))
            }
            _ => {
                let b = self.number(depth - 1);
                self.value("u32", &format!("{op} %{a}, %{b}"))
            }
        }
    }

    /// One of several numbers: what branches set, what is selected, the smaller or larger of two.
    fn chosen(&mut self, depth: usize) -> usize {
        let a = match self.random.chance(50) {
            true => self.part(),
            false => self.number(depth - 1),
        };
        let few = self.random.below(12);
        let few = self.value("u32", &format!("const {few}"));
        let known = self.known[self.random.below(self.known.len())];
        let b = self.random.of(&[few, few, known]);
        match self.random.below(6) {
            0 => return self.value("u32", &format!("min %{a}, %{b}")),
            1 => return self.value("u32", &format!("max %{a}, %{b}")),
            2 => {
                // As a number with a sign.
                let [a, b] = [a, b].map(|n| self.value("i32", &format!("cast %{n}")));
                let less = self.value("i32", &format!("sub %{a}, %{b}"));
                let zero = self.value("i32", "const 0");
                let most = self.value("i32", &format!("max %{less}, %{zero}"));
                return self.value("u32", &format!("cast %{most}"));
            }
            _ => {}
        }
        let op = self.random.of(&["lt", "le", "gt", "ge", "ne", "eq"]);
        let mut cond = self.value("bool", &format!("{op} %{a}, %{b}"));
        if self.random.chance(30) {
            let (x, y) = (self.number(0), self.number(0));
            let other = self.value("bool", &format!("lt %{x}, %{y}"));
            let op = self.random.of(&["and", "or"]);
            cond = self.value("bool", &format!("{op} %{cond}, %{other}"));
        }
        if self.random.chance(25) {
            let [x, y] = [(); 2].map(|()| self.near(a, b));
            return self.value("u32", &format!("select %{cond}, %{x}, %{y}"));
        }
        let var = self.vars;
        self.vars += 1;
        let both = self.random.chance(70);
        if !both || self.random.chance(20) {
            let first = self.near(a, b);
            self.line(&format!("set var{var}, %{first}"));
        }
        self.line(&format!("if %{cond} {{"));
        let set = |w: &mut Writer| {
            let number = w.near(a, b);
            w.line(&format!("set var{var}, %{number}"));
        };
        self.block(set);
        if both {
            self.line("} else {");
            self.block(set);
        }
        self.line("}");
        self.value("u32", &format!("get var{var}"))
    }

    /// One of two numbers, or one beside it.
    fn near(&mut self, a: usize, b: usize) -> usize {
        let number = self.random.of(&[a, a, b]);
        let op = match self.random.below(5) {
            0 => "add",
            1 | 2 => "sub",
            _ => return number,
        };
        let few = self.random.within(1, 2);
        let few = self.value("u32", &format!("const {few}"));
        self.value("u32", &format!("{op} %{number}, %{few}"))
    }

    /// A number as one finds it in kernels: a part of a thread's index, or of what is known of it.
    fn part(&mut self) -> usize {
        let few = self.random.below(self.known.len().min(6));
        let some = match self.recent {
            Some(recent) if self.known.contains(&recent) && self.random.chance(40) => recent,
            _ => self.known[self.known.len() - 1 - few],
        };
        let number = self.random.within(1, 8);
        let op = match self.random.below(10) {
            0..4 => return some,
            4 => "rem",
            5 => "div",
            6 => "and",
            7 => "min",
            8 => "mul",
            _ => "add",
        };
        let number = self.value("u32", &format!("const {number}"));
        self.value("u32", &format!("{op} %{some}, %{number}"))
    }

    /// The address of an element: of a slice that is read, or one that is written.
    fn element(&mut self, slice: &str, depth: usize) -> usize {
        let number = match self.recent {
            _ if self.meet && self.random.chance(70) => {
                let part = self.part();
                match self.random.chance(40) {
                    true => {
                        let other = self.part();
                        let op = self.random.of(&["add", "add", "sub"]);
                        self.value("u32", &format!("{op} %{part}, %{other}"))
                    }
                    false => part,
                }
            }
            // Beside another one.
            Some(recent) if self.known.contains(&recent) && self.random.chance(40) => {
                let few = self.random.below(6);
                let few = self.value("u32", &format!("const {few}"));
                let op = self.random.of(&["add", "sub"]);
                self.value("u32", &format!("{op} %{recent}, %{few}"))
            }
            _ => self.number(depth.clamp(2, 3) - 1),
        };
        if self.random.chance(30) {
            self.known.push(number);
            self.recent = Some(number);
        }
        let index = match self.random.below(8) {
            0 => self.value("i32", &format!("cast %{number}")),
            1 => self.wide("u64", number),
            2 => self.wide("i64", number),
            _ => number,
        };
        if slice == "tile" {
            return self.value("ptr<shared, mut u32>", &format!("element_ptr %7, %{index}"));
        }
        let space = if slice == "%1" { "mut u32" } else { "u32" };
        self.value(
            &format!("ptr<generic, {space}>"),
            &format!("slice_index {slice}, %{index}"),
        )
    }

    /// A number as one of 64 bits, perhaps with another one added.
    fn wide(&mut self, ty: &str, number: usize) -> usize {
        let wide = self.value(ty, &format!("cast %{number}"));
        let other = match self.random.below(4) {
            0 => {
                let number = self.random.below(9);
                self.value(ty, &format!("const {number}"))
            }
            1 => self.value(ty, "cast %6"),
            2 => {
                let number = self.number(1);
                self.value(ty, &format!("cast %{number}"))
            }
            _ => return wide,
        };
        let op = self.random.of(&["add", "sub", "mul"]);
        self.value(ty, &format!("{op} %{wide}, %{other}"))
    }

    /// Goes on with a counter.
    fn skip(&mut self) {
        if let Some(&var) = self.counting.last() {
            let counter = self.value("u32", &format!("get var{var}"));
            let some = self.value("u32", "const 3");
            let next = self.value("u32", &format!("add %{counter}, %{some}"));
            self.line(&format!("set var{var}, %{next}"));
        }
    }

    fn statement(&mut self) {
        if self.callable > 0 && self.random.chance(25) {
            return self.call();
        }
        if self.is_function && self.random.chance(8) {
            return self.leave();
        }
        if self.together && self.random.chance(3) {
            self.skip();
        }
        if self.meet && self.together && self.depth > 0 && self.random.chance(50) {
            self.line("barrier");
        }
        match self
            .random
            .below(if self.depth < MAX_DEPTH { 12 } else { 8 })
        {
            0..4 => {
                let slice = self.slice(&["%0", "%1", "%2"]);
                let at = self.element(slice, 3);
                let loaded = self.value("u32", &format!("load %{at}"));
                let sum = self.value("u32", "get var0");
                let sum = self.value("u32", &format!("add %{sum}, %{loaded}"));
                self.line(&format!("set var0, %{sum}"));
            }
            4..6 => {
                let slice = self.slice(&["%1"]);
                let at = self.element(slice, 3);
                let sum = self.value("u32", "get var0");
                self.line(&format!("store %{at}, %{sum}"));
            }
            6 if self.random.chance(70) => self.guarded(),
            6 => {
                let (a, b) = (self.number(1), self.number(1));
                let cond = self.value("bool", &format!("lt %{a}, %{b}"));
                self.line(&format!("if %{cond} {{"));
                let leaves = !self.meet && self.loops > 0 && self.random.chance(20);
                self.block(|w| {
                    w.together &= !w.meet;
                    w.statement();
                    if leaves {
                        w.line("break 0");
                    }
                });
                if self.random.chance(25) {
                    self.line("} else {");
                    self.block(|w| {
                        w.together &= !w.meet;
                        w.statement();
                    });
                }
                self.line("}");
            }
            7 => {
                let number = self.number(2);
                self.known.push(number);
            }
            8..10 => self.counted(),
            10 => self.carried(),
            _ => self.while_below(),
        }
    }

    /// Calls a function with the slices or parts of them, and takes what it gives for a number.
    fn call(&mut self) {
        let slices = ["%0", "%1", "%2"].map(|slice| match self.random.chance(15) {
            true => self.part_of(slice),
            false => slice.to_owned(),
        });
        let numbers = [(); 3].map(|()| self.number(1));
        let function = self.random.below(self.callable);
        let [a, b, c] = slices;
        let [n, m, k] = numbers;
        let call = format!("call @f{function}({a}, {b}, {c}, %{n}, %{m}, %{k}, %6)");
        let given = self.value("u32", &call);
        let sum = self.value("u32", "get var0");
        let sum = self.value("u32", &format!("add %{sum}, %{given}"));
        self.line(&format!("set var0, %{sum}"));
        if self.random.chance(30) {
            self.known.push(given);
        }
    }

    /// A part of a slice, whose first and last element are there.
    fn part_of(&mut self, slice: &str) -> String {
        let start = self.small_number();
        let length = match self.random.chance(60) {
            true => self.constant(),
            false => self.number(1),
        };
        let most = self.random.within(1, 6);
        let most = self.value("u32", &format!("const {most}"));
        let length = match self.random.chance(50) {
            true => most,
            false => self.value("u32", &format!("min %{length}, %{most}")),
        };
        let one = self.value("u32", "const 1");
        let end = self.value("u32", &format!("add %{start}, %{length}"));
        let last = self.value("u32", &format!("sub %{end}, %{one}"));
        let element = if slice == "%1" { "mut u32" } else { "u32" };
        let address = format!("ptr<generic, {element}>");
        self.value(&address, &format!("slice_index {slice}, %{last}"));
        let first = self.value(&address, &format!("slice_index {slice}, %{start}"));
        let part = format!("slice_new %{first}, %{length}");
        let part = self.value(&format!("slice<generic, {element}>"), &part);
        format!("%{part}")
    }

    /// Returns from the function, perhaps.
    fn leave(&mut self) {
        let (a, b) = (self.number(1), self.number(1));
        let op = self.random.of(&["lt", "ge", "eq"]);
        let cond = self.value("bool", &format!("{op} %{a}, %{b}"));
        self.line(&format!("if %{cond} {{"));
        let both = self.random.chance(25);
        let returns = |w: &mut Writer| {
            let given = w.number(1);
            w.line(&format!("return %{given}"));
        };
        self.block(returns);
        if both {
            self.line("} else {");
            self.block(|w| w.statement());
        }
        self.line("}");
    }

    /// A slice of these, or the tile of threads.
    fn slice(&mut self, slices: &[&'static str]) -> &'static str {
        match self.meet && self.random.chance(40) {
            true => "tile",
            false => self.random.of(slices),
        }
    }

    /// What is done where numbers are below others.
    fn guarded(&mut self) {
        let (mut cond, mut bounded) = (None, Vec::new());
        for _ in 0..self.random.within(1, 2) {
            let number = self.number(2);
            let bound = match self.random.below(4) {
                0..2 => self.known[self.random.below(3)],
                2 => self.known[self.random.below(self.known.len())],
                _ if self.random.chance(40) => {
                    // As far as from the other end.
                    let few = self.random.below(16);
                    let few = self.value("u32", &format!("const {few}"));
                    let turn = self.known[self.random.below(self.known.len())];
                    self.value("u32", &format!("sub %{few}, %{turn}"))
                }
                _ => self.constant(),
            };
            let compare = match self.random.below(4) {
                0 => format!("le %{number}, %{bound}"),
                1 => format!("gt %{bound}, %{number}"),
                _ => format!("lt %{number}, %{bound}"),
            };
            let holds = self.value("bool", &compare);
            cond = Some(match cond {
                Some(cond) => self.value("bool", &format!("and %{cond}, %{holds}")),
                None => holds,
            });
            bounded.push(number);
            if self.random.chance(30) {
                let (a, b) = self.random.of(&[(bound, number), (number, bound)]);
                let op = self.random.of(&["sub", "sub", "add"]);
                bounded.push(self.value("u32", &format!("{op} %{a}, %{b}")));
            }
        }
        let cond = cond.expect("there is one");
        self.line(&format!("if %{cond} {{"));
        self.block(|w| {
            w.together = false;
            w.recent = bounded.last().copied();
            // More often than others.
            for _ in 0..3 {
                w.known.extend(&bounded);
            }
            w.statements();
        });
        self.line("}");
    }

    fn block(&mut self, write: impl FnOnce(&mut Writer)) {
        let (known, counting) = (self.known.len(), self.counting.len());
        let together = self.together;
        self.depth += 1;
        write(self);
        self.depth -= 1;
        self.together = together;
        self.known.truncate(known);
        self.counting.truncate(counting);
    }

    /// The body of a loop.
    fn turn(&mut self, write: impl FnOnce(&mut Writer)) {
        self.loops += 1;
        self.block(write);
        self.loops -= 1;
    }

    fn statements(&mut self) {
        let most: &[usize] = match self.meet {
            true => &[1, 2],
            false => &[1, 1, 1, 2, 2, 3, 5],
        };
        for _ in 0..self.random.of(most) {
            self.statement();
        }
    }

    /// A `for` of few turns.
    fn counted(&mut self) {
        let start = self.small_number();
        let turns = self.random.of(&[0, 1, 4, 9, 16]);
        let of_any = self.meet && self.depth > 0 && self.random.chance(25);
        let end = match self.random.below(3) {
            // A turn of a loop around, perhaps.
            _ if of_any => self.known[self.random.below(self.known.len())],
            0 => self.known[self.random.below(3)],
            _ => {
                let turns = self.value("u32", &format!("const {turns}"));
                self.value("u32", &format!("add %{start}, %{turns}"))
            }
        };
        let step = self.random.of(&[1, 1, 1, 2, 3, 4]);
        let step = self.value("u32", &format!("const {step}"));
        let index = self.next;
        self.next += 1;
        self.line(&format!(
            "for %{index}: u32 in %{start} .. %{end} step %{step} {{"
        ));
        let moved = self.moved();
        self.turn(|w| {
            w.together &= !of_any;
            w.known.push(index);
            w.with_moved(moved);
        });
        self.line("}");
    }

    /// A variable that a loop moves on beside its counter, at times.
    fn moved(&mut self) -> Option<usize> {
        let is_there = self.random.chance(30);
        is_there.then(|| {
            let start = self.small_number();
            let var = self.vars;
            self.vars += 1;
            self.line(&format!("set var{var}, %{start}"));
            var
        })
    }

    /// Statements, among which a variable is moved on.
    fn with_moved(&mut self, moved: Option<usize>) {
        if self.random.chance(50) || moved.is_none() {
            self.statements();
        }
        let Some(var) = moved else {
            return;
        };
        self.counting.insert(0, var);
        self.statements();
        if !self.meet && self.random.chance(15) {
            // A turn that moves nothing.
            let (a, b) = (self.number(1), self.number(1));
            let cond = self.value("bool", &format!("lt %{a}, %{b}"));
            self.line(&format!("if %{cond} {{"));
            self.block(|w| w.line("continue 0"));
            self.line("}");
        }
        let was = self.value("u32", &format!("get var{var}"));
        let by = self.small_number();
        let op = self
            .random
            .of(&["add", "add", "add", "sub", "div", "shr", "mul"]);
        let by = match op {
            "div" | "shr" => self.value("u32", "const 2"),
            _ => by,
        };
        let next = self.value("u32", &format!("{op} %{was}, %{by}"));
        self.line(&format!("set var{var}, %{next}"));
        if self.random.chance(40) {
            self.statements();
        }
    }

    /// `while s > 0 { ..; s /= 2 }` and its kind: a variable that is halved, doubled or made less, at the end of a turn or
    /// in it.
    fn carried(&mut self) {
        let (way, by) = self.random.of(&[
            ("div", 2),
            ("div", 3),
            ("shr", 1),
            ("sub", 1),
            ("sub", 3),
            ("mul", 2),
            ("shl", 1),
        ]);
        let rises = matches!(way, "mul" | "shl");
        let (start, end) = match rises {
            true => {
                let one = self.value("u32", "const 1");
                let start = self.small_number();
                let start = self.value("u32", &format!("max %{start}, %{one}"));
                (start, self.known[self.random.below(3)])
            }
            false => {
                let start = self.small_number();
                let least = match self.random.chance(70) {
                    true => self.random.below(4) as u32,
                    false => by,
                };
                (start, self.value("u32", &format!("const {least}")))
            }
        };
        let var = self.vars;
        self.vars += 1;
        self.line(&format!("set var{var}, %{start}"));
        self.assign_again(var);
        self.line("loop {");
        self.turn(|w| {
            let now = w.value("u32", &format!("get var{var}"));
            let op = match (rises, w.random.below(4)) {
                (true, 0) => "le",
                (true, _) => "lt",
                (false, 0) => "ge",
                (false, 1) => "ne",
                (false, _) => "gt",
            };
            let more = w.value("bool", &format!("{op} %{now}, %{end}"));
            let done = w.value("bool", &format!("not %{more}"));
            w.line(&format!("if %{done} {{"));
            w.block(|w| w.line("break 0"));
            w.line("}");
            w.counting.push(var);
            if w.random.chance(60) {
                w.statements();
            }
            let was = w.value("u32", &format!("get var{var}"));
            let by = w.value("u32", &format!("const {by}"));
            let next = w.value("u32", &format!("{way} %{was}, %{by}"));
            w.line(&format!("set var{var}, %{next}"));
            if w.random.chance(40) {
                w.statements();
            }
        });
        self.line("}");
    }

    /// At times gives a variable another number before its loop, for all threads or for some.
    fn assign_again(&mut self, var: usize) {
        if !self.random.chance(15) {
            return;
        }
        let (number, other) = (self.small_number(), self.small_number());
        let cond = self.value("bool", &format!("lt %{number}, %{other}"));
        self.line(&format!("if %{cond} {{"));
        self.block(|w| w.line(&format!("set var{var}, %{number}")));
        self.line("}");
    }

    fn small_number(&mut self) -> usize {
        match self.random.below(3) {
            0 => self.known[self.random.below(3)],
            _ => {
                let number = self.random.below(4);
                self.value("u32", &format!("const {number}"))
            }
        }
    }

    /// `while i < end { ..; i += step }`, also `while i + 4 <= end`.
    fn while_below(&mut self) {
        let end = self.known[self.random.below(3)];
        let start = match self.random.below(3) {
            // Up to the largest number, if the end is there.
            0 => {
                let turns = self.random.within(1, 10);
                let turns = self.value("u32", &format!("const {turns}"));
                let start = self.value("u32", &format!("sub %{end}, %{turns}"));
                self.known.push(start);
                start
            }
            _ => self.small_number(),
        };
        let var = self.vars;
        self.vars += 1;
        self.line(&format!("set var{var}, %{start}"));
        self.assign_again(var);
        let moved = self.moved();
        self.line("loop {");
        self.turn(|w| {
            let counter = w.value("u32", &format!("get var{var}"));
            let compared = match w.random.chance(40) {
                true => {
                    let ahead = w.random.of(&[1, 2, 4, 9]);
                    let ahead = w.value("u32", &format!("const {ahead}"));
                    w.value("u32", &format!("add %{counter}, %{ahead}"))
                }
                false => counter,
            };
            let is_before = w.random.of(&["lt", "lt", "le"]);
            let more = w.value("bool", &format!("{is_before} %{compared}, %{end}"));
            let done = w.value("bool", &format!("not %{more}"));
            w.line(&format!("if %{done} {{"));
            w.block(|w| w.line("break 0"));
            w.line("}");
            w.counting.push(var);
            w.with_moved(moved);
            let step = w.random.of(&[1, 1, 2, 5]);
            let step = w.value("u32", &format!("const {step}"));
            let counter = w.value("u32", &format!("get var{var}"));
            let next = w.value("u32", &format!("add %{counter}, %{step}"));
            w.line(&format!("set var{var}, %{next}"));
            if w.random.chance(20) {
                w.statements();
            }
        });
        self.line("}");
    }
}

/// The parameters of a kernel, and of each function that it calls.
const PARAMS: &str = "%0 a: slice<generic, u32>, %1 b: slice<generic, mut u32>, %2 c: slice<generic, u32>, \
                      %3 n: u32, %4 m: u32, %5 k: u32, %6 w: u64";

/// A kernel with slices of a few elements: indices and numbers that are read, what is written. It is of one thread, or
/// of blocks whose threads `meet`.
pub fn case(seed: u64, meet: bool) -> Case {
    case_that_calls(seed, meet, 0)
}

/// The same with so many functions, which have the slices or parts of them and call each other.
pub fn case_that_calls(seed: u64, meet: bool, functions: usize) -> Case {
    let mut random = Random::new(seed);
    let mut functions_text = String::new();
    for number in 0..functions {
        let mut writer = Writer {
            is_function: true,
            ..Writer::new(random, false, number)
        };
        for _ in 0..writer.random.within(1, 2) {
            writer.statement();
        }
        let given = writer.value("u32", "get var0");
        writer.line(&format!("return %{given}"));
        let (vars, text) = (writer.vars(), writer.text);
        let _ = write!(
            functions_text,
            "\ndevice @f{number}({PARAMS}) -> u32 {{\n{vars}{text}}}\n"
        );
        random = writer.random;
    }
    let mut writer = Writer::new(random, meet, functions);
    if meet {
        writer.value("ptr<shared, mut [u32; 24]>", "shared_addr shared0");
        for row in ["thread_idx.x", "thread_idx.y", "block_idx.x"] {
            let position = writer.value("u32", &format!("intrinsic {row}()"));
            writer.known.push(position);
        }
    }
    let loops = if meet { 1 } else { 3 };
    for _ in 0..writer.random.within(1, loops) {
        match writer.random.below(10) {
            0..5 => writer.counted(),
            5..7 => writer.while_below(),
            7 => writer.carried(),
            // A kernel of threads has the loop in which they meet.
            _ if meet => writer.counted(),
            _ => writer.statements(),
        }
    }
    let last = writer.value("u32", "const 0");
    let at = writer.value("ptr<generic, mut u32>", &format!("slice_index %1, %{last}"));
    let sum = writer.value("u32", "get var0");
    writer.line(&format!("store %{at}, %{sum}"));
    let mut vars = writer.vars();
    if meet {
        vars += "  shared shared0 tile: [u32; 24] align 4\n";
    }
    let text = format!(
        "module loops legal\n\nkernel @loops({PARAMS}) {{\n{vars}{}}}\n{functions_text}",
        writer.text
    );
    let rows = &kiln_device_stdlib::find;
    let module = parse(&text, rows).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
    let mut random = writer.random;
    let (grid, block) = match meet {
        true => (
            [2, 1, 1],
            [random.within(1, 8) as u32, random.within(1, 4) as u32, 1],
        ),
        false => ([1; 3], [1; 3]),
    };
    let mut buffer = |below: usize| {
        let elements = if random.chance(8) {
            0
        } else {
            random.within(1, 40)
        };
        let element = |random: &mut Random| (random.below(below) as u32).to_le_bytes();
        (0..elements)
            .flat_map(|_| element(&mut random))
            .collect::<Vec<u8>>()
    };
    let buffers = vec![buffer(30), buffer(1000), buffer(1 << 20)];
    let mut scalar = |extreme: u64| {
        let small = random.below(20) as u64;
        match random.below(8) {
            0 => extreme.wrapping_sub(small),
            1 => (extreme >> 1) + small,
            _ => small,
        }
    };
    let scalars = [0; 3].map(|_| (scalar(1 << 32) as u32).to_le_bytes().to_vec());
    let wide = scalar(if seed.is_multiple_of(2) { 1 << 32 } else { 0 })
        .to_le_bytes()
        .to_vec();
    let scalars = scalars.into_iter().chain([wide]).map(Arg::Bytes);
    Case {
        module,
        grid,
        block,
        dynamic_shared: 0,
        args: (0..3).map(Arg::Buffer).chain(scalars).collect(),
        buffers,
        seed,
    }
}
