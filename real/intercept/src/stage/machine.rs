//! One file's stack of strategies at work: feeds it the program's calls, carries out its commands
//! with system calls, keeps its staging memory. The caller holds the file's lock.

use super::counted::Told;
use super::memory::{Direction, KnownPages, Memory, transfer};
use super::region::Region;
use super::tally::{self, Calls};
use super::tripwire::Tripwire;
use super::{joining, journal, kernel, settings, shared};
use iolab_policy::insitu::{
    At, Call, Command, Driver, Errno, Handle, Interest, Outcome, Short, Slot, Stack, Ticket, Whence,
};
use iolab_segment::Entry;
use iolab_vocab::Nanos;
use std::ffi::c_int;

/// What is waited for with others.
const SYNC: Call = Call::Sync { data_only: false };

/// See the module.
pub(super) struct Machine {
    stack: Stack,
    bottom: Bottom,
    pub(super) known: KnownPages,
    /// Where the run is told of the file; none when the strategies hold nothing.
    entry: Option<&'static Entry>,
    /// Some strategy has staging memory.
    copies: bool,
    /// The last one who waited for others with a sync.
    waits: Option<Ticket>,
    /// What the launcher was told of counts.
    told: Told,
    /// The program knows that something it wrote may not be in the file.
    failure_is_told: bool,
}

/// What a stack's commands are carried out with.
struct Bottom {
    staging: Vec<Region>,
    /// A descriptor of each description, for the calls that come out at the bottom.
    descriptors: Vec<(Handle, c_int)>,
    /// Number of the file in the trace, when decisions are kept.
    journal: Option<u32>,
    /// Something is held that the run could not be told of.
    is_untold: bool,
    /// What the file below must look like as long as bytes are held.
    tripwire: Tripwire,
    /// For the launcher to tell.
    calls: Calls,
}

/// A call of the program on its way.
struct Passage<'a> {
    bottom: &'a mut Bottom,
    memory: &'a Memory<'a>,
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
        let bottom = Bottom {
            staging,
            descriptors: Vec::with_capacity(4),
            journal: journal::is_kept().then_some(number),
            is_untold: false,
            tripwire: Tripwire::default(),
            calls: Calls::default(),
        };
        let known = KnownPages::new();
        let copies = stack.staging_bytes().any(|bytes| bytes > 0);
        Some(Machine {
            stack,
            bottom,
            known,
            entry,
            copies,
            waits: None,
            told: Told::default(),
            failure_is_told: false,
        })
    }

    /// Whether it makes no call but those that come in, by the descriptors that they come by.
    pub(super) fn is_idle(&self) -> bool {
        self.bottom.journal.is_none() && self.stack.is_idle()
    }

    /// Whether reads are answered from what was read before.
    pub(super) fn keeps_bytes(&self) -> bool {
        self.stack.keeps_bytes()
    }

    pub(super) fn held_bytes(&self) -> u64 {
        self.stack.held_bytes()
    }

    /// The calls that have to come here; where decisions are kept, all.
    pub(super) fn interest(&self) -> Interest {
        match self.bottom.journal {
            Some(_) => Interest::EVERYTHING,
            None => self.stack.interest(),
        }
    }

    /// Whether bytes of the program's calls are ever copied here.
    #[inline]
    pub(super) fn copies(&self) -> bool {
        self.copies
    }

    /// A call that passes.
    #[inline]
    pub(super) fn passed(&mut self, call: &Call) {
        self.stack.passed(call);
        self.count_passed();
    }

    /// A call that goes down as one.
    #[inline]
    fn count_passed(&mut self) {
        self.bottom.calls.heard += 1;
        self.bottom.calls.below += 1;
    }

    /// Whether a call changes nothing here and is to be made as it is.
    #[inline]
    pub(super) fn passes(&self, call: &Call) -> bool {
        self.bottom.journal.is_none() && self.stack.passes(call)
    }

    /// The description it serves of that number, in the order of opening.
    pub(super) fn handle(&self, index: usize) -> Option<Handle> {
        self.bottom.descriptors.get(index).map(|&(handle, _)| handle)
    }

    /// The descriptor calls of `handle` go out by; `None` for a description of another file.
    pub(super) fn descriptor(&self, handle: Handle) -> Option<c_int> {
        self.bottom.descriptor(handle)
    }

    /// From now on calls of `handle` go out by `fd`.
    pub(super) fn set_descriptor(&mut self, handle: Handle, fd: c_int) {
        match self.bottom.descriptors.iter_mut().find(|(known, _)| *known == handle) {
            Some(entry) => entry.1 = fd,
            None => self.bottom.descriptors.push((handle, fd)),
        }
        self.show_descriptor();
    }

    pub(super) fn forget(&mut self, handle: Handle) {
        self.bottom.descriptors.retain(|(known, _)| *known != handle);
        self.show_descriptor();
    }

    /// Others reach the file by this.
    fn show_descriptor(&self) {
        if let (Some(entry), Some(run)) = (self.entry, shared::run()) {
            run.show_descriptor(entry, self.any_descriptor().unwrap_or(-1));
        }
    }

    /// Any descriptor of the file.
    pub(super) fn any_descriptor(&self) -> Option<c_int> {
        self.bottom.any_descriptor()
    }

    /// Another process was here. If it has written out what was held, the strategies forget it;
    /// and the file may be of another size now.
    pub(super) fn forget_drained(&mut self) {
        let was_drained = self.bottom.staging.iter().all(Region::is_drained);
        if was_drained && let Some(status) = self.any_descriptor().and_then(kernel::status) {
            self.bottom.tripwire.forget();
            self.stack.drained(status.st_size.max(0) as u64);
            self.bottom.staging.iter_mut().for_each(Region::begin_anew);
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
        self.bottom.staging.iter_mut().for_each(Region::begin_anew);
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
        self.bottom.staging.iter().find(|region| region.slab().is_some())
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
        if self.bottom.journal.is_some() {
            return false;
        }
        let taker = self.stack.taker(at).map(|stage| &self.bottom.staging[stage]);
        if !taker.is_some_and(|region| region.has_room(length as u64)) {
            return false;
        }
        let absorbed = self.stack.absorb(handle, at, length as u64);
        let Some(Slot::Staging { stage, offset }) = absorbed else { return false };
        let region = &mut self.bottom.staging[stage as usize];
        let to = region.place(offset, length as u64);
        // SAFETY: the pages were good and the staging memory has room, as just checked.
        unsafe { memory.copy_out(0, to, length) };
        region.absorbed(offset, length as u64);
        self.bottom.calls.heard += 1;
        true
    }

    /// The short way for a read the top strategy answers in whole; false when it does not. The
    /// caller has looked at the memory.
    #[inline]
    pub(super) fn serve(&mut self, handle: Handle, at: At, memory: &Memory, length: usize) -> bool {
        if self.bottom.journal.is_some() {
            return false;
        }
        let served = self.stack.serve(handle, at, length as u64);
        let Some(Slot::Staging { stage, offset }) = served else { return false };
        let from = self.bottom.place(stage, offset, length as u64);
        // SAFETY: the pages were good and the staging memory has the bytes, as just checked.
        unsafe { memory.copy_in(0, from, length) };
        self.bottom.calls.heard += 1;
        true
    }

    /// The short way for a call that one strategy decides at once. The caller has seen to it that nobody
    /// was here and nothing is held.
    pub(super) fn call_short(
        &mut self,
        handle: Handle,
        call: &Call,
        memory: &Memory,
    ) -> Option<isize> {
        if self.bottom.journal.is_some() {
            return None;
        }
        let (stage, offset) = match self.stack.short(handle, call) {
            (_, Short::Ask) => return None,
            (_, Short::Answer(value)) => {
                self.bottom.calls.heard += 1;
                return Some(value as isize);
            }
            (stage, Short::At(offset)) => (stage, offset),
        };
        self.count_passed();
        let direction = match call {
            Call::Read { .. } => Direction::In,
            _ => Direction::Out,
        };
        let fd = self.bottom.descriptor(handle).expect("strategies use descriptions that are open");
        let length = call.transfer_bytes();
        let result = memory.transfer(direction, fd, 0, length, Some(offset));
        if let Ok(bytes) = u64::try_from(result) {
            self.stack.moved(stage, handle, bytes);
        }
        Some(result)
    }

    /// Makes room for a write that may be held; false when there is none.
    pub(super) fn make_room(&mut self, length: u64) -> bool {
        self.bottom.staging.iter_mut().all(|region| region.has_room(length) || region.grant(length))
    }

    /// Whether something is held that would be lost with the process.
    pub(super) fn is_untold(&self) -> bool {
        self.bottom.is_untold
    }

    /// Whether a call is to wait for others, and until when.
    pub(super) fn join(&mut self, call: &Call) -> Option<Ticket> {
        let ticket = self.stack.join(Nanos(kernel::monotonic_ns()), call);
        self.waits = ticket.or(self.waits);
        ticket
    }

    /// What came of a call that has waited, if somebody else has made it.
    pub(super) fn joined(&mut self, call: &Call, ticket: Ticket) -> Option<Outcome> {
        let outcome = self.stack.joined(call, ticket)?;
        self.stack.passed_on(call);
        self.bottom.calls.heard += 1;
        Some(outcome)
    }

    /// A call of the program, from its arrival to its answer.
    pub(super) fn call(&mut self, handle: Handle, call: Call, memory: &Memory) -> Outcome {
        let is_counted = tally::is_counted(call);
        self.bottom.calls.heard += u64::from(is_counted);
        let mut passage = Passage { bottom: &mut self.bottom, memory };
        let outcome = self.stack.drive(handle, call, &mut passage);
        if !is_counted || matches!(call, Call::Sync { .. }) {
            self.tell_calls();
        }
        if matches!(call, Call::Close | Call::Settle)
            && let Some(Err(errno)) = self.waits.and_then(|it| self.stack.joined(&SYNC, it))
        {
            joining::keep_failure(handle, errno);
        }
        if outcome.is_err() && matches!(call, Call::Write { .. } | Call::Sync { .. } | Call::Close)
        {
            self.failure_is_told = true;
        }
        outcome
    }

    /// Tells the launcher what it was not told of: the process may end.
    pub(super) fn tell_calls(&mut self) {
        self.bottom.calls.tell();
        self.told.tell(&self.stack, self.bottom.any_descriptor());
    }

    /// Whether somebody wrote to the file past the library while bytes were held.
    pub(super) fn was_trespassed(&self) -> bool {
        self.bottom.tripwire.is_tripped()
    }
}

impl Bottom {
    fn descriptor(&self, handle: Handle) -> Option<c_int> {
        self.descriptors.iter().find(|(known, _)| *known == handle).map(|&(_, fd)| fd)
    }

    fn any_descriptor(&self) -> Option<c_int> {
        self.descriptors.last().map(|&(_, fd)| fd)
    }

    /// Pieces that went away are told of before their staging memory is used again.
    fn tell_before(&mut self, stack: &Stack, copies: &[Command]) {
        for (stage, region) in self.staging.iter_mut().enumerate() {
            if region.slab().is_some() {
                let holding = stack.holding(stage);
                if region.is_rearranged(&holding) {
                    let fresh_from = copies.iter().filter_map(|copy| target(copy, stage)).min();
                    let fresh_from = fresh_from.unwrap_or(u64::MAX).min(holding.fill);
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
    fn tell_after(&mut self, stack: &Stack) {
        for (stage, region) in self.staging.iter_mut().enumerate().rev() {
            if region.slab().is_some() {
                let told = region.tell(&stack.holding(stage));
                self.is_untold |= !told;
            }
        }
        if self.is_untold && !stack.holds() {
            self.is_untold = false;
        }
        if !self.tripwire.is_set()
            && self.staging.iter().any(|region| !region.is_empty())
            && let Some(fd) = self.any_descriptor()
        {
            self.tripwire.set(fd);
        }
    }

    /// The address of `length` bytes of staging memory.
    #[inline]
    fn place(&self, stage: u32, offset: u64, length: u64) -> *mut u8 {
        self.staging[stage as usize].place(offset, length)
    }
}

impl Driver for Passage<'_> {
    fn now(&mut self) -> Nanos {
        Nanos(kernel::monotonic_ns())
    }

    #[inline]
    fn copy(&mut self, from: Slot, to: Slot, length: u64) {
        match (from, to) {
            (Slot::Program(from), Slot::Staging { stage, offset }) => {
                assert!(from + length <= self.memory.length(), "a copy leaves the caller's memory");
                let to = self.bottom.place(stage, offset, length);
                // SAFETY: both ranges were checked, pages before the call, bounds just now.
                unsafe { self.memory.copy_out(from, to, length as usize) };
            }
            (Slot::Staging { stage, offset }, Slot::Program(to)) => {
                assert!(to + length <= self.memory.length(), "a copy leaves the caller's memory");
                let from = self.bottom.place(stage, offset, length);
                // SAFETY: both ranges were checked, pages before the call, bounds just now.
                unsafe { self.memory.copy_in(to, from, length as usize) };
            }
            (
                Slot::Staging { stage, offset },
                Slot::Staging { stage: to_stage, offset: to_offset },
            ) => {
                let from = self.bottom.place(stage, offset, length);
                let to = self.bottom.place(to_stage, to_offset, length);
                // SAFETY: both ranges lie in staging memory; they may overlap.
                unsafe { std::ptr::copy(from, to, length as usize) };
            }
            _ => panic!("a copy without bytes"),
        }
    }

    fn perform(&mut self, handle: Handle, call: Call, slot: Slot) -> Outcome {
        let fd = self.bottom.descriptor(handle).expect("strategies use descriptions that are open");
        self.bottom.calls.below += u64::from(tally::is_counted(call));
        let only_looks = matches!(
            call,
            Call::Read { .. } | Call::Seek { .. } | Call::Open { .. } | Call::Advise { .. }
        );
        if !only_looks {
            self.bottom.tripwire.take(fd);
        }
        let result = match call {
            Call::Read { at, length } => self.transfer(Direction::In, fd, at, length, slot),
            Call::Write { at, length } => self.transfer(Direction::Out, fd, at, length, slot),
            Call::Seek { offset, whence } => kernel::seek(fd, offset, whence.number()),
            Call::Sync { data_only } => kernel::sync(fd, data_only),
            Call::Truncate { length } => kernel::truncate(fd, length),
            Call::Allocate { mode, offset, length } => kernel::allocate(fd, mode, offset, length),
            Call::Advise { offset, length } => kernel::fetch(fd, offset, length),
            Call::Open { .. } | Call::Flush | Call::Settle | Call::Close => 0,
        };
        if result < 0 { Err(Errno(-result as i32)) } else { Ok(result as u64) }
    }

    fn wait_until(&mut self, time: Nanos) {
        kernel::sleep_until_ns(time.get());
    }

    fn decided(&mut self, stack: &Stack, copies: &[Command]) {
        self.bottom.tell_before(stack, copies);
    }

    fn copied(&mut self, stack: &Stack) {
        self.bottom.tell_after(stack);
    }

    fn began(&mut self, command: &Command) {
        if let Some(number) = self.bottom.journal {
            journal::note(number, command);
        }
    }
}

impl Passage<'_> {
    fn transfer(&self, direction: Direction, fd: c_int, at: At, length: u64, slot: Slot) -> isize {
        let offset = match at {
            At::Position => None,
            At::Offset(offset) => Some(offset),
        };
        match slot {
            Slot::Program(start) => self.memory.transfer(direction, fd, start, length, offset),
            Slot::Staging { stage, offset: start } => {
                let place = self.bottom.place(stage, start, length);
                if offset.is_none()
                    && let Some(status) = kernel::status(fd)
                {
                    self.bottom.staging[stage as usize].appends_to(status.st_size.max(0) as u64);
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
    let access = iolab_policy::insitu::Access::from_flags(i64::from(
        iolab_processor::traced_open_flags(flags),
    ));
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
