//! An instance and its clients, wired together: messages arrive as frames, in the order in which they are sent.

use iolab_pattern::Nest;
use iolab_pfs::client::{self, Call, CallNumber, Client, Done, FileNumber, Outcome};
use iolab_pfs::io_server::{self, IoServer, Subfile};
use iolab_pfs::metadata::{self, Metadata};
use iolab_pfs::wire::{self, Header};
use iolab_pfs::{
    Buffer, Incarnation, Layout, Message, OpenWish, Opened, Party, PartyAction, PartyEvent, Peer,
    PeerAction, PeerEvent, Portion, Request, SessionId,
};
use iolab_policy::Machine;
use iolab_vocab::{Direction, Nanos};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Who gets an event next.
enum Post {
    Client(usize, client::Event),
    Server(usize, io_server::Event),
    Metadata(metadata::Event),
}

pub(crate) struct Together {
    clients: Vec<Client>,
    servers: Vec<IoServer>,
    metadata: Metadata,
    pub(crate) disks: Vec<BTreeMap<Subfile, Vec<u8>>>,
    pub(crate) buffers: BTreeMap<u64, Vec<u8>>,
    last_buffer: u64,
    memory: BTreeMap<(usize, CallNumber), Vec<u8>>,
    posts: VecDeque<Post>,
    pub(crate) answers: BTreeMap<(usize, CallNumber), Outcome>,
    last_call: u64,
    now: Nanos,
}

/// The manager as a peer of servers.
const MANAGER: usize = 999;

impl Together {
    pub(crate) fn new(clients: usize, servers: u32, unit: u64) -> Together {
        let layout = Layout::striped(unit, servers, 0).unwrap();
        let settings = metadata::Settings { layout, ..metadata::Settings::usual(servers) };
        let client = client::Settings { transfer_bytes: 48, ..client::Settings::usual(servers) };
        let server = || IoServer::new(io_server::Settings::usual());
        Together {
            clients: (0..clients).map(|_| Client::new(client)).collect(),
            servers: (0..servers).map(|_| server()).collect(),
            metadata: Metadata::recover(settings, []).unwrap(),
            disks: vec![BTreeMap::new(); servers as usize],
            buffers: BTreeMap::new(),
            last_buffer: 0,
            memory: BTreeMap::new(),
            posts: VecDeque::new(),
            answers: BTreeMap::new(),
            last_call: 0,
            now: Nanos(0),
        }
    }

    fn keep(&mut self, bytes: Vec<u8>) -> Buffer {
        self.last_buffer += 1;
        self.buffers.insert(self.last_buffer, bytes);
        Buffer(self.last_buffer)
    }

    pub(crate) fn call(&mut self, client: usize, what: Call, memory: Vec<u8>) -> CallNumber {
        self.last_call += 1;
        let call = CallNumber(self.last_call);
        self.memory.insert((client, call), memory);
        self.posts.push_back(Post::Client(client, client::Event::Called { call, what }));
        call
    }

    pub(crate) fn run(&mut self) {
        while let Some(post) = self.posts.pop_front() {
            self.now = self.now.after(Nanos(1000));
            match post {
                Post::Client(at, event) => {
                    let mut out = Vec::new();
                    self.clients[at].step(self.now, event, &mut out);
                    out.into_iter().for_each(|action| self.client(at, action));
                }
                Post::Server(at, event) => {
                    let mut out = Vec::new();
                    self.servers[at].step(self.now, event, &mut out);
                    out.into_iter().for_each(|action| self.server(at, action));
                }
                Post::Metadata(event) => {
                    let mut out = Vec::new();
                    self.metadata.step(self.now, event, &mut out);
                    out.into_iter().for_each(|action| self.manager(action));
                }
            }
        }
    }

    /// One call without memory, and what comes of it.
    pub(crate) fn one(&mut self, client: usize, what: Call) -> Outcome {
        let call = self.call(client, what, Vec::new());
        self.run();
        self.answers.remove(&(client, call)).expect("every call is answered")
    }

    /// A party hears something of one who asks it.
    fn tell_of_peer(&mut self, party: Party, event: PeerEvent) {
        self.posts.push_back(match party {
            Party::Server(at) => Post::Server(at as usize, io_server::Event::Peer(event)),
            Party::Cache(_) => unreachable!("this instance has no cache managers"),
            Party::Metadata => Post::Metadata(metadata::Event::Peer(event)),
        });
    }

    /// Somebody hears something of a party that it asks.
    fn tell_of_party(&mut self, peer: Peer, event: PartyEvent) {
        self.posts.push_back(match peer.0 as usize {
            MANAGER => Post::Metadata(metadata::Event::Party(event)),
            at => Post::Client(at, client::Event::Party(event)),
        });
    }

    /// What somebody wants of a party.
    fn party<P>(
        &mut self,
        from: usize,
        action: PartyAction<P>,
        payload_of: impl FnOnce(&mut Self, P) -> (Buffer, u64),
    ) {
        let peer = Peer(from as u32);
        match action {
            PartyAction::Connect { to } => {
                let session = SessionId(from as u128);
                self.tell_of_peer(to, PeerEvent::Up { peer, session });
            }
            PartyAction::Ask { to, request, message, payload } => {
                let payload = payload.map(|payload| payload_of(self, payload));
                let (request, message) = carried(request, &message, payload);
                self.tell_of_peer(to, PeerEvent::Asked { peer, request, message, payload });
            }
            PartyAction::Disconnect { from } => panic!("nothing is lost here, but {from}"),
        }
    }

    /// What a party wants of one who asks it.
    fn peer<P>(
        &mut self,
        party: Party,
        action: PeerAction<P>,
        payload_of: impl FnOnce(P) -> (Buffer, u64),
    ) {
        match action {
            PeerAction::Welcome { peer, known } => {
                let incarnation = Incarnation(1);
                let connected = PartyEvent::Connected { to: party, incarnation, known };
                self.tell_of_party(peer, connected);
            }
            PeerAction::Reply { peer, request, message, payload } => {
                let payload = payload.map(payload_of);
                let (request, message) = carried(request, &message, payload);
                let payload = payload.map(|(buffer, bytes)| {
                    assert_eq!(self.buffers[&buffer.0].len() as u64, bytes);
                    buffer
                });
                let replied = PartyEvent::Replied { from: party, request, message, payload };
                self.tell_of_party(peer, replied);
            }
            PeerAction::Drop { why, .. } => panic!("{why}"),
        }
    }

    fn client(&mut self, at: usize, action: client::Action) {
        use client::Action;
        match action {
            Action::Party(action) => self.party(at, action, |instance, gather| {
                let memory = &instance.memory[&(at, gather.call)];
                let mut bytes = Vec::new();
                for piece in gather.portion.pieces() {
                    let from = piece.from.wrapping_sub(gather.origin) as usize;
                    bytes.extend(&memory[from..from + piece.bytes() as usize]);
                }
                assert_eq!(bytes.len() as u64, gather.bytes);
                (instance.keep(bytes), gather.bytes)
            }),
            Action::Move { call, from, portion, origin } => {
                let bytes = self.buffers.remove(&from.0).unwrap();
                let memory = self.memory.get_mut(&(at, call)).unwrap();
                let mut rest = bytes.as_slice();
                for piece in portion.pieces() {
                    let (own, more) = rest.split_at(piece.bytes() as usize);
                    let to = piece.from.wrapping_sub(origin) as usize;
                    memory[to..to + own.len()].copy_from_slice(own);
                    rest = more;
                }
                assert!(rest.is_empty());
                self.posts.push_back(Post::Client(at, client::Event::Moved { call }));
            }
            Action::Zero { call, portion, origin } => {
                let memory = self.memory.get_mut(&(at, call)).unwrap();
                for piece in portion.pieces() {
                    let to = piece.from.wrapping_sub(origin) as usize;
                    memory[to..to + piece.bytes() as usize].fill(0);
                }
                self.posts.push_back(Post::Client(at, client::Event::Moved { call }));
            }
            Action::Release { buffer } => assert!(self.buffers.remove(&buffer.0).is_some()),
            Action::Answer { call, outcome } => {
                assert!(self.answers.insert((at, call), outcome).is_none(), "one answer");
            }
            Action::WakeAt(_) => {}
        }
    }

    fn server(&mut self, at: usize, action: io_server::Action) {
        use io_server::Action;
        let done = |operation, outcome| {
            Post::Server(at, io_server::Event::Done { operation, result: Ok(outcome) })
        };
        let nothing = io_server::Outcome::Nothing;
        match action {
            Action::Peer(action) => self.peer(Party::Server(at as u32), action, |payload| payload),
            Action::Transfer { operation, direction, subfile, portion, from } => {
                let disk = self.disks[at].entry(subfile).or_default();
                let outcome = match direction {
                    Direction::Write => {
                        let bytes = self.buffers.remove(&from.unwrap().0).unwrap();
                        write(disk, &portion, &bytes);
                        nothing
                    }
                    Direction::Read => {
                        let bytes = read(disk, &portion);
                        io_server::Outcome::Bytes(self.keep(bytes))
                    }
                };
                self.posts.push_back(done(operation, outcome));
            }
            Action::Measure { operation, subfile } => {
                let length = self.disks[at].get(&subfile).map_or(0, |bytes| bytes.len() as u64);
                self.posts.push_back(done(operation, io_server::Outcome::Length(length)));
            }
            Action::Resize { operation, subfile, bytes, extends } => {
                let disk = self.disks[at].entry(subfile).or_default();
                if extends || bytes < disk.len() as u64 {
                    disk.resize(bytes as usize, 0);
                }
                self.posts.push_back(done(operation, nothing));
            }
            Action::Sync { operation, .. } => self.posts.push_back(done(operation, nothing)),
            Action::Strike { operation, .. } | Action::Sum { operation, .. } => {
                panic!("nobody keeps sums here, but {operation:?}")
            }
            Action::Room { operation, .. } => {
                panic!("nobody asks for room here, but {operation:?}")
            }
            Action::Discard { operation, inode } => {
                self.disks[at].retain(|subfile, _| subfile.inode != inode);
                self.posts.push_back(done(operation, nothing));
            }
            Action::Release { buffer } => assert!(self.buffers.remove(&buffer.0).is_some()),
            Action::WakeAt(_) => {}
        }
    }

    fn manager(&mut self, action: metadata::Action) {
        use metadata::Action;
        match action {
            Action::Peer(action) => self.peer(Party::Metadata, action, |never| match never {}),
            Action::Party(action) => self.party(MANAGER, action, |_, never| match never {}),
            Action::Release { buffer } => panic!("nobody sends it payload, but {buffer}"),
            Action::Checkpoint { .. } | Action::Supersede { .. } => {
                unreachable!("the journal is short")
            }
            Action::Append { sequence, .. } => {
                let event = metadata::Event::Appended { upto: sequence };
                self.posts.push_back(Post::Metadata(event));
            }
            Action::WakeAt(_) => {}
        }
    }

    /// A file that all clients have opened together.
    pub(crate) fn open(&mut self, path: &str, wish: OpenWish) -> Vec<FileNumber> {
        let path = path.as_bytes().to_vec();
        let Ok(Done::Opened(opened)) = self.one(0, Call::Open { path, wish }) else {
            panic!("not opened")
        };
        self.adopt(opened)
    }

    fn adopt(&mut self, opened: Opened) -> Vec<FileNumber> {
        let size = self.clients.len() as u32;
        let adopt = |rank| Call::Adopt { opened, rank, size };
        let calls: Vec<CallNumber> =
            (0..size).map(|rank| self.call(rank as usize, adopt(rank), Vec::new())).collect();
        self.run();
        let file = |(rank, call)| match self.answers.remove(&(rank, call)) {
            Some(Ok(Done::Adopted(file))) => file,
            other => panic!("{other:?}"),
        };
        calls.into_iter().enumerate().map(file).collect()
    }

    /// A collective access: what comes of it for each rank, and its memory.
    pub(crate) fn collective(
        &mut self,
        files: &[FileNumber],
        direction: Direction,
        of: impl Fn(usize) -> (Arc<Nest>, u64, u64, Vec<u8>),
    ) -> Vec<(Outcome, Vec<u8>)> {
        let mut begin = |(rank, &file)| {
            let (view, from, to, memory) = of(rank);
            let what = Call::Access { file, direction, view, from, to, collective: true };
            self.call(rank, what, memory)
        };
        let calls: Vec<CallNumber> = files.iter().enumerate().map(&mut begin).collect();
        self.run();
        let outcome = |(rank, call)| {
            let outcome = self.answers.remove(&(rank, call)).expect("every call is answered");
            (outcome, self.memory.remove(&(rank, call)).unwrap())
        };
        calls.into_iter().enumerate().map(outcome).collect()
    }

    /// Bytes of a view that one process reads alone; memory that is not written is 0xee.
    pub(crate) fn read(
        &mut self,
        file: FileNumber,
        view: &str,
        from: u64,
        to: u64,
    ) -> (u64, Vec<u8>) {
        let (view, direction) = (Arc::new(view.parse().unwrap()), Direction::Read);
        let what = Call::Access { file, direction, view, from, to, collective: false };
        let call = self.call(0, what, vec![0xee; (to - from) as usize]);
        self.run();
        match self.answers.remove(&(0, call)) {
            Some(Ok(Done::Bytes(bytes))) => (bytes, self.memory.remove(&(0, call)).unwrap()),
            other => panic!("{other:?}"),
        }
    }
}

/// What is there of a message after it was sent.
fn carried(
    request: Request,
    message: &Message,
    payload: Option<(Buffer, u64)>,
) -> (Request, Message) {
    let (payload_bytes, mut frame) = (payload.map_or(0, |(_, bytes)| bytes as u32), Vec::new());
    wire::encode(message, request, payload_bytes, None, &mut frame);
    let (front, fields) = frame.split_first_chunk().unwrap();
    let header = Header::decode(front).unwrap();
    (header.request, wire::decode(&header, fields).unwrap())
}

fn write(disk: &mut Vec<u8>, portion: &Portion, bytes: &[u8]) {
    let end = portion.span().unwrap().end() as usize;
    if disk.len() < end {
        disk.resize(end, 0);
    }
    let mut rest = bytes;
    for piece in portion.pieces() {
        let (own, more) = rest.split_at(piece.bytes() as usize);
        for (y, &byte) in (piece.from..piece.to).zip(own) {
            let x = portion.view.at(y).unwrap();
            disk[portion.division.place_of(x) as usize] = byte;
        }
        rest = more;
    }
    assert!(rest.is_empty());
}

fn read(disk: &[u8], portion: &Portion) -> Vec<u8> {
    let places = portion.pieces().flat_map(|piece| piece.from..piece.to);
    places.map(|y| disk[portion.division.place_of(portion.view.at(y).unwrap()) as usize]).collect()
}
