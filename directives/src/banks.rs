//! Banks of shared memory: how often warps go to them for what a block copies and reads, and rows that are longer than they
//! need be so that they go less often.
//!
//! Neighbouring words of 4 bytes lie in neighbouring ones of 32 banks, each of which gives a warp one word at a time (CUDA
//! guide, "Shared Memory"). Where a warp reads along a column of a box whose rows have 32 words, all come from one bank, one
//! after the other; with a word more in each row each comes from its own.

use crate::section::{Ranging, Read, Section};

/// Threads of a warp, and banks.
const WARP: usize = crate::along::WARP as usize;
/// Bytes of a word.
const WORD: i128 = 4;

/// How many elements more than it needs a row of a section has in shared memory: the fewest with which the warps of a
/// block go to banks least often.
pub(crate) fn padding(section: &Section, threads: &[u32]) -> i128 {
    if section.dims.len() < 2 {
        return 0;
    }
    let most = WARP as i128 * WORD / section.element_bytes.clamp(1, WORD);
    let mut best = (usize::MAX, 0);
    for padding in 0..most {
        let (turns, least) = turns(section, threads, padding);
        if turns < best.0 {
            best = (turns, padding);
        }
        if turns == least {
            break;
        }
    }
    best.1
}

/// How often the warps of a block go to a bank, for each read of a section and for the first elements that are copied; and
/// how often they would without conflicts.
fn turns(section: &Section, threads: &[u32], padding: i128) -> (usize, usize) {
    let pitches = section.pitches(padding);
    let count: usize = threads.iter().map(|&extent| extent as usize).product();
    let (mut turns, mut least) = (0, 0);
    let mut add = |place: &dyn Fn(usize) -> Option<i128>| {
        for first in (0..count).step_by(WARP) {
            let lanes = first..count.min(first + WARP);
            let places: Vec<i128> = lanes.filter_map(place).collect();
            turns += of_warp(&places, section.element_bytes);
            least += places.len().div_ceil(at_once(section.element_bytes))
                * words_of(section.element_bytes);
        }
    };
    for read in &section.reads {
        add(&|thread| place_of(read, &pitches, threads, thread));
    }
    add(&|thread| {
        let mut rest = thread as i128;
        let mut sum = 0;
        for (dim, pitch) in section.dims.iter().zip(&pitches).rev() {
            sum += rest % dim.extent * pitch;
            rest /= dim.extent;
        }
        (rest == 0).then_some(sum)
    });
    (turns, least)
}

/// The place in shared memory of what a thread reads, with all else that ranges at its first turn; none if it reads nothing.
fn place_of(read: &Read, pitches: &[i128], threads: &[u32], thread: usize) -> Option<i128> {
    let places = places_of(thread, threads);
    let mut sum = 0;
    for (place, pitch) in read.places.iter().zip(pitches) {
        for term in &place.terms {
            if let Ranging::Thread(along) = term.ranging {
                let own = along.place(&places).filter(|own| *own < term.count)?;
                sum += term.factor * own * pitch;
            }
        }
    }
    Some(sum)
}

/// How often the first warp goes to a bank for its worst read of a section, with so many threads at once as have 128 bytes; none
/// if any element may be read.
pub(crate) fn degree(section: &Section, threads: &[u32], padding: i128) -> Option<usize> {
    let pitches = section.pitches(padding);
    let count: usize = threads.iter().map(|&extent| extent as usize).product();
    let of_read = |read: &Read| {
        let lanes = 0..count.min(WARP);
        let places = lanes.filter_map(|thread| place_of(read, &pitches, threads, thread));
        let places: Vec<i128> = places.collect();
        let parts = places.chunks(at_once(section.element_bytes));
        parts.map(|part| of_part(part, section.element_bytes)).max()
    };
    let is_known = section.reads.iter().all(|read| read.whole.is_none());
    is_known.then(|| section.reads.iter().filter_map(of_read).max())?
}

/// Where a thread is along the dimensions of its block.
pub(crate) fn places_of(thread: usize, threads: &[u32]) -> Vec<i128> {
    let mut rest = thread as i128;
    let mut places = Vec::with_capacity(threads.len());
    for &extent in threads.iter().rev() {
        places.push(rest % i128::from(extent));
        rest /= i128::from(extent);
    }
    places.reverse();
    places
}

/// How often a warp goes to the bank to which it goes most often, for elements at these places: at once for as many
/// threads as have 128 bytes.
fn of_warp(places: &[i128], bytes: i128) -> usize {
    let parts = places.chunks(at_once(bytes));
    parts.map(|part| of_part(part, bytes)).sum()
}

/// The threads of a warp that go to banks at once.
fn at_once(bytes: i128) -> usize {
    (WARP as i128 * WORD / bytes.max(WORD)).max(1) as usize
}

/// How often threads that go to banks at once go to one at least: for elements of more bytes than all banks give at a time.
fn words_of(bytes: i128) -> usize {
    (bytes.div_euclid(WARP as i128 * WORD)).max(1) as usize
}

/// How often threads that go to banks at once go to one.
fn of_part(places: &[i128], bytes: i128) -> usize {
    let words = places
        .iter()
        .flat_map(|place| place * bytes / WORD..=(place * bytes + bytes - 1) / WORD);
    let mut words: Vec<i128> = words.collect();
    words.sort_unstable();
    words.dedup();
    let mut banks = [0; WARP];
    for word in words {
        banks[word.rem_euclid(WARP as i128) as usize] += 1;
    }
    banks.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::of_warp;

    #[test]
    fn a_warp_goes_to_a_bank_for_each_of_its_words() {
        let strided = |stride: i128| -> Vec<i128> { (0..32).map(|lane| lane * stride).collect() };
        for (stride, times) in [(0, 1), (1, 1), (2, 2), (16, 16), (32, 32), (33, 1)] {
            assert_eq!(of_warp(&strided(stride), 4), times, "{stride}");
        }
        // Two words each, by half a warp at a time; four bytes of a word for four threads.
        assert_eq!(of_warp(&strided(1), 8), 2);
        assert_eq!(of_warp(&strided(1), 1), 1);
        assert_eq!(of_warp(&[], 4), 0);
    }
}
