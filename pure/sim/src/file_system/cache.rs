//! A cache manager of the file system: its machine, its thread, and what moves for it.
//!
//! Blocks are sizes here. A request is answered, and a server asked, once the bytes that were moved before
//! have taken their time.

use super::World;
use super::costs::Costs;
use super::parcel::{Addresses, Asker, Carried, ConnectionId, INCARNATION, Parcel, Wires};
use super::requests::{Requests, TrafficTotals};
use super::thread::Thread;
use crate::queue::EventQueue;
use crate::world::{Event, Target};
use iolab_pfs::cache_manager::{self, Action, CacheManager, Place};
use iolab_pfs::{Buffer, Party, Peer};
use iolab_policy::Machine;
use iolab_trace::Event as Row;
use std::collections::BTreeMap;

/// What a manager's thread has to do.
pub(super) enum Job {
    /// Look at what has arrived.
    Parcel(Parcel),
    /// Send something, once what was moved for it has been.
    Send { to: Target, connection: ConnectionId, party: Party, what: Carried },
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
    addresses: Addresses,
    costs: Costs,
    wires: Wires,
    links: BTreeMap<Party, ConnectionId>,
    connection_count: u32,
    requests: Requests,
    last_buffer: u64,
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
        addresses: Addresses,
        costs: Costs,
    ) -> Cache {
        Cache {
            number: settings.index,
            machine: CacheManager::new(settings),
            thread,
            addresses,
            costs,
            wires: Wires::default(),
            links: BTreeMap::new(),
            connection_count: 0,
            requests: Requests::default(),
            last_buffer: 0,
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
        for parcel in self.wires.take(parcel) {
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
            Job::Parcel(parcel) => match self.event_of(parcel) {
                Some(event) => event,
                None => return,
            },
            Job::Send { to, connection, party, what } => {
                self.note_answer(world, connection, &what);
                let ends = (self.thread.node, to);
                return self.wires.send(world, ends, (connection, party), what);
            }
            Job::Moved => return,
            Job::Lost(peer) => cache_manager::Event::PeerLost { peer, ended: false },
            Job::Wake => cache_manager::Event::Woke,
        };
        self.tell(world, event);
    }

    fn event_of(&mut self, parcel: Parcel) -> Option<cache_manager::Event> {
        let Parcel { connection, party, what, .. } = parcel;
        let peer = connection.peer();
        let is_current = self.links.get(&party) == Some(&connection);
        match what {
            Carried::Hello => {
                let session = self.addresses.session(connection);
                Some(cache_manager::Event::PeerUp { peer, session })
            }
            Carried::Bye => Some(cache_manager::Event::PeerLost { peer, ended: false }),
            Carried::Asked { request, message, payload } => {
                Some(cache_manager::Event::Asked { peer, request, message, payload })
            }
            _ if !is_current => None,
            Carried::Welcome { known } => {
                Some(cache_manager::Event::Connected { to: party, incarnation: INCARNATION, known })
            }
            Carried::Ended => Some(cache_manager::Event::Disconnected { from: party }),
            Carried::Replied { request, message, payload } => {
                self.totals.fetched_bytes += payload.map_or(0, |(_, bytes)| bytes);
                let payload = payload.map(|(buffer, _)| buffer);
                Some(cache_manager::Event::Replied { from: party, request, message, payload })
            }
        }
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
            Action::Welcome { peer, known } => {
                self.answer(world, peer, before, Carried::Welcome { known });
            }
            Action::Reply { peer, request, message, payload } => {
                let payload = payload.map(|(_, bytes)| (self.buffer(), bytes));
                self.answer(world, peer, before, Carried::Replied { request, message, payload });
            }
            Action::Drop { peer, .. } => self.answer(world, peer, before, Carried::Ended),
            Action::Connect { to } => {
                let asker = Asker::Cache(self.number as usize);
                let connection = self.addresses.connection(asker, self.connection_count);
                self.connection_count += 1;
                self.links.insert(to, connection);
                self.ask(world, to, before, Carried::Hello);
            }
            Action::Disconnect { from } => {
                self.ask(world, from, before, Carried::Bye);
                self.links.remove(&from);
            }
            Action::Ask { to, request, message, payload } => {
                let payload = payload.map(|row| (self.buffer(), u64::from(row.to - row.from)));
                let bytes = payload.map_or(0, |(_, bytes)| bytes);
                self.totals.flushed_bytes += bytes;
                // A row is sent as a copy: the block may change meanwhile.
                let seconds = before + costs.copied(bytes);
                self.ask(world, to, seconds, Carried::Asked { request, message, payload });
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

    fn buffer(&mut self) -> Buffer {
        self.last_buffer += 1;
        Buffer(self.last_buffer)
    }

    fn answer<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        peer: Peer,
        seconds: f64,
        what: Carried,
    ) {
        let connection = ConnectionId::of_peer(peer);
        let (to, party) = (self.addresses.of_asker(connection), Party::Cache(self.number));
        self.thread.add(world, seconds, Job::Send { to, connection, party, what });
    }

    fn ask<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        party: Party,
        seconds: f64,
        what: Carried,
    ) {
        if let Some(&connection) = self.links.get(&party) {
            let to = self.addresses.of_party(party);
            self.thread.add(world, seconds, Job::Send { to, connection, party, what });
        }
    }

    fn note_answer<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        connection: ConnectionId,
        what: &Carried,
    ) {
        let Carried::Replied { request, payload, .. } = what else { return };
        let bytes = payload.map_or(0, |(_, bytes)| bytes);
        let row = self.requests.answered(world.now(), (connection.peer(), *request), bytes);
        if let (Some((id, row)), Some(recorder)) = (row, world.recorder()) {
            recorder.ends(id);
            recorder.keep(id, Row { process: self.row_process, ..row });
        }
    }

    /// The connections that it has made and not ended.
    pub(super) fn links(&self) -> impl Iterator<Item = (Party, ConnectionId)> + '_ {
        self.links.iter().map(|(party, connection)| (*party, *connection))
    }

    /// Whether all it has to do is to say that it is there.
    pub(super) fn is_quiet(&self) -> bool {
        let is_quiet = |job: &Job| match job {
            Job::Parcel(parcel) => parcel.is_sign_of_life(),
            Job::Send { what, .. } => what.is_sign_of_life(),
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
