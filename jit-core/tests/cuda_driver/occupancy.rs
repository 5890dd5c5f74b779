//! The block that the driver says is best, and launches whose blocks are all there at once.

use expect_test::expect;
use kiln_jit_core::args;
use kiln_jit_core::build::Kernel;
use kiln_jit_core::ir::Type;
use kiln_jit_core::jit::Jit;
use kiln_jit_core::launch::LaunchConfig;
use kiln_jit_core::runtime::{Buffer, Device};

use super::fake::Fake;

type Result<T, E = kiln_jit_core::error::Error> = std::result::Result<T, E>;

fn kernel(bound: Option<u32>) -> Result<Kernel> {
    Kernel::build("writes", |k| {
        if let Some(bound) = bound {
            k.launch_bounds(bound, 1);
        }
        k.slice_mut("x", Type::U32).at(0).set(1u32);
    })
}

#[test]
fn the_best_block_is_asked_for_once() -> Result<()> {
    let fake = Fake::new();
    let jit = Jit::on(Device::cuda_of(fake.open()?, 0)?);
    let mut x = jit.zeros::<u32>(1000)?;
    let (any, bound) = (kernel(None)?, kernel(Some(96))?);
    for elements in [1000, 384, 385, 0] {
        jit.launch_auto(&any, elements, args!(&mut x))?;
        let launch = fake.last_launch();
        let blocks = elements.div_ceil(384).max(1) as u64;
        assert_eq!((launch[0], launch[3]), (blocks, 384), "{elements}");
    }
    assert_eq!(fake.occupancy()[1], 1);
    jit.launch_auto(&bound, 1000, args!(&mut x))?;
    assert_eq!((fake.last_launch()[0], fake.last_launch()[3]), (11, 96));
    let ready = jit.compile(&any, args!(&mut x))?;
    assert_eq!(ready.best_block()?, 384);
    assert_eq!(fake.occupancy()[1], 2);
    let occupancy = ready.occupancy(512, 0)?;
    let multiprocessors = jit.device().info().multiprocessors;
    assert_eq!(
        (occupancy.blocks, occupancy.multiprocessors),
        (4, multiprocessors)
    );
    assert_eq!(occupancy.all_blocks(), 4 * u64::from(multiprocessors));
    Ok(())
}

#[test]
fn cooperative_launches() -> Result<()> {
    let fake = Fake::new();
    let jit = Jit::on(Device::cuda_of(fake.open()?, 0)?);
    let mut x = jit.zeros::<u32>(4)?;
    let kernel = kernel(None)?;
    let most = 4 * jit.device().info().multiprocessors;
    let config = |grid: u32| LaunchConfig::new(grid, 512).cooperative();
    jit.launch_with(&kernel, config(most), args!(&mut x))?;
    assert_eq!(
        (fake.occupancy()[0], fake.last_launch()[0]),
        (1, most.into())
    );
    let refused = jit.launch_with(&kernel, config(most + 1), args!(&mut x));
    expect!["kernel `writes`: a cooperative launch has 529 blocks, which have to be there at the same time, and Fake GPU holds 528 of 512 threads and 0 bytes of dynamic shared memory (4 on each of 132 multiprocessors); launch at most 528, and loop over the grid in the kernel"].assert_eq(&refused.expect_err("too many").to_string());
    jit.launch(&kernel, most + 1, 512, args!(&mut x))?;
    assert_eq!(fake.occupancy()[0], 1);
    Ok(())
}

/// A node is cooperative for as long as it is there, whatever it is set to; the nodes beside it are not.
#[test]
fn cooperative_launches_in_graphs() -> Result<()> {
    let fake = Fake::new();
    let jit = Jit::on(Device::cuda_of(fake.open()?, 0)?);
    let (mut x, mut y) = (jit.zeros::<u32>(4)?, jit.zeros::<u32>(4)?);
    let kernel = kernel(None)?;
    let most = 4 * jit.device().info().multiprocessors;
    let config = |grid: u32| LaunchConfig::new(grid, 512).cooperative();
    let mut graph = jit.graph((&mut x,), |g, (mut x,)| {
        g.launch_with(&kernel, config(most), args!(&mut x))?;
        g.launch(&kernel, 1, 512, args!(&mut x))
    })?;
    assert_eq!(fake.occupancy()[0], 0);
    graph.replay(args!(&mut x))?;
    assert_eq!(fake.occupancy()[0], 1);
    graph.replay(args!(&mut y))?;
    assert_eq!(
        (fake.occupancy()[0], fake.graph_node(0)[8]),
        (2, y.address())
    );
    let refused = jit.graph((&mut x,), |g, (mut x,)| {
        g.launch_with(&kernel, config(most + 1), args!(&mut x))
    });
    expect!["kernel `writes`: a cooperative launch has 529 blocks, which have to be there at the same time, and Fake GPU holds 528 of 512 threads and 0 bytes of dynamic shared memory (4 on each of 132 multiprocessors); launch at most 528, and loop over the grid in the kernel"].assert_eq(&refused.expect_err("too many").to_string());
    Ok(())
}

/// Each error names the call that the driver has refused.
#[test]
fn refused_launches_name_the_call() -> Result<()> {
    let fake = Fake::new();
    let jit = Jit::on(Device::cuda_of(fake.open()?, 0)?);
    let (mut x, mut y) = (jit.zeros::<u32>(4)?, jit.zeros::<u32>(4)?);
    let kernel = kernel(None)?;
    let named = |result: Result<()>, call: &str| {
        let text = result.expect_err("it is refused").to_string();
        assert!(
            text.contains(&format!(" by {call}: ")) || text.contains(&format!("{call} failed")),
            "{call}: {text}"
        );
    };
    jit.launch(&kernel, 1, 32, args!(&mut x))?;
    fake.fail("cuLaunchKernel", 1, 1);
    named(jit.launch(&kernel, 1, 32, args!(&mut x)), "cuLaunchKernel");
    fake.fail("cuLaunchCooperativeKernel", 1, 1);
    let together = LaunchConfig::new(1, 32).cooperative();
    let refused = jit.launch_with(&kernel, together, args!(&mut x));
    named(refused, "cuLaunchCooperativeKernel");
    let recorded = |x: &mut Buffer<u32>| {
        jit.graph((x,), |g, (mut x,)| {
            g.launch_with(&kernel, together, args!(&mut x))
        })
    };
    fake.fail("cuGraphAddKernelNode_v2", 1, 1);
    named(recorded(&mut x).map(drop), "cuGraphAddKernelNode");
    fake.fail("cuGraphKernelNodeSetAttribute", 1, 1);
    named(recorded(&mut x).map(drop), "cuGraphKernelNodeSetAttribute");
    let mut graph = recorded(&mut x)?;
    fake.fail("cuGraphExecKernelNodeSetParams_v2", 1, 1);
    named(
        graph.replay(args!(&mut y)),
        "cuGraphExecKernelNodeSetParams",
    );
    fake.fail("cuGraphLaunch", 1, 1);
    named(graph.replay(args!(&mut y)), "cuGraphLaunch");
    graph.replay(args!(&mut y))
}
