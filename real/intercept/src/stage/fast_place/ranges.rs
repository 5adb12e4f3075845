//! `fallocate` of a range that is to be zeroed, taken out or put in, where home's file system can and the fast place's
//! cannot (ext4 and tmpfs): carried out on the copy by moving its bytes. Whether home would take a range out or put
//! one in is asked of it, behind the file's end, where nothing is changed; what it cannot, the program hears as ever.
//!
//! Room for all bytes is taken before the first is moved, so a full fast place leaves the file as it was. Unlike the
//! kernel's, such a call is not atomic to others who write to that range meanwhile.

use super::super::kernel::{self, system_call};
use super::{busy, copy_behind};
use crate::call::Call;
use iolab_segment::FastPath;
use iolab_trace::Function;
use std::ffi::c_int;

/// Bytes that are moved at a time.
const PIECE_BYTES: usize = 1 << 20;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Zero { keeps_size: bool },
    TakeOut,
    PutIn,
}

impl Change {
    /// What a call with that mode asks for.
    fn of(mode: c_int) -> Option<Change> {
        const ZERO_KEEPING: c_int = libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE;
        match mode {
            libc::FALLOC_FL_ZERO_RANGE => Some(Change::Zero { keeps_size: false }),
            ZERO_KEEPING => Some(Change::Zero { keeps_size: true }),
            libc::FALLOC_FL_COLLAPSE_RANGE => Some(Change::TakeOut),
            libc::FALLOC_FL_INSERT_RANGE => Some(Change::PutIn),
            _ => None,
        }
    }
}

/// The call, made by hand where the fast place refuses it.
pub(super) fn answered(call: &Call, result: isize) -> isize {
    const REFUSED: isize = -(libc::EOPNOTSUPP as isize);
    if call.function != Function::FALLOCATE || result != REFUSED {
        return result;
    }
    let change = Change::of(call.raw[1] as c_int);
    let file = busy().and_then(|place| Some((place, copy_behind(place, call.fd as c_int)?)));
    let (Some(change), Some((place, file))) = (change, file) else { return result };
    let block = match home_block(&place.home_of(&file), call.raw[1] as c_int, change) {
        Some(block) => block,
        None => return result,
    };
    let Some(copy) = Opened::at(&place.copy_of(file.home)) else { return result };
    let range = Range { offset: call.raw[2] as u64, length: call.raw[3] as u64 };
    copy.changed(change, range, block)
}

/// The block of home's file system, if it can do such a thing.
fn home_block(home: &FastPath, mode: c_int, change: Change) -> Option<u64> {
    let home = Opened::at(home)?;
    let status = kernel::status(home.0)?;
    let block = (status.st_blksize as u64).max(1);
    if !matches!(change, Change::Zero { .. }) {
        // No byte of the file is there, so who can do it says that this is no range.
        let end = (status.st_size as u64).next_multiple_of(block);
        let said = kernel::allocate(home.0, mode, end, block);
        if said != -(libc::EINVAL as isize) {
            return None;
        }
    }
    Some(block)
}

#[derive(Clone, Copy)]
struct Range {
    offset: u64,
    length: u64,
}

/// A descriptor of ours, for reading and writing.
struct Opened(c_int);

impl Opened {
    fn at(path: &FastPath) -> Option<Opened> {
        const FLAGS: c_int = libc::O_RDWR | libc::O_CLOEXEC;
        let path = path.c_text().as_ptr();
        // SAFETY: a terminated path.
        let fd = unsafe { system_call!(SYS_openat, libc::AT_FDCWD, path, FLAGS, 0) };
        (fd >= 0).then_some(Opened(fd as c_int))
    }

    fn changed(&self, change: Change, range: Range, block: u64) -> isize {
        const NO_RANGE: isize = -(libc::EINVAL as isize);
        let Some(status) = kernel::status(self.0) else { return -(libc::EIO as isize) };
        let (bytes, end) = (status.st_size as u64, range.offset + range.length);
        let is_aligned = range.offset.is_multiple_of(block) && range.length.is_multiple_of(block);
        match change {
            Change::Zero { keeps_size } => {
                if end > bytes && !keeps_size {
                    let longer = kernel::truncate(self.0, end);
                    if longer < 0 {
                        return longer;
                    }
                }
                self.zeroed(range)
            }
            Change::TakeOut if !is_aligned || end >= bytes => NO_RANGE,
            Change::TakeOut => self
                .takes_room(range.offset, bytes - end)
                .and_then(|()| self.moved(end, bytes, range.offset))
                .map_or_else(|failed| failed, |()| kernel::truncate(self.0, bytes - range.length)),
            Change::PutIn if !is_aligned || range.offset >= bytes => NO_RANGE,
            Change::PutIn => {
                let longer = kernel::truncate(self.0, bytes + range.length);
                if longer < 0 {
                    return longer;
                }
                let room = self.takes_room(end, bytes - range.offset);
                if let Err(full) = room {
                    kernel::truncate(self.0, bytes);
                    return full;
                }
                self.moved(range.offset, bytes, end)
                    .map_or_else(|failed| failed, |()| self.zeroed(range))
            }
        }
    }

    fn zeroed(&self, range: Range) -> isize {
        const HOLE: c_int = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        kernel::allocate(self.0, HOLE, range.offset, range.length)
    }

    fn takes_room(&self, offset: u64, length: u64) -> Result<(), isize> {
        match kernel::allocate(self.0, libc::FALLOC_FL_KEEP_SIZE, offset, length) {
            failed if failed < 0 => Err(failed),
            _ => Ok(()),
        }
    }

    /// Moves the bytes from `begin` to `end`, so that they begin at `to`: from whichever side overwrites none that is
    /// still to be moved.
    fn moved(&self, begin: u64, end: u64, to: u64) -> Result<(), isize> {
        let buffer = kernel::map(PIECE_BYTES).ok_or(-(libc::ENOMEM as isize))?;
        let pieces = (end - begin).div_ceil(PIECE_BYTES as u64);
        let piece = |index: u64| {
            let at = index * PIECE_BYTES as u64;
            let wanted = (PIECE_BYTES as u64).min(end - begin - at) as usize;
            // SAFETY: the buffer has room for a piece.
            let moved = unsafe {
                match kernel::pread(self.0, buffer.cast(), wanted, (begin + at) as i64) {
                    read if read == wanted as isize => {
                        kernel::pwrite(self.0, buffer.cast(), wanted, (to + at) as i64)
                    }
                    read => read,
                }
            };
            match moved {
                moved if moved == wanted as isize => Ok(()),
                failed if failed < 0 => Err(failed),
                _ => Err(-(libc::EIO as isize)),
            }
        };
        let done = if to < begin {
            (0..pieces).try_for_each(piece)
        } else {
            (0..pieces).rev().try_for_each(piece)
        };
        // SAFETY: our own mapping, behind its last use.
        unsafe { kernel::unmap(buffer, PIECE_BYTES) };
        done
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        kernel::close(self.0);
    }
}
