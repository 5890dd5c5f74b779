//! From arguments to a launch: the parameter block, hooks of launches, the device.

use std::cell::Cell;
use std::sync::Arc;

use super::Jit;
use super::hidden::Held;
use super::usual::put_word;
use crate::cache::LoadedKernel;
use kiln_compiler::abi::{LaunchArgs, LaunchBlock, ParamKind};
use kiln_compiler::args::words::SLACK;
use kiln_compiler::args::{Arg, OutOfRange, Payload};
use kiln_compiler::code::KernelInfo;
use kiln_compiler::compile::failed;
use kiln_compiler::error::{Error, GraphError, Result};
use kiln_compiler::hook::{Hook, HookError, LaunchEvent, Observed, at};
use kiln_compiler::launch::{LaunchConfig, LaunchError, check_config};
use kiln_compiler::runtime::{Buffer, LoadedCode, Sharing, Uses, outside_of_calls};

const NO_SLOT: Error = Error::Internal("an argument that binding accepted has no slot");

thread_local! {
    /// Whether hooks are being told of a launch on this thread. What they launch themselves they are not told.
    static TELLING: Cell<bool> = const { Cell::new(false) };
}

struct Telling;

impl Telling {
    fn begin() -> Telling {
        TELLING.set(true);
        Telling
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        TELLING.set(false);
    }
}

impl Jit {
    /// The launch of what is not as usual.
    #[cold]
    pub(super) fn launch_unusual(
        &self,
        loaded: &LoadedKernel,
        config: &LaunchConfig,
        args: &[Arg<'_>],
    ) -> Result<()> {
        let info = &loaded.compiled.info;
        check_config(config, &self.0.limits, info)?;
        if config.cooperative {
            self.check_all_at_once(info, loaded.code(), config)?;
        }
        self.0.cache.note_use(loaded);
        self.launch_code(info, loaded.code(), config, args)
    }

    /// The launch of code with arguments that it takes, in a shape that it and the device have.
    pub(super) fn launch_code(
        &self,
        info: &Arc<KernelInfo>,
        code: &dyn LoadedCode,
        config: &LaunchConfig,
        args: &[Arg<'_>],
    ) -> Result<()> {
        let bytes = info.layout.size as usize + SLACK;
        let mut block = LaunchBlock::from_elem(0, bytes);
        self.launch_in((info, code), config, args, &mut block)
    }

    /// The launch with a block of zeros for what it passes, and some more.
    #[inline]
    fn launch_in(
        &self,
        (info, code): (&Arc<KernelInfo>, &dyn LoadedCode),
        config: &LaunchConfig,
        args: &[Arg<'_>],
        block: &mut [u8],
    ) -> Result<()> {
        // Freed at the end; freeing waits for the launch that uses them.
        let mut copies = Vec::new();
        let uses_buffers = self.pack(info, args, block, &mut copies)?;
        const TOO_SHORT: Error = Error::Internal("a block is shorter than the parameters");
        let mut params = LaunchArgs::in_zeros(&info.layout, block).ok_or(TOO_SHORT)?;
        let used = Used {
            // Numbers alone are not looked at again.
            args: if uses_buffers { args } else { &[] },
            copies: &copies,
        };
        if self.0.observes_launches && !TELLING.get() {
            return self.launch_observed((info, code), config, &mut params, &used);
        }
        self.submit((info, code), config, &mut params, &used, None)
    }

    #[cold]
    fn launch_observed(
        &self,
        (info, code): (&Arc<KernelInfo>, &dyn LoadedCode),
        config: &LaunchConfig,
        params: &mut LaunchArgs<'_>,
        used: &Used<'_>,
    ) -> Result<()> {
        let kernel = info.name.as_str();
        let observed = Observed::new(info, config, &self.0.device, self.order());
        let _telling = Telling::begin();
        let (told, vetoed) = self.tell_before(&observed.event(params));
        let result = match vetoed {
            Some(veto) => Err(veto.into()),
            None => self.submit((info, code), config, params, used, Some(&observed)),
        };
        let event = observed.event(params);
        let tell = |hook: &Hook| {
            hook.each(&at::after_launch(), kernel, |after| {
                after(&event, &result);
                Ok(())
            })
        };
        // All are told, whatever one of them does.
        let told: Vec<_> = self.0.hooks.iter().take(told).map(tell).collect();
        result?;
        Ok(told.into_iter().collect::<Result<_, _>>()?)
    }

    /// Tells hooks of a launch about to happen: how many of them have been told, and the veto of the next.
    fn tell_before(&self, event: &LaunchEvent<'_>) -> (usize, Option<HookError>) {
        let hooks = self.0.hooks.iter();
        for (told, hook) in hooks.enumerate() {
            let asked = hook.each(&at::before_launch(), event.kernel, |before| {
                failed(before(event))
            });
            if let Err(veto) = asked {
                return (told, Some(veto));
            }
        }
        (self.0.hooks.iter().count(), None)
    }

    /// Packs the parameter block; whether there may be a buffer among the arguments. The copies are passed by reference,
    /// and have to live as long as the launch.
    #[inline]
    fn pack(
        &self,
        info: &KernelInfo,
        args: &[Arg<'_>],
        block: &mut [u8],
        copies: &mut Vec<Buffer<u8>>,
    ) -> Result<bool> {
        let device = self.0.id;
        let mut uses_buffers = false;
        for (position, (arg, kind)) in args.iter().zip(&info.layout.params).enumerate() {
            // What is beyond a number is zeros, and slots come in order: whole words are written.
            match (arg.payload(), kind) {
                (Payload::Word(word), ParamKind::Value(slot)) if slot.size <= 8 => {
                    put_word(block, slot.offset, word).ok_or(NO_SLOT)?;
                }
                (
                    Payload::Slice { address, length },
                    ParamKind::Slice {
                        address: a,
                        length: l,
                    },
                ) if arg.device() == Some(device) => {
                    put_word(block, a.offset, address).ok_or(NO_SLOT)?;
                    put_word(block, l.offset, length).ok_or(NO_SLOT)?;
                    uses_buffers = true;
                }
                _ => {
                    uses_buffers = true;
                    self.pack_other(info, position, (arg, kind), block, copies)?;
                }
            }
        }
        Ok(uses_buffers)
    }

    /// Packs an argument that is neither a number nor a slice of this device, which few are: what each launch goes
    /// through stays short.
    #[cold]
    pub(super) fn pack_other(
        &self,
        info: &KernelInfo,
        position: usize,
        (arg, kind): (&Arg<'_>, &ParamKind),
        block: &mut [u8],
        copies: &mut Vec<Buffer<u8>>,
    ) -> Result<()> {
        if arg.device().is_some_and(|owner| owner != self.0.id) {
            return Err(foreign_buffer(info, position, arg, self).into());
        }
        // A slot has the signature of what it stands for, by which code is found.
        if let Payload::Host(_) = arg.payload() {
            let kernel = info.name.clone();
            return Err(GraphError::NotRecorded { kernel, position }.into());
        }
        if let Payload::OutOfRange(number) = arg.payload() {
            return Err(out_of_range(info, position, number).into());
        }
        if let Payload::Refused(why) = arg.payload() {
            return Err(why());
        }
        match (arg.payload(), kind) {
            (Payload::Slice { address, .. }, ParamKind::Value(slot)) => {
                slot.write_number(block, address);
            }
            (value, ParamKind::Value(slot)) => {
                let bytes = value.bytes(slot.size as usize).ok_or(NO_SLOT)?;
                block[slot.range()].copy_from_slice(&bytes);
            }
            (value, ParamKind::Reference { address, bytes }) => {
                let bytes = value.bytes(*bytes as usize).ok_or(NO_SLOT)?;
                address.write_number(block, self.copy_of(&bytes, copies)?);
            }
            (_, ParamKind::Slice { .. }) => return Err(NO_SLOT),
        }
        Ok(())
    }

    /// The address of a copy on the device, which is kept among the others.
    fn copy_of(&self, bytes: &[u8], copies: &mut Vec<Buffer<u8>>) -> Result<u64> {
        let copy = Buffer::from_slice(&self.0.device, bytes)?;
        let address = copy.address();
        copies.push(copy);
        Ok(address)
    }

    /// Hands the launch to the stream, behind what other streams did with the buffers that it uses.
    #[inline]
    fn submit(
        &self,
        (info, code): (&Arc<KernelInfo>, &dyn LoadedCode),
        config: &LaunchConfig,
        params: &mut LaunchArgs<'_>,
        used: &Used<'_>,
        observed: Option<&Observed<'_>>,
    ) -> Result<()> {
        outside_of_calls()?;
        let device = &self.0.device;
        let backend = device.backend();
        // Freed at the end; freeing waits for the launch that uses it.
        let held = match info.hidden.is_empty() {
            true => None,
            false => Some(self.give_hidden(info, config, observed, params)?),
        };
        let stream = self.order();
        let is_behind = |(uses, writes)| stream.is_behind(uses, writes);
        let _shared = match held.is_none() && used.iter().all(is_behind) {
            true => None,
            false => Some(self.order_uses(used, held.as_ref())?),
        };
        let limit = self.0.options.time_limit;
        let mut launch = || {
            match stream.work() {
                None => device.told(backend.launch(code, info, config, params, limit))?,
                Some(work) => device.told(work.launch(code, info, config, params, limit))?,
            }
            let number = stream.count();
            let note = |(uses, writes)| stream.note(uses, writes, number);
            used.iter().for_each(note);
            held.iter().flat_map(Held::uses).for_each(note);
            held.iter().for_each(|held| held.launched(stream));
            Ok(())
        };
        match observed {
            Some(observed) => observed.launch(launch),
            None => launch(),
        }
    }

    /// Makes the stream wait for what other streams did with these buffers. What comes back is held until the launch
    /// is noted.
    #[cold]
    fn order_uses<'u>(&self, used: &Used<'u>, held: Option<&'u Held>) -> Result<Sharing<'u>> {
        let (device, stream) = (&self.0.device, self.order());
        let all = || used.iter().chain(held.into_iter().flat_map(Held::uses));
        let shared = Sharing::of(all());
        for (uses, writes) in all() {
            let backend = device.backend().as_ref();
            device.streams().order(backend, stream, uses, writes)?;
        }
        Ok(shared)
    }
}

/// What a launch uses besides what is hidden in it.
struct Used<'a> {
    args: &'a [Arg<'a>],
    /// What is passed by reference.
    copies: &'a [Buffer<u8>],
}

impl<'a> Used<'a> {
    /// The uses of each buffer, and whether the kernel may write there.
    #[inline]
    fn iter(&self) -> impl Iterator<Item = (&'a Uses, bool)> + use<'a> {
        let copies = self.copies.iter().map(|copy| (copy.uses(), false));
        self.args.iter().filter_map(Arg::uses).chain(copies)
    }
}

/// The name of a parameter.
fn name_of(kernel: &KernelInfo, position: usize) -> String {
    let name = kernel.param_names.get(position);
    name.cloned().unwrap_or_default()
}

#[cold]
fn out_of_range(kernel: &KernelInfo, position: usize, number: &OutOfRange) -> LaunchError {
    LaunchError::OutOfRange {
        kernel: kernel.name.clone(),
        position,
        argument: name_of(kernel, position),
        value: number.value,
        ty: number.ty,
        range: number.range.clone(),
        wider: number.wider,
    }
}

#[cold]
fn foreign_buffer(kernel: &KernelInfo, position: usize, arg: &Arg<'_>, jit: &Jit) -> LaunchError {
    LaunchError::ForeignBuffer {
        kernel: kernel.name.clone(),
        position,
        argument: name_of(kernel, position),
        owner: arg.device().map(|d| d.to_string()).unwrap_or_default(),
        device: jit.0.device.info().id.to_string(),
    }
}
