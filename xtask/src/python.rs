//! The Python of tests: with NumPy, on whose arrays `python/tests` tries Kiln's kernels, and gmpy2, with whose MPFR
//! `tests/math_exact.rs` compares mathematical functions.

use std::path::PathBuf;

use crate::error::Result;
use crate::wheels::Wheels;

const WHEELS: Wheels = Wheels {
    folder: "python",
    what: "NumPy and gmpy2",
    requirements: include_str!("../requirements-tests.txt"),
    program: "python",
    help: "Check the network and pip's configuration; the wheels are pinned for Linux on x86-64 and Python 3.11 to 3.14",
};

/// The variable that tells a test of the Python that has them.
pub(crate) const PYTHON: &str = "KILN_TEST_PYTHON";

/// Installs them unless they are there, and says where the Python is that has them. On other machines than those that
/// wheels are pinned for there is none.
///
/// # Errors
/// They cannot be installed.
pub(crate) fn python() -> Result<Option<PathBuf>> {
    match cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        true => WHEELS.install().map(Some),
        false => Ok(None),
    }
}
