//! Both ends of connections, as every machine meets them: what it is told of those who ask it (peers) and of
//! those whom it asks (parties), and what it wants of either. `P` is what goes with a message as payload.

use crate::{Buffer, Incarnation, Message, Party, Peer, Request, SessionId};

/// What a machine is told of those who ask it.
#[derive(Clone, Debug, PartialEq)]
pub enum PeerEvent {
    /// A connection; its client has said who it is, and was authenticated.
    Up {
        /// The connection.
        peer: Peer,
        /// Its session.
        session: SessionId,
    },
    /// A connection is no more.
    Lost {
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
        /// What it carries, and how many bytes.
        payload: Option<(Buffer, u64)>,
    },
}

/// What a machine wants of those who ask it.
#[derive(Clone, Debug, PartialEq)]
pub enum PeerAction<P> {
    /// The answer to [`PeerEvent::Up`]: the connection may be used.
    Welcome {
        /// Which.
        peer: Peer,
        /// Whether its session is known here, or was never: nothing that it has asked was forgotten.
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
        /// What it carries; the driver's again then.
        payload: Option<P>,
    },
    /// The end of a connection whose peer does what it must not. No event follows.
    Drop {
        /// Which.
        peer: Peer,
        /// What it did.
        why: &'static str,
    },
}

/// What a machine is told of those whom it asks.
#[derive(Clone, Debug, PartialEq)]
pub enum PartyEvent {
    /// There is a connection.
    Connected {
        /// To whom.
        to: Party,
        /// Its life: if another than before, it knows nothing of this session but what its files have.
        incarnation: Incarnation,
        /// Whether it knows this session, with its views and answers.
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
    /// A reply has come.
    Replied {
        /// From whom.
        from: Party,
        /// To which request.
        request: Request,
        /// What it says.
        message: Message,
        /// What it carries.
        payload: Option<Buffer>,
    },
}

/// What a machine wants of those whom it asks.
#[derive(Clone, Debug, PartialEq)]
pub enum PartyAction<P> {
    /// A connection. Answered by [`PartyEvent::Connected`] or [`PartyEvent::Disconnected`].
    Connect {
        /// To whom.
        to: Party,
    },
    /// The end of a connection, or of the attempt to make one. No event of it follows.
    Disconnect {
        /// With whom.
        from: Party,
    },
    /// A request on its way.
    Ask {
        /// To whom.
        to: Party,
        /// Its number.
        request: Request,
        /// What.
        message: Message,
        /// What it carries.
        payload: Option<P>,
    },
}

impl<P> PeerAction<P> {
    /// A reply without payload.
    pub(crate) fn reply(peer: Peer, request: Request, message: Message) -> PeerAction<P> {
        PeerAction::Reply { peer, request, message, payload: None }
    }
}
