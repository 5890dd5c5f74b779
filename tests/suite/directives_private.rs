//! Slices of which each iteration has elements of its own, beside the functions as they are written, and random ones beside those
//! that are found by trial to be written before they are read.

use kiln::directives::{DirectiveError, Known, Program, Slices, marks};
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    medians,
    counts_of_iterations,
    elements_one_by_one,
    iterations_side_by_side,
    iterations_that_meet,
    two_loops_with_elements_of_their_own,
    slices_without_elements,
    what_iterations_had_is_gone,
    random_uses_of_a_slice,
];

fn numbers(len: usize) -> Vec<u32> {
    (0..len as u32).map(|i| i * 7 % 23 + 1).collect()
}

/// The middle one of five neighbours, which are sorted in one vector.
#[kiln::offload]
fn median(x: &[u32], y: &mut [u32], n: usize) {
    let mut window: Vec<u32> = vec![0; 5];
    global!(alloc window);
    #[kernel(tblock(3), thread(32))]
    {
        #[loop_partition(over_tblock, over_thread)]
        #[loop_transform(privatize(window))]
        for i in 2..n {
            for k in 0..5usize {
                window[k] = x[i + k - 2];
            }
            for a in 0..4usize {
                for b in 0..4 - a {
                    let (left, right) = (window[b], window[b + 1]);
                    if left > right {
                        window[b] = right;
                        window[b + 1] = left;
                    }
                }
            }
            y[i] = window[2];
        }
    }
}

fn medians(jit: &Jit) -> Outcome {
    for n in [2, 3, 33, 100, 200] {
        let (x, mut y) = (numbers(n + 2), vec![0; n]);
        let mut z = y.clone();
        let ((), report) = median.launch_reported(jit, &x, &mut y, n)?;
        median.sequential(&x, &mut z, n);
        assert_eq!(y, z, "{n}");
        assert!(report.launches[0].to_string().contains("privatize("));
    }
    Ok(())
}

/// Elements that nobody knows, of a slice all of which is written first.
#[kiln::offload]
fn counted(x: &[u32], most: &mut [u32], n: usize, m: usize) {
    let mut bins: Vec<u32> = vec![0; 7];
    global!(alloc bins);
    #[kernel(tblock(2), thread(64))]
    {
        #[loop_partition(over_tblock, over_warp)]
        #[loop_transform(privatize(bins))]
        for i in 0..n {
            for k in 0..bins.len() {
                bins[k] = 0;
            }
            for j in 0..m {
                bins[(x[i * m + j] % 7) as usize] += 1;
            }
            let mut largest = 0;
            for k in 0..bins.len() {
                largest = largest.max(bins[k]);
            }
            most[i] = largest;
        }
    }
}

fn counts_of_iterations(jit: &Jit) -> Outcome {
    for (n, m) in [(0, 3), (1, 0), (5, 40), (9, 33)] {
        let (x, mut most) = (numbers(n * m), vec![0; n]);
        let mut wanted = most.clone();
        counted.launch(jit, &x, &mut most, n, m)?;
        counted.sequential(&x, &mut wanted, n, m);
        assert_eq!(most, wanted, "{n} {m}");
    }
    Ok(())
}

/// A slice with a written element, and one that another one has.
#[kiln::offload]
fn pointwise(x: &[f32], y: &mut [f32], n: usize) {
    let mut point: Vec<f32> = vec![0.0; 3];
    global!(alloc point);
    #[kernel(tblock(2), thread(4, 8))]
    {
        #[loop_partition(over_tblock(CYCLIC), over_thread)]
        for i in (0..n).rev() {
            #[loop_partition(over_thread)]
            #[loop_transform(privatize(point))]
            for j in 0..5usize {
                point[0] = x[i];
                point[1] = 2.0;
                point[2] = point[0] + point[1] * j as f32;
                let mut sum = 0.0;
                for k in 0..3usize {
                    if i % 2 == 0 {
                        sum += point[k];
                    }
                }
                y[i * 5 + j] = sum;
            }
        }
    }
}

fn elements_one_by_one(jit: &Jit) -> Outcome {
    for n in [0, 1, 17, 40] {
        let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let (mut y, mut z) = (vec![0.0; n * 5], vec![0.0; n * 5]);
        pointwise.launch(jit, &x, &mut y, n)?;
        pointwise.sequential(&x, &mut z, n);
        assert_eq!(y, z, "{n}");
    }
    Ok(())
}

/// Each of three iterations of a thread has its own.
#[kiln::offload]
fn beside(x: &[u32], y: &mut [u32], n: usize) {
    let mut pair: Vec<u32> = vec![0; 2];
    global!(alloc pair);
    #[kernel(tblock(2), thread(16))]
    {
        #[loop_partition(over_tblock, over_thread, coarsen(3))]
        #[loop_transform(privatize(pair))]
        for i in 0..n {
            pair[0] = x[i];
            pair[1] = pair[0] * 3;
            for k in 0..4usize {
                pair[k % 2] += pair[1 - k % 2];
            }
            y[i] = pair[0] + pair[1];
        }
    }
}

fn iterations_side_by_side(jit: &Jit) -> Outcome {
    for n in [0, 1, 31, 96, 100, 131] {
        let (x, mut y) = (numbers(n), vec![0; n]);
        let mut z = y.clone();
        beside.launch(jit, &x, &mut y, n)?;
        beside.sequential(&x, &mut z, n);
        assert_eq!(y, z, "{n}");
    }
    Ok(())
}

/// Elements of an iteration's own before and behind a barrier, beside slices that are staged.
#[kiln::offload]
fn met(x: &[u32], y: &mut [u32], n: usize, m: usize) {
    let mut row: Vec<u32> = vec![0; 4];
    global!(alloc row);
    #[kernel(tblock(2), thread(32))]
    {
        #[loop_partition(over_tblock, over_thread)]
        #[loop_transform(privatize(row))]
        for i in 0..n {
            for k in 0..4usize {
                row[k] = i as u32 + k as u32;
            }
            #[shared(copyin(x))]
            for j in 0..m {
                row[j % 4] += x[i + j];
            }
            y[i] = row[0] + 2 * row[1] + 3 * row[2] + 4 * row[3];
        }
    }
}

fn iterations_that_meet(jit: &Jit) -> Outcome {
    for (n, m) in [(0, 2), (1, 0), (33, 5), (100, 9)] {
        let (x, mut y) = (numbers(n + m), vec![0; n]);
        let mut z = y.clone();
        met.launch(jit, &x, &mut y, n, m)?;
        met.sequential(&x, &mut z, n, m);
        assert_eq!(y, z, "{n} {m}");
    }
    Ok(())
}

/// One vector for two loops, and for two regions.
#[kiln::offload]
fn twice(x: &mut [u32], y: &mut [u32], n: usize) {
    let mut own: Vec<u32> = vec![0; 3];
    global!(alloc own);
    #[kernel(tblock(2), thread(32), nowait)]
    {
        #[loop_partition(over_tblock, over_thread)]
        #[loop_transform(privatize(own))]
        for i in 0..n {
            own[1] = x[i];
            x[i] = own[1] + 1;
        }
        #[loop_partition(over_tblock, over_thread)]
        #[loop_transform(privatize(own))]
        for i in 0..n {
            own[2] = x[i] * 2;
            y[i] = own[2];
        }
    }
    global!(alloc own);
    #[kernel(tblock(2), thread(32))]
    {
        #[loop_partition(over_tblock, over_thread)]
        #[loop_transform(privatize(own), tile(2))]
        for i in 0..n {
            own[0] = y[i];
            y[i] = own[0] + 1;
        }
    }
}

fn two_loops_with_elements_of_their_own(jit: &Jit) -> Outcome {
    for n in [0, 1, 64, 77] {
        let (mut x, mut y) = (numbers(n), vec![0; n]);
        let (mut u, mut v) = (x.clone(), y.clone());
        twice.launch(jit, &mut x, &mut y, n)?;
        twice.sequential(&mut u, &mut v, n);
        assert_eq!((x, y), (u, v), "{n}");
    }
    Ok(())
}

/// A slice that has no elements has none to read.
#[kiln::offload]
fn nothing(y: &mut [u32], n: usize, len: usize) {
    let mut own: Vec<u32> = vec![0; len];
    global!(alloc own);
    #[kernel(tblock(1), thread(32))]
    {
        #[loop_partition(over_thread)]
        #[loop_transform(privatize(own))]
        for i in 0..n {
            for k in 0..own.len() {
                own[k] = i as u32;
            }
            let mut sum = 1;
            for k in 0..own.len() {
                sum += own[k];
            }
            y[i] = sum;
        }
    }
}

fn slices_without_elements(jit: &Jit) -> Outcome {
    for len in [0, 1, 3] {
        let (mut y, mut z) = (vec![0; 40], vec![0; 40]);
        nothing.launch(jit, &mut y, 40, len)?;
        nothing.sequential(&mut z, 40, len);
        assert_eq!(y, z, "{len}");
    }
    Ok(())
}

/// A region behind the one whose iterations had elements of their own reads one.
#[kiln::offload]
fn left_over(y: &mut [u32], n: usize) {
    let mut own: Vec<u32> = vec![0; 1];
    #[kernel(tblock(1), thread(32))]
    {
        #[loop_partition(over_thread)]
        #[loop_transform(privatize(own))]
        for i in 0..n {
            own[0] = i as u32;
            y[i] = own[0];
        }
    }
    #[kernel(tblock(1), thread(32))]
    {
        #[loop_partition(over_thread)]
        for i in 0..n {
            y[i] += own[0];
        }
    }
}

/// The slice is the caller's.
#[kiln::offload]
fn given_back(own: &mut [u32], y: &mut [u32], n: usize) {
    #[kernel(tblock(1), thread(32))]
    {
        #[loop_partition(over_thread)]
        #[loop_transform(privatize(own))]
        for i in 0..n {
            own[0] = i as u32;
            y[i] = own[0];
        }
    }
}

fn what_iterations_had_is_gone(jit: &Jit) -> Outcome {
    let errors = [
        left_over.launch(jit, &mut [0; 40], 40),
        given_back.launch(jit, &mut [0; 1], &mut [0; 40], 40),
    ];
    for error in errors {
        let text = error.expect_err("nobody has it").to_string();
        assert_eq!(text, GONE);
    }
    Ok(())
}

/// What is said of a slice whose elements nobody has.
const GONE: &str = "`own` is used behind a region that says `privatize(own)`, with which its elements are nowhere but in memory of threads: \
                    let it be a vector of the function's own that nothing else reads, or take the clause away";

/// Numbers from a seed (xorshift64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % end) as u32
    }
}

/// How many elements the slice of random programs has.
const LEN: u32 = 6;

/// A statement of a random iteration.
#[derive(Debug)]
enum Step {
    /// A loop that writes elements `first + k * apart`, or adds to them, or adds them to the sum of the iteration.
    Elements {
        what: What,
        first: u32,
        apart: u32,
        count: u32,
    },
    /// Steps in a loop of so many turns.
    Repeated(u32, Vec<Step>),
    /// Steps of iterations with an even number.
    Sometimes(Vec<Step>),
}

#[derive(Copy, Clone, Debug)]
enum What {
    Write,
    Add,
    Read,
}

impl Step {
    fn random(numbers: &mut Numbers, depth: u32) -> Vec<Step> {
        let step = |numbers: &mut Numbers| match numbers.below(8) {
            0 if depth < 2 => Step::Repeated(numbers.below(3), Step::random(numbers, depth + 1)),
            1 if depth < 2 => Step::Sometimes(Step::random(numbers, depth + 1)),
            kind => {
                let what = match kind {
                    2..5 => What::Write,
                    5 => What::Add,
                    _ => What::Read,
                };
                let apart = 1 + numbers.below(2);
                let first = numbers.below(2);
                let room = (LEN - first).div_ceil(apart);
                let count = match numbers.below(2) {
                    0 => room,
                    _ => numbers.below(u64::from(room) + 1),
                };
                Step::Elements {
                    what,
                    first,
                    apart,
                    count,
                }
            }
        };
        (0..1 + numbers.below(3)).map(|_| step(numbers)).collect()
    }

    fn build<'k>(&self, k: &'k KernelBuilder, own: Val<'k>, (i, sum): (Val<'k>, Var<'k>)) {
        match self {
            Step::Elements {
                what,
                first,
                apart,
                count,
            } => {
                k.for_loop(0u32, *count, 1u32, Unroll::Auto, |turn| {
                    let place = own.at(turn * *apart + *first);
                    match what {
                        What::Write => place.set(turn * 5 + i),
                        What::Add => place.set(place.get() + i),
                        What::Read => sum.set(sum.get() * 3 + place.get()),
                    }
                });
            }
            Step::Repeated(turns, steps) => {
                k.for_loop(0u32, *turns, 1u32, Unroll::Auto, |_| {
                    steps.iter().for_each(|step| step.build(k, own, (i, sum)));
                });
            }
            Step::Sometimes(steps) => {
                k.if_((i % 2u32).eq(0u32), || {
                    steps.iter().for_each(|step| step.build(k, own, (i, sum)));
                });
            }
        }
    }

    /// What an iteration does; whether it reads what it has not written.
    fn execute(&self, i: u32, own: &mut [Option<u32>], sum: &mut u32) -> bool {
        match self {
            Step::Elements {
                what,
                first,
                apart,
                count,
            } => (0..*count).fold(false, |wrong, turn| {
                let place = &mut own[(turn * apart + first) as usize];
                let is_wrong = place.is_none() && !matches!(what, What::Write);
                match what {
                    What::Write => *place = Some(turn * 5 + i),
                    What::Add => *place = place.map(|value| value + i),
                    What::Read => *sum = sum.wrapping_mul(3).wrapping_add(place.unwrap_or(0)),
                }
                wrong || is_wrong
            }),
            Step::Repeated(turns, steps) => {
                (0..*turns).fold(false, |wrong, _| execute(steps, i, own, sum) || wrong)
            }
            Step::Sometimes(steps) => i.is_multiple_of(2) && execute(steps, i, own, sum),
        }
    }
}

fn execute(steps: &[Step], i: u32, own: &mut [Option<u32>], sum: &mut u32) -> bool {
    let mut wrong = false;
    for step in steps {
        wrong |= step.execute(i, own, sum);
    }
    wrong
}

fn program_of(steps: &[Step]) -> kiln::Result<Program> {
    let region = DeviceFn::build("steps", |k| {
        let (own, out) = (k.slice_mut("own", Type::U32), k.slice_mut("out", Type::U32));
        marks::partition::build(k, marks::BLOCK, marks::THREADS);
        marks::privatize::build(k, own.len());
        k.for_loop(0u32, out.len(), 1u32, Unroll::Auto, |i| {
            let sum = k.var("sum", k.lit(Type::U32, 1));
            steps.iter().for_each(|step| step.build(k, own, (i, sum)));
            out.at(i).set(sum.get());
        });
    })?;
    Program::of(&region)
}

/// None that reads what an iteration has not written is accepted, and what is accepted gives what the sequential program does.
fn random_uses_of_a_slice(jit: &Jit) -> Outcome {
    let mut numbers = Numbers(0xbb67_ae85_84ca_a73b);
    let (mut accepted, mut wrong, mut unproved) = (0, 0, 0);
    for number in 0..300 {
        let steps = Step::random(&mut numbers, 0);
        let mut wanted = vec![1; 70];
        let is_wrong = (0..70).fold(false, |wrong, i| {
            let mut own = [None; LEN as usize];
            execute(&steps, i as u32, &mut own, &mut wanted[i]) || wrong
        });
        let program = program_of(&steps)?;
        let schedule = program.schedule(&[2], &[32]);
        assert_eq!(schedule.loops[0].privatized, Slices::default().with(0));
        let known = [Known::Length(LEN.into()), Known::Length(70)];
        match (program.verify(&schedule, &known), is_wrong) {
            (Ok(()), false) => {
                accepted += 1;
                let kernel = program.apply_for(&schedule, &known)?;
                let (mut own, mut out) = (jit.zeros::<u32>(LEN as usize)?, jit.zeros::<u32>(70)?);
                let args = args!(&mut own, &mut out);
                jit.launch(kernel.kernel(), kernel.grid(), kernel.block(), args)?;
                assert_eq!(out.to_vec()?, wanted, "{number}: {steps:#?}");
                // Nobody has written the slice.
                assert_eq!(own.to_vec()?, [0; LEN as usize]);
            }
            (Ok(()), true) => panic!("accepted and wrong: {number}: {steps:#?}"),
            (Err(DirectiveError::Privatized { .. }), true) => wrong += 1,
            (Err(DirectiveError::Privatized { .. }), false) => unproved += 1,
            (Err(error), _) => panic!("{error}: {number}: {steps:#?}"),
        }
    }
    assert!(
        accepted > 50 && wrong > 50 && unproved < 60,
        "{accepted} accepted, {wrong} wrong, {unproved} not proved"
    );
    Ok(())
}
