//! The parameter block of one launch: what the host writes, and what devices read, without `unsafe`.
//! A launch is some hundred instructions, so what it asks is compiled into it.

use smallvec::SmallVec;

use super::{ParamKind, ParamLayout, ParamSlot};

/// An address in a device's memory.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct DeviceAddress(pub u64);

/// What a launch passes, in one block of bytes as the kernel's [`ParamLayout`] has it. Padding, and what
/// nobody has written, is zeros.
#[derive(Debug)]
pub struct LaunchArgs<'a> {
    layout: &'a ParamLayout,
    block: &'a mut [u8],
}

/// The memory of a parameter block, which no launch of some hundred arguments allocates.
pub type LaunchBlock = SmallVec<[u8; 2048]>;

impl ParamSlot {
    #[cold]
    fn write_low_bytes(self, block: &mut [u8], number: u64) {
        block[self.range()].copy_from_slice(&number.to_le_bytes()[..self.size as usize]);
    }

    /// Writes the low bytes of a number to a slot of at most 8 bytes of a block.
    ///
    /// # Panics
    /// A larger slot, or a block without it.
    #[inline]
    pub fn write_number(self, block: &mut [u8], number: u64) {
        let place = block.get_mut(self.offset as usize..).unwrap_or_default();
        // As numbers, not as bytes: LLVM would make one call of both copies.
        if self.size == 4
            && let Some(four) = place.first_chunk_mut()
        {
            *four = (number as u32).to_le_bytes();
        } else if self.size == 8
            && let Some(eight) = place.first_chunk_mut()
        {
            *eight = number.to_le_bytes();
        } else {
            self.write_low_bytes(block, number);
        }
    }
}

/// What is passed for one parameter.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum LaunchArg<'a> {
    /// The bytes of a value as it lies in memory.
    Value(&'a [u8]),
    /// Where the bytes of a value are.
    Reference {
        /// The address of the first.
        address: DeviceAddress,
        /// How many they are.
        bytes: u32,
    },
    /// The elements of a slice.
    Slice {
        /// The address of the first.
        address: DeviceAddress,
        /// How many they are.
        length: u64,
    },
}

/// The numbers that launches pass.
mod sealed {
    pub trait Scalar {}
}

/// A number of the host that a kernel's value can be read as; [`LaunchArg::scalar`].
pub trait LaunchScalar: Sized + sealed::Scalar {
    /// The number, if its size is that of the bytes, which are as this machine has them.
    fn read(bytes: &[u8]) -> Option<Self>;
}

macro_rules! launch_scalars {
    ($($number:ty)*) => {$(
        impl sealed::Scalar for $number {}

        impl LaunchScalar for $number {
            fn read(bytes: &[u8]) -> Option<$number> {
                bytes.try_into().ok().map(<$number>::from_ne_bytes)
            }
        }
    )*};
}

launch_scalars! { i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 }

impl sealed::Scalar for bool {}

impl LaunchScalar for bool {
    fn read(bytes: &[u8]) -> Option<bool> {
        u8::read(bytes).map(|byte| byte != 0)
    }
}

impl<'a> LaunchArg<'a> {
    /// The number that is passed, if it is a value of that size.
    pub fn scalar<T: LaunchScalar>(self) -> Option<T> {
        match self {
            LaunchArg::Value(bytes) => T::read(bytes),
            LaunchArg::Reference { .. } | LaunchArg::Slice { .. } => None,
        }
    }

    /// The address that is passed, if it is one of memory that the kernel goes to.
    pub fn address(self) -> Option<DeviceAddress> {
        match self {
            LaunchArg::Reference { address, .. } | LaunchArg::Slice { address, .. } => {
                Some(address)
            }
            LaunchArg::Value(_) => None,
        }
    }
}

impl<'a> LaunchArgs<'a> {
    /// A block of zeros.
    pub fn new(layout: &'a ParamLayout, block: &'a mut LaunchBlock) -> LaunchArgs<'a> {
        block.clear();
        block.resize(layout.size as usize, 0);
        LaunchArgs { layout, block }
    }

    /// A block of these zeros, of which there are enough.
    #[doc(hidden)]
    #[inline]
    pub fn in_zeros(layout: &'a ParamLayout, zeros: &'a mut [u8]) -> Option<LaunchArgs<'a>> {
        let block = zeros.get_mut(..layout.size as usize)?;
        Some(LaunchArgs { layout, block })
    }

    /// How the block is laid out.
    #[inline]
    pub fn layout(&self) -> &'a ParamLayout {
        self.layout
    }

    /// The block.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.block
    }

    /// The block, for a device that writes its own part of it.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.block
    }

    /// What is passed for the parameter at a position; `None` if there is none.
    pub fn get(&self, position: usize) -> Option<LaunchArg<'_>> {
        self.layout.params.get(position).map(|kind| self.arg(kind))
    }

    /// What is passed for each parameter, in order.
    pub fn iter(&self) -> impl Iterator<Item = LaunchArg<'_>> {
        self.layout.params.iter().map(|kind| self.arg(kind))
    }

    fn arg(&self, kind: &ParamKind) -> LaunchArg<'_> {
        let address = |slot: &ParamSlot| DeviceAddress(self.number(*slot));
        match kind {
            ParamKind::Value(slot) => LaunchArg::Value(self.slot(*slot)),
            ParamKind::Reference {
                address: slot,
                bytes,
            } => LaunchArg::Reference {
                address: address(slot),
                bytes: *bytes,
            },
            ParamKind::Slice {
                address: slot,
                length,
            } => LaunchArg::Slice {
                address: address(slot),
                length: self.number(*length),
            },
        }
    }

    /// The bytes in a slot of the layout.
    #[inline]
    pub(crate) fn slot(&self, slot: ParamSlot) -> &[u8] {
        &self.block[slot.range()]
    }

    /// The number in a slot of at most 8 bytes, as an address or a length.
    fn number(&self, slot: ParamSlot) -> u64 {
        let mut number = [0; 8];
        number[..slot.size as usize].copy_from_slice(self.slot(slot));
        u64::from_le_bytes(number)
    }

    /// Writes the first bytes of a slot.
    ///
    /// # Panics
    /// More bytes than the slot has, or a slot of another layout.
    #[inline]
    pub fn put(&mut self, slot: ParamSlot, bytes: &[u8]) {
        self.block[slot.range()][..bytes.len()].copy_from_slice(bytes);
    }

    /// Writes the low bytes of a number to a slot of at most 8 bytes: an address or a length.
    ///
    /// # Panics
    /// As [`LaunchArgs::put`].
    #[inline]
    pub fn put_number(&mut self, slot: ParamSlot, number: u64) {
        slot.write_number(self.block, number);
    }

    /// Writes the address by which threads report faults, if the kernel is passed one: the device's own
    /// part.
    #[inline]
    pub fn put_fault_channel(&mut self, address: DeviceAddress) {
        if let Some(slot) = self.layout.fault_channel {
            self.put_number(slot, address.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    /// The layout of a kernel with these parameters.
    fn layout(params: &str) -> ParamLayout {
        let text = format!(
            "module m legal\nhidden hidden0 faults: ptr<global, mut u64> fault_channel\n\n\
             kernel @k({params}) {{\n}}\n"
        );
        let module = parse(&text, &|_| None).unwrap_or_else(|error| panic!("{error}\n{text}"));
        ParamLayout::of(&module).expect("a kernel")
    }

    #[test]
    fn what_is_written_is_read() {
        let layout = layout(
            "%0 a: f32, %1 b: bool, %2 x: slice<global, f32>, %3 n: i64, \
             %4 faults: ptr<global, mut u64> hidden0",
        );
        let mut block = LaunchBlock::new();
        let mut args = LaunchArgs::new(&layout, &mut block);
        let slots: Vec<ParamSlot> = layout.slots.clone();
        args.put(slots[0], &2.5f32.to_ne_bytes());
        args.put(slots[1], &[1]);
        args.put_number(slots[2], 0x1234_5678_9abc);
        args.put_number(slots[3], 77);
        args.put(slots[4], &(-3i64).to_ne_bytes());
        args.put_fault_channel(DeviceAddress(9));
        assert_eq!(args.get(0).and_then(LaunchArg::scalar), Some(2.5f32));
        assert_eq!(args.get(1).and_then(LaunchArg::scalar), Some(true));
        let slice = LaunchArg::Slice {
            address: DeviceAddress(0x1234_5678_9abc),
            length: 77,
        };
        assert_eq!(args.get(2), Some(slice));
        assert_eq!(args.get(3).and_then(LaunchArg::scalar), Some(-3i64));
        assert_eq!(args.get(4).and_then(LaunchArg::scalar), Some(9u64));
        assert_eq!((args.iter().count(), layout.visible), (5, 4));
        assert_eq!(args.get(5), None);
        assert_eq!(layout.fault_channel, Some(slots[5]));
        let addresses: Vec<_> = args.iter().filter_map(LaunchArg::address).collect();
        assert_eq!(addresses, [DeviceAddress(0x1234_5678_9abc)]);
    }

    #[test]
    fn a_number_of_another_size_is_none() {
        let layout = layout("%0 a: f32, %1 x: slice<global, f32>");
        let mut block = LaunchBlock::new();
        let args = LaunchArgs::new(&layout, &mut block);
        assert_eq!(args.get(0).and_then(LaunchArg::scalar::<f64>), None);
        assert_eq!(args.get(0).and_then(LaunchArg::scalar::<u8>), None);
        assert_eq!(args.get(1).and_then(LaunchArg::scalar::<u64>), None);
        assert_eq!(layout.fault_channel, None);
    }
}
