//! The pool that buffers come from: what it keeps, gives back, and is freed into in which order.

use expect_test::expect;
use kiln_jit_core::args;
use kiln_jit_core::build::Kernel;
use kiln_jit_core::hook::HookSet;
use kiln_jit_core::ir::Type;
use kiln_jit_core::jit::Jit;
use kiln_jit_core::runtime::Buffer;

use super::fake::{Fake, Ledger};
use super::hooked::jit;

type Result<T, E = kiln_jit_core::error::Error> = std::result::Result<T, E>;

fn stats(jit: &Jit) -> [u64; 3] {
    let stats = jit.device().memory_stats();
    [stats.used, stats.peak, stats.pooled]
}

/// A `Jit` whose device has had its first buffers, so that memory is the pool's.
pub(super) fn pooled_jit(fake: &Fake) -> Result<Jit> {
    let jit = jit(fake, HookSet::new());
    let first: Vec<Buffer<u8>> = (0..16).map(|_| jit.zeros(1)).collect::<Result<_>>()?;
    drop(first);
    jit.synchronize()?;
    Ok(jit)
}

#[test]
fn freed_memory_is_kept_and_given_back() -> Result<()> {
    let fake = Fake::new();
    let jit = pooled_jit(&fake)?;
    assert_eq!(stats(&jit), [0, 16, 0]);
    let (x, y) = (jit.zeros::<u32>(1000)?, jit.upload(&[7u8; 96])?);
    assert_eq!(stats(&jit), [4096, 4096, 0]);
    drop(x);
    assert_eq!(stats(&jit), [96, 4096, 4000]);
    // As long as it is small and nobody says how much is kept, the pool does not hear of it (`given_up`).
    assert_eq!(fake.pooled(), [1, 0, u64::MAX]);
    let z = jit.zeros::<u32>(500)?;
    assert_eq!(stats(&jit), [2096, 4096, 4000]);
    jit.device().keep_freed(1 << 20)?;
    assert_eq!(fake.pooled(), [1, 4000, 1 << 20]);
    jit.device().trim()?;
    assert_eq!(stats(&jit), [2096, 4096, 0]);
    drop((y, z, jit));
    assert_eq!((fake.pooled()[0], fake.ledger()), (0, Ledger::default()));
    Ok(())
}

#[test]
fn devices_without_pools_free_at_once() -> Result<()> {
    let fake = Fake::new();
    fake.set_pools(false);
    let jit = jit(&fake, HookSet::new());
    drop(jit.zeros::<u32>(1000)?);
    jit.device().keep_freed(1 << 20)?;
    jit.device().trim()?;
    assert_eq!(stats(&jit), [0, 4000, 0]);
    assert_eq!(fake.pooled(), [0; 3]);
    Ok(())
}

/// An allocation is work of the device's own stream, which others wait for, and an end is work of a stream that has used
/// the memory, which waits for the others. The host waits for nobody.
#[test]
fn allocations_are_ordered_by_their_uses() -> Result<()> {
    let fake = Fake::new();
    let jit = pooled_jit(&fake)?;
    let streams = [jit.stream()?, jit.stream()?];
    let kernel = Kernel::build("uses_w", |k| k.slice_mut("x", Type::U32).at(0).set(1u32))?;
    let reads = Kernel::build("uses_r", |k| {
        k.slice("x", Type::U32);
    })?;
    fake.set_lazy(true);
    fake.set_busy(true);
    for stream in &streams {
        // SAFETY: nobody reads it.
        let mut x = unsafe { jit.uninit::<u32>(4)? };
        stream.launch(&kernel, 1, 1, args!(&mut x))?;
        let waits = fake.waits();
        drop(x);
        assert_eq!(fake.waits(), waits);
    }
    // SAFETY: as above.
    let mut x = unsafe { jit.uninit::<u32>(4)? };
    for stream in &streams {
        stream.launch(&kernel, 1, 1, args!(&mut x))?;
    }
    x.write(&[1])?;
    drop(x);
    let x = jit.zeros::<u32>(4)?;
    for stream in &streams {
        stream.launch(&reads, 1, 1, args!(&x))?;
    }
    let waits = fake.waits();
    drop(x);
    assert_eq!(fake.waits() - waits, 1);
    assert_eq!(fake.race(), None);
    Ok(())
}

#[test]
fn what_is_kept_is_given_back_before_memory_is_out() -> Result<()> {
    let fake = Fake::new();
    fake.set(12080, 1, 0, 100_000);
    let jit = pooled_jit(&fake)?;
    drop(jit.zeros::<u8>(60_000)?);
    let x = jit.zeros::<u8>(70_000)?;
    let refused = jit.zeros::<u8>(40_000).map(drop).unwrap_err().to_string();
    expect!["out of device memory in cuMemAllocFromPoolAsync: asked for 40000 bytes, 29984 free of 100000; this program's buffers have 70000, and 0 are kept for later ones. Drop buffers, use smaller ones, or end other processes on the device; earlier buffers are intact"].assert_eq(&refused);
    assert_eq!(x.to_vec()?[..2], [0; 2]);
    fake.set_pinned_limit(50);
    let refused = jit.pinned(&[0u8; 100]).map(drop).unwrap_err().to_string();
    expect!["cuMemHostAlloc (2: out of memory): no 100 bytes of pinned memory of the host are left, beside 0 that this program has; drop what copies have given back, use smaller copies, or `write` and `to_vec`, which need none"].assert_eq(&refused);
    Ok(())
}

/// What a stream allocates is there for its work at once, and what waits for it are other streams alone.
#[test]
fn streams_allocate_for_themselves() -> Result<()> {
    let fake = Fake::new();
    let jit = pooled_jit(&fake)?;
    let streams = [jit.stream()?, jit.stream()?];
    let kernel = Kernel::build("uses_w", |k| k.slice_mut("x", Type::U32).at(0).set(1u32))?;
    fake.set_lazy(true);
    fake.set_busy(true);
    let waits = fake.waits();
    for stream in &streams {
        let mut x = stream.zeros::<u32>(4)?;
        stream.launch(&kernel, 1, 1, args!(&mut x))?;
        // SAFETY: nobody reads it.
        let mut y = unsafe { stream.uninit::<u32>(4)? };
        stream.launch(&kernel, 1, 1, args!(&mut y))?;
    }
    assert_eq!(fake.waits(), waits, "no stream waits for another");
    let mut x = streams[0].zeros::<u32>(4)?;
    streams[1].launch(&kernel, 1, 1, args!(&mut x))?;
    assert_eq!(fake.waits(), waits + 1);
    jit.launch(&kernel, 1, 1, args!(&mut x))?;
    drop(x);
    fake.set_busy(false);
    let uploaded = streams[1].upload(&[1u32, 2])?;
    assert_eq!(uploaded.to_vec()?, [1, 2]);
    assert_eq!(fake.race(), None);
    Ok(())
}

/// Pinned memory that is out: what copies that were given up have is waited for and given back, and it is tried once more.
#[test]
fn pinned_memory_is_given_back_before_it_is_out() -> Result<()> {
    let fake = Fake::new();
    let jit = pooled_jit(&fake)?;
    let mut x = jit.zeros::<u8>(800)?;
    fake.set_pinned_limit(1600);
    drop(x.write_later(jit.pinned(&[1u8; 800])?)?);
    fake.set_lazy(true);
    drop(x.write_later(jit.pinned(&[2u8; 800])?)?);
    let third = jit.pinned(&[3u8; 800])?;
    let refused = jit.pinned(&[4u8; 808]).map(drop).unwrap_err().to_string();
    expect!["cuMemHostAlloc (2: out of memory): no 808 bytes of pinned memory of the host are left, beside 800 that this program has; drop what copies have given back, use smaller copies, or `write` and `to_vec`, which need none"].assert_eq(&refused);
    drop(x.write_later(third)?);
    fake.set_lazy(false);
    assert_eq!(x.to_vec()?, [3; 800]);
    Ok(())
}
