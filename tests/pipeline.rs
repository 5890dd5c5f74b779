//! One way for every target: what hooks, observers, the cache and its explanations see of a kernel for
//! this machine's CPU, whose code depends on the shape of blocks.

mod broken;
mod hooked;
mod hooked_whole;
mod proof;
mod tape;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kiln::core::abi::{LaunchArgs, LaunchBlock, ParamKind};
use kiln::core::code::{Code, KeptCode};
use kiln::core::codegen::Isas;
use kiln::core::compile::{Stage, StageObserver};
use kiln::core::front::AsKernel;
use kiln::core::hook::{Hook, HookSet};
use kiln::core::ir::{IntrinsicDef, Meaning, Scalar, TypePattern};
use kiln::core::launch::LaunchConfig;
use kiln::core::runtime::{DeviceError, OnHostOptions};
use kiln::core::target::{CpuTarget, Target};
use kiln::prelude::*;

#[kernel]
fn count(y: &mut [u32]) {
    let i = global_id().x;
    if i < y.len() {
        y[i] += block_dim().x as u32;
    }
}

/// Notes what is called, in order.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<&'static str>>>);

impl Notes {
    fn note(&self, what: &'static str) {
        self.0.lock().expect("nothing panics here").push(what);
    }

    fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.0.lock().expect("nothing panics here"))
    }
}

impl Notes {
    /// A hook that notes each of its points.
    fn hook(&self) -> Hook {
        let note = |what| {
            let notes = self.clone();
            move || {
                notes.note(what);
                Ok(())
            }
        };
        let (prepare, rewrite, lower) =
            (note("prepare_job"), note("rewrite_ir"), note("lower_abi"));
        let (finish, passes) = (note("finish_module"), note("pass_pipeline"));
        let finish_optimized = note("finish_optimized_module");
        Hook::new("notes")
            .key("changes", "nothing")
            .prepare_job(move |_| prepare())
            .rewrite_ir(move |_, _| rewrite())
            .lower_abi(move |_, _| lower())
            .finish_module(move |_, _| finish())
            .pass_pipeline(move |_, _| passes())
            .finish_optimized_module(move |_, _| finish_optimized())
    }
}

impl StageObserver for Notes {
    fn stage(&self, _: &str, stage: Stage, _: Duration, _: &dyn Fn() -> String) {
        self.note(stage.name());
    }

    fn wants_text(&self) -> bool {
        false
    }
}

const IR_HALF: [&str; 5] = [
    "prepare_job",
    "specialized",
    "rewrite_ir",
    "lower_abi",
    "legal",
];
const CODE_HALF: [&str; 3] = ["finish_module", "pass_pipeline", "finish_optimized_module"];
const CODE_STAGES: [&str; 3] = ["llvm", "optimized-llvm", "object"];

fn noting(notes: &Notes) -> Jit {
    let observer: Arc<dyn StageObserver + Send + Sync> = Arc::new(notes.clone());
    let options = JitOptions::default().observer(observer);
    Jit::with(Device::cpu(), notes.hook().into(), options)
}

#[test]
fn another_shape_of_block_repeats_nothing_on_the_ir() -> kiln::Result<()> {
    let notes = Notes::default();
    let jit = noting(&notes);
    let mut y = jit.zeros::<u32>(256)?;
    count.launch(&jit, (1, 256), &mut y)?;
    assert_eq!(
        notes.take(),
        [&IR_HALF[..], &CODE_HALF, &CODE_STAGES].concat()
    );
    count.launch(&jit, (2, 128), &mut y)?;
    assert_eq!(notes.take(), [CODE_HALF, CODE_STAGES].concat());
    count.launch(&jit, (1, 256), &mut y)?;
    count.launch(&jit, (2, 128), &mut y)?;
    assert_eq!(notes.take(), [""; 0]);
    assert_eq!(y.to_vec()?, [768; 256]);

    let stats = jit.cache_stats();
    assert_eq!((stats.legalizations, stats.compiles), (1, 2));
    assert_eq!((stats.hits, stats.misses), (2, 2));
    let why = jit
        .explain_recompile(count.as_kernel()?)
        .expect("it was compiled");
    assert_eq!(
        why.to_string(),
        "`count` was compiled 2 times; the latest differs in\n  block: 256x1x1 -> 128x1x1"
    );
    Ok(())
}

#[test]
fn a_prepared_kernel_has_code_for_the_blocks_that_it_was_prepared_for() -> kiln::Result<()> {
    let notes = Notes::default();
    let jit = noting(&notes);
    let mut y = jit.zeros::<u32>(64)?;
    let prepared = jit.compile(count.as_kernel()?, args!(&mut y))?;
    assert_eq!(notes.take(), IR_HALF);
    let prepared = prepared.prepare_block(64)?;
    assert_eq!(notes.take(), [CODE_HALF, CODE_STAGES].concat());
    prepared.launch(1, 64, args!(&mut y))?;
    count.launch(&jit, (1, 64), &mut y)?;
    assert_eq!(notes.take(), [""; 0]);
    assert_eq!(y.to_vec()?, [128; 64]);
    Ok(())
}

#[test]
fn the_key_says_what_the_code_depends_on() -> kiln::Result<()> {
    let jit = Jit::on(Device::cpu());
    let mut y = jit.zeros::<u32>(1)?;
    let kernel = count.as_kernel()?;
    let fields = |inspection: &kiln::core::inspect::Inspection| -> Vec<String> {
        let names = ["block", "lanes", "barriers", "code generator"];
        let fields = inspection.key().fields();
        let fields = fields.filter(|(name, _)| names.contains(name));
        fields
            .map(|(name, value)| format!("{name}: {value}"))
            .collect()
    };
    let any = jit.inspect(kernel, args!(&mut y))?;
    let rest = ["lanes: auto", "barriers: auto", "code generator: LLVM 22"];
    assert_eq!(fields(&any), [&["block: any"], &rest[..]].concat());
    assert!(any.compiled().is_none());
    assert_eq!(
        any.llvm().expect_err("no block was given").to_string(),
        "kernel `count`: its code for this machine's CPU depends on the shape of blocks, and so does its \
         stage `optimized-llvm`; use `Jit::inspect_block`"
    );
    let one = jit.inspect_block(kernel, (32, 2), args!(&mut y))?;
    assert_eq!(fields(&one), [&["block: 32x2x1"], &rest[..]].concat());
    assert_eq!(one.host_code()?.block, [32, 2, 1]);
    assert!(one.llvm()?.contains("define"), "{}", one.llvm()?);
    Ok(())
}

/// Has no block run, by what it does to LLVM's module.
fn no_blocks() -> Hook {
    Hook::new("no-blocks").finish_optimized_module(|_, module| {
        let entry = module
            .get_function("kiln_blocks")
            .ok_or("there is no entry")?;
        let first = entry.get_first_basic_block().ok_or("it has no body")?;
        let builder = module.get_context().create_builder();
        let before = module.get_context().prepend_basic_block(first, "before");
        builder.position_at_end(before);
        builder.build_return(None)?;
        Ok(())
    })
}

#[test]
fn what_a_hook_makes_of_the_optimized_module_is_what_runs() -> kiln::Result<()> {
    let hooks = HookSet::new().with(no_blocks());
    let jit = Jit::with(Device::cpu(), hooks, JitOptions::default());
    let mut y = jit.zeros::<u32>(64)?;
    count.launch(&jit, (1, 64), &mut y)?;
    assert_eq!(y.to_vec()?, [0; 64]);
    Ok(())
}

/// Each number becomes three times itself and the index.
#[kernel]
fn triple(x: &mut [u32]) {
    let i = thread_idx().x;
    x[i] = x[i] * 3 + i as u32;
}

fn tapes() -> Jit {
    let options =
        JitOptions::default().isas(Isas::default().with(tape::FAMILY, |_| Arc::new(tape::TapeIsa)));
    let device = Device::of(Arc::new(tape::TapeDevice::new()));
    Jit::with(device, HookSet::new(), options)
}

#[test]
fn a_program_brings_a_machine_of_its_own() -> kiln::Result<()> {
    let jit = tapes();
    let mut x = jit.zeros::<u32>(4)?;
    triple.launch(&jit, (1, 4), &mut x)?;
    triple.launch(&jit, (1, 3), &mut x)?;
    assert_eq!(x.to_vec()?, [0, 4, 8, 3]);
    assert_eq!(
        jit.cache_stats().compiles,
        1,
        "its code is for blocks of all shapes"
    );
    triple.launch(&jit, (1, 5), &mut x)?;
    let fault = jit.synchronize().expect_err("thread 4 has no number");
    assert!(
        fault
            .to_string()
            .contains("index 4 is out of bounds for length 4"),
        "{fault}"
    );
    Ok(())
}

#[test]
fn a_machine_refuses_what_it_does_not_have() -> kiln::Result<()> {
    let jit = tapes();
    let mut x = jit.zeros::<u32>(4)?;
    let error = count
        .launch(&jit, (1, 4), &mut x)
        .expect_err("it has an `if`");
    let error = error.to_string();
    assert!(
        error.starts_with("kernel `count` cannot be compiled for tape:"),
        "{error}"
    );
    assert!(
        error.contains("in `count`: a tape has no such instruction"),
        "{error}"
    );
    Ok(())
}

#[test]
fn nothing_makes_code_for_an_unknown_machine() -> kiln::Result<()> {
    let device = Device::of(Arc::new(tape::TapeDevice::new()));
    let jit = Jit::with(device, HookSet::new(), JitOptions::default());
    let mut x = jit.zeros::<u32>(4)?;
    let error = triple
        .launch(&jit, (1, 4), &mut x)
        .expect_err("there is no `Isa`");
    assert_eq!(
        error.to_string(),
        "kernel `triple`: nothing makes code for the target `tape`; add what does to `JitOptions::isas`"
    );
    Ok(())
}

/// A row without machine code of its own.
static POPC: IntrinsicDef = IntrinsicDef::new(
    "bits.popc",
    &[TypePattern::Exact(Scalar::U32)],
    TypePattern::Exact(Scalar::U32),
    Meaning::Pure(|_, args| args[0].count_ones().into()),
);

#[test]
fn code_for_a_cpu_says_no_address_of_this_process() -> kiln::Result<()> {
    let kernel = Kernel::build("bits", |k: &KernelBuilder| {
        let y = k.slice_mut("y", Type::U32);
        let i = k.thread_idx().x();
        y.at(i).set(k.intrinsic(&POPC, &[i]));
    })?;
    let mut objects = Vec::new();
    for _ in 0..2 {
        let jit = Jit::on(Device::cpu());
        let mut y = jit.zeros::<u32>(32)?;
        jit.launch(&kernel, 1, 32, args!(&mut y))?;
        assert_eq!(y.to_vec()?[..8], [0, 1, 1, 2, 1, 2, 2, 3]);
        let inspection = jit.inspect_block(&kernel, 32, args!(&mut y))?;
        objects.push(inspection.host_code()?.object.clone());
    }
    let address = (std::ptr::from_ref(&POPC).addr() as u64).to_le_bytes();
    for object in &objects {
        assert!(!object.windows(8).any(|bytes| bytes == address));
    }
    assert!(objects[0] == objects[1], "code of one key differs");
    Ok(())
}

#[test]
fn code_for_one_shape_of_block_runs_with_that_alone() -> kiln::Result<()> {
    let target = CpuTarget {
        block: Some([32, 1, 1]),
        ..CpuTarget::host()
    };
    let options = JitOptions::default().target(Target::Cpu(target));
    let jit = Jit::with(Device::cpu(), HookSet::new(), options);
    let mut y = jit.zeros::<u32>(64)?;
    count.launch(&jit, (2, 32), &mut y)?;
    assert_eq!(y.to_vec()?, [32; 64]);
    let error = count
        .launch(&jit, (1, 64), &mut y)
        .expect_err("another shape");
    assert!(
        matches!(error, kiln::Error::Device(DeviceError::WrongTarget { .. })),
        "{error}"
    );
    Ok(())
}

#[kernel]
fn carries(y: &mut [u32], n: u32) {
    let (mut a, mut b, mut c, mut d) = (1u32, 2u32, 3u32, 4u32);
    let (mut e, mut f, mut g, mut h) = (5u32, 6u32, 7u32, 8u32);
    for i in 0..n {
        barrier();
        a += i;
        b ^= a;
        c += b;
        d ^= c;
        e += d;
        f ^= e;
        g += f;
        h ^= g;
    }
    let i = thread_idx().x;
    if i < y.len() {
        y[i] = a ^ b ^ c ^ d ^ e ^ f ^ g ^ h;
    }
}

/// What is kept of a block between its barriers is much, and written in one order: code is a function of its
/// key.
#[test]
fn a_kernel_becomes_the_same_code_each_time() -> kiln::Result<()> {
    let code = || -> kiln::Result<String> {
        let jit = Jit::with(Device::cpu(), HookSet::new(), JitOptions::default());
        let mut y = jit.zeros::<u32>(64)?;
        // More than one warp, so that the block is cut.
        let inspection = jit.inspect_block(&carries, 256, args!(&mut y, 4u32))?;
        Ok(inspection.unoptimized_llvm()?.to_owned())
    };
    let first = code()?;
    for _ in 0..4 {
        assert_eq!(code()?, first);
    }
    Ok(())
}

/// Numbers of the next lane, and sines of them.
#[kernel]
fn next_lane(x: &mut [u32]) {
    let i = thread_idx().x;
    let next = shuffle_down(FULL_MASK, i as u32, 1, 32);
    x[i] = next + ((next as f32).sin() * 1000.0) as u32;
}

/// Launches a kernel on one block of 32 zeros, its code once out of the process and back.
fn with_kept_code(jit: &Jit, kernel: &impl AsKernel) -> kiln::Result<(KeptCode, Vec<u32>)> {
    let mut x = jit.zeros::<u32>(32)?;
    let inspected = jit.inspect(kernel, args!(&mut x))?;
    let mut compiled = inspected
        .compiled()
        .expect("it has one for all blocks")
        .clone();
    let Code::Custom(code) = &compiled.code else {
        panic!("it is of a form of its own")
    };
    let kept = code.keep();
    let isa = jit
        .options()
        .isas
        .of(jit.target())
        .expect("it made the code");
    compiled.code = isa.read_kept(&kept).expect("it is its own form");
    let cut = KeptCode {
        bytes: kept.bytes[..7].to_vec(),
        ..kept.clone()
    };
    assert!(isa.read_kept(&cut).is_none());

    let (backend, info) = (jit.device().backend(), &compiled.info);
    let loaded = backend.load(&compiled)?;
    let mut block = LaunchBlock::new();
    let mut given = LaunchArgs::new(&info.layout, &mut block);
    let ParamKind::Slice { address, length } = info.layout.params[0] else {
        panic!("its parameter is a slice")
    };
    given.put_number(address, x.address());
    given.put_number(length, 32);
    let config = LaunchConfig::new(1, 32);
    backend.launch(loaded.as_ref(), info, &config, &mut given, None)?;
    jit.synchronize()?;
    Ok((kept, x.to_vec()?))
}

#[test]
fn code_of_its_own_form_is_kept_and_read_again() -> kiln::Result<()> {
    let indices: Vec<u32> = (0..32).collect();
    let (kept, x) = with_kept_code(&tapes(), &triple)?;
    assert_eq!(x, indices);
    assert!(kept.rows.is_empty());

    let device = OnHostOptions::default().device();
    let jit = Jit::with(device, kiln::hooks::standard(), JitOptions::default());
    assert_eq!(with_kept_code(&jit, &triple)?.1, indices);
    let (kept, x) = with_kept_code(&jit, &next_lane)?;
    let mut launched = jit.zeros::<u32>(32)?;
    next_lane.launch(&jit, (1, 32), &mut launched)?;
    assert_eq!(x, launched.to_vec()?);
    assert_eq!(x[0], 842);
    let rows: Vec<&str> = kept.rows.iter().map(|row| row.name).collect();
    assert!(rows.iter().any(|row| row.contains("shuffle")), "{rows:?}");
    Ok(())
}
