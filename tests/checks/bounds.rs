//! Planted accesses out of bounds: every kind of memory, of index, of element and of control flow.
//! Each is found with its index, length, block and thread, and the device goes on.

use kiln::core::ir::AddressSpace;
use kiln::{Checks, prelude::*};

use super::{fault, is_usable, jit, kernel};

/// Elements of everything that is indexed.
const LENGTH: u32 = 20;

/// Threads of a block; the launches have two.
const BLOCK: u32 = 8;

/// The thread that goes wrong: thread 5 of block 1.
const CULPRIT: u32 = 13;

/// What is indexed, and how.
#[derive(Copy, Clone, PartialEq, Debug)]
enum Target {
    SliceRead,
    SliceWrite,
    SharedRead,
    SharedWrite,
    SharedRow,
    SharedColumn,
    DynamicShared,
    LocalRead,
    LocalWrite,
    LocalColumn,
    Constant,
}

impl Target {
    const ALL: [Target; 11] = [
        Target::SliceRead,
        Target::SliceWrite,
        Target::SharedRead,
        Target::SharedWrite,
        Target::SharedRow,
        Target::SharedColumn,
        Target::DynamicShared,
        Target::LocalRead,
        Target::LocalWrite,
        Target::LocalColumn,
        Target::Constant,
    ];

    fn space(self) -> AddressSpace {
        match self {
            Target::SliceRead | Target::SliceWrite => AddressSpace::Global,
            Target::LocalRead | Target::LocalWrite | Target::LocalColumn => AddressSpace::Local,
            Target::Constant => AddressSpace::Constant,
            _ => AddressSpace::Shared,
        }
    }
}

/// Where in the kernel the access is.
#[derive(Copy, Clone, PartialEq, Debug)]
enum Flow {
    Straight,
    If,
    Else,
    Select,
    For,
    While,
    NestedLoops,
    AfterBarrier,
}

impl Flow {
    const ALL: [Flow; 8] = [
        Flow::Straight,
        Flow::If,
        Flow::Else,
        Flow::Select,
        Flow::For,
        Flow::While,
        Flow::NestedLoops,
        Flow::AfterBarrier,
    ];
}

/// Indices out of bounds, each in its type.
const INDICES: &[(Type, i128)] = &[
    (Type::U32, LENGTH as i128),
    (Type::U32, LENGTH as i128 + 1),
    (Type::U32, 1 << 31),
    (Type::U32, u32::MAX as i128),
    (Type::I32, LENGTH as i128),
    (Type::I32, -1),
    (Type::I32, -(LENGTH as i128)),
    (Type::I32, i32::MIN as i128),
    (Type::U64, LENGTH as i128),
    (Type::U64, 1 << 32),
    (Type::U64, (1 << 32) + 3),
    (Type::U64, u64::MAX as i128),
    (Type::I64, -1),
    (Type::I64, i64::MIN as i128),
    (Type::I64, i64::MAX as i128),
    (Type::U8, 255),
    (Type::I8, -128),
    (Type::U16, LENGTH as i128),
    (Type::I16, -2),
];

/// The index that the first thread computes, and the others' own numbers.
fn index(k: &KernelBuilder, (ty, bad): (Type, i128)) -> Val<'_> {
    let own = k.global_id().x().cast(ty);
    let bad = match i64::try_from(bad) {
        Ok(bad) => k.lit(ty, bad),
        Err(_) => k.lit(ty, bad as u64),
    };
    k.global_id().x().eq(CULPRIT).select(bad, own)
}

/// Touches element `i` of what `target` says.
fn touch<T: KernelType + Copy>(
    k: &KernelBuilder,
    target: Target,
    x: Val<'_>,
    value: T,
    i: Val<'_>,
) {
    let ty = k.ty::<T>();
    let own = k.global_id().x();
    let zero = k.zero(ty);
    let read = |place: Place<'_>| {
        place.get();
    };
    match target {
        Target::SliceRead => read(x.at(i)),
        Target::SliceWrite => x.at(i).set(zero),
        Target::SharedRead => {
            let tile = k.shared_array("tile", ty, LENGTH);
            tile.at(own).set(zero);
            read(tile.at(i));
        }
        Target::SharedWrite => k.shared_array("tile", ty, LENGTH).at(i).set(zero),
        Target::SharedRow => {
            let tile = k.shared("tile", k.array(k.array(ty, 3), LENGTH.into()));
            tile.at(i).at(2).set(zero);
        }
        Target::SharedColumn => {
            let tile = k.shared("tile", k.array(k.array(ty, LENGTH.into()), 3));
            tile.at(2).at(i).set(zero);
        }
        Target::DynamicShared => k.dynamic_shared(ty).at(i).set(zero),
        Target::LocalRead => {
            let list = k.local_array(ty, LENGTH);
            list.at(own).set(zero);
            read(list.at(i));
        }
        Target::LocalWrite => k.local_array(ty, LENGTH).at(i).set(zero),
        Target::LocalColumn => {
            let list = k.local(k.array(k.array(ty, LENGTH.into()), 2));
            list.at(1).at(i).set(zero);
        }
        Target::Constant => {
            let table = k.constant_array("table", &[value; LENGTH as usize]);
            read(table.at(i));
        }
    }
}

fn within(k: &KernelBuilder, flow: Flow, then: impl FnOnce()) {
    match flow {
        Flow::Straight => then(),
        Flow::If => {
            k.if_(k.global_id().x().lt(100), then);
        }
        Flow::Else => k.if_(k.global_id().x().ge(100), || {}).else_(then),
        Flow::Select => {
            let other = k.global_id().x() % 2;
            k.if_(other.eq(0).select(k.lit(Type::U32, 1), other).eq(1), then);
        }
        Flow::For => k.for_range(0u32, 3, |step| {
            k.if_(step.eq(2), then);
        }),
        Flow::While => {
            let left = k.var("left", 3u32);
            k.while_(
                || left.get().gt(0),
                || {
                    left.set(left - 1);
                    k.if_(left.get().eq(1), then);
                },
            );
        }
        Flow::NestedLoops => k.for_range(0u32, 2, |a| {
            k.for_loop(2i32, 0, -1, Unroll::Auto, |b| {
                k.if_(a.eq(1) & b.eq(1), then);
            });
        }),
        Flow::AfterBarrier => {
            k.barrier();
            then();
        }
    }
}

/// Launches one planted access, and holds the fault against what was planted.
fn plant<T: KernelType + Copy>(
    jit: &Jit,
    value: T,
    target: Target,
    flow: Flow,
    (ty, bad): (Type, i128),
) {
    let what = format!(
        "{target:?}, {flow:?}, {}, {bad}",
        std::any::type_name::<T>()
    );
    let planted = kernel("planted", |k| {
        let x = k.slice_mut("x", k.ty::<T>());
        let i = index(k, (ty, bad));
        within(k, flow, || touch(k, target, x, value, i));
    });
    let config = LaunchConfig::new(2, BLOCK).shared_bytes(LENGTH * size_of::<T>() as u32);
    let run = || {
        let mut x = jit.zeros::<T>(LENGTH as usize)?;
        jit.launch_with(&planted, config, args!(&mut x))?;
        jit.synchronize()
    };
    let found = fault(&what, run());
    assert_eq!((found.index, found.length), (bad, LENGTH.into()), "{what}");
    let (block, thread) = (CULPRIT / BLOCK, CULPRIT % BLOCK);
    assert_eq!(
        (found.block.to_array(), found.thread.to_array()),
        ([block, 0, 0], [thread, 0, 0]),
        "{what}"
    );
    assert_eq!(found.space, target.space(), "{what}");
    assert_eq!(found.kernel, "planted", "{what}");
    assert!(
        found.location.starts_with(&format!("{}:", file!())),
        "{what}: {found}"
    );
    assert!(jit.synchronize().is_ok(), "{what}: it is reported once");
    is_usable(jit);
}

kiln::core::kernel_type! {
    /// Three words.
    #[repr(C)]
    pub struct Point {
        x: f32,
        y: f32,
        z: f32,
    }
}

/// Every memory, every index, elements of several sizes.
#[test]
fn every_memory_and_index() {
    for checks in [Checks::none(), Checks::all()] {
        let jit = jit(checks);
        let mut planted = 0;
        for target in Target::ALL {
            for &index in INDICES {
                let flow = Flow::Straight;
                plant(&jit, 0u8, target, flow, index);
                plant(&jit, 0u16, target, flow, index);
                plant(&jit, 0f32, target, flow, index);
                plant(&jit, 0f64, target, flow, index);
                let point = Point {
                    x: 0.0,
                    y: 0.0,
                    z: 0.0,
                };
                plant(&jit, point, target, flow, index);
                planted += 5;
            }
        }
        assert!(planted >= 1000, "{planted}");
    }
}

/// Every memory in every control flow.
#[test]
fn every_flow() {
    let compiled = Jit::on(Device::cpu());
    for jit in [jit(Checks::none()), jit(Checks::all()), compiled] {
        for target in Target::ALL {
            for flow in Flow::ALL {
                plant(&jit, 0u32, target, flow, (Type::U32, LENGTH.into()));
                plant(&jit, 0u64, target, flow, (Type::I32, -1));
            }
        }
    }
}

/// Accesses that a device function makes, and one that it calls.
#[test]
fn in_device_functions() {
    let inner = DeviceFn::build("inner", |f| {
        let (x, i) = (f.slice_mut("x", Type::U32), f.param("i", Type::U32));
        x.at(i).set(1);
    });
    let inner = inner.expect("it is right");
    let outer = DeviceFn::build("outer", |f| {
        let (x, i) = (f.slice_mut("x", Type::U32), f.param("i", Type::U32));
        f.if_(i.ne(u32::MAX), || {
            f.call(&inner, &[x, i]);
        });
    });
    let outer = outer.expect("it is right");
    let jit = jit(Checks::all());
    for callee in [&inner, &outer] {
        for memory in ["global", "shared", "local", "dynamic"] {
            for bad in [LENGTH, LENGTH + 7, 1 << 31] {
                let planted = kernel("planted", |k| {
                    let x = k.slice_mut("x", Type::U32);
                    let x = match memory {
                        "global" => x,
                        "shared" => k.shared_array("tile", Type::U32, LENGTH).to_generic(),
                        "local" => k.local_array(Type::U32, LENGTH).to_generic(),
                        _ => k.dynamic_shared(Type::U32).to_generic(),
                    };
                    k.call(callee, &[x, index(k, (Type::U32, bad.into()))]);
                });
                let run = || {
                    let mut x = jit.zeros::<u32>(LENGTH as usize)?;
                    let config = LaunchConfig::new(2, BLOCK).shared_bytes(LENGTH * 4);
                    jit.launch_with(&planted, config, args!(&mut x))?;
                    jit.synchronize()
                };
                let found = fault(memory, run());
                assert_eq!((found.index, found.length), (bad.into(), LENGTH.into()));
                assert_eq!((found.block.x, found.thread.x), (1, 5), "{found}");
                assert_eq!(found.inside, ", in device function `inner`");
                is_usable(&jit);
            }
        }
    }
}

/// Rows and columns out of their bounds, computed as kernels do.
#[test]
fn computed_indices() {
    let (rows, columns) = (5u32, 4u32);
    type Formula = for<'k> fn(Val<'k>, Val<'k>) -> Val<'k>;
    // What a thread's row and column become, and the first of 4 x 5 threads that goes wrong.
    let formulas: &[(&str, Formula, i128, u32)] = &[
        ("transposed stride", |r, c| r * 5 + c, 20, 4 * 4),
        ("one row too many", |r, c| (r + 1) * 4 + c, 20, 4 * 4),
        ("off by one at the end", |r, c| r * 4 + c + 1, 20, 4 * 4 + 3),
        (
            "left of the first",
            |r, c| (r * 4 + c).cast(Type::I32) - 1,
            -1,
            0,
        ),
        (
            "above the first",
            |r, c| (r * 4 + c).cast(Type::I64) - 4,
            -4,
            0,
        ),
        (
            "wrapped around",
            |r, c| r * 4 + c - 2,
            u32::MAX as i128 - 1,
            0,
        ),
        ("scaled by bytes", |r, c| (r * 4 + c) * 4, 20, 5),
        ("squared", |r, c| r * r * 4 + c, 36, 3 * 4),
        (
            "a quotient of the wrong kind",
            |r, c| (r + 16) * 4 / 3 + c,
            21,
            0,
        ),
        (
            "in 64 bits",
            |r, c| (r * 4 + c).cast(Type::U64) << 33,
            1 << 33,
            1,
        ),
    ];
    for checks in [Checks::none(), Checks::none().races().uninitialized()] {
        let jit = jit(checks);
        for (name, formula, bad, thread) in formulas {
            let planted = kernel("planted", |k| {
                let x = k.slice("x", Type::U32);
                let i = formula(k.thread_idx().y(), k.thread_idx().x());
                x.at(i).get();
            });
            let run = || {
                let x = jit.zeros::<u32>((rows * columns) as usize)?;
                jit.launch(&planted, 1, (columns, rows), args!(&x))?;
                jit.synchronize()
            };
            let found = fault(name, run());
            assert_eq!((found.index, found.length), (*bad, 20), "{name}");
            let at = found.thread.y * columns + found.thread.x;
            assert_eq!(at, *thread, "{name}: {found}");
            is_usable(&jit);
        }
    }
}

/// What follows from a thread that ended at a fault is not reported in its place.
#[test]
fn a_fault_comes_before_what_follows_from_it() {
    let jit = jit(Checks::all());
    let planted = kernel("planted", |k| {
        let (x, i) = (k.slice_mut("x", Type::U32), k.thread_idx().x());
        let tile = k.shared_array("tile", Type::U32, BLOCK);
        tile.at(i).set(x.at(i * 3));
        k.barrier();
        x.at(i).set(tile.at((i + 1) % BLOCK));
    });
    let run = || {
        let mut x = jit.zeros::<u32>(LENGTH as usize)?;
        jit.launch(&planted, 1, BLOCK, args!(&mut x))?;
        jit.synchronize()
    };
    let found = fault("planted", run());
    assert_eq!((found.index, found.thread.x), (21, 7));
    is_usable(&jit);
}
