//! Errors of libraries on top of Kiln.

use std::error::Error;
use std::fmt;

use crate::ir::readable;

/// The error of a library on top of Kiln, which Kiln knows nothing of: its text and source are the library's.
///
/// A library implements `From` for [`kiln::Error`](super::Error), so that a function which gives a `kiln::Result`
/// calls it with `?`:
///
/// ```
/// use kiln::error::LibraryError;
/// use kiln::prelude::*;
///
/// /// What an image library refuses.
/// #[derive(Debug)]
/// struct TooSmall {
///     pixels: usize,
/// }
///
/// impl std::fmt::Display for TooSmall {
///     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
///         write!(f, "an image of {} pixels has no edges; give one of 9 or more", self.pixels)
///     }
/// }
///
/// impl std::error::Error for TooSmall {}
///
/// impl From<TooSmall> for kiln::Error {
///     fn from(error: TooSmall) -> kiln::Error {
///         LibraryError::new(error).into()
///     }
/// }
///
/// fn check(image: &[f32]) -> Result<(), TooSmall> {
///     match image.len() {
///         pixels @ ..9 => Err(TooSmall { pixels }),
///         _ => Ok(()),
///     }
/// }
///
/// fn edges(jit: &Jit, image: &[f32]) -> kiln::Result<Buffer<f32>> {
///     check(image)?;
///     jit.upload(image)
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let refused = edges(&Jit::new()?, &[0.0; 4]).expect_err("it is too small");
/// assert!(refused.to_string().starts_with("an image of 4 pixels"));
/// assert!(matches!(refused.library(), Some(TooSmall { pixels: 4 })));
/// assert!(matches!(refused, kiln::Error::Library(error) if error.downcast_ref::<TooSmall>().is_some()));
/// # Ok(())
/// # }
/// ```
pub struct LibraryError(Box<dyn Error + Send + Sync>);

impl LibraryError {
    /// An error of a library.
    pub fn new(error: impl Error + Send + Sync + 'static) -> LibraryError {
        LibraryError(Box::new(error))
    }

    /// The library's error, if it is an `E`; [`Error::library`](super::Error::library) is short for it.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }
}

impl Error for LibraryError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

impl fmt::Display for LibraryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&readable(self.0.to_string()))
    }
}

impl fmt::Debug for LibraryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
