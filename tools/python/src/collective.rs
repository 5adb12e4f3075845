//! Collective algorithms written in Python: one object per rank and call, asked round by round.

use crate::failure::Trouble;
use iolab_policy::collective::{Action, CollectiveLaws, Event, Payload};
use iolab_policy::{Laws, Machine};
use iolab_vocab::{Extent, Nanos};
use pyo3::prelude::*;

/// What a collective algorithm wants done in a round.
#[pyclass(frozen, module = "iolab")]
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the stub of the package documents them")]
pub enum CollectiveAction {
    Send { to: u32, tag: u32, bytes: u64 },
    Receive { from_rank: u32, tag: u32 },
    ReadFile { extents: Vec<(u64, u64)> },
    WriteFile { extents: Vec<(u64, u64)> },
    Finish {},
}

/// One rank's machine in Python.
pub(crate) struct PythonCollective {
    policy: Option<Py<PyAny>>,
    name: String,
    rank: u32,
    laws: CollectiveLaws,
    trouble: Trouble,
}

impl PythonCollective {
    /// Wraps what the maker made, or nothing if it failed.
    pub(crate) fn new(
        policy: Option<Py<PyAny>>,
        name: String,
        rank: u32,
        laws: CollectiveLaws,
        trouble: Trouble,
    ) -> PythonCollective {
        PythonCollective { policy, name, rank, laws, trouble }
    }

    fn ask(&mut self, py: Python<'_>, event: Event) -> PyResult<Result<Vec<Action>, String>> {
        let Some(policy) = &self.policy else { return Ok(Ok(vec![Action::Finish])) };
        let told = match event {
            Event::Began => "began",
            Event::RoundCompleted => "round_completed",
        };
        let answer = policy.bind(py).call_method1("step", (told,))?;
        let mut actions = Vec::new();
        if !answer.is_none() {
            for action in answer.try_iter()? {
                let action = action?;
                let Ok(action) = action.cast::<CollectiveAction>() else {
                    return Ok(Err(format!("answered {action}, which is no CollectiveAction")));
                };
                actions.push(Action::from(action.get()));
            }
        }
        if actions.is_empty() {
            let what = "a round without any action; Finish ends the call".to_owned();
            return Ok(Err(what));
        }
        Ok(self.laws.check(Nanos::ZERO, &event, &actions).map(|()| actions))
    }
}

impl From<&CollectiveAction> for Action {
    fn from(action: &CollectiveAction) -> Action {
        let listed = |extents: &[(u64, u64)]| {
            extents.iter().map(|&(at, length)| Extent::new(at, length)).collect()
        };
        // Who gives sizes only has nothing to carry.
        match action {
            &CollectiveAction::Send { to, tag, bytes } => {
                Action::Send { to, tag, what: Payload::Opaque(bytes) }
            }
            &CollectiveAction::Receive { from_rank: from, tag } => {
                Action::Receive { from, tag, what: Payload::Opaque(0) }
            }
            CollectiveAction::ReadFile { extents } => Action::ReadFile(listed(extents)),
            CollectiveAction::WriteFile { extents } => Action::WriteFile(listed(extents)),
            CollectiveAction::Finish {} => Action::Finish,
        }
    }
}

impl Machine for PythonCollective {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _now: Nanos, event: Event, out: &mut Vec<Action>) {
        if self.trouble.is_there() {
            return out.push(Action::Finish);
        }
        let place = format!("collective {}, rank {}, {event:?}", self.name, self.rank);
        Python::attach(|py| match self.ask(py, event) {
            Ok(Ok(actions)) => out.extend(actions),
            Ok(Err(what)) => self.trouble.broken(py, &place, &what),
            Err(raised) => self.trouble.raised(py, &place, raised),
        });
        if self.trouble.is_there() {
            out.push(Action::Finish);
        }
    }
}
