//! Defects that a test plants to see that they are found. Only builds with the feature `plant`, which tests
//! ask for, can switch one on; in all others [`is_planted`] is false when it is compiled.

#![cfg_attr(not(feature = "plant"), allow(unreachable_pub))]

/// A defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// The last stripe of a file that is cut within it is one byte short.
    LastStripeShort,
    /// An access that ends with a tile of its view loses its last byte.
    TailDropped,
    /// A change that is asked for again is carried out again.
    ExecutedTwice,
    /// A rename is two records of the journal.
    RenameInTwo,
    /// A rank that arrives again counts for one that has not come.
    ArrivalCountedTwice,
    /// Records of the journal behind a torn one are taken.
    TornRecordPassed,
    /// Requests for the same bytes go to the device at the same time.
    TransfersOverlap,
    /// A server in a new life does not know what the collective before came to.
    VerdictForgotten,
    /// A server forgets what a group came to that has ended, or that nobody is left of.
    EndedForgotten,
    /// A file is taken to end where its first subfile does.
    EndOfOneSubfile,
    /// Transfers are cut anywhere in a stripe.
    BlocksSplit,
    /// A block whose end came later is read in two parts.
    BlockReadTwice,
    /// A server takes a subfile that was cut to be as long as before.
    LengthKept,
    /// A read forgets what it has seen when the file ends earlier later on.
    EndForgotten,
    /// A session that is full of views takes no other one.
    ViewsKept,
    /// Ranks that were never here are waited for once more by each collective.
    MissingWaitedFor,
    /// A client that has nothing to ask does not connect again, and its files are closed under it.
    OpensForgotten,
    /// A file that is open is said not to be.
    OpenUntold,
    /// A shared pointer that is moved by a request asked once more moves again.
    PointerMovedTwice,
    /// An atomic call does not hold the last subfile that it touches.
    HoldLeftOut,
    /// A client takes holds in an order of its own.
    HoldsUnordered,
    /// Holds go with a connection, not with its session, and nobody is told.
    HoldsOfConnection,
    /// A hold whose release was not heard is not released again.
    HoldKept,
    /// A subfile whose window was full is not served again when a transfer of it is over.
    LaneForgotten,
    /// A block counts the byte behind each run that was written as written.
    RunTooLong,
    /// What comes from a server is laid over newer bytes.
    FetchedOverNewer,
    /// A cache manager cuts a file while servers are still asked about it.
    CutWhileFetching,
    /// A cache manager says that servers have what they do not have yet.
    SyncWithoutFlush,
    /// A client does not tell of data that a cache manager has lost.
    LossNotTold,
    /// A cache manager cuts a file of which servers do not have everything.
    CutUnsaved,
    /// A sync is answered before the device has done it.
    SyncNotAwaited,
    /// A sync is served by one that began before it was asked for.
    SyncJoined,
    /// After a sync that failed the next one counts for what that one has lost.
    SyncRetried,
    /// An access does not wait for those before it that touch the same bytes.
    ProgramOrderForgotten,
    /// A process comes to collectives in the order in which its data has moved.
    CollectivesUnordered,
    /// A server grants space that others were granted.
    GrantsOverlap,
    /// A cache manager uses what it was granted again when it has been written to.
    GrantSpentTwice,
    /// A cache manager whose write policy is `through` answers before servers have the bytes.
    AnsweredUnsaved,
    /// A client does not ask the placement for the file, but for one that begins at the first server.
    PlacementOfOther,
    /// A block that has bytes no server has may leave.
    DirtyMayLeave,
    /// What is written over pages that have sums leaves them.
    SumOutlivesWrite,
    /// A file that is cut keeps the sum of the page in which it ends then, and of those behind.
    SumOutlivesCut,
    /// Pages are summed while they are written.
    SummedWhileWritten,
    /// Pages are summed, and brought to the device for that, while a sync of their subfile is under way.
    SummedBesideSync,
    /// Who meets a quota is told that the device is full.
    QuotaAsFull,
    /// The manager lets its user have one file more than the quota says.
    FileBeyondQuota,
    /// What a session was granted stays granted when it has ended.
    GrantKept,
    /// What a session held stays held when it has ended.
    HoldOfTheDead,
    /// A journal that begins anew takes the place of the old one before it is on its device.
    JournalCutEarly,
    /// A journal that begins anew does not have the records that came while it was written.
    CheckpointAlone,
    /// A journal that begins anew has not what was answered before.
    CheckpointWithoutAnswers,
    /// A journal that begins anew has each name as it was when the walk came to it.
    CheckpointOfSeveralTimes,
}

#[cfg(feature = "plant")]
impl Plant {
    /// All there are.
    pub const ALL: [Plant; 52] = [
        Plant::LastStripeShort,
        Plant::TailDropped,
        Plant::ExecutedTwice,
        Plant::RenameInTwo,
        Plant::ArrivalCountedTwice,
        Plant::TornRecordPassed,
        Plant::TransfersOverlap,
        Plant::VerdictForgotten,
        Plant::EndedForgotten,
        Plant::EndOfOneSubfile,
        Plant::BlocksSplit,
        Plant::BlockReadTwice,
        Plant::LengthKept,
        Plant::EndForgotten,
        Plant::ViewsKept,
        Plant::MissingWaitedFor,
        Plant::OpensForgotten,
        Plant::OpenUntold,
        Plant::PointerMovedTwice,
        Plant::HoldLeftOut,
        Plant::HoldsUnordered,
        Plant::HoldsOfConnection,
        Plant::HoldKept,
        Plant::LaneForgotten,
        Plant::RunTooLong,
        Plant::FetchedOverNewer,
        Plant::CutWhileFetching,
        Plant::SyncWithoutFlush,
        Plant::LossNotTold,
        Plant::CutUnsaved,
        Plant::SyncNotAwaited,
        Plant::SyncJoined,
        Plant::SyncRetried,
        Plant::ProgramOrderForgotten,
        Plant::CollectivesUnordered,
        Plant::GrantsOverlap,
        Plant::GrantSpentTwice,
        Plant::AnsweredUnsaved,
        Plant::PlacementOfOther,
        Plant::DirtyMayLeave,
        Plant::SumOutlivesWrite,
        Plant::SumOutlivesCut,
        Plant::SummedWhileWritten,
        Plant::SummedBesideSync,
        Plant::QuotaAsFull,
        Plant::FileBeyondQuota,
        Plant::GrantKept,
        Plant::HoldOfTheDead,
        Plant::JournalCutEarly,
        Plant::CheckpointAlone,
        Plant::CheckpointWithoutAnswers,
        Plant::CheckpointOfSeveralTimes,
    ];
}

#[cfg(feature = "plant")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Plant>> = const { std::cell::Cell::new(None) };
}

/// Runs something with a defect in the machines of this thread.
#[cfg(feature = "plant")]
pub fn with<R>(plant: Plant, run: impl FnOnce() -> R) -> R {
    PLANTED.set(Some(plant));
    let result = run();
    PLANTED.set(None);
    result
}

/// Whether this defect is planted.
#[cfg(feature = "plant")]
pub(crate) fn is_planted(plant: Plant) -> bool {
    PLANTED.get() == Some(plant)
}

/// Whether this defect is planted.
#[cfg(not(feature = "plant"))]
pub(crate) const fn is_planted(_plant: Plant) -> bool {
    false
}
