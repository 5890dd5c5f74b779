//! Sections beside what each thread of each block reads in each turn, by trial.

use kiln_jit_core::build::{DeviceFn, KernelBuilder, Val};
use kiln_jit_core::ir::{Type, Unroll};

use super::*;
use crate::marks;
use crate::schedule::{OverThreads, Partition};

/// A sum of the indices of the loops around, outermost first, and a number.
#[derive(Clone, Debug)]
struct Expr(Vec<i64>, i64);

impl Expr {
    fn at(&self, indices: &[i64]) -> i64 {
        let terms = self.0.iter().zip(indices);
        self.1 + terms.map(|(factor, index)| factor * index).sum::<i64>()
    }

    fn build<'k>(&self, k: &'k KernelBuilder, indices: &[Val<'k>]) -> Val<'k> {
        let number = k.lit(Type::I32, self.1);
        let terms = self.0.iter().zip(indices);
        terms.fold(number, |sum, (&factor, &index)| {
            sum + index * k.lit(Type::I32, factor)
        })
    }
}

/// A loop of a nest: so many turns from a start on.
#[derive(Clone, Debug)]
struct Turns {
    start: Expr,
    count: i64,
    step: i64,
    partition: Partition,
    /// Batches that a thread executes side by side.
    jam: u32,
}

/// Loops, each in the one before, and reads in the innermost.
#[derive(Clone, Debug)]
struct Nest {
    loops: Vec<Turns>,
    stages: usize,
    reads: Vec<Expr>,
    blocks: Vec<u32>,
    threads: Vec<u32>,
}

const BLOCK: Option<OverBlocks> = Some(OverBlocks::Block);
const CYCLIC: Option<OverBlocks> = Some(OverBlocks::Cyclic);

fn turns(count: i64, over_blocks: Option<OverBlocks>, over_threads: bool) -> Turns {
    Turns {
        start: Expr(Vec::new(), 0),
        count,
        step: 1,
        partition: Partition {
            over_blocks,
            over_threads: over_threads.then_some(OverThreads::Threads),
        },
        jam: 1,
    }
}

impl Nest {
    fn build<'k>(&self, k: &'k KernelBuilder, x: Val<'k>, indices: &mut Vec<Val<'k>>) {
        let Some(held) = self.loops.get(indices.len()) else {
            let out = k.slice_mut("out", Type::U32);
            let read = |read: &Expr| x.at(read.build(k, indices)).get();
            let sum = self.reads.iter().map(read).reduce(|sum, read| sum + read);
            out.at(0u32).set(sum.expect("there is one"));
            return;
        };
        if indices.len() == self.stages {
            marks::shared::build(k, x.len());
        }
        let start = held.start.build(k, indices);
        let ahead = k.lit(Type::I32, held.count * held.step);
        let step = k.lit(Type::I32, held.step);
        k.for_loop(start, start + ahead, step, Unroll::Auto, |index| {
            indices.push(index);
            self.build(k, x, indices);
            indices.pop();
        });
    }

    fn sections(&self) -> Result<(Program, Vec<Section>), DirectiveError> {
        let region = DeviceFn::build("nest", |k| {
            let x = k.slice("x", Type::U32);
            self.build(k, x, &mut Vec::new());
        });
        let program = Program::of(&region.expect("it is described")).expect("it is a region");
        let mut schedule = program.schedule(&self.blocks, &self.threads);
        for (held, turns) in schedule.loops.iter_mut().zip(&self.loops) {
            held.partition = turns.partition;
            held.jam = Some(turns.jam);
        }
        let sections = program.sections(&schedule, &[])?;
        Ok((program, sections))
    }

    /// By loop: its dimensions of blocks and of threads, if it is distributed over them.
    fn levels(&self) -> Vec<[usize; 2]> {
        let mut next = [0, 0];
        let mut all = Vec::new();
        for held in &self.loops {
            all.push(next);
            next[0] += usize::from(held.partition.over_blocks.is_some());
            next[1] += usize::from(held.partition.over_threads.is_some());
        }
        all
    }

    /// How many turns of a loop the threads execute at once, each of them one.
    fn at_once(&self, number: usize) -> i64 {
        match self.loops[number].partition.over_threads.is_some() {
            true => self.threads[self.levels()[number][1]].into(),
            false => 1,
        }
    }

    /// The groups of batches that a block has of a loop: which turns it executes side by side.
    fn batches(&self, number: usize, block: &[u32]) -> Vec<Vec<i64>> {
        let (held, level) = (&self.loops[number], self.levels()[number]);
        let (over_blocks, threads) = (held.partition.over_blocks, self.at_once(number));
        let group = match held.jam {
            1 => 1,
            jam => threads * i64::from(jam),
        };
        let is_own = |turn: &i64| {
            let of = over_blocks.map(|_| i64::from(self.blocks[level[0]]));
            let own = over_blocks.map(|_| i64::from(block[level[0]]));
            match over_blocks {
                None => true,
                BLOCK => {
                    let chunk = (held.count - 1) / of.unwrap_or(1) + 1;
                    Some(turn / ((chunk - 1) / group * group + group)) == own
                }
                CYCLIC => Some(turn / threads % of.unwrap_or(1)) == own,
            }
        };
        let share: Vec<i64> = (0..held.count).filter(is_own).collect();
        share
            .chunks(threads as usize * held.jam as usize)
            .map(<[i64]>::to_vec)
            .collect()
    }

    /// The indices of turns.
    fn indices(&self, turns: &[i64]) -> Vec<i64> {
        let mut indices = Vec::new();
        for (held, turn) in self.loops.iter().zip(turns) {
            let start = held.start.at(&indices);
            indices.push(start + turn * held.step);
        }
        indices
    }
}

/// One of each list, in all ways.
fn choices<T: Clone>(lists: &[Vec<T>]) -> Vec<Vec<T>> {
    lists.iter().fold(vec![Vec::new()], |all, list| {
        let longer = |start: &Vec<T>| {
            let start = start.clone();
            let more = list.iter().cloned();
            let more: Vec<_> = more
                .map(|last| [start.clone(), vec![last]].concat())
                .collect();
            more
        };
        all.iter().flat_map(longer).collect()
    })
}

/// What a batch of each loop around and one turn of the stage leave to compare.
struct Compared<'n> {
    nest: &'n Nest,
    program: &'n Program,
    levels: Vec<[usize; 2]>,
    /// The loads in the order of the text.
    loads: Vec<Inst>,
    /// By loop: the turns that are executed side by side, or one after another within.
    lists: Vec<Vec<i64>>,
}

impl Compared<'_> {
    fn read(&self, load: Inst) -> &Expr {
        let number = self.loads.iter().position(|&own| own == load);
        &self.nest.reads[number.expect("it is there")]
    }

    fn loop_of(&self, is_own: impl Fn(usize) -> bool) -> usize {
        let mut all = 0..self.nest.loops.len();
        all.find(|&number| is_own(number)).expect("it is there")
    }

    /// Which turn of a group it is.
    fn place(&self, number: usize, turns: &[i64]) -> i64 {
        let mut group = self.lists[number].iter();
        let place = group.position(|&own| own == turns[number]);
        place.expect("it is of the group") as i64
    }

    /// What a term's ranging part is in turns.
    fn value(&self, term: &Term, turns: &[i64]) -> i128 {
        let value = match term.ranging {
            Ranging::Thread(along) => {
                let number = self.loop_of(|number| {
                    let partition = self.nest.loops[number].partition;
                    partition.over_threads.is_some() && Along::Dim(self.levels[number][1]) == along
                });
                i128::from(self.place(number, turns) % self.nest.at_once(number))
            }
            Ranging::Copy(inst) => {
                let number = self.program.number_of(inst).expect("it is there");
                i128::from(self.place(number, turns) / self.nest.at_once(number))
            }
            Ranging::Turn { inst, step } => {
                let number = self.program.number_of(inst).expect("it is there");
                assert_eq!(step, i128::from(self.nest.loops[number].step));
                turns[number].into()
            }
        };
        assert!(value < term.count, "{:#?}", self.nest);
        term.factor * value
    }

    /// The places of a box that are read; each is that of the element.
    fn places(&self, section: &Section) -> HashSet<Vec<i128>> {
        let first: Vec<i64> = self.lists.iter().map(|list| list[0]).collect();
        let origin = self
            .read(section.reads[0].load)
            .at(&self.nest.indices(&first));
        let mut found = HashSet::new();
        for turns in choices(&self.lists) {
            for read in &section.reads {
                let (mut at, mut index) = (Vec::new(), i128::from(origin));
                for (place, dim) in read.places.iter().zip(&section.dims) {
                    let terms = place.terms.iter().map(|term| self.value(term, &turns));
                    let along = place.number + terms.sum::<i128>();
                    let is_within = (0..dim.extent).contains(&(along - dim.first));
                    assert!(is_within, "{:#?}\n{section:#?}", self.nest);
                    index += along * dim.stride;
                    at.push(along);
                }
                let wanted = self.read(read.load).at(&self.nest.indices(&turns));
                assert_eq!(index, wanted.into(), "{:#?}\n{section:#?}", self.nest);
                found.insert(at);
            }
        }
        found
    }
}

/// Compares sections with what each thread of each block reads in each turn. For each section its text, how many places
/// it has, and the most that are read in one turn.
fn check(nest: &Nest) -> Result<Vec<(String, usize, usize)>, DirectiveError> {
    let (program, sections) = nest.sections()?;
    let reads = sections.iter().flat_map(|section| &section.reads);
    let mut loads: Vec<Inst> = reads.map(|read| read.load).collect();
    loads.sort_unstable();
    assert_eq!(loads.len(), nest.reads.len());
    let mut compared = Compared {
        nest,
        program: &program,
        levels: nest.levels(),
        loads,
        lists: Vec::new(),
    };
    let blocks = nest.blocks.iter().map(|&extent| (0..extent).collect());
    let blocks: Vec<Vec<u32>> = blocks.collect();
    let mut most = vec![0; sections.len()];
    for block in choices(&blocks) {
        let around = 0..=nest.stages;
        let batches: Vec<_> = around.map(|number| nest.batches(number, &block)).collect();
        for turn in choices(&batches) {
            let within = &nest.loops[nest.stages + 1..];
            let within = within.iter().map(|held| (0..held.count).collect());
            compared.lists = turn.into_iter().chain(within).collect();
            for (section, most) in sections.iter().zip(&mut most) {
                *most = compared.places(section).len().max(*most);
            }
        }
    }
    let texts = sections.iter().zip(most);
    let row =
        |(section, most): (&Section, usize)| (section.to_string(), section.len() as usize, most);
    Ok(texts.map(row).collect())
}

/// Sections as texts; each is as small as can be.
fn smallest(nest: &Nest, want: &[&str]) {
    let sections = check(nest).expect("it can be staged");
    for (text, len, most) in &sections {
        assert_eq!(len, most, "{text}");
    }
    let texts: Vec<_> = sections.iter().map(|(text, ..)| text.as_str()).collect();
    assert_eq!(texts, want);
}

fn nest(
    loops: &[Turns],
    stages: usize,
    reads: &[(&[i64], i64)],
    [blocks, threads]: [&[u32]; 2],
) -> Nest {
    let reads = reads
        .iter()
        .map(|(factors, number)| Expr(factors.to_vec(), *number));
    Nest {
        loops: loops.to_vec(),
        stages,
        reads: reads.collect(),
        blocks: blocks.to_vec(),
        threads: threads.to_vec(),
    }
}

#[test]
fn sections_of_one_loop() {
    // hiCUDA's figure 8: three threads that read `x[i - 1..=i + 1]` share five elements.
    for over_blocks in [None, BLOCK, CYCLIC] {
        let one = [turns(11, over_blocks, true)];
        let grid: [&[u32]; 2] = [&[2], &[3]];
        let of =
            |reads: &[(&[i64], i64)], want: &str| smallest(&nest(&one, 0, reads, grid), &[want]);
        of(
            &[(&[1], 0), (&[1], 1), (&[1], 2)],
            "`x` in loop 0: 5 elements, strides 1",
        );
        of(&[(&[2], 0)], "`x` in loop 0: 3 elements, strides 2");
        of(
            &[(&[2], 0), (&[2], 1)],
            "`x` in loop 0: 6 elements, strides 1",
        );
        of(
            &[(&[2], 4), (&[2], 0)],
            "`x` in loop 0: 5 elements, strides 2",
        );
        of(&[(&[-1], 12)], "`x` in loop 0: 3 elements, strides 1");
        of(&[(&[0], 7)], "`x` in loop 0: 1 element");
        // With others between.
        of(
            &[(&[4], 0), (&[4], 1)],
            "`x` in loop 0: 3 x 2 elements, strides 4 x 1",
        );
    }
    // As many as there are turns, where these are fewer than threads.
    let few = [turns(5, BLOCK, true)];
    smallest(
        &nest(&few, 0, &[(&[1], 0)], [&[2], &[8]]),
        &["`x` in loop 0: 3 elements, strides 1"],
    );
    // Of different origins, each its own.
    let both = nest(&few, 0, &[(&[1], 0), (&[3], 0), (&[1], 1)], [&[1], &[4]]);
    smallest(
        &both,
        &[
            "`x` in loop 0: 5 elements, strides 1",
            "`x` in loop 0: 4 elements, strides 3",
        ],
    );
}

#[test]
fn sections_of_nests() {
    let two = [turns(7, BLOCK, true), turns(9, CYCLIC, true)];
    let grid: [&[u32]; 2] = [&[2, 2], &[2, 4]];
    // A stencil in rows of 20, and its transposition.
    let around: &[(&[i64], i64)] = &[
        (&[20, 1], 21),
        (&[20, 1], 20),
        (&[20, 1], 22),
        (&[20, 1], 1),
        (&[20, 1], 41),
    ];
    let stencil = check(&nest(&two, 1, around, grid)).expect("it can be staged");
    // The corners are not read.
    assert_eq!(
        stencil,
        [(
            "`x` in loop 1: 4 x 6 elements, strides 20 x 1".to_owned(),
            24,
            20
        )]
    );
    smallest(
        &nest(&two, 1, &[(&[1, 20], 0)], grid),
        &["`x` in loop 1: 4 x 2 elements, strides 20 x 1"],
    );
    let inner = [turns(7, BLOCK, true), turns(9, None, true)];
    smallest(
        &nest(&inner, 0, &[(&[20, 1], 0)], grid),
        &["`x` in loop 0: 2 x 9 elements, strides 20 x 1"],
    );
    // A product's first matrix, in parts of 4 columns, and its second one.
    let mut part = turns(4, None, false);
    part.start = Expr(vec![0, 0, 1], 0);
    let mut parts = turns(3, None, false);
    parts.step = 4;
    let product = [two[0].clone(), two[1].clone(), parts, part];
    smallest(
        &nest(&product, 2, &[(&[12, 0, 0, 1], 0)], grid),
        &["`x` in loop 2: 2 x 4 elements, strides 12 x 1"],
    );
    smallest(
        &nest(&product, 2, &[(&[0, 1, 0, 9], 0)], grid),
        &["`x` in loop 2: 4 x 4 elements, strides 9 x 1"],
    );
    // Of a loop that is not distributed, all turns within; around, the turn at hand.
    let rows = [turns(5, CYCLIC, false), turns(6, None, true)];
    smallest(
        &nest(&rows, 0, &[(&[6, 1], 0)], [&[2], &[4]]),
        &["`x` in loop 0: 6 elements, strides 1"],
    );
    smallest(
        &nest(&rows, 1, &[(&[6, 1], 0)], [&[2], &[4]]),
        &["`x` in loop 1: 4 elements, strides 1"],
    );
    // Windows that overlap.
    let windows = [turns(6, BLOCK, true), turns(3, None, false)];
    smallest(
        &nest(&windows, 0, &[(&[2, 1], 0)], [&[2], &[3]]),
        &["`x` in loop 0: 7 elements, strides 1"],
    );
}

/// Numbers from a seed (xorshift64).
struct Numbers(u64);

impl Numbers {
    fn within(&mut self, low: i64, high: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        low + (self.0 >> 11) as i64 % (high - low + 1)
    }
}

#[test]
fn random_sections_hold_what_is_read() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let (mut staged, mut several) = (0, 0);
    for _ in 0..2000 {
        let depth = numbers.within(1, 3) as usize;
        let stages = numbers.within(0, depth as i64 - 1) as usize;
        let mut loops = Vec::new();
        for number in 0..depth {
            let over_blocks = [None, BLOCK, CYCLIC][numbers.within(0, 2) as usize];
            let mut held = turns(numbers.within(1, 5), over_blocks, numbers.within(0, 1) == 1);
            held.step = [1, 2, -1][numbers.within(0, 2) as usize];
            if number <= stages && held.step > 0 {
                held.jam = numbers.within(1, 3) as u32;
            }
            let factors = (0..number).map(|_| numbers.within(0, 3) / 2);
            held.start = Expr(factors.collect(), numbers.within(0, 3));
            loops.push(held);
        }
        let reads = (0..numbers.within(1, 3)).map(|_| {
            let factors = (0..depth).map(|_| numbers.within(-1, 4)).collect();
            Expr(factors, numbers.within(0, 6))
        });
        let nest = Nest {
            reads: reads.collect(),
            loops,
            stages,
            blocks: vec![2; 3],
            threads: vec![3, 2, 1],
        };
        match check(&nest) {
            Ok(sections) => {
                staged += 1;
                several += usize::from(sections.len() < nest.reads.len());
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("is distributed over blocks"), "{text}");
            }
        }
    }
    assert!(staged > 1000 && several > 100, "{staged} {several}");
}
