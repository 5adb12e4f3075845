//! What can happen in a cluster; eight bytes each.

/// An event of the cluster simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A task has rested.
    Rested(u32),
    /// A packet reaches its next station.
    Arrived(u32),
    /// A station has carried its packet.
    Carried(u32),
    /// A node's processor has finished a job.
    Computed(u32),
    /// A device has carried out a transfer.
    Transferred(u32),
    /// A server's cache layer wanted to be woken.
    Woke(u32),
}
