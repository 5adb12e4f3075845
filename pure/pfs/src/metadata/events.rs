//! What the metadata manager is told, and what it wants.

use crate::{Buffer, PartyAction, PartyEvent, PeerAction, PeerEvent};
use iolab_vocab::Nanos;
use std::convert::Infallible;

/// What the manager is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Something of those who ask it.
    Peer(PeerEvent),
    /// Something of those whom it has discard files.
    Party(PartyEvent),
    /// Nobody knows which of the records that were not reported as written will be there: the device could not
    /// sync them. Until it begins a new life, the manager changes nothing any more.
    Failed,
    /// All records up to this one are written, so that they outlive what the class of durability promises.
    Appended {
        /// The sequence of the last of them.
        upto: u64,
    },
    /// The checkpoint that was asked for.
    Checkpointed {
        /// Whether it is on its device, beside the journal; else it could not be written, and is gone.
        is_durable: bool,
    },
    /// The time has come. Drivers say so once at the start, too.
    Woke,
}

/// What the manager wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Something of those who ask it; its replies carry nothing.
    Peer(PeerAction<Infallible>),
    /// Something of those whom it has discard files.
    Party(PartyAction<Infallible>),
    /// A buffer is the driver's again.
    Release {
        /// Which.
        buffer: Buffer,
    },
    /// A record for the end of the journal, as `journal.rs` encodes them. Answered by
    /// [`Event::Appended`].
    Append {
        /// Its number; ascending.
        sequence: u64,
        /// Its bytes.
        record: Vec<u8>,
    },
    /// A journal that begins with the state, to be written beside the one there is, to which records go on. To be
    /// on its device, in every class of durability, before [`Event::Checkpointed`] answers.
    Checkpoint {
        /// The sequence of the first record behind it.
        first: u64,
        /// The state, as records of its own.
        records: Vec<u8>,
    },
    /// That journal takes the place of the one there was, with these records behind it, in one step: they are on
    /// its device before its name is. Answered by [`Event::Appended`]. All records that were asked for before are in it,
    /// also those that are not written. A driver that cannot goes on with the journal it has.
    Supersede {
        /// The sequence of the last record.
        upto: u64,
        /// Those since it was asked for, all of them or none.
        records: Vec<u8>,
    },
    /// [`Event::Woke`] at that time or soon after; earlier wishes stand.
    WakeAt(Nanos),
}
