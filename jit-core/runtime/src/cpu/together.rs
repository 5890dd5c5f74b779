//! Blocks that are there at the same time, each on a thread of the host, and where they wait for each other.

use std::time::Duration;

use kiln_ir::stop::{Stop, StopReason};
use parking_lot::{Condvar, Mutex};

/// After so long who waits looks whether the launch is to end.
const LOOK: Duration = Duration::from_millis(5);

/// Where the blocks of a launch wait for each other.
pub(super) struct Meeting {
    blocks: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Blocks that wait.
    waiting: u64,
    /// Blocks that have ended.
    ended: u64,
    /// How often all have come.
    round: u64,
    /// How many waited when the others had ended.
    deserted: Option<u64>,
}

impl Meeting {
    /// Where so many blocks meet.
    pub(super) fn new(blocks: u64) -> Meeting {
        Meeting {
            blocks,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Waits for all other blocks, or until the launch is to end.
    pub(super) fn wait(&self, stop: &Stop) {
        let mut state = self.state.lock();
        let round = state.round;
        state.waiting += 1;
        self.look(&mut state, stop);
        while state.round == round && !stop.is_asked() {
            self.changed.wait_for(&mut state, LOOK);
        }
    }

    /// A block has ended.
    pub(super) fn end(&self, stop: &Stop) {
        let mut state = self.state.lock();
        state.ended += 1;
        self.look(&mut state, stop);
    }

    /// Ends the round if all have come, and the launch if those that are left wait in vain.
    fn look(&self, state: &mut State, stop: &Stop) {
        if state.waiting == 0 || state.waiting + state.ended < self.blocks || stop.is_asked() {
            return;
        }
        if state.ended == 0 {
            state.round += 1;
            state.waiting = 0;
        } else {
            state.deserted = Some(state.waiting);
            stop.ask(StopReason::Failed);
        }
        self.changed.notify_all();
    }

    /// How many blocks waited for others that had ended, if any did.
    pub(super) fn deserted(&self) -> Option<u64> {
        self.state.lock().deserted
    }
}
