//! From a file to a picture: reads a CSV file of two columns, fits polynomials to them on the device, and plots these
//! with `plotters`. Arguments are the picture, by default `stopping.svg`, and the file, by default
//! `examples/data/stopping.csv`: the distances in which cars of the 1920s stopped, by their speed (M. Ezekiel, "Methods
//! of Correlation Analysis", 1930).

use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use kiln::prelude::*;
use plotters::prelude::*;

/// Speeds, miles an hour, and distances, feet.
const STOPPING: &str = include_str!("data/stopping.csv");

/// The columns of a file with a heading.
fn read(file: impl Read, arrays: &Arrays) -> Result<[Array<f64>; 2], Box<dyn Error>> {
    let (mut xs, mut ys) = (Vec::new(), Vec::new());
    for row in csv::Reader::from_reader(file).into_deserialize() {
        let (x, y): (f64, f64) = row?;
        xs.push(x);
        ys.push(y);
    }
    Ok([arrays.vector(xs)?, arrays.vector(ys)?])
}

/// A polynomial of a number from which the mean is taken away, in units of the deviation.
struct Fit {
    weights: Array<f64>,
    mean: f64,
    deviation: f64,
}

impl Fit {
    /// The one that is nearest to `y`, by the squares of the differences, found by gradient descent.
    fn of(x: &Array<f64>, y: &Array<f64>, degree: usize) -> kiln::Result<Fit> {
        let mut fit = Fit {
            weights: x.arrays().zeros(degree + 1)?,
            mean: x.mean()?,
            deviation: x.std()?,
        };
        let powers = fit.powers(x)?;
        let by = 0.5 / x.len() as f64;
        for _ in 0..1000 {
            let off = (powers.t().matmul(&fit.weights)? - y).eval()?;
            fit.weights -= by * powers.matmul(&off)?;
        }
        Ok(fit)
    }

    /// A row for each power.
    fn powers(&self, x: &Array<f64>) -> kiln::Result<Array<f64>> {
        let z = ((x - self.mean) / self.deviation).eval()?;
        let power = |n: usize| z.powi(n as i32).eval();
        let powers = (0..self.weights.len()).map(power);
        let powers = powers.collect::<Result<Vec<_>, _>>()?;
        let powers: Vec<&Array<f64>> = powers.iter().collect();
        Ok(x.arrays().stack(0, &powers)?)
    }

    /// Its values.
    fn at(&self, x: &Array<f64>) -> kiln::Result<Array<f64>> {
        Ok(self.powers(x)?.t().matmul(&self.weights)?)
    }

    /// How much of the variance of `y` it explains, R².
    fn explains(&self, x: &Array<f64>, y: &Array<f64>) -> kiln::Result<f64> {
        Ok(1.0 - (self.at(x)? - y).var()? / y.var()?)
    }
}

/// Writes points and curves as a picture.
fn plot(
    path: &Path,
    [x, y]: [&Array<f64>; 2],
    fits: &[(usize, Fit)],
) -> Result<(), Box<dyn Error>> {
    let area = SVGBackend::new(path, (640, 400)).into_drawing_area();
    area.fill(&WHITE)?;
    let (right, top) = (x.max()? + 1.0, y.max()? + 10.0);
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(44)
        .build_cartesian_2d(0.0..right, 0.0..top)?;
    chart
        .configure_mesh()
        .x_desc("speed, miles an hour")
        .y_desc("distance, feet")
        .draw()?;
    let points = x.to_vec()?.into_iter().zip(y.to_vec()?);
    chart.draw_series(points.map(|point| Circle::new(point, 3, BLACK.filled())))?;
    let along = x.arrays().linspace(0.0, right, 100)?;
    for (n, (degree, fit)) in fits.iter().enumerate() {
        let color = Palette99::pick(n).to_rgba();
        let curve = along.to_vec()?.into_iter().zip(fit.at(&along)?.to_vec()?);
        chart
            .draw_series(LineSeries::new(curve, color.stroke_width(2)))?
            .label(format!("degree {degree}"))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color));
    }
    chart.configure_series_labels().border_style(BLACK).draw()?;
    area.present()?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arrays = Arrays::new(&Jit::new()?);
    let mut args = std::env::args_os().skip(1);
    let picture = args
        .next()
        .map_or(PathBuf::from("stopping.svg"), PathBuf::from);
    let file = args.next();
    let [x, y] = match &file {
        Some(path) => read(File::open(path)?, &arrays)?,
        None => read(STOPPING.as_bytes(), &arrays)?,
    };
    let mut fits = Vec::new();
    for degree in [1, 2] {
        let fit = Fit::of(&x, &y, degree)?;
        println!("degree {degree}: R² = {:.4}", fit.explains(&x, &y)?);
        fits.push((degree, fit));
    }
    if file.is_none() {
        // As R's `lm(dist ~ speed, cars)` has it.
        let line = fits[0].1.at(&arrays.vector(vec![10.0, 11.0])?)?;
        let slope = line.diff(0)?.eval()?.get([0])?;
        println!("{slope:.3} feet more for a mile an hour more");
        assert!((slope - 3.9324).abs() < 1e-3);
    }
    plot(&picture, [&x, &y], &fits)?;
    println!("written to {}", picture.display());
    Ok(())
}
