//! Memory, streams, contexts and functions of cudarc beside Kiln's, on a GPU.

use std::ffi::CString;
use std::sync::Arc;

use cudarc::driver::{self, CudaSlice, CudaStream, DevicePtr as _};
use kiln::core::job::CompileOptions;
use kiln::core::lent::{DeviceMemory, Lent, LentMut, RawFunction};
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

/// A kernel as CUDA C++ has it: `axpy(float *y, const float *x, float a, unsigned n)`.
const AXPY: &str = "\
.version 7.8
.target sm_75
.address_size 64
.visible .entry axpy(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n)
{
    .reg .pred %p;
    .reg .f32 %f<4>;
    .reg .b32 %r<5>;
    .reg .b64 %d<6>;
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.u32 %r3, %r0, %r1, %r2;
    ld.param.u32 %r4, [n];
    setp.ge.u32 %p, %r3, %r4;
    @%p bra END;
    ld.param.u64 %d0, [y];
    ld.param.u64 %d1, [x];
    mul.wide.u32 %d2, %r3, 4;
    add.u64 %d3, %d0, %d2;
    add.u64 %d4, %d1, %d2;
    ld.global.f32 %f0, [%d3];
    ld.global.f32 %f1, [%d4];
    ld.param.f32 %f2, [a];
    fma.rn.f32 %f3, %f2, %f1, %f0;
    st.global.f32 [%d3], %f3;
END:
    ret;
}
";

/// Functions of other code among Kiln's launches, and Kiln's code launched by cudarc.
pub(crate) fn functions() -> Outcome {
    let context = driver::CudaContext::new(0)?;
    context.bind_to_thread()?;
    let text = CString::new(AXPY)?;
    // SAFETY: the text ends with NUL; the module stays loaded to the end of the process.
    let function = unsafe {
        let module = driver::result::module::load_data(text.as_ptr().cast())?;
        driver::result::module::get_function(module, c"axpy".to_owned())?
    };
    // SAFETY: as above.
    let raw = unsafe { RawFunction::new(function.cast()) };
    let jit = Jit::new()?;
    let axpy = jit.adopt_function("axpy", raw)?;
    let streams = [jit.stream()?, jit.stream()?];
    let host: Vec<f32> = (0..COUNT).map(|i| (i % 100) as f32).collect();
    let (x, mut y) = (jit.upload(&host)?, jit.zeros::<f32>(COUNT)?);
    let grid = grid_for(COUNT, 256);
    for round in 0..10 {
        let there = axpy.on(&streams[round % 2])?;
        // SAFETY: the parameters are those of the kernel, which stays below the count.
        unsafe { there.launch(grid, 256, args!(&mut y, &x, 2.0f32, COUNT as u32))? };
        saxpy.launch(&streams[1], (grid, 256), 1.0, &x, &mut y)?;
    }
    // SAFETY: it is refused.
    let refused = unsafe { axpy.launch(grid, 256, args!(&mut y, &x, 2.0f64, COUNT as u32)) };
    if !refused.is_err_and(|error| error.to_string().contains("[8, 8, 4, 4] bytes")) {
        return Err("a number of 8 bytes in the place of one of 4 is not refused".into());
    }
    let sums = y.to_vec()?;
    if let Some((sum, x)) = sums.iter().zip(&host).find(|(sum, x)| **sum != 30.0 * **x) {
        return Err(format!("{sum} of {x}").into());
    }
    of_ours(&context)
}

/// A kernel of Kiln's as cudarc launches it, in a stream of its own.
fn of_ours(context: &Arc<driver::CudaContext>) -> Outcome {
    // SAFETY: the kernel below stays within its slices, which are of one length.
    let compile = unsafe { CompileOptions::default().unchecked() };
    let options = JitOptions::default().compile(compile);
    let jit = Jit::with(Device::cuda(0)?, kiln::hooks::standard(), options);
    let (x, mut y) = (jit.upload(&[3.0f32; 64])?, jit.upload(&[1.0f32; 64])?);
    let ready = jit.compile(&saxpy, args!(2.0f32, &x, &mut y))?;
    let layout = &ready.info().layout;
    if let Some(slot) = layout.fault_channel {
        return Err(format!("a kernel without checks has a fault channel at {slot:?}").into());
    }
    let function = ready.raw_function(64)?.ok_or("a GPU has functions")?;
    jit.synchronize()?;
    let stream = context.new_stream()?;
    let (mut a, mut xs, mut ys, mut n) = (2.0f32, x.address(), y.address(), 64u32);
    let mut params = [
        (&raw mut a).cast(),
        (&raw mut xs).cast(),
        (&raw mut n).cast(),
        (&raw mut ys).cast(),
        (&raw mut n).cast(),
    ];
    let raw = stream.cu_stream();
    // SAFETY: the parameters are those of the layout, and the buffers are there until the stream was waited for.
    unsafe {
        let one = (1, 1, 1);
        driver::result::launch_kernel(function.cast(), one, (64, 1, 1), 0, raw, &mut params)?;
    }
    stream.synchronize()?;
    match y.to_vec()? == [7.0; 64] {
        true => Ok(()),
        false => Err("cudarc has launched it with other results".into()),
    }
}
