//! A pack that grows: one per mount and run, made when its first record comes.

use crate::make::write_all;
use iolab_pack::{Contents, HEADER_BYTES, Header, Record, index};
use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::{self, Errno};
use std::ffi::OsStr;
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

/// The packs in a directory that no run has in its hands.
pub fn left_in(directory: &Path) -> Vec<PathBuf> {
    let entries = directory.read_dir().into_iter().flatten().flatten();
    let packs = entries.filter(|entry| is_name(&entry.file_name())).map(|entry| entry.path());
    packs.filter(|path| is_left(path)).collect()
}

fn is_left(path: &Path) -> bool {
    let Ok(fd) = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else {
        return false;
    };
    rustix::fs::flock(fd, FlockOperation::NonBlockingLockShared).is_ok()
}

/// The pack of a run.
pub struct Writer {
    directory: PathBuf,
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
}

impl Writer {
    /// One of a new run, to lie in a directory.
    pub fn new(directory: &Path) -> Writer {
        let begun_ns = now_ns();
        let run = RandomState::new().hash_one((begun_ns, std::process::id()));
        let node = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let header = Header { run, begun_ns, node };
        Writer {
            directory: directory.to_owned(),
            header,
            file: None,
            length: 0,
            durable: 0,
            record_count: 0,
            contents: Contents::default(),
            is_doubtful: false,
        }
    }

    /// The run's number.
    pub fn run(&self) -> u64 {
        self.header.run
    }

    /// Its name in the directory.
    pub fn name(&self) -> String {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
        let node: String = self.header.node.chars().filter(|&it| is_plain(it)).collect();
        format!("iolab-{:016x}-{node}.pack", self.header.run)
    }

    /// Where it lies, once something was written.
    pub fn path(&self) -> Option<PathBuf> {
        self.file.as_ref().map(|_| self.directory.join(self.name()))
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
        let path = self.directory.join(self.name());
        let fd = rustix::fs::open(&path, how, Mode::RUSR | Mode::WUSR)?;
        // File systems without locks leave it to the names that runs go on.
        let _ = rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive);
        self.file = Some(fd);
        let header = self.header.encode();
        if let Err(error) = self.write(&header) {
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
        if self.durable == 0 && synced.is_ok() {
            let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let directory = rustix::fs::open(&self.directory, how, Mode::empty());
            synced = directory.and_then(rustix::fs::fsync);
        }
        match synced {
            Ok(()) => self.durable = self.length,
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
            (self.record_count, self.durable > 0),
            self.length,
            now_ns(),
        );
        let written = match index {
            Some(index) => self.write(&index),
            None => Ok(()),
        };
        (path, written)
    }
}
