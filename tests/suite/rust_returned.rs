//! Device functions that return references: into slices, structs, views, shared memory, by themselves and in options,
//! results and tuples. Each function runs as plain Rust on the host and through the JIT.

#![allow(clippy::all, reason = "the ways to write something are what is tested")]

use kiln::prelude::*;

use super::Outcome;
use super::rust_language::on_host_and_device;

on_host_and_device! {
    elements parts options options_from_loops question_marks results pairs mutable mutable_options generic methods
    passed_on chosen with_closures lifetimes of_one_field
    transparent
    ; in_every_memory views tables_are_refused
}

#[device_fn]
fn element(x: &[i32], at: usize) -> &i32 {
    &x[at % x.len()]
}

#[device_fn]
fn elements(x: i32) -> i32 {
    let all = [x, 2, 3, x ^ 5];
    let (a, b) = (element(&all, 0), element(&all, (x & 3) as usize));
    a.wrapping_add(*b)
}

#[device_fn]
fn behind(x: &[i32], n: usize) -> &[i32] {
    if n >= x.len() {
        return &x[..1];
    }
    &x[n..]
}

#[device_fn]
fn parts(x: i32) -> i32 {
    let all = [x, 2, 3, x ^ 5];
    let mut sum = 0i32;
    for v in behind(&all, (x & 7) as usize) {
        sum = sum.wrapping_mul(3).wrapping_add(*v);
    }
    sum.wrapping_add(behind(behind(&all, 1), 1).len() as i32)
}

#[device_fn]
fn largest(x: &[i32]) -> Option<&i32> {
    let mut best: Option<&i32> = None;
    for v in x {
        match best {
            Some(b) if b >= v => {}
            _ => best = Some(v),
        }
    }
    best
}

#[device_fn]
fn options(x: i32) -> i32 {
    let all = [x, 2, 30, x ^ 5];
    let none = largest(&all[4..]).is_none();
    let Some(most) = largest(&all) else { return -1 };
    most.wrapping_add(none as i32)
}

#[device_fn]
fn first_above(x: &[i32], least: i32) -> Option<&i32> {
    for v in x.iter() {
        if *v > least {
            return Some(v);
        }
    }
    None
}

#[device_fn]
fn options_from_loops(x: i32) -> i32 {
    let all = [3, x & 15, 9, x & 31];
    match first_above(&all, 8) {
        Some(v) => *v,
        None => -1,
    }
}

#[device_fn]
fn after_first_above(x: &[i32], least: i32) -> Option<&i32> {
    let first = first_above(x, least)?;
    first_above(x, *first)
}

#[device_fn]
fn question_marks(x: i32) -> i32 {
    let all = [3, x & 15, 9, x & 31];
    after_first_above(&all, 4).copied().unwrap_or(-7)
}

#[device_fn]
fn even(x: &[i32]) -> Result<&i32, i32> {
    for v in x {
        if v % 2 == 0 {
            return Ok(v);
        }
    }
    Err(x.len() as i32)
}

#[device_fn]
fn results(x: i32) -> i32 {
    match even(&[x, x >> 1, x >> 2][..(x & 3) as usize]) {
        Ok(v) => *v,
        Err(n) => -n,
    }
}

#[device_fn]
fn halves(x: &[i32]) -> (&[i32], &[i32]) {
    x.split_at(x.len() / 2)
}

#[device_fn]
fn pairs(x: i32) -> i32 {
    let all = [x, 2, 3, x ^ 5, 7];
    let (a, b) = halves(&all);
    let (_, d) = halves(b);
    a[1] * 100 + (a.len() * 10 + d.len()) as i32 + b[1]
}

#[device_fn]
fn slot(x: &mut [i32], at: usize) -> &mut i32 {
    let len = x.len();
    &mut x[at % len]
}

#[device_fn]
fn mutable(x: i32) -> i32 {
    let mut all = [x, 2, 3];
    *slot(&mut all, (x & 15) as usize) = 70;
    *slot(&mut all, 1) += 5;
    let third = slot(&mut all, 2);
    *third = third.wrapping_mul(3);
    all[0].wrapping_add(all[1] * 7).wrapping_add(all[2])
}

#[derive(Copy, Clone, Debug, PartialEq, KernelType)]
#[repr(C)]
struct Line {
    tag: i32,
    age: [i32; 2],
}

#[derive(Copy, Clone, Debug, PartialEq, KernelType)]
#[repr(C)]
struct Set {
    lines: [Line; 3],
    hits: i32,
}

#[device_fn]
impl Set {
    fn find(&mut self, tag: i32) -> Option<&mut Line> {
        for line in self.lines.iter_mut() {
            if line.tag == tag {
                return Some(line);
            }
        }
        None
    }

    fn last(&self) -> &Line {
        &self.lines[2]
    }

    fn ages(&self, at: usize) -> &[i32] {
        &self.lines[at].age
    }

    fn hits(&mut self) -> &mut i32 {
        &mut self.hits
    }
}

#[device_fn]
fn set(x: i32) -> Set {
    let line = |tag: i32| Line {
        tag,
        age: [tag * 2, tag + 1],
    };
    Set {
        lines: [line(1), line(2), line(x & 3)],
        hits: 0,
    }
}

#[device_fn]
fn mutable_options(x: i32) -> i32 {
    let mut set = set(x);
    if let Some(line) = set.find(x & 3) {
        line.tag = 50;
        line.age[1] -= 4;
    }
    *set.hits() += 3;
    set.lines[0].tag + set.lines[1].tag * 100 + set.lines[2].age[1] + set.hits
}

#[device_fn]
fn smallest<T: Num>(x: &[T]) -> Option<&T> {
    let mut best: Option<&T> = None;
    for v in x {
        if best.is_none_or(|b| b > v) {
            best = Some(v);
        }
    }
    best
}

#[device_fn]
fn generic(x: i32) -> i32 {
    let floats = [x as f32, 2.5, -1.5];
    let small = smallest(&floats).copied().unwrap_or(0.0);
    let bytes = [x as u8, 9, 200];
    small as i32 + i32::from(*smallest(&bytes).unwrap())
}

#[device_fn]
fn methods(x: i32) -> i32 {
    let set = set(x);
    let ages = set.ages((x & 1) as usize);
    set.last().tag * 100 + set.last().age[1] + ages[0] * 10 + ages.len() as i32
}

#[device_fn]
fn second(x: &[i32]) -> &i32 {
    element(behind(x, 1), 0)
}

#[device_fn]
fn passed_on(x: i32) -> i32 {
    *second(&[x, x ^ 77, 1])
}

#[device_fn]
fn chosen(x: i32) -> i32 {
    let (a, b) = ([x, 1, 2], [9, x ^ 3, 4, 5]);
    let part = if x & 1 == 0 {
        behind(&a, 1)
    } else {
        behind(&b, 2)
    };
    part[0] * 10 + part.len() as i32
}

#[device_fn]
fn first_that<F: Fn(i32) -> bool>(x: &[i32], is_it: F) -> Option<&i32> {
    for v in x {
        if is_it(*v) {
            return Some(v);
        }
    }
    None
}

#[device_fn]
fn with_closures(x: i32) -> i32 {
    let all = [x, 12, x ^ 1];
    first_that(&all, |v| v % 3 == 0).map_or(-1, |v| *v)
}

#[device_fn]
fn longer<'a>(x: &'a [i32], y: &'a [i32], _other: &[i32]) -> &'a [i32] {
    if x.len() > y.len() { x } else { y }
}

#[device_fn]
fn lifetimes(x: i32) -> i32 {
    let (a, b) = ([x, 1, 2], [9, x ^ 3, 4, 5]);
    longer(&a, &b[..(x & 3) as usize], &a)[0]
}

#[device_fn]
fn ages(line: &Line) -> &[i32; 2] {
    &line.age
}

#[device_fn]
fn of_one_field(x: i32) -> i32 {
    let line = Line {
        tag: 1,
        age: [x, x ^ 9],
    };
    let [a, b] = ages(&line);
    a.wrapping_sub(*b)
}

/// A struct that lies as its field does.
#[derive(Copy, Clone, Debug, PartialEq, KernelType)]
#[repr(transparent)]
struct Meters(i32);

#[device_fn]
impl Meters {
    fn inner(&self) -> &i32 {
        &self.0
    }
}

#[device_fn]
fn transparent(x: i32) -> i32 {
    let all = [Meters(x), Meters(3)];
    let Meters(least) = all[(x & 1) as usize];
    least ^ *all[1].inner()
}

/// References into two memories and a variable, given by the same function.
#[kernel]
fn every_memory(x: &[i32], y: &mut [i32], out: &mut [i32]) {
    let tile = shared!([i32; 8]);
    let t = thread_idx().x;
    tile[t] = 100 + t as i32;
    barrier();
    let own = [7, t as i32, 9];
    let sum = element(x, t) + 3 * element(tile, t + 1) + 5 * element(&own, t);
    let part = match t & 3 {
        0 => behind(x, t),
        1 => behind(tile, t),
        2 => behind(&own, 1),
        _ => behind(y, t),
    };
    let first = part[0];
    barrier();
    *slot(y, t) += sum;
    *slot(tile, t) += 1000;
    barrier();
    out[t] = first * 10_000 + tile[7 - t];
}

fn in_every_memory(jit: &Jit) -> Outcome {
    let x: Vec<i32> = (0..8).map(|i| 10 + i).collect();
    let mut y = jit.upload(&[1; 8])?;
    let mut out = jit.zeros::<i32>(8)?;
    every_memory.launch(jit, (1, 8), &jit.upload(&x)?, &mut y, &mut out)?;
    let own = |t: i32| [7, t, 9];
    let at = |t: i32| t as usize;
    let sums = (0..8).map(|t| 1 + x[at(t)] + 3 * (100 + (t + 1) % 8) + 5 * own(t)[at(t) % 3]);
    assert_eq!(y.to_vec()?, sums.collect::<Vec<_>>());
    let first = |t: i32| [x[at(t)], 100 + t, t, 1][at(t) & 3];
    let wanted = (0..8).map(|t| first(t) * 10_000 + 1100 + 7 - t);
    assert_eq!(out.to_vec()?, wanted.collect::<Vec<_>>());
    Ok(())
}

/// A graph: the nodes that each leads to, one after the other.
#[derive(Copy, Clone, KernelView)]
struct Graph<'a> {
    starts: &'a [u32],
    targets: &'a [u32],
}

#[device_fn]
impl<'a> Graph<'a> {
    fn of(&self, node: u32) -> &'a [u32] {
        let at = node as usize;
        match self.starts.get(at + 1) {
            Some(&end) => &self.targets[self.starts[at] as usize..end as usize],
            None => &self.targets[0..0],
        }
    }
}

#[derive(Copy, Clone, KernelView)]
struct Rows<'a> {
    values: &'a [u32],
    width: usize,
}

#[device_fn]
impl Rows<'_> {
    fn row(&self, at: usize) -> &[u32] {
        &self.values[at * self.width..][..self.width]
    }

    fn last(&self) -> Option<&u32> {
        self.values.last()
    }
}

#[kernel]
fn reached(graph: Graph<'_>, rows: Rows<'_>, out: &mut [u32]) {
    let node = thread_idx().x;
    if node < out.len() {
        let mut sum = 0;
        for &to in graph.of(node as u32) {
            sum += graph.of(to).len() as u32 + 100 * rows.row(to as usize)[1];
        }
        out[node] = sum + 10_000 * rows.last().map_or(0, |v| *v);
    }
}

fn views(jit: &Jit) -> Outcome {
    let starts = jit.upload(&[0u32, 2, 3, 3, 5])?;
    let targets = jit.upload(&[1u32, 2, 3, 0, 2])?;
    let values = jit.upload(&(0..8).collect::<Vec<u32>>())?;
    let graph = GraphArgs {
        starts: &starts,
        targets: &targets,
    };
    let rows = RowsArgs {
        values: &values,
        width: 2,
    };
    let mut out = jit.zeros::<u32>(5)?;
    reached.launch(jit, (1, 32), graph, rows, &mut out)?;
    let wanted = [801, 702, 0, 602, 0].map(|sum| sum + 70_000);
    assert_eq!(out.to_vec()?, wanted);
    Ok(())
}

const TABLE: [i32; 3] = [3, 1, 2];

#[device_fn]
fn of_table(x: &[i32]) -> Option<&i32> {
    x.first().or(TABLE.last())
}

#[kernel]
fn with_table(x: &[i32], out: &mut [i32]) {
    out[0] = of_table(x).copied().unwrap_or(0);
}

fn tables_are_refused(jit: &Jit) -> Outcome {
    let (x, mut out) = (jit.upload(&[1])?, jit.zeros::<i32>(1)?);
    let refused = with_table.launch(jit, (1, 1), &x, &mut out);
    let refused = refused.expect_err("it has a table").to_string();
    let said = "a device function that returns a reference has no constants but numbers";
    assert!(refused.contains(said), "{refused}");
    Ok(())
}
