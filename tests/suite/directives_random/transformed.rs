//! Random transformations of the loops of random nests.

use kiln::directives::{Known, LoopSchedule, Program, Schedule};
use kiln::prelude::*;

use super::Numbers;

/// The schedule with such random transformations of its loops as are accepted, and how many those are.
pub(super) fn transformed(
    numbers: &mut Numbers,
    program: &Program,
    schedule: &Schedule,
    known: &[Known],
) -> (Schedule, usize) {
    let (mut accepted, mut count) = (schedule.clone(), 0);
    for number in 0..schedule.loops.len() {
        let size = 2 + numbers.below(2) as u32;
        let clauses: [fn(&mut LoopSchedule, u32); 6] = [
            |held, _| held.interchanged = true,
            |held, size| held.peel_first = Some(size - 1),
            |held, size| held.peel_last = Some(size),
            |held, size| held.tile = Some(size),
            |held, size| held.jam = Some(size),
            |held, size| held.unroll = Unroll::By(size),
        ];
        for clause in clauses {
            let mut more = accepted.clone();
            clause(&mut more.loops[number], size);
            if !numbers.one_in(3) && program.verify(&more, known).is_ok() {
                (accepted, count) = (more, count + 1);
            }
        }
    }
    (accepted, count)
}
