//! Where a GPU reads slices that `constant!` names.

use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;

#[kiln::offload]
fn weigh(weights: &[f32], x: &mut [f32]) {
    constant!(copyin weights);
    #[kernel(tblock(2), thread(32))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..x.len() {
            let mut sum = 0.0;
            for w in 0..weights.len() {
                sum = sum * x[i] + weights[w];
            }
            x[i] = sum;
        }
    }
}

/// PTX of the kernel for so many weights.
fn ptx(count: usize) -> kiln::Result<String> {
    let report = weigh.plan(&vec![0.5; count], &mut [1.0; 64])?;
    let kernel = &report.kernels[0];
    let builder = Jit::builder().device(Device::cpu());
    let jit = builder.target(Target::Ptx(PtxTarget::for_sm(90))).build()?;
    let (weights, mut x) = (jit.zeros::<f32>(count)?, jit.zeros::<f32>(64)?);
    let inspected = match kernel.constants()[..] {
        [("weights", 125)] => {
            jit.inspect(kernel.kernel(), args!(&weights, &mut x, [0.5f32; 125]))?
        }
        [] => jit.inspect(kernel.kernel(), args!(&weights, &mut x))?,
        ref other => panic!("{other:?}"),
    };
    Ok(inspected.ptx()?.to_owned())
}

/// How many instructions of a kind there are.
fn count(ptx: &str, instruction: &str) -> usize {
    ptx.lines()
        .filter(|line| line.trim_start().starts_with(instruction))
        .count()
}

/// The weights are read from the parameters, which nothing copies; `x` is read from global memory.
#[test]
fn constants_are_read_where_the_launch_has_put_them() -> kiln::Result<()> {
    let (held, global) = (ptx(100)?, ptx(20_000 / 2)?);
    assert_eq!(
        count(&held, "ld.local") + count(&held, "st.local"),
        0,
        "{held}"
    );
    // At an address of run time.
    let mut reads = held.lines().map(str::trim_start);
    let at_index = |line: &str| line.starts_with("ld.param.b32") && line.contains("[%rd");
    assert!(reads.any(at_index), "{held}");
    assert!(
        count(&held, "ld.global") < count(&global, "ld.global"),
        "{held}\n{global}"
    );
    Ok(())
}
