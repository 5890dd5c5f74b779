//! How long each kernel takes on the device.

use std::sync::{Arc, Mutex};

use kiln::core::prelude::*;

/// Kernels and the times of their launches.
pub type Times = Arc<Mutex<Vec<(String, LaunchTime)>>>;

/// Adds each launch's time to a list.
pub fn timer(times: Times) -> Hook {
    Hook::new("timer").before_launch(move |launch| {
        let time = launch.measure();
        times.lock().unwrap().push((launch.kernel.to_owned(), time));
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use kiln::core::prelude::*;
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
        let hooks = HookSet::new().with(timer(times.clone()));
        let jit = Jit::with(device, hooks, JitOptions::default());
        let mut x = jit.zeros::<f32>(1000)?;
        for _ in 0..3 {
            spin.launch(&jit, (16, 64), &mut x)?;
        }
        let times = times.lock().unwrap();
        assert_eq!(times.len(), 3);
        for (kernel, time) in times.iter() {
            assert_eq!(kernel, "spin");
            assert!(time.milliseconds()?.is_some_and(|ms| ms > 0.0), "{time:?}");
        }
        Ok(())
    }
}
