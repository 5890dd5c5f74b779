//! Streams: order by what is used, events, calls on the host, faults, and what goes on beside.
//!
//! Devices other than a GPU do what all streams are given in one order, so that there the results are what is tested.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use kiln::core::runtime::DeviceKind;
use kiln::error::{Error, MemoryError, RunError};
use kiln::prelude::*;
use kiln::{Stream, StreamOptions};

use super::{Outcome, chapter};

chapter![
    work_is_ordered_by_its_uses,
    work_goes_on_beside,
    prepared_and_typed_launches_go_to_streams,
    events_order_streams,
    streams_of_priorities,
    calls_are_made_in_the_order_of_the_stream,
    faults_are_told_by_their_stream,
    more_streams_than_a_device_has,
    kernels_of_several_streams_share_a_global,
    threads_have_streams_of_their_own,
    buffers_end_behind_their_uses,
    copies_of_parts,
    copies_are_work_of_streams,
    copies_that_nobody_waits_for,
    copies_are_awaited,
    launches_and_events_are_awaited,
    memory_is_counted_and_given_back,
];

/// How long a kernel computes that takes long: on a GPU, where others go on meanwhile, a second or so.
fn long(jit: &Jit) -> u32 {
    let info = jit.device().info();
    match info.kind == DeviceKind::Cuda && info.multiprocessors > 1 {
        true => 200_000_000,
        false => 2000,
    }
}

fn computed(seed: u32, turns: u32) -> u32 {
    let next = |x: u32, _| x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    (0..turns).fold(seed, next)
}

#[kernel]
fn compute(x: &mut [u32], turns: u32) {
    let i = global_id().x;
    if i < x.len() {
        let mut value = x[i];
        for _ in 0..turns {
            value = value.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        }
        x[i] = value;
    }
}

#[kernel]
fn add(x: &[u32], y: &mut [u32]) {
    let i = global_id().x;
    if i < y.len() {
        y[i] = x[i].wrapping_add(y[i]);
    }
}

#[kernel]
fn set(x: &mut [u32], value: u32) {
    let i = global_id().x;
    if i < x.len() {
        x[i] = value;
    }
}

/// A long kernel in one stream, whose result another reads and a third overwrites, with nothing said of it.
fn work_is_ordered_by_its_uses(jit: &Jit) -> Outcome {
    let streams = [jit.stream()?, jit.stream()?, jit.stream()?];
    let turns = long(jit) / 20;
    let want = computed(7, turns);
    for round in 0..3 {
        let mut x = jit.upload(&[7u32; 40])?;
        let mut y = jit.upload(&[1u32; 40])?;
        compute.launch(&streams[0], (2, 32), &mut x, turns)?;
        add.launch(&streams[1], (2, 32), &x, &mut y)?;
        set.launch(&streams[2], (2, 32), &mut x, round)?;
        assert_eq!(y.to_vec()?, [want.wrapping_add(1); 40]);
        assert_eq!(x.to_vec()?, [round; 40]);
        // The device's own stream is one of them.
        compute.launch(&streams[1], (2, 32), &mut x, turns)?;
        add.launch(jit, (2, 32), &x, &mut y)?;
        x.write(&[5; 40])?;
        add.launch(&streams[0], (2, 32), &x, &mut y)?;
        let sum = want
            .wrapping_add(1)
            .wrapping_add(computed(round, turns))
            .wrapping_add(5);
        assert_eq!(y.to_vec()?, [sum; 40]);
    }
    Ok(())
}

/// On a GPU a short kernel has ended while a long one of another stream runs, and its result can be read.
fn work_goes_on_beside(jit: &Jit) -> Outcome {
    let (slow, quick) = (jit.stream()?, jit.stream()?);
    let (mut x, mut y) = (jit.upload(&[1u32; 32])?, jit.zeros::<u32>(32)?);
    set.launch(&quick, (1, 32), &mut y, 1)?;
    compute.launch(&slow, (1, 32), &mut x, 1)?;
    jit.synchronize()?;
    compute.launch(&slow, (1, 32), &mut x, long(jit))?;
    set.launch(&quick, (1, 32), &mut y, 3)?;
    quick.synchronize()?;
    assert!(quick.is_done()?);
    assert_eq!(y.to_vec()?, [3; 32]);
    if long(jit) > 1_000_000 {
        assert!(!slow.is_done()?, "nothing went on beside");
    }
    slow.synchronize()?;
    assert!(slow.is_done()?);
    assert_eq!(x.to_vec()?[0], computed(computed(1, 1), long(jit)));
    Ok(())
}

fn prepared_and_typed_launches_go_to_streams(jit: &Jit) -> Outcome {
    let stream = jit.stream()?;
    let mut x = jit.zeros::<u32>(32)?;
    let ready = jit.compile(&set, args!(&mut x, 1u32))?.on(&stream)?;
    ready.launch(1, 32, args!(&mut x, 3u32))?;
    assert_eq!(x.to_vec()?, [3; 32]);
    stream.launch(&set, 1, 32, args!(&mut x, 4u32))?;
    assert_eq!(x.to_vec()?, [4; 32]);
    let before = jit.cache_stats();
    set.launch(&stream.clone(), (1, 32), &mut x, 5)?;
    assert_eq!(x.to_vec()?, [5; 32]);
    let after = jit.cache_stats();
    assert_eq!(
        after.compiles, before.compiles,
        "streams share what is compiled"
    );
    Ok(())
}

fn events_order_streams(jit: &Jit) -> Outcome {
    let (one, other) = (jit.stream()?, jit.stream()?);
    let mut x = jit.upload(&[1u32; 32])?;
    let start = one.record()?;
    compute.launch(&one, (1, 32), &mut x, long(jit) / 20)?;
    let end = one.record()?;
    other.wait(&end)?;
    other.synchronize()?;
    assert!(end.is_done()? && one.is_done()?);
    start.synchronize()?;
    assert!(start.elapsed_ms(&end)? >= 0.0);
    // Events of the device's own stream, too.
    jit.launch(&set, 1, 32, args!(&mut x, 3u32))?;
    other.wait(&jit.record()?)?;
    other.synchronize()?;
    assert_eq!(x.to_vec()?, [3; 32]);
    let elsewhere = Jit::on(Device::cpu());
    assert!(other.wait(&elsewhere.record()?).is_err());
    Ok(())
}

fn streams_of_priorities(jit: &Jit) -> Outcome {
    for priority in [-1000, -1, 0, 1, 1000] {
        let stream = jit.stream_with(StreamOptions::new().priority(priority))?;
        let mut x = jit.zeros::<u32>(32)?;
        set.launch(&stream, (1, 32), &mut x, 9)?;
        assert_eq!(x.to_vec()?, [9; 32]);
    }
    Ok(())
}

fn calls_are_made_in_the_order_of_the_stream(jit: &Jit) -> Outcome {
    let stream = jit.stream()?;
    let mut x = jit.upload(&[1u32; 32])?;
    let told = Arc::new(Mutex::new(Vec::new()));
    for step in 0..5 {
        compute.launch(&stream, (1, 32), &mut x, long(jit) / 200)?;
        let told = told.clone();
        stream.then(move || told.lock().expect("nobody panics").push(step))?;
    }
    stream.synchronize()?;
    let list = || told.lock().expect("nobody panics").clone();
    assert_eq!(list(), [0, 1, 2, 3, 4]);
    // What a call may not do is an error, and what it drops is freed later.
    let (inside, errors) = (jit.clone(), told.clone());
    let dropped = jit.zeros::<u32>(8)?;
    stream.then(move || {
        let refused = inside.synchronize().is_err() && dropped.to_vec().is_err();
        drop(dropped);
        errors
            .lock()
            .expect("nobody panics")
            .push(5 + i32::from(refused));
    })?;
    stream.synchronize()?;
    assert_eq!(list().last(), Some(&6));
    stream.then(|| panic!("this panic is a test's"))?;
    let panicked = stream.synchronize().expect_err("it is told").to_string();
    assert!(panicked.contains("this panic is a test's"), "{panicked}");
    stream.synchronize()?;
    set.launch(&stream, (1, 32), &mut x, 2)?;
    assert_eq!(x.to_vec()?, [2; 32]);
    Ok(())
}

#[kernel]
fn reach(x: &mut [u32], at: u32) {
    x[at as usize] = 1;
}

fn faults_are_told_by_their_stream(jit: &Jit) -> Outcome {
    let (one, other) = (jit.stream()?, jit.stream()?);
    let (mut x, mut y) = (jit.zeros::<u32>(8)?, jit.zeros::<u32>(8)?);
    let told = |result: kiln::Result<()>| match result {
        Err(Error::Run(RunError::Fault(fault))) => fault.index,
        result => panic!("there is no fault: {result:?}"),
    };
    // What others have launched before is none of it.
    jit.synchronize()?;
    for index in [100, 200] {
        reach.launch(&one, (1, 1), &mut x, index)?;
        reach.launch(&other, (1, 1), &mut y, 3)?;
        // Nobody who reads what the other has written is told.
        assert_eq!(y.to_vec()?[3], 1);
        assert_eq!(told(one.synchronize()), i128::from(index));
        one.synchronize()?;
        jit.synchronize()?;
    }
    reach.launch(&other, (1, 1), &mut y, 300)?;
    assert_eq!(told(y.to_vec().map(drop)), 300);
    reach.launch(&one, (1, 1), &mut x, 400)?;
    reach.launch(jit, (1, 1), &mut y, 400)?;
    assert_eq!(told(jit.synchronize()), 400);
    jit.synchronize()?;
    one.synchronize()?;
    other.synchronize()?;
    Ok(())
}

fn more_streams_than_a_device_has(jit: &Jit) -> Outcome {
    let mut x = jit.zeros::<u32>(8)?;
    let one = jit.upload(&[1u32; 8])?;
    let streams: Vec<_> = (0..70).map(|_| jit.stream()).collect::<Result<_, _>>()?;
    for stream in &streams {
        add.launch(stream, (1, 8), &one, &mut x)?;
    }
    assert_eq!(x.to_vec()?, [70; 8]);
    drop(streams);
    // They are there for the next.
    for _ in 0..70 {
        let stream = jit.stream()?;
        add.launch(&stream, (1, 8), &one, &mut x)?;
    }
    assert_eq!(x.to_vec()?, [140; 8]);
    Ok(())
}

fn kernels_of_several_streams_share_a_global(jit: &Jit) -> Outcome {
    let count = Kernel::build("count_in_streams", |k| {
        let count = k.global("counted in streams", &[0u32]).at(0);
        count.set(count.get() + 1);
    })?;
    let streams = [jit.stream()?, jit.stream()?, jit.stream()?];
    std::thread::scope(|scope| {
        for stream in &streams {
            scope.spawn(|| {
                for _ in 0..20 {
                    let launched = stream.launch(&count, 1, 1, args!());
                    launched.expect("it is launched");
                }
            });
        }
    });
    let counted = jit.global::<u32>("counted in streams")?;
    assert_eq!(counted.to_vec()?, [60]);
    counted.write(&[1])?;
    streams[1].launch(&count, 1, 1, args!())?;
    assert_eq!(counted.to_vec()?, [2]);
    Ok(())
}

fn threads_have_streams_of_their_own(jit: &Jit) -> Outcome {
    let shared = jit.upload(&[1u32; 64])?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| sums(jit, &shared))).collect();
        for thread in threads {
            let sums = thread.join().expect("nobody panics");
            assert_eq!(sums.expect("it is launched"), [30; 64]);
        }
    });
    let mut shared = shared;
    let stream = jit.stream()?;
    set.launch(&stream, (2, 32), &mut shared, 4)?;
    assert_eq!(shared.to_vec()?, [4; 64]);
    Ok(())
}

/// The sum of what is shared, made in a stream of the thread's own.
fn sums(jit: &Jit, shared: &Buffer<u32>) -> kiln::Result<Vec<u32>> {
    let stream = jit.stream()?;
    let mut sum = jit.zeros::<u32>(64)?;
    for _ in 0..30 {
        add.launch(&stream, (2, 32), shared, &mut sum)?;
    }
    sum.to_vec()
}

/// Buffers that are dropped while a kernel uses them; later ones may be at their addresses.
fn buffers_end_behind_their_uses(jit: &Jit) -> Outcome {
    let (one, other) = (jit.stream()?, jit.stream()?);
    let turns = long(jit) / 100;
    let mut sum = jit.zeros::<u32>(32)?;
    for round in 0..10 {
        let mut x = jit.upload(&[round; 32])?;
        compute.launch(&one, (1, 32), &mut x, turns)?;
        add.launch(&other, (1, 32), &x, &mut sum)?;
        drop(x);
        let mut reused = jit.zeros::<u32>(32)?;
        set.launch(&one, (1, 32), &mut reused, 1)?;
        assert_eq!(reused.to_vec()?, [1; 32]);
    }
    let want = (0..10).fold(0u32, |sum, round| sum.wrapping_add(computed(round, turns)));
    assert_eq!(sum.to_vec()?, [want; 32]);
    Ok(())
}

#[derive(Copy, Clone, PartialEq, Debug, KernelType)]
#[repr(C)]
struct Padded {
    tag: bool,
    number: u32,
}

fn copies_of_parts(jit: &Jit) -> Outcome {
    let mut x = jit.upload(&[0u32, 1, 2, 3, 4, 5, 6, 7])?;
    let mut part = [9; 3];
    x.read_into(5, &mut part)?;
    assert_eq!(part, [5, 6, 7]);
    x.read_into(8, &mut [])?;
    x.write_at(6, &[60, 70])?;
    x.write_at(8, &[])?;
    assert_eq!(x.to_vec()?, [0, 1, 2, 3, 4, 5, 60, 70]);
    let beyond = [
        x.read_into(6, &mut part),
        x.write_at(usize::MAX, &[1]),
        x.write_at(0, &[1; 9]),
        x.write(&[1; 9]),
        jit.zeros::<u32>(7)?.copy_from(&x),
    ];
    for (at, result) in beyond.into_iter().enumerate() {
        let memory = match result {
            Err(Error::Memory(memory)) => memory,
            result => panic!("{at}: {result:?}"),
        };
        let is_told = match memory {
            MemoryError::NoPart { .. } => at < 3,
            MemoryError::BufferTooSmall { .. } => at >= 3,
            _ => false,
        };
        assert!(is_told, "{at}: {memory}");
    }
    // A length that is no power of two, and one of none.
    for len in [0, 1, 2, 3, 1000] {
        let mut filled = jit.zeros::<Padded>(len)?;
        let value = Padded {
            tag: true,
            number: 7,
        };
        filled.fill(value)?;
        assert_eq!(filled.to_vec()?, vec![value; len]);
        let mut last = [Padded {
            tag: false,
            number: 0,
        }; 1];
        if len > 0 {
            filled.read_into(len - 1, &mut last)?;
            assert_eq!(last, [value]);
        }
        let mut copied = jit.zeros::<Padded>(len + 1)?;
        copied.copy_from(&filled)?;
        assert_eq!(copied.to_vec()?[..len], vec![value; len]);
    }
    // From another device through the host.
    let elsewhere = Jit::on(Device::cpu()).upload(&[8u32; 8])?;
    x.copy_from(&elsewhere)?;
    assert_eq!(x.to_vec()?, [8; 8]);
    Ok(())
}

fn copies_are_work_of_streams(jit: &Jit) -> Outcome {
    let (one, other) = (jit.stream()?, jit.stream()?);
    let turns = long(jit) / 50;
    let want = computed(1, turns);
    // SAFETY: it is filled before anybody reads it.
    let mut y = unsafe { jit.uninit::<u32>(64)? };
    for round in 0..3 {
        let mut x = jit.upload(&[1u32; 64])?;
        compute.launch(&one, (2, 32), &mut x, turns)?;
        y.fill(round)?;
        add.launch(&other, (2, 32), &x, &mut y)?;
        let mut z = jit.zeros::<u32>(64)?;
        z.copy_from(&y)?;
        y.fill(0)?;
        set.launch(&one, (2, 32), &mut x, round)?;
        assert_eq!(z.to_vec()?, [want.wrapping_add(round); 64]);
        assert_eq!(x.to_vec()?, [round; 64]);
        assert_eq!(y.to_vec()?, [0; 64]);
    }
    Ok(())
}

fn copies_that_nobody_waits_for(jit: &Jit) -> Outcome {
    let stream = jit.stream()?;
    let turns = long(jit) / 50;
    let mut x = jit.zeros::<u32>(64)?;
    let mut values = jit.pinned(&[0u32; 64])?;
    for round in 0..3 {
        values.fill(round);
        let written = x.write_later(values)?;
        compute.launch(&stream, (2, 32), &mut x, turns)?;
        let read = x.read_later(written.wait()?)?;
        set.launch(jit, (2, 32), &mut x, 9)?;
        values = read.wait()?;
        assert_eq!(*values, [computed(round, turns); 64]);
        // One that is given up is done even so.
        drop(x.write_later(jit.pinned(&[4u32; 32])?)?);
        assert_eq!(x.to_vec()?[31..33], [4, 9]);
    }
    // A fault of the launch that wrote is told here, too.
    reach.launch(&stream, (1, 1), &mut x, 100)?;
    let read = x.read_later(values).and_then(|read| read.wait());
    assert!(read.is_err_and(|error| error.fault().is_some()));
    jit.synchronize()?;
    Ok(())
}

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// What a future gives, whose task is this thread.
fn awaited<R>(future: impl Future<Output = R>) -> R {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn copies_are_awaited(jit: &Jit) -> Outcome {
    let streams = [jit.stream()?, jit.stream()?];
    let turns = long(jit) / 50;
    let mut x = [jit.upload(&[1u32; 32])?, jit.upload(&[2u32; 32])?];
    let read = awaited(async {
        let mut reads = Vec::new();
        for (stream, x) in streams.iter().zip(&mut x) {
            compute.launch(stream, (1, 32), x, turns)?;
            reads.push(x.read_later(jit.pinned(&[0; 32])?)?);
        }
        let mut read = Vec::new();
        for later in reads {
            read.push(later.await?[31]);
        }
        Ok::<_, Error>(read)
    })?;
    assert_eq!(read, [computed(1, turns), computed(2, turns)]);
    Ok(())
}

fn launches_and_events_are_awaited(jit: &Jit) -> Outcome {
    let streams = [jit.stream()?, jit.stream()?];
    let turns = long(jit) / 50;
    let mut x = [jit.upload(&[1u32; 32])?, jit.upload(&[2u32; 32])?];
    // What others have launched before is none of it.
    jit.synchronize()?;
    awaited(async {
        let mut ends = Vec::new();
        for (stream, x) in streams.iter().zip(&mut x) {
            compute.launch(stream, (1, 32), x, turns)?;
            ends.push((stream.record()?, stream.finish_later()?));
        }
        for (event, launched) in ends {
            (&event).await?;
            assert!(event.is_done()?);
            launched.await?;
            event.await?;
        }
        Ok::<_, Error>(())
    })?;
    assert!(streams[0].is_done()? && streams[1].is_done()?);
    for (x, seed) in x.iter().zip([1, 2]) {
        assert_eq!(x.to_vec()?, [computed(seed, turns); 32]);
    }
    faults_are_told_to_tasks(jit, &streams[0])
}

/// By who awaits the launch, once; events tell nobody.
fn faults_are_told_to_tasks(jit: &Jit, stream: &Stream) -> Outcome {
    let mut x = jit.zeros::<u32>(8)?;
    for jit in [jit, &**stream] {
        reach.launch(jit, (1, 1), &mut x, 100)?;
        awaited(jit.record()?.into_future())?;
        let told = awaited(jit.finish_later()?);
        let told = told.expect_err("there is a fault");
        assert_eq!(told.fault().map(|fault| fault.index), Some(100));
        awaited(jit.finish_later()?)?;
        reach.launch(jit, (1, 1), &mut x, 200)?;
        let told = jit.finish_later()?.wait();
        assert!(told.is_err_and(|error| error.fault().is_some()));
        jit.synchronize()?;
    }
    stream.then(|| panic!("of a call"))?;
    let told = awaited(stream.finish_later()?).expect_err("it has panicked");
    assert!(told.to_string().contains("of a call"), "{told}");
    // Who gives up waiting changes nothing.
    reach.launch(stream, (1, 1), &mut x, 3)?;
    drop(stream.finish_later()?);
    drop(stream.record()?.into_future());
    assert_eq!(x.to_vec()?[3], 1);
    Ok(())
}

/// Of what there is at least; other cases may use the device, too.
fn memory_is_counted_and_given_back(jit: &Jit) -> Outcome {
    const BYTES: usize = 3 << 20;
    let device = jit.device();
    let stream = jit.stream()?;
    for _ in 0..4 {
        let mut x = jit.zeros::<u32>(BYTES / 4)?;
        let stats = device.memory_stats();
        assert!(
            stats.used >= BYTES as u64 && stats.peak >= stats.used,
            "{stats:?}"
        );
        set.launch(&stream, (BYTES as u32 / 4 / 256, 256), &mut x, 5)?;
        assert_eq!(x[BYTES / 4 - 2..].to_vec()?, [5; 2]);
    }
    jit.synchronize()?;
    device.trim()?;
    // SAFETY: the kernel writes what is read.
    let mut x = unsafe { jit.uninit::<u32>(64)? };
    set.launch(&stream, (2, 32), &mut x, 6)?;
    assert_eq!(x.to_vec()?, [6; 64]);
    Ok(())
}
