//! A file that has no name yet, in the folder where it will have one.

use super::before::Before;
use super::path::{folder_of, terminated};
use std::ffi::{CString, OsString};
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file in the folder of its later name: without any name where the file system can do that, so
/// that nothing is left however this process ends.
#[derive(Debug)]
pub(super) enum Unnamed {
    Nameless(File),
    Hidden(NamedTempFile),
}

impl Unnamed {
    pub(super) fn beside(path: &Path) -> io::Result<Unnamed> {
        let folder = folder_of(path);
        let nameless = OpenOptions::new()
            .read(true)
            .write(true)
            .mode(0o666)
            .custom_flags(libc::O_TMPFILE)
            .open(folder);
        match nameless {
            Ok(file) => Ok(Unnamed::Nameless(file)),
            // File systems without it say one or the other; a folder that may not be written to
            // refuses the hidden file as well.
            Err(_) => {
                let permissions = Permissions::from_mode(0o666);
                let mut builder = tempfile::Builder::new();
                let hidden = builder.prefix(".iolab-").permissions(permissions).tempfile_in(folder);
                hidden.map(Unnamed::Hidden).map_err(|error| {
                    let kind = error.kind();
                    let folder = folder.display();
                    io::Error::new(kind, format!("{folder} takes no file: {}", plain(&error)))
                })
            }
        }
    }

    pub(super) fn file(&mut self) -> &mut File {
        match self {
            Unnamed::Nameless(file) => file,
            Unnamed::Hidden(file) => file.as_file_mut(),
        }
    }

    /// Gives it the name, or the next one that is free, which is told.
    pub(super) fn name(mut self, path: &Path) -> io::Result<Option<PathBuf>> {
        let mut free = path.to_owned();
        for number in 1..1000 {
            let named = match self {
                Unnamed::Nameless(ref file) => link(file, &free),
                Unnamed::Hidden(file) => match file.persist_noclobber(&free) {
                    Ok(_) => return Ok((free != path).then_some(free)),
                    Err(error) => {
                        self = Unnamed::Hidden(error.file);
                        Err(error.error)
                    }
                },
            };
            match named {
                Ok(()) => return Ok((free != path).then_some(free)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    free = suffixed(path, number);
                }
                // A file system that links nothing.
                Err(error) => {
                    let Unnamed::Nameless(file) = &mut self else { return Err(error) };
                    let made = OpenOptions::new().write(true).create_new(true).open(&free);
                    return copy(file, &mut made.map_err(|_| error)?)
                        .map(|()| (free != path).then_some(free));
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Puts it into the place of what lies there.
    pub(super) fn replace(mut self, path: &Path, before: Before) -> io::Result<()> {
        let file = self.file();
        let facts = file.metadata()?;
        let mut mode = before.mode;
        if before.owner != (facts.uid(), facts.gid()) {
            let (user, group) = before.owner;
            // Whoever may not give it away keeps it, without rights that come with an owner.
            if std::os::unix::fs::fchown(&*file, Some(user), Some(group)).is_err() {
                mode &= 0o777;
            }
        }
        file.set_permissions(Permissions::from_mode(mode))?;
        let renamed = match self {
            Unnamed::Hidden(hidden) => match hidden.persist(path) {
                Ok(_) => return Ok(()),
                Err(error) => {
                    self = Unnamed::Hidden(error.file);
                    Err(error.error)
                }
            },
            Unnamed::Nameless(ref file) => rename_through(file, path),
        };
        match renamed {
            // A file that is a mount of its own cannot be replaced, only written to.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EXDEV)) => {
                copy(self.file(), &mut OpenOptions::new().write(true).truncate(true).open(path)?)
            }
            renamed => renamed,
        }
    }
}

/// Links a nameless file to a hidden name, and renames that.
fn rename_through(file: &File, path: &Path) -> io::Result<()> {
    let hidden = tempfile::Builder::new()
        .prefix(".iolab-")
        .make_in(folder_of(path), |hidden| link(file, hidden))?;
    hidden.persist(path).map(drop).map_err(|error| error.error)
}

fn link(file: &File, path: &Path) -> io::Result<()> {
    let from = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let to = terminated(path)?;
    let (here, follow) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
    // SAFETY: both paths are terminated and outlive the call.
    match unsafe { libc::linkat(here, from.as_ptr(), here, to.as_ptr(), follow) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn copy(from: &mut (impl Read + Seek), to: &mut File) -> io::Result<()> {
    from.rewind()?;
    io::copy(from, to)?;
    to.sync_data()
}

pub(super) fn suffixed(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().as_bytes().to_vec();
    name.extend(format!(".{number}").bytes());
    OsString::from_vec(name).into()
}

/// What the system said, without the name of a file that nobody asked for.
fn plain(error: &io::Error) -> io::Error {
    match error.get_ref().and_then(std::error::Error::source) {
        Some(source) => {
            match source.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
                Some(code) => io::Error::from_raw_os_error(code),
                None => io::Error::other(source.to_string()),
            }
        }
        None => error.kind().into(),
    }
}

impl Write for Unnamed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}
