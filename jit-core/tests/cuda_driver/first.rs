//! A device's first buffers, which are not of the pool: what is asked of the driver for them, who gets them again, and when
//! they are freed.

use std::collections::BTreeMap;

use expect_test::expect;
use kiln_jit_core::args;
use kiln_jit_core::build::Kernel;
use kiln_jit_core::error::Result;
use kiln_jit_core::hook::HookSet;
use kiln_jit_core::ir::Type;
use kiln_jit_core::jit::Jit;
use kiln_jit_core::runtime::Buffer;

use super::fake::{Fake, Ledger};
use super::hooked::jit;

/// What makes and frees memory, as often as it was called, but for the record of faults.
pub(super) fn calls(fake: &Fake) -> [u64; 4] {
    let calls = fake.calls_of();
    let names = [
        "cuMemAlloc_v2",
        "cuMemFree_v2",
        "cuMemAllocFromPoolAsync",
        "cuMemFreeAsync",
    ];
    let [alloc, free, pool_alloc, pool_free] =
        names.map(|name| calls.get(name).copied().unwrap_or(0));
    let is_open = fake.ledger().pinned > 0;
    [alloc - 1, free - u64::from(!is_open), pool_alloc, pool_free]
}

fn kept(jit: &Jit) -> [u64; 2] {
    let stats = jit.device().memory_stats();
    [stats.used, stats.pooled]
}

fn writes() -> Result<Kernel> {
    Kernel::build("uses_w", |k| k.slice_mut("x", Type::U32).at(0).set(1u32))
}

/// Two vectors up, launches, one down: what a program asks of the driver until the device is open, and from there on.
#[test]
fn a_program_that_ends_needs_no_pool() -> Result<()> {
    /// What is asked of the driver before each other call.
    const OF_THE_THREAD: [&str; 2] = ["cuCtxGetCurrent", "cuThreadExchangeStreamCaptureMode"];
    let fake = Fake::new();
    let jit = jit(&fake, HookSet::new());
    let opened = fake.calls_of();
    let (x, mut y) = (jit.upload(&[1u32; 64])?, jit.upload(&[2u32; 64])?);
    let kernel = Kernel::build("uses_rw", |k| {
        k.slice("x", Type::U32);
        k.slice_mut("y", Type::U32);
    })?;
    for _ in 0..100 {
        jit.launch(&kernel, 1, 64, args!(&x, &mut y))?;
    }
    let mut values = [0; 64];
    y.read_into(0, &mut values)?;
    drop((x, y, kernel, jit));
    let asked = |before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>| -> String {
        now.iter()
            .map(|(name, count)| (count - before.get(name).unwrap_or(&0), name))
            .filter(|(count, name)| *count > 0 && !OF_THE_THREAD.contains(&name.as_str()))
            .map(|(count, name)| format!("{count} {name}\n"))
            .collect()
    };
    expect![[r#"
        1 cuCtxSetCurrent
        1 cuDeviceGet
        22 cuDeviceGetAttribute
        1 cuDeviceGetCount
        1 cuDeviceGetName
        1 cuDevicePrimaryCtxRetain
        1 cuDeviceTotalMem_v2
        1 cuDriverGetVersion
        1 cuInit
        1 cuMemAlloc_v2
        1 cuMemHostAlloc
        1 cuMemHostGetDevicePointer_v2
        1 cuMemPoolCreate
        1 cuMemPoolSetAttribute
        1 cuMemcpyHtoD_v2
    "#]]
    .assert_eq(&asked(&BTreeMap::new(), &opened));
    expect![[r#"
        1 cuCtxSynchronize
        6 cuFuncGetAttribute
        1 cuFuncSetAttribute
        100 cuLaunchKernel
        2 cuMemAlloc_v2
        1 cuMemFreeHost
        3 cuMemFree_v2
        1 cuMemPoolDestroy
        1 cuMemcpyDtoH_v2
        2 cuMemcpyHtoD_v2
        1 cuModuleGetFunction
        1 cuModuleLoadDataEx
        1 cuModuleUnload
        1 cuStreamSynchronize
    "#]]
    .assert_eq(&asked(&opened, &fake.calls_of()));
    assert_eq!((fake.race(), fake.ledger()), (None, Ledger::default()));
    Ok(())
}

/// After the first sixteen memory is the pool's, whether these are still in use or not.
#[test]
fn later_buffers_are_of_the_pool() -> Result<()> {
    let fake = Fake::new();
    let jit = jit(&fake, HookSet::new());
    let many: Vec<Buffer<u8>> = (1..=18).map(|len| jit.zeros(len)).collect::<Result<_>>()?;
    assert_eq!(calls(&fake), [16, 0, 2, 0]);
    drop(many);
    // What the pool gave are whole words, 20 bytes for 17 and 18; it hears of them later (`given_up`).
    assert_eq!(
        (calls(&fake), kept(&jit)),
        ([16, 0, 2, 0], [0, 16 * 17 / 2 + 2 * 20])
    );
    drop(jit);
    assert_eq!(
        (calls(&fake), fake.ledger()),
        ([16, 16, 2, 2], Ledger::default())
    );

    let fake = Fake::new();
    let jit = super::hooked::jit(&fake, HookSet::new());
    let (x, _y) = (jit.zeros::<u8>(80)?, jit.zeros::<u8>(80)?);
    drop(x);
    let _z = jit.zeros::<u8>(40)?;
    let _again = jit.zeros::<u8>(80)?;
    assert_eq!(calls(&fake), [3, 0, 0, 0]);
    Ok(())
}

/// What is given up goes to the next of its length in the stream that is behind its uses, and to no other stream.
#[test]
fn what_is_given_up_is_used_again_behind_its_uses() -> Result<()> {
    let fake = Fake::new();
    let jit = jit(&fake, HookSet::new());
    let streams = [jit.stream()?, jit.stream()?];
    let kernel = writes()?;
    fake.set_lazy(true);
    fake.set_busy(true);
    // SAFETY: nobody reads it, here and below.
    let uninit = || unsafe { jit.uninit::<u32>(4) };
    let mut x = uninit()?;
    let place = x.address();
    streams[0].launch(&kernel, 1, 1, args!(&mut x))?;
    let waits = fake.waits();
    drop(x);
    assert_eq!(fake.waits(), waits, "nobody waits for who drops a buffer");
    // SAFETY: as above.
    let other = unsafe { streams[1].uninit::<u32>(4)? };
    assert_ne!(other.address(), place);
    assert_ne!(
        uninit()?.address(),
        place,
        "the device's own stream is another, too"
    );
    // SAFETY: as above.
    let longer = unsafe { streams[0].uninit::<u32>(5)? };
    assert_ne!(longer.address(), place);
    // SAFETY: as above.
    let mut again = unsafe { streams[0].uninit::<u32>(4)? };
    assert_eq!(again.address(), place);
    assert_eq!(kept(&jit)[0], 16 + 20 + 16);
    streams[0].launch(&kernel, 1, 1, args!(&mut again))?;
    streams[1].launch(&kernel, 1, 1, args!(&mut again))?;
    drop((other, longer, again));
    assert_eq!((calls(&fake)[1], fake.race()), (0, None));
    fake.set_busy(false);
    Ok(())
}

/// Nobody waits for what is given up, and it is freed where work is done anyhow.
#[test]
fn what_is_given_up_is_freed_once_work_is_done() -> Result<()> {
    let fake = Fake::new();
    let jit = jit(&fake, HookSet::new());
    let stream = jit.stream()?;
    let kernel = writes()?;
    let mut x = jit.zeros::<u32>(4)?;
    fake.set_lazy(true);
    fake.set_busy(true);
    stream.launch(&kernel, 1, 1, args!(&mut x))?;
    drop(x);
    jit.device().trim()?;
    assert_eq!(
        (calls(&fake)[1], kept(&jit)),
        (0, [0, 16]),
        "work may use it"
    );
    fake.set_busy(false);
    // A driver that refuses is asked again.
    fake.fail("cuMemFree_v2", 1, 1);
    jit.synchronize()?;
    assert_eq!((calls(&fake)[1], kept(&jit)), (1, [0, 16]));
    jit.synchronize()?;
    assert_eq!((calls(&fake)[1], kept(&jit)), (2, [0, 0]));
    jit.synchronize()?;
    assert_eq!((calls(&fake)[1], fake.race()), (2, None));
    Ok(())
}

#[test]
fn what_is_given_up_is_freed_when_there_is_nothing_to_wait_for() -> Result<()> {
    let fake = Fake::new();
    let jit = jit(&fake, HookSet::new());
    drop(jit.zeros::<u8>(64)?);
    assert_eq!(kept(&jit), [0, 64]);
    jit.device().trim()?;
    assert_eq!((calls(&fake)[1], kept(&jit)), (1, [0, 0]));
    Ok(())
}

#[test]
fn what_is_given_up_is_freed_before_memory_is_out() -> Result<()> {
    let fake = Fake::new();
    fake.set(12080, 1, 0, 100_000);
    let jit = jit(&fake, HookSet::new());
    let kernel = writes()?;
    let stream = jit.stream()?;
    fake.set_lazy(true);
    let mut x = jit.zeros::<u32>(15_000)?;
    stream.launch(&kernel, 1, 1, args!(&mut x))?;
    drop(x);
    let y = jit.zeros::<u8>(70_000)?;
    assert_eq!(
        (calls(&fake)[1], kept(&jit), fake.race()),
        (1, [70_000, 0], None)
    );
    drop((y, stream, jit));
    assert_eq!(fake.ledger(), Ledger::default());
    Ok(())
}

/// At the end of the device its work is waited for, whatever stream has it.
#[test]
fn what_is_given_up_is_freed_behind_work_at_the_end() -> Result<()> {
    // The record of the stream's faults is freed first.
    for (refused, nth) in [("", 1), ("cuMemFree_v2", 2), ("cuCtxSynchronize", 1)] {
        let fake = Fake::new();
        let jit = jit(&fake, HookSet::new());
        let stream = jit.stream()?;
        let kernel = writes()?;
        fake.set_lazy(true);
        let mut x = jit.zeros::<u32>(4)?;
        stream.launch(&kernel, 1, 1, args!(&mut x))?;
        fake.fail(refused, nth, 1);
        drop((x, kernel, stream));
        drop(jit);
        assert_eq!(
            (fake.race(), fake.ledger()),
            (None, Ledger::default()),
            "{refused}"
        );
    }
    Ok(())
}

/// What is left to other code is nobody's here.
#[test]
fn what_is_left_to_others_is_not_freed() -> Result<()> {
    let fake = Fake::new();
    let jit = jit(&fake, HookSet::new());
    let x = jit.upload(&[7u32; 4])?;
    let address = x.into_raw()?;
    drop(jit.zeros::<u32>(4)?);
    jit.synchronize()?;
    assert_eq!((calls(&fake), fake.ledger().memory), ([2, 1, 0, 0], 2));
    // SAFETY: it is the memory that was left, of as many elements.
    let again = unsafe { Buffer::<u32>::from_raw(jit.device(), address, 4)? };
    assert_eq!(again.to_vec()?, [7; 4]);
    // Of other code it is memory as any other, and freed at once.
    drop(again);
    assert_eq!(calls(&fake)[1], 2);
    drop(jit);
    assert_eq!(fake.ledger(), Ledger::default());
    Ok(())
}
