//! Writing out what is held, releasing files, and giving up in order: everything that looks at a
//! file by another way than its descriptors comes here first, and so do the ends of the process.

use super::machine::Machine;
use super::memory::Memory;
use super::table::{self, File};
use super::{calls, kernel, shared};
use iolab_policy::insitu::{Call, Errno, Outcome};
use iolab_segment::Entry;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Nothing is held back beyond a call any more: the process is ending, or given up.
static CAUTIOUS: AtomicBool = AtomicBool::new(false);
/// Something failed inside: every file is released by its next call.
static GIVEN_UP: AtomicBool = AtomicBool::new(false);

/// Whether what a call leaves behind has to go out with it.
#[inline(always)]
pub(super) fn is_cautious() -> bool {
    CAUTIOUS.load(Relaxed)
}

pub(super) fn must_give_up() -> bool {
    GIVEN_UP.load(Relaxed) || super::allocator::is_exhausted()
}

/// Runs a strategy's code on the machine of a file, inside its lock. A defect in there must not
/// end the program: what is held is saved as far as can be and the library steps aside. `None`
/// when the file is not staged (any more).
pub(super) fn guarded(
    file: &'static File,
    work: impl FnOnce(&mut Machine) -> Outcome,
) -> Option<Outcome> {
    // SAFETY: inside the lock by this function's contract; the reference ends below.
    let machine = unsafe { file.machine() }?;
    match catch_unwind(AssertUnwindSafe(|| work(machine))) {
        Ok(outcome) => {
            count_held(file);
            Some(outcome)
        }
        Err(_) => {
            give_up("a strategy failed inside");
            release_inside(file);
            None
        }
    }
}

/// Makes room for a write that may be held; where there is none, the file is released and one line
/// says so. Inside the lock; false when the file passes.
pub(super) fn make_room(file: &'static File, length: u64) -> bool {
    // SAFETY: inside the lock; the reference ends here.
    let Some(machine) = (unsafe { file.machine() }) else { return false };
    let has_room = machine.make_room(length);
    if !has_room {
        say_once(&NO_ROOM, "no room in memory for what strategies hold back; files pass");
        release_inside(file);
    }
    has_room
}

/// Whether something is held that would be lost with the process. Inside the lock.
pub(super) fn is_untold(file: &'static File) -> bool {
    // SAFETY: inside the lock; the reference ends here.
    unsafe { file.machine() }.is_some_and(|machine| machine.is_untold())
}

/// Whether somebody wrote to the file past the library. Inside the lock.
pub(super) fn was_trespassed(file: &'static File) -> bool {
    // SAFETY: inside the lock; the reference ends here.
    unsafe { file.machine() }.is_some_and(|machine| machine.was_trespassed())
}

static NO_ROOM: AtomicBool = AtomicBool::new(false);

/// One line on standard error, the first time.
#[cold]
pub(super) fn say_once(said: &AtomicBool, what: &str) {
    if !said.swap(true, Relaxed) {
        kernel::tell(&[what.as_bytes()]);
    }
}

/// Keeps the counts of holding files true. Inside the lock.
pub(super) fn count_held(file: &'static File) {
    // SAFETY: inside the lock; the reference ends here.
    let held_bytes = unsafe { file.machine() }.map(|machine| machine.held_bytes());
    let Some(bytes) = held_bytes else { return };
    let begins = bytes > 0 && !file.holds();
    if !file.note_held(bytes) {
        // It would be lost with this process.
        return release_inside(file);
    }
    if !begins {
        return;
    }
    // Where the file will be found is not sure; whoever changes names, or has changed them since the
    // path was shown, may have looked already.
    // SAFETY: inside the lock; the reference ends here.
    let knows_path = || unsafe { file.machine() }.is_none_or(|machine| machine.knows_path());
    let is_moving = shared::is_moving();
    // Whoever asked that nothing be held may have looked for holders before there was this one.
    if shared::must_pass() {
        return release_inside(file);
    }
    if is_moving || !knows_path() {
        flush_inside(file);
    }
    file.confirm_held();
}

/// From now on a panic in here says its message on the raw standard error, nothing else: the usual
/// report takes locks and memory that are not ours to take.
pub(super) fn catch_failures() {
    std::panic::set_hook(Box::new(|info| {
        let message = info.payload().downcast_ref::<&str>().copied().unwrap_or("no message");
        let file = info.location().map_or("", |place| place.file());
        kernel::tell(&[b"internal failure: ", message.as_bytes(), b" in ", file.as_bytes()]);
    }));
}

/// One line, once; from then on everything passes.
#[cold]
pub(super) fn give_up(why: &str) {
    CAUTIOUS.store(true, Relaxed);
    if !GIVEN_UP.swap(true, Relaxed) {
        kernel::tell(&[why.as_bytes(), b"; strategies are switched off, calls pass as they are"]);
    }
}

/// Writes out what a file holds, so that it can be looked at by another way.
pub(super) fn flush(file: &'static File) {
    if file.holds() && file.enter() {
        flush_inside(file);
        calls::leave(file);
    }
}

/// As `flush`, inside the lock. A failure is the strategy's to remember.
pub(super) fn flush_inside(file: &'static File) {
    if file.holds() {
        guarded(file, |machine| match machine.handle(0) {
            Some(handle) => machine.call(handle, Call::Flush, &Memory::NONE),
            None => Ok(0),
        });
    }
}

/// Another process was here: it has written out what was held, to look at the file or to use it
/// itself. Inside the lock.
#[cold]
pub(super) fn disturbed(file: &'static File, entry: &'static Entry) {
    guarded(file, |machine| {
        machine.forget_drained();
        Ok(0)
    });
    if shared::is_shared(entry) || shared::must_pass() || !could_be_reopened(file) {
        release_inside(file);
    }
}

/// Whether somebody of this user could open the file anew to write to it: another process may have
/// changed its mode. Inside the lock.
fn could_be_reopened(file: &'static File) -> bool {
    let fd = table::descriptors_of(file).next();
    let status = fd.and_then(|fd| Some((fd, kernel::status(fd)?)));
    status.is_none_or(|(fd, status)| {
        kernel::is_writable_by_name(fd, &status) && kernel::is_found_by_name(fd, &status)
    })
}

/// Makes a file true in data and positions, this once.
pub(super) fn settle_all(file: &'static File) {
    if file.is_staged() && file.enter() {
        guarded(file, |machine| match settle(machine) {
            0 => Ok(0),
            errno => Err(Errno(errno)),
        });
        calls::leave(file);
    }
}

/// Makes a file true in data and positions and lets its calls pass from now on.
pub(super) fn release(file: &'static File) {
    if file.is_staged() && file.enter() {
        release_inside(file);
        calls::leave(file);
    }
}

/// As `release`, inside the lock.
pub(super) fn release_inside(file: &'static File) {
    // SAFETY: inside the lock; the reference ends before the release.
    let Some(machine) = (unsafe { file.machine() }) else { return };
    let settled = catch_unwind(AssertUnwindSafe(|| settle(machine)));
    let failure = settled.unwrap_or(libc::EIO);
    let lost = catch_unwind(AssertUnwindSafe(|| machine.held_bytes())).unwrap_or(1);
    if lost > 0 {
        file.failure.store(if failure == 0 { libc::EIO } else { failure }, Relaxed);
    }
    file.set_released();
}

/// Settles every description; 0 or the error number of the first failure.
fn settle(machine: &mut Machine) -> c_int {
    let mut failure = 0;
    let mut index = 0;
    while let Some(handle) = machine.handle(index) {
        if let Err(Errno(errno)) = machine.call(handle, Call::Settle, &Memory::NONE)
            && failure == 0
        {
            failure = errno;
        }
        index += 1;
    }
    failure
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
    CAUTIOUS.store(true, Relaxed);
    flush_all();
    if table::is_any_holding() {
        table::files().filter(|file| file.holds()).for_each(give_up_held);
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
        calls::leave(file);
    }
}

/// In a forked child: descriptors inherited from the parent pass.
pub(super) fn after_fork() {
    table::after_fork();
    shared::after_fork();
    CAUTIOUS.store(GIVEN_UP.load(Relaxed), Relaxed);
}
