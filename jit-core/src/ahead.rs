//! Compiling ahead of time: a folder of compiled kernels that goes along with a program, so that machines with a GPU need
//! no LLVM.
//!
//! A program that calls [`command`] with what it compiles is the command that fills the folder; it is built from the same
//! sources as the program that has the folder, by the same Rust, as entries are of one build of Kiln:
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use kiln::core::ahead;
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn double(x: &mut [f32]) {
//!     let i = global_id().x;
//!     if i < x.len() {
//!         x[i] *= 2.0;
//!     }
//! }
//!
//! fn main() -> ExitCode {
//!     // `cargo run --release --bin ahead -- --out kernels --target sm_80 --target sm_90 --target x86-64-v3`
//!     ahead::command(|jit| jit.keep(&double, 256, args!(&mut jit.zeros::<f32>(1)?)))
//! }
//! ```
//!
//! The program itself names the folder by [`JitBuilder::shipped`](crate::jit::JitBuilder::shipped), that which lies beside it by
//! [`beside_program`].
//!
//! For GPUs an entry is PTX: it needs no GPU and no driver to be made, and every later driver and architecture takes it. The
//! driver makes machine code of it at the first launch, which is kept in the user's folder as ever.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use crate::cache::{CacheFolder, CacheStats};
use crate::jit::Jit;
use kiln_compiler::error::Result;
use kiln_compiler::runtime::Device;
use kiln_compiler::target::{CpuFeatures, CpuTarget, PtxTarget, Target};

/// A machine to compile for, by the name that people call it.
///
/// ```
/// use kiln::core::ahead::Machine;
/// use kiln::core::target::{PtxTarget, Target};
///
/// let gpu: Machine = "sm_90".parse().expect("there is such a machine");
/// assert_eq!(gpu.target(), &Target::Ptx(PtxTarget::for_sm(90)));
/// assert!("sm_20".parse::<Machine>().is_err());
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine(Target);

impl Machine {
    /// The target of a machine.
    pub fn target(&self) -> &Target {
        &self.0
    }
}

/// A name that is of no machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownMachine(String);

impl fmt::Display for UnknownMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is no machine to compile for; give `sm_{}` to `sm_{}`, `x86-64-v2` to `x86-64-v4`, or `native` for this \
             CPU",
            self.0,
            PtxTarget::MIN_SM,
            PtxTarget::MAX_SM
        )
    }
}

impl std::error::Error for UnknownMachine {}

impl FromStr for Machine {
    type Err = UnknownMachine;

    fn from_str(name: &str) -> Result<Machine, UnknownMachine> {
        let unknown = || UnknownMachine(name.to_owned());
        if let Some(sm) = name.strip_prefix("sm_") {
            let sm: u32 = sm.parse().map_err(|_| unknown())?;
            let target = PtxTarget::known(sm).ok_or_else(unknown)?;
            return Ok(Machine(Target::Ptx(target)));
        }
        let level = |level| CpuTarget {
            features: level,
            ..CpuTarget::default()
        };
        let target = match name.strip_prefix("x86-64-v") {
            Some(number) => number
                .parse()
                .ok()
                .and_then(CpuFeatures::x86_64_level)
                .map(level),
            None => (name == "native").then(CpuTarget::host),
        };
        Ok(Machine(Target::Cpu(target.ok_or_else(unknown)?)))
    }
}

/// Fills a folder with kernels compiled for machines: `keep` is called with a [`Jit`] for each, and asks for what it wants by
/// [`Jit::keep`]. Entries that are there stay. Gives what was written for each machine, in files.
///
/// ```
/// use kiln::core::ahead;
/// use kiln::prelude::*;
///
/// #[kernel]
/// fn double(x: &mut [f32]) {
///     x[global_id().x] *= 2.0;
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let folder = std::env::temp_dir().join(format!("kiln-shipped-{}", std::process::id()));
/// let machines = ["sm_80", "native"].map(|name| name.parse().expect("a machine"));
/// ahead::fill(&folder, &machines, |jit| {
///     jit.keep(&double, 32, args!(&mut jit.zeros::<f32>(1)?))
/// })?;
///
/// let jit = Jit::builder().device(Device::cpu()).shipped(&folder).build()?;
/// let mut x = jit.upload(&[1.0f32; 32])?;
/// jit.launch(&double, 1, 32, args!(&mut x))?;
/// assert_eq!((jit.cache_stats().shipped_hits, jit.cache_stats().compiles), (1, 0));
/// # let _ = std::fs::remove_dir_all(folder);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// What `keep` gives; no libLLVM.
pub fn fill(
    folder: &Path,
    machines: &[Machine],
    keep: impl Fn(&Jit) -> Result<()>,
) -> Result<Vec<u64>> {
    let device = Device::cpu();
    let files = machines.iter().map(|machine| {
        let jit = Jit::builder()
            .device(device.clone())
            .target(machine.0.clone())
            .cache(CacheFolder::ToShip(folder.to_owned()))
            .build()?;
        keep(&jit)?;
        let CacheStats { disk_writes, .. } = jit.cache_stats();
        Ok(disk_writes)
    });
    files.collect()
}

/// A folder beside the program's own file, whichever is the current one; the name itself where the system does not tell.
///
/// ```
/// use kiln::core::ahead::beside_program;
///
/// assert!(beside_program("kernels").ends_with("kernels"));
/// ```
pub fn beside_program(name: impl AsRef<Path>) -> PathBuf {
    let program = std::env::current_exe().ok();
    let folder = program
        .as_deref()
        .and_then(Path::parent)
        .unwrap_or(Path::new(""));
    folder.join(name)
}

/// What a command is asked for.
struct Asked {
    folder: PathBuf,
    machines: Vec<Machine>,
}

const USAGE: &str = "--out FOLDER --target MACHINE [--target MACHINE ..]";

fn asked(mut args: impl Iterator<Item = OsString>) -> Result<Asked, String> {
    let (mut folder, mut machines) = (None, Vec::new());
    while let Some(arg) = args.next() {
        let value = args.next();
        match (arg.to_str(), value) {
            (Some("--out"), Some(value)) => folder = Some(PathBuf::from(value)),
            (Some("--target"), Some(value)) => {
                let machine = value.to_string_lossy().parse();
                machines.push(machine.map_err(|error: UnknownMachine| error.to_string())?);
            }
            _ => {
                return Err(format!(
                    "`{}` is not understood; give {USAGE}",
                    arg.display()
                ));
            }
        }
    }
    match folder {
        Some(folder) if !machines.is_empty() => Ok(Asked { folder, machines }),
        _ => Err(format!("give {USAGE}")),
    }
}

/// The command line of a program that fills a folder; [`crate::ahead`] has an example. It prints a line for each machine,
/// or what went wrong.
pub fn command(keep: impl Fn(&Jit) -> Result<()>) -> ExitCode {
    let done = asked(std::env::args_os().skip(1)).and_then(|asked| {
        for machine in &asked.machines {
            let files = fill(&asked.folder, std::slice::from_ref(machine), &keep);
            let files: u64 = files.map_err(|error| error.to_string())?.iter().sum();
            let folder = asked.folder.display();
            println!("{folder}: {files} files for {}", machine.0);
        }
        Ok(())
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines() {
        let of = |line: &str| asked(line.split_whitespace().map(OsString::from));
        let good = of("--target sm_80 --out k --target x86-64-v3");
        let good = good.map(|asked| (asked.folder, asked.machines.len()));
        if cfg!(target_arch = "x86_64") {
            assert_eq!(good, Ok((PathBuf::from("k"), 2)));
        }
        for wrong in [
            "",
            "--out k",
            "--target sm_80",
            "--out",
            "--out k --target sm_81",
            "--out k --target x86-64-v1",
            "--out k --target x86-64-v5",
            "k",
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
