//! One file's stack of strategies at work: feeds it the program's calls, carries out its commands
//! with system calls, keeps its staging memory. The caller holds the file's lock.

use super::memory::{Direction, KnownPages, Memory, transfer};
use super::{journal, kernel, settings};
use iolab_policy::insitu::{At, Call, Command, Errno, Event, Handle, Outcome, Slot, Stack, Whence};
use iolab_vocab::Nanos;
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Staging memory of one stage.
struct Region {
    address: *mut u8,
    bytes: usize,
}

/// See the module.
pub(super) struct Machine {
    stack: Stack,
    staging: Vec<Region>,
    commands: Vec<Command>,
    /// A descriptor of each description, for the calls that come out at the bottom.
    descriptors: Vec<(Handle, c_int)>,
    pub(super) known: KnownPages,
    reads_clock: bool,
    /// Number of the file in the trace, when decisions are kept.
    journal: Option<u32>,
}

impl Machine {
    /// A machine for a fresh file; `None` when there is no memory for its staging.
    pub(super) fn new(stack: Stack, number: u32) -> Option<Machine> {
        let mut staging = Vec::new();
        for bytes in stack.staging_bytes() {
            staging.push(Region::take(bytes as usize)?);
        }
        let reads_clock = stack.reads_clock();
        Some(Machine {
            stack,
            staging,
            commands: Vec::with_capacity(32),
            descriptors: Vec::with_capacity(4),
            known: KnownPages::new(),
            reads_clock,
            journal: journal::is_kept().then_some(number),
        })
    }

    pub(super) fn held_bytes(&self) -> u64 {
        self.stack.held_bytes()
    }

    /// The description it serves of that number, in the order of opening.
    pub(super) fn handle(&self, index: usize) -> Option<Handle> {
        self.descriptors.get(index).map(|&(handle, _)| handle)
    }

    /// The descriptor calls of `handle` go out by; `None` for a description of another file.
    pub(super) fn descriptor(&self, handle: Handle) -> Option<c_int> {
        self.descriptors.iter().find(|(known, _)| *known == handle).map(|&(_, fd)| fd)
    }

    /// From now on calls of `handle` go out by `fd`.
    pub(super) fn set_descriptor(&mut self, handle: Handle, fd: c_int) {
        match self.descriptors.iter_mut().find(|(known, _)| *known == handle) {
            Some(entry) => entry.1 = fd,
            None => self.descriptors.push((handle, fd)),
        }
    }

    pub(super) fn forget(&mut self, handle: Handle) {
        self.descriptors.retain(|(known, _)| *known != handle);
    }

    /// Whether a program executed now would inherit one of the descriptions.
    pub(super) fn is_inheritable(&self) -> bool {
        self.descriptors.iter().any(|&(_, fd)| !kernel::closes_on_exec(fd))
    }

    /// The short way for a write the top strategy takes in whole; false when it does not. The
    /// caller has looked at the memory.
    #[inline]
    pub(super) fn absorb(
        &mut self,
        handle: Handle,
        at: At,
        memory: &Memory,
        length: usize,
    ) -> bool {
        if self.journal.is_some() {
            return false;
        }
        let Some(offset) = self.stack.absorb(handle, at, length as u64) else { return false };
        let to = self.place(0, offset, length as u64);
        // SAFETY: the pages were good and the staging memory has room, as just checked.
        unsafe { memory.copy_out(0, to, length) };
        true
    }

    /// A call of the program, from its arrival to its answer.
    pub(super) fn call(&mut self, handle: Handle, call: Call, memory: &Memory) -> Outcome {
        let mut event = Event::Arrived { handle, call };
        let mut commands = std::mem::take(&mut self.commands);
        let outcome = loop {
            commands.clear();
            self.stack.step(self.now(), event, &mut commands);
            if let Some(number) = self.journal {
                commands.iter().for_each(|command| journal::note(number, command));
            }
            let (last, copies) = commands.split_last().expect("a step concludes with a command");
            copies.iter().for_each(|command| self.copy(command, memory));
            match *last {
                Command::Answer(outcome) => break outcome,
                Command::Perform { handle, call, memory: slot } => {
                    event = Event::Performed(self.perform(handle, call, slot, memory));
                }
                Command::WakeAt(time) => {
                    kernel::sleep_ns(time.get().saturating_sub(kernel::monotonic_ns()));
                    event = Event::Woke;
                }
                Command::Copy { .. } => unreachable!("a step does not conclude with a copy"),
            }
        };
        self.commands = commands;
        outcome
    }

    fn now(&self) -> Nanos {
        if self.reads_clock { Nanos(kernel::monotonic_ns()) } else { Nanos::ZERO }
    }

    #[inline]
    fn copy(&self, command: &Command, memory: &Memory) {
        let Command::Copy { from, to, length } = *command else {
            panic!("{command:?} before the end of a batch");
        };
        match (from, to) {
            (Slot::Program(from), Slot::Staging { stage, offset }) => {
                assert!(from + length <= memory.length(), "{command:?} leaves the caller's memory");
                let to = self.place(stage, offset, length);
                // SAFETY: both ranges were checked, pages before the call, bounds just now.
                unsafe { memory.copy_out(from, to, length as usize) };
            }
            (Slot::Staging { stage, offset }, Slot::Program(to)) => {
                assert!(to + length <= memory.length(), "{command:?} leaves the caller's memory");
                let from = self.place(stage, offset, length);
                // SAFETY: both ranges were checked, pages before the call, bounds just now.
                unsafe { memory.copy_in(to, from, length as usize) };
            }
            (
                Slot::Staging { stage, offset },
                Slot::Staging { stage: to_stage, offset: to_offset },
            ) => {
                let from = self.place(stage, offset, length);
                let to = self.place(to_stage, to_offset, length);
                // SAFETY: both ranges lie in staging memory; they may overlap.
                unsafe { std::ptr::copy(from, to, length as usize) };
            }
            _ => panic!("{command:?} has no bytes to copy"),
        }
    }

    /// The address of `length` bytes of staging memory.
    #[inline]
    fn place(&self, stage: u32, offset: u64, length: u64) -> *mut u8 {
        let region = &self.staging[stage as usize];
        let end = offset.checked_add(length);
        assert!(
            end.is_some_and(|end| end <= region.bytes as u64),
            "{length} bytes from {offset} leave the staging memory of stage {stage}"
        );
        region.address.wrapping_add(offset as usize)
    }

    /// Carries out a call that came out at the bottom.
    fn perform(&self, handle: Handle, call: Call, slot: Slot, memory: &Memory) -> Outcome {
        let fd = self.descriptor(handle).expect("strategies use descriptions that are open");
        let result = match call {
            Call::Read { at, length } => self.transfer(Direction::In, fd, at, length, slot, memory),
            Call::Write { at, length } => {
                self.transfer(Direction::Out, fd, at, length, slot, memory)
            }
            Call::Seek { offset, whence } => kernel::seek(fd, offset, whence.number()),
            Call::Sync { data_only } => kernel::sync(fd, data_only),
            Call::Truncate { length } => kernel::truncate(fd, length),
            Call::Allocate { mode, offset, length } => kernel::allocate(fd, mode, offset, length),
            Call::Open { .. } | Call::Flush | Call::Settle | Call::Close => 0,
        };
        if result < 0 { Err(Errno(-result as i32)) } else { Ok(result as u64) }
    }

    fn transfer(
        &self,
        direction: Direction,
        fd: c_int,
        at: At,
        length: u64,
        slot: Slot,
        memory: &Memory,
    ) -> isize {
        let offset = match at {
            At::Position => None,
            At::Offset(offset) => Some(offset),
        };
        match slot {
            Slot::Program(start) => memory.transfer(direction, fd, start, length, offset),
            Slot::Staging { stage, offset: start } => {
                let place = self.place(stage, start, length);
                uninterrupted(|| transfer(direction, fd, place, length as usize, offset))
            }
            Slot::Nowhere => panic!("a transfer of {length} bytes without memory"),
        }
    }
}

/// A transfer the program did not ask for at this moment must not fail by its signals.
fn uninterrupted(mut transfer: impl FnMut() -> isize) -> isize {
    loop {
        let result = transfer();
        if result != -(libc::EINTR as isize) {
            return result;
        }
    }
}

/// A few regions are kept for the next file, pages and all: touching fresh ones costs more than
/// writing a small file. Each slot holds an address, or 0.
static SPARE: [AtomicUsize; 8] = [const { AtomicUsize::new(0) }; 8];
/// What the regions in `SPARE` measure; all stacks of a process have stages of like sizes.
static SPARE_BYTES: AtomicUsize = AtomicUsize::new(0);

impl Region {
    fn take(bytes: usize) -> Option<Region> {
        let bytes = bytes.next_multiple_of(4096);
        if bytes == 0 {
            return Some(Region { address: std::ptr::null_mut(), bytes });
        }
        let spare = (SPARE_BYTES.load(Ordering::Relaxed) == bytes)
            .then(|| SPARE.iter().map(|slot| slot.swap(0, Ordering::AcqRel)).find(|&a| a != 0))
            .flatten();
        let address = match spare {
            Some(address) => address as *mut u8,
            None => kernel::map(bytes)?,
        };
        Some(Region { address, bytes })
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let size =
            SPARE_BYTES.compare_exchange(0, self.bytes, Ordering::Relaxed, Ordering::Relaxed);
        let fits = size.is_ok() || size == Err(self.bytes);
        let address = self.address as usize;
        let kept = fits
            && SPARE.iter().any(|slot| {
                slot.compare_exchange(0, address, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            });
        if !kept {
            // SAFETY: the region is given up and nothing else knows its address.
            unsafe { kernel::unmap(self.address, self.bytes) };
        }
    }
}

/// What an open looked like to the strategies.
pub(super) fn open_call(flags: c_int, status: &libc::stat) -> Call {
    let access = iolab_policy::insitu::Access::from_flags(i64::from(flags));
    Call::Open { access, file_bytes: status.st_size.max(0) as u64, position: 0 }
}

/// The strategies for a file of that name, top first; `None` when none chooses it.
pub(super) fn stack_for(named: Option<&str>, canonical: Option<&str>) -> Option<Stack> {
    let strategies = settings::strategies_for(named, canonical);
    (!strategies.is_empty()).then(|| Stack::new(strategies))
}

/// A seek as the program wrote it.
pub(super) fn seek_call(offset: i64, whence: c_int) -> Call {
    Call::Seek { offset, whence: Whence::from_number(i64::from(whence)) }
}
