//! A rule about launches that a program sets itself.

use kiln::core::prelude::*;

/// No block has more than this many threads.
pub fn small_blocks(most: u128) -> Hook {
    Hook::new("small-blocks").before_launch(move |launch| {
        match launch.config.block.count() > most {
            true => Err(format!("blocks of more than {most} threads are forbidden here").into()),
            false => Ok(()),
        }
    })
}

#[cfg(test)]
mod tests {
    use kiln::prelude::*;

    use super::small_blocks;
    use crate::machines::{cpu, interpreter};

    #[kernel]
    fn one(x: &mut [f32]) {
        let i = global_id().x;
        if i < x.len() {
            x[i] = 1.0;
        }
    }

    #[test]
    fn a_large_block_is_refused_and_nothing_runs() -> kiln::Result<()> {
        for jit in [cpu(small_blocks(64)), interpreter(small_blocks(64))] {
            let mut x = jit.zeros::<f32>(128)?;
            let error = one.launch(&jit, (1, 128), &mut x).unwrap_err();
            let expected = "blocks of more than 64 threads are forbidden here";
            assert!(error.to_string().contains(expected), "{error}");
            assert_eq!(x.to_vec()?, [0.0; 128]);
            one.launch(&jit, (2, 64), &mut x)?;
            assert_eq!(x.to_vec()?, [1.0; 128]);
        }
        Ok(())
    }
}
