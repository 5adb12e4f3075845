//! The thread of an I/O server: feeds its machine with what peers say, and does on the device what it wants.
//!
//! One thread owns everything, so nothing is locked. Transfers go to the page cache of the kernel and are
//! done in place; what may take long is a worker's: removing large files, and bringing data to the device.

use crate::buffers::{Buffers, Payload};
use crate::clock::{OwnTime, Wakes};
use crate::device_sync::{ToSync, sync_names};
use crate::instance;
use crate::lost::Lost;
use crate::peers::{self, Epoll, Peers};
use crate::room::{Promised, Promises, Used};
use crate::subfiles::{self, Subfiles};
use crate::sums::{Found, Strike, ToSum};
use crate::tape::Taped;
use crate::window::Budget;
use crate::worker::{Bell, Worker};
use iolab_pfs::configuration::Durability;
use iolab_pfs::io_server::{
    Action, Event, IoServer, Limit, Operation, Outcome, Settings, Subfile, Summing,
};
use iolab_pfs::session::Welcome;
use iolab_pfs::{Code, Inode, PeerEvent, Portion};
use iolab_policy::Machine;
use iolab_vocab::{Direction, Extent, Nanos};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The number of the bell of whoever ends the thread.
const STOP: u64 = u64::MAX - 1;
/// The number of the worker's bell.
const WORK: u64 = u64::MAX - 2;
/// Sockets of which one turn tells.
const READY_MAX: usize = 64;

/// What a worker has done, and for whom.
type Worked = (Option<Operation>, Result<(), Code>);

/// An I/O server with its sockets and files.
pub(crate) struct Server {
    machine: Taped<IoServer>,
    device: Subfiles,
    promised: Promised,
    remover: Worker<(Operation, Inode), Worked>,
    /// Where a sync is for the device.
    syncer: Option<Worker<ToSync, Worked>>,
    /// Where sums are kept.
    summer: Option<Worker<ToSum, Worked>>,
    work: Bell,
    buffers: Buffers,
    epoll: Epoll,
    peers: Peers,
    time: OwnTime,
    wakes: Wakes,
    todo: VecDeque<Event>,
}

/// Waits for sockets, at most until one of these times; the answer is which are ready when the next turn begins.
pub(crate) fn wait(
    epoll: &Epoll,
    time: &mut OwnTime,
    until: &[Option<Nanos>],
) -> Vec<(u64, EventFlags)> {
    let nothing = epoll::Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
    let mut ready = [nothing; READY_MAX];
    // An interruption is a turn in which nothing is ready.
    let wait = |pause: Option<&_>| epoll::wait(&**epoll, &mut ready, pause).unwrap_or(0);
    let count = time.pass(until, wait);
    ready[..count].iter().map(|event| (event.data.u64(), event.flags)).collect()
}

impl Server {
    /// A server on a device, behind a door. To be made in the thread that runs it.
    pub(crate) fn new(
        (mut device, durability, lost): (Subfiles, Durability, Lost),
        (limit, promises): (Option<(Limit, Used)>, Promises),
        door: OwnedFd,
        welcome: Welcome,
        windows: Arc<Budget>,
        events: Option<&Path>,
    ) -> io::Result<Server> {
        let (limit, used) = limit.unzip();
        let summing = device.sums().map(|_| Summing::usual());
        let settings = Settings { limit, summing, ..Settings::usual() };
        used.iter().for_each(|used| device.count_used(used.clone()));
        let name = instance::file_name(welcome.party);
        let promised = promises.of(welcome.party, device.directory()?)?;
        let (epoll, work) = (peers::epoll()?, Bell::new()?);
        peers::watch(&epoll, &work, WORK)?;
        let is_for_device = durability == Durability::Device;
        let directory = File::from(device.directory()?);
        let sums = device.sums().map(|sums| sums.directory()).transpose()?;
        let remove = move |(operation, inode)| {
            let removed = subfiles::remove(&directory, inode, used.as_ref());
            // What is left of them is of a number that no other file gets.
            let _ = sums.as_ref().map(|sums| subfiles::remove(sums, inode, None));
            let named = removed.and_then(|any| match any && is_for_device {
                true => sync_names(&directory, inode),
                false => Ok(()),
            });
            (Some(operation), named)
        };
        let directory = File::from(device.directory()?);
        let lost = Arc::new(lost);
        let held = lost.clone();
        let sync = move |job: ToSync| (job.operation, held.hold(|| job.carry_out(&directory)));
        let syncer = is_for_device.then(|| Worker::new("pfs-sync", work.clone(), sync));
        let directory = File::from(device.directory()?);
        let sum = move |job: ToSum| (Some(job.operation), lost.hold(|| job.carry_out(&directory)));
        let summer = device.sums().map(|_| Worker::new("pfs-sums", work.clone(), sum));
        Ok(Server {
            machine: Taped::of(IoServer::new(settings), &settings, events, &name),
            remover: Worker::new("pfs-remove", work.clone(), remove)?,
            syncer: syncer.transpose()?,
            summer: summer.transpose()?,
            promised,
            device,
            work,
            buffers: Buffers::default(),
            peers: Peers::at(door, epoll.clone(), welcome, Some(windows))?,
            epoll,
            time: OwnTime::begin(),
            wakes: Wakes::default(),
            todo: VecDeque::new(),
        })
    }

    /// Serves until the bell rings.
    pub(crate) fn run(mut self, stop: &Bell) -> Result<(), Errno> {
        peers::watch(&self.epoll, stop, STOP)?;
        let mut heard = Vec::new();
        loop {
            let times = [self.wakes.next(), self.peers.next_deadline()];
            let ready = wait(&self.epoll, &mut self.time, &times);
            let now = self.time.now();
            for (number, flags) in ready {
                match number {
                    STOP => return Ok(()),
                    WORK => self.collect(),
                    _ => self.peers.ready(now, number, flags, &mut self.buffers, &mut heard),
                }
            }
            self.peers.tick(now, &mut heard);
            if self.wakes.due(now) {
                self.todo.push_back(Event::Woke);
            }
            self.work(now, &mut heard);
        }
    }

    /// What the workers have done.
    fn collect(&mut self) {
        self.work.hear();
        let synced = self.syncer.iter().flat_map(Worker::done);
        let summed = self.summer.iter().flat_map(Worker::done);
        for (operation, result) in self.remover.done().chain(synced).chain(summed) {
            // Whoever syncs after one that nobody waited for hears of it if it has failed.
            let Some(operation) = operation else { continue };
            let result = result.map(|()| Outcome::Nothing);
            self.todo.push_back(Event::Done { operation, result });
        }
    }

    /// Has a subfile brought to the device, where a sync is for that; what was written is in the kernel already.
    fn sync(&mut self, operation: Operation, subfile: Subfile) {
        let result = match &self.syncer {
            None => Ok(None),
            Some(_) => self.device.begin_sync(subfile, operation),
        };
        match (&self.syncer, result) {
            (Some(syncer), Ok(Some(job))) => syncer.give(job),
            (_, result) => {
                let result = result.map(|_| Outcome::Nothing);
                self.todo.push_back(Event::Done { operation, result });
            }
        }
    }

    /// Has sums struck out; where that is for the device, it has to hear of it.
    fn strike(&mut self, operation: Operation, subfile: Subfile, changes: (&[Extent], bool)) {
        let result = match (self.device.strike(subfile, changes, operation), &self.syncer) {
            (Ok(Strike::ToSync(job)), Some(syncer)) => return syncer.give(job),
            (Ok(Strike::Damaged { from, to }), _) => Ok(Outcome::Damaged { from, to }),
            (Ok(_), _) => Ok(Outcome::Nothing),
            (Err(code), _) => Err(code),
        };
        self.todo.push_back(Event::Done { operation, result });
    }

    /// Has pages summed, after what was written to them is as durable as the class says.
    fn sum(&mut self, operation: Operation, subfile: Subfile, pages: Extent) {
        match (&self.summer, self.device.begin_sum(subfile, pages, operation)) {
            (Some(summer), Ok(Some(job))) => summer.give(job),
            (_, result) => {
                let result = result.map(|_| Outcome::Nothing);
                self.todo.push_back(Event::Done { operation, result });
            }
        }
    }

    /// Has what was written through descriptors that are about to go brought to the device.
    fn sync_evicted(&mut self) {
        for job in self.device.take_evicted() {
            if let Some(syncer) = &self.syncer {
                syncer.give(job);
            }
        }
    }

    /// Tells the machine what was heard, and does what it wants, until there is nothing left.
    fn work(&mut self, now: Nanos, heard: &mut Vec<PeerEvent>) {
        let (mut actions, mut further) = (Vec::new(), Vec::new());
        loop {
            self.todo.extend(heard.drain(..).map(Event::Peer));
            let Some(event) = self.todo.pop_front() else {
                self.machine.turned();
                self.promised.now(self.machine.promised_bytes());
                self.peers.send(now, &mut self.buffers, heard);
                if heard.is_empty() {
                    return;
                }
                continue;
            };
            self.machine.step(now, event, &mut actions);
            while !actions.is_empty() {
                for action in actions.drain(..) {
                    self.perform(now, action, &mut further);
                    self.sync_evicted();
                }
                std::mem::swap(&mut actions, &mut further);
            }
        }
    }

    /// Tells the machine how much room there is, before another server of the device hears the same.
    fn tell_room(
        &mut self,
        now: Nanos,
        operation: Operation,
        (subfile, extents): (Subfile, &[Extent]),
        out: &mut Vec<Action>,
    ) {
        let Server { promised, device, machine, .. } = self;
        promised.look(
            || device.room(subfile, extents),
            |result| {
                machine.step(now, Event::Done { operation, result }, out);
                machine.promised_bytes()
            },
        );
    }

    /// Does what the machine wants; what it wants after being told at once of what came of it is `further`.
    fn perform(&mut self, now: Nanos, action: Action, further: &mut Vec<Action>) {
        match action {
            Action::Peer(action) => {
                let claim = |(buffer, _), buffers: &mut Buffers| buffers.claim(buffer);
                self.peers.perform(action, &mut self.buffers, claim);
            }
            Action::Release { buffer } => self.buffers.release(buffer),
            Action::WakeAt(time) => self.wakes.at(time),
            Action::Discard { operation, inode } => {
                self.device.forget(inode);
                self.remover.give((operation, inode));
            }
            Action::Transfer { operation, direction, subfile, portion, from } => {
                let result = match direction {
                    Direction::Write => {
                        let from = from.expect("a write has a buffer");
                        let payload = self.buffers.claim(from);
                        let written = self.device.write(subfile, &portion, payload.bytes());
                        self.buffers.give_back(payload);
                        written.map(|()| Outcome::Nothing)
                    }
                    Direction::Read => self.read(operation, subfile, &portion),
                };
                self.todo.push_back(Event::Done { operation, result });
            }
            Action::Measure { operation, subfile } => {
                let result = self.device.measure(subfile).map(Outcome::Length);
                self.todo.push_back(Event::Done { operation, result });
            }
            Action::Resize { operation, subfile, bytes, extends } => {
                let resized = self.device.resize(subfile, bytes, extends);
                let result = resized.map(|()| Outcome::Nothing);
                self.todo.push_back(Event::Done { operation, result });
            }
            Action::Room { operation, subfile, extents } => {
                self.tell_room(now, operation, (subfile, &extents), further);
            }
            Action::Sync { operation, subfile } => self.sync(operation, subfile),
            Action::Strike { operation, subfile, extents, is_whole } => {
                self.strike(operation, subfile, (&extents, is_whole));
            }
            Action::Sum { operation, subfile, pages } => self.sum(operation, subfile, pages),
        }
    }
}

impl Server {
    /// Reads a portion, unless its pages do not have their sums.
    fn read(
        &mut self,
        operation: Operation,
        subfile: Subfile,
        portion: &Portion,
    ) -> Result<Outcome, Code> {
        let found = self.device.look_at_sums(subfile, portion)?;
        if let Found::Damaged { from, to } = found {
            return Ok(Outcome::Damaged { from, to });
        }
        let mut payload = self.room(operation, portion.bytes() as usize);
        self.device.read(subfile, portion, payload.bytes_mut())?;
        let buffer = self.buffers.number(payload);
        Ok(match found {
            Found::Bare { from, to } => Outcome::Unsummed { buffer, from, to },
            _ => Outcome::Bytes(buffer),
        })
    }

    /// Where so many bytes go that are read: to where who asked wants them, or into a buffer.
    fn room(&mut self, operation: Operation, bytes: usize) -> Payload {
        let asker = self.machine.asker(operation);
        let room = asker.and_then(|(peer, request)| self.peers.room(peer, request, bytes as u32));
        room.map_or_else(|| self.buffers.take(bytes), Payload::Stretch)
    }
}
