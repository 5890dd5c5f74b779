//! Slices, structs, shared, local and constant memory, atomics, barriers.

use kiln::prelude::*;

use super::{Outcome, chapter, kernels, run_over};

chapter![
    tiled_matmul_of_odd_size,
    naive_matmul_of_odd_size,
    block_sums_in_two_types,
    reverse_through_dynamic_shared,
    local_arrays,
    constant_tables,
    structs_by_value_and_in_buffers,
    arrays_by_value,
    tables_are_read_in_place,
    atomics,
    two_dimensional_grid,
];

kiln::core::kernel_type! {
    /// Has padding after `tag` and at the end.
    #[repr(C)]
    pub struct Particle {
        tag: u8,
        mass: f64,
        position: [f32; 3],
    }
}

fn matmul(jit: &Jit, kernel: &Kernel) -> Outcome {
    let n = 37;
    let (ha, hb) = (kernels::ramp(n * n, 0.5), kernels::ramp(n * n, 0.25));
    let (a, b) = (jit.upload(&ha)?, jit.upload(&hb)?);
    let mut c = jit.zeros::<f32>(n * n)?;
    let tiles = (n as u32).div_ceil(16);
    jit.launch(
        kernel,
        (tiles, tiles),
        (16, 16),
        args!(&a, &b, &mut c, n as u32),
    )?;
    let got = c.to_vec()?;
    for row in 0..n {
        for (g, w) in got[row * n..]
            .iter()
            .zip(kernels::matmul_row(&ha, &hb, n, row))
        {
            assert!(
                (f64::from(*g) - w).abs() <= 1e-5 * w.abs().max(1.0),
                "{g} is not {w}"
            );
        }
    }
    Ok(())
}

fn tiled_matmul_of_odd_size(jit: &Jit) -> Outcome {
    matmul(jit, &kernels::tiled_matmul()?)
}

fn naive_matmul_of_odd_size(jit: &Jit) -> Outcome {
    matmul(jit, &kernels::naive_matmul()?)
}

fn block_sums_in_two_types(jit: &Jit) -> Outcome {
    let kernel = kernels::block_sum()?;
    let x = jit.upload(&(0..5000).map(|i| (i % 9) as f32).collect::<Vec<_>>())?;
    let mut total = jit.zeros::<f32>(1)?;
    jit.launch(&kernel, 4, 256, args!(&x, &mut total))?;
    assert_eq!(total.to_vec()?, [(0..5000).map(|i| (i % 9) as f32).sum()]);
    let x = jit.upload(&(0..5000).collect::<Vec<i32>>())?;
    let mut total = jit.zeros::<i32>(1)?;
    jit.launch(&kernel, 4, 256, args!(&x, &mut total))?;
    assert_eq!(total.to_vec()?, [(0..5000).sum::<i32>()]);
    Ok(())
}

fn reverse_through_dynamic_shared(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("reverse", |k| {
        let x = k.slice_mut("x", Type::U32);
        let tile = k.dynamic_shared(Type::U32);
        let i = k.thread_idx().x();
        tile.at(i).set(x.at(i));
        k.barrier();
        x.at(i).set(tile.at(tile.len() - 1 - i));
    })?;
    let mut x = jit.upload(&(0..96).collect::<Vec<u32>>())?;
    let config = LaunchConfig::new(1, 96).shared_bytes(96 * 4);
    jit.launch_with(&kernel, config, args!(&mut x))?;
    assert_eq!(x.to_vec()?, (0..96).rev().collect::<Vec<u32>>());
    Ok(())
}

fn local_arrays(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("digits", |k| {
        let out = k.slice_mut("out", Type::U32);
        let i = k.global_id().x();
        k.if_(i.lt(out.len()), || {
            let digits = k.local_array(Type::U32, 10);
            k.for_range(0u32, 10, |d| digits.at(d).set(0));
            let rest = k.var("rest", i * 7919);
            k.while_(
                || rest.get().gt(0),
                || {
                    let mut count = digits.at(rest % 10);
                    count += 1;
                    rest.set(rest / 10);
                },
            );
            let best = k.var("best", 0u32);
            k.for_range(0u32, 10, |d| {
                k.if_(digits.at(d).get().gt(digits.at(best)), || best.set(d));
            });
            out.at(i).set(best);
        });
    })?;
    let want = |i: u32| {
        let mut digits = [0; 10];
        let mut rest = i * 7919;
        while rest > 0 {
            digits[(rest % 10) as usize] += 1;
            rest /= 10;
        }
        (0..10).fold(0, |best, d| if digits[d] > digits[best] { d } else { best }) as u32
    };
    let got = run_over(jit, &kernel, vec![0u32; 300], &[])?;
    assert_eq!(got, (0..300).map(want).collect::<Vec<_>>());
    Ok(())
}

fn constant_tables(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("table", |k| {
        let out = k.slice_mut("out", Type::F32);
        let table = k.constant_array("table", &[1.5f32, -2.0, 4.25]);
        let i = k.global_id().x();
        k.if_(i.lt(out.len()), || out.at(i).set(table.at(i % 3)));
    })?;
    let got = run_over(jit, &kernel, vec![0f32; 64], &[])?;
    assert!(
        got.iter()
            .enumerate()
            .all(|(i, &v)| v == [1.5, -2.0, 4.25][i % 3])
    );
    Ok(())
}

fn structs_by_value_and_in_buffers(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("push", |k| {
        let t = k.ty::<Particle>();
        let particles = k.slice_mut("particles", t);
        let wind = k.param("wind", t);
        let i = k.global_id().x();
        k.if_(i.lt(particles.len()), || {
            let p = particles.at(i);
            p.field("mass").set(p.field("mass") + wind.field("mass"));
            k.for_range(0u32, 3, |d| {
                let mut x = p.field("position").at(d);
                x += d.cast(Type::F32);
            });
            let mut first = p.field("position").at(0);
            first += wind.field("position").element(0);
            p.field("tag").set(p.field("tag") + wind.field("tag"));
        });
    })?;
    let make = |i: u8| Particle {
        tag: i,
        mass: f64::from(i),
        position: [f32::from(i); 3],
    };
    let mut particles = jit.upload(&(0..100).map(make).collect::<Vec<_>>())?;
    let wind = Particle {
        tag: 3,
        mass: 0.5,
        position: [10.0, 20.0, 30.0],
    };
    jit.launch(&kernel, 2, 64, args!(&mut particles, wind))?;
    for (i, p) in particles.to_vec()?.iter().enumerate() {
        let x = i as f32;
        let position = [x + 10.0, x + 1.0, x + 2.0];
        assert_eq!(
            *p,
            Particle {
                tag: i as u8 + 3,
                mass: i as f64 + 0.5,
                position
            }
        );
    }
    Ok(())
}

fn arrays_by_value(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("polynomial", |k| {
        let out = k.slice_mut("out", Type::F64);
        let c = k.param("c", k.ty::<[f64; 4]>());
        let i = k.global_id().x();
        k.if_(i.lt(out.len()), || {
            let x = i.cast(Type::F64);
            let value = ((c.element(3) * x + c.element(2)) * x + c.element(1)) * x + c.element(0);
            out.at(i).set(value);
        });
    })?;
    let mut out = jit.zeros::<f64>(50)?;
    jit.launch(&kernel, 1, 64, args!(&mut out, [1.0f64, 2.0, 3.0, 4.0]))?;
    for (i, v) in out.to_vec()?.iter().enumerate() {
        let x = i as f64;
        assert_eq!(*v, ((4.0 * x + 3.0) * x + 2.0) * x + 1.0);
    }
    Ok(())
}

fn atomics(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("atomics", |k| {
        let (ints, floats) = (
            k.slice_mut("ints", Type::I32),
            k.slice_mut("floats", Type::F64),
        );
        let shared = k.shared_array("shared", Type::U32, 1);
        let i = k.global_id().x().cast(Type::I32);
        k.if_(k.thread_idx().x().eq(0), || shared.at(0).set(0));
        k.barrier();
        shared.at(0).atomic_add(1);
        ints.at(0).atomic_add(1);
        ints.at(1).atomic_min(-i);
        ints.at(2).atomic_max(i);
        floats.at(0).atomic_add(0.5);
        // A lock-free multiplication by compare-and-swap: 2^8 over 8 threads.
        k.if_(i.lt(8), || {
            let old = k.var("old", ints.at(3));
            k.loop_(|| {
                let seen = ints.at(3).atomic_cas(old, old * 2);
                k.if_(seen.eq(old), || k.break_());
                old.set(seen);
            });
        });
        k.barrier();
        k.if_(k.thread_idx().x().eq(0), || {
            ints.at(4).atomic_add(shared.at(0).get().cast(Type::I32));
        });
    })?;
    let mut ints = jit.upload(&[0i32, 0, 0, 1, 0])?;
    let mut floats = jit.zeros::<f64>(1)?;
    jit.launch(&kernel, 5, 100, args!(&mut ints, &mut floats))?;
    assert_eq!(ints.to_vec()?, [500, -499, 499, 256, 500]);
    assert_eq!(floats.to_vec()?, [250.0]);
    Ok(())
}

fn two_dimensional_grid(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("transpose", |k| {
        let (x, y) = (k.slice("x", Type::U32), k.slice_mut("y", Type::U32));
        let (rows, columns) = (k.param("rows", Type::U32), k.param("columns", Type::U32));
        let (r, c) = (k.global_id().y(), k.global_id().x());
        k.if_(r.lt(rows) & c.lt(columns), || {
            y.at(c * rows + r).set(x.at(r * columns + c))
        });
    })?;
    let (rows, columns) = (13u32, 29u32);
    let x = jit.upload(&(0..rows * columns).collect::<Vec<u32>>())?;
    let mut y = jit.zeros::<u32>((rows * columns) as usize)?;
    jit.launch(&kernel, (4, 2), (8, 8), args!(&x, &mut y, rows, columns))?;
    for (i, v) in y.to_vec()?.iter().enumerate() {
        let (c, r) = (i as u32 / rows, i as u32 % rows);
        assert_eq!(*v, r * columns + c);
    }
    Ok(())
}

/// A row of a table.
#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Row {
    tag: u8,
    weight: f64,
    pair: [i16; 2],
    set: bool,
}

const fn row(tag: u8, weight: f64, pair: [i16; 2], set: bool) -> Row {
    Row {
        tag,
        weight,
        pair,
        set,
    }
}

const ROWS: [Row; 3] = [
    row(7, 0.5, [1, -2], true),
    row(0, -1.25, [300, 4], false),
    row(255, 4096.0, [-5, 6], true),
];
const SQUARES: [[u32; 4]; 2] = [[0, 1, 4, 9], [16, 25, 36, 49]];

/// What a launch passes, with arrays in arrays.
#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Tables {
    factor: i32,
    bytes: [u8; 5],
    grid: [[i32; 3]; 2],
    rows: [Row; 2],
}

#[device_fn]
fn of_tables(tables: Tables, i: usize) -> f64 {
    let row = ROWS[i % 3];
    let square = SQUARES[i / 4 % 2][i % 4];
    let own = tables.rows[i % 2];
    // Written after it was copied, so not the table.
    let mut changed = tables.bytes;
    changed[i % 5] += 1;
    let mut sum = tables.grid[i % 2][i % 3] * tables.factor + changed[(i + 1) % 5] as i32;
    for j in 0..5 {
        sum += tables.bytes[(i + j) % 5] as i32 * changed[j] as i32;
    }
    if ROWS[i % 3].set || own.set {
        sum += (row.pair[i % 2] + own.pair[(i + 1) % 2]) as i32 + row.tag as i32;
    }
    sum as f64 + row.weight + own.weight + square as f64
}

#[kernel]
fn read_tables(tables: Tables, out: &mut [f64]) {
    let i = global_id().x;
    if i < out.len() {
        out[i] = of_tables(tables, i)
            + (tables.grid[i % 2][i % 3] + tables.bytes[i % 5] as i32) as f64
            + tables.rows[i % 2].weight;
    }
}

/// Constants and parameters that are indexed at run time, and copies of them that are changed.
fn tables_are_read_in_place(jit: &Jit) -> Outcome {
    let tables = Tables {
        factor: 3,
        bytes: [1, 20, 3, 40, 5],
        grid: [[1, 2, 3], [-4, -5, -6]],
        rows: [
            row(1, 0.25, [10, 20], false),
            row(2, 0.75, [-30, -40], true),
        ],
    };
    let mut out = jit.zeros::<f64>(40)?;
    read_tables.launch(jit, (2, 32), tables, &mut out)?;
    for (i, found) in out.to_vec()?.into_iter().enumerate() {
        let part = tables.grid[i % 2][i % 3] + i32::from(tables.bytes[i % 5]);
        let want = of_tables(tables, i) + f64::from(part) + tables.rows[i % 2].weight;
        assert_eq!(found, want, "at {i}");
    }
    Ok(())
}
