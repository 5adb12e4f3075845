//! In-situ strategies: what an unmodified program's calls on one file are turned into.
//!
//! One [`Stack`] of strategies serves one file (inode) of one process. The driver feeds it the
//! program's calls on that file, one at a time, and carries out what comes out at the bottom.
//! Payload never passes through here: actions name places, the driver moves bytes.
//!
//! Every event is answered by a batch of actions: first any number of `Copy`, then exactly one of
//! * `Perform`: hand this call to the stage below; its outcome comes back as `Performed`,
//! * `WakeAt`: nothing until then; `Woke` comes back (cruel members and timers),
//! * `Await`: nothing until the work begun earlier is done; `Ended` comes back,
//! * `Answer`: the call that arrived is over, with this outcome.
//!
//! Between calls a stage may have work done that no call waits for ([`Strategy::begin`]), one piece at a time.
//!
//! What drivers and machines may rely on stands in `laws.rs`; [`Stack::drive`] is the loop of all drivers.
//!
//! A new strategy is one file and one row in `catalog.rs`.

mod arriving;
pub mod catalog;
pub mod classes;
mod count;
mod cruel;
mod decision;
pub mod defer_close;
mod descriptions;
mod drive;
mod fsync_relax;
pub mod guest;
mod guests;
pub mod hdf5;
mod held;
mod interest;
mod known_size;
mod laws;
pub mod mpiio;
pub mod netcdf;
mod null;
mod opened;
mod parameter;
pub mod plan;
mod read_ahead;
mod rounds;
pub mod rules;
pub mod runtimes;
mod seek_elide;
mod seek_free;
mod selection;
mod spec;
mod stack;
pub mod stacking;
pub mod stage;
mod stream;
mod throttle;
mod window;
mod write_back;

pub use arriving::Arriving;
pub use catalog::Catalog;
pub use count::{Count, Counts, PLACE_BYTES, Totals};
pub use cruel::Cruel;
pub use decision::{decided_by, decision};
pub use defer_close::DeferClose;
pub use drive::Driver;
pub use fsync_relax::FsyncRelax;
pub use guest::Guest;
pub use guests::{Guests, ProcessStep};
pub use interest::Interest;
pub use laws::{StrategyLaws, checked};
pub use null::Null;
pub use plan::Plan;
pub use read_ahead::ReadAhead;
pub use rounds::Ticket;
pub use rules::Request;
pub use seek_elide::SeekElide;
pub use seek_free::SeekFree;
pub use selection::{Selection, literal_glob};
pub use spec::{BlockOf, StrategySpec};
pub use stack::{Command, Slot, Stack, Work};
pub use stage::Stage;
pub use throttle::Throttle;
pub use window::Window;
pub use write_back::WriteBack;

use crate::machine::Machine;
use iolab_vocab::{Extent, Nanos};

/// An open file description of the file, as numbered by the driver: dup'ed descriptors share one,
/// opening the file twice makes two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub u32);

/// An error number as the system gives it (`ENOSPC` is 28 on Linux).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Errno(pub i32);

/// What a call came to: bytes moved, a position or 0; or why it failed.
pub type Outcome = Result<u64, Errno>;

/// Where in the file a transfer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum At {
    /// At the file position of the description, which moves along. For a description opened with
    /// append, a write goes to the end of the file instead.
    Position,
    /// At this offset; the file position stays.
    Offset(u64),
}

/// What a seek is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Whence {
    /// The start of the file.
    Start,
    /// The file position.
    Current,
    /// The end of the file.
    End,
    /// The next data or hole (`SEEK_DATA`, `SEEK_HOLE`), by its system number.
    Sparse(i32),
}

/// How a description was opened, as far as strategies care.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Access {
    /// Reads are allowed.
    pub read: bool,
    /// Writes are allowed.
    pub write: bool,
    /// Every write goes to the end of the file.
    pub append: bool,
    /// Opened with `O_SYNC`, `O_DSYNC` or `O_DIRECT`: the program wants its calls as they are.
    pub synchronous: bool,
}

/// What a stage is asked to do with one description of its file.
///
/// `Open`, `Flush`, `Settle` and `Close` are handed down like every other call, so that each stage
/// of a stack hears of them; at the bottom a driver answers them with `Ok(0)` and does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// The description exists from now on (the open itself is done). `file_bytes` is the file's
    /// size below at that moment, `position` the file position (0 for a fresh open).
    Open {
        /// How it was opened.
        access: Access,
        /// Size of the file below.
        file_bytes: u64,
        /// File position below.
        position: u64,
    },
    /// Transfer from the file.
    Read {
        /// From where.
        at: At,
        /// Bytes asked for.
        length: u64,
    },
    /// Transfer into the file.
    Write {
        /// To where.
        at: At,
        /// Bytes asked for.
        length: u64,
    },
    /// Move the file position; the outcome is the new position.
    Seek {
        /// Distance from `whence`.
        offset: i64,
        /// What the distance is relative to.
        whence: Whence,
    },
    /// Make the file durable (`fsync`; `fdatasync` when `data_only`).
    Sync {
        /// Leave metadata behind that is not needed to read the data back.
        data_only: bool,
    },
    /// Set the file's size.
    Truncate {
        /// New size.
        length: u64,
    },
    /// Reserve or deallocate space (`fallocate`), with the system's mode bits.
    Allocate {
        /// Mode bits of the system; 0 extends the file when the range leaves it.
        mode: i32,
        /// First byte of the range.
        offset: u64,
        /// Length of the range.
        length: u64,
    },
    /// This will be read soon: fetch it, if that can be done without waiting. Whoever asks does not
    /// look at the outcome, and nothing else follows from the call.
    Advise {
        /// First byte of the range.
        offset: u64,
        /// Length of the range; it may go beyond the end of the file.
        length: u64,
    },
    /// Make the data below look as the program believes it does: something that strategies do
    /// not follow is about to look at the file (stat, a lock, another open of it). `handle` may be
    /// any description of the file.
    Flush,
    /// As `Flush`, and make the file position below true as well: from here on the description
    /// may be used by others (fork, sendfile, mmap).
    Settle,
    /// The last descriptor of the description goes away; what was held back must be out before
    /// the answer. The close itself is done by the driver afterwards.
    Close,
}

impl Call {
    /// Bytes a transfer is asked to move; 0 for what is none.
    pub fn transfer_bytes(self) -> u64 {
        match self {
            Call::Read { length, .. } | Call::Write { length, .. } => length,
            _ => 0,
        }
    }

    /// The offset that a transfer names; nothing of one at the position, and of what is none.
    pub fn offset(self) -> Option<u64> {
        match self {
            Call::Read { at: At::Offset(offset), .. }
            | Call::Write { at: At::Offset(offset), .. } => Some(offset),
            _ => None,
        }
    }

    /// A transfer at the position as one at that offset; what is none stays as it is.
    pub fn placed(self, offset: u64) -> Call {
        let at = At::Offset(offset);
        match self {
            Call::Read { at: At::Position, length } => Call::Read { at, length },
            Call::Write { at: At::Position, length } => Call::Write { at, length },
            other => other,
        }
    }
}

/// Where the bytes of a transfer lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// In the memory of the call that arrived at this stage, from this byte of it.
    Caller(u64),
    /// In this stage's own staging memory, from this byte of it.
    Staging(u64),
    /// No bytes move.
    Nowhere,
}

/// What a stage is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// The stage above (or the program) made a call.
    Arrived {
        /// On which description.
        handle: Handle,
        /// Which.
        call: Call,
    },
    /// What this stage asked of the one below came to this.
    Performed(Outcome),
    /// The moment of the last `WakeAt` has come.
    Woke,
    /// The work that was begun, and awaited, came to this.
    Ended(Outcome),
}

/// What a stage wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Copy bytes between the caller's memory and the staging memory, at once.
    Copy {
        /// From there.
        from: Place,
        /// To there.
        to: Place,
        /// This many.
        length: u64,
    },
    /// Ask the stage below; the data of a transfer is at `memory`.
    Perform {
        /// On which description.
        handle: Handle,
        /// What.
        call: Call,
        /// Where the bytes lie.
        memory: Place,
    },
    /// Send `Woke` at that time.
    WakeAt(Nanos),
    /// Send `Ended` when the work is done that was begun ([`Strategy::begin`]).
    Await,
    /// The call that arrived is over.
    Answer(Outcome),
}

/// A contiguous extent of the file whose bytes a stage holds back, and where they lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldPiece {
    /// Where in the file it belongs.
    pub extent: Extent,
    /// Where its first byte lies in the stage's staging memory.
    pub at: u64,
}

/// How a stage's staging memory stands: enough for a driver to keep a list of held pieces beside
/// it that somebody else could write out, at the price of one comparison per call.
///
/// Pieces are put into staging memory one behind the other and never move; what lies there changes
/// only by overwrites in place. So between two looks either `rearranged` has changed and the list
/// is to be made anew ([`Strategy::held_pieces`]), or what was added is the last `fill - before`
/// bytes of the file that end at `end`, and it overwrites whatever earlier pieces held there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// Staging memory used so far, from its front.
    pub fill: u64,
    /// File offset behind the byte that was put in last.
    pub end: u64,
    /// How often pieces went away or staging memory started from its front again.
    pub rearranged: u64,
    /// The pieces are the end of the file, in order, and go out by appending.
    pub appending: bool,
}

/// What a strategy says to a call that it can decide at once ([`Strategy::short`]). Fits two registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Short {
    /// `step` must decide; nothing has changed.
    Ask,
    /// A transfer at the position goes down at this offset; the outcome is the answer, and bytes moved
    /// are told by [`Strategy::moved`].
    At(u64),
    /// The call is over and came to this.
    Answer(u64),
}

/// One strategy on one file: a stage of a [`Stack`].
pub trait Strategy: Machine<Event = Event, Action = Action> + Send {
    /// Bytes of staging memory the driver must provide; constant over the strategy's life.
    fn staging_bytes(&self) -> u64 {
        0
    }

    /// How much of the staging memory, from its front, may be the only place of held bytes;
    /// constant over the strategy's life. A driver keeps it where it outlives the process.
    fn holding_bytes(&self) -> u64 {
        0
    }

    /// How that memory stands.
    fn holding(&self) -> Holding {
        Holding::default()
    }

    /// Shows each held piece, in order of offset; no two overlap.
    fn held_pieces(&self, _show: &mut dyn FnMut(HeldPiece)) {}

    /// Somebody else has written out all that was held: forget it, without writing. The file below
    /// now measures `file_bytes`. Comes between calls only.
    fn drained(&mut self, _file_bytes: u64) {}

    /// The calls it wants to hear in the state it is in. Any other, had it been heard, would have been
    /// handed down unchanged, its outcome handed up unchanged, and nothing here would be different
    /// after it. Changes by `step` and `drained` only.
    fn interest(&self) -> Interest {
        Interest::EVERYTHING
    }

    /// The calls of which the same is so although it hears them. They come as far as the stack, need no
    /// step there, and several may be under way at a time.
    fn passes(&self) -> Interest {
        Interest::NOTHING
    }

    /// What a recorded run read of the file, for who goes by one ([`plan`]); before the first call.
    fn follow(&mut self, _lanes: Vec<plan::Lane>) {}

    /// A call that would be answered no sooner, but need not be made, if it waited for others to ask for
    /// the same: when it is to come back. Until then the caller is out of here, and other calls may come.
    /// Then [`Strategy::joined`] tells what came of it, or it is to be made as any other. A driver that has
    /// nobody who could ask meanwhile does not ask for a ticket.
    fn join(&mut self, _now: Nanos, _call: &Call) -> Option<Ticket> {
        None
    }

    /// What the call for which that ticket was taken has come to, if somebody has made it for all.
    fn joined(&self, _ticket: Ticket) -> Option<Outcome> {
        None
    }

    /// Work that no call waits for: any number of `Copy` from place to place of the staging memory, then the
    /// one `Perform` that is to be carried out meanwhile, out of that memory; nothing where there is none to
    /// do. Comes between calls only, and not while work of the stack is under way. Until it is told what
    /// became of the work, by [`Strategy::ended`] or, if it asks for that, by [`Event::Ended`], the bytes
    /// that go out stay as they are in its memory. A driver that does nothing meanwhile never asks.
    fn begin(&mut self, _out: &mut Vec<Action>) {}

    /// The work that was begun came to this. Comes between calls only.
    fn ended(&mut self, _outcome: Outcome) {}

    /// A call comes by that it hears and passes. Only who counts ([`Strategy::counts`]) is told.
    fn note(&mut self, _call: &Call) {}

    /// What it has counted, and the name of its place in the stack; always or never.
    fn counts(&self) -> Option<(&str, &Counts)> {
        None
    }

    /// Whether `now` matters; a driver may pass `Nanos::ZERO` to a stack in which nobody looks.
    fn reads_clock(&self) -> bool {
        false
    }

    /// Whether it answers reads from what it has read of the file before. That is wrong as soon as
    /// anybody else has changed the file, so a driver lets it serve only a file that no other process
    /// of the run has open, and drops what is kept (`drained`) when one opens it. Constant over the
    /// strategy's life.
    fn keeps_bytes(&self) -> bool {
        false
    }

    /// Bytes the program believes written that are not below yet.
    fn held_bytes(&self) -> u64 {
        0
    }

    /// The short way for seeks that are arithmetic and transfers that only change their place: what
    /// `step` would do about the call. Deciding otherwise is a defect; the conformance suite compares.
    fn short(&mut self, _handle: Handle, _call: &Call) -> Short {
        Short::Ask
    }

    /// The transfer that [`Strategy::short`] sent down has moved so many bytes. One that failed is not
    /// told of.
    fn moved(&mut self, _handle: Handle, _bytes: u64) {}

    /// The short way for the commonest case: a write that arrives and that `step` would answer at
    /// once with one copy of all its bytes into staging memory. Returns where they go, the write
    /// being answered with its full length; `None` changes nothing and means: ask `step`.
    /// Deciding otherwise than `step` would is a defect; the conformance suite compares the two.
    fn absorb(&mut self, _handle: Handle, _at: At, _length: u64) -> Option<u64> {
        None
    }

    /// The same for a read that `step` would answer at once with one copy of all its bytes out of
    /// staging memory: where they lie.
    fn serve(&mut self, _handle: Handle, _at: At, _length: u64) -> Option<u64> {
        None
    }
}

impl<S: Strategy + ?Sized> Strategy for Box<S> {
    fn staging_bytes(&self) -> u64 {
        (**self).staging_bytes()
    }

    fn holding_bytes(&self) -> u64 {
        (**self).holding_bytes()
    }

    fn holding(&self) -> Holding {
        (**self).holding()
    }

    fn held_pieces(&self, show: &mut dyn FnMut(HeldPiece)) {
        (**self).held_pieces(show);
    }

    fn drained(&mut self, file_bytes: u64) {
        (**self).drained(file_bytes);
    }

    fn interest(&self) -> Interest {
        (**self).interest()
    }

    fn passes(&self) -> Interest {
        (**self).passes()
    }

    fn follow(&mut self, lanes: Vec<plan::Lane>) {
        (**self).follow(lanes);
    }

    fn join(&mut self, now: Nanos, call: &Call) -> Option<Ticket> {
        (**self).join(now, call)
    }

    fn joined(&self, ticket: Ticket) -> Option<Outcome> {
        (**self).joined(ticket)
    }

    fn begin(&mut self, out: &mut Vec<Action>) {
        (**self).begin(out);
    }

    fn ended(&mut self, outcome: Outcome) {
        (**self).ended(outcome);
    }

    fn note(&mut self, call: &Call) {
        (**self).note(call);
    }

    fn counts(&self) -> Option<(&str, &Counts)> {
        (**self).counts()
    }

    fn reads_clock(&self) -> bool {
        (**self).reads_clock()
    }

    fn keeps_bytes(&self) -> bool {
        (**self).keeps_bytes()
    }

    fn held_bytes(&self) -> u64 {
        (**self).held_bytes()
    }

    fn short(&mut self, handle: Handle, call: &Call) -> Short {
        (**self).short(handle, call)
    }

    fn moved(&mut self, handle: Handle, bytes: u64) {
        (**self).moved(handle, bytes);
    }

    fn absorb(&mut self, handle: Handle, at: At, length: u64) -> Option<u64> {
        (**self).absorb(handle, at, length)
    }

    fn serve(&mut self, handle: Handle, at: At, length: u64) -> Option<u64> {
        (**self).serve(handle, at, length)
    }
}
