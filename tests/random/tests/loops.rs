//! Random loops over indices that stay in bounds or do not, as they are in the interpreter and without the checks
//! that hooks move out of them: the same elements are written, or the same thread faults at the same element.
//!
//! The seeds are always the same; `KILN_FUZZ_SEED` sets another first one, `KILN_FUZZ_COUNT` how many there are.

use std::fmt::Write;

use kiln_hooks::standard;
use kiln_jit_core::hook::HookSet;
use kiln_jit_core::ir::{InstData, parse};
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

    /// The address of an element: of a slice that is read, or one that is written.
    fn element(&mut self, slice: &str, depth: usize) -> usize {
        let number = match self.recent {
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
        if self.random.chance(3) {
            self.skip();
        }
        match self
            .random
            .below(if self.depth < MAX_DEPTH { 12 } else { 8 })
        {
            0..4 => {
                let slice = self.random.of(&["%0", "%1", "%2"]);
                let at = self.element(slice, 3);
                let loaded = self.value("u32", &format!("load %{at}"));
                let sum = self.value("u32", "get var0");
                let sum = self.value("u32", &format!("add %{sum}, %{loaded}"));
                self.line(&format!("set var0, %{sum}"));
            }
            4..6 => {
                let at = self.element("%1", 3);
                let sum = self.value("u32", "get var0");
                self.line(&format!("store %{at}, %{sum}"));
            }
            6 => {
                let (a, b) = (self.number(1), self.number(1));
                let cond = self.value("bool", &format!("lt %{a}, %{b}"));
                self.line(&format!("if %{cond} {{"));
                let leaves = self.loops > 0 && self.random.chance(20);
                self.block(|w| {
                    w.statement();
                    if leaves {
                        w.line("break 0");
                    }
                });
                if self.random.chance(25) {
                    self.line("} else {");
                    self.block(Writer::statement);
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

    fn block(&mut self, write: impl FnOnce(&mut Writer)) {
        let (known, counting) = (self.known.len(), self.counting.len());
        self.depth += 1;
        write(self);
        self.depth -= 1;
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
        for _ in 0..self.random.of(&[1, 1, 1, 2, 2, 3, 5]) {
            self.statement();
        }
    }

    /// A `for` of few turns.
    fn counted(&mut self) {
        let start = self.small_number();
        let turns = self.random.of(&[0, 1, 4, 9, 16]);
        let end = match self.random.below(3) {
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

/// A kernel of one thread with slices of a few elements: indices and numbers that are read, what is written.
fn case(seed: u64) -> Case {
    let mut writer = Writer {
        random: Random::new(seed),
        text: String::new(),
        next: 7,
        known: vec![3, 4, 5],
        recent: None,
        counting: Vec::new(),
        vars: 1,
        depth: 0,
        loops: 0,
    };
    for _ in 0..writer.random.within(1, 3) {
        match writer.random.below(10) {
            0..6 => writer.counted(),
            6..8 => writer.while_below(),
            _ => writer.statements(),
        }
    }
    let last = writer.value("u32", "const 0");
    let at = writer.value("ptr<generic, mut u32>", &format!("slice_index %1, %{last}"));
    let sum = writer.value("u32", "get var0");
    writer.line(&format!("store %{at}, %{sum}"));
    let vars = (0..writer.vars).map(|n| format!("  var var{n} v: u32\n"));
    let vars: String = vars.collect();
    let text = format!(
        "module loops legal\n\nkernel @loops(%0 a: slice<generic, u32>, %1 b: slice<generic, mut u32>, \
         %2 c: slice<generic, u32>, %3 n: u32, %4 m: u32, %5 k: u32, %6 w: u64) {{\n{vars}{}}}\n",
        writer.text
    );
    let module = parse(&text, &|_| None).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
    let mut random = writer.random;
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
        grid: [1; 3],
        block: [1; 3],
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

#[test]
fn loops_do_the_same_with_fewer_checks() {
    let hooks = HookSet::new().with_all(&standard().only("bounds-checks"));
    let (first, count) = (
        number("KILN_FUZZ_SEED", 1 << 40),
        number("KILN_FUZZ_COUNT", KERNELS),
    );
    let (mut faults, mut fewer) = (0, 0);
    for seed in first..first + count {
        let case = case(seed);
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

/// A kernel of one thread, with a slice of 12 elements and two numbers.
fn of_text(text: &str, numbers: [u32; 2]) -> Case {
    let numbers = numbers.map(|number| Arg::Bytes(number.to_le_bytes().to_vec()));
    Case {
        module: parse(text, &|_| None).expect("it is in the notation of the IR"),
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

#[test]
fn loops_do_the_same_in_compiled_code() {
    let (first, count) = (
        number("KILN_FUZZ_SEED", 2 << 40),
        number("KILN_FUZZ_COUNT", KERNELS / 10),
    );
    for seed in first..first + count {
        let case = case(seed);
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
