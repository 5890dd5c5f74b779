//! The programs with directives as C loops with OpenMP, which `cargo xtask bench-peers` compiles by gcc.

use kiln_suite::Size;

use crate::peers::{Peer, folder};

/// The loops of a program for inputs of a size, a process of its own that waits; `None` if there are none.
pub fn peer(program: &str, size: Size) -> Option<Peer> {
    let (nest, extent) = match (program, size) {
        ("matmul naive" | "matmul tiled" | "matmul registers", Size::Medium) => {
            ("nest-product", 256)
        }
        ("jacobi", Size::Medium) => ("nest-jacobi", 1026),
        ("hotspot", Size::Medium) => ("nest-hotspot", 1024),
        ("coulomb", Size::Medium) => ("nest-coulomb", 256),
        ("transpose", Size::Medium) => ("nest-transpose", 1024),
        ("tpacf", Size::Medium) => ("nest-tpacf", 2048),
        _ => return None,
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    match Peer::start(folder().as_deref(), "gcc", nest, (extent, threads)) {
        Ok(peer) => peer.map(|(peer, _)| peer),
        Err(error) => {
            eprintln!("OpenMP is left out: {error}");
            None
        }
    }
}

/// Milliseconds of a run, the mean of some, by the time of all processors.
pub fn time(peer: &mut Peer, runs: usize) -> f64 {
    let sample = u32::try_from(runs).map(|runs| peer.sample(runs));
    match sample {
        Ok(Ok(sample)) => sample.cpu * 1e3,
        Ok(Err(error)) => panic!("OpenMP: {error}"),
        Err(error) => panic!("OpenMP: {error}"),
    }
}
