//! What the metadata manager is told, and what it wants.

use crate::{Incarnation, Message, Party, Peer, Request, SessionId};
use iolab_vocab::Nanos;

/// What the manager is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A connection; its client has said who it is, and was authenticated.
    PeerUp {
        /// The connection.
        peer: Peer,
        /// Its session.
        session: SessionId,
    },
    /// A connection is no more.
    PeerLost {
        /// Which.
        peer: Peer,
        /// Whether its process is known to have ended.
        ended: bool,
    },
    /// A request.
    Asked {
        /// On which connection.
        peer: Peer,
        /// Its number.
        request: Request,
        /// What.
        message: Message,
    },
    /// There is a connection to an I/O server.
    Connected {
        /// To whom.
        to: Party,
        /// Its life.
        incarnation: Incarnation,
        /// Whether it knows the manager's session.
        known: bool,
    },
    /// There is none: it was lost, or could not be made.
    Disconnected {
        /// With whom.
        from: Party,
    },
    /// A party does not answer, but its host says that it runs, without a processor or at its device.
    Runs {
        /// Who.
        party: Party,
    },
    /// An I/O server has answered.
    Replied {
        /// Which.
        from: Party,
        /// To which request.
        request: Request,
        /// What.
        message: Message,
    },
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
    /// The answer to [`Event::PeerUp`]: the connection may be used.
    Welcome {
        /// Which.
        peer: Peer,
        /// Whether its session is known here.
        known: bool,
    },
    /// A reply on its way.
    Reply {
        /// On which connection.
        peer: Peer,
        /// To which request.
        request: Request,
        /// What.
        message: Message,
    },
    /// The end of a connection whose peer does what it must not. No event follows.
    Drop {
        /// Which.
        peer: Peer,
        /// What it did.
        why: &'static str,
    },
    /// A connection to an I/O server. Answered by [`Event::Connected`] or [`Event::Disconnected`].
    Connect {
        /// To whom.
        to: Party,
    },
    /// The end of a connection to an I/O server, or of the attempt. No event of it follows.
    Disconnect {
        /// With whom.
        from: Party,
    },
    /// A request to an I/O server.
    Ask {
        /// To whom.
        to: Party,
        /// Its number.
        request: Request,
        /// What.
        message: Message,
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
