//! A program that limits its own address space: what the recorder has reserved is given back first, so
//! that the program keeps what it would have without it. One that limits its files is told at once of a
//! write that does not fit: what is held goes out first, and nothing is held any more.

use crate::mode::{self, Mode};
use crate::next::Next;
use crate::{process, recorder, stage};

unsafe fn before(resource: usize, limit: usize) {
    let resource = resource as u32;
    let concerns = matches!(resource, libc::RLIMIT_AS | libc::RLIMIT_FSIZE);
    if !concerns || limit == 0 || mode::get() == Mode::NOTHING {
        return;
    }
    // SAFETY: the guest's own structure, which the kernel is about to read.
    let limit = unsafe { (*(limit as *const libc::rlimit)).rlim_cur };
    if limit == libc::RLIM_INFINITY || !process::owns_state() {
        return;
    }
    match resource {
        libc::RLIMIT_AS => recorder::before_address_limit(limit),
        _ => stage::before_file_limit(),
    }
}

macro_rules! limits {
    ($($symbol:ident($($argument:ident)*) by $resource:ident $limit:ident;)*) => {$(
        /// # Safety
        /// As libc's.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C-unwind" fn $symbol($($argument: usize),*) -> usize {
            static NEXT: Next = match std::ffi::CStr::from_bytes_with_nul(
                concat!(stringify!($symbol), "\0").as_bytes(),
            ) {
                Ok(name) => Next::new(name),
                Err(_) => panic!("a symbol holds no NUL"),
            };
            // SAFETY: the guest's own arguments.
            unsafe {
                before($resource, $limit);
                NEXT.call(crate::call::padded([$($argument),*]))
            }
        }
    )*};
}

limits! {
    setrlimit(resource limit) by resource limit;
    setrlimit64(resource limit) by resource limit;
    prlimit(pid resource limit old) by resource limit;
    prlimit64(pid resource limit old) by resource limit;
}
