//! Descriptors on their way to another process, by a message on a socket: the other one shares the
//! description from then on, file position and all.

use crate::mode::{self, Mode};
use crate::next::Next;
use crate::stage;
use libc::{c_int, c_uint, mmsghdr, msghdr};

static SENDMSG: Next = Next::new(c"sendmsg");
static SENDMMSG: Next = Next::new(c"sendmmsg");

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn sendmsg(
    socket: c_int,
    message: *const msghdr,
    flags: c_int,
) -> isize {
    // SAFETY: the guest's own arguments.
    unsafe {
        if mode::get().has(Mode::STAGE) {
            stage::before_message(message as usize);
        }
        SENDMSG.call([socket as usize, message as usize, flags as usize, 0, 0, 0]) as isize
    }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn sendmmsg(
    socket: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
) -> c_int {
    // SAFETY: the guest's own arguments.
    unsafe {
        if mode::get().has(Mode::STAGE) {
            // The kernel takes no more than this at a time.
            for index in 0..count.min(1024) as usize {
                stage::before_message(messages as usize + index * size_of::<mmsghdr>());
            }
        }
        let arguments = [socket as usize, messages as usize, count as usize, flags as usize, 0, 0];
        SENDMMSG.call(arguments) as c_int
    }
}
