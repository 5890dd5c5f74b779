//! Looking for a schedule: extents of grids, tiles and groups are tried, and the best one is kept for later processes.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, process};

use kiln_jit_core::args::Arg;
use kiln_jit_core::error::{Error, Result};
use kiln_jit_core::ir::{Inst, Region};
use kiln_jit_core::jit::Jit;

use crate::affine::{Affine, Known};
use crate::apply::Levels;
use crate::error::DirectiveError;
use crate::integer::ceil;
use crate::kernel::Scheduled;
use crate::program::Program;
use crate::schedule::{OverBlocks, Schedule};

/// How long a search may take: no schedule is tried behind one of these ends.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Budget {
    /// The time from the first trial on.
    pub time: Duration,
    /// How many schedules are tried, without those that are refused.
    pub trials: usize,
}

/// What came of a schedule.
#[derive(Clone, PartialEq, Debug)]
pub struct Trial {
    /// The schedule.
    pub schedule: Schedule,
    /// How long a launch takes, or why there was none.
    pub outcome: std::result::Result<Duration, String>,
}

/// The schedule that a search has found.
#[derive(Clone, PartialEq, Debug)]
pub struct Found {
    /// The schedule, whose text [`Schedule`] reads again.
    pub schedule: Schedule,
    /// What was tried, in its order; nothing if the schedule is that of an earlier process.
    pub trials: Vec<Trial>,
}

impl Program {
    /// A schedule and others like it, with the same directives: blocks of other numbers of threads, and where it has tiles and
    /// iterations side by side, others of these. A grid that has as many blocks as there is work for is so again. Of blocks of three
    /// and more dimensions the extents stay.
    ///
    /// ```
    /// use kiln::directives::{Known, Program, marks};
    /// use kiln::prelude::*;
    ///
    /// #[device_fn]
    /// fn double(x: &mut [f32], n: usize) {
    ///     marks::partition(1, 1);
    ///     for i in 0..n {
    ///         x[i] *= 2.0;
    ///     }
    /// }
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let program = Program::of(&DeviceFn::of::<double>()?)?;
    /// let known = [Known::Length(1000), Known::Number(1000)];
    /// let variants = program.variants(&program.schedule(&[8], &[128]), &known);
    /// assert_eq!((variants[0].blocks[0], variants[0].threads[0]), (8, 128));
    /// assert!(variants.iter().any(|held| (held.blocks[0], held.threads[0]) == (4, 256)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn variants(&self, schedule: &Schedule, known: &[Known]) -> Vec<Schedule> {
        let mut all = vec![schedule.clone()];
        for number in 0..schedule.loops.len() {
            let held = schedule.loops[number];
            if held.tile.is_some() {
                all = with_each(&all, &[8, 16, 32, 64], |schedule, size| {
                    schedule.loops[number].tile = Some(size);
                });
            }
            if held.jam.is_some() {
                all = with_each(&all, &[1, 2, 4, 8], |schedule, count| {
                    schedule.loops[number].jam = Some(count);
                });
            }
        }
        let blocks = blocks_of_threads(schedule.threads.len());
        let mut all: Vec<Schedule> = all
            .iter()
            .flat_map(|schedule| {
                let own = blocks.iter().map(|threads| Schedule {
                    threads: threads.clone(),
                    ..schedule.clone()
                });
                std::iter::once(schedule.clone())
                    .chain(own)
                    .collect::<Vec<_>>()
            })
            .collect();
        let mut covered = Covered::of(self, known);
        let as_many = covered.blocks(schedule);
        for other in &mut all {
            let wanted = covered.blocks(other);
            let dims = other.blocks.iter_mut().zip(&schedule.blocks);
            for ((own, given), (covers, wanted)) in dims.zip(as_many.iter().zip(wanted)) {
                if *covers == Some(*given) {
                    *own = wanted.unwrap_or(*given);
                }
            }
        }
        let mut variants = vec![schedule.clone()];
        for other in all {
            if !variants.contains(&other) {
                variants.push(other);
            }
        }
        variants
    }

    /// The best of some schedules, for launches with such arguments: each that is not refused becomes a kernel, and `measure` says how
    /// long a launch of it takes ([`Scheduled::time`]). What was found is kept beside compiled kernels ([`Jit::disk_cache`]), by
    /// the program, the schedules, the arguments, the device and the options of compilation; a later search for the same measures nothing.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use kiln::directives::{Budget, Known, Program, Schedule, marks};
    /// use kiln::prelude::*;
    ///
    /// #[device_fn]
    /// fn double(x: &mut [f32], n: usize) {
    ///     marks::partition(1, 1);
    ///     for i in 0..n {
    ///         x[i] *= 2.0;
    ///     }
    /// }
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let program = Program::of(&DeviceFn::of::<double>()?)?;
    /// let known = [Known::Length(1000), Known::Number(1000)];
    /// let variants = program.variants(&program.schedule(&[8], &[128]), &known);
    /// let jit = Jit::new()?;
    /// let mut x = jit.zeros::<f32>(1000)?;
    /// let budget = Budget { time: Duration::from_secs(10), trials: 4 };
    /// let found = program.search(&jit, &variants, &known, budget, |scheduled| {
    ///     scheduled.time(&jit, args!(&mut x, 1000u32))
    /// })?;
    /// let replayed: Schedule = found.schedule.to_string().parse()?;
    /// assert!(variants.contains(&replayed) && found.trials.len() <= 4);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// No schedule that can be launched; [`Found::trials`] would have no time.
    pub fn search(
        &self,
        jit: &Jit,
        schedules: &[Schedule],
        known: &[Known],
        budget: Budget,
        mut measure: impl FnMut(&Scheduled) -> Result<Duration>,
    ) -> Result<Found> {
        let kept = self.kept(jit, schedules, known);
        if let Some(schedule) = kept.as_deref().and_then(read)
            && schedules.contains(&schedule)
            && self.verify(&schedule, known).is_ok()
        {
            let trials = Vec::new();
            return Ok(Found { schedule, trials });
        }
        let (started, mut launched) = (Instant::now(), 0);
        let mut trials: Vec<Trial> = Vec::new();
        for schedule in schedules {
            if launched > 0 && (launched >= budget.trials || started.elapsed() >= budget.time) {
                break;
            }
            let scheduled = self
                .verify(schedule, known)
                .map_err(Error::from)
                .and_then(|()| self.apply_for(schedule, known));
            launched += usize::from(scheduled.is_ok());
            let outcome = scheduled.and_then(|scheduled| measure(&scheduled));
            trials.push(Trial {
                schedule: schedule.clone(),
                outcome: outcome.map_err(|error| error.to_string()),
            });
        }
        let times = trials.iter().filter_map(|trial| {
            let time = *trial.outcome.as_ref().ok()?;
            Some((time, trial))
        });
        let Some((_, best)) = times.min_by_key(|(time, _)| *time) else {
            let first = trials.iter().find_map(|trial| trial.outcome.clone().err());
            return Err(DirectiveError::NoSchedule {
                tried: trials.len(),
                first: first.unwrap_or_else(|| "none was given".to_owned()),
            }
            .into());
        };
        let schedule = best.schedule.clone();
        if let Some(file) = kept {
            write(&file, &schedule);
        }
        Ok(Found { schedule, trials })
    }

    /// The file in which what is found is kept, if anything is.
    fn kept(&self, jit: &Jit, schedules: &[Schedule], known: &[Known]) -> Option<PathBuf> {
        let folder = jit.disk_cache().folder?;
        let mut key = DefaultHasher::new();
        env!("CARGO_PKG_VERSION").hash(&mut key);
        self.sequential_module().to_string().hash(&mut key);
        (schedules, known).hash(&mut key);
        jit.device().info().name.hash(&mut key);
        let options = &jit.options().compile;
        format!("{:?} {options:?}", jit.target()).hash(&mut key);
        Some(
            folder
                .join("schedules")
                .join(format!("{:016x}", key.finish())),
        )
    }
}

impl Scheduled {
    /// How long a launch takes, the least of five behind one that compiles the kernel, each until the device is done.
    ///
    /// # Errors
    /// Those of a launch.
    pub fn time(&self, jit: &Jit, args: &[Arg<'_>]) -> Result<Duration> {
        let mut least = Duration::MAX;
        for number in 0..6 {
            let started = Instant::now();
            jit.launch(self.kernel(), self.grid(), self.block(), args)?;
            jit.synchronize()?;
            if number > 0 {
                least = least.min(started.elapsed());
            }
        }
        Ok(least)
    }
}

/// Schedules with each of some numbers.
fn with_each(
    all: &[Schedule],
    numbers: &[u32],
    change: impl Fn(&mut Schedule, u32),
) -> Vec<Schedule> {
    let changed = |schedule: &Schedule| {
        let own = numbers.iter().map(|&number| {
            let mut own = schedule.clone();
            change(&mut own, number);
            own
        });
        own.collect::<Vec<_>>()
    };
    all.iter().flat_map(changed).collect()
}

/// Threads of blocks of a number of dimensions: whole warps, up to what a block has.
fn blocks_of_threads(dims: usize) -> Vec<Vec<u32>> {
    let powers = |most: u32| (0..=most).map(|power| 1u32 << power);
    match dims {
        1 => powers(10).filter(|&x| x >= 32).map(|x| vec![x]).collect(),
        2 => {
            let all = powers(5).flat_map(|y| powers(8).map(move |x| [y, x]));
            let is_block = |[y, x]: &[u32; 2]| (64..=1024).contains(&(y * x)) && *x >= 8;
            all.filter(is_block).map(|block| block.to_vec()).collect()
        }
        _ => Vec::new(),
    }
}

/// How many blocks there is work for.
struct Covered<'p> {
    program: &'p Program,
    affine: Affine<'p>,
    /// Loops with how many are distributed around them depends on the schedule; this is how loops are nested.
    around: HashMap<Inst, Vec<Inst>>,
}

impl<'p> Covered<'p> {
    fn of(program: &'p Program, known: &'p [Known]) -> Covered<'p> {
        let mut covered = Covered {
            program,
            affine: Affine::new(program.function(), known),
            around: HashMap::new(),
        };
        covered.region(program.function().body, &[]);
        covered
    }

    fn region(&mut self, region: Region, around: &[Inst]) {
        let function = self.program.function();
        for &inst in &function.regions[region].insts {
            let mut inner = around.to_vec();
            if self.program.number_of(inst).is_some() {
                self.around.insert(inst, around.to_vec());
                inner.push(inst);
            }
            for region in function.insts[inst].data.regions() {
                self.region(region, &inner);
            }
        }
    }

    /// Along each dimension, with how many blocks each thread has one group of iterations at most, of the loop that needs most.
    fn blocks(&mut self, schedule: &Schedule) -> Vec<Option<u32>> {
        let mut all: Vec<Option<u32>> = vec![None; schedule.blocks.len()];
        let loops = &self.program.loops;
        for (number, &(inst, _)) in loops.iter().enumerate() {
            let held = schedule.loops[number];
            if held.partition.over_blocks != Some(OverBlocks::Block) {
                continue;
            }
            let around = self.around.get(&inst).into_iter().flatten();
            let around = around.filter_map(|&around| self.program.number_of(around));
            let levels = around.fold(Levels::default(), |levels, around| {
                levels.within(schedule.loops[around].partition)
            });
            let threads = schedule.places_of(held.partition, levels);
            let group = i128::from(threads) * i128::from(held.jammed());
            let count = self
                .affine
                .turns(inst)
                .map(|turns| ceil(turns.most.max(1), group));
            let count = count.and_then(|count| u32::try_from(count).ok());
            if let Some(most) = all.get_mut(levels.blocks) {
                *most = (*most).max(count);
            }
        }
        all
    }
}

/// The schedule that a file holds.
fn read(file: &Path) -> Option<Schedule> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Keeps a schedule; a file that cannot be written is none.
fn write(file: &Path, schedule: &Schedule) {
    let Some(folder) = file.parent() else { return };
    let own = file.with_extension(format!("{}.tmp", process::id()));
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(&own, schedule.to_string()));
    let renamed = written.and_then(|()| fs::rename(&own, file));
    if renamed.is_err() {
        let _ = fs::remove_file(&own);
    }
}
