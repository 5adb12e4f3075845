//! The cruel member: as unhelpful as the discipline allows, and still right.
//!
//! It refuses without need, takes jobs in any order, transfers them in pieces of any length, and
//! (by the catalogue) holds writes back. Whoever builds on a cache layer must survive this one.

use super::in_flight::InFlight;
use super::layer::{Layer, Queues};
use super::{Action, Cache, Job, Settings};
use iolab_vocab::{Extent, FileId, Random, Seed};

#[derive(Debug)]
struct Cruel {
    reads: Vec<Job>,
    writes: Vec<Job>,
    random: Random,
}

/// A server that means no good.
pub fn cruel(settings: Settings) -> impl Cache {
    let random = Random::new(Seed(settings.capacity_bytes));
    Layer::new(settings, Cruel { reads: Vec::new(), writes: Vec::new(), random })
}

impl Cruel {
    /// A job that is not the one expected, and as much of it as it pleases.
    fn pick(random: &mut Random, jobs: &mut Vec<Job>) -> Option<Job> {
        let count = jobs.len() as u64;
        let index = (count > 0).then(|| random.below(count) as usize)?;
        let whole = jobs[index].extent;
        let length = 1 + random.below(whole.length);
        let part = Job { extent: Extent::new(whole.offset, length), ..jobs[index] };
        match length == whole.length {
            true => _ = jobs.swap_remove(index),
            false => jobs[index].extent = Extent::new(part.extent.end(), whole.length - length),
        }
        Some(part)
    }
}

impl Queues for Cruel {
    /// With writes under way a refused packet is offered again, so refusing stops nobody for ever.
    fn admits(&mut self) -> bool {
        self.writes.is_empty() || self.random.below(2) == 0
    }

    fn push_read(&mut self, job: Job) {
        self.reads.push(job);
    }

    fn push_write(&mut self, job: Job) -> u64 {
        self.writes.push(job);
        0
    }

    fn start_read(&mut self, in_flight: &mut InFlight, out: &mut Vec<Action>) -> bool {
        if !in_flight.has_more_than(in_flight.access_bytes()) {
            return false;
        }
        let Some(part) = Cruel::pick(&mut self.random, &mut self.reads) else { return false };
        in_flight.fetch(part.file, part.extent, std::iter::once(part), out);
        true
    }

    fn start_write(&mut self, in_flight: &mut InFlight, out: &mut Vec<Action>) -> bool {
        let Some(part) = Cruel::pick(&mut self.random, &mut self.writes) else { return false };
        in_flight.store(part.file, part.extent, part.extent.length, out);
        true
    }

    fn has_reads(&self) -> bool {
        !self.reads.is_empty()
    }

    fn has_writes(&self, file: Option<FileId>) -> bool {
        self.writes.iter().any(|job| file.is_none_or(|file| job.file == file))
    }

    fn queued_count(&self) -> usize {
        self.reads.len() + self.writes.len()
    }
}
