//! Everyday tasks with arrays: each is a function as short as the NumPy version beside it, and a check.

use kiln::array::{ArrayError, keep_dims};
use kiln::prelude::*;

/// What array operations give.
type Result<T> = std::result::Result<T, ArrayError>;

/// Which of the centers each point is nearest to, and the centers moved to their points' averages, so many times.
///
/// ```python
/// for _ in range(times):
///     nearest = distances(points, centers).argmin(1)
///     is_of = (nearest[:, None] == np.arange(len(centers))).astype(np.float32)
///     counts = is_of.sum(0)[:, None]
///     centers = (is_of.T @ points) / np.maximum(counts, 1)
/// ```
fn k_means(
    points: &Array<f32>,
    centers: &Array<f32>,
    times: usize,
) -> Result<(Array<u32>, Array<f32>)> {
    let (mut centers, mut nearest) = (centers.clone(), points.arrays().zeros(0)?);
    for _ in 0..times {
        nearest = distances(points, &centers)?.argmin_axis(1)?;
        let numbers = points.arrays().indices(centers.dims()[0]).eval()?;
        let is_of = nearest.insert_axis(1)?.eq(&numbers).cast::<f32>().eval()?;
        let counts = is_of.sum_axis(0)?.insert_axis(1)?;
        centers = (is_of.t().matmul(points)? / counts.maximum(1.0)).eval()?;
    }
    Ok((nearest, centers))
}

/// The squares of the distances of each row of one matrix from each of another.
///
/// ```python
/// ((x[:, None] - y[None]) ** 2).sum(2)
/// ```
fn distances(x: &Array<f32>, y: &Array<f32>) -> Result<Array<f32>> {
    let off = x.insert_axis(1)? - y.insert_axis(0)?;
    (&off * &off).sum_axis(2)
}

/// The weights with which `x` is nearest to `y`, by gradient descent.
///
/// ```python
/// for _ in range(times):
///     off = x @ w - y
///     w -= rate / len(x) * (x.T @ off)
/// ```
fn regression(x: &Array<f32>, y: &Array<f32>, rate: f32, times: usize) -> Result<Array<f32>> {
    let mut w = x.arrays().zeros::<f32>(x.dims()[1])?;
    let by = rate / x.dims()[0] as f32;
    for _ in 0..times {
        let off = (x.matmul(&w)? - y).eval()?;
        w -= by * x.t().matmul(&off)?;
    }
    Ok(w)
}

/// The average of as many elements beside each other.
///
/// ```python
/// sliding_window_view(x, count).mean(-1)
/// ```
fn moving_average(x: &Array<f32>, count: usize) -> Result<Array<f32>> {
    x.windows(-1, count)?.mean_axis(-1)
}

/// What is largest in each row, as shares of one.
///
/// ```python
/// e = np.exp(x - x.max(1, keepdims=True))
/// e / e.sum(1, keepdims=True)
/// ```
fn softmax(x: &Array<f32>) -> Result<Array<f32>> {
    let e = (x - x.max_axis(keep_dims(1))?).exp().eval()?;
    (&e / e.sum_axis(keep_dims(1))?).eval()
}

/// Columns of mean 0 and standard deviation 1.
///
/// ```python
/// (x - x.mean(0)) / x.std(0)
/// ```
fn normalised_columns(x: &Array<f32>) -> Result<Array<f32>> {
    ((x - x.mean_axis(keep_dims(0))?) / x.std_axis(keep_dims(0))?).eval()
}

/// A step of heat in a plate whose edge keeps its temperature.
///
/// ```python
/// around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
/// u[1:-1, 1:-1] += by * (around - 4 * u[1:-1, 1:-1])
/// ```
fn heat_step(u: &mut Array<f32>, by: f32) -> Result<()> {
    let at = |items| u.slice(items);
    let around =
        at(s![..-2, 1..-1])? + at(s![2.., 1..-1])? + at(s![1..-1, ..-2])? + at(s![1..-1, 2..])?;
    let inside = at(s![1..-1, 1..-1])?;
    let step = (&inside + by * (around - 4.0 * &inside)).eval()?;
    u.slice_mut(s![1..-1, 1..-1])?.assign(step)
}

/// How many numbers from 0 to 1 are in each of equal parts.
///
/// ```python
/// np.bincount((x * bins).astype(np.uint32), minlength=bins)
/// ```
fn histogram(x: &Array<f32>, bins: usize) -> Result<Array<u32>> {
    (x * bins as f32).cast::<u32>().eval()?.bincount(bins)
}

/// Where each row is greatest.
///
/// ```python
/// x.argmax(1)
/// ```
fn largest_of_rows(x: &Array<f32>) -> Result<Array<u32>> {
    x.argmax_axis(1)
}

/// The sums up to each row.
///
/// ```python
/// x.cumsum(0)
/// ```
fn running_total(x: &Array<f32>) -> Result<Array<f32>> {
    x.cumsum(0)
}

/// The elements above 0.
///
/// ```python
/// x[x > 0]
/// ```
fn positive(x: &Array<f32>) -> Result<Array<f32>> {
    x.compress(&x.gt(0.0).eval()?)
}

/// Pi, of random points in a square.
///
/// ```python
/// x, y = rng.random(count), rng.random(count)
/// 4 * np.count_nonzero(x * x + y * y < 1) / count
/// ```
fn monte_carlo_pi(arrays: &Arrays, count: usize) -> Result<f64> {
    let (x, y) = (
        arrays.uniform::<f32>(count, 1),
        arrays.uniform::<f32>(count, 2),
    );
    Ok(4.0 * (&x * &x + &y * &y).lt(1.0).count()? as f64 / count as f64)
}

fn near(found: &[f32], want: &[f32]) -> bool {
    found.len() == want.len() && found.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-3)
}

fn check_points(arrays: &Arrays) -> Result<()> {
    let points = arrays.nested([
        [0.0f32, 0.0],
        [0.0, 1.0],
        [9.0, 9.0],
        [9.0, 8.0],
        [1.0, 0.5],
    ])?;
    let (nearest, centers) = k_means(&points, &points.slice(s![..4;2])?, 5)?;
    assert_eq!(nearest.to_vec()?, [0, 0, 1, 1, 0]);
    assert!(near(&centers.to_vec()?, &[1.0 / 3.0, 0.5, 9.0, 8.5]));
    assert!(near(
        &distances(&points, &centers)?.column(1)?.to_vec()?[2..4],
        &[0.25, 0.25]
    ));
    Ok(())
}

fn check_matrices(arrays: &Arrays) -> Result<()> {
    let x = arrays.normal::<f32>((500, 3), 7).eval()?;
    let truth = arrays.vector(vec![2.0f32, -1.0, 0.5])?;
    let w = regression(&x, &x.matmul(&truth)?, 0.5, 100)?;
    assert!(near(&w.to_vec()?, &[2.0, -1.0, 0.5]), "{w}");
    let soft = softmax(&x)?;
    assert!(near(&soft.sum_axis(1)?.to_vec()?, &[1.0; 500]));
    assert_eq!(
        largest_of_rows(&soft)?.to_vec()?,
        largest_of_rows(&x)?.to_vec()?
    );
    let columns = normalised_columns(&x)?;
    assert!(near(&columns.mean_axis(0)?.to_vec()?, &[0.0; 3]));
    assert!(near(&columns.var_axis(0)?.to_vec()?, &[1.0; 3]));
    Ok(())
}

fn check_series(arrays: &Arrays) -> Result<()> {
    let series = arrays.vector(vec![1.0f32, 2.0, 6.0, 4.0, 2.0])?;
    assert_eq!(moving_average(&series, 3)?.to_vec()?, [3.0, 4.0, 4.0]);
    assert_eq!(
        running_total(&series)?.to_vec()?,
        [1.0, 3.0, 9.0, 13.0, 15.0]
    );
    assert_eq!(positive(&(&series - 2.5).eval()?)?.to_vec()?, [3.5, 1.5]);
    let mut plate = arrays.zeros::<f32>((5, 5))?;
    plate.slice_mut(s![0, ..])?.assign(100.0)?;
    heat_step(&mut plate, 0.25)?;
    assert_eq!(plate.column(2)?.to_vec()?, [100.0, 25.0, 0.0, 0.0, 0.0]);
    Ok(())
}

fn check_random(arrays: &Arrays) -> Result<()> {
    let counts = histogram(&arrays.uniform(10_000, 3).eval()?, 4)?.to_vec()?;
    assert_eq!(counts.iter().sum::<u32>(), 10_000);
    assert!(counts.iter().all(|count| count.abs_diff(2500) < 200));
    let pi = monte_carlo_pi(arrays, 1_000_000)?;
    assert!((pi - std::f64::consts::PI).abs() < 0.01, "{pi}");
    Ok(())
}

fn main() -> kiln::Result<()> {
    let arrays = Arrays::new(&Jit::new()?);
    check_points(&arrays)?;
    check_matrices(&arrays)?;
    check_series(&arrays)?;
    check_random(&arrays)?;
    println!("12 tasks, {} launches, ok", arrays.launches());
    Ok(())
}
