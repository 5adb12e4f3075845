//! Functions that make a descriptor which is no file of a path: sockets, pipes, events, …
//!
//! They pass. But the number they return may be that of a file which was closed by a way nobody saw
//! (an inline system call): what the tables know of that number is forgotten, so that no call on the
//! new thing is taken for one on the old file.

use crate::moment::{Moment, moment};
use crate::{descriptor, next, stage};

/// A descriptor was made just now, unless the number is negative.
pub(super) fn seen(fd: i32) {
    if fd >= 0 && moment() == Moment::Usual {
        stage::replaced_unseen(fd);
        descriptor::take(fd as usize);
    }
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
            let fd = unsafe { next::$symbol.call(crate::call::padded([$($argument),*])) } as i32;
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
    open_by_handle_at(mount handle flags);
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
