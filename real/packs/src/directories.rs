//! Directories of a pack's files; below the first one no symbolic link is followed.

use iolab_pack::Contents;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Gid, Mode, OFlags, Uid};
use rustix::io::{self, Errno};

/// A directory by its name.
pub(crate) fn open_directory(from: impl AsFd, name: &[u8], is_below: bool) -> io::Result<OwnedFd> {
    let links = if is_below { OFlags::NOFOLLOW } else { OFlags::empty() };
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | links;
    rustix::fs::openat(from, name, how, Mode::empty())
}

/// The directory and the name of a path.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&it| it == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

/// The directory of that path below another one. Those that are missing are made where contents are given, as these
/// say.
///
/// # Errors
/// What the system says: [`Errno::LOOP`] or [`Errno::NOTDIR`] where a link or a file stands in the way.
pub fn directory_below(
    root: impl AsFd,
    path: &[u8],
    made: Option<&Contents>,
) -> io::Result<OwnedFd> {
    let mut here = open_directory(root, b".", true)?;
    let mut done = 0;
    for name in path.split(|&it| it == b'/').filter(|name| !name.is_empty()) {
        done += name.len();
        let so_far = &path[..done];
        done += 1;
        here = match (open_directory(&here, name, true), made) {
            (Err(Errno::NOENT), Some(contents)) => make(&here, name, so_far, contents)?,
            (other, _) => other?,
        };
    }
    Ok(here)
}

fn make(here: &OwnedFd, name: &[u8], path: &[u8], contents: &Contents) -> io::Result<OwnedFd> {
    match rustix::fs::mkdirat(here, name, Mode::RWXU) {
        // Another thread was faster.
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error),
    }
    let made = open_directory(here, name, true)?;
    let known = contents.directories.get(path);
    if let Some((mode, user, group)) = known.and_then(|it| it.made) {
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        let is_given = rustix::fs::fchown(&made, Some(user), Some(group)).is_ok();
        let mode = if is_given { mode } else { mode & 0o1777 };
        rustix::fs::fchmod(&made, Mode::from_raw_mode(mode))?;
    }
    Ok(made)
}
