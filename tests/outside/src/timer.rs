//! How long each kernel takes on the device.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use kiln::core::hook::Hook;
use kiln::core::runtime::{Device, Event};

/// Kernels and the milliseconds of their launches.
pub type Times = Arc<Mutex<Vec<(String, f64)>>>;

/// Adds each launch's time to a list.
pub fn timer(device: Device, times: Times) -> Hook {
    let began = Arc::new(Mutex::new(HashMap::<ThreadId, Event>::new()));
    let (begin, this) = (began.clone(), std::thread::current);
    let end_on = device.clone();
    Hook::new("timer")
        .before_launch(move |_| {
            begin
                .lock()
                .unwrap()
                .insert(this().id(), Event::record(&device)?);
            Ok(())
        })
        .after_launch(move |launch, _| {
            let start = began.lock().unwrap().remove(&this().id());
            let end = Event::record(&end_on).ok();
            let took = start
                .zip(end)
                .and_then(|(start, end)| start.elapsed_ms(&end).ok());
            let line = took.map(|ms| (launch.kernel.to_owned(), ms));
            times.lock().unwrap().extend(line);
        })
}

#[cfg(test)]
mod tests {
    use kiln::core::hook::HookSet;
    use kiln::prelude::*;

    use super::{Times, timer};

    #[kernel]
    fn spin(x: &mut [f32]) {
        let i = global_id().x;
        if i < x.len() {
            let mut sum = 0.0;
            for j in 0..1000 {
                sum = sum * 0.5 + j as f32;
            }
            x[i] += sum;
        }
    }

    #[test]
    fn every_launch_has_its_time() -> kiln::Result<()> {
        let (device, times) = (Device::cpu(), Times::default());
        let hooks = HookSet::new().with(timer(device.clone(), times.clone()));
        let jit = Jit::with(device, hooks, JitOptions::default());
        let mut x = jit.zeros::<f32>(1000)?;
        for _ in 0..3 {
            spin.launch(&jit, (16, 64), &mut x)?;
        }
        let times = times.lock().unwrap();
        assert_eq!(times.len(), 3);
        assert!(
            times
                .iter()
                .all(|(kernel, ms)| kernel == "spin" && *ms > 0.0),
            "{times:?}"
        );
        Ok(())
    }
}
