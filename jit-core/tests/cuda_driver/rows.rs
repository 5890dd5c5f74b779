//! Copies of regions: one call of the driver for each, in order with what else uses the buffers.

use kiln_jit_core::args;
use kiln_jit_core::build::Kernel;
use kiln_jit_core::ir::Type;
use kiln_jit_core::jit::Jit;
use kiln_jit_core::region::Region;
use kiln_jit_core::runtime::Device;

use super::fake::Fake;

type Result<T, E = kiln_jit_core::error::Error> = std::result::Result<T, E>;

#[test]
fn a_region_is_one_call() -> Result<()> {
    let fake = Fake::new();
    let jit = Jit::on(Device::cuda_of(fake.open()?, 0)?);
    let stream = jit.stream()?;
    let numbers: Vec<u32> = (0..4 * 5 * 6).collect();
    let cube = Region::of([4, 5, 6]);
    let x = jit.upload(&numbers)?;
    let mut y = stream.zeros::<u32>(numbers.len())?;
    let calls = |before: u64| fake.row_copies() - before;
    let (inner, other) = (
        cube.part([1..3, 2..5, 0..4])?,
        cube.part([2..4, 0..3, 2..6])?,
    );
    let mut before = fake.row_copies();
    y.copy_region(&other, &x, &inner)?;
    assert_eq!(calls(before), 1);
    let copied = y.to_vec()?;
    for (at, value) in copied.iter().enumerate() {
        let (plane, row, column) = (at / 30, at / 6 % 5, at % 6);
        let is_in = plane >= 2 && row < 3 && column >= 2;
        let expected = match is_in {
            true => ((plane - 1) * 5 + row + 2) * 6 + column - 2,
            false => 0,
        };
        assert_eq!(*value as usize, expected, "{at}");
    }
    before = fake.row_copies();
    let mut host = vec![7; 2 * 3 * 4];
    y.read_region(&other, &mut host, &Region::of([2, 3, 4]))?;
    assert_eq!((calls(before), host[0], host[23]), (1, 42, 87));
    y.write_region(&inner, &host, &Region::of([2, 3, 4]))?;
    assert_eq!(calls(before), 2);
    // Without gaps it is a copy like any other.
    y.copy_region(
        &cube.part([1..3, 0..5, 0..6])?,
        &x,
        &cube.part([0..2, 0..5, 0..6])?,
    )?;
    y.write_region(&cube.part([3..4, 1..2, 2..4])?, &[1, 2], &Region::of([2]))?;
    assert_eq!(calls(before), 2);
    assert_eq!(y.to_vec()?[30..90], numbers[..60]);
    assert_eq!(y.to_vec()?[98..100], [1, 2]);
    // One column of a plane are rows of one element.
    let mut column = [0; 5];
    x.read_region(
        &cube.part([0..1, 0..5, 3..4])?,
        &mut column,
        &Region::of([5, 1]),
    )?;
    assert_eq!((column, calls(before)), ([3, 9, 15, 21, 27], 3));
    Ok(())
}

/// Regions of buffers that several streams use: nothing races, and a copy that has failed counts as a use.
#[test]
fn regions_are_ordered_by_their_buffers() -> Result<()> {
    let fake = Fake::new();
    let jit = Jit::on(Device::cuda_of(fake.open()?, 0)?);
    let streams = [jit.stream()?, jit.stream()?];
    let writes = Kernel::build("uses_w", |k| k.slice_mut("x", Type::U32).at(0).set(1u32))?;
    let (mut x, mut y) = (jit.zeros::<u32>(30)?, jit.zeros::<u32>(30)?);
    let part = Region::of([5, 6]).part([1..4, 2..5])?;
    let mut host = [0; 9];
    fake.set_lazy(true);
    for turn in 0..12 {
        let [one, other] = [&streams[turn % 2], &streams[(turn + 1) % 2]];
        one.launch(&writes, 1, 1, args!(&mut x))?;
        other.launch(&writes, 1, 1, args!(&mut y))?;
        if turn > 6 {
            fake.fail("cuMemcpy3DAsync_v2", 1, 1);
            assert!(y.copy_region(&part, &x, &part).is_err());
        }
        y.copy_region(&part, &x, &part)?;
        one.launch(&writes, 1, 1, args!(&mut x))?;
        y.read_region(&part, &mut host, &Region::of([3, 3]))?;
        x.write_region(&part, &host, &Region::of([3, 3]))?;
        assert_eq!(fake.race(), None, "{turn}");
    }
    Ok(())
}
