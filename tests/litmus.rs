//! The litmus tests under stress on the first CUDA device: a program without a harness, so that it can
//! be carried to a machine that has a GPU and no Rust. `tests/memory_model.rs` runs them on the CPU.
//!
//! `litmus [--instances N] [FILTER]`: N instances of each test, 10^8 if it is not said. Without a CUDA
//! device it says so and runs nothing; with `--require` it fails instead.

#[path = "litmus/mod.rs"]
mod tests;

use kiln::prelude::*;
use tests::{Load, SCOPES, TESTS, outcomes, weak};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let device = match Device::cuda(0) {
        Ok(device) => device,
        Err(error) => {
            println!("no CUDA device, so no litmus test was run: {error}");
            std::process::exit(i32::from(args.iter().any(|arg| arg == "--require")));
        }
    };
    let number = args.iter().position(|arg| arg == "--instances");
    let instances = number
        .and_then(|at| args.get(at + 1)?.parse().ok())
        .unwrap_or(100_000_000u64);
    let filter = args.iter().enumerate();
    let filter = filter
        .filter(|(at, arg)| !arg.starts_with("--") && number.map(|n| n + 1) != Some(*at))
        .map(|(_, arg)| arg.as_str())
        .next();
    println!(
        "running on {}, {instances} instances each",
        device.info().name
    );
    let jit = Jit::on(device);
    let (mut passed, mut failed) = (0, 0);
    for test in TESTS
        .iter()
        .filter(|t| filter.is_none_or(|f| t.name.contains(f)))
    {
        let mut shown = 0;
        for scope in SCOPES {
            let (mut found, mut all) = (0, 0);
            // Without stress and with it: which of the two shows more depends on the test.
            for stress in [0, 3] {
                let mut load = Load {
                    // About as many as there is room for at once.
                    blocks: 1 << 10,
                    threads: 1 << 8,
                    launches: 0..0,
                    stress,
                };
                // Blocks that make traffic leave instances that do not count.
                let (goal, mut done) = (instances / 2, 0);
                while done < goal {
                    let more = (goal - done).div_ceil(1 << 18) as u32;
                    load.launches = load.launches.end..load.launches.end + more;
                    let seen = outcomes(&jit, test, scope, &load);
                    let seen = seen.unwrap_or_else(|error| panic!("{}: {error}", test.name));
                    let (weak, of) = weak(test, &seen);
                    assert!(of > 0, "{}: no instance was played", test.name);
                    found += weak;
                    done += of;
                }
                all += done;
            }
            let verdict = match (found, test.allowed) {
                (0, _) | (_, true) => "ok",
                _ => "FAILED: the model forbids it",
            };
            let rule = if test.allowed { "allowed" } else { "forbidden" };
            println!(
                "{}, {scope:?}: {found} of {all} ({rule}) ... {verdict}",
                test.name
            );
            match verdict {
                "ok" => passed += 1,
                _ => failed += 1,
            }
            shown += found;
        }
        if test.shows && shown == 0 {
            println!(
                "{}: FAILED: it never showed, so this run has no power",
                test.name
            );
            failed += 1;
        }
    }
    println!("{passed} passed, {failed} failed");
    std::process::exit(i32::from(failed > 0));
}
