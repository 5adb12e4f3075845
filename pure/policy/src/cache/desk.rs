//! What every cache layer keeps account of: memory taken, and transfers under way.

use super::{Action, Job, Operation, Settings, Tag};
use iolab_vocab::{Direction, Extent, FileId};

#[derive(Debug, Default)]
struct Flight {
    bytes: u64,
    /// Read data to deliver on completion; empty for a write.
    parts: Vec<(Tag, u64)>,
    is_write: bool,
}

/// Memory and transfers of one machine.
#[derive(Debug)]
pub(super) struct Desk {
    settings: Settings,
    held_bytes: u64,
    flights: Vec<Flight>,
    grounded: Vec<u32>,
    /// Between a completion and the driver's word that the device is ready.
    is_settling: bool,
}

impl Desk {
    pub(super) fn new(settings: Settings) -> Desk {
        let depth = settings.depth.max(1);
        let flights = (0..depth).map(|_| Flight::default()).collect();
        Desk {
            settings,
            held_bytes: 0,
            flights,
            grounded: (0..depth).rev().collect(),
            is_settling: false,
        }
    }

    pub(super) fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    pub(super) fn access_bytes(&self) -> u64 {
        self.settings.access_bytes
    }

    /// Whether more memory than this is free.
    pub(super) fn has_more_than(&self, bytes: u64) -> bool {
        self.settings.capacity_bytes - self.held_bytes > bytes
    }

    /// Whether the device takes another transfer.
    pub(super) fn is_free(&self) -> bool {
        !self.is_settling && !self.grounded.is_empty()
    }

    /// The driver has offered what it kept; transfers may start again.
    pub(super) fn ready(&mut self) {
        self.is_settling = false;
    }

    /// Takes memory for a packet.
    pub(super) fn take(&mut self, bytes: u64) {
        self.held_bytes += bytes;
    }

    /// Gives memory back.
    pub(super) fn give_back(&mut self, bytes: u64) {
        self.held_bytes -= bytes;
    }

    /// Starts a write; its memory was taken when its data came in.
    pub(super) fn store(&mut self, file: FileId, extent: Extent, held: u64, out: &mut Vec<Action>) {
        let operation = self.launch(held, true);
        out.push(Action::Transfer { operation, direction: Direction::Write, file, extent });
    }

    /// Starts a read of `extent` for the given jobs and takes its memory.
    pub(super) fn fetch(
        &mut self,
        file: FileId,
        extent: Extent,
        jobs: impl Iterator<Item = Job>,
        out: &mut Vec<Action>,
    ) {
        let operation = self.launch(0, false);
        let flight = &mut self.flights[operation.0 as usize];
        flight.parts.extend(jobs.map(|job| (job.tag, job.extent.length)));
        self.held_bytes += flight.parts.iter().map(|part| part.1).sum::<u64>();
        out.push(Action::Transfer { operation, direction: Direction::Read, file, extent });
    }

    fn launch(&mut self, bytes: u64, is_write: bool) -> Operation {
        let slot = self.grounded.pop().expect("a transfer starts only when the device is free");
        let flight = &mut self.flights[slot as usize];
        flight.bytes = bytes;
        flight.is_write = is_write;
        Operation(slot)
    }

    /// Settles a finished transfer: a write's memory is free, a read's data is delivered.
    pub(super) fn complete(&mut self, operation: Operation, out: &mut Vec<Action>) {
        let flight = &mut self.flights[operation.0 as usize];
        if flight.is_write {
            self.held_bytes -= flight.bytes;
        }
        out.extend(flight.parts.drain(..).map(|(tag, bytes)| Action::Deliver { tag, bytes }));
        self.grounded.push(operation.0);
        self.is_settling = true;
    }
}
