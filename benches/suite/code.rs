//! The PTX of the programs' kernels in folders, to be looked at, edited, and timed in place of what is compiled.
#![allow(dead_code, reason = "each bench uses a part of it")]

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kiln::core::hook::Hook;
use kiln::core::job::CompileOptions;
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;
use kiln_suite::{Benchmark, Directed, Launch, Launcher, Size, Stranger, without_checks};

use crate::driver;

/// The architecture that code is written for where there is no GPU.
pub const SM: u32 = 90;

/// Writes the PTX of programs to a folder: `checked/PROGRAM/KERNEL.ptx`, `unchecked/PROGRAM/KERNEL.ptx`, with the IR that
/// it is made of (`.kir`) and LLVM's (`.ll`), and where there is nvcc, what it makes of the twin, `nvcc/PROGRAM.ptx`.
/// With `facts` what is known of the small sizes' integers is compiled in.
pub fn write<'b>(
    folder: &Path,
    target: &Target,
    programs: impl Iterator<Item = &'b Benchmark> + Clone,
    facts: bool,
) -> kiln::Result<()> {
    let target = match target {
        Target::Ptx(target) => *target,
        _ => PtxTarget::for_sm(SM),
    };
    for (way, compile) in [
        ("checked", CompileOptions::default()),
        ("unchecked", without_checks()),
    ] {
        let builder = Jit::builder().device(Device::cpu()).compile(compile);
        let builder = builder.specialize_facts(facts);
        let jit = builder.target(Target::Ptx(target)).build()?;
        for program in programs.clone() {
            let to = folder.join(way).join(program.name);
            fs::create_dir_all(&to).unwrap_or_else(|error| panic!("{}: {error}", to.display()));
            let mut workload = (program.make)(&jit, Size::Small)?;
            workload.run(&mut Write {
                jit: &jit,
                folder: &to,
                twins: HashSet::new(),
            })?;
        }
    }
    write_twins(folder, target, programs);
    Ok(())
}

/// Writes what nvcc makes of the twins of programs, where there is one.
fn write_twins<'b>(
    folder: &Path,
    target: PtxTarget,
    programs: impl Iterator<Item = &'b Benchmark>,
) {
    let to = folder.join("nvcc");
    fs::create_dir_all(&to).unwrap_or_else(|error| panic!("{}: {error}", to.display()));
    for program in programs.filter(|program| !program.twin.is_empty()) {
        if let Some(ptx) = driver::compiled(program.twin, target.sm, "-ptx") {
            put(&to.join(format!("{}.ptx", program.name)), &ptx);
        }
    }
}

/// [`write`] of programs with directives, for inputs of a size.
pub fn write_directed<'b>(
    folder: &Path,
    target: &Target,
    programs: impl Iterator<Item = &'b Directed> + Clone,
    size: Size,
) -> kiln::Result<()> {
    let target = match target {
        Target::Ptx(target) => *target,
        _ => PtxTarget::for_sm(SM),
    };
    for (way, compile) in [
        ("checked", CompileOptions::default()),
        ("unchecked", without_checks()),
    ] {
        let builder = Jit::builder().device(Device::cpu()).compile(compile);
        let jit = builder.target(Target::Ptx(target)).build()?;
        for program in programs.clone() {
            let to = folder.join(way).join(program.name);
            fs::create_dir_all(&to).unwrap_or_else(|error| panic!("{}: {error}", to.display()));
            let mut write = Write {
                jit: &jit,
                folder: &to,
                twins: HashSet::new(),
            };
            program.make(&jit, size)?.run(&mut write)?;
        }
    }
    write_twins(folder, target, programs.map(Directed::benchmark));
    Ok(())
}

/// [`write`] of kernels without twins.
pub fn write_strangers<'b>(
    folder: &Path,
    target: &Target,
    strangers: impl Iterator<Item = &'b Stranger> + Clone,
) -> kiln::Result<()> {
    let target = match target {
        Target::Ptx(target) => *target,
        _ => PtxTarget::for_sm(SM),
    };
    for (way, compile) in [
        ("checked", CompileOptions::default()),
        ("unchecked", without_checks()),
    ] {
        let builder = Jit::builder().device(Device::cpu()).compile(compile);
        let jit = builder.target(Target::Ptx(target)).build()?;
        for stranger in strangers.clone() {
            let to = folder.join(way).join(stranger.name);
            fs::create_dir_all(&to).unwrap_or_else(|error| panic!("{}: {error}", to.display()));
            (stranger.make)(&jit, Size::Small)?.run(&mut Write {
                jit: &jit,
                folder: &to,
                twins: HashSet::new(),
            })?;
        }
    }
    Ok(())
}

/// Writes the code of launches, and runs none.
struct Write<'a> {
    jit: &'a Jit,
    folder: &'a Path,
    /// The kernels that were written.
    twins: HashSet<&'static str>,
}

impl Launcher for Write<'_> {
    fn launch(&mut self, launch: &Launch<'_>) -> kiln::Result<()> {
        if self.twins.insert(launch.twin) {
            let inspection = self.jit.inspect(launch.kernel, launch.args)?;
            let (ptx, llvm) = (inspection.ptx()?, inspection.llvm()?);
            for (ending, text) in [("ptx", ptx), ("ll", llvm), ("kir", inspection.ir())] {
                let name = format!("{}.{ending}", kernel(ptx));
                put(&self.folder.join(name), text.as_bytes());
            }
        }
        Ok(())
    }
}

fn put(file: &Path, text: &[u8]) {
    fs::write(file, text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}

/// The name of the kernel of a PTX text.
pub fn entry(ptx: &str) -> &str {
    let after = ptx.split_once(".entry ");
    let name = after.and_then(|(_, rest)| rest.split_once('('));
    name.expect("a kernel has an entry").0
}

/// The name of the kernel of a PTX text without the digest of its content, which another target or an edit of Kiln changes.
pub fn kernel(ptx: &str) -> &str {
    let entry = entry(ptx);
    entry.rsplit_once('_').map_or(entry, |(name, _)| name)
}

/// PTX of a folder, and whether any kernel was given it.
struct Text {
    ptx: String,
    taken: AtomicBool,
}

/// The PTX in the folder of a program; none, if there is no folder.
#[derive(Clone)]
pub struct InFolder(Arc<[Text]>);

impl InFolder {
    /// Reads the files whose names end in `.ptx`.
    pub fn read(folder: &Path) -> InFolder {
        let of_all = folder.parent().is_some_and(Path::is_dir);
        assert!(of_all, "no folder above {}", folder.display());
        let texts = fs::read_dir(folder)
            .into_iter()
            .flatten()
            .map(|file| file.expect("a file").path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "ptx"))
            .map(|path| Text {
                ptx: fs::read_to_string(&path)
                    .unwrap_or_else(|error| panic!("{}: {error}", path.display())),
                taken: AtomicBool::new(false),
            });
        InFolder(texts.collect())
    }

    /// Gives kernels the PTX of their name, in place of what is compiled.
    pub fn hook(&self) -> Hook {
        let texts = self.clone();
        let key: Vec<&str> = self.0.iter().map(|text| &*text.ptx).collect();
        let hook = Hook::new("in-folder").key("texts", key);
        hook.rewrite_ptx(move |_, ptx| {
            let mut texts = texts.0.iter();
            if let Some(text) = texts.find(|text| kernel(&text.ptx) == kernel(ptx)) {
                text.taken.store(true, Ordering::Relaxed);
                *ptx = text.ptx.replace(entry(&text.ptx), entry(ptx));
            }
            Ok(())
        })
    }

    /// The kernels of which there is PTX that none was given: their figures are those of no edit.
    pub fn left(&self) -> impl Iterator<Item = &str> {
        let left = |text: &&Text| !text.taken.load(Ordering::Relaxed);
        self.0.iter().filter(left).map(|text| kernel(&text.ptx))
    }
}
