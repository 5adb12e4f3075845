//! Files that come from plain ones and become plain ones again.
//!
//! Promise: a file leaves the file system only when its bytes are in a plain one that has its name, and were
//! compared; until then, the one in the file system counts. What a run exports at its end is the old plain
//! file or the whole new one.
//!
//! Plain files are reached by system calls of our own: functions of libc that take names may lead back here.

use crate::files::{OpenFile, failed, look, make_parents};
use crate::stand_ins::StandIns;
use crate::{Client, NoMemory};
use iolab_pfs::client::{Call, Failure};
use iolab_pfs::{Code, Kind, OpenWish};
use rustix::fd::OwnedFd;
use rustix::fs::{self, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Bytes that are copied at a time: some transfers to each of a few servers.
const CHUNK_BYTES: usize = 4 << 20;
/// A copy of a plain file that was begun by somebody and does not grow for so long was given up.
const GIVEN_UP: Duration = Duration::from_secs(20);

/// What went wrong with a plain file.
fn plain_failure(path: &Path, error: impl Into<io::Error>) -> Failure {
    let error = error.into();
    let code = error.raw_os_error().map_or(Code::IO, |number| Code(number as u16));
    Failure { code, text: format!("{}: {error}", path.display()) }
}

/// Whether there is anything of that name, or where it leads to if it is a link.
pub fn is_there(name: &Path) -> bool {
    fs::stat(name).is_ok()
}

/// Whether a name is that of a directory, or leads to one.
pub fn is_directory(name: &Path) -> bool {
    fs::stat(name).is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Directory)
}

/// Whether a name goes on behind that of a file.
pub fn leads_through_file(name: &Path) -> bool {
    fs::stat(name).is_err_and(|error| error == Errno::NOTDIR)
}

/// Whether a plain file has a second name (`link`), under which it has to be the same file.
pub fn has_several_names(name: &Path) -> bool {
    let is_file = |it: &Stat| FileType::from_raw_mode(it.st_mode) == FileType::RegularFile;
    fs::stat(name).is_ok_and(|status| is_file(&status) && status.st_nlink > 1)
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
    let mut source = opened(plain).map_err(|error| plain_failure(plain, error))?;
    let status = fs::fstat(&source).map_err(|error| plain_failure(plain, error))?;
    let mode = status.st_mode & 0o7777;
    let Some(file) = begin_import(client, path, &beside, mode)? else { return Ok(false) };
    let copied = if look(client, path)?.is_some() {
        // Somebody was faster, between the first look and the name that keeps others out.
        Ok(false)
    } else {
        copy_in(&mut source, plain, &file).map(|()| true)
    };
    let closed = file.close();
    let brought = copied.and_then(|any| {
        closed?;
        if any {
            let call = Call::Rename { from: beside.clone(), to: path.to_vec() };
            client.call(call, &mut NoMemory)?;
        }
        Ok(any)
    });
    if brought == Ok(true) {
        return brought;
    }
    let removed = client.call(Call::Remove { path: beside, kind: Kind::File }, &mut NoMemory);
    // Of two errors the first says why.
    brought.and_then(|any| removed.map(|_| any))
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

fn opened(plain: &Path) -> Result<File, Errno> {
    fs::open(plain, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map(File::from)
}

fn copy_in(source: &mut File, plain: &Path, file: &OpenFile<'_>) -> Result<(), Failure> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut at = 0;
    loop {
        let bytes = fill(source, &mut chunk).map_err(|error| plain_failure(plain, error))?;
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

/// Takes a file out of the file system, which is a plain one from then on. Whoever does that has the turn of
/// its name. The answer is whether there was such a file.
pub fn bring_home(client: &Client, path: &[u8], stand_ins: &StandIns) -> Result<bool, Failure> {
    if look(client, path)?.is_none() {
        return Ok(false);
    }
    let plain = Path::new(OsStr::from_bytes(path));
    // The stand-in is filled, so that it stays the file that programs have just looked at. What counts until
    // then is in the file system.
    match fs::open(plain, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map(File::from) {
        Ok(mut stand_in) => {
            let status = fs::fstat(&stand_in).map_err(|error| plain_failure(plain, error))?;
            fill_in(client, path, &mut stand_in).inspect_err(|_| {
                let _ = fs::ftruncate(&stand_in, 0);
            })?;
            take_times(&stand_in, &status);
            forget(client, path)?;
            stand_ins.strike(status.st_dev, status.st_ino);
        }
        Err(_) => {
            export_file(client, path, plain)?;
            forget(client, path)?;
        }
    }
    Ok(true)
}

/// Gives a plain file the bytes of one in the file system.
fn fill_in(client: &Client, path: &[u8], to: &mut File) -> Result<(), Failure> {
    let plain = Path::new(OsStr::from_bytes(path));
    fs::ftruncate(&to, 0).map_err(|error| plain_failure(plain, error))?;
    copy_compared(client, path, to, plain).map(drop)
}

/// Removes a file from the file system; its stand-in stays.
pub fn forget(client: &Client, path: &[u8]) -> Result<(), Failure> {
    let call = Call::Remove { path: path.to_vec(), kind: Kind::File };
    client.call(call, &mut NoMemory).map(drop)
}

/// Removes a name that is a link, and leaves what it leads to alone; whether it was one.
pub fn remove_link(name: &Path) -> Result<bool, Failure> {
    let is_link = |it: &Stat| FileType::from_raw_mode(it.st_mode) == FileType::Symlink;
    match fs::lstat(name).is_ok_and(|status| is_link(&status)) {
        true => fs::unlink(name).map(|()| true).map_err(|error| plain_failure(name, error)),
        false => Ok(false),
    }
}

/// Removes a file from the file system, and the plain one that has its name.
pub fn remove(client: &Client, path: &[u8], stand_ins: Option<&StandIns>) -> Result<(), Failure> {
    let plain = Path::new(OsStr::from_bytes(path));
    let turn = stand_ins.map(|it| it.turn(&[path])).transpose();
    let _turn = turn.map_err(|error| plain_failure(plain, error))?;
    let status = fs::lstat(plain);
    match fs::unlink(plain) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(plain_failure(plain, error)),
    }
    if let (Ok(status), Some(stand_ins)) = (status, stand_ins) {
        stand_ins.strike(status.st_dev, status.st_ino);
    }
    forget(client, path)
}

/// A file as it is now, to be read, in a plain file without a name.
pub fn snapshot(client: &Client, path: &[u8]) -> Result<OwnedFd, Failure> {
    let plain = Path::new(OsStr::from_bytes(path));
    let (flags, mode) = (OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR);
    let nameless = fs::open(plain.parent().unwrap_or(plain), flags | OFlags::TMPFILE, mode);
    let file = nameless.or_else(|_| {
        let beside = beside(plain);
        let file = fs::open(&beside, flags | OFlags::CREATE | OFlags::EXCL, mode)?;
        fs::unlink(&beside).map(|()| file)
    });
    let mut to = File::from(file.map_err(|error| plain_failure(plain, error))?);
    let from = OpenFile::open(client, path, OpenWish::TO_READ)?;
    let copied = copy_out(&from, &mut to, plain);
    from.close()?;
    copied.map(|_| to.into())
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
    let exported = export_to(client, path, &beside).and_then(|(bytes, file)| {
        let wrong = |error| plain_failure(&target, error);
        let status = fs::fstat(&file).map_err(wrong)?;
        match fs::stat(&target) {
            Ok(before) => take_after(&file, &status, &before),
            // Those that the user's mask takes from new files are gone already.
            Err(_) => {
                let mode = status.st_mode & (attributes.mode | 0o600);
                let _ = fs::fchmod(&file, Mode::from_raw_mode(mode & 0o7777));
            }
        }
        fs::rename(&beside, &target).map_err(wrong)?;
        Ok(bytes)
    });
    if exported.is_err() {
        let _ = fs::unlink(&beside);
    }
    exported
}

/// Gives a new plain file what the one before it has, as far as that may be: owner, permissions, times.
fn take_after(file: &File, now: &Stat, before: &Stat) {
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid) {
        let (owner, group) = (Uid::from_raw(before.st_uid), Gid::from_raw(before.st_gid));
        let _ = fs::fchown(file, Some(owner), Some(group));
    }
    let _ = fs::fchmod(file, Mode::from_raw_mode(before.st_mode & 0o7777));
    take_times(file, before);
}

fn take_times(file: &File, before: &Stat) {
    let time = |seconds, nanos: u64| Timespec { tv_sec: seconds, tv_nsec: nanos as _ };
    let times = Timestamps {
        last_access: time(before.st_atime, before.st_atime_nsec),
        last_modification: time(before.st_mtime, before.st_mtime_nsec),
    };
    let _ = fs::futimens(file, &times);
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
    let Ok(mut other) = opened(plain) else { return Ok(false) };
    if fs::fstat(&other).map_or(true, |it| it.st_size as u64 != bytes) {
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

fn export_to(client: &Client, path: &[u8], beside: &Path) -> Result<(u64, File), Failure> {
    let plain_error = |error: io::Error| plain_failure(beside, error);
    if let Some(parent) = beside.parent() {
        std::fs::create_dir_all(parent).map_err(plain_error)?;
    }
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let made = fs::open(beside, flags, Mode::from_raw_mode(0o777));
    let mut to = File::from(made.map_err(|error| plain_failure(beside, error))?);
    let bytes = copy_compared(client, path, &mut to, beside)?;
    Ok((bytes, to))
}

/// Copies all bytes to an empty plain file, and reads it again.
fn copy_compared(
    client: &Client,
    path: &[u8],
    to: &mut File,
    plain: &Path,
) -> Result<u64, Failure> {
    let file = OpenFile::open(client, path, OpenWish::TO_READ)?;
    let copied = copy_out(&file, to, plain);
    file.close()?;
    let (bytes, crc) = copied?;
    fs::fsync(&to).map_err(|error| plain_failure(plain, error))?;
    let written = checksum(to).map_err(|error| plain_failure(plain, error))?;
    if written != (bytes, crc) {
        let text = format!("{}: what was written reads differently", plain.display());
        return failed(Code::IO, text);
    }
    Ok(bytes)
}

/// Copies all bytes, without giving blocks to long rows of zeros; how many they were, and their CRC-32C.
fn copy_out(file: &OpenFile<'_>, to: &mut File, path: &Path) -> Result<(u64, u32), Failure> {
    let plain_error = |error: io::Error| plain_failure(path, error);
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
                to.write_all_at(block, place).map_err(plain_error)?;
            }
        }
        at += bytes as u64;
    }
    fs::ftruncate(&to, at).map_err(|error| plain_failure(path, error))?;
    Ok((at, crc))
}

/// The least row of zeros that becomes a hole.
const BLOCK_BYTES: usize = 64 << 10;

fn checksum(file: &mut File) -> io::Result<(u64, u32)> {
    file.seek(SeekFrom::Start(0))?;
    let mut chunk = vec![0; CHUNK_BYTES];
    let (mut bytes, mut crc) = (0, 0);
    loop {
        match fill(file, &mut chunk)? {
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
}
