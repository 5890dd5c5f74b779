//! Planted barriers that not all threads come to alike, each beside the kernel that does it right.

use expect_test::{Expect, expect};
use kiln::{Checks, Finding, prelude::*};

use super::{Shape, THREADS, finding, is_usable, jit, kernel, launch};

/// A kernel in two forms: with the mistake if `wrong`, else without.
type Twins = fn(k: &KernelBuilder, wrong: bool);

/// A planted mistake: its name, its launch, the first thread at each barrier and how many threads
/// are there, and the kernel.
struct Case(&'static str, Shape, &'static [(u32, u32)], Twins);

fn me(k: &KernelBuilder) -> Val<'_> {
    k.thread_idx().x()
}

/// True in the lower half of the block, or in all of it.
fn half(k: &KernelBuilder, wrong: bool) -> Val<'_> {
    me(k).lt(if wrong { 16 } else { 99 })
}

fn finish(k: &KernelBuilder) {
    let out = k.slice_mut("out", Type::U32);
    k.barrier();
    out.at(k.global_id().x()).set(1);
}

const CASES: &[Case] = &[
    Case(
        "in an if of half the block",
        Shape::BLOCK,
        &[(0, 16), (16, 16)],
        |k, wrong| {
            k.if_(half(k, wrong), || k.barrier());
            finish(k);
        },
    ),
    Case(
        "in an else",
        Shape::BLOCK,
        &[(0, 16), (16, 16)],
        |k, wrong| {
            k.if_(half(k, wrong), || {}).else_(|| k.barrier());
            finish(k);
        },
    ),
    Case(
        "one in then, one in else",
        Shape::BLOCK,
        &[(0, 16), (16, 16)],
        |k, wrong| {
            k.if_(half(k, wrong), || k.barrier()).else_(|| k.barrier());
            finish(k);
        },
    ),
    Case(
        "odd and even threads",
        Shape::BLOCK,
        &[(0, 16), (1, 16)],
        |k, wrong| {
            let cond = (me(k) % if wrong { 2 } else { 1 }).eq(0);
            k.if_(cond, || k.barrier()).else_(|| k.barrier());
            finish(k);
        },
    ),
    Case(
        "the first thread alone",
        Shape::BLOCK,
        &[(0, 1), (1, 31)],
        |k, wrong| {
            let cond = if wrong { me(k).eq(0) } else { me(k).ge(0) };
            k.if_(cond, || k.barrier());
            finish(k);
        },
    ),
    Case(
        "all but the last thread",
        Shape::BLOCK,
        &[(0, 31), (31, 1)],
        |k, wrong| {
            let last = if wrong { THREADS - 1 } else { THREADS };
            k.if_(me(k).lt(last), || k.barrier());
            finish(k);
        },
    ),
    Case(
        "a loop of a thread's own length",
        Shape::BLOCK,
        &[(0, 1), (1, 31)],
        |k, wrong| {
            let trips = if wrong { me(k) } else { k.lit(Type::U32, 5) };
            k.for_range(0u32, trips, |_| k.barrier());
            finish(k);
        },
    ),
    Case(
        "a loop of two lengths",
        Shape::BLOCK,
        &[(0, 11), (1, 21)],
        |k, wrong| {
            let trips = if wrong {
                me(k) % 3 + 1
            } else {
                k.lit(Type::U32, 3)
            };
            k.for_range(0u32, trips, |_| k.barrier());
            finish(k);
        },
    ),
    Case(
        "a while of a thread's own length",
        Shape::BLOCK,
        &[(0, 8), (8, 24)],
        |k, wrong| {
            let left = k.var(
                "left",
                if wrong {
                    me(k) / 8
                } else {
                    k.lit(Type::U32, 2)
                },
            );
            k.while_(
                || left.get().gt(0),
                || {
                    left.set(left - 1);
                    k.barrier();
                },
            );
            finish(k);
        },
    ),
    Case(
        "a break before the barrier",
        Shape::BLOCK,
        &[(0, 16), (16, 16)],
        |k, wrong| {
            let step = k.var("step", 0u32);
            k.loop_(|| {
                step.set(step + 1);
                k.if_(step.get().gt(3), || k.break_());
                k.if_(!half(k, wrong), || k.break_());
                k.barrier();
            });
            finish(k);
        },
    ),
    Case(
        "a continue over the barrier",
        Shape::BLOCK,
        &[(0, 16), (16, 16)],
        |k, wrong| {
            k.for_range(0u32, 4, |_| {
                k.if_(!half(k, wrong), || k.continue_());
                k.barrier();
            });
            finish(k);
        },
    ),
    Case(
        "a break out of two loops",
        Shape::BLOCK,
        &[(0, 16), (16, 16)],
        |k, wrong| {
            k.for_range(0u32, 2, |_| {
                k.for_range(0u32, 2, |_| {
                    k.if_(!half(k, wrong), || k.break_out(1));
                    k.barrier();
                });
            });
            finish(k);
        },
    ),
    Case(
        "nested ifs",
        Shape::BLOCK,
        &[(0, 24), (24, 8)],
        |k, wrong| {
            k.if_(me(k).ge(8), || {
                let end = if wrong { 24 } else { 99 };
                k.if_(me(k).lt(end), || {});
            });
            let cond = if wrong { me(k).ge(24) } else { me(k).ge(99) };
            k.if_(!cond, || k.barrier());
            finish(k);
        },
    ),
    Case(
        "a chain of three",
        Shape::BLOCK,
        &[(0, 8), (8, 8), (16, 16)],
        |k, wrong| {
            let which = if wrong {
                me(k) / 8
            } else {
                k.lit(Type::U32, 1)
            };
            k.if_(which.eq(0), || k.barrier()).else_(|| {
                k.if_(which.eq(1), || k.barrier()).else_(|| k.barrier());
            });
            finish(k);
        },
    ),
    Case(
        "two loops",
        Shape::BLOCK,
        &[(0, 16), (16, 16)],
        |k, wrong| {
            k.if_(half(k, wrong), || k.for_range(0u32, 3, |_| k.barrier()))
                .else_(|| k.for_range(0u32, 3, |_| k.barrier()));
            finish(k);
        },
    ),
    Case(
        "in a device function that half the block calls",
        Shape::BLOCK,
        &[(0, 16), (16, 16)],
        |k, wrong| {
            let wait = DeviceFn::build("wait", |f| f.barrier()).expect("it is right");
            k.if_(half(k, wrong), || {
                k.call(&wait, &[]);
            });
            finish(k);
        },
    ),
    Case(
        "a device function called in two places",
        Shape::BLOCK,
        &[(0, 16), (16, 16)],
        |k, wrong| {
            let wait = DeviceFn::build("wait", |f| f.barrier()).expect("it is right");
            k.if_(half(k, wrong), || {
                k.call(&wait, &[]);
            })
            .else_(|| {
                k.call(&wait, &[]);
            });
            finish(k);
        },
    ),
    Case(
        "a device function that returns early",
        Shape::BLOCK,
        &[(0, 16), (16, 16)],
        |k, wrong| {
            let wait = DeviceFn::build("wait", |f| {
                let waits = f.param("waits", Type::BOOL);
                f.if_(!waits, || f.return_());
                f.barrier();
            });
            let wait = wait.expect("it is right");
            k.call(&wait, &[half(k, wrong)]);
            finish(k);
        },
    ),
    Case(
        "by a value of shared memory",
        Shape::BLOCK,
        &[(0, 4), (4, 28)],
        |k, wrong| {
            let flags = k.shared_array("flags", Type::U32, THREADS);
            flags.at(me(k)).set(me(k) / if wrong { 4 } else { 32 });
            k.barrier();
            k.if_(flags.at(me(k)).get().eq(0), || k.barrier());
            finish(k);
        },
    ),
    Case(
        "only in one block",
        Shape::GRID,
        &[(0, 16), (16, 16)],
        |k, wrong| {
            let odd = k.block_idx().x().eq(if wrong { 1 } else { 9 });
            k.if_(!(odd & me(k).ge(16)), || k.barrier());
            finish(k);
        },
    ),
    Case(
        "by the second dimension",
        Shape::block2(8, 4),
        &[(0, 16), (16, 16)],
        |k, wrong| {
            let out = k.slice_mut("out", Type::U32);
            let y = k.thread_idx().y();
            k.if_(y.lt(if wrong { 2 } else { 4 }), || k.barrier());
            k.barrier();
            out.at(y * 8 + me(k)).set(1);
        },
    ),
    Case(
        "only after many rounds",
        Shape::BLOCK,
        &[(0, 31), (31, 1)],
        |k, wrong| {
            let trips = if wrong {
                100u32 - me(k) / 31
            } else {
                k.lit(Type::U32, 100)
            };
            k.for_range(0u32, trips, |_| k.barrier());
            finish(k);
        },
    ),
];

#[test]
fn divergent_barriers() {
    let (some, all) = (jit(Checks::none().barriers()), jit(Checks::all()));
    for Case(name, shape, sites, twins) in CASES {
        let right = launch(&all, &kernel("right", |k| twins(k, false)), *shape);
        assert!(right.is_ok(), "{name}: {right:?}");
        let bad = kernel("wrong", |k| twins(k, true));
        for jit in [&some, &all] {
            let found = finding(name, launch(jit, &bad, *shape));
            let Finding::Barrier {
                sites: got, block, ..
            } = &found
            else {
                panic!("{name}: {found}")
            };
            let [bx, by, _] = shape.block;
            let number = |t: Dim3| t.x + bx * (t.y + by * t.z);
            let seen: Vec<_> = got.iter().map(|s| (number(s.thread), s.threads)).collect();
            assert_eq!(seen, *sites, "{name}: {found}");
            assert_eq!(block.x, u32::from(*name == "only in one block"), "{name}");
            for site in got {
                let here = format!("{}:", file!());
                assert!(site.location.starts_with(&here), "{name}: {found}");
            }
            is_usable(jit);
        }
        let unchecked = launch(&jit(Checks::none()), &bad, *shape);
        assert!(unchecked.is_ok(), "{name}: {unchecked:?}");
    }
}

/// Threads that have ended do not count (CUDA guide, `__syncthreads`, since Volta).
#[test]
fn ended_threads_are_not_waited_for() {
    type Legal = fn(&KernelBuilder);
    let legal: &[(&str, Legal)] = &[
        ("a guard before a barrier", |k| {
            k.if_(me(k).ge(20), || k.return_());
            finish(k);
        }),
        ("a guard before two barriers", |k| {
            k.if_(me(k).ge(20), || k.return_());
            k.barrier();
            finish(k);
        }),
        ("the others end", |k| {
            k.slice_mut("out", Type::U32);
            k.if_(me(k).lt(20), || k.barrier()).else_(|| k.return_());
        }),
        ("threads end one by one", |k| {
            k.slice_mut("out", Type::U32);
            k.for_range(0u32, 32, |step| {
                k.if_(me(k).eq(step), || k.return_());
                k.barrier();
            });
        }),
        (
            "a loop of a thread's own length, and nothing after it",
            |k| {
                k.slice_mut("out", Type::U32);
                k.for_range(0u32, me(k), |_| k.barrier());
            },
        ),
        ("nobody comes to it", |k| {
            k.if_(me(k).gt(99), || k.barrier());
            finish(k);
        }),
        ("a divergent if between barriers", |k| {
            k.barrier();
            let seen = k.var("seen", 0u32);
            k.if_(me(k).lt(7), || seen.set(1)).else_(|| seen.set(2));
            finish(k);
        }),
    ];
    let jit = jit(Checks::all());
    for (name, describe) in legal {
        let result = launch(&jit, &kernel("legal", describe), Shape::BLOCK);
        assert!(result.is_ok(), "{name}: {result:?}");
    }
}

/// What is said of a kernel with blocks of 96 threads, whose argument is a number that nobody knows beforehand.
#[track_caller]
fn told(wanted: &Expect, number: u32, describe: impl FnOnce(&KernelBuilder, Val<'_>)) {
    let kernel = kernel("named", |k| {
        k.slice_mut("out", Type::U32);
        let number = k.param("number", Type::U32);
        describe(k, number);
    });
    for checks in [Checks::none(), Checks::all()] {
        let jit = jit(checks);
        let mut out = jit.zeros::<u32>(96).expect("a buffer");
        let launched = jit.launch(&kernel, 1, 96, args!(&mut out, number));
        let error = launched
            .and_then(|()| jit.synchronize())
            .expect_err("it is wrong");
        let error = error.to_string();
        let here = format!("kernel `named`, {}:", file!());
        assert!(error.starts_with(&here), "{error}");
        let (_, said) = error
            .split_once(": `")
            .expect("a place before what is said");
        wanted.assert_eq(&format!("`{said}"));
        is_usable(&jit);
    }
}

#[test]
fn named_barriers_that_do_not_open_are_told() {
    told(
        &expect![
            "`barrier_sync` cannot be executed (block [0, 0, 0], thread [0, 0, 0]): barrier 1 opens for 96 threads, 64 have come, and nobody else will: all that are left wait. Let as many come as it says, by `barrier_sync` or `barrier_arrive`"
        ],
        1,
        |k, number| {
            k.if_(me(k).lt(64), || k.barrier_sync(number, 96));
        },
    );
    told(
        &expect![
            "`barrier_sync` cannot be executed (block [0, 0, 0], thread [0, 0, 0]): barrier 1 opens for 96 threads, 32 have come, and nobody else will: all that are left wait. Let as many come as it says, by `barrier_sync` or `barrier_arrive`"
        ],
        1,
        |k, number| {
            k.if_(me(k).lt(16), || k.barrier_sync(number, 96));
        },
    );
    told(
        &expect![
            "`barrier_sync` cannot be executed (block [0, 0, 0], thread [0, 0, 0]): lane 16 of the warp waits elsewhere, or for another barrier: all lanes of a warp that have not ended come to a named barrier together"
        ],
        1,
        |k, number| {
            k.if_(me(k).lt(16), || k.barrier_sync(number, 96))
                .else_(|| k.barrier_sync(number + 1, 96));
        },
    );
    told(
        &expect![
            "`barrier_sync` cannot be executed (block [0, 0, 0], thread [0, 0, 0]): a named barrier has a number from 1 to 15, not 16; 0 is that of `barrier()`"
        ],
        16,
        |k, number| k.barrier_sync(number, 96),
    );
    told(
        &expect![
            "`barrier_arrive` cannot be executed (block [0, 0, 0], thread [0, 0, 0]): whole warps come to a named barrier: a multiple of 32 threads up to 1024, not 40"
        ],
        40,
        |k, number| k.barrier_arrive(1, number),
    );
    told(
        &expect![
            "`barrier_sync` cannot be executed (block [0, 0, 0], thread [32, 0, 0]): it says that 96 threads open barrier 1, and who came before says 64; all who come have to say the same"
        ],
        1,
        |k, number| {
            k.if_(me(k).lt(32), || k.barrier_arrive(number, 64))
                .else_(|| k.barrier_sync(number, 96));
        },
    );
}
