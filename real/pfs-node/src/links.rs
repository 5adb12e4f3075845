//! Connections of a server to those whom it asks in turn: those of the metadata manager and of a cache
//! manager to I/O servers.

use crate::buffers::{Buffers, Payload};
use crate::channel::{Channel, Received};
use crate::instance::Place;
use crate::link;
use crate::outgoing::{NoRows, Part};
use crate::peers::Epoll;
use crate::running::Threads;
use iolab_pfs::session::{Hello, Welcome};
use iolab_pfs::{Message, Party, PartyAction, PartyEvent, Request};
use rustix::event::epoll::{self, EventData, EventFlags};
use std::collections::BTreeMap;

/// Numbers in epoll from here on are connections to parties.
pub(crate) const FIRST: u64 = 1 << 40;
/// Numbers of cache managers lie so far behind those of I/O servers.
const CACHES: u64 = 1 << 32;

/// All connections of one who asks.
pub(crate) struct Links {
    hello: Hello,
    place: Place,
    epoll: Epoll,
    of: BTreeMap<Party, Channel>,
    threads: Threads,
    told: Vec<PartyEvent>,
}

fn number(party: Party) -> u64 {
    match party {
        Party::Metadata => FIRST,
        Party::Server(index) => FIRST + 1 + u64::from(index),
        Party::Cache(index) => FIRST + 1 + CACHES + u64::from(index),
    }
}

impl Links {
    /// None yet, of somebody who says this hello to parties in that place.
    pub(crate) fn new(hello: Hello, place: Place, epoll: Epoll) -> Links {
        Links {
            hello,
            place,
            epoll,
            of: BTreeMap::new(),
            threads: Threads::default(),
            told: Vec::new(),
        }
    }

    /// What there is to tell since the last time.
    pub(crate) fn told(&mut self) -> std::vec::Drain<'_, PartyEvent> {
        self.told.drain(..)
    }

    /// Does what the machine wants of a party.
    pub(crate) fn perform<P>(
        &mut self,
        action: PartyAction<P>,
        payload_of: impl FnOnce(P) -> Payload,
    ) {
        match action {
            PartyAction::Connect { to } => self.connect(to),
            PartyAction::Disconnect { from } => drop(self.of.remove(&from)),
            PartyAction::Ask { to, request, message, payload } => {
                self.push(to, (request, &message), payload.map(payload_of));
            }
        }
    }

    fn connect(&mut self, to: Party) {
        let made = link::connect(&self.place, to, self.hello.clone());
        let watched = made.and_then(|link| {
            epoll::add(&*self.epoll, &link, EventData::new_u64(number(to)), EventFlags::IN)?;
            Ok(link)
        });
        match watched {
            Ok(link) => drop(self.of.insert(to, link)),
            Err(_) => self.told.push(PartyEvent::Disconnected { from: to }),
        }
    }

    /// Looks whether those run who do not answer.
    pub(crate) fn look_at(&mut self, silent: Vec<Party>) {
        let running = self.threads.running(silent, &self.of);
        self.told.extend(running.into_iter().map(|party| PartyEvent::Runs { party }));
    }

    /// Puts a request on its way, with its payload.
    fn push(
        &mut self,
        to: Party,
        (request, message): (Request, &Message),
        payload: Option<Payload>,
    ) {
        let Some(link) = self.of.get_mut(&to) else { return };
        let bytes = payload.as_ref().map_or(0, |payload| payload.bytes().len());
        let parts = payload.into_iter().map(Part::Payload);
        link.push(request, message, parts.collect(), bytes as u32);
    }

    /// Receives what came on the connection that has a number in epoll.
    pub(crate) fn ready(&mut self, number_of: u64, buffers: &mut Buffers) {
        let party = self.of.keys().copied().find(|&party| number(party) == number_of);
        if let Some(party) = party {
            self.receive(party, buffers);
        }
    }

    fn receive(&mut self, party: Party, buffers: &mut Buffers) {
        while let Some(link) = self.of.get_mut(&party) {
            match link.receive(buffers) {
                Ok(None) => return,
                Ok(Some(Received::Welcome(welcome))) if welcome.party == party => {
                    let Welcome { incarnation, known, .. } = welcome;
                    self.told.push(PartyEvent::Connected { to: party, incarnation, known });
                }
                Ok(Some(Received::Message { request, message, payload })) => {
                    let payload = payload.map(|(buffer, _)| buffer);
                    self.told.push(PartyEvent::Replied { from: party, request, message, payload });
                }
                Ok(Some(Received::Hello(_) | Received::Welcome(_))) | Err(_) => self.lose(party),
            }
        }
    }

    fn lose(&mut self, party: Party) {
        self.of.remove(&party);
        self.told.push(PartyEvent::Disconnected { from: party });
    }

    /// Sends what is taken of what waits, and has epoll tell when more is.
    pub(crate) fn send(&mut self, buffers: &mut Buffers) {
        let epoll = &self.epoll;
        let failed = self.of.iter_mut().filter_map(|(&party, link)| {
            let waited = link.out().left() > 0;
            let sent = link.send(&NoRows, buffers);
            let waits = link.out().left() > 0;
            let out = if waits { EventFlags::OUT } else { EventFlags::empty() };
            let data = EventData::new_u64(number(party));
            let watched = match waited || waits {
                true => epoll::modify(&**epoll, &*link, data, EventFlags::IN | out),
                false => Ok(()),
            };
            (sent.is_err() || watched.is_err()).then_some(party)
        });
        for party in failed.collect::<Vec<_>>() {
            // What it has sent before it went is taken first.
            self.receive(party, buffers);
            if self.of.contains_key(&party) {
                self.lose(party);
            }
        }
    }
}
