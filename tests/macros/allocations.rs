//! What a launch allocates whose kernel is ready: nothing to find it, whatever its parameters.

#[path = "../../jit-core/tests/counting.rs"]
mod counting;

use kiln::prelude::*;

/// Allocations of the third time: the first two make ready what is made once.
fn allocations(mut act: impl FnMut()) -> u64 {
    act();
    act();
    counting::allocations(act)
}

#[kernel]
fn add(x: &mut [i32]) {
    x[thread_idx().x] += 1;
}

#[kernel]
fn add_consts<const N: u32, const M: i32>(x: &mut [i32]) {
    x[thread_idx().x] += N as i32 + M;
}

#[kernel]
fn add_many(x: &mut [i32], a: i32, b: i32, c: i32, d: i32, e: i32, f: i32, g: i32, h: i32, i: i32) {
    x[thread_idx().x] += a + b + c + d + e + f + g + h + i;
}

#[test]
fn const_arguments_allocate_nothing() {
    let jit = Jit::on(Device::cpu());
    let mut x = jit.zeros::<i32>(32).expect("memory");
    let without = allocations(|| add.launch(&jit, (1, 32), &mut x).expect("a launch"));
    let with = allocations(|| {
        let launched = add_consts.launch::<3, -5>(&jit, (1, 32), &mut x);
        launched.expect("a launch");
    });
    assert_eq!(with, without);
    let again = jit.cache_stats();
    assert_eq!((again.compiles, again.hits), (2, 4));
    add_consts
        .launch::<4, -5>(&jit, (1, 32), &mut x)
        .expect("a launch");
    assert_eq!(
        jit.cache_stats().compiles,
        3,
        "other values are another kernel"
    );
    assert_eq!(x.to_vec().expect("numbers"), [3 - 6 - 1; 32]);
}

#[test]
fn no_look_up_allocates() {
    let jit = Jit::on(Device::cpu());
    let mut x = jit.zeros::<i32>(32).expect("memory");
    let bound = add_consts.with_const("N", 3).expect("a kernel");
    let bound = bound.with_const("M", -5);
    jit.launch(&bound, 1, 32, args!(&mut x)).expect("a launch");
    let found = allocations(|| assert!(jit.look_up(&bound, args!(&mut x)).expect("a look-up")));
    assert_eq!(found, 0);
    let many = add_many.get().expect("a kernel");
    let launched = jit.launch(many, 1, 32, args!(&mut x, 1, 2, 3, 4, 5, 6, 7, 8, 9));
    launched.expect("a launch");
    let found = allocations(|| {
        let found = jit.look_up(many, args!(&mut x, 1, 2, 3, 4, 5, 6, 7, 8, 9));
        assert!(found.expect("a look-up"));
    });
    assert_eq!(found, 0);
}
