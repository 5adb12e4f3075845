//! `copy_file_range` between a file at home and one in the fast place: to the program both are of one file
//! system, to the kernel they are not.

use super::super::kernel;
use super::{busy, copy_behind};
use crate::call::Call;
use iolab_trace::Function;
use std::ffi::c_int;

/// Bytes that are copied at a time.
const PIECE_BYTES: usize = 1 << 20;

/// The call, made piece by piece where the kernel refuses it for that reason.
pub(super) fn answered(call: &Call, result: isize) -> isize {
    let is_across = call.function == Function::COPY_FILE_RANGE && result == -(libc::EXDEV as isize);
    if !is_across {
        return result;
    }
    let fds = [call.in_fd as c_int, call.out_fd as c_int];
    let is_ours =
        busy().is_some_and(|place| fds.iter().any(|&fd| copy_behind(place, fd).is_some()));
    if !is_ours {
        return result;
    }
    // SAFETY: the kernel has read both offsets before it said so.
    unsafe { copied(call).unwrap_or(result) }
}

/// A place that is given, or the position of a descriptor.
struct Place {
    fd: c_int,
    given: usize,
    at: i64,
}

impl Place {
    unsafe fn of(fd: usize, given: usize) -> Option<Place> {
        let fd = fd as c_int;
        let at = match given {
            0 => kernel::seek(fd, 0, libc::SEEK_CUR) as i64,
            // SAFETY: by the caller's promise.
            given => unsafe { (given as *const i64).read_unaligned() },
        };
        (at >= 0).then_some(Place { fd, given, at })
    }

    /// So many bytes on from there.
    unsafe fn advance(self, bytes: i64) {
        match self.given {
            0 => {
                kernel::seek(self.fd, self.at + bytes, libc::SEEK_SET);
            }
            // SAFETY: by the caller's promise.
            given => unsafe { (given as *mut i64).write_unaligned(self.at + bytes) },
        }
    }
}

unsafe fn copied(call: &Call) -> Option<isize> {
    let buffer = kernel::map(PIECE_BYTES)?;
    // SAFETY: by the caller's promise; the buffer has that many bytes and goes after its last use.
    unsafe {
        let source = Place::of(call.in_fd, call.in_offset);
        let target = Place::of(call.out_fd, call.out_offset);
        let moved = source.zip(target).map(|(source, target)| {
            let moved = pieces(&source, &target, call.length, buffer);
            if moved > 0 {
                source.advance(moved as i64);
                target.advance(moved as i64);
            }
            moved
        });
        kernel::unmap(buffer, PIECE_BYTES);
        moved
    }
}

/// The bytes that were copied, or the failure of the first piece.
unsafe fn pieces(source: &Place, target: &Place, length: usize, buffer: *mut u8) -> isize {
    let mut done = 0;
    while done < length {
        let wanted = PIECE_BYTES.min(length - done);
        // SAFETY: the buffer has room for a piece.
        let moved = unsafe {
            match kernel::pread(source.fd, buffer.cast(), wanted, source.at + done as i64) {
                read if read <= 0 => read,
                read => {
                    let to = target.at + done as i64;
                    kernel::pwrite(target.fd, buffer.cast(), read as usize, to)
                }
            }
        };
        match moved {
            moved if moved > 0 => done += moved as usize,
            failed if done == 0 => return failed,
            _ => break,
        }
        if (moved as usize) < wanted {
            break;
        }
    }
    done as isize
}
