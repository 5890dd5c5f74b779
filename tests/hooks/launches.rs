//! What hooks are told of launches, and of code once it is loaded.

use std::sync::{Arc, Mutex, OnceLock};

use expect_test::expect;
use kiln::Result;
use kiln::core::abi::LaunchArg;
use kiln::core::hook::{Hook, HookSet, LaunchTime};
use kiln::core::runtime::CpuOptions;
use kiln::core::target::Barriers;
use kiln::prelude::*;

#[kernel]
fn fill(x: &mut [u32], pair: [f32; 2], value: u32) {
    let tile = shared!([f32; 64]);
    let i = global_id().x;
    tile[thread_idx().x % 64] = pair[1];
    barrier();
    if i < x.len() {
        x[i] = value + tile[0] as u32;
    }
}

/// A CPU that compiles, and one that interprets.
fn devices() -> [(&'static str, Device); 2] {
    let interpret = CpuOptions::default().interpret(true);
    let compile = CpuOptions::default().lanes(8).barriers(Barriers::Segments);
    [
        ("compiled", Device::cpu_with(compile)),
        ("interpreted", Device::cpu_with(interpret)),
    ]
}

fn launch(jit: &Jit) -> Result<Vec<u32>> {
    let mut x = jit.zeros::<u32>(40)?;
    fill.launch(jit, (2, 32), &mut x, [1.0, 2.0], 5)?;
    x.to_vec()
}

/// What is passed, as a line; addresses are of no interest.
fn line(name: &str, arg: LaunchArg<'_>) -> String {
    match arg {
        LaunchArg::Slice { length, .. } => format!("{name}: {length} elements"),
        LaunchArg::Reference { bytes, .. } => format!("{name}: {bytes} bytes elsewhere"),
        LaunchArg::Value(bytes) => format!("{name}: {bytes:?}"),
    }
}

#[test]
fn a_launch_is_known_by_its_number_and_measured_if_asked() -> Result<()> {
    for (how, device) in devices() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let times = Arc::new(Mutex::new(Vec::<LaunchTime>::new()));
        let own = Arc::new(OnceLock::<Jit>::new());
        let hook = {
            let (before, after) = (told.clone(), told.clone());
            let (times, own) = (times.clone(), own.clone());
            Hook::new("listens")
                .before_launch(move |event| {
                    times.lock().unwrap().push(event.measure());
                    let args = event.args().map(|(name, arg)| line(name, arg));
                    let args = args.collect::<Vec<_>>().join(", ");
                    before.lock().unwrap().push((event.id, args));
                    assert_eq!(event.config.grid.to_array(), [2, 1, 1]);
                    assert_eq!(event.arg("value").and_then(LaunchArg::scalar), Some(5u32));
                    assert!(event.arg("no such").is_none());
                    let jit = own.get().ok_or("no `Jit`")?;
                    assert_eq!(event.device.info().id, jit.device().info().id);
                    // Its time is not that of making its code.
                    assert_eq!(jit.cache_stats().compiles, 1);
                    Ok(())
                })
                .after_launch(move |event, result| {
                    let went = format!("{} {}", event.kernel, result.is_ok());
                    after.lock().unwrap().push((event.id, went));
                })
        };
        let jit = Jit::with(device, hook.into(), JitOptions::default());
        let jit = own.get_or_init(|| jit);
        for _ in 0..2 {
            assert_eq!(launch(jit)?, [7; 40], "{how}");
        }
        let told = std::mem::take(&mut *told.lock().unwrap());
        let [a, b, c, d] = &told[..] else {
            panic!("{told:?}");
        };
        assert_eq!((a.0, c.0), (b.0, d.0));
        assert_ne!(a.0, c.0);
        let said = format!("{} and then {}", a.1, b.1);
        let want =
            "x: 40 elements, pair: 8 bytes elsewhere, value: [5, 0, 0, 0] and then fill true";
        assert_eq!(said, want);
        for time in std::mem::take(&mut *times.lock().unwrap()) {
            assert!(time.milliseconds()?.is_some_and(|ms| ms >= 0.0), "{how}");
        }
    }
    Ok(())
}

#[test]
fn a_launch_that_was_not_made_took_no_time() -> Result<()> {
    let times = Arc::new(Mutex::new(Vec::<LaunchTime>::new()));
    let (first, late) = (times.clone(), times.clone());
    let measures = Hook::new("measures").before_launch(move |event| {
        let time = event.measure();
        assert_eq!(time.milliseconds().expect("a device"), None);
        first.lock().unwrap().push(time);
        Ok(())
    });
    let vetoes = Hook::new("vetoes").before_launch(|_| Err("no more".into()));
    let jit = Jit::with(
        Device::cpu(),
        HookSet::from(measures).with(vetoes),
        JitOptions::default(),
    );
    launch(&jit).expect_err("it is vetoed");
    // Nobody has asked for it before.
    let asks_late = Hook::new("late").after_launch(move |event, _| {
        late.lock().unwrap().push(event.measure());
    });
    let jit = Jit::with(Device::cpu(), asks_late.into(), JitOptions::default());
    launch(&jit)?;
    let times = times.lock().unwrap();
    assert_eq!(times.len(), 2);
    for time in times.iter() {
        assert_eq!(time.milliseconds()?, None);
    }
    Ok(())
}

/// All expressions over arrays are kernels of one name.
#[test]
fn kernels_of_one_name_are_told_apart() -> Result<(), Box<dyn std::error::Error>> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let list = told.clone();
    let hook = Hook::new("listens").before_launch(move |event| {
        list.lock()
            .unwrap()
            .push((event.kernel.to_owned(), event.tag));
        Ok(())
    });
    let jit = Jit::with(Device::cpu(), hook.into(), JitOptions::default());
    let arrays = Arrays::new(&jit);
    let (x, y) = (arrays.vector(vec![1.0f32])?, arrays.vector(vec![3.0f32])?);
    let wide = arrays.vector(vec![1.0f64])?;
    (&x + &y).eval()?;
    (&wide + &wide).eval()?;
    (&x + &y).eval()?;
    let told = told.lock().unwrap();
    let [sum, of_f64, again] = &told[..] else {
        panic!("{told:?}");
    };
    assert_eq!(sum, again);
    assert_eq!(sum.0, of_f64.0);
    assert_ne!(sum.1, of_f64.1);
    Ok(())
}

#[test]
fn hooks_are_told_what_is_known_of_loaded_code() -> Result<()> {
    let mut said = String::new();
    for (how, device) in devices() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let hook = {
            let told = told.clone();
            Hook::new("listens").after_load(move |cx, facts| {
                let mut facts = facts.clone();
                let bytes = facts.code_bytes.take();
                assert_eq!(bytes.is_some(), facts.lanes.is_some(), "{bytes:?}");
                facts.stack_bytes = facts.stack_bytes.map(|_| 0);
                assert!(cx.key.to_string().contains("kernel: fill\n"), "{}", cx.key);
                told.lock()
                    .unwrap()
                    .push(format!("{} {facts:?}", cx.kernel));
                Ok(())
            })
        };
        let jit = Jit::with(device, hook.into(), JitOptions::default());
        for _ in 0..2 {
            launch(&jit)?;
        }
        let told = told.lock().unwrap();
        assert_eq!(told.len(), 1, "once for a code");
        said += &format!("{how}: {}\n", told[0]);
    }
    expect![[r#"
        compiled: fill CodeFacts { registers: None, local_bytes: None, shared_bytes: Some(256), const_bytes: None, block_threads: None, code_bytes: None, lanes: Some(8), stack_bytes: Some(0), log: "" }
        interpreted: fill CodeFacts { registers: None, local_bytes: None, shared_bytes: Some(256), const_bytes: None, block_threads: None, code_bytes: None, lanes: None, stack_bytes: None, log: "" }
    "#]].assert_eq(&said);
    Ok(())
}
