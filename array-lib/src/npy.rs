//! Arrays in files of NumPy: `.npy`, which has one, and `.npz`, which has several by their names. Behind the feature `npy`.
//!
//! The format is that of `numpy.lib.format`; the crate `ndarray-npy` reads and writes it.
//!
//! ```
//! # #[cfg(feature = "npy")] {
//! use kiln::prelude::*;
//!
//! # fn main() -> kiln::Result<()> {
//! let arrays = Arrays::new(&Jit::new()?);
//! let x = arrays.array([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], (2, 3))?;
//! let folder = std::env::temp_dir().join(format!("kiln-npy-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).unwrap();
//! x.t().write_npy(folder.join("x.npy"))?;
//! let read = arrays.read_npy::<f32>(folder.join("x.npy"))?;
//! assert_eq!((read.dims(), read.to_vec()?), (&[3, 2][..], vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
//! arrays.write_npz(folder.join("all.npz"), &[("x", &x), ("row", &x.row(1)?)])?;
//! assert_eq!(arrays.read_npz::<f32>(folder.join("all.npz"), "row")?.to_vec()?, [4.0, 5.0, 6.0]);
//! assert!(arrays.read_npy::<i32>(folder.join("x.npy")).is_err()); // it has floats
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # Ok(())
//! # }
//! # }
//! ```

use std::fmt::Display;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;

use ndarray::ArrayD;
use ndarray_npy::{
    NpzReader, NpzWriter, ReadNpyExt, ReadableElement, WritableElement, WriteNpyExt,
};

use crate::{Array, ArrayError, Arrays, Element, Result};

/// A type of elements that files of NumPy have: `bool`, integers and floats of 32 and 64 bits.
pub trait FileElement: Element + ReadableElement + WritableElement {}

impl<T: Element + ReadableElement + WritableElement> FileElement for T {}

/// What is wrong with a file.
fn of(path: &Path) -> impl Fn(&dyn Display) -> ArrayError {
    let path = path.display().to_string();
    move |why| ArrayError::File {
        path: path.clone(),
        why: why.to_string(),
    }
}

impl Arrays {
    /// The array of a `.npy` file.
    ///
    /// # Errors
    /// A file that cannot be read, is no such file, or has elements of another type; those of [`Arrays::array`].
    pub fn read_npy<T: FileElement>(&self, path: impl AsRef<Path>) -> Result<Array<T>> {
        let path = path.as_ref();
        let wrong = of(path);
        let file = File::open(path).map_err(|error| wrong(&error))?;
        let read = ArrayD::<T>::read_npy(BufReader::new(file));
        self.from_ndarray(&read.map_err(|error| wrong(&error))?)
    }

    /// The array of this name of a `.npz` file.
    ///
    /// # Errors
    /// As [`Arrays::read_npy`]; a name that is not there.
    pub fn read_npz<T: FileElement>(&self, path: impl AsRef<Path>, name: &str) -> Result<Array<T>> {
        let path = path.as_ref();
        let wrong = of(path);
        let file = File::open(path).map_err(|error| wrong(&error))?;
        let mut files = NpzReader::new(BufReader::new(file)).map_err(|error| wrong(&error))?;
        // NumPy adds the ending to each name.
        let read = files.by_name::<ndarray::OwnedRepr<T>, ndarray::IxDyn>(&format!("{name}.npy"));
        let read = read.map_err(|error| wrong(&format!("the array `{name}`: {error}")))?;
        self.from_ndarray(&read)
    }

    /// Writes arrays to a `.npz` file, each by its name.
    ///
    /// # Errors
    /// A file that cannot be written, or a name that is there twice; those of [`Array::to_vec`].
    pub fn write_npz<T: FileElement>(
        &self,
        path: impl AsRef<Path>,
        all: &[(&str, &Array<T>)],
    ) -> Result<()> {
        let path = path.as_ref();
        let wrong = of(path);
        let file = File::create(path).map_err(|error| wrong(&error))?;
        let mut files = NpzWriter::new(BufWriter::new(file));
        for (name, array) in all {
            let host = array.to_ndarray::<ndarray::IxDyn>()?;
            let added = files.add_array(format!("{name}.npy"), &host);
            added.map_err(|error| wrong(&format!("the array `{name}`: {error}")))?;
        }
        files.finish().map_err(|error| wrong(&error))?;
        Ok(())
    }
}

impl<T: FileElement> Array<T> {
    /// Writes the array to a `.npy` file.
    ///
    /// # Errors
    /// A file that cannot be written; those of [`Array::to_vec`].
    pub fn write_npy(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let wrong = of(path);
        let host = self.to_ndarray::<ndarray::IxDyn>()?;
        let file = File::create(path).map_err(|error| wrong(&error))?;
        let mut file = BufWriter::new(file);
        host.write_npy(&mut file).map_err(|error| wrong(&error))?;
        std::io::Write::flush(&mut file).map_err(|error| wrong(&error))
    }
}
