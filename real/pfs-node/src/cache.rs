//! The thread of a cache manager: feeds its machine with what clients say and I/O servers answer, and moves
//! bytes between requests and blocks.
//!
//! One thread owns everything, so nothing is locked. Memory of a block that was freed serves the next one.

use crate::buffers::{Buffers, Payload};
use crate::clock::{OwnTime, Wakes};
use crate::instance::{self, Place};
use crate::links::{self, Links};
use crate::peers::{self, Epoll, Peers};
use crate::server::wait;
use crate::tape::Taped;
use crate::worker::Bell;
use iolab_pfs::cache_manager::{
    Action, BlockNumber, CacheManager, Event, Operation, Place as Bytes, Row, Settings,
};
use iolab_pfs::session::{Hello, Role, Welcome};
use iolab_pfs::{PeerEvent, SessionId};
use iolab_policy::Machine;
use iolab_vocab::Nanos;
use rustix::fd::OwnedFd;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;

/// The number of the bell of whoever ends the thread.
const STOP: u64 = u64::MAX - 1;
/// Blocks whose memory is kept for others.
const SPARE_MAX: usize = 16;
/// How long servers may take for the last data when the thread ends.
const FAREWELL: Nanos = Nanos(8_000_000_000);

/// A cache manager with its sockets and its memory.
pub(crate) struct Cache {
    machine: Taped<CacheManager>,
    blocks: BTreeMap<BlockNumber, Vec<u8>>,
    spare: Vec<Vec<u8>>,
    /// Replies that are put together.
    gathered: BTreeMap<Operation, Payload>,
    buffers: Buffers,
    epoll: Epoll,
    peers: Peers,
    links: Links,
    time: OwnTime,
    wakes: Wakes,
    todo: VecDeque<Event>,
}

impl Cache {
    /// A manager behind a door. To be made in the thread that runs it.
    pub(crate) fn new(
        settings: Settings,
        door: OwnedFd,
        place: Place,
        welcome: Welcome,
        events: Option<&Path>,
    ) -> io::Result<Cache> {
        let epoll = peers::epoll()?;
        let session = SessionId(instance::random());
        let file = instance::file_name(welcome.party);
        let hello = Hello { session, role: Role::Cache, name: welcome.party.to_string() };
        Ok(Cache {
            machine: Taped::of(CacheManager::new(settings), &settings, events, &file),
            blocks: BTreeMap::new(),
            spare: Vec::new(),
            gathered: BTreeMap::new(),
            buffers: Buffers::default(),
            peers: Peers::at(door, epoll.clone(), welcome, None)?,
            links: Links::new(hello, place, epoll.clone()),
            epoll,
            time: OwnTime::begin(),
            wakes: Wakes::default(),
            todo: VecDeque::from([Event::Woke]),
        })
    }

    /// Serves until the bell rings, and then until servers have all data, or do not take it in time.
    pub(crate) fn run(mut self, stop: &Bell) -> io::Result<()> {
        peers::watch(&self.epoll, stop, STOP)?;
        let mut heard = Vec::new();
        let mut end = None;
        loop {
            self.work(self.time.now(), &mut heard);
            let left = self.machine.counts().unsaved_bytes;
            match end {
                Some(_) if left == 0 => return Ok(()),
                Some(end) if end <= self.time.now() => {
                    let what = format!("blocks of {left} bytes were not taken by their servers");
                    return Err(io::Error::other(what));
                }
                _ => {}
            }
            let times = [self.wakes.next(), self.peers.next_deadline(), end];
            let ready = wait(&self.epoll, &mut self.time, &times);
            let now = self.time.now();
            for (number, flags) in ready {
                match number {
                    STOP => {
                        stop.hear();
                        end = Some(now.after(FAREWELL));
                        self.todo.push_back(Event::Ending);
                    }
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
                continue;
            }
            self.machine.turned();
            self.peers.send(now, &mut self.buffers, heard);
            self.links.send(&mut self.buffers);
            self.todo.extend(self.links.told().map(Event::Party));
            if heard.is_empty() && self.todo.is_empty() {
                return;
            }
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Peer(action) => {
                let Cache { peers, buffers, gathered, .. } = self;
                peers.perform(action, buffers, |(operation, _), _| {
                    gathered.remove(&operation).expect("a machine sends what it gathered")
                });
            }
            Action::Party(action) => {
                let Cache { links, buffers, blocks, .. } = self;
                links.perform(action, |row| copy_of(row, blocks, buffers));
            }
            Action::Take { block, bytes } => self.take(block, bytes as usize),
            Action::Free { block } => {
                let memory = self.blocks.remove(&block);
                self.spare.extend(memory.filter(|_| self.spare.len() < SPARE_MAX));
            }
            Action::Scatter { from, at, to } => {
                let from = &self.buffers.bytes(from)[at as usize..];
                let block = self.blocks.get_mut(&to.block).expect("a machine took it");
                scatter(&to, &from[..(to.to - to.from) as usize], block);
            }
            Action::Gather { operation, from } => self.gather(operation, &from),
            Action::Forget { operation } => {
                if let Some(payload) = self.gathered.remove(&operation) {
                    self.buffers.give_back(payload);
                }
            }
            Action::Fill { block, from, bytes, runs } => {
                let told = from.map(|from| self.buffers.claim(from));
                let told_bytes = told.as_ref().map_or(&[][..], Payload::bytes);
                let block = self.blocks.get_mut(&block).expect("a machine took it");
                for (from, to) in runs {
                    let (from, to) = (from as usize, to as usize);
                    let data = told_bytes[..bytes as usize].get(from..).unwrap_or_default();
                    let (row, holes) = block[from..to].split_at_mut(data.len().min(to - from));
                    row.copy_from_slice(&data[..row.len()]);
                    holes.fill(0);
                }
                told.into_iter().for_each(|told| self.buffers.give_back(told));
            }
            Action::Release { buffer } => self.buffers.release(buffer),
            Action::WakeAt(time) => self.wakes.at(time),
        }
    }

    /// Memory for a block: that of another one of its size, if there is some.
    fn take(&mut self, block: BlockNumber, bytes: usize) {
        let found = self.spare.iter().position(|memory| memory.len() == bytes);
        let memory = found.map(|at| self.spare.swap_remove(at));
        self.blocks.insert(block, memory.unwrap_or_else(|| vec![0; bytes]));
    }

    fn gather(&mut self, operation: Operation, from: &Bytes) {
        let buffers = &mut self.buffers;
        let payload = self.gathered.entry(operation).or_insert_with(|| buffers.take(0));
        let to = payload.more((from.to - from.from) as usize);
        let cut = from.view.cut(from.from, from.to);
        cut.gather(&self.blocks[&from.block], from.base, to).expect("a place lies in its block");
    }
}

/// A copy of a row of a block: what is written to it while the row is sent would be half of it.
fn copy_of(row: Row, blocks: &BTreeMap<BlockNumber, Vec<u8>>, buffers: &mut Buffers) -> Payload {
    let row_bytes = &blocks[&row.block][row.from as usize..row.to as usize];
    let mut payload = buffers.take(row_bytes.len());
    payload.bytes_mut().copy_from_slice(row_bytes);
    payload
}

fn scatter(to: &Bytes, from: &[u8], block: &mut [u8]) {
    let cut = to.view.cut(to.from, to.to);
    cut.scatter(from, block, to.base).expect("a place lies in its block");
}
