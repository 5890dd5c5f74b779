//! What a `const` block of a kernel can hold, and what can be asserted there.
use kiln::prelude::*;

#[kernel]
fn of_threads<const N: usize>(x: &mut [f32], n: usize) {
    const { assert!(n % 32 == 0, "`n` is known to a launch") };
    const { assert!(x.len() > N) };
    const { assert!(global_id().x < N) };
    const { assert!(N > 4, "`N` is {}", N) };
    const { assert!(N > 4, "`N` is {N}") };
    const { assert_eq!(N, 4) };
    let size = const { N * 2 };
    x[0] = size as f32;
}

fn main() {}
