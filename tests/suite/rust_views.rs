//! Structs with slices as parameters of kernels, and the types of the host that become them.

#![allow(clippy::all, reason = "the ways to write something are what is tested")]

use kiln::prelude::*;

use super::{Outcome, chapter};

chapter! {
    a_view_is_read, a_view_is_written, parts_of_every_kind, views_of_views, type_parameters,
    several_views_of_one_buffer, views_are_made_in_kernels, methods_that_change_what_they_are_of,
    passed_on_by_value_and_by_reference, a_view_of_shared_memory, chosen_by_a_branch,
    an_index_past_a_slice_of_a_view, built_by_hand, a_field_too_large_for_kernels,
}

/// Rows of numbers, one after the other.
#[derive(KernelView, Copy, Clone)]
struct Rows<'a, T> {
    data: &'a [T],
    rows: u32,
    columns: usize,
}

#[device_fn]
impl<T: Num> Rows<'_, T> {
    fn at(&self, row: usize, column: usize) -> T {
        self.data[row * self.columns + column]
    }

    fn sum_of_row(self, row: usize) -> T {
        let mut sum = T::ZERO;
        for column in 0..self.columns {
            sum += self.at(row, column);
        }
        sum
    }
}

/// What the host has.
struct Table<T: KernelType> {
    data: Buffer<T>,
    columns: usize,
}

impl<T: KernelType> Table<T> {
    fn of(jit: &Jit, data: &[T], columns: usize) -> kiln::Result<Table<T>> {
        let data = jit.upload(data)?;
        Ok(Table { data, columns })
    }
}

impl<'a, T: KernelType> ToKernel<'a> for &'a Table<T> {
    type View = Rows<'a, T>;
    fn to_kernel(self) -> RowsArgs<'a, T> {
        RowsArgs {
            data: &self.data,
            rows: (self.data.len() / self.columns) as u32,
            columns: self.columns,
        }
    }
}

#[kernel]
fn sums_of_rows(t: Rows<'_, i32>, out: &mut [i32]) {
    let row = global_id().x;
    if row < t.rows as usize {
        out[row] = t.sum_of_row(row) + t.data[row];
    }
}

fn a_view_is_read(jit: &Jit) -> Outcome {
    let table = Table::of(jit, &[1, 2, 3, 4, 5, 6], 3)?;
    let mut out = jit.zeros(2)?;
    sums_of_rows.launch(jit, (1, 32), &table, &mut out)?;
    assert_eq!(out.to_vec()?, [1 + 2 + 3 + 1, 4 + 5 + 6 + 2]);
    jit.launch(&sums_of_rows, 1, 1, args!(&table, &mut out))?;
    let given = RowsArgs {
        data: &table.data,
        rows: 1,
        columns: 2,
    };
    sums_of_rows.launch(jit, (1, 32), given, &mut out)?;
    assert_eq!(out.to_vec()?, [1 + 2 + 1, 17]);
    // One by one.
    jit.launch(
        &sums_of_rows,
        1,
        32,
        args!(&table.data, 1u32, 1u32, &mut out),
    )?;
    assert_eq!(out.to_vec()?, [2, 17]);
    let prepared = jit.compile(&sums_of_rows, args!(&table, &mut out))?;
    prepared.launch(1, 32, args!(&table, &mut out))?;
    assert_eq!(out.to_vec()?, [7, 17]);
    Ok(())
}

#[derive(KernelView)]
struct RowsMut<'a> {
    data: &'a mut [i32],
    columns: usize,
}

impl<'a> ToKernel<'a> for &'a mut Table<i32> {
    type View = RowsMut<'a>;
    fn to_kernel(self) -> RowsMutArgs<'a> {
        RowsMutArgs {
            data: &mut self.data,
            columns: self.columns,
        }
    }
}

#[kernel]
fn numbered(t: RowsMut<'_>, by: i32) {
    let (row, column) = (global_id().y, global_id().x);
    let at = row * t.columns + column;
    if column < t.columns && at < t.data.len() {
        t.data[at] += (10 * row + column) as i32 * by;
    }
}

fn a_view_is_written(jit: &Jit) -> Outcome {
    let mut table = Table::of(jit, &[100; 6], 3)?;
    numbered.launch(jit, ((1, 2), 32), &mut table, 1)?;
    assert_eq!(table.data.to_vec()?, [100, 101, 102, 110, 111, 112]);
    jit.launch(&numbered, (1, 2), 32, args!(&mut table, -1))?;
    assert_eq!(table.data.to_vec()?, [100; 6]);
    Ok(())
}

#[derive(KernelType, Copy, Clone)]
#[repr(C)]
struct Affine {
    by: f32,
    plus: [f32; 2],
}

#[derive(KernelView)]
struct Every<'a> {
    flags: &'a [bool],
    map: Affine,
    shape: [u32; 3],
    is_on: bool,
    pairs: &'a [[f32; 2]],
    wide: u64,
    out: &'a mut [f32],
}

#[kernel]
fn of_every_kind(e: Every<'_>) {
    let i = global_id().x;
    if i < e.out.len() && e.is_on && e.flags[i] {
        let Every {
            map, shape, pairs, ..
        } = e;
        let of_pair = pairs[i][0] * map.by + pairs[i][1];
        e.out[i] = of_pair + map.plus[i % 2] + shape[2 - i % 3] as f32 + e.wide as f32;
    }
}

fn parts_of_every_kind(jit: &Jit) -> Outcome {
    let flags = jit.upload(&[true, false, true])?;
    let pairs = jit.upload(&[[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]])?;
    let mut out = jit.zeros(3)?;
    let every = EveryArgs {
        flags: &flags,
        map: Affine {
            by: 10.0,
            plus: [100.0, 200.0],
        },
        shape: [1000, 2000, 3000],
        is_on: true,
        pairs: &pairs,
        wide: 10_000,
        out: &mut out,
    };
    of_every_kind.launch(jit, (1, 32), every)?;
    assert_eq!(out.to_vec()?, [13_112.0, 0.0, 11_156.0]);
    Ok(())
}

#[derive(KernelView, Copy, Clone)]
struct Pair<'a, T> {
    left: Rows<'a, T>,
    right: Rows<'a, T>,
    scale: T,
}

#[device_fn]
impl<T: Num> Pair<'_, T> {
    fn product(&self, row: usize, column: usize) -> T {
        let mut sum = T::ZERO;
        for i in 0..self.left.columns {
            sum += self.left.at(row, i) * self.right.at(i, column);
        }
        sum * self.scale
    }
}

#[kernel]
fn products<T: Num>(pair: Pair<'_, T>, out: &mut [T]) {
    let (row, column) = (global_id().y, global_id().x);
    if row < pair.left.rows as usize && column < pair.right.columns {
        out[row * pair.right.columns + column] = pair.product(row, column);
    }
}

fn views_of_views(jit: &Jit) -> Outcome {
    let left = Table::of(jit, &[1.0f64, 2.0, 3.0, 4.0], 2)?;
    let right = Table::of(jit, &[5.0, 6.0, 7.0, 8.0], 2)?;
    let mut out = jit.zeros(4)?;
    let pair = PairArgs {
        left: (&left).to_kernel(),
        right: right.to_kernel(),
        scale: 2.0,
    };
    products.launch(jit, (1, (2, 2)), pair, &mut out)?;
    assert_eq!(out.to_vec()?, [38.0, 44.0, 86.0, 100.0]);
    Ok(())
}

#[kernel]
fn first_of_rows<T: Num>(t: Rows<'_, T>, plus: T, out: &mut [T]) {
    let row = global_id().x;
    if row < t.rows as usize {
        out[row] = Rows::at(&t, row, 0) + plus;
    }
}

fn type_parameters(jit: &Jit) -> Outcome {
    let mut out = jit.zeros(2)?;
    let table = Table::of(jit, &[1u8, 2, 3, 4], 2)?;
    first_of_rows.launch(jit, (1, 32), &table, 5, &mut out)?;
    assert_eq!(out.to_vec()?, [6, 8]);
    let mut out = jit.zeros(2)?;
    let table = Table::of(jit, &[1.5f64, 2.0, 3.0, 4.0], 2)?;
    first_of_rows.launch(jit, (1, 32), &table, 5.0, &mut out)?;
    assert_eq!(out.to_vec()?, [6.5, 8.0]);
    Ok(())
}

#[kernel]
fn differences(a: Rows<'_, i32>, b: Rows<'_, i32>, out: &mut [i32]) {
    let i = global_id().x;
    if i < out.len() {
        out[i] = a.at(i, 0) - b.at(0, i);
    }
}

fn several_views_of_one_buffer(jit: &Jit) -> Outcome {
    let table = Table::of(jit, &[1, 2, 3, 4], 2)?;
    let mut out = jit.zeros(2)?;
    differences.launch(jit, (1, 32), &table, &table, &mut out)?;
    assert_eq!(out.to_vec()?, [0, 1]);
    Ok(())
}

#[device_fn]
impl<'a> Rows<'a, i32> {
    /// The rows from one on.
    fn from(self, row: usize) -> Rows<'a, i32> {
        Rows {
            data: &self.data[row * self.columns..],
            rows: self.rows - row as u32,
            ..self
        }
    }

    fn whole(data: &'a [i32]) -> Self {
        Rows {
            data,
            rows: 1,
            columns: data.len(),
        }
    }
}

#[kernel]
fn later_rows(t: Rows<'_, i32>, out: &mut [i32]) {
    let i = global_id().x;
    let later = t.from(1);
    if i < later.rows as usize {
        let all = Rows::whole(later.data);
        out[i] = later.at(i, 0) + all.sum_of_row(0);
    }
}

fn views_are_made_in_kernels(jit: &Jit) -> Outcome {
    let table = Table::of(jit, &[1, 2, 3, 4, 5, 6], 2)?;
    let mut out = jit.zeros(2)?;
    later_rows.launch(jit, (1, 32), &table, &mut out)?;
    assert_eq!(out.to_vec()?, [3 + 18, 5 + 18]);
    Ok(())
}

/// A place of its own for each thread to append to.
#[derive(KernelView)]
struct Stack<'a> {
    data: &'a mut [i32],
    from: u32,
    len: u32,
}

#[device_fn]
impl Stack<'_> {
    fn push(&mut self, value: i32) {
        self.data[(self.from + self.len) as usize] = value;
        self.len += 1;
    }
}

#[kernel]
fn pushes(mut stack: Stack<'_>) {
    let i = global_id().x;
    stack.from = 3 * i as u32;
    if stack.from < stack.data.len() as u32 {
        for n in 0..3 {
            stack.push((10 * i) as i32 + n);
        }
        stack.data[3 * i] += stack.len as i32 * 100;
    }
}

fn methods_that_change_what_they_are_of(jit: &Jit) -> Outcome {
    let mut data = jit.zeros(6)?;
    let stack = StackArgs {
        data: &mut data,
        from: 0,
        len: 0,
    };
    pushes.launch(jit, (1, 32), stack)?;
    assert_eq!(data.to_vec()?, [300, 1, 2, 310, 11, 12]);
    Ok(())
}

#[device_fn]
fn by_value(t: Rows<'_, i32>, at: usize) -> i32 {
    t.data[at]
}

#[device_fn]
fn by_reference(t: &Rows<'_, i32>, at: usize) -> i32 {
    t.data[at] + t.columns as i32
}

#[device_fn]
fn by_mutable_reference(t: &mut RowsMut<'_>, at: usize) {
    t.data[at] *= 2;
}

#[device_fn]
fn apply<F: Fn(Rows<'_, i32>) -> i32>(t: Rows<'_, i32>, f: F) -> i32 {
    f(t)
}

#[kernel]
fn passes_on(t: Rows<'_, i32>, mut out: RowsMut<'_>) {
    let i = global_id().x;
    if i < out.data.len() {
        let plus = apply(t, |t| t.data[0]);
        out.data[i] = by_value(t, i) + 10 * by_reference(&t, i) + 100 * plus;
        by_mutable_reference(&mut out, i);
    }
}

fn passed_on_by_value_and_by_reference(jit: &Jit) -> Outcome {
    let table = Table::of(jit, &[1, 2], 2)?;
    let mut out = Table::of(jit, &[0, 0], 1)?;
    passes_on.launch(jit, (1, 32), &table, &mut out)?;
    assert_eq!(out.data.to_vec()?, [262, 284]);
    Ok(())
}

#[kernel]
fn of_the_block(x: &[i32], out: &mut [i32]) {
    let (i, t) = (global_id().x, thread_idx().x);
    let tile = shared!([i32; 32]);
    tile[t] = if i < x.len() { x[i] } else { 0 };
    barrier();
    let rows = Rows {
        data: &tile[..],
        rows: 4,
        columns: 8,
    };
    if i < out.len() {
        out[i] = rows.sum_of_row(t / 8) + by_reference(&rows, t);
    }
}

fn a_view_of_shared_memory(jit: &Jit) -> Outcome {
    let values: Vec<i32> = (0..32).collect();
    let x = jit.upload(&values)?;
    let mut out = jit.zeros(32)?;
    of_the_block.launch(jit, (1, 32), &x, &mut out)?;
    let wanted = |i: i32| (0..8).map(|n| i / 8 * 8 + n).sum::<i32>() + i + 8;
    assert_eq!(
        out.to_vec()?,
        values.iter().map(|&i| wanted(i)).collect::<Vec<_>>()
    );
    Ok(())
}

#[kernel]
fn one_of_two(a: Rows<'_, i32>, b: Rows<'_, i32>, out: &mut [i32]) {
    let i = global_id().x;
    let mut one = if i % 2 == 0 { a } else { b };
    if i == 2 {
        one = b;
    }
    if i < out.len() {
        out[i] = one.at(0, i);
    }
}

fn chosen_by_a_branch(jit: &Jit) -> Outcome {
    let a = Table::of(jit, &[1, 2, 3, 4], 4)?;
    let b = Table::of(jit, &[10, 20, 30, 40], 4)?;
    let mut out = jit.zeros(4)?;
    one_of_two.launch(jit, (1, 32), &a, &b, &mut out)?;
    assert_eq!(out.to_vec()?, [1, 20, 30, 40]);
    Ok(())
}

fn an_index_past_a_slice_of_a_view(jit: &Jit) -> Outcome {
    let table = Table::of(jit, &[1, 2, 3, 4], 4)?;
    let mut out = jit.zeros(1)?;
    let past = RowsArgs {
        data: &table.data,
        rows: 1,
        columns: 5,
    };
    sums_of_rows.launch(jit, (1, 32), past, &mut out)?;
    let text = jit
        .synchronize()
        .expect_err("it is out of bounds")
        .to_string();
    assert!(
        text.contains("sums_of_rows") && text.contains("rust_views.rs"),
        "{text}"
    );
    Ok(())
}

fn built_by_hand(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("last_of_rows", |k| {
        let t = k.view::<Rows<'_, i32>>("t");
        let out = k.slice_mut("out", Type::I32);
        let (row, columns) = (k.global_id().x(), t.field("columns"));
        k.if_(row.lt(t.field("rows")), || {
            let last = (row + 1u32) * columns - 1u32;
            out.at(row).set(t.field("data").at(last));
        });
    })?;
    let table = Table::of(jit, &[1, 2, 3, 4, 5, 6], 3)?;
    let mut out = jit.zeros::<i32>(2)?;
    jit.launch(&kernel, 1, 32, args!(&table, &mut out))?;
    assert_eq!(out.to_vec()?, [3, 6]);
    Ok(())
}

fn a_field_too_large_for_kernels(jit: &Jit) -> Outcome {
    let mut t = Table::of(jit, &[1i32, 2], 2)?;
    t.columns = 1 << 40;
    let mut out = jit.zeros::<i32>(1)?;
    let refused = jit.launch(&sums_of_rows, 1, 1, args!(&t, &mut out));
    let error = refused.expect_err("kernels have 32 bits").to_string();
    let text = "argument 3 (`t.columns`) is 1099511627776, and `usize` has 32 bits in kernels";
    assert!(error.contains(text), "{error}");
    Ok(())
}
