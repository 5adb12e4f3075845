//! The bytes of a staged file on their way home, and what the system says of a file: who has it open, how
//! long it is.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::{Duration, Instant};

/// Bytes that are moved between two looks at whether it is still worth it.
const PIECE_BYTES: usize = 1 << 20;

/// How long it is waited at a time for its due.
const NAP: Duration = Duration::from_millis(5);

/// What becomes of a copy on its way.
pub(super) struct Pace<'a> {
    /// No more bytes per second than that.
    pub(super) bytes_per_second: Option<u64>,
    /// Called after each piece; false ends the copy.
    pub(super) goes_on: &'a dyn Fn() -> bool,
}

/// Copies all bytes of `copy` to `home`, which is as long afterwards. Holes stay holes. At no time `home`
/// has less of what was synced before: bytes are overwritten in place. False when it was ended early.
///
/// # Errors
/// What the system says; `home` may have some of the bytes.
pub(super) fn bring(copy: &File, home: &File, pace: &Pace<'_>) -> io::Result<bool> {
    let (bytes, old) = (copy.metadata()?.len(), home.metadata()?.len());
    let mut buffer = vec![0; PIECE_BYTES];
    let begin = Instant::now();
    let (mut at, mut moved) = (0, 0);
    while at < bytes {
        let data = seek(copy, at, libc::SEEK_DATA)?.unwrap_or(bytes).min(bytes);
        clear(home, at, data.min(old))?;
        let end = match seek(copy, data, libc::SEEK_HOLE)? {
            Some(end) if data < bytes => end.min(bytes),
            _ => data,
        };
        at = data;
        while at < end {
            if !(pace.goes_on)() {
                return Ok(false);
            }
            let wanted = buffer.len().min((end - at) as usize);
            let read = copy.read_at(&mut buffer[..wanted], at)?;
            if read == 0 {
                // Cut short meanwhile: whoever did it has it open, so this copy is worth nothing.
                return Ok(false);
            }
            home.write_all_at(&buffer[..read], at)?;
            (at, moved) = (at + read as u64, moved + read as u64);
            if !pace.keep(begin, moved) {
                return Ok(false);
            }
        }
    }
    if home.metadata()?.len() != bytes {
        home.set_len(bytes)?;
    }
    Ok(true)
}

impl Pace<'_> {
    /// Waits until so many bytes may have been moved; false when it is not worth it any more.
    fn keep(&self, begin: Instant, moved: u64) -> bool {
        let Some(rate) = self.bytes_per_second else { return true };
        let due = Duration::from_secs_f64(moved as f64 / rate as f64);
        while let rest = due.saturating_sub(begin.elapsed())
            && !rest.is_zero()
        {
            if !(self.goes_on)() {
                return false;
            }
            std::thread::sleep(rest.min(NAP));
        }
        true
    }
}

/// The next data or hole; `None` behind the last one.
fn seek(file: &File, at: u64, whence: i32) -> io::Result<Option<u64>> {
    // SAFETY: no memory is involved.
    let found = unsafe { libc::lseek64(file.as_raw_fd(), at as i64, whence) };
    match found {
        found if found >= 0 => Ok(Some(found as u64)),
        _ => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
            error => Err(error),
        },
    }
}

/// What was there before in a range that is a hole now.
fn clear(home: &File, from: u64, to: u64) -> io::Result<()> {
    if from >= to {
        return Ok(());
    }
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: no memory is involved.
    let punched =
        unsafe { libc::fallocate64(home.as_raw_fd(), mode, from as i64, (to - from) as i64) };
    if punched == 0 {
        return Ok(());
    }
    let zeros = vec![0; PIECE_BYTES];
    let mut at = from;
    while at < to {
        let bytes = zeros.len().min((to - at) as usize);
        home.write_all_at(&zeros[..bytes], at)?;
        at += bytes as u64;
    }
    Ok(())
}

/// Gives `to` the times of `from`: of the last access and the last change of its bytes.
pub(super) fn give_times(from: &File, to: &File) -> io::Result<()> {
    let status = from.metadata()?;
    let times = [
        libc::timespec { tv_sec: status.atime(), tv_nsec: status.atime_nsec() },
        libc::timespec { tv_sec: status.mtime(), tv_nsec: status.mtime_nsec() },
    ];
    // SAFETY: two structures, which are only read.
    match unsafe { libc::futimens(to.as_raw_fd(), times.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

const CAPABILITY: &CStr = c"security.capability";

/// What a program of that file may do beyond its user, which a write takes away.
pub(super) fn capabilities(file: &File) -> Option<Vec<u8>> {
    let mut value = vec![0; 64];
    // SAFETY: a terminated name, and a buffer of that length.
    let length = unsafe {
        let (name, at) = (CAPABILITY.as_ptr(), value.as_mut_ptr().cast());
        libc::fgetxattr(file.as_raw_fd(), name, at, value.len())
    };
    value.truncate(usize::try_from(length).ok()?);
    Some(value)
}

/// Gives back what a write of ours has taken.
pub(super) fn give_capabilities(file: &File, before: Option<Vec<u8>>) -> io::Result<()> {
    let Some(value) = before.filter(|_| capabilities(file).is_none()) else { return Ok(()) };
    // SAFETY: a terminated name, and a buffer of that length.
    let set = unsafe {
        let (name, at) = (CAPABILITY.as_ptr(), value.as_ptr().cast());
        libc::fsetxattr(file.as_raw_fd(), name, at, value.len(), 0)
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether nobody else has a file open or mapped: then the system grants a lease, which is given back at
/// once. `None` where the file system, or the right to one, is missing.
pub(super) fn is_alone(file: &File) -> Option<bool> {
    let lease = |kind: i32| {
        // SAFETY: no memory is involved.
        match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) } {
            0 => None,
            _ => io::Error::last_os_error().raw_os_error(),
        }
    };
    match lease(libc::F_WRLCK) {
        None => {
            lease(libc::F_UNLCK);
            Some(true)
        }
        Some(libc::EAGAIN | libc::EBUSY) => Some(false),
        Some(_) => None,
    }
}

/// A lease that somebody breaks between the two calls above ends no process: whoever is told of it hears
/// nothing. As a handler it is not handed on to programs.
pub(super) fn hear_no_leases() {
    extern "C" fn nothing(_: i32) {}
    // SAFETY: a handler that does nothing, in place of the end of the process; any other stays.
    unsafe {
        let mut action = std::mem::zeroed::<libc::sigaction>();
        libc::sigaction(libc::SIGIO, std::ptr::null(), &mut action);
        if action.sa_sigaction == libc::SIG_DFL {
            action.sa_sigaction = nothing as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(libc::SIGIO, &action, std::ptr::null_mut());
        }
    }
}

/// Writes of a file that appends go to its end wherever they belong: not this one's any more.
pub(super) fn place_freely(file: &File) {
    let fd = file.as_raw_fd();
    // SAFETY: no memory is involved.
    unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        if flags >= 0 && flags & libc::O_APPEND != 0 {
            libc::fcntl(fd, libc::F_SETFL, flags & !libc::O_APPEND);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::path::Path;

    fn file(folder: &Path, name: &str) -> File {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        options.open(folder.join(name)).unwrap()
    }

    const ALL: Pace<'_> = Pace { bytes_per_second: None, goes_on: &|| true };

    #[test]
    fn bytes_and_holes_come_home_over_whatever_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let (copy, home) = (file(folder.path(), "copy"), file(folder.path(), "home"));
        home.write_all_at(&vec![7; 5 << 20], 0).unwrap();
        copy.write_all_at(b"begin", 0).unwrap();
        copy.write_all_at(b"middle", 3 << 20).unwrap();
        copy.set_len(4 << 20).unwrap();
        assert!(bring(&copy, &home, &ALL).unwrap());
        let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
        assert_eq!(read("copy"), read("home"));
        assert!(home.metadata().unwrap().blocks() < 4096, "holes were filled");
        copy.set_len(0).unwrap();
        assert!(bring(&copy, &home, &ALL).unwrap());
        assert_eq!(home.metadata().unwrap().len(), 0);
    }

    #[test]
    fn a_copy_that_is_worth_nothing_ends_early() {
        let folder = tempfile::tempdir().unwrap();
        let (copy, home) = (file(folder.path(), "copy"), file(folder.path(), "home"));
        copy.write_all_at(&vec![1; 3 << 20], 0).unwrap();
        let goes_on = || home.metadata().unwrap().len() < 1 << 20;
        let pace = Pace { bytes_per_second: None, goes_on: &goes_on };
        assert!(!bring(&copy, &home, &pace).unwrap());
        assert_eq!(home.metadata().unwrap().len(), 1 << 20);
    }

    #[test]
    fn a_file_is_alone_until_somebody_else_has_it() {
        hear_no_leases();
        let folder = tempfile::tempdir().unwrap();
        let ours = file(folder.path(), "a");
        if is_alone(&ours).is_none() {
            return;
        }
        assert_eq!(is_alone(&ours), Some(true));
        let reader = File::open(folder.path().join("a")).unwrap();
        assert_eq!(is_alone(&ours), Some(false));
        drop(reader);
        assert_eq!(is_alone(&ours), Some(true));
    }
}
