//! The machine code of kernels (SASS), as `nvdisasm` lists it.
//!
//! Each start of `nvdisasm` takes a third of a second before it reads anything, so the code of many kernels is taken out
//! of their files and listed at once, one kernel behind the other.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use object::{Object as _, ObjectSection as _, ObjectSymbol as _};

use super::count::{Folder, output};

/// Bytes of an instruction (CUDA Binary Utilities, from Volta on).
const INSTRUCTION: usize = 16;

/// The machine code of a kernel, without the subroutines that `ptxas` adds.
pub struct Code(Vec<u8>);

impl Code {
    /// The code of the kernel `name` in a file of `ptxas`.
    pub fn of(cubin: &Path, name: &str) -> Code {
        let file = std::fs::read(cubin).expect("ptxas wrote it");
        let file = object::File::parse(&*file).expect("ptxas writes ELF files");
        let section = file.section_by_name(&format!(".text.{name}"));
        let section =
            section.unwrap_or_else(|| panic!("no kernel `{name}` in {}", cubin.display()));
        let symbols = file.symbols();
        let in_section = symbols.filter(|symbol| symbol.section_index() == Some(section.index()));
        let subroutines = in_section.map(|symbol| symbol.address() as usize);
        let end = subroutines.filter(|start| *start > 0).min();
        let mut code = section.data().expect("the file is whole").to_vec();
        code.truncate(end.unwrap_or(code.len()));
        Code(code)
    }
}

/// The instructions of a kernel, without the `NOP`s behind the last.
#[derive(Debug, PartialEq, Eq)]
pub struct Listing {
    code: Vec<String>,
    /// The first instruction of each loop, and the branch back to it.
    loops: Vec<(usize, usize)>,
    /// The branches to themselves that `ptxas` puts behind a kernel, before what it moves out of line.
    to_themselves: usize,
}

impl Listing {
    /// A kernel's instructions with where they are, in bytes, from where the first one is.
    fn of<'l>(lines: impl Iterator<Item = (usize, &'l str)>) -> Listing {
        let (mut places, mut code) = (HashMap::new(), Vec::new());
        for (offset, inst) in lines {
            places.insert(offset, code.len());
            if !inst.starts_with("NOP") {
                code.push((offset, inst));
            }
        }
        let branches = code.iter().enumerate();
        let branches = branches.filter(|(_, (_, inst))| inst.contains("BRA"));
        let branches =
            branches.filter_map(|(at, (_, inst))| Some((*places.get(&target(inst)?)?, at)));
        let branches: Vec<(usize, usize)> = branches.filter(|(first, at)| first <= at).collect();
        Listing {
            to_themselves: branches.iter().filter(|(a, b)| a == b).count(),
            loops: branches.into_iter().filter(|(a, b)| a < b).collect(),
            code: code.into_iter().map(|(_, inst)| inst.to_owned()).collect(),
        }
    }

    /// How many instructions the kernel has.
    pub fn instructions(&self) -> usize {
        self.code.len() - self.to_themselves
    }

    /// The operation of each instruction, without the predicate before it.
    pub fn opcodes(&self) -> impl Iterator<Item = &str> {
        self.code.iter().map(|inst| {
            let without = match inst.starts_with('@') {
                true => inst.split_once(' ').map_or(&**inst, |(_, rest)| rest),
                false => inst,
            };
            without.split_whitespace().next().unwrap_or(inst)
        })
    }

    /// How many instructions have `what` in their text.
    pub fn with(&self, what: &str) -> usize {
        self.code.iter().filter(|inst| inst.contains(what)).count()
    }

    /// How many instructions the longest of the loops has that access memory and have no other such in them; where no loop accesses
    /// memory, the longest that has no other in it. A loop without accesses within one that has some is a part of a function, as
    /// of a root, that few numbers take.
    pub fn innermost(&self) -> usize {
        let accesses = |(first, last): &&(usize, usize)| {
            let mut within = self.opcodes().skip(*first).take(last - first + 1);
            within.any(|opcode| ACCESSES.iter().any(|kind| opcode.starts_with(kind)))
        };
        let with_accesses: Vec<(usize, usize)> =
            self.loops.iter().filter(accesses).copied().collect();
        let asked = match with_accesses.is_empty() {
            true => &self.loops,
            false => &with_accesses,
        };
        let holds_no_other = |(first, last): &&(usize, usize)| {
            !asked
                .iter()
                .any(|(a, b)| first <= a && b <= last && (a, b) != (first, last))
        };
        let lengths = asked
            .iter()
            .filter(holds_no_other)
            .map(|(first, last)| last - first + 1);
        lengths.max().unwrap_or(0)
    }
}

/// What the operations begin with that access memory of any kind (CUDA Binary Utilities).
const ACCESSES: [&str; 5] = ["LD", "ST", "ATOM", "RED.", "REDG"];

/// What `nvdisasm` lists of kernels for one architecture, in their order; `None` without `KILN_NVDISASM`.
pub fn disassemble(kernels: &[Code], sm: u32) -> Option<Vec<Listing>> {
    let nvdisasm = std::env::var_os("KILN_NVDISASM")?;
    let folder = Folder::new(&format!("code-{sm}"));
    let file = folder.0.join("code.bin");
    let code: Vec<u8> = kernels.iter().flat_map(|code| &code.0).copied().collect();
    std::fs::write(&file, code).expect("the temporary folder can be written");
    let mut command = Command::new(nvdisasm);
    // Nothing here asks where a branch leads whose target is in a register.
    let listed = command.args(["--no-dataflow", "--binary", &format!("SM{sm}")]);
    let text = output(listed.arg(&file));
    Some(apart(&text, kernels.iter().map(|code| code.0.len())))
}

/// The listings of kernels of these lengths that come one behind the other in a text.
fn apart(text: &str, lengths: impl Iterator<Item = usize>) -> Vec<Listing> {
    let mut lines = text.lines().filter_map(instruction).peekable();
    let mut end = 0;
    let of_kernel = |length: usize| {
        assert_eq!(length % INSTRUCTION, 0, "code is instructions");
        end += length;
        let listing = Listing::of(std::iter::from_fn(|| lines.next_if(|line| line.0 < end)));
        assert!(
            !listing.code.is_empty(),
            "no kernel before {end:#x} in\n{text}"
        );
        listing
    };
    lengths.map(of_kernel).collect()
}

/// Where the instruction of a line `/*0010*/ EXIT ;` is, and its text.
fn instruction(line: &str) -> Option<(usize, &str)> {
    let (offset, rest) = line.trim().strip_prefix("/*")?.split_once("*/")?;
    Some((usize::from_str_radix(offset, 16).ok()?, rest.trim()))
}

/// Where a branch `@P0 BRA 0x160 ;` leads.
fn target(inst: &str) -> Option<usize> {
    let (_, number) = inst.rsplit_once("0x")?;
    usize::from_str_radix(number.trim_end_matches(';').trim_end(), 16).ok()
}

#[test]
fn a_loop_of_few_numbers_is_not_the_hot_one() {
    let text = |inner: &str, outer: &str| {
        let lines = [
            "MOV R1, 0x1",
            outer,
            inner,
            "@P1 BRA 0x20",
            "FADD R2, R2, R3",
            "@P0 BRA 0x10",
            "EXIT",
        ];
        let numbered = lines.iter().enumerate();
        let lines = numbered.map(|(number, line)| format!("/*{:04x}*/ {line} ;\n", 16 * number));
        lines.collect::<String>()
    };
    let innermost =
        |inner: &str, outer: &str| apart(&text(inner, outer), [0x70].into_iter())[0].innermost();
    let (square, load, store) = (
        "FFMA R2, R2, R2, R3",
        "LDG.E R3, [R4.64]",
        "@P2 STS [R5], R2",
    );
    assert_eq!(innermost(square, load), 5);
    assert_eq!(innermost(square, store), 5);
    assert_eq!(innermost(load, store), 2);
    assert_eq!(innermost(load, square), 2);
    assert_eq!(innermost(square, square), 2);
}

#[test]
fn listings_are_those_of_each_kernel() {
    let text = "\
        /*0000*/ MOV R1, c[0x0][0x28] ;
        /*0010*/ IADD R1, R1, 1 ;
        /*0020*/ WARPSYNC R0 ;
        /*0030*/ @P0 BRA 0x10 ;
        /*0040*/ EXIT ;
        /*0050*/ BRA 0x50;
        /*0060*/ BRA 0x10;
        /*0070*/ NOP;
        /*0080*/ EXIT ;
        /*0090*/ BRA 0x90;
";
    let listings = apart(text, [0x80, 0x20].into_iter());
    let [first, second] = &listings[..] else {
        panic!("two kernels: {listings:?}");
    };
    assert_eq!(
        [
            first.instructions(),
            first.innermost(),
            first.with("WARPSYNC"),
            second.instructions(),
            second.innermost(),
        ],
        [6, 3, 1, 1, 0]
    );
    let opcodes: Vec<_> = first.opcodes().collect();
    assert_eq!(
        opcodes,
        ["MOV", "IADD", "WARPSYNC", "BRA", "EXIT", "BRA", "BRA"]
    );
}
