//! What a schedule costs, as numbers: how well warps use what they get from global memory, how often they go to a bank of shared
//! memory, how many blocks a multiprocessor has at once and what limits them. Nothing is compiled or launched for it.

use std::collections::{BTreeSet, HashMap};
use std::fmt::{self, Write as _};

use kiln_jit_core::ir::{Inst, Value};

use crate::accesses::{Access, Accesses};
use crate::affine::{Affine, Atom, Known, Step};
use crate::along::WARP;
use crate::apply::{Levels, apply};
use crate::banks::{degree, places_of};
use crate::edge::Edge;
use crate::error::DirectiveError;
use crate::integer::Linear;
use crate::program::Program;
use crate::reuse::shared_bytes;
use crate::schedule::Schedule;
use crate::stage::Staged;
use crate::transform::Transformed;

/// The bytes that global memory gives at least (CUDA best practices, "Coalesced Access to Global Memory").
const SECTOR: i128 = 32;
/// What a multiprocessor of compute capability 9.0 has (CUDA guide, "Compute Capabilities").
const WARPS: u32 = 64;
const BLOCKS: u32 = 32;
const SHARED: u64 = 228 * 1024;
/// Bytes of shared memory that the multiprocessor takes for itself of each block.
const SHARED_OF_BLOCK: u64 = 1024;
const REGISTERS: u32 = 65_536;

/// What a schedule costs in a launch, by [`Program::guidance`].
#[derive(Clone, PartialEq, Debug)]
pub struct Guidance {
    /// Reads and writes of global memory, in the order of the text.
    pub accesses: Vec<AccessCost>,
    /// What is staged in shared memory.
    pub sections: Vec<SectionCost>,
    /// How many threads a multiprocessor has at once.
    pub occupancy: Occupancy,
}

/// What an access to global memory costs the first warp of a launch in its first iterations.
#[derive(Clone, PartialEq, Debug)]
pub struct AccessCost {
    /// The access's file, line and column.
    pub place: String,
    /// The slice.
    pub slice: String,
    /// Whether this is a write.
    pub writes: bool,
    /// The fewest sectors of 32 bytes that hold what the warp uses, divided by those that it goes to; from above 0 to 1. `None`
    /// where the index is not known to be a sum of loop counters times numbers.
    pub efficiency: Option<f64>,
    /// How many elements neighbouring threads are apart.
    pub apart: Option<i128>,
    /// What to change, if less than half of what comes is used.
    pub suggestion: Option<String>,
}

/// What a section costs in shared memory.
#[derive(Clone, PartialEq, Debug)]
pub struct SectionCost {
    /// The section, as [`Section`](crate::Section) prints it.
    pub section: String,
    /// Bytes of shared memory.
    pub bytes: u64,
    /// How often a warp goes to a bank for its worst read, 1 at best; `None` where any element may be read.
    pub degree: Option<usize>,
    /// [`SectionCost::degree`] of rows that are not padded.
    pub unpadded: Option<usize>,
}

/// How many blocks a multiprocessor of compute capability 9.0 has at once.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Occupancy {
    /// Blocks.
    pub blocks: u32,
    /// Warps of these blocks, divided by those that there may be.
    pub warps: f64,
    /// The resource for which there are no more blocks: `threads`, `blocks` or `shared memory`.
    pub limit: &'static str,
    /// The most registers of a thread with which there are as many.
    pub registers: u32,
    /// Bytes of shared memory of a block.
    pub shared: u64,
}

impl Program {
    /// What a schedule costs in a launch with such arguments.
    ///
    /// ```
    /// use kiln::directives::{Known, Program, marks};
    /// use kiln::prelude::*;
    ///
    /// #[device_fn]
    /// fn transposed(x: &[f32], y: &mut [f32], n: usize) {
    ///     marks::partition(1, 1);
    ///     for i in 0..n {
    ///         marks::partition(1, 1);
    ///         for j in 0..n {
    ///             y[i * n + j] = x[j * n + i];
    ///         }
    ///     }
    /// }
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let program = Program::of(&DeviceFn::of::<transposed>()?)?;
    /// let known = [Known::Length(1 << 20), Known::Length(1 << 20), Known::Number(1 << 10)];
    /// let guidance = program.guidance(&program.schedule(&[128, 32], &[8, 32]), &known)?;
    /// let [read, write] = &guidance.accesses[..] else { panic!("there are two") };
    /// assert_eq!((read.efficiency, read.apart), (Some(0.125), Some(1024)));
    /// assert_eq!((write.efficiency, write.apart), (Some(1.0), Some(1)));
    /// assert!(read.suggestion.as_ref().is_some_and(|text| text.contains("shared(copyin(x))")));
    /// assert_eq!((guidance.occupancy.blocks, guidance.occupancy.limit), (8, "threads"));
    /// assert!(guidance.to_json().starts_with(r#"{"accesses":[{"place":"#));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A schedule of another program, or one that cannot be followed.
    pub fn guidance(
        &self,
        schedule: &Schedule,
        known: &[Known],
    ) -> Result<Guidance, DirectiveError> {
        let applied = apply(self, schedule, known)?;
        let shared = shared_bytes(&applied.module, self.kernel);
        let transformed = Transformed::of(self, schedule, known)?;
        let (program, schedule) = (&*transformed.program, &transformed.schedule);
        let edge = Edge::of(program, schedule);
        let staged = Staged::of(&transformed, &edge, known)?;
        let sections = staged.sections();
        let loads = sections.iter().flat_map(|section| &section.reads);
        let loads: BTreeSet<Inst> = loads.map(|read| read.load).collect();
        let accesses = Accesses::of(program, schedule)?;
        let mut warp = Warp {
            program,
            schedule,
            affine: Affine::new(program.function(), known),
        };
        let global = accesses
            .all
            .iter()
            .filter(|access| !loads.contains(&access.inst));
        let numbers = &transformed.numbers;
        Ok(Guidance {
            accesses: global.filter_map(|access| warp.cost(access)).collect(),
            sections: sections
                .into_iter()
                .map(|section| SectionCost {
                    bytes: section.bytes(),
                    degree: degree(&section, &schedule.threads, section.padding),
                    unpadded: degree(&section, &schedule.threads, 0),
                    section: section.in_loop_of(numbers).to_string(),
                })
                .collect(),
            occupancy: occupancy(shared, schedule),
        })
    }
}

/// How many blocks of a schedule there are at once, each with so many bytes of shared memory.
fn occupancy(shared: u64, schedule: &Schedule) -> Occupancy {
    let threads = schedule
        .threads
        .iter()
        .map(|&extent| u64::from(extent))
        .product::<u64>();
    let warps = u32::try_from(threads.div_ceil(WARP.into()))
        .unwrap_or(WARPS)
        .clamp(1, WARPS);
    let by_shared = match shared {
        0 => BLOCKS,
        _ => u32::try_from(SHARED / (shared + SHARED_OF_BLOCK)).unwrap_or(BLOCKS),
    };
    let limits = [
        (WARPS / warps, "threads"),
        (BLOCKS, "blocks"),
        (by_shared, "shared memory"),
    ];
    let (blocks, limit) = limits
        .into_iter()
        .min_by_key(|(blocks, _)| *blocks)
        .unwrap_or((1, "threads"));
    let of_thread = REGISTERS / (blocks.max(1) * warps * WARP);
    Occupancy {
        blocks,
        warps: f64::from(blocks * warps) / f64::from(WARPS),
        limit,
        registers: (of_thread / 8 * 8).min(255),
        shared,
    }
}

/// The first warp of a launch.
struct Warp<'p> {
    program: &'p Program,
    schedule: &'p Schedule,
    affine: Affine<'p>,
}

impl Warp<'_> {
    /// What an access to a parameter costs.
    fn cost(&mut self, access: &Access) -> Option<AccessCost> {
        let function = self.program.function();
        let param = function
            .params
            .iter()
            .find(|param| param.value == access.base)?;
        let (name, place) = (param.name.clone(), function.insts[access.inst].location);
        let lanes = self.lanes(access);
        let efficiency = lanes
            .as_ref()
            .and_then(|lanes| self.efficiency(access, lanes));
        let apart = lanes.as_ref().and_then(|lanes| match lanes[..] {
            [first, second, ..] => Some(second - first),
            _ => None,
        });
        let suggestion = match efficiency {
            Some(efficiency) if efficiency < 0.5 => Some(self.suggestion(access, &name, apart)),
            _ => None,
        };
        Some(AccessCost {
            place: self.program.place(place),
            slice: name,
            writes: access.writes,
            efficiency,
            apart,
            suggestion,
        })
    }

    /// The index that each thread of the warp has in its first iterations, of those that have some.
    fn lanes(&mut self, access: &Access) -> Option<Vec<i128>> {
        let [Step::Index { index, of: Some(_) }, ..] = access.steps.as_deref()? else {
            return None;
        };
        let form = self.affine.form(*index)?;
        let threads: u32 = self.schedule.threads.iter().product();
        let mut lanes = Vec::new();
        for lane in 0..threads.min(WARP) {
            let Some(turns) = self.turns(access, lane) else {
                continue;
            };
            lanes.push(self.value(&form.sum, &turns)?);
        }
        Some(lanes)
    }

    /// The first turns of loops over threads that a thread has; none if it has none, or does not execute the access.
    fn turns(&mut self, access: &Access, lane: u32) -> Option<HashMap<Inst, i128>> {
        let places = places_of(lane as usize, &self.schedule.threads);
        let (mut turns, mut levels) = (HashMap::new(), Levels::default());
        for held in &access.loops {
            let partition = held.schedule.partition;
            levels = held.levels.within(partition);
            let Some(along) = held.levels.along(partition) else {
                continue;
            };
            let turn = along.place(&places)?;
            if self
                .affine
                .turns(held.inst)
                .is_some_and(|known| turn >= known.most)
            {
                return None;
            }
            turns.insert(held.inst, turn);
        }
        // What no loop distributes, the first thread writes.
        let undivided = self.schedule.undivided(levels).into_iter();
        let is_first = undivided
            .map(|along| along.place(&places))
            .all(|place| place == Some(0));
        (is_first || !access.writes).then_some(turns)
    }

    /// What a sum is with these turns of loops, and others in their first one.
    fn value(&self, sum: &Linear, turns: &HashMap<Inst, i128>) -> Option<i128> {
        let mut value = sum.number;
        for (atom, &factor) in sum.factors.iter().enumerate() {
            if factor == 0 {
                continue;
            }
            let number = match self.affine.atoms.get(atom)? {
                Atom::Turn(inst) => turns.get(inst).copied().unwrap_or(0),
                Atom::Quotient { of, by } => self.value(of, turns)?.div_euclid(*by),
                Atom::Unknown { .. } => return None,
            };
            value = value.checked_add(factor.checked_mul(number)?)?;
        }
        Some(value)
    }

    fn efficiency(&self, access: &Access, lanes: &[i128]) -> Option<f64> {
        let (stride, bytes) = self.bytes(access)?;
        let (mut used, mut sectors) = (BTreeSet::new(), BTreeSet::new());
        for at in lanes {
            let first = at.checked_mul(stride)?;
            used.insert(first);
            sectors.extend(first.div_euclid(SECTOR)..=(first + bytes - 1).div_euclid(SECTOR));
        }
        let least = (used.len() as i128 * bytes + SECTOR - 1) / SECTOR;
        (!lanes.is_empty()).then(|| (least as f64 / sectors.len() as f64).min(1.0))
    }

    /// The bytes of an element, and of what is used of it.
    fn bytes(&self, access: &Access) -> Option<(i128, i128)> {
        let (function, types) = (self.program.function(), &self.program.module.types);
        let (address, _) = types.as_slice(function.type_of(access.base))?;
        let element = types.layout(address.pointee)?.size;
        let node = &function.insts[access.inst];
        let mut used = node.result;
        node.data.for_each_operand(|value: Value| {
            if !types.has_references(function.type_of(value)) {
                used = Some(value);
            }
        });
        let used = types.layout(function.type_of(used?))?.size;
        Some((element.into(), used.max(1).into()))
    }

    /// What would bring neighbouring threads to neighbouring elements.
    fn suggestion(&mut self, access: &Access, name: &str, apart: Option<i128>) -> String {
        if let (Some(-1..=1), Some((element, used))) = (apart, self.bytes(access)) {
            return format!(
                "{used} of each {element} bytes are used: have a slice for each part of the elements"
            );
        }
        let apart = apart.map_or(String::new(), |apart| {
            format!("neighbouring threads are {apart} elements apart; ")
        });
        let index = access
            .steps
            .as_deref()
            .and_then(|steps| match steps.first() {
                Some(Step::Index { index, .. }) => self.affine.form(*index),
                _ => None,
            });
        let mut loops = access.loops.iter().rev();
        let along = loops.find(|held| {
            let atom = self.affine.turn(held.inst);
            index
                .as_ref()
                .is_some_and(|form| form.sum.factors.get(atom) == Some(&1))
        });
        let last = along.map(|held| {
            let at = self.program.function().insts[held.inst].location;
            format!(
                "let the loop at {} be the one that is distributed over the last dimension of threads",
                self.program.place(at)
            )
        });
        let stage = (!access.writes).then(|| format!("stage it by `shared(copyin({name}))`"));
        let ways: Vec<String> = last.into_iter().chain(stage).collect();
        match ways.is_empty() {
            true => format!("{apart}store what neighbours use side by side"),
            false => format!("{apart}{}", ways.join(", or ")),
        }
    }
}

/// A number that may not be known, as JSON.
fn number(value: Option<impl fmt::Display>) -> String {
    value.map_or("null".to_owned(), |value| value.to_string())
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if u32::from(letter) < 0x20 => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

impl Guidance {
    /// All costs as JSON, an object of `accesses`, `sections` and `occupancy` with the fields of their structs; what is not
    /// known is `null`.
    pub fn to_json(&self) -> String {
        let accesses = self.accesses.iter().map(|access| {
            let suggestion = access.suggestion.as_deref().map(quoted);
            format!(
                r#"{{"place":{},"slice":{},"writes":{},"efficiency":{},"apart":{},"suggestion":{}}}"#,
                quoted(&access.place),
                quoted(&access.slice),
                access.writes,
                number(access.efficiency),
                number(access.apart),
                number(suggestion),
            )
        });
        let sections = self.sections.iter().map(|held| {
            format!(
                r#"{{"section":{},"bytes":{},"degree":{},"unpadded":{}}}"#,
                quoted(&held.section),
                held.bytes,
                number(held.degree),
                number(held.unpadded),
            )
        });
        let (accesses, sections): (Vec<_>, Vec<_>) = (accesses.collect(), sections.collect());
        let Occupancy {
            blocks,
            warps,
            limit,
            registers,
            shared,
        } = self.occupancy;
        format!(
            r#"{{"accesses":[{}],"sections":[{}],"occupancy":{{"blocks":{blocks},"warps":{warps},"limit":"{limit}","registers":{registers},"shared":{shared}}}}}"#,
            accesses.join(","),
            sections.join(",")
        )
    }
}

impl fmt::Display for Guidance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for access in &self.accesses {
            let what = if access.writes { "write" } else { "read" };
            write!(f, "{}: {what} of `{}`: ", access.place, access.slice)?;
            match access.efficiency {
                Some(efficiency) => write!(f, "{:.0} % of what comes is used", 100.0 * efficiency)?,
                None => f.write_str("not known")?,
            }
            match &access.suggestion {
                Some(suggestion) => writeln!(f, ": {suggestion}")?,
                None => writeln!(f)?,
            }
        }
        for held in &self.sections {
            write!(f, "{}: {} bytes", held.section, held.bytes)?;
            match held.degree {
                Some(degree) => writeln!(f, ", a warp goes to a bank {degree} times")?,
                None => writeln!(f)?,
            }
        }
        let Occupancy {
            blocks,
            warps,
            limit,
            registers,
            ..
        } = self.occupancy;
        write!(
            f,
            "{blocks} blocks at once, {:.0} % of the warps, limited by {limit}; up to {registers} registers a thread",
            100.0 * warps
        )
    }
}
