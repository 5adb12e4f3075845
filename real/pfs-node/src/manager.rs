//! The thread of the metadata manager: feeds its machine, writes its journal, asks I/O servers for it.

use crate::buffers::Buffers;
use crate::channel::{Channel, Lost, Received};
use crate::clock::{self, Wakes};
use crate::instance::Place;
use crate::journal_file::JournalFile;
use crate::link;
use crate::outgoing::NoRows;
use crate::peers::{self, Epoll, Heard, Peers};
use crate::server::wait;
use crate::worker::Bell;
use iolab_pfs::metadata::{Action, Event, Metadata};
use iolab_pfs::session::{Hello, Role, Welcome};
use iolab_pfs::{Party, SessionId};
use iolab_policy::Machine;
use iolab_vocab::Nanos;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::collections::{BTreeMap, VecDeque};
use std::io;

/// The number of the bell of whoever ends the thread.
const STOP: u64 = u64::MAX - 1;
/// Numbers from here on are connections to I/O servers.
const SERVERS: u64 = 1 << 40;
/// How long after a failure the journal is tried again: room may have been made.
const AGAIN: Nanos = Nanos(200_000_000);

/// The metadata manager with its sockets and its journal.
pub(crate) struct Manager {
    machine: Metadata,
    welcome: Welcome,
    session: SessionId,
    place: Place,
    journal: JournalFile,
    /// Records that are to be written, and the number of the last of them.
    records: Vec<u8>,
    last: u64,
    /// When they are tried again, if they could not be written.
    again: Option<Nanos>,
    buffers: Buffers,
    epoll: Epoll,
    peers: Peers,
    links: BTreeMap<Party, Channel>,
    wakes: Wakes,
    todo: VecDeque<Event>,
}

fn number(party: Party) -> u64 {
    match party {
        Party::Metadata => SERVERS - 1,
        Party::Server(index) => SERVERS + u64::from(index),
    }
}

impl Manager {
    /// A manager behind a door. To be made in the thread that runs it.
    pub(crate) fn new(
        (journal, machine): (JournalFile, Metadata),
        door: OwnedFd,
        place: Place,
        welcome: Welcome,
    ) -> io::Result<Manager> {
        let epoll = peers::epoll()?;
        Ok(Manager {
            machine,
            welcome,
            session: SessionId(crate::instance::random()),
            place,
            journal,
            records: Vec::new(),
            last: 0,
            again: None,
            buffers: Buffers::default(),
            peers: Peers::at(door, epoll.clone(), None)?,
            epoll,
            links: BTreeMap::new(),
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
            self.work(clock::now(), &mut heard);
            let times = [self.wakes.next(), self.peers.next_deadline(), self.again];
            let ready = wait(&self.epoll, &times);
            let now = clock::now();
            for (number, flags) in ready {
                match number {
                    STOP => return Ok(()),
                    peers::DOOR | 0..SERVERS => {
                        self.peers.ready(now, number, flags, &mut self.buffers, &mut heard);
                    }
                    _ => self.link_ready(Party::Server((number - SERVERS) as u32)),
                }
            }
            self.peers.tick(now, &mut heard);
            if self.wakes.due(now) {
                self.todo.push_back(Event::Woke);
            }
        }
    }

    /// Tells the machine what was heard, and does what it wants, until there is nothing left.
    fn work(&mut self, now: Nanos, heard: &mut Vec<Heard>) {
        let mut actions = Vec::new();
        loop {
            self.todo.extend(heard.drain(..).map(event));
            if let Some(event) = self.todo.pop_front() {
                self.machine.step(now, event, &mut actions);
                for action in actions.drain(..) {
                    self.perform(action);
                }
            } else if !self.write(now) {
                self.peers.send(now, &mut self.buffers, heard);
                self.send();
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
                self.todo.push_back(Event::Appended { upto: self.last });
                true
            }
            Err(error) => {
                if self.again.is_none() {
                    eprintln!("metadata manager: {error}; it is tried again until there is room");
                }
                self.again = Some(Nanos(now.0 + AGAIN.0));
                false
            }
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Welcome { peer, known } => {
                self.peers.welcome(peer, Welcome { known, ..self.welcome });
            }
            Action::Reply { peer, request, message } => {
                self.peers.reply(peer, request, &message, None);
            }
            Action::Drop { peer, why } => self.peers.drop(peer, why, &mut self.buffers),
            Action::Connect { to } => self.connect(to),
            Action::Disconnect { from } => drop(self.links.remove(&from)),
            Action::Ask { to, request, message } => {
                if let Some(link) = self.links.get_mut(&to) {
                    link.push(request, &message, Vec::new(), 0);
                }
            }
            Action::Append { sequence, record } => {
                self.records.extend(record);
                self.last = sequence;
            }
            Action::WakeAt(time) => self.wakes.at(time),
        }
    }

    fn connect(&mut self, to: Party) {
        let hello =
            Hello { session: self.session, role: Role::Metadata, name: "metadata manager".into() };
        let made = link::connect(&self.place, to, hello);
        let watched = made.and_then(|link| {
            let data = EventData::new_u64(number(to));
            epoll::add(&*self.epoll, &link, data, EventFlags::IN)?;
            Ok(link)
        });
        match watched {
            Ok(link) => drop(self.links.insert(to, link)),
            Err(_) => self.todo.push_back(Event::Disconnected { from: to }),
        }
    }

    fn link_ready(&mut self, party: Party) {
        while let Some(link) = self.links.get_mut(&party) {
            match link.receive(&mut self.buffers) {
                Ok(None) => return,
                Ok(Some(Received::Welcome(welcome))) if welcome.party == party => {
                    let Welcome { incarnation, known, .. } = welcome;
                    self.todo.push_back(Event::Connected { to: party, incarnation, known });
                }
                Ok(Some(Received::Message { request, message, payload })) => {
                    if let Some((buffer, _)) = payload {
                        self.buffers.release(buffer);
                    }
                    self.todo.push_back(Event::Replied { from: party, request, message });
                }
                Ok(Some(Received::Hello(_) | Received::Welcome(_))) | Err(_) => self.lose(party),
            }
        }
    }

    fn lose(&mut self, party: Party) {
        self.links.remove(&party);
        self.todo.push_back(Event::Disconnected { from: party });
    }

    /// Sends requests to I/O servers. They are few and short: who does not take one is gone.
    fn send(&mut self) {
        let buffers = &mut self.buffers;
        let failed = self.links.iter_mut().filter_map(|(party, link)| {
            let sent = link.send(&NoRows, buffers);
            let stuck = link.out().left() > 0;
            (matches!(sent, Err(Lost::Failed(_))) || stuck).then_some(*party)
        });
        for party in failed.collect::<Vec<_>>() {
            self.lose(party);
        }
    }
}

fn event(heard: Heard) -> Event {
    match heard {
        Heard::Up { peer, session } => Event::PeerUp { peer, session },
        Heard::Lost { peer, ended } => Event::PeerLost { peer, ended },
        Heard::Asked { peer, request, message, .. } => Event::Asked { peer, request, message },
    }
}
