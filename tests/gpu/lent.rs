//! Memory, streams and contexts of cudarc beside Kiln's, on a GPU.

use std::sync::Arc;

use cudarc::driver::{self, CudaSlice, CudaStream, DevicePtr as _};
use kiln::core::lent::{DeviceMemory, Lent, LentMut};
use kiln::prelude::*;
use suite::Outcome;

#[kernel]
fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    let i = global_id().x;
    if i < y.len() {
        y[i] += a * x[i];
    }
}

/// A slice of cudarc's, as the feature `cudarc` has it.
struct Slice(CudaSlice<f32>);

// SAFETY: cudarc frees it where it is dropped, and uses it in its stream alone.
unsafe impl DeviceMemory for Slice {
    type Element = f32;

    fn address(&self) -> u64 {
        let (address, order) = self.0.device_ptr(self.0.stream());
        drop(order);
        address
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn settle(&self) -> kiln::Result<()> {
        self.0
            .stream()
            .synchronize()
            .expect("the stream's work ends");
        Ok(())
    }
}

const COUNT: usize = 1 << 20;

/// Uploads by a stream of cudarc's, computes with Kiln, and reads by that stream.
fn compute(device: &Device, stream: &Arc<CudaStream>) -> Outcome {
    let jit = Jit::on(device.clone());
    let host: Vec<f32> = (0..COUNT).map(|i| i as f32).collect();
    let x = Slice(stream.clone_htod(&host)?);
    let mut y = Slice(stream.alloc_zeros(COUNT)?);
    for turn in 1..=3 {
        // SAFETY: `settle` waits for the stream, and what is returned is dropped.
        let (lent, mut out) = unsafe { (Lent::new(device, &x)?, LentMut::new(device, &mut y)?) };
        saxpy.launch(&jit, (grid_for(COUNT, 256), 256), 2.0, &lent, &mut out)?;
        jit.launch(
            &saxpy,
            grid_for(COUNT, 256),
            256,
            args!(1.0f32, &*lent, &mut *out),
        )?;
        drop((lent, out));
        let sums = stream.clone_dtoh(&y.0)?;
        let wrong = sums
            .iter()
            .zip(&host)
            .find(|(sum, x)| **sum != (3 * turn) as f32 * **x);
        if let Some((sum, x)) = wrong {
            return Err(format!("turn {turn}: {sum} of {x}").into());
        }
    }
    // What is Kiln's from here on is freed by Kiln, and the other way round.
    let ours = jit.upload(&host)?.into_raw()?;
    // SAFETY: Kiln allocates by `cuMemAlloc`, in this context, and has left it.
    let theirs: CudaSlice<f32> = unsafe { stream.upgrade_device_ptr(ours, COUNT) };
    match stream.clone_dtoh(&theirs)? == host {
        true => Ok(()),
        false => Err("the buffer has other values as a slice".into()),
    }
}

/// In the primary context, which both libraries share.
pub(crate) fn primary_context() -> Outcome {
    let context = driver::CudaContext::new(0)?;
    let device = Device::cuda(0)?;
    compute(&device, &context.new_stream()?)?;
    compute(&device, &context.default_stream())
}

/// In a context that cudarc has made, which outlives what Kiln does in it.
pub(crate) fn context_of_others() -> Outcome {
    let context = driver::CudaContext::new_non_primary(0, 0)?;
    {
        // SAFETY: the context lives until the end of this function, and the device does not.
        let device = unsafe { Device::adopt_cuda(0, context.cu_ctx().cast())? };
        compute(&device, &context.new_stream()?)?;
    }
    // It is still there.
    let stream = context.new_stream()?;
    let zeros: CudaSlice<f32> = stream.alloc_zeros(16)?;
    match stream.clone_dtoh(&zeros)? == [0.0; 16] {
        true => Ok(()),
        false => Err("the context gives other values than zeros".into()),
    }
}
