//! Messages on their way: cut into packets at the sender, counted at the receiver.

use super::event::Event;
use super::hop::Role;
use super::packet::Packet;
use super::{Host, Id, MessageId, NodeId, PacketId, ServerId, Target, TaskId, World};
use crate::queue::EventQueue;

/// What messages mean to the machines; to the world it is nothing but a number in traces.
pub(crate) trait Content: Copy {
    /// What messages carry beyond it, kept by number.
    type Payload;

    /// What a message carries, as the trace's `argument`.
    fn number(self) -> i64;
}

/// A message under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message<C> {
    pub(super) content: C,
    pub(super) target: Target,
    /// The hop where it enters the network.
    pub(super) entry: u32,
    /// Task that waits for its departure.
    pub(super) sender: Option<TaskId>,
    /// All of it.
    bytes: u64,
    /// What may be cut into packets already.
    available_bytes: u64,
    /// What its sender does not have yet.
    missing_bytes: u64,
    /// What has been cut into packets.
    cut_bytes: u64,
    /// What has left the sender.
    sent_bytes: u64,
    /// What has reached the receiver.
    arrived_bytes: u64,
}

/// A message under way, as machines see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnderWay<C> {
    pub(crate) content: C,
    /// The node that sends it.
    pub(crate) from: NodeId,
    pub(crate) target: Target,
    /// Task that waits for the departure of all.
    pub(crate) sender: Option<TaskId>,
}

/// A packet that has left its sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure<C> {
    pub(crate) content: C,
    /// Of the packet.
    pub(crate) bytes: u64,
    /// Whether the message's next packet queues behind all others now.
    pub(crate) is_followed: bool,
    /// Whether it was the message's last.
    pub(crate) is_sent: bool,
    /// Task that waits for the departure of all.
    pub(crate) sender: Option<TaskId>,
}

/// How much of a message that is made piece by piece could leave now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Available {
    Nothing,
    /// Less than a packet, and more is to come.
    Part,
    /// A full packet, or the rest.
    Packet,
}

impl<Q: EventQueue<Event>, C: Content> World<Q, C> {
    /// The hop where a message from a node to a target enters the network.
    fn entry(&self, node: NodeId, target: Target) -> u32 {
        let from = &self.nodes[node.index()];
        if self.node_of(target) == node { from.internal } else { from.departure }
    }

    /// Sends a message that is there in full; `sender` is the task that waits for its departure.
    pub(crate) fn send(
        &mut self,
        node: NodeId,
        target: Target,
        sender: Option<TaskId>,
        bytes: u64,
        content: C,
    ) {
        let entry = self.entry(node, target);
        let message = self.begin(entry, target, sender, bytes, content);
        let held = self.messages.get_mut(message);
        (held.available_bytes, held.missing_bytes) = (bytes, 0);
        let packet = self.cut_packet(message);
        self.calendar.post(0, entry, Event::Arrived(packet));
    }

    /// A message of which its sender has nothing yet; see [`World::supply`].
    pub(crate) fn begin_message(
        &mut self,
        node: NodeId,
        target: Target,
        bytes: u64,
        content: C,
    ) -> MessageId {
        let entry = self.entry(node, target);
        self.begin(entry, target, None, bytes, content)
    }

    fn begin(
        &mut self,
        entry: u32,
        target: Target,
        sender: Option<TaskId>,
        bytes: u64,
        content: C,
    ) -> MessageId {
        let message = self.messages.add(Message {
            content,
            target,
            entry,
            sender,
            bytes,
            available_bytes: 0,
            missing_bytes: bytes,
            cut_bytes: 0,
            sent_bytes: 0,
            arrived_bytes: 0,
        });
        if let Some(recorder) = &mut self.recorder {
            recorder.send_began(message, target, self.calendar.now);
        }
        message
    }

    /// The sender has so much more of a message.
    pub(crate) fn supply(&mut self, id: MessageId, bytes: u64) -> Available {
        let packet_bytes = u64::from(self.packet_bytes);
        let message = self.messages.get_mut(id);
        message.missing_bytes -= bytes;
        message.available_bytes += bytes;
        if message.missing_bytes == 0
            && let Some(recorder) = &mut self.recorder
        {
            recorder.supplied(id);
        }
        match message.available_bytes {
            0 => Available::Nothing,
            bytes if bytes >= packet_bytes || message.missing_bytes == 0 => Available::Packet,
            _ => Available::Part,
        }
    }

    /// Another packet of what a server has of a message leaves.
    pub(crate) fn send_available(&mut self, message: MessageId, server: ServerId) {
        let packet = self.cut_packet(message);
        self.calendar.post(0, self.source_of(server), Event::Arrived(packet));
    }

    /// Cuts the next packet off what is available of a message.
    fn cut_packet(&mut self, id: MessageId) -> u32 {
        let message = self.messages.get_mut(id);
        let bytes = message.available_bytes.min(u64::from(self.packet_bytes));
        message.available_bytes -= bytes;
        message.cut_bytes += bytes;
        let is_last = message.cut_bytes == message.bytes;
        let packet = Packet::new(id, bytes as u32, message.target.0, message.entry, is_last);
        self.network.packets.add(packet)
    }

    /// A hop has carried its packet: what is done with it depends on the kind of hop.
    #[inline]
    pub(super) fn carried<H: Host<Q, C>>(&mut self, host: &mut H, at: u32) {
        let hop = &self.network.hops[at as usize];
        let (packet, role) = (hop.current, hop.role);
        match role {
            Role::Departure => {
                self.depart(host, at, packet);
                self.network.send_on(&mut self.calendar, at, packet, 0);
            }
            Role::Switch | Role::Port => {
                self.network.send_on(&mut self.calendar, at, packet, 0);
            }
            Role::Arrival => self.deliver(host, packet),
            Role::Internal => {
                self.depart(host, at, packet);
                self.deliver(host, packet);
            }
            Role::LossyDeparture | Role::LossyPort => return self.carried_with_losses(host, at),
        }
        self.network.go_on(&mut self.calendar, at);
    }

    /// A packet has left its sender: the next one of the message queues behind all others.
    #[inline]
    pub(super) fn depart<H: Host<Q, C>>(&mut self, host: &mut H, at: u32, packet: u32) {
        let packet = *self.network.packets.get(packet);
        let message = self.messages.get_mut(packet.message);
        message.sent_bytes += u64::from(packet.bytes);
        let departure = Departure {
            content: message.content,
            bytes: u64::from(packet.bytes),
            is_followed: message.available_bytes > 0,
            is_sent: message.sent_bytes == message.bytes,
            sender: message.sender,
        };
        let bytes = message.bytes;
        if departure.is_followed {
            let next = self.cut_packet(packet.message);
            self.network.hops[at as usize].queue.push(&mut self.network.packets, next);
        }
        if self.recorder.is_some() {
            self.note_departure(packet.message, at, bytes, &departure);
        }
        host.departed(self, departure);
    }

    #[cold]
    fn note_departure(&mut self, id: MessageId, at: u32, bytes: u64, departure: &Departure<C>) {
        let (node, now) = (self.node_of_hop(at), self.calendar.now);
        let target = self.messages.get(id).target;
        let Some(recorder) = &mut self.recorder else { return };
        if departure.is_sent {
            recorder.sent((id, target), node, bytes, departure.content.number(), now);
        }
        recorder.departs(id);
    }

    #[cold]
    fn note_arrival(&mut self, id: MessageId, is_first: bool, is_whole: bool) {
        let &Message { target, bytes, content, .. } = self.messages.get(id);
        let (node, now) = (self.node_of(target), self.calendar.now);
        let Some(recorder) = &mut self.recorder else { return };
        // A message of one packet arrives at once.
        if is_first && !is_whole || is_whole && bytes <= u64::from(self.packet_bytes) {
            recorder.receive_began(id, target, now);
        }
        if is_whole {
            recorder.received((id, target), node, bytes, content.number(), now);
        }
        recorder.arrives(id);
    }

    /// A packet has reached its receiver.
    fn deliver<H: Host<Q, C>>(&mut self, host: &mut H, id: u32) {
        let packet = *self.network.packets.get(id);
        let message = self.messages.get_mut(packet.message);
        message.arrived_bytes += u64::from(packet.bytes);
        let is_whole = message.arrived_bytes == message.bytes;
        let is_first = message.arrived_bytes == u64::from(packet.bytes);
        let (content, target) = (message.content, message.target);
        if self.recorder.is_some() {
            self.note_arrival(packet.message, is_first, is_whole);
        }
        if !host.packet_arrived(self, PacketId(id), content) {
            self.network.packets.remove(id);
        }
        if is_whole {
            host.message_arrived(self, target, content);
            self.messages.remove(packet.message);
        }
    }

    /// From now on what is meant for a server waits at its node.
    pub(crate) fn hold_back(&mut self, server: ServerId) {
        let target = self.target_of(server);
        for at in self.arrivals_of(target) {
            self.network.block(at, target.0);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.holds_back(target, self.calendar.now);
        }
    }

    /// What is meant for a server may reach it again.
    pub(crate) fn let_through(&mut self, server: ServerId) {
        let target = self.target_of(server);
        for at in self.arrivals_of(target) {
            self.network.unblock(&mut self.calendar, at, target.0);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.lets_through(target, self.calendar.now);
        }
    }

    fn arrivals_of(&self, target: Target) -> [u32; 2] {
        let node = &self.nodes[self.node_of(target).index()];
        [node.arrival, node.internal]
    }

    /// The node whose NIC or inside a hop is: switches come first, then four for each node.
    fn node_of_hop(&self, hop: u32) -> NodeId {
        NodeId((hop - self.network.routes.len() as u32) / 4)
    }
}

impl<Q, C: Content> World<Q, C> {
    /// The size of a packet that its target has, and whether its message ends with it.
    pub(crate) fn packet(&self, packet: PacketId) -> (u64, bool) {
        let packet = self.network.packets.get(packet.0);
        (u64::from(packet.bytes), packet.is_last)
    }

    /// A packet that its target has kept is no more.
    pub(crate) fn drop_packet(&mut self, packet: PacketId) {
        self.network.packets.remove(packet.0);
    }

    /// What is under way, for a look at everything.
    pub(crate) fn messages(&self) -> impl Iterator<Item = UnderWay<C>> + '_ {
        self.messages.live().map(|(_, message)| {
            let enters =
                |node: &super::Node| [node.departure, node.internal].contains(&message.entry);
            let from = self.nodes.iter().position(enters).map(NodeId::of);
            UnderWay {
                content: message.content,
                from: from.expect("messages enter the network at nodes"),
                target: message.target,
                sender: message.sender,
            }
        })
    }
}
