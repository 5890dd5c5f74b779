//! A library on top of Kiln with an error of its own, which its users hand on with `?` beside Kiln's.

use kiln::error::LibraryError;
use kiln::prelude::*;

/// A signal that is too short to be smoothed.
#[derive(Debug)]
pub struct TooShort(pub usize);

impl std::fmt::Display for TooShort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let TooShort(samples) = self;
        write!(
            f,
            "a signal of {samples} samples has no neighbours; give 3 or more"
        )
    }
}

impl std::error::Error for TooShort {}

impl From<TooShort> for kiln::Error {
    fn from(error: TooShort) -> kiln::Error {
        LibraryError::new(error).into()
    }
}

#[kernel]
fn mean_of_three(x: &[f32], y: &mut [f32]) {
    let i = global_id().x;
    if i < y.len() {
        y[i] = (x[i] + x[i + 1] + x[i + 2]) / 3.0;
    }
}

/// How many samples remain of a signal.
fn remaining(samples: usize) -> Result<usize, TooShort> {
    samples
        .checked_sub(2)
        .filter(|n| *n > 0)
        .ok_or(TooShort(samples))
}

/// The mean of each sample and its neighbours.
///
/// # Errors
/// [`TooShort`], or what the launch gives.
pub fn smoothed(jit: &Jit, signal: &[f32]) -> kiln::Result<Vec<f32>> {
    let n = remaining(signal.len())?;
    let (x, mut y) = (jit.upload(signal)?, jit.zeros(n)?);
    mean_of_three.launch(jit, (grid_for(n, 64), 64), &x, &mut y)?;
    y.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_library_and_of_kiln_go_one_way() -> kiln::Result<()> {
        let jit = Jit::on(Device::cpu());
        assert_eq!(smoothed(&jit, &[0.0, 3.0, 6.0, 0.0])?, [3.0, 3.0]);
        let refused = smoothed(&jit, &[1.0, 2.0]).expect_err("two are too few");
        assert!(matches!(refused.library(), Some(TooShort(2))), "{refused}");
        let other = jit.launch(&mean_of_three, 1, 1, args!(1.0f32));
        let other = other.expect_err("it takes two slices");
        assert!(other.library::<TooShort>().is_none(), "{other}");
        Ok(())
    }
}
