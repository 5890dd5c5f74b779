//! Registers for loops that wait twice: for what a load gives, and for what another one loads from there.
//!
//! `ptxas` keeps to 32 registers a thread, so that as many warps as there can be hide each other's waiting, and lets the
//! loads of an unrolled loop wait for each other rather than take more. Where the address of a load comes from another one of
//! the same turn, as in `sum += values[k] * x[columns[k]]`, more loads at once are worth more than more warps (`benches/RESULTS.md`
//! has the times): such a kernel may have [`REGISTERS`].
//!
//! That is so where a thread goes through memory by itself, so that what one of its loads takes out of memory is what its next ones need.
//! Where the loads of a turn are [`LINE`] bytes apart, other lanes need what lies between, and more warps are worth more.
//!
//! A limit is said, and a limit can make `ptxas` keep values in memory. So a kernel that is near it stays as it is, and so
//! does one that says something of registers itself. Blocks of all sizes can still be launched: 1,024 threads of 64
//! registers are all that a multiprocessor has.

use std::borrow::Cow;
use std::collections::HashMap;

use super::code::{Code, Instruction, Register};
use super::loops::innermost;
use super::pressure::pressure;

/// How many registers a thread may have.
const REGISTERS: usize = 64;

/// The most registers that a kernel may need at once, in the order of LLVM's instructions. `ptxas` takes up to 19 more: for
/// predicates, and for divisions of `f64`, which are many instructions.
const NEEDED: usize = 40;

/// The fewest gathers of a turn that more registers can begin at once.
const AT_ONCE: usize = 2;

/// How many bytes memory gives at once.
const LINE: i64 = 128;

/// How many operations, one after the other, are looked through to know what an address is made of.
const LOOKED_THROUGH: usize = 8;

/// The most loads of a loop that are looked at.
const LOOKED_AT: usize = 256;

/// The most lines of a kernel that is looked at: what this takes grows faster than the kernel does.
const LARGE: usize = 4_000;

/// What a text says if its author, or a hook, says how many registers there are to be.
const SAID: [&str; 2] = [".maxnreg", ".minnctapersm"];

/// Architectures whose blocks have half as many registers.
const SMALL: [&str; 2] = [".target sm_53", ".target sm_62"];

/// Says that a kernel may have more registers than `ptxas` gives it, where loops gather, in a text that was read.
pub(super) fn give_registers<'p>(ptx: &'p str, read: &[Option<Code<'_>>]) -> Cow<'p, str> {
    let Some(body) = entry_body(ptx).filter(|_| gathers(ptx, read)) else {
        return Cow::Borrowed(ptx);
    };
    let (before, behind) = ptx.split_at(body);
    Cow::Owned(format!(
        "{before}.maxnreg {REGISTERS} // a loop loads from where other loads of it say\n{behind}"
    ))
}

/// Where the body of the kernel begins.
fn entry_body(ptx: &str) -> Option<usize> {
    let entry = ptx.find(".entry")?;
    Some(entry + ptx[entry..].find("\n{\n")? + 1)
}

/// Whether a text is a kernel that is to have more registers.
fn gathers(ptx: &str, read: &[Option<Code<'_>>]) -> bool {
    let mut never = SAID.iter().chain(&SMALL);
    if never.any(|said| ptx.contains(said)) || ptx.matches('\n').count() > LARGE {
        return false;
    }
    let Some(functions) = read.iter().map(Option::as_ref).collect::<Option<Vec<_>>>() else {
        return false;
    };
    let mut instructions = functions.iter().flat_map(|code| &code.instructions);
    if instructions.any(|call| comes_back(ptx, call)) {
        return false;
    }
    let waits = |code: &Code<'_>| {
        innermost(code)
            .iter()
            .any(|blocks| waits_twice(code, blocks))
    };
    functions.iter().any(|code| waits(code))
        && functions.iter().all(|code| pressure(code) <= NEEDED)
}

/// Whether an instruction calls a function that comes back, of which other registers are held meanwhile.
fn comes_back(ptx: &str, call: &Instruction<'_>) -> bool {
    let mut names = call.operands.split([',', ';', '(', ' ']);
    let ends = |name: &str| {
        let declared = ptx.split_once(&format!(".func {name}\n"));
        let head = declared.and_then(|(_, behind)| behind.split_once(')'));
        head.is_some_and(|(_, behind)| behind.trim_start().starts_with(".noreturn"))
    };
    call.opcode.starts_with("call") && !names.next().is_some_and(ends)
}

/// Whether several loads of a turn have addresses that other loads of the turn give, and nothing has threads wait for
/// each other, whom more registers would make fewer.
fn waits_twice(code: &Code<'_>, blocks: &[usize]) -> bool {
    let ranges = blocks
        .iter()
        .map(|&block| code.blocks[block].instructions.clone());
    let body: Vec<&Instruction<'_>> = ranges.flat_map(|range| &code.instructions[range]).collect();
    let meets = |one: &&Instruction<'_>| one.opcode.starts_with("bar");
    let is_load = |at: &usize| body[*at].opcode.starts_with("ld.global");
    let loads: Vec<usize> = (0..body.len()).filter(is_load).collect();
    if loads.len() > LOOKED_AT || body.iter().any(meets) {
        return false;
    }
    let readers = readers(&body);
    let reached: Vec<Vec<bool>> = loads
        .iter()
        .map(|&load| reached(&body, &readers, load))
        .collect();
    let is_chain = |n: &usize| reached[*n][loads[*n]];
    let ends: Vec<usize> = (0..loads.len()).filter(|n| !is_chain(n)).collect();
    let gives = |one: usize, other: usize| reached[one][loads[other]];
    let gathers = (ends.iter()).filter(|&&n| ends.iter().any(|&other| gives(other, n)));
    let givers = (ends.iter()).filter(|&&n| ends.iter().any(|&other| gives(n, other)));
    let places: Vec<_> = givers
        .filter_map(|&n| place(code, &body, loads[n]))
        .collect();
    gathers.count() >= AT_ONCE && !are_apart(places)
}

/// Whether places that are of one register, in bytes from what it says, are all at least a line apart.
fn are_apart(mut places: Vec<(Register, i64)>) -> bool {
    places.sort_unstable();
    places.dedup();
    let pairs = places.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    let apart: Vec<i64> = pairs.map(|pair| pair[1].1 - pair[0].1).collect();
    !apart.is_empty() && apart.iter().all(|&apart| apart >= LINE)
}

/// Where a load reads: so many bytes from what a register says at the beginning of a turn.
fn place(code: &Code<'_>, body: &[&Instruction<'_>], load: usize) -> Option<(Register, i64)> {
    let load = body[load];
    let (_, address) = load.operands.split_once('[')?;
    let (address, _) = address.split_once(']')?;
    let (name, offset) = address.split_once('+').unwrap_or((address, "0"));
    let named = |name: &str, by: &Instruction<'_>| {
        (by.reads.iter().copied()).find(|&register| code.names[register] == name)
    };
    let is_made = |register: &Register| body.iter().any(|one| one.writes.contains(register));
    let (mut root, mut bytes) = (named(name, load)?, offset.parse::<i64>().ok()?);
    let mut times = 1i64;
    for _ in 0..LOOKED_THROUGH {
        let mut makers = body.iter().filter(|one| one.writes.contains(&root));
        let (Some(maker), None) = (makers.next(), makers.next()) else {
            break;
        };
        let constant = maker.operands.trim_end_matches(';').rsplit(',').next();
        let constant = constant.and_then(|text| text.trim().parse::<i64>().ok());
        let mut changing = maker.reads.iter().copied().filter(is_made);
        let (Some(next), None) = (changing.next(), changing.next()) else {
            break;
        };
        match (maker.opcode, constant) {
            _ if next == root || maker.conditional => break,
            ("add.s64" | "add.s32", Some(constant)) => {
                bytes = bytes.checked_add(constant.checked_mul(times)?)?;
            }
            ("add.s64" | "min.u32", None) => {}
            ("mul.wide.u32" | "mul.wide.s32", Some(constant)) => {
                times = times.checked_mul(constant)?
            }
            _ => break,
        }
        root = next;
    }
    Some((root, bytes))
}

/// Which of these instructions read each register.
fn readers(body: &[&Instruction<'_>]) -> HashMap<Register, Vec<usize>> {
    let mut readers: HashMap<Register, Vec<usize>> = HashMap::new();
    for (at, instruction) in body.iter().enumerate() {
        for &register in &instruction.reads {
            readers.entry(register).or_default().push(at);
        }
    }
    readers
}

/// Which instructions have operands that are made of what one gives, in its turn or a later one.
fn reached(
    body: &[&Instruction<'_>],
    readers: &HashMap<Register, Vec<usize>>,
    from: usize,
) -> Vec<bool> {
    let mut reached = vec![false; body.len()];
    let mut left = vec![from];
    while let Some(at) = left.pop() {
        for register in &body[at].writes {
            for &reader in readers.get(register).into_iter().flatten() {
                if !reached[reader] {
                    reached[reader] = true;
                    left.push(reader);
                }
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel with these directives, of a loop that begins with `first` and has this in its turns.
    fn kernel(directives: &str, first: &str, turn: &str) -> String {
        format!(
            ".target sm_90\n\n.visible .entry f(\n\t.param .u64 f_param_0\n)\n{directives}{{\n\t.reg .b32 \t%r<9>;\n\
             \tmov.b64 \t%rd9, 0;\n{first}$L__BB0_1:\n{turn}\tadd.s64 \t%rd9, %rd9, 8;\n\
             \tsetp.lt.u64 \t%p1, %rd9, 800;\n\t@%p1 bra \t$L__BB0_1;\n\tst.global.b32 \t[%rd1], %r9;\n\tret;\n}}\n"
        )
    }

    /// A load of an index, and one from where it says.
    fn gather(n: usize) -> String {
        format!(
            "\tld.global.nc.b32 \t%r{n}1, [%rd9+{n}];\n\tmul.wide.u32 \t%rd{n}1, %r{n}1, 4;\n\tadd.s64 \t%rd{n}2, %rd8, %rd{n}1;\n\
             \tld.global.nc.b32 \t%r{n}2, [%rd{n}2];\n\tadd.s32 \t%r9, %r9, %r{n}2;\n"
        )
    }

    fn is_given(ptx: &str) -> bool {
        let given = give_registers(ptx, &Code::all(ptx));
        let mut lines = given.lines().zip(ptx.lines());
        let first = lines.find(|(given, ptx)| given != ptx);
        first.is_some_and(|(given, ptx)| given.starts_with(".maxnreg 64 //") && ptx == "{")
    }

    #[test]
    fn two_gathers_of_a_turn_have_more_registers() {
        let two = gather(1) + &gather(2);
        assert!(is_given(&kernel("", "", &two)));
        assert!(is_given(&kernel(".maxntid 256\n", "", &two)));
        assert!(
            !is_given(&kernel("", "", &gather(1))),
            "one has nothing to wait beside it"
        );
        assert!(!is_given(&kernel("", &two, "")), "they are in no loop");
    }

    #[test]
    fn what_lies_between_is_for_other_lanes() {
        assert!(is_given(&kernel("", "", &(gather(1) + &gather(5)))));
        assert!(!is_given(&kernel("", "", &(gather(1) + &gather(129)))));
        let clamped = |n: usize| {
            let at = format!(
                "\tadd.s32 \t%r{n}7, %r6, {n};\n\tmin.u32 \t%r{n}8, %r{n}7, %r5;\n\tmul.wide.u32 \t%rd{n}8, %r{n}8, 4;\n\
                 \tadd.s64 \t%rd{n}9, %rd7, %rd{n}8;\n"
            );
            at + &gather(n).replace(&format!("[%rd9+{n}]"), &format!("[%rd{n}9]"))
        };
        let next = "\tadd.s32 \t%r6, %r6, 64;\n";
        assert!(is_given(&kernel(
            "",
            "",
            &(clamped(1) + &clamped(2) + next)
        )));
        assert!(!is_given(&kernel(
            "",
            "",
            &(clamped(1) + &clamped(33) + next)
        )));
    }

    #[test]
    fn what_a_kernel_says_stays() {
        let two = gather(1) + &gather(2);
        assert!(!is_given(&kernel(".maxnreg 40\n", "", &two)));
        assert!(!is_given(&kernel(
            ".maxntid 256\n.minnctapersm 2\n",
            "",
            &two
        )));
        let small = kernel("", "", &two).replace("sm_90", "sm_62");
        assert!(
            !is_given(&small),
            "its blocks of 1,024 threads have 32 registers"
        );
    }

    #[test]
    fn a_chain_a_barrier_and_a_call_take_none() {
        let two = gather(1) + &gather(2);
        let chain = "\tld.global.b64 \t%rd9, [%rd9];\n\tld.global.b64 \t%rd9, [%rd9+8];\n";
        assert!(!is_given(&kernel("", "", chain)));
        assert!(!is_given(&kernel(
            "",
            "",
            &(two.clone() + "\tbar.sync \t0;\n")
        )));
        let asks = two.clone() + "\tcall.uni g, (param0);\n";
        assert!(!is_given(&kernel("", "", &asks)));
        let ends = format!(
            ".func g\n(\n\t.param .b32 g_param_0\n)\n.noreturn;\n{}",
            kernel("", "", &asks)
        );
        assert!(
            is_given(&ends),
            "it does not come back, and holds no registers for what comes then"
        );
    }

    #[test]
    fn who_needs_many_keeps_what_there_are() {
        let two = gather(1) + &gather(2);
        let held = |count: usize| {
            let numbers = (100..100 + count).map(|n| format!("\tmov.b32 \t%r{n}, {n};\n"));
            let sums = (100..100 + count).map(|n| format!("\tadd.s32 \t%r9, %r9, %r{n};\n"));
            kernel(
                "",
                &numbers.collect::<String>(),
                &(two.clone() + &sums.collect::<String>()),
            )
        };
        assert!(is_given(&held(30)));
        assert!(!is_given(&held(60)));
    }

    #[test]
    fn what_is_behind_a_loop_is_not_in_it() {
        let behind =
            kernel("", "", "").replace("\tst.global", &(gather(1) + &gather(2) + "\tst.global"));
        assert!(!is_given(&behind));
        let inner = gather(1)
            + "$L__BB0_2:\n\tadd.s32 \t%r8, %r8, 1;\n\t@%p2 bra \t$L__BB0_2;\n"
            + &gather(2);
        assert!(
            !is_given(&kernel("", "", &inner)),
            "the innermost loop waits for nothing"
        );
    }
}
