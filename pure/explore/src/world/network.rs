//! Connections: two rows of frames, each in its order, that end together.
//!
//! A connection that breaks loses what is under way in both directions. One that an end closes still
//! delivers what that end has sent before. Each end notices at a time of its own.

use super::{Happening, Node, World};
use crate::marks::Mark;
use crate::shadow::Keeper;
use iolab_pfs::wire::{self, Header, Mangled};
use iolab_pfs::{Incarnation, Message, Party, PartyEvent, Peer, PeerEvent, Request};
use iolab_pfs::{cache_manager, client, io_server, metadata};

/// Nobody waits longer for a welcome.
const WELCOME_NS: u64 = 2_000_000_000;

/// What travels.
#[derive(Clone, Debug)]
pub(super) enum Frame {
    /// The party welcomes the session.
    Welcome { incarnation: Incarnation, known: bool },
    /// A message as it lies on the wire, and whether something was changed on its way.
    Message { bytes: Vec<u8>, is_mangled: bool },
}

/// A message that has arrived.
pub(super) struct Heard {
    pub(super) request: Request,
    pub(super) message: Message,
    pub(super) payload: Option<Vec<u8>>,
}

/// A frame as it is sent.
fn pack(request: Request, message: &Message, payload: Option<&[u8]>) -> Frame {
    let payload = payload.unwrap_or_default();
    let mut bytes = Vec::new();
    let sum = wire::payload_sum(payload);
    wire::encode(message, request, payload.len() as u32, Some(sum), &mut bytes);
    bytes.extend(payload);
    Frame::Message { bytes, is_mangled: false }
}

/// What a frame says.
fn unpack(bytes: &[u8]) -> Result<Heard, Mangled> {
    let (header, body) = bytes.split_first_chunk().ok_or(Mangled::Length)?;
    let header = Header::decode(header)?;
    let (fields, payload) =
        body.split_at_checked(header.field_bytes() as usize).ok_or(Mangled::Length)?;
    if payload.len() != header.payload_bytes() as usize {
        return Err(Mangled::Length);
    }
    let message = wire::decode(&header, fields)?;
    if header.payload_sum().is_some_and(|sum| sum != wire::payload_sum(payload)) {
        return Err(Mangled::PayloadSum);
    }
    let payload = (!payload.is_empty()).then(|| payload.to_vec());
    Ok(Heard { request: header.request, message, payload })
}

/// A connection of somebody who asks.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) asker: Node,
    pub(super) party: Party,
    asker_life: u32,
    party_life: u32,
    /// Whether the party was told of it, and has not heard of its end.
    party_has: bool,
    /// Whether the asker wants it.
    asker_has: bool,
    welcomed: bool,
    broken: bool,
    /// Nothing sent before arrives later: to the asker, to the party.
    next: [u64; 2],
}

impl World {
    /// Somebody wants a connection to a party.
    pub(super) fn connect(&mut self, asker: Node, party: Party) {
        if self.connection_of(asker, party).is_some() {
            return self.fail(format!("{asker:?} connects to {party} twice"));
        }
        let connection = self.connections.len();
        self.connections.push(Connection {
            asker,
            party,
            asker_life: self.life_of(asker),
            party_life: 0,
            party_has: false,
            asker_has: true,
            welcomed: false,
            broken: false,
            next: [0; 2],
        });
        let at = self.arrival(connection, true);
        self.at(at, Happening::Knock { connection });
        let limit = WELCOME_NS + self.delay();
        self.later(limit, Happening::Unwelcome { connection });
    }

    /// The connection that an asker has or wants.
    fn connection_of(&self, asker: Node, party: Party) -> Option<usize> {
        let life = self.life_of(asker);
        self.connections.iter().rposition(|connection| {
            connection.asker == asker
                && connection.party == party
                && connection.asker_has
                && connection.asker_life == life
        })
    }

    /// An asker ends its connection.
    pub(super) fn disconnect(&mut self, asker: Node, party: Party) {
        let Some(connection) = self.connection_of(asker, party) else {
            return self.fail(format!("{asker:?} ends a connection to {party} that it has not"));
        };
        self.connections[connection].asker_has = false;
        let at = self.arrival(connection, true);
        self.at(at, Happening::Noticed { connection, at_party: true });
    }

    /// A party ends a connection.
    pub(super) fn drop_peer(&mut self, node: Node, peer: Peer, why: &str) {
        let connection = peer.0 as usize;
        self.check_peer(node, peer, "drops");
        self.connections[connection].party_has = false;
        let Connection { asker, party, .. } = self.connections[connection];
        let newer = self.connections.iter().skip(connection + 1);
        let is_replaced =
            newer.into_iter().any(|other| (other.asker, other.party) == (asker, party));
        // Servers may still be busy with requests that a client has given up.
        let is_busy = self.marks.count(Mark::TimedOut) > 0;
        if !is_replaced && !is_busy {
            self.fail(format!("{node:?} drops a connection of an honest client: {why}"));
        }
        let at = self.arrival(connection, false);
        self.at(at, Happening::Noticed { connection, at_party: false });
    }

    /// Sees that a party may use a connection.
    fn check_peer(&mut self, node: Node, peer: Peer, does: &str) {
        let connection = &self.connections[peer.0 as usize];
        let there = connection.party_has && connection.party_life == self.life_of(node);
        if !there || Node::of(connection.party) != node {
            self.fail(format!("{node:?} {does} connection {peer}, which it has not"));
        }
    }

    /// A request on its way.
    pub(super) fn ask(
        &mut self,
        asker: Node,
        party: Party,
        request: Request,
        message: Message,
        payload: Option<Vec<u8>>,
    ) {
        match self.connection_of(asker, party) {
            Some(connection) if self.connections[connection].welcomed => {
                let frame = pack(request, &message, payload.as_deref());
                self.send(connection, true, frame);
            }
            _ => self.fail(format!("{asker:?} asks {party} without a connection: {message:?}")),
        }
    }

    /// A reply on its way.
    pub(super) fn reply(
        &mut self,
        node: Node,
        peer: Peer,
        request: Request,
        message: Message,
        payload: Option<Vec<u8>>,
    ) {
        self.check_peer(node, peer, "replies on");
        let frame = pack(request, &message, payload.as_deref());
        self.send(peer.0 as usize, false, frame);
    }

    /// A welcome on its way.
    pub(super) fn welcome(&mut self, node: Node, peer: Peer, known: bool) {
        let session = self.session_of(self.connections[peer.0 as usize].asker);
        let (life, place, sessions) = match node {
            Node::Server(at) => {
                let server = &mut self.servers[at as usize];
                (server.life, u64::from(at) << 32, &mut server.sessions)
            }
            Node::Cache(at) => {
                let cache = &mut self.caches[at as usize];
                (cache.life, (1 << 61) + (u64::from(at) << 32), &mut cache.sessions)
            }
            Node::Metadata => (self.manager.life, 1 << 60, &mut self.manager.sessions),
            Node::Client(client) => return self.fail(format!("client {client} welcomes nobody")),
        };
        let incarnation = Incarnation(place + u64::from(life));
        if !sessions.insert(session) && !known {
            self.meet(Mark::SessionExpired);
            let now = self.tick();
            match node {
                Node::Server(at) => {
                    self.servers[at as usize].written.retain(|(of, _)| *of != session);
                    self.shadow.forgot(Keeper::Server(at), now);
                }
                Node::Cache(at) => self.shadow.forgot(Keeper::Cache(at), now),
                Node::Metadata | Node::Client(_) => {}
            }
        }
        self.check_peer(node, peer, "welcomes");
        self.send(peer.0 as usize, false, Frame::Welcome { incarnation, known });
    }

    fn send(&mut self, connection: usize, to_party: bool, frame: Frame) {
        if self.connections[connection].broken {
            return;
        }
        if self.trouble(self.plan.rates.loss) {
            return self.break_off(connection);
        }
        let at = self.arrival(connection, to_party);
        let mut frame = frame;
        if let Frame::Message { bytes, is_mangled } = &mut frame
            && self.trouble(self.plan.rates.mangle)
        {
            *is_mangled = true;
            self.mangle(bytes);
        }
        self.at(at, Happening::Arrives { connection, to_party, frame });
    }

    /// Changes a bit of a frame, or a few bytes in a row, or its end.
    fn mangle(&mut self, bytes: &mut Vec<u8>) {
        let at = self.dice.below(bytes.len() as u64) as usize;
        match self.dice.below(3) {
            0 => bytes[at] ^= 1 << self.dice.below(8),
            1 => {
                let change = self.dice.between(1, 255) as u8;
                bytes[at..].iter_mut().take(4).for_each(|byte| *byte ^= change);
            }
            _ => bytes.truncate(at),
        }
    }

    /// When something that is sent now arrives.
    fn arrival(&mut self, connection: usize, to_party: bool) -> u64 {
        let delay = self.delay();
        let Connection { asker, party, .. } = self.connections[connection];
        let party = Node::of(party);
        let way = if to_party { (asker, party) } else { (party, asker) };
        let open = self.cut.get(&way).copied().unwrap_or(0).max(self.now.0);
        let next = &mut self.connections[connection].next[usize::from(to_party)];
        *next = (open + delay).max(*next);
        *next
    }

    /// A connection breaks; both ends will notice.
    pub(super) fn break_off(&mut self, connection: usize) {
        if std::mem::replace(&mut self.connections[connection].broken, true) {
            return;
        }
        self.tell(&|| format!("connection {connection} breaks"));
        for at_party in [false, true] {
            let at = self.arrival(connection, at_party);
            // An end may think for long that a lost connection is still there.
            let more = if self.trouble(4) { self.dice.below(20_000_000_000) } else { 0 };
            self.at(at + more, Happening::Noticed { connection, at_party });
        }
    }

    /// Whether a node asks on a connection.
    pub(super) fn asks(&self, node: Node, peer: Peer) -> bool {
        self.connections[peer.0 as usize].asker == node
    }

    /// What a party sends next on a connection arrives late.
    pub(super) fn hold_up(&mut self, peer: Peer) {
        let late = self.now.0 + self.dice.magnitude(1_000_000, 5_000_000_000);
        let next = &mut self.connections[peer.0 as usize].next[0];
        *next = late.max(*next);
    }

    /// Breaks all connections of a node.
    pub(super) fn break_all(&mut self, node: Node) {
        for at in 0..self.connections.len() {
            let connection = &self.connections[at];
            if connection.asker == node || Node::of(connection.party) == node {
                self.break_off(at);
            }
        }
    }

    /// Breaks the connections between two nodes.
    pub(super) fn break_between(&mut self, asker: Node, party: Node) {
        for at in 0..self.connections.len() {
            let connection = &self.connections[at];
            if connection.asker == asker && Node::of(connection.party) == party {
                self.break_off(at);
            }
        }
    }

    pub(super) fn knock(&mut self, connection: usize) {
        let Connection { asker, party, broken, asker_has, .. } = self.connections[connection];
        let node = Node::of(party);
        if broken || !asker_has {
            return;
        }
        if !self.is_up(node) {
            return self.break_off(connection);
        }
        let life = self.life_of(node);
        let replaces = self.connections.iter().any(|other| {
            other.asker == asker
                && other.party == party
                && other.party_has
                && other.party_life == life
        });
        if replaces {
            self.meet(Mark::ConnectionReplaced);
        }
        let entry = &mut self.connections[connection];
        (entry.party_has, entry.party_life) = (true, life);
        let peer = Peer(connection as u32);
        let session = self.session_of(asker);
        self.tell_of_peer(party, PeerEvent::Up { peer, session });
    }

    /// The driver of the asker gives up if nobody has welcomed it.
    pub(super) fn unwelcome(&mut self, connection: usize) {
        let Connection { welcomed, asker_has, .. } = self.connections[connection];
        if !welcomed && asker_has {
            let at = self.arrival(connection, true);
            self.at(at, Happening::Noticed { connection, at_party: true });
            self.notice(connection, false);
        }
    }

    pub(super) fn notice(&mut self, connection: usize, at_party: bool) {
        let entry = self.connections[connection].clone();
        if at_party {
            let node = Node::of(entry.party);
            if !entry.party_has || entry.party_life != self.life_of(node) {
                return;
            }
            self.connections[connection].party_has = false;
            let ended = !self.is_up(entry.asker);
            self.tell_of_peer(
                entry.party,
                PeerEvent::Lost { peer: Peer(connection as u32), ended },
            );
        } else if entry.asker_has && entry.asker_life == self.life_of(entry.asker) {
            self.connections[connection].asker_has = false;
            self.tell_of_party(entry.asker, PartyEvent::Disconnected { from: entry.party });
        }
    }

    /// A party hears something of one who asks it.
    pub(super) fn tell_of_peer(&mut self, party: Party, event: PeerEvent) {
        match party {
            Party::Server(server) => self.tell_server(server, io_server::Event::Peer(event)),
            Party::Cache(cache) => self.tell_cache(cache, cache_manager::Event::Peer(event)),
            Party::Metadata => self.tell_manager(metadata::Event::Peer(event)),
        }
    }

    /// Somebody hears something of a party that it asks.
    pub(super) fn tell_of_party(&mut self, asker: Node, event: PartyEvent) {
        match asker {
            Node::Client(client) => self.tell_client(client, client::Event::Party(event)),
            Node::Cache(cache) => self.tell_cache(cache, cache_manager::Event::Party(event)),
            Node::Metadata => self.tell_manager(metadata::Event::Party(event)),
            Node::Server(server) => self.fail(format!("server {server} asks nobody")),
        }
    }

    fn asked(&mut self, connection: usize, heard: Heard) {
        let Connection { asker, party, .. } = self.connections[connection];
        let Heard { request, message, payload } = heard;
        let peer = Peer(connection as u32);
        match party {
            Party::Server(server) => {
                let session = self.session_of(asker);
                self.server_hears(server, (peer, session), request, message, payload);
            }
            Party::Cache(cache) => self.cache_asked(cache, peer, (request, message), payload),
            Party::Metadata => {
                let event = PeerEvent::Asked { peer, request, message, payload: None };
                self.tell_of_peer(party, event);
            }
        }
    }

    /// A frame comes to its end of a connection.
    pub(super) fn arrive(&mut self, connection: usize, to_party: bool, frame: Frame) {
        let entry = self.connections[connection].clone();
        let (has, life, end) = match to_party {
            true => (entry.party_has, entry.party_life, Node::of(entry.party)),
            false => (entry.asker_has, entry.asker_life, entry.asker),
        };
        if entry.broken || !has || life != self.life_of(end) {
            return;
        }
        match frame {
            Frame::Welcome { incarnation, known } => {
                self.connections[connection].welcomed = true;
                let connected = PartyEvent::Connected { to: entry.party, incarnation, known };
                self.tell_of_party(entry.asker, connected);
            }
            Frame::Message { bytes, is_mangled } => {
                self.log(&[connection as u64]);
                self.log_bytes(&bytes);
                match unpack(&bytes) {
                    Ok(_) if is_mangled => self.fail(format!("{end:?} takes a mangled frame")),
                    Ok(heard) if to_party => self.asked(connection, heard),
                    Ok(heard) => self.answered(entry.asker, entry.party, heard),
                    Err(why) => self.refuse_frame(connection, to_party, is_mangled, why),
                }
            }
        }
    }

    /// Who cannot read a frame ends its connection; the other end notices.
    fn refuse_frame(&mut self, connection: usize, at_party: bool, is_mangled: bool, why: Mangled) {
        if !is_mangled {
            return self.fail(format!("a frame that nobody has changed is refused: {why}"));
        }
        self.meet(Mark::FrameMangled);
        self.connections[connection].broken = true;
        let seen = self.delay();
        self.later(seen, Happening::Noticed { connection, at_party: !at_party });
        self.notice(connection, at_party);
    }

    fn answered(&mut self, asker: Node, from: Party, heard: Heard) {
        match asker {
            Node::Client(client) => self.client_hears(client, from, heard),
            Node::Cache(cache) => self.cache_hears(cache, from, heard),
            _ => {
                let Heard { request, message, .. } = heard;
                let event = PartyEvent::Replied { from, request, message, payload: None };
                self.tell_of_party(asker, event);
            }
        }
    }
}
