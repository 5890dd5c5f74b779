//! Target machines that wait for the next compile.
//!
//! To make one takes LLVM half a millisecond, as long as the passes for a kernel of a few lines, and it is the same for all
//! kernels of a device. It holds nothing of a context's, so that it may serve compile after compile, on one thread at a
//! time.

use std::ops::Deref;
use std::thread;

use inkwell::OptimizationLevel;
use inkwell::targets::TargetMachine;
use parking_lot::Mutex;

/// What a machine was made for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Kind {
    pub(super) triple: String,
    pub(super) cpu: String,
    pub(super) features: String,
    pub(super) level: OptimizationLevel,
}

/// The most machines that wait: more than are used at once are rare.
const MOST_IDLE: usize = 8;

/// The most compiles that a machine serves. That for NVPTX keeps the names of all parameters that it has written.
const MOST_USES: u32 = 64;

/// The machines of this process that no compile uses, the one that was used last behind the others.
pub(super) static IDLE: Idle = Idle(Mutex::new(Vec::new()));

/// Target machines that nobody uses.
pub(super) struct Idle(Mutex<Vec<Made>>);

struct Made {
    machine: TargetMachine,
    kind: Kind,
    uses: u32,
}

// SAFETY: LLVM binds a target machine to no thread. It is used by one at a time, which has taken it out of the list.
unsafe impl Send for Made {}

impl Idle {
    /// One that waits, or a new one by `make`, if that makes any.
    pub(super) fn take(
        &'static self,
        kind: &Kind,
        make: impl FnOnce() -> Option<TargetMachine>,
    ) -> Option<InUse> {
        let waiting = {
            let mut idle = self.0.lock();
            let at = idle.iter().rposition(|made| made.kind == *kind);
            at.map(|at| idle.remove(at))
        };
        let made = match waiting {
            Some(made) => made,
            None => Made {
                machine: make()?,
                kind: kind.clone(),
                uses: 0,
            },
        };
        Some(InUse {
            idle: self,
            made: Some(made),
        })
    }

    /// Has a machine wait, and gives the one that has waited longest if too many do.
    fn put(&self, made: Made) -> Option<Made> {
        let mut idle = self.0.lock();
        idle.push(made);
        (idle.len() > MOST_IDLE).then(|| idle.remove(0))
    }
}

/// A target machine that is used by one compile, and waits for the next one afterwards.
pub(super) struct InUse {
    idle: &'static Idle,
    /// There until it is dropped.
    made: Option<Made>,
}

impl InUse {
    /// What the machine was made for.
    pub(super) fn kind(&self) -> &Kind {
        &self.made().kind
    }

    fn made(&self) -> &Made {
        self.made.as_ref().expect("it is not dropped")
    }
}

impl Deref for InUse {
    type Target = TargetMachine;

    fn deref(&self) -> &TargetMachine {
        &self.made().machine
    }
}

impl Drop for InUse {
    /// What a panic has interrupted is not used again.
    fn drop(&mut self) {
        let Some(mut made) = self.made.take() else {
            return;
        };
        made.uses += 1;
        if thread::panicking() || made.uses >= MOST_USES {
            return;
        }
        // Without the lock, as it takes LLVM a while.
        drop(self.idle.put(made));
    }
}

#[cfg(test)]
mod tests {
    use inkwell::targets::{CodeModel, RelocMode, Target, TargetTriple};

    use super::*;
    use crate::llvm::session::on_compile_thread;

    /// A machine of a list, for a version of PTX.
    fn take(idle: &'static Idle, ptx: u32) -> InUse {
        let triple = TargetTriple::create("nvptx64-nvidia-cuda");
        let level = OptimizationLevel::Default;
        let kind = Kind {
            triple: "nvptx64-nvidia-cuda".to_owned(),
            cpu: "sm_75".to_owned(),
            features: format!("+ptx{ptx}"),
            level,
        };
        let target = Target::from_triple(&triple).expect("it is there");
        let (cpu, features) = (&kind.cpu, &kind.features);
        let (reloc, model) = (RelocMode::PIC, CodeModel::Default);
        let make = || target.create_target_machine(&triple, cpu, features, level, reloc, model);
        idle.take(&kind, make).expect("it is known")
    }

    /// The versions of PTX and the uses of the machines that wait.
    fn waiting(idle: &Idle) -> Vec<(String, u32)> {
        let idle = idle.0.lock();
        idle.iter()
            .map(|made| (made.kind.features.clone(), made.uses))
            .collect()
    }

    fn on_thread(work: impl FnOnce() + Send + 'static) {
        on_compile_thread("idle", work).expect("LLVM is there, and nothing panics");
    }

    #[test]
    fn a_machine_waits_for_the_next_compile_and_not_after_a_panic() {
        static IDLE: Idle = Idle(Mutex::new(Vec::new()));
        on_thread(|| drop(take(&IDLE, 65)));
        assert_eq!(waiting(&IDLE), [("+ptx65".to_owned(), 1)]);
        on_thread(|| {
            let machines = [take(&IDLE, 65), take(&IDLE, 65), take(&IDLE, 70)];
            assert!(waiting(&IDLE).is_empty(), "each is used by one at a time");
            drop(machines);
        });
        let uses = waiting(&IDLE).into_iter().map(|(_, uses)| uses);
        assert_eq!(uses.collect::<Vec<_>>(), [2, 1, 1]);
        let panics = || {
            let _machines = [take(&IDLE, 65), take(&IDLE, 65)];
            panic!("planted");
        };
        assert!(on_compile_thread::<()>("panics", panics).is_err());
        assert_eq!(waiting(&IDLE), [("+ptx70".to_owned(), 1)]);
    }

    #[test]
    fn a_machine_serves_so_many_compiles_and_so_many_wait() {
        static IDLE: Idle = Idle(Mutex::new(Vec::new()));
        on_thread(|| (1..MOST_USES).for_each(|_| drop(take(&IDLE, 73))));
        assert_eq!(waiting(&IDLE), [("+ptx73".to_owned(), MOST_USES - 1)]);
        on_thread(|| drop(take(&IDLE, 73)));
        assert!(waiting(&IDLE).is_empty());
        on_thread(|| (70..79).for_each(|ptx| drop(take(&IDLE, ptx))));
        let versions = waiting(&IDLE).into_iter().map(|(features, _)| features);
        assert_eq!(
            versions.collect::<Vec<_>>(),
            (71..79).map(|ptx| format!("+ptx{ptx}")).collect::<Vec<_>>()
        );
    }
}
