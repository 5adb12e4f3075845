//! Rare branches that a run met: a night without one of them has not looked there.

use std::collections::BTreeMap;

macro_rules! marks {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Something that should happen in some run.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Mark {
            $($(#[$doc])* $name,)*
        }

        impl Mark {
            /// All there are.
            pub const ALL: &[Mark] = &[$(Mark::$name,)*];

            /// What happened, in a few words.
            pub fn name(self) -> &'static str {
                match self {
                    $(Mark::$name => $text,)*
                }
            }
        }
    };
}

marks! {
    /// A request came to a server for the second time.
    AskedAgain = "request asked again",
    /// A change was asked for again, and answered without being carried out again.
    AnswerRepeated = "answer repeated",
    /// A server did not know a view.
    UnknownView = "unknown view",
    /// A collective failed.
    CollectiveFailed = "verdict with a failure",
    /// There were too many orders of calls about names to try them all.
    NamesUndecided = "names undecided",
    /// A server had forgotten what an atomic call held there.
    HoldLost = "hold lost",
    /// What a collective came to went with its home: a rank that came again heard of a failure.
    VerdictLost = "verdict lost with its home",
    /// A rank of a group died or was lost.
    RankFailed = "rank failed",
    /// A call read the same bytes of a server twice.
    ReadAgain = "read again",
    /// A server forgot a session that it had known in the same life.
    SessionExpired = "session expired",
    /// A client was told that its session is lost.
    SessionLost = "session lost",
    /// Nobody answered in time.
    TimedOut = "timed out",
    /// A connection replaced another of the same session that its server had not seen the end of.
    ConnectionReplaced = "connection replaced",
    /// A server crashed while its device worked.
    CrashedAtWork = "crash during a transfer",
    /// A record of the journal was torn by a crash.
    RecordTorn = "record torn",
    /// A journal took the place of another.
    JournalBegunAnew = "journal begun anew",
    /// The manager crashed while one was written.
    CheckpointLost = "checkpoint lost",
    /// The manager crashed while its names were being told for one.
    CheckpointUntold = "checkpoint untold",
    /// One could not be written.
    CheckpointRefused = "checkpoint refused",
    /// The manager started with one.
    CheckpointRead = "checkpoint read",
    /// The manager started with records in its journal.
    Recovered = "names recovered",
    /// A read ended behind the end of the file.
    ShortRead = "short read",
    /// A hole was read.
    HoleRead = "hole read",
    /// A device failed.
    DeviceFailed = "device failed",
    /// A frame was mangled on its way.
    FrameMangled = "mangled frame",
    /// A client died in a call.
    DiedInCall = "death in a call",
    /// A file was shortened.
    Shortened = "file shortened",
    /// A removed file's subfiles went.
    Discarded = "subfiles discarded",
    /// A file was in use when its subfiles were to go.
    Busy = "discard refused",
    /// A cache manager crashed.
    CacheCrashed = "cache manager crashed",
    /// It had data that no server had.
    DataLost = "data lost by a cache",
    /// A client was told that data it wrote is lost.
    LossTold = "loss told",
    /// The power went.
    PowerCut = "power cut",
    /// It took something that was written and not synced.
    UnsyncedLost = "unsynced data lost",
    /// A device could not sync.
    SyncFailed = "sync failed",
    /// The journal could not be synced.
    JournalFailed = "sync of the journal failed",
    /// A cache manager asked a server for missing bytes of a block.
    BlockFetched = "block fetched",
    /// A call failed because a device had no room.
    RoomRefused = "call without room",
    /// A file was refused for the quota of files.
    FileRefused = "file refused by a quota",
    /// A write met a full device.
    DeviceFull = "device full",
    /// Pages got sums.
    PagesSummed = "pages summed",
    /// A device changed a byte at rest.
    Rotten = "byte changed at rest",
    /// A page did not have its sum.
    DamageFound = "damage found",
    /// A cache manager brought a block to a server.
    BlockFlushed = "block flushed",
}

/// How often which was met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks(BTreeMap<Mark, u64>);

impl Marks {
    /// It was met.
    pub(crate) fn meet(&mut self, mark: Mark) {
        *self.0.entry(mark).or_default() += 1;
    }

    /// How often.
    pub fn count(&self, mark: Mark) -> u64 {
        self.0.get(&mark).copied().unwrap_or(0)
    }

    /// Adds those of another run.
    pub fn add(&mut self, other: &Marks) {
        for (&mark, count) in &other.0 {
            *self.0.entry(mark).or_default() += count;
        }
    }

    /// Those that were never met.
    pub fn missed(&self) -> impl Iterator<Item = Mark> + '_ {
        Mark::ALL.iter().copied().filter(|&mark| self.count(mark) == 0)
    }
}
