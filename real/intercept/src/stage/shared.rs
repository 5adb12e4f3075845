//! This process among the others of its run: which of its descriptors the run knows of, and whose
//! held bytes have to be written out before this process looks.
//!
//! Every regular file this process opens, inherits or is given is told of (`iolab_segment`), staged
//! or not, by whatever name: another process then knows that it must not hold bytes of it. Without
//! a segment nothing is ever held back.

use super::kernel;
use crate::thread;
use iolab_segment::{AttachError, Entry, Joined, Run, Undrained};
use std::ffi::{CString, c_int};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32};

const DESCRIPTORS: usize = 65_536;

static RUN: AtomicPtr<Run> = AtomicPtr::new(null_mut());
/// Entry of each descriptor's file, plus one; with `UNSEEN`.
static TOLD: [AtomicU32; DESCRIPTORS] = [const { AtomicU32::new(0) }; DESCRIPTORS];
/// Descriptors from here on were never told of.
static TOLD_END: AtomicU32 = AtomicU32::new(0);
/// In `TOLD`: calls on the descriptor are not seen.
const UNSEEN: u32 = 1 << 31;
static ANY_UNSEEN: AtomicBool = AtomicBool::new(false);
static COMPLAINED: AtomicBool = AtomicBool::new(false);

/// The run, if this process is part of one.
#[inline(always)]
pub(super) fn run() -> Option<&'static Run> {
    // SAFETY: set once, never freed.
    unsafe { RUN.load(Relaxed).as_ref() }
}

/// Finds the segment of the run.
pub(super) fn attach(path: &[u8]) -> Result<(), AttachError> {
    let path = CString::new(path).map_err(|_| AttachError::Version)?;
    let run = Run::attach(&path)?;
    run.follow_earlier_program();
    adopt(run);
    Ok(())
}

/// From now on this is the run.
pub(super) fn adopt(run: Run) {
    RUN.store(Box::leak(Box::new(run)), Release);
}

/// Work on the tables of the run. A signal handler that interrupted its own thread there must not
/// wait for it: it goes without (`None`), and since it then knows more than it tells, the run holds
/// nothing from then on.
fn section<T>(run: &'static Run, work: impl FnOnce(&'static Run) -> T) -> Option<T> {
    let inside = &thread::block().stage[0];
    if inside.load(Relaxed) != 0 {
        run.give_up_holding();
        return None;
    }
    inside.store(1, Relaxed);
    let done = work(run);
    inside.store(0, Relaxed);
    Some(done)
}

/// As [`told`], of an open that has cut the file to nothing.
pub(super) fn told_cut(
    fd: c_int,
    status: &libc::stat,
    wants_to_own: bool,
) -> Option<Joined<'static>> {
    if let Some(run) = run()
        && let Some(entry) = run.find(status.st_dev, status.st_ino)
        && run.is_owned_elsewhere(entry)
    {
        unsignalled(|| run.forget_cut(entry));
    }
    told(fd, status, wants_to_own)
}

/// A descriptor of a regular file came to be. The answer is its entry, and whether bytes of it may
/// be held back. What other processes hold of it is out when this returns.
pub(super) fn told(fd: c_int, status: &libc::stat, wants_to_own: bool) -> Option<Joined<'static>> {
    let run = run()?;
    let Some(word) = TOLD.get(fd as usize) else {
        run.give_up_holding();
        return None;
    };
    let joined = section(run, |run| {
        part_inside(run, word.swap(0, Relaxed));
        run.join(status.st_dev, status.st_ino, wants_to_own)
    });
    let Some(joined) = joined.flatten() else {
        // It cannot be told of, but what others hold has to be seen.
        disturb(status);
        return None;
    };
    word.store(run.index_of(joined.entry) + 1, Relaxed);
    TOLD_END.fetch_max(fd as u32 + 1, Relaxed);
    look_at(run, joined.entry);
    Some(joined)
}

/// A descriptor now shares the description of another one.
pub(super) fn shared(old: c_int, new: c_int) {
    let (Some(run), Some(from), Some(to)) = (run(), TOLD.get(old as usize), TOLD.get(new as usize))
    else {
        return;
    };
    let index = from.load(Relaxed);
    if let Some(entry) = entry_of(run, index) {
        section(run, |run| {
            part_inside(run, to.swap(0, Relaxed));
            run.share(entry);
        });
        to.store(index, Relaxed);
        TOLD_END.fetch_max(new as u32 + 1, Relaxed);
    }
}

/// Whether the run knows of a descriptor.
#[inline]
pub(super) fn is_told(fd: c_int) -> bool {
    TOLD.get(fd as usize).is_some_and(|word| word.load(Relaxed) != 0)
}

/// A descriptor goes away.
#[inline]
pub(super) fn parted(fd: c_int) {
    if let Some(word) = TOLD.get(fd as usize)
        && word.load(Relaxed) != 0
        && let Some(run) = run()
    {
        section(run, |run| part_inside(run, word.swap(0, Relaxed)));
    }
}

/// Descriptors of a range go away.
pub(super) fn parted_range(first: u32, last: u32) {
    let end = TOLD_END.load(Relaxed).min(last.saturating_add(1));
    (first..end).for_each(|fd| parted(fd as c_int));
}

fn part_inside(run: &'static Run, word: u32) {
    if let Some(entry) = entry_of(run, word) {
        run.part(entry);
    }
}

fn entry_of(run: &'static Run, word: u32) -> Option<&'static Entry> {
    (word & !UNSEEN).checked_sub(1).and_then(|index| run.entry(index))
}

/// A descriptor that was told of goes past the library.
pub(super) fn note_unseen(fd: c_int) {
    if let Some(word) = TOLD.get(fd as usize).filter(|word| word.load(Relaxed) != 0) {
        ANY_UNSEEN.store(true, Relaxed);
        word.fetch_or(UNSEEN, Relaxed);
    }
}

/// Whether a descriptor of this process leads to the file past the library.
pub(super) fn is_unseen(entry: &Entry) -> bool {
    let Some(run) = run().filter(|_| ANY_UNSEEN.load(Relaxed)) else { return false };
    let word = (run.index_of(entry) + 1) | UNSEEN;
    let end = TOLD_END.load(Relaxed) as usize;
    TOLD[..end].iter().any(|it| it.load(Relaxed) == word)
}

/// The file of a descriptor was mapped: its bytes can be looked at from now on without a call.
pub(super) fn mapped(fd: c_int) {
    let Some(run) = run() else { return };
    let word = TOLD.get(fd as usize).map_or(0, |word| word.load(Relaxed));
    if let Some(entry) = entry_of(run, word) {
        section(run, |run| run.map(entry, true));
        look_at(run, entry);
    }
}

/// Whether a descriptor's file may be looked at by others at any time, so that nothing of it may be
/// held.
pub(super) fn is_shared(entry: &Entry) -> bool {
    run().is_none_or(|run| run.is_shared(entry))
}

/// Whether a file opened now may be held: the run has a segment, room to tell of it, and somebody
/// to write out what a process that is killed leaves.
pub(super) fn may_hold() -> bool {
    run().is_some_and(|run| !run.must_pass() && run.has_launcher())
}

/// Whether nothing may be held any more.
pub(super) fn must_pass() -> bool {
    run().is_none_or(Run::must_pass)
}

/// The owner of an entry gives it up.
pub(super) fn disown(entry: &'static Entry) {
    if let Some(run) = run() {
        run.note_held(entry, false);
        section(run, |run| run.disown(entry));
    }
}

/// A file is about to be looked at: what another process holds of it goes out first.
pub(super) fn look(status: &libc::stat) {
    if let Some(run) = run().filter(|run| run.is_any_holding())
        && let Some(entry) = run.find(status.st_dev, status.st_ino)
    {
        look_at(run, entry);
    }
}

/// Another process that may hold bytes of a file, now or later, is to look at it anew.
#[cold]
pub(super) fn disturb(status: &libc::stat) {
    if let Some(run) = run()
        && let Some(entry) = run.find(status.st_dev, status.st_ino)
    {
        look_at(run, entry);
    }
}

/// Does what changes a file without a descriptor of it. Meanwhile this process counts as one that
/// has it open, so no other may hold bytes of it; who did before looks at the file anew.
pub(super) fn while_used<T>(status: &libc::stat, work: impl FnOnce() -> T) -> T {
    let regular = status.st_mode & libc::S_IFMT == libc::S_IFREG;
    let Some(run) = run().filter(|_| regular) else { return work() };
    let joined = section(run, |run| run.join(status.st_dev, status.st_ino, false)).flatten();
    disturb(status);
    let done = work();
    if let Some(joined) = joined {
        section(run, |run| run.part(joined.entry));
    }
    done
}

/// A signal handler that looked while its own thread is at it would wait for itself.
fn unsignalled<T>(mut work: impl FnMut() -> T) -> T {
    let mask = kernel::block_signals();
    let mut done = None;
    crate::roomy::with_room(&mut || done = Some(work()));
    kernel::restore_signals(mask);
    done.unwrap_or_else(work)
}

fn look_at(run: &'static Run, entry: &'static Entry) {
    if run.is_owned_elsewhere(entry)
        && let Err(failure) = unsignalled(|| run.disturb(entry))
    {
        complain(&failure);
    }
}

/// All files are about to be looked at.
pub(super) fn look_at_all() {
    if let Some(run) = run().filter(|run| run.is_any_holding()) {
        let failures = unsignalled(|| run.disturb_all());
        failures.iter().for_each(complain);
    }
}

/// From now on this process does not see all it does: what others hold goes out, and nothing is
/// held in the run any more.
#[cold]
pub(super) fn go_blind() {
    if let Some(run) = run() {
        run.give_up_holding();
        look_at_all();
    }
}

/// Whether any process of the run holds anything back.
#[inline(always)]
pub(super) fn is_any_holding() -> bool {
    run().is_some_and(Run::is_any_holding)
}

/// Names are about to change; nobody begins to hold bytes until they have.
pub(super) fn begin_move() {
    if let Some(run) = run() {
        run.begin_move();
    }
}

/// Names have changed: where files were last seen is no longer sure.
pub(super) fn end_move() {
    if let Some(run) = run() {
        run.end_move();
    }
}

/// Whether names are being changed in the run.
pub(super) fn is_moving() -> bool {
    run().is_some_and(Run::is_moving)
}

/// This process has gone to another root or another space of mounts: what it opens from now on
/// others would not find by its name.
pub(super) fn moved() {
    if let Some(run) = run() {
        run.look_around();
    }
}

/// One line for the first thing that another process holds and cannot be had.
#[cold]
fn complain(failure: &Undrained) {
    if COMPLAINED.swap(true, Relaxed) {
        return;
    }
    let path = match failure {
        Undrained::Busy => &b"(its process does not let go)"[..],
        Undrained::Unwritten(unwritten) => &unwritten.path,
    };
    kernel::tell(&[b"bytes that another process holds back could not be written out: ", path]);
}

/// In a forked child: what it inherited it has open as well.
pub(super) fn after_fork() {
    let Some(run) = run() else { return };
    thread::block().stage[0].store(0, Relaxed);
    run.forget_slot();
    run.listen();
    for fd in 0..TOLD_END.load(Relaxed) as c_int {
        let word = TOLD[fd as usize].swap(0, Acquire);
        if word != 0
            && let Some(status) = kernel::status(fd)
        {
            told(fd, &status, false);
            if word & UNSEEN != 0 {
                note_unseen(fd);
            }
        }
    }
    crate::mapping::for_each(|device, inode| {
        let joined = section(run, |run| {
            let joined = run.join(device, inode, false)?;
            run.map(joined.entry, true);
            run.part(joined.entry);
            Some(joined)
        });
        match joined.flatten() {
            Some(joined) => look_at(run, joined.entry),
            None => run.give_up_holding(),
        }
    });
}
