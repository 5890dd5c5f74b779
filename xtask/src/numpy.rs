//! NumPy, on whose arrays `python/tests` tries Kiln's kernels.

use std::path::PathBuf;

use crate::error::Result;
use crate::wheels::Wheels;

const NUMPY: Wheels = Wheels {
    folder: "numpy",
    what: "NumPy",
    requirements: include_str!("../requirements-numpy.txt"),
    program: "python",
    help: "Check the network and pip's configuration; the wheels are pinned for Linux on x86-64 and Python 3.11 to 3.14",
};

/// The variable that tells a test of the Python that has NumPy.
pub(crate) const PYTHON: &str = "KILN_NUMPY_PYTHON";

/// Installs NumPy unless it is there, and says where the Python is that has it. On other machines than those that wheels
/// are pinned for there is none.
///
/// # Errors
/// It cannot be installed.
pub(crate) fn python() -> Result<Option<PathBuf>> {
    match cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        true => NUMPY.install().map(Some),
        false => Ok(None),
    }
}
