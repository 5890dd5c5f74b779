//! Small buffers of the pool that nobody has any more: who gets them again, and when they go back to the pool.

use kiln_jit_core::args;
use kiln_jit_core::build::Kernel;
use kiln_jit_core::error::Result;
use kiln_jit_core::ir::Type;
use kiln_jit_core::jit::Jit;
use kiln_jit_core::runtime::Buffer;

use super::fake::{Fake, Ledger};
use super::first::calls;
use super::pool::pooled_jit;

/// The most bytes that are given up, and how many buffers are.
const SMALL: usize = 1 << 20;
const MOST: usize = 32;

/// What the pool was asked for since then: allocations, and what was freed.
fn asked(fake: &Fake, before: [u64; 4]) -> [u64; 2] {
    let [.., allocated, freed] = calls(fake);
    [allocated - before[2], freed - before[3]]
}

fn kept(jit: &Jit) -> u64 {
    jit.device().memory_stats().pooled
}

/// Who has dropped a buffer and makes one of its length in the same stream gets it again, without a word to the driver; in
/// other streams nobody does.
#[test]
fn small_buffers_are_used_again_behind_their_uses() -> Result<()> {
    let fake = Fake::new();
    let jit = pooled_jit(&fake)?;
    let streams = [jit.stream()?, jit.stream()?];
    let writes = Kernel::build("uses_w", |k| k.slice_mut("x", Type::U32).at(0).set(1u32))?;
    fake.set_lazy(true);
    fake.set_busy(true);
    // SAFETY: nobody reads it, here and below.
    let uninit = |stream: usize, len| unsafe { streams[stream].uninit::<u32>(len) };
    let mut x = uninit(0, 4)?;
    let place = x.address();
    streams[0].launch(&writes, 1, 1, args!(&mut x))?;
    let (waits, before, all) = (fake.waits(), calls(&fake), fake.calls_of());
    drop(x);
    let mut again = uninit(0, 4)?;
    assert_eq!(again.address(), place);
    assert_eq!((fake.waits(), fake.calls_of()), (waits, all));
    streams[0].launch(&writes, 1, 1, args!(&mut again))?;
    drop(again);
    // SAFETY: as above.
    let own = unsafe { jit.uninit::<u32>(4)? };
    let others = [uninit(1, 4)?, uninit(0, 5)?, own];
    assert!(others.iter().all(|other| other.address() != place));
    assert_eq!(asked(&fake, before), [3, 0]);
    assert_eq!(uninit(0, 4)?.address(), place);
    drop(others);
    fake.set_busy(false);
    jit.synchronize()?;
    assert_eq!(asked(&fake, before), [3, 0], "a wait gives nothing back");
    drop((streams, writes, jit));
    assert_eq!((fake.race(), fake.ledger()), (None, Ledger::default()));
    Ok(())
}

#[test]
fn the_oldest_goes_back_to_the_pool_where_there_are_many() -> Result<()> {
    let fake = Fake::new();
    let jit = pooled_jit(&fake)?;
    let lens = 1..MOST + 4;
    let many: Vec<Buffer<u32>> = lens.map(|len| jit.zeros(len)).collect::<Result<_>>()?;
    let places: Vec<u64> = many.iter().map(|buffer| buffer.address()).collect();
    let before = calls(&fake);
    drop(many);
    assert_eq!(asked(&fake, before), [0, 3]);
    // The first three are the pool's; the fourth is still there.
    let (fourth, third) = (jit.zeros::<u32>(4)?, jit.zeros::<u32>(3)?);
    assert_eq!(fourth.address(), places[3]);
    assert_eq!(asked(&fake, before), [1, 3]);
    drop((fourth, third));
    assert_eq!(asked(&fake, before), [1, 4]);
    // What the driver refuses stays, and is tried again.
    fake.fail("cuMemFreeAsync", 1, 1);
    drop(jit.zeros::<u32>(100)?);
    assert_eq!(asked(&fake, before), [2, 5]);
    drop(jit.zeros::<u32>(101)?);
    drop(jit);
    assert_eq!(fake.ledger(), Ledger::default());
    Ok(())
}

#[test]
fn large_buffers_are_the_pools_at_once() -> Result<()> {
    let fake = Fake::new();
    let jit = pooled_jit(&fake)?;
    let before = calls(&fake);
    drop(jit.zeros::<u8>(SMALL)?);
    assert_eq!(asked(&fake, before), [1, 0]);
    drop(jit.zeros::<u8>(SMALL + 4)?);
    assert_eq!(asked(&fake, before), [2, 1]);
    Ok(())
}

/// A program that says how much is kept is taken at its word.
#[test]
fn what_is_kept_by_a_limit_is_the_pools() -> Result<()> {
    let fake = Fake::new();
    let jit = pooled_jit(&fake)?;
    let before = calls(&fake);
    drop(jit.zeros::<u32>(10)?);
    jit.device().keep_freed(1 << 20)?;
    assert_eq!(asked(&fake, before), [1, 1]);
    drop(jit.zeros::<u32>(10)?);
    assert_eq!(asked(&fake, before), [2, 2]);
    jit.device().keep_freed(u64::MAX)?;
    drop(jit.zeros::<u32>(10)?);
    drop(jit.zeros::<u32>(10)?);
    assert_eq!(asked(&fake, before), [3, 2]);
    Ok(())
}

#[test]
fn what_is_kept_goes_back_where_the_program_asks() -> Result<()> {
    let fake = Fake::new();
    let jit = pooled_jit(&fake)?;
    drop((jit.zeros::<u32>(10)?, jit.zeros::<u32>(20)?));
    assert_eq!((fake.pooled()[1], kept(&jit)), (0, 120));
    fake.fail("cuMemFreeAsync", 1, 1);
    jit.device().trim()?;
    let refused = kept(&jit);
    assert!([40, 80].contains(&refused), "{refused}");
    jit.device().trim()?;
    assert_eq!(kept(&jit), 0);
    drop(jit);
    assert_eq!(fake.ledger(), Ledger::default());
    Ok(())
}

/// A lost context asks the driver for nothing, and gives nothing out.
#[test]
fn a_lost_context_gives_nothing_out() -> Result<()> {
    let fake = Fake::new();
    let jit = pooled_jit(&fake)?;
    let x = jit.zeros::<u32>(10)?;
    drop(jit.zeros::<u32>(20)?);
    fake.fail("cuCtxSynchronize", 1, 700);
    assert!(jit.synchronize().is_err());
    assert!(jit.zeros::<u32>(20).is_err());
    let before = calls(&fake);
    drop(x);
    drop(jit);
    assert_eq!(asked(&fake, before), [0, 0]);
    Ok(())
}
