//! Storage servers: requests come in whole, write data packet by packet; a cache layer decides
//! what the device does when; read data leaves as soon as it is there.
//!
//! A stalled server's cache layer is told nothing: what arrives or completes is told at the end, in
//! order. Write data is not admitted, so its NIC backs up; what is at its NIC still leaves.

mod incoming;
mod joined;
mod reads;

use super::World;
use super::message::Message;
use super::request::{Request, RequestId};
use crate::process::Caller;
use crate::program::File;
use crate::queue::EventQueue;
use crate::slab::Id;
use crate::world::{Available, Departure, DeviceTotals, Event, NodeId, PacketId, PayloadId};
use crate::world::{RowId, ServerId, Target, TaskId};
use incoming::{Incoming, IncomingTable};
use iolab_device::Access;
use iolab_policy::cache::{Action, Cache, Event as CacheEvent, FlushId, Operation, Tag};
use iolab_trace::{Event as Row, Function};
use iolab_vocab::{Direction, Extent, FileId};
use joined::Joined;
use reads::Reads;
use std::collections::VecDeque;

/// Wire size of the message that tells a client its write, or its sync, is done.
const DONE_BYTES: u64 = 15;
/// Wire size of the message that tells a client to send what it has announced.
const INVITATION_BYTES: u64 = 15;
/// The first number of flushes for which no task waits.
const UNAWAITED: u32 = 1 << 31;

/// What one server has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerTotals {
    /// What its device has done.
    pub device: DeviceTotals,
    /// Most requests it had at once, from their arrival to their answer.
    pub queue_max: u64,
    /// What its cache layer has kept.
    pub memory: MemoryTotals,
}

/// What a server has kept of what it has read, and what it was good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryTotals {
    /// Bytes of reads that were there when they were asked for.
    pub found_bytes: u64,
    /// Most bytes kept at once.
    pub kept_bytes_max: u64,
}

/// The memory of a server as far as reads may find something in it.
#[derive(Default)]
struct Memory {
    kept_bytes: u64,
    totals: MemoryTotals,
}

impl Memory {
    /// A read has come; what is delivered at once had been kept.
    fn look_up(&mut self, actions: &[Action]) {
        for action in actions {
            if let Action::Deliver { extent, .. } = action {
                self.totals.found_bytes += extent.length;
            }
        }
    }

    fn keep(&mut self, bytes: u64) {
        self.kept_bytes += bytes;
        self.totals.kept_bytes_max = self.totals.kept_bytes_max.max(self.kept_bytes);
    }

    fn let_go(&mut self, bytes: u64) {
        self.kept_bytes -= bytes;
    }
}

/// A server around its cache layer.
struct Server {
    cache: Box<dyn Cache>,
    /// Packets that wait for admission, with the request each belongs to.
    parked: VecDeque<(PacketId, RequestId)>,
    /// Tasks that wait until a file is on the device.
    syncs: Vec<Caller>,
    /// Flushes for which nobody waits, as files are closed; they are numbered behind all tasks.
    unawaited_count: u32,
    /// Requests that have come and are not answered.
    open_count: u64,
    queue_max: u64,
    memory: Memory,
    /// Largest single access; small memory makes it smaller.
    access_bytes: u64,
    reads: Reads,
    /// Whom its device works for, if the run is recorded.
    joined: Joined,
    /// Faults that stall it.
    stall_count: u32,
    /// What its cache layer is told when it is no longer stalled.
    held: Vec<CacheEvent>,
}

impl Server {
    /// Keeps what happens to a stalled server for later. Nothing is admitted meanwhile; what is
    /// refused is offered again anyway.
    fn hold(&mut self, event: CacheEvent) -> bool {
        if !matches!(event, CacheEvent::WriteOffered { .. }) {
            self.held.push(event);
        }
        false
    }

    fn opened(&mut self) {
        self.open_count += 1;
        self.queue_max = self.queue_max.max(self.open_count);
    }
}

/// All servers of a run.
pub(super) struct Servers {
    servers: Vec<Server>,
    incoming: IncomingTable,
    actions: Vec<Action>,
}

impl Servers {
    /// Servers around these cache layers, each with its largest single access.
    pub(super) fn new(caches: Vec<(Box<dyn Cache>, u64)>) -> Servers {
        let server = |(cache, access_bytes)| Server {
            cache,
            parked: VecDeque::new(),
            syncs: Vec::new(),
            unawaited_count: 0,
            open_count: 0,
            queue_max: 0,
            memory: Memory::default(),
            access_bytes,
            reads: Reads::default(),
            joined: Joined::default(),
            stall_count: 0,
            held: Vec::new(),
        };
        let servers = caches.into_iter().map(server).collect();
        Servers { servers, incoming: IncomingTable::default(), actions: Vec::new() }
    }

    /// What each has done, of what their devices have done.
    pub(super) fn totals(
        &self,
        devices: impl Iterator<Item = DeviceTotals>,
    ) -> impl Iterator<Item = ServerTotals> {
        self.servers.iter().zip(devices).map(|(server, device)| ServerTotals {
            device,
            queue_max: server.queue_max,
            memory: server.memory.totals,
        })
    }

    /// Tasks that wait until something is on a server's device.
    pub(super) fn syncs(&self) -> impl Iterator<Item = (TaskId, ServerId)> + '_ {
        let servers = self.servers.iter().enumerate();
        servers.flat_map(|(index, server)| {
            server.syncs.iter().map(move |from| (from.task, ServerId::of(index)))
        })
    }

    /// A request has arrived whole.
    pub(super) fn request_arrived<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        id: RequestId,
    ) {
        self.incoming.of(id).is_known = true;
        let row = self.heard_of(world, id);
        let request = world.payloads.get_mut(id);
        let (server, file) = (request.server, FileId(request.file));
        self.servers[server.index()].opened();
        if request.direction == Direction::Write {
            let extent = request.touched();
            self.tell(world, server, CacheEvent::WriteAnnounced { tag: tag_of(id), file, extent });
            return self.forget_written(world, id);
        }
        let pieces = std::mem::take(&mut request.pieces);
        let (bytes, from) = (request.bytes, request.from);
        let answer = Message::ReadData { request: id, task: from.task };
        let reply = world.begin_message(node_of(world, server), from.target(), bytes, answer);
        self.incoming.of(id).reply = Some(reply);
        for piece in &pieces {
            for extent in cut(*piece, self.servers[server.index()].access_bytes) {
                if row != RowId::NONE {
                    self.servers[server.index()].joined.asked(file, extent, row);
                }
                self.tell(world, server, CacheEvent::ReadArrived { tag: tag_of(id), file, extent });
            }
        }
        world.payloads.get_mut(id).pieces = pieces;
    }

    /// The row of a request begins with the first that a server sees of it. Tells that row.
    fn heard_of<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, id: RequestId) -> RowId {
        let incoming = self.incoming.of(id);
        if incoming.since.is_none() {
            incoming.since = Some(world.now());
            incoming.row = world.open_row();
        }
        incoming.row
    }

    /// A packet of write data has arrived. Tells whether the server keeps it for later.
    pub(super) fn write_data_arrived<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        packet: PacketId,
        request: RequestId,
    ) -> bool {
        self.heard_of(world, request);
        self.incoming.of(request).data = world.cause();
        if self.take_write_data(world, request, packet) {
            return false;
        }
        let server = world.payloads.get(request).server;
        self.servers[server.index()].parked.push_back((packet, request));
        world.hold_back(server);
        true
    }

    fn take_write_data<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        id: RequestId,
        packet: PacketId,
    ) -> bool {
        let (bytes, is_last) = world.packet(packet);
        let &Request { server, file, from, .. } = world.payloads.get(id);
        if !self.tell(world, server, CacheEvent::WriteOffered { bytes }) {
            return false;
        }
        let access_bytes = self.servers[server.index()].access_bytes;
        let (tag, file) = (tag_of(id), FileId(file));
        let mut left = bytes;
        while left > 0 {
            let pieces = &world.payloads.get(id).pieces;
            let incoming = self.incoming.of(id);
            let extent = incoming.lay(pieces, left.min(access_bytes));
            left -= extent.length;
            if incoming.data != RowId::NONE {
                let (row, data) = (incoming.row, incoming.data);
                self.servers[server.index()].joined.written(file, extent, row, data);
            }
            self.tell(world, server, CacheEvent::WriteArrived { tag, file, extent });
        }
        let incoming = self.incoming.of(id);
        incoming.laid_bytes += bytes;
        // What a stall has held back goes on by itself.
        if world.cause() == RowId::NONE {
            world.because(incoming.data);
        }
        // The row ends with the last data; the request itself may come later.
        (incoming.until, incoming.brought) = (world.now(), world.cause());
        // Where packets are sent again, the message's end may come long before the rest.
        let is_done = match world.loses_packets() {
            true => incoming.laid_bytes == world.payloads.get(id).bytes,
            false => is_last,
        };
        self.forget_written(world, id);
        if is_done {
            let done = Message::WriteDone { task: from.task };
            world.send(node_of(world, server), from.target(), None, DONE_BYTES, done);
        }
        true
    }

    /// Frees a write request once it and all its data have arrived.
    fn forget_written<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, id: RequestId) {
        let incoming = self.incoming.of(id);
        if incoming.is_known && incoming.laid_bytes == world.payloads.get(id).bytes {
            self.close_request(world, id);
        }
    }

    /// A packet of read data has left the server; another one may follow it.
    #[inline]
    pub(super) fn read_data_left<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        id: RequestId,
        departure: &Departure<Message>,
    ) {
        let server = world.payloads.get(id).server;
        let reads = &mut self.servers[server.index()].reads;
        reads.left(id, departure.is_followed);
        self.tell(world, server, CacheEvent::Released { bytes: departure.bytes });
        self.release_parts(world, server);
        if departure.is_sent {
            self.close_request(world, id);
        }
    }

    /// Less than a packet leaves only where nothing else will happen: with little memory, parts of
    /// several reads can fill it, and none of them would become a packet any more.
    fn release_parts<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, server: ServerId) {
        let held = &mut self.servers[server.index()];
        if held.reads.go_on_by_themselves() || held.stall_count > 0 {
            return;
        }
        for request in held.reads.take_parts() {
            self.send_read_data(world, server, request);
        }
    }

    fn send_read_data<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        server: ServerId,
        id: RequestId,
    ) {
        let reply = self.incoming.of(id).reply.expect("a read that has arrived has an answer");
        self.servers[server.index()].reads.leaves();
        world.send_available(reply, server);
    }

    fn close_request<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, id: RequestId) {
        let request = world.payloads.get(id);
        let (server, file, direction) = (request.server, request.file, request.direction);
        let touched = request.touched();
        self.servers[server.index()].open_count -= 1;
        let &mut Incoming { since, until, row, brought, .. } = self.incoming.of(id);
        let end = if direction == Direction::Read { world.now() } else { until };
        if row != RowId::NONE && direction == Direction::Read {
            let held = &mut self.servers[server.index()];
            let (joined, access_bytes) = (&mut held.joined, held.access_bytes);
            let pieces = world.payloads.get(id).pieces.iter();
            for extent in pieces.flat_map(|piece| cut(*piece, access_bytes)) {
                joined.answered(FileId(file), extent, row);
            }
        }
        if let Some(recorder) = world.recorder() {
            recorder.ended_by(row, brought);
            let function = match direction {
                Direction::Read => {
                    recorder.ends(row);
                    Function::SERVE_READ
                }
                Direction::Write => Function::SERVE_WRITE,
            };
            let process = recorder.process_of(server);
            recorder.keep(
                row,
                Row {
                    process,
                    file: FileId(file),
                    offset: touched.offset as i64,
                    length: touched.length as i64,
                    result: touched.length as i64,
                    start: since.unwrap_or(end),
                    end,
                    ..Row::of(function)
                },
            );
        }
        self.incoming.forget(id);
        world.payloads.remove(id);
    }

    /// A server's device has carried out a transfer.
    pub(super) fn transferred<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        server: ServerId,
        direction: Direction,
        operation: Operation,
    ) {
        self.servers[server.index()].reads.transfer_ended();
        self.tell(world, server, CacheEvent::Completed { operation });
        if direction == Direction::Write {
            self.take_parked(world, server);
        }
        self.tell(world, server, CacheEvent::DeviceReady);
        self.release_parts(world, server);
    }

    /// A client wants a file on the device; its task waits for that, or nobody does.
    pub(super) fn flush_arrived<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        target: Target,
        file: File,
        from: Option<Caller>,
    ) {
        let server = world.server_at(target);
        let held = &mut self.servers[server.index()];
        let flush = match from {
            None => {
                held.unawaited_count = (held.unawaited_count + 1) % UNAWAITED;
                UNAWAITED | held.unawaited_count
            }
            Some(from) => {
                held.syncs.push(from);
                from.task.0
            }
        };
        let (flush, file) = (FlushId(flush), FileId(file));
        self.tell(world, server, CacheEvent::FlushArrived { flush, file });
    }

    /// Nothing is left in memory of a file that somebody wanted flushed.
    fn flushed<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        server: ServerId,
        FlushId(flush): FlushId,
    ) {
        let syncs = &mut self.servers[server.index()].syncs;
        let place = syncs.iter().position(|from| from.task.0 == flush);
        if let Some(place) = place.filter(|_| flush & UNAWAITED == 0) {
            let from = syncs.remove(place);
            answer(world, server, from);
        }
    }

    fn take_parked<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, server: ServerId) {
        while let Some(&(packet, request)) = self.servers[server.index()].parked.front() {
            if !self.take_write_data(world, request, packet) {
                return;
            }
            let parked = &mut self.servers[server.index()].parked;
            parked.pop_front();
            let is_empty = parked.is_empty();
            world.drop_packet(packet);
            if is_empty {
                world.let_through(server);
            }
        }
    }

    /// Steps the server's cache layer and carries out what it wants. Tells whether it admitted.
    fn tell<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        server: ServerId,
        event: CacheEvent,
    ) -> bool {
        let held = &mut self.servers[server.index()];
        if held.stall_count > 0 {
            return held.hold(event);
        }
        let mut actions = std::mem::take(&mut self.actions);
        held.cache.step(world.now(), event, &mut actions);
        if held.memory.kept_bytes > 0
            && let CacheEvent::ReadArrived { .. } = event
        {
            held.memory.look_up(&actions);
        }
        self.obey(world, server, actions)
    }

    /// The moment has come that a server's cache layer asked for. Tells whether it made use of it.
    pub(super) fn woke<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        server: ServerId,
    ) -> bool {
        self.servers[server.index()].reads.woke();
        self.wake(world, server)
    }

    fn wake<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, server: ServerId) -> bool {
        let held = &mut self.servers[server.index()];
        if held.stall_count > 0 {
            return held.hold(CacheEvent::Woke);
        }
        let mut actions = std::mem::take(&mut self.actions);
        held.cache.step(world.now(), CacheEvent::Woke, &mut actions);
        let has_effect = !actions.is_empty();
        self.obey(world, server, actions);
        self.release_parts(world, server);
        has_effect
    }

    fn obey<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        server: ServerId,
        mut actions: Vec<Action>,
    ) -> bool {
        let (mut admitted, mut retries) = (false, false);
        for action in actions.drain(..) {
            match action {
                Action::Admit => admitted = true,
                Action::Refuse => {}
                Action::Keep { extent, .. } => {
                    self.servers[server.index()].memory.keep(extent.length);
                }
                Action::Drop { extent, .. } => {
                    self.servers[server.index()].memory.let_go(extent.length);
                }
                Action::Flushed { flush } => self.flushed(world, server, flush),
                Action::Invite { tag } => invite(world, server, request_of(tag)),
                Action::RetryRefused => retries = true,
                Action::Transfer { operation, direction, file, extent } => {
                    let held = &mut self.servers[server.index()];
                    held.reads.transfer_began();
                    if let Some(recorder) = world.recorder() {
                        let most = held.access_bytes;
                        recorder.join(held.joined.take(direction, file, extent, most));
                    }
                    world.access(server, Access { direction, file, extent }, operation.0);
                }
                Action::Deliver { tag, extent } => {
                    self.read_data_ready(world, server, request_of(tag), extent.length);
                }
                Action::WakeAt(time) => {
                    world.wake(server, time);
                    self.servers[server.index()].reads.will_wake();
                }
            }
        }
        self.actions = actions;
        if retries {
            self.take_parked(world, server);
        }
        admitted
    }

    /// Data of a read request has come from the device: a full packet may leave, or the rest.
    fn read_data_ready<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        server: ServerId,
        id: RequestId,
        bytes: u64,
    ) {
        let reply = self.incoming.of(id).reply.expect("a read that has arrived has an answer");
        self.incoming.of(id).brought = world.cause();
        let reads = &mut self.servers[server.index()].reads;
        match world.supply(reply, bytes) {
            Available::Nothing => {}
            Available::Part => reads.has_part(id),
            Available::Packet => {
                reads.no_part(id);
                self.send_read_data(world, server, id);
            }
        }
    }

    /// A server stalls, or one thing less stalls it: then its cache layer is told what has happened
    /// meanwhile.
    pub(super) fn stalled<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        server: ServerId,
        is_stalled: bool,
    ) {
        let held = &mut self.servers[server.index()];
        if is_stalled {
            held.stall_count += 1;
            return;
        }
        held.stall_count -= 1;
        if held.stall_count > 0 {
            return;
        }
        for event in std::mem::take(&mut held.held) {
            match event {
                CacheEvent::Woke => {
                    self.wake(world, server);
                }
                CacheEvent::Completed { .. } => {
                    self.tell(world, server, event);
                    self.take_parked(world, server);
                }
                _ => {
                    self.tell(world, server, event);
                }
            }
        }
        self.take_parked(world, server);
        self.release_parts(world, server);
    }
}

/// What a client's task asked of a server is done.
pub(super) fn answer<Q: EventQueue<Event>>(world: &mut World<Q>, server: ServerId, from: Caller) {
    let done = Message::Done { task: from.task };
    world.send(node_of(world, server), from.target(), None, DONE_BYTES, done);
}

/// A client that waits for it may send what it has announced.
fn invite<Q: EventQueue<Event>>(world: &mut World<Q>, server: ServerId, request: RequestId) {
    let to = world.payloads.get(request).from.target();
    let invitation = Message::Invitation { request };
    world.send(node_of(world, server), to, None, INVITATION_BYTES, invitation);
}

fn node_of<Q: EventQueue<Event>>(world: &World<Q>, server: ServerId) -> NodeId {
    world.node_of(world.target_of(server))
}

/// Cache layers know requests by their numbers.
fn tag_of(request: RequestId) -> Tag {
    Tag(request.0)
}

fn request_of(tag: Tag) -> RequestId {
    PayloadId(tag.0)
}

/// A piece in parts of at most `most` bytes.
fn cut(piece: Extent, most: u64) -> impl Iterator<Item = Extent> {
    let count = piece.length.div_ceil(most);
    (0..count).map(move |index| {
        let offset = piece.offset + index * most;
        Extent::new(offset, most.min(piece.end() - offset))
    })
}
