//! Drivers of the I/O servers.

use super::network::Heard;
use super::{Happening, Node, World};
use crate::marks::Mark;
use crate::plan::Plan;
use iolab_pfs::io_server::{
    Action, Event, IoServer, Operation, ServingSettings, Settings, Subfile,
};
use iolab_pfs::recording::Recorded;
use iolab_pfs::{
    Buffer, Code, Inode, Message, Party, PartyEvent, Peer, PeerAction, PeerEvent, Request,
    SessionId,
};
use iolab_policy::Machine;
use iolab_vocab::Nanos;
use std::collections::{BTreeMap, BTreeSet};

use super::devices::{Disk, Syncing, Work};

/// An I/O server, its driver and its disk.
pub(super) struct Server {
    machine: Recorded<IoServer>,
    settings: Settings,
    pub(super) up: bool,
    /// How many times it has started.
    pub(super) life: u32,
    pub(super) disk: Disk,
    pub(super) buffers: BTreeMap<u64, Vec<u8>>,
    /// The request that brought a buffer.
    pub(super) brought: BTreeMap<u64, (SessionId, Request)>,
    pub(super) works: BTreeMap<u64, Work>,
    /// In this life: requests that came, were answered, and were written.
    asked: BTreeSet<(SessionId, Request)>,
    answered: BTreeSet<(SessionId, Request)>,
    pub(super) written: BTreeSet<(SessionId, Request)>,
    pub(super) sessions: BTreeSet<SessionId>,
}

impl Server {
    pub(super) fn new(plan: &Plan) -> Server {
        let usual = ServingSettings::usual();
        let settings = Settings {
            serving: ServingSettings { view_bytes_max: plan.view_bytes_max, ..usual },
            limit: plan.limit(),
            summing: plan.summing,
        };
        let mut disk = Disk::default();
        disk.sums.page_bytes = plan.summing.map_or(0, |summing| summing.page_bytes);
        Server {
            machine: Recorded::of(IoServer::new(settings), None),
            settings,
            up: false,
            life: 0,
            disk,
            buffers: BTreeMap::new(),
            brought: BTreeMap::new(),
            works: BTreeMap::new(),
            asked: BTreeSet::new(),
            answered: BTreeSet::new(),
            written: BTreeSet::new(),
            sessions: BTreeSet::new(),
        }
    }

    /// A new life: what was in memory is gone.
    pub(super) fn start(&mut self, is_recorded: bool) {
        let origin = is_recorded.then_some(&self.settings);
        self.machine = Recorded::of(IoServer::new(self.settings), origin);
        self.up = true;
        self.life += 1;
        self.disk.sums.begin_life();
        self.buffers.clear();
        self.brought.clear();
        self.works.clear();
        self.asked.clear();
        self.answered.clear();
        self.written.clear();
        self.sessions.clear();
    }

    /// Begins to sync a subfile.
    pub(super) fn begin_sync(&mut self, subfile: Subfile) -> Syncing {
        let others = self.sectors_under_way(subfile);
        self.disk.begin_sync(subfile, others)
    }

    /// A sync of a subfile is over.
    pub(super) fn end_sync(&mut self, subfile: Subfile, syncing: Syncing) {
        self.syncs_of(subfile).for_each(|other| other.overtaken_by(&syncing));
        self.disk.end_sync(subfile, syncing);
    }

    /// A sync of a subfile has failed: of others that wait for the same sectors the kernel tells none.
    pub(super) fn sync_failed(&mut self, subfile: Subfile, syncing: &Syncing) {
        for other in self.syncs_of(subfile) {
            other.sectors.retain(|at, _| !syncing.sectors.contains_key(at));
        }
        self.disk.is_left(subfile, syncing);
        self.disk.has_failed = true;
    }

    /// The syncs of a subfile that are under way.
    fn syncs_of(&mut self, subfile: Subfile) -> impl Iterator<Item = &mut Syncing> {
        self.works.values_mut().filter_map(move |work| match work {
            Work::Sync { subfile: of, syncing } | Work::Sum { subfile: of, syncing, .. } => {
                (*of == subfile).then_some(syncing)
            }
            _ => None,
        })
    }

    /// What they write.
    pub(super) fn sectors_under_way(&mut self, subfile: Subfile) -> BTreeSet<usize> {
        self.syncs_of(subfile).flat_map(|syncing| syncing.sectors.keys().copied()).collect()
    }

    /// What the device has changed is as it was. What was read of it and not held against its sums is read again.
    pub(super) fn heal(&mut self) {
        self.disk.heal();
        for work in self.works.values_mut() {
            if let Work::Transfer(transfer) = work {
                transfer.begun &= transfer.writes;
            }
        }
    }

    /// Whether something that it does for somebody is to fail at once.
    pub(super) fn has_spoiled(&self, peer: Peer) -> bool {
        let is_for = |number| self.asker(Operation(number)).is_some_and(|asker| asker.0 == peer);
        self.works.iter().any(|(&number, work)| work.is_spoiled() && is_for(number))
    }

    /// What it has granted to cache managers.
    pub(super) fn granted_bytes(&self) -> u64 {
        self.machine.granted_bytes()
    }

    /// Who waits for what the device does, and for which reply.
    pub(super) fn asker(&self, operation: Operation) -> Option<(Peer, Request)> {
        self.machine.asker(operation)
    }
}

impl World {
    /// A request for a server has arrived.
    pub(super) fn server_hears(
        &mut self,
        server: u32,
        (peer, session): (Peer, SessionId),
        request: Request,
        message: Message,
        payload: Option<Vec<u8>>,
    ) {
        if !self.servers[server as usize].asked.insert((session, request)) {
            self.meet(Mark::AskedAgain);
        }
        self.verdicts.asked(server, (session, request), &message);
        if let Message::Discard { inode } = message {
            self.meet(Mark::Discarded);
            self.shadow.discarded(inode);
        }
        let payload = payload.map(|bytes| {
            let buffer = self.fresh();
            let count = bytes.len() as u64;
            let server = &mut self.servers[server as usize];
            server.buffers.insert(buffer, bytes);
            server.brought.insert(buffer, (session, request));
            (Buffer(buffer), count)
        });
        let event = PeerEvent::Asked { peer, request, message, payload };
        self.tell_server(server, Event::Peer(event));
    }

    /// A number that nothing else has.
    pub(super) fn fresh(&mut self) -> u64 {
        self.wanted += 1;
        self.wanted
    }

    pub(super) fn tell_server(&mut self, server: u32, event: Event) {
        if !self.servers[server as usize].up {
            return;
        }
        self.tell(&|| format!("server {server} hears {event:?}"));
        let mut actions = Vec::new();
        let it = &mut self.servers[server as usize];
        it.machine.step(self.now, event, &mut actions);
        let (life, rows) = (it.life, it.machine.take());
        self.keep(&|| format!("server-{server}-{life}"), rows);
        for action in actions {
            self.tell(&|| format!("server {server} wants {action:?}"));
            self.carry_out_for_server(server, action);
        }
    }

    fn carry_out_for_server(&mut self, at: u32, action: Action) {
        let node = Node::Server(at);
        match action {
            Action::Peer(PeerAction::Welcome { peer, known }) => self.welcome(node, peer, known),
            Action::Peer(PeerAction::Reply { peer, request, message, payload }) => {
                let payload = payload.map(|(buffer, bytes)| self.take_reply(at, buffer, bytes));
                let session = self.session_of(self.connections[peer.0 as usize].asker);
                self.note_reply(at, (session, request), &message);
                let is_verdict = matches!(message, Message::Verdict { .. });
                if is_verdict {
                    let now = self.tick();
                    self.verdicts.told(at, (session, request), now);
                }
                self.reply(node, peer, request, message, payload);
                if is_verdict && self.trouble(self.plan.rates.verdict) {
                    let (server, life) = (at, self.servers[at as usize].life);
                    let delay = self.delay();
                    self.later(delay, Happening::Falls { server, life });
                }
            }
            Action::Peer(PeerAction::Drop { peer, why }) => self.drop_peer(node, peer, why),
            Action::Transfer { operation, direction, subfile, portion, from } => {
                let transfer = Work::transfer(direction, subfile, portion, from);
                self.begin_work(at, operation, transfer);
            }
            Action::Measure { operation, subfile } => {
                self.begin_work(at, operation, Work::Measure { subfile });
            }
            Action::Resize { operation, subfile, bytes, extends } => {
                self.begin_work(at, operation, Work::Resize { subfile, bytes, extends });
            }
            Action::Sync { operation, subfile } => {
                let syncing = Syncing::default();
                self.begin_work(at, operation, Work::Sync { subfile, syncing });
            }
            Action::Room { operation, subfile, extents } => {
                self.begin_work(at, operation, Work::Room { subfile, extents });
            }
            Action::Strike { operation, subfile, extents, is_whole } => {
                self.begin_work(at, operation, Work::Strike { subfile, extents, is_whole });
            }
            Action::Sum { operation, subfile, pages } => {
                let syncing = Syncing::default();
                self.begin_work(at, operation, Work::Sum { subfile, pages, syncing });
            }
            Action::Discard { operation, inode } => {
                self.begin_work(at, operation, Work::Discard { inode });
            }
            Action::Release { buffer } => {
                self.take_buffer(at, buffer);
            }
            Action::WakeAt(when) => self.wake_at(node, when),
        }
    }

    pub(super) fn wake_at(&mut self, node: Node, when: Nanos) {
        let life = self.life_of(node);
        let late = self.dice.below(1_000_000);
        self.at(when.0.max(self.now.0) + late, Happening::Wakes { node, life });
    }

    fn note_reply(&mut self, at: u32, request: (SessionId, Request), message: &Message) {
        match message {
            Message::Failed { code: Code::UNKNOWN_VIEW, .. } => {
                return self.meet(Mark::UnknownView);
            }
            Message::Failed { code: Code::BUSY, .. } => return self.meet(Mark::Busy),
            Message::Verdict { result, .. } if !result.is_ok() => self.meet(Mark::CollectiveFailed),
            _ => {}
        }
        let server = &mut self.servers[at as usize];
        let again = !server.answered.insert(request);
        if again && matches!(message, Message::Done) {
            self.meet(Mark::AnswerRepeated);
        }
    }

    /// A buffer of a server is the driver's again.
    pub(super) fn take_buffer(&mut self, at: u32, buffer: Buffer) -> Vec<u8> {
        let server = &mut self.servers[at as usize];
        server.brought.remove(&buffer.0);
        server.buffers.remove(&buffer.0).unwrap_or_else(|| {
            self.fail(format!("server {at} gives back buffer {buffer}, which it has not"));
            Vec::new()
        })
    }

    fn take_reply(&mut self, at: u32, buffer: Buffer, bytes: u64) -> Vec<u8> {
        let mut content = self.take_buffer(at, buffer);
        if content.len() as u64 != bytes {
            let has = content.len();
            self.fail(format!("server {at} replies with {bytes} bytes of a buffer that has {has}"));
        }
        content.truncate(bytes as usize);
        content
    }

    /// A reply has come to a client.
    pub(super) fn client_hears(&mut self, client: usize, from: Party, heard: Heard) {
        let Heard { request, message, payload } = heard;
        let payload = payload.map(|bytes| {
            let buffer = self.fresh();
            self.processes[client].buffers.insert(buffer, bytes);
            Buffer(buffer)
        });
        let event = PartyEvent::Replied { from, request, message, payload };
        self.tell_of_party(Node::Client(client), event);
    }

    /// Whether the subfiles of a file are on any disk.
    pub(super) fn stored(&self) -> BTreeSet<Inode> {
        let subfiles = self.servers.iter().flat_map(|server| server.disk.subfiles.iter());
        subfiles.filter(|(_, bytes)| !bytes.is_empty()).map(|(subfile, _)| subfile.inode).collect()
    }
}
