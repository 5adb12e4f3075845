//! The driver of the strategies' stacks in a replay: what comes out at the bottom is carried out
//! on the scratch files.

use crate::descriptors::Descriptor;
use crate::native::{allocate_range, seek};
use iolab_policy::insitu::guest::StackId;
use iolab_policy::insitu::{
    At, Call, Command, Driver, Errno, Guest, Handle, Outcome, Slot, Stack, StrategySpec, Totals,
    decision,
};
use iolab_trace::Event as Row;
use iolab_vocab::{FileId, Nanos};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const EBADF: Errno = Errno(9);

/// One stack with its memory and descriptions.
pub(crate) struct Staged {
    stack: Stack,
    /// The file of the trace it serves; a call on another one may reach it too (`dup2` over it).
    pub(crate) file: FileId,
    path: String,
    bottom: Bottom,
}

/// What a stack's commands are carried out with.
struct Bottom {
    /// Memory by region: the program's first, then one per stage.
    regions: Vec<Vec<u8>>,
    descriptors: BTreeMap<Handle, Arc<Descriptor>>,
}

/// A call on its way.
struct Passage<'a> {
    bottom: &'a mut Bottom,
    began: Instant,
    decisions: &'a mut Vec<Row>,
    /// When the command began that is being carried out.
    command_began: Nanos,
}

type Table = BTreeMap<(u32, StackId), Arc<Mutex<Staged>>>;

/// Stacks by process and number.
#[derive(Default)]
pub(crate) struct Stacks {
    stacks: Mutex<Table>,
    /// What those that have ended counted.
    counted: Mutex<Totals>,
}

impl Stacks {
    fn lock(&self) -> std::sync::MutexGuard<'_, Table> {
        self.stacks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(
        &self,
        process: u32,
        id: StackId,
        specs: &[StrategySpec],
        (file, path): (FileId, &str),
    ) {
        let strategies = Guest::chosen(specs, path).map(|spec| spec.build_for(path)).collect();
        let stack = Stack::new(strategies);
        let staging = stack.staging_bytes().map(|bytes| vec![0; bytes as usize]);
        let regions = std::iter::once(Vec::new()).chain(staging).collect();
        let bottom = Bottom { regions, descriptors: BTreeMap::new() };
        let staged = Staged { stack, file, path: path.to_owned(), bottom };
        self.lock().insert((process, id), Arc::new(Mutex::new(staged)));
    }

    pub(crate) fn end(&self, process: u32, id: StackId) {
        if let Some(staged) = self.lock().remove(&(process, id)) {
            staged.lock().unwrap_or_else(PoisonError::into_inner).count(&mut self.counted());
        }
    }

    /// What all have counted, once no call is under way.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = self.counted().clone();
        for staged in self.lock().values() {
            staged.lock().unwrap_or_else(PoisonError::into_inner).count(&mut totals);
        }
        totals
    }

    fn counted(&self) -> std::sync::MutexGuard<'_, Totals> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, process: u32, id: StackId) -> Option<Arc<Mutex<Staged>>> {
        self.lock().get(&(process, id)).cloned()
    }
}

/// What a thread brings along when it feeds a stack.
pub(crate) struct Feeder<'a> {
    /// The memory of the program's call.
    pub(crate) memory: &'a mut Vec<u8>,
    /// When the replay began.
    pub(crate) began: Instant,
    /// Rows of what was decided, without file, process and thread.
    pub(crate) decisions: &'a mut Vec<Row>,
}

impl Staged {
    /// The description a handle stands for exists from now on.
    pub(crate) fn adopt(&mut self, handle: Handle, descriptor: Arc<Descriptor>) {
        self.bottom.descriptors.insert(handle, descriptor);
    }

    fn count(&self, totals: &mut Totals) {
        totals.take(&self.stack, &self.path);
    }

    /// Another process has been at the file, and what was held is out.
    pub(crate) fn drained(&mut self) {
        let descriptor = self.bottom.descriptors.values().next();
        if let Some(status) = descriptor.and_then(|it| rustix::fs::fstat(&it.fd).ok()) {
            self.stack.drained(u64::try_from(status.st_size).unwrap_or(0));
        }
    }

    /// Feeds one call and carries out what comes of it, to its answer.
    pub(crate) fn feed(&mut self, handle: Handle, call: Call, feeder: &mut Feeder) -> Outcome {
        std::mem::swap(&mut self.bottom.regions[0], feeder.memory);
        let mut passage = Passage {
            bottom: &mut self.bottom,
            began: feeder.began,
            decisions: feeder.decisions,
            command_began: Nanos::ZERO,
        };
        let answer = self.stack.drive(handle, call, &mut passage);
        std::mem::swap(&mut self.bottom.regions[0], feeder.memory);
        if call == Call::Close {
            self.bottom.descriptors.remove(&handle);
        }
        answer
    }
}

impl Driver for Passage<'_> {
    fn now(&mut self) -> Nanos {
        now(self.began)
    }

    fn copy(&mut self, from: Slot, to: Slot, length: u64) {
        let length = length as usize;
        let (Some((source, start)), Some((target, place))) = (region(from), region(to)) else {
            return;
        };
        if source == target {
            return self.bottom.regions[source].copy_within(start..start + length, place);
        }
        let [source, target] =
            self.bottom.regions.get_disjoint_mut([source, target]).expect("two different regions");
        target[place..place + length].copy_from_slice(&source[start..start + length]);
    }

    fn perform(&mut self, handle: Handle, call: Call, memory: Slot) -> Outcome {
        let descriptor = self.bottom.descriptors.get(&handle).ok_or(EBADF)?;
        let length = call.transfer_bytes() as usize;
        let bytes = match region(memory) {
            Some((index, start)) => &mut self.bottom.regions[index][start..start + length],
            None => &mut [],
        };
        loop {
            match carry_out(descriptor, call, bytes) {
                Err(rustix::io::Errno::INTR) => {}
                outcome => return outcome.map_err(|errno| Errno(errno.raw_os_error())),
            }
        }
    }

    fn wait_until(&mut self, time: Nanos) {
        std::thread::sleep(Duration::from_nanos(time.since(now(self.began)).0));
    }

    fn began(&mut self, _command: &Command) {
        self.command_began = now(self.began);
    }

    fn ended(&mut self, command: &Command) {
        self.decisions.push(timed(command, self.command_began, self.began));
    }
}

fn carry_out(
    descriptor: &Descriptor,
    call: Call,
    bytes: &mut [u8],
) -> Result<u64, rustix::io::Errno> {
    let fd = &descriptor.fd;
    match call {
        Call::Read { at: At::Position, .. } => rustix::io::read(fd, bytes).map(|n| n as u64),
        Call::Read { at: At::Offset(at), .. } => rustix::io::pread(fd, bytes, at).map(|n| n as u64),
        Call::Write { at: At::Position, .. } => rustix::io::write(fd, bytes).map(|n| n as u64),
        Call::Write { at: At::Offset(at), .. } => {
            rustix::io::pwrite(fd, bytes, at).map(|n| n as u64)
        }
        Call::Seek { offset, whence } => seek(descriptor, offset, i64::from(whence.number())),
        Call::Sync { data_only: true } => rustix::fs::fdatasync(fd).map(|()| 0),
        Call::Sync { data_only: false } => rustix::fs::fsync(fd).map(|()| 0),
        Call::Truncate { length } => rustix::fs::ftruncate(fd, length).map(|()| 0),
        Call::Allocate { mode, offset, length } => {
            allocate_range(descriptor, i64::from(mode), offset, length)
        }
        Call::Advise { offset, length } => {
            let length = std::num::NonZeroU64::new(length);
            rustix::fs::fadvise(fd, offset, length, rustix::fs::Advice::WillNeed).map(|()| 0)
        }
        Call::Open { .. } | Call::Flush | Call::Settle | Call::Close => Ok(0),
    }
}

/// The index of a slot's region and the byte in it.
fn region(slot: Slot) -> Option<(usize, usize)> {
    match slot {
        Slot::Program(byte) => Some((0, byte as usize)),
        Slot::Staging { stage, offset } => Some((1 + stage as usize, offset as usize)),
        Slot::Nowhere => None,
    }
}

fn now(began: Instant) -> Nanos {
    Nanos(began.elapsed().as_nanos() as u64)
}

fn timed(command: &Command, start: Nanos, began: Instant) -> Row {
    Row { start, end: now(began), ..decision(command) }
}
