//! What launches of kernels that are ready cost the host, in instructions from the call to the driver's: a guard against
//! what creeps in, which no clock of a machine that others use would see.
//!
//! The counts are of this program's profile, in which Kiln is compiled with `opt-level = 1` and with overflow checks, and
//! the bounds a quarter above what was seen, as units of code are cut in one way here and in another there. A look-up by
//! content, a lock or an allocation is more than that. Counts of an optimized build are in `benches/RESULTS.md`
//! (`cargo bench --bench launch -- --instructions`).

use std::process::Command;

use kiln::core::args::Arg;
use kiln::prelude::*;

use crate::fake::Fake;
use crate::instructions::{Outcome, mark, parts};

/// Has a process of its own count: each thread that is stepped through takes a signal for each instruction.
const COUNTS: &str = "KILN_TEST_COUNTS";

#[kernel]
fn nothing() {}

macro_rules! sixteen {
    ($then:ident $($first:tt)*) => {
        $then! { $($first)* a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15 }
    };
}

macro_rules! kernels {
    ($($arg:ident)*) => {
        #[kernel]
        fn slices($($arg: &[f32]),*) {
            $(let _ = $arg;)*
        }

        #[kernel]
        fn written($($arg: &mut [f32]),*) {
            $(let _ = $arg;)*
        }
    };
}
sixteen!(kernels);

macro_rules! typed {
    ($kernel:ident $jit:ident $value:expr; $($arg:ident)*) => {
        $kernel.launch($jit, (1, 32), $({
            let _ = stringify!($arg);
            $value
        }),*)
    };
}

macro_rules! list {
    ($value:expr; $($arg:ident)*) => {
        args!($({
            let _ = stringify!($arg);
            $value
        }),*)
    };
}

/// A launch, and at most how many instructions it takes there.
struct Counted<'a> {
    name: &'static str,
    most: u64,
    launch: Box<dyn FnMut() -> kiln::Result<()> + 'a>,
}

fn marked(args: &[Arg<'_>], launch: impl FnOnce() -> kiln::Result<()>) -> kiln::Result<()> {
    mark(args.as_ptr().cast());
    let result = launch();
    mark((&raw const result).cast());
    result
}

impl<'a> Counted<'a> {
    fn new(
        name: &'static str,
        most: u64,
        launch: impl FnMut() -> kiln::Result<()> + 'a,
    ) -> Counted<'a> {
        Counted {
            name,
            most,
            launch: Box::new(launch),
        }
    }
}

/// Launches by kernels' own methods, each with its bound.
fn typed<'a>(
    jit: &'a Jit,
    beside: &'a Jit,
    x: &'a Buffer<f32>,
    y: &'a mut [Buffer<f32>; 16],
) -> [Counted<'a>; 4] {
    [
        Counted::new("typed, nothing", 620, move || {
            marked(&[], || nothing.launch(jit, (1, 32)))
        }),
        Counted::new("typed, 16 slices", 3800, move || {
            marked(&[], || sixteen!(typed slices jit x;))
        }),
        Counted::new("typed, 16 slices, another stream", 3900, move || {
            marked(&[], || sixteen!(typed slices beside x;))
        }),
        Counted::new("typed, 16 slices that are written", 2050, move || {
            let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = y.each_mut();
            marked(&[], || {
                written.launch(jit, (1, 32), a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
            })
        }),
    ]
}

/// Launches of lists, each with its bound.
fn lists<'a>(jit: &'a Jit, x: &'a Buffer<f32>) -> kiln::Result<[Counted<'a>; 2]> {
    let ready = jit.compile(&slices, sixteen!(list x;))?;
    Ok([
        Counted::new("prepared, 16 slices", 1240, move || {
            let args = sixteen!(list x;);
            marked(args, || ready.launch(1, 32, args))
        }),
        Counted::new("args!, 16 slices", 1480, move || {
            let args = sixteen!(list x;);
            marked(args, || jit.launch(&slices, 1, 32, args))
        }),
    ])
}

/// Counts all, and says so line by line.
fn count_all() -> Outcome<()> {
    let fake = Fake::new();
    let jit = Jit::on(Device::cuda_of(fake.open()?, 0)?);
    let beside = jit.stream()?;
    let x = jit.zeros::<f32>(64)?;
    let zeros = || jit.zeros::<f32>(64).expect("memory");
    let mut y = std::array::from_fn(|_| zeros());
    let typed = typed(&jit, &beside, &x, &mut y);
    let lists = lists(&jit, &x)?;
    let mut above = Vec::new();
    for Counted {
        name,
        most,
        mut launch,
    } in typed.into_iter().chain(lists)
    {
        // The first compiles, and those that follow leave what later ones find at once.
        for _ in 0..4 {
            launch()?;
        }
        let there = parts(&mut || Ok(launch()?))?.there;
        println!("{name}: {there} of {most}");
        if there > most {
            above.push(name);
        }
    }
    match above[..] {
        [] => Ok(()),
        _ => Err(format!("more than the bound: {above:?}").into()),
    }
}

#[test]
fn counts_in_a_process_of_its_own() {
    if std::env::var_os(COUNTS).is_some() {
        count_all().unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn launches_of_what_is_ready_stay_short() {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args(["--exact", "counted::counts_in_a_process_of_its_own"]);
    command.arg("--nocapture").env(COUNTS, "1");
    let output = command.output().expect("this program runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    println!("{text}");
    assert!(output.status.success(), "{text}\n{errors}");
    assert_eq!(text.matches(" of ").count(), 6, "{text}\n{errors}");
}
