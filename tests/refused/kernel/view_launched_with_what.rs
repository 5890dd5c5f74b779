//! Launches that pass something else than a view.
use kiln::prelude::*;

#[derive(KernelView)]
struct Tensor<'a, T> {
    data: &'a [T],
    columns: u32,
}

struct HostTensor {
    data: Buffer<f32>,
}

struct Table {
    data: Buffer<f64>,
}

impl<'a> ToKernel<'a> for &'a Table {
    type View = Tensor<'a, f64>;
    fn to_kernel(self) -> TensorArgs<'a, f64> {
        TensorArgs {
            data: &self.data,
            columns: 1,
        }
    }
}

#[kernel]
fn first(t: Tensor<'_, f32>, out: &mut [f32]) {
    out[0] = t.data[0];
}

fn launches(jit: &Jit, host: &HostTensor, table: &Table, out: &mut Buffer<f32>) -> kiln::Result<()> {
    first.launch(jit, (1, 1), host, out)?;
    first.launch(jit, (1, 1), table, out)?;
    first.launch(jit, (1, 1), &host.data, out)?;
    jit.launch(&first, 1, 1, args!(host, out))
}

fn main() {}
