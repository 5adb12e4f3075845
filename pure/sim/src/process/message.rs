//! What processes say to each other.

use super::ids::{GroupId, OfferId, ProcessId};
use crate::program::File;

/// What a message between processes means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// The message itself.
    Point { envelope: Envelope },
    /// A larger one wants to come.
    Offer { envelope: Envelope, offer: OfferId },
    /// It may.
    Reply { offer: OfferId },
    /// It does.
    Offered { offer: OfferId },
}

impl Message {
    /// What it carries, as the trace's `argument`: 5 a message, 6 its arrangement.
    pub(crate) fn number(self) -> i64 {
        match self {
            Message::Point { .. } | Message::Offered { .. } => 5,
            Message::Offer { .. } | Message::Reply { .. } => 6,
        }
    }
}

/// What a receive is matched by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Envelope {
    /// The process that sends; of a receive, `None` for whoever sends first.
    pub(crate) from: Option<ProcessId>,
    pub(crate) tag: u32,
    pub(crate) context: MatchContext,
}

/// What a message belongs to; only those of one context are matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatchContext {
    /// The program's own, in a group.
    Point(GroupId),
    /// Collective operations of a group.
    Collective(GroupId),
    /// Collective accesses to a file.
    File(File),
}
