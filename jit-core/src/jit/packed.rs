//! Launches by the methods of kernels, which write their parameter block themselves.
//!
//! The method knows the types of its arguments, so that the block is written before the kernel is looked up, and
//! one key stands for all types. What is not as usual (a first launch, hooks that look at launches, hidden values,
//! a buffer that another stream has used, a slice at an odd address) launches the list of its arguments instead,
//! which tells what is wrong, too.

use super::Jit;
use crate::cache::{Consts, PackedLaunch};
use kiln_compiler::abi::LaunchArgs;
use kiln_compiler::args::Arg;
use kiln_compiler::args::packed::{PackedKey, Packing, Parameters};
use kiln_compiler::error::Result;
use kiln_compiler::front::LazyKernel;
use kiln_compiler::launch::{LaunchConfig, is_possible};
use kiln_compiler::runtime::{Uses, outside_of_calls};

impl Jit {
    /// Where the arguments of a launch begin to be written.
    #[doc(hidden)]
    #[inline]
    pub fn packing(&self) -> Packing {
        Packing::new(self.0.id, self.order().place())
    }

    /// The launch that each `#[kernel]` function has, with arguments that are written; `None` where it has to be
    /// made of the list of them.
    #[doc(hidden)]
    pub fn launch_packed(
        &self,
        kernel: &LazyKernel,
        config: &LaunchConfig,
        consts: &[(&str, i128)],
        packing: Packing,
        to: Parameters<'_, '_>,
    ) -> Option<Result<()>> {
        let key = packing.key()?;
        let Parameters {
            bytes,
            read,
            written,
        } = to;
        // A kernel that cannot be described is told of by the other way.
        let kernel = kernel.get().ok()?;
        let consts = match (consts, kernel.consts()) {
            ([], bound) => Consts::Bound(bound),
            (given, []) => Consts::Given(given),
            _ => return None,
        };
        if !self.0.takes_packed || config.cooperative || outside_of_calls().is_err() {
            return None;
        }
        let hit = self.0.cache.ready_packed(&PackedLaunch {
            content: kernel.content().ok()?,
            consts,
            key,
            block: config.block,
        })?;
        let (loaded, info) = (&*hit.loaded, &hit.loaded.compiled.info);
        self.0.cache.note_use(loaded);
        let mut params = LaunchArgs::in_zeros(&info.layout, bytes)?;
        if !is_possible(config, &self.0.limits, info) {
            return None;
        }
        let (stream, limit) = (self.order(), self.0.options.time_limit);
        let used = || {
            let written = written.iter().flatten().map(|uses| (*uses, true));
            written.chain(read.iter().flatten().map(|uses| (*uses, false)))
        };
        if !used().all(|(uses, writes)| stream.is_behind(uses, writes))
            && let Err(error) = self.order_packed(&used)?
        {
            return Some(Err(error));
        }
        let (backend, code) = (self.0.device.backend(), &*loaded.code);
        let launched = match stream.work() {
            None => backend.launch(code, info, config, &mut params, limit),
            Some(work) => work.launch(code, info, config, &mut params, limit),
        };
        let launched = self.0.device.told(launched);
        if let Err(error) = launched {
            return Some(Err(error.into()));
        }
        let number = stream.count();
        used().for_each(|(uses, writes)| stream.note(uses, writes, number));
        Some(Ok(()))
    }

    /// Makes the stream wait for what other streams did with these buffers; `None` if threads share one.
    #[cold]
    fn order_packed<'u, I: Iterator<Item = (&'u Uses, bool)>>(
        &self,
        used: &dyn Fn() -> I,
    ) -> Option<Result<()>> {
        let (device, stream) = (&self.0.device, self.order());
        if device
            .streams()
            .share(used().map(|(uses, _)| uses))
            .is_some()
        {
            return None;
        }
        let backend = device.backend().as_ref();
        let order = |(uses, writes)| device.streams().order(backend, stream, uses, writes);
        Some(used().try_for_each(order).map_err(Into::into))
    }

    /// The launch that each `#[kernel]` function has, whose arguments rustc has checked; const parameters that no
    /// argument determines come by name. The key is that of arguments that were written.
    ///
    /// # Errors
    /// As [`Jit::launch`].
    #[doc(hidden)]
    #[cold]
    pub fn launch_typed(
        &self,
        kernel: &LazyKernel,
        config: LaunchConfig,
        consts: &[(&str, i128)],
        key: Option<PackedKey>,
        args: &[Arg<'_>],
    ) -> Result<()> {
        self.launch_keyed(kernel.get()?, consts, &config, key, args)
    }
}
