//! Collective accesses of the program's own files, carried out by a machine of the family `collective`.
//!
//! `IOLAB_COLLECTIVE` names the algorithm. Blocking collective calls on files of the MPI library come here:
//! the ranks tell each other which part of their views they want, each makes its machine, the same that is
//! simulated, and carries out its rounds (`rounds`): messages over a duplicate of the file's communicator
//! (`wire`), accesses by a descriptor of its own (`storage`). All else stays the library's: opening, views,
//! pointers, error handlers, independent and non-blocking calls, and every file or call that this cannot
//! do as the library would, which is told once for each file.
//!
//! A guest's rules hold. All ranks decide alike: whatever one rank finds in the way of a call, it tells
//! the others before anybody moves a byte, so nobody waits for a rank that went another way.

mod access;
mod file;
pub(crate) mod held;
mod rounds;
mod rows;
pub(crate) mod storage;
pub(crate) mod told;
pub(crate) mod view;
mod wire;

use crate::call::Call;
use crate::family::Family;
use crate::pfs::numbers::{Class, Numbers};
use crate::pfs::trouble::say;
use crate::recorder::Times;
use iolab_layer::inside::Inside;
use iolab_policy::collective::{CollectiveKind, CollectiveSelection, catalog};
use iolab_vocab::Direction;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

pub(crate) use rows::part;

/// Where a call begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// At the argument after the file.
    Explicit,
    /// At this process's pointer.
    Own,
}

/// What a function of MPI has to do with collective accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Init,
    Open,
    Close,
    SetView,
    SetInfo,
    SetAtomicity,
    /// A blocking collective access.
    Access(Direction, Place),
    /// The first half of one, and which.
    Begin(Direction, Place, &'static str),
    /// The second half.
    End(&'static str),
    /// A collective access that stays the library's, and why.
    Theirs(Sort),
    /// Another call that all ranks make, each of which may wait for the others there.
    Joint,
    /// A blocking access of this rank alone.
    Alone(Direction, Place),
    /// One that may go on when it has returned.
    AloneBegun(Direction, Place),
    /// A call of this rank alone that looks at the file, or accesses bytes of it by a pointer that others move.
    Other,
    /// `MPI_File_seek`, which may look at the end of the file.
    Seek,
    Finalize,
}

/// Collective accesses that stay the library's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// Their place is one that other processes move.
    Ordered,
    /// They go on while the program computes.
    NonBlocking,
}

impl Sort {
    /// Why they do.
    fn why(self) -> &'static str {
        match self {
            Sort::Ordered => "its ordered calls go by the shared pointer",
            Sort::NonBlocking => "its calls are non-blocking",
        }
    }
}

impl Part {
    /// Whether it has to do with collective accesses.
    fn is_collective(self) -> bool {
        use Part::{Alone, AloneBegun, Finalize, Init, Joint, Other, Seek, SetInfo};
        let is_alone = matches!(self, Alone(..) | AloneBegun(..) | Other | Seek);
        !is_alone && !matches!(self, Init | SetInfo | Joint | Finalize)
    }

    /// Whether all ranks make the call, each of which may wait for the others there.
    pub(crate) fn is_joint(self) -> bool {
        use Part::{Access, Begin, Close, Joint, SetAtomicity, SetInfo, SetView, Theirs};
        matches!(
            self,
            Close
                | SetView
                | SetInfo
                | SetAtomicity
                | Access(..)
                | Begin(..)
                | Joint
                | Theirs(Sort::Ordered)
        )
    }
}

thread_local! {
    /// Where this thread is in a call on a file: what the library calls inside of it is its own.
    static FRAME: Cell<usize> = const { Cell::new(0) };
}

/// The algorithm of this run, if one was chosen.
fn selection() -> Option<&'static CollectiveSelection> {
    static CHOSEN: OnceLock<Option<CollectiveSelection>> = OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| {
        let name = std::env::var("IOLAB_COLLECTIVE").ok()?;
        let found = catalog::find(CollectiveKind::File, name.trim());
        let row = found.inspect_err(|why| say(&format!("IOLAB_COLLECTIVE: {why}"))).ok()?;
        let mut selection = CollectiveSelection::default();
        selection.set(row);
        Some(selection)
    });
    chosen.as_ref()
}

/// Makes a call of MPI, by `library` or in its place; the answer.
pub(crate) fn around(
    part: Option<Part>,
    words: &[usize],
    has_large_counts: bool,
    library: &mut dyn FnMut() -> i32,
) -> i32 {
    let Some(part) = part.filter(|part| part.is_collective()) else { return library() };
    let (Some(selection), Some(_inside)) = (selection(), Inside::enter(&FRAME)) else {
        return library();
    };
    let mut words = words.to_vec();
    let (times, scratch) = (Times { start: 0, end: 0 }, [0; 8]);
    let (family, noted) = (Family::here(), Vec::new());
    let call = Call { arguments: &mut words, has_large_counts, family, times, noted, scratch };
    match part {
        Part::Open => {
            let answer = library();
            guarded(|| file::opened(&call, answer)).unwrap_or_default();
            answer
        }
        Part::Close => {
            guarded(|| file::closing(&call)).unwrap_or_default();
            library()
        }
        Part::SetView => {
            let answer = library();
            guarded(|| view::was_set(&call, answer)).unwrap_or_default();
            answer
        }
        Part::SetAtomicity => {
            let answer = library();
            guarded(|| view::atomicity_was_set(&call, answer)).unwrap_or_default();
            answer
        }
        Part::Theirs(sort) => {
            guarded(|| told::is_theirs(&call, sort.why())).unwrap_or_default();
            library()
        }
        Part::Access(direction, place) => {
            let done = guarded(|| access::carried_out(selection, &call, direction, place));
            answer_of(done).unwrap_or_else(library)
        }
        Part::Begin(direction, place, kind) => {
            let done = guarded(|| access::begun(selection, &call, direction, place, kind));
            answer_of(done).unwrap_or_else(library)
        }
        Part::End(kind) => {
            answer_of(guarded(|| access::ended(&call, kind))).unwrap_or_else(library)
        }
        _ => library(),
    }
}

/// A defect of ours is an error of the call, never the end of the program; none: the call is the library's.
pub(crate) fn answer_of(done: Result<Option<i32>, Defect>) -> Option<i32> {
    done.unwrap_or_else(|Defect| Some(Numbers::here().code(Class::Other)))
}

/// Something of ours that cannot be has happened.
pub(crate) struct Defect;

pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, Defect> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| {
        say("a defect of iolab's in a call on a file");
        Defect
    })
}
