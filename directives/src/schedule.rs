//! Schedules: who executes which iterations, as a plain value.

use std::fmt;
use std::str::FromStr;

use kiln_jit_core::ir::Unroll;

use crate::error::ScheduleError;
use crate::integer::ceil;

/// How iterations are distributed over the blocks of a grid.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum OverBlocks {
    /// In contiguous chunks of `C = ceil(N / B)` iterations: block `b` has those from `b * C` on. Where a thread executes
    /// `n` iterations side by side ([`LoopSchedule::jam`]), `C` is rounded up to a multiple of `T * n`, with the `T` threads
    /// that the loop is distributed over, so that at most one block has groups that are not full; the last blocks may
    /// have no iterations.
    Block,
    /// In turn: block `b` has iterations `b`, `b + B`, `b + 2 * B` and so on. Together with threads, a block takes
    /// as many iterations at a time as it has threads: iteration `(k * B + b) * T + t` is that of thread `t` in its
    /// batch `k`.
    Cyclic,
}

/// How iterations are distributed over the threads of a block.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum OverThreads {
    /// Over the threads along a dimension of the block.
    Threads,
    /// Over the warps along the last dimension, which are 32 neighbouring threads each: all lanes of a warp execute its
    /// iterations.
    Warps,
    /// Over the 32 lanes of a warp: all warps execute all iterations, each lane those of its own.
    Lanes,
}

/// How the iterations of a loop are distributed. Over threads they always are in turn: thread `t` has, of the share
/// of its block, iterations `t`, `t + T`, `t + 2 * T` and so on. So have warps, and lanes.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Partition {
    /// Over blocks, if at all; otherwise every block executes all iterations.
    pub over_blocks: Option<OverBlocks>,
    /// Over the threads of a block, if at all; otherwise every thread executes all iterations of its block.
    pub over_threads: Option<OverThreads>,
}

impl Partition {
    /// Whether the loop is distributed at all.
    pub fn is_some(self) -> bool {
        self.over_blocks.is_some() || self.over_threads.is_some()
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blocks = match self.over_blocks {
            Some(OverBlocks::Block) => "over_tblock(BLOCK)",
            Some(OverBlocks::Cyclic) => "over_tblock(CYCLIC)",
            None => "",
        };
        let threads = match self.over_threads {
            Some(OverThreads::Threads) => "over_thread",
            Some(OverThreads::Warps) => "over_warp",
            Some(OverThreads::Lanes) => "over_lane",
            None => "",
        };
        let both = self.over_blocks.is_some() && self.over_threads.is_some();
        write!(f, "{blocks}{}{threads}", if both { " " } else { "" })?;
        match self.is_some() {
            true => Ok(()),
            false => f.write_str("sequential"),
        }
    }
}

/// Slices among a program's parameters, by their numbers, which are below 64.
///
/// ```
/// use kiln::directives::Slices;
///
/// let slices = Slices::default().with(2).with(0);
/// assert!(slices.contains(2) && !slices.contains(1));
/// assert_eq!(slices.numbers().collect::<Vec<_>>(), [0, 2]);
/// assert!(!slices.is_empty() && Slices::default().is_empty());
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Slices(u64);

impl Slices {
    /// How many parameters can be told apart.
    pub const MAX: u32 = 64;

    /// The slices with one more; a number of [`Slices::MAX`] or more changes nothing.
    #[must_use]
    pub fn with(self, number: u32) -> Slices {
        Slices(self.0 | 1u64.checked_shl(number).unwrap_or(0))
    }

    /// Whether a parameter is among them.
    pub fn contains(self, number: u32) -> bool {
        self.0.checked_shr(number).unwrap_or(0) & 1 == 1
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The numbers, in their order.
    pub fn numbers(self) -> impl Iterator<Item = u32> {
        (0..Slices::MAX).filter(move |&number| self.contains(number))
    }
}

/// A loop of a schedule.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct LoopSchedule {
    /// How the iterations are distributed.
    pub partition: Partition,
    /// The program's promise that the loop's iterations do not depend on each other, which are then not checked.
    pub independent: bool,
    /// The slices of which, before each turn, all threads of a block together copy to shared memory what they read of
    /// them in the turn. The text of a schedule has their numbers: `shared(0,2)`.
    pub shared: Slices,
    /// Slices, of those that are staged, of which all elements are, so that their indices may be any. The text of a schedule has
    /// `whole(1)` behind `shared(0,1)`.
    pub whole: Slices,
    /// Slices, of those that are staged, of which what a turn reads is computed by the block, as the loops before it do that
    /// write the slice, and in the place of these loops: what several blocks read, each of them computes. The text of a
    /// schedule has `compute(3)` behind `shared(0,3)`.
    pub computed: Slices,
    /// The slices of which what a turn writes is written in shared memory, from where all threads of a block together copy it to
    /// the slice behind the turn. The text of a schedule has `copyout(1)`.
    pub copied_out: Slices,
    /// The slices of which iterations combine elements with values, in whatever order. The text of a schedule has
    /// `reduction(2)`.
    pub reduction: Slices,
    /// The variables that iterations combine with values and hand on, in the order of the program, the threads of a block compute
    /// together. The text of a schedule says `scan`.
    pub scan: bool,
    /// The slices of which each iteration has elements of its own, in memory of its thread, and writes what it reads of them
    /// before. The text of a schedule has `privatize(3)`.
    pub privatized: Slices,
    /// Rows of staged slices are as long as they need be in shared memory; if this is `false`, longer where the threads of a
    /// warp would else wait for one bank. The text of a schedule says `nopad`.
    pub unpadded: bool,
    /// The loop directly within, which alone is in it, is around it instead; of several such loops, inner ones are interchanged
    /// first. What else is said of a loop goes with it. The text of a schedule says `interchange`.
    pub interchanged: bool,
    /// How many of the loop's first iterations are split off: a loop of its own, before what is left, has them, distributed in the
    /// same way, and nothing of what else is said of the loop. The text of a schedule says `peel_first(1)`.
    pub peel_first: Option<u32>,
    /// How many of its last ones are, behind what is left. The text of a schedule says `peel_last(1)`.
    pub peel_last: Option<u32>,
    /// The loop becomes two: one that goes from tile to tile of so many iterations and has all that is said of the loop
    /// but [`LoopSchedule::unroll`], and one within a tile.
    pub tile: Option<u32>,
    /// How many of the iterations that a thread has of the loop are executed side by side, statement by statement: loops
    /// within are executed once for all of them. Chunks of blocks are of whole groups ([`OverBlocks::Block`]). The text of a
    /// schedule says `unroll_and_jam(4)`.
    pub jam: Option<u32>,
    /// How often the loop's body is written; with tiles, that of the loop within a tile.
    pub unroll: Unroll,
}

impl Schedule {
    /// Whether a kernel is for the arguments of a launch, for any of its loops.
    pub(crate) fn is_for_arguments(&self) -> bool {
        self.loops.iter().any(|held| held.is_for_arguments())
    }
}

impl LoopSchedule {
    /// Whether a kernel is for the arguments of a launch: it stages slices, or has elements of blocks' or iterations' own.
    pub(crate) fn is_for_arguments(self) -> bool {
        let slices = [
            self.shared,
            self.copied_out,
            self.reduction,
            self.privatized,
        ];
        slices.iter().any(|slices| !slices.is_empty())
    }

    /// How many iterations are executed side by side.
    pub(crate) fn jammed(self) -> u32 {
        self.jam.unwrap_or(1)
    }

    /// How many of a loop's `count` iterations are a chunk of [`OverBlocks::Block`], which may be more than `count`.
    pub(crate) fn chunk(self, count: i128, [blocks, threads]: [i128; 2]) -> i128 {
        let group = match self.jammed() {
            1 => 1,
            jammed => i128::from(jammed) * threads,
        };
        ceil(ceil(count, blocks), group) * group
    }
}

/// Who executes which iterations of a [`Program`](crate::Program): the extents of the virtual grid, and for each
/// `for` loop of the program, in the order of the text, how it is distributed.
///
/// ```
/// use kiln::directives::Schedule;
///
/// let text = "tblock(4, 2) thread(16, 16) loop 0: over_tblock(BLOCK) over_thread; loop 1: sequential";
/// let schedule: Schedule = text.parse()?;
/// assert_eq!(schedule.blocks, [4, 2]);
/// assert!(schedule.loops[0].partition.is_some());
/// assert_eq!(schedule.to_string(), text);
/// # Ok::<(), kiln::directives::ScheduleError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Schedule {
    /// The blocks along each dimension of the virtual grid; of the last one, neighbours are neighbours.
    pub blocks: Vec<u32>,
    /// The threads of a block along each dimension; of the last one, neighbours are neighbours.
    pub threads: Vec<u32>,
    /// The loops, in the order of the text.
    pub loops: Vec<LoopSchedule>,
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |dims: &[u32]| {
            let dims: Vec<_> = dims.iter().map(u32::to_string).collect();
            dims.join(", ")
        };
        let (blocks, threads) = (list(&self.blocks), list(&self.threads));
        write!(f, "tblock({blocks}) thread({threads})")?;
        for (number, held) in self.loops.iter().enumerate() {
            let (partition, end) = (held.partition, if number == 0 { "" } else { ";" });
            let promised = if held.independent { " independent" } else { "" };
            write!(f, "{end} loop {number}: {partition}{promised}")?;
            let slices = [
                ("shared", held.shared),
                ("whole", held.whole),
                ("compute", held.computed),
                ("copyout", held.copied_out),
                ("reduction", held.reduction),
                ("privatize", held.privatized),
            ];
            for (clause, slices) in slices.into_iter().filter(|(_, slices)| !slices.is_empty()) {
                let numbers: Vec<_> = slices.numbers().map(|held| held.to_string()).collect();
                write!(f, " {clause}({})", numbers.join(","))?;
            }
            if held.scan {
                f.write_str(" scan")?;
            }
            if held.unpadded {
                f.write_str(" nopad")?;
            }
            write_transformations(f, held)?;
        }
        Ok(())
    }
}

fn write_transformations(f: &mut fmt::Formatter<'_>, held: &LoopSchedule) -> fmt::Result {
    if held.interchanged {
        f.write_str(" interchange")?;
    }
    let counts = [
        ("peel_first", held.peel_first),
        ("peel_last", held.peel_last),
        ("tile", held.tile),
        ("unroll_and_jam", held.jam),
    ];
    for (clause, count) in counts {
        if let Some(count) = count {
            write!(f, " {clause}({count})")?;
        }
    }
    match held.unroll {
        Unroll::Auto => Ok(()),
        Unroll::Never => f.write_str(" unroll(never)"),
        Unroll::Full => f.write_str(" unroll"),
        Unroll::By(times) => write!(f, " unroll({times})"),
    }
}

/// What a loop's part of a schedule has.
const CLAUSES: &str = "`over_tblock(BLOCK)`, `over_tblock(CYCLIC)`, `over_thread`, `over_warp`, `over_lane`, `independent`, `shared(0,1)`, `whole(1)`, `compute(1)`, `copyout(1)`, `reduction(2)`, `privatize(3)`, `scan`, `nopad`, `interchange`, `peel_first(1)`, `peel_last(1)`, `tile(16)`, `unroll_and_jam(4)`, `unroll`, `unroll(4)`, `unroll(never)` or `sequential`";

/// Reads a clause.
fn read_clause(clause: &str, held: &mut LoopSchedule) -> Option<()> {
    let (over_blocks, over_threads) = match clause {
        "over_tblock(BLOCK)" => (Some(OverBlocks::Block), None),
        "over_tblock(CYCLIC)" => (Some(OverBlocks::Cyclic), None),
        "over_thread" => (None, Some(OverThreads::Threads)),
        "over_warp" => (None, Some(OverThreads::Warps)),
        "over_lane" => (None, Some(OverThreads::Lanes)),
        "independent" => {
            held.independent = true;
            return Some(());
        }
        "scan" => {
            held.scan = true;
            return Some(());
        }
        "nopad" => {
            held.unpadded = true;
            return Some(());
        }
        "sequential" => return Some(()),
        _ => return read_transformation(clause, held),
    };
    let partition = &mut held.partition;
    partition.over_blocks = over_blocks.or(partition.over_blocks);
    partition.over_threads = over_threads.or(partition.over_threads);
    Some(())
}

/// Reads a clause that has a slice's numbers or transforms the loop.
fn read_transformation(clause: &str, held: &mut LoopSchedule) -> Option<()> {
    let number = |name: &str| {
        let rest = clause.strip_prefix(name)?.strip_prefix('(')?;
        rest.strip_suffix(')')?.trim().parse().ok()
    };
    if let Some(size) = number("tile") {
        held.tile = Some(size);
    } else if let Some(count) = number("peel_first") {
        held.peel_first = Some(count);
    } else if let Some(count) = number("peel_last") {
        held.peel_last = Some(count);
    } else if let Some(count) = number("unroll_and_jam") {
        held.jam = Some(count);
    } else if let Some(times) = number("unroll") {
        held.unroll = Unroll::By(times);
    } else {
        match clause {
            "interchange" => held.interchanged = true,
            "unroll" => held.unroll = Unroll::Full,
            "unroll(never)" => held.unroll = Unroll::Never,
            _ => {
                let (name, _) = clause.split_once('(')?;
                let slices = slices(clause, name)?;
                match name {
                    "shared" => held.shared = slices,
                    "whole" => held.whole = slices,
                    "compute" => held.computed = slices,
                    "copyout" => held.copied_out = slices,
                    "reduction" => held.reduction = slices,
                    "privatize" => held.privatized = slices,
                    _ => return None,
                }
            }
        }
    }
    Some(())
}

impl FromStr for Schedule {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Schedule, ScheduleError> {
        let wrong = |part: &str, wanted: &'static str| ScheduleError {
            part: part.trim().to_owned(),
            wanted,
        };
        let dims = |text: &str| -> Result<Vec<u32>, ScheduleError> {
            let number = |part: &str| part.trim().parse();
            let all: Result<_, _> = text.split(',').map(number).collect();
            all.map_err(|_| wrong(text, "numbers with commas between"))
        };
        let grid = || wrong(text, "`tblock(..) thread(..)` at its start");
        let rest = text.trim().strip_prefix("tblock(").ok_or_else(grid)?;
        let (blocks, rest) = rest.split_once(')').ok_or_else(grid)?;
        let rest = rest.trim().strip_prefix("thread(").ok_or_else(grid)?;
        let (threads, rest) = rest.split_once(')').ok_or_else(grid)?;
        let mut schedule = Schedule {
            blocks: dims(blocks)?,
            threads: dims(threads)?,
            loops: Vec::new(),
        };
        let loops = rest.split(';').filter(|part| !part.trim().is_empty());
        for (number, part) in loops.enumerate() {
            let start = format!("loop {number}:");
            let clauses = part.trim().strip_prefix(&start);
            let clauses = clauses
                .ok_or_else(|| wrong(part, "the loops in order, `loop 0: ..; loop 1: ..`"))?;
            let mut held = LoopSchedule::default();
            for clause in clauses.split_whitespace() {
                read_clause(clause, &mut held).ok_or_else(|| wrong(clause, CLAUSES))?;
            }
            schedule.loops.push(held);
        }
        Ok(schedule)
    }
}

/// The slices of a clause of this name.
fn slices(clause: &str, name: &str) -> Option<Slices> {
    let numbers = clause.strip_prefix(name)?.strip_prefix('(')?;
    let numbers = numbers.strip_suffix(')')?;
    let add = |slices: Slices, number: &str| {
        let number = number.trim().parse().ok()?;
        (number < Slices::MAX).then(|| slices.with(number))
    };
    numbers.split(',').try_fold(Slices::default(), add)
}
