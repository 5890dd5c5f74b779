//! Arrays beside copies by the driver, CUB, torch and CuPy on a GPU, and beside loops of OpenMP and NumPy on a CPU.
//!
//! `cargo bench --bench arrays`. On a GPU a fused expression is beside a copy of as many bytes as it reads and writes,
//! all else beside the peer that the row names; without one, or with `--cpu`, the works of a CPU are measured. Ours are
//! timed as a program has them: expressions into an array that is there, all else with its result's allocation; results
//! stay on the device, but for the number of those that a mask selects. Samples of all take turns, each of a
//! millisecond at least.
//!
//! - `--quick`: all works with few elements, without peers unless `--peers` is said, too: whether they run.
//! - `--compiled`: torch.compile is tried besides, which takes seconds for each work.
//! - `--filter TEXT`: those whose name has it alone; said several times, those whose name has one of the texts.

#[path = "arrays/cpu.rs"]
mod cpu;
mod driver;
#[path = "arrays/host.rs"]
mod host;
#[path = "arrays/peers.rs"]
mod peers;
mod report;
#[path = "arrays/samples.rs"]
mod samples;
#[path = "arrays/table.rs"]
mod table;
#[path = "arrays/whole.rs"]
mod whole;

use kiln::core::target::Target;
use kiln::prelude::*;
use lexopt::prelude::*;

use peers::Peers;
use samples::Bench;
use table::Table;

/// The command line.
#[derive(Default)]
struct Options {
    quick: bool,
    peers: bool,
    compiled: bool,
    cpu: bool,
    filter: Vec<String>,
    /// The device of a process that evaluates for the first time.
    first: Option<String>,
}

fn options() -> Result<Options, lexopt::Error> {
    let mut options = Options::default();
    let mut args = lexopt::Parser::from_env();
    while let Some(arg) = args.next()? {
        match arg {
            Long("quick") => options.quick = true,
            Long("peers") => options.peers = true,
            Long("compiled") => options.compiled = true,
            Long("cpu") => options.cpu = true,
            Long("filter") => options.filter.push(args.value()?.string()?),
            Long("first") => options.first = Some(args.value()?.string()?),
            // Cargo says that this is a bench.
            Long("bench") => {}
            _ => return Err(arg.unexpected()),
        }
    }
    Ok(options)
}

fn main() -> kiln::Result<()> {
    let options = match options() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}; options are --quick, --peers, --compiled, --cpu, --filter TEXT");
            std::process::exit(2);
        }
    };
    if let Some(device) = &options.first {
        return host::first(device);
    }
    let jit = match options.cpu {
        true => Jit::on(Device::cpu()),
        false => Jit::new()?,
    };
    let gpu = match jit.target() {
        Target::Ptx(target) => Some(target.sm),
        _ => None,
    };
    let peers = match gpu {
        _ if options.quick && !options.peers => Peers::none(),
        Some(sm) => Peers::of_gpu(sm, options.compiled),
        None => Peers::of_cpu(),
    };
    let mut bench = Bench {
        arrays: Arrays::new(&jit),
        peers,
        table: Table::default(),
        quick: options.quick,
        filter: options.filter,
    };
    if gpu.is_some() || options.quick {
        bench.whole()?;
    }
    if gpu.is_none() {
        bench.on_cpu()?;
    }
    bench.host_costs()?;
    bench.first_evaluations()?;
    bench.table.print();
    Ok(())
}
