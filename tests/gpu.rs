//! Runs the suite on the first CUDA device: a program without a harness, so that it can be carried
//! to a machine that has a GPU and no Rust.
//!
//! `gpu-tests [FILTER]`. Without a CUDA device it says so and runs nothing; with `--require` it
//! fails instead. At the end a process of its own, `gpu-tests --endless`, waits for a kernel that does
//! not end.

mod suite;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kiln::prelude::*;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|a| a == ENDLESS) {
        let outcome = wait_for_an_endless_kernel();
        println!(
            "{}",
            outcome
                .as_ref()
                .map_or_else(ToString::to_string, |()| WAITED.to_owned())
        );
        std::process::exit(i32::from(outcome.is_err()));
    }
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
    if filter.is_empty() || ENDLESS.contains(&filter) {
        match endless_kernel_in_a_process() {
            Ok(()) => {
                println!("test {ENDLESS} ... ok");
                passed += 1;
            }
            Err(error) => {
                println!("test {ENDLESS} ... FAILED: {error}");
                failed.push(ENDLESS);
            }
        }
    }
    println!("{passed} passed, {} failed", failed.len());
    std::process::exit(i32::from(!failed.is_empty()));
}

/// The argument of the process that waits for a kernel that does not end.
const ENDLESS: &str = "--endless";
/// What that process says if all went as it should.
const WAITED: &str = "came back";
/// How long it waits.
const LIMIT: Duration = Duration::from_millis(300);
/// How long the process may take in all: to start, to come back from each call, to end.
const WHOLE: Duration = Duration::from_secs(60);

#[kernel]
fn endless(flag: &[u32], out: &mut [u32]) {
    while atomic_load(&flag[0], Ordering::Relaxed, Scope::Device) == 0 {}
    out[0] = 1;
}

/// Every call that waits comes back with an error that names the kernel, and buffers are kept.
fn wait_for_an_endless_kernel() -> suite::Outcome {
    let options = JitOptions {
        time_limit: Some(LIMIT),
        ..JitOptions::default()
    };
    let jit = Jit::with(Device::cuda(0)?, kiln::hooks::standard(), options);
    let (flag, mut out, other) = (
        jit.zeros::<u32>(1)?,
        jit.zeros::<u32>(1)?,
        jit.upload(&[1u32; 1000])?,
    );
    endless.launch(&jit, (1, 1), &flag, &mut out)?;
    println!("launched");
    let waits: [&dyn Fn() -> kiln::Result<()>; 3] =
        [&|| jit.synchronize(), &|| out.to_vec().map(drop), &|| {
            other.to_vec().map(drop)
        }];
    for wait in waits {
        let error = wait()
            .err()
            .ok_or("a call came back as if the kernel had ended")?;
        let text = error.to_string();
        println!("waited: {text}");
        if !text.contains("kernel `endless`") || !text.contains("the time limit") {
            return Err(text.into());
        }
    }
    drop((flag, out, other));
    let text = jit
        .synchronize()
        .err()
        .ok_or("the kernel ended")?
        .to_string();
    match text.contains("3 buffers of") && text.contains("are kept") {
        true => Ok(()),
        false => Err(text.into()),
    }
}

/// Runs that in a process of its own, which the kernel would outlive otherwise.
fn endless_kernel_in_a_process() -> suite::Outcome {
    let mut child = Command::new(std::env::current_exe()?)
        .arg(ENDLESS)
        .stdout(Stdio::piped())
        .spawn()?;
    let started = Instant::now();
    while child.try_wait()?.is_none() {
        if started.elapsed() > WHOLE {
            child.kill()?;
            let output = child.wait_with_output()?;
            let text = String::from_utf8_lossy(&output.stdout);
            return Err(format!("the process did not come to its end: {text}").into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    match output.status.success() && text.contains(WAITED) {
        true => Ok(()),
        false => Err(format!("{}: {text}", output.status).into()),
    }
}
