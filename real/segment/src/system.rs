//! System calls by their number: inside a guest, libc's functions lead back to the hooks.

use std::ffi::{CStr, c_int};

macro_rules! system_call {
    ($number:ident $(, $argument:expr)* $(,)?) => {{
        let given = [$($argument as usize),*];
        let mut arguments = [0usize; 6];
        arguments[..given.len()].copy_from_slice(&given);
        iolab_processor::system_call(libc::$number, arguments)
    }};
}
pub(crate) use system_call;

/// A descriptor that is closed when it goes, by a call that no hook sees.
#[derive(Debug)]
pub struct Descriptor(c_int);

impl Descriptor {
    /// Takes an open descriptor over.
    pub(crate) fn of(fd: c_int) -> Descriptor {
        Descriptor(fd)
    }

    pub(crate) fn open(path: &CStr, flags: c_int) -> Result<Descriptor, c_int> {
        let flags = flags | libc::O_CLOEXEC;
        // SAFETY: the path is terminated.
        let fd = unsafe { system_call!(SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0) };
        if fd < 0 { Err(-fd as c_int) } else { Ok(Descriptor(fd as c_int)) }
    }

    /// A file in memory, without a name in any directory.
    pub(crate) fn in_memory(name: &CStr, flags: u32) -> Result<Descriptor, c_int> {
        let flags = flags | libc::MFD_CLOEXEC;
        // SAFETY: a terminated name; the result is a descriptor of ours.
        let fd = unsafe { system_call!(SYS_memfd_create, name.as_ptr(), flags) };
        if fd < 0 { Err(-fd as c_int) } else { Ok(Descriptor(fd as c_int)) }
    }

    /// Stays open from now on; the answer is its number.
    pub(crate) fn leaked(self) -> c_int {
        let number = self.0;
        std::mem::forget(self);
        number
    }

    /// Stays open from now on: the path by which other processes find the file as long as this one lives.
    pub(crate) fn kept(self) -> String {
        format!("/proc/{}/fd/{}", own_pid(), self.leaked())
    }

    /// Its number.
    pub fn number(&self) -> c_int {
        self.0
    }

    pub(crate) fn status(&self) -> Option<libc::stat> {
        status(self.0)
    }

    /// Writes all of it at `offset`.
    ///
    /// # Safety
    /// `bytes` can be read from `from`.
    pub(crate) unsafe fn write_all(
        &self,
        from: *const u8,
        bytes: u64,
        offset: u64,
    ) -> Result<(), c_int> {
        let mut done = 0;
        while done < bytes {
            let (at, rest) = (from.wrapping_add(done as usize), (bytes - done).min(1 << 30));
            // SAFETY: by this function's contract.
            let moved = unsafe { system_call!(SYS_pwrite64, self.0, at, rest, offset + done) };
            match moved {
                moved if moved == -(libc::EINTR as isize) => {}
                moved if moved < 0 => return Err(-moved as c_int),
                0 => return Err(libc::EIO),
                moved => done += moved as u64,
            }
        }
        Ok(())
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: our own descriptor.
        unsafe { system_call!(SYS_close, self.0) };
    }
}

pub(crate) fn status(fd: c_int) -> Option<libc::stat> {
    let mut status = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the kernel fills `status` on success.
    unsafe {
        let empty = c"".as_ptr();
        let flags = libc::AT_EMPTY_PATH;
        let result = system_call!(SYS_newfstatat, fd, empty, status.as_mut_ptr(), flags);
        (result == 0).then(|| status.assume_init())
    }
}

fn status_of(path: &CStr) -> Option<libc::stat> {
    let mut status = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the path is terminated; the kernel fills `status` on success.
    unsafe {
        let (path, at) = (path.as_ptr(), status.as_mut_ptr());
        let result = system_call!(SYS_newfstatat, libc::AT_FDCWD, path, at, 0);
        (result == 0).then(|| status.assume_init())
    }
}

/// When a file came to be, in nanoseconds; 0 where the file system does not say. With device and
/// inode it tells a file from a later one of the same number.
pub fn birth_of(fd: c_int) -> u64 {
    let mut status = std::mem::MaybeUninit::<libc::statx>::zeroed();
    let (empty, flags) = (c"".as_ptr(), libc::AT_EMPTY_PATH);
    // SAFETY: the path is terminated; the kernel fills `status` on success, else it stays zero.
    let status = unsafe {
        system_call!(SYS_statx, fd, empty, flags, libc::STATX_BTIME, status.as_mut_ptr());
        status.assume_init()
    };
    match status.stx_mask & libc::STATX_BTIME {
        0 => 0,
        _ => status.stx_btime.tv_sec as u64 * 1_000_000_000 + u64::from(status.stx_btime.tv_nsec),
    }
}

/// The inode of this process's number space; 0 when nobody can tell.
pub(crate) fn pid_namespace() -> u64 {
    status_of(c"/proc/self/ns/pid").map_or(0, |status| status.st_ino)
}

/// Where names are looked up: the space of mounts, and the root by device and inode. `None` when
/// nobody can tell.
pub(crate) fn names_in() -> Option<[u64; 3]> {
    let (mounts, root) = (status_of(c"/proc/thread-self/ns/mnt")?, status_of(c"/")?);
    Some([mounts.st_ino, root.st_dev, root.st_ino])
}

/// Maps a part of the file for all to see.
pub(crate) fn map_shared(fd: c_int, offset: u64, bytes: u64) -> Option<*mut u8> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a fresh mapping overlaps nothing.
    let at = unsafe { system_call!(SYS_mmap, 0, bytes, protection, libc::MAP_SHARED, fd, offset) };
    (!(-4095..0).contains(&at)).then_some(at as *mut u8)
}

/// Maps the beginning of a file, to be read.
pub(crate) fn map_read_only(fd: c_int, bytes: u64) -> Option<*const u8> {
    // SAFETY: a fresh mapping overlaps nothing.
    let at = unsafe { system_call!(SYS_mmap, 0, bytes, libc::PROT_READ, libc::MAP_SHARED, fd, 0) };
    (!(-4095..0).contains(&at)).then_some(at as *const u8)
}

/// Has the system give memory to pages of a shared mapping now, so that a full file system is an
/// error here and no signal later. `None` where the kernel does not know how.
pub(crate) fn populate(at: *mut u8, bytes: u64) -> Option<bool> {
    const MADV_POPULATE_WRITE: c_int = 23;
    loop {
        // SAFETY: touches pages of our own mapping.
        match unsafe { system_call!(SYS_madvise, at, bytes, MADV_POPULATE_WRITE) } {
            0 => return Some(true),
            refused if refused == -(libc::EINVAL as isize) => return None,
            later if later == -(libc::EINTR as isize) || later == -(libc::EAGAIN as isize) => {}
            _ => return Some(false),
        }
    }
}

/// Gives the memory of whole pages of a shared mapping back to the system.
///
/// # Safety
/// Nobody needs what is there.
pub unsafe fn release_pages(at: *mut u8, bytes: usize) {
    // SAFETY: by this function's contract.
    unsafe { system_call!(SYS_madvise, at, bytes, libc::MADV_REMOVE) };
}

pub(crate) fn own_pid() -> u32 {
    // SAFETY: no arguments.
    unsafe { system_call!(SYS_getpid) as u32 }
}

pub(crate) fn own_user() -> u32 {
    // SAFETY: no arguments.
    unsafe { system_call!(SYS_geteuid) as u32 }
}

/// Nanoseconds since the system started, sleep included.
pub(crate) fn since_boot_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place.
    unsafe { system_call!(SYS_clock_gettime, libc::CLOCK_BOOTTIME, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Waits a little, the longer the more often it was tried.
pub(crate) fn pause(attempt: u64) {
    match attempt {
        0..64 => std::hint::spin_loop(),
        // SAFETY: no arguments.
        64..256 => {
            // SAFETY: no arguments.
            unsafe { system_call!(SYS_sched_yield) };
        }
        _ => {
            let time = libc::timespec { tv_sec: 0, tv_nsec: 100_000 };
            // SAFETY: `time` lives through the call.
            unsafe { system_call!(SYS_nanosleep, &raw const time, 0) };
        }
    }
}

const MEMBARRIER_GLOBAL_EXPEDITED: usize = 2;
const MEMBARRIER_REGISTER_GLOBAL_EXPEDITED: usize = 4;

/// Lets others make this process listen; false when the kernel cannot.
pub(crate) fn register_to_listen() -> bool {
    // SAFETY: registers this process, nothing else.
    unsafe { system_call!(SYS_membarrier, MEMBARRIER_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0 }
}

/// Makes every registered process finish its stores and loads; false when the kernel cannot.
pub(crate) fn make_all_listen() -> bool {
    // SAFETY: a barrier on other processors, nothing else.
    unsafe { system_call!(SYS_membarrier, MEMBARRIER_GLOBAL_EXPEDITED, 0, 0) == 0 }
}

/// What the system says of a process: its state letter, threads, and when it started in
/// nanoseconds since the system's start. `None` when there is no such process.
pub(crate) fn process_status(pid: u32) -> Option<(u8, u64, u64)> {
    let mut path = [0u8; 32];
    let mut end = 0;
    for part in [&b"/proc/"[..], decimal(pid, &mut [0; 10]), b"/stat\0"] {
        path[end..end + part.len()].copy_from_slice(part);
        end += part.len();
    }
    let file = Descriptor::open(CStr::from_bytes_until_nul(&path).ok()?, libc::O_RDONLY).ok()?;
    let mut text = [0u8; 1024];
    // SAFETY: the buffer is as long as said.
    let length = unsafe { system_call!(SYS_read, file.number(), text.as_mut_ptr(), text.len()) };
    let text = text.get(..usize::try_from(length).ok()?)?;
    // The name stands in brackets and may hold anything.
    let rest = &text[text.iter().rposition(|&byte| byte == b')')? + 2..];
    let mut fields = rest.split(|&byte| byte == b' ');
    let state = *fields.next()?.first()?;
    let number = |field: &[u8]| std::str::from_utf8(field).ok()?.parse::<u64>().ok();
    let threads = number(fields.nth(16)?)?;
    let started = number(fields.nth(1)?)?;
    Some((state, threads, started * 10_000_000))
}

/// Whether there is certainly no process of that number; asks for no descriptor and no `/proc`.
pub(crate) fn is_gone(pid: u32) -> bool {
    // SAFETY: signal 0 only asks.
    unsafe { system_call!(SYS_kill, pid, 0) == -(libc::ESRCH as isize) }
}

/// Whether a write may end this process because a file would become too long.
pub(crate) fn limits_files() -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place.
    let asked = unsafe { system_call!(SYS_prlimit64, 0, libc::RLIMIT_FSIZE, 0, &raw mut limit) };
    asked == 0 && limit.rlim_cur != libc::RLIM_INFINITY
}

/// Writes a number in decimal at the start of `to`.
pub(crate) fn decimal(number: u32, to: &mut [u8; 10]) -> &[u8] {
    let count = number.checked_ilog10().unwrap_or(0) as usize + 1;
    let mut rest = number;
    for digit in to[..count].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    &to[..count]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_tells_of_this_process_and_of_none() {
        let (state, threads, started) = process_status(own_pid()).unwrap();
        assert!(state == b'R' || state == b'S', "{state}");
        assert!(threads >= 1 && started < since_boot_ns());
        assert!(process_status(u32::MAX).is_none());
    }
}
