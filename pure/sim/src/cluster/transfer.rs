//! Messages on their way: cut into packets at the sender, counted at the receiver.

use super::event::Event;
use super::hop::Role;
use super::packet::{Kind, Message, NONE, Packet};
use super::{Cluster, EventQueue};

impl<Q: EventQueue<Event>> Cluster<Q> {
    /// The hop where a message from `node` to `target` enters the network.
    pub(super) fn entry(&self, node: u32, target: u32) -> u32 {
        let from = &self.nodes[node as usize];
        if self.target_node[target as usize] == node { from.internal } else { from.departure }
    }

    /// Sends a message that is there in full; `sender` is the task that waits for its departure.
    pub(super) fn send(&mut self, node: u32, target: u32, sender: u32, bytes: u64, kind: Kind) {
        let entry = self.entry(node, target);
        let message = self.messages.add(Message {
            kind,
            target,
            entry,
            sender,
            bytes,
            available_bytes: bytes,
            missing_bytes: 0,
            cut_bytes: 0,
            sent_bytes: 0,
            arrived_bytes: 0,
        });
        if let Some(recorder) = &mut self.recorder {
            recorder.send_began(message, self.calendar.now);
        }
        let packet = self.cut_packet(message);
        self.calendar.post(0, entry, Event::Arrived(packet));
    }

    /// Cuts the next packet off what is available of a message.
    pub(super) fn cut_packet(&mut self, id: u32) -> u32 {
        let message = self.messages.get_mut(id);
        let bytes = message.available_bytes.min(u64::from(self.packet_bytes));
        message.available_bytes -= bytes;
        message.cut_bytes += bytes;
        let is_last = message.cut_bytes == message.bytes;
        let packet = Packet::new(id, bytes as u32, message.target, message.entry, is_last);
        self.network.packets.add(packet)
    }

    /// A hop has carried its packet: what is done with it depends on the kind of hop.
    #[inline]
    pub(super) fn carried(&mut self, at: u32) {
        let hop = &self.network.hops[at as usize];
        let (packet, role) = (hop.current, hop.role);
        match role {
            Role::Departure => {
                self.departed(at, packet);
                self.network.send_on(&mut self.calendar, at, packet, 0);
            }
            Role::Switch | Role::Port => {
                self.network.send_on(&mut self.calendar, at, packet, 0);
            }
            Role::Arrival => self.deliver(packet),
            Role::Internal => {
                self.departed(at, packet);
                self.deliver(packet);
            }
            Role::LossyDeparture | Role::LossyPort => return self.carried_with_losses(at),
        }
        self.network.go_on(&mut self.calendar, at);
    }

    /// A packet has left its sender: the next one of the message queues behind all others.
    #[inline]
    pub(super) fn departed(&mut self, at: u32, packet: u32) {
        let packet = *self.network.packets.get(packet);
        let message = self.messages.get_mut(packet.message);
        message.sent_bytes += u64::from(packet.bytes);
        let (kind, sender) = (message.kind, message.sender);
        let (is_sent, bytes) = (message.sent_bytes == message.bytes, message.bytes);
        if message.available_bytes > 0 {
            if let Kind::ReadData { request, .. } = kind {
                self.read_data_follows(request);
            }
            let next = self.cut_packet(packet.message);
            self.network.hops[at as usize].queue.push(&mut self.network.packets, next);
        }
        if is_sent && self.recorder.is_some() {
            self.note_sent(packet.message, at, bytes, kind);
        }
        if let Kind::ReadData { request, .. } = kind {
            self.read_data_left(request, u64::from(packet.bytes));
            if is_sent {
                self.read_answered(request);
            }
        }
        if is_sent && sender != NONE {
            self.settle_one(sender);
        }
    }

    #[cold]
    fn note_sent(&mut self, message: u32, at: u32, bytes: u64, kind: Kind) {
        let (node, now) = (self.node_of_hop(at), self.calendar.now);
        if let Some(recorder) = &mut self.recorder {
            recorder.sent(message, node, bytes, kind, now);
        }
    }

    #[cold]
    fn note_received(&mut self, message: u32, target: u32, is_whole: bool, bytes: u64, kind: Kind) {
        let (node, now) = (self.target_node[target as usize], self.calendar.now);
        let Some(recorder) = &mut self.recorder else { return };
        match is_whole {
            // A message of one packet arrives at once.
            true if bytes <= u64::from(self.packet_bytes) => recorder.receive_began(message, now),
            true => {}
            false => return recorder.receive_began(message, now),
        }
        recorder.received(message, node, bytes, kind, now);
    }

    /// A packet has reached its receiver.
    fn deliver(&mut self, id: u32) {
        let packet = *self.network.packets.get(id);
        let message = self.messages.get_mut(packet.message);
        message.arrived_bytes += u64::from(packet.bytes);
        let (is_whole, bytes) = (message.arrived_bytes == message.bytes, message.bytes);
        let is_first = message.arrived_bytes == u64::from(packet.bytes);
        let (kind, target) = (message.kind, message.target);
        if (is_first || is_whole) && self.recorder.is_some() {
            self.note_received(packet.message, target, is_whole, bytes, kind);
        }
        if let Kind::WriteData { request } = kind {
            self.write_data_arrived(id, request);
        } else {
            self.network.packets.remove(id);
        }
        if !is_whole {
            return;
        }
        match kind {
            Kind::WriteData { .. } => {}
            Kind::Request { request } => self.request_arrived(request),
            Kind::Invitation { request } => self.invitation_arrived(request),
            Kind::ReadData { task, .. } | Kind::WriteDone { task } | Kind::Done { task } => {
                self.settle_one(task);
            }
            Kind::Flush { file } => self.flush_arrived(target, file, NONE),
            Kind::Resize { task } => self.answer(self.server_at(target), task),
            Kind::Sync { file, task } => self.flush_arrived(target, file, task),
            Kind::Point { envelope } => self.point_arrived(target, envelope, NONE),
            Kind::Offer { envelope, offer } => self.point_arrived(target, envelope, offer),
            Kind::Reply { offer } => self.reply_arrived(offer),
            Kind::Offered { offer } => self.offered_arrived(offer),
        }
        self.messages.remove(packet.message);
    }
}
