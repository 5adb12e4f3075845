//! Descriptors that come and go: open, dup, close.

use super::calls::{self, Closing};
use super::life;
use super::machine::{Machine, open_call, stack_for};
use super::memory::Memory;
use super::table::{self, Change, File, Staged};
use super::{caution, kernel, own, settings, shared, signals, tally, visit};
use iolab_policy::insitu::Stack;
use iolab_segment::Joined;
use std::ffi::c_int;

/// Calls that want the file as it is; such descriptions are never staged.
const RAW: c_int = libc::O_DSYNC | libc::O_SYNC | libc::O_DIRECT | libc::O_PATH | libc::O_TMPFILE;

/// A descriptor was opened on something, by the name `named` (absolute, as the program wrote it),
/// which has that number in the trace.
/// Never fails: at worst the file is not staged.
pub(crate) fn opened(fd: c_int, flags: c_int, named: &[u8], number: u32, status: &libc::stat) {
    forget_stale(fd);
    if !settings::is_any() || status.st_mode & libc::S_IFMT != libc::S_IFREG {
        return;
    }
    if own::are_near(fd) {
        give_room();
    }
    let Some(mut change) = table::change() else { return };
    let known = table::find(status.st_dev, status.st_ino);
    let raw =
        flags & RAW & !libc::O_DIRECTORY != 0 || caution::must_give_up() || own::are_given_back();
    let stack = match known {
        None if !raw => strategies(fd, named, status),
        _ => None,
    };
    let owns = stack.as_ref().is_some_and(|stack| holds(stack) || stack.keeps_bytes());
    let joined = match flags & libc::O_TRUNC {
        0 => shared::told(fd, status, owns),
        _ => shared::told_cut(fd, status, owns),
    };
    let file = match known {
        Some(file) if file.is_released() => return,
        Some(file) if raw => {
            drop(change);
            return step_aside(file, flags);
        }
        Some(file) => Some(file),
        None => stack.and_then(|stack| {
            begin(&mut change, stack, number, status, if owns { Some(joined?) } else { None })
        }),
    };
    let Some(file) = file else { return };
    match change.add_description(fd, file) {
        Some(staged) => introduce(staged, flags, status),
        // It passes, so the others of the file must as well.
        None => {
            drop(change);
            life::release(file);
        }
    }
}

/// Whether a file that was opened by that name is surely no stack's, unless the name ends in a symbolic
/// link: no strategy is for such names, and by no other name is it staged.
pub(crate) fn is_passed_by(fd: c_int, named: &[u8], status: &libc::stat) -> bool {
    table::forget_foreign(fd);
    let named = std::str::from_utf8(named);
    table::description(fd).is_none()
        && status.st_mode & libc::S_IFMT == libc::S_IFREG
        && !table::may_be_staged(status.st_dev, status.st_ino)
        && named.is_ok_and(settings::are_for_none_of_name)
}

/// The run is told of a file that is no stack's.
pub(crate) fn told_only(fd: c_int, flags: c_int, status: &libc::stat) {
    match flags & libc::O_TRUNC {
        0 => shared::told(fd, status, false),
        _ => shared::told_cut(fd, status, false),
    };
}

/// The number leads to something that is no file of ours: a close was not seen.
pub(crate) fn closed_unseen(fd: c_int) {
    forget_stale(fd);
    shared::parted(fd);
}

/// A descriptor of a regular file that passes came to be: opened by a name that is left out,
/// inherited, or received.
pub(crate) fn passes(fd: c_int, status: &libc::stat) {
    forget_stale(fd);
    if status.st_mode & libc::S_IFMT == libc::S_IFREG {
        shared::told(fd, status, false);
        if let Some(file) = table::find(status.st_dev, status.st_ino) {
            life::flush(file);
        }
    }
}

/// A descriptor came to be whose calls are not seen: of its file nothing may be held here, and what
/// is staged of it is released.
pub(crate) fn passes_unseen(fd: c_int, status: &libc::stat) {
    passes(fd, status);
    if status.st_mode & libc::S_IFMT == libc::S_IFREG {
        shared::note_unseen(fd);
        if let Some(file) = table::find(status.st_dev, status.st_ino) {
            life::release(file);
        }
    }
}

/// Gives the program the numbers of the stage's own descriptors, whose files pass from then on. Whether
/// there are more numbers now.
#[cold]
pub(crate) fn give_room() -> bool {
    let gives = own::give_back();
    if gives {
        table::files().for_each(life::retire);
    }
    gives
}

/// The number leads to something new. If its old file was closed behind our back, what is held of
/// that goes out by the stage's own descriptor.
fn forget_stale(fd: c_int) {
    table::forget_foreign(fd);
    if let Some(stale) = table::lookup(fd) {
        calls::before_close(stale);
        close_own(drop_descriptor(fd));
    }
}

/// A description that passes is about to use a staged file.
fn step_aside(file: &'static File, flags: c_int) {
    match flags & libc::O_ACCMODE {
        libc::O_RDONLY => life::flush(file),
        _ => life::release(file),
    }
}

fn holds(stack: &Stack) -> bool {
    stack.holding_bytes().any(|bytes| bytes > 0)
}

/// The strategies that choose a file, if any does and may hold and keep what it wants to.
fn strategies(fd: c_int, named: &[u8], status: &libc::stat) -> Option<Stack> {
    let mut buffer = crate::path::Buffer::new();
    let canonical = match settings::asks_for_names() {
        true => std::str::from_utf8(crate::path::of_descriptor(fd, &mut buffer)).ok(),
        false => None,
    }
    .filter(|name| !name.is_empty());
    let stack = stack_for(std::str::from_utf8(named).ok(), canonical)?;
    let may_own = || shared::may_hold() && !caution::is_cautious();
    let is_allowed = match holds(&stack) {
        true => may_own() && kernel::is_writable_by_name(fd, status),
        false => !stack.keeps_bytes() || may_own(),
    };
    if !is_allowed {
        caution::say_limited();
    }
    is_allowed.then_some(stack)
}

/// A machine for a file seen for the first time.
fn begin(
    change: &mut Change,
    stack: Stack,
    number: u32,
    status: &libc::stat,
    joined: Option<Joined<'static>>,
) -> Option<&'static File> {
    if joined.is_some_and(|joined| !joined.is_owner) {
        return None;
    }
    if let Some(entry) = joined.map(|joined| joined.entry)
        && shared::is_unseen(entry)
    {
        shared::disown(entry);
        return None;
    }
    signals::watch();
    let entry = joined.map(|joined| joined.entry);
    let file = Machine::new(stack, number, entry)
        .and_then(|machine| change.add_file(status.st_dev, status.st_ino, machine, joined));
    if let (None, Some(entry)) = (file, entry) {
        shared::disown(entry);
    }
    if file.is_some() {
        tally::serves(status);
    }
    file
}

/// Tells the strategies of a new description. How long the file is counts from inside its lock:
/// since the open, other threads and processes may have written to it and gone again.
fn introduce(staged: Staged, flags: c_int, status: &libc::stat) {
    if !staged.file.enter() {
        return;
    }
    visit::guarded(staged.file, |machine| {
        machine.set_descriptor(staged.handle, staged.own());
        let now = kernel::status(staged.own());
        let call = open_call(flags, now.as_ref().unwrap_or(status));
        machine.call(staged.handle, call, &Memory::NONE)
    });
    visit::leave(staged.file);
}

/// `close`, if the descriptor is staged. `forget` is called between the strategies and the system.
pub(crate) fn close(fd: c_int, forget: impl FnOnce()) -> Option<isize> {
    table::forget_foreign(fd);
    let Some(staged) = table::lookup(fd) else {
        shared::parted(fd);
        return None;
    };
    let failure = match calls::before_close(staged) {
        Closing::TooEarly => return Some(0),
        Closing::Failed(failure) => Some(failure),
        Closing::Ready => None,
    };
    forget();
    let own = drop_descriptor(fd);
    shared::parted(fd);
    let result = kernel::close(fd);
    close_own(own);
    Some(failure.unwrap_or(result))
}

/// The strategies' part of a close that somebody else completes; the failure to report.
pub(crate) fn close_above(fd: c_int) -> Option<isize> {
    table::forget_foreign(fd);
    let failure = table::lookup(fd).and_then(|staged| match calls::before_close(staged) {
        Closing::Failed(failure) => Some(failure),
        _ => None,
    });
    close_own(drop_descriptor(fd));
    shared::parted(fd);
    failure
}

fn drop_descriptor(fd: c_int) -> Option<c_int> {
    table::lookup(fd)?;
    table::change()?.drop_descriptor(fd, File::enter)
}

fn close_own(own: Option<c_int>) {
    if let Some(own) = own {
        own::close(own);
    }
}

/// Closes what is staged of a range, before the system closes all of it.
pub(crate) fn before_close_range(first: u32, last: u32) {
    for fd in table::descriptors(first, last) {
        close_above(fd);
    }
    shared::parted_range(first, last);
}

/// A descriptor is about to be replaced by `dup2`; the system forgets the failure as well.
pub(crate) fn before_replaced(fd: c_int) {
    close_above(fd);
}

/// A descriptor now shares the description of another.
pub(crate) fn duplicated(old: c_int, new: c_int) {
    if old == new {
        return;
    }
    table::forget_foreign(new);
    shared::shared(old, new);
    if let Some(staged) = table::lookup(old)
        && let Some(mut change) = table::change()
        && !change.share(new, staged, File::enter)
    {
        drop(change);
        life::release(staged.file);
    }
}
