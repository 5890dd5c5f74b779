//! Random nests one of whose arrays is one of the block, declared at the start: those that are accepted give what the
//! sequential program does.

use kiln::directives::{DirectiveError, Known, Program};
use kiln::prelude::*;

use super::{Array, Nest, Numbers, build, execute};

/// The longest array that is declared.
const LONGEST: i64 = 64;

/// The nest as a region in which `a` is an array of the block.
fn region(nest: &Nest) -> kiln::Result<DeviceFn> {
    DeviceFn::build("nest", |k| {
        let (b, c) = (k.slice_mut("b", Type::U32), k.slice("c", Type::U32));
        let ty = k.array(Type::U32, nest.lengths[0] as u64);
        let array = k.shared("a", ty);
        array.set(k.zero(ty));
        let arrays = [Array::OfBlock(array), Array::Slice(b), Array::Slice(c)];
        build(k, &nest.nodes, &arrays, &mut Vec::new());
    })
}

/// Runs those of random nests that are accepted; how many these are, and how many are refused as wrong.
pub(super) fn nests(jit: &Jit, seed: u64, count: usize) -> kiln::Result<(usize, usize)> {
    let mut numbers = Numbers(seed);
    let (mut accepted, mut refused) = (0, 0);
    for number in 0..count {
        let nest = Nest::random(&mut numbers);
        if nest.lengths[0] > LONGEST {
            continue;
        }
        let program = Program::of(&region(&nest)?)?;
        let schedule = program.schedule(&nest.blocks, &nest.threads);
        let known = [1, 2].map(|array| Known::Length(nest.lengths[array] as u64));
        match program.verify(&schedule, &known) {
            Ok(()) => accepted += 1,
            Err(DirectiveError::Dependence { .. }) => {
                refused += 1;
                continue;
            }
            Err(_) => continue,
        }
        let [a, b, c] = nest.arrays();
        let mut wanted = [vec![0; a.len()], b.clone(), c.clone()];
        execute(&nest.nodes, &mut Vec::new(), &mut wanted);
        let (mut got, c) = (jit.upload(&b)?, jit.upload(&c)?);
        let scheduled = program.apply_for(&schedule, &known)?;
        let (grid, block) = (scheduled.grid(), scheduled.block());
        jit.launch(scheduled.kernel(), grid, block, args!(&mut got, &c))?;
        let place = || format!("nest {number} of seed {seed}: {nest:#?}\n{schedule}");
        assert_eq!(got.to_vec()?, wanted[1], "{}", place());
    }
    Ok((accepted, refused))
}
