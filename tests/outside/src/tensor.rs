//! A tensor of the program as an argument, which a kernel sees as a struct with a slice.

use kiln::prelude::*;

/// What a kernel sees.
#[derive(KernelView)]
pub struct Tensor<'a> {
    pub data: &'a [f32],
    pub rows: u32,
    pub columns: u32,
}

/// What the program has.
pub struct HostTensor {
    pub data: Buffer<f32>,
    pub columns: u32,
}

impl<'a> ToKernel<'a> for &'a HostTensor {
    type View = Tensor<'a>;
    fn to_kernel(self) -> TensorArgs<'a> {
        TensorArgs {
            data: &self.data,
            rows: self.data.len() as u32 / self.columns,
            columns: self.columns,
        }
    }
}

#[cfg(test)]
mod tests {
    use kiln::core::prelude::*;
    use kiln::prelude::*;

    use super::{HostTensor, Tensor};
    use crate::machines::{cpu, interpreter, ptx};

    #[device_fn]
    impl Tensor<'_> {
        fn at(&self, row: usize, column: usize) -> f32 {
            self.data[row * self.columns as usize + column]
        }
    }

    #[kernel]
    fn transpose(t: Tensor<'_>, out: &mut [f32]) {
        let (row, column) = (global_id().y, global_id().x);
        if row < t.rows as usize && column < t.columns as usize {
            out[column * t.rows as usize + row] = t.at(row, column);
        }
    }

    fn tensor(jit: &Jit) -> kiln::Result<HostTensor> {
        Ok(HostTensor {
            data: jit.upload(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?,
            columns: 3,
        })
    }

    #[test]
    fn a_kernel_takes_a_tensor() -> kiln::Result<()> {
        for jit in [cpu(Hook::new("none")), interpreter(Hook::new("none"))] {
            let t = tensor(&jit)?;
            let mut out = jit.zeros(6)?;
            transpose.launch(&jit, (1, (4, 4)), &t, &mut out)?;
            assert_eq!(out.to_vec()?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
            jit.launch(&transpose, 1, (4, 4), args!(&t, &mut out))?;
        }
        Ok(())
    }

    #[test]
    fn its_slice_is_read_through_the_cache() -> kiln::Result<()> {
        let jit = ptx(HookSet::new());
        let t = tensor(&jit)?;
        let mut out = jit.zeros::<f32>(6)?;
        let inspection = jit.inspect(&transpose, args!(&t, &mut out))?;
        let text = inspection.ptx().expect("the target is PTX");
        assert!(text.contains("ld.global.nc"), "{text}");
        Ok(())
    }
}
