//! One file's stack of strategies at work: feeds it the program's calls, carries out its commands
//! with system calls, keeps its staging memory. The caller holds the file's lock.

use super::memory::{Direction, KnownPages, Memory, transfer};
use super::region::Region;
use super::tripwire::Tripwire;
use super::{journal, kernel, settings, shared};
use iolab_policy::insitu::{At, Call, Command, Errno, Event, Handle, Outcome, Slot, Stack, Whence};
use iolab_segment::Entry;
use iolab_vocab::Nanos;
use std::ffi::c_int;

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
    /// Where the run is told of the file; none when the strategies hold nothing.
    entry: Option<&'static Entry>,
    /// Something is held that the run could not be told of.
    is_untold: bool,
    /// The program knows that something it wrote may not be in the file.
    failure_is_told: bool,
    /// What the file below must look like as long as bytes are held.
    tripwire: Tripwire,
}

impl Machine {
    /// A machine for a fresh file; `None` when there is no memory for its staging.
    pub(super) fn new(stack: Stack, number: u32, entry: Option<&'static Entry>) -> Option<Machine> {
        let mut staging = Vec::new();
        for (bytes, holding) in stack.staging_bytes().zip(stack.holding_bytes()) {
            staging.push(Region::take(bytes, holding)?);
        }
        let holding: Vec<u32> = staging.iter().filter_map(Region::slab).collect();
        if !holding.is_empty() {
            if holding.len() > iolab_segment::STAGES {
                return None;
            }
            // What goes from one stage to the next is as long as a buffer, not as a call.
            let several = holding.len() > 1;
            if several && !staging.iter_mut().all(|region| region.grant(u64::MAX)) {
                return None;
            }
            shared::run()?.show_slabs(entry?, &holding);
            staging.iter_mut().for_each(Region::is_shown);
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
            entry,
            is_untold: false,
            failure_is_told: false,
            tripwire: Tripwire::default(),
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
        self.show_descriptor();
    }

    pub(super) fn forget(&mut self, handle: Handle) {
        self.descriptors.retain(|(known, _)| *known != handle);
        self.show_descriptor();
    }

    /// Others reach the file by this.
    fn show_descriptor(&self) {
        if let (Some(entry), Some(run)) = (self.entry, shared::run()) {
            run.show_descriptor(entry, self.descriptors.last().map_or(-1, |&(_, fd)| fd));
        }
    }

    /// Any descriptor of the file.
    pub(super) fn any_descriptor(&self) -> Option<c_int> {
        self.descriptors.last().map(|&(_, fd)| fd)
    }

    /// Another process was here. If it has written out what was held, the strategies forget it;
    /// and the file may be of another size now.
    pub(super) fn forget_drained(&mut self) {
        let was_drained = self.staging.iter().all(Region::is_drained);
        if was_drained && let Some(status) = self.any_descriptor().and_then(kernel::status) {
            self.tripwire.forget();
            self.stack.drained(status.st_size.max(0) as u64);
            self.staging.iter_mut().for_each(Region::begin_anew);
        }
    }

    /// What is held cannot be written out, now or later.
    pub(super) fn give_up_held(&mut self) {
        let bytes = self.held_bytes();
        let Some(fd) = self.any_descriptor().filter(|_| bytes > 0) else { return };
        if !self.failure_is_told {
            let mut buffer = crate::path::Buffer::new();
            let path = crate::path::of_descriptor(fd, &mut buffer);
            kernel::tell(&[b"the last bytes written to ", path, b" could not be written out"]);
        }
        let file_bytes = kernel::status(fd).map_or(0, |status| status.st_size.max(0) as u64);
        self.stack.drained(file_bytes);
        self.staging.iter_mut().for_each(Region::begin_anew);
    }

    /// Tells the run where the file is, before bytes of it are held; false when it would not be
    /// found there.
    pub(super) fn show_path(&self) -> bool {
        let shown = self.shown().zip(self.any_descriptor());
        shown.is_none_or(|(region, fd)| region.show_path(fd))
    }

    /// Whether no name has changed since the path was shown.
    pub(super) fn knows_path(&self) -> bool {
        self.shown().is_none_or(Region::knows_path)
    }

    /// The staging memory that says where the file is.
    fn shown(&self) -> Option<&Region> {
        self.staging.iter().find(|region| region.slab().is_some())
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
        let region = &mut self.staging[0];
        if !region.has_room(length as u64) {
            return false;
        }
        let Some(offset) = self.stack.absorb(handle, at, length as u64) else { return false };
        let to = region.place(offset, length as u64);
        // SAFETY: the pages were good and the staging memory has room, as just checked.
        unsafe { memory.copy_out(0, to, length) };
        region.absorbed(offset, length as u64);
        true
    }

    /// Makes room for a write that may be held; false when there is none.
    pub(super) fn make_room(&mut self, length: u64) -> bool {
        self.staging.iter_mut().all(|region| region.has_room(length) || region.grant(length))
    }

    /// Whether something is held that would be lost with the process.
    pub(super) fn is_untold(&self) -> bool {
        self.is_untold
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
            self.tell_before(copies);
            copies.iter().for_each(|command| self.copy(command, memory));
            self.tell_after();
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
        if outcome.is_err() && matches!(call, Call::Write { .. } | Call::Sync { .. } | Call::Close)
        {
            self.failure_is_told = true;
        }
        outcome
    }

    /// Pieces that went away are told of before their staging memory is used again.
    fn tell_before(&mut self, copies: &[Command]) {
        for (stage, region) in self.staging.iter_mut().enumerate() {
            if region.slab().is_some() {
                let holding = self.stack.holding(stage);
                if region.is_rearranged(&holding) {
                    let fresh_from = copies.iter().filter_map(|copy| target(copy, stage)).min();
                    let fresh_from = fresh_from.unwrap_or(u64::MAX).min(holding.fill);
                    let stack = &self.stack;
                    let told = region.tell_anew(&holding, fresh_from, |show| {
                        stack.held_pieces(stage, show);
                    });
                    self.is_untold |= !told;
                }
            }
        }
    }

    /// New pieces are told of once their bytes are in place; lower stages first, since what an upper
    /// one hands down must not be away in between.
    fn tell_after(&mut self) {
        for (stage, region) in self.staging.iter_mut().enumerate().rev() {
            if region.slab().is_some() {
                let told = region.tell(&self.stack.holding(stage));
                self.is_untold |= !told;
            }
        }
        if self.is_untold && self.held_bytes() == 0 {
            self.is_untold = false;
        }
        if !self.tripwire.is_set()
            && self.staging.iter().any(|region| !region.is_empty())
            && let Some(fd) = self.any_descriptor()
        {
            self.tripwire.set(fd);
        }
    }

    /// Whether somebody wrote to the file past the library while bytes were held.
    pub(super) fn was_trespassed(&self) -> bool {
        self.tripwire.is_tripped()
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
        self.staging[stage as usize].place(offset, length)
    }

    /// Carries out a call that came out at the bottom.
    fn perform(&mut self, handle: Handle, call: Call, slot: Slot, memory: &Memory) -> Outcome {
        let fd = self.descriptor(handle).expect("strategies use descriptions that are open");
        if !matches!(call, Call::Read { .. } | Call::Seek { .. } | Call::Open { .. }) {
            self.tripwire.take(fd);
        }
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
                if offset.is_none()
                    && let Some(status) = kernel::status(fd)
                {
                    self.staging[stage as usize].appends_to(status.st_size.max(0) as u64);
                }
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

/// Where a copy goes in the staging memory of that stage.
fn target(command: &Command, at: usize) -> Option<u64> {
    match *command {
        Command::Copy { to: Slot::Staging { stage, offset }, .. } if stage as usize == at => {
            Some(offset)
        }
        _ => None,
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
