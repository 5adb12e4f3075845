//! Directories. Positions are those of the source, so they stay what they are while names come and go.

use crate::files::OpenDirectory;
use crate::members::{Members, Snapshot};
use crate::names::Entry;
use crate::open::Hosted;
use crate::tree::Answer;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, OFlags, RawDir, SeekFrom};
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::{Mutex, PoisonError};

/// A line of a directory.
pub(crate) struct Line {
    pub(crate) inode: u64,
    /// Where the next one begins.
    pub(crate) next: u64,
    pub(crate) kind: FileType,
    pub(crate) name: OsString,
}

/// Room for as many lines as a request of the kernel takes at once.
const ROOM: usize = 32 << 10;

impl Hosted {
    /// Opens a directory.
    pub(crate) fn open_directory(&self, number: u64) -> Answer<u64> {
        let inode = self.tree.get(number)?;
        let fd = inode.open(OFlags::RDONLY | OFlags::DIRECTORY)?;
        Ok(self.directories.insert(OpenDirectory {
            inode,
            fd: fd.into(),
            members: Mutex::default(),
        }))
    }

    /// Some lines from a position on; none at the end.
    pub(crate) fn lines(&self, number: u64, from: u64) -> Answer<Vec<Line>> {
        let directory = self.directories.get(number)?;
        let fd = directory.fd.lock().unwrap_or_else(PoisonError::into_inner);
        match &self.members {
            Some(members) => lines_with(members, &directory, &fd, from),
            None => real_lines(&fd, from),
        }
    }

    /// The file of a line, remembered for the kernel; `None` for a directory itself and the one above.
    pub(crate) fn entry_of(&self, number: u64, line: &Line) -> Answer<Option<Entry>> {
        if is_dots(&line.name) {
            return Ok(None);
        }
        let directory = self.directories.get(number)?;
        self.lookup(directory.inode.number, &line.name, 0).map(Some)
    }

    /// Makes a directory durable.
    pub(crate) fn sync_directory(&self, number: u64, data_only: bool) -> Answer<()> {
        if let Some(members) = &self.members {
            members.sync(self)?;
        }
        let directory = self.directories.get(number)?;
        let fd = directory.fd.lock().unwrap_or_else(PoisonError::into_inner);
        if data_only { rustix::fs::fdatasync(&*fd) } else { rustix::fs::fsync(&*fd) }
    }
}

/// Some lines of a directory that may have members: those of the source first.
fn lines_with(
    members: &Members,
    directory: &OpenDirectory,
    fd: &OwnedFd,
    from: u64,
) -> Answer<Vec<Line>> {
    let mut snapshot = directory.members.lock().unwrap_or_else(PoisonError::into_inner);
    if from == 0 {
        *snapshot = members.snapshot(&directory.inode);
    }
    let is_there = |name: &OsStr| {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        members.has(&directory.inode, name)
            || rustix::fs::statat(&*directory.inode, name, flags).is_ok()
    };
    let mut at = from;
    while !Snapshot::begins_at(at) {
        let mut lines = real_lines(fd, at)?;
        let Some(last) = lines.last() else { break };
        at = last.next;
        let is_hidden = |name: &OsStr| members.is_hidden(&directory.inode, name);
        lines.retain(|line| !snapshot.has(&line.name) && !is_hidden(&line.name));
        if !lines.is_empty() {
            return Ok(lines);
        }
    }
    Ok(snapshot.lines(at, is_there))
}

/// Some lines of the source's directory.
fn real_lines(fd: &OwnedFd, from: u64) -> Answer<Vec<Line>> {
    rustix::fs::seek(fd, SeekFrom::Start(from))?;
    let mut memory = [MaybeUninit::uninit(); ROOM];
    let mut raw = RawDir::new(fd, &mut memory);
    let mut lines = Vec::new();
    while let Some(line) = raw.next() {
        let line = line?;
        lines.push(Line {
            inode: line.ino(),
            next: line.next_entry_cookie(),
            kind: line.file_type(),
            name: OsString::from_vec(line.file_name().to_bytes().to_vec()),
        });
        if raw.is_buffer_empty() {
            break;
        }
    }
    Ok(lines)
}

/// Whether a name is that of a directory itself or of the one above.
pub(crate) fn is_dots(name: &OsStr) -> bool {
    matches!(name.as_bytes(), b"." | b"..")
}
