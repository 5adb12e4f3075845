//! Syncs that wait for others who ask for the same (`Strategy::join`). A thread waits by itself, outside of
//! the file's lock, so that others may ask, write, close and end meanwhile; the first one back makes the sync
//! for all. While it waits it is in nobody's way and nobody has it in his hands: a handler may jump out of the
//! wait, and the process may fork or be killed.
//!
//! Whoever closes the description, or releases the file, has made the sync before; what it came to, if that is
//! a failure, is kept here by the description's number, which is never used again.

use super::table::{self, Staged};
use super::{calls, caution, kernel, visit};
use crate::system;
use iolab_policy::insitu::{Call, Errno, Handle, Interest, Outcome};
use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// What came of waiting.
pub(super) enum Joined {
    /// Nobody waited: the call is made as any other.
    Not,
    /// The call is over.
    Over(Outcome),
    /// The caller makes it below.
    Below,
}

const KEPT: usize = 64;
/// Failures of syncs that were made by who closed: number of the description, error number.
static FAILED: [AtomicU64; KEPT] = [const { AtomicU64::new(0) }; KEPT];
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A sync made for who waits on that description, which goes away, has failed.
pub(super) fn keep_failure(handle: Handle, errno: Errno) {
    let place = NEXT.fetch_add(1, Relaxed) as usize % KEPT;
    FAILED[place].store(u64::from(handle.0) << 32 | u64::from(errno.0 as u32), Relaxed);
}

fn failure(handle: Handle) -> Option<Errno> {
    let kept = FAILED.iter().map(|kept| kept.load(Relaxed));
    let of_handle = |&kept: &u64| kept != 0 && kept >> 32 == u64::from(handle.0);
    kept.filter(of_handle).map(|kept| Errno(kept as i32)).next()
}

/// Waits for others with a sync of a staged descriptor, if its strategies say so and there is anybody who
/// could ask; then makes it, or learns what it came to.
pub(super) fn sync(fd: c_int, staged: Staged, call: Call) -> Joined {
    let file = staged.file;
    if system::is_single_threaded() || !file.hears(Interest::SYNC) || caution::is_cautious() {
        return Joined::Not;
    }
    if !file.enter() {
        return Joined::Not;
    }
    // SAFETY: inside the lock; the reference ends here.
    let machine = unsafe { file.machine() }.filter(|it| it.descriptor(staged.handle).is_some());
    let ticket = machine.and_then(|machine| machine.join(&call));
    visit::leave(file);
    let Some(ticket) = ticket else { return Joined::Not };
    kernel::sleep_until_ns(ticket.until.get());
    if !file.enter() {
        return Joined::Not;
    }
    // SAFETY: inside the lock; the reference ends here.
    let machine = unsafe { file.machine() }.filter(|it| it.descriptor(staged.handle).is_some());
    if let Some(machine) = machine {
        return match machine.joined(&call, ticket) {
            Some(outcome) => {
                visit::leave(file);
                Joined::Over(outcome)
            }
            None => calls::finish_alone(staged, call).map_or(Joined::Below, Joined::Over),
        };
    }
    visit::leave(file);
    let is_open = table::lookup(fd).is_some_and(|now| now.handle == staged.handle);
    match failure(staged.handle) {
        Some(errno) => Joined::Over(Err(errno)),
        None if is_open => Joined::Below,
        None => Joined::Over(Ok(0)),
    }
}
