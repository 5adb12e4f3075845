//! Calls that go on: what was started, and what came of it.

use super::buffer::Buffer;
use super::file::File;
use super::session;
use super::trouble::Trouble;
use iolab_pfs::client::{Call, Outcome};
use iolab_pfs_node::Started;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A call that goes on beside the program, or has ended.
pub(super) struct Ongoing {
    /// The file that it is on.
    pub(super) file: Arc<File>,
    state: Mutex<State>,
}

enum State {
    UnderWay(Started<'static>),
    Over(Result<u64, Trouble>),
}

impl Ongoing {
    /// Begins an access, which uses the program's memory until it is over.
    pub(super) fn start(
        file: Arc<File>,
        access: Call,
        buffer: Buffer,
    ) -> Result<Arc<Ongoing>, Trouble> {
        let state = Mutex::new(State::UnderWay(session::start(access, buffer)?));
        Ok(Arc::new(Ongoing { file, state }))
    }

    /// One that has moved no byte, as there was none to move.
    pub(super) fn nothing(file: Arc<File>) -> Arc<Ongoing> {
        Arc::new(Ongoing { file, state: Mutex::new(State::Over(Ok(0))) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is over, as far as can be told without waiting.
    pub(super) fn is_over(&self) -> bool {
        let mut state = self.state();
        match &*state {
            State::Over(_) => true,
            State::UnderWay(started) => match started.outcome() {
                None => false,
                Some(outcome) => {
                    *state = State::Over(moved(outcome));
                    true
                }
            },
        }
    }

    /// Waits for its end; how many bytes it has moved.
    pub(super) fn wait(&self) -> Result<u64, Trouble> {
        let mut state = self.state();
        if let State::UnderWay(started) = &*state {
            *state = State::Over(moved(session::wait(started)));
        }
        match &*state {
            State::Over(result) => result.clone(),
            // It was just replaced.
            State::UnderWay(_) => Ok(0),
        }
    }

    /// What came of it, if it is over.
    pub(super) fn result(&self) -> Option<Result<u64, Trouble>> {
        match &*self.state() {
            State::Over(result) => Some(result.clone()),
            State::UnderWay(_) => None,
        }
    }
}

fn moved(outcome: Outcome) -> Result<u64, Trouble> {
    session::bytes(outcome?)
}
