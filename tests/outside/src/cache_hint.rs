//! A cache hint on loads, by an edit of the PTX (PTX ISA, `ld.global.nc`, `.level::eviction_priority`).

use kiln::core::prelude::*;

/// Loads through the read-only path leave nothing in L1.
pub fn cache_hint() -> Hook {
    Hook::new("cache-hint").rewrite_ptx(|_, ptx| {
        *ptx = ptx.replace("ld.global.nc.b32", "ld.global.nc.L1::no_allocate.b32");
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use kiln::prelude::*;

    use super::cache_hint;
    use crate::machines::{cpu, ptx};

    #[kernel]
    fn copy(from: &[f32], to: &mut [f32]) {
        let i = global_id().x;
        if i < to.len() && i < from.len() {
            to[i] = from[i];
        }
    }

    #[test]
    fn the_hint_is_in_the_code() -> kiln::Result<()> {
        let jit = ptx(cache_hint());
        let (from, mut to) = (jit.zeros::<f32>(4)?, jit.zeros::<f32>(4)?);
        let inspection = jit.inspect(&copy, args!(&from, &mut to))?;
        assert!(
            inspection
                .ptx()?
                .contains("ld.global.nc.L1::no_allocate.b32")
        );
        Ok(())
    }

    #[test]
    fn a_cpu_has_no_ptx() -> kiln::Result<()> {
        let jit = cpu(cache_hint());
        let (from, mut to) = (jit.zeros::<f32>(4)?, jit.zeros::<f32>(4)?);
        let error = copy.launch(&jit, (1, 32), &from, &mut to).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("hook `cache-hint` has `rewrite_ptx`"),
            "{error}"
        );
        let jit = cpu(cache_hint().if_supported());
        let (from, mut to) = (jit.upload(&[2.0f32])?, jit.zeros::<f32>(1)?);
        copy.launch(&jit, (1, 32), &from, &mut to)?;
        assert_eq!(to.to_vec()?, [2.0]);
        Ok(())
    }
}
