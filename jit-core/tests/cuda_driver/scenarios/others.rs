//! Scenarios with other code in the process: streams of theirs, tensors.

use kiln::core::lent::RawStream;
use kiln::core::lent::dlpack::Foreign;
use kiln::core::runtime::cuda::CudaContext;
use kiln::prelude::*;

use super::World;
use super::list::{Outcome, writes};

pub(super) fn adopts_streams(world: &World<'_>) -> Outcome {
    let context = CudaContext::with_driver(world.fake.open()?, 0)?;
    let theirs = context.create_stream()?;
    let write = writes()?;
    let mut x = world.jit.upload(&[1u32; 4])?;
    {
        // SAFETY: their stream outlives what is adopted.
        let raw = unsafe { RawStream::new(theirs.handle().as_raw()) };
        let stream = world.jit.adopt_stream(raw)?;
        stream.launch(&write, 1, 1, args!(&mut x))?;
        world.jit.launch(&write, 1, 1, args!(&mut x))?;
        assert_eq!(stream.raw_stream(), Some(theirs.handle().as_raw()));
        let y = stream.upload(&[2u32; 4])?;
        assert_eq!(y.to_vec()?, [2; 4]);
        drop(y);
        stream.synchronize()?;
    }
    assert_eq!(x.to_vec()?, [1; 4]);
    world.jit.synchronize()
}

pub(super) fn hands_tensors_on(world: &World<'_>) -> Outcome {
    // A library in the same context, which knows nothing of these buffers.
    let driver = world.fake.open()?;
    let own = CudaContext::with_driver(driver, 0)?;
    // SAFETY: it lives until the end of the function.
    let device = unsafe { Device::adopt_cuda_of(driver, 0, own.as_raw())? };
    let other = Jit::with(device, kiln::hooks::standard(), world.place.options());
    let stream = other.stream()?;
    let mut x = world.jit.upload(&[3u32; 6])?;
    world.jit.launch(&writes()?, 1, 1, args!(&mut x))?;
    let shared = x.into_tensor(&[2, 3])?;
    let tensor = shared.hand_over(stream.tensor_stream())?;
    // SAFETY: it is a tensor, and nobody else uses it.
    let taken = unsafe { stream.take_tensor(tensor) };
    let mut taken: Foreign<u32> = match taken {
        Ok(taken) => taken,
        Err(error) => {
            // SAFETY: it is still the caller's, who has it once.
            drop(unsafe { world.jit.take_tensor::<u32>(tensor) });
            return Err(error);
        }
    };
    stream.launch(&writes()?, 1, 1, args!(taken.as_mut()?))?;
    assert_eq!(taken.to_vec()?, [3; 6]);
    // SAFETY: no other code uses the memory afterwards.
    unsafe { stream.leave_tensor(taken) };
    stream.synchronize()
}
