//! Counts the loads and stores of global memory that a kernel's threads execute.

use std::sync::Arc;

use kiln::core::prelude::*;
use kiln::prelude::*;

/// Counts loads in the first element and stores in the second.
pub fn counters(counts: Arc<Buffer<u64>>) -> Hook {
    Hook::new("counters")
        .rewrite_ir(|_, module| {
            let ty = (module.types).slice(Type::U64, AddressSpace::Global, true);
            let counts = module.add_hidden("counters", "counts", ty);
            module.rewrite_each(|at| {
                let (ptr, place) = match *at.data() {
                    InstData::Load { ptr, .. } => (ptr, 0u32),
                    InstData::Store { ptr, .. } => (ptr, 1),
                    _ => return,
                };
                let address = at.types().address(at.type_of(ptr));
                if address.is_some_and(|address| address.space == AddressSpace::Global) {
                    let counts = at.ins().hidden(counts);
                    let place = at.ins().constant(place);
                    let count = at.ins().slice_index(counts, place);
                    let one = at.ins().constant(1u64);
                    at.ins().atomic_rmw(AtomicOp::Add, count, one);
                }
            });
            Ok(())
        })
        .hidden_arguments(move |_, hidden| hidden.set("counts", &counts))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kiln::prelude::*;

    use super::counters;
    use crate::machines;

    #[kernel]
    fn three_and_two(x: &mut [f32], y: &[f32]) {
        let i = global_id().x;
        if i < x.len() && i < y.len() {
            x[i] += y[i];
            x[i] *= 2.0;
        }
    }

    #[test]
    fn what_threads_execute_is_counted() -> kiln::Result<()> {
        for make in [machines::cpu_of, machines::interpreter_of] {
            let device = Device::cpu();
            let counts = Arc::new(Buffer::from_slice(&device, &[0u64; 2])?);
            let jit = make(device, counters(counts.clone()));
            let (mut x, y) = (jit.upload(&[1.0f32; 100])?, jit.upload(&[2.0f32; 100])?);
            three_and_two.launch(&jit, (4, 32), &mut x, &y)?;
            assert_eq!(x.to_vec()?, [6.0; 100]);
            assert_eq!(counts.to_vec()?, [300, 200]);
        }
        Ok(())
    }

    #[test]
    fn a_gpu_counts_by_atomics_of_a_parameter() -> kiln::Result<()> {
        let device = Device::cpu();
        let counts = Arc::new(Buffer::from_slice(&device, &[0u64; 2])?);
        let jit = machines::ptx(counters(counts));
        let (mut x, y) = (jit.zeros::<f32>(100)?, jit.zeros::<f32>(100)?);
        let inspection = jit.inspect(&three_and_two, args!(&mut x, &y))?;
        let ptx = inspection.ptx()?;
        assert_eq!(ptx.matches("red.global.add.u64").count(), 5, "{ptx}");
        Ok(())
    }
}
