//! The machine code of a kernel (SASS), as `nvdisasm` lists it.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use super::count::output;

/// The instructions of a kernel, without the subroutines that `ptxas` adds and the `NOP`s after the last.
pub struct Listing<'a> {
    code: Vec<&'a str>,
    /// The first instruction of each loop, and the branch back to it.
    loops: Vec<(usize, usize)>,
    /// The branches to themselves that `ptxas` puts behind a kernel, before what it moves out of line.
    to_themselves: usize,
}

impl<'a> Listing<'a> {
    /// The kernel `name` in the output of `nvdisasm`.
    pub fn of(text: &'a str, name: &str) -> Listing<'a> {
        let start = format!(".text.{name}:");
        let lines = text.lines().map(str::trim);
        let lines = lines.skip_while(|line| *line != start).skip(1);
        let is_end = |line: &&str| !line.starts_with(".type") && !line.starts_with(".section");
        let mut labels = HashMap::new();
        let mut code = Vec::new();
        for line in lines.take_while(is_end) {
            match (instruction(line), line.strip_suffix(':')) {
                (Some(inst), _) if !inst.starts_with("NOP") => code.push(inst),
                (None, Some(label)) => drop(labels.insert(label, code.len())),
                _ => {}
            }
        }
        assert!(!code.is_empty(), "no kernel `{name}` in\n{text}");
        let target = |inst: &str| {
            let label = inst.split_once("`(")?.1.split_once(')')?.0;
            labels.get(label).copied()
        };
        let branches = code.iter().enumerate();
        let branches = branches.filter(|(_, inst)| inst.contains("BRA"));
        let branches = branches.filter_map(|(at, inst)| Some((target(inst)?, at)));
        let branches: Vec<(usize, usize)> = branches.filter(|(first, at)| first <= at).collect();
        Listing {
            to_themselves: branches.iter().filter(|(a, b)| a == b).count(),
            loops: branches.into_iter().filter(|(a, b)| a < b).collect(),
            code,
        }
    }

    /// How many instructions the kernel has.
    pub fn instructions(&self) -> usize {
        self.code.len() - self.to_themselves
    }

    /// The operation of each instruction, without the predicate before it.
    pub fn opcodes(&self) -> impl Iterator<Item = &'a str> {
        self.code.iter().map(|inst| {
            let without = match inst.starts_with('@') {
                true => inst.split_once(' ').map_or(*inst, |(_, rest)| rest),
                false => inst,
            };
            without.split_whitespace().next().unwrap_or(inst)
        })
    }

    /// How many instructions have `what` in their text.
    pub fn with(&self, what: &str) -> usize {
        self.code.iter().filter(|inst| inst.contains(what)).count()
    }

    /// How many instructions the longest of the loops has that have no other in them.
    pub fn innermost(&self) -> usize {
        let holds_no_other = |(first, last): &&(usize, usize)| {
            !self
                .loops
                .iter()
                .any(|(a, b)| first <= a && b <= last && (a, b) != (first, last))
        };
        let innermost = self.loops.iter().filter(holds_no_other);
        let lengths = innermost.map(|(first, last)| last - first + 1);
        lengths.max().unwrap_or(0)
    }
}

/// The instruction in a line `/*0010*/ EXIT ;`.
fn instruction(line: &str) -> Option<&str> {
    let (offset, rest) = line.strip_prefix("/*")?.split_once("*/")?;
    let is_offset = offset.chars().all(|c| c.is_ascii_hexdigit());
    is_offset.then(|| rest.trim())
}

/// What `nvdisasm` lists of a file; `None` without `KILN_NVDISASM`.
pub fn disassemble(cubin: &Path) -> Option<String> {
    let nvdisasm = std::env::var_os("KILN_NVDISASM")?;
    Some(output(Command::new(nvdisasm).arg("-c").arg(cubin)))
}

#[test]
fn a_listing_is_read_up_to_the_branch_to_itself() {
    let text = "\
        .text.twice:
        /*0000*/ MOV R1, c[0x0] ;
.L_x_0:
        /*0010*/ IADD R1, R1, 1 ;
        /*0020*/ WARPSYNC R0 ;
        /*0030*/ @P0 BRA `(.L_x_0) ;
        /*0040*/ EXIT ;
.L_x_1:
        /*0050*/ BRA `(.L_x_1);
.L_x_2:
        /*0060*/ BRA `(.L_x_0);
        /*0070*/ NOP;
        .section .text.other
        /*0000*/ EXIT ;";
    let listing = Listing::of(text, "twice");
    assert_eq!(listing.instructions(), 6);
    assert_eq!((listing.with("WARPSYNC"), listing.innermost()), (1, 3));
}
