//! What a server has of its subfiles: how long they are, what of them is in memory, what of that is not
//! on the device.
//!
//! The unit is the span of a stripe that a portion touches, from first byte to last: it is read whole, and
//! what is written into it counts as written whole. What was written or read stays in memory until that is
//! full; then what has been there longest goes, as far as the device has it. If all of memory waits to be
//! synced, more goes to the device before its write is over.

use super::spans::{Spans, bytes_of};
use crate::cluster::MemoryTotals;
use iolab_pfs::io_server::Subfile;
use iolab_pfs::{Inode, Portion};
use iolab_vocab::{Extent, FileId};
use std::collections::{BTreeMap, VecDeque};

/// A subfile, or the part of one that there is.
#[derive(Debug, Default)]
struct Stored {
    /// How long it is.
    bytes: u64,
    kept: Spans,
    /// What of `kept` the device does not have.
    dirty: Spans,
}

/// All subfiles of a server.
#[derive(Debug)]
pub(super) struct Store {
    capacity_bytes: u64,
    subfiles: BTreeMap<Subfile, Stored>,
    /// What was taken into memory, the oldest first.
    taken: VecDeque<(Subfile, Extent)>,
    kept_bytes: u64,
    totals: MemoryTotals,
    /// As what the device knows subfiles.
    files: BTreeMap<Subfile, FileId>,
    /// The program's number of a file.
    names: BTreeMap<Inode, FileId>,
}

/// Numbers of what a device stores and no program has numbered begin here.
const UNNAMED: u32 = 1 << 30;

impl Store {
    /// A store with so much memory.
    pub(super) fn new(capacity_bytes: u64) -> Store {
        Store {
            capacity_bytes,
            subfiles: BTreeMap::new(),
            taken: VecDeque::new(),
            kept_bytes: 0,
            totals: MemoryTotals::default(),
            files: BTreeMap::new(),
            names: BTreeMap::new(),
        }
    }

    /// What a program calls a file.
    pub(super) fn name(&mut self, inode: Inode, file: FileId) {
        self.names.insert(inode, file);
    }

    /// A subfile was there before the run, on the device.
    pub(super) fn found(&mut self, subfile: Subfile, bytes: u64) {
        self.subfiles.entry(subfile).or_default().bytes = bytes;
    }

    /// All of a subfile that was found is in memory, too, as far as there is room.
    pub(super) fn remember(&mut self, subfile: Subfile) {
        let bytes = self.bytes(subfile);
        self.take(subfile, Extent::new(0, bytes));
    }

    /// As what the device knows a subfile: the first one of a file by the file's number.
    pub(super) fn file(&mut self, subfile: Subfile) -> FileId {
        if let Some(file) = self.files.get(&subfile) {
            return *file;
        }
        let named = self.names.get(&subfile.inode).copied();
        let is_new = |file: &FileId| !self.files.values().any(|used| used == file);
        let unnamed = FileId(UNNAMED + self.files.len() as u32);
        let file = named.filter(is_new).unwrap_or(unnamed);
        self.files.insert(subfile, file);
        file
    }

    /// A portion is written to memory. Gives what must go to the device before the write is over.
    pub(super) fn write(&mut self, subfile: Subfile, portion: &Portion) -> Vec<Extent> {
        let mut through = Vec::new();
        for span in spans_of(portion) {
            let stored = self.subfiles.entry(subfile).or_default();
            stored.bytes = stored.bytes.max(span.end());
            match self.take(subfile, span) {
                true => self.subfiles.entry(subfile).or_default().dirty.insert(span),
                false => through.push(span),
            }
        }
        through
    }

    /// A portion is read: gives what the device must be asked for.
    pub(super) fn read(&mut self, subfile: Subfile, portion: &Portion) -> Vec<Extent> {
        let mut missing = Vec::new();
        for piece in portion.pieces() {
            let span = piece.span(&portion.view);
            let stored = self.subfiles.entry(subfile).or_default();
            let gaps = stored.kept.missing(span);
            let found = (span.length - bytes_of(&gaps)).min(piece.bytes());
            self.totals.found_bytes += found;
            self.take(subfile, span);
            missing.extend(gaps);
        }
        joined(missing)
    }

    /// Takes a span into memory, if there is room. What is there already stays where it is.
    fn take(&mut self, subfile: Subfile, span: Extent) -> bool {
        let stored = self.subfiles.entry(subfile).or_default();
        let more = bytes_of(&stored.kept.missing(span));
        while self.kept_bytes + more > self.capacity_bytes {
            let Some((oldest, extent)) = self.taken.pop_front() else { return false };
            self.let_go(oldest, extent);
        }
        let stored = self.subfiles.entry(subfile).or_default();
        let more = bytes_of(&stored.kept.missing(span));
        stored.kept.insert(span);
        self.kept_bytes += more;
        self.taken.push_back((subfile, span));
        self.totals.kept_bytes_max = self.totals.kept_bytes_max.max(self.kept_bytes);
        true
    }

    /// What the device has of a stretch goes out of memory.
    fn let_go(&mut self, subfile: Subfile, extent: Extent) {
        let Some(stored) = self.subfiles.get_mut(&subfile) else { return };
        for part in stored.kept.within(extent) {
            for clean in stored.dirty.missing(part) {
                stored.kept.remove(clean);
                self.kept_bytes -= clean.length;
            }
        }
    }

    /// What of a subfile must go to the device for a sync; from now on the device has it.
    pub(super) fn sync(&mut self, subfile: Subfile) -> Vec<Extent> {
        let Some(stored) = self.subfiles.get_mut(&subfile) else { return Vec::new() };
        let dirty: Vec<Extent> = std::mem::take(&mut stored.dirty).iter().collect();
        self.taken.extend(dirty.iter().map(|extent| (subfile, *extent)));
        dirty
    }

    /// How long a subfile is.
    pub(super) fn bytes(&self, subfile: Subfile) -> u64 {
        self.subfiles.get(&subfile).map_or(0, |stored| stored.bytes)
    }

    /// A subfile gets another length: at most so much, or exactly.
    pub(super) fn resize(&mut self, subfile: Subfile, bytes: u64, extends: bool) {
        let stored = self.subfiles.entry(subfile).or_default();
        if stored.bytes < bytes && extends {
            stored.bytes = bytes;
        }
        if stored.bytes > bytes {
            let gone = Extent::new(bytes, stored.bytes - bytes);
            self.kept_bytes -= bytes_of(&stored.kept.within(gone));
            stored.kept.remove(gone);
            stored.dirty.remove(gone);
            stored.bytes = bytes;
        }
    }

    /// All subfiles of a file go.
    pub(super) fn discard(&mut self, inode: Inode) {
        let subfiles = self.subfiles.keys().filter(|subfile| subfile.inode == inode);
        for subfile in subfiles.copied().collect::<Vec<_>>() {
            self.resize(subfile, 0, false);
            self.subfiles.remove(&subfile);
        }
    }

    /// What memory was good for.
    pub(super) fn totals(&self) -> MemoryTotals {
        self.totals
    }
}

/// The stretches of a subfile that a portion touches, one for each stripe; those that continue each other
/// are one.
pub(super) fn spans_of(portion: &Portion) -> Vec<Extent> {
    joined(portion.pieces().map(|piece| piece.span(&portion.view)))
}

fn joined(extents: impl IntoIterator<Item = Extent>) -> Vec<Extent> {
    let mut joined: Vec<Extent> = Vec::new();
    for extent in extents {
        match joined.last_mut() {
            Some(last) if last.end() == extent.offset => last.length += extent.length,
            _ => joined.push(extent),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_pfs::Layout;
    use std::sync::Arc;

    const SUBFILE: Subfile = Subfile { inode: Inode(1), index: 0 };

    fn portion(from: u64, to: u64) -> Portion {
        let view = Arc::new("1 every 1".parse().unwrap());
        Portion { view, division: Layout::striped(64, 1, 0).unwrap().into(), subfile: 0, from, to }
    }

    #[test]
    fn what_was_written_is_read_from_memory_and_synced_once() {
        let mut store = Store::new(1000);
        assert!(store.write(SUBFILE, &portion(10, 100)).is_empty());
        assert_eq!(store.read(SUBFILE, &portion(0, 100)), [Extent::new(0, 10)]);
        assert_eq!(store.totals().found_bytes, 90);
        assert_eq!(store.sync(SUBFILE), [Extent::new(10, 90)]);
        assert!(store.sync(SUBFILE).is_empty());
        assert_eq!(store.bytes(SUBFILE), 100);
    }

    #[test]
    fn full_memory_lets_go_of_the_oldest_that_the_device_has_and_then_writes_through() {
        let mut store = Store::new(100);
        store.found(SUBFILE, 500);
        assert_eq!(store.read(SUBFILE, &portion(0, 60)), [Extent::new(0, 60)]);
        assert!(store.write(SUBFILE, &portion(100, 160)).is_empty(), "the read goes");
        assert_eq!(store.read(SUBFILE, &portion(0, 10)), [Extent::new(0, 10)]);
        assert_eq!(store.write(SUBFILE, &portion(200, 300)), [Extent::new(200, 100)]);
        assert_eq!(store.sync(SUBFILE), [Extent::new(100, 60)]);
        assert!(store.write(SUBFILE, &portion(200, 300)).is_empty(), "synced bytes may go");
    }

    #[test]
    fn a_subfile_that_is_cut_forgets_what_was_behind() {
        let mut store = Store::new(1000);
        store.write(SUBFILE, &portion(0, 100));
        store.resize(SUBFILE, 40, false);
        store.resize(SUBFILE, 90, true);
        assert_eq!((store.bytes(SUBFILE), store.kept_bytes), (90, 40));
        assert_eq!(store.sync(SUBFILE), [Extent::new(0, 40)]);
        store.discard(SUBFILE.inode);
        assert_eq!((store.bytes(SUBFILE), store.kept_bytes), (0, 0));
    }
}
