//! Planted reads of memory that nobody has written, threads without end, and how launches go on.

use kiln::core::ir::AddressSpace;
use kiln::core::runtime::DeviceError;
use kiln::core::target::Target;
use kiln::error::{Error, RunError};
use kiln::{Checks, Finding, prelude::*};

use super::{Shape, THREADS, finding, is_usable, jit, kernel, launch};

/// A kernel in two forms: with the mistake if `wrong`, else without.
type Twins = fn(k: &KernelBuilder, wrong: bool);

/// A planted read: its name, its launch, which memory, the element, the thread, and the kernel.
struct Case(&'static str, Shape, AddressSpace, u64, u32, Twins);

const SHARED: AddressSpace = AddressSpace::Shared;
const LOCAL: AddressSpace = AddressSpace::Local;

fn me(k: &KernelBuilder) -> Val<'_> {
    k.thread_idx().x()
}

fn out(k: &KernelBuilder) -> Val<'_> {
    k.slice_mut("out", Type::U32)
}

const CASES: &[Case] = &[
    Case(
        "a shared array that nobody writes",
        Shape::BLOCK,
        SHARED,
        0,
        0,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let tile = k.shared_array("tile", Type::U32, THREADS);
            if !wrong {
                tile.at(i).set(i);
            }
            k.barrier();
            out.at(i).set(tile.at(i));
        },
    ),
    Case(
        "a shared array written by half",
        Shape::BLOCK,
        SHARED,
        16,
        16,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let tile = k.shared_array("tile", Type::U32, THREADS);
            k.if_(i.lt(if wrong { 16 } else { 32 }), || tile.at(i).set(i));
            k.barrier();
            out.at(i).set(tile.at(i));
        },
    ),
    Case(
        "the element behind the last",
        Shape::BLOCK,
        SHARED,
        32,
        31,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let tile = k.shared_array("tile", Type::F64, THREADS + 1);
            tile.at(i).set(1.0);
            if !wrong {
                k.if_(i.eq(0), || tile.at(32).set(0.0));
            }
            k.barrier();
            out.at(i).set(tile.at(i + 1).get().cast(Type::U32));
        },
    ),
    Case(
        "a counter that is not cleared",
        Shape::BLOCK,
        SHARED,
        0,
        0,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let count = k.shared("count", Type::U32);
            if !wrong {
                k.if_(i.eq(0), || count.set(0));
            }
            k.barrier();
            count.atomic_add(1);
            k.barrier();
            out.at(i).set(count);
        },
    ),
    Case(
        "a lock that is not open",
        Shape::BLOCK,
        SHARED,
        0,
        0,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let lock = k.shared("lock", Type::U32);
            if !wrong {
                k.if_(i.eq(0), || lock.set(0));
            }
            k.barrier();
            out.at(i).set(lock.atomic_cas(0, 1));
        },
    ),
    Case(
        "dynamic shared memory",
        Shape::BLOCK,
        SHARED,
        7,
        7,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let tile = k.dynamic_shared(Type::U32);
            k.if_(i.ne(if wrong { 7 } else { 99 }), || tile.at(i).set(i));
            k.barrier();
            out.at(i).set(tile.at(i));
        },
    ),
    Case(
        "three bytes of a word",
        Shape::BLOCK,
        SHARED,
        3,
        0,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let (words, bytes) = (k.dynamic_shared(Type::U32), k.dynamic_shared(Type::U8));
            k.if_(i.lt(if wrong { 3 } else { 4 }), || bytes.at(i).set(1));
            k.barrier();
            k.if_(i.eq(0), || out.at(i).set(words.at(0)));
        },
    ),
    Case(
        "one field of a struct",
        Shape::BLOCK,
        SHARED,
        1,
        1,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let pair = k.struct_type("Pair", &[("a", Type::U32), ("b", Type::U32)]);
            let pairs = k.shared_array("pairs", pair, THREADS);
            pairs.at(i).field("a").set(i);
            k.if_(i.ne(if wrong { 1 } else { 99 }), || {
                pairs.at(i).field("b").set(i)
            });
            out.at(i).set(pairs.at(i).field("b"));
        },
    ),
    Case("a row of a tile", Shape::BLOCK, SHARED, 8, 0, |k, wrong| {
        let (i, out) = (me(k), out(k));
        let tile = k.shared("tile", k.array(k.array(Type::U32, 8), 2));
        k.if_(i.lt(if wrong { 8 } else { 16 }), || {
            tile.at(i / 8).at(i % 8).set(i)
        });
        k.barrier();
        out.at(i).set(tile.at(1).at(i % 8));
    }),
    Case(
        "what an earlier block left",
        Shape::GRID,
        SHARED,
        3,
        3,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let tile = k.shared_array("tile", Type::U32, THREADS);
            let skip = k.block_idx().x().eq(1) & i.eq(if wrong { 3 } else { 99 });
            k.if_(!skip, || tile.at(i).set(i));
            out.at(k.global_id().x()).set(tile.at(i));
        },
    ),
    Case("a local array", Shape::BLOCK, LOCAL, 2, 0, |k, wrong| {
        let (i, out) = (me(k), out(k));
        let list = k.local_array(Type::U32, 4);
        k.for_range(0u32, if wrong { 2 } else { 4 }, |at| list.at(at).set(i));
        out.at(i).set(list.at(1) + list.at(2));
    }),
    Case(
        "a local array of one thread",
        Shape::BLOCK,
        LOCAL,
        0,
        9,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let list = k.local_array(Type::U32, 4);
            k.if_(i.ne(if wrong { 9 } else { 99 }), || list.at(0).set(i));
            out.at(i).set(list.at(0));
        },
    ),
    Case(
        "a local value in a loop",
        Shape::BLOCK,
        LOCAL,
        0,
        0,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            k.for_range(0u32, 3, |step| {
                let value = k.local(Type::U32);
                k.if_(step.ge(if wrong { 1 } else { 0 }), || value.set(step));
                out.at(i).set(value);
            });
        },
    ),
    Case(
        "local memory in a device function",
        Shape::BLOCK,
        LOCAL,
        1,
        2,
        |k, wrong| {
            let pick = DeviceFn::build("pick", |f| {
                let (i, last) = (f.param("i", Type::U32), f.param("last", Type::U32));
                let list = f.local_array(Type::U64, 2);
                list.at(0).set(5);
                f.if_(i.lt(last), || list.at(1).set(6));
                f.return_value(list.at(1).get().cast(Type::U32));
            });
            let (i, out) = (me(k), out(k));
            let last = k.lit(Type::U32, if wrong { 2 } else { 99 });
            out.at(i)
                .set(k.call(&pick.expect("it is right"), &[i, last]));
        },
    ),
];

#[test]
fn uninitialized_memory() {
    let (some, all) = (jit(Checks::none().uninitialized()), jit(Checks::all()));
    for Case(name, shape, want_space, index, want_thread, twins) in CASES {
        let right = launch(&all, &kernel("right", |k| twins(k, false)), *shape);
        assert!(right.is_ok(), "{name}: {right:?}");
        let bad = kernel("wrong", |k| twins(k, true));
        for jit in [&some, &all] {
            let found = finding(name, launch(jit, &bad, *shape));
            let Finding::Uninitialized {
                location,
                thread,
                place,
                ..
            } = &found
            else {
                panic!("{name}: {found}")
            };
            assert_eq!(place.space, *want_space, "{name}: {found}");
            assert_eq!(
                (place.index, thread.x),
                (*index, *want_thread),
                "{name}: {found}"
            );
            assert!(
                location.starts_with(&format!("{}:", file!())),
                "{name}: {found}"
            );
            is_usable(jit);
        }
        assert!(launch(&jit(Checks::none()), &bad, *shape).is_ok(), "{name}");
    }
}

#[test]
fn threads_without_end() {
    let cases: &[(&str, u32, Twins)] = &[
        ("a loop", 0, |k, wrong| {
            let count = k.var("count", 0u32);
            k.loop_(|| {
                count.set(count + 1);
                if !wrong {
                    k.if_(count.get().eq(500), || k.break_());
                }
            });
            out(k);
        }),
        ("a while that never counts down", 3, |k, wrong| {
            let left = k.var("left", 500u32);
            k.while_(
                || left.get().gt(0),
                || {
                    let step = me(k).eq(if wrong { 3 } else { 99 });
                    left.set(left - step.select(k.lit(Type::U32, 0), k.lit(Type::U32, 1)));
                },
            );
            out(k);
        }),
        ("a for that is too long", 1, |k, wrong| {
            let trips = if wrong {
                me(k) * 1_000_000_000
            } else {
                me(k) * 10
            };
            k.for_range(0u32, trips, |_| {});
            out(k);
        }),
        ("waiting for a thread of the same block", 0, |k, wrong| {
            let (i, out) = (me(k), out(k));
            if wrong {
                k.while_(|| out.at(0).atomic_add(0).eq(0), || {});
            }
            k.if_(i.eq(1), || {
                out.at(0).atomic_add(1);
            });
        }),
        ("waiting for a block that comes later", 0, |k, wrong| {
            let (b, out) = (k.block_idx().x(), out(k));
            if wrong {
                k.while_(|| out.at(b).atomic_add(0).eq(0), || {});
            }
            out.at(b + 1).atomic_add(1);
        }),
        ("nested loops", 6, |k, wrong| {
            out(k);
            k.for_range(0u32, if wrong { me(k) * 40 } else { me(k) }, |_| {
                k.for_range(0u32, 5, |_| {});
            });
        }),
    ];
    let jit = jit(Checks::none().watchdog(1000));
    for (name, want, twins) in cases {
        let right = launch(&jit, &kernel("right", |k| twins(k, false)), Shape::GRID);
        assert!(right.is_ok(), "{name}: {right:?}");
        let bad = kernel("wrong", |k| twins(k, true));
        let found = finding(name, launch(&jit, &bad, Shape::GRID));
        let Finding::Watchdog {
            thread,
            block,
            limit,
            location,
            ..
        } = &found
        else {
            panic!("{name}: {found}")
        };
        assert_eq!(
            (thread.x, block.x, *limit),
            (*want, 0, 1000),
            "{name}: {found}"
        );
        assert!(
            location.starts_with(&format!("{}:", file!())),
            "{name}: {found}"
        );
        is_usable(&jit);
    }
}

#[test]
fn the_watchdog_counts_exactly() {
    let counted = kernel("counted", |k| {
        out(k);
        // The body runs 101 times: it goes back 100 times.
        k.for_range(0u32, 101, |_| {});
    });
    assert!(launch(&jit(Checks::none().watchdog(100)), &counted, Shape::GRID).is_ok());
    finding(
        "one less",
        launch(&jit(Checks::none().watchdog(99)), &counted, Shape::GRID),
    );
}

/// The launch stops where something is found: what came before is there, what comes after is not.
#[test]
fn a_launch_stops_at_its_first_finding() {
    let racy = kernel("racy", |k| {
        let (i, out) = (k.global_id().x(), out(k));
        out.at(i).set(i + 1);
        k.if_(i.eq(40), || out.at(3).set(9));
    });
    let jit = jit(Checks::all());
    let mut x = jit.zeros::<u32>(96).expect("memory");
    for _ in 0..2 {
        let result = jit.launch(&racy, 3, 32, args!(&mut x));
        assert!(
            matches!(result, Err(Error::Run(RunError::Finding(_)))),
            "{result:?}"
        );
        jit.synchronize().expect("it is reported once");
    }
    let x = x.to_vec().expect("memory");
    assert_eq!((x[31], x[40], x[41], x[95]), (32, 41, 0, 0));
    let prepared = jit.compile(&racy, args!(&mut jit.zeros::<u32>(96).expect("memory")));
    let mut y = jit.zeros::<u32>(96).expect("memory");
    let result = prepared.expect("it compiles").launch(3, 32, args!(&mut y));
    assert!(
        matches!(result, Err(Error::Run(RunError::Finding(_)))),
        "{result:?}"
    );
    is_usable(&jit);
}

/// Kernels that threads launch at the same time are told apart.
#[test]
fn launches_of_several_threads() {
    let jit = jit(Checks::all());
    let mine = kernel("mine", |k| {
        let (i, out) = (me(k), out(k));
        let tile = k.shared_array("tile", Type::U32, THREADS);
        tile.at(i).set(i);
        k.barrier();
        out.at(i).set(tile.at(THREADS - 1 - i));
    });
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    assert!(launch(&jit, &mine, Shape::BLOCK).is_ok());
                }
            });
        }
    });
}

#[test]
fn checks_choose_the_interpreter() {
    assert_eq!(jit(Checks::none().races()).target(), &Target::Interpreter);
    let cpu = Device::cpu().info().target.clone();
    assert!(matches!(&cpu, Target::Cpu(_)), "{cpu}");
    assert_eq!(Jit::on(Device::cpu()).target(), &cpu);
    // Who asks for another target does not get a launch without checks.
    let options = JitOptions::default().checks(Checks::all()).target(cpu);
    let jit = Jit::with(Device::cpu(), kiln::hooks::standard(), options);
    let fine = kernel("fine", |k| out(k).at(me(k)).set(1));
    let result = launch(&jit, &fine, Shape::BLOCK);
    assert!(
        matches!(
            result,
            Err(kiln::Error::Device(DeviceError::WrongTarget { .. }))
        ),
        "{result:?}"
    );
}
