//! What has to be on a device before somebody is told so: a subfile's data, and the names that lead to it.

use crate::subfiles::{Result, code, folder};
use iolab_pfs::Inode;
use iolab_pfs::io_server::Operation;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A subfile that is to be on its device.
pub(crate) struct ToSync {
    /// Who waits for it; nobody if it is synced because its descriptor is about to go.
    pub(crate) operation: Option<Operation>,
    pub(crate) file: Arc<OwnedFd>,
    /// The file whose folder may not have its name yet.
    pub(crate) unnamed: Option<Inode>,
}

impl ToSync {
    /// Brings it there, below the directory of a server's subfiles.
    pub(crate) fn carry_out(&self, directory: impl AsFd) -> Result<()> {
        rustix::fs::fdatasync(&self.file).map_err(code)?;
        match self.unnamed {
            Some(inode) => sync_names(&directory, inode),
            None => Ok(()),
        }
    }
}

/// Brings the folder of a file to the device, with the names that are in it and its own.
pub(crate) fn sync_names(directory: impl AsFd, inode: Inode) -> Result<()> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(&directory, folder(inode), flags, Mode::empty());
    rustix::fs::fsync(opened.map_err(code)?).map_err(code)?;
    rustix::fs::fsync(directory).map_err(code)
}

/// Brings the names in a directory to the device.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
