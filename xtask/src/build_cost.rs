//! `cargo xtask bench-build`: what a crate with 100 kernels costs rustc, beside a crate with the same
//! functions without `#[kernel]`.
//!
//! Both crates are written under `target/kiln-build-cost`, from the kernels in `benches/build`, and
//! compiled in turn with everything that they depend on built before. Both depend on Kiln, so that
//! opening it counts for both. In the quick form Kiln is built where `cargo xtask newcomer` has it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::workspace::{cargo, root, run, target_folder};

/// The kernels, which are five.
const KERNELS: &str = include_str!("../../benches/build/kernels.rs");

/// How many times they are in a crate.
const COPIES: u32 = 20;

/// How many times each crate is compiled.
const RUNS: usize = 5;

/// The crates, of which the second is measured against the first.
const CRATES: [&str; 2] = ["functions", "kernels"];

/// How they are compiled: what it is called, and cargo's arguments.
const WAYS: [(&str, &[&str]); 3] = [
    ("check", &["check"]),
    ("build", &["build"]),
    ("build --release", &["build", "--release"]),
];

/// As README has it.
const PROFILE: &str = "[profile.dev.package]\n\"*\" = { opt-level = 1 }\nkiln-kernel-macro = { opt-level = 0 }\nsyn = { opt-level = 0 }\n";

const BUILD_HELP: &str = "Repair what the compiler reports above";

/// What compiling a crate once took.
#[derive(Copy, Clone)]
struct Cost {
    wall: Duration,
    /// Processor time of rustc, where the system tells it.
    cpu: Option<Duration>,
}

/// Writes, compiles and measures the crates, and prints a table; `quick`, only that of one build.
///
/// # Errors
/// Those of writing files and of running cargo.
pub(crate) fn measure(quick: bool) -> Result<()> {
    let folder = target_folder().join("kiln-build-cost");
    let (ways, runs, built) = if quick {
        (&WAYS[1..2], 1, target_folder())
    } else {
        (&WAYS[..], RUNS, folder.join("target"))
    };
    write_crates(&folder)?;
    println!(
        "{} kernels; median of {runs}, in seconds: wall, and processor time",
        5 * COPIES
    );
    println!(
        "{:<18}{:>18}{:>18}{:>18}",
        "", "functions", "kernels", "ratio"
    );
    for &(name, arguments) in ways {
        for package in CRATES {
            compile(&folder, &built, package, arguments)?;
        }
        let mut costs = [Vec::new(), Vec::new()];
        for _ in 0..runs {
            for (costs, package) in costs.iter_mut().zip(CRATES) {
                costs.push(compile(&folder, &built, package, arguments)?);
            }
        }
        print_row(name, &costs);
    }
    Ok(())
}

fn print_row(name: &str, costs: &[Vec<Cost>; 2]) {
    let seconds = |cost: &dyn Fn(&Cost) -> Option<Duration>, costs: &[Cost]| {
        let taken: Option<Vec<f64>> = costs.iter().map(|c| Some(cost(c)?.as_secs_f64())).collect();
        taken.map_or(f64::NAN, median)
    };
    let [wall, cpu] = [
        costs.each_ref().map(|c| seconds(&|c| Some(c.wall), c)),
        costs.each_ref().map(|c| seconds(&|c| c.cpu, c)),
    ];
    let cell = |wall: f64, cpu: f64| format!("{wall:.2}, {cpu:.2}");
    println!(
        "{name:<18}{:>18}{:>18}{:>18}",
        cell(wall[0], cpu[0]),
        cell(wall[1], cpu[1]),
        cell(wall[1] / wall[0], cpu[1] / cpu[0])
    );
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Compiles one crate, whose dependencies are built, or will be in the folder `built`.
fn compile(folder: &Path, built: &Path, package: &str, arguments: &[&str]) -> Result<Cost> {
    let source = source(folder, package);
    // What cargo compares to know that it has to compile.
    let touched =
        fs::File::open(&source).and_then(|file| file.set_modified(std::time::SystemTime::now()));
    touched.map_err(Error::io("touch", &source))?;
    let mut command = cargo();
    command.current_dir(folder).args(arguments);
    command.args(["--quiet", "--package", package]);
    command.env("CARGO_TARGET_DIR", built);
    // An incremental build would find that nothing has changed.
    command.env("CARGO_INCREMENTAL", "0").stdin(Stdio::null());
    let (started, before) = (Instant::now(), children_time());
    run(&mut command, "compiling the crates", BUILD_HELP)?;
    let wall = started.elapsed();
    let cpu = children_time()
        .zip(before)
        .map(|(after, before)| after - before);
    Ok(Cost { wall, cpu })
}

/// The processor time of all child processes that have ended, theirs included (`proc(5)`: the fields
/// `cutime` and `cstime` of `/proc/self/stat`, in hundredths of a second).
fn children_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in parentheses, may hold spaces.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(13);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(Duration::from_millis(10 * (ticks()? + ticks()?)))
}

fn source(folder: &Path, package: &str) -> PathBuf {
    folder.join(package).join("src/lib.rs")
}

/// Writes a workspace of the crates. It is one of its own, with the profiles that README has for a user's.
fn write_crates(folder: &Path) -> Result<()> {
    let manifest = format!(
        "[workspace]\nmembers = {CRATES:?}\nresolver = \"3\"\n\n[workspace.dependencies]\n\
         kiln = {{ package = \"kiln-jit\", path = {:?} }}\n\n{PROFILE}",
        root()
    );
    write(&folder.join("Cargo.toml"), &manifest)?;
    let lock = root().join("Cargo.lock");
    let versions = fs::read_to_string(&lock).map_err(Error::io("read", lock))?;
    write(&folder.join("Cargo.lock"), &versions)?;
    for package in CRATES {
        let manifest = format!(
            "[package]\nname = \"{package}\"\nedition = \"2024\"\n\n[dependencies]\n\
             kiln.workspace = true\n"
        );
        write(&folder.join(package).join("Cargo.toml"), &manifest)?;
        write(&source(folder, package), &crate_text(package == "kernels"))?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    }
    fs::write(path, text).map_err(Error::io("write", path))
}

/// A crate with each kernel [`COPIES`] times, as kernels or as functions of the host.
fn crate_text(kernels: bool) -> String {
    // The file's own documentation is no module's.
    let lines = KERNELS.lines().filter(|line| !line.starts_with("//!"));
    let body: String = lines.map(|line| format!("{line}\n")).collect();
    let body = match kernels {
        true => body,
        false => for_host(&body),
    };
    let copy = |n: u32| {
        let body = body.replace("const K: u32 = 0;", &format!("const K: u32 = {n};"));
        format!("pub mod copy{n} {{{body}}}\n")
    };
    let copies: String = (0..COPIES).map(copy).collect();
    format!("#![allow(clippy::all, unused)]\n{copies}")
}

/// Kernels as functions of the host: memory of the block is a local variable.
fn for_host(kernels: &str) -> String {
    let mut text = kernels.replace("#[kernel]\n", "");
    for (shared, local) in [
        ("shared!([u32; 256])", "&mut [0u32; 256]"),
        ("shared!([f32; 256])", "&mut [0f32; 256]"),
        ("shared!([[f32; 16]; 16])", "&mut [[0f32; 16]; 16]"),
    ] {
        text = text.replace(shared, local);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_crates_differ_in_what_makes_kernels() {
        let (kernels, functions) = (crate_text(true), crate_text(false));
        let count = |text: &str, what: &str| text.matches(what).count();
        assert_eq!(count(&kernels, "#[kernel]"), 100);
        assert_eq!(count(&kernels, "pub fn "), 100);
        assert_eq!(count(&functions, "pub fn "), 100);
        for of_kernels in ["#[kernel]", "shared!"] {
            assert_eq!(count(&functions, of_kernels), 0, "{of_kernels}");
        }
        for n in 0..COPIES {
            assert!(kernels.contains(&format!("const K: u32 = {n};")));
        }
    }

    #[test]
    fn the_profile_is_that_of_readme_and_of_the_crate_outside() {
        for text in [
            include_str!("../../README.md"),
            include_str!("../../docs/guide/src/hello.md"),
            include_str!("../../tests/outside/Cargo.toml"),
        ] {
            assert!(text.contains(PROFILE), "{text}");
        }
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![5.0, 1.0, 3.0, 9.0, 2.0]), 3.0);
    }

    #[test]
    fn the_time_of_children_is_told() {
        let before = children_time().expect("this is Linux");
        let mut command = Command::new("sh");
        command.args(["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"]);
        run(&mut command, "a loop", "").expect("sh is there");
        assert!(children_time().expect("this is Linux") > before);
    }
}
