//! The directory of an instance while nobody serves it: its journal and its subfiles, as they lie there.
//!
//! Promises: as long as an [`Offline`] lives, no server takes the directory. Nothing is changed here.

use crate::instance::{self, Description};
use iolab_pfs::inventory::Inventory;
use iolab_pfs::{Inode, Layout};
use iolab_vocab::Refusal;
use rustix::fs::FlockOperation;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// An instance that nobody serves.
#[derive(Debug)]
pub struct Offline {
    /// Its directory.
    pub directory: PathBuf,
    /// What it is.
    pub description: Description,
    /// What its journal says.
    pub inventory: Inventory,
    _lock: File,
}

/// A subfile as it lies in the directory of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The file.
    pub inode: Inode,
    /// Whose directory it lies in.
    pub server: u32,
    /// Its number, if it is not the first of its file on that server.
    number: Option<u32>,
    /// Where.
    pub path: PathBuf,
    /// How long it is.
    pub bytes: u64,
}

impl Stored {
    /// Which subfile it is of a file with a layout, on so many servers; none if it lies where it cannot.
    pub fn index(&self, layout: Layout, servers: u32) -> Option<u32> {
        let index = self
            .number
            .unwrap_or_else(|| (self.server + servers - layout.start() % servers) % servers);
        let fits = index < layout.subfiles() && layout.server_of(index, servers) == self.server;
        fits.then_some(index)
    }
}

/// What lies in the directory of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A subfile.
    Subfile(Stored),
    /// Nothing of ours.
    Foreign(PathBuf),
}

impl Offline {
    /// Takes the instance in a directory, if nobody serves it.
    pub fn take(directory: &Path) -> Result<Offline, Refusal> {
        let description = Description::read(directory)?;
        let lock = lock(directory)?;
        let path = instance::journal(directory);
        let named = |refusal: Refusal| Refusal {
            message: format!("{}: {}", path.display(), refusal.message),
            ..refusal
        };
        let bytes = fs::read(&path).map_err(|error| {
            let hint = "without it nobody knows names; subfiles are plain files in server-K/data";
            Refusal::new(format!("{}: {error}", path.display()), hint)
        })?;
        let inventory = Inventory::of_journal(&bytes).map_err(named)?;
        if format!("{:032x}", inventory.instance) != description.uuid {
            return Refusal::refuse(
                format!("{} is the journal of another instance", path.display()),
                "put back the files that belong to instance.toml",
            );
        }
        Ok(Offline { directory: directory.to_owned(), description, inventory, _lock: lock })
    }

    /// What lies in the directory of a server; none if it has none.
    pub fn entries(&self, server: u32) -> io::Result<Option<Vec<Entry>>> {
        let folders = match fs::read_dir(instance::data(&self.directory, server)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            folders => folders?,
        };
        let mut entries = Vec::new();
        for folder in folders {
            let folder = folder?;
            let name = folder.file_name();
            let is_ours = folder.file_type()?.is_dir() && hexadecimal(name.as_bytes(), 2).is_some();
            if !is_ours {
                entries.push(Entry::Foreign(folder.path()));
                continue;
            }
            for file in fs::read_dir(folder.path())? {
                let file = file?;
                let entry = stored(server, name.as_bytes(), &file)?;
                entries.push(entry.map_or_else(|| Entry::Foreign(file.path()), Entry::Subfile));
            }
        }
        Ok(Some(entries))
    }
}

/// Keeps servers out.
fn lock(directory: &Path) -> Result<File, Refusal> {
    let path = directory.join("lock");
    let wrong = |error: io::Error| {
        Refusal::new(format!("{}: {error}", path.display()), "the directory must be readable")
    };
    let opened = File::open(&path).map_err(wrong)?;
    match rustix::fs::flock(&opened, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(opened),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let place = directory.display();
            Refusal::refuse(
                format!("{place} is in use"),
                format!("end its servers first: `iolab fs stop --dir {place}`"),
            )
        }
        Err(error) => Err(wrong(error.into())),
    }
}

/// The subfile that a file is by its name, if it is one.
fn stored(server: u32, folder: &[u8], file: &fs::DirEntry) -> io::Result<Option<Stored>> {
    let name = file.file_name();
    let (inode, number) = match name.as_bytes().iter().position(|&byte| byte == b'.') {
        None => (name.as_bytes(), None),
        Some(dot) => (&name.as_bytes()[..dot], Some(&name.as_bytes()[dot + 1..])),
    };
    let decimal = |digits: &[u8]| -> Option<u32> { std::str::from_utf8(digits).ok()?.parse().ok() };
    let number = number.map(decimal);
    let metadata = file.metadata()?;
    Ok(match (hexadecimal(inode, 16), number) {
        (Some(inode), None | Some(Some(_)))
            if metadata.is_file() && format!("{:02x}", inode & 0xff).as_bytes() == folder =>
        {
            let (inode, path, bytes) = (Inode(inode), file.path(), metadata.len());
            Some(Stored { inode, server, number: number.flatten(), path, bytes })
        }
        _ => None,
    })
}

/// A number of so many hexadecimal digits.
fn hexadecimal(digits: &[u8], count: usize) -> Option<u64> {
    let is_ours = digits.len() == count
        && digits.iter().all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(digit));
    is_ours.then(|| u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok())?
}
