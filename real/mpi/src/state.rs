//! What this process knows of its MPI: who it is, and what its handles stand for.

use crate::family::Family;
use crate::handle::{Communicator, File, Found, Persistent};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

/// Handles, by their value.
pub(crate) struct State {
    pub(crate) family: &'static Family,
    pub(crate) communicators: BTreeMap<usize, Option<Communicator>>,
    pub(crate) files: BTreeMap<usize, File>,
    /// Numbers of what goes on, by request: a family may have one handle for all that ended at once.
    pub(crate) requests: BTreeMap<usize, VecDeque<u32>>,
    /// Requests that the program has asked to cancel.
    pub(crate) cancelled: BTreeSet<u32>,
    /// Messages that were found and not received yet.
    pub(crate) found: BTreeMap<usize, Found>,
    pub(crate) persistent: BTreeMap<usize, Persistent>,
    /// The last request's number in this process.
    last_request: u32,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

/// Works with the state.
pub(crate) fn with<T>(family: &'static Family, work: impl FnOnce(&mut State) -> T) -> T {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    work(state.get_or_insert_with(|| State {
        family,
        communicators: BTreeMap::new(),
        files: BTreeMap::new(),
        requests: BTreeMap::new(),
        cancelled: BTreeSet::new(),
        found: BTreeMap::new(),
        persistent: BTreeMap::new(),
        last_request: 0,
    }))
}

impl State {
    /// A number for something that begins, unique in the process.
    pub(crate) fn next_request(&mut self) -> u32 {
        self.last_request = self.last_request.wrapping_add(1);
        self.last_request
    }

    /// Something begins under this request; the answer is its number.
    pub(crate) fn begin(&mut self, request: usize) -> u32 {
        let number = self.next_request();
        self.requests.entry(request).or_default().push_back(number);
        number
    }

    /// What was begun first under this request is over.
    pub(crate) fn end(&mut self, request: usize) -> Option<u32> {
        let numbers = self.requests.get_mut(&request)?;
        let number = numbers.pop_front();
        if numbers.is_empty() {
            self.requests.remove(&request);
        }
        number
    }
}
