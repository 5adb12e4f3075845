//! Calls that go on: what was started, and what came of it.

use super::external::External;
use super::file::File;
use super::session;
use super::trouble::Trouble;
use iolab_pfs::client::{Call, Outcome};
use iolab_pfs_node::{Memory, Started};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A call that goes on beside the program, or has ended.
pub(super) struct Ongoing {
    /// The file that it is on.
    pub(super) file: Arc<File>,
    state: Mutex<State>,
}

enum State {
    UnderWay(Started<'static>, Option<External>),
    Over(Result<u64, Trouble>),
}

impl Ongoing {
    /// Begins an access, which uses the program's memory until it is over; what is read in another form is
    /// converted then.
    pub(super) fn start(
        file: Arc<File>,
        access: Call,
        memory: impl Memory + Send + 'static,
        external: Option<External>,
    ) -> Result<Arc<Ongoing>, Trouble> {
        let state = Mutex::new(State::UnderWay(session::start(access, memory)?, external));
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
        match &mut *state {
            State::Over(_) => true,
            State::UnderWay(started, external) => match started.outcome() {
                None => false,
                Some(outcome) => {
                    *state = State::Over(moved(outcome, external.as_mut()));
                    true
                }
            },
        }
    }

    /// Waits for its end; how many bytes it has moved.
    pub(super) fn wait(&self) -> Result<u64, Trouble> {
        let mut state = self.state();
        if let State::UnderWay(started, external) = &mut *state {
            *state = State::Over(moved(session::wait(started), external.as_mut()));
        }
        match &*state {
            State::Over(result) => result.clone(),
            // It was just replaced.
            State::UnderWay(..) => Ok(0),
        }
    }

    /// What came of it, if it is over.
    pub(super) fn result(&self) -> Option<Result<u64, Trouble>> {
        match &*self.state() {
            State::Over(result) => Some(result.clone()),
            State::UnderWay(..) => None,
        }
    }
}

fn moved(outcome: Outcome, external: Option<&mut External>) -> Result<u64, Trouble> {
    let bytes = session::bytes(outcome?)?;
    external.map_or(Ok(bytes), |external| external.moved(bytes))
}
