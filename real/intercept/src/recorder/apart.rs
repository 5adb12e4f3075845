//! Work that needs a descriptor, in a process that has none left.
//!
//! A program may use all the descriptors it is allowed; a forked child of it, or one in which the
//! stage took the last, must be recorded all the same. The work is then done by a task that shares
//! the memory, so that what it maps is mapped here, but not the table of descriptors: in its copy of
//! the table a number is given up, which the program keeps.

use crate::processor::instructions::in_task;
use crate::system;

/// Shares the memory, waits for its end, is no business of a debugger, and sends no signal at its end,
/// so that no `wait` of the program meets it.
const FLAGS: i32 = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_UNTRACED;

/// Does the work where there is a descriptor for it, or here when no task can be had. The work asks
/// the system directly and leaves no descriptor open.
pub(super) fn with_descriptor<T>(work: impl Fn() -> T) -> T {
    let mut result = None;
    if none_is_left() {
        in_other_table(&mut || result = Some(work()));
    }
    result.unwrap_or_else(work)
}

/// Whether this process can open nothing.
fn none_is_left() -> bool {
    let flags = (libc::O_PATH | libc::O_CLOEXEC) as usize;
    let a = [libc::AT_FDCWD as usize, c"/".as_ptr() as usize, flags, 0, 0, 0];
    // SAFETY: a terminated path, and a descriptor of our own.
    unsafe {
        let fd = system::raw(libc::SYS_openat, a);
        if fd >= 0 {
            system::raw3(libc::SYS_close, fd as usize, 0, 0);
        }
        fd == -(libc::EMFILE as isize)
    }
}

/// Does the work in a task with a table of descriptors of its own; not at all if there is none.
fn in_other_table(work: &mut dyn FnMut()) {
    let mut work = work;
    let all = u64::MAX;
    let mut before = 0_u64;
    // SAFETY: the structures live through the calls. No handler of the program runs in the task, which
    // would take it for the process.
    unsafe {
        set_mask(&raw const all, &raw mut before);
        let task = in_task(FLAGS, run, &raw mut work as usize);
        if task > 0 {
            let a = [task as usize, 0, libc::__WCLONE as usize, 0, 0, 0];
            system::raw(libc::SYS_wait4, a);
        }
        set_mask(&raw const before, std::ptr::null_mut());
    }
}

unsafe fn set_mask(new: *const u64, old: *mut u64) {
    let a = [libc::SIG_SETMASK as usize, new as usize, old as usize, 8, 0, 0];
    // SAFETY: the caller's promise.
    unsafe { system::raw(libc::SYS_rt_sigprocmask, a) };
}

extern "C" fn run(work: usize) {
    // SAFETY: number 0 of the copy, which is open where no number is free; and what `in_other_table`
    // handed over, whose stack waits.
    unsafe {
        system::raw3(libc::SYS_close, 0, 0, 0);
        (*(work as *mut &mut dyn FnMut()))();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_in_another_table_is_done_once_and_takes_no_descriptor_of_ours() {
        let (mut count, mut found) = (0, 0);
        in_other_table(&mut || {
            count += 1;
            // SAFETY: asks about a number.
            found = unsafe { system::raw3(libc::SYS_fcntl, 0, libc::F_GETFD as usize, 0) };
        });
        assert_eq!((count, found), (1, -(libc::EBADF as isize)));
        // SAFETY: as above.
        let here = unsafe { system::raw3(libc::SYS_fcntl, 0, libc::F_GETFD as usize, 0) };
        assert!(here >= 0);
        assert_eq!(with_descriptor(|| 7), 7);
    }
}
