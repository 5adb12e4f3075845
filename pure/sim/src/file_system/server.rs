//! An I/O server of the file system: its machine, its thread, what it stores.
//!
//! Memory and device are the driver's: the machine decides when a transfer may begin, and learns that it is
//! done once its bytes are where they belong. While the device works the thread goes on with other jobs.

use super::World;
use super::costs::Costs;
use super::device::{Batch, Device};
use super::ends::{Ends, Heard};
use super::parcel::{Addresses, Parcel};
use super::requests::{Requests, TrafficTotals};
use super::store::{Store, spans_of};
use super::thread::Thread;
use crate::cluster::MemoryTotals;
use crate::queue::EventQueue;
use crate::world::Event;
use iolab_pfs::configuration::Durability;
use iolab_pfs::io_server::{self, Action, IoServer, Operation, Outcome, Subfile};
use iolab_pfs::{Party, Peer, PeerAction, PeerEvent, Portion, Request};
use iolab_policy::Machine;
use iolab_trace::Event as Row;
use iolab_vocab::{Direction, Extent};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a server's thread has to do.
pub(super) enum Job {
    /// Look at what has arrived.
    Parcel(Parcel),
    /// Tell the machine what came of an operation.
    Done(Operation, Outcome),
    /// Tell it that a connection is lost.
    Lost(Peer),
    /// Wake it.
    Wake,
}

/// What follows when the device is through with something.
pub(super) enum Then {
    /// An operation is done, after a job of so many seconds.
    Done { operation: Operation, outcome: Outcome, seconds: f64 },
    /// The manager's journal is on the device up to this record.
    Appended(u64),
}

/// A server around its machine.
pub(super) struct Server {
    number: u32,
    machine: IoServer,
    pub(super) thread: Thread<Job>,
    pub(super) device: Device<Then>,
    pub(super) store: Store,
    ends: Ends,
    costs: Costs,
    durability: Durability,
    requests: Requests,
    /// What the device is being read for.
    fetched: BTreeMap<Batch, (Subfile, Vec<Extent>)>,
    /// What it is being written for by syncs.
    synced: BTreeMap<Batch, Subfile>,
    actions: Vec<Action>,
}

impl Server {
    /// A server in its one life.
    pub(super) fn new(
        number: u32,
        thread: Thread<Job>,
        (device, store): (Device<Then>, Store),
        addresses: Arc<Addresses>,
        (costs, durability): (Costs, Durability),
    ) -> Server {
        Server {
            number,
            machine: IoServer::new(io_server::Settings::usual()),
            ends: Ends::new(thread.node, addresses),
            thread,
            device,
            store,
            costs,
            durability,
            requests: Requests::default(),
            fetched: BTreeMap::new(),
            synced: BTreeMap::new(),
            actions: Vec::new(),
        }
    }

    /// What it has done so far.
    pub(super) fn totals(&self) -> (TrafficTotals, MemoryTotals) {
        (self.requests.totals(), self.store.totals())
    }

    /// Something has reached its node.
    pub(super) fn arrived<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, parcel: Parcel) {
        if self.thread.is_dead() {
            return;
        }
        for parcel in self.ends.take(parcel) {
            self.requests.arrived(world.now(), &parcel, || world.open_row());
            self.thread.add(world, 0.0, Job::Parcel(parcel));
        }
    }

    /// Its thread is through with a job.
    pub(super) fn work<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>) {
        let Some(job) = self.thread.take_done(world) else { return };
        let event = match job {
            Job::Parcel(parcel) => match self.ends.hear(parcel) {
                Some(Heard::Peer(event)) => io_server::Event::Peer(event),
                // It asks nobody.
                Some(Heard::Party(_)) | None => return,
            },
            Job::Done(operation, outcome) => {
                io_server::Event::Done { operation, result: Ok(outcome) }
            }
            Job::Lost(peer) => io_server::Event::Peer(PeerEvent::Lost { peer, ended: false }),
            Job::Wake => io_server::Event::Woke,
        };
        self.tell(world, event);
    }

    /// The machine is told something, and gets what it wants.
    pub(super) fn tell<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        event: io_server::Event,
    ) {
        let mut actions = std::mem::take(&mut self.actions);
        self.machine.step(world.now(), event, &mut actions);
        for action in actions.drain(..) {
            self.carry_out(world, action);
        }
        self.actions = actions;
    }

    fn carry_out<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, action: Action) {
        match action {
            Action::Peer(action) => {
                if let PeerAction::Reply { peer, request, payload, .. } = &action {
                    let bytes = payload.map_or(0, |(_, bytes)| bytes);
                    self.note_reply(world, (*peer, *request), bytes);
                }
                let party = Party::Server(self.number);
                let answer = self.ends.answer(party, action, |(_, bytes)| bytes);
                self.ends.send(world, answer);
            }
            Action::Transfer {
                operation, direction: Direction::Write, subfile, portion, ..
            } => {
                self.write(world, operation, subfile, &portion);
            }
            Action::Transfer {
                operation, direction: Direction::Read, subfile, portion, ..
            } => {
                self.read(world, operation, subfile, &portion);
            }
            Action::Measure { operation, subfile } => {
                let length = Outcome::Length(self.store.bytes(subfile));
                self.thread.add(world, 0.0, Job::Done(operation, length));
            }
            Action::Resize { operation, subfile, bytes, extends } => {
                self.store.resize(subfile, bytes, extends);
                self.thread.add(world, 0.0, Job::Done(operation, Outcome::Nothing));
            }
            // No device of a simulation is ever full.
            Action::Room { operation, .. } => {
                let room = Outcome::Room { free: u64::MAX, used: 0, missing: 0, unit: 1 };
                self.thread.add(world, 0.0, Job::Done(operation, room));
            }
            // Nor does it change what was written.
            Action::Strike { operation, .. } | Action::Sum { operation, .. } => {
                self.thread.add(world, 0.0, Job::Done(operation, Outcome::Nothing));
            }
            Action::Sync { operation, subfile } => self.sync(world, operation, subfile),
            Action::Discard { operation, inode } => {
                self.store.discard(inode);
                self.thread.add(world, 0.0, Job::Done(operation, Outcome::Nothing));
            }
            Action::Release { .. } => {}
            Action::WakeAt(at) => self.thread.wake_at(world, at),
        }
    }

    /// Bytes go to memory, and where that is full to the device.
    fn write<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        operation: Operation,
        subfile: Subfile,
        portion: &Portion,
    ) {
        let seconds = self.costs.of_subfile(portion);
        let through = self.store.write(subfile, portion);
        let (file, outcome) = (self.store.file(subfile), Outcome::Nothing);
        match through.is_empty() {
            true => self.thread.add(world, seconds, Job::Done(operation, outcome)),
            false => {
                let batch = self.device.access(world, Direction::Write, file, &through);
                self.device.then([batch], Then::Done { operation, outcome, seconds });
            }
        }
    }

    /// What memory does not have comes from the device first, whoever asked for it.
    fn read<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        operation: Operation,
        subfile: Subfile,
        portion: &Portion,
    ) {
        let seconds = self.costs.of_subfile(portion);
        let outcome = Outcome::Bytes(self.ends.buffer());
        let mut awaited = self.coming(subfile, portion);
        let missing = self.store.read(subfile, portion);
        if !missing.is_empty() {
            let file = self.store.file(subfile);
            let batch = self.device.access(world, Direction::Read, file, &missing);
            self.fetched.insert(batch, (subfile, missing));
            awaited.push(batch);
        }
        match awaited.is_empty() {
            true => self.thread.add(world, seconds, Job::Done(operation, outcome)),
            false => self.device.then(awaited, Then::Done { operation, outcome, seconds }),
        }
    }

    /// What the device is being read for already.
    fn coming(&self, subfile: Subfile, portion: &Portion) -> Vec<Batch> {
        let spans = spans_of(portion);
        let overlaps = |extent: &Extent| spans.iter().any(|span| span.overlaps(*extent));
        let batches = self.fetched.iter().filter(|(_, (of, _))| *of == subfile);
        batches
            .filter(|(_, (_, read))| read.iter().any(overlaps))
            .map(|(batch, _)| *batch)
            .collect()
    }

    /// The kernel has everything already; the device gets it where it must. What it is about to get for
    /// somebody else's sync is waited for.
    fn sync<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        operation: Operation,
        subfile: Subfile,
    ) {
        let dirty = match self.durability {
            Durability::Process | Durability::None => Vec::new(),
            Durability::Device => self.store.sync(subfile),
        };
        let mut awaited: Vec<Batch> =
            self.synced.iter().filter(|(_, of)| **of == subfile).map(|(batch, _)| *batch).collect();
        if !dirty.is_empty() {
            let file = self.store.file(subfile);
            let batch = self.device.access(world, Direction::Write, file, &dirty);
            self.synced.insert(batch, subfile);
            awaited.push(batch);
        }
        let outcome = Outcome::Nothing;
        match awaited.is_empty() {
            true => self.thread.add(world, 0.0, Job::Done(operation, outcome)),
            false => self.device.then(awaited, Then::Done { operation, outcome, seconds: 0.0 }),
        }
    }

    /// An access of its device is over. Gives what is the manager's affair.
    pub(super) fn transferred<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        batch: Batch,
    ) -> Option<u64> {
        if !self.device.ended(world, batch) {
            return None;
        }
        self.fetched.remove(&batch);
        self.synced.remove(&batch);
        let mut appended = None;
        for then in self.device.take_ready(batch) {
            match then {
                Then::Done { operation, outcome, seconds } => {
                    self.thread.add(world, seconds, Job::Done(operation, outcome));
                }
                Then::Appended(upto) => appended = Some(upto),
            }
        }
        appended
    }

    fn note_reply<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        which: (Peer, Request),
        sent_bytes: u64,
    ) {
        let row = self.requests.answered(world.now(), which, sent_bytes);
        let server = self.device.server();
        if let (Some((id, row)), Some(recorder)) = (row, world.recorder()) {
            recorder.ends(id);
            let process = recorder.process_of(server);
            recorder.keep(id, Row { process, ..row });
        }
    }

    /// Whether all it has to do is to say that it is there.
    pub(super) fn is_quiet(&self) -> bool {
        let is_quiet = |job: &Job| match job {
            Job::Parcel(parcel) => parcel.is_sign_of_life(),
            Job::Wake => true,
            Job::Done(..) | Job::Lost(_) => false,
        };
        self.device.is_idle() && self.thread.jobs().all(is_quiet)
    }
}
