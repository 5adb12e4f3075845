//! A pack that grows: one per mount and run, made when its first record comes.

use crate::left::{led_to, remove};
use crate::make::write_all;
use iolab_pack::{Contents, HEADER_BYTES, Header, Record, Scanned, index};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::{self, Errno};
use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The time, in nanoseconds since 1970 (UTC).
pub fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// Whether a file may be a pack, by its name.
pub fn is_name(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("iolab-") && name.ends_with(".pack")
}

/// The pack of a run.
pub struct Writer {
    directory: PathBuf,
    /// Where its bytes lie, if that is elsewhere: a symbolic link leads there.
    to: Option<PathBuf>,
    name: OsString,
    header: Header,
    file: Option<OwnedFd>,
    /// All records so far end here.
    length: u64,
    /// All up to here are durable.
    durable: u64,
    record_count: u64,
    contents: Contents,
    /// A sync has failed, and the system forgets what it could not write: no later one can be believed.
    is_doubtful: bool,
    /// A sync has returned for some records.
    is_committed: bool,
    /// Its name is durable.
    is_name_durable: bool,
}

impl Writer {
    /// One of a new run, to lie in a directory, or in another one that its name there leads to.
    pub fn new(directory: &Path, to: Option<&Path>) -> Writer {
        let begun_ns = now_ns();
        let run = RandomState::new().hash_one((begun_ns, std::process::id()));
        let node = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let header = Header { run, begun_ns, node };
        Writer {
            directory: directory.to_owned(),
            to: to.map(Path::to_owned),
            name: name_of(&header).into(),
            header,
            file: None,
            length: 0,
            durable: 0,
            record_count: 0,
            contents: Contents::default(),
            is_doubtful: false,
            is_committed: false,
            is_name_durable: false,
        }
    }

    /// Goes on with one that an earlier run has left, from its last whole record on. Who calls holds the lock.
    pub(crate) fn go_on(path: &Path, file: impl AsFd, scanned: &Scanned) -> io::Result<Writer> {
        let file = rustix::io::fcntl_dupfd_cloexec(file, 0)?;
        let name = path.file_name().ok_or(Errno::INVAL)?;
        let beside = path.parent().unwrap_or(Path::new("."));
        let elsewhere = led_to(path).and_then(|place| Some(place.parent()?.to_owned()));
        Ok(Writer {
            directory: beside.to_owned(),
            to: elsewhere,
            name: name.to_owned(),
            header: scanned.header.clone(),
            file: Some(file),
            length: scanned.sound_bytes,
            durable: scanned.sound_bytes,
            record_count: scanned.record_count,
            contents: scanned.contents.clone(),
            is_doubtful: false,
            is_committed: scanned.is_committed,
            is_name_durable: false,
        })
    }

    /// The run's number.
    pub fn run(&self) -> u64 {
        self.header.run
    }

    /// Its name in the directory.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Whether a sync has returned for some of what it holds.
    pub fn is_committed(&self) -> bool {
        self.is_committed
    }

    /// Where it lies, once something was written.
    pub fn path(&self) -> Option<PathBuf> {
        self.file.as_ref().map(|_| self.directory.join(&self.name))
    }

    /// What was written so far comes to this.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.length
    }

    /// Adds a record. It survives this process from then on, and the machine after a sync.
    ///
    /// # Errors
    /// What the system says. Nothing was added then.
    pub fn append(&mut self, record: &Record<'_>) -> io::Result<()> {
        if self.file.is_none() {
            self.begin()?;
        }
        let written_ns = now_ns();
        let bytes = record.encode(written_ns);
        let at = self.length;
        // What does not suit is a defect of ours; it must not spoil what is written.
        self.contents.suits(record).map_err(|_| Errno::IO)?;
        self.write(&bytes)?;
        self.contents.take(record, at, written_ns).map_err(|_| Errno::IO)?;
        self.record_count += 1;
        Ok(())
    }

    fn begin(&mut self) -> io::Result<()> {
        let how = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let path = self.to.as_ref().unwrap_or(&self.directory).join(&self.name);
        let fd = rustix::fs::open(&path, how, Mode::RUSR | Mode::WUSR)?;
        // File systems without locks leave it to the names that runs go on.
        let _ = rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive);
        self.file = Some(fd);
        let header = self.header.encode();
        let named = self.write(&header).and_then(|()| match &self.to {
            Some(_) => rustix::fs::symlink(&path, self.directory.join(&self.name)),
            None => Ok(()),
        });
        if let Err(error) = named {
            (self.file, self.length) = (None, 0);
            let _ = rustix::fs::unlink(&path);
            return Err(error);
        }
        debug_assert_eq!(self.length, HEADER_BYTES as u64);
        Ok(())
    }

    /// Writes behind what is there: all, or nothing of it stays.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(file) = &self.file else { return Err(Errno::BADF) };
        if let Err(error) = write_all(file, self.length, bytes) {
            // Whoever reads it would stop there anyway.
            let _ = rustix::fs::ftruncate(file, self.length);
            return Err(error);
        }
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// All records so far become durable; costs nothing where they are.
    ///
    /// # Errors
    /// What the system says; from then on every sync fails.
    pub fn sync(&mut self) -> io::Result<()> {
        if self.is_doubtful {
            return Err(Errno::IO);
        }
        if self.file.is_none() || self.durable == self.length {
            return Ok(());
        }
        self.append(&Record::Commit)?;
        let Some(file) = &self.file else { return Ok(()) };
        let mut synced = io::retry_on_intr(|| rustix::fs::fdatasync(file));
        if !self.is_name_durable && synced.is_ok() {
            let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let names = [Some(&self.directory), self.to.as_ref()];
            synced = names.into_iter().flatten().try_for_each(|directory| {
                rustix::fs::fsync(rustix::fs::open(directory, how, Mode::empty())?)
            });
        }
        match synced {
            Ok(()) => {
                self.durable = self.length;
                (self.is_committed, self.is_name_durable) = (true, true);
            }
            Err(_) => self.is_doubtful = true,
        }
        synced
    }

    /// Ends it with its index. Where it lies, if anything was written.
    ///
    /// # Errors
    /// What the system says; without an index it is read record by record.
    pub fn end(mut self) -> (Option<PathBuf>, io::Result<()>) {
        let path = self.path();
        if path.is_none() {
            return (None, Ok(()));
        }
        let index = index::encode(
            &self.contents,
            (self.record_count, self.is_committed),
            self.length,
            now_ns(),
        );
        let written = match index {
            Some(index) => self.write(&index),
            None => Ok(()),
        };
        // Whoever reads its files may hold it open a little longer.
        let _ = self.file.as_ref().map(|it| rustix::fs::flock(it, FlockOperation::Unlock));
        (path, written)
    }

    /// Ends one that was gone on with: with its index, or it goes, if it has no file any more.
    ///
    /// # Errors
    /// What the system says; the pack is whole all the same.
    pub fn leave(self) -> io::Result<()> {
        if self.is_empty() && self.is_there()? {
            let removed = remove(&self.directory.join(&self.name));
            return removed.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
        }
        self.end().1
    }

    fn is_empty(&self) -> bool {
        self.contents.files.is_empty()
    }

    /// Whether it still is what lies at its path.
    fn is_there(&self) -> io::Result<bool> {
        let Some(file) = &self.file else { return Ok(false) };
        let (ours, there) =
            (rustix::fs::fstat(file)?, rustix::fs::stat(self.directory.join(&self.name))?);
        Ok((ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino))
    }
}

fn name_of(header: &Header) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
    let node: String = header.node.chars().filter(|&it| is_plain(it)).collect();
    format!("iolab-{:016x}-{node}.pack", header.run)
}
