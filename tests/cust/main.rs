//! Kiln's kernels on memory, streams and contexts of cust: in the primary context, which both share, and in one of
//! cust's own.
//!
//! cust links the driver, so this is a program by itself. Without a CUDA toolkit it is built against any library of that
//! name, `CUDA_LIBRARY_PATH=FOLDER cargo build` with `FOLDER/lib64/libcuda.so`, as `cargo xtask bundle` does;
//! `DOCS_RS=1 cargo check` needs none.

use std::error::Error;
use std::sync::Arc;

use cust::context::ContextHandle as _;
use cust::context::legacy::{Context as OwnContext, ContextFlags, ContextStack};
use cust::memory::{AsyncCopyDestination as _, CopyDestination as _, DeviceBuffer};
use cust::stream::{Stream, StreamFlags};
use kiln::core::lent::{Lent, LentMut};
use kiln::prelude::*;

#[kernel]
fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    let i = global_id().x;
    if i < y.len() {
        y[i] += a * x[i];
    }
}

const COUNT: usize = 1 << 12;

/// Computes on buffers of cust's in the current context, which is the device's.
fn compute(device: Device) -> Result<(), Box<dyn Error>> {
    let jit = Jit::on(device);
    let host: Vec<f32> = (0..COUNT).map(|i| i as f32).collect();
    let x = DeviceBuffer::from_slice(&host)?;
    let mut y = DeviceBuffer::from_slice(&host)?;
    // SAFETY: cust's copies have ended; the buffers are of the device's context, and what is returned is dropped.
    let (lent, mut out) = unsafe {
        (
            Lent::new(jit.device(), &x)?,
            LentMut::new(jit.device(), &mut y)?,
        )
    };
    saxpy.launch(&jit, (grid_for(COUNT, 256), 256), 2.0, &lent, &mut out)?;
    drop((lent, out));
    let mut sums = vec![0.0; COUNT];
    y.copy_to(&mut sums)?;
    println!("lent: {:?} of {:?}", &sums[..4], &host[..4]);

    in_stream(&jit, &host)?;
    let ours = jit.upload(&host)?.into_raw()?;
    // SAFETY: Kiln allocates by `cuMemAlloc`, in this context, and has left it.
    let theirs = unsafe {
        DeviceBuffer::<f32>::from_raw_parts(cust::memory::DevicePointer::from_raw(ours), COUNT)
    };
    theirs.copy_to(&mut sums)?;
    println!("handed over: {}", sums == host);
    Ok(())
}

/// Computes in a stream of cust's, between copies that cust makes there; nobody waits in between.
fn in_stream(jit: &Jit, host: &[f32]) -> Result<(), Box<dyn Error>> {
    let stream = Arc::new(Stream::new(StreamFlags::NON_BLOCKING, None)?);
    let theirs = jit.adopt_stream(stream.clone())?;
    let (mut x, mut sums) = (DeviceBuffer::zeroed(COUNT)?, vec![0.0; COUNT]);
    // SAFETY: both arrays live until the stream was waited for.
    unsafe { x.async_copy_from(host, &stream)? };
    {
        // SAFETY: what was begun on it is in the stream that uses it.
        let mut lent = unsafe { theirs.lend_mut(&mut x)? };
        let y = theirs.upload(host)?;
        saxpy.launch(&theirs, (grid_for(COUNT, 256), 256), 1.0, &y, &mut lent)?;
    }
    // SAFETY: as above.
    unsafe { x.async_copy_to(&mut sums, &stream)? };
    stream.synchronize()?;
    let is_double = sums.iter().zip(host).all(|(sum, x)| *sum == 2.0 * x);
    println!("in a stream of cust's: {is_double}");
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let context = cust::quick_init()?;
    compute(Device::cuda(0)?)?;
    drop(context);

    let own =
        OwnContext::create_and_push(ContextFlags::MAP_HOST, cust::device::Device::get_device(0)?)?;
    let raw = own.get_inner().cast();
    // SAFETY: it lives until the end of this function, and the device does not.
    compute(unsafe { Device::adopt_cuda(0, raw)? })?;
    ContextStack::pop()?;
    drop(own);
    Ok(())
}
