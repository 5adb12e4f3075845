//! Server-directed I/O: the server sorts what waits and chooses what suits the disk.
//!
//! After Kuhn 2009 (and Seamons et al., Supercomputing '95). Per file one list sorted by offset;
//! reads that touch or overlap are joined (or lie closer than the hole size: data sieving), writes
//! that are adjacent too, newer data replacing older. Both are joined when the layer chooses, left
//! to right over what waits. The file with most waiting bytes goes first, the last used one counting
//! ten times. Of its jobs the first is taken if it is near the end of the last access, else the
//! largest other.

use super::in_flight::InFlight;
use super::layer::{Layer, Queues};
use super::reads::{Joining, Reads};
use super::writes::{Tails, Writes};
use super::{Action, Cache, Job, Settings};
use iolab_vocab::FileId;
use std::collections::BTreeMap;

/// How much more the last used file counts when the next file is chosen.
const LAST_FILE_WEIGHT: u64 = 10;

#[derive(Debug)]
struct ServerDirected {
    near_bytes: u64,
    joining: Joining,
    tails: Tails,
    reads: BTreeMap<FileId, Reads>,
    writes: BTreeMap<FileId, Writes>,
    last: Option<(FileId, u64)>,
    scratch: Vec<Job>,
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
        joining: Joining { access_bytes: settings.access_bytes, hole_bytes: settings.hole_bytes },
        tails: settings.tails,
        reads: BTreeMap::new(),
        writes: BTreeMap::new(),
        last: None,
        scratch: Vec::new(),
    };
    Layer::new(settings, queues)
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
        self.reads.entry(job.file).or_default().push(job.tag, job.extent);
    }

    fn push_write(&mut self, job: Job) -> u64 {
        self.writes.entry(job.file).or_default().insert(job.extent, self.tails)
    }

    fn start_read(&mut self, in_flight: &mut InFlight, out: &mut Vec<Action>) -> bool {
        let files = self.reads.iter().map(|(file, reads)| (file, reads.bytes()));
        let Some(file) = fullest(files, self.last_file()) else { return false };
        let last_end = self.last_end_in(file);
        let reads = self.reads.get_mut(&file).expect("the fullest file is one of them");
        let chosen = reads.choose(&self.joining, last_end, self.near_bytes);
        let chosen = chosen.expect("the fullest file has reads");
        if !in_flight.has_more_than(chosen.extent.length.max(chosen.bytes)) {
            return false;
        }
        reads.take(file, &chosen, &mut self.scratch);
        self.last = Some((file, chosen.extent.end()));
        in_flight.fetch(file, chosen.extent, self.scratch.drain(..), out);
        true
    }

    fn start_write(&mut self, in_flight: &mut InFlight, out: &mut Vec<Action>) -> bool {
        let files = self.writes.iter().map(|(file, writes)| (file, writes.bytes()));
        let Some(file) = fullest(files, self.last_file()) else { return false };
        let last_end = self.last_end_in(file);
        let writes = self.writes.get_mut(&file).expect("the fullest file is one of them");
        let extent = writes.take(last_end, self.near_bytes, self.joining.access_bytes);
        let extent = extent.expect("the fullest file has writes");
        self.last = Some((file, extent.end()));
        in_flight.store(file, extent, extent.length, out);
        true
    }

    fn has_reads(&self) -> bool {
        self.reads.values().any(|reads| reads.bytes() > 0)
    }

    fn has_writes(&self, file: Option<FileId>) -> bool {
        match file {
            None => self.writes.values().any(|writes| writes.bytes() > 0),
            Some(file) => self.writes.get(&file).is_some_and(|writes| writes.bytes() > 0),
        }
    }

    fn queued_count(&self) -> usize {
        let reads: usize = self.reads.values().map(|reads| reads.len()).sum();
        reads + self.writes.values().map(|writes| writes.len()).sum::<usize>()
    }
}
