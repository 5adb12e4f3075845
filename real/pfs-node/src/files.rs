//! Whole files through a client: for tools, and for programs' files that come from, or go to, plain ones.

use crate::{Client, Memory, NoMemory};
use iolab_pattern::Nest;
use iolab_pfs::client::{Call, Done, Failure, FileNumber};
use iolab_pfs::{Attributes, Code, Entry, Kind, OpenWish};
use iolab_vocab::Direction;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes that are copied at a time: some transfers to each of a few servers.
const CHUNK_BYTES: usize = 4 << 20;
/// A copy of a plain file that was begun by somebody and does not grow for so long was given up.
const GIVEN_UP: Duration = Duration::from_secs(20);

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
        self.access(Direction::Read, at, to.len(), &mut Into(to))
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

fn failed<T>(code: Code, text: String) -> Result<T, Failure> {
    Err(Failure { code, text })
}

fn strange<T>() -> Result<T, Failure> {
    failed(Code::UNSUPPORTED, "the answer is one to another call".to_owned())
}

/// What went wrong with a plain file.
fn plain_failure(path: &Path, error: &io::Error) -> Failure {
    let code = error.raw_os_error().map_or(Code::IO, |number| Code(number as u16));
    Failure { code, text: format!("{}: {error}", path.display()) }
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

/// Copies a plain file into the file system under a name that it does not have there, and makes the
/// directories that lead to it. If it is there already, or somebody else brings it meanwhile, it stays
/// as it is there. The answer is whether it was copied.
pub fn import_file(client: &Client, plain: &Path, path: &[u8]) -> Result<bool, Failure> {
    if look(client, path)?.is_some() {
        return Ok(false);
    }
    make_parents(client, path)?;
    let beside = import_name(path);
    let mut source = fs::File::open(plain).map_err(|error| plain_failure(plain, &error))?;
    let metadata = source.metadata().map_err(|error| plain_failure(plain, &error))?;
    let mode = metadata.permissions().mode() & 0o7777;
    let Some(file) = begin_import(client, path, &beside, mode)? else { return Ok(false) };
    let copied = if look(client, path)?.is_some() {
        // Somebody was faster, between the first look and the name that keeps others out.
        Ok(false)
    } else {
        copy_in(&mut source, plain, &file).map(|()| true)
    };
    file.close()?;
    if copied == Ok(true) {
        let call = Call::Rename { from: beside, to: path.to_vec() };
        client.call(call, &mut NoMemory)?;
    } else {
        client.call(Call::Remove { path: beside, kind: Kind::File }, &mut NoMemory)?;
    }
    copied
}

/// The longest name of a file, here and there.
const NAME_BYTES_MAX: usize = 255;

/// What a file is called while it is brought: the same for all who bring it. A name that is as long as
/// names may be has no room for more, so its own end goes.
fn import_name(path: &[u8]) -> Vec<u8> {
    const MARK: &[u8] = b".iolab-import";
    let start = path.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    let (directory, name) = path.split_at(start);
    if name.len() + MARK.len() <= NAME_BYTES_MAX {
        return [path, MARK].concat();
    }
    // Names that only differ in their end still differ.
    let sum = format!("-{:08x}", crc32c::crc32c(name));
    let kept = &name[..NAME_BYTES_MAX - MARK.len() - sum.len()];
    [directory, kept, sum.as_bytes(), MARK].concat()
}

/// Opens the file beside, which keeps others from bringing the same one; or waits until they have.
fn begin_import<'a>(
    client: &'a Client,
    path: &[u8],
    beside: &[u8],
    mode: u32,
) -> Result<Option<OpenFile<'a>>, Failure> {
    let (mut since, mut bytes) = (Instant::now(), None);
    let wish = OpenWish { writes: true, creates: true, exclusive: true, mode, ..OpenWish::TO_READ };
    loop {
        match OpenFile::open(client, beside, wish) {
            Err(Failure { code: Code::EXISTS, .. }) => {}
            opened => return opened.map(Some),
        }
        if look(client, path)?.is_some() {
            return Ok(None);
        }
        let now = look(client, beside)?.map(|(_, bytes)| bytes);
        if now != bytes {
            (since, bytes) = (Instant::now(), now);
        } else if since.elapsed() > GIVEN_UP {
            let call = Call::Remove { path: beside.to_vec(), kind: Kind::File };
            client.call(call, &mut NoMemory)?;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn copy_in(source: &mut fs::File, plain: &Path, file: &OpenFile<'_>) -> Result<(), Failure> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut at = 0;
    loop {
        let bytes = fill(source, &mut chunk).map_err(|error| plain_failure(plain, &error))?;
        if bytes == 0 {
            return Ok(());
        }
        file.write_at(at, &chunk[..bytes])?;
        at += bytes as u64;
    }
}

/// Reads until the chunk is full or the source ends.
fn fill(source: &mut impl Read, chunk: &mut [u8]) -> io::Result<usize> {
    let mut have = 0;
    while have < chunk.len() {
        match source.read(&mut chunk[have..]) {
            Ok(0) => break,
            Ok(bytes) => have += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(have)
}

/// Copies a file to a plain one: written beside it, read again and compared by size and CRC-32C, then
/// renamed; so the plain file is the old one or the whole new one. The answer is its size.
pub fn export_file(client: &Client, path: &[u8], plain: &Path) -> Result<u64, Failure> {
    // A link stays one: what it leads to is replaced.
    let target = plain.canonicalize().unwrap_or_else(|_| plain.to_owned());
    let Some((attributes, _)) = look(client, path)? else {
        return failed(Code::NO_ENTRY, String::from_utf8_lossy(path).into_owned());
    };
    let beside = beside(&target);
    let exported = export_to(client, path, &beside).and_then(|bytes| {
        let kept = fs::metadata(&target).map(|it| it.permissions());
        if let Ok(permissions) = kept {
            let _ = fs::set_permissions(&beside, permissions);
        } else {
            restrict(&beside, attributes.mode);
        }
        fs::rename(&beside, &target).map_err(|error| plain_failure(&target, &error))?;
        Ok(bytes)
    });
    if exported.is_err() {
        let _ = fs::remove_file(&beside);
    }
    exported
}

/// Whether a plain file has the very bytes of a file in the file system.
pub fn is_same(client: &Client, path: &[u8], plain: &Path) -> Result<bool, Failure> {
    let file = OpenFile::open(client, path, OpenWish::TO_READ)?;
    let compared = same_bytes(&file, plain);
    file.close()?;
    compared
}

fn same_bytes(file: &OpenFile<'_>, plain: &Path) -> Result<bool, Failure> {
    let bytes = file.size()?;
    // One that cannot be read is another one.
    let Ok(mut other) = fs::File::open(plain) else { return Ok(false) };
    if other.metadata().map_or(true, |it| it.len() != bytes) {
        return Ok(false);
    }
    let (mut ours, mut theirs) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    let mut at = 0;
    loop {
        let count = file.read_at(at, &mut ours)?;
        let there = fill(&mut other, &mut theirs).unwrap_or(0);
        if ours[..count] != theirs[..there] {
            return Ok(false);
        }
        if count == 0 {
            return Ok(true);
        }
        at += count as u64;
    }
}

/// A name beside a plain file that nobody else has.
fn beside(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().as_bytes();
    let mark = format!(".iolab-{:08x}", crate::instance::random() as u32);
    let kept = &name[..name.len().min(NAME_BYTES_MAX - 1 - mark.len())];
    target.with_file_name(OsStr::from_bytes(&[b".", kept, mark.as_bytes()].concat()))
}

/// Takes permissions away that the file was not created with; those that the user's mask takes from new
/// files are gone already.
fn restrict(plain: &Path, mode: u32) {
    if let Ok(metadata) = fs::metadata(plain) {
        let has = metadata.permissions().mode();
        let _ = fs::set_permissions(plain, fs::Permissions::from_mode(has & (mode | 0o600)));
    }
}

fn export_to(client: &Client, path: &[u8], beside: &Path) -> Result<u64, Failure> {
    let plain_error = |error: io::Error| plain_failure(beside, &error);
    if let Some(parent) = beside.parent() {
        fs::create_dir_all(parent).map_err(plain_error)?;
    }
    let mut options = fs::File::options();
    let mut to = options.read(true).write(true).create_new(true).mode(0o777).open(beside);
    let to = to.as_mut().map_err(|error| plain_failure(beside, error))?;
    let file = OpenFile::open(client, path, OpenWish::TO_READ)?;
    let copied = copy_out(&file, to, beside);
    file.close()?;
    let (bytes, crc) = copied?;
    to.sync_all().map_err(plain_error)?;
    let written = checksum(beside).map_err(plain_error)?;
    if written != (bytes, crc) {
        let text = format!("{}: what was written reads differently", beside.display());
        return failed(Code::IO, text);
    }
    Ok(bytes)
}

/// Copies all bytes, without giving blocks to long rows of zeros; how many they were, and their CRC-32C.
fn copy_out(file: &OpenFile<'_>, to: &mut fs::File, path: &Path) -> Result<(u64, u32), Failure> {
    let plain_error = |error: io::Error| plain_failure(path, &error);
    let mut chunk = vec![0; CHUNK_BYTES];
    let (mut at, mut crc) = (0u64, 0);
    loop {
        let bytes = file.read_at(at, &mut chunk)?;
        if bytes == 0 {
            break;
        }
        crc = crc32c::crc32c_append(crc, &chunk[..bytes]);
        for (index, block) in chunk[..bytes].chunks(BLOCK_BYTES).enumerate() {
            if block.iter().any(|&byte| byte != 0) {
                let place = at + (index * BLOCK_BYTES) as u64;
                std::os::unix::fs::FileExt::write_all_at(to, block, place).map_err(plain_error)?;
            }
        }
        at += bytes as u64;
    }
    to.set_len(at).and_then(|()| to.flush()).map_err(plain_error)?;
    Ok((at, crc))
}

/// The least row of zeros that becomes a hole.
const BLOCK_BYTES: usize = 64 << 10;

fn checksum(path: &Path) -> io::Result<(u64, u32)> {
    let mut file = fs::File::open(path)?;
    let mut chunk = vec![0; CHUNK_BYTES];
    let (mut bytes, mut crc) = (0, 0);
    loop {
        match fill(&mut file, &mut chunk)? {
            0 => return Ok((bytes, crc)),
            count => {
                bytes += count as u64;
                crc = crc32c::crc32c_append(crc, &chunk[..count]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beside_the_longest_name_are_no_longer_and_differ() {
        let name = "n".repeat(NAME_BYTES_MAX - 1);
        let [one, other] = ["1", "2"].map(|end| import_name(format!("/d/{name}{end}").as_bytes()));
        assert_ne!(one, other);
        for beside in [one, import_name(b"/d/short"), import_name(b"/d/\xff")] {
            assert!(beside.starts_with(b"/d/") && beside.ends_with(b".iolab-import"));
            assert!(beside.len() - b"/d/".len() <= NAME_BYTES_MAX);
        }
        let beside = beside(Path::new(&format!("/d/{name}1")));
        assert_eq!(beside.file_name().unwrap().len(), NAME_BYTES_MAX);
        assert_eq!(beside.parent(), Some(Path::new("/d")));
    }

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
