//! Scenarios of code and of what goes wrong: code that is unloaded, that has come with the program, who is called with
//! faults, a device that is begun anew.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use kiln::core::ahead;
use kiln::core::cache::CacheFolder;
use kiln::prelude::*;

use super::list::{Outcome, add, faults, raise, told};
use super::{Place, World};

pub(super) fn evicts_code(world: &World<'_>) -> Outcome {
    let device = world.jit.device().clone();
    let options = world.place.options().memory_bound(1);
    let jit = Jit::with(device, kiln::hooks::standard(), options);
    let stream = jit.stream()?;
    let mut x = jit.upload(&[1u32; 4])?;
    let sets = |n: u32| Kernel::build("sets", |k| k.slice_mut("x", k.ty::<u32>()).at(0).set(n));
    let kernels = [sets(1)?, sets(2)?, sets(3)?];
    for _ in 0..2 {
        for kernel in &kernels {
            stream.launch(kernel, 1, 1, args!(&mut x))?;
        }
    }
    assert!(jit.cache_stats().evictions > 0, "{:?}", jit.cache_stats());
    assert_eq!(x.to_vec()?, [1; 4]);
    jit.synchronize()
}

pub(super) fn is_called_with_faults(world: &World<'_>) -> Outcome {
    let count = Arc::new(AtomicU32::new(0));
    let counted = count.clone();
    let options = world.place.options();
    let options = options.on_fault(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let device = world.jit.device().clone();
    let jit = Jit::with(device, kiln::hooks::standard(), options);
    let mut x = jit.upload(&[1u32; 4])?;
    let ready = jit.compile(&faults()?, args!(&mut x))?;
    ready.launch(1, 1, args!(&mut x))?;
    raise(world, ready.info().kernel_tag);
    let result = told(jit.synchronize());
    if result.is_ok() {
        assert_eq!(count.load(Ordering::Relaxed), 1);
    }
    result
}

pub(super) fn has_shipped_code(world: &World<'_>) -> Outcome {
    let Place(Some(folder)) = world.place else {
        panic!("it has a folder");
    };
    let folder = &folder.join("shipped");
    if !folder.exists() {
        let machine = "sm_90".parse().expect("a machine");
        ahead::fill(folder, &[machine], |jit| {
            jit.keep(&add, 32, args!(&mut jit.zeros::<u32>(4)?, 0u32))
        })?;
    }
    let device = world.jit.device().clone();
    let options = JitOptions::default().cache(CacheFolder::Off);
    let jit = Jit::with(device, kiln::hooks::standard(), options.shipped(folder));
    let mut x = jit.upload(&[1u32; 32])?;
    jit.launch(&add, 1, 32, args!(&mut x, 1u32))?;
    assert_eq!(x.to_vec()?, [1; 32]);
    // What has come is compiled again where the driver does not load it, or is older than what it is for.
    let stats = jit.cache_stats();
    let is_newer = world.fake.open()?.version() >= 12_000;
    assert!(
        stats.compiles == 0 || world.fake.failed().is_some() || !is_newer,
        "{stats:?}"
    );
    Ok(())
}

pub(super) fn begins_anew(world: &World<'_>) -> Outcome {
    let driver = world.fake.open()?;
    let device = Device::cuda_of(driver, 1)?;
    let jit = Jit::with(device, kiln::hooks::standard(), world.place.options());
    let x = jit.upload(&[1u32; 4])?;
    // SAFETY: nothing else uses the device.
    let again = unsafe { jit.reset()? };
    let mut y = again.upload(&[2u32; 32])?;
    again.launch(&add, 1, 32, args!(&mut y, 1u32))?;
    assert_eq!(y.to_vec()?, [2; 32]);
    let lost = x.to_vec().expect_err("it was made before").to_string();
    assert!(lost.contains("was reset"), "{lost}");
    Ok(())
}
