//! A process that may have little memory: every outcome is a right result or an error value.
//!
//! The tests run themselves again as another process under `ulimit -v`, in steps from where nothing can
//! be compiled to where all is well.
#![cfg(target_os = "linux")]

use std::process::{Command, Stdio};

use kiln::core::runtime::CpuOptions;
use kiln::core::target::Barriers;
use kiln::prelude::*;

/// Set where a process is the limited one: to what it is to do.
const TASK: &str = "KILN_TEST_MEMORY_TASK";

const MIB: usize = 1 << 20;

#[kernel]
fn double(x: &mut [u32]) {
    let i = global_id().x;
    if i < x.len() {
        x[i] *= 2;
    }
}

#[kernel]
fn reverse(x: &mut [u32]) {
    let t = thread_idx().x;
    let tile = shared!([u32; 64]);
    tile[t] = x[t];
    if t < 64 {
        barrier();
    }
    x[t] = tile[63 - t];
}

fn numbers(n: u32) -> Vec<u32> {
    (0..n).collect()
}

/// A large buffer, read back.
fn buffers(jit: &Jit) -> kiln::Result<()> {
    for size in [16, 300, 1300] {
        let x = jit.zeros::<u8>(size * MIB)?;
        let values = x.to_vec()?;
        assert!(values.len() == size * MIB && values[size * MIB - 1] == 0);
    }
    Ok(())
}

fn compiled(jit: &Jit) -> kiln::Result<()> {
    let mut x = jit.upload(&numbers(1000))?;
    double.launch(jit, (4, 256), &mut x)?;
    let want: Vec<u32> = (0..1000).map(|n| 2 * n).collect();
    assert_eq!(x.to_vec()?, want);
    let mut x = jit.upload(&numbers(64))?;
    reverse.launch(jit, (1, 64), &mut x)?;
    let want: Vec<u32> = (0..64).rev().collect();
    assert_eq!(x.to_vec()?, want);
    Ok(())
}

/// 256 MiB of private memory for the threads of a block.
fn private_memory(jit: &Jit) -> kiln::Result<()> {
    let kernel = Kernel::build("private", |k| {
        let x = k.slice_mut("x", Type::U32);
        let i = k.global_id().x();
        let array = k.local_array(Type::U32, 64 << 10);
        array.at(i * 7u32).set(i);
        x.at(i).set(array.at(i * 7u32).get());
    })?;
    let mut x = jit.zeros::<u32>(1024)?;
    jit.launch(&kernel, 1, 1024, args!(&mut x))?;
    assert_eq!(x.to_vec()?, numbers(1024));
    Ok(())
}

fn arrays(jit: &Jit) -> kiln::Result<()> {
    let arrays = Arrays::new(jit);
    let Ok(x) = arrays.vector(vec![1.5f32; 1000]) else {
        return Ok(());
    };
    match (2.0f32 * &x + &x).eval().and_then(|y| y.to_vec()) {
        Ok(y) => assert_eq!(y, [4.5; 1000]),
        Err(error) => println!("arrays: {error}"),
    }
    Ok(())
}

/// What the limited process does, each part whatever became of the others.
fn run(options: CpuOptions) {
    let jit = Jit::on(Device::cpu_with(options));
    let tasks: [(&str, fn(&Jit) -> kiln::Result<()>); 4] = [
        ("buffers", buffers),
        ("compiled", compiled),
        ("private memory", private_memory),
        ("arrays", arrays),
    ];
    for (name, task) in tasks {
        match task(&jit) {
            Ok(()) => println!("{name}: ok"),
            Err(error) => println!("{name}: {error}"),
        }
    }
}

fn options(task: &str) -> CpuOptions {
    CpuOptions::default()
        .threads(2)
        .interpret(task == "interpreted")
        .barriers((task == "coroutines").then_some(Barriers::Coroutines))
}

/// Runs this program again with so much memory for all it does; what it said.
fn limited(mib: usize, task: &str) -> String {
    let program = std::env::current_exe().expect("this program");
    let script = format!(
        "ulimit -v {} && exec \"$0\" the_limited_process --exact --nocapture --test-threads=1",
        mib << 10
    );
    let output = Command::new("sh")
        .args(["-c", &script])
        .arg(program)
        .env(TASK, task)
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        output.status.success(),
        "{task} in {mib} MiB: {}\n{said}",
        output.status
    );
    said
}

#[test]
fn the_limited_process() {
    if let Ok(task) = std::env::var(TASK) {
        run(options(&task));
    }
}

/// Nothing ends the process, and with enough memory everything is done.
fn in_steps(task: &str, steps: &[usize]) {
    for &mib in steps {
        limited(mib, task);
    }
    let said = limited(6000, task);
    for part in ["buffers", "compiled", "private memory"] {
        assert!(said.contains(&format!("{part}: ok")), "{said}");
    }
}

#[test]
fn compiled_code() {
    let steps = [
        150, 180, 210, 240, 260, 280, 320, 360, 420, 500, 600, 700, 850, 1000, 1500, 2000,
    ];
    in_steps("compiled", &steps);
}

#[test]
fn coroutines() {
    in_steps("coroutines", &[300, 500, 700, 900]);
}

#[test]
fn the_interpreter() {
    in_steps("interpreted", &[150, 300, 400, 500, 700]);
}
