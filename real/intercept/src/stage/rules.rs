//! The table of rules (`iolab_policy::insitu::rules`) on the live process: what is done before a call
//! passes, to files named by descriptor or path, of this process and of others.

use super::{kernel, life, own, shared, table};
use crate::call::{ABSENT, Call};
use iolab_policy::insitu::rules::{Act, Detail, Effect, Files, effect};
use iolab_trace::Class;
use std::ffi::{c_char, c_int};

/// What a call does to the files that strategies serve, but for the stack of its own descriptor.
pub(super) fn before(call: &Call) {
    let detail = Detail {
        is_staged: false,
        request: call.flags as u64,
        has_flags: call.flags != ABSENT && call.flags as c_int != 0,
        has_actions: call.has_actions(),
    };
    let Effect::Before(rules) = effect(call.function, detail) else { return };
    for &(act, files) in rules {
        match files {
            Files::Named => named(act, call),
            Files::Second => second(act, call),
            Files::HandedOn => every(act, life::survives_exec),
            Files::All => every(act, |_| true),
        }
        // Whoever syncs everything means what other processes hold as well.
        if files == Files::All && call.function.class() == Class::Sync {
            shared::look_at_all();
        }
    }
}

fn named(act: Act, call: &Call) {
    for fd in [call.fd, call.in_fd].into_iter().filter(|&fd| fd != ABSENT) {
        on_descriptor(act, fd as c_int);
    }
    // `utimensat` and its like take no path for the descriptor itself.
    if call.path == 0 && call.directory != ABSENT {
        on_descriptor(act, call.directory as c_int);
    }
    on_path(act, call.directory, call.path);
}

fn second(act: Act, call: &Call) {
    if call.out_fd != ABSENT {
        on_descriptor(act, call.out_fd as c_int);
    }
    on_path(act, call.new_directory, call.new_path);
}

fn every(act: Act, which: fn(&'static table::File) -> bool) {
    match act {
        Act::Flush => life::flush_all(),
        Act::Settle => table::files().filter(|file| which(file)).for_each(life::settle_all),
        Act::Release => life::release_where(which),
    }
}

fn on_file(act: Act, file: &'static table::File) {
    match act {
        Act::Flush => life::flush(file),
        Act::Settle => life::settle_all(file),
        Act::Release => life::release(file),
    }
}

fn on_descriptor(act: Act, fd: c_int) {
    if let Some(file) = file_of(fd) {
        on_file(act, file);
    }
}

/// Acts on the file of a path, if strategies serve it here or in another process. Nothing is asked
/// while there is nothing to do.
pub(super) fn on_path(act: Act, directory_argument: usize, path: usize) {
    let is_idle = match act {
        Act::Flush => !table::is_any_holding(),
        Act::Settle | Act::Release => !table::is_any_staged(),
    };
    if path == ABSENT || path == 0 || (is_idle && !shared::is_any_holding()) {
        return;
    }
    let (directory, path) = (directory(directory_argument), path as *const c_char);
    if let Some(status) = kernel::status_at(directory, path, libc::AT_EMPTY_PATH) {
        match table::find(status.st_dev, status.st_ino) {
            Some(file) => on_file(act, file),
            None => shared::look(&status),
        }
    }
}

/// The file of a descriptor, staged itself or leading to a staged file.
fn file_of(fd: c_int) -> Option<&'static table::File> {
    table::lookup(fd).map(|staged| staged.file).or_else(|| table::foreign(fd))
}

/// The process is about to lock a part of a descriptor's file.
pub(super) fn note_lock(fd: c_int) {
    match file_of(fd) {
        Some(file) => file.note_lock(),
        None => own::note_lock(),
    }
}

/// Lets the calls of a descriptor's file pass from now on.
pub(super) fn release(fd: c_int) {
    on_descriptor(Act::Release, fd);
}

/// A directory argument as the system takes it.
pub(super) fn directory(argument: usize) -> c_int {
    if argument == ABSENT { libc::AT_FDCWD } else { argument as c_int }
}
