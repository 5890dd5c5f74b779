//! Blocks that are wider than a schedule says, for a CPU.
//!
//! A CPU fetches what lies ahead in memory, and keeps lines that differ by powers of two in few places. It runs the blocks of a kernel
//! with barriers one after the other, so that blocks of 32 columns go through memory column by column, with much to wait for:
//! two steps of a difference equation, written in C for blocks of 16 x 32, take 2.5 to 3.5 times what they take for 4 x 256. So the
//! blocks of loops of which they compute what they read are as wide as that, and lower, as long as what neighbours compute, too, does not
//! grow much. Which thread has which iteration is the schedule's, with other extents.

use crate::affine::Known;
use crate::error::DirectiveError;
use crate::program::Program;
use crate::schedule::{OverThreads, Schedule};

/// How wide blocks are to be. Wider ones take as long.
const WIDTH: u32 = 256;

/// The most threads of a block.
const THREADS: u32 = 1024;

/// Blocks have more threads than they are said to only while there are so many blocks, for which host threads take turns.
const BLOCKS: u64 = 64;

impl Program {
    /// The schedule with wider blocks, if these are of use and known to be right.
    pub(crate) fn widened(
        &self,
        schedule: &Schedule,
        known: &[Known],
    ) -> Result<Option<Schedule>, DirectiveError> {
        if !self.can_widen(schedule) {
            return Ok(None);
        }
        let mut widest = None;
        let mut next = wider(schedule);
        while let Some(schedule) = next {
            if self.verify(&schedule, known).is_err() || !self.computes_little(&schedule, known)? {
                break;
            }
            next = wider(&schedule);
            widest = Some(schedule);
        }
        Ok(widest)
    }

    /// Whether a schedule has blocks that compute what they read, and loops whose iterations blocks and threads have along dimensions
    /// of the same number. How many threads a block has is seen by nothing else.
    fn can_widen(&self, schedule: &Schedule) -> bool {
        let mut loops = schedule.loops.iter();
        let is_over_both = loops.all(|held| {
            let (blocks, threads) = (held.partition.over_blocks, held.partition.over_threads);
            match threads {
                Some(OverThreads::Threads) => blocks.is_some(),
                Some(OverThreads::Warps | OverThreads::Lanes) => false,
                None => blocks.is_none(),
            }
        });
        let mut loops = schedule.loops.iter();
        let is_plain = loops.all(|held| held.reduction.is_empty() && !held.scan);
        is_over_both
            && is_plain
            && schedule.loops.iter().any(|held| !held.computed.is_empty())
            && schedule.blocks.len() == schedule.threads.len()
            && (2..=3).contains(&schedule.threads.len())
            && self.singular.is_empty()
            && self.arrays.is_empty()
    }

    /// Whether blocks compute at most half as many elements more as they have threads.
    fn computes_little(
        &self,
        schedule: &Schedule,
        known: &[Known],
    ) -> Result<bool, DirectiveError> {
        let computed = |number: usize| !schedule.loops[number].computed.is_empty();
        let sections = self.sections(schedule, known)?;
        let mut sections = sections
            .iter()
            .filter(|section| computed(section.in_loop()));
        let jammed: i128 = schedule
            .loops
            .iter()
            .map(|held| i128::from(held.jammed()))
            .product();
        let threads: i128 = schedule.threads.iter().copied().map(i128::from).product();
        let most = threads * jammed * 3 / 2;
        // What a row has more is little where rows are long.
        let slack = threads * jammed / 16;
        Ok(sections.all(|section| section.len() <= most + slack))
    }
}

/// The schedule with blocks twice as wide, if they are to be wider.
fn wider(schedule: &Schedule) -> Option<Schedule> {
    let mut wide = schedule.clone();
    let (width, outer) = wide.threads.split_last_mut()?;
    let (across, along) = wide.blocks.split_last_mut()?;
    if *width >= WIDTH || *across < 2 {
        return None;
    }
    let threads: u32 = schedule.threads.iter().product();
    let blocks: u64 = schedule
        .blocks
        .iter()
        .map(|&extent| u64::from(extent))
        .product();
    (*width, *across) = (*width * 2, across.div_ceil(2));
    if threads * 2 <= THREADS && blocks / 2 >= BLOCKS {
        return Some(wide);
    }
    let highest = (0..outer.len()).max_by_key(|&dim| outer[dim])?;
    if outer[highest] % 2 != 0 {
        return None;
    }
    outer[highest] /= 2;
    along[highest] = along[highest].checked_mul(2)?;
    Some(wide)
}

#[cfg(test)]
mod tests {
    use super::{Schedule, wider};

    fn of(blocks: &[u32], threads: &[u32]) -> Schedule {
        Schedule {
            blocks: blocks.to_vec(),
            threads: threads.to_vec(),
            loops: Vec::new(),
        }
    }

    #[test]
    fn blocks_become_wider_and_cover_as_much() {
        let mut shapes = vec![of(&[64, 32], &[16, 32])];
        while let Some(next) = wider(&shapes[shapes.len() - 1]) {
            shapes.push(next);
        }
        let wanted = [
            of(&[64, 32], &[16, 32]),
            of(&[64, 16], &[16, 64]),
            of(&[128, 8], &[8, 128]),
            of(&[256, 4], &[4, 256]),
        ];
        assert_eq!(shapes, wanted);
        // Few blocks keep their threads, and an odd number of blocks covers no less.
        assert_eq!(wider(&of(&[3, 5], &[4, 8])), Some(of(&[6, 3], &[2, 16])));
        assert_eq!(
            wider(&of(&[2, 4, 8], &[2, 8, 32])),
            Some(of(&[2, 8, 4], &[2, 4, 64]))
        );
        for narrow in [
            of(&[8, 1], &[4, 8]),
            of(&[8, 8], &[4, 256]),
            of(&[8, 2], &[3, 8]),
        ] {
            assert_eq!(wider(&narrow), None);
        }
    }
}
