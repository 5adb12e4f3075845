//! Modes, owners and attributes are the real file's, by whatever way they are set; times are the copy's, and
//! are given to the real file when it comes home.

use super::super::kernel::{self, system_call};
use super::{Still, behind_path, busy, copy_behind};
use crate::call::{ABSENT, Call};
use crate::system;
use iolab_segment::{FastPath, FastPlace, StagedFile};
use iolab_trace::Function;
use std::ffi::{CStr, c_int};

/// A call that sets something of a file.
pub(super) fn answered(call: &Call, perform: impl Fn() -> isize) -> isize {
    let Some(place) = busy() else { return perform() };
    if let Some(file) = by_descriptor(place, call) {
        let _still = Still::hold(place, file.home);
        let result = at_home(call, &place.home_of(&file)).unwrap_or_else(perform);
        note_change(place, &file, result);
        return result;
    }
    let file = behind_path(place, call.directory, call.path).filter(|file| file.is_home);
    let Some(file) = file else { return perform() };
    let _still = Still::hold(place, file.home);
    match call.function {
        Function::UTIME | Function::UTIMENSAT => timed(place, &file, perform),
        _ => {
            let result = perform();
            note_change(place, &file, result);
            result
        }
    }
}

/// The time at which something of the file changed is the copy's: it is one that changes, too.
fn note_change(place: &FastPlace, file: &StagedFile, result: isize) {
    const PRIVATE: c_int = 0o600;
    if result == 0 && place.find(file.home).is_some() {
        let copy = place.copy_of(file.home);
        // SAFETY: a terminated path.
        unsafe { system_call!(SYS_fchmodat, libc::AT_FDCWD, copy.c_text().as_ptr(), PRIVATE) };
    }
}

/// The file, if the call is on a descriptor of its copy.
fn by_descriptor(place: &FastPlace, call: &Call) -> Option<StagedFile> {
    if call.fd != ABSENT {
        return copy_behind(place, call.fd as c_int);
    }
    let is_empty = call.path != 0
        && call.path != ABSENT
        && system::is_readable(call.path)
        // SAFETY: readable as just seen.
        && unsafe { *(call.path as *const u8) } == 0;
    (is_empty && call.directory != ABSENT)
        .then(|| copy_behind(place, call.directory as c_int))
        .flatten()
}

/// The same on the real file; `None` for calls that belong to the copy.
fn at_home(call: &Call, home: &FastPath) -> Option<isize> {
    let path = home.c_text().as_ptr();
    let [_, b, c, d, e, _] = call.raw;
    // SAFETY: a terminated path, and the program's own arguments.
    Some(unsafe {
        match call.function {
            Function::FCHMOD => system_call!(SYS_fchmodat, libc::AT_FDCWD, path, b),
            Function::FCHMODAT => system_call!(SYS_fchmodat, libc::AT_FDCWD, path, c),
            Function::FCHOWN => system_call!(SYS_fchownat, libc::AT_FDCWD, path, b, c),
            Function::FCHOWNAT => system_call!(SYS_fchownat, libc::AT_FDCWD, path, c, d),
            Function::FSETXATTR => system_call!(SYS_setxattr, path, b, c, d, e),
            Function::FREMOVEXATTR => system_call!(SYS_removexattr, path, b),
            _ => return None,
        }
    })
}

/// Times that are set by path: the real file has the copy's before, so that those which are to stay do, and
/// the copy has the real file's after.
fn timed(place: &FastPlace, file: &StagedFile, perform: impl Fn() -> isize) -> isize {
    let (copy, home) = (place.copy_of(file.home), place.home_of(file));
    let is_given = give_times(copy.c_text(), home.c_text());
    let result = perform();
    if result == 0 && is_given {
        give_times(home.c_text(), copy.c_text());
    }
    result
}

fn give_times(from: &CStr, to: &CStr) -> bool {
    let Some(status) = kernel::status_at(libc::AT_FDCWD, from.as_ptr(), 0) else { return false };
    let times = [
        libc::timespec { tv_sec: status.st_atime, tv_nsec: status.st_atime_nsec },
        libc::timespec { tv_sec: status.st_mtime, tv_nsec: status.st_mtime_nsec },
    ];
    // SAFETY: a terminated path and two structures, which are only read.
    let done =
        unsafe { system_call!(SYS_utimensat, libc::AT_FDCWD, to.as_ptr(), times.as_ptr(), 0) };
    done == 0
}
