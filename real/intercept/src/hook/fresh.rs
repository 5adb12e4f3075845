//! Functions that make a descriptor which is no file of a path: sockets, pipes, events, …
//!
//! They pass. But the number they return may be that of a file which was closed by a way nobody saw
//! (an inline system call): what the tables know of that number is forgotten, so that no call on the
//! new thing is taken for one on the old file.

use crate::call::padded;
use crate::mode::{self, Mode};
use crate::moment::{Moment, moment};
use crate::stage::{Held, Opening};
use crate::{descriptor, errno, next, stage, system};

/// A descriptor was made just now, unless the number is negative.
pub(super) fn seen(fd: i32) {
    if fd >= 0 && moment() == Moment::Usual {
        stage::replaced_unseen(fd);
        descriptor::take(fd as usize);
    }
}

/// A file was opened by a call that strategies do not follow. What the program gets: the copy, if it lies in a fast
/// place, else the same.
pub(super) fn opened(fd: i32, flags: i32) -> i32 {
    let mut fd = fd;
    if fd >= 0 && moment() == Moment::Usual && mode::get().has(Mode::STAGE) {
        let status = system::status(fd).ok();
        match stage::after_open(Held::NOTHING, fd, flags, None, status.as_ref()) {
            Opening::Passed | Opening::Gone => {}
            Opening::Staged(copy, _) => fd = copy,
            Opening::Failed(reason) => {
                errno::set(reason);
                return -1;
            }
        }
    }
    seen(fd);
    fd
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn open_by_handle_at(
    mount: usize,
    handle: usize,
    flags: usize,
) -> i32 {
    // SAFETY: the guest's own arguments.
    let fd = unsafe { next::open_by_handle_at.call(padded([mount, handle, flags])) } as i32;
    opened(fd, flags as i32)
}

/// A call put two descriptors at this address.
///
/// # Safety
/// The call succeeded.
unsafe fn seen_pair(result: usize, pair: usize) {
    if result as i32 == 0 {
        // SAFETY: by this function's contract.
        unsafe {
            seen(*(pair as *const i32));
            seen(*(pair as *const i32).add(1));
        }
    }
}

macro_rules! fresh {
    ($($symbol:ident($($argument:ident)*);)*) => {$(
        /// # Safety
        /// As libc's.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C-unwind" fn $symbol($($argument: usize),*) -> i32 {
            // SAFETY: the guest's own arguments.
            let fd = unsafe { next::$symbol.call(padded([$($argument),*])) } as i32;
            seen(fd);
            fd
        }
    )*};
}

fresh! {
    socket(domain kind protocol);
    accept(fd address length);
    accept4(fd address length flags);
    eventfd(count flags);
    epoll_create(size);
    epoll_create1(flags);
    timerfd_create(clock flags);
    signalfd(fd mask flags);
    inotify_init();
    inotify_init1(flags);
    fanotify_init(flags event_flags);
    memfd_create(name flags);
    pidfd_open(process flags);
    pidfd_getfd(process fd flags);
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn pipe(pair: usize) -> usize {
    // SAFETY: the guest's own arguments.
    unsafe {
        let result = next::pipe.call([pair, 0, 0, 0, 0, 0]);
        seen_pair(result, pair);
        result
    }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn pipe2(pair: usize, flags: usize) -> usize {
    // SAFETY: the guest's own arguments.
    unsafe {
        let result = next::pipe2.call([pair, flags, 0, 0, 0, 0]);
        seen_pair(result, pair);
        result
    }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn socketpair(
    domain: usize,
    kind: usize,
    protocol: usize,
    pair: usize,
) -> usize {
    // SAFETY: the guest's own arguments.
    unsafe {
        let result = next::socketpair.call([domain, kind, protocol, pair, 0, 0]);
        seen_pair(result, pair);
        result
    }
}
