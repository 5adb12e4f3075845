//! What is asked about a staged file: identity, mode, owner and links are the real file's; size, blocks and
//! times are the copy's, whichever of both was asked about.
//!
//! Between the system's answer about the real file and the look at its copy, the file may come home: then
//! the question is put once more.

use super::super::caution;
use super::super::kernel::{self, system_call};
use super::{copy_behind, inode, place};
use crate::call::{ABSENT, Call};
use iolab_segment::{FastPlace, StagedFile};
use iolab_trace::Function;
use std::ffi::{CStr, c_int};
use std::mem::MaybeUninit;
use std::sync::atomic::AtomicBool;

/// So often a file comes home between two looks, at most.
const LOOKS: usize = 100;

/// What became of an answer.
enum Seen {
    /// It is right.
    Right,
    /// The file came home meanwhile.
    Old,
}

/// A call of the status family.
pub(super) fn answered(call: &Call, perform: impl Fn() -> isize) -> isize {
    let Some(place) = place() else { return perform() };
    if call.function == Function::FGETXATTR {
        return attribute(place, call).unwrap_or_else(perform);
    }
    let Some(at) = argument(call) else { return perform() };
    let mut result = 0;
    for _ in 0..LOOKS {
        let before = place.moves();
        result = perform();
        if result != 0 || (!place.is_any() && place.moves() == before) {
            return result;
        }
        // SAFETY: the system has just filled what the program gave it.
        let seen = unsafe {
            match call.function {
                Function::STATX => mended_statx(place, &mut *(at as *mut libc::statx)),
                _ => mended(place, &mut *(at as *mut libc::stat)),
            }
        };
        match seen {
            Some(Seen::Right) => return result,
            None if place.moves() == before => return result,
            Some(Seen::Old) | None => {}
        }
    }
    result
}

/// Where the answer goes.
fn argument(call: &Call) -> Option<usize> {
    let index = match call.function {
        Function::FSTAT | Function::STAT | Function::LSTAT => 1,
        Function::FSTATAT => 2,
        Function::STATX => return Some(call.raw[4]),
        _ => return None,
    };
    Some(call.raw[index + usize::from(call.version != ABSENT)])
}

/// `None` where the file is no staged one.
fn mended(place: &FastPlace, status: &mut libc::stat) -> Option<Seen> {
    let file = place.find(inode(status))?;
    if file.is_home {
        let Some(copy) = status_of(place.copy_of(file.home).c_text()) else {
            return Some(Seen::Old);
        };
        overlay(status, &copy);
    } else if let Some(home) = home(place, &file) {
        let copy = *status;
        *status = home;
        overlay(status, &copy);
    }
    Some(Seen::Right)
}

fn status_of(path: &CStr) -> Option<libc::stat> {
    kernel::status_at(libc::AT_FDCWD, path.as_ptr(), 0)
}

/// The status of the real file, as long as it is the one.
fn home(place: &FastPlace, file: &StagedFile) -> Option<libc::stat> {
    let status = status_of(place.home_of(file).c_text());
    let status = status.filter(|status| inode(status) == file.home);
    if status.is_none() {
        tell_unreachable();
    }
    status
}

fn tell_unreachable() {
    static SAID: AtomicBool = AtomicBool::new(false);
    const WHAT: &str = "a file's status is that of its copy in the fast place: /proc of the run's \
                        launcher cannot be read from here";
    caution::say_once(&SAID, WHAT);
}

fn overlay(status: &mut libc::stat, copy: &libc::stat) {
    (status.st_size, status.st_blocks) = (copy.st_size, copy.st_blocks);
    (status.st_atime, status.st_atime_nsec) = (copy.st_atime, copy.st_atime_nsec);
    (status.st_mtime, status.st_mtime_nsec) = (copy.st_mtime, copy.st_mtime_nsec);
    // The real file's moves with each byte that comes home.
    (status.st_ctime, status.st_ctime_nsec) = (copy.st_ctime, copy.st_ctime_nsec);
}

fn mended_statx(place: &FastPlace, status: &mut libc::statx) -> Option<Seen> {
    let device = libc::makedev(status.stx_dev_major, status.stx_dev_minor);
    let file = place.find((device, status.stx_ino))?;
    if file.is_home {
        let Some(copy) = statx_of(place.copy_of(file.home).c_text(), status.stx_mask) else {
            return Some(Seen::Old);
        };
        overlay_statx(status, &copy);
        return Some(Seen::Right);
    }
    let home = statx_of(place.home_of(&file).c_text(), status.stx_mask);
    match home.filter(|home| home.stx_ino == file.home.1) {
        Some(home) => {
            let copy = *status;
            *status = home;
            overlay_statx(status, &copy);
        }
        None => tell_unreachable(),
    }
    Some(Seen::Right)
}

fn statx_of(path: &CStr, mask: u32) -> Option<libc::statx> {
    let mut status = MaybeUninit::<libc::statx>::zeroed();
    let mask = mask | libc::STATX_BASIC_STATS;
    // SAFETY: a terminated path; any bytes are such a structure, and the system fills it.
    unsafe {
        let (path, at) = (path.as_ptr(), status.as_mut_ptr());
        let asked = system_call!(SYS_statx, libc::AT_FDCWD, path, 0, mask, at);
        (asked == 0).then(|| status.assume_init())
    }
}

fn overlay_statx(status: &mut libc::statx, copy: &libc::statx) {
    (status.stx_size, status.stx_blocks) = (copy.stx_size, copy.stx_blocks);
    (status.stx_atime, status.stx_mtime) = (copy.stx_atime, copy.stx_mtime);
    status.stx_ctime = copy.stx_ctime;
}

/// An extended attribute, by a descriptor of the copy.
fn attribute(place: &FastPlace, call: &Call) -> Option<isize> {
    let file = place.is_any().then(|| copy_behind(place, call.fd as c_int))??;
    let [_, name, value, size, ..] = call.raw;
    let home = place.home_of(&file);
    // SAFETY: a terminated path, and the program's own arguments.
    Some(unsafe { system_call!(SYS_getxattr, home.c_text().as_ptr(), name, value, size) })
}

/// The names of extended attributes, if the descriptor is of a copy.
pub(crate) fn attribute_names(fd: c_int, list: usize, size: usize) -> Option<isize> {
    let place = super::busy()?;
    let home = place.home_of(&copy_behind(place, fd)?);
    // SAFETY: a terminated path, and the program's own arguments.
    Some(unsafe { system_call!(SYS_listxattr, home.c_text().as_ptr(), list, size) })
}
