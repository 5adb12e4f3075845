//! Server-directed I/O: the server sorts what waits and chooses what suits the disk.
//!
//! After Kuhn 2009 (and Seamons et al., Supercomputing '95). Per file one list sorted by offset;
//! reads that touch or overlap are joined, writes that are adjacent too, newer data replacing
//! older. The file with most waiting bytes goes first, the last used one counting ten times. Of
//! its jobs the first is taken if it is near the end of the last access, else the largest other.

use super::desk::Desk;
use super::{Action, Cache, Event, Job, Settings, Tag};
use iolab_vocab::{Extent, FileId, Nanos};
use std::collections::BTreeMap;

/// How much more the last used file counts when the next file is chosen.
const LAST_FILE_WEIGHT: u64 = 10;

/// A server that orders what clients asked for.
#[derive(Debug)]
pub struct ServerDirected {
    desk: Desk,
    near_bytes: u64,
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
        self.list.push(Joined { extent: job.extent, parts: vec![(job.tag, job.extent)] });
    }

    fn settle(&mut self, access_bytes: u64) {
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
                if next.extent.offset <= last.extent.end() && length <= access_bytes {
                    last.extent.length = length;
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

impl ServerDirected {
    /// An idle one.
    pub fn new(settings: Settings) -> ServerDirected {
        ServerDirected {
            desk: Desk::new(settings),
            near_bytes: settings.near_bytes,
            reads: BTreeMap::new(),
            writes: BTreeMap::new(),
            last: None,
            scratch: Vec::new(),
        }
    }

    fn start(&mut self, out: &mut Vec<Action>) {
        while self.desk.is_free() {
            if !self.start_read(out) && !self.start_write(out) {
                return;
            }
        }
    }

    fn last_file(&self) -> Option<FileId> {
        self.last.map(|(file, _)| file)
    }

    fn last_end_in(&self, file: FileId) -> Option<u64> {
        self.last.filter(|(last, _)| *last == file).map(|(_, end)| end)
    }

    fn start_read(&mut self, out: &mut Vec<Action>) -> bool {
        let files = self.reads.iter().map(|(file, reads)| (file, reads.bytes));
        let Some(file) = fullest(files, self.last_file()) else { return false };
        let last_end = self.last_end_in(file);
        let reads = self.reads.get_mut(&file).expect("the fullest file is one of them");
        reads.settle(self.desk.access_bytes());
        let index = choose(reads.list.iter().map(|one| one.extent), last_end, self.near_bytes);
        if !self.desk.has_more_than(reads.list[index].extent.length) {
            return false;
        }
        let joined = reads.list.remove(index);
        reads.bytes -= joined.parts.iter().map(|part| part.1.length).sum::<u64>();
        let jobs = joined.parts.iter().map(|&(tag, extent)| Job { tag, file, extent });
        self.scratch.extend(jobs);
        self.last = Some((file, joined.extent.end()));
        self.desk.fetch(file, joined.extent, self.scratch.drain(..), out);
        true
    }

    fn start_write(&mut self, out: &mut Vec<Action>) -> bool {
        let files = self.writes.iter().map(|(file, writes)| (file, writes.bytes));
        let Some(file) = fullest(files, self.last_file()) else { return false };
        let last_end = self.last_end_in(file);
        let writes = self.writes.get_mut(&file).expect("the fullest file is one of them");
        let index = choose(writes.list.iter().copied(), last_end, self.near_bytes);
        let extent = writes.list.remove(index);
        writes.bytes -= extent.length;
        self.last = Some((file, extent.end()));
        self.desk.store(file, extent, extent.length, out);
        true
    }
}

impl Cache for ServerDirected {
    fn step(&mut self, _now: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::ReadArrived { tag, file, extent } => {
                self.reads.entry(file).or_default().push(Job { tag, file, extent });
                self.start(out);
            }
            Event::WriteOffered { bytes } => {
                if !self.desk.has_more_than(bytes) {
                    return out.push(Action::Refuse);
                }
                self.desk.take(bytes);
                out.push(Action::Admit);
            }
            Event::WriteArrived { file, extent, .. } => {
                let access_bytes = self.desk.access_bytes();
                let writes = self.writes.entry(file).or_default();
                let replaced = writes.insert(extent, access_bytes);
                self.desk.give_back(replaced);
                self.start(out);
            }
            Event::Completed { operation } => self.desk.complete(operation, out),
            Event::Released { bytes } => {
                self.desk.give_back(bytes);
                self.start(out);
            }
            Event::DeviceReady => {
                self.desk.ready();
                self.start(out);
            }
            Event::FlushArrived { .. } | Event::Woke => {}
        }
    }

    fn held_bytes(&self) -> u64 {
        self.desk.held_bytes()
    }

    fn queued_count(&self) -> usize {
        let reads: usize = self.reads.values().map(|reads| reads.list.len()).sum();
        reads + self.writes.values().map(|writes| writes.list.len()).sum::<usize>()
    }
}
