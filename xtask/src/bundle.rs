//! `cargo xtask bundle`: one folder that runs on a GPU machine without Rust.
//!
//! ```text
//! bundle/run              starts the programs (./run --help)
//! bundle/programs         kind and name of each, a line each
//! bundle/bin.tar.xz       examples, benches and the GPU tests: release builds, stripped, unpacked
//!                         into bundle/bin/ by `run`
//! bundle/lib/*.xz         the toolchain's libLLVM as far as a loader reads it, unpacked by `run` and
//!                         opened at run time
//! bundle/peers/*.cu       the CUDA C++ twins that benches compile with nvcc where it is installed
//! bundle/peers/*.py       what benches ask of compilers for Python, as far as python3 has them
//! bundle/filetests/run    kernels in IR that the GPU tests run
//! ```
//! The folder has to travel to machines with little room for it, so it has a size limit.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::wheels::remove;
use crate::workspace::{self, Target, TargetKind, cargo, root, run, target_folder, tools_folder};

/// The limit for all files of the bundle together, in bytes.
const LIMIT: u64 = 56_000_000;

/// A bench of the CPU has its peers where it was built, and says nothing about a GPU.
const LEFT_OUT: &str = "cpu";

/// The test programs that run on a GPU, without Rust's test harness.
const GPU_TESTS: [&str; 6] = [
    "gpu-tests",
    "litmus",
    "random-functions",
    "random-kernels",
    "reset",
    "soak",
];

/// The files of IR that run on a GPU, in the folder `tests` and in the bundle.
const FILE_TESTS: &str = "filetests/run";

const BUILD_HELP: &str = "Repair what the compiler reports above";
const CC_HELP: &str = "Install a C compiler (Debian and Ubuntu: gcc)";
const TAR_HELP: &str = "Install tar (Debian and Ubuntu: apt-get install tar)";
const XZ_HELP: &str = "Install xz (Debian and Ubuntu: apt-get install xz-utils)";

/// Makes `bundle/`, replacing an earlier one. Without `with_llvm` the library is left out, for a
/// machine that has it from an earlier bundle.
///
/// # Errors
/// Those of building and copying, and [`Error::BundleTooLarge`].
pub(crate) fn bundle(with_llvm: bool) -> Result<()> {
    let folder = root().join("bundle");
    let mut programs = build()?;
    programs.extend(with_cust()?);
    remove(&folder)?;
    for inner in ["bin", "lib", "peers", FILE_TESTS] {
        let inner = folder.join(inner);
        fs::create_dir_all(&inner).map_err(Error::io("create", inner))?;
    }
    copy_programs(&programs, &folder)?;
    copy_python(&folder.join("bin"))?;
    pack_programs(&folder)?;
    for kind in ["cu", "py"] {
        copy_all("benches/peers", kind, &folder.join("peers"))?;
    }
    copy_all(
        &format!("tests/{FILE_TESTS}"),
        "kir",
        &folder.join(FILE_TESTS),
    )?;
    let library = kiln_bundle::toolchain_llvm(root())?;
    let name = file_name(&library);
    if with_llvm {
        copy(
            &packed(&library)?,
            &folder.join("lib").join(format!("{name}.xz")),
        )?;
    }
    let script = folder.join("run");
    let text = include_str!("bundle/run").replace("@LIBRARY@", &name);
    fs::write(&script, text).map_err(Error::io("write", &script))?;
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&script, executable).map_err(Error::io("make executable", &script))?;
    let size = check_size(&folder, LIMIT)?;
    println!(
        "{}: {} programs, {:.1} MB",
        folder.display(),
        programs.len(),
        size as f64 / 1e6
    );
    Ok(())
}

/// A built program and where cargo put it.
type Programs = BTreeMap<String, (TargetKind, PathBuf)>;

/// Builds the examples, the benches, the GPU tests and the libraries for release, as far as the workspace has them.
fn build() -> Result<Programs> {
    let wanted = wanted()?;
    if wanted.is_empty() {
        return Ok(Programs::new());
    }
    let mut command = cargo();
    // The library for Python is among the libraries: built alone it would have others of each below it.
    command.args(["build", "--workspace", "--release", "--lib"]);
    command.args(["--message-format", "json-render-diagnostics"]);
    for target in &wanted {
        command
            .arg(format!("--{}", target.kind.name()))
            .arg(&target.name);
    }
    let messages = workspace::output(&mut command, "building the programs", BUILD_HELP)?;
    executables(&messages).map_err(|source| Error::CargoOutput {
        command: "cargo build",
        source,
    })
}

/// What a bundle has of the workspace's targets.
///
/// # Errors
/// [`Error::DuplicateProgram`] where two have one name.
fn wanted() -> Result<Vec<Target>> {
    let wanted: Vec<Target> = workspace::targets()?
        .into_iter()
        .filter(|t| t.kind != TargetKind::Test || GPU_TESTS.contains(&t.name.as_str()))
        .filter(|t| t.kind != TargetKind::Bench || t.name != LEFT_OUT)
        .collect();
    for name in GPU_TESTS
        .iter()
        .filter(|name| !wanted.iter().any(|t| t.name == **name))
    {
        eprintln!("xtask: no test program `{name}`, so the bundle has none");
    }
    let mut names: Vec<&str> = wanted.iter().map(|t| t.name.as_str()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Error::DuplicateProgram {
            name: twice[0].to_owned(),
        });
    }
    Ok(wanted)
}

/// Builds the program that works beside cust, which links the driver: here any library with its names does.
fn with_cust() -> Result<Programs> {
    const NAME: &str = "with-cust";
    let stub = tools_folder().join("cuda-stub");
    let library = stub.join("lib64/libcuda.so");
    let text = stub.join("stub.c");
    fs::create_dir_all(stub.join("lib64")).map_err(Error::io("create", &stub))?;
    let metadata = workspace::output(
        cargo().args([
            "metadata",
            "--format-version",
            "1",
            "--features",
            "kiln-tests/cust",
        ]),
        "asking cargo for packages",
        BUILD_HELP,
    )?;
    let bindings = bindings_of(&metadata).map_err(|source| Error::CargoOutput {
        command: "cargo metadata",
        source,
    })?;
    let bindings = fs::read_to_string(&bindings).map_err(Error::io("read", &bindings))?;
    fs::write(&text, stub_of(&bindings)).map_err(Error::io("write", &text))?;
    let mut link = Command::new("cc");
    link.args(["-shared", "-Wl,-soname,libcuda.so.1", "-o"]);
    link.arg(&library).arg(&text);
    run(
        &mut link,
        "making a library with the driver's names",
        CC_HELP,
    )?;
    let mut command = cargo();
    command.args([
        "build",
        "--release",
        "-p",
        "kiln-tests",
        "--features",
        "cust",
    ]);
    command.args(["--bin", NAME, "--message-format", "json-render-diagnostics"]);
    command.env("CUDA_LIBRARY_PATH", &stub);
    let messages = workspace::output(&mut command, "building the program for cust", BUILD_HELP)?;
    let built = kiln_bundle::built(&messages).map_err(|source| Error::CargoOutput {
        command: "cargo build",
        source,
    })?;
    let as_example = |built: kiln_bundle::Built| (built.name, (TargetKind::Example, built.path));
    Ok(built.into_iter().map(as_example).collect())
}

/// The file in which cust has the driver's functions, by cargo's account of packages.
fn bindings_of(metadata: &str) -> serde_json::Result<PathBuf> {
    let metadata: Value = serde_json::from_str(metadata)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut raw = packages.filter(|package| package["name"] == "cust_raw");
    let manifest = raw.find_map(|package| package["manifest_path"].as_str());
    Ok(Path::new(manifest.unwrap_or_default()).with_file_name("src/cuda.rs"))
}

/// Functions of the names that are declared there; code 34 is that of the toolkit's own stub library.
fn stub_of(bindings: &str) -> String {
    let names = bindings.lines().filter_map(|line| {
        let name = line.trim_start().strip_prefix("pub fn ")?;
        name.split('(').next()
    });
    let functions = names.map(|name| format!("int {name}(void) {{ return 34; }}\n"));
    functions.collect()
}

/// Reads the built programs from cargo's messages, one JSON value a line.
fn executables(messages: &str) -> serde_json::Result<Programs> {
    let programs = kiln_bundle::built(messages)?.into_iter();
    let of_kind = |built: kiln_bundle::Built| {
        let kind = TargetKind::of(&built.target)?;
        Some((built.name, (kind, built.path)))
    };
    Ok(programs.filter_map(of_kind).collect())
}

/// Copies the programs into `bin`, strips them there, and writes the list that `run` reads.
fn copy_programs(programs: &Programs, folder: &Path) -> Result<()> {
    let mut list = String::new();
    for (name, (kind, path)) in programs {
        let to = folder.join("bin").join(name);
        kiln_bundle::copy_stripped(path, &to)?;
        list += &format!("{} {name}\n", kind.name());
    }
    let path = folder.join("programs");
    fs::write(&path, list).map_err(Error::io("write", path))
}

/// Copies the library for Python and the program that tries it.
fn copy_python(folder: &Path) -> Result<()> {
    let library = target_folder().join("release/libkiln_python.so");
    kiln_bundle::copy_stripped(&library, &folder.join("libkiln_python.so"))?;
    copy_all("python", "py", folder)
}

/// Packs `bin` into one file: the programs have most of their code in common.
fn pack_programs(folder: &Path) -> Result<()> {
    let bin = folder.join("bin");
    let tar = folder.join("bin.tar");
    let mut pack = Command::new("tar");
    pack.arg("-C").arg(folder).arg("-cf").arg(&tar).arg("bin");
    run(&mut pack, "putting the programs into one file", TAR_HELP)?;
    let mut xz = Command::new("xz");
    // The programs have their code from the same crates, and are more than the 64 MiB that `-9` looks back.
    xz.args(["--lzma2=preset=9e,dict=512MiB", "-T1", "--force"])
        .arg(&tar);
    run(&mut xz, "packing the programs", XZ_HELP)?;
    remove(&bin)
}

/// Copies the files of a folder of the repository whose names have an extension, if there are any.
fn copy_all(from: &str, extension: &str, to: &Path) -> Result<()> {
    let files = fs::read_dir(root().join(from))
        .into_iter()
        .flatten()
        .flatten();
    for file in files.map(|entry| entry.path()) {
        if file.extension().is_some_and(|known| known == extension) {
            copy(&file, &to.join(file_name(&file)))?;
        }
    }
    Ok(())
}

/// What a loader reads of the library, packed with xz. That takes minutes, so the result is kept under the digest of
/// what was packed.
fn packed(library: &Path) -> Result<PathBuf> {
    let bytes = fs::read(library).map_err(Error::io("read", library))?;
    let bytes = kiln_bundle::loadable(bytes);
    let digest = blake3::hash(&bytes).to_hex();
    let kept = tools_folder().join(format!("{}.{}.xz", file_name(library), &digest[..16]));
    if kept.is_file() {
        return Ok(kept);
    }
    eprintln!(
        "xtask: packing {}; this takes minutes, and only once",
        library.display()
    );
    let started = Instant::now();
    let folder = tools_folder();
    fs::create_dir_all(&folder).map_err(Error::io("create", folder))?;
    let unpacked = kept.with_extension("unpacked");
    fs::write(&unpacked, &bytes).map_err(Error::io("write", &unpacked))?;
    let part = kept.with_extension("part");
    let file = fs::File::create(&part).map_err(Error::io("create", &part))?;
    let mut xz = Command::new("xz");
    // One block: several would pack sooner, but 5 % larger. Calls packed by where they go to are 2 % less.
    let calls = cfg!(target_arch = "x86_64").then_some("--x86");
    xz.args(calls);
    xz.args(["--lzma2=preset=9e", "-T1", "--stdout"]);
    xz.arg(&unpacked);
    xz.stdin(Stdio::null()).stdout(file);
    run(&mut xz, "packing libLLVM", XZ_HELP)?;
    remove(&unpacked)?;
    fs::rename(&part, &kept).map_err(Error::io("rename", &part))?;
    let size = fs::metadata(&kept).map_err(Error::io("read", &kept))?.len();
    let seconds = started.elapsed().as_secs();
    eprintln!(
        "xtask: {:.1} MB to {:.1} MB in {seconds} s",
        bytes.len() as f64 / 1e6,
        size as f64 / 1e6
    );
    Ok(kept)
}

/// The bytes of all files under a folder.
///
/// # Errors
/// [`Error::BundleTooLarge`] if they are more than `limit`.
fn check_size(folder: &Path, limit: u64) -> Result<u64> {
    let mut files = Vec::new();
    list_files(folder, &mut files)?;
    files.sort_unstable_by(|a, b| b.cmp(a));
    let size = files.iter().map(|(size, _)| size).sum();
    if size <= limit {
        return Ok(size);
    }
    let lines = files
        .iter()
        .take(8)
        .map(|(size, path)| format!("{size:>12} {}", path.display()));
    Err(Error::BundleTooLarge {
        size,
        limit,
        largest: lines.collect::<Vec<_>>().join("\n"),
    })
}

/// Lists the files under a folder with their sizes in bytes.
fn list_files(folder: &Path, files: &mut Vec<(u64, PathBuf)>) -> Result<()> {
    for entry in fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let path = entry.map_err(Error::io("read", folder))?.path();
        let metadata = fs::metadata(&path).map_err(Error::io("read", &path))?;
        match metadata.is_dir() {
            true => list_files(&path, files)?,
            false => files.push((metadata.len(), path)),
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to)
        .map(|_| ())
        .map_err(Error::io("copy", from))
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is removed at the end of a test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let name = format!("kiln-xtask-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir_all(&folder).expect("a temporary folder");
            Folder(folder)
        }

        fn program(&self, name: &str, text: &str) {
            let path = self.0.join(name);
            fs::create_dir_all(path.parent().expect("it has one")).expect("a temporary folder");
            fs::write(&path, text).expect("a temporary file");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it was made");
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn programs_of_this_workspace_have_names_of_their_own_and_all_gpu_tests_are_there() {
        let wanted = wanted().expect("no two targets with one name");
        for name in GPU_TESTS {
            assert!(wanted.iter().any(|t| t.name == name), "no program `{name}`");
        }
    }

    /// A bundle of scripts: two examples, of which `bad` fails, and the tests.
    fn bundle_of_scripts(name: &str) -> Folder {
        let bundle = Folder::new(name);
        bundle.program(
            "run",
            &include_str!("bundle/run").replace("@LIBRARY@", "libLLVM.so.1"),
        );
        bundle.program(
            "bin/good",
            "#!/bin/sh\necho \"good got $* and $KILN_LIBLLVM\"\n",
        );
        bundle.program("bin/bad", "#!/bin/sh\nexit 3\n");
        bundle.program(
            "bin/gpu-tests",
            "#!/bin/sh\necho \"tests got $*\"\necho \"files are in $KILN_FILETESTS\"\n",
        );
        bundle.program("programs", "example bad\nexample good\ntest gpu-tests\n");
        bundle
    }

    /// Exit code, standard output and error output of the bundle's `run`.
    ///
    /// A program cannot be started while somebody has it open for writing, and a process that
    /// another test starts right when a script is written has it open for a moment: try again.
    fn call(bundle: &Folder, args: &[&str]) -> (Option<i32>, String, String) {
        loop {
            let mut command = Command::new("sh");
            command
                .arg(bundle.0.join("run"))
                .args(args)
                .env_remove("KILN_LIBLLVM")
                .env_remove("KILN_PEERS")
                .env_remove("KILN_FILETESTS");
            let output = command
                .env("KILN_BUNDLE_LIB", bundle.0.join("unpacked"))
                .output();
            let output = output.expect("sh starts");
            let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
            let (out, error) = (text(output.stdout), text(output.stderr));
            if !error.contains("Text file busy") {
                return (output.status.code(), out, error);
            }
        }
    }

    #[test]
    fn the_stub_has_the_names_of_bindings() {
        let bindings = "extern \"C\" {\n    pub fn cuInit(Flags: u32) -> CUresult;\n    pub fn cuMemAlloc_v2(\n";
        let stub = "int cuInit(void) { return 34; }\nint cuMemAlloc_v2(void) { return 34; }\n";
        assert_eq!(stub_of(bindings), stub);
        let metadata =
            r#"{"packages":[{"name":"cust_raw","manifest_path":"/r/cust_raw-1/Cargo.toml"}]}"#;
        let file = bindings_of(metadata).expect("it is JSON");
        assert_eq!(file, Path::new("/r/cust_raw-1/src/cuda.rs"));
    }

    #[test]
    fn executables_are_read_from_messages() {
        let messages = "{\"reason\":\"compiler-artifact\",\"executable\":null,\"target\":{}}\n\
            {\"reason\":\"compiler-artifact\",\"executable\":\"/t/launch-1\",\
             \"target\":{\"kind\":[\"bench\"],\"name\":\"launch\"}}\n\
            {\"reason\":\"build-finished\",\"success\":true}\n";
        let programs = executables(messages).expect("it is JSON");
        let launch = (TargetKind::Bench, PathBuf::from("/t/launch-1"));
        assert_eq!(programs, Programs::from([("launch".to_owned(), launch)]));
    }

    #[test]
    fn run_says_what_is_missing() {
        let bundle = bundle_of_scripts("missing");
        let (code, _, error) = call(&bundle, &["good"]);
        assert_eq!(code, Some(2));
        assert!(
            error.contains("no libLLVM.so.1 in") && error.contains("KILN_BUNDLE_LIB"),
            "{error}"
        );
        let (code, list, _) = call(&bundle, &["--list"]);
        assert_eq!(
            (code, list.as_str()),
            (Some(0), "example bad\nexample good\ntest gpu-tests\n")
        );
        let (code, help, _) = call(&bundle, &["--help"]);
        assert!(
            code == Some(0) && help.contains("./run NAME [ARGS]"),
            "{help}"
        );
        assert!(!help.contains("set -eu"), "{help}");
    }

    #[test]
    fn run_passes_arguments_and_the_library() {
        let bundle = bundle_of_scripts("arguments");
        bundle.program("unpacked/libLLVM.so.1", "");
        let (code, text, _) = call(&bundle, &["good", "a b", "c"]);
        let library = bundle.0.join("unpacked/libLLVM.so.1");
        assert_eq!(code, Some(0));
        assert_eq!(text, format!("good got a b c and {}\n", library.display()));
        let (code, _, error) = call(&bundle, &["other"]);
        assert!(
            code == Some(2) && error.contains("no program `other`"),
            "{error}"
        );
    }

    #[test]
    fn all_tests_run_to_the_end_and_report_the_failed() {
        let bundle = bundle_of_scripts("all");
        bundle.program("unpacked/libLLVM.so.1", "");
        let (code, text, error) = call(&bundle, &["--all-tests"]);
        assert_eq!((code, error.as_str()), (Some(2), "run: failed: bad\n"));
        let files = format!("files are in {}\n", bundle.0.join("filetests").display());
        for line in [
            "tests got --require\n",
            &files,
            "== bad: FAILED (3)\n",
            "== good: ok\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn run_unpacks_the_programs_of_its_bundle() {
        let bundle = bundle_of_scripts("packed");
        bundle.program("unpacked/libLLVM.so.1", "");
        pack_programs(&bundle.0).expect("tar and xz are there");
        assert!(!bundle.0.join("bin").exists());
        let (code, ..) = call(&bundle, &["--unpack"]);
        assert!(code == Some(0) && bundle.0.join("bin/good").exists());
        // A newer bundle takes its place.
        bundle.program("bin/good", "#!/bin/sh\necho newer\n");
        pack_programs(&bundle.0).expect("tar and xz are there");
        bundle.program("bin/good", "#!/bin/sh\necho older\n");
        let hour = std::time::Duration::from_secs(3600);
        let old = fs::File::open(bundle.0.join("bin")).expect("it was made");
        let set = old.set_modified(std::time::SystemTime::now() - hour);
        set.expect("the folder is ours");
        let (code, text, _) = call(&bundle, &["good"]);
        assert_eq!((code, text.as_str()), (Some(0), "newer\n"));
        assert_eq!(call(&bundle, &["good"]).1, "newer\n");
    }

    #[test]
    fn a_bundle_over_the_limit_names_its_files() {
        let folder = Folder::new("size");
        folder.program("bin/large", "0123456789");
        assert_eq!(check_size(&folder.0, 10).expect("it fits"), 10);
        let error = check_size(&folder.0, 9)
            .expect_err("it is larger")
            .to_string();
        assert!(
            error.contains("10 bytes, the limit is 9") && error.contains("bin/large"),
            "{error}"
        );
    }
}
