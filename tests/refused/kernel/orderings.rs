//! Orderings that an operation cannot have.
use kiln::prelude::*;

#[kernel]
fn orders(flag: &mut [u32]) {
    let seen = atomic_load(&flag[0], Ordering::Release, Scope::Device);
    atomic_store(&mut flag[1], seen, Ordering::AcqRel, Scope::Block);
    thread_fence_with(Ordering::Relaxed, Scope::System);
}

fn main() {}
