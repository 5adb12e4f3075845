//! What every cache layer keeps account of: memory taken, and transfers under way.

use super::{Action, Job, Operation, Settings, Tag};
use iolab_vocab::{Direction, Extent, FileId};

#[derive(Debug, Default)]
struct Transfer {
    /// Memory to give back on completion.
    bytes: u64,
    /// Read data to deliver on completion; empty for a write.
    parts: Vec<(Tag, Extent)>,
    /// What is being written, if anything.
    store: Option<(FileId, Extent)>,
}

/// A write that another one in flight holds up.
#[derive(Clone, Copy, Debug)]
struct HeldUp {
    file: FileId,
    extent: Extent,
    held_bytes: u64,
}

/// Memory and transfers of one machine.
#[derive(Debug)]
pub(super) struct InFlight {
    settings: Settings,
    held_bytes: u64,
    transfers: Vec<Transfer>,
    free_slots: Vec<u32>,
    held_up: Vec<HeldUp>,
    /// Between a completion and the driver's word that the device is ready.
    is_settling: bool,
}

impl InFlight {
    pub(super) fn new(settings: Settings) -> InFlight {
        let depth = settings.depth.max(1);
        let transfers = (0..depth).map(|_| Transfer::default()).collect();
        InFlight {
            settings,
            held_bytes: 0,
            transfers,
            free_slots: (0..depth).rev().collect(),
            held_up: Vec::new(),
            is_settling: false,
        }
    }

    pub(super) fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    pub(super) fn access_bytes(&self) -> u64 {
        self.settings.access_bytes
    }

    pub(super) fn free_bytes(&self) -> u64 {
        self.settings.capacity_bytes - self.held_bytes
    }

    /// Whether more memory than this is free.
    pub(super) fn has_more_than(&self, bytes: u64) -> bool {
        self.free_bytes() > bytes
    }

    /// Whether the device takes another transfer.
    pub(super) fn is_free(&self) -> bool {
        !self.is_settling && !self.free_slots.is_empty()
    }

    /// The driver has offered what it kept; transfers may start again.
    pub(super) fn ready(&mut self, out: &mut Vec<Action>) {
        self.is_settling = false;
        if !self.held_up.is_empty() {
            let held_up = std::mem::take(&mut self.held_up);
            held_up.iter().for_each(|one| self.store(one.file, one.extent, one.held_bytes, out));
        }
    }

    fn stores(&self) -> impl Iterator<Item = (FileId, Extent)> {
        let held_up = self.held_up.iter().map(|one| (one.file, one.extent));
        self.transfers.iter().filter_map(|transfer| transfer.store).chain(held_up)
    }

    /// Whether any write has been started and not completed.
    pub(super) fn has_stores(&self) -> bool {
        self.stores().next().is_some()
    }

    /// Whether one to that file has.
    pub(super) fn is_writing(&self, file: FileId) -> bool {
        self.stores().any(|store| store.0 == file)
    }

    /// Takes memory for a packet.
    pub(super) fn take(&mut self, bytes: u64) {
        self.held_bytes += bytes;
    }

    /// Gives memory back.
    pub(super) fn give_back(&mut self, bytes: u64) {
        self.held_bytes -= bytes;
    }

    /// Starts a write; its memory was taken when its data came in. Two writes in flight never
    /// overlap, for the device may finish them in any order: the later one is held up.
    pub(super) fn store(&mut self, file: FileId, extent: Extent, held: u64, out: &mut Vec<Action>) {
        let is_in_the_way = |other: (FileId, Extent)| other.0 == file && other.1.overlaps(extent);
        if self.free_slots.is_empty() || self.stores().any(is_in_the_way) {
            return self.held_up.push(HeldUp { file, extent, held_bytes: held });
        }
        let operation = self.launch(held);
        self.transfers[operation.0 as usize].store = Some((file, extent));
        out.push(Action::Transfer { operation, direction: Direction::Write, file, extent });
    }

    /// Starts a read of `extent` for the given jobs and takes its memory; what lies in holes
    /// between them is dropped on completion.
    pub(super) fn fetch(
        &mut self,
        file: FileId,
        extent: Extent,
        jobs: impl Iterator<Item = Job>,
        out: &mut Vec<Action>,
    ) {
        let operation = self.launch(0);
        let transfer = &mut self.transfers[operation.0 as usize];
        transfer.parts.extend(jobs.map(|job| (job.tag, job.extent)));
        let wanted_bytes = transfer.parts.iter().map(|part| part.1.length).sum::<u64>();
        transfer.bytes = extent.length.saturating_sub(wanted_bytes);
        self.held_bytes += wanted_bytes + transfer.bytes;
        out.push(Action::Transfer { operation, direction: Direction::Read, file, extent });
    }

    fn launch(&mut self, bytes: u64) -> Operation {
        let slot = self.free_slots.pop().expect("a transfer starts only when the device is free");
        self.transfers[slot as usize].bytes = bytes;
        Operation(slot)
    }

    /// Settles a finished transfer: a write's memory is free, a read's data is delivered.
    pub(super) fn complete(&mut self, operation: Operation, out: &mut Vec<Action>) {
        let transfer = &mut self.transfers[operation.0 as usize];
        transfer.store = None;
        self.held_bytes -= std::mem::take(&mut transfer.bytes);
        out.extend(transfer.parts.drain(..).map(|(tag, extent)| Action::Deliver { tag, extent }));
        self.free_slots.push(operation.0);
        self.is_settling = true;
    }
}
