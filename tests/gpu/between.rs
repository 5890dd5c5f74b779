//! Copies between two contexts on a GPU, and between two GPUs: what they hold, in which order, and the faults behind them.
//!
//! Two contexts of one device are to the driver what contexts of two devices are, but for the way that the bytes take. So
//! all of it is played in two contexts where there is one GPU, and on two where there are.

use cudarc::driver;
use kiln::core::region::Region;
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

/// A `Jit` of the device, and one in a context of its own, which lives until this was done.
fn in_two_contexts(run: fn(&Jit, &Jit) -> Outcome) -> Outcome {
    let context = driver::CudaContext::new_non_primary(0, 0)?;
    // SAFETY: the context lives until the end of this function, and the device does not.
    let other = unsafe { Device::adopt_cuda(0, context.cu_ctx().cast())? };
    run(&Jit::on(Device::cuda(0)?), &Jit::on(other))
}

pub(crate) fn orders_copies() -> Outcome {
    in_two_contexts(orders)
}

pub(crate) fn tells_faults() -> Outcome {
    in_two_contexts(faults)
}

/// All of it, and parts, tensors and events, between the first two devices, there and back. On a machine of one device it
/// says so.
pub(crate) fn two_devices() -> Outcome {
    let second = match Device::cuda(1) {
        Ok(second) => Jit::on(second),
        Err(error) => {
            println!("nothing was copied between two devices: {error}");
            return Ok(());
        }
    };
    let first = Jit::on(Device::cuda(0)?);
    println!("copies between {:?} and {:?}", first, second);
    for (one, other) in [(&first, &second), (&second, &first)] {
        orders(one, other)?;
        faults(one, other)?;
        parts(one, other)?;
        tensors(one, other)?;
        events(one, other)?;
    }
    Ok(())
}

/// Parts of buffers, at offsets that are multiples of nothing, and rectangles.
fn parts(first: &Jit, second: &Jit) -> Outcome {
    let numbers: Vec<u32> = (0..1000).collect();
    let x = first.upload(&numbers)?;
    let mut y = second.zeros::<u32>(1000)?;
    for (start, len, to) in [(3, 500, 1), (700, 300, 699), (1, 0, 5), (999, 1, 0)] {
        y.fill(7)?;
        y[to..to + len].copy_from(&x[start..start + len])?;
        let mut expected = vec![7; 1000];
        expected[to..to + len].copy_from_slice(&numbers[start..start + len]);
        if y.to_vec()? != expected {
            return Err(format!("{len} values from {start} on, to {to}: others came").into());
        }
    }
    let (whole, small) = (Region::of([10, 100]), Region::of([4, 30]));
    let mut z = second.zeros::<u32>(120)?;
    z.copy_region(&small, &x, &whole.part([2..6, 50..80])?)?;
    let expected = (0..120).map(|i| 100 * (2 + i / 30) + 50 + i % 30);
    match z.to_vec()?.into_iter().eq(expected) {
        true => Ok(()),
        false => Err("a rectangle has other values".into()),
    }
}

/// A tensor stays on its device: that of the other refuses it, and its own, where the memory is a buffer already.
fn tensors(first: &Jit, second: &Jit) -> Outcome {
    let stream = second.stream()?;
    let x = first.upload(&[1u32, 2, 3, 4])?;
    let mut y = second.zeros::<u32>(4)?;
    y.copy_from(&x)?;
    let tensor = y.into_tensor(&[2, 2])?.hand_over(stream.tensor_stream())?;
    // SAFETY: it is a tensor, and nobody else uses it.
    let taken = unsafe { first.take_tensor::<u32>(tensor) };
    if taken.is_ok() {
        return Err("a tensor of another device was taken".into());
    }
    // SAFETY: as above; a tensor that was refused is still the caller's.
    match unsafe { stream.take_tensor::<u32>(tensor) } {
        Ok(_) => Err("memory became a buffer twice".into()),
        Err(error) if error.to_string().contains("is a buffer already") => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// An event of the one is none of the other's; streams of both order their own work.
fn events(first: &Jit, second: &Jit) -> Outcome {
    let streams = [first.stream()?, second.stream()?];
    let event = streams[0].record()?;
    if streams[1].wait(&event).is_ok() {
        return Err("a stream waits for an event of another device".into());
    }
    event.synchronize()?;
    Ok(())
}

/// Each round the one device makes numbers, the other adds them up, and the sums go back and forth.
fn orders(first: &Jit, second: &Jit) -> Outcome {
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
fn faults(first: &Jit, second: &Jit) -> Outcome {
    let (mut x, mut y) = (first.upload(&[1u32; 4])?, second.zeros::<u32>(4)?);
    beyond.launch(first, (1, 1), &mut x)?;
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
