//! Which loads go through the read-only path: a policy of a program's own, by metadata of LLVM's.

use kiln::core::inkwell::values::{AnyValue, InstructionOpcode};
use kiln::core::prelude::*;

/// Every load from global memory is one of memory that no thread writes while the kernel runs. That is so for
/// the kernels of this program, which compute from one buffer into another.
pub fn read_only() -> Hook {
    Hook::new("read-only").finish_optimized_module(|_, module| {
        let context = module.get_context();
        let invariant = context.get_kind_id("invariant.load");
        let blocks = module.get_functions().flat_map(|f| f.get_basic_blocks());
        for load in blocks.flat_map(|block| block.get_instructions()) {
            let global = || load.print_to_string().to_string().contains("addrspace(1)");
            if load.get_opcode() == InstructionOpcode::Load && global() {
                load.set_metadata(context.metadata_node(&[]), invariant)?;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use kiln::core::prelude::*;
    use kiln::prelude::*;

    use super::read_only;
    use crate::machines::{cpu, ptx};

    // Kiln does this by itself where it knows that nothing else reaches the memory and no thread writes it.
    #[kernel]
    fn shift(from: &mut [f32], to: &mut [f32]) {
        let i = global_id().x;
        if i < to.len() && i < from.len() {
            from[i] += 1.0;
            to[i] = from[i];
        }
    }

    fn loads(hooks: HookSet) -> kiln::Result<(usize, usize)> {
        let jit = ptx(hooks);
        let (mut from, mut to) = (jit.zeros::<f32>(4)?, jit.zeros::<f32>(4)?);
        let inspection = jit.inspect(&shift, args!(&mut from, &mut to))?;
        let ptx = inspection.ptx()?;
        Ok((
            ptx.matches("ld.global.b32").count(),
            ptx.matches("ld.global.nc.b32").count(),
        ))
    }

    #[test]
    fn loads_take_the_read_only_path() -> kiln::Result<()> {
        let (plain, read_only_path) = loads(HookSet::new())?;
        assert_eq!(read_only_path, 0);
        assert_eq!(loads(read_only().into())?, (0, plain));
        Ok(())
    }

    #[test]
    fn a_cpu_computes_the_same() -> kiln::Result<()> {
        let jit = cpu(read_only());
        let (mut from, mut to) = (jit.upload(&[1.0f32; 40])?, jit.zeros::<f32>(40)?);
        shift.launch(&jit, (2, 32), &mut from, &mut to)?;
        assert_eq!(to.to_vec()?, [2.0; 40]);
        Ok(())
    }
}
