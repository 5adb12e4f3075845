//! A write that meets no room in the fast place. First others' files come home; if that is no help, this one
//! goes on at home, where the descriptor is the only way to it and this the only thread. Else the program
//! hears that there is no room, and one line says why.

use super::super::caution;
use super::super::kernel;
use super::{ask, copy_behind, place};
use crate::call::{ABSENT, Call};
use iolab_segment::{Answer, FastPlace, Line, Question, Reply, StagedFile};
use std::ffi::c_int;
use std::sync::atomic::AtomicBool;

/// So often a write is tried again.
const TRIES: usize = 100;

fn is_full(result: isize) -> bool {
    [libc::ENOSPC, libc::EDQUOT].contains(&(-result as c_int))
}

/// A call that failed for want of room is made again when there may be some.
pub(super) fn vector(call: &Call, perform: impl Fn() -> isize) -> isize {
    let mut result = perform();
    let fd = if call.out_fd != ABSENT { call.out_fd } else { call.fd };
    for _ in 0..TRIES {
        if result >= 0 || !is_full(result) || fd == ABSENT || !make_room(fd as c_int) {
            break;
        }
        result = perform();
    }
    result
}

/// A write of `length` bytes came to that; `again` writes from so many bytes on.
#[cold]
#[inline(never)]
pub(crate) fn retried(
    fd: c_int,
    length: usize,
    result: isize,
    again: impl Fn(usize) -> isize,
) -> isize {
    let Some(place) = place() else { return result };
    // Where files are limited in size, the next one would be a signal that the program does not expect yet.
    let is_limited = result >= 0 && caution::limits_files();
    if is_limited || copy_behind(place, fd).is_none() {
        return result;
    }
    let (mut done, mut result) = (result.max(0) as usize, result);
    for _ in 0..TRIES {
        // A short write of a regular file is one that found no more room, or met a limit: the next one says.
        if result < 0 && (!is_full(result) || !make_room(fd)) {
            break;
        }
        if done >= length {
            break;
        }
        result = again(done);
        done += result.max(0) as usize;
    }
    if done > 0 { done as isize } else { result }
}

/// Whether it may be tried again.
fn make_room(fd: c_int) -> bool {
    let Some(place) = place() else { return false };
    let Some(file) = copy_behind(place, fd) else { return false };
    if is_replaced(place, fd, &file, Question::Full) {
        return true;
    }
    static SAID: AtomicBool = AtomicBool::new(false);
    const WHAT: &str = "the fast place is full, and a file there cannot go on at home while several \
                        processes, threads or descriptors use it: a write fails";
    caution::say_once(&SAID, WHAT);
    false
}

/// The file of a descriptor is about to be asked for a lease, which is about others who open it: its copy is also open to
/// who keeps it. It goes on at home if the descriptor is the only way to it.
pub(super) fn leave(fd: c_int) {
    if let Some(place) = place()
        && let Some(file) = copy_behind(place, fd)
    {
        is_replaced(place, fd, &file, Question::Leave);
    }
}

/// Whether the descriptor leads home now, or there may be room.
fn is_replaced(place: &FastPlace, fd: c_int, file: &StagedFile, question: Question) -> bool {
    let mask = kernel::block_signals();
    let line = Line::open(place);
    kernel::restore_signals(mask);
    let is_alone = c_int::from(crate::system::has_one_thread());
    let Ok(line) = line else { return false };
    match ask(&line, question, is_alone, file.home, Some(fd), &[]) {
        Ok(Reply { answer: Answer::Again, .. }) => true,
        Ok(Reply { answer: Answer::Replace, .. }) => {
            let is_closed_on_exec = kernel::closes_on_exec(fd);
            let mask = kernel::block_signals();
            let taken = line.take_as(fd, is_closed_on_exec);
            kernel::restore_signals(mask);
            taken.is_ok()
        }
        _ => false,
    }
}
