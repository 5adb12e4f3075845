//! Where a benchmark sends its operations: nowhere, POSIX, io_uring, POSIX aio, MPI-IO, the parallel file
//! system.
//!
//! A back end holds one open file and the memory of its rank (an [`Arena`] that never moves, so
//! that kernels and libraries may keep pointers into it while a transfer is under way). It is
//! given an [`Access`] and carries it out, blocking (`run`) or not (`start`, `poll`, `finish`).
//! It tells honestly what it cannot do; the conformance suite holds every member to it.

mod catalog;
mod cruel;
mod direct;
mod failure;
mod mpiio;
mod null;
mod paced;
pub mod pfs;
mod posix;
mod queued;
mod threaded;

pub use catalog::{Catalog, Method, Needs};
pub use cruel::{Cruel, Fault, Lies};
pub use failure::{IoError, Verb};
pub use iolab_host::arena::Arena;
pub use iolab_vocab::Direction;
pub use mpiio::COLON;
pub use paced::Paced;
pub use queued::uring_works;
pub use threaded::Threaded;

use iolab_comm::Comm;
use iolab_pattern::{Access, Strided};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Which file it is, whatever lies at its path later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The device; `None` where another host may number it otherwise.
    pub device: Option<u64>,
    /// The inode.
    pub inode: u64,
}

impl Identity {
    /// Of the file these facts are about.
    pub fn of(facts: &std::fs::Metadata) -> Identity {
        Identity { device: Some(facts.dev()), inode: facts.ino() }
    }

    /// Whether these facts are about this file.
    pub fn is(self, facts: &std::fs::Metadata) -> bool {
        facts.ino() == self.inode && self.device.is_none_or(|device| device == facts.dev())
    }
}

/// Which file of the parallel file system it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The directory of the instance.
    pub directory: PathBuf,
    /// Its number there, where the run made it: nothing else is opened, cut or written.
    pub inode: Option<u64>,
}

/// How a file is to be opened.
#[derive(Clone, Debug)]
pub struct Opening {
    /// Where it lies.
    pub path: PathBuf,
    /// For writing as well as reading.
    pub write: bool,
    /// Cut to nothing first.
    pub truncate: bool,
    /// Made when it is not there. A benchmark makes its files beforehand, so that it knows them.
    pub create: bool,
    /// Where something is, making it is an error.
    pub exclusive: bool,
    /// Which file must lie there, where the run made it: nothing else is opened, cut or written.
    pub identity: Option<Identity>,
    /// The file in the parallel file system that is meant instead of the one at the path.
    pub held: Option<Held>,
    /// Around the page cache (O_DIRECT).
    pub direct: bool,
    /// Bytes before the first byte of the pattern.
    pub base: u64,
    /// Hints for the library, passed through.
    pub hints: Vec<(String, String)>,
    /// Whether all ranks open it together.
    pub shared: bool,
    /// The whole pattern of this rank as one view, where the method uses views.
    pub view: Option<Strided>,
    /// Some operation of some rank is not contiguous; the same on all ranks.
    pub noncontiguous: bool,
}

/// What an operation moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes, all that were asked for.
    pub bytes: u64,
    /// Transfers the system cut short and that had to be continued.
    pub short: u32,
}

/// Tag and result of an operation that was started and ran at once, until it is fetched.
pub type Ran = Option<(u64, Moved)>;

/// One open file and the memory of one rank.
pub trait Backend: Send {
    /// The memory transfers go from and to. Only while nothing is under way.
    fn arena(&mut self) -> &mut Arena;

    /// The bytes of the memory while operations are under way: the caller changes nothing that one of
    /// them uses.
    fn spare(&mut self) -> &mut [u8] {
        self.arena()
    }

    /// Opens the file; all ranks together if it is shared.
    fn open(&mut self, opening: &Opening, comm: &dyn Comm) -> Result<(), IoError>;

    /// Carries out one operation with the buffer that starts at `at` in the arena, and waits.
    fn run(&mut self, way: Direction, access: &Access, at: usize) -> Result<Moved, IoError>;

    /// Where the result of an operation that ran at once waits to be fetched. Whoever has such a
    /// place needs no `start` and `finish` of its own.
    fn ran(&mut self) -> Option<&mut Ran> {
        None
    }

    /// Starts an operation and returns. At most `depth` may be under way.
    ///
    /// Without a way to be non-blocking this runs it; `finish` then has its result.
    fn start(
        &mut self,
        way: Direction,
        access: &Access,
        at: usize,
        tag: u64,
    ) -> Result<(), IoError> {
        let moved = self.run(way, access, at)?;
        let place = self.ran().ok_or_else(|| IoError::Cannot("nowhere to keep it".to_owned()))?;
        *place = Some((tag, moved));
        Ok(())
    }

    /// Gives the library a chance to make progress; whether `finish` would give something at once.
    fn poll(&mut self) -> Result<bool, IoError> {
        Ok(true)
    }

    /// Waits for one started operation and gives its tag.
    fn finish(&mut self) -> Result<(u64, Moved), IoError> {
        let ran = self.ran().and_then(Option::take);
        ran.ok_or_else(|| IoError::Cannot("nothing was started".to_owned()))
    }

    /// When the call that was finished last began and returned (CLOCK_MONOTONIC), where the way of
    /// being non-blocking knows it.
    fn call(&self) -> Option<(u64, u64)> {
        None
    }

    /// Makes the content of the plain file that of its own, where plain calls do not reach that; all ranks
    /// together if it is shared.
    fn take_in(&mut self, _opening: &Opening, _comm: &dyn Comm) -> Result<(), IoError> {
        Ok(())
    }

    /// Makes the content of its own file that of the plain one, where plain calls do not reach that; all
    /// ranks together if it is shared.
    fn give_out(&mut self, _opening: &Opening, _comm: &dyn Comm) -> Result<(), IoError> {
        Ok(())
    }

    /// Brings what was written to the device.
    fn sync(&mut self) -> Result<(), IoError>;

    /// Closes the file; all ranks together if it is shared.
    fn close(&mut self) -> Result<(), IoError>;
}
