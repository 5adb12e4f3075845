//! Overwrites the entry points of libc's own functions, so that calls libc makes itself (stdio,
//! aio, `mkstemp`, `nftw`, …) reach the hooks.
//!
//! The first bytes of each become a jump to the hook. No trampoline back is needed: a
//! hook makes the system call itself. Done once, at start, while the process has one thread; where
//! the system forbids it (hardened kernels), another preloaded library has a function of that
//! name, or libc's is not one that can be overwritten (before version 2.26), not all calls are seen:
//! the trace says so, and strategies step aside, because somebody would look past them. Cost: about
//! 5 ns per call, and two system calls at start.

use crate::hook::quiet;
use crate::next::{self, Next};
use crate::object::{Libc, Place};
use crate::processor::code::{JUMP_BYTES, has_inner_entry, jump_to, make_visible};
use crate::{system, wrappers};
use iolab_processor::{page_bytes, whole_pages};

const ENTRIES: usize = 29;

/// A function that makes nothing but its system call, and its hook.
struct Entry {
    next: &'static Next,
    hook: usize,
    need: Need,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// A strategy would be looked past without it.
    Always,
    /// As `Always`, where libc has no function `stat` (before version 2.33); elsewhere libc itself
    /// does not call it.
    WithoutStat,
    /// Only the trace would miss it.
    Never,
}

macro_rules! entries {
    ($($kind:ident $next:ident by $hook:path;)*) => {
        [$(Entry {
            next: &next::$next,
            hook: $hook as *const () as usize,
            need: entries!($kind),
        }),*]
    };
    (needed) => { Need::Always };
    (stat) => { Need::WithoutStat };
    (also) => { Need::Never };
}

/// `read` and `read64` kinds share an address on 64 bits; each address is overwritten once.
fn entries() -> [Entry; ENTRIES] {
    entries! {
        needed write by wrappers::write;
        needed read by wrappers::read;
        needed pwrite64 by wrappers::pwrite64;
        needed pread64 by wrappers::pread64;
        needed writev by wrappers::writev;
        needed readv by wrappers::readv;
        needed lseek64 by wrappers::lseek64;
        needed open64 by wrappers::open64;
        needed openat64 by wrappers::openat64;
        needed close by wrappers::close;
        also fsync by wrappers::fsync;
        also fdatasync by wrappers::fdatasync;
        needed ftruncate64 by wrappers::ftruncate64;
        needed dup by wrappers::dup;
        needed dup2 by wrappers::dup2;
        needed dup3 by wrappers::dup3;
        also stat64 by wrappers::stat64;
        also lstat64 by wrappers::lstat64;
        also fstat64 by wrappers::fstat64;
        also fstatat64 by wrappers::fstatat64;
        stat __xstat64 by wrappers::__xstat64;
        stat __lxstat64 by wrappers::__lxstat64;
        stat __fxstat64 by wrappers::__fxstat64;
        stat __fxstatat64 by wrappers::__fxstatat64;
        also __close_nocancel by quiet::close;
        also __read_nocancel by quiet::read;
        also __write_nocancel by quiet::write;
        also __open_nocancel by quiet::open;
        also __pread64_nocancel by quiet::pread;
    }
}

/// Overwrites them all; false when any that is needed could not be, and then as many as could be
/// are. Also notes which functions of the table are another library's.
pub(crate) fn all() -> bool {
    let libc = Libc::loaded();
    for next in next::all().filter(|next| !libc.holds(next.known())) {
        let of_libc = libc.files().iter().find_map(|file| file.function(next.name()));
        next.set_foreign(of_libc.map_or(0, |place| place.address));
    }
    if !system::has_one_thread() {
        return false;
    }
    let without_stat = next::fstat64.known() == 0;
    let mut jumps = [const { [const { None }; ENTRIES] }; 2];
    let mut complete = true;
    for (index, entry) in entries().iter().enumerate() {
        let needed = match entry.need {
            Need::Always => true,
            Need::WithoutStat if !without_stat => continue,
            Need::WithoutStat => true,
            Need::Never => false,
        };
        let address = entry.next.known();
        if !libc.holds(address) {
            complete &= !needed && address == 0;
            continue;
        }
        let mut is_found = false;
        for (file, jumps) in libc.files().iter().zip(&mut jumps) {
            let Some(place) = file.function(entry.next.name()) else { continue };
            is_found |= place.address == address;
            // SAFETY: code of a loaded file.
            match unsafe { takes_jump(place) } {
                true => jumps[index] = Some(Jump { to: place.address, hook: entry.hook }),
                false => complete &= !needed,
            }
        }
        complete &= is_found || !needed;
    }
    let files = libc.files().len();
    jumps.iter().take(files).fold(files > 0, |done, jumps| overwrite(jumps) && done) && complete
}

/// What is to stand at the beginning of a function.
struct Jump {
    to: usize,
    hook: usize,
}

/// Whether a jump leaves what lies behind the function, and other ways into it, as they are.
///
/// # Safety
/// There is such a function.
unsafe fn takes_jump(place: Place) -> bool {
    if place.size < JUMP_BYTES {
        return false;
    }
    // SAFETY: the caller's promise; it is that long.
    !has_inner_entry(unsafe { &*(place.address as *const [u8; JUMP_BYTES]) })
}

/// Opens the pages of one file's functions for writing, all in one piece, and closes them again. A file
/// without any is done.
fn overwrite(jumps: &[Option<Jump>]) -> bool {
    let addresses = || jumps.iter().flatten().map(|jump| jump.to);
    let (Some(first), Some(last)) = (addresses().min(), addresses().max()) else { return true };
    let pages = whole_pages(first..last + JUMP_BYTES, page_bytes());
    let read_execute = libc::PROT_READ | libc::PROT_EXEC;
    // SAFETY: the bytes are code of functions at least this long, nobody executes them now, and the pages
    // are readable and executable again afterwards.
    unsafe {
        let open = read_execute | libc::PROT_WRITE;
        if system::raw3(libc::SYS_mprotect, pages.start, pages.len(), open as usize) != 0 {
            return false;
        }
        for jump in jumps.iter().flatten() {
            let code = jump_to(jump.hook);
            std::ptr::copy_nonoverlapping(code.as_ptr(), jump.to as *mut u8, JUMP_BYTES);
            make_visible(jump.to);
        }
        let near = next::all().filter(|next| (first..=last).contains(&next.known()));
        near.filter(|next| addresses().any(|it| it == next.known())).for_each(Next::set_patched);
        system::raw3(libc::SYS_mprotect, pages.start, pages.len(), read_execute as usize) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_short_is_left_alone() {
        static CODE: [u8; 32] = [0x90; 32];
        let address = CODE.as_ptr() as usize;
        // SAFETY: bytes of this program.
        unsafe {
            assert!(!takes_jump(Place { address, size: JUMP_BYTES - 1 }));
            assert!(takes_jump(Place { address, size: JUMP_BYTES }));
        }
    }
}
