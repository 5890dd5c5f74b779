//! Runs the suite on the first CUDA device: a program without a harness, so that it can be carried
//! to a machine that has a GPU and no Rust.
//!
//! `gpu-tests [FILTER]`. Without a CUDA device it says so and runs nothing; with `--require` it
//! fails instead.

mod suite;

use std::panic::{AssertUnwindSafe, catch_unwind};

use kiln::prelude::*;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let require = args.iter().any(|a| a == "--require");
    let filter = args
        .iter()
        .find(|a| !a.starts_with("--"))
        .cloned()
        .unwrap_or_default();
    let device = match Device::cuda(0) {
        Ok(device) => device,
        Err(error) => {
            println!("no CUDA device, so none of the suite was run: {error}");
            std::process::exit(i32::from(require));
        }
    };
    println!("running on {}", device.info().name);
    let (mut passed, mut failed) = (0, Vec::new());
    for (name, case) in suite::cases()
        .into_iter()
        .filter(|(name, _)| name.contains(&filter))
    {
        let jit = Jit::on(device.clone());
        let outcome = catch_unwind(AssertUnwindSafe(|| case(&jit)));
        let error = match outcome {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("panicked".to_owned()),
        };
        match error {
            None => {
                println!("test {name} ... ok");
                passed += 1;
            }
            Some(error) => {
                println!("test {name} ... FAILED: {error}");
                failed.push(name);
            }
        }
    }
    println!("{passed} passed, {} failed", failed.len());
    std::process::exit(i32::from(!failed.is_empty()));
}
