//! Copies between two contexts on a GPU: what they hold, in which order, and the faults behind them.
//!
//! Two contexts of one device are to the driver what contexts of two devices are, but for the way that the bytes take.

use cudarc::driver;
use kiln::prelude::*;
use suite::Outcome;

const COUNT: usize = 1 << 22;

#[kernel]
fn count(x: &mut [u32], start: u32) {
    let i = global_id().x;
    if i < x.len() {
        x[i] = start + i as u32;
    }
}

#[kernel]
fn add(x: &mut [u32], y: &[u32]) {
    let i = global_id().x;
    if i < x.len() {
        x[i] += y[i];
    }
}

#[kernel]
fn beyond(x: &mut [u32]) {
    let i = x.len() + thread_idx().x;
    x[i] = 1;
}

/// Each round the one device makes numbers, the other adds them up, and the sums go back and forth.
pub(crate) fn orders_copies() -> Outcome {
    let context = driver::CudaContext::new_non_primary(0, 0)?;
    // SAFETY: the context lives until the end of this function, and the device does not.
    let other = unsafe { Device::adopt_cuda(0, context.cu_ctx().cast())? };
    let (first, second) = (Jit::on(Device::cuda(0)?), Jit::on(other));
    let (make, sum) = (first.stream()?, second.stream()?);
    let grid = ((COUNT / 256) as u32, 256);
    let (mut x, mut y) = (first.zeros::<u32>(COUNT)?, second.zeros::<u32>(COUNT)?);
    let (mut sums, mut back) = (second.zeros::<u32>(COUNT)?, first.zeros::<u32>(COUNT)?);
    for round in 0..20 {
        count.launch(&make, grid, &mut x, round)?;
        y.copy_from(&x)?;
        add.launch(&sum, grid, &mut sums, &y)?;
        back.copy_from(&sums)?;
        if round == 9 {
            // A device may have its buffers freed under way.
            y = second.zeros(COUNT)?;
        }
    }
    let expected = (0..COUNT as u32).map(|i| 190 + 20 * i);
    match back.to_vec()?.into_iter().eq(expected) {
        true => Ok(()),
        false => Err("the sums are not those of all rounds".into()),
    }
}

/// Who reads a copy is told of a fault on the device that it came from.
pub(crate) fn tells_faults() -> Outcome {
    let context = driver::CudaContext::new_non_primary(0, 0)?;
    // SAFETY: as above.
    let other = unsafe { Device::adopt_cuda(0, context.cu_ctx().cast())? };
    let (first, second) = (Jit::on(Device::cuda(0)?), Jit::on(other));
    let (mut x, mut y) = (first.upload(&[1u32; 4])?, second.zeros::<u32>(4)?);
    beyond.launch(&first, (1, 1), &mut x)?;
    y.copy_from(&x)?;
    match y.to_vec() {
        Err(error) if error.to_string().contains("index 4") => {}
        told => return Err(format!("the fault is not told: {told:?}").into()),
    }
    match y.to_vec()? == [1; 4] {
        true => Ok(()),
        false => Err("the copy has other values".into()),
    }
}
