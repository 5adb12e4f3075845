//! Why there is no mount, and what to do about it.

use rustix::fs::{Access, CWD};
use rustix::io::Errno;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a directory cannot be mounted.
#[derive(Debug)]
pub enum MountError {
    /// The source is not there, or cannot be read.
    Source(PathBuf, io::Error),
    /// The source is no directory.
    NoDirectory(PathBuf),
    /// The mount point is not there, or cannot be looked at.
    Mountpoint(PathBuf, io::Error),
    /// What is mounted there has lost its server.
    Dead(PathBuf),
    /// Something is mounted there.
    InUse(PathBuf),
    /// There are files in it.
    NotEmpty(PathBuf),
    /// It is the system's own and cannot be covered for a command.
    Own(PathBuf),
    /// One lies in the other.
    Nested {
        /// What is to be mounted.
        source: PathBuf,
        /// Where.
        mountpoint: PathBuf,
    },
    /// `/dev/fuse` is not there.
    NoDevice,
    /// `/dev/fuse` or the mount itself is not allowed.
    NotAllowed(io::Error),
    /// Anything else.
    System(&'static str, io::Error),
}

impl fmt::Display for MountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MountError::Source(path, error) => {
                write!(f, "the source {}: {error}", path.display())
            }
            MountError::NoDirectory(path) => write!(f, "{} is no directory", path.display()),
            MountError::Mountpoint(path, error) => {
                write!(f, "the mount point {}: {error}", path.display())
            }
            MountError::Dead(path) => {
                write!(f, "{}: the server of what is mounted there is gone", path.display())
            }
            MountError::InUse(path) => {
                write!(f, "{}: something is mounted there already", path.display())
            }
            MountError::NotEmpty(path) => {
                write!(f, "the mount point {} is not empty", path.display())
            }
            MountError::Own(path) => {
                write!(f, "{} is the system's own and is not covered", path.display())
            }
            MountError::Nested { source, mountpoint } => write!(
                f,
                "the source {} and the mount point {} lie in each other",
                source.display(),
                mountpoint.display()
            ),
            MountError::NoDevice => write!(f, "there is no /dev/fuse"),
            MountError::NotAllowed(error) => write!(f, "mounting is not allowed: {error}"),
            MountError::System(what, error) => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for MountError {}

impl MountError {
    /// A way out.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            MountError::Source(..) | MountError::NoDirectory(_) => {
                "name a directory that is there and that you may read".to_owned()
            }
            MountError::Mountpoint(path, _) => {
                format!("make an empty directory: mkdir -p {}", path.display())
            }
            MountError::Dead(path) => format!(
                "clean up first: umount {0} (or fusermount3 -u {0} without root)",
                path.display()
            ),
            MountError::InUse(path) => {
                format!("umount {} first, or name another directory", path.display())
            }
            MountError::NotEmpty(_) => {
                "its files would be hidden; name an empty directory".to_owned()
            }
            MountError::Own(_) => "name the directory of the program's data".to_owned(),
            MountError::Nested { .. } => "name an empty directory outside of the source; \
                 `iolab run --via mount` shows a program its usual paths"
                .to_owned(),
            MountError::NoDevice => "load the module (modprobe fuse); in a container, start it with \
                 --device /dev/fuse --cap-add SYS_ADMIN"
                .to_owned(),
            MountError::NotAllowed(_) => "as another user than root, /dev/fuse must be readable \
                 and writable for you and fusermount3 (package fuse3) be installed; a container needs \
                 --device /dev/fuse --cap-add SYS_ADMIN"
                .to_owned(),
            MountError::System(..) => return None,
        })
    }
}

/// Whether a source can be mounted there; both as the system calls them.
///
/// # Errors
/// Names what is in the way.
pub fn check(source: &Path, mountpoint: &Path) -> Result<(PathBuf, PathBuf), MountError> {
    let source = directory(source, MountError::Source)?;
    let point = match directory(mountpoint, MountError::Mountpoint) {
        Err(MountError::Mountpoint(path, error)) if is(&error, Errno::NOTCONN) => {
            return Err(MountError::Dead(path));
        }
        other => other?,
    };
    if is_mounted(&point) {
        return Err(MountError::InUse(point));
    }
    if source.starts_with(&point) || point.starts_with(&source) {
        return Err(MountError::Nested { source, mountpoint: point });
    }
    let mut inside =
        point.read_dir().map_err(|error| MountError::Mountpoint(point.clone(), error))?;
    if inside.next().is_some() {
        return Err(MountError::NotEmpty(point));
    }
    device()?;
    Ok((source, point))
}

/// Whether there is a device to serve with.
///
/// # Errors
/// When it is not there.
pub(crate) fn device() -> Result<(), MountError> {
    let exists =
        rustix::fs::accessat(CWD, "/dev/fuse", Access::EXISTS, rustix::fs::AtFlags::empty());
    exists.map_err(|_| MountError::NoDevice)
}

/// A directory by its canonical name.
pub(crate) fn directory(
    path: &Path,
    refuse: fn(PathBuf, io::Error) -> MountError,
) -> Result<PathBuf, MountError> {
    let canonical = path.canonicalize().map_err(|error| refuse(path.to_owned(), error))?;
    match canonical.metadata() {
        Ok(it) if it.is_dir() => Ok(canonical),
        Ok(_) => Err(MountError::NoDirectory(canonical)),
        Err(error) => Err(refuse(canonical, error)),
    }
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

/// Whether something is mounted at a place, by the system's own list; spaces stand there in octal.
fn is_mounted(place: &Path) -> bool {
    let list = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let place = place.to_string_lossy().replace('\\', "\\134").replace(' ', "\\040");
    list.lines().any(|line| line.split(' ').nth(4) == Some(place.as_str()))
}

/// What the system says of an attempt to mount.
pub(crate) fn of_mounting(error: io::Error) -> MountError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => MountError::NotAllowed(error),
        io::ErrorKind::NotFound => MountError::NotAllowed(io::Error::other(
            "this is not root, and fusermount3 is not installed",
        )),
        _ if is(&error, Errno::NXIO) || is(&error, Errno::NODEV) => MountError::NoDevice,
        _ => MountError::System("mounting", error),
    }
}
