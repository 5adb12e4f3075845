//! Status of files of ours: that of the stand-in, but for length and blocks.

use crate::ours;
use crate::place::{Place, path_of};
use crate::run::{Run, fail, run, work};
use std::ffi::c_int;
use std::os::unix::ffi::OsStringExt;

/// What a call asked for the status of.
#[derive(Clone, Copy)]
pub(crate) enum Asked {
    Name(Place),
    Descriptor(c_int),
}

impl Asked {
    /// As functions with flags ask.
    pub(crate) fn with(place: Place, flags: c_int) -> Asked {
        // SAFETY: the kernel has read the name; older ones need one, newer ones take null for none.
        let is_empty = || place.name.is_null() || unsafe { *place.name == 0 };
        match flags {
            _ if flags & libc::AT_EMPTY_PATH != 0 && is_empty() => {
                Asked::Descriptor(place.directory)
            }
            _ if flags & libc::AT_SYMLINK_NOFOLLOW != 0 => Asked::Name(place.itself()),
            _ => Asked::Name(place),
        }
    }

    fn chosen(self, run: &Run) -> Option<Vec<u8>> {
        match self {
            Asked::Name(place) => place.chosen(run),
            Asked::Descriptor(descriptor) => {
                let path = path_of(descriptor)?.into_os_string().into_vec();
                run.chosen.holds(&path).then_some(path)
            }
        }
    }
}

/// Length of a file of ours whose stand-in has this status; none if it is another file. A failure is
/// `errno`.
fn bytes(asked: Asked, (mode, device, inode): (u32, u64, u64)) -> Result<Option<u64>, i32> {
    let Some(run) = run() else { return Ok(None) };
    if mode & libc::S_IFMT != libc::S_IFREG || !run.stand_ins.may_have(device, inode) {
        return Ok(None);
    }
    let look = || {
        let Some(name) = asked.chosen(run) else { return Ok(None) };
        let Some(client) = run.client()? else { return Ok(None) };
        Ok(ours::found(run, &client, &name)?.map(|found| found.bytes))
    };
    work(look).unwrap_or(Ok(None))
}

/// Blocks of 512 bytes that plain files of that length mostly have.
fn blocks(bytes: u64) -> u64 {
    bytes.div_ceil(4096) * 8
}

/// Corrects what `stat` and its like have found.
///
/// # Safety
/// The status was filled by a call that ended so.
pub(crate) unsafe fn corrected(result: c_int, asked: Asked, status: *mut libc::stat) -> c_int {
    if result != 0 || run().is_none() {
        return result;
    }
    // SAFETY: the caller's promise.
    let status = unsafe { &mut *status };
    match bytes(asked, (status.st_mode, status.st_dev, status.st_ino)) {
        Ok(None) => {}
        Ok(Some(bytes)) => {
            status.st_size = bytes as i64;
            status.st_blocks = blocks(bytes) as i64;
        }
        Err(number) => return fail(number),
    }
    result
}

/// Corrects what `statx` has found.
///
/// # Safety
/// As above.
pub(crate) unsafe fn corrected_x(result: c_int, asked: Asked, status: *mut libc::statx) -> c_int {
    if result != 0 || run().is_none() {
        return result;
    }
    // SAFETY: the caller's promise.
    let status = unsafe { &mut *status };
    let device = libc::makedev(status.stx_dev_major, status.stx_dev_minor);
    match bytes(asked, (u32::from(status.stx_mode), device, status.stx_ino)) {
        Ok(None) => {}
        Ok(Some(bytes)) => {
            status.stx_size = bytes;
            status.stx_blocks = blocks(bytes);
        }
        Err(number) => return fail(number),
    }
    result
}
