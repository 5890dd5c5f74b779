//! Changes of memory in one step, which are inline PTX.
//!
//! The threads of a block take turns on one thread of the host, and each sees what those before it did.

use kiln_ir::AtomicOp;
use kiln_ir::gpu_on_host::{Change, Element};

/// Changes what is at the address that the first of `args` is; gives what was there.
///
/// # Safety
/// The address may be accessed, and nobody else does meanwhile.
pub(super) unsafe fn change(change: Change, element: Element, args: &[u64]) -> u64 {
    let address = std::ptr::with_exposed_provenance_mut::<u8>(args[0] as usize);
    let value = |n: usize| truncated(args[n], element.bits);
    // SAFETY: the caller's promise.
    let old = unsafe { load(address, element.bits) };
    let new = match change {
        Change::Modify(op) => combined(op, element, old, value(1)),
        Change::CompareAndSwap if old == value(1) => value(2),
        Change::CompareAndSwap => return old,
    };
    // SAFETY: the caller's promise.
    unsafe { store(address, element.bits, new) };
    old
}

/// Exchanges, or compares and swaps, the 16 bytes at the address that the first of `args` is; gives what was there.
///
/// # Safety
/// The address may be accessed, and nobody else does meanwhile.
pub(super) unsafe fn change_words(change: Change, args: &[u64]) -> [u64; 2] {
    let place = std::ptr::with_exposed_provenance_mut::<[u64; 2]>(args[0] as usize);
    let operand = |n: usize| [args[1 + 2 * n], args[2 + 2 * n]];
    // SAFETY: the caller's promise.
    let old = unsafe { place.read() };
    let new = match change {
        Change::Modify(_) => operand(0),
        Change::CompareAndSwap if old == operand(0) => operand(1),
        Change::CompareAndSwap => return old,
    };
    // SAFETY: the caller's promise.
    unsafe { place.write(new) };
    old
}

fn truncated(value: u64, bits: u32) -> u64 {
    value << (64 - bits) >> (64 - bits)
}

/// # Safety
/// That many bits may be read there.
unsafe fn load(address: *const u8, bits: u32) -> u64 {
    let mut bytes = [0; 8];
    let count = bits as usize / 8;
    // SAFETY: the caller's promise; a word has at least as many bytes.
    unsafe { address.copy_to_nonoverlapping(bytes.as_mut_ptr(), count) };
    u64::from_le_bytes(bytes)
}

/// # Safety
/// That many bits may be written there.
unsafe fn store(address: *mut u8, bits: u32, value: u64) {
    let bytes = value.to_le_bytes();
    // SAFETY: the caller's promise; a word has at least as many bytes.
    unsafe { address.copy_from_nonoverlapping(bytes.as_ptr(), bits as usize / 8) };
}

/// What an atomic operation puts in the place of `old`.
fn combined(op: AtomicOp, element: Element, old: u64, value: u64) -> u64 {
    let signed = |x: u64| (x << (64 - element.bits)) as i64 >> (64 - element.bits);
    let smaller = match element.class {
        's' => signed(value) < signed(old),
        _ => value < old,
    };
    let result = match op {
        AtomicOp::Add => match (element.class, element.bits) {
            ('f', 32) => {
                let sum = f32::from_bits(old as u32) + f32::from_bits(value as u32);
                sum.to_bits().into()
            }
            ('f', _) => (f64::from_bits(old) + f64::from_bits(value)).to_bits(),
            _ => old.wrapping_add(value),
        },
        AtomicOp::Min => match smaller {
            true => value,
            false => old,
        },
        AtomicOp::Max => match smaller {
            true => old,
            false => value,
        },
        AtomicOp::And => old & value,
        AtomicOp::Or => old | value,
        AtomicOp::Xor => old ^ value,
        AtomicOp::Exchange => value,
        AtomicOp::Increment if old >= value => 0,
        AtomicOp::Increment => old + 1,
        AtomicOp::Decrement if old == 0 || old > value => value,
        AtomicOp::Decrement => old - 1,
    };
    truncated(result, element.bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_combined_by_their_type() {
        let element = |class, bits| Element { class, bits };
        let byte = |x: i8| u64::from(x as u8);
        let of = |op, class| combined(op, element(class, 8), byte(-3), byte(5));
        assert_eq!(of(AtomicOp::Min, 's'), byte(-3));
        assert_eq!(of(AtomicOp::Min, 'u'), 5);
        assert_eq!(of(AtomicOp::Max, 's'), 5);
        assert_eq!(of(AtomicOp::Max, 'u'), byte(-3));
        assert_eq!(of(AtomicOp::Add, 'u'), 2);
        let [one, two] = [1.5f32, 2.25].map(|x| u64::from(x.to_bits()));
        let sum = combined(AtomicOp::Add, element('f', 32), one, two);
        assert_eq!(f32::from_bits(sum as u32), 3.75);
    }
}
