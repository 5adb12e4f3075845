//! A cache manager of the file system: its machine, its thread, and what moves for it.
//!
//! Blocks are sizes here. A request is answered, and a server asked, once the bytes that were moved before
//! have taken their time.

use super::World;
use super::costs::Costs;
use super::ends::{Dispatch, Ends, Heard};
use super::parcel::{Addresses, Asker, Carried, Parcel};
use super::requests::{Requests, TrafficTotals};
use super::thread::Thread;
use crate::queue::EventQueue;
use crate::world::Event;
use iolab_pfs::cache_manager::{self, Action, CacheManager, Place};
use iolab_pfs::{Party, PartyAction, Peer, PeerEvent};
use iolab_policy::Machine;
use iolab_trace::Event as Row;
use std::sync::Arc;

/// What a manager's thread has to do.
pub(super) enum Job {
    /// Look at what has arrived.
    Parcel(Parcel),
    /// Send something, once what was moved for it has been.
    Send(Dispatch),
    /// Nothing more: bytes were moved.
    Moved,
    /// Tell the machine that a connection is lost.
    Lost(Peer),
    /// Wake it.
    Wake,
}

/// What a cache manager has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheTotals {
    /// What clients asked of it.
    pub traffic: TrafficTotals,
    /// Blocks that were read from memory.
    pub hit_count: u64,
    /// Blocks that a read had to wait for.
    pub miss_count: u64,
    /// Questions to servers for missing bytes.
    pub fetch_count: u64,
    /// Bytes that servers answered them with.
    pub fetched_bytes: u64,
    /// Blocks that were brought to servers.
    pub flush_count: u64,
    /// Their bytes.
    pub flushed_bytes: u64,
    /// Most bytes of blocks that had some no server had.
    pub unsaved_bytes_max: u64,
}

/// A manager around its machine.
pub(super) struct Cache {
    number: u32,
    machine: CacheManager,
    pub(super) thread: Thread<Job>,
    pub(super) ends: Ends,
    costs: Costs,
    requests: Requests,
    totals: CacheTotals,
    /// As which process rows of a trace name it.
    pub(super) row_process: u32,
    actions: Vec<Action>,
}

impl Cache {
    /// A manager in its one life.
    pub(super) fn new(
        settings: cache_manager::Settings,
        thread: Thread<Job>,
        addresses: Arc<Addresses>,
        costs: Costs,
    ) -> Cache {
        Cache {
            number: settings.index,
            machine: CacheManager::new(settings),
            ends: Ends::new(thread.node, addresses),
            thread,
            costs,
            requests: Requests::default(),
            totals: CacheTotals::default(),
            row_process: 0,
            actions: Vec::new(),
        }
    }

    /// What it has done so far.
    pub(super) fn totals(&self) -> CacheTotals {
        let counts = self.machine.counts();
        CacheTotals {
            traffic: self.requests.totals(),
            hit_count: counts.hits(),
            miss_count: counts.misses,
            fetch_count: counts.fetches,
            flush_count: counts.flushes,
            ..self.totals
        }
    }

    /// Something has reached its node.
    pub(super) fn arrived<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, parcel: Parcel) {
        if self.thread.is_dead() {
            return;
        }
        for parcel in self.ends.take(parcel) {
            if parcel.party == Party::Cache(self.number) {
                self.requests.arrived(world.now(), &parcel, || world.open_row());
            }
            self.thread.add(world, 0.0, Job::Parcel(parcel));
        }
    }

    /// Its thread is through with a job.
    pub(super) fn work<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>) {
        let Some(job) = self.thread.take_done(world) else { return };
        let event = match job {
            Job::Parcel(parcel) => match self.hear(parcel) {
                Some(event) => event,
                None => return,
            },
            Job::Send(dispatch) => {
                self.note_answer(world, &dispatch);
                return self.ends.send(world, dispatch);
            }
            Job::Moved => return,
            Job::Lost(peer) => cache_manager::Event::Peer(PeerEvent::Lost { peer, ended: false }),
            Job::Wake => cache_manager::Event::Woke,
        };
        self.tell(world, event);
    }

    fn hear(&mut self, parcel: Parcel) -> Option<cache_manager::Event> {
        let bytes = parcel.payload_bytes();
        Some(match self.ends.hear(parcel)? {
            Heard::Peer(event) => cache_manager::Event::Peer(event),
            Heard::Party(event) => {
                self.totals.fetched_bytes += bytes;
                cache_manager::Event::Party(event)
            }
        })
    }

    /// The machine is told something, and gets what it wants.
    pub(super) fn tell<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        event: cache_manager::Event,
    ) {
        let mut actions = std::mem::take(&mut self.actions);
        self.machine.step(world.now(), event, &mut actions);
        let unsaved_bytes = self.machine.counts().unsaved_bytes;
        self.totals.unsaved_bytes_max = self.totals.unsaved_bytes_max.max(unsaved_bytes);
        let mut seconds = 0.0;
        for action in actions.drain(..) {
            seconds += self.carry_out(world, action, seconds);
        }
        if seconds > 0.0 {
            self.thread.add(world, seconds, Job::Moved);
        }
        self.actions = actions;
    }

    /// Does what the machine wants, behind moves of so many seconds. Gives how many more there are then.
    fn carry_out<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        action: Action,
        before: f64,
    ) -> f64 {
        let costs = self.costs;
        match action {
            Action::Peer(action) => {
                let party = Party::Cache(self.number);
                let answer = self.ends.answer(party, action, |(_, bytes)| bytes);
                self.thread.add(world, before, Job::Send(answer));
            }
            Action::Party(action) => {
                let bytes = match &action {
                    PartyAction::Ask { payload: Some(row), .. } => u64::from(row.to - row.from),
                    _ => 0,
                };
                self.totals.flushed_bytes += bytes;
                let asker = Asker::Cache(self.number as usize);
                if let Some(question) = self.ends.ask(asker, action, |_| bytes) {
                    // A row is sent as a copy: the block may change meanwhile.
                    self.thread.add(world, before + costs.copied(bytes), Job::Send(question));
                }
            }
            Action::Scatter { to: place, .. } | Action::Gather { from: place, .. } => {
                return moved(&costs, &place);
            }
            Action::Fill { runs, .. } => {
                let bytes = runs.iter().map(|(from, to)| u64::from(to - from)).sum();
                return costs.copied(bytes);
            }
            Action::WakeAt(at) => {
                self.thread.wake_at(world, at);
                return 0.0;
            }
            Action::Take { .. }
            | Action::Free { .. }
            | Action::Forget { .. }
            | Action::Release { .. } => return 0.0,
        }
        // What was moved before is in the job that sends.
        -before
    }

    fn note_answer<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, answer: &Dispatch) {
        let Carried::Replied { request, payload, .. } = &answer.what else { return };
        let bytes = payload.map_or(0, |(_, bytes)| bytes);
        let which = (answer.connection.peer(), *request);
        let row = self.requests.answered(world.now(), which, bytes);
        if let (Some((id, row)), Some(recorder)) = (row, world.recorder()) {
            recorder.ends(id);
            recorder.keep(id, Row { process: self.row_process, ..row });
        }
    }

    /// Whether all it has to do is to say that it is there.
    pub(super) fn is_quiet(&self) -> bool {
        let is_quiet = |job: &Job| match job {
            Job::Parcel(parcel) => parcel.is_sign_of_life(),
            Job::Send(dispatch) => dispatch.what.is_sign_of_life(),
            Job::Wake => true,
            Job::Moved | Job::Lost(_) => false,
        };
        self.thread.jobs().all(is_quiet)
    }
}

/// Seconds it takes to gather or scatter the bytes of a view in a block.
fn moved(costs: &Costs, place: &Place) -> f64 {
    costs.moved(place.to - place.from, place.view.cut(place.from, place.to).run_count())
}
