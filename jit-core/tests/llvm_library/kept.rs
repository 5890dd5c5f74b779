//! Kernels of the CPU that are kept on disk, in one process and in several.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use kiln::core::ahead::{self, Machine};
use kiln::core::build::DeviceFn;
use kiln::core::cache::{CacheFolder, CacheStats};
use kiln::core::compile::NoObserver;
use kiln::core::hook::Hook;
use kiln::core::ir::{FastMath, IntrinsicDef, Meaning, Scalar, Type, TypePattern, Unroll};
use kiln::core::jit::JitBuilder;
use kiln::core::job::{CompileOptions, OptLevel};
use kiln::core::target::{Barriers, CpuFeatures, CpuTarget, Target};
use kiln::prelude::*;

#[kernel]
fn scale(x: &mut [f32], by: f32) {
    let i = global_id().x;
    if i < x.len() {
        x[i] *= by;
    }
}

/// Rows that mean functions of the IR, which have rows of their own.
#[kernel]
fn waves(x: &mut [f32]) {
    let i = global_id().x;
    x[i] = x[i].sin() + x[i].exp() + (x[i].to_bits().count_ones() as f32) + x[i] % 0.75;
}

#[kernel]
fn reverse(x: &mut [u32]) {
    let (i, tile) = (thread_idx().x, shared!([u32; 64]));
    tile[i] = x[i];
    barrier();
    x[i] = tile[63 - i];
}

/// A place for a folder, which goes with this.
struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        Place(std::env::temp_dir().join(format!("kiln-kept-{}-{n}", std::process::id())))
    }

    fn builder(&self) -> JitBuilder {
        let cache = CacheFolder::At(self.0.clone());
        Jit::builder().device(Device::cpu()).cache(cache)
    }

    fn jit(&self) -> Jit {
        self.builder().build().expect("a CPU")
    }

    /// The entries of kernels' code, the largest files.
    fn entries(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(&self.0).expect("it is there");
        let mut files: Vec<_> = files
            .map(|file| file.expect("it is there").path())
            .collect();
        files.retain(|path| path.extension().is_some_and(|ending| ending == "kiln"));
        files.sort_by_key(|path| fs::metadata(path).expect("it is there").len());
        files
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn scaled(jit: &Jit) -> kiln::Result<Vec<f32>> {
    let mut x = jit.upload(&[1.0f32, 2.0, 3.0])?;
    jit.launch(&scale, 1, 32, args!(&mut x, 2.0f32))?;
    x.to_vec()
}

/// What all kernels give, as bits.
fn results(jit: &Jit) -> kiln::Result<Vec<u32>> {
    let values: Vec<f32> = (0..64).map(|i| i as f32 * 0.37 - 5.0).collect();
    let mut x = jit.upload(&values)?;
    jit.launch(&waves, 2, 32, args!(&mut x))?;
    let mut y = jit.upload(&(0..64).collect::<Vec<u32>>())?;
    jit.launch(&reverse, 1, 64, args!(&mut y))?;
    let bits = x.to_vec()?.into_iter().chain(scaled(jit)?);
    Ok(bits.map(f32::to_bits).chain(y.to_vec()?).collect())
}

/// Compiles, hits on disk, misses there, and what was refused.
fn of(stats: CacheStats) -> [u64; 4] {
    [
        stats.compiles,
        stats.disk_hits,
        stats.disk_misses,
        stats.disk_refused,
    ]
}

#[test]
fn a_second_jit_compiles_nothing() {
    let place = Place::new();
    let first = place.jit();
    let expected = results(&first).expect("they run");
    assert_eq!(
        of(first.cache_stats()),
        [3, 0, 3, 0],
        "{:?}",
        first.disk_cache()
    );
    assert_eq!(
        first.cache_stats().disk_writes,
        6,
        "code, and what all shapes have"
    );
    let second = place.jit();
    assert_eq!(results(&second).expect("they run"), expected);
    assert_eq!(
        of(second.cache_stats()),
        [0, 3, 0, 0],
        "{:?}",
        second.disk_cache()
    );
    assert_eq!(second.cache_stats().legalizations, 0);
    // Another shape of block is made of the kernel itself.
    let mut x = second.upload(&[1.0f32; 64]).expect("memory");
    second
        .launch(&scale, 1, 64, args!(&mut x, 3.0f32))
        .expect("it runs");
    assert_eq!(x.to_vec().expect("it ran"), [3.0; 64]);
    assert_eq!(of(second.cache_stats()), [1, 3, 1, 0]);
    // The interpreter agrees.
    let checked = Jit::builder().device(Device::cpu()).checks(Checks::all());
    let checked = checked.build().expect("a CPU");
    assert_eq!(results(&checked).expect("they run"), expected);
}

#[test]
fn a_fault_of_code_from_disk_names_its_line() {
    let place = Place::new();
    let fault = |jit: &Jit| {
        let mut y = jit.upload(&[0u32; 8]).expect("memory");
        let launched = jit.launch(&reverse, 1, 64, args!(&mut y));
        let error = launched.and_then(|()| jit.synchronize());
        error.expect_err("8 elements").to_string()
    };
    let (first, second) = (fault(&place.jit()), fault(&place.jit()));
    assert_eq!(first, second);
    assert!(first.contains("kept.rs"), "{first}");
}

#[test]
fn what_was_changed_is_a_miss() {
    let place = Place::new();
    let expected = results(&place.jit()).expect("they run");
    let entries = place.entries();
    assert_eq!(entries.len(), 6);
    let contents: Vec<_> = entries
        .iter()
        .map(|path| fs::read(path).expect("ours"))
        .collect();
    type Damage<'a> = &'a dyn Fn(&Path, usize);
    let bit: Damage<'_> = &|path, i| {
        let mut bytes = contents[i].clone();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 4;
        fs::write(path, bytes).expect("ours");
    };
    let cut: Damage<'_> = &|path, i| fs::write(path, &contents[i][..100]).expect("ours");
    let swapped: Damage<'_> = &|path, i| fs::write(path, &contents[(i + 1) % 6]).expect("ours");
    let garbage: Damage<'_> = &|path, _| fs::write(path, [7; 5000]).expect("ours");
    let empty: Damage<'_> = &|path, _| fs::write(path, []).expect("ours");
    for damage in [bit, cut, swapped, garbage, empty] {
        entries
            .iter()
            .enumerate()
            .for_each(|(i, path)| damage(path, i));
        let jit = place.jit();
        assert_eq!(results(&jit).expect("they run"), expected);
        let [compiles, hits, misses, refused] = of(jit.cache_stats());
        assert_eq!([compiles, hits, misses], [3, 0, 3]);
        // Looked at once more behind the lock.
        assert_eq!(refused, 9);
        let note = jit.disk_cache().note.expect("it says what");
        assert!(note.contains("not as it was written"), "{note}");
        // All of it is written anew.
        let jit = place.jit();
        assert_eq!(results(&jit).expect("they run"), expected);
        assert_eq!(of(jit.cache_stats()), [0, 3, 0, 0]);
    }
}

#[test]
fn a_folder_that_cannot_be_used_fails_nothing() {
    let file = Place::new();
    fs::write(&file.0, "no folder").expect("room");
    let jit = file.jit();
    assert_eq!(scaled(&jit).expect("it runs"), [2.0, 4.0, 6.0]);
    assert!(jit.disk_cache().folder.is_none());
    assert!(
        jit.disk_cache()
            .note
            .is_some_and(|note| note.contains("cannot be made"))
    );
    let _ = fs::remove_file(&file.0);
    // One that nobody can write to, whoever runs the test.
    let cache = CacheFolder::At(PathBuf::from("/proc/self/attr"));
    if cfg!(target_os = "linux") {
        let jit = Jit::builder().device(Device::cpu()).cache(cache);
        let jit = jit.build().expect("a CPU");
        assert_eq!(scaled(&jit).expect("it runs"), [2.0, 4.0, 6.0]);
        assert!(
            jit.disk_cache()
                .note
                .is_some_and(|note| note.contains("cannot be written"))
        );
        assert_eq!(jit.cache_stats().disk_writes, 0);
    }
}

#[test]
fn what_is_of_this_process_is_not_kept() {
    let place = Place::new();
    let hook = Hook::new("own").rewrite_ir(|_, _| Ok(()));
    let own = place.builder().hook(hook).build().expect("a CPU");
    let observed = place
        .builder()
        .observer(Arc::new(NoObserver))
        .build()
        .expect("a CPU");
    let checked = place
        .builder()
        .checks(Checks::all())
        .build()
        .expect("a CPU");
    for (jit, why) in [
        (own, "`own`"),
        (observed, "observer"),
        (checked, "interpreter"),
    ] {
        assert_eq!(scaled(&jit).expect("it runs"), [2.0, 4.0, 6.0]);
        let report = jit.disk_cache();
        assert_eq!(report.folder, None);
        assert!(report.note.is_some_and(|note| note.contains(why)), "{why}");
        assert_eq!(of(jit.cache_stats()), [1, 0, 0, 0]);
    }
    assert!(!place.0.exists());
    let kept = Hook::new("own").rewrite_ir(|_, _| Ok(())).may_be_kept();
    for version in [1, 1, 2] {
        let hook = Hook::new("own")
            .rewrite_ir(|_, _| Ok(()))
            .may_be_kept()
            .version(version);
        let jit = place.builder().hook(hook).build().expect("a CPU");
        assert_eq!(scaled(&jit).expect("it runs"), [2.0, 4.0, 6.0]);
    }
    assert_eq!(place.entries().len(), 4, "of two versions");
    drop(kept);
}

#[test]
fn each_option_is_another_key() {
    let place = Place::new();
    type Change = fn(CompileOptions) -> CompileOptions;
    let changes: [Change; 10] = [
        |options| options,
        |options| options.opt_level(OptLevel::O1),
        |options| options.contract(false),
        |options| options.line_info(true),
        |options| options.gather_registers(false),
        |options| options.fast(FastMath::REASSOCIATE),
        |options| options.unroll(Unroll::Never),
        |options| options.inline_threshold(7),
        |options| options.max_registers(64),
        |options| options.clamped(),
    ];
    for change in changes {
        let compile = change(CompileOptions::default());
        let jit = place.builder().compile(compile).build().expect("a CPU");
        assert_eq!(scaled(&jit).expect("it runs"), [2.0, 4.0, 6.0]);
        assert_eq!(of(jit.cache_stats()), [1, 0, 1, 0]);
    }
    // All fields are in the text that is part of the key.
    let fields = format!("{:?}", CompileOptions::default())
        .matches(": ")
        .count();
    assert_eq!(fields, changes.len() - 1, "an option has no change here");
    for hooks in [
        kiln::hooks::standard().without("by-value"),
        kiln::hooks::standard(),
    ] {
        let len = hooks.iter().count();
        let jit = place.builder().hooks(hooks).build().expect("a CPU");
        assert_eq!(scaled(&jit).expect("it runs"), [2.0, 4.0, 6.0]);
        assert_eq!(of(jit.cache_stats())[0], u64::from(len == 3));
    }
}

#[test]
fn each_part_of_what_is_asked_for_is_another_key() {
    let place = Place::new();
    let add = |name: &str, more: u32| {
        let kernel = Kernel::build(name, |k| {
            let t = k.type_param("T").num();
            let (x, n, c) = (
                k.slice_mut("x", t),
                k.param("n", Type::U32),
                k.const_param("C", Type::U32),
            );
            k.if_(n.gt(c), || x.at(0).set(more));
        });
        kernel.expect("a kernel").with_const("C", 1)
    };
    let host = CpuTarget::host;
    let lanes = CpuTarget {
        lanes: Some(8),
        ..host()
    };
    let barriers = CpuTarget {
        barriers: Some(Barriers::Coroutines),
        ..host()
    };
    let less = CpuTarget {
        features: CpuFeatures::default(),
        ..host()
    };
    let (plain, facts) = (
        || place.builder(),
        || place.builder().specialize_facts(true),
    );
    let of_target = |target: CpuTarget| place.builder().target(Target::Cpu(target));
    let mut keys = 0;
    let mut one = |builder: JitBuilder, kernel: Kernel, block: u32, n: u32, f64s: bool| {
        for expected in [[1, 0], [0, 1]] {
            let jit = builder.clone().build().expect("a CPU");
            let launched = match f64s {
                true => jit.launch(
                    &kernel,
                    1,
                    block,
                    args!(&mut jit.zeros::<f64>(4).expect("memory"), n),
                ),
                false => jit.launch(
                    &kernel,
                    1,
                    block,
                    args!(&mut jit.zeros::<f32>(4).expect("memory"), n),
                ),
            };
            launched.expect("it runs");
            assert_eq!(of(jit.cache_stats())[..2], expected, "after {keys} keys");
        }
        keys += 1;
    };
    one(plain(), add("k", 1), 32, 5, false);
    one(plain(), add("other", 1), 32, 5, false);
    one(plain(), add("k", 2), 32, 5, false);
    one(plain(), add("k", 1).with_const("C", 2), 32, 5, false);
    one(plain(), add("k", 1), 64, 5, false);
    one(plain(), add("k", 1), 32, 5, true);
    // Facts of the number are compiled in: it is 1, or a multiple of 16.
    one(facts(), add("k", 1), 32, 1, false);
    one(facts(), add("k", 1), 32, 16, false);
    one(of_target(lanes), add("k", 1), 32, 5, false);
    one(of_target(barriers), add("k", 1), 32, 5, false);
    one(of_target(less), add("k", 1), 32, 5, false);
    assert_eq!(keys, 11);
}

/// What the row below adds.
static ADDS: AtomicU32 = AtomicU32::new(1);

/// A row whose function is not what it was, as if the program had been built again: name, version and place are.
static ADDED: IntrinsicDef = IntrinsicDef::new(
    "kept.added",
    &[TypePattern::Exact(Scalar::U32)],
    TypePattern::SameAs(0),
    Meaning::Body(|scalar| {
        let function = DeviceFn::build("added", |k| {
            let x = k.param("x", Type::U32);
            k.return_value(x + ADDS.load(Ordering::Relaxed));
        });
        (scalar == Scalar::U32).then(|| function.expect("a function").module())
    }),
);

#[test]
fn a_function_of_a_row_that_changes_is_another_key() {
    let place = Place::new();
    for (adds, expected) in [(1, [1, 0]), (1, [0, 1]), (2, [1, 0]), (1, [0, 1])] {
        ADDS.store(adds, Ordering::Relaxed);
        let kernel = Kernel::build("adds", |k| {
            let x = k.slice_mut("x", Type::U32);
            let sum = k.intrinsic(&ADDED, &[x.at(0).get()]);
            x.at(0).set(sum);
        });
        let jit = place.jit();
        let mut x = jit.upload(&[10u32]).expect("memory");
        jit.launch(&kernel.expect("a kernel"), 1, 1, args!(&mut x))
            .expect("it runs");
        assert_eq!(x.to_vec().expect("it ran"), [10 + adds]);
        assert_eq!(of(jit.cache_stats())[..2], expected);
    }
}

// --- Processes --------------------------------------------------------------------------------

/// The variables that say what a process of these tests does, and where.
const TASK: &str = "KILN_TEST_TASK";
const FOLDER: &str = "KILN_TEST_FOLDER";
const LEVEL: &str = "KILN_TEST_LEVEL";

/// Whether the hook of `verifies` says what it did.
static LIES: AtomicBool = AtomicBool::new(false);

/// This program again, to do a task.
fn process(task: &str, place: &Place) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--exact", "kept::does_its_task", "--nocapture"])
        .env(TASK, task)
        .env(FOLDER, &place.0);
    command
}

/// What a process has printed between these.
const SAID: [&str; 2] = ["<<<", ">>>"];

fn say(text: impl std::fmt::Display) {
    println!("{}{text}{}", SAID[0], SAID[1]);
}

/// What a process has said.
fn printed(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    let behind = text.split_once(SAID[0]).map(|(_, behind)| behind);
    let said = behind.and_then(|behind| behind.split_once(SAID[1]));
    let errors = String::from_utf8_lossy(&output.stderr);
    let said = said.unwrap_or_else(|| panic!("{text}\n{errors}"));
    said.0.to_owned()
}

/// The body of the processes of the tests below.
#[test]
fn does_its_task() {
    let (Ok(task), Some(folder)) = (std::env::var(TASK), std::env::var_os(FOLDER)) else {
        return;
    };
    let place = std::mem::ManuallyDrop::new(Place(folder.into()));
    match task.as_str() {
        "run" => {
            let jit = place.jit();
            let text = match results(&jit) {
                Ok(results) => format!("{:?} {results:?}", of(jit.cache_stats())),
                Err(error) => error.to_string(),
            };
            say(text);
        }
        "shipped" => {
            let features = std::env::var(LEVEL)
                .ok()
                .and_then(|level| level.parse().ok());
            let features = features.and_then(CpuFeatures::x86_64_level);
            let host = CpuTarget::host();
            let target = Target::Cpu(CpuTarget {
                features: features.unwrap_or(host.features.clone()),
                ..host
            });
            let jit = Jit::builder().device(Device::cpu()).target(target);
            let jit = jit.cache(CacheFolder::Off).shipped(&place.0).build();
            let jit = jit.expect("a CPU");
            let text = match results(&jit) {
                Ok(results) => {
                    let stats = jit.cache_stats();
                    format!("[{}, {}] {results:?}", stats.compiles, stats.shipped_hits)
                }
                Err(error) => error.to_string(),
            };
            say(text);
        }
        "race" => {
            while !place.0.join("go").exists() {
                std::thread::yield_now();
            }
            let jit = place.jit();
            let right = scaled(&jit).is_ok_and(|x| x == [2.0, 4.0, 6.0]);
            let [compiles, hits, ..] = of(jit.cache_stats());
            say(format_args!("{right} {compiles} {hits}"));
        }
        "user" => {
            let jit = Jit::on(Device::cpu());
            say(format_args!("{:?}", jit.disk_cache()));
        }
        "verify" => {
            let lies = || {
                let hook = Hook::new("lies")
                    .may_be_kept()
                    .finish_optimized_module(|_, module| {
                        if LIES.load(Ordering::Relaxed) {
                            let context = module.get_context();
                            let value = context.i32_type().const_int(7, false);
                            module
                                .add_global(value.get_type(), None, "more")
                                .set_initializer(&value);
                        }
                        Ok(())
                    });
                place.builder().hook(hook).build().expect("a CPU")
            };
            let mut said = Vec::new();
            for lie in [false, false, true] {
                LIES.store(lie, Ordering::Relaxed);
                let jit = lies();
                let outcome = scaled(&jit).map(|_| of(jit.cache_stats()));
                said.push(format!("{outcome:?}"));
            }
            say(said.join("\n"));
        }
        other => panic!("{other}"),
    }
}

/// Asks for all kernels that [`results`] launches.
fn keep_all(jit: &Jit) -> kiln::Result<()> {
    let (mut x, mut y) = (jit.zeros::<f32>(1)?, jit.zeros::<u32>(1)?);
    jit.keep(&waves, 32, args!(&mut x))?;
    jit.keep(&reverse, 64, args!(&mut y))?;
    jit.keep(&scale, 32, args!(&mut x, 0.0f32))
}

#[test]
fn a_process_with_shipped_code_needs_no_libllvm() {
    let place = Place::new();
    let level = |level| CpuFeatures::x86_64_level(level);
    let is_v3 = level(3).is_some_and(|level| CpuFeatures::host().covers(&level));
    let run = |level: &str| {
        let mut command = process("shipped", &place);
        command.envs([(LEVEL, level), ("KILN_LIBLLVM", "/nonexistent/libLLVM.so")]);
        printed(&command.output().expect("this program runs"))
    };
    let named = |names: &[&str]| -> Vec<Machine> {
        let machines = names.iter().map(|name| name.parse().expect("a machine"));
        machines.collect()
    };
    let none = run("host");
    assert!(none.contains("libLLVM 22"), "{none}");
    ahead::fill(&place.0, &named(&["sm_80"]), keep_all).expect("it is filled");
    let other = run("host");
    assert!(other.contains("libLLVM 22"), "{other}");
    let expected = results(&Place::new().jit()).expect("they run");
    if is_v3 {
        ahead::fill(&place.0, &named(&["x86-64-v2"]), keep_all).expect("it is filled");
        // What is there for a lesser machine is run.
        for machine in ["3", "2", "host"] {
            assert_eq!(run(machine), format!("[0, 3] {expected:?}"));
        }
        for entry in place.entries() {
            fs::remove_file(entry).expect("it is ours");
        }
        ahead::fill(&place.0, &named(&["x86-64-v3"]), keep_all).expect("it is filled");
        // And what is there for a greater one is not.
        assert_eq!(run("3"), format!("[0, 3] {expected:?}"));
        let lesser = run("2");
        assert!(lesser.contains("libLLVM 22"), "{lesser}");
    }
    ahead::fill(&place.0, &named(&["native"]), keep_all).expect("it is filled");
    assert_eq!(run("host"), format!("[0, 3] {expected:?}"));
    // Where others may write, nothing is used.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(&place.0, mode).expect("it is ours");
    let refused = run("host");
    assert!(refused.contains("libLLVM 22"), "{refused}");
}

#[test]
fn a_process_with_hits_alone_needs_no_libllvm() {
    let place = Place::new();
    let run = |library: Option<&str>| {
        let mut command = process("run", &place);
        command.envs(library.map(|library| ("KILN_LIBLLVM", library)));
        printed(&command.output().expect("this program runs"))
    };
    let nowhere = Some("/nonexistent/libLLVM.so");
    let without = run(nowhere);
    assert!(without.contains("libLLVM 22"), "{without}");
    let first = run(None);
    assert!(first.starts_with("[3, 0, 3, 0]"), "{first}");
    let second = run(nowhere);
    assert!(second.starts_with("[0, 3, 0, 0]"), "{second}");
    assert_eq!(
        first.split_once(']').unwrap().1,
        second.split_once(']').unwrap().1
    );
}

#[test]
fn of_eight_processes_one_compiles() {
    let place = Place::new();
    fs::create_dir_all(&place.0).expect("room");
    let processes: Vec<_> = (0..8)
        .map(|_| {
            let mut command = process("race", &place);
            command.stdout(std::process::Stdio::piped());
            command.spawn().expect("this program runs")
        })
        .collect();
    fs::write(place.0.join("go"), "").expect("room");
    let outputs = processes
        .into_iter()
        .map(|process| process.wait_with_output());
    let mut said: Vec<_> = outputs
        .map(|output| printed(&output.expect("it ends")))
        .collect();
    said.sort();
    assert_eq!(said[..7], ["true 0 1"; 7]);
    assert_eq!(said[7], "true 1 0");
}

#[test]
fn the_environment_moves_the_folder_or_switches_it_off() {
    let place = Place::new();
    let said = |set: &[(&str, &str)]| {
        let mut command = process("user", &place);
        command
            .env_remove("KILN_CACHE")
            .env_remove("XDG_CACHE_HOME");
        command.envs(set.iter().copied());
        printed(&command.output().expect("this program runs"))
            .replace(&*place.0.to_string_lossy(), "PLACE")
    };
    let text = place.0.to_string_lossy().into_owned();
    let expect = |folder: &str| format!("DiskCache {{ folder: Some(\"{folder}\"), note: None }}");
    assert_eq!(said(&[("KILN_CACHE", &text)]), expect("PLACE"));
    assert_eq!(
        said(&[("HOME", &text), ("XDG_CACHE_HOME", &text)]),
        expect("PLACE/kiln")
    );
    if cfg!(target_os = "linux") {
        assert_eq!(said(&[("HOME", &text)]), expect("PLACE/.cache/kiln"));
    }
    let off = said(&[("KILN_CACHE", "off"), ("HOME", &text)]);
    assert!(
        off.contains("folder: None") && off.contains("KILN_CACHE"),
        "{off}"
    );
    assert_eq!(said(&[("KILN_CACHE", "OFF"), ("HOME", &text)]), off);
    let word = said(&[("KILN_CACHE", "none"), ("HOME", &text)]);
    assert!(
        word.contains("folder: None") && word.contains("neither `off` nor a path from the root"),
        "{word}"
    );
}

#[test]
fn what_is_kept_is_compared_with_what_is_compiled() {
    let place = Place::new();
    let mut command = process("verify", &place);
    let output = command.env("KILN_CACHE_VERIFY", "1").output();
    let said = printed(&output.expect("this program runs"));
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines[0], "Ok([1, 0, 1, 0])");
    assert_eq!(lines[1], "Ok([1, 1, 0, 0])", "compiled to be compared");
    let differs = "kernel `scale`: what is kept of it in";
    assert!(
        lines[2].contains(differs) && lines[2].contains("its machine code"),
        "{said}"
    );
}
