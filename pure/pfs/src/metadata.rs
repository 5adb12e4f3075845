//! The metadata manager: names, layouts, opens. Its state is in memory; every change is a record of a
//! journal, written before anybody is told of it.

use crate::{Incarnation, Layout, Message, Party, Peer, Request, SessionId};
use iolab_policy::Machine;
use iolab_vocab::{Nanos, Refusal};

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
    /// An I/O server has answered.
    Replied {
        /// Which.
        from: Party,
        /// To which request.
        request: Request,
        /// What.
        message: Message,
    },
    /// All records up to this one are written, so that they outlive this process.
    Appended {
        /// The sequence of the last of them.
        upto: u64,
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
    /// The end of a connection to an I/O server.
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
    /// [`Event::Woke`] at that time or soon after; earlier wishes stand.
    WakeAt(Nanos),
}

/// What the manager is built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// I/O servers of the instance.
    pub servers: u32,
    /// Partition of files that ask for none.
    pub layout: Layout,
    /// How long a session without a connection is kept.
    pub session_timeout: Nanos,
    /// Files and directories at most.
    pub inodes_max: u64,
}

impl Settings {
    /// The usual layout over so many servers, 8 s, ten million inodes.
    pub fn usual(servers: u32) -> Settings {
        Settings {
            servers,
            layout: Layout::usual(servers),
            session_timeout: Nanos(8_000_000_000),
            inodes_max: 10_000_000,
        }
    }
}

/// The metadata manager machine.
#[derive(Debug)]
pub struct Metadata {}

impl Metadata {
    /// A manager in a new life: with the names that the records of its journal say, in their order.
    pub fn recover<'a>(
        _settings: Settings,
        _records: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Metadata, Refusal> {
        Ok(Metadata {})
    }
}

impl Machine for Metadata {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _now: Nanos, _event: Event, _out: &mut Vec<Action>) {
        unimplemented!()
    }
}
