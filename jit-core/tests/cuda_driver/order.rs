//! What runs later: work of several streams on the same buffers, in every order of a few operations.
//!
//! The fake driver knows what is before what, and says when two accesses of one allocation are not ordered, or memory
//! is freed under work ([`fake-cuda/order.rs`](../fake-cuda/order.rs)).

use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{self, Poll, Wake, Waker};
use std::time::Duration;

use kiln_jit_core::args;
use kiln_jit_core::build::Kernel;
use kiln_jit_core::hook::HookSet;
use kiln_jit_core::ir::Type;
use kiln_jit_core::jit::{Jit, JitOptions, Prepared, Stream};
use kiln_jit_core::runtime::{Buffer, Device, StreamOptions};

use super::fake::Fake;
use super::lent::TheirStream;

type Result<T, E = kiln_jit_core::error::Error> = std::result::Result<T, E>;

const BUFFERS: usize = 2;

/// How many operations each list has of which all are tried.
const DEPTH: usize = 4;

/// Something that a program does with buffers.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Operation {
    /// A launch in a stream that reads a buffer.
    Read(usize, usize),
    /// One that writes it.
    Write(usize, usize),
    /// One that reads a buffer and writes the other.
    Copy(usize, usize),
    /// The host's own.
    ToVec(usize),
    Upload(usize),
    Drop(usize),
    /// A copy from one buffer to the other.
    Clone(usize),
    Fill(usize),
}
use Operation::*;

impl Operation {
    fn all(streams: usize) -> Vec<Operation> {
        let launches = (0..streams).flat_map(|stream| {
            let on = move |buffer| {
                [
                    Read(stream, buffer),
                    Write(stream, buffer),
                    Copy(stream, buffer),
                ]
            };
            (0..BUFFERS).flat_map(on)
        });
        let host = (0..BUFFERS).flat_map(|buffer| [ToVec(buffer), Upload(buffer), Drop(buffer)]);
        launches.chain(host).collect()
    }

    /// All, and copies on the device.
    fn with_copies(streams: usize) -> Vec<Operation> {
        let copies = (0..BUFFERS).flat_map(|buffer| [Clone(buffer), Fill(buffer)]);
        Operation::all(streams).into_iter().chain(copies).collect()
    }
}

/// Kernels that the driver knows by name, launched by their own methods.
mod typed {
    use kiln::prelude::*;

    #[kernel]
    pub fn uses_r(x: &[u32]) {
        let _ = x;
    }

    #[kernel]
    pub fn uses_w(x: &mut [u32]) {
        x[0] = 1;
    }

    #[kernel]
    pub fn uses_rw(x: &[u32], y: &mut [u32]) {
        y[0] = x[0];
    }
}

/// A program that does operations, on a fake driver.
struct Program {
    fake: Fake,
    jit: Jit,
    streams: Vec<Stream>,
    /// Kernels that read, write, and copy, for the device's own stream and each of the others.
    kernels: Vec<[Prepared; 3]>,
    buffers: Vec<Buffer<u32>>,
    /// How many operations were done: launches go by both ways in turn.
    done: usize,
}

impl Program {
    fn new(beside: usize) -> Result<Program> {
        Program::of(Fake::new(), beside)
    }

    fn of(fake: Fake, beside: usize) -> Result<Program> {
        let device = Device::cuda_of(fake.open()?, 0)?;
        let jit = Jit::with(device, HookSet::new(), JitOptions::default());
        let reads = Kernel::build("uses_r", |k| {
            k.slice("x", Type::U32);
        })?;
        let writes = Kernel::build("uses_w", |k| k.slice_mut("x", Type::U32).at(0).set(1u32))?;
        let copies = Kernel::build("uses_rw", |k| {
            let x = k.slice("x", Type::U32);
            k.slice_mut("y", Type::U32).at(0).set(x.at(0));
        })?;
        let [x, mut y] = [jit.zeros::<u32>(4)?, jit.zeros::<u32>(4)?];
        let own = [
            jit.compile(&reads, args!(&x))?,
            jit.compile(&writes, args!(&mut y))?,
            jit.compile(&copies, args!(&x, &mut y))?,
        ];
        let streams = (0..beside)
            .map(|_| jit.stream())
            .collect::<Result<Vec<_>>>()?;
        let mut kernels = vec![own];
        for stream in &streams {
            let [reads, writes, copies] = &kernels[0];
            kernels.push([reads.on(stream)?, writes.on(stream)?, copies.on(stream)?]);
        }
        let buffers = vec![x, y];
        Ok(Program {
            fake,
            jit,
            streams,
            kernels,
            buffers,
            done: 0,
        })
    }

    fn apply(&mut self, operation: Operation) -> Result<()> {
        let buffers = &mut self.buffers;
        self.done += 1;
        let jit = |stream: usize| match stream.checked_sub(1) {
            None => &self.jit,
            Some(beside) => &*self.streams[beside],
        };
        match operation {
            Read(stream, at) if self.done.is_multiple_of(2) => {
                typed::uses_r.launch(jit(stream), (1, 1), &buffers[at])
            }
            Write(stream, at) if self.done.is_multiple_of(2) => {
                typed::uses_w.launch(jit(stream), (1, 1), &mut buffers[at])
            }
            Read(stream, at) => self.kernels[stream][0].launch(1, 1, args!(&buffers[at])),
            Write(stream, at) => self.kernels[stream][1].launch(1, 1, args!(&mut buffers[at])),
            Copy(stream, from) => {
                let [x, y] = &mut buffers[..] else {
                    panic!("there are two buffers")
                };
                let (from, to) = if from == 0 { (x, y) } else { (y, x) };
                if self.done.is_multiple_of(2) {
                    return typed::uses_rw.launch(jit(stream), (1, 1), from, to);
                }
                self.kernels[stream][2].launch(1, 1, args!(&*from, to))
            }
            ToVec(at) => buffers[at].to_vec().map(drop),
            Upload(at) => buffers[at].write(&[1]),
            Clone(from) => {
                let [x, y] = &mut buffers[..] else {
                    panic!("there are two buffers")
                };
                let (from, to) = if from == 0 { (x, y) } else { (y, x) };
                to.copy_from(from)
            }
            Fill(at) => buffers[at].fill(3),
            Drop(at) => {
                buffers[at] = self.jit.zeros(4)?;
                Ok(())
            }
        }
    }

    /// Does these on new buffers.
    fn run(&mut self, operations: &[Operation]) -> Result<()> {
        for operation in operations {
            self.apply(*operation)?;
        }
        for at in 0..BUFFERS {
            self.apply(Drop(at))?;
        }
        if let Some(race) = self.fake.race() {
            panic!("{operations:?}, and the end of the buffers: {race}");
        }
        Ok(())
    }
}

/// All lists of so many operations, but for those that only call the streams beside, or the buffers, by other names.
fn each_list(all: &[Operation], depth: usize, run: &mut impl FnMut(&[Operation])) {
    fn extend(
        all: &[Operation],
        depth: usize,
        list: &mut Vec<Operation>,
        run: &mut impl FnMut(&[Operation]),
    ) {
        if list.len() == depth {
            return run(list);
        }
        let stream_of = |operation: &Operation| match operation {
            Read(stream, _) | Write(stream, _) | Copy(stream, _) => *stream,
            _ => 0,
        };
        let buffer_of = |operation: &Operation| match operation {
            Read(_, at) | Write(_, at) | Copy(_, at) => *at,
            ToVec(at) | Upload(at) | Drop(at) | Clone(at) | Fill(at) => *at,
        };
        let newest = list.iter().map(stream_of).max().unwrap_or(0);
        for operation in all {
            let is_renamed =
                stream_of(operation) > newest + 1 || list.is_empty() && buffer_of(operation) > 0;
            if !is_renamed {
                list.push(*operation);
                extend(all, depth, list, run);
                list.pop();
            }
        }
    }
    extend(all, depth, &mut Vec::new(), run);
}

#[test]
fn every_order_of_a_few_operations() -> Result<()> {
    let mut program = Program::new(2)?;
    program.fake.set_lazy(true);
    let mut lists = 0;
    let mut run = |list: &[Operation]| {
        lists += 1;
        program.run(list).expect("the fake driver takes it");
    };
    each_list(&Operation::with_copies(3), DEPTH - 1, &mut run);
    each_list(&Operation::all(3), DEPTH, &mut run);
    assert!(lists > 60_000, "{lists}");
    Ok(())
}

/// Numbers by a rule, the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Long programs of more streams, which are given back and taken anew meanwhile, other code's among them, which end
/// then.
#[test]
fn random_programs() -> Result<()> {
    for seed in 0..40 {
        let (mut random, fake) = (Random(seed), Fake::new());
        fake.set_pools(seed % 3 != 0);
        let mut program = Program::of(fake, 5)?;
        program.fake.set_lazy(seed % 2 == 0);
        let all = Operation::with_copies(6);
        for step in 0..300 {
            let operation = all[random.below(all.len())];
            program.run(&[operation]).expect("the fake driver takes it");
            let beside = random.below(5);
            if step % 3 == 0 {
                let (jit, kernels) = (&program.jit, &mut program.kernels);
                let options = StreamOptions::new().priority(-(random.below(3) as i32));
                program.streams[beside] = match random.below(2) {
                    0 => jit.stream_with(options)?,
                    _ => jit.adopt_stream(TheirStream::new(&program.fake))?,
                };
                let [reads, writes, copies] = &kernels[0];
                let on = |kernel: &Prepared| kernel.on(&program.streams[beside]);
                kernels[beside + 1] = [on(reads)?, on(writes)?, on(copies)?];
            }
            assert_eq!(
                program.fake.race(),
                None,
                "seed {seed}, step {step}: {operation:?}"
            );
        }
        let ledger = program.fake.ledger();
        assert!(
            (1..=62).contains(&ledger.streams),
            "seed {seed}: {ledger:?}"
        );
    }
    Ok(())
}

/// Threads that read one buffer, each in a stream of its own, and then one that writes it.
#[test]
fn threads_that_share_a_buffer() -> Result<()> {
    let mut program = Program::new(4)?;
    program.fake.set_lazy(true);
    for round in 0..100 {
        let (kernels, buffers) = (&program.kernels, &program.buffers);
        std::thread::scope(|scope| {
            for kernels in &kernels[1..] {
                scope.spawn(|| {
                    for _ in 0..3 {
                        let read = kernels[0].launch(1, 1, args!(&buffers[0]));
                        read.expect("the fake driver takes it");
                    }
                });
            }
        });
        program.run(&[Write(round % 5, 0)])?;
    }
    Ok(())
}

/// Threads that each write a part of one buffer, in a stream of their own.
#[test]
fn threads_that_write_parts() -> Result<()> {
    let program = Program::new(2)?;
    program.fake.set_lazy(true);
    program.fake.set_slow(true);
    let (kernels, mut x) = (&program.kernels, program.jit.zeros::<u32>(8)?);
    let (left, right) = x.split_at_mut(4);
    std::thread::scope(|scope| {
        for (kernels, part) in kernels[1..].iter().zip([left, right]) {
            scope.spawn(move || {
                for step in 0..50 {
                    let launched = kernels[1].launch(1, 1, args!(&mut *part));
                    launched.expect("the fake driver takes it");
                    match step % 10 {
                        3 => part.fill(7).expect("it is written"),
                        6 => drop(part.to_vec().expect("it is read")),
                        _ => {}
                    }
                }
            });
        }
    });
    program.kernels[0][1].launch(1, 1, args!(&mut x))?;
    drop(x);
    assert_eq!(program.fake.race(), None);
    Ok(())
}

/// Kernels of several threads and streams that write one global.
#[test]
fn threads_that_write_a_global() -> Result<()> {
    let program = Program::new(3)?;
    program.fake.set_lazy(true);
    program.fake.set_slow(true);
    let counts = Kernel::build("uses_w", |k| {
        k.global("count", &[0u32]).at(0).set(1u32);
    })?;
    let counts = program.jit.compile(&counts, args!())?;
    counts.launch(1, 1, args!())?;
    let global = program.jit.global::<u32>("count")?;
    std::thread::scope(|scope| {
        for stream in &program.streams {
            let (counts, global) = (counts.on(stream).expect("its stream"), &global);
            scope.spawn(move || {
                for step in 0..50 {
                    counts
                        .launch(1, 1, args!())
                        .expect("the fake driver takes it");
                    match step % 10 {
                        3 => global.write(&[7]).expect("it is written"),
                        6 => drop(global.to_vec().expect("it is read")),
                        _ => {}
                    }
                }
            });
        }
    });
    assert_eq!(program.fake.race(), None);
    Ok(())
}

/// In one stream nothing waits for an event, whatever a program does.
#[test]
fn one_stream_waits_for_nothing() -> Result<()> {
    let mut program = Program::new(1)?;
    for list in [
        [Write(0, 0), Copy(0, 0), ToVec(1)],
        [Upload(0), Read(0, 0), Drop(0)],
    ] {
        program.run(&list)?;
    }
    assert_eq!(program.fake.waits(), 0);
    // A crossing is one event, and the second launch waits for nothing that the first has not waited for.
    program.run(&[])?;
    let before = program.fake.waits();
    for operation in [Write(0, 0), Read(1, 0), Read(1, 0), Copy(1, 0)] {
        program.apply(operation)?;
    }
    // For the writes of either buffer, of which the second is older.
    assert_eq!(program.fake.waits() - before, 1);
    Ok(())
}

/// An event orders what no buffer does.
#[test]
fn streams_wait_for_events() -> Result<()> {
    let program = Program::new(2)?;
    let (one, other) = (&program.streams[0], &program.streams[1]);
    program.fake.set_lazy(true);
    program.kernels[1][0].launch(1, 1, args!(&program.buffers[0]))?;
    let event = one.record()?;
    assert!(!event.is_done()? && !one.is_done()?);
    other.wait(&event)?;
    other.synchronize()?;
    assert!(event.is_done()? && one.is_done()?);
    let elsewhere = Jit::on(Device::cpu());
    let foreign = other.wait(&elsewhere.record()?).unwrap_err();
    assert!(
        foreign.to_string().contains("different devices"),
        "{foreign}"
    );
    let foreign = program.kernels[0][0]
        .on(&elsewhere.stream()?)
        .unwrap_err()
        .to_string();
    assert!(
        foreign.starts_with("the stream is of CPU device"),
        "{foreign}"
    );
    Ok(())
}

/// A fault is told by who waits for its stream, or for all.
#[test]
fn faults_of_streams() -> Result<()> {
    let fake = Fake::new();
    let jit = Jit::on(Device::cuda_of(fake.open()?, 0)?);
    let kernel = Kernel::build("uses_wf", |k| {
        let x = k.slice_mut("x", Type::U32);
        x.at(9).set(1u32);
    })?;
    let (one, other) = (jit.stream()?, jit.stream()?);
    let mut x = jit.zeros::<u32>(4)?;
    let ready = jit.compile(&kernel, args!(&mut x))?;
    let tag = ready.info().kernel_tag;
    let fault = |jit: &Jit, x: &mut Buffer<u32>| -> Result<()> {
        jit.launch(&kernel, 1, 1, args!(x))?;
        assert!(fake.raise_fault(fake.last_launch()[7], 0, tag, 9, 4));
        Ok(())
    };
    let told = |result: Result<()>| result.unwrap_err().to_string().contains("index 9");
    fault(&one, &mut x)?;
    other.synchronize()?;
    assert!(told(one.synchronize()));
    one.synchronize()?;
    // Those of several streams: the first is told for all.
    fault(&other, &mut x)?;
    fault(&one, &mut x)?;
    fault(&jit, &mut x)?;
    assert!(told(jit.synchronize()));
    jit.synchronize()?;
    one.synchronize()?;
    // Who reads a buffer waits for the stream that wrote it.
    fault(&other, &mut x)?;
    one.synchronize()?;
    assert!(told(x.to_vec().map(drop)));
    x.to_vec()?;
    // What the stream wrote may come from what it has waited for, and not from what was launched there later.
    fault(&one, &mut x)?;
    let mut y = jit.zeros::<u32>(4)?;
    other.launch(&kernel, 1, 1, args!(&mut y))?;
    y.to_vec()?;
    assert!(told(one.synchronize()));
    fault(&one, &mut x)?;
    other.launch(&kernel, 1, 1, args!(&mut x))?;
    assert!(told(x.to_vec().map(drop)));
    x.to_vec()?;
    Ok(())
}

/// Calls that streams make: what they may do, and how a panic is told.
#[test]
fn calls_on_the_host() -> Result<()> {
    let program = Program::new(1)?;
    let (jit, stream) = (program.jit.clone(), &program.streams[0]);
    let (send, receive) = std::sync::mpsc::channel();
    let dropped = jit.zeros::<u32>(1)?;
    let used = || program.jit.device().memory_stats().used;
    let memory = used();
    stream.then(move || {
        let refused = [
            jit.synchronize().unwrap_err(),
            jit.zeros::<u32>(1).map(drop).unwrap_err(),
            dropped.to_vec().map(drop).unwrap_err(),
            jit.stream().map(drop).unwrap_err(),
        ];
        drop(dropped);
        send.send(refused.map(|error| error.to_string()))
            .expect("it is received");
    })?;
    for error in receive.recv().expect("the call is made") {
        assert!(error.starts_with("a call that a stream makes"), "{error}");
    }
    stream.synchronize()?;
    // The buffer was left, and is freed when memory is asked for.
    assert_eq!(used(), memory);
    drop(program.jit.zeros::<u32>(1)?);
    assert_eq!(used(), memory - 4);
    stream.then(|| panic!("no coffee"))?;
    let told = stream.synchronize().unwrap_err().to_string();
    assert_eq!(
        told,
        "a call that a stream makes (`Stream::then`) panicked: no coffee; the work behind it went on"
    );
    stream.synchronize()?;
    Ok(())
}

/// Copies that nobody waits for: their memory is theirs until they are done, also where they are given up.
#[test]
fn copies_that_nobody_waits_for() -> Result<()> {
    let Program {
        fake,
        jit,
        streams,
        kernels,
        mut buffers,
        ..
    } = Program::new(2)?;
    fake.set_lazy(true);
    let pinned = || fake.ledger().pinned;
    let before = pinned();
    for stream in 0..3 {
        kernels[stream][1].launch(1, 1, args!(&mut buffers[0]))?;
        let written = buffers[0].write_later(jit.pinned(&[stream as u32, 2, 3])?)?;
        assert!(!written.is_done()?);
        kernels[2 - stream][0].launch(1, 1, args!(&buffers[0]))?;
        let read = buffers[0].read_later(written.wait()?)?;
        assert!(!read.is_done()?);
        assert_eq!(read.wait()?[..], [stream as u32, 2, 3]);
        assert_eq!(pinned(), before);
        // Given up, it stays until it is done and memory is asked for.
        kernels[stream][1].launch(1, 1, args!(&mut buffers[1]))?;
        drop(buffers[1].write_later(jit.pinned(&[7u32])?)?);
        assert_eq!(pinned(), before + 1);
        drop(jit.pinned(&[7u32])?);
        assert_eq!(pinned(), before + 1);
        assert_eq!(buffers[1].to_vec()?[0], 7);
        drop(jit.pinned(&[7u32])?);
        assert_eq!(pinned(), before);
    }
    let too_many = buffers[0].read_later(jit.pinned(&[0u32; 5])?);
    assert!(too_many.is_err());
    // The end of the device waits.
    drop(buffers[0].read_later(jit.pinned(&[0u32; 4])?)?);
    assert_eq!(fake.race(), None);
    drop((buffers, kernels, streams, jit));
    assert_eq!(fake.ledger(), super::fake::Ledger::default());
    Ok(())
}

/// A task that is woken by a condition variable.
#[derive(Default)]
struct Task {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        *self.woken.lock().expect("nobody panics") = true;
        self.changed.notify_all();
    }
}

impl Task {
    /// Runs a future to its end.
    fn finish<F: Future + Unpin>(mut future: F) -> F::Output {
        let task = Arc::new(Task::default());
        let waker = Waker::from(task.clone());
        loop {
            if let Poll::Ready(result) =
                Pin::new(&mut future).poll(&mut task::Context::from_waker(&waker))
            {
                return result;
            }
            let mut woken = task.woken.lock().expect("nobody panics");
            while !*woken {
                woken = task.changed.wait(woken).expect("nobody panics");
            }
            *woken = false;
        }
    }
}

/// Who waits for a limited time comes back, and a device that is lost wakes who awaits a copy, with the error.
#[test]
fn waiting_for_copies_ends() -> Result<()> {
    let mut program = Program::new(1)?;
    let (fake, jit, buffers) = (&program.fake, &program.jit, &mut program.buffers);
    fake.set_lazy(true);
    let mut read = buffers[0].read_later(jit.pinned(&[9u32])?)?;
    assert!(read.wait_for(Duration::from_millis(2))?.is_none());
    jit.synchronize()?;
    let values = read.wait_for(Duration::ZERO)?.expect("it is done");
    assert_eq!(values[..], [0]);
    assert!(read.wait_for(Duration::ZERO).is_err());
    let lost = buffers[0].read_later(values)?;
    let awaited = std::thread::spawn(|| Task::finish(lost).map(drop));
    while !is_watched() {
        std::thread::yield_now();
    }
    fake.fail("*", 1, 719);
    let error = awaited.join().expect("nobody panics").unwrap_err();
    assert!(error.to_string().contains("719"), "{error}");
    // The thread that has looked ends when there is nothing to look at.
    while is_watched() {
        std::thread::yield_now();
    }
    Ok(())
}

/// Whether there is a thread that looks for copies that are awaited.
fn is_watched() -> bool {
    let threads = std::fs::read_dir("/proc/self/task").expect("it is there");
    let names =
        threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    names.into_iter().any(|name| name.trim() == "kiln watcher")
}

/// The end of all that a program has: nothing is left in the driver.
#[test]
fn nothing_is_left() -> Result<()> {
    let Program {
        fake,
        jit,
        streams,
        kernels,
        buffers,
        ..
    } = Program::new(3)?;
    let stream = streams[0].clone();
    stream.then(move || drop((jit, streams)))?;
    drop((kernels, buffers, stream));
    assert_eq!(fake.ledger(), super::fake::Ledger::default());
    Ok(())
}
