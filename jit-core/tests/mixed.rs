//! Mixed work on a device, for programs that do it for long: launches in streams and outside, copies under way, memory
//! that comes and goes, kernels that are redefined.

use kiln::core::cache::CacheFolder;
use kiln::prelude::*;

#[kernel]
pub(crate) fn add(x: &mut [u32], n: u32) {
    let i = global_id().x;
    if i < x.len() {
        x[i] += n;
    }
}

/// A kernel that writes a number, behind a guard for which nothing is checked: code that is checked calls a function,
/// and of a module with such a call CUDA's driver keeps about 900 bytes when it is unloaded (driver 580, seen by a
/// program in C++: the same text without the call leaves nothing).
pub(crate) fn sets(value: u32) -> impl Fn(&KernelBuilder) {
    move |k| {
        let x = k.slice_mut("x", k.ty::<u32>());
        k.if_(x.len().gt(0), || x.at(0).set(value));
    }
}

/// A `Jit` that compiles: no code of an earlier process is read.
pub(crate) fn compiling(device: Device, memory_bound: Option<u64>) -> Jit {
    let options = JitOptions::default().cache(CacheFolder::Off);
    Jit::with(
        device,
        kiln::hooks::standard(),
        options.memory_bound(memory_bound),
    )
}

/// Numbers by a rule, the same for the same seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// What one of many threads does next. The results are checked where the device computes.
pub(crate) fn step(
    jit: &Jit,
    kernel: &Kernel,
    random: &mut Random,
    computes: bool,
) -> kiln::Result<()> {
    let n = random.below(1000) as u32;
    let mut x = jit.upload(&[n; 64])?;
    let mut want = n;
    match random.below(8) {
        0 => x.fill(n + 1).map(|()| want = n + 1)?,
        1 => {
            let stream = jit.stream()?;
            add.launch(&stream, (2, 32), &mut x, 5)?;
            want += 5;
            if random.below(2) == 0 {
                stream.synchronize()?;
            }
        }
        2 => {
            let values = jit.pinned(&[n + 2; 64])?;
            let later = x.write_later(values)?;
            if random.below(2) == 0 {
                later.wait()?;
            }
            want = n + 2;
        }
        3 => jit.record()?.synchronize()?,
        4 => {
            let stream = jit.stream()?;
            stream.then(|| {})?;
        }
        5 => {
            let y = jit.zeros::<u32>(1 << random.below(16))?;
            drop(y);
        }
        6 => {
            // Of few kernels, each of which is compiled once.
            kernel.redefine(sets(random.below(8) as u32))?;
            let mut y = jit.zeros::<u32>(4)?;
            jit.launch(kernel, 1, 1, args!(&mut y))?;
        }
        _ => {
            for _ in 0..20 {
                add.launch(jit, (2, 32), &mut x, 1)?;
            }
            want += 20;
        }
    }
    let is = x.to_vec()?;
    if computes {
        assert_eq!(is, [want; 64]);
    }
    Ok(())
}
