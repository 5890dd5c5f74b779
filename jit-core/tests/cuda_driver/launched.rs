//! Launches of kernels that are ready, through the `Jit`: they allocate nothing, find what was redefined, and threads
//! have none of the others' entries.

use kiln::prelude::*;

use crate::counting::allocations;
use crate::fake::Fake;

#[kernel]
fn nothing() {}

#[kernel]
fn add(x: &mut [u32], n: u32) {
    x[thread_idx().x] += n;
}

#[kernel]
fn stepped(x: &mut [u32], n: u32) {
    x[thread_idx().x] -= n;
}

#[kernel]
fn add_constant<const N: u32>(x: &mut [u32]) {
    x[thread_idx().x] += N;
}

#[kernel]
fn add_more(x: &mut [u32], n: u32) {
    x[thread_idx().x] += n + 1;
}

#[derive(KernelView)]
struct Pair<'a> {
    from: &'a [u32],
    to: &'a mut [u32],
    by: u32,
}

#[kernel]
fn add_pair(pair: Pair<'_>) {
    let i = thread_idx().x;
    pair.to[i] += pair.by * pair.from[i];
}

macro_rules! numbers {
    ($then:ident $($first:tt)*) => {
        $then! { $($first)*
            a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15 a16 a17 a18 a19 a20 a21 a22 a23 a24 a25 a26 a27 a28
            a29 a30 a31 a32 a33 a34 a35 a36 a37 a38 a39 b0 b1 b2 b3 b4 b5 b6 b7 b8 b9 b10 b11 b12 b13 b14 b15 b16 b17
            b18 b19 b20 b21 b22 b23 b24 b25 b26 b27 b28 b29 b30 b31 b32 b33 b34 b35 b36 b37 b38 b39
        }
    };
}

macro_rules! of_numbers {
    ($kernel:ident $($arg:ident)*) => {
        #[kernel]
        fn $kernel($($arg: u32),*) {
            $(let _ = $arg;)*
        }
    };
}

// More than are passed by a pointer each.
numbers!(of_numbers eighty_numbers);

macro_rules! launch {
    ($jit:ident $kernel:ident $value:ident $($arg:ident)*) => {
        $kernel.launch(&$jit, (1, 32), $({
            let _ = stringify!($arg);
            $value
        }),*)
    };
}

/// What a launch allocates the third time: the first two make ready what is made once.
fn of_hit(mut launch: impl FnMut() -> kiln::Result<()>) -> u64 {
    for _ in 0..2 {
        launch().expect("a launch");
    }
    allocations(|| launch().expect("a launch"))
}

fn jit(fake: &Fake) -> Jit {
    Jit::on(Device::cuda_of(fake.open().expect("it opens"), 0).expect("a device"))
}

#[test]
fn launches_of_what_is_ready_allocate_nothing() {
    let fake = Fake::new();
    let jit = jit(&fake);
    let mut x = jit.zeros::<u32>(32).expect("memory");
    let n = 3u32;
    assert_eq!(of_hit(|| nothing.launch(&jit, (1, 32))), 0);
    assert_eq!(of_hit(|| add.launch(&jit, (1, 32), &mut x, n)), 0);
    assert_eq!(of_hit(|| jit.launch(&add, 1, 32, args!(&mut x, n))), 0);
    assert_eq!(
        of_hit(|| add_constant.launch::<3>(&jit, (1, 32), &mut x)),
        0
    );
    assert_eq!(of_hit(|| numbers!(launch jit eighty_numbers n)), 0);
    let ready = jit.compile(&add, args!(&mut x, n)).expect("a kernel");
    assert_eq!(of_hit(|| ready.launch(1, 32, args!(&mut x, n))), 0);
    // Four kernels, of which each was looked up once in vain; `compile` looks up, and its launches do not.
    let stats = jit.cache_stats();
    assert_eq!((stats.hits, stats.misses), (12, 4));
}

#[test]
fn launches_with_a_view_allocate_nothing() {
    let fake = Fake::new();
    let jit = jit(&fake);
    let from = jit.zeros::<u32>(32).expect("memory");
    let mut to = jit.zeros::<u32>(32).expect("memory");
    let launch = || {
        let (from, to) = (&from, &mut to);
        add_pair.launch(&jit, (1, 32), PairArgs { from, to, by: 3 })
    };
    assert_eq!(of_hit(launch), 0);
    assert_eq!(fake.last_launch()[7], from.address());
}

#[test]
fn a_launch_finds_what_was_redefined() {
    let fake = Fake::new();
    let jit = jit(&fake);
    let mut x = jit.zeros::<u32>(32).expect("memory");
    // Descriptions of one place: places are a part of what a kernel is.
    let sets = |n: u32| move |k: &KernelBuilder| k.slice_mut("x", k.ty::<u32>()).at(0).set(n);
    let kernel = Kernel::build("step", sets(1)).expect("a kernel");
    let mut launch = || jit.launch(&kernel, 1, 32, args!(&mut x)).expect("a launch");
    launch();
    launch();
    assert_eq!(jit.cache_stats().compiles, 1);
    kernel.redefine(sets(2)).expect("it is of the same kind");
    launch();
    launch();
    assert_eq!(jit.cache_stats().compiles, 2);
    kernel.redefine(sets(1)).expect("it is of the same kind");
    launch();
    // What it was before is found again.
    let stats = jit.cache_stats();
    assert_eq!((stats.compiles, stats.hits), (2, 3));
    for _ in 0..3 {
        stepped.launch(&jit, (1, 32), &mut x, 1).expect("a launch");
    }
    assert_eq!(jit.cache_stats().compiles, 3);
    stepped.redefine(&add_more).expect("it takes the same");
    for _ in 0..3 {
        stepped.launch(&jit, (1, 32), &mut x, 1).expect("a launch");
        assert_eq!(jit.cache_stats().compiles, 4);
    }
}

#[test]
fn a_dropped_jit_leaves_nothing_to_the_driver() {
    let fake = Fake::new();
    {
        let jit = jit(&fake);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..3 {
                        nothing.launch(&jit, (1, 32)).expect("a launch");
                    }
                });
            }
        });
        let stats = jit.cache_stats();
        assert_eq!(stats.compiles, 1);
        assert_eq!(stats.hits + stats.misses, 12);
        assert_eq!(fake.ledger().modules, 1);
    }
    assert_eq!(fake.ledger().total(), 0);
}

/// Redefinitions without end, and what still works meanwhile: a kernel that was made ready, and one that is launched
/// now and then.
#[test]
fn what_was_not_launched_for_longest_is_unloaded() {
    const BOUND: u64 = 1 << 20;
    // A long run asks for more.
    let turns = std::env::var("KILN_SOAK_REDEFINITIONS").ok();
    let turns = turns.map_or(300, |turns| turns.parse().expect("a number"));
    let fake = Fake::new();
    let device = Device::cuda_of(fake.open().expect("it opens"), 0).expect("a device");
    let jit = Jit::builder().device(device).memory_bound(BOUND);
    let jit = jit.build().expect("a `Jit`");
    let mut x = jit.zeros::<u32>(32).expect("memory");
    let sets = |n: u32| move |k: &KernelBuilder| k.slice_mut("x", k.ty::<u32>()).at(0).set(n);
    let kernel = Kernel::build("step", sets(0)).expect("a kernel");
    let ready = jit.compile(&kernel, args!(&mut x)).expect("a kernel");
    let mut most = 0;
    for turn in 1..=turns {
        kernel.redefine(sets(turn)).expect("it is of the same kind");
        jit.launch(&kernel, 1, 32, args!(&mut x)).expect("a launch");
        nothing.launch(&jit, (1, 32)).expect("a launch");
        most = most.max(fake.ledger().modules);
    }
    ready.launch(1, 32, args!(&mut x)).expect("it is held");
    let stats = jit.cache_stats();
    assert!(
        most <= 80 && stats.memory_bytes <= BOUND,
        "{most} modules, {stats:?}"
    );
    // `nothing` was compiled once, as it was always among the latest.
    assert_eq!(stats.compiles, u64::from(turns) + 2);
    assert!(stats.evictions + 80 >= u64::from(turns), "{stats:?}");
    drop((ready, jit, x, kernel));
    assert_eq!(fake.ledger().total(), 0);
}
