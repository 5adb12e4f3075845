//! Packets and messages in slabs, and queues of packets without allocation.

/// No packet, message, hop or task.
pub(super) const NONE: u32 = u32::MAX;

/// A piece of a message on its way. It stands in at most one queue at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) message: u32,
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
    pub(super) fn new(message: u32, bytes: u32, target: u32, hop: u32, is_last: bool) -> Packet {
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

/// What a message means to its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A read or write request to a server.
    Request { request: u32 },
    /// The bytes of a write request.
    WriteData { request: u32 },
    /// The bytes a read request asked for, to the task that waits for them.
    ReadData { request: u32, task: u32 },
    /// The data of a write request may come.
    Invitation { request: u32 },
    /// A write request is done, to the task that waits for it.
    WriteDone { task: u32 },
    /// Somebody wants a file on the device.
    Flush { file: u32 },
    /// The same, with an answer to the task that waits for it.
    Sync { file: u32, task: u32 },
    /// A file has another size now; with an answer to the task that waits for it.
    Resize { task: u32 },
    /// A sync or another size is done, to the task that waits for it.
    Done { task: u32 },
    /// From process to process.
    Point { envelope: Envelope },
    /// A larger message from process to process wants to come.
    Offer { envelope: Envelope, offer: u32 },
    /// It may.
    Reply { offer: u32 },
    /// It does.
    Offered { offer: u32 },
}

/// What a receive is matched by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Envelope {
    /// The process that sends.
    pub(super) from: u32,
    pub(super) tag: u32,
    pub(super) context: MatchContext,
}

/// What a message belongs to; only those of one context are matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MatchContext {
    /// The program's own, in a group.
    Point(u32),
    /// Collective operations of a group.
    Collective(u32),
    /// Collective accesses to a file.
    File(u32),
}

impl MatchContext {
    /// The file, of a context that is about one.
    pub(super) fn file(self) -> u32 {
        match self {
            MatchContext::File(file) => file,
            _ => unreachable!("only a collective access touches a file"),
        }
    }
}

/// A message under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) kind: Kind,
    /// Who gets it.
    pub(super) target: u32,
    /// The hop where it enters the network.
    pub(super) entry: u32,
    /// Task that waits for its departure, or `NONE`.
    pub(super) sender: u32,
    /// All of it.
    pub(super) bytes: u64,
    /// What may be cut into packets already.
    pub(super) available_bytes: u64,
    /// What has not come from the device yet.
    pub(super) missing_bytes: u64,
    /// What has been cut into packets.
    pub(super) cut_bytes: u64,
    /// What has left the sender.
    pub(super) sent_bytes: u64,
    /// What has reached the receiver.
    pub(super) arrived_bytes: u64,
}

/// A slab: indices stay valid until removed, memory is reused.
#[derive(Debug)]
pub(super) struct Slab<T> {
    slots: Vec<T>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(super) fn new() -> Slab<T> {
        Slab { slots: Vec::new(), free: Vec::new() }
    }

    #[inline]
    pub(super) fn add(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = value;
                slot
            }
            None => {
                self.slots.push(value);
                self.slots.len() as u32 - 1
            }
        }
    }

    /// A free slot with whatever its last user left in it, so that buffers are used again.
    pub(super) fn take_slot(&mut self, fresh: impl FnOnce() -> T) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(fresh());
            self.slots.len() as u32 - 1
        })
    }

    #[inline]
    pub(super) fn remove(&mut self, slot: u32) {
        self.free.push(slot);
    }

    #[inline]
    pub(super) fn get(&self, slot: u32) -> &T {
        &self.slots[slot as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: u32) -> &mut T {
        &mut self.slots[slot as usize]
    }

    /// All slots with their numbers, in use or not.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(&self.slots)
    }

    /// What is in use, for a look at everything. Sorts what is free: not for the loop.
    pub(super) fn live(&self) -> impl Iterator<Item = &T> {
        let free: std::collections::BTreeSet<u32> = self.free.iter().copied().collect();
        let slots = self.slots.iter().zip(0..);
        slots.filter(move |(_, slot)| !free.contains(slot)).map(|(value, _)| value)
    }
}
