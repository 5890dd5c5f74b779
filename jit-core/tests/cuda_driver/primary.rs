//! The reference to a device's primary context that a process keeps.

use kiln::core::runtime::cuda::CudaContext;
use kiln::prelude::*;

use crate::fake::{Fake, Ledger};

/// How often a primary context was retained, released and begun anew.
fn counts(fake: &Fake) -> [u64; 3] {
    let calls = fake.calls_of();
    [
        "cuDevicePrimaryCtxRetain",
        "cuDevicePrimaryCtxRelease_v2",
        "cuDevicePrimaryCtxReset_v2",
    ]
    .map(|call| calls.get(call).copied().unwrap_or_default())
}

#[test]
fn the_first_reference_is_kept_and_others_are_released() -> Result<(), Box<dyn std::error::Error>> {
    let fake = Fake::new();
    fake.set(12080, 2, 0, 1 << 30);
    drop(CudaContext::with_driver(fake.open()?, 0)?);
    assert_eq!(
        (counts(&fake), fake.ledger()),
        ([1, 0, 0], Ledger::default())
    );
    // Another object for the library is of the same process.
    let (driver, again) = (fake.open()?, fake.open()?);
    let both = [
        CudaContext::with_driver(driver, 0)?,
        CudaContext::with_driver(again, 0)?,
    ];
    assert_eq!((counts(&fake), fake.ledger().contexts), ([3, 0, 0], 2));
    drop(both);
    assert_eq!(
        (counts(&fake), fake.ledger()),
        ([3, 2, 0], Ledger::default())
    );
    // Each device has a context of its own.
    drop(CudaContext::with_driver(driver, 1)?);
    drop(CudaContext::with_driver(driver, 1)?);
    assert_eq!(
        (counts(&fake), fake.ledger()),
        ([5, 3, 0], Ledger::default())
    );
    assert_eq!(fake.race(), None);
    Ok(())
}

#[test]
fn a_device_begun_anew_keeps_nothing_of_before() -> Result<(), Box<dyn std::error::Error>> {
    let fake = Fake::new();
    let driver = fake.open()?;
    drop(CudaContext::with_driver(driver, 0)?);
    let jit = Jit::on(Device::cuda_of(driver, 0)?);
    // SAFETY: nothing else uses the fake driver.
    let again = unsafe { jit.reset() }?;
    // The context's reference and the process's, and that of the new one.
    assert_eq!(counts(&fake), [3, 2, 1]);
    drop((jit, again));
    assert_eq!(
        (counts(&fake), fake.ledger()),
        ([3, 2, 1], Ledger::default())
    );
    drop(CudaContext::with_driver(driver, 0)?);
    assert_eq!((counts(&fake), fake.race()), ([4, 3, 1], None));
    Ok(())
}
