//! What this process wants done with its calls; decided once at start, 0 before.
//!
//! The word lies in a page that the kernel wipes in forked children (`MADV_WIPEONFORK`), so that one
//! look at it also tells what every hook must know before it touches anything: whether this is an
//! ordinary moment ([`Mode::USUAL`]) of the process the state in memory belongs to. Before start, in
//! a child nobody saw being made, and while somebody may run on borrowed memory, it is not, and
//! `moment` finds out which.

use crate::lending;
use iolab_processor::WholePages;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

struct Words {
    mode: AtomicU16,
    mark: AtomicU32,
}

/// A page of its own: it lies behind the data of the library's file, in anonymous memory.
static PAGE: WholePages<Words> =
    WholePages(Words { mode: AtomicU16::new(0), mark: AtomicU32::new(0) });

/// What a forked child is to do; the word itself is wiped in it.
static WANTED: AtomicU16 = AtomicU16::new(0);

/// A set of things to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mode(pub(crate) u16);

impl Mode {
    /// Nothing: pass every call through.
    pub(crate) const NOTHING: Mode = Mode(0);
    /// Record the program's calls.
    pub(crate) const RECORD: Mode = Mode(1);
    /// Record them in the stdio layer too.
    pub(crate) const RECORD_STDIO: Mode = Mode(2);
    /// Record what comes out below the strategies.
    pub(crate) const RECORD_BELOW: Mode = Mode(4);
    /// Let strategies answer.
    pub(crate) const STAGE: Mode = Mode(8);
    /// Record the program's calls in the POSIX layer.
    pub(crate) const RECORD_POSIX: Mode = Mode(16);
    /// Record the program's calls of MPI.
    pub(crate) const RECORD_MPI: Mode = Mode(64);
    /// Record the program's calls of HDF5.
    pub(crate) const RECORD_HDF5: Mode = Mode(128);
    /// Record the program's calls of NetCDF.
    pub(crate) const RECORD_NETCDF: Mode = Mode(256);
    /// An ordinary moment: started, no new process, nobody on borrowed memory.
    pub(crate) const USUAL: Mode = Mode(32);

    /// Whether calls of the POSIX layer are counted without being recorded.
    #[inline(always)]
    pub(crate) const fn counts_only(self) -> bool {
        self.0 & (Mode::RECORD_STDIO.0 | Mode::RECORD_POSIX.0) == Mode::RECORD_STDIO.0
    }

    /// Whether this is among them.
    #[inline(always)]
    pub(crate) const fn has(self, other: Mode) -> bool {
        self.0 & other.0 != 0
    }
}

/// The mode of this process.
#[inline(always)]
pub(crate) fn get() -> Mode {
    Mode(PAGE.0.mode.load(Ordering::Relaxed))
}

/// Adds to the mode.
pub(crate) fn add(mode: Mode) {
    WANTED.fetch_or(mode.0, Ordering::Relaxed);
    PAGE.0.mode.fetch_or(mode.0, Ordering::Release);
}

/// Takes something out of the mode, also for children.
pub(crate) fn remove(mode: Mode) {
    WANTED.fetch_and(!mode.0, Ordering::Relaxed);
    PAGE.0.mode.fetch_and(!mode.0, Ordering::Release);
}

/// The memory is lent to a child, once more by that count: no moment is an ordinary one.
pub(crate) fn lend(lent: &AtomicU32) {
    lending::lend(lent, &PAGE.0.mode, Mode::USUAL.0);
}

/// So many children do not run on the memory any more.
pub(crate) fn take_back(lent: &AtomicU32, count: u32) {
    lending::take_back(lent, count, &PAGE.0.mode, Mode::USUAL.0, !is_nothing_wanted());
}

/// Whether there is nothing to be done, in children neither.
pub(crate) fn is_nothing_wanted() -> bool {
    WANTED.load(Ordering::Relaxed) == 0
}

/// In a forked child: what its parent wanted.
pub(crate) fn restore() {
    PAGE.0.mode.store(WANTED.load(Ordering::Relaxed), Ordering::Release);
}

/// A word that is zero in a forked child until it is set there.
#[inline(always)]
pub(crate) fn mark() -> &'static AtomicU32 {
    &PAGE.0.mark
}

/// Address and size of the page, for the kernel.
pub(crate) fn page() -> (usize, usize) {
    (&raw const PAGE as usize, size_of_val(&PAGE))
}

/// From now on every call passes.
pub(crate) fn nothing_any_more() {
    WANTED.store(0, Ordering::Relaxed);
    PAGE.0.mode.store(0, Ordering::Release);
}
