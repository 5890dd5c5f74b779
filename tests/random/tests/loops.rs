//! Random loops over indices that stay in bounds or do not, as they are in the interpreter and without the checks
//! that hooks move out of them: the same elements are written, or the same thread faults at the same element.
//!
//! The seeds are always the same; `KILN_FUZZ_SEED` sets another first one, `KILN_FUZZ_COUNT` how many there are.

use std::fmt::Write;

use kiln_hooks::standard;
use kiln_jit_core::hook::HookSet;
use kiln_jit_core::ir::{InstData, parse};
use kiln_jit_core::simt::Uniformities;
use kiln_random::random::Random;
use kiln_random::run::HostRunner;
use kiln_random::{Arg, Case, InterpreterRunner, OnHostRunner, Runner, hooked};

/// How many kernels are compared.
const KERNELS: u64 = 3000;

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
}

impl Writer {
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
            6 if self.meet && self.random.chance(70) => self.guarded(),
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
            8..11 => self.counted(),
            _ => self.while_below(),
        }
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
                bounded.push(self.value("u32", &format!("sub %{a}, %{b}")));
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
        self.turn(|w| {
            w.together &= !of_any;
            w.known.push(index);
            w.statements();
        });
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

    /// `while i < end { ..; i += step }`
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
        self.line("loop {");
        self.turn(|w| {
            let counter = w.value("u32", &format!("get var{var}"));
            let more = w.value("bool", &format!("lt %{counter}, %{end}"));
            let done = w.value("bool", &format!("not %{more}"));
            w.line(&format!("if %{done} {{"));
            w.block(|w| w.line("break 0"));
            w.line("}");
            w.counting.push(var);
            w.statements();
            let step = w.random.of(&[1, 1, 2, 5]);
            let step = w.value("u32", &format!("const {step}"));
            let counter = w.value("u32", &format!("get var{var}"));
            let next = w.value("u32", &format!("add %{counter}, %{step}"));
            w.line(&format!("set var{var}, %{next}"));
        });
        self.line("}");
    }
}

/// A kernel with slices of a few elements: indices and numbers that are read, what is written. It is of one thread, or
/// of blocks whose threads `meet`.
fn case(seed: u64, meet: bool) -> Case {
    let mut writer = Writer {
        random: Random::new(seed),
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
    };
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
            0..6 => writer.counted(),
            6..8 => writer.while_below(),
            // A kernel of threads has the loop in which they meet.
            _ if meet => writer.counted(),
            _ => writer.statements(),
        }
    }
    let last = writer.value("u32", "const 0");
    let at = writer.value("ptr<generic, mut u32>", &format!("slice_index %1, %{last}"));
    let sum = writer.value("u32", "get var0");
    writer.line(&format!("store %{at}, %{sum}"));
    let vars = (0..writer.vars).map(|n| format!("  var var{n} v: u32\n"));
    let mut vars: String = vars.collect();
    if meet {
        vars += "  shared shared0 tile: [u32; 24] align 4\n";
    }
    let text = format!(
        "module loops legal\n\nkernel @loops(%0 a: slice<generic, u32>, %1 b: slice<generic, mut u32>, \
         %2 c: slice<generic, u32>, %3 n: u32, %4 m: u32, %5 k: u32, %6 w: u64) {{\n{vars}{}}}\n",
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

fn number(name: &str, otherwise: u64) -> u64 {
    let given = std::env::var(name).ok().and_then(|text| text.parse().ok());
    given.unwrap_or(otherwise)
}

/// How many accesses of a kernel are checked.
fn checks(case: &Case) -> usize {
    let insts = case.kernel().insts.values();
    insts.filter(|node| node.data.check().is_some()).count()
}

/// Whether a kernel takes more turns than the interpreter makes.
fn ends_late(result: &Result<Vec<Vec<u8>>, String>) -> bool {
    let late = |error: &String| {
        error.contains("loop iterations") || error.contains("is in a loop that does not end")
    };
    result.as_ref().is_err_and(late)
}

fn unchecked(case: &Case) -> usize {
    let accesses = case.kernel().insts.values();
    let unchecked = |data: &InstData| matches!(data.access(), Some((_, false)));
    accesses.filter(|node| unchecked(&node.data)).count()
}

/// Whether all threads of a block come to each barrier, as far as `if`s decide.
fn meet_alike(case: &Case) -> bool {
    let kernel = case.kernel();
    let known = Uniformities::of_any_block(&case.module, kernel);
    kernel.insts.values().all(|node| {
        let mut barriers = 0;
        if let InstData::If { cond, .. } = node.data
            && !known.is_of_block(cond)
        {
            for region in node.data.regions() {
                kernel.walk(region, &mut |_, inst| {
                    barriers += usize::from(kernel.insts[inst].data.is_barrier());
                });
            }
        }
        barriers == 0
    })
}

#[test]
fn loops_do_the_same_with_fewer_checks() {
    do_the_same(1 << 40, false);
}

#[test]
fn loops_in_which_threads_meet_do_the_same_with_fewer_checks() {
    do_the_same(3 << 40, true);
}

fn do_the_same(first: u64, meet: bool) {
    let hooks = HookSet::new().with_all(&standard().only("bounds-checks"));
    let (first, count) = (
        number("KILN_FUZZ_SEED", first),
        number("KILN_FUZZ_COUNT", KERNELS),
    );
    let (mut faults, mut fewer) = (0, 0);
    for seed in first..first + count {
        let case = case(seed, meet);
        let expected = InterpreterRunner.run(&case);
        if ends_late(&expected) {
            continue;
        }
        let without =
            hooked(&case, &hooks).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", case.module));
        let found = InterpreterRunner.run(&without);
        // A loop that is run again makes its turns twice.
        if ends_late(&found) && expected.is_err() {
            continue;
        }
        assert_eq!(
            found, expected,
            "seed {seed}\n{}\n{}",
            case.module, without.module
        );
        assert!(meet_alike(&without), "seed {seed}\n{}", without.module);
        faults += u64::from(expected.is_err());
        fewer += u64::from(unchecked(&without) > 0);
        assert!(checks(&without) <= 4 * checks(&case), "seed {seed}");
    }
    println!("of {count} kernels {faults} fault, and {fewer} have accesses without checks");
    assert!(
        count < KERNELS || faults > count / 5 && faults < count * 4 / 5,
        "{faults} of {count} fault"
    );
    assert!(
        count < KERNELS || fewer > count / 4,
        "{fewer} of {count} have fewer checks"
    );
}

/// What threads that meet do with `%0` in turn `%8`, where `%3` is the thread's index and `%2` a number.
const FORMS: [&str; 15] = [
    "%10: ptr<generic, u32> = slice_index %0, %3\n%11: u32 = load %10",
    "%10: u32 = rem %3, %6\n%11: ptr<generic, u32> = slice_index %0, %10\n%12: u32 = load %11",
    "%10: u32 = and %3, %6\n%11: ptr<generic, u32> = slice_index %0, %10\n%12: u32 = load %11",
    "%10: u32 = min %3, %6\n%11: ptr<generic, u32> = slice_index %0, %10\n%12: u32 = load %11",
    "%10: u32 = add %3, %8\n%11: u32 = div %10, %6\n%12: ptr<generic, u32> = slice_index %0, %11\n%13: u32 = load %12",
    "%10: u32 = mul %3, %2\n%11: u32 = add %10, %8\n%12: ptr<generic, u32> = slice_index %0, %11\n%13: u32 = load %12",
    "%10: bool = lt %3, %2\nif %10 {\n%11: ptr<generic, u32> = slice_index %0, %3\n%12: u32 = load %11\n}",
    "%10: bool = le %3, %2\nif %10 {\n%11: ptr<generic, u32> = slice_index %0, %3\n%12: u32 = load %11\n}",
    // What is below one's turn, and how far.
    "%10: bool = le %3, %8\nif %10 {\n%11: u32 = sub %8, %3\n%12: ptr<generic, u32> = slice_index %0, %11\n%13: u32 = load %12\n}",
    "%10: bool = lt %3, %8\nif %10 {\n%11: u32 = sub %3, %8\n%12: u32 = add %11, %6\n%13: ptr<generic, u32> = slice_index %0, %12\n%14: u32 = load %13\n}",
    "%10: bool = le %3, %8\nif %10 {\n%11: u32 = add %8, %8\n%12: u32 = sub %11, %3\n%13: ptr<generic, u32> = slice_index %0, %12\n%14: u32 = load %13\n}",
    // A guard that holds for one of two accesses.
    "%10: bool = lt %3, %2\nif %10 {\n%11: ptr<generic, u32> = slice_index %0, %3\n%12: u32 = load %11\n}\n%13: ptr<generic, u32> = slice_index %0, %3\n%14: u32 = load %13",
    "%10: u32 = const 2\n%11: u32 = div %3, %10\n%12: bool = lt %3, %2\nif %12 {\n%13: ptr<generic, u32> = slice_index %0, %11\n%14: u32 = load %13\n}\n%15: ptr<generic, u32> = slice_index %0, %11\n%16: u32 = load %15",
    "for %10: u32 in %4 .. %8 step %5 {\n%11: ptr<generic, u32> = slice_index %0, %10\n%12: u32 = load %11\n}",
    // Numbers with a sign: one that is below another may be negative.
    "%10: i32 = cast %3\n%11: i32 = cast %6\n%12: i32 = sub %10, %11\n%13: i32 = cast %2\n%14: bool = lt %12, %13\nif %14 {\n%15: u32 = cast %12\n%16: ptr<generic, u32> = slice_index %0, %15\n%17: u32 = load %16\n}",
];

/// Each form, with slices of each length around what it reads.
#[test]
fn threads_that_meet_fault_where_they_did_at_each_length() {
    let hooks = HookSet::new().with_all(&standard().only("bounds-checks"));
    let (mut free, mut faults) = (0, 0);
    for form in FORMS {
        let text = format!(
            "module loops legal

kernel @loops(%0 a: slice<generic, u32>, %1 n: u32, %2 m: u32) {{
  %3: u32 = intrinsic thread_idx.x()
  %4: u32 = const 0
  %5: u32 = const 1
  %6: u32 = const 3
  for %8: u32 in %4 .. %1 step %5 {{
    {form}
    barrier
  }}
}}
"
        );
        for (length, n, m, threads) in sizes() {
            let case = Case {
                block: [threads, 1, 1],
                buffers: vec![vec![0; 4 * length]],
                ..of_text(&text, [n, m])
            };
            let without = hooked(&case, &hooks).expect("the hook takes it");
            let expected = InterpreterRunner.run(&case);
            let found = InterpreterRunner.run(&without);
            assert_eq!(
                found, expected,
                "{length} {n} {m} {threads}\n{}",
                without.module
            );
            faults += usize::from(expected.is_err());
            free += usize::from(unchecked(&without) > 0);
        }
    }
    println!("{faults} fault, and {free} have accesses without checks");
    assert!(faults > 100 && free > 100, "{faults} {free}");
}

/// Lengths of a slice, turns, numbers and threads.
fn sizes() -> impl Iterator<Item = (usize, u32, u32, u32)> {
    (1..12).flat_map(|length| {
        [1, 4].into_iter().flat_map(move |n| {
            let numbers = [1, 2, 5].into_iter();
            numbers.flat_map(move |m| [1, 3, 8].map(|threads| (length, n, m, threads)))
        })
    })
}

/// A kernel of one thread, with a slice of 12 elements and two numbers.
fn of_text(text: &str, numbers: [u32; 2]) -> Case {
    let numbers = numbers.map(|number| Arg::Bytes(number.to_le_bytes().to_vec()));
    Case {
        module: parse(text, &kiln_device_stdlib::find).expect("it is in the notation of the IR"),
        grid: [1; 3],
        block: [1; 3],
        dynamic_shared: 0,
        args: [Arg::Buffer(0)].into_iter().chain(numbers).collect(),
        buffers: vec![vec![0; 4 * 12]],
        seed: 0,
    }
}

/// What a variable was before the loop says nothing of what it is in it.
#[test]
fn a_test_of_what_the_counter_was_is_none_of_the_counter() {
    let text = |tested: &str, old: &str| {
        format!(
            "module loops legal

kernel @loops(%0 a: slice<generic, u32>, %1 start: u32, %2 end: u32) {{
  var var0 i: u32
  set var0, %1
  %3: u32 = get var0
  %4: u32 = const 1
  loop {{
    %5: u32 = get var0
    %6: bool = lt {tested}, %2
    %7: bool = not %6
    if %7 {{
      break 0
    }}
    %8: ptr<generic, u32> = slice_index %0, %5
    %9: u32 = load %8
    %10: u32 = add {old}, %4
    set var0, %10
  }}
}}
"
        )
    };
    let hooks = HookSet::new().with_all(&standard().only("bounds-checks"));
    let accesses = |tested, old| {
        let case = of_text(&text(tested, old), [0, 5]);
        let without = hooked(&case, &hooks).expect("the hook takes it");
        let expected = InterpreterRunner.run(&case);
        assert_eq!(InterpreterRunner.run(&without), expected, "{tested} {old}");
        unchecked(&without)
    };
    assert_eq!(accesses("%5", "%5"), 1);
    assert_eq!(accesses("%3", "%5"), 0);
    assert_eq!(accesses("%5", "%3"), 0);
}

/// A variable that wraps around goes on below its end: what it was last is then not its largest.
#[test]
fn a_counter_that_begins_anew_is_checked() {
    let text = "module loops legal

kernel @loops(%0 a: slice<generic, u32>, %1 start: u32, %2 end: u32) {
  var var0 i: u32
  set var0, %1
  loop {
    %3: u32 = get var0
    %4: bool = lt %3, %2
    %5: bool = not %4
    if %5 {
      break 0
    }
    %6: u32 = get var0
    %7: u32 = sub %6, %1
    %8: ptr<generic, u32> = slice_index %0, %7
    %9: u32 = load %8
    %10: u32 = get var0
    %11: u32 = const 5
    %12: u32 = add %10, %11
    set var0, %12
  }
}
";
    let case = of_text(text, [u32::MAX - 3, u32::MAX - 1]);
    let expected = InterpreterRunner.run(&case);
    let hooks = HookSet::new().with_all(&standard().only("bounds-checks"));
    let without = hooked(&case, &hooks).expect("the hook takes it");
    assert!(unchecked(&without) > 0, "{}", without.module);
    assert_eq!(InterpreterRunner.run(&without), expected);
    let fault = expected.expect_err("the index leaves the slice");
    assert!(fault.starts_with("fault: index 15 of 12"), "{fault}");
}

/// An array of known length is asked nothing, but what counts may still begin anew.
#[test]
fn threads_that_meet_check_a_counter_that_begins_anew() {
    let text = "module loops legal

kernel @loops(%0 a: slice<generic, u32>, %1 step: u32, %2 more: u32) {
  var var0 i: u32
  shared shared0 tile: [u32; 16] align 4
  %3: ptr<shared, mut [u32; 16]> = shared_addr shared0
  %4: u32 = const 4
  %5: u32 = const 16
  set var0, %4
  loop {
    %6: u32 = get var0
    %7: bool = lt %6, %5
    %8: bool = not %7
    if %8 {
      break 0
    }
    %9: u32 = get var0
    %10: u32 = sub %9, %4
    %11: ptr<shared, mut u32> = element_ptr %3, %10
    %12: u32 = load %11
    barrier
    %13: u32 = get var0
    %14: u32 = add %13, %1
    set var0, %14
  }
}
";
    let case = of_text(text, [u32::MAX - 2, 0]);
    let expected = InterpreterRunner.run(&case);
    let hooks = HookSet::new().with_all(&standard().only("bounds-checks"));
    let without = hooked(&case, &hooks).expect("the hook takes it");
    assert!(unchecked(&without) > 0, "{}", without.module);
    assert_eq!(InterpreterRunner.run(&without), expected);
    let fault = expected.expect_err("the index leaves the array");
    assert!(
        fault.starts_with("fault: index 4294967293 of 16"),
        "{fault}"
    );
}

#[test]
fn loops_do_the_same_in_compiled_code() {
    let (first, count) = (
        number("KILN_FUZZ_SEED", 2 << 40),
        number("KILN_FUZZ_COUNT", KERNELS / 10),
    );
    for seed in first..first + count {
        let case = case(seed, false);
        let expected = InterpreterRunner.run(&case);
        if ends_late(&expected) {
            continue;
        }
        let found = OnHostRunner::default().run(&case);
        if ends_late(&found) && expected.is_err() {
            continue;
        }
        assert_eq!(found, expected, "seed {seed}\n{}", case.module);
        let without = hooked(&case, &standard()).expect("the hooks take it");
        let found = HostRunner::new(8).run(&without);
        assert_eq!(found, expected, "seed {seed}\n{}", case.module);
    }
}
