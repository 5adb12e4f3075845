//! Files that hold results: there with all their content, or not at all.
//!
//! A regular file is written without a name, where its name will be, and gets the name when it is
//! complete: links are followed to where they lead, permissions of what is replaced are kept, and
//! what came to lie there in the meantime is left alone. Everything else (a pipe, a device,
//! `/dev/stdout`, a descriptor, `-`) is written through as it is. Whether all that can be done is
//! found out before the work whose results they are.

mod before;
mod path;
mod unnamed;

use before::Before;
use path::{folder_of, terminated};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use unnamed::Unnamed;

/// A place for results that was looked at.
#[derive(Clone, Debug)]
pub struct ResultFile {
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    /// A descriptor of this process, at the position that it has.
    Descriptor(i32),
    /// What is opened and written to, whatever it is.
    Through(PathBuf),
    /// A regular file, links resolved, and what lay there when it was looked at.
    Whole { path: PathBuf, before: Option<Before> },
}

impl ResultFile {
    /// Sees that results can be written there, and leaves everything as it is. `-` is standard
    /// output.
    ///
    /// # Errors
    /// Why it cannot be written to.
    pub fn at(path: &Path) -> io::Result<ResultFile> {
        let place = look(path)?;
        match &place {
            Place::Descriptor(number) => may_write_to_descriptor(*number)?,
            Place::Through(path) => may_write(path)?,
            Place::Whole { path, before } => {
                if before.is_some() {
                    OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path)?;
                }
                Unnamed::beside(path)?;
            }
        }
        Ok(ResultFile { place })
    }

    /// What lies there already and would be replaced, if anything does.
    pub fn replaces(&self) -> Option<&Path> {
        match &self.place {
            Place::Whole { path, before: Some(_) } => Some(path),
            _ => None,
        }
    }

    /// Whether somebody who looked at the same place, and began to write there after that, has come
    /// to an end. What is not a regular file keeps no trace of it and counts as written.
    pub fn is_written(&self) -> bool {
        let Place::Whole { path, before } = &self.place else { return true };
        let now = fs::symlink_metadata(path).ok();
        match before {
            None => now.is_some(),
            Some(before) => !now.is_some_and(|now| before.is(&now)),
        }
    }

    /// Whether that is the file which would be replaced or written to.
    pub fn is(&self, other: &Path) -> bool {
        let (Place::Whole { path, .. } | Place::Through(path)) = &self.place else { return false };
        match (fs::metadata(path), fs::metadata(other)) {
            (Ok(own), Ok(other)) => Before::of(&own).is(&other),
            // What does not exist yet is the same when its folder and its name are.
            _ => look(other).is_ok_and(
                |place| matches!(place, Place::Whole { path: other, .. } if *path == other),
            ),
        }
    }

    /// Begins to write.
    ///
    /// # Errors
    /// Why it cannot be written to.
    pub fn begin(self) -> io::Result<Writing> {
        Ok(Writing(match self.place {
            Place::Descriptor(number) => {
                // SAFETY: the descriptor was open when it was looked at; if it was closed since,
                // duplicating it fails.
                let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
                Sink::Through(BufWriter::new(descriptor.try_clone_to_owned()?.into()))
            }
            Place::Through(path) => {
                // A regular file comes here by the descriptor of another process only, and a
                // device or pipe knows no end to append to.
                let file = OpenOptions::new().append(true).custom_flags(libc::O_NOCTTY).open(path);
                Sink::Through(BufWriter::new(file?))
            }
            Place::Whole { path, before } => {
                let file = Unnamed::beside(&path)?;
                Sink::Whole { file: BufWriter::new(file), path, before }
            }
        }))
    }

    /// Writes all of it. Gives the name of the file where it is not the one that was wanted.
    ///
    /// # Errors
    /// Why it could not be written; what was there is as it was.
    pub fn write(self, bytes: &[u8]) -> io::Result<Option<PathBuf>> {
        let mut writing = self.begin()?;
        writing.write_all(bytes)?;
        writing.finish()
    }
}

/// Results on their way. Dropped before they are finished, nothing of a regular file is left.
#[derive(Debug)]
pub struct Writing(Sink);

#[derive(Debug)]
enum Sink {
    Through(BufWriter<File>),
    Whole { file: BufWriter<Unnamed>, path: PathBuf, before: Option<Before> },
}

impl Write for Writing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Sink::Through(file) => file.write(bytes),
            Sink::Whole { file, .. } => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Sink::Through(file) => file.flush(),
            Sink::Whole { file, .. } => file.flush(),
        }
    }
}

impl Writing {
    /// All is written: the file gets its name. Where another file came to lie there meanwhile, it
    /// gets a name beside, which is told.
    ///
    /// # Errors
    /// Why it could not be completed; what was there is as it was.
    pub fn finish(self) -> io::Result<Option<PathBuf>> {
        match self.0 {
            Sink::Through(mut file) => file.flush().map(|()| None),
            Sink::Whole { file, path, before } => {
                let mut unnamed = file.into_inner().map_err(io::IntoInnerError::into_error)?;
                unnamed.file().sync_data()?;
                match before {
                    Some(before)
                        if fs::symlink_metadata(&path).is_ok_and(|now| before.is(&now)) =>
                    {
                        unnamed.replace(&path, before).map(|()| None)
                    }
                    _ => unnamed.name(&path),
                }
            }
        }
    }
}

/// What lies at the end of all links.
fn look(path: &Path) -> io::Result<Place> {
    if path == Path::new("-") {
        return Ok(Place::Descriptor(1));
    }
    if path.as_os_str().is_empty() || path.as_os_str().as_bytes().ends_with(b"/") {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let mut at = path.to_owned();
    // As many links as the kernel follows.
    for _ in 0..40 {
        if let Some(descriptor) = descriptor_at(&at) {
            return Ok(descriptor);
        }
        let found = match fs::symlink_metadata(&at) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Place::Whole { path: whole(&at)?, before: None });
            }
            found => found?,
        };
        let kind = found.file_type();
        return match () {
            () if kind.is_symlink() => {
                let link = fs::read_link(&at)?;
                at = folder_of(&at).join(link);
                continue;
            }
            () if kind.is_file() => {
                Ok(Place::Whole { path: whole(&at)?, before: Some(Before::of(&found)) })
            }
            () if kind.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            () if kind.is_block_device() => {
                Err(io::Error::other("it is a block device; results would destroy what it holds"))
            }
            () if kind.is_socket() => Err(io::Error::other("it is a socket")),
            () => Ok(Place::Through(at)),
        };
    }
    Err(io::Error::from_raw_os_error(libc::ELOOP))
}

/// The path with its folder by its real name, so that it can be compared and stays what it is.
fn whole(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    Ok(fs::canonicalize(folder_of(path))?.join(name))
}

/// `/proc/self/fd/1` and its other names are descriptors, whatever they are open on: a new file by
/// the name of that would not be where the descriptor writes.
fn descriptor_at(path: &Path) -> Option<Place> {
    let number: i32 = path.file_name()?.to_str()?.parse().ok()?;
    let folder = fs::canonicalize(folder_of(path)).ok()?;
    let mut words = folder.strip_prefix("/proc").ok()?.iter();
    let owner = words.next()?.to_str()?;
    if folder.file_name()? != "fd" {
        return None;
    }
    match owner.parse::<u32>() == Ok(std::process::id()) {
        true => Some(Place::Descriptor(number)),
        false => Some(Place::Through(path.to_owned())),
    }
}

fn may_write_to_descriptor(number: i32) -> io::Result<()> {
    // SAFETY: fcntl with F_GETFL takes no pointer; a number that is not open is an error.
    match unsafe { libc::fcntl(number, libc::F_GETFL) } {
        -1 => Err(io::Error::last_os_error()),
        flags if flags & libc::O_ACCMODE == libc::O_RDONLY => {
            Err(io::Error::other("it is open for reading only"))
        }
        _ => Ok(()),
    }
}

/// A pipe is not opened to find out: that would wait for its reader.
fn may_write(path: &Path) -> io::Result<()> {
    let path = terminated(path)?;
    // SAFETY: the path is terminated and outlives the call.
    match unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::W_OK, libc::AT_EACCESS) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests;
