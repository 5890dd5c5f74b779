//! What a kernel is told of where its slices begin: each whole buffer begins at a multiple of 16 bytes and more, a
//! slice may begin anywhere. Code that takes the one never gets the other.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Duration;

use expect_test::expect;
use kiln::core::abi::LaunchArgs;
use kiln::core::args::IntoArg;
use kiln::core::code::{CompiledKernel, KernelInfo};
use kiln::core::launch::LaunchError;
use kiln::core::runtime::{Backend, DeviceError, DeviceInfo, LoadedCode, Marker, OnHostOptions};
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;

type Result<T> = std::result::Result<T, DeviceError>;

/// A device that gives memory which begins `past` bytes behind that of another, on which kernels run.
struct Shifted {
    inner: Arc<dyn Backend>,
    past: u64,
}

impl Shifted {
    fn device(inner: &Device, past: u64) -> Device {
        let inner = inner.backend().clone();
        Device::of(Arc::new(Shifted { inner, past }))
    }
}

impl Backend for Shifted {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn alloc(&self, bytes: usize) -> Result<u64> {
        Ok(self.inner.alloc(bytes + 64)? + self.past)
    }

    fn free(&self, address: u64, bytes: usize) {
        self.inner.free(address - self.past, bytes + 64);
    }

    fn upload(&self, address: u64, bytes: &[MaybeUninit<u8>]) -> Result<()> {
        self.inner.upload(address, bytes)
    }

    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<()> {
        self.inner.download(address, bytes)
    }

    fn clear(&self, address: u64, bytes: usize) -> Result<()> {
        self.inner.clear(address, bytes)
    }

    fn load(&self, kernel: &CompiledKernel) -> Result<Box<dyn LoadedCode>> {
        self.inner.load(kernel)
    }

    fn launch(
        &self,
        code: &dyn LoadedCode,
        kernel: &Arc<KernelInfo>,
        config: &LaunchConfig,
        args: &mut LaunchArgs<'_>,
        limit: Option<Duration>,
    ) -> Result<()> {
        self.inner.launch(code, kernel, config, args, limit)
    }

    fn synchronize(&self) -> Result<()> {
        self.inner.synchronize()
    }

    fn mark(&self) -> Result<Box<dyn Marker>> {
        self.inner.mark()
    }

    fn elapsed_ms(&self, from: &dyn Marker, to: &dyn Marker) -> Result<f64> {
        self.inner.elapsed_ms(from, to)
    }
}

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Body {
    at: [f32; 3],
    mass: f32,
}

#[kernel]
fn masses(bodies: &[Body], out: &mut [f32]) {
    let i = global_id().x;
    if i < out.len() {
        let body = bodies[i];
        out[i] = body.mass * (body.at[0] + body.at[1] + body.at[2]);
    }
}

#[derive(KernelView)]
struct Bodies<'a> {
    bodies: &'a [Body],
}

#[kernel]
fn masses_of(view: Bodies<'_>, out: &mut [f32]) {
    let i = global_id().x;
    if i < out.len() {
        let body = view.bodies[i];
        out[i] = body.mass * (body.at[0] + body.at[1] + body.at[2]);
    }
}

fn bodies() -> Vec<Body> {
    let at = |i: u8| [f32::from(i), 1.0, 2.0];
    let body = |i: u8| Body {
        at: at(i),
        mass: f32::from(i % 5),
    };
    (0..40).map(body).collect()
}

fn expected() -> Vec<f32> {
    let mass = |body: &Body| body.mass * (body.at[0] + body.at[1] + body.at[2]);
    bodies().iter().map(mass).collect()
}

/// How a kernel for sm_90 reads the bodies of a device: as fours of numbers or one by one.
fn loads(device: &Device) -> kiln::Result<(usize, usize)> {
    let builder = Jit::builder().device(device.clone());
    let jit = builder.target(Target::Ptx(PtxTarget::for_sm(90))).build()?;
    let (bodies, mut out) = (jit.zeros::<Body>(8)?, jit.zeros::<f32>(8)?);
    let direct = jit.inspect(&masses, args!(&bodies, &mut out))?;
    let view = BodiesArgs { bodies: &bodies };
    let args = &[Bodies::arg(view), (&mut out).into_arg()];
    let in_view = jit.inspect(&masses_of, args)?;
    let count = |text: &str| {
        (
            text.matches(".nc.v4").count(),
            text.matches(".nc.b32").count(),
        )
    };
    let (direct, in_view) = (count(direct.ptx()?), count(in_view.ptx()?));
    assert_eq!(direct, in_view);
    Ok(direct)
}

#[test]
fn whole_buffers_are_read_in_fours_and_odd_slices_are_not() -> kiln::Result<()> {
    let cpu = Device::cpu();
    assert_eq!(loads(&cpu)?, (1, 0));
    assert_eq!(loads(&Shifted::device(&cpu, 16))?, (1, 0));
    for past in [4, 8, 12, 20] {
        assert_eq!(loads(&Shifted::device(&cpu, past))?, (0, 4), "{past}");
    }
    Ok(())
}

/// An expression reads what elements beside each other need before it computes one of them: its functions ask questions, as
/// that of an exponential's range, between which accesses would stay apart.
#[test]
fn expressions_read_and_write_in_fours_whatever_they_ask() -> kiln::Result<()> {
    let jit = Jit::builder()
        .target(Target::Ptx(PtxTarget::for_sm(90)))
        .build()?;
    let arrays = Arrays::new(&jit);
    let (x, column) = (arrays.ones::<f32>((8, 256))?, arrays.ones::<f32>((8, 1))?);
    for expr in [
        x.flatten()?.exp(),
        x.exp() * &column,
        (&x - &column).powf(1.5),
    ] {
        let text = expr.inspect()?;
        let ptx = text.ptx()?;
        let fours = [".nc.v4", "st.global.v4"].map(|word| ptx.matches(word).count());
        assert_eq!(fours, [1, 1], "{ptx}");
    }
    Ok(())
}

/// The same of a part of a buffer, which begins where it begins.
#[test]
fn parts_are_read_in_fours_where_they_begin_so() -> kiln::Result<()> {
    let cpu = Jit::on(Device::cpu());
    let ptx = Jit::builder()
        .target(Target::Ptx(PtxTarget::for_sm(90)))
        .build()?;
    let mut floats = vec![0.0; 5];
    floats.extend(
        bodies()
            .iter()
            .flat_map(|body| [body.at[0], body.at[1], body.at[2], body.mass]),
    );
    for past in 0..6 {
        let on_cpu = cpu.upload(&floats[5 - past..])?;
        let mut out = cpu.zeros::<f32>(40)?;
        masses.launch(&cpu, (2, 32), on_cpu[past..].cast()?, &mut out)?;
        assert_eq!(out.to_vec()?, expected(), "{past}");
        let (floats, mut out) = (ptx.upload(&floats)?, ptx.zeros::<f32>(40)?);
        let part = floats[past..][..160].cast::<Body>()?;
        let text = ptx.inspect(&masses, args!(part, &mut out))?;
        let fours = text.ptx()?.matches(".nc.v4").count();
        assert_eq!(fours, usize::from(past % 4 == 0), "{past}");
    }
    // Each has code of one kind or the other, and the code for the whole is not given to an odd part.
    assert_eq!(cpu.cache_stats().compiles, 2);
    let (floats, mut out) = (cpu.upload(&floats)?, cpu.zeros::<f32>(40)?);
    let whole = cpu.compile(&masses, args!(floats[..160].cast::<Body>()?, &mut out))?;
    let odd = whole.launch(2, 32, args!(floats[5..].cast::<Body>()?, &mut out));
    let is_refused = matches!(
        odd,
        Err(kiln::Error::Launch(LaunchError::OtherFacts { .. }))
    );
    assert!(is_refused, "{odd:?}");
    Ok(())
}

/// A launch by each way that there is, of buffers that begin at odd places and at even ones, in one `Jit`.
#[test]
fn each_slice_has_the_code_for_where_it_begins() -> kiln::Result<()> {
    for inner in [Device::cpu(), OnHostOptions::default().device()] {
        let even = inner.clone();
        let jit = Jit::builder().device(inner.clone()).build()?;
        for past in [0, 4, 8, 12, 16, 4, 0] {
            let device = if past == 0 {
                even.clone()
            } else {
                Shifted::device(&inner, past)
            };
            let values = Buffer::from_slice(&device, &bodies())?;
            for way in 0..3 {
                let mut out = Buffer::<f32>::zeros(&device, 40)?;
                let view = BodiesArgs { bodies: &values };
                match way {
                    0 => masses.launch(&jit, (2, 32), &values, &mut out)?,
                    1 => jit.launch(&masses, 2, 32, args!(&values, &mut out))?,
                    _ => masses_of.launch(&jit, (2, 32), view, &mut out)?,
                }
                assert_eq!(out.to_vec()?, expected(), "{past}, {way}");
            }
        }
        // Both at multiples of 16 bytes, or neither; and as many for the view.
        assert_eq!(jit.cache_stats().compiles, 4);
    }
    Ok(())
}

#[test]
fn a_prepared_launch_takes_no_slice_that_begins_at_a_lesser_place() -> kiln::Result<()> {
    let even = OnHostOptions::default().device();
    let odd = Shifted::device(&even, 4);
    let jit = Jit::builder().device(even.clone()).build()?;
    let at_even = Buffer::from_slice(&even, &bodies())?;
    let at_odd = Buffer::from_slice(&odd, &bodies())?;
    let mut out = jit.zeros::<f32>(40)?;

    let for_odd = jit.compile(&masses, args!(&at_odd, &mut out))?;
    for values in [&at_odd, &at_even] {
        out.write(&[0.0; 40])?;
        for_odd.launch(2, 32, args!(values, &mut out))?;
        assert_eq!(out.to_vec()?, expected());
    }
    let for_even = jit.compile(&masses, args!(&at_even, &mut out))?;
    for_even.launch(2, 32, args!(&at_even, &mut out))?;
    let refused = for_even.launch(2, 32, args!(&at_odd, &mut out));
    match refused {
        Err(kiln::Error::Launch(error @ LaunchError::OtherFacts { .. })) => {
            expect!["argument 1 of the launch of `masses` is not at an address that is a multiple of 16, and the kernel was prepared for one that is; call `compile` again for these arguments, or launch the kernel itself, which finds the code for each"].assert_eq(&error.to_string());
        }
        other => panic!("{other:?}"),
    }
    Ok(())
}
