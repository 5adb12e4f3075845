//! Collective algorithms written in Python: one object per rank and call, asked round by round.

use crate::failure::Trouble;
use iolab_policy::collective::{Action, Collective, Event};
use iolab_vocab::Extent;
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
    rank_count: u32,
    is_file: bool,
    extents: Vec<Extent>,
    trouble: Trouble,
}

impl PythonCollective {
    /// Wraps what the maker made, or nothing if it failed.
    pub(crate) fn new(
        policy: Option<Py<PyAny>>,
        name: String,
        rank: u32,
        rank_count: u32,
        is_file: bool,
        trouble: Trouble,
    ) -> PythonCollective {
        let extents = Vec::new();
        PythonCollective { policy, name, rank, rank_count, is_file, extents, trouble }
    }

    fn ask(&mut self, py: Python<'_>, event: Event) -> PyResult<Result<Vec<Action>, String>> {
        let Some(policy) = &self.policy else { return Ok(Ok(vec![Action::Finish])) };
        let event = match event {
            Event::Began => "began",
            Event::Settled => "settled",
        };
        let answer = policy.bind(py).call_method1("step", (event,))?;
        let mut actions = Vec::new();
        if answer.is_none() {
            return Ok(Ok(actions));
        }
        for action in answer.try_iter()? {
            let action = action?;
            let Ok(action) = action.cast::<CollectiveAction>() else {
                return Ok(Err(format!("answered {action}, which is no CollectiveAction")));
            };
            match self.translate(action.get()) {
                Ok(action) => actions.push(action),
                Err(what) => return Ok(Err(what)),
            }
        }
        if actions.is_empty() {
            let what = "a round without any action; Finish ends the call".to_owned();
            return Ok(Err(what));
        }
        Ok(Ok(actions))
    }

    fn translate(&mut self, action: &CollectiveAction) -> Result<Action, String> {
        let partner = |rank: u32| match rank < self.rank_count {
            true => Ok(rank),
            false => Err(format!("names rank {rank} of {}", self.rank_count)),
        };
        Ok(match action {
            &CollectiveAction::Send { to, tag, bytes } => {
                Action::Send { to: partner(to)?, tag, bytes }
            }
            &CollectiveAction::Receive { from_rank, tag } => {
                Action::Receive { from: partner(from_rank)?, tag }
            }
            CollectiveAction::ReadFile { extents } => {
                self.access(extents)?;
                Action::ReadFile
            }
            CollectiveAction::WriteFile { extents } => {
                self.access(extents)?;
                Action::WriteFile
            }
            CollectiveAction::Finish {} => Action::Finish,
        })
    }

    fn access(&mut self, extents: &[(u64, u64)]) -> Result<(), String> {
        if !self.is_file {
            return Err("accesses a file in a command of messages".to_owned());
        }
        self.extents = extents.iter().map(|&(at, length)| Extent::new(at, length)).collect();
        Ok(())
    }
}

impl Collective for PythonCollective {
    fn step(&mut self, event: Event, out: &mut Vec<Action>) {
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

    fn extents(&self) -> &[Extent] {
        &self.extents
    }
}
