//! Whether random loops with addresses of one base read where they did once these are made of each other.
//!
//! Only a GPU runs PTX, so this has an interpreter of the few lines that such a loop has. Of each loop some lines are
//! changed, so that many are not what the passes look for, and are near it.

use std::collections::HashMap;

use super::{Code, chain};

/// Random numbers (Marsaglia, "Xorshift RNGs", 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % bound
    }

    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.below(of.len())]
    }
}

/// What a loop's registers are made of: `%rd2` is a stride, `%rd3` an address, `%r2` a number.
const BEFORE: &str = "\tld.param.b64 \t%rd2, [n];\n\tld.param.b64 \t%rd3, [a];\n\tld.param.b32 \t%r2, [m];\n\
    \tshl.b64 \t%rd4, %rd2, 1;\n\tmul.lo.s64 \t%rd5, %rd2, 3;\n\tshl.b64 \t%rd6, %rd2, 2;\n\
    \tadd.s64 \t%rd7, %rd3, %rd2;\n\tadd.s64 \t%rd8, %rd4, %rd3;\n\tmad.lo.s64 \t%rd9, %rd2, 3, %rd3;\n\
    \tmul.wide.u32 \t%rd12, %r2, 4;\n\tmul.wide.u32 \t%rd13, %r2, 8;\n\tcvt.u64.u32 \t%rd14, %r2;\n\
    \tmul.lo.s64 \t%rd15, %rd14, 12;\n\tsetp.lt.u64 \t%p3, %rd3, 512;\n";

/// Registers that are a chain each: multiples of a stride, and of one and an address.
const CHAINS: [[&str; 4]; 3] = [
    ["%rd2", "%rd4", "%rd5", "%rd6"],
    ["%rd3", "%rd7", "%rd8", "%rd9"],
    ["%rd12", "%rd13", "%rd15", "%rd6"],
];

/// Registers that may be in the place of others.
const ALL: [&str; 12] = [
    "%rd1", "%rd2", "%rd3", "%rd4", "%rd5", "%rd6", "%rd7", "%rd12", "%rd20", "%rd21", "%rd22",
    "%rd23",
];

/// Lines that change what the others are made of.
const SPOILERS: [&str; 6] = [
    "\tadd.s64 \t%rd2, %rd2, 8;\n",
    "\tadd.s64 \t%rd1, %rd1, 16;\n",
    "\t@%p3 add.s64 \t%rd20, %rd1, %rd4;\n",
    "\t{ add.s64 %rd3, %rd3, %rd2; mov.b64 %rd4, %rd3; }\n",
    "\tmov.b64 \t%rd21, %rd1;\n",
    "\tshl.b64 \t%rd4, %rd2, 2;\n",
];

/// A function with a loop.
fn function(random: &mut Random) -> String {
    let chain = CHAINS[random.below(CHAINS.len())];
    let count = 2 + random.below(3);
    let mut turn = Vec::new();
    for (at, stride) in chain.iter().take(count).enumerate() {
        let operands = match random.below(2) {
            0 => format!("%rd1, {stride}"),
            _ => format!("{stride}, %rd1"),
        };
        turn.push(format!("\tadd.s64 \t%rd{}, {operands};\n", 20 + at));
        turn.push(format!(
            "\tld.global.b32 \t%r{}, [%rd{}];\n",
            10 + at,
            20 + at
        ));
    }
    let grows = random.one(&["%rd4", "%rd5", "%rd6", chain[count - 1]]);
    turn.push(format!("\tadd.s64 \t%rd1, %rd1, {grows};\n"));
    for _ in 0..random.below(3) {
        spoil(random, &mut turn);
    }
    let skips = random.one(&[
        "",
        "",
        "",
        "\t@%p3 bra \t$L__BB0_1;\n\tadd.s64 \t%rd1, %rd1, 4;\n",
    ]);
    let behind = random.one(&["", "%rd1", "%rd20", "%rd21"]);
    let behind = match behind {
        "" => String::new(),
        register => format!("\tld.global.b32 \t%r30, [{register}];\n"),
    };
    let turn = turn.concat();
    format!(
        "{{\n{BEFORE}\tmov.b64 \t%rd1, 64;\n\tmov.b64 \t%rd40, 4;\n{skips}$L__BB0_1:\n{turn}\tadd.s64 \t%rd40, %rd40, -1;\n\
         \tsetp.ne.s64 \t%p1, %rd40, 0;\n\t@%p1 bra \t$L__BB0_1;\n{behind}\tret;\n}}\n"
    )
}

/// Changes a line of a turn.
fn spoil(random: &mut Random, turn: &mut Vec<String>) {
    let [at, other] = [(); 2].map(|()| random.below(turn.len()));
    match random.below(6) {
        0 => turn.swap(at, other),
        1 => turn.insert(at, random.one(&SPOILERS).to_owned()),
        2 => turn.insert(at, turn[other].clone()),
        3 if turn.len() > 1 => drop(turn.remove(at)),
        4 => turn[at] = turn[at].replace("\tadd", "\t@%p3 add"),
        _ => {
            let [register, instead] = [(); 2].map(|()| random.one(&ALL));
            turn[at] = turn[at].replacen(register, instead, 1);
        }
    }
}

/// The addresses that a function reads, in order, if its parameters are these.
fn addresses(function: &str, parameters: [u64; 3]) -> Vec<u64> {
    let lines: Vec<&str> = function.lines().map(str::trim).collect();
    let mut registers: HashMap<String, u64> = HashMap::new();
    let (mut read, mut at) = (Vec::new(), 0);
    for _ in 0..1_000 {
        let Some(&line) = lines.get(at) else {
            break;
        };
        at += 1;
        let (condition, text) = match line.strip_prefix('@').and_then(|l| l.split_once(' ')) {
            Some((condition, text)) => (Some(condition), text.trim()),
            None => (None, line),
        };
        let holds = |condition: &str| registers.get(condition).copied().unwrap_or(0) != 0;
        if condition.is_some_and(|condition| !holds(condition)) {
            continue;
        }
        if text == "ret;" {
            break;
        }
        if let Some(label) = text.strip_prefix("bra") {
            let label = format!("{}:", label.trim().trim_end_matches(';'));
            let found = lines.iter().position(|&line| line == label);
            at = found.expect("the label is there");
            continue;
        }
        let inner = text.trim_start_matches('{').trim_end_matches('}');
        for instruction in inner
            .split(';')
            .map(str::trim)
            .filter(|one| one.contains(' '))
        {
            step(instruction, parameters, &mut registers, &mut read);
        }
    }
    read
}

/// Runs an instruction.
fn step(
    instruction: &str,
    parameters: [u64; 3],
    registers: &mut HashMap<String, u64>,
    read: &mut Vec<u64>,
) {
    let (opcode, operands) = instruction.split_once(' ').expect("it has operands");
    let operands: Vec<&str> = operands.split(',').map(str::trim).collect();
    let value = |operand: &str| match operand.trim_matches(['[', ']']) {
        name if name.starts_with('%') => registers.get(name).copied().unwrap_or(0),
        "n" => parameters[0],
        "a" => parameters[1],
        "m" => parameters[2],
        number => number
            .parse::<i64>()
            .expect("it is a number")
            .cast_unsigned(),
    };
    let of = |at: usize| value(operands[at]);
    let low = |value: u64| value & 0xffff_ffff;
    let result = match opcode.trim() {
        "ld.param.b64" | "mov.b64" => of(1),
        "ld.param.b32" | "cvt.u64.u32" => low(of(1)),
        "ld.global.b32" => {
            read.push(of(1));
            low(of(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20)
        }
        "add.s64" => of(1).wrapping_add(of(2)),
        "shl.b64" => of(1) << of(2),
        "mul.lo.s64" => of(1).wrapping_mul(of(2)),
        "mad.lo.s64" => of(1).wrapping_mul(of(2)).wrapping_add(of(3)),
        "mul.wide.u32" => low(of(1)) * low(of(2)),
        "setp.ne.s64" => u64::from(of(1) != of(2)),
        "setp.lt.u64" => u64::from(of(1) < of(2)),
        other => panic!("`{other}` is not known: {instruction}"),
    };
    registers.insert(operands[0].to_owned(), result);
}

#[test]
fn random_loops_read_where_they_did() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let (mut chained, mut running) = (0, 0);
    for _ in 0..20_000 {
        let function = function(&mut random);
        let made = chain(&function, &Code::all(&function));
        if made == function {
            continue;
        }
        chained += 1;
        let (before, _) = made.split_once("$L__BB0_1:").expect("the loop is there");
        running += usize::from(before.contains("%rd1,") && before.contains("add.s64 \t%rd20"));
        for parameters in [[8, 4096, 3], [u64::MAX - 99, 256, 0xffff_fff0], [0, 640, 1]] {
            assert_eq!(
                addresses(&made, parameters),
                addresses(&function, parameters),
                "{parameters:?}\n{function}\nbecomes\n{made}"
            );
        }
    }
    println!("{chained} are chained, {running} run through the loop");
    assert!(chained > 2_000 && running > 500, "{chained} {running}");
}
