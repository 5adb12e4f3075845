//! Entering a file, leaving it, and the work inside its lock: strategies' code, writing out what is
//! held, the release, and the calls that a signal handler made too early.

use super::late::LateCall;
use super::machine::Machine;
use super::memory::Memory;
use super::table::{self, File};
use super::{caution, kept, kernel, shared};
use iolab_policy::insitu::{At, Call, Errno, Outcome};
use iolab_segment::Entry;
use libc::iovec;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

impl File {
    /// Comes in: waits for other threads and other processes. False when this very thread is
    /// inside already.
    #[inline]
    #[must_use]
    pub(super) fn enter(&'static self) -> bool {
        if !self.lock.enter() {
            return false;
        }
        if let Some(entry) = self.entry()
            && !entry.enter(self.expected.load(Relaxed), self.looks_up.load(Relaxed))
        {
            self.settle_in(entry);
        }
        true
    }

    #[cold]
    fn settle_in(&'static self, entry: &'static Entry) {
        if let Some(run) = shared::run() {
            self.expected.store(run.settle_in(entry), Relaxed);
            disturbed(self, entry);
        }
    }
}

static NO_ROOM: AtomicBool = AtomicBool::new(false);

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
            caution::give_up("a strategy failed inside");
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
        caution::remark_once(
            &NO_ROOM,
            "no room in memory for what strategies hold back; files pass",
        );
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

/// Keeps the counts of holding files true. Inside the lock.
pub(super) fn count_held(file: &'static File) {
    // SAFETY: inside the lock; the reference ends here.
    let state = unsafe { file.machine() }.map(|it| (it.held_bytes(), it.interest()));
    let Some((bytes, interest)) = state else { return };
    file.publish(interest);
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
pub(super) fn settle(machine: &mut Machine) -> c_int {
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

/// Leaves a file's lock, after making the calls that came too early.
#[inline]
pub(super) fn leave(file: &'static File) {
    file.leave();
    while !file.late.is_empty() {
        if !file.enter() {
            return;
        }
        make_late_calls(file);
        let signals_wait = file.late.is_called_back();
        file.leave();
        if signals_wait {
            kept::send_kept();
        }
    }
}

#[cold]
fn make_late_calls(file: &'static File) {
    file.late.take(|late| {
        if !make_room(file, late.bytes as u64) {
            return make_below(file, late);
        }
        let segments = [iovec { iov_base: late.data().cast(), iov_len: late.bytes }];
        let (handle, call) = (late.handle, late.call);
        let made = guarded(file, |machine| machine.call(handle, call, &Memory::new(&segments)));
        match made {
            Some(Err(Errno(errno))) => file.failure.store(errno, Relaxed),
            Some(Ok(_)) => {}
            None => make_below(file, late),
        }
    });
}

/// The same past the strategies: the file was released meanwhile.
fn make_below(file: &'static File, late: &mut LateCall) {
    let Some(own) = table::own_of(late.handle) else { return };
    let (data, bytes) = (late.data().cast(), late.bytes);
    // SAFETY: the bytes lie behind the call.
    let result = unsafe {
        match late.call {
            Call::Write { at: At::Position, .. } => kernel::write(own, data, bytes),
            Call::Write { at: At::Offset(offset), .. } => {
                kernel::pwrite(own, data, bytes, offset as i64)
            }
            Call::Sync { data_only } => kernel::sync(own, data_only),
            Call::Truncate { length } => kernel::truncate(own, length),
            _ => 0,
        }
    };
    if result < 0 {
        file.failure.store(-result as i32, Relaxed);
    }
}
