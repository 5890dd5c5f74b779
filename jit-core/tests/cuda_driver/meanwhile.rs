//! What other threads do while the driver takes a launch of one: the fake driver holds it, and says afterwards whether
//! what was launched meanwhile is in order.

use std::sync::mpsc::channel;
use std::thread::{self, yield_now};
use std::time::{Duration, Instant};

use kiln::core::jit::Stream;
use kiln::prelude::*;

use crate::fake::Fake;

/// For how long is waited for what should come, and for what should not.
const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(60);

#[kernel]
fn uses_r(x: &[u32]) {
    let _ = x;
}

#[kernel]
fn uses_r_held(x: &[u32]) {
    let _ = x;
}

#[kernel]
fn uses_w(x: &mut [u32]) {
    x[0] = 1;
}

#[kernel]
fn uses_w_held(x: &mut [u32]) {
    x[0] = 2;
}

#[kernel]
fn uses_rw(x: &[u32], y: &mut [u32]) {
    y[0] = x[0];
}

/// A first launch of which compiles.
#[kernel]
fn uses_w_new(x: &mut [u32]) {
    x[0] = 3;
}

/// A device of the fake driver, and streams of it that other threads have.
struct World {
    fake: Fake,
    jit: Jit,
    one: Stream,
    other: Stream,
}

impl World {
    fn new() -> kiln::Result<World> {
        let fake = Fake::new();
        let jit = Jit::on(Device::cuda_of(fake.open().expect("it opens"), 0)?);
        fake.set_lazy(true);
        let (one, other) = (jit.stream()?, jit.stream()?);
        // What is held shall be launches, not the compilation of what is launched.
        let mut x = jit.zeros::<u32>(4)?;
        uses_r.launch(&jit, (1, 1), &x)?;
        uses_r_held.launch(&jit, (1, 1), &x)?;
        uses_w.launch(&jit, (1, 1), &mut x)?;
        uses_w_held.launch(&jit, (1, 1), &mut x)?;
        Ok(World {
            fake,
            jit,
            one,
            other,
        })
    }

    /// Whether `then` ends while the driver holds what `held` launches, each in a thread of its own. What the driver
    /// holds it lets go in any case, and both end.
    fn goes_on(
        &self,
        wait: Duration,
        held: impl FnOnce() -> kiln::Result<()> + Send,
        then: impl FnOnce() -> kiln::Result<()> + Send,
    ) -> kiln::Result<bool> {
        self.fake.set_holds(true);
        let (done, is_done) = channel();
        thread::scope(|scope| {
            let held = scope.spawn(held);
            while self.fake.held() == 0 && !held.is_finished() {
                yield_now();
            }
            let then = scope.spawn(move || {
                let result = then();
                // Nobody may wait any more.
                let _ = done.send(());
                result
            });
            let goes_on = is_done.recv_timeout(wait).is_ok();
            assert!(!held.is_finished(), "the driver holds it");
            self.fake.set_holds(false);
            held.join().expect("nobody panics")?;
            then.join().expect("nobody panics")?;
            assert_eq!(self.fake.race(), None);
            Ok(goes_on)
        })
    }
}

#[test]
fn no_lock_is_held_while_the_driver_takes_a_launch() -> kiln::Result<()> {
    let world = World::new()?;
    let World {
        jit, one, other, ..
    } = &world;
    let x = jit.zeros::<u32>(4)?;
    let (mut written, mut y) = (jit.zeros::<u32>(4)?, jit.zeros::<u32>(4)?);
    let goes_on = world.goes_on(
        LONG,
        || uses_w_held.launch(one, (1, 1), &mut written),
        || {
            // In another stream, in the same one, in the device's own; a kernel that is compiled now.
            for jit in [&**other, one, jit] {
                uses_w.launch(jit, (1, 1), &mut y)?;
                uses_r.launch(jit, (1, 1), &x)?;
                jit.launch(&uses_w, 1, 1, args!(&mut y))?;
                let ready = jit.compile(&uses_w, args!(&mut y))?;
                ready.launch(1, 1, args!(&mut y))?;
            }
            uses_w_new.launch(jit, (1, 1), &mut y)?;
            y.to_vec()?;
            y.write(&[1])?;
            drop(jit.zeros::<u32>(4)?);
            drop(jit.stream()?);
            assert!(jit.cache_stats().hits > 0);
            Ok(())
        },
    )?;
    assert!(goes_on);
    Ok(())
}

#[test]
fn launches_of_buffers_that_threads_share_wait_where_they_conflict() -> kiln::Result<()> {
    let world = World::new()?;
    let World {
        jit, one, other, ..
    } = &world;
    let (mut x, mut y) = (jit.zeros::<u32>(8)?, jit.zeros::<u32>(8)?);
    let ((left, right), (of_y, _)) = (x.split_at_mut(4), y.split_at_mut(4));
    let goes_on = world.goes_on(
        LONG,
        || uses_w_held.launch(one, (1, 1), &mut *left),
        || {
            uses_w.launch(other, (1, 1), &mut *of_y)?;
            of_y.write(&[7])?;
            uses_r.launch(other, (1, 1), &*of_y)
        },
    )?;
    assert!(goes_on, "they share nothing");
    let goes_on = world.goes_on(
        LONG,
        || uses_r_held.launch(one, (1, 1), &*left),
        || uses_r.launch(other, (1, 1), &*right),
    )?;
    assert!(goes_on, "both read");
    let goes_on = world.goes_on(
        SHORT,
        || uses_w_held.launch(one, (1, 1), &mut *left),
        || uses_w.launch(other, (1, 1), &mut *right),
    )?;
    assert!(!goes_on, "what is not given yet no event is behind");
    let goes_on = world.goes_on(
        SHORT,
        || uses_r_held.launch(one, (1, 1), &*left),
        || uses_w.launch(other, (1, 1), &mut *right),
    )?;
    assert!(!goes_on, "one writes");
    Ok(())
}

/// Threads that each copy from one shared buffer to another, to and fro.
#[test]
fn threads_that_share_two_buffers_do_not_wait_for_each_other_for_ever() -> kiln::Result<()> {
    let world = World::new()?;
    let (jit, (mut x, mut y)) = (
        &world.jit,
        (world.jit.zeros::<u32>(8)?, world.jit.zeros::<u32>(8)?),
    );
    world.fake.set_slow(true);
    let ((to_y, from_y), (from_x, to_x)) = (x.split_at_mut(4), y.split_at_mut(4));
    uses_rw.launch(jit, (1, 1), &*to_y, &mut *from_x)?;
    let copy = |stream: &Stream, from: &Part<u32>, to: &mut Part<u32>| -> kiln::Result<()> {
        for _ in 0..100 {
            uses_rw.launch(stream, (1, 1), from, to)?;
            to.copy_from(from)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let one = scope.spawn(|| copy(&world.one, to_y, from_x));
        let other = scope.spawn(|| copy(&world.other, to_x, from_y));
        one.join().expect("nobody panics")?;
        other.join().expect("nobody panics")
    })?;
    assert_eq!(world.fake.race(), None);
    Ok(())
}

/// Threads with a stream each that read parts of one buffer: the driver has a launch of each at the same time.
#[test]
fn threads_that_read_a_shared_buffer_launch_at_once() -> kiln::Result<()> {
    const THREADS: u64 = 16;
    let world = World::new()?;
    let streams = (0..THREADS).map(|_| world.jit.stream());
    let streams: Vec<_> = streams.collect::<kiln::Result<_>>()?;
    let mut x = world.jit.zeros::<u32>(8)?;
    let (left, _) = x.split_at_mut(4);
    let left = &*left;
    world.fake.set_holds(true);
    let most = thread::scope(|scope| {
        for stream in &streams {
            let launch = || uses_r_held.launch(stream, (1, 1), left);
            scope.spawn(move || launch().expect("a launch"));
        }
        let begun = Instant::now();
        while world.fake.held() < THREADS && begun.elapsed() < LONG {
            yield_now();
        }
        let most = world.fake.held();
        world.fake.set_holds(false);
        most
    });
    assert_eq!(most, THREADS);
    assert_eq!(world.fake.race(), None);
    Ok(())
}
