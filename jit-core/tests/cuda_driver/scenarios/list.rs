//! The scenarios: each does one thing that programs do, and checks what came of it.
//!
//! The fake driver runs no kernels, so that results are those of copies. Each is a test of its own, and a second one
//! that has an error of the first launch, or a later one, come back from a later call.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use kiln::StreamOptions;
use kiln::core::args::IntoArg;
use kiln::core::hook::Hook;
use kiln::core::launch::LaunchConfig;
use kiln::core::lent::{DeviceMemory, LentMut};
use kiln::core::runtime::Buffer;
use kiln::core::runtime::cuda::CudaContext;
use kiln::prelude::*;

use super::{Place, World, play};
use crate::fake::Fake;

pub(super) type Outcome = kiln::Result<()>;

macro_rules! scenarios {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                play(stringify!($name), scenario::$name);
            }
        )*

        /// All of them.
        pub(super) const ALL: &[(&str, super::Scenario)] = &[
            $((stringify!($name), scenario::$name)),*
        ];
    };
}

scenarios![
    allocates
    launches_what_it_names
    launches_with_types
    launches_with_constants
    launches_what_is_prepared
    prepares_for_streams
    orders_streams_by_uses
    asks_for_priorities
    takes_more_streams_than_there_are
    orders_streams_by_events
    measures_time
    is_called_back
    drops_in_a_call
    copies_parts
    copies_on_the_device
    begins_uninitialized
    copies_later
    awaits_copies
    awaits_launches
    gives_copies_up
    has_globals
    has_globals_in_streams
    passes_structs_by_value
    passes_many_arguments
    asks_for_shared_memory
    is_told_faults
    is_told_faults_of_streams
    computes_with_arrays
    reduces_arrays
    observes_launches
    is_told_of_code
    keeps_code_on_disk
    redefines
    drops_in_odd_orders
    launches_from_threads
    adopts_a_context
    is_lent_memory
    gives_memory_away
    runs_out_of_memory
    has_two_devices
    copies_between_devices
    has_two_jits
    waits_for_a_limited_time
    looks_into_kernels
    is_refused_launches
    records_graphs
    replays_graphs_in_streams
    keeps_buffers_in_graphs
    takes_the_best_block
    launches_together
    adopts_streams
    hands_tensors_on
    evicts_code
    is_called_with_faults
    has_shipped_code
    begins_anew
    computes_by_directives
];

#[kernel]
fn nothing() {}

#[kernel]
pub(super) fn add(x: &mut [u32], n: u32) {
    x[thread_idx().x] += n;
}

#[kernel]
fn add_constant<const N: u32>(x: &mut [u32]) {
    x[thread_idx().x] += N;
}

#[kernel]
fn add_other(x: &[u32], y: &mut [u32]) {
    y[thread_idx().x] += x[thread_idx().x];
}

#[repr(C)]
#[derive(Clone, Copy, KernelType)]
struct Table {
    values: [u32; 40],
}

#[kernel]
fn look_up(table: Table, x: &mut [u32]) {
    x[thread_idx().x] = table.values[thread_idx().x % 40];
}

/// What the fake driver knows to write its argument, by its name.
pub(super) fn writes() -> kiln::Result<Kernel> {
    Kernel::build("uses_w", |k| {
        k.slice_mut("x", k.ty::<u32>()).at(0).set(1u32);
    })
}

pub(super) fn copies() -> kiln::Result<Kernel> {
    Kernel::build("uses_rw", |k| {
        let x = k.slice("x", k.ty::<u32>());
        k.slice_mut("y", k.ty::<u32>()).at(0).set(x.at(0));
    })
}

fn counts() -> kiln::Result<Kernel> {
    Kernel::build("counts", |k| {
        let count = k.global("count", &[5u32]).at(0);
        count.set(count.get() + 1u32);
    })
}

pub(super) fn faults() -> kiln::Result<Kernel> {
    Kernel::build("uses_wf", |k| {
        k.slice_mut("x", k.ty::<u32>()).at(9).set(1u32);
    })
}

/// Ends the thread of a kernel that was launched last, at index 9 of 4.
pub(super) fn raise(world: &World<'_>, tag: u64) {
    let claims = || {
        world
            .fake
            .raise_fault(world.fake.last_launch()[7], 0, tag, 9, 4)
    };
    // Where the place for faults could not be made ready, who waits next does so.
    assert!(claims() || world.jit.synchronize().is_ok() && claims());
}

/// Whether this is the error of that, which it must be unless the driver fails meanwhile.
pub(super) fn told(result: Outcome) -> Outcome {
    match result {
        Err(error) if error.to_string().contains("index 9") => Ok(()),
        Ok(()) => panic!("the fault was not told"),
        Err(error) => Err(error),
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn awaited<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        std::thread::park_timeout(Duration::from_secs(5));
    }
}

/// Memory of other code in the device's primary context.
struct Theirs {
    context: Arc<CudaContext>,
    address: u64,
}

impl Theirs {
    fn new(fake: &Fake) -> kiln::Result<Theirs> {
        let driver = fake.open()?;
        let context = CudaContext::with_driver(driver, 0)?;
        let address = context.alloc(16)?;
        Ok(Theirs { context, address })
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        if self.address != 0 && self.context.free(self.address).is_err() {
            let _ = self.context.free(self.address);
        }
    }
}

// SAFETY: it is freed where it is dropped, and read and written by nobody else.
unsafe impl DeviceMemory for Theirs {
    type Element = u32;

    fn address(&self) -> u64 {
        self.address
    }

    fn len(&self) -> usize {
        4
    }
}

mod scenario {
    use super::*;

    // By name, as the tests above have these names, too.
    pub(super) use crate::scenarios::code::{
        begins_anew, evicts_code, has_shipped_code, is_called_with_faults,
    };
    pub(super) use crate::scenarios::launches::{
        computes_by_directives, keeps_buffers_in_graphs, launches_together, records_graphs,
        replays_graphs_in_streams, takes_the_best_block,
    };
    pub(super) use crate::scenarios::others::{adopts_streams, hands_tensors_on};

    pub(super) fn allocates(world: &World<'_>) -> Outcome {
        let x = world.jit.upload(&[1u32, 2, 3])?;
        let y = world.jit.zeros::<u64>(100)?;
        let empty = world.jit.zeros::<u32>(0)?;
        assert_eq!(x.to_vec()?, [1, 2, 3]);
        assert_eq!(y.to_vec()?, [0; 100]);
        assert!(empty.to_vec()?.is_empty());
        world.jit.synchronize()
    }

    pub(super) fn launches_what_it_names(world: &World<'_>) -> Outcome {
        let mut x = world.jit.upload(&[7u32; 32])?;
        for n in 0..3u32 {
            world.jit.launch(&add, 1, 32, args!(&mut x, n))?;
        }
        assert_eq!(world.fake.last_launch()[..6], [1, 1, 1, 32, 1, 1]);
        assert_eq!(x.to_vec()?, [7; 32]);
        world.jit.synchronize()
    }

    pub(super) fn launches_with_types(world: &World<'_>) -> Outcome {
        let mut x = world.jit.upload(&[7u32; 32])?;
        for n in 0..3 {
            add.launch(world.jit, (2, 32), &mut x, n)?;
            nothing.launch(world.jit, (1, 1))?;
        }
        assert_eq!(x.to_vec()?, [7; 32]);
        Ok(())
    }

    pub(super) fn launches_with_constants(world: &World<'_>) -> Outcome {
        let mut x = world.jit.zeros::<u32>(32)?;
        add_constant.launch::<3>(world.jit, (1, 32), &mut x)?;
        add_constant.launch::<4>(world.jit, (1, 32), &mut x)?;
        world.jit.synchronize()
    }

    pub(super) fn launches_what_is_prepared(world: &World<'_>) -> Outcome {
        let mut x = world.jit.zeros::<u32>(32)?;
        let ready = world.jit.compile(&add, args!(&mut x, 1u32))?;
        for n in 0..3u32 {
            ready.launch(1, 32, args!(&mut x, n))?;
        }
        // A function outlives who has asked for it.
        drop(x);
        drop(ready);
        world.jit.synchronize()
    }

    pub(super) fn prepares_for_streams(world: &World<'_>) -> Outcome {
        let stream = world.jit.stream()?;
        let mut x = world.jit.upload(&[4u32; 8])?;
        let ready = world.jit.compile(&writes()?, args!(&mut x))?;
        let there = ready.on(&stream)?;
        ready.launch(1, 1, args!(&mut x))?;
        there.launch(1, 1, args!(&mut x))?;
        assert_eq!(x.to_vec()?, [4; 8]);
        stream.synchronize()
    }

    pub(super) fn orders_streams_by_uses(world: &World<'_>) -> Outcome {
        let streams = [world.jit.stream()?, world.jit.stream()?];
        let (write, copy) = (writes()?, copies()?);
        let mut x = world.jit.upload(&[1u32; 4])?;
        let mut y = world.jit.upload(&[2u32; 4])?;
        streams[0].launch(&write, 1, 1, args!(&mut x))?;
        streams[1].launch(&copy, 1, 1, args!(&x, &mut y))?;
        world.jit.launch(&copy, 1, 1, args!(&y, &mut x))?;
        assert_eq!((x.to_vec()?, y.to_vec()?), (vec![1; 4], vec![2; 4]));
        drop(y);
        streams[0].synchronize()?;
        world.jit.synchronize()
    }

    pub(super) fn asks_for_priorities(world: &World<'_>) -> Outcome {
        let mut x = world.jit.zeros::<u32>(4)?;
        for priority in [-100, -1, 0, 7] {
            let options = StreamOptions::new().priority(priority);
            let stream = world.jit.stream_with(options)?;
            stream.launch(&writes()?, 1, 1, args!(&mut x))?;
        }
        x.to_vec().map(drop)
    }

    pub(super) fn takes_more_streams_than_there_are(world: &World<'_>) -> Outcome {
        let write = writes()?;
        let mut x = world.jit.zeros::<u32>(4)?;
        let mut streams = Vec::new();
        for _ in 0..66 {
            streams.push(world.jit.stream()?);
        }
        for stream in streams.iter().step_by(13) {
            stream.launch(&write, 1, 1, args!(&mut x))?;
        }
        streams.truncate(3);
        let stream = world.jit.stream()?;
        stream.launch(&write, 1, 1, args!(&mut x))?;
        stream.synchronize()
    }

    pub(super) fn orders_streams_by_events(world: &World<'_>) -> Outcome {
        let (one, other) = (world.jit.stream()?, world.jit.stream()?);
        let event = one.record()?;
        other.wait(&event)?;
        let own = world.jit.record()?;
        one.wait(&own)?;
        drop(own);
        event.synchronize()?;
        assert!(event.is_done()? && one.is_done()?);
        other.synchronize()
    }

    pub(super) fn measures_time(world: &World<'_>) -> Outcome {
        let start = world.jit.record()?;
        nothing.launch(world.jit, (1, 32))?;
        let end = world.jit.record()?;
        assert_eq!(start.elapsed_ms(&end)?, 1.5);
        Ok(())
    }

    pub(super) fn is_called_back(world: &World<'_>) -> Outcome {
        let (called, again) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let stream = world.jit.stream()?;
        let (one, other) = (called.clone(), again.clone());
        stream.then(move || one.store(1, Ordering::SeqCst))?;
        let own = world.jit.stream_with(StreamOptions::new().priority(-2))?;
        own.then(move || other.store(1, Ordering::SeqCst))?;
        stream.synchronize()?;
        own.synchronize()?;
        let calls = [&called, &again].map(|called| called.load(Ordering::SeqCst));
        assert_eq!(calls, [1, 1]);
        // What was called is gone.
        assert_eq!([&called, &again].map(Arc::strong_count), [1, 1]);
        Ok(())
    }

    pub(super) fn drops_in_a_call(world: &World<'_>) -> Outcome {
        let stream = world.jit.stream()?;
        let mut x = world.jit.upload(&[1u32; 4])?;
        stream.launch(&writes()?, 1, 1, args!(&mut x))?;
        let jit = world.jit.clone();
        stream.then(move || drop((x, jit)))?;
        stream.synchronize()?;
        world.jit.zeros::<u32>(4).map(drop)
    }

    pub(super) fn copies_parts(world: &World<'_>) -> Outcome {
        let mut x = world.jit.zeros::<u32>(6)?;
        x.write_at(2, &[5, 6])?;
        let mut part = [0; 3];
        x.read_into(1, &mut part)?;
        assert_eq!(part, [0, 5, 6]);
        x.write(&[9; 6])?;
        assert_eq!(x.to_vec()?, [9; 6]);
        Ok(())
    }

    pub(super) fn copies_on_the_device(world: &World<'_>) -> Outcome {
        let stream = world.jit.stream()?;
        let mut x = world.jit.upload(&[3u32; 5])?;
        let mut y = world.jit.zeros::<u32>(5)?;
        stream.launch(&writes()?, 1, 1, args!(&mut x))?;
        y.copy_from(&x)?;
        assert_eq!(y.to_vec()?, [3; 5]);
        x.fill(0x0102_0304)?;
        assert_eq!(x.to_vec()?, [0x0102_0304; 5]);
        Ok(())
    }

    pub(super) fn begins_uninitialized(world: &World<'_>) -> Outcome {
        // SAFETY: it is written whole before it is read.
        let mut x = unsafe { world.jit.uninit::<u32>(3)? };
        x.write(&[1, 2, 3])?;
        assert_eq!(x.to_vec()?, [1, 2, 3]);
        Ok(())
    }

    pub(super) fn copies_later(world: &World<'_>) -> Outcome {
        let mut x = world.jit.zeros::<u32>(3)?;
        let values = x.write_later(world.jit.pinned(&[1, 2, 3])?)?.wait()?;
        let stream = world.jit.stream()?;
        stream.launch(&writes()?, 1, 1, args!(&mut x))?;
        let read = x.read_later(values)?;
        read.is_done()?;
        assert_eq!(&*read.wait()?, &[1, 2, 3]);
        Ok(())
    }

    pub(super) fn awaits_copies(world: &World<'_>) -> Outcome {
        let stream = world.jit.stream()?;
        let mut x = world.jit.upload(&[6u32; 3])?;
        stream.launch(&writes()?, 1, 1, args!(&mut x))?;
        let read = awaited(async {
            let values = x.write_later(world.jit.pinned(&[4, 5, 6])?)?.await?;
            x.read_later(values)?.await
        })?;
        assert_eq!(&*read, &[4, 5, 6]);
        Ok(())
    }

    pub(super) fn awaits_launches(world: &World<'_>) -> Outcome {
        let stream = world.jit.stream()?;
        let mut x = world.jit.upload(&[6u32; 3])?;
        awaited(async {
            stream.launch(&writes()?, 1, 1, args!(&mut x))?;
            stream.finish_later()?.await?;
            world.jit.launch(&writes()?, 1, 1, args!(&mut x))?;
            let event = world.jit.record()?;
            drop(world.jit.finish_later()?);
            event.await
        })?;
        assert_eq!(x.to_vec()?, [6; 3]);
        Ok(())
    }

    pub(super) fn gives_copies_up(world: &World<'_>) -> Outcome {
        let mut x = world.jit.zeros::<u32>(3)?;
        drop(x.write_later(world.jit.pinned(&[1, 2, 3])?)?);
        drop(x.read_later(world.jit.pinned(&[0; 3])?)?);
        drop(world.jit.pinned(&[0u32; 3])?);
        assert_eq!(x.to_vec()?, [1, 2, 3]);
        Ok(())
    }

    pub(super) fn has_globals(world: &World<'_>) -> Outcome {
        let count = counts()?;
        let jit = world.jit_with(kiln::hooks::standard());
        jit.launch(&count, 1, 1, args!())?;
        let global = jit.global::<u32>("count")?;
        assert_eq!(global.to_vec()?, [5]);
        global.write(&[8])?;
        jit.launch(&count, 1, 1, args!())?;
        assert_eq!(global.to_vec()?, [8]);
        Ok(())
    }

    pub(super) fn has_globals_in_streams(world: &World<'_>) -> Outcome {
        let count = counts()?;
        let jit = world.jit_with(kiln::hooks::standard());
        let stream = jit.stream()?;
        stream.launch(&count, 1, 1, args!())?;
        jit.launch(&count, 1, 1, args!())?;
        let global = jit.global::<u32>("count")?;
        drop(jit);
        assert_eq!(global.to_vec()?, [5]);
        Ok(())
    }

    pub(super) fn passes_structs_by_value(world: &World<'_>) -> Outcome {
        let mut x = world.jit.zeros::<u32>(32)?;
        let table = Table { values: [3; 40] };
        look_up.launch(world.jit, (1, 32), table, &mut x)?;
        world.jit.launch(&look_up, 1, 32, args!(table, &mut x))?;
        world.jit.synchronize()
    }

    pub(super) fn passes_many_arguments(world: &World<'_>) -> Outcome {
        let many = Kernel::build("many", |k| {
            for n in 0..300 {
                k.param(&format!("a{n}"), k.ty::<u32>());
            }
        })?;
        let values = vec![7u32; 300];
        let given: Vec<_> = values.iter().map(|value| (*value).into_arg()).collect();
        world.jit.launch(&many, 1, 1, &given)?;
        world.jit.launch(&many, 1, 1, &given)?;
        world.jit.synchronize()
    }

    pub(super) fn asks_for_shared_memory(world: &World<'_>) -> Outcome {
        let config = LaunchConfig::new(1, 32).shared_bytes(100_000);
        world.jit.launch_with(&nothing, config, args!())?;
        assert_eq!(world.fake.last_launch()[6], 100_000);
        world.jit.synchronize()
    }

    pub(super) fn is_told_faults(world: &World<'_>) -> Outcome {
        let mut x = world.jit.upload(&[1u32; 4])?;
        let ready = world.jit.compile(&faults()?, args!(&mut x))?;
        for _ in 0..2 {
            ready.launch(1, 1, args!(&mut x))?;
            raise(world, ready.info().kernel_tag);
            told(world.jit.synchronize())?;
        }
        ready.launch(1, 1, args!(&mut x))?;
        raise(world, ready.info().kernel_tag);
        told(x.to_vec().map(drop))?;
        assert_eq!(x.to_vec()?, [1; 4]);
        Ok(())
    }

    pub(super) fn is_told_faults_of_streams(world: &World<'_>) -> Outcome {
        let stream = world.jit.stream()?;
        let mut x = world.jit.zeros::<u32>(4)?;
        let ready = stream.compile(&faults()?, args!(&mut x))?;
        ready.launch(1, 1, args!(&mut x))?;
        raise(world, ready.info().kernel_tag);
        told(stream.synchronize())?;
        ready.launch(1, 1, args!(&mut x))?;
        raise(world, ready.info().kernel_tag);
        told(world.jit.synchronize())?;
        stream.synchronize()
    }

    pub(super) fn computes_with_arrays(world: &World<'_>) -> Outcome {
        let arrays = Arrays::new(world.jit);
        let x = arrays.vector(vec![1.0f32, 4.0])?;
        let y = (&x * 2.0 + 1.0).eval()?;
        y.to_vec()?;
        assert_eq!(x.to_vec()?, [1.0, 4.0]);
        Ok(())
    }

    pub(super) fn reduces_arrays(world: &World<'_>) -> Outcome {
        let arrays = Arrays::new(world.jit);
        let x = arrays.vector(vec![1.0f32; 1000])?;
        x.sum()?;
        Ok(())
    }

    pub(super) fn observes_launches(world: &World<'_>) -> Outcome {
        let told = Arc::new(AtomicU32::new(0));
        let (before, after) = (told.clone(), told.clone());
        let hook = Hook::new("listens")
            .before_launch(move |event| {
                before.fetch_add(1, Ordering::SeqCst);
                drop(event.measure());
                Ok(())
            })
            .after_launch(move |_, _| {
                after.fetch_add(1, Ordering::SeqCst);
            });
        let jit = world.jit_with(hook);
        let launched = nothing.launch(&jit, (1, 32));
        assert!(
            told.load(Ordering::SeqCst) != 1,
            "who is told of a begin is told of the end"
        );
        launched?;
        jit.synchronize()
    }

    pub(super) fn is_told_of_code(world: &World<'_>) -> Outcome {
        let hook = Hook::new("looks").after_load(|_, facts| {
            assert_eq!(facts.registers, Some(128));
            Ok(())
        });
        let jit = world.jit_with(hook);
        nothing.launch(&jit, (1, 32))
    }

    pub(super) fn keeps_code_on_disk(world: &World<'_>) -> Outcome {
        let place = Place::new();
        let options = place.options();
        for _ in 0..2 {
            let device = world.jit.device().clone();
            let jit = Jit::with(device, kiln::hooks::standard(), options.clone());
            nothing.launch(&jit, (1, 32))?;
        }
        Ok(())
    }

    pub(super) fn redefines(world: &World<'_>) -> Outcome {
        let sets = |n: u32| move |k: &KernelBuilder| k.slice_mut("x", k.ty::<u32>()).at(0).set(n);
        let mut x = world.jit.zeros::<u32>(4)?;
        let kernel = Kernel::build("step", sets(1))?;
        let ready = world.jit.compile(&kernel, args!(&mut x))?;
        for n in [1, 2, 1] {
            kernel.redefine(sets(n))?;
            world.jit.launch(&kernel, 1, 1, args!(&mut x))?;
            ready.launch(1, 1, args!(&mut x))?;
        }
        world.jit.synchronize()
    }

    pub(super) fn drops_in_odd_orders(world: &World<'_>) -> Outcome {
        let jit = world.jit_with(kiln::hooks::standard());
        let stream = jit.stream()?;
        let mut x = jit.upload(&[2u32; 4])?;
        let ready = jit.compile(&writes()?, args!(&mut x))?.on(&stream)?;
        let pinned = jit.pinned(&[7u32; 4])?;
        let event = stream.record()?;
        drop(jit);
        ready.launch(1, 1, args!(&mut x))?;
        drop(stream);
        ready.launch(1, 1, args!(&mut x))?;
        let copy = x.write_later(pinned)?;
        drop(ready);
        drop(x);
        event.synchronize()?;
        drop(event);
        copy.wait().map(drop)
    }

    pub(super) fn launches_from_threads(world: &World<'_>) -> Outcome {
        let jit = world.jit;
        std::thread::scope(|scope| {
            let launch = |n: u32| {
                let stream = jit.stream()?;
                let mut x = stream.upload(&[n; 32])?;
                add.launch(&stream, (1, 32), &mut x, n)?;
                nothing.launch(jit, (1, 32))?;
                assert_eq!(x.to_vec()?, [n; 32]);
                stream.synchronize()
            };
            let threads: Vec<_> = (0..3).map(|n| scope.spawn(move || launch(n))).collect();
            let results = threads.into_iter().map(|thread| thread.join());
            let results: Vec<_> = results.map(|result| result.expect("no panic")).collect();
            results.into_iter().collect()
        })
    }

    pub(super) fn adopts_a_context(world: &World<'_>) -> Outcome {
        let driver = world.fake.open()?;
        let own = CudaContext::with_driver(driver, 0)?;
        // SAFETY: it lives until the end of the function.
        let device = unsafe { Device::adopt_cuda_of(driver, 0, own.as_raw())? };
        let options = world.place.options();
        let jit = Jit::with(device, kiln::hooks::standard(), options);
        let mut x = jit.upload(&[1u32; 32])?;
        add.launch(&jit, (1, 32), &mut x, 1)?;
        assert_eq!(x.to_vec()?, [1; 32]);
        match world.jit.launch(&add, 1, 32, args!(&mut x, 1u32)) {
            Err(error) if error.to_string().contains("of the program") => Ok(()),
            Err(error) => Err(error),
            Ok(()) => panic!("it lies in another context"),
        }
    }

    pub(super) fn is_lent_memory(world: &World<'_>) -> Outcome {
        let mut theirs = Theirs::new(world.fake)?;
        // SAFETY: nobody else uses it; what is returned is dropped.
        let mut lent = unsafe { LentMut::new(world.jit.device(), &mut theirs)? };
        lent.write(&[1, 2, 3, 4])?;
        world.jit.launch(&writes()?, 1, 1, args!(&mut *lent))?;
        assert_eq!(lent.to_vec()?, [1, 2, 3, 4]);
        Ok(())
    }

    pub(super) fn gives_memory_away(world: &World<'_>) -> Outcome {
        let theirs = Theirs::new(world.fake)?;
        let address = world.jit.upload(&[1u32, 2])?.into_raw()?;
        // SAFETY: it was given up a moment ago.
        let ours = unsafe { Buffer::<u32>::from_raw(world.jit.device(), address, 2) };
        let ours = match ours {
            Ok(ours) => ours,
            Err(error) => {
                // It is still nobody's.
                let taken = theirs.context.adopt_memory(address, 8);
                if taken.is_ok() && theirs.context.free(address).is_err() {
                    let _ = theirs.context.free(address);
                }
                return Err(error);
            }
        };
        assert_eq!(ours.to_vec()?, [1, 2]);
        Ok(())
    }

    pub(super) fn runs_out_of_memory(world: &World<'_>) -> Outcome {
        let small = world.jit.upload(&[1u32; 4])?;
        match world.jit.zeros::<u8>(2 << 30) {
            Err(error) if error.to_string().contains("2147483648") => {}
            Err(error) => return Err(error),
            Ok(_) => panic!("the device has less"),
        }
        assert_eq!(small.to_vec()?, [1; 4]);
        world.jit.zeros::<u8>(1 << 20).map(drop)
    }

    pub(super) fn has_two_devices(world: &World<'_>) -> Outcome {
        let driver = world.fake.open()?;
        let options = world.place.options();
        let other = Device::cuda_of(driver, 1)?;
        let other = Jit::with(other, kiln::hooks::standard(), options);
        let mut x = world.jit.upload(&[1u32; 32])?;
        let mut y = other.upload(&[2u32; 32])?;
        add.launch(&other, (1, 32), &mut y, 1)?;
        add.launch(world.jit, (1, 32), &mut x, 1)?;
        match other.launch(&add, 1, 32, args!(&mut x, 1u32)) {
            Err(error) if error.to_string().contains("lies on") => {}
            Err(error) => return Err(error),
            Ok(()) => panic!("it lies on the other"),
        }
        assert_eq!((x.to_vec()?, y.to_vec()?), (vec![1; 32], vec![2; 32]));
        other.synchronize()
    }

    pub(super) fn copies_between_devices(world: &World<'_>) -> Outcome {
        let driver = world.fake.open()?;
        let on = |ordinal: u32| -> kiln::Result<Jit> {
            let device = Device::cuda_of(driver, ordinal)?;
            let options = world.place.options();
            Ok(Jit::with(device, kiln::hooks::standard(), options))
        };
        let (first, second) = (on(0)?, on(1)?);
        let (mut x, mut y) = (first.upload(&[1u32; 32])?, second.upload(&[2u32; 32])?);
        let stream = first.stream()?;
        add.launch(&stream, (1, 32), &mut x, 1)?;
        y.copy_from(&x)?;
        let mut z = stream.zeros::<u32>(32)?;
        z.copy_from(&y)?;
        assert_eq!((y.to_vec()?, z.to_vec()?), (vec![1; 32], vec![1; 32]));
        drop(x);
        second.synchronize()?;
        first.synchronize()
    }

    pub(super) fn has_two_jits(world: &World<'_>) -> Outcome {
        let other = world.jit_with(kiln::hooks::standard());
        let mut x = other.upload(&[1u32; 32])?;
        add.launch(world.jit, (1, 32), &mut x, 1)?;
        add.launch(&other, (1, 32), &mut x, 1)?;
        drop(other);
        assert_eq!(x.to_vec()?, [1; 32]);
        Ok(())
    }

    pub(super) fn waits_for_a_limited_time(world: &World<'_>) -> Outcome {
        let options = world.place.options().time_limit(Duration::from_secs(60));
        let device = world.jit.device().clone();
        let jit = Jit::with(device, kiln::hooks::standard(), options);
        let stream = jit.stream()?;
        let mut x = jit.upload(&[1u32; 32])?;
        add.launch(&stream, (1, 32), &mut x, 1)?;
        assert_eq!(x.to_vec()?, [1; 32]);
        drop(x);
        stream.synchronize()?;
        jit.synchronize()
    }

    pub(super) fn looks_into_kernels(world: &World<'_>) -> Outcome {
        let x = world.jit.zeros::<u32>(4)?;
        let mut y = world.jit.zeros::<u32>(4)?;
        let inspection = world.jit.inspect(&add_other, args!(&x, &mut y))?;
        assert!(inspection.compiled().is_some());
        Ok(())
    }

    pub(super) fn is_refused_launches(world: &World<'_>) -> Outcome {
        let mut x = world.jit.zeros::<u32>(4)?;
        add.launch(world.jit, (1, 32), &mut x, 1)?;
        let too_many = world.jit.launch(&add, 1, 2000, args!(&mut x, 1u32));
        assert!(too_many.is_err());
        // The code has a limit of its own, which only the driver knows.
        match world.jit.launch(&add, 1, 1024, args!(&mut x, 1u32)) {
            Err(error) if error.to_string().contains("701") => {}
            Err(error) => return Err(error),
            Ok(()) => panic!("the driver takes 512 threads"),
        }
        x.to_vec().map(drop)
    }
}
