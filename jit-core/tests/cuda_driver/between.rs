//! Copies between two devices, in every order of a few operations, and what the reader of a copy is told.

use kiln_jit_core::args;
use kiln_jit_core::build::Kernel;
use kiln_jit_core::ir::Type;
use kiln_jit_core::jit::{Jit, Stream};
use kiln_jit_core::runtime::cuda::Driver;
use kiln_jit_core::runtime::{Buffer, Device};

use super::fake::Fake;

type Result<T, E = kiln_jit_core::error::Error> = std::result::Result<T, E>;

/// Something that a program does on one of two devices, by number.
#[derive(Copy, Clone, Debug)]
enum Operation {
    /// A launch that reads the device's buffer: in its own stream, or in the other that it has.
    Read(usize, usize),
    /// One that writes it.
    Write(usize, usize),
    /// A copy of the other device's buffer to that of this one.
    Receive(usize),
    ToVec(usize),
    Upload(usize),
    /// The end of its buffer, in whose place another comes.
    Drop(usize),
}
use Operation::*;

/// A device with a stream beside its own, and a buffer.
struct Place {
    jit: Jit,
    stream: Stream,
    buffer: Buffer<u32>,
}

impl Place {
    fn new(driver: &'static Driver, ordinal: u32) -> Result<Place> {
        let jit = Jit::on(Device::cuda_of(driver, ordinal)?);
        Ok(Place {
            stream: jit.stream()?,
            buffer: jit.upload(&[ordinal; 4])?,
            jit,
        })
    }

    fn in_stream(&self, stream: usize) -> &Jit {
        match stream {
            0 => &self.jit,
            _ => &self.stream,
        }
    }
}

struct Program {
    fake: Fake,
    places: [Place; 2],
    reads: Kernel,
    writes: Kernel,
}

impl Program {
    fn new() -> Result<Program> {
        let fake = Fake::new();
        fake.set(12080, 2, 0, 1 << 30);
        let driver = fake.open()?;
        Ok(Program {
            places: [Place::new(driver, 0)?, Place::new(driver, 1)?],
            reads: Kernel::build("uses_r", |k| {
                k.slice("x", Type::U32);
            })?,
            writes: Kernel::build("uses_w", |k| k.slice_mut("x", Type::U32).at(0).set(1u32))?,
            fake,
        })
    }

    fn apply(&mut self, operation: Operation) -> Result<()> {
        let [first, second] = &mut self.places;
        match operation {
            Read(at, stream) => {
                let place = &self.places[at];
                let args = args!(&place.buffer);
                place.in_stream(stream).launch(&self.reads, 1, 1, args)
            }
            Write(at, stream) => {
                let place = &mut self.places[at];
                let jit = match stream {
                    0 => &place.jit,
                    _ => &place.stream,
                };
                jit.launch(&self.writes, 1, 1, args!(&mut place.buffer))
            }
            Receive(0) => first.buffer.copy_from(&second.buffer),
            Receive(_) => second.buffer.copy_from(&first.buffer),
            ToVec(at) => self.places[at].buffer.to_vec().map(drop),
            Upload(at) => self.places[at].buffer.write(&[7]),
            Drop(at) => {
                let place = &mut self.places[at];
                place.buffer = place.jit.zeros(4)?;
                Ok(())
            }
        }
    }

    fn run(&mut self, operations: &[Operation]) -> Result<()> {
        for operation in operations {
            self.apply(*operation)?;
        }
        self.apply(Drop(0))?;
        self.apply(Drop(1))?;
        assert_eq!(
            self.fake.race(),
            None,
            "{operations:?}, and the end of the buffers"
        );
        Ok(())
    }
}

fn all() -> Vec<Operation> {
    let on = |at: usize| {
        let launches = (0..2).flat_map(move |stream| [Read(at, stream), Write(at, stream)]);
        launches.chain([Receive(at), ToVec(at), Upload(at), Drop(at)])
    };
    (0..2).flat_map(on).collect()
}

#[test]
fn every_order_of_a_few_operations() -> Result<()> {
    let mut program = Program::new()?;
    program.fake.set_lazy(true);
    let (all, copies) = (all(), program.fake.peer_copies());
    // By the devices' names half of the lists are the other half: the first is on the first.
    for first in &all[..all.len() / 2] {
        for second in &all {
            for third in &all {
                for fourth in &all {
                    program.run(&[*first, *second, *third, *fourth])?;
                }
            }
        }
    }
    assert!(program.fake.peer_copies() - copies > 8_000);
    Ok(())
}

/// What is copied, and that nobody has waited for it.
#[test]
fn values_go_over() -> Result<()> {
    let program = Program::new()?;
    let [first, second] = program.places;
    let (mut x, mut y) = (first.buffer, second.stream.zeros::<u32>(6)?);
    x.write(&[1, 2, 3])?;
    y.copy_from(&x)?;
    assert_eq!(program.fake.peer_copies(), 1);
    assert_eq!(y.to_vec()?, [1, 2, 3, 0, 0, 0]);
    // A part of one to a part of the other.
    x[2..].copy_from(&y[1..3])?;
    assert_eq!(x.to_vec()?, [1, 2, 2, 3]);
    assert_eq!(program.fake.peer_copies(), 2);
    let refused = x.copy_from(&y).unwrap_err().to_string();
    assert!(refused.contains('6') && refused.contains('4'), "{refused}");
    // From and to a CPU they go through the host, as between two of these.
    let (cpu, other) = (Jit::on(Device::cpu()), Jit::on(Device::cpu()));
    let (mut here, mut there) = (cpu.zeros::<u32>(6)?, other.zeros::<u32>(6)?);
    here.copy_from(&y)?;
    there.copy_from(&here)?;
    x.copy_from(&there[1..5])?;
    assert_eq!(x.to_vec()?, [2, 3, 0, 0]);
    assert_eq!(program.fake.peer_copies(), 2);
    assert_eq!(program.fake.race(), None);
    Ok(())
}

/// Who reads a copy is told of what the launch before it has left unfinished, on whichever device, through however many
/// streams and devices, once.
#[test]
fn faults_behind_a_copy() -> Result<()> {
    let program = Program::new()?;
    let (fake, [first, second]) = (&program.fake, program.places);
    let faults = Kernel::build("uses_wf", |k| {
        k.slice_mut("x", Type::U32).at(9).set(1u32);
    })?;
    let (mut x, mut y) = (first.buffer, second.buffer);
    let tag = first.jit.compile(&faults, args!(&mut x))?.info().kernel_tag;
    let fault = |x: &mut Buffer<u32>| -> Result<()> {
        first.stream.launch(&faults, 1, 1, args!(x))?;
        assert!(fake.raise_fault(fake.last_launch()[7], 0, tag, 9, 4));
        Ok(())
    };
    let told = |result: Result<Vec<u32>>| result.unwrap_err().to_string().contains("index 9");
    fault(&mut x)?;
    y.copy_from(&x)?;
    assert!(told(y.to_vec()));
    y.to_vec()?;
    x.to_vec()?;
    // A copy that the host has waited for is as wrong.
    fault(&mut x)?;
    y.copy_from(&x)?;
    second.jit.synchronize()?;
    assert!(told(y.to_vec()));
    // And so is what another stream makes of it, which has nothing to wait for then.
    let copies = Kernel::build("uses_rw", |k| {
        let x = k.slice("x", Type::U32);
        k.slice_mut("y", Type::U32).at(0).set(x.at(0));
    })?;
    let mut z = second.jit.zeros::<u32>(4)?;
    fault(&mut x)?;
    y.copy_from(&x)?;
    second.jit.synchronize()?;
    second.stream.launch(&copies, 1, 1, args!(&y, &mut z))?;
    assert!(told(z.to_vec()));
    // Through another stream, and in a copy that a task awaits.
    fault(&mut x)?;
    y.copy_from(&x)?;
    second.stream.launch(&copies, 1, 1, args!(&y, &mut z))?;
    let later = z.read_later(second.jit.pinned(&[0; 4])?)?;
    assert!(told(later.wait().map(|values| values.to_vec())));
    // To and fro: the device that told of it first does not tell of it again.
    fault(&mut x)?;
    y.copy_from(&x)?;
    x.copy_from(&y)?;
    assert!(told(x.to_vec()));
    y.to_vec()?;
    assert_eq!(program.fake.race(), None);
    Ok(())
}

/// A copy from a device that is lost is not whole, whoever asks.
#[test]
fn a_device_that_is_lost() -> Result<()> {
    let program = Program::new()?;
    let [first, second] = program.places;
    let mut y = second.buffer;
    y.copy_from(&first.buffer)?;
    program.fake.fail("cuStreamQuery", 1, 700);
    for _ in 0..2 {
        let error = y.to_vec().unwrap_err().to_string();
        assert!(error.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{error}");
    }
    Ok(())
}

/// Threads that copy buffers with parts to and fro, each of which holds a lock of one device and asks for the other's.
#[test]
fn threads_that_copy_to_and_fro() -> Result<()> {
    let program = Program::new()?;
    program.fake.set_lazy(true);
    let [first, second] = program.places;
    let (mut x, mut y) = (first.jit.zeros::<u32>(8)?, second.jit.zeros::<u32>(8)?);
    let ((x, to_x), (to_y, y)) = (x.split_at_mut(4), y.split_at_mut(4));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (0..500)
                .try_for_each(|_| to_y.copy_from(x))
                .expect("it goes")
        });
        scope.spawn(|| {
            (0..500)
                .try_for_each(|_| to_x.copy_from(y))
                .expect("it goes")
        });
    });
    assert_eq!(program.fake.race(), None);
    Ok(())
}

/// A device may be closed while it is in a copy.
#[test]
fn the_end_of_a_device() -> Result<()> {
    for ends in 0..2 {
        let program = Program::new()?;
        program.fake.set_lazy(true);
        let [first, second] = program.places;
        let mut y = second.buffer;
        y.copy_from(&first.buffer)?;
        match ends {
            0 => {
                drop((first.buffer, first.stream, first.jit));
                assert_eq!(y.to_vec()?, [0; 4]);
            }
            _ => drop((y, second.stream, second.jit)),
        }
        assert_eq!(program.fake.race(), None);
    }
    Ok(())
}
