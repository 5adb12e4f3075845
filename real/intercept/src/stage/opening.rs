//! Descriptors that come and go: open, dup, close.

use super::calls::{self, Closing};
use super::life;
use super::machine::{Machine, open_call, stack_for};
use super::memory::Memory;
use super::table::{self, Change, File, Staged};
use super::{kernel, settings, signals};
use std::ffi::{c_char, c_int};

/// Calls that want the file as it is; such descriptions are never staged.
const RAW: c_int = libc::O_DSYNC | libc::O_SYNC | libc::O_DIRECT | libc::O_PATH | libc::O_TMPFILE;

/// An open is about to happen: a file held back becomes visible (and whole, should `O_TRUNC` be
/// about to cut it).
pub(crate) fn before_open(directory: c_int, path: *const c_char) {
    if table::is_any_holding()
        && let Some(status) = kernel::status_at(directory, path, 0)
        && let Some(file) = table::find(status.st_dev, status.st_ino)
    {
        life::flush(file);
    }
}

/// A descriptor was opened on something, by the name `named` (absolute, as the program wrote it),
/// which has that number in the trace.
/// Never fails: at worst the file is not staged.
pub(crate) fn opened(fd: c_int, flags: c_int, named: &[u8], number: u32, status: &libc::stat) {
    table::forget_foreign(fd);
    if let Some(stale) = table::lookup(fd) {
        abandon(fd, stale);
    }
    if !settings::is_any() || status.st_mode & libc::S_IFMT != libc::S_IFREG {
        return;
    }
    let Some(mut change) = table::change() else { return };
    let known = table::find(status.st_dev, status.st_ino);
    let raw = flags & RAW & !libc::O_DIRECTORY != 0 || life::must_give_up();
    let file = match known {
        Some(file) if file.is_released() => return,
        Some(file) if raw => {
            drop(change);
            return step_aside(file, flags);
        }
        Some(file) => Some(file),
        None if raw => None,
        None => begin(&mut change, fd, named, number, status),
    };
    if let Some(file) = file
        && let Some(staged) = change.add_description(fd, file)
    {
        introduce(staged, fd, flags, status);
    }
}

/// The number leads to something that is no file of ours: a close was not seen.
pub(crate) fn closed_unseen(fd: c_int) {
    table::forget_foreign(fd);
    if let Some(stale) = table::lookup(fd) {
        abandon(fd, stale);
    }
}

/// The descriptor was closed behind our back and leads elsewhere now: nothing may go out by it.
#[cold]
fn abandon(fd: c_int, stale: Staged) {
    if stale.file.lock.enter() {
        if stale.file.holds() {
            life::give_up("a descriptor was closed unseen with bytes held back for it");
        }
        stale.file.set_released();
        calls::leave(stale.file);
    }
    drop_descriptor(fd);
}

/// A description that passes is about to use a staged file.
fn step_aside(file: &'static File, flags: c_int) {
    match flags & libc::O_ACCMODE {
        libc::O_RDONLY => life::flush(file),
        _ => life::release(file),
    }
}

/// A machine for a file seen for the first time, if a strategy chooses it.
fn begin(
    change: &mut Change,
    fd: c_int,
    named: &[u8],
    number: u32,
    status: &libc::stat,
) -> Option<&'static File> {
    let mut buffer = [0; libc::PATH_MAX as usize];
    let canonical = match settings::asks_for_names() {
        true => canonical_name(fd, &mut buffer),
        false => None,
    };
    let stack = stack_for(std::str::from_utf8(named).ok(), canonical)?;
    signals::watch();
    change.add_file(status.st_dev, status.st_ino, Machine::new(stack, number)?)
}

/// The name the system knows an open file by.
fn canonical_name(fd: c_int, buffer: &mut [u8]) -> Option<&str> {
    let mut link = *b"/proc/self/fd/##########\0";
    let digits = decimal(fd as u32, &mut link[14..]);
    link[14 + digits] = 0;
    // SAFETY: the link is terminated and the buffer as long as said.
    let length = unsafe {
        kernel::system_call!(
            SYS_readlinkat,
            libc::AT_FDCWD,
            link.as_ptr(),
            buffer.as_mut_ptr(),
            buffer.len()
        )
    };
    std::str::from_utf8(buffer.get(..usize::try_from(length).ok()?)?).ok()
}

/// Writes a number in decimal; returns its digits.
fn decimal(number: u32, to: &mut [u8]) -> usize {
    let count = number.checked_ilog10().unwrap_or(0) as usize + 1;
    let mut rest = number;
    for digit in to[..count].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    count
}

/// Tells the strategies of a new description.
fn introduce(staged: Staged, fd: c_int, flags: c_int, status: &libc::stat) {
    if !staged.file.lock.enter() {
        return;
    }
    life::guarded(staged.file, |machine| {
        machine.set_descriptor(staged.handle, fd);
        machine.call(staged.handle, open_call(flags, status), &Memory::NONE)
    });
    calls::leave(staged.file);
}

/// `close`, if the descriptor is staged. `forget` is called between the strategies and the system.
pub(crate) fn close(fd: c_int, forget: impl FnOnce()) -> Option<isize> {
    table::forget_foreign(fd);
    let staged = table::lookup(fd)?;
    let failure = match calls::before_close(fd, staged) {
        Closing::TooEarly => return Some(0),
        Closing::Failed(failure) => Some(failure),
        Closing::Ready => None,
    };
    forget();
    drop_descriptor(fd);
    let result = kernel::close(fd);
    Some(failure.unwrap_or(result))
}

/// The strategies' part of a close that somebody else completes; the failure to report.
pub(crate) fn close_above(fd: c_int) -> Option<isize> {
    let failure = match calls::before_close(fd, table::lookup(fd)?) {
        Closing::Failed(failure) => Some(failure),
        _ => None,
    };
    drop_descriptor(fd);
    failure
}

fn drop_descriptor(fd: c_int) {
    if let Some(mut change) = table::change() {
        change.drop_descriptor(fd);
    }
}

/// Closes what is staged of a range, before the system closes all of it.
pub(crate) fn before_close_range(first: u32, last: u32) {
    for fd in table::descriptors(first, last) {
        close_above(fd);
        table::forget_foreign(fd);
    }
}

/// A descriptor is about to be replaced by `dup2`; the system forgets the failure as well.
pub(crate) fn before_replaced(fd: c_int) {
    if let Some(staged) = table::lookup(fd) {
        calls::before_close(fd, staged);
        drop_descriptor(fd);
    }
    table::forget_foreign(fd);
}

/// A descriptor now shares the description of another.
pub(crate) fn duplicated(old: c_int, new: c_int) {
    table::forget_foreign(new);
    if old != new
        && let Some(staged) = table::lookup(old)
        && let Some(mut change) = table::change()
        && !change.share(new, staged)
    {
        drop(change);
        life::release(staged.file);
    }
}
