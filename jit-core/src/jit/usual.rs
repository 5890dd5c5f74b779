//! Launches as most are: of arguments that are passed by their words (`args/words.rs`), and of buffers that this stream
//! has used last. They are written, found to be in order, given to the device and noted in one go. What is not as usual
//! (hooks that look at launches, hidden values, what is passed by reference, a field of a view, a buffer that another
//! stream has used or that threads share) goes the way of `submit.rs`, from the start.

use super::Jit;
use crate::cache::{LoadedKernel, Passing};
use kiln_compiler::abi::{LaunchArgs, LaunchBlock};
use kiln_compiler::args::Arg;
use kiln_compiler::args::words::{Places, SLACK};
use kiln_compiler::error::Result;
use kiln_compiler::launch::LaunchConfig;
use kiln_compiler::runtime::{OrderedStream, is_in_call};

/// Bytes of a block that is cleared in a few instructions, [`SLACK`] among them.
const SMALL: usize = 80;

impl Jit {
    /// Launches what this thread has found, or was made ready, with arguments that are passed in this way.
    #[inline(always)]
    pub(super) fn launch_loaded(
        &self,
        loaded: &LoadedKernel,
        config: &LaunchConfig,
        passing: Passing,
        args: &[Arg<'_>],
    ) -> Result<()> {
        if passing == Passing::Words
            && let Some(places) = loaded.places()
            && self.takes_usual(loaded, config)
        {
            let launched = match loaded.compiled.info.layout.size as usize + SLACK {
                0..=SMALL => self.launch_usual(loaded, places, config, args, &mut [0; SMALL]),
                bytes => self.launch_wide(loaded, places, config, args, bytes),
            };
            if launched? {
                return Ok(());
            }
        }
        self.launch_unusual(loaded, config, args)
    }

    /// [`Jit::launch_loaded`] with arguments that code was found or made for in another way.
    #[cold]
    pub(super) fn launch_first(
        &self,
        loaded: &LoadedKernel,
        config: &LaunchConfig,
        args: &[Arg<'_>],
    ) -> Result<()> {
        let have_places = loaded.places().is_some_and(|places| places.take(args));
        let passing = match have_places {
            true => Passing::Words,
            false => Passing::Other,
        };
        self.launch_loaded(loaded, config, passing, args)
    }

    /// Whether a launch of this shape is made without looking at it again.
    #[inline(always)]
    pub(super) fn takes_usual(&self, loaded: &LoadedKernel, config: &LaunchConfig) -> bool {
        !self.0.observes_launches
            && !config.cooperative
            && loaded.is_possible(config, &self.0.limits)
            && !is_in_call()
    }

    /// [`Jit::launch_usual`] with a block of so many bytes.
    #[inline(never)]
    fn launch_wide(
        &self,
        loaded: &LoadedKernel,
        places: &Places,
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
        places: &Places,
        config: &LaunchConfig,
        args: &[Arg<'_>],
        block: &mut [u8],
    ) -> Result<bool> {
        let stream = self.order();
        let Some(mut to_note) = places.write(args, block, self.0.device.code(), stream) else {
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
}

/// Writes a word, of which what is beyond a place is zeros, and written again by what follows.
#[inline(always)]
pub(super) fn put_word(block: &mut [u8], at: u32, word: u64) -> Option<()> {
    let slot = block.get_mut(at as usize..)?.first_chunk_mut()?;
    *slot = word.to_le_bytes();
    Some(())
}
