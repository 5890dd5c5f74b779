//! A `Jit` on a CUDA device, and what its hooks are told there: the fake driver runs nothing.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use expect_test::expect;
use kiln_jit_core::abi::LaunchArg;
use kiln_jit_core::args;
use kiln_jit_core::build::Kernel;
use kiln_jit_core::error::Result;
use kiln_jit_core::hook::{Hook, HookSet, LaunchTime};
use kiln_jit_core::ir::Type;
use kiln_jit_core::jit::{Jit, JitOptions};
use kiln_jit_core::runtime::Device;
use kiln_jit_core::target::{PtxTarget, Target};

use super::fake::Fake;

pub(super) fn jit(fake: &Fake, hooks: impl Into<HookSet>) -> Jit {
    let driver = fake.open().expect("a driver");
    let device = Device::cuda_of(driver, 0).expect("a device");
    Jit::with(device, hooks.into(), JitOptions::default())
}

pub(super) fn put() -> Kernel {
    let kernel = Kernel::build("put", |k| {
        let x = k.slice_mut("x", Type::U32);
        let value = k.param("value", Type::U32);
        x.at(0).set(value);
    });
    kernel.expect("a kernel")
}

fn launch(jit: &Jit) -> Result<()> {
    let mut x = jit.zeros::<u32>(4)?;
    jit.launch(&put(), 2, 32, args!(&mut x, 7u32))
}

#[test]
fn hooks_are_told_of_launches() {
    let fake = Fake::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let times = Arc::new(Mutex::new(Vec::<LaunchTime>::new()));
    let hook = {
        let (before, after, times) = (told.clone(), told.clone(), times.clone());
        Hook::new("listens")
            .before_launch(move |event| {
                let line = format!("{event:?} {:?}", event.arg("value"));
                let mut told = before.lock().unwrap();
                // The first is measured.
                if told.is_empty() {
                    times.lock().unwrap().push(event.measure());
                }
                told.push((event.id, line));
                Ok(())
            })
            .after_launch(move |event, result| {
                let Some(LaunchArg::Slice { length, .. }) = event.arg("x") else {
                    panic!("there is no slice");
                };
                let line = format!("{} elements, {}", length, result.is_ok());
                after.lock().unwrap().push((event.id, line));
            })
    };
    let jit = jit(&fake, hook);
    for _ in 0..2 {
        launch(&jit).expect("it is launched");
    }
    assert_eq!(fake.last_launch()[..6], [2, 1, 1, 32, 1, 1]);
    let told = std::mem::take(&mut *told.lock().unwrap());
    let ids = told.iter().map(|told| told.0).collect::<Vec<_>>();
    assert_eq!([ids[0], ids[2]], [ids[1], ids[3]], "before and after");
    assert_ne!(ids[0], ids[2]);
    let lines = told
        .iter()
        .map(|(id, line)| line.replace(&format!("id: {id}"), "id: ID"));
    expect![[r#"
        LaunchEvent { id: ID, kernel: "put", config: LaunchConfig { grid: Dim3 { x: 2, y: 1, z: 1 }, block: Dim3 { x: 32, y: 1, z: 1 }, shared_bytes: 0, cooperative: false }, device: Device(Fake GPU), .. } Some(Value([7, 0, 0, 0]))
        4 elements, true
        LaunchEvent { id: ID, kernel: "put", config: LaunchConfig { grid: Dim3 { x: 2, y: 1, z: 1 }, block: Dim3 { x: 32, y: 1, z: 1 }, shared_bytes: 0, cooperative: false }, device: Device(Fake GPU), .. } Some(Value([7, 0, 0, 0]))
        4 elements, true"#]].assert_eq(&lines.collect::<Vec<_>>().join("\n"));
    // Two events of one launch, and none of the other's.
    assert_eq!(fake.ledger().events, 2);
    let times = std::mem::take(&mut *times.lock().unwrap());
    let [time] = &times[..] else {
        panic!("one launch was measured: {times:?}");
    };
    assert_eq!(time.milliseconds().expect("it has ended"), Some(1.5));
    drop(times);
    assert_eq!(fake.ledger().events, 0);
}

#[test]
fn hooks_are_told_what_the_driver_says_of_code() {
    let fake = Fake::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let hook = {
        let told = told.clone();
        Hook::new("listens").after_load(move |cx, facts| {
            let mut facts = facts.clone();
            assert!(facts.code_bytes.take().is_some_and(|bytes| bytes > 100));
            told.lock()
                .unwrap()
                .push(format!("{} {facts:?}", cx.kernel));
            match cx.kernel {
                "second" => Err("too many registers".into()),
                _ => Ok(()),
            }
        })
    };
    let jit = jit(&fake, hook);
    for _ in 0..3 {
        launch(&jit).expect("it is launched");
    }
    expect![[r#"put CodeFacts { registers: Some(128), local_bytes: Some(16), shared_bytes: Some(1024), const_bytes: Some(360), block_threads: Some(512), code_bytes: None, lanes: None, stack_bytes: None, log: "ptxas info    : Used 32 registers" }"#]].assert_eq(&told.lock().unwrap().join("\n"));
    assert_eq!(told.lock().unwrap().len(), 1, "once for a code");
    let kernel = Kernel::build("second", |k| {
        let x = k.slice_mut("x", Type::U32);
        x.at(0).set(1u32);
    });
    let mut x = jit.zeros::<u32>(4).expect("memory");
    let refused = jit.launch(&kernel.expect("a kernel"), 1, 32, args!(&mut x));
    let error = refused.expect_err("the hook refuses");
    expect![[r#"
        hook `listens` failed: too many registers
          kernel: second, extension point: after_load"#]]
    .assert_eq(&error.to_string());
}

/// A hook that gives such machine code, with the kernel's symbol and parameters in the place of `ENTRY`.
fn assembles(image: &'static str) -> Hook {
    Hook::new("assembles")
        .key("image", image)
        .assemble(move |_, ptx| {
            let (_, rest) = ptx.split_once(".entry ").ok_or("no kernel")?;
            let (entry, _) = rest.split_once(')').ok_or("no parameters")?;
            let mut image = image.replace("ENTRY", entry).into_bytes();
            image.resize(image.len().max(64) + 1, 0);
            Ok(Some(image))
        })
}

#[test]
fn machine_code_of_a_hook_is_loaded_in_place_of_ptx() {
    let fake = Fake::new();
    let image = "\x7fELF .entry ENTRY)";
    launch(&jit(&fake, assembles(image))).expect("it is launched");
    // A hook that leaves it to the next.
    let leaves = Hook::new("leaves").assemble(|_, _| Ok(None));
    let both = HookSet::from(leaves).with(assembles(image));
    launch(&jit(&fake, both)).expect("it is launched");

    let mut said = String::new();
    for image in ["BC\u{c0}\u{de}", "\x7fELF .entry another("] {
        let error = launch(&jit(&fake, assembles(image))).expect_err("it is no such code");
        said += &format!("{error}\n");
    }
    let refusing = jit(&fake, assembles(image));
    fake.reject(
        209,
        "no kernel image is available for execution on the device",
    );
    let error = launch(&refusing).expect_err("the driver refuses");
    said += &format!("{error}\n");
    let mut lines = said.lines().map(|line| {
        let hash = line.find("put_").map(|at| &line[at..at + 20]);
        hash.map_or(line.to_owned(), |hash| line.replace(hash, "put_HASH"))
    });
    expect![[r#"
        hook `assembles` gave bytes that are no `cubin`: those begin as an ELF file does; give what `ptxas` writes, or `None` to leave the PTX to the driver
          kernel: put, extension point: assemble
        the machine code that the hook `assembles` has made of the PTX of kernel `put` cannot be loaded; it has to be for this device and hold the kernel under the name that the PTX has: the module of kernel `put` has no symbol `put_HASH`. Use a name that its PTX declares `.visible`
        the machine code that the hook `assembles` has made of the PTX of kernel `put` cannot be loaded; it has to be for this device and hold the kernel under the name that the PTX has: the driver refused the code of kernel `put`: unknown code (209: the driver has no description of it). It is for another architecture than the device's: compile for the device's. Log: no kernel image is available for execution on the device"#]].assert_eq(&lines.by_ref().collect::<Vec<_>>().join("\n"));
}

/// `ptxas` with an option of the hook's.
fn by_ptxas(ptxas: std::ffi::OsString, option: &'static str) -> Hook {
    let hook = Hook::new("ptxas").key("option", option);
    hook.assemble(move |cx, ptx| {
        let Target::Ptx(target) = cx.target else {
            return Ok(None);
        };
        let name = format!("ptxas-{}-{:x}", std::process::id(), cx.tag);
        let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let cubin = source.with_extension("cubin");
        std::fs::write(&source, ptx)?;
        let mut command = Command::new(&ptxas);
        command.arg(format!("-arch=sm_{}", target.sm)).arg(option);
        let output = command.arg(&source).arg("-o").arg(&cubin).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        let code = std::fs::read(&cubin)?;
        std::fs::remove_file(&source)?;
        std::fs::remove_file(&cubin)?;
        Ok(Some(code))
    })
}

#[test]
fn ptxas_is_an_assembler_with_options_of_ones_own() {
    let Some(ptxas) = std::env::var_os("KILN_PTXAS") else {
        return;
    };
    let target = Some(Target::Ptx(PtxTarget::for_sm(90)));
    let assembled = |option| {
        let options = JitOptions::default().target(target.clone());
        let hook = by_ptxas(ptxas.clone(), option);
        let jit = Jit::with(Device::cpu(), hook.into(), options);
        let mut x = jit.zeros::<u32>(4)?;
        let inspection = jit.inspect(&put(), args!(&mut x, 7u32))?;
        let code = inspection.compiled().and_then(|kernel| kernel.code.ptx());
        let code = code.and_then(|ptx| ptx.assembled.clone());
        let code = code.expect("machine code");
        assert_eq!(code.by, "ptxas");
        Ok::<_, kiln_jit_core::error::Error>((code.image, inspection.key().digest()))
    };
    let (plain, first) = assembled("-O3").expect("it is assembled");
    let (quick, second) = assembled("-O0").expect("it is assembled");
    assert!(plain.starts_with(b"\x7fELF") && quick.starts_with(b"\x7fELF"));
    assert!(plain != quick && first != second);
    let error = assembled("--no-such-option").expect_err("it has no such option");
    let want = "hook `ptxas` failed: ptxas fatal   : Unknown option";
    assert!(error.to_string().starts_with(want), "{error}");
}
