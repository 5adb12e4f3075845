//! Descriptors that travel over sockets: a file that is sent is shared from then on, a descriptor
//! that arrives is a new one.

use super::fresh;
use super::record::record_of;
use crate::call::{Call, Returns};
use crate::mode::{self, Mode};
use crate::moment::{Moment, moment};
use crate::{descriptor, next, recorder, stage};
use iolab_trace::Function;
use libc::{mmsghdr, msghdr};

/// Calls `visit` with every descriptor in the control data of a message.
///
/// # Safety
/// Message and control data must be readable.
unsafe fn each_descriptor(message: *const msghdr, visit: fn(i32)) {
    // SAFETY: walks the control data as the macros of libc do, within its length.
    unsafe {
        if (*message).msg_control.is_null() {
            return;
        }
        let mut head = libc::CMSG_FIRSTHDR(message);
        while !head.is_null() {
            if (*head).cmsg_level == libc::SOL_SOCKET && (*head).cmsg_type == libc::SCM_RIGHTS {
                let data = libc::CMSG_DATA(head).cast::<i32>();
                let bytes = (*head).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                (0..bytes / 4).for_each(|index| visit(data.add(index).read_unaligned()));
            }
            head = libc::CMSG_NXTHDR(message, head);
        }
    }
}

/// A file is about to be sent away.
fn send(fd: i32) {
    let entry = descriptor::get(fd as usize);
    if !entry.is_tracked() {
        return;
    }
    stage::lent(fd);
    if mode::get().has(Mode::RECORD_POSIX) {
        let next = &next::sendmsg;
        let mut call = Call::new(Function::SEND_DESCRIPTOR, Returns::Int, next, [0; 6]);
        call.fd = fd as usize;
        let now = recorder::now();
        let class = call.function.class();
        // SAFETY: there are no memory arguments.
        recorder::push(unsafe { record_of(class, &call, entry.description(), (now, now), 0) });
    }
}

/// Looks at a message about to be sent, as far as it can be read: the system refuses the rest.
unsafe fn look(message: *const msghdr) {
    // SAFETY: asked before it is read.
    unsafe {
        if stage::is_memory(message as usize, size_of::<msghdr>())
            && stage::is_memory((*message).msg_control as usize, (*message).msg_controllen)
        {
            each_descriptor(message, send);
        }
    }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn sendmsg(fd: usize, message: usize, flags: usize) -> usize {
    // SAFETY: the guest's own arguments.
    unsafe {
        if moment() == Moment::Usual {
            look(message as *const msghdr);
        }
        next::sendmsg.call([fd, message, flags, 0, 0, 0])
    }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn sendmmsg(
    fd: usize,
    messages: usize,
    count: usize,
    flags: usize,
) -> usize {
    // SAFETY: the guest's own arguments; each message is asked for before it is read.
    unsafe {
        if moment() == Moment::Usual {
            let first = messages as *const mmsghdr;
            for index in 0..(count as u32 as usize).min(1024) {
                look(first.wrapping_add(index).cast::<msghdr>());
            }
        }
        next::sendmmsg.call([fd, messages, count, flags, 0, 0])
    }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn recvmsg(fd: usize, message: usize, flags: usize) -> isize {
    // SAFETY: the guest's own arguments; the system has just filled the message.
    unsafe {
        let result = next::recvmsg.call([fd, message, flags, 0, 0, 0]) as isize;
        if result >= 0 {
            each_descriptor(message as *const msghdr, fresh::seen);
        }
        result
    }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn recvmmsg(
    fd: usize,
    messages: usize,
    count: usize,
    flags: usize,
    timeout: usize,
) -> i32 {
    // SAFETY: the guest's own arguments; the system has just filled that many messages.
    unsafe {
        let result = next::recvmmsg.call([fd, messages, count, flags, timeout, 0]) as i32;
        for index in 0..result.max(0) as usize {
            let message = (messages as *const mmsghdr).add(index);
            each_descriptor(message.cast::<msghdr>(), fresh::seen);
        }
        result
    }
}
