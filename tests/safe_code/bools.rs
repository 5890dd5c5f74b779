//! Every `bool` that comes back is `true` or `false`, whatever byte the memory held.

use super::jits;
use kiln::prelude::*;

#[derive(KernelType, Copy, Clone, Debug, PartialEq)]
#[repr(C)]
struct Flagged {
    number: u32,
    flags: [bool; 3],
}

/// A `bool` as its byte.
fn bytes(values: &[bool]) -> Vec<u8> {
    values.iter().map(|&b| u8::from(b)).collect()
}

/// The byte that lies there, which `u8::from` may not show for what is no `bool`.
fn raw(values: &[bool]) -> Vec<u8> {
    // SAFETY: a `bool` is a byte.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }.to_vec()
}

#[kernel]
fn never_written(out: &mut [bool], structs: &mut [Flagged]) {
    let flags = shared!([bool; 64]);
    let whole = shared!([Flagged; 64]);
    let t = thread_idx().x;
    out[t] = flags[t];
    structs[t] = whole[t];
}

#[test]
fn of_memory_that_nobody_wrote() {
    for (name, jit) in jits() {
        let mut out = jit.zeros::<bool>(64).expect("memory");
        let mut structs = jit.zeros::<Flagged>(64).expect("memory");
        never_written
            .launch(&jit, (1, 64), &mut out, &mut structs)
            .expect("a launch");
        let out = out.to_vec().expect("bools");
        assert!(raw(&out).iter().all(|&b| b <= 1), "{name}: {:?}", raw(&out));
        let flags: Vec<bool> = structs
            .to_vec()
            .expect("structs of bools")
            .iter()
            .flat_map(|s| s.flags)
            .collect();
        assert!(raw(&flags).iter().all(|&b| b <= 1), "{name}");
    }
}

#[kernel]
fn two_views(out: &mut [bool], not: &mut [bool], counted: &mut [u32], structs: &mut [Flagged]) {
    let bytes = dynamic_shared::<u8>();
    let i = thread_idx().x;
    bytes[i] = 2 + i as u8;
    barrier();
    let flags = dynamic_shared::<bool>();
    let flag = flags[i];
    out[i] = flag;
    not[i] = !flag;
    counted[i] = flag as u32 + if flag { 10 } else { 0 };
    structs[i].flags = [flag, flags[0], flags[1]];
}

#[test]
fn of_memory_written_as_another_type() {
    for (name, jit) in jits() {
        let mut out = jit.zeros::<bool>(32).expect("memory");
        let mut not = jit.zeros::<bool>(32).expect("memory");
        let mut counted = jit.zeros::<u32>(32).expect("memory");
        let mut structs = jit.zeros::<Flagged>(32).expect("memory");
        let config = LaunchConfig::new(1, 32).shared_bytes(32);
        two_views
            .launch(&jit, config, &mut out, &mut not, &mut counted, &mut structs)
            .expect("a launch");
        // The lowest bit is the `bool`, on every device.
        let want: Vec<bool> = (0..32).map(|i| i % 2 == 1).collect();
        let (out, not) = (out.to_vec().expect("bools"), not.to_vec().expect("bools"));
        assert_eq!(raw(&out), bytes(&want), "{name}");
        let opposite: Vec<bool> = want.iter().map(|b| !b).collect();
        assert_eq!(raw(&not), bytes(&opposite), "{name}");
        let numbers: Vec<u32> = want.iter().map(|&b| u32::from(b) * 11).collect();
        assert_eq!(counted.to_vec().expect("numbers"), numbers, "{name}");
        for (s, flag) in structs.to_vec().expect("structs").iter().zip(want) {
            assert_eq!(s.flags, [flag, false, true], "{name}");
        }
    }
}

#[kernel]
fn half_diverged(out: &mut [bool], sums: &mut [u32]) {
    let flags = shared!([bool; 64]);
    let t = thread_idx().x;
    let mask = ballot(FULL_MASK, t % 2 == 0);
    let mut s = 0;
    if t % 2 == 0 {
        s = shuffle_xor(mask, t as u32, 2, 32);
        barrier();
    } else {
        barrier();
    }
    out[t] = flags[t];
    sums[t] = s;
}

/// What no compiled code can run is interpreted, on the default device, too.
#[test]
fn where_a_kernel_falls_back_to_the_interpreter() {
    let jit = Jit::on(Device::cpu());
    let mut out = jit.zeros::<bool>(64).expect("memory");
    let mut sums = jit.zeros::<u32>(64).expect("memory");
    half_diverged
        .launch(&jit, (1, 64), &mut out, &mut sums)
        .expect("a launch");
    let out = raw(&out.to_vec().expect("bools"));
    assert!(out.iter().all(|&b| b <= 1), "{out:?}");
}
