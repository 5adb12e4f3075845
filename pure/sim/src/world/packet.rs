//! Packets in a slab of their own, and queues of packets without allocation.

use super::MessageId;

/// No packet or hop.
pub(super) const NONE: u32 = u32::MAX;

/// A piece of a message on its way. It stands in at most one queue at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) message: MessageId,
    pub(super) bytes: u32,
    /// The process or server it is meant for.
    pub(super) target: u32,
    /// Where it is, or arrives next.
    pub(super) hop: u32,
    /// Where it comes from, or `NONE` at its first hop.
    pub(super) previous: u32,
    /// Where it entered the network.
    pub(super) entry: u32,
    /// Whether it carries its message's end.
    pub(super) is_last: bool,
    next: u32,
}

impl Packet {
    pub(super) fn new(
        message: MessageId,
        bytes: u32,
        target: u32,
        hop: u32,
        is_last: bool,
    ) -> Packet {
        let (entry, previous, next) = (hop, NONE, NONE);
        Packet { message, bytes, target, hop, previous, entry, is_last, next }
    }
}

/// All packets on their way.
#[derive(Debug)]
pub(super) struct Packets {
    slots: Vec<Packet>,
    free: u32,
}

impl Packets {
    pub(super) fn new() -> Packets {
        Packets { slots: Vec::new(), free: NONE }
    }

    #[inline]
    pub(super) fn add(&mut self, packet: Packet) -> u32 {
        if self.free == NONE {
            self.slots.push(packet);
            return self.slots.len() as u32 - 1;
        }
        let slot = self.free;
        self.free = self.slots[slot as usize].next;
        self.slots[slot as usize] = packet;
        slot
    }

    #[inline]
    pub(super) fn remove(&mut self, packet: u32) {
        self.slots[packet as usize].next = self.free;
        self.free = packet;
    }

    #[inline]
    pub(super) fn get(&self, packet: u32) -> &Packet {
        &self.slots[packet as usize]
    }

    #[inline]
    pub(super) fn move_on(&mut self, packet: u32, from: u32, to: u32) {
        let packet = &mut self.slots[packet as usize];
        packet.previous = from;
        packet.hop = to;
    }
}

/// A queue of packets, linked through the packets themselves.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketQueue {
    head: u32,
    tail: u32,
}

impl PacketQueue {
    pub(super) const EMPTY: PacketQueue = PacketQueue { head: NONE, tail: NONE };

    pub(super) fn is_empty(&self) -> bool {
        self.head == NONE
    }

    #[inline]
    pub(super) fn push(&mut self, packets: &mut Packets, packet: u32) {
        packets.slots[packet as usize].next = NONE;
        match self.tail {
            NONE => self.head = packet,
            tail => packets.slots[tail as usize].next = packet,
        }
        self.tail = packet;
    }

    #[inline]
    pub(super) fn pop(&mut self, packets: &Packets) -> Option<u32> {
        let packet = self.head;
        if packet == NONE {
            return None;
        }
        self.head = packets.slots[packet as usize].next;
        if self.head == NONE {
            self.tail = NONE;
        }
        Some(packet)
    }
}
