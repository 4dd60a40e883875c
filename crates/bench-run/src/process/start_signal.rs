//! The signal by which processes that have prepared their tasks begin at the same time.

use std::io::Write as _;
use std::process::ChildStdin;
use std::sync::{Arc, Mutex, PoisonError};

/// Lets a process begin that waits in
/// [`Reporter::wait_for_start`](crate::Reporter::wait_for_start). Clones are the same signal. If
/// all are dropped before, the process fails.
#[derive(Clone, Debug, Default)]
pub struct StartSignal(Arc<Mutex<State>>);

#[derive(Debug, Default)]
enum State {
    /// The process has no complete order yet.
    #[default]
    Early,
    /// It has its order, and stdin is open.
    Waiting(ChildStdin),
    /// The signal was given.
    Given,
}

impl StartSignal {
    /// Gives the signal, once; later calls do nothing. A process that has ended needs none.
    pub fn give(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Waiting(stdin) = std::mem::replace(&mut *state, State::Given) {
            begin(stdin);
        }
    }

    /// Keeps stdin open until the signal is given, after the order was written.
    pub(super) fn wait_with(&self, stdin: ChildStdin) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match *state {
            State::Given => begin(stdin),
            State::Early | State::Waiting(_) => *state = State::Waiting(stdin),
        }
    }
}

fn begin(mut stdin: ChildStdin) {
    // Fails only if the process has ended, which its exit status shows.
    let _written = stdin.write_all(b"begin\n");
}
