//! Listing 8 of "Effective Extensible Programming: Unleashing Julia on GPUs" (Besard et al. 2018):
//! a whole expression, the user's own function included, is one kernel and one launch.

use kiln::prelude::*;

/// The function of the listing.
#[device_fn]
fn f<T: Float>(x: T) -> T {
    T::from_f64(3.0) * x.powi(2) + T::from_f64(5.0) * x + T::from_f64(2.0)
}

fn main() -> kiln::Result<()> {
    let jit = Jit::new()?;
    let arrays = Arrays::new(&jit);
    let host: Vec<f64> = (0..1 << 16).map(|i| f64::from(i) / 65_536.0).collect();
    let x = arrays.vector(host.clone())?;

    // f.(2 .* X.^2 .+ 6 .* X.^3 .- sqrt.(X)) with f(x) = 3x^2 + 5x + 2
    let t = 2.0 * x.powi(2) + 6.0 * x.powi(3) - x.sqrt();
    let y = t.map(device!(f)).eval()?;

    for (x, y) in host.iter().zip(y.to_vec()?) {
        // On the host the function is an ordinary one.
        let want = f(2.0 * x.powi(2) + 6.0 * x.powi(3) - x.sqrt());
        assert!(
            (y - want).abs() <= 1e-9 * want.abs().max(1.0),
            "{y} is not {want}"
        );
    }
    let stats = jit.cache_stats();
    println!(
        "{} elements, {} launch, {} compilation, ok",
        y.len(),
        arrays.launches(),
        stats.compiles
    );
    Ok(())
}
