//! What `ptxas` makes of PTX: registers, spills, and the shape of the machine code.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::process::Command;

use super::count::{Folder, instruction, output};

/// What is compared of the machine code of a kernel.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Registers of a thread.
    pub registers: usize,
    /// Bytes of registers that are stored to and loaded from memory.
    pub spills: usize,
    /// Instructions that bring a warp together which `ptxas` does not take for converged.
    pub warpsyncs: usize,
    /// Instructions in all.
    pub instructions: usize,
    /// Instructions of the longest of the loops that have no other in them.
    pub innermost: usize,
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine {
            registers,
            spills,
            warpsyncs,
            instructions,
            innermost,
        } = self;
        write!(
            f,
            "{registers:4} {spills:4} {warpsyncs:3} {instructions:5} {innermost:4}"
        )
    }
}

/// What `ptxas` makes of a kernel; `None` without `KILN_PTXAS` and `KILN_NVDISASM`.
pub fn of_ptx(ptx: &str, kernel: &str, sm: u32) -> Option<Machine> {
    let ptxas = std::env::var_os("KILN_PTXAS")?;
    let nvdisasm = std::env::var_os("KILN_NVDISASM")?;
    let folder = Folder::new(&format!("machine-{kernel}-{sm}"));
    let (source, cubin) = (folder.0.join("kernel.ptx"), folder.0.join("kernel.cubin"));
    std::fs::write(&source, ptx).expect("the temporary folder can be written");
    let mut command = Command::new(ptxas);
    command
        .args(["-v", &format!("-arch=sm_{sm}")])
        .arg(&source)
        .arg("-o")
        .arg(&cubin);
    let said = command.output().expect("ptxas starts");
    let said = String::from_utf8_lossy(&said.stderr);
    let (spills, registers) = usage(&said, kernel);
    let listing = listing(&nvdisasm, &cubin);
    let (warpsyncs, instructions, innermost) = shape(&listing, kernel);
    Some(Machine {
        registers,
        spills,
        warpsyncs,
        instructions,
        innermost,
    })
}

fn listing(nvdisasm: &std::ffi::OsStr, cubin: &Path) -> String {
    output(Command::new(nvdisasm).arg("-c").arg(cubin))
}

/// Bytes of spills and the number of registers in what `ptxas -v` says.
fn usage(said: &str, kernel: &str) -> (usize, usize) {
    let start = format!("Compiling entry function '{kernel}'");
    let of_kernel = said.split_once(&start);
    let (_, rest) = of_kernel.unwrap_or_else(|| panic!("no kernel `{kernel}` in\n{said}"));
    let number_before = |what: &str| -> usize {
        let (before, _) = rest
            .split_once(what)
            .unwrap_or_else(|| panic!("no `{what}` in\n{said}"));
        let number = before.trim_end().rsplit(' ').next().unwrap_or_default();
        number
            .parse()
            .unwrap_or_else(|_| panic!("no number before `{what}` in\n{said}"))
    };
    let spills = number_before("bytes spill stores") + number_before("bytes spill loads");
    (spills, number_before(" registers, used"))
}

/// `WARPSYNC`s, instructions, and instructions of the longest innermost loop.
fn shape(listing: &str, kernel: &str) -> (usize, usize, usize) {
    let start = format!(".text.{kernel}:");
    let lines = listing
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != start)
        .skip(1);
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
    assert!(!code.is_empty(), "no kernel `{kernel}` in\n{listing}");
    let loops: Vec<(usize, usize)> = code
        .iter()
        .enumerate()
        .filter(|(_, inst)| inst.contains("BRA"))
        .filter_map(|(at, inst)| {
            let label = inst.split_once("`(")?.1.split_once(')')?.0;
            let first = *labels.get(label)?;
            // The branch to itself comes after the last instruction.
            (first < at).then_some((first, at))
        })
        .collect();
    let holds_no_other = |(first, last): &&(usize, usize)| {
        !loops
            .iter()
            .any(|(a, b)| first <= a && b <= last && (a, b) != (first, last))
    };
    let innermost = loops
        .iter()
        .filter(holds_no_other)
        .map(|(first, last)| last - first + 1);
    let warpsyncs = code.iter().filter(|inst| inst.contains("WARPSYNC")).count();
    let itself = code.last().is_some_and(|last| last.contains("BRA"));
    (
        warpsyncs,
        code.len() - usize::from(itself),
        innermost.max().unwrap_or(0),
    )
}
