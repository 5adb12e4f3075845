//! One party's ends of its connections: parcels to what its machine is told, and what the machine wants of
//! others to parcels.

use super::World;
use super::parcel::{Addresses, Asker, Carried, ConnectionId, INCARNATION, Parcel, Payload, Wires};
use crate::queue::EventQueue;
use crate::world::{Event, NodeId, Target};
use iolab_pfs::{Buffer, Party, PartyAction, PartyEvent, Peer, PeerAction, PeerEvent};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a parcel tells a machine.
pub(super) enum Heard {
    /// Of those who ask it.
    Peer(PeerEvent),
    /// Of those whom it asks.
    Party(PartyEvent),
}

/// Something to be sent along a connection.
pub(super) struct Dispatch {
    to: Target,
    pub(super) connection: ConnectionId,
    /// The party that was connected to.
    party: Party,
    pub(super) what: Carried,
}

/// See the module.
pub(super) struct Ends {
    pub(super) node: NodeId,
    addresses: Arc<Addresses>,
    wires: Wires,
    /// Those that it has made and not ended.
    links: BTreeMap<Party, ConnectionId>,
    connection_count: u32,
    last_buffer: u64,
}

impl Ends {
    /// None yet, of somebody on that node.
    pub(super) fn new(node: NodeId, addresses: Arc<Addresses>) -> Ends {
        Ends {
            node,
            addresses,
            wires: Wires::default(),
            links: BTreeMap::new(),
            connection_count: 0,
            last_buffer: 0,
        }
    }

    /// Something has arrived: gives what may be looked at now, in order.
    pub(super) fn take(&mut self, parcel: Parcel) -> Vec<Parcel> {
        self.wires.take(parcel)
    }

    /// What a parcel tells; nothing, if it comes from one who is not connected to any more.
    pub(super) fn hear(&self, parcel: Parcel) -> Option<Heard> {
        let Parcel { connection, party, what, .. } = parcel;
        let peer = connection.peer();
        let is_current = self.links.get(&party) == Some(&connection);
        Some(match what {
            Carried::Hello => {
                Heard::Peer(PeerEvent::Up { peer, session: self.addresses.session(connection) })
            }
            Carried::Bye => Heard::Peer(PeerEvent::Lost { peer, ended: false }),
            Carried::Asked { request, message, payload } => {
                Heard::Peer(PeerEvent::Asked { peer, request, message, payload })
            }
            _ if !is_current => return None,
            Carried::Welcome { known } => {
                let incarnation = INCARNATION;
                Heard::Party(PartyEvent::Connected { to: party, incarnation, known })
            }
            Carried::Ended => Heard::Party(PartyEvent::Disconnected { from: party }),
            Carried::Replied { request, message, payload } => {
                let payload = payload.map(|(buffer, _)| buffer);
                Heard::Party(PartyEvent::Replied { from: party, request, message, payload })
            }
        })
    }

    /// What the machine of a party wants of one who asks it, with so many bytes of payload.
    pub(super) fn answer<P>(
        &mut self,
        party: Party,
        action: PeerAction<P>,
        bytes_of: impl FnOnce(P) -> u64,
    ) -> Dispatch {
        let (peer, what) = match action {
            PeerAction::Welcome { peer, known } => (peer, Carried::Welcome { known }),
            PeerAction::Reply { peer, request, message, payload } => {
                let payload = payload.map(|payload| self.payload(bytes_of(payload)));
                (peer, Carried::Replied { request, message, payload })
            }
            PeerAction::Drop { peer, .. } => (peer, Carried::Ended),
        };
        let connection = ConnectionId::of_peer(peer);
        Dispatch { to: self.addresses.of_asker(connection), connection, party, what }
    }

    /// What the machine of an asker wants of a party, with so many bytes of payload; nothing, if they are not
    /// connected.
    pub(super) fn ask<P>(
        &mut self,
        asker: Asker,
        action: PartyAction<P>,
        bytes_of: impl FnOnce(P) -> u64,
    ) -> Option<Dispatch> {
        let (party, what) = match action {
            PartyAction::Connect { to } => {
                let connection = self.addresses.connection(asker, self.connection_count);
                self.connection_count += 1;
                self.links.insert(to, connection);
                (to, Carried::Hello)
            }
            PartyAction::Disconnect { from } => (from, Carried::Bye),
            PartyAction::Ask { to, request, message, payload } => {
                let payload = payload.map(|payload| self.payload(bytes_of(payload)));
                (to, Carried::Asked { request, message, payload })
            }
        };
        let connection = match what {
            Carried::Bye => self.links.remove(&party)?,
            _ => *self.links.get(&party)?,
        };
        Some(Dispatch { to: self.addresses.of_party(party), connection, party, what })
    }

    /// Sends something.
    pub(super) fn send<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, dispatch: Dispatch) {
        let Dispatch { to, connection, party, what } = dispatch;
        self.wires.send(world, (self.node, to), (connection, party), what);
    }

    fn payload(&mut self, bytes: u64) -> Payload {
        (self.buffer(), bytes)
    }

    /// A number for bytes that nothing else has.
    pub(super) fn buffer(&mut self) -> Buffer {
        self.last_buffer += 1;
        Buffer(self.last_buffer)
    }

    /// The connections that it has made and not ended, as the parties call them.
    pub(super) fn links(&self) -> impl Iterator<Item = (Party, Peer)> + '_ {
        self.links.iter().map(|(party, connection)| (*party, connection.peer()))
    }
}
