//! Writing out what is held, and releasing files: everything that looks at a
//! file by another way than its descriptors comes here first, and so do the ends of the process.

use super::table::{self, File};
use super::visit::{self, flush_inside, guarded, release_inside, settle};
use super::{caution, counted, kernel, own, shared, tally};
use iolab_policy::insitu::Errno;

/// From now on a panic in here says its message on the raw standard error, nothing else: the usual
/// report takes locks and memory that are not ours to take.
pub(super) fn catch_failures() {
    std::panic::set_hook(Box::new(|info| {
        let message = info.payload().downcast_ref::<&str>().copied().unwrap_or("no message");
        let file = info.location().map_or("", |place| place.file());
        kernel::tell(&[b"internal failure: ", message.as_bytes(), b" in ", file.as_bytes()]);
    }));
}

/// Writes out what a file holds, so that it can be looked at by another way.
pub(super) fn flush(file: &'static File) {
    if file.holds() && file.enter() {
        flush_inside(file);
        visit::leave(file);
    }
}

/// Makes a file true in data and positions, this once.
pub(super) fn settle_all(file: &'static File) {
    if file.is_staged() && file.enter() {
        guarded(file, |machine| match settle(machine) {
            0 => Ok(0),
            errno => Err(Errno(errno)),
        });
        visit::leave(file);
    }
}

/// Makes a file true in data and positions and lets its calls pass from now on.
pub(super) fn release(file: &'static File) {
    if file.is_staged() && file.enter() {
        release_inside(file);
        visit::leave(file);
    }
}

/// As `release`, and for good: the stage's own descriptors of the file are closed. Not where the process
/// has locked a part of it.
pub(super) fn retire(file: &'static File) {
    if !file.is_locked() && file.enter() {
        release_inside(file);
        table::take_own(file).for_each(own::close);
        visit::leave(file);
    }
}

/// Writes out what any file of this process holds.
pub(super) fn flush_all() {
    if table::is_any_holding() {
        table::files().for_each(flush);
    }
}

/// Releases the files for which `which` holds.
pub(super) fn release_where(which: impl Fn(&'static File) -> bool) {
    if table::is_any_staged() {
        table::files().filter(|file| file.is_staged() && which(file)).for_each(release);
    }
}

/// Whether a description of the file stays open in a program that is executed.
pub(super) fn survives_exec(file: &'static File) -> bool {
    table::descriptors_of(file).any(|fd| !kernel::closes_on_exec(fd))
}

/// The process ends: what is held goes out now, and from now on with each call (destructors of
/// libraries and stdio's last flush are still to come).
pub(super) fn end() {
    caution::begin();
    flush_all();
    if table::is_any_holding() {
        table::files().filter(|file| file.holds()).for_each(give_up_held);
    }
    if (tally::is_wanted() || counted::is_wanted()) && table::is_any_staged() {
        table::files().filter(|file| file.is_staged()).for_each(tell_calls);
    }
}

/// Calls on a file that is open still. Nobody is waited for: a thread inside may stay there for long, and what
/// is told is this process's own, so other processes need not be kept out.
fn tell_calls(file: &'static File) {
    if !file.lock.try_enter() {
        return;
    }
    // SAFETY: inside the lock; the reference ends here.
    if let Some(machine) = unsafe { file.machine() } {
        machine.tell_calls();
    }
    file.lock.leave();
    if !file.late.is_empty() && file.enter() {
        visit::leave(file);
    }
}

/// What the system did not take at the last moment either is dropped, as by a close: the launcher,
/// who may write more than the program may, must not write it after all. The program was told, or
/// else whoever watches is.
#[cold]
fn give_up_held(file: &'static File) {
    if file.enter() {
        guarded(file, |machine| {
            machine.give_up_held();
            Ok(0)
        });
        visit::leave(file);
    }
}

/// In a forked child: descriptors inherited from the parent pass.
pub(super) fn after_fork() {
    table::after_fork();
    shared::after_fork();
    caution::after_fork();
}
