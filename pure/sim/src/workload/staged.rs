//! Any program of a cluster under in-situ strategies, inside the simulation and at its clock.
//!
//! What a rank does to a file that only it has open goes through a stack of strategies, as in the
//! preloaded library: one stack for each file of each process. What comes out at the bottom becomes
//! commands. As there, strategies step aside from a file that several processes have open: what one
//! held goes out before another opens it. Collective accesses, and accesses that are only begun, find
//! nothing held.
//!
//! A call that a stack answers by itself costs its process the instruction that any command costs; bytes
//! it copies cost nothing, since a cluster's model has no memory bandwidth.

use crate::program::{Command, Communicator, File, FileOperation, PhaseTotals, Program, What};
use iolab_policy::insitu::{
    Access, At, Call, Driver, Guest, Handle, Outcome, Slot, Stack, StrategySpec, Totals,
};
use iolab_vocab::{Direction, Extent, Nanos};
use std::collections::{BTreeMap, VecDeque};

/// The one description that a rank has of a file it opened.
const HANDLE: Handle = Handle(0);

/// Whoever uses a file while another process writes out what was held of it looks again after so
/// long, and goes on regardless after so many looks (20 s), as the preloaded library does.
const PAUSE: Nanos = Nanos(100_000);
const PAUSES_MAX: u32 = 200_000;

/// A command with what it touches.
struct Line {
    command: Command,
    list: Vec<Extent>,
    /// The file of another rank of which this writes out what was held.
    writes_out: Option<File>,
    /// It reads something else than the program asked for, which is told what it got by us.
    is_strategys: bool,
}

/// A program whose accesses go through strategies.
pub(super) struct Staged {
    program: Box<dyn Program>,
    apply: Vec<StrategySpec>,
    files: Vec<Held>,
    ranks: Vec<Rank>,
    /// Members of each communicator.
    member_counts: Vec<u32>,
    staged_calls: u64,
    performed_calls: u64,
    /// What stacks that have ended counted.
    counted: Totals,
    /// Reads that came out below as the program made them.
    reads_passed: u32,
}

/// A file of the simulation.
struct Held {
    name: String,
    /// Its size as far as commands tell.
    bytes: u64,
    /// Who has it open, and how often.
    openers: BTreeMap<u32, u32>,
    /// Several had it open at once.
    was_shared: bool,
    /// Commands not over that write out what another rank held, and who gives them.
    writing_out: Option<(u32, u32)>,
}

#[derive(Default)]
struct Rank {
    now: Nanos,
    /// What comes before the program is asked again.
    due: VecDeque<Line>,
    /// Of a command that waits for another rank: the command, and how often it has looked.
    waiting: Option<(Command, Vec<Extent>, u32)>,
    /// The command it was given last writes out what was held of this file.
    writes_out: Option<File>,
    /// The command it was given last reads for a strategy.
    is_strategys: bool,
    /// The last of these is of the program's own accesses, as they are.
    last_is_own: bool,
    stacks: BTreeMap<File, Stack>,
}

impl Staged {
    /// The program under strategies, the first one next to it. `files` has name and size at the start
    /// of each file of the simulation.
    pub(super) fn new(
        program: Box<dyn Program>,
        apply: Vec<StrategySpec>,
        files: &[(String, u64)],
    ) -> Staged {
        let rank_count = program.rank_count();
        let declared = program.communicators();
        let member_counts = declared.iter().map(|ranks| ranks.len() as u32);
        let held = |(name, bytes): &(String, u64)| Held {
            name: name.clone(),
            bytes: *bytes,
            openers: BTreeMap::new(),
            was_shared: false,
            writing_out: None,
        };
        Staged {
            member_counts: std::iter::once(rank_count).chain(member_counts).collect(),
            ranks: (0..rank_count).map(|_| Rank::default()).collect(),
            files: files.iter().map(held).collect(),
            program,
            apply,
            staged_calls: 0,
            performed_calls: 0,
            counted: Totals::default(),
            reads_passed: 0,
        }
    }

    /// Makes of a command what the strategies make of it.
    fn stage(&mut self, rank: u32, command: Command, list: Vec<Extent>) {
        self.ranks[rank as usize].last_is_own = false;
        let What::File { file, operation } = command.what else {
            return self.push(rank, command, list);
        };
        // What does not exist is refused by the simulator.
        if file as usize >= self.files.len() {
            return self.push(rank, command, list);
        }
        match (operation, operation.direction(), command.ticket) {
            (FileOperation::Open, ..) => self.open(rank, file),
            (FileOperation::Close, ..) => self.close(rank, file),
            (FileOperation::Sync, ..) => self.sync(rank, file),
            (FileOperation::SetSize, ..) => self.set_size(rank, file, list),
            (FileOperation::Read | FileOperation::Write, Some(direction), None) => {
                self.transfer(rank, file, direction, list);
            }
            _ => {
                self.drive(rank, file, Call::Settle);
                self.push(rank, command, list);
            }
        }
    }

    fn push(&mut self, rank: u32, command: Command, list: Vec<Extent>) {
        if let What::File { file, operation } = command.what
            && operation.direction() == Some(Direction::Write)
            && let Some(held) = self.files.get_mut(file as usize)
        {
            let end = list.iter().map(|extent| extent.end()).max().unwrap_or(0);
            held.bytes = held.bytes.max(end);
        }
        self.ranks[rank as usize].due.push_back(Line {
            command,
            list,
            writes_out: None,
            is_strategys: false,
        });
    }

    /// What others hold of the file goes out first.
    fn open(&mut self, rank: u32, file: File) {
        let others: Vec<u32> = self.files[file as usize].openers.keys().copied().collect();
        for other in others.into_iter().filter(|other| *other != rank) {
            self.release(other, file, rank);
        }
        self.push(rank, FileOperation::Open.of(file), Vec::new());
        let communicator = self.program.communicator_of(rank, file);
        let held = &mut self.files[file as usize];
        *held.openers.entry(rank).or_default() += 1;
        let is_again = held.openers[&rank] > 1;
        let is_alone = self.member_counts.get(communicator as usize) == Some(&1);
        if !is_alone || held.openers.len() > 1 {
            self.release(rank, file, rank);
            return;
        }
        // One stack serves all openings of a process.
        if is_again {
            return;
        }
        let strategies: Vec<_> =
            Guest::chosen(&self.apply, &held.name).map(|spec| spec.build_for(&held.name)).collect();
        if strategies.is_empty() {
            return;
        }
        let access = Access { read: true, write: true, ..Access::default() };
        let call = Call::Open { access, file_bytes: held.bytes, position: 0 };
        self.ranks[rank as usize].stacks.insert(file, Stack::new(strategies));
        self.drive(rank, file, call);
    }

    /// The stack of a rank goes out of the way; what it held is written by `by`, and whoever uses the
    /// file meanwhile waits for that.
    fn release(&mut self, rank: u32, file: File, by: u32) {
        let before = self.ranks[by as usize].due.len();
        self.drive_by(rank, file, Call::Settle, by);
        self.drop_stack(rank, file);
        let held = &mut self.files[file as usize];
        held.was_shared = true;
        let mut count = held.writing_out.map_or(0, |(_, count)| count);
        for line in self.ranks[by as usize].due.iter_mut().skip(before) {
            line.writes_out = Some(file);
            count += 1;
        }
        held.writing_out = (count > 0).then_some((by, count));
    }

    fn drop_stack(&mut self, rank: u32, file: File) {
        if let Some(stack) = self.ranks[rank as usize].stacks.remove(&file) {
            self.counted.take(&stack, &self.files[file as usize].name);
        }
    }

    /// Whether another rank is about to write out what was held of the file.
    fn must_wait(&self, rank: u32, command: Command) -> bool {
        let file = command.file().and_then(|file| self.files.get(file as usize));
        file.and_then(|file| file.writing_out).is_some_and(|(by, _)| by != rank)
    }

    fn close(&mut self, rank: u32, file: File) {
        let openers = &mut self.files[file as usize].openers;
        let is_last = openers.get(&rank).is_none_or(|count| *count <= 1);
        match openers.get_mut(&rank) {
            Some(count) if !is_last => *count -= 1,
            _ => drop(openers.remove(&rank)),
        }
        if is_last {
            self.drive(rank, file, Call::Close);
            self.drop_stack(rank, file);
        }
        self.push(rank, FileOperation::Close.of(file), Vec::new());
    }

    /// A stack hands a sync down, so it comes out there.
    fn sync(&mut self, rank: u32, file: File) {
        if self.drive(rank, file, Call::Sync { data_only: false }).is_none() {
            self.push(rank, FileOperation::Sync.of(file), Vec::new());
        }
    }

    fn set_size(&mut self, rank: u32, file: File, list: Vec<Extent>) {
        // What is no size is refused by the simulator.
        let [Extent { length, .. }] = list[..] else {
            return self.push(rank, FileOperation::SetSize.of(file), list);
        };
        let call = Call::Truncate { length };
        if self.drive(rank, file, call).is_none() {
            self.push(rank, FileOperation::SetSize.of(file), list);
        }
        self.files[file as usize].bytes = length;
    }

    fn transfer(&mut self, rank: u32, file: File, direction: Direction, list: Vec<Extent>) {
        if !self.ranks[rank as usize].stacks.contains_key(&file) {
            return self.push(rank, FileOperation::access(direction, false).of(file), list);
        }
        for extent in list {
            let (at, length) = (At::Offset(extent.offset), extent.length);
            let call = match direction {
                Direction::Read => Call::Read { at, length },
                Direction::Write => Call::Write { at, length },
            };
            self.staged_calls += 1;
            self.reads_passed = 0;
            let outcome = self.drive(rank, file, call);
            if direction == Direction::Read && self.reads_passed == 0 {
                let bytes = outcome.and_then(Result::ok).unwrap_or(0);
                self.program.got(rank, bytes);
            }
        }
    }

    fn drive(&mut self, rank: u32, file: File, call: Call) -> Option<Outcome> {
        self.drive_by(rank, file, call, rank)
    }

    /// Lets the stack of a rank decide, if it has one; `by` carries out what comes of it.
    fn drive_by(&mut self, rank: u32, file: File, call: Call, by: u32) -> Option<Outcome> {
        let mut stack = self.ranks[rank as usize].stacks.remove(&file)?;
        let own = call.transfer_bytes();
        let mut below = Below { staged: self, file, by, own };
        let outcome = stack.drive(HANDLE, call, &mut below);
        self.ranks[rank as usize].stacks.insert(file, stack);
        Some(outcome)
    }

    /// The rank has ended: nothing stays held.
    fn end(&mut self, rank: u32) {
        let open: Vec<File> = self.ranks[rank as usize].stacks.keys().copied().collect();
        for file in open {
            self.drive(rank, file, Call::Close);
            self.drop_stack(rank, file);
        }
    }
}

/// What lies below a stack: commands of the simulation.
struct Below<'a> {
    staged: &'a mut Staged,
    file: File,
    by: u32,
    /// Bytes of the program's own call.
    own: u64,
}

impl Below<'_> {
    /// One more transfer. Those of one command of the program that pass through as they are stay one
    /// command, as they were.
    fn transfer(&mut self, direction: Direction, at: At, length: u64, memory: Slot) -> u64 {
        // Without positions in the program there are none here.
        let At::Offset(offset) = at else { unreachable!("commands name their offsets") };
        let held = &self.staged.files[self.file as usize];
        let moved = match direction {
            Direction::Read => held.bytes.saturating_sub(offset).min(length),
            Direction::Write => length,
        };
        let command = FileOperation::access(direction, false).of(self.file);
        let extent = Extent::new(offset, length);
        let is_own = memory == Slot::Program(0) && length == self.own;
        self.staged.performed_calls += 1;
        let rank = &mut self.staged.ranks[self.by as usize];
        match rank.due.back_mut() {
            Some(line) if is_own && rank.last_is_own && line.command == command => {
                line.list.push(extent);
            }
            _ => {
                self.staged.push(self.by, command, vec![extent]);
                let line = self.staged.ranks[self.by as usize].due.back_mut();
                line.expect("just pushed").is_strategys = direction == Direction::Read && !is_own;
            }
        }
        self.staged.reads_passed += u32::from(direction == Direction::Read && is_own);
        self.staged.ranks[self.by as usize].last_is_own = is_own;
        if direction == Direction::Write {
            let held = &mut self.staged.files[self.file as usize];
            held.bytes = held.bytes.max(extent.end());
        }
        moved
    }
}

impl Driver for Below<'_> {
    fn now(&mut self) -> Nanos {
        self.staged.ranks[self.by as usize].now
    }

    fn copy(&mut self, _from: Slot, _to: Slot, _length: u64) {}

    fn perform(&mut self, _handle: Handle, call: Call, memory: Slot) -> Outcome {
        match call {
            Call::Read { at, length } => Ok(self.transfer(Direction::Read, at, length, memory)),
            Call::Write { at, length } => Ok(self.transfer(Direction::Write, at, length, memory)),
            Call::Truncate { length } => {
                let size = vec![Extent::new(0, length)];
                self.staged.push(self.by, FileOperation::SetSize.of(self.file), size);
                Ok(0)
            }
            Call::Sync { .. } => {
                self.staged.push(self.by, FileOperation::Sync.of(self.file), Vec::new());
                Ok(0)
            }
            _ => Ok(0),
        }
    }

    fn wait_until(&mut self, time: Nanos) {
        let nanos = time.since(self.now());
        // The strategy is woken now, and goes by the time that will be.
        self.staged.ranks[self.by as usize].now = time.after(Nanos::ZERO).max(self.now());
        self.staged.push(self.by, What::Idle { nanos }.awaited(), Vec::new());
    }
}

impl Program for Staged {
    fn next(&mut self, rank: u32, list: &mut Vec<Extent>) -> Option<Command> {
        if self.ranks[rank as usize].due.is_empty() {
            let waited = self.ranks[rank as usize].waiting.take();
            let next = waited.or_else(|| {
                let command = self.program.next(rank, list)?;
                Some((command, std::mem::take(list), 0))
            });
            match next {
                Some((command, touched, looks))
                    if looks < PAUSES_MAX && self.must_wait(rank, command) =>
                {
                    self.ranks[rank as usize].waiting = Some((command, touched, looks + 1));
                    return Some(What::Idle { nanos: PAUSE }.awaited());
                }
                Some((command, touched, _)) => {
                    self.stage(rank, command, touched);
                    // What a stack answers by itself is a call all the same.
                    if self.ranks[rank as usize].due.is_empty() {
                        let call = What::Compute { instructions: 1.0 }.awaited();
                        self.push(rank, call, Vec::new());
                    }
                }
                None => self.end(rank),
            }
        }
        let line = self.ranks[rank as usize].due.pop_front()?;
        self.ranks[rank as usize].writes_out = line.writes_out;
        self.ranks[rank as usize].is_strategys = line.is_strategys;
        list.extend(line.list);
        Some(line.command)
    }

    fn reached(&mut self, rank: u32, now: Nanos) {
        let own = &mut self.ranks[rank as usize];
        own.now = now;
        let is_over = own.due.is_empty() && own.waiting.is_none();
        if let Some(file) = own.writes_out.take() {
            let writing_out = &mut self.files[file as usize].writing_out;
            *writing_out = writing_out.and_then(|(by, count)| Some((by, count.checked_sub(1)?)));
            *writing_out = writing_out.filter(|(_, count)| *count > 0);
        }
        if is_over {
            self.program.reached(rank, now);
        }
    }

    fn got(&mut self, rank: u32, bytes: u64) {
        if !self.ranks[rank as usize].is_strategys {
            self.program.got(rank, bytes);
        }
    }

    fn rank_count(&self) -> u32 {
        self.program.rank_count()
    }

    fn communicators(&self) -> Vec<Vec<u32>> {
        self.program.communicators()
    }

    fn communicator_of(&self, rank: u32, file: File) -> Communicator {
        self.program.communicator_of(rank, file)
    }

    fn phases(&self) -> Vec<PhaseTotals> {
        self.program.phases()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.program.notes();
        let mut counted = self.counted.clone();
        for (&file, stack) in self.ranks.iter().flat_map(|rank| &rank.stacks) {
            counted.take(stack, &self.files[file as usize].name);
        }
        notes.extend(counted.lines());
        notes.push(format!(
            "{} accesses went through strategies, {} came out below",
            self.staged_calls, self.performed_calls
        ));
        let shared: Vec<&str> =
            self.files.iter().filter(|file| file.was_shared).map(|file| &*file.name).collect();
        if let Some(first) = shared.first() {
            let others = match shared.len() {
                1 => String::new(),
                count => format!(" and {} others", count - 1),
            };
            notes.push(format!(
                "strategies stepped aside from `{first}`{others}: several processes have it open"
            ));
        }
        notes
    }
}
