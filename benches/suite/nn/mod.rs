//! How far each of many places is from one (Rodinia's nn, nearest neighbours), which the host then picks from.

use kiln::prelude::*;

use crate::data::{Random, close};
use crate::{Benchmark, Bound, Checked, Launch, Launcher, Workload};

pub const NN: Benchmark = Benchmark {
    name: "nn",
    bound: Bound::Memory,
    source: include_str!("mod.rs"),
    twin: include_str!("twin.cu"),
    make: |jit, size| {
        let n = size.of(1000, 1 << 20, 1 << 26);
        let mut random = Random::new(12);
        let mut place = || Place {
            latitude: 90.0 * random.unit(),
            longitude: 180.0 * random.unit(),
        };
        let host: Vec<Place> = (0..n).map(|_| place()).collect();
        Ok(Box::new(Nn {
            places: jit.upload(&host)?,
            distances: jit.zeros(n)?,
            host,
        }))
    },
};

const BLOCK: usize = 256;
const FROM: Place = Place {
    latitude: 30.0,
    longitude: 90.0,
};

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Place {
    latitude: f32,
    longitude: f32,
}

#[kernel]
fn distances(places: &[Place], to: &mut [f32], from: Place) {
    let i = block_dim().x * (grid_dim().x * block_idx().y + block_idx().x) + thread_idx().x;
    if i < places.len() {
        let (dx, dy) = (
            from.latitude - places[i].latitude,
            from.longitude - places[i].longitude,
        );
        to[i] = (dx * dx + dy * dy).sqrt();
    }
}

struct Nn {
    places: Buffer<Place>,
    distances: Buffer<f32>,
    host: Vec<Place>,
}

impl Workload for Nn {
    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        let n = self.places.len();
        let blocks = n.div_ceil(BLOCK);
        let across = blocks.min(4096);
        launcher.launch(&Launch {
            kernel: &distances,
            twin: "distances",
            config: LaunchConfig::new((across, blocks.div_ceil(across)), BLOCK),
            args: args!(&self.places, &mut self.distances, FROM),
            lengths: &[n],
        })
    }

    fn check(&mut self) -> Checked {
        let distance = |place: &Place| {
            let (dx, dy) = (
                FROM.latitude - place.latitude,
                FROM.longitude - place.longitude,
            );
            (dx * dx + dy * dy).sqrt()
        };
        let wanted: Vec<f32> = self.host.iter().map(distance).collect();
        close(&self.distances.to_vec()?, &wanted, 1e-6)
    }
}
