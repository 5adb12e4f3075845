//! Paths as the program named them, made absolute without allocation.

use crate::call::ABSENT;
use crate::system;
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

/// Room for an absolute path; longer ones are cut. It lies in static memory, since a guest's thread or
/// signal handler may have a stack of no more than a few kilobytes.
pub(crate) struct Buffer {
    slot: &'static Slot,
    length: usize,
}

struct Slot {
    taken: AtomicBool,
    bytes: UnsafeCell<[MaybeUninit<u8>; Buffer::ROOM]>,
}

// SAFETY: the bytes belong to whoever set `taken`.
unsafe impl Sync for Slot {}

/// More than threads that look up a path at one moment.
static SLOTS: [Slot; 16] = [const {
    Slot {
        taken: AtomicBool::new(false),
        bytes: UnsafeCell::new([MaybeUninit::uninit(); Buffer::ROOM]),
    }
}; 16];

/// In a forked child, where whoever else held a slot is not there any more.
pub(crate) fn enter_child() {
    SLOTS.iter().for_each(|slot| slot.taken.store(false, Ordering::Relaxed));
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.slot.taken.store(false, Ordering::Release);
    }
}

impl Buffer {
    const ROOM: usize = 4096 + 256;

    pub(crate) fn new() -> Buffer {
        for _ in 0..1000 {
            let free = SLOTS.iter().find(|slot| !slot.taken.swap(true, Ordering::Acquire));
            if let Some(slot) = free {
                return Buffer { slot, length: 0 };
            }
            // SAFETY: takes no arguments.
            unsafe { system::raw3(libc::SYS_sched_yield, 0, 0, 0) };
        }
        // All were left by handlers that jumped away: a name may be wrong then, the guest never hangs.
        Buffer { slot: &SLOTS[0], length: 0 }
    }

    fn start(&self) -> *mut MaybeUninit<u8> {
        self.slot.bytes.get().cast()
    }

    fn push(&mut self, text: &[u8]) {
        for &byte in text {
            if self.length < Buffer::ROOM {
                // SAFETY: within the slot, which is this value's own.
                unsafe { (*self.start().add(self.length)).write(byte) };
                self.length += 1;
            }
        }
    }

    /// The address of `folder/name`, ended by NUL; `None` when it is too long.
    pub(crate) fn terminated(&mut self, folder: &[u8], name: &[u8]) -> Option<usize> {
        self.length = 0;
        self.push(folder);
        if !folder.is_empty() {
            self.push(b"/");
        }
        self.push(name);
        self.push(&[0]);
        (self.length < Buffer::ROOM).then_some(self.start() as usize)
    }

    fn text(&self) -> &[u8] {
        // SAFETY: the first `length` bytes were written.
        unsafe { std::slice::from_raw_parts(self.start().cast(), self.length) }
    }

    /// Fills it by a system call that writes a text and returns its length.
    fn fill(&mut self, call: impl FnOnce(usize, usize) -> isize) {
        let room = Buffer::ROOM;
        self.length = (call(self.start() as usize, room).max(0) as usize).min(room);
    }
}

/// The terminated text at `address`, without its NUL and cut to the longest path there is.
///
/// # Safety
/// The address must be readable up to a NUL; a call that just succeeded with it shows that.
pub(crate) unsafe fn text<'a>(address: usize) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe {
        let length = libc::strnlen(address as *const libc::c_char, 4096);
        std::slice::from_raw_parts(address as *const u8, length)
    }
}

/// The descriptor that a call's path counts from, by its argument.
pub(crate) fn folder(directory: usize) -> i32 {
    if directory == ABSENT { libc::AT_FDCWD } else { directory as i32 }
}

/// The descriptor whose file is meant: by no path at all, or by the name that the system gives to descriptors.
pub(crate) fn descriptor(directory: i32, path: &[u8]) -> Option<i32> {
    if path.is_empty() {
        return (directory >= 0).then_some(directory);
    }
    let own = [&b"/proc/self/fd/"[..], b"/proc/thread-self/fd/", b"/dev/fd/"];
    let number = own.iter().find_map(|own| path.strip_prefix(*own))?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// `path` made absolute, relative to `directory` (a descriptor or `AT_FDCWD`).
pub(crate) fn absolute<'a>(directory: i32, path: &'a [u8], buffer: &'a mut Buffer) -> &'a [u8] {
    if path.first() == Some(&b'/') {
        return path;
    }
    if directory == libc::AT_FDCWD {
        working_directory(buffer);
    } else {
        of_descriptor(directory, buffer);
    }
    // No path at all stands for the directory itself (`AT_EMPTY_PATH`).
    if path.is_empty() {
        return buffer.text();
    }
    if buffer.length != 1 {
        buffer.push(b"/");
    }
    buffer.push(path.strip_prefix(b"./").unwrap_or(path));
    buffer.text()
}

/// `path` made absolute, relative to the directory that the absolute path `of` is in.
pub(crate) fn beside<'a>(of: &[u8], path: &'a [u8], buffer: &'a mut Buffer) -> &'a [u8] {
    if path.first() == Some(&b'/') {
        return path;
    }
    let folder = of.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    buffer.push(&of[..folder]);
    buffer.push(path);
    buffer.text()
}

/// The directory relative paths start from.
pub(crate) fn working_directory(buffer: &mut Buffer) -> &[u8] {
    // SAFETY: the kernel writes at most `room` bytes; its count includes the NUL.
    buffer.fill(|at, room| unsafe { system::raw3(libc::SYS_getcwd, at, room, 0) } - 1);
    buffer.text()
}

/// What the system says an open descriptor is.
pub(crate) fn of_descriptor(fd: i32, buffer: &mut Buffer) -> &[u8] {
    // Of this thread: the first one may have ended, and `/proc/self` is that.
    let mut link = *b"/proc/thread-self/fd/\0\0\0\0\0\0\0\0\0\0\0\0";
    write_decimal(fd.max(0) as u32, &mut link[21..]);
    let Ok(link) = std::ffi::CStr::from_bytes_until_nul(&link) else { return &[] };
    // SAFETY: the kernel writes at most `room` bytes.
    buffer.fill(|at, room| unsafe { system::read_link(link, at, room) });
    buffer.text()
}

/// Where a link leads to; `None` when it cannot be read.
pub(crate) fn of_link<'a>(link: &std::ffi::CStr, buffer: &'a mut Buffer) -> Option<&'a [u8]> {
    // SAFETY: the link is terminated; the kernel writes at most `room` bytes.
    buffer.fill(|at, room| unsafe { system::read_link(link, at, room) });
    (buffer.length > 0).then(|| buffer.text())
}

/// Whether the path at that address, relative to `directory`, ends in a symbolic link, as far as can be
/// told.
pub(crate) fn is_link(directory: i32, path: usize) -> bool {
    let mut first = 0_u8;
    let a = [directory as usize, path, &raw mut first as usize, 1, 0, 0];
    // SAFETY: the kernel checks the path and writes at most one byte.
    unsafe { system::raw(libc::SYS_readlinkat, a) != -(libc::EINVAL as isize) }
}

/// As [`of_descriptor`], the address of the text, ended by NUL; `None` when it is too long.
pub(crate) fn of_descriptor_ended(fd: i32, buffer: &mut Buffer) -> Option<usize> {
    of_descriptor(fd, buffer);
    buffer.push(&[0]);
    (buffer.length < Buffer::ROOM).then_some(buffer.start() as usize)
}

/// Writes a number in decimal at the start of `to`; returns its length.
pub(crate) fn write_decimal(number: u32, to: &mut [u8]) -> usize {
    let mut digits = [0; 10];
    let mut rest = number;
    let mut count = 0;
    while count == 0 || rest > 0 {
        digits[count] = b'0' + (rest % 10) as u8;
        rest /= 10;
        count += 1;
    }
    for (target, &digit) in to.iter_mut().zip(digits[..count].iter().rev()) {
        *target = digit;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_path_becomes_absolute_below_the_working_directory() {
        let mut buffer = Buffer::new();
        let here = std::env::current_dir().unwrap();
        let found = absolute(libc::AT_FDCWD, b"./a/b", &mut buffer);
        assert_eq!(found, here.join("a/b").to_str().unwrap().as_bytes());
    }

    #[test]
    fn what_a_link_leads_to_counts_from_where_the_link_is() {
        let beside = |of: &str, path: &str| {
            let mut buffer = Buffer::new();
            let text = beside(of.as_bytes(), path.as_bytes(), &mut buffer);
            String::from_utf8(text.to_vec()).unwrap()
        };
        assert_eq!(beside("/a/b/link", "../c"), "/a/b/../c");
        assert_eq!(beside("/link", "c"), "/c");
        assert_eq!(beside("/a/link", "/c"), "/c");
    }

    #[test]
    fn decimals_are_written_without_leading_zeros() {
        let mut text = [0; 10];
        assert_eq!(write_decimal(0, &mut text), 1);
        assert_eq!(write_decimal(4_294_967_295, &mut text), 10);
        assert_eq!(&text, b"4294967295");
    }
}
