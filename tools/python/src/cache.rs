//! Cache layers written in Python.
//!
//! An object with `step(now, event)` stands where a machine of the catalogue would. Its answers
//! are checked against the discipline of `iolab_policy::cache` before the simulator sees them:
//! what breaks it ends the run with an error instead of an inconsistent simulation.

use crate::failure::Trouble;
use iolab_policy::cache::{Action, Cache, Event, Operation, Settings, Tag};
use iolab_vocab::{Direction, Extent, FileId, Nanos};
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// Steps between two looks for an interrupt.
const STEPS_PER_LOOK: u64 = 4096;

/// What a cache layer is told.
#[pyclass(frozen, module = "iolab")]
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the stub of the package documents them")]
pub enum CacheEvent {
    ReadArrived { tag: u32, file: u32, offset: u64, length: u64 },
    WriteOffered { bytes: u64 },
    WriteArrived { tag: u32, file: u32, offset: u64, length: u64 },
    Completed { operation: u32 },
    DeviceReady {},
    Released { bytes: u64 },
    FlushArrived { tag: u32, file: u32 },
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
    Deliver { tag: u32, bytes: u64 },
    Flushed { tag: u32 },
    Welcome {},
    WakeAt { time: u64 },
}

impl From<Event> for CacheEvent {
    fn from(event: Event) -> CacheEvent {
        match event {
            Event::ReadArrived { tag: Tag(tag), file: FileId(file), extent } => {
                CacheEvent::ReadArrived { tag, file, offset: extent.offset, length: extent.length }
            }
            Event::WriteOffered { bytes } => CacheEvent::WriteOffered { bytes },
            Event::WriteArrived { tag: Tag(tag), file: FileId(file), extent } => {
                CacheEvent::WriteArrived { tag, file, offset: extent.offset, length: extent.length }
            }
            Event::Completed { operation } => CacheEvent::Completed { operation: operation.0 },
            Event::DeviceReady => CacheEvent::DeviceReady {},
            Event::Released { bytes } => CacheEvent::Released { bytes },
            Event::FlushArrived { tag: Tag(tag), file: FileId(file) } => {
                CacheEvent::FlushArrived { tag, file }
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
            CacheAction::Deliver { tag, bytes } => Action::Deliver { tag: Tag(tag), bytes },
            CacheAction::Flushed { tag } => Action::Flushed { tag: Tag(tag) },
            CacheAction::Welcome {} => Action::Welcome,
            CacheAction::WakeAt { time } => Action::WakeAt(Nanos(time)),
        }
    }
}

/// One server's cache layer in Python.
pub(crate) struct PythonCache {
    policy: Py<PyAny>,
    name: String,
    discipline: Discipline,
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
        let (policy, discipline) = (policy.unbind(), Discipline::new(settings));
        Ok(PythonCache { policy, name, discipline, trouble, step_count: 0 })
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
        self.discipline.check(now, event, &actions).map_err(Wrong::Broken)?;
        Ok(actions)
    }
}

enum Wrong {
    Raised(PyErr),
    Interrupted(PyErr),
    Broken(String),
}

impl Cache for PythonCache {
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

    fn held_bytes(&self) -> u64 {
        self.discipline.held_bytes
    }

    fn queued_count(&self) -> usize {
        0
    }
}

/// What the driver relies on, kept in books.
#[derive(Debug)]
struct Discipline {
    settings: Settings,
    /// By request: bytes that arrived and were not delivered.
    owed: BTreeMap<u32, u64>,
    in_flight: BTreeMap<u32, (Direction, FileId, Extent)>,
    flushes: Vec<u32>,
    held_bytes: u64,
}

impl Discipline {
    fn new(settings: Settings) -> Discipline {
        Discipline {
            settings,
            owed: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            flushes: Vec::new(),
            held_bytes: 0,
        }
    }

    fn check(&mut self, now: Nanos, event: Event, actions: &[Action]) -> Result<(), String> {
        match event {
            Event::ReadArrived { tag, extent, .. } => {
                *self.owed.entry(tag.0).or_default() += extent.length;
            }
            Event::FlushArrived { tag, .. } => self.flushes.push(tag.0),
            Event::Completed { operation } => {
                if let Some((Direction::Write, _, extent)) = self.in_flight.remove(&operation.0) {
                    self.held_bytes = self.held_bytes.saturating_sub(extent.length);
                }
            }
            _ => {}
        }
        let is_answer = |action: &&Action| matches!(action, Action::Admit | Action::Refuse);
        match (event, actions.iter().filter(is_answer).count()) {
            (Event::WriteOffered { .. }, 1) => {}
            (Event::WriteOffered { .. }, count) => {
                return Err(format!("an offered write needs one Admit or Refuse, not {count}"));
            }
            (_, 0) => {}
            _ => return Err("Admit and Refuse only answer an offered write".to_owned()),
        }
        actions.iter().try_for_each(|action| self.take(now, event, *action))
    }

    fn take(&mut self, now: Nanos, event: Event, action: Action) -> Result<(), String> {
        match (action, event) {
            (Action::Admit, Event::WriteOffered { bytes }) => self.held_bytes += bytes,
            (Action::Transfer { operation, direction, file, extent }, _) => {
                return self.launch(operation, (direction, file, extent));
            }
            (Action::Deliver { tag, bytes }, _) => {
                let owed = self.owed.get_mut(&tag.0).filter(|owed| **owed >= bytes && bytes > 0);
                let Some(owed) = owed else {
                    return Err(format!("delivers {bytes} B to request {}: too much", tag.0));
                };
                *owed -= bytes;
                if *owed == 0 {
                    self.owed.remove(&tag.0);
                }
            }
            (Action::Flushed { tag }, _) => {
                let Some(index) = self.flushes.iter().position(|flush| *flush == tag.0) else {
                    return Err(format!("answers flush {}, which nobody asked for", tag.0));
                };
                self.flushes.remove(index);
            }
            (Action::WakeAt(time), _) if time < now => {
                return Err(format!("wants to be woken at {} ns, which is over", time.0));
            }
            _ => {}
        }
        Ok(())
    }

    fn launch(
        &mut self,
        operation: Operation,
        transfer: (Direction, FileId, Extent),
    ) -> Result<(), String> {
        let (direction, file, extent) = transfer;
        if extent.is_empty() || extent.length > self.settings.access_bytes {
            let most = self.settings.access_bytes;
            return Err(format!("transfers {} B at once; 1 to {most} go", extent.length));
        }
        if self.in_flight.len() >= self.settings.depth.max(1) as usize {
            return Err(format!("more than {} transfers at once", self.settings.depth.max(1)));
        }
        let overlaps = |other: &(Direction, FileId, Extent)| {
            (other.0, direction) == (Direction::Write, Direction::Write)
                && other.1 == file
                && other.2.overlaps(extent)
        };
        if self.in_flight.values().any(overlaps) {
            return Err(format!("two writes of {extent} in flight"));
        }
        match self.in_flight.insert(operation.0, transfer) {
            None => Ok(()),
            Some(_) => Err(format!("operation {} is under way already", operation.0)),
        }
    }
}
