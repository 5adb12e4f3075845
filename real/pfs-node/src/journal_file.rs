//! The journal of the metadata manager as a file: a header, the state that it begins with, then records, one behind the
//! other. One that begins anew is written beside it, and takes its name once it is on the device.
//!
//! What was written in one call is in the kernel and outlives this process, and a power cut when it was synced;
//! a record that a crash has cut is the last one, and is cut off at the next start.

use crate::device_sync::sync_directory;
use crate::instance;
use crate::lost::{Mark, drop_cached};
use crate::tape::Taped;
use iolab_pfs::Party;
use iolab_pfs::journal::{Journal, SEGMENT_HEADER_BYTES, SegmentHeader};
use iolab_pfs::metadata::{Metadata, Settings};
use iolab_vocab::Refusal;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A journal that records are put behind.
#[derive(Debug)]
pub(crate) struct JournalFile {
    path: PathBuf,
    /// Left if it cannot be synced.
    mark: Mark,
    file: Arc<File>,
    instance: u128,
    incarnation: u64,
    /// Where the next record goes.
    end: u64,
}

impl JournalFile {
    /// Opens the journal of an instance, or begins one; with the manager that its records make.
    pub(crate) fn open(
        path: &Path,
        instance: u128,
        incarnation: u64,
        settings: Settings,
        events: Option<&Path>,
    ) -> Result<(JournalFile, Taped<Metadata>), Refusal> {
        let wrong = |error: io::Error| {
            Refusal::new(format!("{}: {error}", path.display()), "it must be readable and writable")
        };
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory).map_err(wrong)?;
        }
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(false).open(path);
        let file = file.map_err(wrong)?;
        let mark = Mark::within(path.parent().unwrap_or(path));
        mark.take(|| drop_cached(&file)).map_err(wrong)?;
        let bytes = fs::read(path).map_err(wrong)?;
        // What a crash has left of one that was to take its place; all of it is in this one.
        match fs::remove_file(beside(path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(wrong(error)),
            _ => {}
        }
        let file = Arc::new(file);
        let mut journal =
            JournalFile { path: path.to_owned(), mark, file, instance, incarnation, end: 0 };
        if bytes.len() < SEGMENT_HEADER_BYTES {
            // A header that was not finished had no records behind it.
            journal.append(&journal.header(1, 0)).map_err(wrong)?;
            return Ok((journal, recovered(settings, Vec::new(), events)?));
        }
        let named = |refusal: Refusal| Refusal {
            message: format!("{}: {}", path.display(), refusal.message),
            ..refusal
        };
        let found = Journal::read(&bytes).map_err(named)?;
        if found.header.instance != instance {
            return Refusal::refuse(
                format!("{} is the journal of another instance", path.display()),
                "put back the files that belong to instance.toml",
            );
        }
        let metadata = recovered(settings, found.all().collect(), events).map_err(named)?;
        journal.end = found.bytes as u64;
        journal.file.set_len(journal.end).map_err(wrong)?;
        Ok((journal, metadata))
    }

    /// Brings what is written, and the names that lead to it, to the device.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()?;
        self.path.ancestors().skip(1).take(2).try_for_each(sync_directory)
    }

    /// The device may not have all that is written: the next manager asks it.
    pub(crate) fn sync_failed(&self) {
        self.mark.leave();
    }

    /// The file, for a thread that syncs what is written to it.
    pub(crate) fn file(&self) -> Arc<File> {
        self.file.clone()
    }

    fn header(&self, first: u64, checkpoint_bytes: u64) -> Vec<u8> {
        let (instance, incarnation) = (self.instance, self.incarnation);
        SegmentHeader { instance, incarnation, first, checkpoint_bytes }.encode()
    }

    /// A journal that begins with a state, to be written beside this one by whichever thread.
    pub(crate) fn anew(&self, first: u64, checkpoint: Vec<u8>) -> Anew {
        let header = self.header(first, checkpoint.len() as u64);
        Anew { path: beside(&self.path), header, checkpoint }
    }

    /// One that was written beside it takes its place, with more records. After an error all is as it was,
    /// unless only the device may not know of it ([`Superseded::Unsure`]).
    pub(crate) fn supersede(&mut self, beside: Beside, records: &[u8]) -> io::Result<Superseded> {
        let Beside { path, file, bytes } = beside;
        let replaced = file
            .write_all_at(records, bytes)
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&path, &self.path));
        if let Err(error) = replaced {
            let _ = fs::remove_file(&path);
            return Err(io::Error::new(error.kind(), format!("{}: {error}", path.display())));
        }
        (self.file, self.end) = (Arc::new(file), bytes + records.len() as u64);
        match self.path.parent().map_or(Ok(()), sync_directory) {
            Ok(()) => Ok(Superseded::Surely),
            Err(error) => Ok(Superseded::Unsure(error)),
        }
    }

    /// Puts bytes behind the others; all of them or, after an error, none.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all_at(bytes, self.end) {
            let _ = self.file.set_len(self.end);
            let text = format!("{}: {error}", self.path.display());
            return Err(io::Error::new(error.kind(), text));
        }
        self.end += bytes.len() as u64;
        Ok(())
    }
}

/// What is known of a journal that has taken the place of another.
pub(crate) enum Superseded {
    /// It is what a power cut leaves.
    Surely,
    /// A power cut may leave the other.
    Unsure(io::Error),
}

/// A journal that is to be written beside another.
pub(crate) struct Anew {
    path: PathBuf,
    header: Vec<u8>,
    checkpoint: Vec<u8>,
}

/// One that is, and is on its device.
pub(crate) struct Beside {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl Anew {
    /// Writes it, and brings it to the device; of one that cannot be written nothing is left.
    pub(crate) fn write(self) -> io::Result<Beside> {
        let Anew { path, header, checkpoint } = self;
        let written = || -> io::Result<File> {
            let file = File::create(&path)?;
            file.write_all_at(&header, 0)?;
            file.write_all_at(&checkpoint, header.len() as u64)?;
            file.sync_all()?;
            Ok(file)
        };
        let bytes = (header.len() + checkpoint.len()) as u64;
        match written() {
            Ok(file) => Ok(Beside { path, file, bytes }),
            Err(error) => {
                let _ = fs::remove_file(&path);
                Err(io::Error::new(error.kind(), format!("{}: {error}", path.display())))
            }
        }
    }
}

/// Where a journal is written that is to take the place of another.
fn beside(path: &Path) -> PathBuf {
    path.with_extension("new")
}

/// The manager that records make; where its events are recorded, they are what it was made from.
fn recovered(
    settings: Settings,
    records: Vec<&[u8]>,
    events: Option<&Path>,
) -> Result<Taped<Metadata>, Refusal> {
    let copied = match events {
        Some(_) => records.iter().map(|record| record.to_vec()).collect(),
        None => Vec::new(),
    };
    let machine = Metadata::recover(settings, records)?;
    let name = instance::file_name(Party::Metadata);
    Ok(Taped::of(machine, &(settings, copied), events, &name))
}
