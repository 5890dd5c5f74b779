//! A device begun anew after a real fault: what `Jit::reset` gives works, or the driver keeps the error and it says so; who
//! listens is told once, and what was made before is lost. A program of its own, as the fault ends the context, without a harness, so that it can be carried to
//! a machine that has a GPU and no Rust.
//!
//! `reset`, and the options of Rust's harness: without a CUDA device it says so and runs nothing; with `--require` it
//! fails instead.

use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use kiln::core::cache::CacheFolder;
use kiln::prelude::*;
use libtest_mimic::{Arguments, Failed, Trial};
use suite::Outcome;
use suite::options::takes;

/// How often the device is lost and begun anew.
const ROUNDS: u32 = 3;

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().collect();
    let require = takes(&mut args, "--require");
    let device = match Device::cuda(0) {
        Ok(device) => device,
        Err(error) => {
            println!("no CUDA device, so none was reset: {error}");
            return u8::from(require).into();
        }
    };
    println!("running on {}", device.info().name);
    let test = Trial::test("reset", || reset_after_faults(device).map_err(Failed::from));
    libtest_mimic::run(&Arguments::from_iter(args), vec![test]).exit_code()
}

#[kernel]
fn double(x: &mut [u32]) {
    let i = global_id().x;
    if i < x.len() {
        x[i] *= 2;
    }
}

/// Writes far beyond the end of a buffer, which no address of the process is near.
#[kernel(
    // SAFETY: the promise is broken on purpose: nothing is mapped there, and the fault ends the context, not the process.
    unsafe(unchecked)
)]
fn astray(x: &mut [u32], far: usize) {
    x[far] = 1;
}

fn reset_after_faults(device: Device) -> Outcome {
    let told = Arc::new(Mutex::new(Vec::<String>::new()));
    let listens = told.clone();
    let mut jit = Jit::builder()
        .device(device)
        .cache(CacheFolder::Off)
        .on_fault(move |fault| {
            if let Ok(mut told) = listens.lock() {
                told.push(fault.to_string());
            }
        })
        .build()?;
    works(&jit)?;
    for round in 1..=ROUNDS {
        let mut before = jit.upload(&[1u32; 4])?;
        let text = lose(&jit, &mut before)?;
        println!("lost: {text}");
        let heard = std::mem::take(&mut *told.lock().map_err(|_| "a listener has panicked")?);
        if !matches!(&heard[..], [heard] if *heard == text) {
            return Err(format!("round {round}: who listens was told {heard:?}").into());
        }
        // SAFETY: this program has one thread, and nothing else in it uses the device.
        let again = match unsafe { jit.reset() } {
            Ok(again) => again,
            Err(error) => return stays_lost(&jit, &before, &error.to_string()),
        };
        println!("reset: {}", again.device().info().id);
        works(&again)?;
        let lost = before.to_vec().err().ok_or("a lost buffer is read")?;
        if !lost.to_string().contains("was reset since this was made") {
            return Err(lost.into());
        }
        if jit.synchronize().is_ok() {
            return Err("the lost device is waited for as if it worked".into());
        }
        drop((before, jit));
        works(&again)?;
        jit = again;
    }
    Ok(())
}

/// Where the driver keeps the error, which is seen on an H100 with driver 580: that is told, and nothing else works.
fn stays_lost(jit: &Jit, before: &Buffer<u32>, text: &str) -> Outcome {
    println!("not reset: {text}");
    if !text.contains("the driver keeps the error of CUDA device 0") {
        return Err(text.into());
    }
    match before.to_vec().is_err() && jit.synchronize().is_err() && jit.zeros::<u32>(4).is_err() {
        true => Ok(()),
        false => Err("the lost device is used as if it worked".into()),
    }
}

/// What the error says by which the device is lost.
fn lose(jit: &Jit, x: &mut Buffer<u32>) -> Result<String, Box<dyn std::error::Error>> {
    astray.launch(jit, (1, 1), &mut *x, 0x7fff_ffff)?;
    let error = jit
        .synchronize()
        .err()
        .ok_or("a kernel wrote where nothing is, and all is well")?
        .to_string();
    match error.contains("kernel `astray`") && error.contains("Jit::reset") {
        true => Ok(error),
        false => Err(error.into()),
    }
}

/// Kernels, copies and a stream do what they should.
fn works(jit: &Jit) -> Outcome {
    let mut x = jit.upload(&[1u32, 2, 3])?;
    double.launch(jit, (1, 32), &mut x)?;
    let stream = jit.stream()?;
    double.launch(&stream, (1, 32), &mut x)?;
    match x.to_vec()?[..] == [4, 8, 12] {
        true => Ok(jit.synchronize()?),
        false => Err("the device does not compute".into()),
    }
}
