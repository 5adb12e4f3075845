//! Independent writes of one open file that this rank holds, and that go out when the policy says so.
//!
//! The bytes are copied once, into memory of ours, and go out by a descriptor of ours (`exchange::storage`): together by
//! the machine that carries out collective accesses, or by this rank alone, which needs no call of MPI. An error of
//! bytes that go out late is told by the next call that may tell one: a write, or one that all ranks make.

use super::file::File;
use super::seen::{Located, Seen};
use super::staging::Staging;
use super::{independent, request};
use crate::call::Call;
use crate::exchange::storage::Plain;
use crate::exchange::{Place, guarded, held, told, view};
use crate::pfs::buffer::Buffer;
use crate::pfs::group::Group;
use crate::pfs::numbers::{Class, Numbers};
use crate::pfs::status::set_status;
use crate::pfs::trouble::{Trouble, say};
use iolab_pfs_node::Memory;
use iolab_policy::Machine;
use iolab_policy::insitu::mpiio::Collect;
use iolab_policy::insitu::mpiio::collect::{Action, Batch, Counts, Event, Fate, Probes, Share};
use iolab_vocab::{Direction, Extent, Nanos};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Of one open file.
pub(super) struct Collection {
    plain: Plain,
    state: Mutex<State>,
}

/// What changes while it is open.
struct State {
    stage: Collect,
    staging: Staging,
    actions: Vec<Action>,
    /// An error that nobody has been told.
    late: Option<Trouble>,
    /// Memory for the next exchange.
    spare: Vec<Vec<u8>>,
}

impl State {
    /// Whether nobody has anything to do with a write.
    fn passes_at_once(&mut self) -> bool {
        self.late.is_none() && self.stage.passes_at_once()
    }
}

/// What becomes of a write.
enum Written {
    /// It is the library's; it has so many bytes, as far as that is known.
    Passes(Option<u64>),
    /// It is held, all of its bytes.
    Held(u64),
    /// The error of an earlier one is told in its place.
    Late(Trouble),
}

impl Collection {
    /// Of a file that was opened.
    pub(super) fn new(plain: Plain, stage: Collect) -> Collection {
        let (actions, late, spare) = (Vec::new(), None, Vec::new());
        let staging = Staging::new(stage.buffer_bytes());
        Collection { plain, state: Mutex::new(State { stage, staging, actions, late, spare }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it did.
    pub(super) fn counts(&self) -> Counts {
        self.state().stage.counts()
    }

    /// `MPI_File_write`, `MPI_File_write_at`: held here, or made by `library`; the answer.
    pub(super) fn write(
        &self,
        file: &File,
        call: &Call<'_>,
        place: Place,
        library: &mut dyn FnMut() -> i32,
    ) -> i32 {
        let written = guarded(|| self.written(file, call, place));
        match written.unwrap_or(Written::Passes(None)) {
            Written::Held(bytes) => {
                // SAFETY: the program's status.
                unsafe { set_status(call.word(call.last()), bytes) };
                0
            }
            Written::Late(trouble) => told::raise(&self.plain.path, file.handle, &trouble),
            Written::Passes(bytes) => self.passed(file, self.probed(bytes), library),
        }
    }

    /// `MPI_File_iwrite`, `MPI_File_iwrite_at`: held here, with a request that is over, or begun by `library`; the answer.
    /// One whose time is to be known is made at once, since one that is begun tells nothing of storage.
    pub(super) fn begin_write(
        &self,
        file: &File,
        call: &Call<'_>,
        place: Place,
        library: &mut dyn FnMut() -> i32,
    ) -> i32 {
        let over = |bytes| {
            // SAFETY: the program's room for a request.
            let made = guarded(|| unsafe { request::make_over(call.word(call.last()), bytes) });
            made.unwrap_or_else(|_| Err(Trouble::new(Class::Other, String::new())))
        };
        let raised = |trouble: &Trouble| told::raise(&self.plain.path, file.handle, trouble);
        let written = guarded(|| self.written(file, call, place));
        match written.unwrap_or(Written::Passes(None)) {
            Written::Held(bytes) => over(bytes).map_or_else(|trouble| raised(&trouble), |()| 0),
            Written::Late(trouble) => {
                // A program that looks at no answers waits for it all the same.
                let _ = over(0);
                raised(&trouble)
            }
            Written::Passes(bytes) => {
                let function =
                    || independent::function(Direction::Write, place, call.has_large_counts);
                let Some((bytes, function)) = self.probed(bytes).zip(function()) else {
                    return library();
                };
                let mut words = call.arguments.to_vec();
                words[call.last()] = Numbers::here().ignored_status;
                let mut blocking = || independent::perform(function, &words);
                let answer = self.passed(file, Some(bytes), &mut blocking);
                let made = over(if answer == 0 { bytes } else { 0 });
                match (answer, made) {
                    (0, Err(trouble)) => raised(&trouble),
                    _ => answer,
                }
            }
        }
    }

    /// The bytes of a write that passes, if the time that it takes is to be known.
    fn probed(&self, bytes: Option<u64>) -> Option<u64> {
        bytes.filter(|_| self.state().stage.is_probing())
    }

    /// Makes a write that passes, and tells the stage how long one took whose bytes are given.
    fn passed(&self, file: &File, probed: Option<u64>, make: &mut dyn FnMut() -> i32) -> i32 {
        let Some(bytes) = probed else { return make() };
        let begin = Instant::now();
        let answer = make();
        if answer == 0 {
            let took = Nanos(begin.elapsed().as_nanos() as u64);
            self.step(&mut self.state(), &file.group, Event::WriteEnded(bytes, took), None);
        }
        answer
    }

    fn written(&self, file: &File, call: &Call<'_>, place: Place) -> Written {
        if self.state().passes_at_once() {
            return Written::Passes(None);
        }
        let prepared = self.prepared(&file.seen(), call, place);
        let mut state = self.state();
        if let Some(late) = state.late.take() {
            return Written::Late(late);
        }
        let Some((located, buffer)) = prepared else {
            // Where it goes is not known, so that what is held goes before it.
            self.step(&mut state, &file.group, Event::OtherArrived, None);
            return Written::Passes(None);
        };
        let Located { nest, unit, offset, from, bytes } = located;
        let extents = extents(&nest, from, bytes);
        let event = Event::WriteArrived(extents);
        if self.step(&mut state, &file.group, event, Some(&buffer)) {
            return Written::Passes(Some(bytes));
        }
        if place == Place::Own {
            view::seek(file.handle, offset + bytes / unit);
        }
        Written::Held(bytes)
    }

    /// Where a write goes and what is in it; none if that is not known, or the library has an error to tell.
    fn prepared(&self, seen: &Seen, call: &Call<'_>, place: Place) -> Option<(Located, Buffer)> {
        self.plain.check(true).ok()?;
        let located = seen.located(call, place)?;
        let end = located.from.checked_add(located.bytes)?;
        if end > located.nest.size() {
            return None;
        }
        let at = if place == Place::Explicit { 2 } else { 1 };
        let count = u64::try_from(call.count(at + 1)).ok()?;
        // SAFETY: the program's memory, as the call describes it.
        let buffer = unsafe { Buffer::new(call.word(at), count, call.handle(at + 2)) }.ok()?;
        (buffer.bytes() == located.bytes).then_some((located, buffer))
    }

    /// Before `MPI_File_read`, `MPI_File_read_at`, and those that go on when they have returned.
    pub(super) fn before_read(&self, file: &File, call: &Call<'_>, place: Place) {
        let located = file.seen().located(call, place);
        let mut state = self.state();
        if !state.stage.holds_bytes() {
            return;
        }
        let event = match located {
            Some(Located { nest, from, bytes, .. }) => {
                Event::ReadArrived(extents(&nest, from, bytes), self.plain.size())
            }
            None => Event::OtherArrived,
        };
        self.step(&mut state, &file.group, event, None);
    }

    /// Before a call of this rank alone that needs what it wrote.
    pub(super) fn before_other(&self, group: &Group) {
        let mut state = self.state();
        if state.stage.holds_bytes() {
            self.step(&mut state, group, Event::OtherArrived, None);
        }
    }

    /// Before the end of MPI, with the file still open.
    pub(super) fn before_end(&self, group: &Group) {
        self.before_other(group);
        if let Some(Trouble { text, .. }) = self.state().late.take() {
            say(&format!("{}: {text}", self.plain.path.display()));
        }
    }

    /// All ranks switched atomic mode on or off.
    pub(super) fn atomicity_was_set(&self, file: &File) {
        let is_atomic = file.seen().is_atomic;
        let event = Event::AtomicityChanged(is_atomic);
        self.step(&mut self.state(), &file.group, event, None);
    }

    /// Carries out what the stage wants done about something; true if a call is the library's.
    fn step(
        &self,
        state: &mut State,
        group: &Group,
        event: Event,
        program: Option<&Buffer>,
    ) -> bool {
        let mut actions = std::mem::take(&mut state.actions);
        if !state.staging.is_there() {
            // Nothing can be held, and nothing is.
            return true;
        }
        state.stage.step(Nanos(0), event, &mut actions);
        let mut passes = true;
        for action in actions.drain(..) {
            match action {
                Action::Copy { from, to, length } => {
                    if let Some(program) = program {
                        program.gather(from, state.staging.bytes(to, length));
                    }
                }
                Action::WriteOut(batch) => {
                    let done = self.out_alone(state, group, batch);
                    state.late = state.late.take().or(done.err());
                }
                Action::Pass => {}
                Action::Answer => passes = false,
            }
        }
        state.actions = actions;
        passes
    }

    fn out_alone(&self, state: &mut State, group: &Group, batch: Batch) -> Result<(), Trouble> {
        let mut memory = state.staging.laid(&batch.memory)?;
        held::write_alone((group, &self.plain), Arc::new(batch.file), &mut memory)
    }

    /// Before a call that all ranks make: what they hold goes out, and nobody goes on before all of it is out. An error is
    /// that of the lowest rank that has one.
    pub(super) fn joined(&self, group: &Group) -> Result<(), Trouble> {
        let (Share { bytes, runs, probes: Probes { taken, quick } }, is_late) = {
            let state = self.state();
            (state.stage.share(), state.late.is_some())
        };
        // Others may need long to come here. So long this rank's other threads may write.
        let all = group.gather_words([bytes, runs, taken, quick, u64::from(is_late)])?;
        let share = |&[bytes, runs, taken, quick, _]: &[u64; 5]| {
            let probes = Probes { taken, quick };
            Share { bytes, runs, probes }
        };
        let shares: Vec<Share> = all.iter().map(share).collect();
        let mut state = self.state();
        let fate = state.stage.judge(&shares);
        if fate == Fate::Nothing && all.iter().all(|&[.., is_late]| is_late == 0) {
            return Ok(());
        }
        let out = self.out(&mut state, group, fate);
        let own = state.late.take().map_or(out, Err);
        drop(state);
        held::agreed(group, own)
    }

    fn out(&self, state: &mut State, group: &Group, fate: Fate) -> Result<(), Trouble> {
        if fate == Fate::Nothing {
            return Ok(());
        }
        let batch = state.stage.take(fate)?;
        if fate == Fate::Alone {
            return self.out_alone(state, group, batch);
        }
        let mut memory = state.staging.laid(&batch.memory)?;
        let ranks = (group, &self.plain);
        held::write_together(ranks, Arc::new(batch.file), &mut memory, &mut state.spare)
    }
}

/// The extents of an interval of a view.
fn extents(nest: &iolab_pattern::Nest, from: u64, bytes: u64) -> Vec<Extent> {
    nest.cut(from, from.saturating_add(bytes)).runs().collect()
}
