//! Real files of a pack's: each once, however often it is tried, and none over another one.

use crate::directories::{directory_below, open_directory, split};
use crate::left::{led_to, remove};
use crate::make::{Made, make, timestamps, write_all};
use crate::pack::{Pack, PackError};
use crate::shown;
use iolab_pack::{Attributes, Directory, Packed, Time};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Stat, Timestamps};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What came of it.
#[derive(Debug, Default)]
pub struct Unpacked {
    /// Files that were made.
    pub made: u64,
    /// Files that were there already, the same.
    pub there: u64,
    /// What could not be made, with the reason; it stays in the pack.
    pub left: Vec<String>,
    /// The pack is gone, since everything is there.
    pub is_removed: bool,
}

/// A larger file is none that a run has kept.
const COMPARED_BYTES_MAX: u64 = 1 << 30;
/// Bytes of files that are compared at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Makes real files of all in a pack, below `target` or where the pack lies, by so many threads; `told` hears how many
/// are done. If all are there and nothing of the pack is damaged, it is removed.
///
/// # Errors
/// When the pack cannot be read, is none, or its run goes on. Files that could not be made are no such error: see
/// [`Unpacked::left`].
pub fn unpack(
    path: &Path,
    target: Option<&Path>,
    threads: usize,
    told: &(dyn Fn(u64) + Sync),
) -> Result<Unpacked, PackError> {
    let lock = fs::File::open(path)?;
    // Where there are no locks nobody can be asked.
    let locked = rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive);
    if locked.err() == Some(Errno::WOULDBLOCK) {
        return Err(PackError::InUse);
    }
    let pack = Pack::check(path)?;
    let beside = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let root = open_directory(
        rustix::fs::CWD,
        target.unwrap_or(beside).as_os_str().as_encoded_bytes(),
        false,
    )?;
    let work = Work { pack: &pack, root, left: Mutex::default() };
    let before = work.directories();
    let files: Vec<(&[u8], &Packed)> =
        pack.contents().files.iter().map(|(path, file)| (&path[..], file)).collect();
    let next = AtomicUsize::new(0);
    let counts = Mutex::new((0, 0));
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, 64) {
            scope.spawn(|| {
                let mut near = None;
                while let Some(&(path, file)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = work.file(path, file, &mut near);
                    let mut counts = lock_of(&counts);
                    match outcome {
                        Ok(true) => counts.0 += 1,
                        Ok(false) => counts.1 += 1,
                        Err(why) => lock_of(&work.left).push(format!("{}: {why}", shown(path))),
                    }
                    told(counts.0 + counts.1);
                }
            });
        }
    });
    work.settle(&before);
    let (made, there) = *lock_of(&counts);
    let mut left = std::mem::take(&mut *lock_of(&work.left));
    left.sort();
    left.extend(pack.damage());
    let mut is_removed = false;
    if left.is_empty() {
        match work.remove(&lock, path) {
            Ok(()) => is_removed = true,
            Err(why) => left.push(format!("{}: {why}", path.display())),
        }
    }
    Ok(Unpacked { made, there, left, is_removed })
}

fn lock_of<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The directory a thread was in last.
type Near<'a> = Option<(&'a [u8], OwnedFd)>;

struct Work<'a> {
    pack: &'a Pack,
    root: OwnedFd,
    left: Mutex<Vec<String>>,
}

impl<'a> Work<'a> {
    /// What the system says of the directories before anything is made in them.
    fn directories(&self) -> BTreeMap<&'a [u8], Stat> {
        let known = self.pack.contents().directories.keys();
        let look = |path: &'a Vec<u8>| {
            let name: &[u8] = if path.is_empty() { b"." } else { path };
            let stat = rustix::fs::statat(&self.root, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            Some((&path[..], stat))
        };
        known.filter_map(look).collect()
    }

    /// Times of directories as if the files had been made when the program made them.
    fn settle(&self, before: &BTreeMap<&[u8], Stat>) {
        for (path, directory) in &self.pack.contents().directories {
            let Ok(fd) = directory_below(&self.root, path, None) else { continue };
            let times = times_of(directory, before.get(&path[..]));
            // Nothing but a time is lost.
            let _ = times.map(|times| rustix::fs::futimens(&fd, &times));
        }
    }

    /// Makes one file; false if it is there already.
    fn file(&self, path: &'a [u8], file: &Packed, near: &mut Near<'a>) -> Result<bool, String> {
        let (directory, name) = split(path);
        if near.as_ref().is_none_or(|(known, _)| *known != directory) {
            let made = Some(self.pack.contents());
            let fd = directory_below(&self.root, directory, made).map_err(|error| match error {
                Errno::LOOP | Errno::NOTDIR => {
                    "its directory is a symbolic link or no directory".to_owned()
                }
                other => other.to_string(),
            })?;
            *near = Some((directory, fd));
        }
        let Some((_, fd)) = near else { return Err("it has no directory".to_owned()) };
        match rustix::fs::statat(&*fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => return self.compare(fd, name, file, &stat).map(|()| false),
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error.to_string()),
        }
        let made = Made { name, attributes: &file.attributes, size: file.size, is_durable: false };
        let written = make(fd.as_fd(), self.pack.scanned.header.run, &made, |fd| {
            // Room is there or not before anything is read.
            let copied = self.pack.read(file, |offset, bytes| -> Result<(), PackError> {
                write_all(fd, offset, bytes).map_err(PackError::from)
            });
            copied.map_err(|error| match error {
                PackError::System(error) => Errno::from_io_error(&error).unwrap_or(Errno::IO),
                _ => Errno::IO,
            })
        });
        match written {
            Ok(_) => Ok(true),
            Err(Errno::EXIST) => Err(ANOTHER.to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Whether what lies there is the file already.
    fn compare(
        &self,
        directory: &OwnedFd,
        name: &[u8],
        file: &Packed,
        stat: &Stat,
    ) -> Result<(), String> {
        let is_regular = FileType::from_raw_mode(stat.st_mode).is_file();
        if is_regular && file.is_moving {
            return Ok(());
        }
        if !is_regular || stat.st_size as u64 != file.size || file.size > COMPARED_BYTES_MAX {
            return Err(ANOTHER.to_owned());
        }
        let how = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let real = rustix::fs::openat(directory, name, how, Mode::empty());
        let real = real.map_err(|error| error.to_string())?;
        let mut packed = vec![0; usize::try_from(file.size).map_err(|_| ANOTHER.to_owned())?];
        let read = self.pack.read(file, |offset, bytes| -> Result<(), PackError> {
            packed[offset as usize..][..bytes.len()].copy_from_slice(bytes);
            Ok(())
        });
        read.map_err(|error| error.to_string())?;
        let mut buffer = vec![0; PIECE_BYTES.min(packed.len().max(1))];
        let mut at = 0;
        while at < packed.len() {
            let moved = rustix::io::pread(&real, &mut buffer[..], at as u64);
            let moved = moved.map_err(|error| error.to_string())?;
            if moved == 0 || packed.get(at..at + moved) != Some(&buffer[..moved]) {
                return Err(ANOTHER.to_owned());
            }
            at += moved;
        }
        Ok(())
    }

    /// Everything is there: the pack goes, if it still is what lies at that path.
    fn remove(&self, lock: &fs::File, path: &Path) -> Result<(), String> {
        let words = |error: std::io::Error| format!("cannot be removed: {error}");
        if self.pack.scanned.is_committed {
            // What a sync has returned for is durable at all times.
            rustix::fs::syncfs(&self.root).map_err(|error| words(error.into()))?;
        }
        let (ours, there) = (lock.metadata().map_err(words)?, there(path).map_err(words)?);
        if (ours.dev(), ours.ino()) != (there.dev(), there.ino()) {
            return Err("is another file by now, and stays".to_owned());
        }
        remove(path).map_err(words)
    }
}

/// What lies at a path, or where a link of ours leads from there.
fn there(path: &Path) -> std::io::Result<fs::Metadata> {
    match led_to(path) {
        Some(place) => fs::symlink_metadata(place),
        None => fs::symlink_metadata(path),
    }
}

const ANOTHER: &str = "another file lies there, and is not overwritten";

/// The times of a directory after files were made in it: those it had, or that of the last change the program made.
fn times_of(directory: &Directory, before: Option<&Stat>) -> Option<Timestamps> {
    let old = before.map(|stat| Attributes {
        accessed: Time { seconds: stat.st_atime, nanoseconds: stat.st_atime_nsec as u32 },
        modified: Time { seconds: stat.st_mtime, nanoseconds: stat.st_mtime_nsec as u32 },
        ..Attributes::default()
    });
    let changed = directory.changed_ns.map(|ns| Time {
        seconds: (ns / 1_000_000_000) as i64,
        nanoseconds: (ns % 1_000_000_000) as u32,
    });
    let modified = old.map(|it| it.modified).max(changed)?;
    let accessed = old.map_or(modified, |it| it.accessed);
    Some(timestamps(accessed, modified))
}
