//! The thread of an I/O server: feeds its machine with what peers say, and does on the device what it wants.
//!
//! One thread owns everything, so nothing is locked. Transfers go to the page cache of the kernel and are
//! done in place; what may take long (removing large files) is a worker's.

use crate::buffers::{Buffers, Payload};
use crate::clock::{self, Wakes};
use crate::instance;
use crate::peers::{self, Epoll, Heard, Peers};
use crate::subfiles::Subfiles;
use crate::tape::Taped;
use crate::window::Budget;
use crate::worker::{Bell, Worker};
use iolab_pfs::io_server::{Action, Event, IoServer, Operation, Outcome, Settings};
use iolab_pfs::session::Welcome;
use iolab_policy::Machine;
use iolab_vocab::{Direction, Nanos};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The number of the bell of whoever ends the thread.
const STOP: u64 = u64::MAX - 1;
/// The number of the worker's bell.
const WORK: u64 = u64::MAX - 2;
/// Sockets of which one turn tells.
const READY_MAX: usize = 64;

/// An I/O server with its sockets and files.
pub(crate) struct Server {
    machine: Taped<IoServer>,
    welcome: Welcome,
    device: Subfiles,
    worker: Worker,
    work: Bell,
    buffers: Buffers,
    epoll: Epoll,
    peers: Peers,
    wakes: Wakes,
    todo: VecDeque<Event>,
}

/// Waits for sockets, at most until one of these times; the answer is which are ready.
pub(crate) fn wait(epoll: &Epoll, until: &[Option<Nanos>]) -> Vec<(u64, EventFlags)> {
    let nothing = epoll::Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
    let mut ready = [nothing; READY_MAX];
    let pause = clock::until(clock::now(), until);
    // An interruption is a turn in which nothing is ready.
    let count = epoll::wait(&**epoll, &mut ready, pause.as_ref()).unwrap_or(0);
    ready[..count].iter().map(|event| (event.data.u64(), event.flags)).collect()
}

impl Server {
    /// A server on a device, behind a door. To be made in the thread that runs it.
    pub(crate) fn new(
        device: Subfiles,
        door: OwnedFd,
        welcome: Welcome,
        windows: Arc<Budget>,
        events: Option<&Path>,
    ) -> io::Result<Server> {
        let settings = Settings::usual();
        let name = instance::file_name(welcome.party);
        let (epoll, work) = (peers::epoll()?, Bell::new()?);
        peers::watch(&epoll, &work, WORK)?;
        Ok(Server {
            machine: Taped::of(IoServer::new(settings), &settings, events, &name),
            welcome,
            worker: Worker::on(device.directory()?, work.clone())?,
            device,
            work,
            buffers: Buffers::default(),
            peers: Peers::at(door, epoll.clone(), Some(windows))?,
            epoll,
            wakes: Wakes::default(),
            todo: VecDeque::new(),
        })
    }

    /// Serves until the bell rings.
    pub(crate) fn run(mut self, stop: &Bell) -> Result<(), Errno> {
        peers::watch(&self.epoll, stop, STOP)?;
        let mut heard = Vec::new();
        loop {
            let ready = wait(&self.epoll, &[self.wakes.next(), self.peers.next_deadline()]);
            let now = clock::now();
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

    /// What the worker has done.
    fn collect(&mut self) {
        self.work.hear();
        for (operation, result) in self.worker.done() {
            let result = result.map(|()| Outcome::Nothing);
            self.todo.push_back(Event::Done { operation, result });
        }
    }

    /// Tells the machine what was heard, and does what it wants, until there is nothing left.
    fn work(&mut self, now: Nanos, heard: &mut Vec<Heard>) {
        let mut actions = Vec::new();
        loop {
            self.todo.extend(heard.drain(..).map(event));
            let Some(event) = self.todo.pop_front() else {
                self.machine.turned();
                self.peers.send(now, &mut self.buffers, heard);
                if heard.is_empty() {
                    return;
                }
                continue;
            };
            self.machine.step(now, event, &mut actions);
            for action in actions.drain(..) {
                self.perform(action);
            }
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Welcome { peer, known } => {
                self.peers.welcome(peer, Welcome { known, ..self.welcome });
            }
            Action::Reply { peer, request, message, payload } => {
                let payload = payload.map(|(buffer, _)| self.buffers.claim(buffer));
                self.peers.reply(peer, request, &message, payload);
            }
            Action::Drop { peer, why } => self.peers.drop(peer, why, &mut self.buffers),
            Action::Release { buffer } => self.buffers.release(buffer),
            Action::WakeAt(time) => self.wakes.at(time),
            Action::Discard { operation, inode } => {
                self.device.forget(inode);
                self.worker.remove(operation, inode);
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
                    Direction::Read => {
                        let mut payload = self.room(operation, portion.bytes() as usize);
                        let read = self.device.read(subfile, &portion, payload.bytes_mut());
                        read.map(|()| Outcome::Bytes(self.buffers.number(payload)))
                    }
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
            Action::Sync { operation, subfile: _ } => {
                // Class `process`: what was written is in the kernel already.
                let result = Ok(Outcome::Nothing);
                self.todo.push_back(Event::Done { operation, result });
            }
        }
    }
}

impl Server {
    /// Where so many bytes go that are read: to where who asked wants them, or into a buffer.
    fn room(&mut self, operation: Operation, bytes: usize) -> Payload {
        let asker = self.machine.asker(operation);
        let room = asker.and_then(|(peer, request)| self.peers.room(peer, request, bytes as u32));
        room.map_or_else(|| self.buffers.take(bytes), Payload::Stretch)
    }
}

fn event(heard: Heard) -> Event {
    match heard {
        Heard::Up { peer, session } => Event::PeerUp { peer, session },
        Heard::Lost { peer, ended } => Event::PeerLost { peer, ended },
        Heard::Asked { peer, request, message, payload } => {
            Event::Asked { peer, request, message, payload }
        }
    }
}
