//! Addresses of an unrolled loop, each the one before it and a stride.
//!
//! LLVM's loop strength reduction makes the addresses of four turns of `sum += x[i * width]` of the first one: that and a
//! stride, and two strides, and three. Each multiple of the stride is held in two registers all through the loop, and what is
//! held there `ptxas` does not have for loads that could be under way at once. What differs from the address before by the
//! first stride is made of that instead:
//!
//! ```text
//! add.s64 %rd5, %rd1, %rd2;       add.s64 %rd5, %rd1, %rd2;
//! add.s64 %rd6, %rd1, %rd3;       add.s64 %rd6, %rd5, %rd2;      // %rd3 = 2 %rd2
//! add.s64 %rd1, %rd1, %rd4;       add.s64 %rd1, %rd6, %rd2;      // %rd4 = 3 %rd2
//! ```
//!
//! What is added may be a sum itself: of `a`, `a + n`, `a + 2n` and `a + 3n`, which stay the same in the loop, `a` and `n` are held.
//!
//! It is done in the text, as LLVM's code generator makes these strides.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use super::code::{Code, Instruction, Register};
use super::loops::{innermost, runs_before};
use super::running::{is_all_of, run_through};
use super::text::functions;

/// The fewest strides that are to be needed no more.
const SPARED: usize = 2;

/// How many operations, one after the other, are looked through to know what a stride is made of.
const LOOKED_THROUGH: usize = 4;

/// How many chains of a base are looked at.
const LOOKED_AT: usize = 64;

/// The most lines of a function that is looked at: what this takes grows faster than the function does.
const LARGE: usize = 10_000;

/// Makes addresses of those before them, in a text that was read.
pub(super) fn chain<'p>(ptx: &'p str, read: &[Option<Code<'_>>]) -> Cow<'p, str> {
    let chained = functions(ptx).zip(read);
    let chained: Vec<Cow<'_, str>> = chained
        .map(|(function, code)| match code {
            Some(code) => chain_function(function, code),
            None => Cow::Borrowed(function),
        })
        .collect();
    let mut all = chained.iter();
    match all.all(|function| matches!(function, Cow::Borrowed(_))) {
        true => Cow::Borrowed(ptx),
        false => Cow::Owned(chained.concat()),
    }
}

fn chain_function<'p>(function: &'p str, code: &Code<'_>) -> Cow<'p, str> {
    if function.lines().nth(LARGE).is_some() {
        return Cow::Borrowed(function);
    }
    let values = Values::of(code);
    let mut lines = Lines::new();
    for blocks in innermost(code) {
        for &block in &blocks {
            let chains = values.chained(block);
            for sum in chains.iter().flat_map(|chain| &chain.sums) {
                lines.insert(code.instructions[sum.at].line, sum.text(code));
            }
            if is_all_of(code, &blocks, block) {
                run_through(
                    (function, code),
                    &values,
                    (&blocks, block),
                    &chains,
                    &mut lines,
                );
            }
        }
    }
    if lines.is_empty() {
        return Cow::Borrowed(function);
    }
    let old = function.split_inclusive('\n').enumerate();
    let written = old.map(|(line, text)| lines.get(&line).map_or(text, String::as_str));
    Cow::Owned(written.collect())
}

/// What is in place of lines.
pub(super) type Lines = HashMap<usize, String>;

/// A sum as it is to be written, in place of an instruction.
#[derive(Copy, Clone)]
pub(super) struct Sum {
    pub(super) at: usize,
    pub(super) result: Register,
    pub(super) terms: [Register; 2],
}

impl Sum {
    pub(super) fn text(self, code: &Code<'_>) -> String {
        let [one, other] = self.terms.map(|term| code.names[term]);
        let (width, result) = (32 * code.words[self.result], code.names[self.result]);
        format!("\tadd.s{width} \t{result}, {one}, {other};\n")
    }
}

/// What strides are made of: a register, or what it is as a number of 64 bits, with a sign or without.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Unit {
    register: Register,
    widened: Option<bool>,
}

/// How many times each unit is in a sum; none is in it 0 times.
#[derive(Clone, PartialEq, Eq, Default)]
pub(super) struct Form(BTreeMap<Unit, i64>);

impl Form {
    fn of(unit: Unit) -> Form {
        Form(BTreeMap::from([(unit, 1)]))
    }

    /// This and some times another one.
    pub(super) fn plus(mut self, other: &Form, times: i64) -> Form {
        for (unit, count) in &other.0 {
            let sum = self.0.entry(*unit).or_default();
            *sum = sum.wrapping_add(count.wrapping_mul(times));
        }
        self.0.retain(|_, count| *count != 0);
        self
    }
}

/// Sums of one base, each of which is the one before and the same step.
pub(super) struct Chain {
    /// The sum that it begins with, which is written as it is.
    pub(super) begin: Sum,
    /// The register that has the step, if one is known.
    pub(super) step: Option<(Register, Form)>,
    /// The last of the sums, and what is in it besides the base.
    pub(super) last: Register,
    pub(super) added: Form,
    pub(super) sums: Vec<Sum>,
}

/// Where the registers of a function get their values.
pub(super) struct Values<'c, 'a> {
    code: &'c Code<'a>,
    /// The instruction that makes a register, if it is one, and always does.
    pub(super) makers: Vec<Option<usize>>,
}

impl<'c, 'a> Values<'c, 'a> {
    fn of(code: &'c Code<'a>) -> Values<'c, 'a> {
        let mut makers = vec![None; code.words.len()];
        let mut written = vec![false; code.words.len()];
        for (at, instruction) in code.instructions.iter().enumerate() {
            for &register in &instruction.writes {
                let once = !written[register] && !instruction.conditional;
                makers[register] = once.then_some(at);
                written[register] = true;
            }
        }
        // What a line of several instructions writes is among what it names.
        let several = (code.instructions.iter()).filter(|line| line.opcode.is_empty());
        for &register in several.flat_map(|line| &line.reads) {
            makers[register] = None;
        }
        Values { code, makers }
    }

    /// What a register is the sum of.
    pub(super) fn sum(&self, register: Register) -> Form {
        self.form(register, LOOKED_THROUGH, &mut Vec::new())
    }

    /// Whether a register, and all that is known of it, has its present value wherever `at` runs.
    pub(super) fn is_known(&self, register: Register, at: usize) -> bool {
        self.is_present(register, LOOKED_THROUGH, at)
    }

    /// What a register is the sum of, and the registers on the way there with what they are.
    fn form(&self, register: Register, depth: usize, seen: &mut Vec<(Register, Form)>) -> Form {
        let made = self.makers[register].map(|maker| &self.code.instructions[maker]);
        let parts = made.filter(|_| depth > 0).map(parts).unwrap_or_default();
        let form = match parts.is_empty() {
            true => Form::of(Unit {
                register,
                widened: None,
            }),
            false => parts
                .into_iter()
                .fold(Form::default(), |sum, (part, times, widened)| {
                    let form = match widened {
                        // Of a number of 32 bits a sum may wrap, which one of 64 bits does not.
                        Some(_) => Form::of(Unit {
                            register: part,
                            widened,
                        }),
                        None => self.form(part, depth - 1, seen),
                    };
                    sum.plus(&form, times)
                }),
        };
        seen.push((register, form.clone()));
        form
    }

    /// Whether a register, and all that its form is made of, has its present value wherever `at` runs.
    fn is_present(&self, register: Register, depth: usize, at: usize) -> bool {
        let Some(maker) = self.makers[register].filter(|&maker| runs_before(self.code, maker, at))
        else {
            return false;
        };
        let parts = if depth > 0 {
            parts(&self.code.instructions[maker])
        } else {
            Vec::new()
        };
        let mut parts = parts.into_iter();
        parts.all(|(part, _, widened)| {
            let below = if widened.is_some() { 0 } else { depth - 1 };
            self.is_present(part, below, maker)
        })
    }

    /// The chains of a block that are worth it.
    fn chained(&self, block: usize) -> Vec<Chain> {
        let mut open: HashMap<Register, Vec<Chain>> = HashMap::new();
        let mut done = Vec::new();
        for at in self.code.blocks[block].instructions.clone() {
            let instruction = &self.code.instructions[at];
            for [base, added] in terms(instruction) {
                if self.add(open.entry(base).or_default(), at, [base, added]) {
                    break;
                }
            }
            let changed = match instruction.opcode {
                // A line of several may write what it names.
                "" => &instruction.reads,
                _ => &instruction.writes,
            };
            for register in changed {
                done.extend(open.remove(register).into_iter().flatten());
            }
        }
        done.extend(open.into_values().flatten());
        done.retain(|chain| chain.sums.len() >= SPARED);
        done
    }

    /// Begins chains of a base with a sum, or goes on with one; whether the sum is one of a chain.
    fn add(&self, open: &mut Vec<Chain>, at: usize, [base, added]: [Register; 2]) -> bool {
        let result = self.code.instructions[at].writes[0];
        // The base ends the chain, and any other register is to stay what it is.
        if self.makers[added].is_none() || result != base && self.makers[result].is_none() {
            return false;
        }
        let mut seen = Vec::new();
        let form = self.form(added, LOOKED_THROUGH, &mut seen);
        for chain in &mut *open {
            let by = form.clone().plus(&chain.added, -1);
            let known = match &chain.step {
                Some(step) => std::slice::from_ref(step),
                None => &seen,
            };
            let mut steps = known.iter().filter(|(_, known)| *known == by);
            let are_present = |step| {
                let mut all = [step, added, chain.begin.terms[1]].into_iter();
                all.all(|register| self.is_present(register, LOOKED_THROUGH, at))
            };
            if let Some(&(step, _)) = steps.find(|(step, _)| are_present(*step)) {
                chain.sums.push(Sum {
                    at,
                    result,
                    terms: [chain.last, step],
                });
                (chain.last, chain.added, chain.step) = (result, form, Some((step, by)));
                return true;
            }
        }
        if open.len() < LOOKED_AT && result != base {
            let first = Some((added, form.clone()));
            open.extend([None, first].map(|step| Chain {
                step,
                begin: Sum {
                    at,
                    result,
                    terms: [base, added],
                },
                last: result,
                added: form.clone(),
                sums: Vec::new(),
            }));
        }
        false
    }
}

/// The two ways to see a sum of registers as a base and what is added.
pub(super) fn terms(sum: &Instruction<'_>) -> impl Iterator<Item = [Register; 2]> {
    let both = match (sum.reads.as_slice(), sum.writes.as_slice()) {
        (&[one, other], [_]) if matches!(sum.opcode, "add.s64" | "add.s32") && !sum.conditional => {
            Some([[one, other], [other, one]])
        }
        _ => None,
    };
    both.into_iter().flatten()
}

/// The registers that an instruction's result is the sum of, how many times each, and whether as numbers of 64 bits:
/// with a sign or without. None of an instruction that is not understood.
fn parts(made: &Instruction<'_>) -> Vec<(Register, i64, Option<bool>)> {
    let operands: Vec<&str> = made.operands.trim_end_matches(';').split(',').collect();
    let number = |text: Option<&&str>| text.and_then(|text| text.trim().parse::<i64>().ok());
    match (made.opcode, number(operands.last()), &made.reads[..]) {
        ("add.s64" | "add.s32", None, &[one, other]) => vec![(one, 1, None), (other, 1, None)],
        ("sub.s64" | "sub.s32", None, &[one, other]) => vec![(one, 1, None), (other, -1, None)],
        ("shl.b64" | "shl.b32", Some(by @ 0..=31), &[of]) => vec![(of, 1 << by, None)],
        ("mul.lo.s64" | "mul.lo.s32", Some(times), &[of]) => vec![(of, times, None)],
        ("mad.lo.s64" | "mad.lo.s32", None, &[of, and]) => match number(operands.get(2)) {
            Some(times) => vec![(of, times, None), (and, 1, None)],
            None => Vec::new(),
        },
        ("mul.wide.u32", Some(times @ 0..), &[of]) => vec![(of, times, Some(false))],
        ("mul.wide.s32", Some(times), &[of]) => vec![(of, times, Some(true))],
        ("cvt.u64.u32", None, &[of]) => vec![(of, 1, Some(false))],
        ("cvt.s64.s32", None, &[of]) => vec![(of, 1, Some(true))],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop with these turns, of a function that has these strides; what is made of its turns.
    fn chained(strides: &str, turn: &str) -> String {
        let function = format!(
            "{{\n{strides}$L__BB0_1:\n{turn}\tsetp.lt.u64 \t%p1, %rd1, 800;\n\t@%p1 bra \t$L__BB0_1;\n\tret;\n}}\n"
        );
        let chained = chain(&function, &Code::all(&function));
        let (_, behind) = chained
            .split_once("$L__BB0_1:\n")
            .expect("the loop is there");
        let (turn, _) = behind.split_once("\tsetp").expect("it ends");
        turn.replace('\t', "")
    }

    /// Two, three and four times `%rd2`.
    const STRIDES: &str = "\tld.param.b64 \t%rd2, [f_param_0];\n\tshl.b64 \t%rd3, %rd2, 1;\n\tmul.lo.s64 \t%rd4, %rd2, 3;\n\
                           \tshl.b64 \t%rd5, %rd2, 2;\n";

    const TURN: &str = "\tadd.s64 \t%rd6, %rd1, %rd2;\n\tadd.s64 \t%rd7, %rd1, %rd3;\n\tadd.s64 \t%rd8, %rd4, %rd1;\n\
                        \tadd.s64 \t%rd1, %rd1, %rd5;\n";

    /// `TURN` as it is.
    fn as_it_is(turn: &str) -> String {
        turn.replace('\t', "")
    }

    #[test]
    fn an_address_is_the_one_before_and_a_stride() {
        assert_eq!(
            chained(STRIDES, TURN),
            "add.s64 %rd6, %rd1, %rd2;\nadd.s64 %rd7, %rd6, %rd2;\nadd.s64 %rd8, %rd7, %rd2;\nadd.s64 %rd1, %rd8, %rd2;\n"
        );
    }

    #[test]
    fn a_stride_may_be_a_number_of_32_bits() {
        let wide = "\tld.param.b32 \t%r2, [f_param_0];\n\tmul.wide.u32 \t%rd2, %r2, 4;\n\tmul.wide.u32 \t%rd3, %r2, 8;\n\
                    \tcvt.u64.u32 \t%rd9, %r2;\n\tmul.lo.s64 \t%rd4, %rd9, 12;\n\tshl.b64 \t%rd5, %rd9, 4;\n";
        assert_eq!(chained(wide, TURN), chained(STRIDES, TURN));
        let signed = wide.replace("cvt.u64.u32", "cvt.s64.s32");
        assert_eq!(
            chained(&signed, TURN),
            as_it_is(TURN),
            "one has a sign, and the other has none"
        );
        let wraps = wide.replace(
            "mul.wide.u32 \t%rd3, %r2, 8",
            "shl.b32 \t%r3, %r2, 1;\n\tmul.wide.u32 \t%rd3, %r3, 4",
        );
        assert_eq!(
            chained(&wraps, TURN),
            as_it_is(TURN),
            "twice of 32 bits may be less"
        );
    }

    #[test]
    fn indices_of_32_bits_are_chained_too() {
        let narrow = |text: &str| text.replace("64", "32").replace("%rd", "%r");
        assert_eq!(
            chained(&narrow(STRIDES), &narrow(TURN)),
            narrow(&chained(STRIDES, TURN))
        );
    }

    /// The sums that are three times as much and a number further on, with what is added one operation deeper.
    #[test]
    fn a_product_and_a_sum_at_once_are_looked_through() {
        let sums = "\tld.param.b64 \t%rd2, [f_param_0];\n\tld.param.b64 \t%rd9, [f_param_1];\n\tadd.s64 \t%rd3, %rd9, %rd2;\n\
                    \tmad.lo.s64 \t%rd4, %rd2, 2, %rd9;\n\tmad.lo.s64 \t%rd5, %rd2, 3, %rd9;\n";
        let turn = "\tadd.s64 \t%rd6, %rd9, %rd1;\n\tadd.s64 \t%rd7, %rd3, %rd1;\n\tadd.s64 \t%rd8, %rd4, %rd1;\n\tadd.s64 \t%rd1, %rd1, %rd5;\n";
        assert_eq!(
            chained(sums, turn),
            "add.s64 %rd6, %rd9, %rd1;\nadd.s64 %rd7, %rd6, %rd2;\nadd.s64 %rd8, %rd7, %rd2;\nadd.s64 %rd1, %rd8, %rd2;\n"
        );
        for other in ["%rd2, 5, %rd9", "%rd2, %rd2, %rd9", "2, %rd2, %rd9"] {
            let other = sums.replace("%rd2, 2, %rd9", other);
            assert_eq!(chained(&other, turn), as_it_is(turn), "{other}");
        }
    }

    #[test]
    fn what_is_not_the_next_multiple_stays() {
        let by_five = STRIDES.replace("%rd2, 3", "%rd2, 5");
        assert_eq!(chained(&by_five, TURN), as_it_is(TURN));
        let negative = STRIDES.replace("%rd2, 3", "%rd2, -3");
        assert_eq!(chained(&negative, TURN), as_it_is(TURN));
    }

    #[test]
    fn a_base_that_changes_ends_the_chain() {
        for changes in [
            "add.s64 \t%rd1, %rd1, 8;",
            "{ .reg .b64 t; mov.b64 %rd1, 8; }",
        ] {
            let moved = TURN.replace(
                "\tadd.s64 \t%rd7",
                &format!("\t{changes}\n\tadd.s64 \t%rd7"),
            );
            let kept = chained(STRIDES, &moved);
            let first = format!("{}\nadd.s64 %rd7, %rd1, %rd3;\n", as_it_is(changes));
            assert!(kept.contains(&first), "{kept}");
            assert!(
                kept.ends_with("add.s64 %rd8, %rd7, %rd2;\nadd.s64 %rd1, %rd8, %rd2;\n"),
                "{kept}"
            );
        }
    }

    #[test]
    fn what_is_added_may_be_a_sum_itself() {
        let sums = "\tld.param.b32 \t%r2, [f_param_0];\n\tld.param.b32 \t%r9, [f_param_1];\n\tadd.s32 \t%r3, %r9, %r2;\n\
                    \tshl.b32 \t%r10, %r2, 1;\n\tadd.s32 \t%r4, %r10, %r9;\n\tmul.lo.s32 \t%r11, %r2, 3;\n\
                    \tadd.s32 \t%r5, %r9, %r11;\n";
        let turn = "\tadd.s32 \t%r6, %r9, %r1;\n\tadd.s32 \t%r7, %r3, %r1;\n\tadd.s32 \t%r8, %r4, %r1;\n\tadd.s32 \t%r1, %r1, %r5;\n";
        assert_eq!(
            chained(sums, turn),
            "add.s32 %r6, %r9, %r1;\nadd.s32 %r7, %r6, %r2;\nadd.s32 %r8, %r7, %r2;\nadd.s32 %r1, %r8, %r2;\n"
        );
        let other = sums.replace("add.s32 \t%r4, %r10, %r9", "sub.s32 \t%r4, %r10, %r9");
        assert_eq!(chained(&other, turn), as_it_is(turn));
    }

    #[test]
    fn strides_that_change_or_are_of_an_earlier_turn_stay() {
        let twice = format!("{STRIDES}\tmov.b64 \t%rd3, 8;\n");
        assert_eq!(chained(&twice, TURN), as_it_is(TURN));
        let other = STRIDES.replace("\tshl.b64 \t%rd3", "\t@%p2 shl.b64 \t%rd3");
        assert_eq!(
            chained(&other, TURN),
            as_it_is(TURN),
            "the second stride may be something else"
        );
        let later = format!("{TURN}{STRIDES}");
        assert_eq!(chained("", &later), as_it_is(&later));
    }

    #[test]
    fn a_register_that_is_written_elsewhere_is_no_base_of_the_next() {
        let written = TURN.replace("\tadd.s64 \t%rd8", "\tmov.b64 \t%rd7, 8;\n\tadd.s64 \t%rd8");
        assert_eq!(chained(STRIDES, &written), as_it_is(&written));
    }
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod address_tests;
