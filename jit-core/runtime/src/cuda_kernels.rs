//! The names of kernels on a CUDA device, for turning a fault record into an error.
//!
//! A record has the number of its kernel. What it stands for is known as long as code of the kernel is loaded, and
//! a while longer: unloading waits for the launches, but not for whoever waits for these next and is to be told.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use kiln_ir::code::KernelInfo;
use kiln_ir::fault::FaultRecord;
use kiln_ir::launch::KernelFault;

use super::error::Result;

/// How many kernels are known that are no longer loaded, some 2 MB of them: those that left last.
const MOST_GONE: usize = 4096;

/// Kernels by the number that records have.
#[derive(Default)]
pub(super) struct LoadedKernels(Mutex<Kernels>);

#[derive(Default)]
struct Kernels {
    /// With how often it is loaded.
    loaded: HashMap<u64, (Arc<KernelInfo>, usize)>,
    gone: VecDeque<Arc<KernelInfo>>,
}

/// Names a kernel for as long as it lives, which is while code of the kernel is loaded.
pub(super) struct Named {
    kernels: Arc<LoadedKernels>,
    tag: u64,
}

impl LoadedKernels {
    /// Names a kernel for as long as its code is loaded.
    pub(super) fn enter(self: &Arc<Self>, kernel: &Arc<KernelInfo>) -> Named {
        let tag = kernel.kernel_tag;
        let mut kernels = self.0.lock();
        let entry = kernels.loaded.entry(tag);
        entry.or_insert_with(|| (kernel.clone(), 0)).1 += 1;
        Named {
            kernels: self.clone(),
            tag,
        }
    }

    /// The error that a record tells of.
    pub(super) fn told(&self, record: Option<FaultRecord>) -> Result<()> {
        let Some(record) = record else {
            return Ok(());
        };
        let kernels = self.0.lock();
        let tag = record.kernel_tag;
        let loaded = kernels.loaded.get(&tag).map(|(kernel, _)| kernel);
        let of_tag = |kernel: &&Arc<KernelInfo>| kernel.kernel_tag == tag;
        match loaded.or_else(|| kernels.gone.iter().rev().find(of_tag)) {
            Some(kernel) => Err(kernel.fault(&record).into()),
            None => Err(KernelFault::of_unknown(&record).into()),
        }
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let mut kernels = self.kernels.0.lock();
        let Some((kernel, count)) = kernels.loaded.get_mut(&self.tag) else {
            return;
        };
        *count -= 1;
        if *count > 0 {
            return;
        }
        let kernel = kernel.clone();
        kernels.loaded.remove(&self.tag);
        if kernels.gone.len() == MOST_GONE {
            kernels.gone.pop_front();
        }
        kernels.gone.push_back(kernel);
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::DeviceError;
    use super::*;
    use kiln_ir::abi::ParamLayout;

    fn kernel(tag: u64) -> Arc<KernelInfo> {
        Arc::new(KernelInfo {
            name: "k".to_owned(),
            param_names: Vec::new(),
            layout: ParamLayout::default(),
            hidden: Vec::new(),
            fault_sites: Vec::new(),
            print_sites: Vec::new(),
            kernel_tag: tag,
            launch_bounds: None,
            shared_bytes: 0,
            waits_for_grid: false,
        })
    }

    fn is_known(kernels: &LoadedKernels, tag: u64) -> bool {
        let record = FaultRecord {
            kernel_tag: tag,
            ..FaultRecord::default()
        };
        match kernels.told(Some(record)) {
            Err(DeviceError::Fault(fault)) => !fault.kernel.is_empty(),
            other => panic!("a record is a fault: {other:?}"),
        }
    }

    #[test]
    fn a_fault_of_a_kernel_that_is_not_known_any_more_says_what_is_known() {
        let text = |index, length| {
            let record = FaultRecord {
                kernel_tag: 7,
                index,
                length,
                block: [1, 0, 0],
                thread: [2, 0, 0],
                ..FaultRecord::default()
            };
            let told = LoadedKernels::default().told(Some(record));
            told.expect_err("a fault").to_string()
        };
        assert_eq!(
            text(9, 4),
            "a kernel that was unloaded since: index 9 is out of bounds for length 4, or these are the values of \
             an assertion (block 1x0x0, thread 2x0x0); the thread ended there, other threads went on; wait for launches before thousands of other kernels are \
             unloaded, and the error names the line"
        );
        assert!(
            text(0, 0).contains("an assumption does not hold, or an element of an empty slice")
        );
    }

    #[test]
    fn kernels_are_known_while_they_are_loaded_and_some_longer() {
        let kernels = Arc::new(LoadedKernels::default());
        let (first, again) = (kernels.enter(&kernel(0)), kernels.enter(&kernel(0)));
        let held = kernels.enter(&kernel(u64::MAX));
        drop(first);
        for tag in 1..=10_000 {
            drop(kernels.enter(&kernel(tag)));
        }
        assert!(is_known(&kernels, 0) && is_known(&kernels, u64::MAX));
        assert!(is_known(&kernels, 10_000) && !is_known(&kernels, 5_000));
        let known = kernels.0.lock();
        assert_eq!((known.loaded.len(), known.gone.len()), (2, MOST_GONE));
        drop(known);
        drop((again, held));
        assert!(is_known(&kernels, 0));
        assert!(kernels.0.lock().loaded.is_empty());
    }
}
