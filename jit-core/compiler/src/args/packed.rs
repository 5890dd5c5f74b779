//! The parameter block of a launch whose parameters rustc knows.
//!
//! Each argument is written where the launch is made, one after the other, at places that the compiler of the host
//! computes; so are the numbers that tell the list of types. What is left of a number as an argument is a load and a
//! store. Whoever launches compares one key with that of the code, for which [`is_straight`] has found once that its
//! layout is the one that is written here. What cannot be written so is launched by its [`Arg`]s.

use kiln_ir::abi::{ParamKind, ParamLayout};

use super::signature::Passed;
use super::{Arg, ArgSignature, Payload};
use crate::buffer::{in_block, is_usual};
use crate::error::Error;
use crate::runtime::{DeviceCode, Part, ReadsOf, Uses};
use crate::specialize::ArgumentKind;
use crate::value::{KernelType, value_words};
use crate::view::{IntoView, KernelView};

/// Tells lists of types apart, as digests of types do.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PackedKey(u64, u64);

/// How far a block is written, and what is known of it. It is handed on by value and goes on in the same way whatever
/// the arguments are, so that the compiler of the host knows places and key at each.
#[derive(Copy, Clone)]
pub struct Packing {
    key: PackedKey,
    at: usize,
    /// Buffers so far, those that are read and those that are written.
    used: [usize; 2],
    device: DeviceCode,
    /// What the codes of all slices have in common.
    devices: DeviceCode,
    reads: ReadsOf,
    /// What the readers of all that are read have in common.
    readers: u64,
    fits: bool,
}

/// The uses of a buffer that a launch looks at.
pub type UsesOf<'b> = Option<&'b Uses>;

/// Where arguments are written: a block of zeros, and the buffers whose uses a launch looks at.
pub struct Parameters<'p, 'b> {
    /// The block.
    pub bytes: &'p mut [u8],
    /// Buffers that are read.
    pub read: &'p mut [UsesOf<'b>],
    /// Buffers that are written.
    pub written: &'p mut [UsesOf<'b>],
}

/// What was written for a launch.
pub struct Packed<'p, 'b> {
    /// What tells the types of the arguments.
    pub key: PackedKey,
    /// The block, and what is behind it, as zeros.
    pub bytes: &'p mut [u8],
    /// The buffers that are read; none where the reading of all is in order and noted already.
    pub read: &'p [UsesOf<'b>],
    /// The buffers that are written.
    pub written: &'p [UsesOf<'b>],
}

impl Packing {
    /// Of a launch in a device's stream.
    #[inline(always)]
    pub fn new(device: DeviceCode, place: usize) -> Packing {
        Packing {
            key: PackedKey(0, 0),
            at: 0,
            used: [0; 2],
            device,
            devices: device,
            reads: ReadsOf::new(place),
            readers: u64::MAX,
            fits: true,
        }
    }

    /// What was written there, if all was.
    #[inline(always)]
    pub fn done<'p, 'b>(self, to: Parameters<'p, 'b>) -> Option<Packed<'p, 'b>> {
        let Packing {
            key, fits, used, ..
        } = self;
        let read = match self.reads.are_in(self.readers) {
            true => 0,
            false => used[0],
        };
        match (to.read.get(..read), to.written.get(..used[1])) {
            (Some(read), Some(written)) if fits & self.is_of_device() => Some(Packed {
                key,
                bytes: to.bytes,
                read,
                written,
            }),
            _ => None,
        }
    }

    /// The key, if all was written.
    #[inline]
    pub fn key(self) -> Option<PackedKey> {
        (self.fits & self.is_of_device()).then_some(self.key)
    }

    /// Whether all slices are straight and lie on the device.
    #[inline(always)]
    fn is_of_device(&self) -> bool {
        self.devices == self.device
    }

    /// Something that is not written to blocks in this way.
    #[inline(always)]
    pub fn apart(self) -> Packing {
        Packing {
            fits: false,
            ..self
        }
    }

    /// What follows is the field of a view; the number is [`field_key`]'s.
    #[inline(always)]
    pub fn field(self, key: u64) -> Packing {
        self.with(key, !key)
    }

    #[inline(always)]
    #[expect(
        clippy::manual_rotate,
        reason = "`rotate_left` is generic in core: where code is optimized less, it is a call if some crate before has it"
    )]
    fn with(self, first: u64, second: u64) -> Packing {
        let PackedKey(a, b) = self.key;
        let key = PackedKey((a << 23 | a >> 41) ^ first, (b << 41 | b >> 23) ^ second);
        let key = PackedKey(
            key.0.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            key.1.wrapping_mul(0xc2b2_ae3d_27d4_eb4f),
        );
        Packing { key, ..self }
    }

    #[inline(always)]
    fn of(self, passed: &Passed) -> Packing {
        let (first, second) = passed.words();
        self.with(first, second)
    }

    /// Writes bytes where a value of that alignment lies next.
    #[inline(always)]
    fn put<const SIZE: usize>(self, bytes: [u8; SIZE], to: &mut Parameters<'_, '_>) -> Packing {
        let slot = to.bytes.get_mut(self.at..);
        let slot = slot.and_then(|slot| slot.first_chunk_mut());
        let fits = self.fits & slot.is_some();
        if let Some(slot) = slot {
            *slot = bytes;
        }
        let at = self.at + SIZE;
        Packing { at, fits, ..self }
    }

    #[inline(always)]
    fn aligned(self, to: usize) -> Packing {
        let at = self.at.next_multiple_of(to);
        Packing { at, ..self }
    }
}

/// The number of a field's name.
pub const fn field_key(name: &str) -> u64 {
    let (bytes, mut key, mut at) = (name.as_bytes(), 0xcbf2_9ce4_8422_2325_u64, 0);
    while at < bytes.len() {
        key = (key ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    key
}

/// Writes a value.
#[inline(always)]
pub(crate) fn pack_value<T: KernelType>(
    value: &T,
    packing: Packing,
    to: &mut Parameters<'_, '_>,
) -> Packing {
    let packing = packing.of(const { &Passed::new::<T>(ArgumentKind::Value) });
    if size_of::<T>() > 16 {
        return packing.apart();
    }
    let [first, second] = value_words(value);
    let packing = packing.aligned(align_of::<T>());
    let next = match size_of::<T>() {
        0 => packing,
        1 => packing.put((first as u8).to_le_bytes(), to),
        2 => packing.put((first as u16).to_le_bytes(), to),
        4 => packing.put((first as u32).to_le_bytes(), to),
        8 => packing.put(first.to_le_bytes(), to),
        // What is beyond the value is zeros, and written again by what follows.
        3 | 5..=7 => packing.put(first.to_le_bytes(), to),
        _ => packing
            .put(first.to_le_bytes(), to)
            .put(second.to_le_bytes(), to),
    };
    Packing {
        at: packing.at + size_of::<T>(),
        ..next
    }
}

/// Writes a slice that [`is_usual`]; with others it is not straight.
#[inline(always)]
pub(crate) fn pack_slice<'b, T: KernelType>(
    part: &'b Part<T>,
    mutable: bool,
    packing: Packing,
    to: &mut Parameters<'_, 'b>,
) -> Packing {
    let memory = Part::memory(part);
    // Which of them is known where the argument is a buffer.
    let (bytes, device) = match part.is_whole() {
        true => memory.passed(),
        false => {
            let (address, len) = (part.address(), part.len());
            let device = match is_usual(address, len) {
                true => memory.code(),
                false => DeviceCode::NONE,
            };
            (in_block(address, len), device)
        }
    };
    let slice = Slice {
        bytes,
        device,
        uses: memory.uses(),
    };
    slice.pack::<T>(mutable, packing, to)
}

/// A slice that is written.
struct Slice<'b> {
    bytes: [u8; 16],
    /// Of no device if it is not straight.
    device: DeviceCode,
    uses: &'b Uses,
}

impl<'b> Slice<'b> {
    /// Nothing is decided here: what all slices have in common is looked at once.
    #[inline(always)]
    fn pack<T: KernelType>(
        self,
        mutable: bool,
        packing: Packing,
        to: &mut Parameters<'_, 'b>,
    ) -> Packing {
        let passed = match mutable {
            true => const { &Passed::new::<T>(ArgumentKind::Slice { mutable: true }) },
            false => const { &Passed::new::<T>(ArgumentKind::Slice { mutable: false }) },
        };
        let at = packing.aligned(8).at;
        // What is beyond the length is zeros, and written again by what follows.
        let packing = packing.of(passed).aligned(8).put(self.bytes, to);
        let (list, mut used) = (
            match mutable {
                true => &mut *to.written,
                false => &mut *to.read,
            },
            packing.used,
        );
        let number = &mut used[usize::from(mutable)];
        let entry = list.get_mut(*number);
        let fits = packing.fits & entry.is_some();
        if let Some(entry) = entry {
            *entry = Some(self.uses);
        }
        *number += 1;
        Packing {
            at: at + 12,
            fits,
            used,
            devices: packing.devices.and(self.device),
            readers: match mutable {
                true => packing.readers,
                false => packing.readers & self.uses.readers(),
            },
            ..packing
        }
    }
}

/// Whether these arguments, which are no views, lie in a kernel's block as they would be written one after the other,
/// and nothing but the fault channel besides.
pub fn is_straight(args: &[Arg<'_>], layout: &ParamLayout) -> bool {
    let mut at = 0;
    let mut is_next = |(arg, kind): (&Arg<'_>, &ParamKind)| {
        let ArgSignature { passed, facts, .. } = arg.type_signature();
        match (arg.payload(), kind) {
            (Payload::Slice { .. }, ParamKind::Slice { address, length }) => {
                at = usize::next_multiple_of(at, 8) + 12;
                let short = facts.aligned_16() && !facts.long();
                let lies = address.range() == (at - 12..at - 4) && length.range() == (at - 4..at);
                short && lies
            }
            (Payload::Word(_) | Payload::Words(_), ParamKind::Value(slot)) => {
                let start = at.next_multiple_of(passed.align);
                at = start + passed.size;
                slot.range() == (start..at)
            }
            _ => false,
        }
    };
    let hidden = layout.params.len() - layout.visible;
    args.len() == layout.visible
        && hidden == usize::from(layout.fault_channel.is_some())
        && args.iter().zip(&layout.params).all(&mut is_next)
}

/// What a host value becomes for a kernel that takes a view.
pub struct Viewed<'a, V: KernelView<'a>>(V::Args);

impl<'a, V: KernelView<'a>> Viewed<'a, V> {
    /// Of a value that is passed.
    #[inline(always)]
    ///
    /// # Errors
    /// What is no such view.
    pub fn of(value: impl IntoView<'a, V>) -> Result<Self, Error> {
        value.into_view().map(Viewed)
    }

    /// The argument.
    pub fn into_arg(self) -> Arg<'a> {
        V::arg(self.0)
    }

    /// Writes it.
    #[inline(always)]
    pub fn pack<'b>(&'b self, packing: Packing, to: &mut Parameters<'_, 'b>) -> Packing {
        V::pack(&self.0, packing, to)
    }
}
