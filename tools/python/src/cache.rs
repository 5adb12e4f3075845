//! Cache layers written in Python.
//!
//! An object with `step(now, event)` stands where a machine of the catalogue would. Its answers
//! are held against the laws of `iolab_policy::cache` before the simulator sees them: what breaks
//! them ends the run with an error instead of an inconsistent simulation.

use crate::failure::Trouble;
use iolab_policy::cache::{Action, Cache, CacheLaws, Event, FlushId, Operation, Settings, Tag};
use iolab_policy::{Laws, Machine};
use iolab_vocab::{Direction, Extent, FileId, Nanos};
use pyo3::prelude::*;

/// Steps between two looks for an interrupt.
const STEPS_PER_LOOK: u64 = 4096;

/// What a cache layer is told.
#[pyclass(frozen, module = "iolab")]
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the stub of the package documents them")]
pub enum CacheEvent {
    ReadArrived { tag: u32, file: u32, offset: u64, length: u64 },
    WriteAnnounced { tag: u32, file: u32, offset: u64, length: u64 },
    WriteOffered { bytes: u64 },
    WriteArrived { tag: u32, file: u32, offset: u64, length: u64 },
    Completed { operation: u32 },
    DeviceReady {},
    Released { bytes: u64 },
    FlushArrived { flush: u32, file: u32 },
    Woke {},
}

/// What a cache layer wants done.
#[pyclass(frozen, module = "iolab")]
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the stub of the package documents them")]
pub enum CacheAction {
    Admit {},
    Refuse {},
    Read { operation: u32, file: u32, offset: u64, length: u64 },
    Write { operation: u32, file: u32, offset: u64, length: u64 },
    Deliver { tag: u32, offset: u64, length: u64 },
    Flushed { flush: u32 },
    RetryRefused {},
    WakeAt { time: u64 },
}

impl From<Event> for CacheEvent {
    fn from(event: Event) -> CacheEvent {
        match event {
            Event::ReadArrived { tag: Tag(tag), file: FileId(file), extent } => {
                CacheEvent::ReadArrived { tag, file, offset: extent.offset, length: extent.length }
            }
            Event::WriteAnnounced { tag: Tag(tag), file: FileId(file), extent } => {
                let Extent { offset, length } = extent;
                CacheEvent::WriteAnnounced { tag, file, offset, length }
            }
            Event::WriteOffered { bytes } => CacheEvent::WriteOffered { bytes },
            Event::WriteArrived { tag: Tag(tag), file: FileId(file), extent } => {
                CacheEvent::WriteArrived { tag, file, offset: extent.offset, length: extent.length }
            }
            Event::Completed { operation } => CacheEvent::Completed { operation: operation.0 },
            Event::DeviceReady => CacheEvent::DeviceReady {},
            Event::Released { bytes } => CacheEvent::Released { bytes },
            Event::FlushArrived { flush: FlushId(flush), file: FileId(file) } => {
                CacheEvent::FlushArrived { flush, file }
            }
            Event::Woke => CacheEvent::Woke {},
        }
    }
}

impl From<&CacheAction> for Action {
    fn from(action: &CacheAction) -> Action {
        let transfer = |direction, operation, file, offset, length| Action::Transfer {
            operation: Operation(operation),
            direction,
            file: FileId(file),
            extent: Extent::new(offset, length),
        };
        match *action {
            CacheAction::Admit {} => Action::Admit,
            CacheAction::Refuse {} => Action::Refuse,
            CacheAction::Read { operation, file, offset, length } => {
                transfer(Direction::Read, operation, file, offset, length)
            }
            CacheAction::Write { operation, file, offset, length } => {
                transfer(Direction::Write, operation, file, offset, length)
            }
            CacheAction::Deliver { tag, offset, length } => {
                Action::Deliver { tag: Tag(tag), extent: Extent::new(offset, length) }
            }
            CacheAction::Flushed { flush } => Action::Flushed { flush: FlushId(flush) },
            CacheAction::RetryRefused {} => Action::RetryRefused,
            CacheAction::WakeAt { time } => Action::WakeAt(Nanos(time)),
        }
    }
}

/// One server's cache layer in Python.
pub(crate) struct PythonCache {
    policy: Py<PyAny>,
    name: String,
    laws: CacheLaws,
    trouble: Trouble,
    step_count: u64,
}

impl PythonCache {
    /// Asks `make` for a policy of these settings.
    pub(crate) fn make(
        py: Python<'_>,
        make: &Py<PyAny>,
        settings: Settings,
        trouble: Trouble,
    ) -> PyResult<PythonCache> {
        let class = py.import("iolab.policies")?.getattr("CacheSettings")?;
        let described = class.call1((
            settings.capacity_bytes,
            settings.access_bytes,
            settings.depth.max(1),
            settings.near_bytes,
        ))?;
        let policy = make.bind(py).call1((described,))?;
        let name = policy.get_type().name()?.to_string();
        let (policy, laws) = (policy.unbind(), CacheLaws::new(settings));
        Ok(PythonCache { policy, name, laws, trouble, step_count: 0 })
    }

    fn ask(&mut self, py: Python<'_>, now: Nanos, event: Event) -> Result<Vec<Action>, Wrong> {
        self.step_count += 1;
        if self.step_count.is_multiple_of(STEPS_PER_LOOK) {
            py.check_signals().map_err(Wrong::Interrupted)?;
        }
        let answer = self
            .policy
            .bind(py)
            .call_method1("step", (now.0, CacheEvent::from(event)))
            .map_err(Wrong::Raised)?;
        let mut actions = Vec::new();
        if !answer.is_none() {
            for action in answer.try_iter().map_err(Wrong::Raised)? {
                let action = action.map_err(Wrong::Raised)?;
                let action = action.cast::<CacheAction>().map_err(|_| {
                    Wrong::Broken(format!("answered {action}, which is no CacheAction"))
                })?;
                actions.push(Action::from(action.get()));
            }
        }
        self.laws.check(now, &event, &actions).map_err(Wrong::Broken)?;
        Ok(actions)
    }
}

enum Wrong {
    Raised(PyErr),
    Interrupted(PyErr),
    Broken(String),
}

impl Machine for PythonCache {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        let asked = match self.trouble.is_there() {
            true => None,
            false => Python::attach(|py| match self.ask(py, now, event) {
                Ok(actions) => Some(actions),
                Err(wrong) => {
                    let place =
                        format!("cache layer {} at {:.6} s: {event:?}", self.name, now.seconds());
                    match wrong {
                        Wrong::Raised(raised) => self.trouble.raised(py, &place, raised),
                        Wrong::Interrupted(raised) => self.trouble.keep(raised),
                        Wrong::Broken(what) => self.trouble.broken(py, &place, &what),
                    }
                    None
                }
            }),
        };
        match asked {
            Some(actions) => out.extend(actions),
            None if matches!(event, Event::WriteOffered { .. }) => out.push(Action::Refuse),
            None => {}
        }
    }
}

impl Cache for PythonCache {
    fn held_bytes(&self) -> u64 {
        self.laws.held_bytes()
    }

    fn queued_count(&self) -> usize {
        0
    }
}
