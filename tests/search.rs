//! Schedules that are looked for: which are tried, which is found, and what a later search finds again.

use std::cell::Cell;
use std::time::Duration;

use expect_test::expect;
use kiln::core::cache::CacheFolder;
use kiln::core::job::CompileOptions;
use kiln::directives::{Budget, Known, Program, Schedule, marks};
use kiln::prelude::*;

fn product() -> kiln::Result<Program> {
    #[device_fn]
    fn product(a: &[f32], b: &[f32], c: &mut [f32], n: usize) {
        marks::partition(1, 1);
        for i in 0..n {
            marks::partition(1, 1);
            marks::jam(2);
            for j in 0..n {
                let mut sum = 0.0;
                marks::shared(a.len() as u32);
                marks::shared(b.len() as u32);
                marks::tile(16);
                for k in 0..n {
                    sum += a[i * n + k] * b[k * n + j];
                }
                c[i * n + j] = sum;
            }
        }
    }
    Program::of(&DeviceFn::of::<product>()?)
}

const N: u64 = 64;
const KNOWN: [Known; 4] = [
    Known::Length(N * N),
    Known::Length(N * N),
    Known::Length(N * N),
    Known::Number(N as i128),
];
const BUDGET: Budget = Budget {
    time: Duration::from_secs(3600),
    trials: 1000,
};

#[test]
fn variants_have_as_many_blocks_as_there_is_work_for() -> kiln::Result<()> {
    let program = product()?;
    let schedule = program.schedule(&[4, 2], &[16, 16]);
    let variants = program.variants(&schedule, &KNOWN);
    assert_eq!(variants[0], schedule);
    for held in &variants {
        let jam = held.loops[1].jam.expect("all have one");
        let blocks = [
            64u32.div_ceil(held.threads[0]),
            64u32.div_ceil(held.threads[1] * jam),
        ];
        assert_eq!(held.blocks, blocks, "{held}");
        assert_eq!(held.to_string().parse(), Ok(held.clone()));
    }
    let is = |y, x, tile, jam| {
        move |held: &&Schedule| {
            let loops = &held.loops;
            (held.threads.as_slice(), loops[2].tile, loops[1].jam)
                == (&[y, x], Some(tile), Some(jam))
        }
    };
    for (y, x, tile, jam) in [(8, 32, 32, 4), (2, 32, 8, 1), (32, 32, 64, 8)] {
        assert_eq!(variants.iter().filter(is(y, x, tile, jam)).count(), 1);
    }
    // Of a grid that covers nothing, blocks stay.
    let few = program.schedule(&[1, 1], &[16, 16]);
    assert!(
        program
            .variants(&few, &KNOWN)
            .iter()
            .all(|held| held.blocks == [1, 1])
    );
    Ok(())
}

/// A time for each schedule, by its threads: that of blocks of 8 by 32 is the least.
fn pretended(block: Dim3) -> Duration {
    Duration::from_micros(u64::from(100 + block.x.abs_diff(32) + block.y.abs_diff(8)))
}

#[test]
fn the_best_one_is_found_and_kept() -> kiln::Result<()> {
    let folder = std::env::temp_dir().join(format!("kiln-search-{}", std::process::id()));
    let jit = |cache| Jit::builder().device(Device::cpu()).cache(cache).build();
    let program = product()?;
    let mut schedule = program.schedule(&[4, 2], &[16, 16]);
    schedule.loops[2].tile = None;
    let variants = program.variants(&schedule, &KNOWN);
    let measured = Cell::new(0);
    let search = |jit: &Jit, budget| {
        program.search(jit, &variants, &KNOWN, budget, |scheduled| {
            measured.set(measured.get() + 1);
            Ok(pretended(scheduled.block()))
        })
    };
    let first = search(&jit(CacheFolder::At(folder.clone()))?, BUDGET)?;
    assert_eq!(first.schedule.threads, [8, 32]);
    let tried = first.trials.len();
    assert_eq!(tried, variants.len());
    // Without the folder it is looked for again, no longer than is said.
    let few = Budget {
        trials: 3,
        ..BUDGET
    };
    let second = search(&jit(CacheFolder::Off)?, few)?;
    let launched = second.trials.iter().filter(|trial| trial.outcome.is_ok());
    assert_eq!(launched.count(), 3);
    let kept = search(&jit(CacheFolder::At(folder.clone()))?, BUDGET)?;
    assert_eq!((kept.schedule, kept.trials.len()), (first.schedule, 0));
    let accepted = first.trials.iter().filter(|trial| trial.outcome.is_ok());
    assert_eq!(measured.get(), accepted.count() + 3);
    // Kernels that are compiled otherwise may have another best schedule.
    let mut otherwise = CompileOptions::default();
    otherwise.contract = !otherwise.contract;
    let cache = CacheFolder::At(folder.clone());
    let builder = Jit::builder().device(Device::cpu()).cache(cache);
    let other = search(&builder.compile(otherwise).build()?, few)?;
    assert!(!other.trials.is_empty());
    // What is no schedule is not used.
    for file in std::fs::read_dir(folder.join("schedules")).expect("it is there") {
        std::fs::write(file.expect("it is there").path(), "tblock(1)").expect("it is ours");
    }
    let again = search(&jit(CacheFolder::At(folder.clone()))?, few)?;
    assert!(!again.trials.is_empty());
    let _ = std::fs::remove_dir_all(folder);
    Ok(())
}

#[test]
fn what_is_refused_is_told() -> kiln::Result<()> {
    #[device_fn]
    fn sums(x: &mut [u32], n: usize) {
        marks::partition(1, 1);
        for i in 1..n {
            x[i] += x[i - 1];
        }
    }
    let program = Program::of(&DeviceFn::of::<sums>()?)?;
    let known = [Known::Length(100), Known::Number(100)];
    let jit = Jit::builder()
        .device(Device::cpu())
        .cache(CacheFolder::Off)
        .build()?;
    let search = |schedules: &[Schedule]| {
        let found = program.search(&jit, schedules, &known, BUDGET, |_| Ok(Duration::ZERO));
        found.map(|found| found.schedule.to_string())
    };
    let [wrong, right] = [32, 1].map(|threads| program.schedule(&[1], &[threads]));
    assert_eq!(search(&[wrong.clone(), right.clone()])?, right.to_string());
    let errors = [search(&[wrong]), search(&[])];
    let errors = errors.map(|error| error.expect_err("none is right").to_string());
    expect![[r#"
        none of 1 schedules was launched; of the first one that was not: the write at tests/search.rs:141:13 and the read at tests/search.rs:141:21 use one element of `x`, in iterations of the loop at tests/search.rs:140:9 that follow one another, and under `tblock(1) thread(32) loop 0: over_tblock(BLOCK) over_thread` different threads do so in any order: leave that loop sequential, or let its iterations use elements of their own
        none of 0 schedules was launched; of the first one that was not: none was given"#]].assert_eq(&errors.join("\n"));
    Ok(())
}

/// The time of a launch is that of one, whatever it is.
#[test]
fn launches_are_timed() -> kiln::Result<()> {
    let program = product()?;
    let schedule = program.schedule(&[4, 2], &[16, 16]);
    let scheduled = program.apply_for(&schedule, &KNOWN)?;
    let jit = Jit::builder()
        .device(Device::cpu())
        .cache(CacheFolder::Off)
        .build()?;
    let len = (N * N) as usize;
    let (a, b) = (
        jit.upload(&vec![1.0f32; len])?,
        jit.upload(&vec![2.0f32; len])?,
    );
    let mut c = jit.zeros::<f32>(len)?;
    let time = scheduled.time(&jit, args!(&a, &b, &mut c, N as u32))?;
    assert!(time > Duration::ZERO && time < Duration::MAX);
    assert_eq!(c.to_vec()?, vec![2.0 * N as f32; len]);
    Ok(())
}
