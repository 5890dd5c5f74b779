//! What the lanes of a member mask have together on AMD's GPUs, lane by lane: of whichever masks, in one half of a wave and in
//! both, while other lanes are away.

use kiln::core::codegen::amdgpu_target;
use kiln::core::hook::HookSet;
use kiln::prelude::*;
use suite::Outcome;

use super::wave::{Given, stored};

/// Kernels in which each lane has a number, and an operation of those that have its mask: the first, if it is in that.
macro_rules! of_members {
    ($($name:ident: |$mask:ident, $value:ident, $keep:ident| $operation:expr;)*) => {$(
        #[kernel]
        fn $name(out: &mut [u32], first: u64, second: u64, seed: u32, $keep: u32) {
            let i = thread_idx().x;
            let lane = i as u64;
            let wave = second ^ ((first ^ second) * ((first >> lane) & 1));
            let $mask = (wave >> (lane & 32)) as u32;
            let $value = (i as u32 ^ seed).wrapping_mul(0x9e37_79b9);
            out[i] = $operation;
        }
    )*};
}

of_members! {
    members_add: |mask, value, keep| warp_reduce_add(mask, value & keep);
    members_min: |mask, value, keep| warp_reduce_min(mask, value & keep);
    members_max: |mask, value, keep| warp_reduce_max(mask, value & keep);
    members_signed_min: |mask, value, keep| warp_reduce_min(mask, (value & keep) as i32) as u32;
    members_signed_max: |mask, value, keep| warp_reduce_max(mask, (value & keep) as i32) as u32;
    members_and: |mask, value, keep| warp_reduce_and(mask, value | keep);
    members_or: |mask, value, keep| warp_reduce_or(mask, value & keep);
    members_xor: |mask, value, keep| warp_reduce_xor(mask, value & keep);
    members_any: |mask, value, keep| match_any(mask, value & keep);
    members_any_byte: |mask, value, keep| match_any(mask, (value & keep) as u8);
    members_all: |mask, value, keep| match_all(mask, value & keep);
    members_all_long: |mask, value, keep| match_all(mask, ((value & keep) as u64) << 31);
}

/// What an operation gives of the members' lanes and numbers, the thread's own number and what is kept of numbers.
type OnHost = fn(&[(u32, u32)], u32, u32) -> u32;

fn fold(all: &[(u32, u32)], of: impl Fn(u32) -> u32, combine: impl Fn(u32, u32) -> u32) -> u32 {
    let numbers = all.iter().map(|&(_, number)| of(number));
    numbers.reduce(combine).expect("a lane is in its own mask")
}

/// The lanes whose numbers are in some bits as one is.
fn alike(all: &[(u32, u32)], own: u32, bits: u32) -> u32 {
    let alike = all.iter().filter(|(_, number)| (number ^ own) & bits == 0);
    alike.map(|(lane, _)| 1 << lane).sum()
}

/// All lanes, if they are alike.
fn all_alike(all: &[(u32, u32)], own: u32, bits: u32) -> u32 {
    match alike(all, own, bits) {
        some if some.count_ones() as usize == all.len() => some,
        _ => 0,
    }
}

/// Numbers that look like chance.
fn next(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 32) ^ (*state << 24)
}

/// Pairs of masks of the lanes of a wave, of which none is in both: all lanes, single ones, and many others.
fn masks() -> Vec<[u64; 2]> {
    let mut masks = vec![
        [u64::MAX, 0],
        [0, u64::MAX],
        [u32::MAX.into(), 0],
        [0xffff_0000_ffff, 0xffff_0000_ffff_0000],
        [1, u64::MAX - 1],
        [1 << 31 | 1 << 32, 1 | 1 << 63],
        [0x5555_5555_5555_5555, 0xaaaa_aaaa_aaaa_aaaa],
    ];
    let mut state = 17;
    for count in 0..48 {
        let [first, second, third] = [(); 3].map(|()| next(&mut state));
        // Few, many and half of the lanes.
        let first = match count % 3 {
            0 => first & third,
            1 => first | third,
            _ => first,
        };
        let both = [first, second & !first];
        // In every other one the upper half of the wave is away.
        masks.push(match count % 2 {
            0 => both,
            _ => both.map(|mask| mask & u64::from(u32::MAX)),
        });
    }
    masks
}

/// Compares what a kernel gives for all masks with what the host finds.
fn compare(name: &str, text: &str, host: OnHost) {
    let mut state = 4;
    for [first, second] in masks() {
        let seed = next(&mut state) as u32;
        let keep = [u32::MAX, 0, 1, 0x8000_0003][(next(&mut state) % 4) as usize];
        let params = [first, second, seed.into(), keep.into()];
        let active = first | second;
        let given = Given {
            active,
            params: &params,
        };
        let found = stored(text, &given);
        let number = |at: u32| (at ^ seed).wrapping_mul(0x9e37_79b9);
        for at in (0..64u32).filter(|at| active >> at & 1 == 1) {
            let wave = if first >> at & 1 == 1 { first } else { second };
            let mask = (wave >> (at & 32)) as u32;
            let members = (0..32).filter(|lane| mask >> lane & 1 == 1);
            let all: Vec<_> = members.map(|lane| (lane, number(at & 32 | lane))).collect();
            let (found, wanted) = (found[at as usize], host(&all, number(at), keep));
            assert_eq!(
                found,
                u64::from(wanted),
                "{name} in lane {at}, {first:#x} and {second:#x}, {keep:#x}"
            );
        }
    }
}

/// Operations of lanes over masks that differ from lane to lane.
pub fn each_lane() -> Outcome {
    let options = JitOptions::default().target(amdgpu_target("gfx90a"));
    let jit = suite::unchecked(&Jit::with(Device::cpu(), HookSet::new(), options));
    let mut out = jit.zeros::<u32>(1)?;
    macro_rules! compare_all {
        ($($name:ident: $host:expr;)*) => {$(
            let inspection = jit.inspect(&$name, args!(&mut out, 1u64, 1u64, 1u32, 1u32))?;
            compare(stringify!($name), inspection.unoptimized_llvm()?, $host);
        )*};
    }
    compare_all! {
        members_add: |all, _, keep| fold(all, |a| a & keep, u32::wrapping_add);
        members_min: |all, _, keep| fold(all, |a| a & keep, u32::min);
        members_max: |all, _, keep| fold(all, |a| a & keep, u32::max);
        members_signed_min: |all, _, keep| {
            fold(all, |a| a & keep, |a, b| (a as i32).min(b as i32) as u32)
        };
        members_signed_max: |all, _, keep| {
            fold(all, |a| a & keep, |a, b| (a as i32).max(b as i32) as u32)
        };
        members_and: |all, _, keep| fold(all, |a| a | keep, |a, b| a & b);
        members_or: |all, _, keep| fold(all, |a| a & keep, |a, b| a | b);
        members_xor: |all, _, keep| fold(all, |a| a & keep, |a, b| a ^ b);
        members_any: alike;
        members_any_byte: |all, own, keep| alike(all, own, keep & 0xff);
        members_all: all_alike;
        members_all_long: all_alike;
    }
    Ok(())
}
