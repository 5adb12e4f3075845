//! A real file in the place of a packed one.
//!
//! It is written under a name that only its run has, and gets its own when it is complete, unless something lies there.

use iolab_pack::{Attributes, Time};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags, Timespec, Timestamps, Uid};
use rustix::io::{self, Errno};
use std::hash::{DefaultHasher, Hash, Hasher};

/// What is to be made.
pub struct Made<'a> {
    /// Its name, in the directory.
    pub name: &'a [u8],
    /// What is known of it.
    pub attributes: &'a Attributes,
    /// How long it is, in bytes; what no piece has is a hole.
    pub size: u64,
    /// It is durable when it has its name.
    pub is_durable: bool,
}

/// What the names of files begin with that a run has not finished.
pub fn scratch_prefix(run: u64) -> String {
    format!(".iolab-{run:016x}-")
}

/// Makes a file of the run's in a directory; `write` gives it its bytes, by a descriptor to read and write. The answer is
/// that descriptor.
///
/// # Errors
/// What the system says: [`Errno::EXIST`] if something lies there. Nothing is left then.
pub fn make(
    directory: BorrowedFd<'_>,
    run: u64,
    made: &Made<'_>,
    write: impl FnOnce(BorrowedFd<'_>) -> io::Result<()>,
) -> io::Result<OwnedFd> {
    let mut hasher = DefaultHasher::new();
    made.name.hash(&mut hasher);
    let scratch = format!("{}{:016x}", scratch_prefix(run), hasher.finish());
    let how = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let private = Mode::RUSR | Mode::WUSR;
    let fd = match rustix::fs::openat(directory, &scratch, how, private) {
        // What was killed here before has left its own.
        Err(Errno::EXIST) => {
            rustix::fs::unlinkat(directory, &scratch, AtFlags::empty())?;
            rustix::fs::openat(directory, &scratch, how, private)?
        }
        other => other?,
    };
    let finished = finish(directory, &scratch, made, fd.as_fd(), write);
    if finished.is_err() {
        let _ = rustix::fs::unlinkat(directory, &scratch, AtFlags::empty());
    }
    finished.map(|()| fd)
}

fn finish(
    directory: BorrowedFd<'_>,
    scratch: &str,
    made: &Made<'_>,
    fd: BorrowedFd<'_>,
    write: impl FnOnce(BorrowedFd<'_>) -> io::Result<()>,
) -> io::Result<()> {
    write(fd)?;
    rustix::fs::ftruncate(fd, made.size)?;
    attribute(fd, made.attributes)?;
    if made.is_durable {
        rustix::fs::fsync(fd)?;
    }
    name(directory, scratch, made.name)?;
    if made.is_durable {
        sync_directory(directory)?;
    }
    Ok(())
}

/// Names in a directory become durable; a descriptor without access does not do for that.
fn sync_directory(directory: BorrowedFd<'_>) -> io::Result<()> {
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::fsync(rustix::fs::openat(directory, ".", how, Mode::empty())?)
}

/// Owner, mode and times. Who may not give a file away keeps it, without its set-id bits.
fn attribute(fd: BorrowedFd<'_>, attributes: &Attributes) -> io::Result<()> {
    let stat = rustix::fs::fstat(fd)?;
    let mut mode = attributes.mode;
    if (stat.st_uid, stat.st_gid) != (attributes.user, attributes.group) {
        let (user, group) = (Uid::from_raw(attributes.user), Gid::from_raw(attributes.group));
        match rustix::fs::fchown(fd, Some(user), Some(group)) {
            Err(Errno::PERM | Errno::INVAL) => mode &= !0o6000,
            other => other?,
        }
    }
    rustix::fs::fchmod(fd, Mode::from_raw_mode(mode))?;
    rustix::fs::futimens(fd, &timestamps(attributes.accessed, attributes.modified))
}

/// Times of a file, as the system takes them.
pub fn timestamps(accessed: Time, modified: Time) -> Timestamps {
    let timespec = |it: Time| Timespec { tv_sec: it.seconds, tv_nsec: it.nanoseconds.into() };
    Timestamps { last_access: timespec(accessed), last_modification: timespec(modified) }
}

/// Gives the file its name, if nothing has it.
fn name(directory: BorrowedFd<'_>, scratch: &str, name: &[u8]) -> io::Result<()> {
    let renamed =
        rustix::fs::renameat_with(directory, scratch, directory, name, RenameFlags::NOREPLACE);
    match renamed {
        // Network file systems do not know this kind of renaming; a link is never over another file either.
        Err(Errno::INVAL | Errno::NOSYS) => {
            rustix::fs::linkat(directory, scratch, directory, name, AtFlags::empty())?;
            rustix::fs::unlinkat(directory, scratch, AtFlags::empty())
        }
        other => other,
    }
}

/// Writes all bytes, from an offset on.
///
/// # Errors
/// What the system says; some of them may be written then.
pub fn write_all(fd: impl AsFd, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let moved = io::retry_on_intr(|| io::pwrite(&fd, bytes, offset))?;
        if moved == 0 {
            return Err(Errno::IO);
        }
        (bytes, offset) = (&bytes[moved..], offset + moved as u64);
    }
    Ok(())
}
