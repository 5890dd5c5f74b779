//! Code that the `Jit`s of one device share: the fake driver counts what is loaded.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex};

use expect_test::expect;
use kiln::core::cache::{CacheFolder, CodeOrigin};
use kiln::core::compile::NoObserver;
use kiln::core::hook::{Hook, HookSet};
use kiln::core::job::CompileOptions;
use kiln::prelude::*;

use crate::fake::Fake;
use crate::hooked::put;

fn device(fake: &Fake) -> Device {
    Device::cuda_of(fake.open().expect("it opens"), 0).expect("a device")
}

fn launch(jit: &Jit) -> kiln::Result<()> {
    let mut x = jit.zeros::<u32>(4)?;
    jit.launch(&put(), 1, 32, args!(&mut x, 7u32))
}

/// Where the code came from that launches of it have.
fn origin(jit: &Jit) -> Option<CodeOrigin> {
    let mut x = jit.zeros::<u32>(4).expect("memory");
    let inspected = jit.inspect(&put(), args!(&mut x, 7u32));
    inspected.expect("it compiles").origin()
}

/// What it compiled, and found at others.
fn came_by(jit: &Jit) -> [u64; 2] {
    let stats = jit.cache_stats();
    [stats.compiles, stats.shared_hits]
}

#[test]
fn two_compile_and_load_once() {
    let fake = Fake::new();
    let device = device(&fake);
    let (first, second) = (Jit::on(device.clone()), Jit::on(device));
    assert_eq!(origin(&first), None, "nothing was launched");
    for _ in 0..3 {
        launch(&first).expect("a launch");
        launch(&second).expect("a launch");
        assert_eq!(origin(&first), Some(CodeOrigin::Compiled));
        assert_eq!(origin(&second), Some(CodeOrigin::Shared));
    }
    assert_eq!((came_by(&first), came_by(&second)), ([1, 0], [0, 1]));
    assert_eq!(fake.ledger().modules, 1);
    // It counts for each, and stays until the last has let it go.
    let bytes = first.cache_stats().memory_bytes;
    assert!(bytes > 0 && bytes == second.cache_stats().memory_bytes);
    drop(first);
    assert_eq!(fake.ledger().modules, 1);
    launch(&second).expect("a launch");
    let third = Jit::on(second.device().clone());
    launch(&third).expect("a launch");
    assert_eq!(came_by(&third), [0, 1]);
    let device = third.device().clone();
    drop((second, third));
    assert_eq!(fake.ledger().modules, 0);
    // Nobody kept it.
    let later = Jit::on(device);
    launch(&later).expect("a launch");
    assert_eq!(came_by(&later), [1, 0]);
    drop(later);
    assert_eq!(fake.ledger().total(), 0);
}

#[test]
fn what_one_lets_go_another_keeps() {
    let fake = Fake::new();
    let device = device(&fake);
    let builder = || Jit::builder().device(device.clone());
    let small = builder().memory_bound(100_000).build().expect("a `Jit`");
    let large = builder().build().expect("a `Jit`");
    launch(&small).expect("a launch");
    launch(&large).expect("a launch");
    let kernel = Kernel::build("step", |k| k.slice_mut("x", Type::U32).at(0).set(0u32));
    let kernel = kernel.expect("a kernel");
    let mut x = small.zeros::<u32>(1).expect("memory");
    for n in 1..30u32 {
        let redefined = kernel.redefine(move |k| k.slice_mut("x", Type::U32).at(0).set(n));
        redefined.expect("it is of the same kind");
        small
            .launch(&kernel, 1, 1, args!(&mut x))
            .expect("a launch");
    }
    assert!(small.cache_stats().evictions > 0);
    launch(&large).expect("a launch");
    assert_eq!(came_by(&large), [0, 1]);
    // What was let go here is there still, and was made here.
    launch(&small).expect("a launch");
    assert_eq!(came_by(&small), [30, 0]);
    assert_eq!(small.cache_stats().code_hits, 1);
    assert_eq!(origin(&small), Some(CodeOrigin::Memory));
}

#[test]
fn what_makes_other_code_is_not_shared() {
    let fake = Fake::new();
    let device = device(&fake);
    let first = Jit::on(device.clone());
    launch(&first).expect("a launch");
    let folder = std::env::temp_dir().join(format!("kiln-sharing-{}", std::process::id()));
    let others: [(&str, fn(JitOptions) -> JitOptions); 4] = [
        ("alone", |options| options.share_code(false)),
        ("observed", |options| options.observer(Arc::new(NoObserver))),
        ("lines", |options| {
            options.compile(CompileOptions::default().line_info(true))
        }),
        ("shipped", |options| options.shipped("/nonexistent")),
    ];
    for (name, with) in others {
        let options = with(JitOptions::default());
        let jit = Jit::with(device.clone(), kiln::hooks::standard(), options);
        launch(&jit).expect("a launch");
        assert_eq!(came_by(&jit), [1, 0], "{name}");
    }
    let options = JitOptions::default().cache(CacheFolder::At(folder.clone()));
    let keeps = Jit::with(device.clone(), kiln::hooks::standard(), options);
    launch(&keeps).expect("a launch");
    assert_eq!(
        (came_by(&keeps), keeps.cache_stats().disk_writes > 0),
        ([1, 0], true)
    );
    let _ = std::fs::remove_dir_all(folder);
    let bare = Jit::with(device.clone(), HookSet::new(), JitOptions::default());
    launch(&bare).expect("a launch");
    assert_eq!(came_by(&bare), [1, 0]);
    let limited = JitOptions::default().memory_bound(1 << 20);
    let limited = Jit::with(device.clone(), kiln::hooks::standard(), limited);
    launch(&limited).expect("a launch");
    assert_eq!(came_by(&limited), [0, 1], "a bound changes no code");
}

/// Two hooks of one name, of which only the text says what they do.
#[test]
fn hooks_are_the_same_where_they_are_said_to_be() {
    let fake = Fake::new();
    let device = device(&fake);
    let hook = |kept: bool| {
        let hook = Hook::new("twice").rewrite_ir(|_, _| Ok(()));
        HookSet::new().with(if kept { hook.may_be_kept() } else { hook })
    };
    let jit = |hooks: &HookSet| {
        let jit = Jit::with(device.clone(), hooks.clone(), JitOptions::default());
        launch(&jit).expect("a launch");
        jit
    };
    let set = hook(false);
    let (first, same, other) = (jit(&set), jit(&set), jit(&hook(false)));
    assert_eq!(
        [came_by(&first), came_by(&same), came_by(&other)],
        [[1, 0], [0, 1], [1, 0]]
    );
    let (kept, again) = (jit(&hook(true)), jit(&hook(true)));
    assert_eq!([came_by(&kept), came_by(&again)], [[1, 0], [0, 1]]);
}

#[test]
fn hooks_are_told_of_code_that_another_has_loaded() {
    let fake = Fake::new();
    let device = device(&fake);
    let loaded = Arc::new(AtomicU32::new(0));
    let jit = || {
        let loaded = loaded.clone();
        let hook = Hook::new("counts").after_load(move |_, _| {
            loaded.fetch_add(1, SeqCst);
            Ok(())
        });
        Jit::with(device.clone(), hook.into(), JitOptions::default())
    };
    let (first, second) = (jit(), jit());
    launch(&first).expect("a launch");
    launch(&second).expect("a launch");
    assert_eq!((came_by(&second), loaded.load(SeqCst)), ([0, 1], 2));
}

#[test]
fn a_device_that_is_lost_or_another_gives_nothing() {
    let fake = Fake::new();
    let first = Jit::on(device(&fake));
    launch(&first).expect("a launch");
    let mut x = first.zeros::<u32>(4).expect("memory");
    fake.sticky_after(1, 700);
    launch(&first).expect("it is launched");
    first.synchronize().expect_err("the device is lost");
    let second = Jit::on(first.device().clone());
    let compiled = second.compile(&put(), args!(&mut x, 7u32));
    assert!(compiled.is_err(), "the device is lost");
    assert_eq!(came_by(&second), [0, 0]);
    // SAFETY: nothing else uses the fake driver.
    let again = unsafe { first.reset() }.expect("the fake driver allows it");
    launch(&again).expect("a launch");
    assert_eq!(came_by(&again), [1, 0]);
}

#[test]
fn of_threads_with_a_jit_each_one_compiles() {
    const THREADS: usize = 6;
    let fake = Fake::new();
    let start = Barrier::new(THREADS);
    let device = device(&fake);
    let jits: Vec<Jit> = std::thread::scope(|scope| {
        let ask = || {
            let jit = Jit::on(device.clone());
            start.wait();
            launch(&jit).expect("a launch");
            jit
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(ask)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("it ends"))
            .collect()
    });
    let mut counts = [0, 0];
    for jit in &jits {
        let [compiles, shared] = came_by(jit);
        counts = [counts[0] + compiles, counts[1] + shared];
    }
    assert_eq!(counts, [1, THREADS as u64 - 1]);
    assert_eq!(fake.ledger().modules, 1);
}

/// While a kernel is compiled in one `Jit` its hook launches it in the other, of the same hooks.
#[test]
fn a_compilation_within_one_does_not_wait() {
    static OTHER: Mutex<Option<Jit>> = Mutex::new(None);
    let fake = Fake::new();
    let device = device(&fake);
    let hook = Hook::new("launches").rewrite_ir(|_, _| {
        let other = OTHER.lock().expect("nobody panics").take();
        match other {
            Some(other) => Ok(launch(&other)?),
            None => Ok(()),
        }
    });
    let hooks = HookSet::new().with(hook);
    let jit = || Jit::with(device.clone(), hooks.clone(), JitOptions::default());
    let (first, second) = (jit(), jit());
    *OTHER.lock().expect("nobody panics") = Some(second.clone());
    let begun = std::time::Instant::now();
    launch(&first).expect("a launch");
    println!("took {:?}", begun.elapsed());
    // The inner one is not shared, as it could not wait for the outer one.
    assert_eq!([came_by(&first), came_by(&second)], [[1, 0], [1, 0]]);
    let third = jit();
    launch(&third).expect("a launch");
    assert_eq!(came_by(&third), [0, 1]);
}

#[test]
fn an_error_is_shared_with_nobody() {
    let fake = Fake::new();
    let device = device(&fake);
    let tries = Arc::new(AtomicU32::new(0));
    let count = tries.clone();
    let hook =
        Hook::new("fails")
            .key("of", 1)
            .rewrite_ir(move |_, _| match count.fetch_add(1, SeqCst) {
                0 => Err("the first time".into()),
                _ => Ok(()),
            });
    let hooks = HookSet::new().with(hook);
    let jit = || Jit::with(device.clone(), hooks.clone(), JitOptions::default());
    let (first, second) = (jit(), jit());
    let error = launch(&first).expect_err("the hook fails");
    expect![[r#"
        hook `fails` failed: the first time
          kernel: put, extension point: rewrite_ir"#]]
    .assert_eq(&error.to_string());
    launch(&second).expect("a launch");
    launch(&first).expect("a launch");
    // It has compiled in vain.
    assert_eq!((tries.load(SeqCst), came_by(&first)), (2, [1, 1]));
}

/// Threads that make kernels while others are let go.
#[test]
fn bytes_are_those_of_what_is_loaded() {
    let fake = Fake::new();
    let builder = Jit::builder().device(device(&fake)).memory_bound(300_000);
    let jit = builder.build().expect("a `Jit`");
    let kernel = &|n: u32| {
        let kernel = Kernel::build("step", |k| k.slice_mut("x", Type::U32).at(0).set(n));
        kernel.expect("a kernel")
    };
    let launch = &|kernel: &Kernel| {
        let mut x = jit.zeros::<u32>(1).expect("memory");
        jit.launch(kernel, 1, 1, args!(&mut x)).expect("a launch");
    };
    launch(&kernel(100));
    let each = jit.cache_stats().memory_bytes;
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for n in 0..100 {
                    launch(&kernel(200 + 100 * thread + n));
                }
            });
        }
    });
    let stats = jit.cache_stats();
    assert!(stats.evictions > 300, "{stats:?}");
    // The texts differ by some digits.
    let (count, bytes) = (401 - stats.evictions, stats.memory_bytes);
    assert!(
        bytes.abs_diff(each * count) < each / 2,
        "{count} of {each}, {bytes}"
    );
}
