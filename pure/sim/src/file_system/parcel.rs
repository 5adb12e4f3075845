//! What the parties of a file system send to each other through the world, with its size on the wire.

use super::World;
use crate::process;
use crate::queue::EventQueue;
use crate::slab::{Id, ids};
use crate::world::{Content, Event, NodeId, PayloadId, Target};
use iolab_pfs::session::{Greeting, Hello, Role, Welcome};
use iolab_pfs::{Buffer, Incarnation, Message, Party, Peer, Request, SessionId, wire};
use iolab_policy::placement::catalog as placement;
use iolab_policy::write_policy::catalog as write_policy;
use std::collections::BTreeMap;

ids! {
    /// A connection; never used again.
    ConnectionId;
}

/// Who makes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    /// The client of that process.
    Client(usize),
    /// The metadata manager.
    Metadata,
    /// That cache manager.
    Cache(usize),
}

/// Where everybody is.
#[derive(Clone, Debug)]
pub(super) struct Addresses {
    /// Clients, whose messages reach the targets of their processes.
    pub(super) client_count: u32,
    /// Of the I/O servers.
    pub(super) servers: Vec<Target>,
    /// Of the cache managers: somebody on the node of each.
    pub(super) caches: Vec<Target>,
    /// Of the metadata manager.
    pub(super) metadata: Target,
}

impl Addresses {
    /// The connection with that number, of those that somebody makes.
    pub(super) fn connection(&self, asker: Asker, number: u32) -> ConnectionId {
        let place = match asker {
            Asker::Client(client) => client as u32,
            Asker::Metadata => self.client_count,
            Asker::Cache(cache) => self.client_count + 1 + cache as u32,
        };
        ConnectionId(number * self.asker_count() + place)
    }

    /// How many may make connections.
    fn asker_count(&self) -> u32 {
        self.client_count + 1 + self.caches.len() as u32
    }

    /// Who has made a connection.
    pub(super) fn asker(&self, connection: ConnectionId) -> Asker {
        let place = connection.0 % self.asker_count();
        match place.checked_sub(self.client_count) {
            None => Asker::Client(place as usize),
            Some(0) => Asker::Metadata,
            Some(behind) => Asker::Cache(behind as usize - 1),
        }
    }

    /// Where whoever has made a connection is.
    pub(super) fn of_asker(&self, connection: ConnectionId) -> Target {
        match self.asker(connection) {
            Asker::Client(client) => Target(client as u32),
            Asker::Metadata => self.metadata,
            Asker::Cache(cache) => self.caches[cache],
        }
    }

    /// Where a party is.
    pub(super) fn of_party(&self, party: Party) -> Target {
        match party {
            Party::Metadata => self.metadata,
            Party::Server(index) => self.servers[index as usize],
            Party::Cache(index) => self.caches[index as usize],
        }
    }

    /// The session of whoever has made a connection: one for each.
    pub(super) fn session(&self, connection: ConnectionId) -> SessionId {
        SessionId(u128::from(connection.0 % self.asker_count()) + 1)
    }
}

impl ConnectionId {
    /// As the machine that was connected to calls it.
    pub(super) fn peer(self) -> Peer {
        Peer(self.0)
    }

    /// The connection that a machine calls so.
    pub(super) fn of_peer(peer: Peer) -> ConnectionId {
        ConnectionId(peer.0)
    }
}

/// The one life of all parties of a run.
pub(super) const INCARNATION: Incarnation = Incarnation(1);

/// What a message of the world means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// From process to process.
    Between(process::Message),
    /// From party to party.
    Parcel(PayloadId),
}

impl From<process::Message> for Told {
    fn from(message: process::Message) -> Told {
        Told::Between(message)
    }
}

impl Content for Told {
    type Payload = Parcel;

    /// 5 message between processes, 6 its arrangement, 7 between parties of the file system.
    fn number(self) -> i64 {
        match self {
            Told::Between(message) => message.number(),
            Told::Parcel(_) => 7,
        }
    }
}

/// Bytes on their way, by their number in the driver's memory.
pub(super) type Payload = (Buffer, u64);

/// Something on its way along a connection.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parcel {
    pub(super) connection: ConnectionId,
    /// The party that was connected to.
    pub(super) party: Party,
    /// Its place among what goes this way on this connection.
    sequence: u64,
    pub(super) what: Carried,
}

/// What a parcel is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Carried {
    /// A connection is wanted.
    Hello,
    /// There is one now.
    Welcome { known: bool },
    /// Whoever made it is through with it.
    Bye,
    /// The party has ended it.
    Ended,
    /// To the party that was connected to.
    Asked { request: Request, message: Message, payload: Option<Payload> },
    /// From it.
    Replied { request: Request, message: Message, payload: Option<Payload> },
}

impl Parcel {
    /// Its size on the wire, payload included.
    pub(super) fn bytes(&self) -> u64 {
        match &self.what {
            Carried::Hello => greeting_bytes(&Greeting::Hello(Hello {
                session: SessionId(u128::from(self.connection.0)),
                role: Role::Client,
                name: format!("process {}", self.connection.index()),
            })),
            Carried::Welcome { known } => greeting_bytes(&Greeting::Welcome(Welcome {
                incarnation: INCARNATION,
                known: *known,
                party: Party::Metadata,
                placement: placement::USUAL,
                write_policy: write_policy::USUAL,
                servers: 0,
                caches: 0,
            })),
            Carried::Bye | Carried::Ended => greeting_bytes(&Greeting::Bye),
            Carried::Asked { message, .. } | Carried::Replied { message, .. } => {
                wire::message_bytes(message) + self.payload_bytes()
            }
        }
    }

    /// Bytes of payload.
    pub(super) fn payload_bytes(&self) -> u64 {
        match &self.what {
            Carried::Asked { payload, .. } | Carried::Replied { payload, .. } => {
                payload.map_or(0, |(_, bytes)| bytes)
            }
            _ => 0,
        }
    }

    /// Whether it goes to the party that was connected to.
    pub(super) fn is_for_party(&self) -> bool {
        matches!(self.what, Carried::Hello | Carried::Bye | Carried::Asked { .. })
    }

    /// Whether it only tells that somebody is there.
    pub(super) fn is_sign_of_life(&self) -> bool {
        self.what.is_sign_of_life()
    }
}

impl Carried {
    /// Whether it only tells that somebody is there.
    pub(super) fn is_sign_of_life(&self) -> bool {
        match self {
            Carried::Asked { message, .. } | Carried::Replied { message, .. } => {
                matches!(message, Message::Ping | Message::Pong)
            }
            _ => false,
        }
    }
}

/// One end of all connections of somebody: what goes along one arrives in the order in which it was sent,
/// though a large message takes longer in the world than a small one.
#[derive(Debug, Default)]
pub(super) struct Wires {
    sent: BTreeMap<ConnectionId, u64>,
    received: BTreeMap<ConnectionId, u64>,
    early: BTreeMap<(ConnectionId, u64), Parcel>,
}

impl Wires {
    /// Sends something along a connection.
    pub(super) fn send<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        (from, to): (NodeId, Target),
        (connection, party): (ConnectionId, Party),
        what: Carried,
    ) {
        let next = self.sent.entry(connection).or_default();
        let parcel = Parcel { connection, party, sequence: *next, what };
        *next += 1;
        let bytes = parcel.bytes();
        let parcel = world.payloads.add(parcel);
        world.send(from, to, None, bytes, Told::Parcel(parcel));
    }

    /// Something has arrived: gives what may be looked at now, in order.
    pub(super) fn take(&mut self, parcel: Parcel) -> Vec<Parcel> {
        let connection = parcel.connection;
        self.early.insert((connection, parcel.sequence), parcel);
        let next = self.received.entry(connection).or_default();
        let mut ready = Vec::new();
        while let Some(parcel) = self.early.remove(&(connection, *next)) {
            *next += 1;
            ready.push(parcel);
        }
        ready
    }
}

fn greeting_bytes(greeting: &Greeting) -> u64 {
    let mut bytes = Vec::new();
    greeting.encode(&mut bytes);
    bytes.len() as u64
}
