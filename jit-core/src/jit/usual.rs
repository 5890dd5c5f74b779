//! Launches as most are: of numbers and of buffers of this device, which this stream has used last. They are packed,
//! found to be in order, given to the device and noted in one go. What is not as usual (hooks that look at launches,
//! hidden values, what is passed by reference, a buffer that another stream has used or that threads share) goes the
//! way of `submit.rs`, from the start.

use super::Jit;
use crate::cache::{LoadedKernel, Place};
use kiln_compiler::abi::{LaunchArgs, LaunchBlock};
use kiln_compiler::args::{Arg, Payload};
use kiln_compiler::error::Result;
use kiln_compiler::launch::{LaunchConfig, is_possible};
use kiln_compiler::runtime::{OrderedStream, ReadsOf, is_in_call};

/// What a block has behind what is passed, so that each place is one of a whole word.
pub(super) const SLACK: usize = 8;

/// Bytes of a block that is cleared in a few instructions, [`SLACK`] among them.
const SMALL: usize = 64;

impl Jit {
    /// Launches what this thread has found, or was made ready.
    pub(super) fn launch_loaded(
        &self,
        loaded: &LoadedKernel,
        config: &LaunchConfig,
        args: &[Arg<'_>],
    ) -> Result<()> {
        let info = &loaded.compiled.info;
        if let Some(places) = loaded.places()
            && !self.0.observes_launches
            && !config.cooperative
            && is_possible(config, &self.0.limits, info)
            && !is_in_call()
        {
            let launched = match info.layout.size as usize + SLACK {
                0..=SMALL => self.launch_usual(loaded, places, config, args, &mut [0; SMALL]),
                bytes => self.launch_wide(loaded, places, config, args, bytes),
            };
            if launched? {
                return Ok(());
            }
        }
        self.launch_unusual(loaded, config, args)
    }

    /// [`Jit::launch_usual`] with a block of so many bytes.
    #[inline(never)]
    fn launch_wide(
        &self,
        loaded: &LoadedKernel,
        places: &[Place],
        config: &LaunchConfig,
        args: &[Arg<'_>],
        bytes: usize,
    ) -> Result<bool> {
        const MOST: usize = 256 + SLACK;
        match bytes {
            0..=MOST => self.launch_usual(loaded, places, config, args, &mut [0; MOST]),
            _ => {
                let mut block = LaunchBlock::from_elem(0, bytes);
                self.launch_usual(loaded, places, config, args, &mut block)
            }
        }
    }

    /// Makes a launch with a block of zeros, if it is a usual one; whether it is.
    #[inline(always)]
    fn launch_usual(
        &self,
        loaded: &LoadedKernel,
        places: &[Place],
        config: &LaunchConfig,
        args: &[Arg<'_>],
        block: &mut [u8],
    ) -> Result<bool> {
        let stream = self.order();
        let Some(mut to_note) = self.pack_usual(places, args, block, stream) else {
            return Ok(false);
        };
        let Some(mut params) = LaunchArgs::in_zeros(&loaded.compiled.info.layout, block) else {
            return Ok(false);
        };
        let number = self.hand_over(loaded, config, &mut params, stream)?;
        while to_note != 0 {
            if let Some((uses, writes)) = args[to_note.trailing_zeros() as usize].uses() {
                stream.note(uses, writes, number);
            }
            to_note &= to_note - 1;
        }
        Ok(true)
    }

    /// Gives a launch that is in order to the device, and its number.
    #[inline(always)]
    pub(super) fn hand_over(
        &self,
        loaded: &LoadedKernel,
        config: &LaunchConfig,
        params: &mut LaunchArgs<'_>,
        stream: &OrderedStream,
    ) -> Result<u64> {
        self.0.cache.note_use(loaded);
        let (device, info) = (&self.0.device, &loaded.compiled.info);
        let (code, limit) = (loaded.code(), self.0.options.time_limit);
        let launched = match stream.work() {
            None => device.backend().launch(code, info, config, params, limit),
            Some(work) => work.launch(code, info, config, params, limit),
        };
        device.told(launched)?;
        Ok(stream.count())
    }

    /// Writes numbers and slices to their places; a bit for each of those whose use is to be noted. `None`: something
    /// is not as usual.
    #[inline(always)]
    fn pack_usual(
        &self,
        places: &[Place],
        args: &[Arg<'_>],
        block: &mut [u8],
        stream: &OrderedStream,
    ) -> Option<u64> {
        if args.len() != places.len() {
            return None;
        }
        let (device, reads) = (self.0.device.tag(), ReadsOf::new(stream.place()));
        let (mut to_note, mut own) = (0u64, 1u64);
        for (arg, place) in args.iter().zip(places) {
            match arg.payload() {
                Payload::Word(word) if place.length == 0 => put_word(block, place.first, *word)?,
                Payload::Slice { address, length } if place.length != 0 && arg.is_of(device) => {
                    put_word(block, place.first, *address)?;
                    put_word(block, place.length, *length)?;
                    if let Some((uses, writes)) = arg.uses()
                        && (writes || !uses.are_noted(reads))
                    {
                        // There is no bit for the sixty-fifth.
                        if own == 0 || !stream.is_behind(uses, writes) {
                            return None;
                        }
                        to_note |= own;
                    }
                }
                _ => return None,
            }
            own <<= 1;
        }
        Some(to_note)
    }
}

/// Writes a word, of which what is beyond a place is zeros, and written again by what follows.
#[inline(always)]
pub(super) fn put_word(block: &mut [u8], at: u32, word: u64) -> Option<()> {
    let slot = block.get_mut(at as usize..)?.first_chunk_mut()?;
    *slot = word.to_le_bytes();
    Some(())
}
