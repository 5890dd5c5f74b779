//! The works of a GPU: expressions beside copies, all else beside CUB, torch and CuPy.

use half::bf16;
use kiln::array::{Border, keep_dims};
use kiln::prelude::*;

use crate::samples::{Against, Bench};
use crate::table::{Goal, Row};

/// Two numbers, as the paper's Listing 10 has them.
#[derive(KernelType, Copy, Clone, Debug, PartialEq)]
#[repr(C)]
struct Point {
    x: i64,
    y: i64,
}

#[device_fn]
fn add(a: Point, b: Point) -> Point {
    Point {
        x: a.x + b.x,
        y: a.y + b.y,
    }
}

/// `3 t^2 + 5 t + 2` with `t = 2 x^2 + 6 x^3 - sqrt(x)`, of numbers that `$number` makes of `f32`.
macro_rules! polynomial {
    ($x:expr, $number:expr) => {{
        let (x, number) = ($x, $number);
        let t = number(2.0) * x * x + number(6.0) * x.powi(3) - x.sqrt();
        number(3.0) * &t * &t + number(5.0) * &t + number(2.0)
    }};
}

/// A peer that has to be reached.
fn goal(request: String, speed: f64) -> Against {
    (vec![request], Goal::Speed(speed))
}

/// A copy of as many bytes as are read and written together.
fn copy(bytes: usize, speed: f64) -> Against {
    goal(format!("copy {}", bytes / 2), speed)
}

/// A peer that is told besides.
fn besides(request: String) -> Against {
    (vec![request], Goal::None)
}

/// Numbers from 0 that look like chance: those that the peers have.
pub fn mixed(arrays: &Arrays, n: usize) -> kiln::Result<Array<u32>> {
    let indices = arrays.indices(n);
    let mixed = indices.map(device!(
        |i| (i * 2_654_435_761) ^ ((i * 2_654_435_761) >> 15)
    ));
    Ok(mixed.eval()?)
}

impl Bench {
    /// All works.
    pub fn whole(&mut self) -> kiln::Result<()> {
        self.polynomials()?;
        self.expressions()?;
        self.views()?;
        self.sums()?;
        self.structs()?;
        self.axes()?;
        self.softmax()?;
        self.scans()?;
        self.sorts()?;
        self.running()?;
        self.product()
    }

    fn polynomials(&mut self) -> kiln::Result<()> {
        let (n, count) = self.elements(28);
        let x = self.arrays.full(n, 0.5f32)?;
        let (expr, mut y) = (polynomial!(&x, |n: f32| n), self.arrays.zeros(n)?);
        let peers = [
            copy(8 * n, 1.00),
            besides(format!("cupy fused {n}")),
            besides(format!("torch compiled_fused {n}")),
        ];
        let name = format!("polynomial f32 {count}");
        self.compare(&name, &peers, || expr.eval_into(&mut y))?;
        drop((x, expr, y));
        let (n, count) = self.elements(27);
        let x = self.arrays.full(n, 0.5f64)?;
        let (expr, mut y) = (polynomial!(&x, f64::from), self.arrays.zeros(n)?);
        let name = format!("polynomial f64 {count}");
        self.compare(&name, &[copy(16 * n, 0.98)], || expr.eval_into(&mut y))?;
        drop((x, expr, y));
        let (n, count) = self.elements(29);
        let x = self.arrays.full(n, bf16::from_f32(0.5))?;
        let expr = polynomial!(&x, bf16::from_f32);
        let mut y = self.arrays.zeros(n)?;
        let name = format!("polynomial bf16 {count}");
        self.compare(&name, &[copy(4 * n, 0.97)], || expr.eval_into(&mut y))
    }

    fn expressions(&mut self) -> kiln::Result<()> {
        let (n, count) = self.elements(28);
        let arrays = self.arrays.clone();
        let (x, z, mut y) = (arrays.full(n, 0.5f32)?, arrays.ones(n)?, arrays.zeros(n)?);
        let axpy = 2.0 * &x + &z;
        let name = format!("axpy f32 {count}");
        self.compare(&name, &[copy(12 * n, 1.02)], || axpy.eval_into(&mut y))?;
        let (a, b, c) = (arrays.ones(n)?, arrays.ones(n)?, arrays.ones(n)?);
        let five = &x * &z + &a * &b - &c;
        let name = format!("5 in, 1 out, f32 {count}");
        self.compare(&name, &[copy(24 * n, 0.98)], || five.eval_into(&mut y))
    }

    fn views(&mut self) -> kiln::Result<()> {
        let arrays = self.arrays.clone();
        let side = self.extent(1 << 14);
        let n = side * side;
        let x = arrays.full((side, side), 0.5f32)?;
        let columns = side - side / 64 - 3;
        let rows = x.slice(s![.., ..columns as isize])? + 1.0;
        let mut y = arrays.zeros::<f32>((side, columns))?;
        let name = format!("padded rows f32 {side} x {columns}");
        let peer = copy(8 * side * columns, 0.95);
        self.compare(&name, &[peer], || rows.eval_into(&mut y))?;
        // All sectors are read, and half as many are written.
        let every = x.flatten()?.slice(s![..;2])? + 1.0;
        let mut half = arrays.zeros::<f32>(n.div_ceil(2))?;
        let name = format!("stride 2 f32 of {side}^2, in sectors");
        self.compare(&name, &[copy(6 * n, 0.90)], || every.eval_into(&mut half))?;
        let mut y = arrays.zeros::<f32>((side, side))?;
        let turned = x.t() + 1.0;
        let name = format!("transposed f32 {side}^2");
        self.compare(&name, &[copy(8 * n, 0.85)], || turned.eval_into(&mut y))?;
        let at = |di, dj| x.neighbor([di, dj], Border::Clamp);
        let flow = at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1) - 4.0 * &x;
        let step = &x + 0.125 * flow;
        let name = format!("stencil of 5 points f32 {side}^2");
        self.compare(&name, &[copy(8 * n, 0.95)], || step.eval_into(&mut y))
    }

    fn sums(&mut self) -> kiln::Result<()> {
        let arrays = self.arrays.clone();
        let (n, count) = self.elements(28);
        let x = arrays.full(n, 0.5f32)?;
        let peers = [
            goal(format!("sum_f32 {n}"), 0.995),
            besides(format!("cupy sum {n}")),
        ];
        let name = format!("sum f32 {count}");
        self.compare(&name, &peers, || x.sum_axis(..))?;
        let peer = goal(format!("argmax_f32 {n}"), 1.00);
        let x = mixed(&arrays, n)?.cast::<f32>().eval()?;
        self.compare(&format!("argmax f32 {count}"), &[peer], || x.argmax_axis(0))?;
        let x = arrays.full(n, 0.5f64)?;
        let peer = goal(format!("sum_f64 {n}"), 0.995);
        self.compare(&format!("sum f64 {count}"), &[peer], || x.sum_axis(..))?;
        let x = arrays.full(n, 3i32)?;
        let peer = goal(format!("sum_i32 {n}"), 0.995);
        let name = format!("sum i32 {count}, as i64");
        self.compare(&name, &[peer], || x.sum_axis(..))?;
        let (n, count) = self.elements(20);
        let x = arrays.full(n, 0.5f32)?;
        let peer = goal(format!("sum_f32 {n}"), 1.0 / 0.7);
        let name = format!("sum f32 {count}");
        self.compare(&name, &[peer], || x.sum_axis(..))?;
        self.launches(&name, 1.0, || x.sum_axis(..))
    }

    /// How many kernels a work launches.
    fn launches<R, E: Into<kiln::Error>>(
        &mut self,
        name: &str,
        most: f64,
        run: impl FnOnce() -> Result<R, E>,
    ) -> kiln::Result<()> {
        if self.wants(name) {
            let before = self.arrays.launches();
            drop(run().map_err(Into::into)?);
            self.table.add(Row {
                name: format!("{name}: kernels"),
                ours: (self.arrays.launches() - before) as f64,
                unit: "",
                peer: None,
                goal: Goal::Most(most),
            });
        }
        Ok(())
    }

    fn structs(&mut self) -> kiln::Result<()> {
        let (n, count) = self.elements(26);
        let (one, zero) = (Point { x: 1, y: 2 }, Point { x: 0, y: 0 });
        let x = self.arrays.full(n, one)?;
        let peer = goal(format!("sum_points {n}"), 1.00);
        let name = format!("sum of structs of two i64 {count}");
        self.compare(&name, &[peer], || x.reduce_axis(.., device!(add), zero))
    }

    /// Sums along each dimension: to be as fast as torch's, and to read at 0.85 of what a copy moves.
    fn axes(&mut self) -> kiln::Result<()> {
        let side = self.extent(1 << 14);
        let shapes = [
            vec![side, side],
            vec![64, self.extent(1 << 20)],
            vec![self.extent(1 << 20), 64],
            vec![256, 512, 2048]
                .into_iter()
                .map(|n| self.extent(n))
                .collect(),
        ];
        for dims in shapes {
            let x = self.arrays.full(&dims[..], 0.5f32)?;
            let written: Vec<String> = dims.iter().map(usize::to_string).collect();
            for axis in 0..dims.len() {
                let of = format!("sum_axis {axis} {}", written.join(" "));
                let torch = vec![format!("torch {of}"), format!("torch compiled_{of}")];
                let peers = [(torch, Goal::Speed(1.00)), copy(4 * x.len(), 0.85)];
                let name = format!("sum ({}) axis {axis}", written.join(", "));
                self.compare(&name, &peers, || x.sum_axis(axis))?;
            }
        }
        Ok(())
    }

    fn softmax(&mut self) -> kiln::Result<()> {
        let side = self.extent(1 << 13);
        let x = self.arrays.full((side, side), 0.5f32)?;
        let softmax = || x.softmax(1)?.eval();
        let of = format!("softmax {side} {side}");
        let torch = vec![format!("torch {of}"), format!("torch compiled_{of}")];
        let peers = [
            (torch, Goal::Speed(1.35)),
            (copy(8 * x.len(), 1.0).0, Goal::None),
        ];
        let name = format!("softmax of rows f32 {side}^2");
        self.compare(&name, &peers, softmax)?;
        self.launches(&name, 2.0, softmax)?;
        let by_steps = || {
            let powers = (&x - x.max_axis(keep_dims(1))?).exp();
            (&powers / powers.sum_axis(keep_dims(1))?).eval()
        };
        let peer = besides(format!("torch {of}"));
        let name = format!("softmax by its steps f32 {side}^2");
        self.compare(&name, &[peer], by_steps)
    }

    fn scans(&mut self) -> kiln::Result<()> {
        let (n, count) = self.elements(28);
        let x = mixed(&self.arrays, n)?;
        let peer = goal(format!("scan_u32 {n}"), 0.95);
        let name = format!("running sums u32 {count}");
        self.compare(&name, &[peer], || x.cumsum(0))?;
        let peer = besides(format!("scan_max_u32 {n}"));
        let name = format!("running maxima u32 {count}");
        self.compare(&name, &[peer], || x.accumulate(0, device!(|a, b| a.max(b))))?;
        let mask = (&x & 1u32).eq(1).eval()?;
        let peer = goal(format!("select_u32 {n}"), 0.95);
        let name = format!("select 50 % of u32 {count}");
        self.compare(&name, &[peer], || x.compress(&mask))
    }

    fn sorts(&mut self) -> kiln::Result<()> {
        let (n, count) = self.elements(26);
        let x = mixed(&self.arrays, n)?;
        let peers = [
            goal(format!("sort_u32 {n}"), 0.85),
            besides(format!("cupy sort {n}")),
        ];
        self.compare(&format!("sort u32 {count}"), &peers, || x.sort(0))?;
        let peer = goal(format!("sort_pairs_u32 {n}"), 0.85);
        let name = format!("sort pairs u32 {count} (argsort)");
        self.compare(&name, &[peer], || x.argsort(0))?;
        let peer = besides(format!("merge_sort_u32 {n}"));
        let name = format!("sort by a comparison u32 {count}");
        self.compare(&name, &[peer], || x.sort_by(0, device!(|a, b| a < b)))?;
        let is_nan = (&x % 128u32).eq(0);
        let x = kiln::array::where_(is_nan, f32::NAN, x.cast::<f32>()).eval()?;
        let peer = goal(format!("sort_f32 {n}"), 0.85);
        let name = format!("sort f32 with NaN {count}");
        self.compare(&name, &[peer], || x.sort(0))
    }

    /// Running sums along the dimensions of matrices, beside a copy of as many elements.
    fn running(&mut self) -> kiln::Result<()> {
        let (side, long) = (self.extent(1 << 14), self.extent(1 << 20));
        for (dims, axes) in [
            ([side, side], 0..2),
            ([8 * long, 16], 1..2),
            ([64, long], 0..2),
        ] {
            let x = self.arrays.full(&dims[..], 1u32)?;
            for axis in axes {
                let peer = (copy(8 * x.len(), 1.0).0, Goal::None);
                let name = format!("running sums u32 {} x {} axis {axis}", dims[0], dims[1]);
                self.compare(&name, &[peer], || x.cumsum(axis))?;
            }
        }
        Ok(())
    }

    fn product(&mut self) -> kiln::Result<()> {
        let n = self.extent(4096);
        let arrays = self.arrays.clone();
        let (a, b) = (arrays.full((n, n), 0.5f32)?, arrays.full((n, n), 2.0f32)?);
        let peer = goal(format!("torch matmul {n}"), 0.90);
        let name = format!("product f32 {n}, beside cuBLAS without TF32");
        self.compare(&name, &[peer], || a.matmul(&b))
    }
}
