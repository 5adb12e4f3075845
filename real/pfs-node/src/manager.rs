//! The thread of the metadata manager: feeds its machine, writes its journal, asks I/O servers for it.
//!
//! Where answers wait for the device, a thread syncs the journal: once for all records that were written
//! before, while others are written behind them. Another one, made when it is needed first, writes the journal that begins anew.

use crate::buffers::Buffers;
use crate::clock::{OwnTime, Wakes};
use crate::instance::Place;
use crate::journal_file::{Anew, Beside, JournalFile, Superseded};
use crate::links::{self, Links};
use crate::peers::{self, Epoll, Peers};
use crate::remark::remark;
use crate::server::wait;
use crate::tape::Taped;
use crate::worker::{Bell, Worker};
use iolab_pfs::configuration::Durability;
use iolab_pfs::metadata::{Action, Event, Metadata};
use iolab_pfs::session::{Hello, Role, Welcome};
use iolab_pfs::{PeerEvent, SessionId};
use iolab_policy::Machine;
use iolab_vocab::Nanos;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::Arc;

/// The number of the bell of whoever ends the thread.
const STOP: u64 = u64::MAX - 1;
/// The number of the bell of whoever syncs the journal.
const SYNCED: u64 = u64::MAX - 2;
/// The number of the bell of whoever writes a journal that begins anew.
const CHECKPOINTED: u64 = u64::MAX - 3;
/// How long after a failure the journal is tried again: room may have been made.
const AGAIN: Nanos = Nanos(200_000_000);

/// The metadata manager with its sockets and its journal.
pub(crate) struct Manager {
    machine: Taped<Metadata>,
    journal: JournalFile,
    /// Records that are to be written, and the number of the last of them.
    records: Vec<u8>,
    last: u64,
    syncs: Option<Syncs>,
    checkpoints: Option<Checkpoints>,
    /// A journal that may take the place of the other.
    beside: Option<Beside>,
    /// When they are tried again, if they could not be written.
    again: Option<Nanos>,
    buffers: Buffers,
    epoll: Epoll,
    peers: Peers,
    links: Links,
    time: OwnTime,
    wakes: Wakes,
    todo: VecDeque<Event>,
}

/// What brings the journal to the device.
struct Syncs {
    worker: Worker<(Arc<File>, u64), (u64, io::Result<()>)>,
    bell: Bell,
    /// One is under way.
    is_busy: bool,
    /// The last record that is written, and the last of which the device was told.
    written: u64,
    begun: u64,
}

impl Syncs {
    fn of(epoll: &Epoll) -> io::Result<Syncs> {
        let bell = Bell::new()?;
        peers::watch(epoll, &bell, SYNCED)?;
        let sync = |(file, upto): (Arc<File>, u64)| (upto, file.sync_data());
        let worker = Worker::new("pfs-sync", bell.clone(), sync)?;
        Ok(Syncs { worker, bell, is_busy: false, written: 0, begun: 0 })
    }

    /// Begins one for all that is written, unless there is nothing new or one is under way.
    fn begin(&mut self, journal: &JournalFile) {
        if !self.is_busy && self.written > self.begun {
            (self.is_busy, self.begun) = (true, self.written);
            self.worker.give((journal.file(), self.written));
        }
    }
}

/// What writes journals that begin anew.
struct Checkpoints {
    worker: Worker<Anew, io::Result<Beside>>,
    bell: Bell,
}

impl Checkpoints {
    fn new(epoll: &Epoll) -> io::Result<Checkpoints> {
        let bell = Bell::new()?;
        peers::watch(epoll, &bell, CHECKPOINTED)?;
        let worker = Worker::new("pfs-checkpoint", bell.clone(), Anew::write)?;
        Ok(Checkpoints { worker, bell })
    }
}

/// The device may not have the journal as it is.
fn sync_failed(journal: &JournalFile, todo: &mut VecDeque<Event>, error: &io::Error) {
    remark(format_args!("metadata manager: the journal is not on its device: {error}"));
    journal.sync_failed();
    todo.push_back(Event::Failed);
}

impl Manager {
    /// A manager behind a door. To be made in the thread that runs it.
    pub(crate) fn new(
        ((journal, machine), durability): ((JournalFile, Taped<Metadata>), Durability),
        door: OwnedFd,
        place: Place,
        welcome: Welcome,
    ) -> io::Result<Manager> {
        let epoll = peers::epoll()?;
        let is_for_device = durability == Durability::Device;
        let syncs = is_for_device.then(|| Syncs::of(&epoll)).transpose()?;
        let session = SessionId(crate::instance::random());
        let hello = Hello { session, role: Role::Metadata, name: "metadata manager".into() };
        Ok(Manager {
            machine,
            journal,
            records: Vec::new(),
            last: 0,
            syncs,
            checkpoints: None,
            beside: None,
            again: None,
            buffers: Buffers::default(),
            peers: Peers::at(door, epoll.clone(), welcome, None)?,
            links: Links::new(hello, place, epoll.clone()),
            epoll,
            time: OwnTime::begin(),
            wakes: Wakes::default(),
            // In a new life it has to be told the time.
            todo: VecDeque::from([Event::Woke]),
        })
    }

    /// Serves until the bell rings.
    pub(crate) fn run(mut self, stop: &Bell) -> Result<(), Errno> {
        peers::watch(&self.epoll, stop, STOP)?;
        let mut heard = Vec::new();
        loop {
            self.work(self.time.now(), &mut heard);
            let times = [self.wakes.next(), self.peers.next_deadline(), self.again];
            let ready = wait(&self.epoll, &mut self.time, &times);
            let now = self.time.now();
            for (number, flags) in ready {
                match number {
                    STOP => return Ok(()),
                    SYNCED => self.synced(),
                    CHECKPOINTED => self.checkpointed(),
                    peers::DOOR | 0..links::FIRST => {
                        self.peers.ready(now, number, flags, &mut self.buffers, &mut heard);
                    }
                    _ => self.links.ready(number, &mut self.buffers),
                }
            }
            self.peers.tick(now, &mut heard);
            if self.wakes.due(now) {
                self.links.look_at(self.machine.silent(now));
                self.todo.extend(self.links.told().map(Event::Party));
                self.todo.push_back(Event::Woke);
            }
        }
    }

    /// Tells the machine what was heard, and does what it wants, until there is nothing left.
    fn work(&mut self, now: Nanos, heard: &mut Vec<PeerEvent>) {
        let mut actions = Vec::new();
        loop {
            self.todo.extend(heard.drain(..).map(Event::Peer));
            self.todo.extend(self.links.told().map(Event::Party));
            if let Some(event) = self.todo.pop_front() {
                self.machine.step(now, event, &mut actions);
                for action in actions.drain(..) {
                    self.perform(action);
                }
            } else if !self.write(now) {
                self.machine.turned();
                self.peers.send(now, &mut self.buffers, heard);
                self.links.send(&mut self.buffers);
                self.todo.extend(self.links.told().map(Event::Party));
                if heard.is_empty() && self.todo.is_empty() {
                    return;
                }
            }
        }
    }

    /// Writes the records of this turn together; whether there were any.
    fn write(&mut self, now: Nanos) -> bool {
        if self.records.is_empty() || self.again.is_some_and(|time| now < time) {
            return false;
        }
        match self.journal.append(&self.records) {
            Ok(()) => {
                (self.records, self.again) = (Vec::new(), None);
                match &mut self.syncs {
                    Some(syncs) => {
                        syncs.written = self.last;
                        syncs.begin(&self.journal);
                    }
                    None => self.todo.push_back(Event::Appended { upto: self.last }),
                }
                true
            }
            Err(error) => {
                if self.again.is_none() {
                    remark(format_args!(
                        "metadata manager: {error}; it is tried again until there is room"
                    ));
                }
                self.again = Some(Nanos(now.0 + AGAIN.0));
                false
            }
        }
    }

    /// A sync of the journal is over.
    fn synced(&mut self) {
        let Some(syncs) = &mut self.syncs else { return };
        syncs.bell.hear();
        let done: Vec<_> = syncs.worker.done().collect();
        for (upto, result) in done {
            syncs.is_busy = false;
            match result {
                Ok(()) => {
                    self.todo.push_back(Event::Appended { upto });
                    syncs.begin(&self.journal);
                }
                Err(error) => sync_failed(&self.journal, &mut self.todo, &error),
            }
        }
    }

    /// Has a journal written that begins anew.
    fn checkpoint(&mut self, first: u64, records: Vec<u8>) {
        if self.checkpoints.is_none() {
            match Checkpoints::new(&self.epoll) {
                Ok(checkpoints) => self.checkpoints = Some(checkpoints),
                Err(error) => return self.not_begun_anew(&error),
            }
        }
        if let Some(checkpoints) = &self.checkpoints {
            checkpoints.worker.give(self.journal.anew(first, records));
        }
    }

    /// One is written, or could not be.
    fn checkpointed(&mut self) {
        let Some(checkpoints) = &self.checkpoints else { return };
        checkpoints.bell.hear();
        let done: Vec<_> = checkpoints.worker.done().collect();
        for result in done {
            match result {
                Ok(beside) => {
                    self.beside = Some(beside);
                    self.todo.push_back(Event::Checkpointed { is_durable: true });
                }
                Err(error) => self.not_begun_anew(&error),
            }
        }
    }

    fn not_begun_anew(&mut self, error: &io::Error) {
        remark(format_args!("metadata manager: the journal goes on as it is: {error}"));
        self.todo.push_back(Event::Checkpointed { is_durable: false });
    }

    /// The one that is written takes the place of the other; with it goes what was still to be written there.
    fn supersede(&mut self, upto: u64, records: &[u8]) {
        let Some(beside) = self.beside.take() else { return };
        match self.journal.supersede(beside, records) {
            Ok(superseded) => {
                (self.records, self.again, self.last) = (Vec::new(), None, upto);
                let Some(syncs) = &mut self.syncs else {
                    return self.todo.push_back(Event::Appended { upto });
                };
                (syncs.written, syncs.begun) = (upto, upto);
                match superseded {
                    Superseded::Surely => self.todo.push_back(Event::Appended { upto }),
                    Superseded::Unsure(error) => {
                        sync_failed(&self.journal, &mut self.todo, &error);
                    }
                }
            }
            Err(error) => {
                remark(format_args!("metadata manager: the journal goes on as it is: {error}"));
            }
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Peer(action) => {
                self.peers.perform(action, &mut self.buffers, |never, _| match never {});
            }
            Action::Party(action) => self.links.perform(action, |never| match never {}),
            Action::Release { buffer } => self.buffers.release(buffer),
            Action::Append { sequence, record } => {
                self.records.extend(record);
                self.last = sequence;
            }
            Action::Checkpoint { first, records } => self.checkpoint(first, records),
            Action::Supersede { upto, records } => self.supersede(upto, &records),
            Action::WakeAt(time) => self.wakes.at(time),
        }
    }
}
