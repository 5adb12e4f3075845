//! What can happen in the world; eight bytes each.

use iolab_vocab::Nanos;

/// An event of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A task has rested.
    Rested(u32),
    /// A packet reaches its next hop.
    Arrived(u32),
    /// A hop has carried its packet.
    Carried(u32),
    /// A node's processor has finished a job.
    Computed(u32),
    /// A device has carried out a transfer.
    Transferred(u32),
    /// A server wanted to be woken.
    Woke(u32),
    /// A fault of the scenario begins.
    FaultBegan(u32),
    /// It ends.
    FaultEnded(u32),
}

impl Event {
    fn code(self) -> u64 {
        let (kind, who) = match self {
            Event::Arrived(packet) => (1, packet),
            Event::Carried(hop) => (2, hop),
            Event::Computed(node) => (3, node),
            Event::Transferred(transfer) => (4, transfer),
            Event::Woke(server) => (5, server),
            Event::Rested(task) => (6, task),
            Event::FaultBegan(fault) => (7, fault),
            Event::FaultEnded(fault) => (8, fault),
        };
        kind << 32 | u64::from(who)
    }

    /// The hash of a log that has this event at its end, from that of the log before: a
    /// multiplicative hash, so that two runs can be compared without keeping their logs.
    #[inline]
    pub(super) fn append_to(self, hash: u64, time: Nanos) -> u64 {
        const PRIME: u64 = 0x0000_0100_0000_01B3;
        const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
        let entry = time.0.wrapping_mul(GOLDEN) ^ self.code();
        (hash.rotate_left(29) ^ entry).wrapping_mul(PRIME)
    }
}
