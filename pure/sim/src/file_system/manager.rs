//! The metadata manager: its machine, its thread, and its journal.
//!
//! A record is on its way to the kernel for as long as it is copied; with class `device` it is then
//! written behind the last one on the device of the server on the manager's node. A node without a server
//! of the file system has no device in this model: there a record costs its copy alone.

use super::World;
use super::costs::Costs;
use super::ends::{Ends, Heard};
use super::parcel::{Addresses, Asker, Parcel};
use super::thread::Thread;
use crate::queue::EventQueue;
use crate::world::Event;
use iolab_pfs::metadata::{self, Action, Metadata};
use iolab_pfs::{
    Inode, Layout, Message, OpenWish, Party, Peer, PeerAction, PeerEvent, Request, SessionId,
};
use iolab_policy::Machine;
use iolab_vocab::{Extent, Nanos, Refusal};
use std::sync::Arc;

/// What the manager's thread has to do.
pub(super) enum Job {
    /// Look at what has arrived.
    Parcel(Parcel),
    /// A record is in the kernel.
    Copied(u64, u64),
    /// Tell the machine that records are written.
    Appended(u64),
    /// Tell it that a connection is lost.
    Lost(Peer),
    /// Wake it.
    Wake,
}

/// A record on its way to a device.
pub(super) struct Record {
    pub(super) sequence: u64,
    /// Where in the journal it belongs.
    pub(super) extent: Extent,
}

/// The manager around its machine.
pub(super) struct Manager {
    machine: Metadata,
    pub(super) thread: Thread<Job>,
    ends: Ends,
    costs: Costs,
    /// Records go to a device.
    pub(super) has_device: bool,
    journal_bytes: u64,
    actions: Vec<Action>,
}

/// The session by which files are made that were there before the run.
const BEFORE: SessionId = SessionId(u128::MAX);

impl Manager {
    /// The manager of an instance whose files have this layout.
    pub(super) fn new(
        layout: Layout,
        thread: Thread<Job>,
        addresses: Arc<Addresses>,
        costs: Costs,
        has_device: bool,
    ) -> Result<Manager, Refusal> {
        let (servers, caches) = (addresses.servers.len() as u32, addresses.caches.len() as u32);
        // That a journal begins anew, once in 64 MiB of records, is not in the model.
        let journal_bytes = u64::MAX;
        let usual = metadata::Settings::usual(servers);
        let settings = metadata::Settings { layout, caches, journal_bytes, ..usual };
        Ok(Manager {
            machine: Metadata::recover(settings, [])?,
            ends: Ends::new(thread.node, addresses),
            thread,
            costs,
            has_device,
            journal_bytes: 0,
            actions: Vec::new(),
        })
    }

    /// Makes a file before the run begins. Gives its number and its layout.
    pub(super) fn create(&mut self, path: Vec<u8>, place: u64) -> (Inode, Layout) {
        let peer = Peer(u32::MAX - place as u32);
        let session = SessionId(BEFORE.0 - u128::from(place));
        let wish = OpenWish { creates: true, mode: 0o644, ..OpenWish::TO_READ };
        let mut opened = None;
        let asked = |request, message| PeerEvent::Asked { peer, request, message, payload: None };
        self.before(PeerEvent::Up { peer, session }, &mut opened);
        self.before(asked(Request(1), Message::Open { path, wish }), &mut opened);
        let Some(Message::Opened(opened)) = opened else {
            panic!("a new file can be made in an empty file system");
        };
        self.before(asked(Request(2), Message::Close { open: opened.open }), &mut None);
        self.before(PeerEvent::Lost { peer, ended: true }, &mut None);
        (opened.inode, opened.layout)
    }

    /// The machine is told something before the run, when records are written at once.
    fn before(&mut self, event: PeerEvent, reply: &mut Option<Message>) {
        let mut events = vec![metadata::Event::Peer(event)];
        while let Some(event) = events.pop() {
            let mut actions = Vec::new();
            self.machine.step(Nanos::ZERO, event, &mut actions);
            for action in actions {
                match action {
                    Action::Append { sequence, .. } => {
                        events.push(metadata::Event::Appended { upto: sequence });
                    }
                    Action::Peer(PeerAction::Reply { message, .. }) => *reply = Some(message),
                    _ => {}
                }
            }
        }
    }

    /// Something has reached its node.
    pub(super) fn arrived<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, parcel: Parcel) {
        if self.thread.is_dead() {
            return;
        }
        for parcel in self.ends.take(parcel) {
            self.thread.add(world, 0.0, Job::Parcel(parcel));
        }
    }

    /// Its thread is through with a job. Gives the record that must go to the device now.
    pub(super) fn work<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>) -> Option<Record> {
        let event = match self.thread.take_done(world)? {
            Job::Parcel(parcel) => match self.ends.hear(parcel)? {
                Heard::Peer(event) => metadata::Event::Peer(event),
                Heard::Party(event) => metadata::Event::Party(event),
            },
            Job::Copied(sequence, bytes) => {
                let extent = Extent::new(self.journal_bytes, bytes);
                self.journal_bytes += bytes;
                match self.has_device {
                    true => return Some(Record { sequence, extent }),
                    false => metadata::Event::Appended { upto: sequence },
                }
            }
            Job::Appended(upto) => metadata::Event::Appended { upto },
            Job::Lost(peer) => metadata::Event::Peer(PeerEvent::Lost { peer, ended: false }),
            Job::Wake => metadata::Event::Woke,
        };
        self.tell(world, event);
        None
    }

    /// The machine is told something, and gets what it wants.
    pub(super) fn tell<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        event: metadata::Event,
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
                let answer = self.ends.answer(Party::Metadata, action, |never| match never {});
                self.ends.send(world, answer);
            }
            Action::Party(action) => {
                let question = self.ends.ask(Asker::Metadata, action, |never| match never {});
                question.into_iter().for_each(|question| self.ends.send(world, question));
            }
            Action::Release { .. } => {}
            Action::Append { sequence, record } => {
                let bytes = record.len() as u64;
                self.thread.add(world, self.costs.copied(bytes), Job::Copied(sequence, bytes));
            }
            Action::Checkpoint { .. } | Action::Supersede { .. } => {}
            Action::WakeAt(at) => self.thread.wake_at(world, at),
        }
    }

    /// Whether all it has to do is to say that it is there.
    pub(super) fn is_quiet(&self) -> bool {
        let is_quiet = |job: &Job| match job {
            Job::Parcel(parcel) => parcel.is_sign_of_life(),
            Job::Wake => true,
            Job::Copied(..) | Job::Appended(_) | Job::Lost(_) => false,
        };
        self.thread.jobs().all(is_quiet)
    }
}
