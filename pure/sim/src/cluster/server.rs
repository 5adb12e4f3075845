//! A storage server: requests come in whole, write data packet by packet; a cache layer decides
//! what the device does when; read data leaves as soon as it is there.

use super::event::Event;
use super::packet::{Kind, Message, NONE};
use super::{Cluster, EventQueue};
use iolab_device::{Access, Device, Seek};
use iolab_policy::cache::{Action, Cache, Event as CacheEvent, FlushId, Operation, Tag};
use iolab_vocab::{Direction, Extent, FileId, Nanos};
use std::collections::VecDeque;

/// Wire size of the message that tells a client its write, or its sync, is done.
const DONE_BYTES: u64 = 15;
/// Wire size of the message that tells a client to send what it has announced.
const INVITATION_BYTES: u64 = 15;
/// The first number of flushes for which no task waits.
const UNAWAITED: u32 = 1 << 31;

/// A request to one server.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) server: u32,
    pub(super) file: u32,
    pub(super) is_write: bool,
    /// Places in the server's own part of the file.
    pub(super) pieces: Vec<Extent>,
    pub(super) bytes: u64,
    /// The client's task and the target its answers go to.
    pub(super) task: u32,
    pub(super) client: u32,
    /// The message that carries read data back.
    reply: u32,
    /// Write data laid so far: whole pieces, then bytes of the next.
    piece: usize,
    piece_done: u64,
    left_bytes: u64,
    /// Whether the request itself has arrived. Its data may overtake it: a packet that waits at a
    /// blocked NIC can be put behind younger ones. Both must be over before the slot is free.
    is_known: bool,
}

impl Request {
    pub(super) fn empty() -> Request {
        Request {
            server: 0,
            file: 0,
            is_write: false,
            pieces: Vec::new(),
            bytes: 0,
            task: NONE,
            client: 0,
            reply: NONE,
            piece: 0,
            piece_done: 0,
            left_bytes: 0,
            is_known: false,
        }
    }

    pub(super) fn reset(&mut self, server: u32, file: u32, is_write: bool, task: u32, client: u32) {
        self.pieces.clear();
        (self.server, self.file, self.is_write) = (server, file, is_write);
        (self.task, self.client) = (task, client);
        (self.bytes, self.reply, self.piece, self.piece_done) = (0, NONE, 0, 0);
        self.is_known = false;
    }

    /// Adds a piece; one that continues the last is joined to it.
    pub(super) fn add_piece(&mut self, offset: u64, length: u64) {
        self.bytes += length;
        self.left_bytes = self.bytes;
        match self.pieces.last_mut() {
            Some(last) if last.end() == offset => last.length += length,
            _ => self.pieces.push(Extent::new(offset, length)),
        }
    }

    /// The next stretch, up to `most` bytes, that write data is laid on.
    fn lay(&mut self, most: u64) -> Extent {
        let piece = self.pieces[self.piece];
        let length = most.min(piece.length - self.piece_done);
        let extent = Extent::new(piece.offset + self.piece_done, length);
        self.piece_done += length;
        if self.piece_done == piece.length {
            self.piece += 1;
            self.piece_done = 0;
        }
        extent
    }
}

/// What one server has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerTotals {
    /// Transfers that continued the last one.
    pub no_seek_count: u64,
    /// Transfers near the last one.
    pub near_count: u64,
    /// Transfers elsewhere.
    pub far_count: u64,
    /// Bytes read from the device.
    pub read_bytes: u64,
    /// Bytes written to the device.
    pub written_bytes: u64,
    /// Time at least one transfer was under way, summed over transfers.
    pub busy_nanos: u64,
    /// Most requests it had at once, from their arrival to their answer.
    pub queue_max: u64,
}

impl ServerTotals {
    /// All transfers.
    pub fn access_count(&self) -> u64 {
        self.no_seek_count + self.near_count + self.far_count
    }

    fn count(&mut self, access: Access, seek: Seek, nanos: u64) {
        match seek {
            Seek::None => self.no_seek_count += 1,
            Seek::Near => self.near_count += 1,
            Seek::Far => self.far_count += 1,
        }
        match access.direction {
            Direction::Read => self.read_bytes += access.extent.length,
            Direction::Write => self.written_bytes += access.extent.length,
        }
        self.busy_nanos = self.busy_nanos.saturating_add(nanos);
    }
}

pub(super) struct Server {
    pub(super) cache: Box<dyn Cache>,
    pub(super) device: Device,
    pub(super) node: u32,
    pub(super) target: u32,
    /// Packets that wait for admission, with the request each belongs to.
    pub(super) parked: VecDeque<(u32, u32)>,
    /// Tasks that wait until a file is on the device.
    pub(super) syncs: Vec<u32>,
    /// Flushes for which nobody waits, as files are closed; they are numbered behind all tasks.
    pub(super) unawaited_count: u32,
    /// Requests that have come and are not answered.
    pub(super) open_count: u64,
    /// Clients wait to be invited before they send what they have announced.
    pub(super) invites: bool,
    /// Largest single access; small memory makes it smaller.
    pub(super) access_bytes: u64,
    pub(super) totals: ServerTotals,
    pub(super) reads: Reads,
    /// Factors by which faults slow the device down.
    pub(super) slowness: Vec<f64>,
    /// Faults that stall it.
    pub(super) stall_count: u32,
    /// What its cache layer is told when it is no longer stalled.
    pub(super) held: Vec<CacheEvent>,
}

/// What tells whether anything of a server's reads is still going on by itself.
#[derive(Debug, Default)]
pub(super) struct Reads {
    /// Transfers on the device, writes included.
    transfer_count: u32,
    /// Wakes that its cache layer has asked for.
    pub(super) wake_count: u32,
    /// Packets of read data that have not left.
    pub(super) leaving_count: u32,
    /// Requests that have some data, less than a packet, and none of it leaving.
    parts: Vec<u32>,
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

    /// What the device needs for a transfer, faults included.
    fn slowed(&self, duration: Nanos) -> Nanos {
        match self.slowness.is_empty() {
            true => duration,
            false => Nanos((duration.0 as f64 * self.slowness.iter().product::<f64>()) as u64),
        }
    }
}

impl Server {
    fn opened(&mut self) {
        self.open_count += 1;
        self.totals.queue_max = self.totals.queue_max.max(self.open_count);
    }
}

/// A transfer on a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) server: u32,
    operation: Operation,
    is_write: bool,
}

impl<Q: EventQueue<Event>> Cluster<Q> {
    /// A request has arrived whole.
    pub(super) fn request_arrived(&mut self, id: u32) {
        let request = self.requests.get_mut(id);
        request.is_known = true;
        let server = request.server;
        self.servers[server as usize].opened();
        if let Some(recorder) = &mut self.recorder {
            recorder.requested(id, self.calendar.now);
        }
        let request = self.requests.get_mut(id);
        if request.is_write {
            let first = request.pieces.first().map_or(0, |piece| piece.offset);
            let (file, extent) = (FileId(request.file), Extent::new(first, request.bytes));
            self.tell(server, CacheEvent::WriteAnnounced { tag: Tag(id), file, extent });
            return self.forget_written(id);
        }
        let pieces = std::mem::take(&mut request.pieces);
        let file = FileId(request.file);
        let (bytes, client, task) = (request.bytes, request.client, request.task);
        let entry = self.entry(self.servers[server as usize].node, client);
        let reply = self.messages.add(Message {
            kind: Kind::ReadData { request: id, task },
            target: client,
            entry,
            sender: NONE,
            bytes,
            available_bytes: 0,
            missing_bytes: bytes,
            cut_bytes: 0,
            sent_bytes: 0,
            arrived_bytes: 0,
        });
        self.requests.get_mut(id).reply = reply;
        if let Some(recorder) = &mut self.recorder {
            recorder.send_began(reply, self.calendar.now);
        }
        for piece in &pieces {
            for extent in cut(*piece, self.servers[server as usize].access_bytes) {
                self.tell(server, CacheEvent::ReadArrived { tag: Tag(id), file, extent });
            }
        }
        self.requests.get_mut(id).pieces = pieces;
    }

    /// A packet of write data has arrived. Tells whether the server keeps it for later.
    pub(super) fn write_data_arrived(&mut self, packet: u32, request: u32) {
        if self.take_write_data(request, packet) {
            return self.network.packets.remove(packet);
        }
        let server = self.requests.get(request).server;
        self.servers[server as usize].parked.push_back((packet, request));
        self.set_blocked(server, true);
    }

    fn take_write_data(&mut self, id: u32, packet: u32) -> bool {
        let packet = self.network.packets.get(packet);
        let (bytes, is_last) = (u64::from(packet.bytes), packet.is_last);
        let server = self.requests.get(id).server;
        if !self.tell(server, CacheEvent::WriteOffered { bytes }) {
            return false;
        }
        let access_bytes = self.servers[server as usize].access_bytes;
        let file = FileId(self.requests.get(id).file);
        let mut left = bytes;
        while left > 0 {
            let extent = self.requests.get_mut(id).lay(left.min(access_bytes));
            left -= extent.length;
            self.tell(server, CacheEvent::WriteArrived { tag: Tag(id), file, extent });
        }
        let request = self.requests.get_mut(id);
        request.left_bytes -= bytes;
        let (client, task) = (request.client, request.task);
        // Where packets are sent again, the message's end may come long before the rest.
        let is_done = if self.active_faults.has_losses { request.left_bytes == 0 } else { is_last };
        self.forget_written(id);
        if is_done {
            let node = self.servers[server as usize].node;
            self.send(node, client, NONE, DONE_BYTES, Kind::WriteDone { task });
        }
        true
    }

    /// Frees a write request once it and all its data have arrived.
    fn forget_written(&mut self, id: u32) {
        let request = self.requests.get(id);
        if request.is_known && request.left_bytes == 0 {
            self.close_request(id);
        }
    }

    fn set_blocked(&mut self, server: u32, blocked: bool) {
        let server = &self.servers[server as usize];
        let node = &self.nodes[server.node as usize];
        for at in [node.arrival, node.internal] {
            match blocked {
                true => self.network.block(at, server.target),
                false => self.network.unblock(&mut self.calendar, at, server.target),
            }
        }
    }

    /// Read data of this size has left the server.
    pub(super) fn read_data_left(&mut self, request: u32, bytes: u64) {
        let server = self.requests.get(request).server;
        self.servers[server as usize].reads.leaving_count -= 1;
        self.tell(server, CacheEvent::Released { bytes });
        self.release_parts(server);
    }

    /// Less than a packet leaves only where nothing else will happen: with little memory, parts of
    /// several reads can fill it, and none of them would become a packet any more.
    pub(super) fn release_parts(&mut self, index: u32) {
        let server = &self.servers[index as usize];
        let reads = &server.reads;
        let goes_on = reads.transfer_count + reads.wake_count + reads.leaving_count > 0;
        if reads.parts.is_empty() || goes_on || server.stall_count > 0 {
            return;
        }
        for request in std::mem::take(&mut self.servers[index as usize].reads.parts) {
            self.send_read_data(request);
        }
    }

    /// The next packet of read data leaves behind the one that has left.
    pub(super) fn read_data_follows(&mut self, id: u32) {
        let server = self.requests.get(id).server;
        let reads = &mut self.servers[server as usize].reads;
        reads.leaving_count += 1;
        reads.parts.retain(|part| *part != id);
    }

    fn send_read_data(&mut self, id: u32) {
        let &Request { reply, server, .. } = self.requests.get(id);
        let packet = self.cut_packet(reply);
        self.servers[server as usize].reads.leaving_count += 1;
        self.calendar.post(0, self.server_source(server), Event::Arrived(packet));
    }

    /// All data of a read request has left the server.
    pub(super) fn read_answered(&mut self, request: u32) {
        self.close_request(request);
    }

    fn close_request(&mut self, id: u32) {
        let request = self.requests.get(id);
        self.servers[request.server as usize].open_count -= 1;
        if let Some(recorder) = &mut self.recorder {
            let first = request.pieces.first().map_or(0, |piece| piece.offset);
            let (of, touched) =
                ((request.file, request.is_write), Extent::new(first, request.bytes));
            recorder.answered(id, request.server, of, touched, self.calendar.now);
        }
        self.requests.remove(id);
    }

    /// A device has carried out a transfer.
    pub(super) fn transferred(&mut self, id: u32) {
        let transfer = *self.transfers.get(id);
        self.transfers.remove(id);
        self.servers[transfer.server as usize].reads.transfer_count -= 1;
        self.tell(transfer.server, CacheEvent::Completed { operation: transfer.operation });
        if transfer.is_write {
            self.take_parked(transfer.server);
        }
        self.tell(transfer.server, CacheEvent::DeviceReady);
        self.release_parts(transfer.server);
    }

    /// A client that waits for it may send what it has announced.
    fn invite(&mut self, index: u32, request: u32) {
        let (node, client) = (self.servers[index as usize].node, self.requests.get(request).client);
        self.send(node, client, NONE, INVITATION_BYTES, Kind::Invitation { request });
    }

    /// A client wants a file on the device; a task may wait for that, or `NONE`.
    pub(super) fn flush_arrived(&mut self, target: u32, file: u32, task: u32) {
        let index = self.server_at(target);
        let server = &mut self.servers[index as usize];
        let flush = match task {
            NONE => {
                server.unawaited_count = (server.unawaited_count + 1) % UNAWAITED;
                UNAWAITED | server.unawaited_count
            }
            task => {
                server.syncs.push(task);
                task
            }
        };
        self.tell(index, CacheEvent::FlushArrived { flush: FlushId(flush), file: FileId(file) });
    }

    /// Nothing is left in memory of a file that somebody wanted flushed.
    fn flushed(&mut self, index: u32, flush: u32) {
        if flush & UNAWAITED != 0 {
            return;
        }
        let (server, task) = (&mut self.servers[index as usize], flush);
        server.syncs.retain(|waiting| *waiting != task);
        self.answer(index, task);
    }

    /// What a client's task asked of the server is done.
    pub(super) fn answer(&mut self, index: u32, task: u32) {
        let (node, client) = (self.servers[index as usize].node, self.tasks.get(task).process);
        self.send(node, client, NONE, DONE_BYTES, Kind::Done { task });
    }

    pub(super) fn take_parked(&mut self, server: u32) {
        while let Some(&(packet, request)) = self.servers[server as usize].parked.front() {
            if !self.take_write_data(request, packet) {
                return;
            }
            self.servers[server as usize].parked.pop_front();
            self.network.packets.remove(packet);
            if self.servers[server as usize].parked.is_empty() {
                self.set_blocked(server, false);
            }
        }
    }

    /// Steps the server's cache layer and carries out what it wants. Tells whether it admitted.
    pub(super) fn tell(&mut self, index: u32, event: CacheEvent) -> bool {
        let server = &mut self.servers[index as usize];
        if server.stall_count > 0 {
            return server.hold(event);
        }
        let mut actions = std::mem::take(&mut self.actions);
        server.cache.step(self.calendar.now, event, &mut actions);
        self.obey(index, actions)
    }

    /// The moment has come that a server's cache layer asked for. Tells whether it made use of it.
    pub(super) fn woke(&mut self, index: u32) -> bool {
        let server = &mut self.servers[index as usize];
        if server.stall_count > 0 {
            return server.hold(CacheEvent::Woke);
        }
        let mut actions = std::mem::take(&mut self.actions);
        server.cache.step(self.calendar.now, CacheEvent::Woke, &mut actions);
        let has_effect = !actions.is_empty();
        self.obey(index, actions);
        self.release_parts(index);
        has_effect
    }

    fn obey(&mut self, index: u32, mut actions: Vec<Action>) -> bool {
        let (mut admitted, mut retries) = (false, false);
        for action in actions.drain(..) {
            match action {
                Action::Admit => admitted = true,
                Action::Refuse | Action::Keep { .. } | Action::Drop { .. } => {}
                Action::Flushed { flush } => self.flushed(index, flush.0),
                Action::Invite { tag } => self.invite(index, tag.0),
                Action::RetryRefused => retries = true,
                Action::Transfer { operation, direction, file, extent } => {
                    self.start_transfer(index, operation, Access { direction, file, extent });
                }
                Action::Deliver { tag, extent } => self.read_data_ready(tag.0, extent.length),
                Action::WakeAt(time) => {
                    let wait = time.since(self.calendar.now).0;
                    self.calendar.post(wait, self.server_source(index), Event::Woke(index));
                    self.servers[index as usize].reads.wake_count += 1;
                }
            }
        }
        self.actions = actions;
        if retries {
            self.take_parked(index);
        }
        admitted
    }

    fn server_source(&self, index: u32) -> u32 {
        (self.network.hops.len() + self.nodes.len()) as u32 + index
    }

    fn start_transfer(&mut self, index: u32, operation: Operation, access: Access) {
        let is_write = access.direction == Direction::Write;
        let id = self.transfers.add(Transfer { server: index, operation, is_write });
        let source = self.server_source(index);
        let server = &mut self.servers[index as usize];
        server.reads.transfer_count += 1;
        let service = server.device.serve(self.calendar.now, access);
        // No access takes no time at all, however fast the device.
        let least = u64::from(!access.extent.is_empty());
        let duration = server.slowed(service.duration).0.max(least);
        server.totals.count(access, service.seek, duration);
        if let Some(recorder) = &mut self.recorder {
            let now = self.calendar.now;
            recorder.transfer(index, access, service.seek, now, now.after(Nanos(duration)));
        }
        self.calendar.post(duration, source, Event::Transferred(id));
    }

    /// Data of a read request has come from the device: a full packet may leave, or the rest.
    fn read_data_ready(&mut self, id: u32, bytes: u64) {
        let &Request { reply: message_id, server, .. } = self.requests.get(id);
        let message = self.messages.get_mut(message_id);
        message.missing_bytes -= bytes;
        message.available_bytes += bytes;
        let is_full = message.available_bytes >= u64::from(self.packet_bytes);
        let parts = &mut self.servers[server as usize].reads.parts;
        if is_full || message.missing_bytes == 0 && message.available_bytes > 0 {
            parts.retain(|part| *part != id);
            self.send_read_data(id);
        } else if message.available_bytes > 0 && !parts.contains(&id) {
            parts.push(id);
        }
    }
}

/// A piece in parts of at most `most` bytes.
fn cut(piece: Extent, most: u64) -> impl Iterator<Item = Extent> {
    let count = piece.length.div_ceil(most);
    (0..count).map(move |index| {
        let offset = piece.offset + index * most;
        Extent::new(offset, most.min(piece.end() - offset))
    })
}
