//! Which calls a strategy wants to hear, as a set in one word. A call that no stage of a stack hears
//! goes straight to the file: a driver that looks at the word before it does anything else pays
//! nothing for the stack.

use super::{At, Call};

/// A set of kinds of calls. Transfers at the file position and at an offset are kinds of their own:
/// who keeps positions need not hear the latter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest(u32);

impl Interest {
    /// No call.
    pub const NOTHING: Interest = Interest(0);
    /// Every call there is and will be.
    pub const EVERYTHING: Interest = Interest(u32::MAX);
    /// Descriptions that come to be.
    pub const OPEN: Interest = Interest(1);
    /// Reads at the file position.
    pub const READ: Interest = Interest(1 << 1);
    /// Reads at an offset.
    pub const READ_AT: Interest = Interest(1 << 2);
    /// Writes at the file position.
    pub const WRITE: Interest = Interest(1 << 3);
    /// Writes at an offset.
    pub const WRITE_AT: Interest = Interest(1 << 4);
    /// Seeks.
    pub const SEEK: Interest = Interest(1 << 5);
    /// Syncs.
    pub const SYNC: Interest = Interest(1 << 6);
    /// Changes of the size.
    pub const TRUNCATE: Interest = Interest(1 << 7);
    /// Reservations and holes.
    pub const ALLOCATE: Interest = Interest(1 << 8);
    /// Somebody is about to look.
    pub const FLUSH: Interest = Interest(1 << 9);
    /// Somebody is about to use the description.
    pub const SETTLE: Interest = Interest(1 << 10);
    /// Descriptions that go away.
    pub const CLOSE: Interest = Interest(1 << 11);
    /// What will be read.
    pub const ADVISE: Interest = Interest(1 << 12);
    /// Descriptions that come and go.
    pub const DESCRIPTIONS: Interest = Interest::OPEN.and(Interest::CLOSE);
    /// Transfers of all kinds.
    pub const TRANSFERS: Interest =
        Interest::READ.and(Interest::READ_AT).and(Interest::WRITE).and(Interest::WRITE_AT);

    /// What either of the two hears.
    pub const fn and(self, other: Interest) -> Interest {
        Interest(self.0 | other.0)
    }

    /// What this one hears and the other does not.
    pub const fn without(self, other: Interest) -> Interest {
        Interest(self.0 & !other.0)
    }

    /// Whether calls of that kind (or of any of several) are heard.
    #[inline(always)]
    pub const fn hears(self, kinds: Interest) -> bool {
        self.0 & kinds.0 != 0
    }

    /// The kind of a call.
    #[inline]
    pub const fn of(call: &Call) -> Interest {
        match call {
            Call::Open { .. } => Interest::OPEN,
            Call::Read { at: At::Position, .. } => Interest::READ,
            Call::Read { .. } => Interest::READ_AT,
            Call::Write { at: At::Position, .. } => Interest::WRITE,
            Call::Write { .. } => Interest::WRITE_AT,
            Call::Seek { .. } => Interest::SEEK,
            Call::Sync { .. } => Interest::SYNC,
            Call::Truncate { .. } => Interest::TRUNCATE,
            Call::Allocate { .. } => Interest::ALLOCATE,
            Call::Flush => Interest::FLUSH,
            Call::Settle => Interest::SETTLE,
            Call::Close => Interest::CLOSE,
            Call::Advise { .. } => Interest::ADVISE,
        }
    }

    /// As one word, for a driver that publishes it.
    pub const fn word(self) -> u32 {
        self.0
    }

    /// The set whose word that is.
    pub const fn from_word(word: u32) -> Interest {
        Interest(word)
    }
}
