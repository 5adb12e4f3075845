//! Server-directed I/O: the server sorts what waits and chooses what suits the disk.
//!
//! After Kuhn 2009 (and Seamons et al., Supercomputing '95). Per file one list sorted by offset;
//! reads that touch or overlap are joined (or lie closer than the hole size: data sieving), writes that are adjacent too, newer data replacing
//! older. The file with most waiting bytes goes first, the last used one counting ten times. Of
//! its jobs the first is taken if it is near the end of the last access, else the largest other.

use super::desk::Desk;
use super::machine::{Machine, Queues};
use super::{Action, Cache, Job, Settings, Tag};
use iolab_vocab::{Extent, FileId};
use std::collections::BTreeMap;

/// How much more the last used file counts when the next file is chosen.
const LAST_FILE_WEIGHT: u64 = 10;

#[derive(Debug)]
struct ServerDirected {
    near_bytes: u64,
    access_bytes: u64,
    hole_bytes: u64,
    reads: BTreeMap<FileId, Reads>,
    writes: BTreeMap<FileId, Writes>,
    last: Option<(FileId, u64)>,
    scratch: Vec<Job>,
}

#[derive(Debug, Default)]
struct Reads {
    bytes: u64,
    sorted: bool,
    list: Vec<Joined>,
}

/// A stretch to read, and whom for.
#[derive(Debug)]
struct Joined {
    extent: Extent,
    /// Of all parts, which may overlap.
    bytes: u64,
    parts: Vec<(Tag, Extent)>,
}

#[derive(Debug, Default)]
struct Writes {
    bytes: u64,
    list: Vec<Extent>,
}

impl Reads {
    fn push(&mut self, job: Job) {
        self.bytes += job.extent.length;
        self.sorted = false;
        self.list.push(Joined {
            extent: job.extent,
            bytes: job.extent.length,
            parts: vec![(job.tag, job.extent)],
        });
    }

    fn settle(&mut self, access_bytes: u64, hole_bytes: u64) {
        if self.sorted {
            return;
        }
        self.sorted = true;
        self.list.sort_by_key(|joined| joined.extent.offset);
        let mut kept: Vec<Joined> = Vec::with_capacity(self.list.len());
        for next in self.list.drain(..) {
            if let Some(last) = kept.last_mut() {
                let end = last.extent.end().max(next.extent.end());
                let length = end - last.extent.offset;
                let joins = next.extent.offset <= last.extent.end() + hole_bytes;
                let bytes = last.bytes + next.bytes;
                if joins && length.max(bytes) <= access_bytes {
                    (last.extent.length, last.bytes) = (length, bytes);
                    last.parts.extend(next.parts);
                    continue;
                }
            }
            kept.push(next);
        }
        self.list = kept;
    }
}

impl Writes {
    /// Inserts in order; older data under the new is cut or removed. Returns the bytes replaced.
    fn insert(&mut self, new: Extent, access_bytes: u64) -> u64 {
        let before = self.bytes;
        let from = self.list.partition_point(|old| old.end() <= new.offset);
        let to = self.list.partition_point(|old| old.offset < new.end());
        let mut pieces = Vec::new();
        if let Some(first) = self.list[from..to].first()
            && first.offset < new.offset
        {
            pieces.push(Extent::new(first.offset, new.offset - first.offset));
        }
        pieces.push(new);
        if let Some(last) = self.list[from..to].last()
            && last.end() > new.end()
        {
            pieces.push(Extent::new(new.end(), last.end() - new.end()));
        }
        let removed: u64 = self.list[from..to].iter().map(|old| old.length).sum();
        let added: u64 = pieces.iter().map(|piece| piece.length).sum();
        self.bytes = before - removed + added;
        let at = from + pieces.iter().position(|piece| *piece == new).expect("it was put there");
        self.list.splice(from..to, pieces);
        self.join(at, access_bytes);
        removed + new.length - added
    }

    fn join(&mut self, mut at: usize, access_bytes: u64) {
        if at > 0 && self.fits(at - 1, access_bytes) {
            self.list[at - 1].length += self.list[at].length;
            self.list.remove(at);
            at -= 1;
        }
        if at + 1 < self.list.len() && self.fits(at, access_bytes) {
            self.list[at].length += self.list[at + 1].length;
            self.list.remove(at + 1);
        }
    }

    fn fits(&self, at: usize, access_bytes: u64) -> bool {
        let (one, next) = (self.list[at], self.list[at + 1]);
        one.end() == next.offset && one.length + next.length <= access_bytes
    }
}

/// The first job if it is near the end of the last access, else the largest of the others.
fn choose(extents: impl Iterator<Item = Extent>, last_end: Option<u64>, near: u64) -> usize {
    let mut largest: Option<(usize, u64)> = None;
    for (index, extent) in extents.enumerate() {
        if index == 0 {
            if last_end.is_some_and(|end| extent.offset.abs_diff(end) < near) {
                return 0;
            }
            continue;
        }
        if largest.is_none_or(|(_, length)| extent.length > length) {
            largest = Some((index, extent.length));
        }
    }
    largest.map_or(0, |(index, _)| index)
}

/// The file with most bytes waiting, the last used one counting ten times.
fn fullest<'a>(
    files: impl Iterator<Item = (&'a FileId, u64)>,
    last: Option<FileId>,
) -> Option<FileId> {
    let mut best: Option<(FileId, u64)> = None;
    for (&file, bytes) in files.filter(|(_, bytes)| *bytes > 0) {
        let weight = if last == Some(file) { bytes * LAST_FILE_WEIGHT } else { bytes };
        if best.is_none_or(|(_, most)| weight > most) {
            best = Some((file, weight));
        }
    }
    best.map(|(file, _)| file)
}

/// A server that orders what clients asked for.
pub fn server_directed(settings: Settings) -> impl Cache {
    let queues = ServerDirected {
        near_bytes: settings.near_bytes,
        access_bytes: settings.access_bytes,
        hole_bytes: settings.hole_bytes,
        reads: BTreeMap::new(),
        writes: BTreeMap::new(),
        last: None,
        scratch: Vec::new(),
    };
    Machine::new(settings, queues)
}

impl ServerDirected {
    fn last_file(&self) -> Option<FileId> {
        self.last.map(|(file, _)| file)
    }

    fn last_end_in(&self, file: FileId) -> Option<u64> {
        self.last.filter(|(last, _)| *last == file).map(|(_, end)| end)
    }
}

impl Queues for ServerDirected {
    fn push_read(&mut self, job: Job) {
        self.reads.entry(job.file).or_default().push(job);
    }

    fn push_write(&mut self, job: Job) -> u64 {
        self.writes.entry(job.file).or_default().insert(job.extent, self.access_bytes)
    }

    fn start_read(&mut self, desk: &mut Desk, out: &mut Vec<Action>) -> bool {
        let files = self.reads.iter().map(|(file, reads)| (file, reads.bytes));
        let Some(file) = fullest(files, self.last_file()) else { return false };
        let last_end = self.last_end_in(file);
        let reads = self.reads.get_mut(&file).expect("the fullest file is one of them");
        reads.settle(self.access_bytes, self.hole_bytes);
        let index = choose(reads.list.iter().map(|one| one.extent), last_end, self.near_bytes);
        let best = &reads.list[index];
        if !desk.has_more_than(best.extent.length.max(best.bytes)) {
            return false;
        }
        let joined = reads.list.remove(index);
        reads.bytes -= joined.bytes;
        let jobs = joined.parts.iter().map(|&(tag, extent)| Job { tag, file, extent });
        self.scratch.extend(jobs);
        self.last = Some((file, joined.extent.end()));
        desk.fetch(file, joined.extent, self.scratch.drain(..), out);
        true
    }

    fn start_write(&mut self, desk: &mut Desk, out: &mut Vec<Action>) -> bool {
        let files = self.writes.iter().map(|(file, writes)| (file, writes.bytes));
        let Some(file) = fullest(files, self.last_file()) else { return false };
        let last_end = self.last_end_in(file);
        let writes = self.writes.get_mut(&file).expect("the fullest file is one of them");
        let index = choose(writes.list.iter().copied(), last_end, self.near_bytes);
        let extent = writes.list.remove(index);
        writes.bytes -= extent.length;
        self.last = Some((file, extent.end()));
        desk.store(file, extent, extent.length, out);
        true
    }

    fn has_reads(&self) -> bool {
        self.reads.values().any(|reads| reads.bytes > 0)
    }

    fn has_writes(&self, file: Option<FileId>) -> bool {
        match file {
            None => self.writes.values().any(|writes| writes.bytes > 0),
            Some(file) => self.writes.get(&file).is_some_and(|writes| writes.bytes > 0),
        }
    }

    fn queued_count(&self) -> usize {
        let reads: usize = self.reads.values().map(|reads| reads.list.len()).sum();
        reads + self.writes.values().map(|writes| writes.list.len()).sum::<usize>()
    }
}
