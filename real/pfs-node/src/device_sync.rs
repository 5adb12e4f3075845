//! What has to be on a device before somebody is told so: a subfile's data, and the names that lead to it.

use crate::subfiles::{Result, code, folder};
use iolab_pfs::io_server::Operation;
use iolab_pfs::{Code, Inode};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A subfile that is to be on its device.
pub(crate) struct ToSync {
    /// Who waits for it; nobody if it is synced because its descriptor is about to go.
    pub(crate) operation: Option<Operation>,
    pub(crate) file: Arc<File>,
    /// The file whose folder may not have its name yet.
    pub(crate) unnamed: Option<Inode>,
    /// What is known to be struck out once it is done.
    pub(crate) struck: Option<Struck>,
}

/// How much of what was struck out of a file of sums is on the device.
pub(crate) struct Struck {
    pub(crate) synced: Arc<AtomicU64>,
    pub(crate) upto: u64,
}

impl ToSync {
    /// Brings it there, below the directory of a server's subfiles.
    pub(crate) fn carry_out(&self, directory: &File) -> Result<()> {
        self.file.sync_data().map_err(|error| code_of(&error))?;
        if let Some(Struck { synced, upto }) = &self.struck {
            synced.fetch_max(*upto, Ordering::Release);
        }
        match self.unnamed {
            Some(inode) => sync_names(directory, inode),
            None => Ok(()),
        }
    }
}

/// Brings the folder of a file to the device, with the names that are in it and its own.
pub(crate) fn sync_names(directory: &File, inode: Inode) -> Result<()> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(directory, folder(inode), flags, Mode::empty());
    let folder = File::from(opened.map_err(code)?);
    folder.sync_all().and_then(|()| directory.sync_all()).map_err(|error| code_of(&error))
}

/// Brings the names in a directory to the device.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

fn code_of(error: &io::Error) -> Code {
    error.raw_os_error().map_or(Code::IO, |number| Code(number as u16))
}
