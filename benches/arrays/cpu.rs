//! The works of a CPU, beside loops of OpenMP and NumPy.

use crate::samples::{Against, Bench};
use crate::table::Goal;
use crate::whole::mixed;

/// The faster of the two for a work.
fn best(work: &str, speed: f64) -> Against {
    let requests = vec![work.to_owned(), format!("numpy {work}")];
    (requests, Goal::Speed(speed))
}

impl Bench {
    /// All of them.
    pub fn on_cpu(&mut self) -> kiln::Result<()> {
        let arrays = self.arrays.clone();
        let (n, count) = self.elements(25);
        let x = arrays.uniform::<f32>(n, 7).eval()?;
        let t = 2.0 * &x * &x + 6.0 * x.powi(3) - x.sqrt();
        let fused = 3.0 * &t * &t + 5.0 * &t + 2.0;
        let mut y = arrays.zeros::<f32>(n)?;
        let peer = best(&format!("fused {n}"), 1.0);
        self.compare(&format!("CPU: fused f32 {count}"), &[peer], || {
            fused.eval_into(&mut y)
        })?;
        let peer = best(&format!("sum {n}"), 1.0);
        self.compare(&format!("CPU: sum f32 {count}"), &[peer], || x.sum_axis(..))?;
        let side = 1 << (n.ilog2() / 2);
        for dims in [[side, n / side], [64, n / 64], [n / 64, 64]] {
            let x = x.reshape(&dims[..])?;
            for axis in 0..2 {
                let [rows, columns] = dims;
                let peer = best(&format!("sum_axis {axis} {rows} {columns}"), 1.0);
                let name = format!("CPU: sum ({rows}, {columns}) axis {axis}");
                self.compare(&name, &[peer], || x.sum_axis(axis))?;
            }
        }
        let x = mixed(&arrays, n)?;
        let peer = best(&format!("scan {n}"), 1.0);
        self.compare(&format!("CPU: running sums u32 {count}"), &[peer], || {
            x.cumsum(0)
        })?;
        let peer = best(&format!("sort {n}"), 0.7);
        self.compare(&format!("CPU: sort u32 {count}"), &[peer], || x.sort(0))
    }
}
