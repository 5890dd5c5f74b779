//! Operations of a warp: which lanes meet, and the execution for those that do.
//!
//! A lane that comes to such an operation waits. When every lane of the warp waits or has ended,
//! the operation is executed for lanes that wait at one place with one member mask, if they are
//! all lanes of that mask that have not ended. An operation without a mask is executed when nothing
//! else can be, first the one that comes first in the program: it brings as many lanes together
//! as can come there. A lane at a barrier does not wait at an operation of the warp.
//!
//! If nothing can be executed the lanes would wait for ever. A GPU may do that or give any result;
//! here the launch ends with an error.

use kiln_ir::{Lanes, Scalar, WARP_LANES, WarpArgs};

use super::flatten::Program;
use super::ops::{Op, OpIndex, Reg};

/// The most arguments an operation takes.
pub(super) const MAX_ARGS: usize = 4;

/// An operation of a warp, as an op refers to it.
#[derive(Clone, Debug)]
pub(super) struct WarpOp {
    pub(super) name: &'static str,
    pub(super) f: fn(Scalar, &WarpArgs<'_>) -> Lanes,
    /// Where each lane's result goes, if there is one.
    pub(super) d: Option<Reg>,
    /// The arguments; the first is the member mask, if there are any.
    pub(super) args: Vec<Reg>,
    pub(super) scalar: Scalar,
    /// Whether the lanes that meet see what each other wrote before.
    pub(super) orders_memory: bool,
}

/// What a lane is doing when no lane of its warp can run on.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Lane {
    /// A lane that has ended.
    Ended,
    /// A lane that waits at the block barrier at this op.
    Barrier(OpIndex),
    /// A lane that waits at this op, with this member mask if the operation takes one.
    Waits(OpIndex, Option<u32>),
}

/// Lanes that execute the operation at an op together.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Meeting {
    pub(super) at: OpIndex,
    pub(super) lanes: u32,
}

/// Why no operation can be executed: the lane that is to blame, where it waits, and why in words.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Stuck {
    pub(super) lane: usize,
    pub(super) at: OpIndex,
    pub(super) what: String,
}

/// The lanes for which `chosen` holds.
fn mask_of(lanes: &[Lane], chosen: impl Fn(&Lane) -> bool) -> u32 {
    let chosen = lanes.iter().enumerate().filter(|(_, lane)| chosen(lane));
    chosen.fold(0, |mask, (n, _)| mask | 1 << n)
}

/// The lanes that wait, each with its op and its member mask.
fn waiting(lanes: &[Lane]) -> impl Iterator<Item = (usize, OpIndex, Option<u32>)> {
    lanes
        .iter()
        .enumerate()
        .filter_map(|(n, lane)| match *lane {
            Lane::Waits(at, mask) => Some((n, at, mask)),
            Lane::Ended | Lane::Barrier(_) => None,
        })
}

/// The lanes that execute an operation next; `lanes` are those of a warp, one of which waits.
pub(super) fn meet(program: &Program, lanes: &[Lane]) -> Result<Meeting, Stuck> {
    if let Some(stuck) = outsider(lanes) {
        return Err(stuck);
    }
    let left = mask_of(lanes, |lane| *lane != Lane::Ended);
    for (_, at, mask) in waiting(lanes) {
        let Some(mask) = mask else { continue };
        let here = mask_of(lanes, |lane| *lane == Lane::Waits(at, Some(mask)));
        if here == mask & left {
            return Ok(Meeting { at, lanes: here });
        }
    }
    let free = waiting(lanes).filter(|(_, _, mask)| mask.is_none());
    if let Some(at) = free.map(|(_, at, _)| at).min() {
        let lanes = mask_of(lanes, |lane| *lane == Lane::Waits(at, None));
        return Ok(Meeting { at, lanes });
    }
    Err(deserted(program, lanes))
}

/// A lane that waits with a mask it is not in.
fn outsider(lanes: &[Lane]) -> Option<Stuck> {
    waiting(lanes).find_map(|(lane, at, mask)| {
        let mask = mask.filter(|mask| mask >> lane & 1 == 0)?;
        let what = format!(
            "its member mask {mask:#010x} leaves out its own lane {lane}; a lane can execute it \
             only with a mask that it is in"
        );
        Some(Stuck { lane, at, what })
    })
}

/// The first operation in the program that is waited at, and a lane it waits for in vain.
fn deserted(program: &Program, lanes: &[Lane]) -> Stuck {
    let first = waiting(lanes).min_by_key(|&(lane, at, _)| (at, lane));
    let (lane, at, mask) = first.unwrap_or_default();
    let mask = mask.unwrap_or_default();
    let missing = lanes.iter().enumerate().find(|&(n, other)| {
        mask >> n & 1 == 1 && !matches!(*other, Lane::Ended) && *other != lanes[lane]
    });
    let where_ = missing.map_or(String::new(), |(n, other)| match *other {
        Lane::Ended => String::new(),
        Lane::Barrier(at) => format!("lane {n} waits at the barrier of {}", place(program, at)),
        Lane::Waits(other, Some(mask)) if other == at => {
            format!("lane {n} waits there with the member mask {mask:#010x}")
        }
        Lane::Waits(at, _) => {
            let name = operation(program, at).map_or("", |op| op.name);
            format!("lane {n} waits at `{name}` of {}", place(program, at))
        }
    });
    let what = format!(
        "its member mask is {mask:#010x}, but {where_}; all lanes of a mask that have not ended \
         have to come to the same operation with the same mask, so give lanes that branch apart \
         masks of their own, from a `ballot` before the branch"
    );
    Stuck { lane, at, what }
}

fn place(program: &Program, at: OpIndex) -> &str {
    &program.locations[program.lines[at as usize] as usize]
}

/// The operation of a warp at an op, if it is one.
pub(super) fn operation(program: &Program, at: OpIndex) -> Option<&WarpOp> {
    match program.ops[at as usize] {
        Op::Warp { operation } => Some(&program.warp_ops[operation as usize]),
        _ => None,
    }
}

/// Executes an operation for the lanes of a meeting. `file` holds the registers of the warp's
/// lanes one after the other, `registers` of each.
pub(super) fn execute(op: &WarpOp, meeting: Meeting, file: &mut [u64], registers: usize) {
    let mut args = [[0; WARP_LANES]; MAX_ARGS];
    let lanes = meeting.lanes;
    for (values, &from) in args.iter_mut().zip(&op.args) {
        for (lane, regs) in file.chunks_exact(registers).enumerate() {
            if lanes >> lane & 1 == 1 {
                values[lane] = regs[from as usize];
            }
        }
    }
    let args = &args[..op.args.len()];
    let results = (op.f)(op.scalar, &WarpArgs { lanes, args });
    let Some(d) = op.d else { return };
    for (lane, regs) in file.chunks_exact_mut(registers).enumerate() {
        if lanes >> lane & 1 == 1 {
            regs[d as usize] = results[lane];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The meeting of a warp in which each of `lanes` is the first, the second ... lane.
    fn meeting(lanes: &[Lane]) -> Result<(OpIndex, u32), usize> {
        let met = meet(&Program::default(), lanes);
        met.map(|m| (m.at, m.lanes)).map_err(|stuck| stuck.lane)
    }

    #[test]
    fn lanes_meet_at_one_place_with_one_mask() {
        let (one, other) = (Lane::Waits(7, Some(0b0101)), Lane::Waits(7, Some(0b1010)));
        assert_eq!(meeting(&[one, other, one, other]), Ok((7, 0b0101)));
        // Lanes that have ended, or are not there, are not waited for.
        let all = Lane::Waits(7, Some(u32::MAX));
        assert_eq!(meeting(&[all, Lane::Ended, all]), Ok((7, 0b101)));
        let barrier = Lane::Barrier(2);
        assert_eq!(meeting(&[one, barrier, one, barrier]), Ok((7, 0b0101)));
    }

    #[test]
    fn operations_without_a_mask_wait_for_all_that_can_come() {
        let (loop_, after) = (Lane::Waits(3, None), Lane::Waits(8, None));
        // Lanes in a loop may still come to what is behind it.
        assert_eq!(meeting(&[after, loop_, after]), Ok((3, 0b010)));
        assert_eq!(meeting(&[after, Lane::Barrier(9), after]), Ok((8, 0b101)));
        let masked = Lane::Waits(5, Some(0b100));
        assert_eq!(meeting(&[loop_, after, masked]), Ok((5, 0b100)));
    }

    #[test]
    fn a_mask_without_its_lane_is_wrong_whatever_else_waits() {
        let right = Lane::Waits(3, Some(0b01));
        assert_eq!(meeting(&[right, right]), Err(1));
    }
}
