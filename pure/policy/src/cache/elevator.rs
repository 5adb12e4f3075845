//! The elevator (C-SCAN): what waits is served upward from where the device stands, then from the
//! bottom again.
//!
//! What operating systems' disk schedulers do, and the peer of layers that sort per file. Reads and
//! writes move the same head. Pieces that continue each other are one transfer, up to the largest;
//! nothing is looked for elsewhere, so a request costs O(log n) and nobody waits for longer than one
//! way up and the next.

use super::in_flight::InFlight;
use super::layer::{Layer, Queues};
use super::{Action, Cache, Job, Settings};
use iolab_vocab::{Extent, FileId};
use std::collections::BTreeMap;

/// File, offset, and the number of the arrival.
type Place = (FileId, u64, u64);

#[derive(Debug)]
struct Elevator {
    reads: BTreeMap<Place, Job>,
    writes: BTreeMap<Place, Job>,
    arrivals: u64,
    /// Where the last transfer ended.
    head: (FileId, u64),
    taken: Vec<Job>,
}

/// A server that moves through its files in one direction.
pub fn elevator(settings: Settings) -> impl Cache {
    let (reads, writes) = (BTreeMap::new(), BTreeMap::new());
    let queues = Elevator { reads, writes, arrivals: 0, head: (FileId(0), 0), taken: Vec::new() };
    Layer::new(settings, queues)
}

/// The first job at or above the head, else the lowest of all.
fn next(jobs: &BTreeMap<Place, Job>, head: (FileId, u64)) -> Option<(Place, Job)> {
    let onward = jobs.range((head.0, head.1, 0)..).next();
    onward.or_else(|| jobs.first_key_value()).map(|(place, job)| (*place, *job))
}

/// Takes the next job and those that continue it, at most so many bytes; `None` where there is none
/// or the first is longer.
fn take(
    jobs: &mut BTreeMap<Place, Job>,
    head: (FileId, u64),
    most: u64,
    taken: &mut Vec<Job>,
) -> Option<(FileId, Extent)> {
    let (mut place, first) = next(jobs, head).filter(|(_, job)| job.extent.length <= most)?;
    let mut extent = first.extent;
    jobs.remove(&place);
    taken.clear();
    taken.push(first);
    while let Some((&behind, &job)) = jobs.range(place..).next() {
        let continues = job.file == first.file && job.extent.offset == extent.end();
        if !continues || extent.length + job.extent.length > most {
            break;
        }
        jobs.remove(&behind);
        taken.push(job);
        (place, extent.length) = (behind, extent.length + job.extent.length);
    }
    Some((first.file, extent))
}

impl Elevator {
    fn place(&mut self, job: Job) -> Place {
        self.arrivals += 1;
        (job.file, job.extent.offset, self.arrivals)
    }
}

impl Queues for Elevator {
    fn push_read(&mut self, job: Job) {
        let place = self.place(job);
        self.reads.insert(place, job);
    }

    fn push_write(&mut self, job: Job) -> u64 {
        let place = self.place(job);
        self.writes.insert(place, job);
        0
    }

    fn start_read(&mut self, in_flight: &mut InFlight, out: &mut Vec<Action>) -> bool {
        let most = in_flight.access_bytes().min(in_flight.free_bytes().saturating_sub(1));
        let Some((file, extent)) = take(&mut self.reads, self.head, most, &mut self.taken) else {
            return false;
        };
        self.head = (file, extent.end());
        in_flight.fetch(file, extent, self.taken.drain(..), out);
        true
    }

    fn start_write(&mut self, in_flight: &mut InFlight, out: &mut Vec<Action>) -> bool {
        let most = in_flight.access_bytes();
        let Some((file, extent)) = take(&mut self.writes, self.head, most, &mut self.taken) else {
            return false;
        };
        self.head = (file, extent.end());
        in_flight.store(file, extent, extent.length, out);
        true
    }

    fn has_reads(&self) -> bool {
        !self.reads.is_empty()
    }

    fn has_writes(&self, file: Option<FileId>) -> bool {
        match file {
            None => !self.writes.is_empty(),
            Some(file) => {
                let first = self.writes.range((file, 0, 0)..).next();
                first.is_some_and(|(place, _)| place.0 == file)
            }
        }
    }

    fn queued_count(&self) -> usize {
        self.reads.len() + self.writes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Tag;
    use super::*;

    #[test]
    fn it_goes_upward_joins_what_continues_and_starts_from_the_bottom_again() {
        let mut queues = Elevator {
            reads: BTreeMap::new(),
            writes: BTreeMap::new(),
            arrivals: 0,
            head: (FileId(0), 30),
            taken: Vec::new(),
        };
        for (file, from) in [(0, 0), (0, 40), (0, 50), (1, 0), (0, 70), (0, 10)] {
            let extent = Extent::new(from, 10);
            queues.push_write(Job { tag: Tag(0), file: FileId(file), extent });
        }
        let mut order = Vec::new();
        while let Some((file, extent)) =
            take(&mut queues.writes, queues.head, 15, &mut queues.taken)
        {
            queues.head = (file, extent.end());
            order.push((file.0, extent.offset, extent.length));
        }
        let expected = [(0, 40, 10), (0, 50, 10), (0, 70, 10), (1, 0, 10), (0, 0, 10), (0, 10, 10)];
        assert_eq!(order, expected);
        for from in [10, 0] {
            let extent = Extent::new(from, 10);
            queues.push_write(Job { tag: Tag(0), file: FileId(0), extent });
        }
        let joined = take(&mut queues.writes, (FileId(0), 0), 20, &mut queues.taken);
        assert_eq!(joined, Some((FileId(0), Extent::new(0, 20))));
    }
}
