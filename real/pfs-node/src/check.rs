//! Whether the directory of an instance holds what its journal says.
//!
//! Seen: a journal that ends torn or is damaged, servers without directory, subfiles of nobody or where they
//! cannot belong, files of somebody else, and, where servers keep sums, bytes that a device has changed since they were
//! summed. Not seen: a subfile that is missing, which looks like a hole.
//! Costs: one read of what has sums.

use crate::instance;
use crate::offline::{Entry, Offline, Stored};
use crate::sums::damaged_runs;
use iolab_pfs::io_server::PAGE_BYTES;
use iolab_pfs::journal::Ending;
use iolab_pfs::{Inode, Kind, Layout};
use iolab_vocab::Extent;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Files with a name.
    pub files: u64,
    /// Directories, without the root.
    pub directories: u64,
    /// Subfiles on all servers.
    pub subfiles: u64,
    /// How long those are together.
    pub bytes: u64,
    /// What is not as it should be.
    pub notes: Vec<Note>,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Where.
    pub place: PathBuf,
    /// What.
    pub what: Fault,
    /// Which bytes of which file, where that is known.
    pub hurt: Option<Hurt>,
}

/// Bytes of a file that are not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hurt {
    /// Its path in the file system.
    pub path: Vec<u8>,
    /// Where they are in it, in ascending order.
    pub extents: Vec<Extent>,
}

/// What may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The journal ends in a record that was being written.
    TornJournal {
        /// Bytes of it.
        bytes: u64,
    },
    /// Records of the journal cannot be read.
    DamagedJournal {
        /// The first of them.
        first: u64,
        /// How many.
        records: u64,
    },
    /// A server has no directory: what it held is gone.
    NoServer,
    /// A subfile of a file that was removed.
    Removed,
    /// A subfile of a file that the journal does not know.
    Unknown,
    /// A subfile that its file cannot have, or not on that server.
    Misplaced,
    /// Pages of a subfile do not have their sums: the device has changed them.
    Changed {
        /// How many.
        pages: u64,
    },
    /// Nothing of the file system's.
    Foreign,
}

impl Fault {
    /// A word for programs.
    pub fn word(self) -> &'static str {
        match self {
            Fault::TornJournal { .. } => "torn-journal",
            Fault::DamagedJournal { .. } => "damaged-journal",
            Fault::NoServer => "no-server",
            Fault::Removed => "removed",
            Fault::Unknown => "unknown",
            Fault::Misplaced => "misplaced",
            Fault::Changed { .. } => "changed",
            Fault::Foreign => "foreign",
        }
    }

    /// Whether something is lost, or may be.
    pub fn is_damage(self) -> bool {
        !matches!(self, Fault::TornJournal { .. } | Fault::Removed | Fault::Foreign)
    }

    /// Whether [`repair`] mends it, and nobody loses anything.
    pub fn is_mended(self) -> bool {
        matches!(self, Fault::TornJournal { .. } | Fault::Removed)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::TornJournal { bytes } => {
                write!(
                    f,
                    "its last {bytes} bytes are a record that was cut short; nobody was told of it"
                )
            }
            Fault::DamagedJournal { first, records } => {
                write!(
                    f,
                    "record {first} is damaged, {records} in all; what they changed is not known"
                )
            }
            Fault::NoServer => {
                f.write_str("the directory of a server is missing, with all it held")
            }
            Fault::Removed => f.write_str("left over from a file that was removed"),
            Fault::Unknown => f.write_str("of a file that the journal does not know"),
            Fault::Misplaced => f.write_str("its file has no such subfile on this server"),
            Fault::Changed { pages } => write!(
                f,
                "the device has changed what was written: {pages} pages do not have their sums"
            ),
            Fault::Foreign => f.write_str("none of the file system's; it stays"),
        }
    }
}

/// Holds the directory of an instance against its journal.
pub fn check(offline: &Offline) -> io::Result<Checked> {
    let inventory = &offline.inventory;
    let files = files(offline);
    let mut checked = Checked {
        files: files.len() as u64,
        directories: (inventory.named.len() - files.len()) as u64,
        subfiles: 0,
        bytes: 0,
        notes: Vec::new(),
    };
    let journal = instance::journal(&offline.directory);
    match inventory.ending {
        Ending::Whole => {}
        Ending::Torn { bytes } => checked.note(journal, Fault::TornJournal { bytes }),
        Ending::Damaged { first, records } => {
            checked.note(journal, Fault::DamagedJournal { first, records });
        }
    }
    for server in 0..offline.description.servers {
        let Some(mut entries) = offline.entries(server)? else {
            checked.note(instance::data(&offline.directory, server), Fault::NoServer);
            continue;
        };
        entries.sort_by(|a, b| path(a).cmp(path(b)));
        for entry in entries {
            match entry {
                Entry::Foreign(path) => checked.note(path, Fault::Foreign),
                Entry::Subfile(stored) => {
                    checked.subfiles += 1;
                    checked.bytes += stored.bytes;
                    let runs = changed_runs(offline, &stored)?;
                    if !runs.is_empty() {
                        let what = Fault::Changed { pages: page_count(&runs) };
                        let hurt = hurt(offline, &stored, &runs);
                        checked.notes.push(Note { place: stored.path.clone(), what, hurt });
                    }
                    if let Some(what) = fault(offline, &files, &stored) {
                        checked.note(stored.path, what);
                    }
                }
            }
        }
    }
    Ok(checked)
}

/// How many files have a name.
pub fn file_count(offline: &Offline) -> u64 {
    files(offline).len() as u64
}

impl Checked {
    fn note(&mut self, place: PathBuf, what: Fault) {
        self.notes.push(Note { place, what, hurt: None });
    }
}

/// How files are partitioned that have a name.
fn files(offline: &Offline) -> BTreeMap<Inode, Option<Layout>> {
    let all = offline.inventory.named.values().filter(|it| it.kind == Kind::File);
    all.map(|it| (it.inode, it.layout)).collect()
}

fn path(entry: &Entry) -> &Path {
    match entry {
        Entry::Subfile(stored) => &stored.path,
        Entry::Foreign(path) => path,
    }
}

/// How many pages of a subfile do not have their sums.
pub(crate) fn changed_pages(offline: &Offline, stored: &Stored) -> io::Result<u64> {
    changed_runs(offline, stored).map(|runs| page_count(&runs))
}

fn page_count(runs: &[Extent]) -> u64 {
    runs.iter().map(|run| run.length / PAGE_BYTES).sum()
}

/// Which bytes of which file some pages of a subfile are; none if that has no name, or cannot have the subfile.
fn hurt(offline: &Offline, stored: &Stored, runs: &[Extent]) -> Option<Hurt> {
    let mut named = offline.inventory.named.iter();
    let (path, attributes) = named.find(|(_, it)| it.inode == stored.inode)?;
    let layout = attributes.layout?;
    let index = stored.index(layout, offline.description.servers)?;
    let mut extents: Vec<Extent> = Vec::new();
    for run in runs {
        // A page ends with its subfile.
        let (mut at, end) = (run.offset, run.end().min(stored.bytes));
        while at < end {
            let unit = layout.unit_bytes();
            let length = (unit - at % unit).min(end - at);
            let offset = layout.byte_at(index, at)?;
            match extents.last_mut().filter(|last| last.end() == offset) {
                Some(last) => last.length += length,
                None => extents.push(Extent::new(offset, length)),
            }
            at += length;
        }
    }
    Some(Hurt { path: path.clone(), extents })
}

/// Pages of a subfile that do not have their sums, as bytes of it.
fn changed_runs(offline: &Offline, stored: &Stored) -> io::Result<Vec<Extent>> {
    let data = instance::data(&offline.directory, stored.server);
    let sums = instance::sums(&offline.directory, stored.server);
    match stored.path.strip_prefix(data) {
        Ok(own) if offline.description.sums => damaged_runs(&stored.path, &sums.join(own)),
        _ => Ok(Vec::new()),
    }
}

/// What is wrong with a subfile.
fn fault(
    offline: &Offline,
    files: &BTreeMap<Inode, Option<Layout>>,
    stored: &Stored,
) -> Option<Fault> {
    match files.get(&stored.inode) {
        Some(layout) => {
            let index = layout.and_then(|it| stored.index(it, offline.description.servers));
            index.is_none().then_some(Fault::Misplaced)
        }
        None if offline.inventory.leaving.contains(&stored.inode) => None,
        None if offline.inventory.was_removed(stored.inode) => Some(Fault::Removed),
        None => Some(Fault::Unknown),
    }
}

/// Mends what can be mended without loss: cuts a torn end off, removes what is left over of removed files.
pub fn repair(checked: &Checked) -> io::Result<()> {
    for Note { place, what, .. } in &checked.notes {
        match what {
            Fault::TornJournal { bytes } => {
                let file = fs::File::options().write(true).open(place)?;
                file.set_len(file.metadata()?.len().saturating_sub(*bytes))?;
                file.sync_all()?;
            }
            Fault::Removed => fs::remove_file(place)?,
            _ => {}
        }
    }
    Ok(())
}
