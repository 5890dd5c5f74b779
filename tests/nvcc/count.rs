//! Counting instructions of PTX and of SASS.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use kiln::core::compile::{NoObserver, compile};
use kiln::core::hook::HookSet;
use kiln::core::ir::Module;
use kiln::core::job::{CompileJob, CompileOptions};
use kiln::core::target::{PtxTarget, Target};

use super::listing::{Code, Listing, disassemble};

/// How many instructions a kernel has.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// In PTX, the kernel itself.
    pub ptx: usize,
    /// In SASS, the kernel itself; `None` without the tools for it.
    pub sass: Option<usize>,
}

/// What Kiln makes of a legal module.
pub fn of_module(module: &Arc<Module>, sm: u32) -> Counts {
    let target = Target::Ptx(PtxTarget::for_sm(sm));
    let job = CompileJob::new(Module::clone(module), target, CompileOptions::default());
    let compiled = compile(job, &HookSet::new(), &NoObserver);
    let compiled = compiled.unwrap_or_else(|error| panic!("{}: {error}", module.name));
    let code = compiled.code.ptx().expect("PTX");
    let (ptx, name) = (&*code.text, &*code.entry);
    let listings = code_of_ptx(ptx, name, sm).and_then(|code| disassemble(&[code], sm));
    Counts {
        ptx: of_ptx(ptx, name),
        sass: listings.and_then(|listings| Some(listings.first()?.instructions())),
    }
}

/// The name of the kernel of a PTX text.
pub fn entry(ptx: &str) -> &str {
    let after = ptx
        .split_once(".entry ")
        .and_then(|(_, rest)| rest.split_once('('));
    after.expect("a kernel has an entry").0
}

/// What `ptxas` makes of a kernel of a PTX text; `None` without `KILN_PTXAS`.
pub fn code_of_ptx(ptx: &str, name: &str, sm: u32) -> Option<Code> {
    Some(assembled(ptx, name, sm)?.0)
}

/// The same with what `ptxas` says of the kernel.
pub fn assembled(ptx: &str, name: &str, sm: u32) -> Option<(Code, String)> {
    let mut ptxas = Command::new(std::env::var_os("KILN_PTXAS")?);
    let folder = Folder::new(&format!("code-{name}-{sm}"));
    let (source, cubin) = (folder.0.join("kernel.ptx"), folder.0.join("kernel.cubin"));
    std::fs::write(&source, ptx).expect("the temporary folder can be written");
    let assemble = ptxas.args(["-v", &format!("-arch=sm_{sm}")]).arg(&source);
    let done = assemble.arg("-o").arg(&cubin).output();
    let done = done.expect("ptxas starts");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{name} for sm_{sm}: {said}");
    Some((Code::of(&cubin, name), said))
}

/// A file in `benches/peers`.
fn peer(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../benches/peers")
        .join(file)
}

/// The PTX that nvcc makes of a file in `benches/peers`; `None` without nvcc.
pub fn ptx_of_nvcc(file: &str, sm: u32) -> Option<String> {
    let folder = Folder::new(&format!("ptx-{file}-{sm}"));
    let ptx = folder.0.join("kernels.ptx");
    let mut command = Command::new("nvcc");
    command.args(["-O3", &format!("-arch=sm_{sm}"), "-ptx"]);
    let done = command.arg(peer(file)).arg("-o").arg(&ptx).output().ok()?;
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "nvcc on {file}: {error}");
    Some(std::fs::read_to_string(&ptx).expect("nvcc wrote it"))
}

/// What nvcc makes of a kernel of a file in `benches/peers`; `None` without nvcc or `nvdisasm`.
pub fn of_nvcc(file: &str, kernel: &str, sm: u32) -> Option<Counts> {
    let source = peer(file);
    let folder = Folder::new(&format!("nvcc-{kernel}-{sm}"));
    let compile = |what: &str| {
        let to = folder.0.join(format!("kernel.{what}"));
        let mut command = Command::new("nvcc");
        command.args(["-O3", &format!("-arch=sm_{sm}"), &format!("-{what}")]);
        command.arg(&source).arg("-o").arg(&to);
        let done = command.output().ok()?;
        let error = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "nvcc on {file}: {error}");
        Some(to)
    };
    let ptx = std::fs::read_to_string(compile("ptx")?).expect("nvcc wrote it");
    let code = Code::of(&compile("cubin")?, kernel);
    let listings = disassemble(&[code], sm)?;
    Some(Counts {
        ptx: of_ptx(&ptx, kernel),
        sass: listings.first().map(Listing::instructions),
    })
}

/// The instructions of the kernel `name` in a PTX text.
pub fn of_ptx(ptx: &str, name: &str) -> usize {
    let entry = format!(".entry {name}(");
    let is_entry = |line: &&str| line.contains(&entry);
    let mut lines = ptx.lines().skip_while(|line| !is_entry(line));
    let body = lines.by_ref().take_while(|line| *line != "}");
    let is_instruction =
        |line: &str| line.ends_with(';') && !line.starts_with('.') && !line.starts_with("//");
    let count = body.filter(|line| is_instruction(line.trim())).count();
    assert!(count > 0, "no kernel `{name}` in\n{ptx}");
    count
}

/// The output of a tool that has to succeed.
pub fn output(command: &mut Command) -> String {
    let output = command.output().expect("the tool starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A folder that is removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    /// A new folder, whose name holds `name`.
    pub fn new(name: &str) -> Folder {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let name = format!("kiln-nvcc-{process}-{number}-{name}");
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a temporary folder can be made");
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left in the temporary folder harms nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
