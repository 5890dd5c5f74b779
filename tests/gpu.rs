//! Runs the suite, the files of IR of kind `run`, and every cell of the library's rows (`suite::cells`) on the first CUDA
//! device: a program without Rust's harness, so that it can be carried to a machine that has a GPU and no Rust.
//!
//! `gpu-tests [FILTER]`, and the other options of Rust's harness. Without a CUDA device it says so and runs
//! nothing; with `--require` it fails instead. With `--math-errors` it tries functions of `f64` at very many points,
//! or of `f32` at all (`gpu/math_errors.rs`). Cases run one after the other, as a context has one record
//! of faults. The last test is a process of its own, `gpu-tests --endless`, which waits for a kernel that
//! does not end.

#[path = "gpu/between.rs"]
mod between;
#[path = "gpu/lent.rs"]
mod lent;
#[path = "gpu/math_errors.rs"]
mod math_errors;

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use kiln::core::hook::HookSet;
use kiln::core::job::OptLevel;
use kiln::core::runtime::cuda::CudaContext;
use kiln::prelude::*;
use kiln_random::gpu::Gpu;
use kiln_random::visit::Device as _;
use libtest_mimic::{Arguments, Failed, Trial};
use suite::cells::{Row, seed};
use suite::files::File;
use suite::options::takes;
use suite::{Case, Outcome};

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().collect();
    if takes(&mut args, ENDLESS) {
        return endless_process();
    }
    let require = takes(&mut args, "--require");
    if takes(&mut args, math_errors::OPTION) {
        return math_errors::run(args, require);
    }
    let arguments = Arguments {
        test_threads: Some(1),
        ..Arguments::from_iter(args)
    };
    let device = match Device::cuda(0) {
        Ok(device) => device,
        Err(error) => {
            println!("no CUDA device, so none of the suite was run: {error}");
            return u8::from(require).into();
        }
    };
    println!("running on {}", device.info().name);
    libtest_mimic::run(&arguments, tests(&device)).exit_code()
}

/// A test for each case and each file, and the kernel that does not end.
fn tests(device: &Device) -> Vec<Trial> {
    let test = |case: Case| {
        let device = device.clone();
        Trial::test(format!("gpu::{}", case.path()), move || {
            // Cases count what they compile, and other cases have kernels of theirs.
            let alone = Jit::builder().device(device).share_code(false);
            (case.run)(&alone.build()?).map_err(Failed::from)
        })
    };
    let mut tests: Vec<Trial> = suite::cases().into_iter().map(test).collect();
    tests.extend(Row::all().into_iter().map(|row| {
        let device = device.clone();
        Trial::test(format!("gpu::cells::{}", row.name()), move || {
            let jit = Jit::builder().device(device).build()?;
            row.check(&jit, seed()).map_err(Failed::from)
        })
    }));
    tests.extend(math_errors::tests(device));
    tests.extend(File::all("run").into_iter().map(|file| {
        let name = format!("gpu::kir::run::{}", file.name());
        Trial::test(name, move || run_file(&file).map_err(Failed::from))
    }));
    let own: [(&str, fn() -> Outcome); 6] = [
        ("lent::primary_context", lent::primary_context),
        ("lent::context_of_others", lent::context_of_others),
        ("lent::functions", lent::functions),
        ("between::orders_copies", between::orders_copies),
        ("between::tells_faults", between::tells_faults),
        ("between::two_devices", between::two_devices),
    ];
    tests.extend(own.map(|(name, run)| {
        Trial::test(format!("gpu::{name}"), move || run().map_err(Failed::from))
    }));
    tests.push(Trial::test("gpu::endless", || {
        endless_kernel_in_a_process().map_err(Failed::from)
    }));
    tests
}

/// Runs a file in a context of its own.
fn run_file(file: &File) -> Outcome {
    let gpu = Gpu::new(CudaContext::new(0)?, OptLevel::O3, HookSet::new());
    file.check_on(&|case| gpu.run(case).map_err(|failed| failed.to_string()))
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

/// The process that waits for a kernel that does not end.
fn endless_process() -> ExitCode {
    match wait_for_an_endless_kernel() {
        Ok(()) => {
            println!("{WAITED}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Every call that waits comes back with an error that names the kernel. Buffers are freed behind it, or kept where the
/// device has no pools.
fn wait_for_an_endless_kernel() -> Outcome {
    let options = JitOptions::default().time_limit(LIMIT);
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
    let used = jit.device().memory_stats().used;
    // What is kept is used still; what is freed behind the kernel is not.
    let as_expected = match used {
        0 => text.contains("No buffer waits to be freed"),
        _ => text.contains("3 buffers of") && text.contains("are kept"),
    };
    match as_expected {
        true => Ok(()),
        false => Err(format!("{used} bytes are used: {text}").into()),
    }
}

/// Runs that in a process of its own, which the kernel would outlive otherwise.
fn endless_kernel_in_a_process() -> Outcome {
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
