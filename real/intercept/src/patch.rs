//! Overwrites the entry points of libc's own functions, so that calls libc makes itself (stdio,
//! aio, `mkstemp`, `nftw`, …) reach the hooks.
//!
//! The first twelve bytes of each become `mov rax, hook; jmp rax`. No trampoline back is needed: a
//! hook makes the system call itself. Done once, at start, while the process has one thread; where
//! the system forbids it (hardened kernels), or another preloaded library has a function of that
//! name, not all calls are seen: the trace says so, and strategies step aside, because somebody
//! would look past them. Cost: about 5 ns per call, and two system calls at start.

use crate::hook::quiet;
use crate::next::{self, Next};
use crate::{system, wrappers};
use std::ffi::{c_int, c_void};

const JUMP_BYTES: usize = 12;
const PAGE: usize = 4096;

/// A function that makes nothing but its system call, and its hook.
struct Entry {
    next: &'static Next,
    hook: usize,
    /// Whether a strategy would be looked past without it.
    needed: bool,
}

macro_rules! entries {
    ($($kind:ident $next:ident by $hook:path;)*) => {
        [$(Entry {
            next: &next::$next,
            hook: $hook as *const () as usize,
            needed: entries!($kind),
        }),*]
    };
    (needed) => { true };
    (also) => { false };
}

/// `read` and `read64` kinds share an address on 64 bits; each address is overwritten once.
fn entries() -> [Entry; 23] {
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
        also __close_nocancel by quiet::close;
        also __read_nocancel by quiet::read;
        also __write_nocancel by quiet::write;
    }
}

/// Overwrites them all; false when any that is needed could not be, and then as many as could be
/// are. Also notes which functions of the table are another library's.
pub(crate) fn all() -> bool {
    let libc = Text::of_libc();
    next::all().for_each(|next| next.set_foreign(!libc.holds(next.address())));
    if !system::is_single_threaded() {
        return false;
    }
    let entries = entries();
    // Before version 2.33, libc had no `stat` of its own that others could call.
    let old = next::fstat64.address() == 0;
    let has = |entry: &Entry| libc.holds(entry.next.address());
    let stays = |entry: &&Entry| {
        !has(entry) && (entry.needed || (entry.next.address() != 0 && entry.next.is_foreign()))
    };
    let complete = !old && entries.iter().find(stays).is_none();
    overwrite(&entries, has) && complete
}

/// Where libc's code lies.
#[derive(Clone, Copy)]
struct Text {
    start: usize,
    end: usize,
}

impl Text {
    fn of_libc() -> Text {
        let mut found = Text { start: 0, end: 0 };
        // SAFETY: the function is called with the loader's own structures while this call lasts.
        unsafe { libc::dl_iterate_phdr(Some(look_for_libc), (&raw mut found).cast()) };
        found
    }

    fn holds(&self, address: usize) -> bool {
        self.start <= address && address < self.end
    }
}

unsafe extern "C" fn look_for_libc(
    object: *mut libc::dl_phdr_info,
    _: usize,
    found: *mut c_void,
) -> c_int {
    // SAFETY: the loader's structure, and the place `of_libc` gave.
    unsafe {
        if (*object).dlpi_name.is_null() {
            return 0;
        }
        let name = std::ffi::CStr::from_ptr((*object).dlpi_name).to_bytes();
        let file = name.rsplit(|&byte| byte == b'/').next().unwrap_or(name);
        if !file.starts_with(b"libc.so") && !file.starts_with(b"libc-2.") {
            return 0;
        }
        let count = (*object).dlpi_phnum as usize;
        for header in std::slice::from_raw_parts((*object).dlpi_phdr, count) {
            if header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0 {
                let start = (*object).dlpi_addr as usize + header.p_vaddr as usize;
                *found.cast::<Text>() = Text { start, end: start + header.p_memsz as usize };
            }
        }
    }
    1
}

/// Opens the pages for writing, all in one piece, and closes them again.
fn overwrite(entries: &[Entry], has: impl Fn(&Entry) -> bool) -> bool {
    let addresses = || entries.iter().filter(|entry| has(entry)).map(|it| it.next.address());
    let (Some(first), Some(last)) = (addresses().min(), addresses().max()) else { return false };
    let page = first & !(PAGE - 1);
    let length = (last + JUMP_BYTES).next_multiple_of(PAGE) - page;
    let read_execute = libc::PROT_READ | libc::PROT_EXEC;
    // SAFETY: the bytes are code of functions at least this long (the smallest takes 18 bytes, and
    // they begin at multiples of 16), nobody executes them now, and the pages are readable and
    // executable again afterwards.
    unsafe {
        let open = read_execute | libc::PROT_WRITE;
        if system::raw3(libc::SYS_mprotect, page, length, open as usize) != 0 {
            return false;
        }
        for entry in entries.iter().filter(|entry| has(entry)) {
            let jump = jump_to(entry.hook);
            let to = entry.next.address() as *mut u8;
            std::ptr::copy_nonoverlapping(jump.as_ptr(), to, JUMP_BYTES);
            next::all().filter(|next| next.address() == to as usize).for_each(Next::set_patched);
        }
        system::raw3(libc::SYS_mprotect, page, length, read_execute as usize) == 0
    }
}

fn jump_to(hook: usize) -> [u8; JUMP_BYTES] {
    let mut jump = [0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0];
    for (to, from) in jump[2..10].iter_mut().zip(hook.to_le_bytes()) {
        *to = from;
    }
    jump
}
