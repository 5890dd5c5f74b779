//! Arrays beside the program: streams, and elements that are read without waiting.

use kiln_jit_core::jit::Jit;
use kiln_jit_core::later::Later;
use kiln_jit_core::pinned::Pinned;

use crate::{Array, ArrayError, Arrays, Element, Result};

impl Arrays {
    /// Arrays in another stream, or under other options of the same device: what is made or computed by what this
    /// gives is launched there, and kernels are shared. Operands may be of either: as everything else they are ordered by
    /// their use.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let jit = Jit::new()?;
    /// let arrays = Arrays::new(&jit);
    /// let stream = jit.stream()?;
    /// let beside = arrays.on(&stream)?;
    /// let x = beside.vector(vec![1.0f32, 2.0])?;
    /// let y = (&x * 2.0).eval()?; // in the stream of its first array
    /// let z = (arrays.ones::<f32>(2)? + &y).eval()?; // in the other, behind it
    /// assert_eq!(z.to_vec()?, [3.0, 5.0]);
    /// assert_eq!(arrays.kernels(), beside.kernels());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A `Jit` of another device.
    pub fn on(&self, jit: &Jit) -> Result<Arrays> {
        let (owner, device) = (self.jit().device().info().id, jit.device().info().id);
        match owner == device {
            true => Ok(self.sharing(jit)),
            false => Err(ArrayError::Foreign { owner, device }),
        }
    }
}

impl<T: Element + Default> Array<T> {
    /// The elements, the last dimension fastest, when all work before is done: a future, and what can be waited for. The
    /// program goes on meanwhile.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.arange(0.0f32, 4.0, 1.0)?;
    /// let later = (&x * &x).eval()?.read_later()?; // or `.await`
    /// assert_eq!(later.wait()?[..], [0.0, 1.0, 4.0, 9.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Expr::eval`](crate::Expr::eval) of a view whose elements do not lie one after the other; no host memory that
    /// the device can write. Faults of kernels before it are told by what waits.
    pub fn read_later(&self) -> Result<Later<Pinned<T>>> {
        let values =
            Pinned::from_slice(self.arrays.jit().device(), &vec![T::default(); self.len()])?;
        Ok(self.contiguous()?.as_part()?.read_later(values)?)
    }
}
