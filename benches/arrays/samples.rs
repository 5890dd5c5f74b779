//! Samples of ours and of the peers in turn, each of at least a millisecond, and their medians.

use std::time::Instant;

use kiln::array::ArrayError;
use kiln::core::runtime::Event;
use kiln::prelude::*;

use crate::peers::Peers;
use crate::report::median;
use crate::table::{Goal, Row, Table};

/// What a work is compared with: the fastest of these requests, and what is to be reached.
pub type Against = (Vec<String>, Goal);

/// The most runs of a sample.
const MOST_RUNS: u32 = 1000;

/// What is measured with.
pub struct Bench {
    pub arrays: Arrays,
    pub peers: Peers,
    pub table: Table,
    /// Small sizes, few samples.
    pub quick: bool,
    /// Those whose name has one of these alone; without any, all.
    pub filter: Vec<String>,
}

impl Bench {
    /// Samples of each.
    pub fn samples(&self) -> usize {
        if self.quick { 3 } else { 11 }
    }

    /// So many elements, `2^log`, or few, and how names have it.
    pub fn elements(&self, log: u32) -> (usize, String) {
        let log = if self.quick { log - log.min(16) } else { log };
        (1 << log, format!("2^{log}"))
    }

    /// An extent of several.
    pub fn extent(&self, extent: usize) -> usize {
        match self.quick {
            true => extent.div_ceil(64).max(16),
            false => extent,
        }
    }

    /// Whether a work is to be measured.
    pub fn wants(&self, name: &str) -> bool {
        let is_named = |part: &String| name.contains(part.as_str());
        self.filter.is_empty() || self.filter.iter().any(is_named)
    }

    /// Measures a work beside its peers: a row for each list of them.
    pub fn compare<R>(
        &mut self,
        name: &str,
        against: &[Against],
        mut run: impl FnMut() -> Result<R, ArrayError>,
    ) -> kiln::Result<()> {
        if !self.wants(name) {
            return Ok(());
        }
        let mut run = || run().map(drop);
        run()?;
        let first = self.sample(1, &mut run)?;
        let runs = (1.0 / first.max(1e-6)).ceil().max(1.0) as u32;
        let runs = runs.min(MOST_RUNS);
        let mut requests: Vec<&String> = against.iter().flat_map(|(list, _)| list).collect();
        // The first answer makes a work ready.
        requests.retain(|request| self.peers.sample(request).is_some());
        let mut ours = Vec::new();
        let mut theirs: Vec<Vec<f64>> = vec![Vec::new(); requests.len()];
        for _ in 0..self.samples() {
            ours.push(self.sample(runs, &mut run)?);
            for (times, request) in theirs.iter_mut().zip(&requests) {
                times.extend(self.peers.sample(request));
            }
        }
        self.peers.rest();
        let medians = requests.iter().zip(&theirs);
        let medians: Vec<(&String, f64)> = medians
            .filter(|(_, times)| !times.is_empty())
            .map(|(request, times)| (*request, median(times)))
            .collect();
        for (list, goal) in against {
            let of_list = medians.iter().filter(|(request, _)| list.contains(request));
            let best = of_list.min_by(|a, b| a.1.total_cmp(&b.1));
            if matches!(goal, Goal::None) && best.is_none() && against.len() > 1 {
                continue;
            }
            self.table.add(Row {
                name: name.to_owned(),
                ours: median(&ours),
                unit: "ms",
                peer: best.map(|(request, ms)| ((*request).clone(), *ms)),
                goal: *goal,
            });
        }
        Ok(())
    }

    /// Milliseconds of a run, of so many in a row: by events on a GPU, else by the clock.
    fn sample(
        &self,
        runs: u32,
        run: &mut dyn FnMut() -> Result<(), ArrayError>,
    ) -> kiln::Result<f64> {
        let jit = self.arrays.jit();
        let device = jit.device();
        jit.synchronize()?;
        if device.info().kind != DeviceKind::Cuda {
            let start = Instant::now();
            (0..runs).try_for_each(|_| run())?;
            jit.synchronize()?;
            return Ok(start.elapsed().as_secs_f64() * 1e3 / f64::from(runs));
        }
        let start = Event::record(device)?;
        (0..runs).try_for_each(|_| run())?;
        let end = Event::record(device)?;
        Ok(start.elapsed_ms(&end)? / f64::from(runs))
    }
}
