//! What warp operations mean: the results of all lanes from the arguments of all lanes.

use kiln_jit_core::ir::{Lanes, Scalar, WARP_LANES, WarpArgs};

/// One result in all lanes.
fn everywhere(result: u64) -> Lanes {
    [result; WARP_LANES]
}

/// The lanes that take part and for which `chosen` holds, as a mask.
fn lanes_where(warp: &WarpArgs<'_>, chosen: impl Fn(usize) -> bool) -> u32 {
    warp.each()
        .filter(|&lane| chosen(lane))
        .fold(0, |mask, lane| mask | 1 << lane)
}

/// A shuffle of arguments mask, value, source, width. `source` gives the lane to read for a lane,
/// its source operand and the first and last lane of its segment (PTX ISA, "shfl.sync", whose
/// segment mask is `32 - width`); beyond the segment, or if that lane takes no part, a lane reads
/// itself.
fn shuffle(warp: &WarpArgs<'_>, source: fn(u32, u32, [u32; 2]) -> Option<u32>) -> Lanes {
    let mut results = warp.args[1];
    for lane in warp.each() {
        let from = warp.args[2][lane] as u32 % WARP_LANES as u32;
        let outside = 32u32.wrapping_sub(warp.args[3][lane] as u32) % WARP_LANES as u32;
        let first = lane as u32 & outside;
        let segment = [first, first | (!outside % WARP_LANES as u32)];
        let read = source(lane as u32, from, segment).filter(|&read| warp.takes_part(read));
        results[lane] = warp.args[1][read.map_or(lane, |read| read as usize)];
    }
    results
}

pub(super) fn shuffle_idx(_: Scalar, warp: &WarpArgs<'_>) -> Lanes {
    shuffle(warp, |_, from, [first, last]| {
        Some(first | (from & (first ^ last)))
    })
}

pub(super) fn shuffle_up(_: Scalar, warp: &WarpArgs<'_>) -> Lanes {
    shuffle(warp, |lane, delta, [first, _]| {
        lane.checked_sub(delta).filter(|&read| read >= first)
    })
}

pub(super) fn shuffle_down(_: Scalar, warp: &WarpArgs<'_>) -> Lanes {
    shuffle(warp, |lane, delta, [_, last]| {
        Some(lane + delta).filter(|&read| read <= last)
    })
}

pub(super) fn shuffle_xor(_: Scalar, warp: &WarpArgs<'_>) -> Lanes {
    shuffle(warp, |lane, lanes, [_, last]| {
        Some(lane ^ lanes).filter(|&read| read <= last)
    })
}

/// The lanes that vote yes; arguments mask, predicate.
fn yes(warp: &WarpArgs<'_>) -> u32 {
    lanes_where(warp, |lane| warp.args[1][lane] != 0)
}

pub(super) fn ballot(_: Scalar, warp: &WarpArgs<'_>) -> Lanes {
    everywhere(yes(warp).into())
}

pub(super) fn all(_: Scalar, warp: &WarpArgs<'_>) -> Lanes {
    everywhere((yes(warp) == warp.lanes).into())
}

pub(super) fn any(_: Scalar, warp: &WarpArgs<'_>) -> Lanes {
    everywhere((yes(warp) != 0).into())
}

pub(super) fn uniform(_: Scalar, warp: &WarpArgs<'_>) -> Lanes {
    let yes = yes(warp);
    everywhere((yes == 0 || yes == warp.lanes).into())
}

pub(super) fn active_mask(_: Scalar, warp: &WarpArgs<'_>) -> Lanes {
    everywhere(warp.lanes.into())
}

/// The lanes with the value of `lane`; arguments mask, value.
fn alike(warp: &WarpArgs<'_>, lane: usize) -> u32 {
    let values = &warp.args[1];
    lanes_where(warp, |other| values[other] == values[lane])
}

pub(super) fn match_any(_: Scalar, warp: &WarpArgs<'_>) -> Lanes {
    let mut results = everywhere(0);
    for lane in warp.each() {
        results[lane] = alike(warp, lane).into();
    }
    results
}

pub(super) fn match_all(_: Scalar, warp: &WarpArgs<'_>) -> Lanes {
    let first = warp.lanes.trailing_zeros() as usize % WARP_LANES;
    let same = alike(warp, first) == warp.lanes;
    everywhere(if same { warp.lanes.into() } else { 0 })
}

/// A reduction of 32-bit integers; arguments mask, value.
fn reduce(warp: &WarpArgs<'_>, combine: impl Fn(u32, u32) -> u32) -> Lanes {
    let values = warp.each().map(|lane| warp.args[1][lane] as u32);
    everywhere(values.reduce(combine).unwrap_or(0).into())
}

pub(super) fn reduce_add(_: Scalar, warp: &WarpArgs<'_>) -> Lanes {
    reduce(warp, u32::wrapping_add)
}

pub(super) fn reduce_min(scalar: Scalar, warp: &WarpArgs<'_>) -> Lanes {
    match scalar.is_signed_int() {
        true => reduce(warp, |a, b| (a as i32).min(b as i32) as u32),
        false => reduce(warp, u32::min),
    }
}

pub(super) fn reduce_max(scalar: Scalar, warp: &WarpArgs<'_>) -> Lanes {
    match scalar.is_signed_int() {
        true => reduce(warp, |a, b| (a as i32).max(b as i32) as u32),
        false => reduce(warp, u32::max),
    }
}

pub(super) fn reduce_and(_: Scalar, warp: &WarpArgs<'_>) -> Lanes {
    reduce(warp, |a, b| a & b)
}

pub(super) fn reduce_or(_: Scalar, warp: &WarpArgs<'_>) -> Lanes {
    reduce(warp, |a, b| a | b)
}

pub(super) fn reduce_xor(_: Scalar, warp: &WarpArgs<'_>) -> Lanes {
    reduce(warp, |a, b| a ^ b)
}

/// Waiting is all there is to it.
pub(super) fn sync(_: Scalar, _: &WarpArgs<'_>) -> Lanes {
    everywhere(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(f: impl Fn(u32) -> u64) -> Lanes {
        std::array::from_fn(|lane| f(lane as u32))
    }

    /// The results of a shuffle of the lane numbers in the lanes `lanes`.
    fn shuffled(
        f: fn(Scalar, &WarpArgs<'_>) -> Lanes,
        taking_part: u32,
        from: u64,
        width: u64,
    ) -> Vec<u64> {
        let args = [
            lanes(|_| taking_part.into()),
            lanes(u64::from),
            lanes(|_| from),
            lanes(|_| width),
        ];
        let warp = WarpArgs {
            lanes: taking_part,
            args: &args,
        };
        let results = f(Scalar::U32, &warp);
        warp.each().map(|lane| results[lane]).collect()
    }

    #[test]
    fn shuffles_stay_in_their_segments() {
        let low = 0xff;
        assert_eq!(
            shuffled(shuffle_up, low, 1, 4),
            [0, 0, 1, 2, 4, 4, 5, 6],
            "the first lane of a segment keeps its own"
        );
        assert_eq!(
            shuffled(shuffle_down, low, 3, 4),
            [3, 1, 2, 3, 7, 5, 6, 7],
            "the last three keep their own"
        );
        assert_eq!(shuffled(shuffle_idx, low, 6, 4), [2, 2, 2, 2, 6, 6, 6, 6]);
        // Lane 4 of an earlier segment can be read, one of a later segment cannot.
        assert_eq!(shuffled(shuffle_xor, low, 4, 4), [0, 1, 2, 3, 0, 1, 2, 3]);
        assert_eq!(shuffled(shuffle_xor, low, 1, 32), [1, 0, 3, 2, 5, 4, 7, 6]);
    }

    #[test]
    fn lanes_that_take_no_part_are_not_read() {
        assert_eq!(shuffled(shuffle_down, 0b1011, 1, 32), [1, 1, 3]);
        assert_eq!(shuffled(shuffle_idx, 0b1011, 2, 32), [0, 1, 3]);
        // A source counts modulo 32.
        assert_eq!(shuffled(shuffle_idx, 0b1011, 33, 32), [1, 1, 1]);
    }

    #[test]
    fn any_width_gives_some_lane() {
        for f in [shuffle_idx, shuffle_up, shuffle_down, shuffle_xor] {
            for width in [0, 3, 31, 33, 1 << 20, u64::from(u32::MAX)] {
                assert_eq!(shuffled(f, u32::MAX, 13, width).len(), WARP_LANES);
            }
        }
    }

    #[test]
    fn matches_and_reductions_are_over_the_lanes_that_take_part() {
        let values = lanes(|lane| u64::from(lane % 3) | 0xffff_fff0);
        let args = [lanes(|_| 0b1_1111), values];
        let warp = WarpArgs {
            lanes: 0b1_1111,
            args: &args,
        };
        assert_eq!(match_any(Scalar::U32, &warp)[..5], [9, 18, 4, 9, 18]);
        assert_eq!(match_all(Scalar::U32, &warp)[4], 0);
        assert_eq!(reduce_max(Scalar::U32, &warp)[0], 0xffff_fff2);
        assert_eq!(reduce_min(Scalar::I32, &warp)[0], 0xffff_fff0);
        assert_eq!(reduce_and(Scalar::U32, &warp)[0], 0xffff_fff0);
        assert_eq!(reduce_xor(Scalar::U32, &warp)[0], 0xffff_fff2);
        let sum = (0..5u32).fold(0u32, |s, lane| s.wrapping_add(lane % 3 + 0xffff_fff0));
        assert_eq!(reduce_add(Scalar::U32, &warp)[0], sum.into());
    }
}
