//! Overwrites the entry points of libc's own functions, so that calls libc makes itself (stdio,
//! aio, `mkstemp` …) reach the hooks.
//!
//! The first twelve bytes of each become `mov rax, hook; jmp rax`. No trampoline back is needed: a
//! hook makes the system call itself. Done once, at start, while the process has one thread;
//! where the system forbids it (hardened kernels), only calls between libraries are seen and the
//! trace says so. Cost: about 5 ns per call.

use crate::{next, system, wrappers};

const JUMP_BYTES: usize = 12;
const PAGE: usize = 4096;

/// Functions that make nothing but their system call, and their hooks. `read` and `read64` kinds
/// share an address on 64 bits; each address is overwritten once.
fn entries() -> [(usize, usize); 13] {
    [
        (next::write.address(), wrappers::write as *const () as usize),
        (next::read.address(), wrappers::read as *const () as usize),
        (next::pwrite64.address(), wrappers::pwrite64 as *const () as usize),
        (next::pread64.address(), wrappers::pread64 as *const () as usize),
        (next::writev.address(), wrappers::writev as *const () as usize),
        (next::readv.address(), wrappers::readv as *const () as usize),
        (next::lseek64.address(), wrappers::lseek64 as *const () as usize),
        (next::open64.address(), wrappers::open64 as *const () as usize),
        (next::openat64.address(), wrappers::openat64 as *const () as usize),
        (next::close.address(), wrappers::close as *const () as usize),
        (next::fsync.address(), wrappers::fsync as *const () as usize),
        (next::fdatasync.address(), wrappers::fdatasync as *const () as usize),
        (next::ftruncate64.address(), wrappers::ftruncate64 as *const () as usize),
    ]
}

/// Overwrites them all; false when any could not be, and then as many as could be are.
pub(crate) fn all() -> bool {
    if !system::is_single_threaded() {
        return false;
    }
    entries().into_iter().all(|(address, hook)| is_libc(address) && one(address, hook))
}

/// Whether an address is the start of a function of libc with room for the jump. Another preloaded
/// library's wrapper is not: what it calls in turn would come back to us without end.
fn is_libc(address: usize) -> bool {
    // SAFETY: `dladdr` fills the structure it is given; the name in it is terminated.
    unsafe {
        let mut found = std::mem::zeroed::<libc::Dl_info>();
        if address == 0 || libc::dladdr(address as *const libc::c_void, &mut found) == 0 {
            return false;
        }
        let name = std::ffi::CStr::from_ptr(found.dli_fname).to_bytes();
        let file = name.rsplit(|&byte| byte == b'/').next().unwrap_or(name);
        file.starts_with(b"libc.so") || file.starts_with(b"libc-2.")
    }
}

fn one(address: usize, hook: usize) -> bool {
    let mut jump = [0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0];
    for (to, from) in jump[2..10].iter_mut().zip(hook.to_le_bytes()) {
        *to = from;
    }
    let page = address & !(PAGE - 1);
    let length = (address + JUMP_BYTES).next_multiple_of(PAGE) - page;
    let read_execute = libc::PROT_READ | libc::PROT_EXEC;
    // SAFETY: the bytes are code of a function at least this long (the smallest of them takes 25
    // bytes for its number, the call and the error path), nobody executes it now, and the pages
    // are readable and executable again afterwards.
    unsafe {
        let open = read_execute | libc::PROT_WRITE;
        if system::raw3(libc::SYS_mprotect, page, length, open as usize) != 0 {
            return false;
        }
        std::ptr::copy_nonoverlapping(jump.as_ptr(), address as *mut u8, JUMP_BYTES);
        system::raw3(libc::SYS_mprotect, page, length, read_execute as usize) == 0
    }
}
