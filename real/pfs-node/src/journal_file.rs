//! The journal of the metadata manager as a file: a header, then records, one behind the other.
//!
//! What was written in one call is in the kernel and outlives this process, and a power cut when it was synced;
//! a record that a crash has cut is the last one, and is cut off at the next start.

use crate::device_sync::sync_directory;
use crate::instance;
use crate::tape::Taped;
use iolab_pfs::Party;
use iolab_pfs::journal::{self, SEGMENT_HEADER_BYTES, SegmentHeader};
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
    file: Arc<File>,
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
        let bytes = fs::read(path).map_err(wrong)?;
        let mut journal = JournalFile { path: path.to_owned(), file: Arc::new(file), end: 0 };
        if bytes.len() < SEGMENT_HEADER_BYTES {
            // A header that was not finished had no records behind it.
            let header = SegmentHeader { instance, incarnation, first: 1 };
            journal.append(&header.encode()).map_err(wrong)?;
            return Ok((journal, recovered(settings, Vec::new(), events)?));
        }
        let named = |refusal: Refusal| Refusal {
            message: format!("{}: {}", path.display(), refusal.message),
            ..refusal
        };
        let header = SegmentHeader::decode(&bytes).map_err(named)?;
        if header.instance != instance {
            return Refusal::refuse(
                format!("{} is the journal of another instance", path.display()),
                "put back the files that belong to instance.toml",
            );
        }
        let records = &bytes[SEGMENT_HEADER_BYTES..];
        let (records, end) = journal::records(records, header.first).map_err(named)?;
        let metadata = recovered(settings, records, events).map_err(named)?;
        journal.end = (SEGMENT_HEADER_BYTES + end) as u64;
        journal.file.set_len(journal.end).map_err(wrong)?;
        Ok((journal, metadata))
    }

    /// Brings what is written, and the names that lead to it, to the device.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()?;
        self.path.ancestors().skip(1).take(2).try_for_each(sync_directory)
    }

    /// The file, for a thread that syncs what is written to it.
    pub(crate) fn file(&self) -> Arc<File> {
        self.file.clone()
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
