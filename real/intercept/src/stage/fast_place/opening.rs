//! Opens: the real file is opened as the program wrote it, then the copy takes its place.

use super::super::{caution, kernel, settings, tally};
use super::{CHOICE, ask, behind_path, busy, hold, inode, place};
use crate::call::Call;
use iolab_segment::{Answer, FastPlace, Line, Question, Reply, StagedFile};
use std::ffi::c_int;
use std::mem::ManuallyDrop;
use std::sync::atomic::AtomicBool;

/// Opens that want the file as it is.
const RAW: c_int = libc::O_DSYNC | libc::O_SYNC | libc::O_DIRECT;

/// A staged file does not come home before the open is over. A thread that is cancelled in its open leaves
/// the line open, and nothing to clean up.
pub(crate) struct Held {
    line: Option<ManuallyDrop<Line>>,
    /// How many files had come home or gone by then.
    moves: Option<u64>,
}

impl Held {
    /// Nothing is.
    pub(crate) const NOTHING: Held = Held { line: None, moves: None };
}

/// A file is about to be opened.
pub(crate) fn before_open(call: &Call) -> Held {
    let moves = place().map(FastPlace::moves);
    let line = busy().and_then(|place| {
        let file = behind_path(place, call.directory, call.path).filter(|file| file.is_home)?;
        hold(place, file.home, 0)
    });
    Held { line: line.map(ManuallyDrop::new), moves }
}

/// What an open came to.
pub(crate) enum Opening {
    /// The real file stays.
    Passed,
    /// The program gets the copy by this number, which has this status.
    Staged(c_int, libc::stat),
    /// The copy cannot be had: the open fails with this error number, and its descriptor is closed.
    Failed(c_int),
    /// The file has lost its name since, and may have had a copy that nobody needed any more: the descriptor is closed,
    /// and whoever has the name now is to be opened.
    Gone,
}

/// A file was opened; `name` is its absolute path if strategies may choose it.
pub(crate) fn after_open(
    Held { line, moves }: Held,
    fd: c_int,
    flags: c_int,
    name: Option<&[u8]>,
    status: Option<&libc::stat>,
) -> Opening {
    let line = line.map(ManuallyDrop::into_inner);
    let (Some(place), Some(status)) = (place(), status) else { return Opening::Passed };
    if fd < 0 || status.st_mode & libc::S_IFMT != libc::S_IFREG || flags & libc::O_PATH != 0 {
        return Opening::Passed;
    }
    let found = place.find(inode(status));
    if found.is_some_and(|file| !file.is_home) {
        // By a link to a descriptor, as `/dev/stdout`.
        return Opening::Staged(fd, *status);
    }
    let name = match found {
        None => name.filter(|name| is_chosen(fd, flags, name, status)),
        Some(_) => None,
    };
    let opening = match (found, name) {
        (None, None) => Opening::Passed,
        _ => replaced(place, line, fd, flags, name, status, found),
    };
    match opening {
        Opening::Passed if lost_copy(place, moves, fd, flags) => {
            kernel::close(fd);
            Opening::Gone
        }
        opening => opening,
    }
}

/// Whether a file that was opened by a name may have been in the fast place, and have gone with its last name before it
/// could be asked for: of what it had, the real file has nothing.
fn lost_copy(place: &FastPlace, moves: Option<u64>, fd: c_int, flags: c_int) -> bool {
    const MADE_HERE: c_int = libc::O_CREAT | libc::O_EXCL;
    moves.is_some_and(|moves| moves != place.moves())
        && flags & MADE_HERE != MADE_HERE
        && flags & libc::O_TMPFILE != libc::O_TMPFILE
        && kernel::status(fd).is_some_and(|status| status.st_nlink == 0)
}

fn replaced(
    place: &FastPlace,
    line: Option<Line>,
    fd: c_int,
    flags: c_int,
    name: Option<&[u8]>,
    status: &libc::stat,
    found: Option<StagedFile>,
) -> Opening {
    let mask = kernel::block_signals();
    let line = line.map_or_else(|| Line::open(place), Ok);
    kernel::restore_signals(mask);
    let question = if name.is_some() { Question::Begin } else { Question::Join };
    let name = name.unwrap_or_default();
    let answered = line.as_ref().map_err(|errno| *errno).and_then(|line| {
        let reply = ask(line, question, flags, inode(status), Some(fd), name)?;
        Ok((line, reply))
    });
    match answered {
        Ok((line, Reply { answer: Answer::Replace, .. })) => put(line, fd, flags),
        Ok((_, Reply { answer: Answer::Pass, .. })) => Opening::Passed,
        // It could not be begun.
        _ if found.is_none() => {
            static SAID: AtomicBool = AtomicBool::new(false);
            caution::say_once(&SAID, "who keeps the fast place does not answer; files pass");
            Opening::Passed
        }
        Ok((_, reply)) if reply.errno != 0 => failed(fd, reply.errno),
        Err(errno @ (libc::EMFILE | libc::ENFILE)) => failed(fd, errno),
        Ok(_) | Err(_) => {
            static SAID: AtomicBool = AtomicBool::new(false);
            const WHAT: &str =
                "who keeps the fast place does not answer; files that lie there cannot be opened";
            caution::say_once(&SAID, WHAT);
            failed(fd, libc::EIO)
        }
    }
}

/// An open fails after all, though the kernel made a descriptor, which the program does not know of.
fn failed(fd: c_int, errno: c_int) -> Opening {
    kernel::close(fd);
    Opening::Failed(errno)
}

/// The copy takes the place of the real file. It may have another number: between closing the one and being given
/// the other, other threads open files, too.
fn put(line: &Line, fd: c_int, flags: c_int) -> Opening {
    let mask = kernel::block_signals();
    let taken = line.take(fd, flags & libc::O_CLOEXEC != 0);
    kernel::restore_signals(mask);
    match taken.map(|taken| (taken, kernel::status(taken))) {
        Ok((taken, Some(status))) => {
            tally::serves(&status);
            Opening::Staged(taken, status)
        }
        Ok((taken, None)) => failed(taken, libc::EIO),
        Err(errno) => Opening::Failed(errno),
    }
}

/// Whether a file that is new is one of those that begin in the fast place.
fn is_chosen(fd: c_int, flags: c_int, name: &[u8], status: &libc::stat) -> bool {
    let Some(spec) = CHOICE.get() else { return false };
    let is_new = status.st_size == 0 && flags & libc::O_ACCMODE != libc::O_RDONLY;
    if !is_new || flags & RAW != 0 || flags & libc::O_TMPFILE == libc::O_TMPFILE {
        return false;
    }
    let mut buffer = crate::path::Buffer::new();
    let canonical = std::str::from_utf8(crate::path::of_descriptor(fd, &mut buffer)).ok();
    let names = [std::str::from_utf8(name).ok(), canonical.filter(|name| !name.is_empty())];
    settings::is_for(spec, &names)
}
