//! Processes that end while threads of theirs compile: each ends with the status that it gave.

use std::process::{Command, ExitStatus};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use expect_test::expect;
use kiln::core::build::Kernel;
use kiln::core::cache::CacheFolder;
use kiln::core::hook::Hook;
use kiln::core::ir::Type;
use kiln::core::jit::JitBuilder;
use kiln::prelude::*;

/// What a process of the tests below does.
const TASK: &str = "KILN_TEST_ENDING";

/// The status that they give.
const STATUS: i32 = 7;

/// How many threads compile meanwhile.
const THREADS: u32 = 2;

/// How many kernels were compiled.
static COMPILED: AtomicU32 = AtomicU32::new(0);

/// What threads were told that asked for one too late.
static REFUSED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// This program again, to do a task: how it ended, and what it printed for errors.
fn process(task: &str) -> (ExitStatus, String) {
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "ending::does_its_task", "--nocapture"])
        .env(TASK, task)
        .output()
        .expect("this program runs");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status, errors)
}

/// A process that does a task ends with [`STATUS`]; gives what it printed for errors.
fn ends(task: &str) -> String {
    let (status, errors) = process(task);
    assert_eq!(status.code(), Some(STATUS), "{task}: {status}\n{errors}");
    errors
}

fn builder() -> JitBuilder {
    Jit::builder().device(Device::cpu()).cache(CacheFolder::Off)
}

/// A kernel of so many statements, another one for each number.
fn kernel(number: u32, statements: u32) -> Kernel {
    let kernel = Kernel::build("k", |k| {
        let x = k.slice_mut("x", Type::U32);
        for i in 0..statements {
            x.at(i).set(x.at(i + 1).get() * number + i);
        }
    });
    kernel.expect("a kernel")
}

/// Compiles one kernel after another until there is an error.
fn compile_on(first: u32, statements: u32) {
    let jit = builder().build().expect("a CPU");
    let mut x = jit.zeros::<u32>(1 << 14).expect("memory");
    for number in (first..).step_by(THREADS as usize) {
        match jit.launch(&kernel(number, statements), 1, 1, args!(&mut x)) {
            Ok(()) => COMPILED.fetch_add(1, Ordering::Relaxed),
            Err(error) => return REFUSED.lock().expect("no panic").push(error.to_string()),
        };
    }
}

/// What is done behind the destructors of all that the process has made since: whoever compiles still does so with what is
/// gone. Prints what the threads were told.
extern "C" fn linger() {
    let until = Instant::now() + Duration::from_secs(20);
    while Instant::now() < until {
        let refused = REFUSED.lock().expect("no panic");
        if refused.len() == THREADS as usize {
            eprint!("{}", refused.join("\n\n"));
            return;
        }
        drop(refused);
        thread::sleep(Duration::from_millis(1));
    }
    eprint!("threads still compile, or wait for what does not come");
}

fn exit() -> ! {
    std::process::exit(STATUS)
}

/// What a hook does in the middle of a compile.
fn hook() {
    match task().as_str() {
        "exit in a hook" => exit(),
        _ => drop(thread::spawn(|| exit()).join()),
    }
}

/// Compiles with [`hook`].
fn compile_with_hook() -> ! {
    let hook = Hook::new("ends").finish_optimized_module(|_, _| {
        hook();
        Ok(())
    });
    let jit = builder().hook(hook).build().expect("a CPU");
    let mut x = jit.zeros::<u32>(4).expect("memory");
    let launched = jit.launch(&kernel(0, 1), 1, 1, args!(&mut x));
    assert!(launched.is_err(), "nothing is launched");
    loop {
        thread::park();
    }
}

/// What this process is to do, if it is one of the tests'.
fn task() -> String {
    std::env::var(TASK).unwrap_or_default()
}

/// The body of the processes of the tests below.
#[test]
fn does_its_task() {
    let task = task();
    match task.as_str() {
        "" => return,
        "exit in a hook" | "exit beside a hook" => compile_with_hook(),
        _ => {}
    }
    let early = task.strip_prefix("exit after ");
    if early.is_none() {
        // SAFETY: the function needs nothing but the program.
        assert_eq!(unsafe { libc::atexit(linger) }, 0);
    }
    let is_long = task == "exit in long compiles";
    for first in 0..THREADS {
        thread::spawn(move || compile_on(first, if is_long { 4000 } else { 1 }));
    }
    if let Some(early) = early {
        thread::sleep(Duration::from_millis(early.parse().expect("a number")));
        exit();
    }
    if is_long {
        thread::sleep(Duration::from_millis(600));
        exit();
    }
    while COMPILED.load(Ordering::Relaxed) < 5 {
        thread::sleep(Duration::from_micros(100));
    }
    match task.as_str() {
        "return" => return,
        "exit a child" => exit_child(),
        _ => {}
    }
    exit();
}

/// A child of `fork` has none of the threads that compile, and does not wait for them.
fn exit_child() {
    // SAFETY: the child ends at once.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // What `linger` waits for does not come in a child.
        let mut refused = REFUSED.lock().expect("no panic");
        refused.resize(THREADS as usize, String::new());
        drop(refused);
        std::process::exit(STATUS + 1);
    }
    let mut status = 0;
    // SAFETY: `status` outlives the call; the child is ours.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status >> 8, STATUS + 1);
}

#[test]
fn threads_that_compile_are_told_so() {
    let errors = ends("exit");
    let errors: Vec<&str> = errors.split("\n\n").collect();
    expect![[r#"
        kernel `k` is not compiled, as the process is ending
        help: wait for the threads that compile before `main` returns or `exit` is called"#]]
    .assert_eq(errors[0]);
    assert_eq!(errors, [errors[0]; THREADS as usize]);
}

/// A `main` that returns ends with its own status, which is that of the test program.
#[test]
fn main_returns() {
    let (status, errors) = process("return");
    assert_eq!(status.code(), Some(0), "{status}\n{errors}");
}

/// While libLLVM is opened, and before and after.
#[test]
fn exit_meanwhile() {
    for milliseconds in (0..60).step_by(10) {
        ends(&format!("exit after {milliseconds}"));
    }
}

#[test]
fn compiles_that_take_long_are_stopped() {
    ends("exit in long compiles");
}

#[test]
fn hooks_that_exit() {
    ends("exit in a hook");
    ends("exit beside a hook");
}

#[test]
fn children_that_exit() {
    ends("exit a child");
}
