//! Lists of arguments that are passed by their words, which most are: how such a list is known again, and how it is
//! written to the block of a launch, each argument in a few instructions.
//!
//! Whoever has code for a list keeps what rustc knows of its arguments, a pointer each, and where runs of arguments lie
//! in the block. What a pointer is to tells the words apart that an argument has, so that they are not looked at again.

use kiln_ir::abi::ParamKind;
use kiln_ir::code::KernelInfo;

use super::signature::Passed;
use super::{Arg, Payload, Rest};
use crate::runtime::{DeviceCode, OrderedStream, ReadsOf};
use crate::specialize::ArgumentKind;

/// What a block has behind what is passed, so that each place is one of whole words.
pub const SLACK: usize = 8;

/// What rustc knows of the arguments of a list.
#[derive(Clone)]
pub struct Known(Box<[&'static Passed]>);

impl Known {
    /// Of arguments that are all passed by their words; `None` if one is not.
    pub fn of(args: &[Arg<'_>]) -> Option<Known> {
        let passed = |arg: &Arg<'_>| arg.is_words().then_some(arg.passed);
        args.iter().map(passed).collect::<Option<_>>().map(Known)
    }

    /// Whether rustc knows the same of these, as far as that is to be seen at once.
    #[inline(always)]
    pub fn are_of(&self, args: &[Arg<'_>]) -> bool {
        let is_known = |known: &&'static Passed, arg: &Arg<'_>| std::ptr::eq(*known, arg.passed);
        let (mut known, mut args) = (&*self.0, args);
        if known.len() != args.len() {
            return false;
        }
        // By fours, as the loop costs as much as to compare two.
        while let (Some((four, more)), Some((own, others))) = (
            known.split_first_chunk::<4>(),
            args.split_first_chunk::<4>(),
        ) {
            if !four
                .iter()
                .zip(own)
                .all(|(known, arg)| is_known(known, arg))
            {
                return false;
            }
            (known, args) = (more, others);
        }
        known
            .iter()
            .zip(args)
            .all(|(known, arg)| is_known(known, arg))
    }
}

impl Arg<'_> {
    /// How many bytes of a parameter a C function has for this: those of a value, or of an address. `None`: it is no
    /// argument of one.
    #[doc(hidden)]
    pub fn bytes_in_c(&self) -> Option<u32> {
        match self.payload() {
            Payload::Slice { .. } => Some(8),
            Payload::Word(_) | Payload::Words(_) => Some(self.passed.size as u32),
            Payload::Bytes(bytes) => u32::try_from(bytes.len()).ok(),
            // What is wrong with them is told when they are passed.
            Payload::OutOfRange(_) | Payload::Refused(_) => None,
            Payload::Host(_) | Payload::View => None,
        }
    }
}

/// Whether all of these are passed by their words.
pub fn are_words(args: &[Arg<'_>]) -> bool {
    args.iter().all(Arg::is_words)
}

/// Arguments one behind the other of one kind, and where the first lies in the block.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Run {
    kind: Kind,
    at: u32,
    count: u32,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Kind {
    /// Values of 4 bytes, one behind the other.
    Fours,
    /// Values of 8 bytes, one behind the other.
    Eights,
    /// A value of another number of bytes, at most 8.
    One,
    /// A value of at most 16 bytes.
    Two,
    /// Slices, each 16 bytes behind the one before.
    Slices,
}

impl Kind {
    /// Bytes from one of a run to the next; `None` of what makes no run.
    fn pitch(self) -> Option<u32> {
        match self {
            Kind::Fours => Some(4),
            Kind::Eights => Some(8),
            Kind::Slices => Some(16),
            Kind::One | Kind::Two => None,
        }
    }
}

/// Where the arguments of a kernel lie in its block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Places(Box<[Run]>);

impl Places {
    /// Of a kernel whose arguments are slices and values of at most 16 bytes and to which nothing is passed besides, but
    /// for what the device gives; `None` of any other.
    pub fn of(kernel: &KernelInfo) -> Option<Places> {
        if !kernel.hidden.is_empty() {
            return None;
        }
        let mut runs: Vec<Run> = Vec::new();
        for param in kernel.layout.params.iter().take(kernel.layout.visible) {
            let (kind, at) = place_of(param)?;
            let is_next = |run: &&mut Run| {
                let next = run.kind.pitch().map(|pitch| run.at + run.count * pitch);
                run.kind == kind && next == Some(at)
            };
            match runs.last_mut().filter(is_next) {
                Some(run) => run.count += 1,
                None => runs.push(Run { kind, at, count: 1 }),
            }
        }
        Some(Places(runs.into()))
    }

    /// Whether arguments like these are of the kinds that lie there.
    pub fn take(&self, args: &[Arg<'_>]) -> bool {
        let runs = self.0.iter();
        let kinds = runs.flat_map(|run| std::iter::repeat_n(run.kind, run.count as usize));
        args.iter().map(kind_of).eq(kinds.map(Some))
    }

    /// Writes arguments to a block of zeros, which has [`SLACK`] bytes behind it: those that [`Places::take`] was asked
    /// for or that rustc knows the same of. Gives a bit for each whose use is to be noted once the launch was made; `None`
    /// if the stream has to wait for others first, a buffer is of another device, or there are too few bits.
    #[inline(always)]
    pub fn write(
        &self,
        args: &[Arg<'_>],
        block: &mut [u8],
        device: DeviceCode,
        stream: &OrderedStream,
    ) -> Option<u64> {
        if device == DeviceCode::NONE {
            return None;
        }
        let (mut left, mut first, mut to_note) = (args, 0u32, 0u64);
        for run in &self.0 {
            let (now, then) = left.split_at_checked(run.count as usize)?;
            let place = block.get_mut(run.at as usize..)?;
            match run.kind {
                Kind::Fours => {
                    let place = place.as_chunks_mut().0.get_mut(..now.len())?;
                    for (to, arg) in place.iter_mut().zip(now) {
                        *to = (arg.words[0] as u32).to_le_bytes();
                    }
                }
                Kind::Eights => {
                    let place = place.as_chunks_mut().0.get_mut(..now.len())?;
                    for (to, arg) in place.iter_mut().zip(now) {
                        *to = arg.words[0].to_le_bytes();
                    }
                }
                // What is beyond the value is zeros, and written again by what follows.
                Kind::One => *place.first_chunk_mut()? = now.first()?.words[0].to_le_bytes(),
                Kind::Two => *place.first_chunk_mut()? = bytes_of(now.first()?),
                Kind::Slices => {
                    let place = place.as_chunks_mut().0.get_mut(..now.len())?;
                    to_note |= write_slices(now, first, place, device, stream)?;
                }
            }
            (left, first) = (then, first + run.count);
        }
        left.is_empty().then_some(to_note)
    }
}

/// Writes slices, of which the first has this number, and gives the bits of those whose use is to be noted.
#[inline(always)]
fn write_slices(
    args: &[Arg<'_>],
    first: u32,
    place: &mut [[u8; 16]],
    device: DeviceCode,
    stream: &OrderedStream,
) -> Option<u64> {
    /// From how many on it is less to ask of all at once first.
    const MANY: usize = 4;
    let reads = ReadsOf::new(stream.place());
    if args.len() >= MANY {
        let (mut devices, mut readers) = (device, u64::MAX);
        for (arg, to) in args.iter().zip(&mut *place) {
            *to = bytes_of(arg);
            match &arg.rest {
                Rest::Read(memory) => {
                    devices = devices.and(memory.code());
                    readers &= memory.uses().readers();
                }
                _ => readers = 0,
            }
        }
        if devices == device && reads.are_in(readers) {
            return Some(0);
        }
    }
    let mut to_note = 0;
    for (number, (arg, to)) in (first..).zip(args.iter().zip(place)) {
        *to = bytes_of(arg);
        let (memory, writes) = arg.memory()?;
        if memory.code() != device {
            return None;
        }
        let uses = memory.uses();
        if writes || !uses.are_noted(reads) {
            if !stream.is_behind(uses, writes) {
                return None;
            }
            to_note |= 1u64.checked_shl(number)?;
        }
    }
    Some(to_note)
}

#[inline(always)]
fn bytes_of(arg: &Arg<'_>) -> [u8; 16] {
    let [first, second] = arg.words.map(u128::from);
    (second << 64 | first).to_le_bytes()
}

/// The kind of an argument, and where it lies.
fn place_of(param: &ParamKind) -> Option<(Kind, u32)> {
    match *param {
        ParamKind::Value(slot) => {
            let kind = kind_of_value(slot.size as usize)?;
            Some((kind, slot.offset))
        }
        ParamKind::Slice { address, length } if length.offset == address.offset + 8 => {
            Some((Kind::Slices, address.offset))
        }
        ParamKind::Slice { .. } | ParamKind::Reference { .. } => None,
    }
}

fn kind_of(arg: &Arg<'_>) -> Option<Kind> {
    match (arg.passed.kind, &arg.rest) {
        (Some(ArgumentKind::Value), Rest::Value) => kind_of_value(arg.passed.size),
        (Some(ArgumentKind::Slice { .. }), Rest::Read(_) | Rest::Written(_)) => Some(Kind::Slices),
        _ => None,
    }
}

fn kind_of_value(size: usize) -> Option<Kind> {
    match size {
        4 => Some(Kind::Fours),
        8 => Some(Kind::Eights),
        1..=8 => Some(Kind::One),
        9..=16 => Some(Kind::Two),
        _ => None,
    }
}
