//! Launches by the methods of kernels, which write their parameter block themselves.
//!
//! The method knows the types of its arguments, so that the block is written before the kernel is looked up, and
//! one key stands for all types. What is not as usual (a first launch, hooks that look at launches, hidden values,
//! a buffer that another stream has used, a slice at an odd address) launches the list of its arguments instead,
//! which tells what is wrong, too.

use super::Jit;
use crate::cache::{Consts, Hit, PackedLaunch};
use kiln_compiler::abi::LaunchArgs;
use kiln_compiler::args::Arg;
use kiln_compiler::args::packed::{Packed, PackedKey, Packing, UsesOf};
use kiln_compiler::error::Result;
use kiln_compiler::front::LazyKernel;
use kiln_compiler::launch::LaunchConfig;
use kiln_compiler::runtime::{Sharing, is_in_call};

impl Jit {
    /// Where the arguments of a launch begin to be written.
    #[doc(hidden)]
    #[inline]
    pub fn packing(&self) -> Packing {
        Packing::new(self.0.device.code(), self.order().place())
    }

    /// The launch that each `#[kernel]` function has, with arguments that are written; whether it was made, or has to
    /// be made of the list of them.
    ///
    /// # Errors
    /// What the device says.
    #[doc(hidden)]
    pub fn launch_packed(
        &self,
        kernel: &LazyKernel,
        config: &LaunchConfig,
        consts: &[(&str, i128)],
        packed: &mut Packed<'_, '_>,
    ) -> Result<bool> {
        // A kernel that cannot be described is told of by the other way, and so is all that is wrong with a launch.
        let Ok(kernel) = kernel.get() else {
            return Ok(false);
        };
        let consts = match (consts, kernel.consts()) {
            ([], bound) => Consts::Bound(bound),
            (given, []) => Consts::Given(given),
            _ => return Ok(false),
        };
        if !self.0.takes_packed || config.cooperative || is_in_call() {
            return Ok(false);
        }
        let Ok(content) = kernel.content() else {
            return Ok(false);
        };
        let found = self.0.cache.ready_packed(&PackedLaunch {
            content,
            consts,
            key: &packed.key,
            block: &config.block,
        });
        match found {
            Some(hit) => self.launch_found(&hit, config, packed),
            None => Ok(false),
        }
    }

    #[inline]
    fn launch_found(
        &self,
        hit: &Hit,
        config: &LaunchConfig,
        packed: &mut Packed<'_, '_>,
    ) -> Result<bool> {
        let loaded = &*hit.loaded;
        let Packed {
            bytes,
            read,
            written,
            ..
        } = packed;
        let Some(mut params) = LaunchArgs::in_zeros(&loaded.compiled.info.layout, bytes) else {
            return Ok(false);
        };
        if !loaded.is_possible(config, &self.0.limits) {
            return Ok(false);
        }
        let stream = self.order();
        // Mostly there are none.
        let uses_none = read.is_empty() & written.is_empty();
        if !uses_none && !self.are_in_order(read, written)? {
            return Ok(false);
        }
        let number = self.hand_over(loaded, config, &mut params, stream)?;
        if !uses_none {
            let note = |list: &[UsesOf<'_>], writes| {
                let uses = list.iter().flatten();
                uses.for_each(|uses| stream.note(uses, writes, number));
            };
            note(written, true);
            note(read, false);
        }
        Ok(true)
    }

    /// Whether the stream is behind what others did with these buffers, or waits for it from now on, and no threads share
    /// one.
    #[inline]
    fn are_in_order(&self, read: &[UsesOf<'_>], written: &[UsesOf<'_>]) -> Result<bool> {
        let stream = self.order();
        let are_behind = |list: &[UsesOf<'_>], writes| {
            let mut uses = list.iter().flatten();
            uses.all(|uses| stream.is_behind(uses, writes))
        };
        match are_behind(written, true) && are_behind(read, false) {
            true => Ok(true),
            false => self.order_packed(read, written),
        }
    }

    /// Makes the stream wait for what other streams did with these buffers; whether it does, and no threads share one.
    #[cold]
    fn order_packed(&self, read: &[UsesOf<'_>], written: &[UsesOf<'_>]) -> Result<bool> {
        let (device, stream) = (&self.0.device, self.order());
        let used = || {
            let written = written.iter().flatten().map(|uses| (*uses, true));
            written.chain(read.iter().flatten().map(|uses| (*uses, false)))
        };
        if !Sharing::of(used()).is_empty() {
            return Ok(false);
        }
        let backend = device.backend().as_ref();
        for (uses, writes) in used() {
            device.streams().order(backend, stream, uses, writes)?;
        }
        Ok(true)
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
