//! Work on a GPU timed beside a peer's, by events.

use kiln::core::runtime::{Device, Event};

use crate::report::median;

/// How often both run, and how often before that to warm up.
const TURNS: usize = 15;
const WARM_UP: usize = 3;

/// Median milliseconds of ours and of a peer's work in the device's own stream, done in turn.
///
/// # Errors
/// Those of the work, and of events.
pub fn in_turn(
    device: &Device,
    mut ours: impl FnMut() -> kiln::Result<()>,
    mut peers: impl FnMut() -> kiln::Result<()>,
) -> kiln::Result<[f64; 2]> {
    let mut times = [Vec::new(), Vec::new()];
    for turn in 0..WARM_UP + TURNS {
        let start = Event::record(device)?;
        ours()?;
        let middle = Event::record(device)?;
        peers()?;
        let end = Event::record(device)?;
        if turn >= WARM_UP {
            times[0].push(start.elapsed_ms(&middle)?);
            times[1].push(middle.elapsed_ms(&end)?);
        }
    }
    Ok(times.map(|times| median(&times)))
}
