//! A page of words that all processes of a run share. It has no name in any directory: processes find it by
//! the launcher's descriptor, and it goes with the last of them. Who cannot reach it (another user's, in a
//! container) has none.

use crate::system::{self, Descriptor, system_call};
use std::ffi::{CStr, c_int};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

/// What lies in such a page.
///
/// # Safety
/// All of it are atomic words, for which any bits are good.
pub(crate) unsafe trait Page: 'static {
    /// Tells such a page, and the version of it, from others.
    const MAGIC: u64;
    /// What the system calls it.
    const NAME: &CStr;

    /// Where that stands.
    fn magic(&self) -> &AtomicU64;
}

/// Makes a page of zeros. The path processes find it by holds as long as this process lives.
///
/// # Errors
/// The error number, where the system has no room.
pub(crate) fn create<P: Page>() -> Result<(&'static P, String), c_int> {
    let file = Descriptor::in_memory(P::NAME, 0)?;
    // SAFETY: no memory is involved. Memory there is none for is an error here and no signal later.
    let granted = unsafe { system_call!(SYS_fallocate, file.number(), 0, 0, size_of::<P>()) };
    if granted < 0 {
        return Err(-granted as c_int);
    }
    let page = mapped::<P>(file.number())?;
    page.magic().store(P::MAGIC, Release);
    Ok((page, file.kept()))
}

/// Finds the page of the run this process is part of.
pub(crate) fn attach<P: Page>(path: &CStr) -> Option<&'static P> {
    let file = Descriptor::open(path, libc::O_RDWR).ok()?;
    let status = file.status()?;
    let is_page = status.st_mode & libc::S_IFMT == libc::S_IFREG
        && status.st_uid == system::own_user()
        && status.st_size as usize == size_of::<P>();
    if !is_page {
        return None;
    }
    let page = mapped::<P>(file.number()).ok()?;
    if page.magic().load(Acquire) == P::MAGIC {
        return Some(page);
    }
    // SAFETY: our own mapping, of which no reference is left.
    unsafe { system_call!(SYS_munmap, std::ptr::from_ref(page), size_of::<P>()) };
    None
}

fn mapped<P: Page>(fd: c_int) -> Result<&'static P, c_int> {
    let page = system::map_shared(fd, 0, size_of::<P>() as u64).ok_or(libc::ENOMEM)?;
    // SAFETY: mapped with that many bytes, all of them atomic words, and never unmapped in use.
    Ok(unsafe { &*page.cast::<P>() })
}
