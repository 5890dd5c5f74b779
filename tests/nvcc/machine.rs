//! What `ptxas` makes of PTX: registers, spills, and the shape of the machine code.

use std::fmt;
use std::process::Command;

use kiln::core::hook::HookSet;
use kiln::core::job::CompileOptions;
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;

use super::count::{Folder, assembled, entry};
use super::listing::{Code, disassemble};

/// The architecture for which machine code is compared.
pub const SM: u32 = 90;

/// Compiles for it, on a machine without a GPU.
pub fn jit(compile: CompileOptions) -> kiln::Result<Jit> {
    jit_with(compile, kiln::hooks::standard())
}

/// The same with other hooks.
pub fn jit_with(compile: CompileOptions, hooks: HookSet) -> kiln::Result<Jit> {
    let builder = Jit::builder().device(Device::cpu()).compile(compile);
    let builder = builder.hooks(hooks);
    builder.target(Target::Ptx(PtxTarget::for_sm(SM))).build()
}

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

/// What a record begins with: what its numbers are.
pub const HEAD: &str =
    "registers, bytes of spills, WARPSYNCs, instructions, those of the longest innermost loop\n";

/// What `ptxas` has made of a kernel.
pub struct Assembled {
    code: Code,
    registers: usize,
    spills: usize,
}

impl Assembled {
    /// The first kernel of a PTX text; `None` without `KILN_PTXAS`.
    pub fn of_entry(ptx: &str, sm: u32) -> Option<Assembled> {
        Assembled::of_ptx(ptx, entry(ptx), sm)
    }

    fn of_ptx(ptx: &str, kernel: &str, sm: u32) -> Option<Assembled> {
        let (code, said) = assembled(ptx, kernel, sm)?;
        let (spills, registers) = usage(&said, kernel);
        Some(Assembled {
            code,
            registers,
            spills,
        })
    }
}

/// What is compared of kernels, in their order; `None` without `KILN_NVDISASM`.
pub fn machines(kernels: Vec<Assembled>, sm: u32) -> Option<Vec<Machine>> {
    let usages = kernels
        .iter()
        .map(|kernel| (kernel.registers, kernel.spills));
    let usages: Vec<(usize, usize)> = usages.collect();
    let code: Vec<Code> = kernels.into_iter().map(|kernel| kernel.code).collect();
    let listings = disassemble(&code, sm)?.into_iter().zip(usages);
    let machine = listings.map(|(listing, (registers, spills))| Machine {
        registers,
        spills,
        warpsyncs: listing.with("WARPSYNC"),
        instructions: listing.instructions(),
        innermost: listing.innermost(),
    });
    Some(machine.collect())
}

/// What nvcc makes of the kernels of a twin; `None` without one.
pub fn of_nvcc(source: &str, kernel: &str, sm: u32) -> Option<Machine> {
    let folder = Folder::new(&format!("twin-{kernel}"));
    let (twin, ptx) = (folder.0.join("twin.cu"), folder.0.join("twin.ptx"));
    std::fs::write(&twin, source).expect("the temporary folder can be written");
    let mut command = Command::new("nvcc");
    command
        .args(["-O3", &format!("-arch=sm_{sm}"), "-ptx"])
        .arg(&twin)
        .arg("-o")
        .arg(&ptx);
    let done = command.output().ok()?;
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success(),
        "nvcc on the twin of {kernel}: {error}"
    );
    let ptx = std::fs::read_to_string(&ptx).expect("nvcc wrote it");
    machines(vec![Assembled::of_ptx(&ptx, kernel, sm)?], sm)?.pop()
}

/// What nvcc made of a kernel, as it was recorded: a line each, and of it what comes after the name.
pub fn recorded<'r>(record: &'r str, name: &str) -> Option<&'r str> {
    let start = format!("{name:44} | ");
    let line = record.lines().find_map(|line| line.strip_prefix(&start))?;
    line.split(" | ").next()
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
