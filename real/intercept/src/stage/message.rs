//! What a message on a socket hands on: descriptors in its control data (`SCM_RIGHTS`). The memory
//! is the program's and may be bad; then the system says so.

use super::kernel;
use std::ffi::c_int;

/// `struct cmsghdr` of 64-bit Linux: length with the header, level, type, data aligned to 8 bytes.
const HEAD_BYTES: usize = 16;
/// The kernel passes at most 253 descriptors in a message; other control data is small.
const CONTROL_BYTES_MAX: usize = 64 << 10;

/// Calls `pass` for each descriptor the message at that address hands on.
pub(super) fn descriptors(message: usize, mut pass: impl FnMut(c_int)) {
    if !is_readable(message, size_of::<libc::msghdr>()) {
        return;
    }
    // SAFETY: readable; the program must not change it during the call.
    let message = unsafe { &*(message as *const libc::msghdr) };
    let (mut at, mut left) = (message.msg_control as usize, message.msg_controllen);
    left = left.min(CONTROL_BYTES_MAX);
    if left < HEAD_BYTES || !at.is_multiple_of(8) || !is_readable(at, left) {
        return;
    }
    while left >= HEAD_BYTES {
        // SAFETY: readable and aligned, as just checked.
        let head = unsafe { &*(at as *const libc::cmsghdr) };
        let bytes = head.cmsg_len;
        if bytes < HEAD_BYTES || bytes > left {
            return;
        }
        if head.cmsg_level == libc::SOL_SOCKET && head.cmsg_type == libc::SCM_RIGHTS {
            for index in 0..(bytes - HEAD_BYTES) / size_of::<c_int>() {
                // SAFETY: lies within the readable control data.
                pass(unsafe { *((at + HEAD_BYTES) as *const c_int).add(index) });
            }
        }
        let step = bytes.next_multiple_of(8).min(left);
        (at, left) = (at + step, left - step);
    }
}

fn is_readable(address: usize, bytes: usize) -> bool {
    let last = address.saturating_add(bytes.saturating_sub(8));
    address != 0 && (address..last).step_by(4096).chain([last]).all(kernel::is_readable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_found_among_other_control_data_and_bad_memory_is_none() {
        let mut control = [0u64; 8];
        control[0] = 16 + 4;
        control[1] = 99 << 32 | 7;
        control[3] = 16 + 8;
        control[4] = (libc::SCM_RIGHTS as u64) << 32 | libc::SOL_SOCKET as u64;
        control[5] = 6 << 32 | 5;
        // SAFETY: all zero is a message.
        let mut message = unsafe { std::mem::zeroed::<libc::msghdr>() };
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = 48;
        let found = |message: usize| {
            let mut found = Vec::new();
            descriptors(message, |fd| found.push(fd));
            found
        };
        assert_eq!(found(&raw const message as usize), [5, 6]);
        message.msg_control = 0x10 as *mut _;
        assert_eq!(found(&raw const message as usize), [0; 0]);
        assert_eq!(found(0x10), [0; 0]);
    }
}
