//! Files out of the directory of an instance that nobody serves, with whatever is left of it.
//!
//! Promises: each file has the bytes of the subfiles that are there, at their places, and holes where there are none;
//! it is told which files miss a server, or have bytes that the device cannot read or has changed. Nothing that is there already is
//! overwritten, the instance stays as it is, and no file is left half written.
//! Costs: one read of each subfile's data, holes left out.

use crate::check::changed_pages;
use crate::files::name_of;
use crate::offline::{Entry, Offline, Stored};
use iolab_pfs::{Inode, Kind, Layout};
use rustix::fs::SeekFrom;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;

/// Bytes that are copied at a time.
const CHUNK_BYTES: usize = 1 << 20;
/// What a device reads, or does not, as a whole.
const PAGE_BYTES: u64 = 4096;
/// Where subfiles go whose file has no name.
const UNNAMED: &str = "unnamed-subfiles";

/// What became of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rescued {
    /// Its path in the file system; of a subfile without one, where it lay.
    pub path: Vec<u8>,
    /// How long it is.
    pub bytes: u64,
    /// Bytes that the device could not read; they are holes.
    pub unreadable: u64,
    /// Pages that the device has changed since they were summed; they are copied as they are.
    pub changed: u64,
    /// Servers that should have parts of it, and have no directory.
    pub missing: Vec<u32>,
    /// Whether its name is known.
    pub is_named: bool,
}

impl Rescued {
    /// Whether it is all that it was.
    pub fn is_whole(&self) -> bool {
        self.is_named && self.unreadable + self.changed == 0 && self.missing.is_empty()
    }
}

/// Copies all files below `to`, a directory that is empty or not there; `tell` hears of each.
pub fn rescue(offline: &Offline, to: &Path, tell: &mut dyn FnMut(Rescued)) -> io::Result<()> {
    let (mut stored, missing) = collected(offline)?;
    for (path, attributes) in &offline.inventory.named {
        // A damaged journal may have any names; none of them leads out of the directory.
        let inner = name_of(Path::new(OsStr::from_bytes(path)), Path::new("/"));
        let target = to.join(OsStr::from_bytes(&inner[1..]));
        match (attributes.kind, attributes.layout) {
            (Kind::Directory, _) => make_directory(&target)?,
            (Kind::File, None) => {}
            (Kind::File, Some(layout)) => {
                let own = stored.remove(&attributes.inode).unwrap_or_default();
                let (its, others) = sorted(own, layout, offline.description.servers);
                stored.insert(attributes.inode, others);
                let (bytes, unreadable) =
                    whole(&target, attributes.mode, |file| compose(file, layout, &its))?;
                let pages = its.iter().map(|(_, stored)| changed_pages(offline, stored));
                let changed = pages.sum::<io::Result<u64>>()?;
                let missing = having(&missing, layout, offline.description.servers);
                let path = path.clone();
                tell(Rescued { path, bytes, unreadable, changed, missing, is_named: true });
            }
        }
    }
    for it in stored.into_values().flatten() {
        let has_name = offline.inventory.named.values().any(|named| named.inode == it.inode);
        if has_name || !offline.inventory.was_removed(it.inode) {
            tell(set_aside(offline, to, &it)?);
        }
    }
    Ok(())
}

/// Subfiles, by their files.
type ByFile = BTreeMap<Inode, Vec<Stored>>;

/// All subfiles, and the servers that have no directory.
fn collected(offline: &Offline) -> io::Result<(ByFile, Vec<u32>)> {
    let mut stored = ByFile::new();
    let mut missing = Vec::new();
    for server in 0..offline.description.servers {
        let Some(entries) = offline.entries(server)? else {
            missing.push(server);
            continue;
        };
        for entry in entries {
            if let Entry::Subfile(it) = entry {
                stored.entry(it.inode).or_default().push(it);
            }
        }
    }
    Ok((stored, missing))
}

/// The subfiles that a file can have, with their numbers; and the others.
fn sorted(own: Vec<Stored>, layout: Layout, servers: u32) -> (Vec<(u32, Stored)>, Vec<Stored>) {
    let (mut its, mut others) = (Vec::new(), Vec::new());
    for stored in own {
        match stored.index(layout, servers) {
            Some(index) => its.push((index, stored)),
            None => others.push(stored),
        }
    }
    (its, others)
}

/// Those of some servers that have parts of a file.
fn having(some: &[u32], layout: Layout, servers: u32) -> Vec<u32> {
    let has = |&&server: &&u32| {
        (0..layout.subfiles()).any(|subfile| layout.server_of(subfile, servers) == server)
    };
    some.iter().filter(has).copied().collect()
}

fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o755).recursive(true).create(path)
}

/// A new file with what `write` puts there; if that fails, there is none.
fn whole(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&File) -> io::Result<(u64, u64)>,
) -> io::Result<(u64, u64)> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    if let Some(parent) = path.parent() {
        make_directory(parent).map_err(named)?;
    }
    // Whoever rescues it must be able to read it.
    let mode = mode & 0o777 | 0o600;
    let file = File::options().write(true).create_new(true).mode(mode).open(path).map_err(named)?;
    let written = write(&file).and_then(|counts| file.sync_all().map(|()| counts));
    written.map_err(|error| {
        let _ = fs::remove_file(path);
        named(error)
    })
}

/// Writes a file from its subfiles. The answer is how long it is, and how many bytes could not be read.
fn compose(file: &File, layout: Layout, subfiles: &[(u32, Stored)]) -> io::Result<(u64, u64)> {
    let (mut length, mut unreadable) = (0, 0);
    let unit = layout.unit_bytes();
    for &(index, ref stored) in subfiles {
        length = length.max(layout.file_bytes(index, stored.bytes));
        unreadable += copy_data(&stored.path, &mut |mut at, mut rest| {
            while !rest.is_empty() {
                let in_stripe = (unit - at % unit).min(rest.len() as u64) as usize;
                let (row, behind) = rest.split_at(in_stripe);
                let place = layout.byte_at(index, at).ok_or(io::ErrorKind::FileTooLarge)?;
                file.write_all_at(row, place)?;
                (at, rest) = (at + in_stripe as u64, behind);
            }
            Ok(())
        })?;
    }
    file.set_len(length)?;
    Ok((length, unreadable))
}

/// Copies a subfile whose file has no name as it is.
fn set_aside(offline: &Offline, to: &Path, stored: &Stored) -> io::Result<Rescued> {
    let from = stored.path.strip_prefix(&offline.directory).unwrap_or(&stored.path);
    let (bytes, unreadable) = whole(&to.join(UNNAMED).join(from), 0o600, |file| {
        let unreadable = copy_data(&stored.path, &mut |at, bytes| file.write_all_at(bytes, at))?;
        file.set_len(stored.bytes)?;
        Ok((stored.bytes, unreadable))
    })?;
    let path = Path::new("/").join(UNNAMED).join(from).into_os_string().into_encoded_bytes();
    let changed = changed_pages(offline, stored)?;
    Ok(Rescued { path, bytes, unreadable, changed, missing: Vec::new(), is_named: false })
}

/// Gives the data of a file with its places, without the holes. The answer is how many bytes the device
/// could not read: those are left out, page by page.
fn copy_data(path: &Path, take: &mut dyn FnMut(u64, &[u8]) -> io::Result<()>) -> io::Result<u64> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let file = File::open(path).map_err(named)?;
    let length = file.metadata().map_err(named)?.len();
    let mut chunk = vec![0; CHUNK_BYTES];
    let (mut at, mut unreadable) = (0, 0);
    while at < length {
        match rustix::fs::seek(&file, SeekFrom::Data(at)) {
            Err(rustix::io::Errno::NXIO) => break,
            Ok(from) => at = from,
            // Where the file system below knows no holes, all is data.
            Err(_) => {}
        }
        let hole = rustix::fs::seek(&file, SeekFrom::Hole(at)).unwrap_or(length).min(length);
        while at < hole {
            let wanted = (hole - at).min(CHUNK_BYTES as u64) as usize;
            let page = (PAGE_BYTES - at % PAGE_BYTES).min(wanted as u64) as usize;
            let read = file.read_at(&mut chunk[..wanted], at);
            match read.or_else(|_| file.read_at(&mut chunk[..page], at)) {
                Ok(0) => return Ok(unreadable),
                Ok(count) => {
                    take(at, &chunk[..count])?;
                    at += count as u64;
                }
                Err(_) => {
                    unreadable += page as u64;
                    at += page as u64;
                }
            }
        }
    }
    Ok(unreadable)
}

/// Whether a directory is not there, or has nothing in it.
pub fn is_free(directory: &Path) -> io::Result<bool> {
    match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        entries => Ok(entries?.next().is_none()),
    }
}
