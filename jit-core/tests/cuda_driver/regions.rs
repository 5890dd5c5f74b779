//! Regions of sequential functions: whether the host waits for their kernels.

use kiln::prelude::*;

use crate::fake::Fake;

#[kiln::offload]
fn waits(x: &mut [u32], turns: u32) {
    for _ in 0..turns {
        #[kernel(tblock(2), thread(8))]
        {
            #[loop_partition(over_tblock, over_thread)]
            for i in 0..x.len() {
                x[i] += 1;
            }
        }
    }
}

/// As [`waits`], of kernels that the host does not wait for.
#[kiln::offload]
fn goes_on(x: &mut [u32], turns: u32) {
    for _ in 0..turns {
        #[kernel(tblock(2), thread(8), nowait)]
        {
            #[loop_partition(over_tblock, over_thread)]
            for i in 0..x.len() {
                x[i] += 1;
            }
        }
    }
}

/// The host waits once for each kernel, and for those that are `nowait` when it takes what they have written.
#[test]
fn the_host_waits_for_kernels() -> Result<(), Box<dyn std::error::Error>> {
    let fake = Fake::new();
    let jit = Jit::on(Device::cuda_of(fake.open()?, 0)?);
    let waited = || -> u64 {
        let calls = fake.calls_of();
        let synchronize = calls
            .iter()
            .filter(|(call, _)| call.contains("Synchronize"));
        synchronize.map(|(_, count)| count).sum()
    };
    let (mut x, mut counts) = (vec![1u32; 20], Vec::new());
    for turns in [1, 6] {
        let before = waited();
        waits.launch(&jit, &mut x, turns)?;
        let between = waited();
        goes_on.launch(&jit, &mut x, turns)?;
        counts.push([between - before, waited() - between]);
    }
    let [[one, none], [six, none_of_six]] = counts[..] else {
        unreachable!("there are two");
    };
    assert_eq!((six - one, none_of_six - none), (5, 0), "{counts:?}");
    Ok(())
}
