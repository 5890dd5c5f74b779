//! The block that the driver says is best, and launches whose blocks are all there at once.

use expect_test::expect;
use kiln_jit_core::args;
use kiln_jit_core::build::Kernel;
use kiln_jit_core::ir::Type;
use kiln_jit_core::jit::Jit;
use kiln_jit_core::launch::LaunchConfig;
use kiln_jit_core::runtime::Device;

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
    let in_graph = jit.graph((&mut x,), |g, (mut x,)| {
        g.launch_with(&kernel, config(1), args!(&mut x))
    });
    expect!["kernel `writes`: a graph has no cooperative launches, whose blocks are all there at the same time; launch the kernel itself, between two graphs"].assert_eq(&in_graph.expect_err("no node is one").to_string());
    Ok(())
}
