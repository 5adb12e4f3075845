//! Whole files and names through a client.

use crate::{Client, Memory, NoMemory};
use iolab_pattern::Nest;
use iolab_pfs::client::{Call, Done, Failure, FileNumber};
use iolab_pfs::window::SLOT_BYTES;
use iolab_pfs::{Attributes, Code, Entry, Kind, OpenWish};
use iolab_vocab::Direction;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};
use std::sync::Arc;

/// What one request reads, unless stripes are shorter.
const BLOCK_BYTES: usize = SLOT_BYTES as usize;

/// A contiguous row of memory that is read into.
pub struct Into<'a>(pub &'a mut [u8]);

/// A contiguous row of memory that is written.
pub struct From<'a>(pub &'a [u8]);

impl Memory for Into<'_> {
    fn row(&self, at: u64, bytes: usize) -> Option<&[u8]> {
        self.0.get(at as usize..)?.get(..bytes)
    }

    fn gather(&self, at: u64, to: &mut [u8]) {
        to.copy_from_slice(&self.0[at as usize..][..to.len()]);
    }

    fn scatter(&mut self, at: u64, from: &[u8]) {
        self.0[at as usize..][..from.len()].copy_from_slice(from);
    }

    fn zero(&mut self, at: u64, bytes: u64) {
        self.0[at as usize..][..bytes as usize].fill(0);
    }
}

/// A program's memory that is written to a file stays as it is.
impl Memory for From<'_> {
    fn row(&self, at: u64, bytes: usize) -> Option<&[u8]> {
        self.0.get(at as usize..)?.get(..bytes)
    }

    fn gather(&self, at: u64, to: &mut [u8]) {
        to.copy_from_slice(&self.0[at as usize..][..to.len()]);
    }

    fn scatter(&mut self, _at: u64, _from: &[u8]) {}

    fn zero(&mut self, _at: u64, _bytes: u64) {}
}

/// A file that this process has open for itself.
pub struct OpenFile<'a> {
    client: &'a Client,
    file: FileNumber,
    whole: Arc<Nest>,
}

impl<'a> OpenFile<'a> {
    /// Opens a file.
    pub fn open(client: &'a Client, path: &[u8], wish: OpenWish) -> Result<OpenFile<'a>, Failure> {
        let call = Call::Open { path: path.to_vec(), wish };
        let Done::Opened(opened) = client.call(call, &mut NoMemory)? else { return strange() };
        let call = Call::Adopt { opened, rank: 0, size: 1 };
        let Done::Adopted(file) = client.call(call, &mut NoMemory)? else { return strange() };
        Ok(OpenFile { client, file, whole: Arc::new(Nest::WHOLE_FILE) })
    }

    /// Reads from byte `at` on; the answer is how many bytes there were.
    pub fn read_at(&self, at: u64, to: &mut [u8]) -> Result<usize, Failure> {
        let mut bytes = to.len();
        if bytes > BLOCK_BYTES {
            // Else every stripe behind the end would be asked for: most files are short, and all have an end.
            bytes = self.size()?.saturating_sub(at).min(bytes as u64) as usize;
        }
        match bytes {
            0 => Ok(0),
            bytes => self.access(Direction::Read, at, bytes, &mut Into(&mut to[..bytes])),
        }
    }

    /// Writes all bytes from byte `at` on.
    pub fn write_at(&self, at: u64, bytes: &[u8]) -> Result<(), Failure> {
        match self.access(Direction::Write, at, bytes.len(), &mut From(bytes))? {
            count if count == bytes.len() => Ok(()),
            count => failed(Code::IO, format!("{count} of {} bytes were written", bytes.len())),
        }
    }

    fn access(
        &self,
        direction: Direction,
        at: u64,
        bytes: usize,
        memory: &mut dyn Memory,
    ) -> Result<usize, Failure> {
        let (file, view, to) = (self.file, self.whole.clone(), at.saturating_add(bytes as u64));
        let call = Call::Access { file, direction, view, from: at, to, collective: false };
        let Done::Bytes(count) = self.client.call(call, memory)? else { return strange() };
        Ok(count as usize)
    }

    /// How long it is.
    pub fn size(&self) -> Result<u64, Failure> {
        let call = Call::Size { file: self.file };
        let Done::Size(bytes) = self.client.call(call, &mut NoMemory)? else { return strange() };
        Ok(bytes)
    }

    /// Gives it a length.
    pub fn resize(&self, bytes: u64) -> Result<(), Failure> {
        let call = Call::Resize { file: self.file, bytes };
        self.client.call(call, &mut NoMemory).map(drop)
    }

    /// Makes what was written as durable as the class says.
    pub fn sync(&self) -> Result<(), Failure> {
        self.client.call(Call::Sync { file: self.file }, &mut NoMemory).map(drop)
    }

    /// Ends the open.
    pub fn close(self) -> Result<(), Failure> {
        self.client.call(Call::Close { file: self.file }, &mut NoMemory).map(drop)
    }
}

pub(crate) fn failed<T>(code: Code, text: String) -> Result<T, Failure> {
    Err(Failure { code, text })
}

fn strange<T>() -> Result<T, Failure> {
    failed(Code::UNSUPPORTED, "the answer is one to another call".to_owned())
}

/// The name of a plain path in the file system: absolute, without `.`, `..` and empty names. Links are
/// not followed.
pub fn name_of(path: &Path, directory: &Path) -> Vec<u8> {
    let mut names: Vec<&[u8]> = Vec::new();
    let whole = directory.join(path);
    for component in whole.components() {
        match component {
            Component::Normal(name) => names.push(name.as_bytes()),
            Component::ParentDir => drop(names.pop()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    let mut text = names.iter().flat_map(|name| [b"/", *name]).collect::<Vec<_>>().concat();
    if text.is_empty() {
        text.push(b'/');
    }
    text
}

/// What a name stands for, and how long it is; nothing if there is no such name.
pub fn look(client: &Client, path: &[u8]) -> Result<Option<(Attributes, u64)>, Failure> {
    match client.call(Call::Look { path: path.to_vec() }, &mut NoMemory) {
        Ok(Done::Attributes { attributes, bytes }) => Ok(Some((attributes, bytes))),
        Ok(_) => strange(),
        Err(Failure { code: Code::NO_ENTRY, .. }) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// All entries of a directory, in the order of names.
pub fn list(client: &Client, path: &[u8]) -> Result<Vec<Entry>, Failure> {
    let mut all: Vec<Entry> = Vec::new();
    loop {
        let after = all.last().map_or(Vec::new(), |entry| entry.name.clone());
        let call = Call::List { path: path.to_vec(), after };
        let Done::Entries { entries, more } = client.call(call, &mut NoMemory)? else {
            return strange();
        };
        let nothing = entries.is_empty();
        all.extend(entries);
        if !more || nothing {
            return Ok(all);
        }
    }
}

/// The path of an entry of a directory.
pub fn below(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let directory = directory.strip_suffix(b"/").unwrap_or(directory);
    [directory, b"/", name].concat()
}

/// All that is below a directory, in the order of paths.
pub fn walk(client: &Client, path: &[u8]) -> Result<Vec<(Vec<u8>, Attributes)>, Failure> {
    let mut found = Vec::new();
    let mut todo = vec![path.to_vec()];
    while let Some(directory) = todo.pop() {
        for entry in list(client, &directory)? {
            let path = below(&directory, &entry.name);
            if entry.attributes.kind == Kind::Directory {
                todo.push(path.clone());
            }
            found.push((path, entry.attributes));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

/// Makes the directories that lead to a name.
pub fn make_parents(client: &Client, path: &[u8]) -> Result<(), Failure> {
    let ends = (1..path.len()).filter(|&at| path[at] == b'/').map(|at| &path[..at]);
    let ends: Vec<_> = ends.collect();
    if ends.last().is_none_or(|parent| look(client, parent).is_ok_and(|found| found.is_some())) {
        return Ok(());
    }
    for directory in ends {
        let call = Call::MakeDirectory { path: directory.to_vec(), mode: 0o755 };
        match client.call(call, &mut NoMemory) {
            Ok(_) | Err(Failure { code: Code::EXISTS, .. }) => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_absolute_and_plain() {
        let name =
            |path| String::from_utf8(name_of(Path::new(path), Path::new("/run/here"))).unwrap();
        assert_eq!(name("out.dat"), "/run/here/out.dat");
        assert_eq!(name("./a//b/../c/"), "/run/here/a/c");
        assert_eq!(name("../../../x"), "/x");
        assert_eq!(name("/"), "/");
        assert_eq!(below(b"/", b"x"), b"/x");
        assert_eq!(below(b"/a", b"x"), b"/a/x");
    }
}
