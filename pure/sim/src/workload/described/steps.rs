//! A described application as a program: instructions carried out rank by rank.
//!
//! A rank keeps its place in the instructions, loop counters and how often it came to each data
//! command. Giving the next command costs a few comparisons and the making of its list.

use super::{
    Application, Command, Communicator, File, FileOperation, FileRef, Instruction, Message,
    Operation, Partner, PhaseTotals, Program, Transfer, Within, Work,
};
use crate::program::{ANY_SOURCE, What};
use iolab_pattern::Access;
use iolab_vocab::{Direction, Extent, Nanos};

/// Where a rank is.
#[derive(Clone, Debug)]
struct Cursor {
    at: usize,
    /// Calls of the data command it is at.
    call: u64,
    /// Whether it has thought before that call.
    has_thought: bool,
    has_started: bool,
    counters: Vec<u64>,
    /// Commands given, now and when each loop last began a round.
    given: u64,
    given_before: Vec<u64>,
    visits: Vec<u64>,
    phase: Option<usize>,
    /// How often it has come to each phase before it came to it last.
    phase_visits: Vec<Option<usize>>,
    /// The phase of its last read.
    read_phase: usize,
    now: Nanos,
    entered: Nanos,
}

impl Cursor {
    /// A round of a loop is over: whether there is another. A round without a command for this
    /// rank is the last, as all others would be like it.
    fn another_round(&mut self, slot: usize) -> bool {
        self.counters[slot] -= 1;
        let is_empty = self.given == self.given_before[slot];
        self.given_before[slot] = self.given;
        self.counters[slot] > 0 && !is_empty
    }
}

pub(super) struct Steps {
    application: Application,
    speeds: Vec<f64>,
    cursors: Vec<Cursor>,
    totals: Vec<PhaseTotals>,
    access: Access,
}

impl Steps {
    pub(super) fn new(application: Application, speeds: Vec<f64>) -> Steps {
        let (mut loops, mut transfers) = (0, 0);
        for instruction in application.code.iter() {
            match instruction {
                Instruction::Loop { .. } => loops += 1,
                Instruction::Do { operation: Operation::Transfer(_), .. } => transfers += 1,
                _ => {}
            }
        }
        let cursor = Cursor {
            at: 0,
            call: 0,
            has_thought: false,
            has_started: application.start == Nanos::ZERO,
            counters: vec![0; loops],
            given: 0,
            given_before: vec![0; loops],
            visits: vec![0; transfers],
            phase: None,
            phase_visits: vec![None; application.phases.len()],
            read_phase: 0,
            now: Nanos::ZERO,
            entered: Nanos::ZERO,
        };
        let total = |name: &String| PhaseTotals { name: name.clone(), ..PhaseTotals::default() };
        let totals = application.phases.iter().map(total).collect();
        let cursors = vec![cursor; application.rank_count as usize];
        Steps { application, speeds, cursors, totals, access: Access::new() }
    }

    fn enter(&mut self, rank: u32, phase: Option<usize>) {
        let cursor = &mut self.cursors[rank as usize];
        if let Some(left) = cursor.phase
            && let Some(visit) = cursor.phase_visits[left]
        {
            self.totals[left].left(visit, cursor.entered, cursor.now);
        }
        if let Some(phase) = phase {
            let visit = cursor.phase_visits[phase].map_or(0, |before| before + 1);
            cursor.phase_visits[phase] = Some(visit);
            self.totals[phase].entered(visit, cursor.now);
        }
        (cursor.phase, cursor.entered) = (phase, cursor.now);
    }

    fn work(&self, rank: u32, work: Work) -> Command {
        let instructions = match work {
            Work::Instructions(count) => count,
            Work::Seconds(seconds) => seconds * self.speeds[rank as usize],
        };
        What::Compute { instructions }.awaited()
    }

    /// The next call of a data command, or nothing when all are made.
    fn transfer(
        &mut self,
        rank: u32,
        transfer: &Transfer,
        list: &mut Vec<Extent>,
    ) -> Option<Command> {
        let cursor = &mut self.cursors[rank as usize];
        if cursor.call == transfer.place.calls(rank) {
            cursor.call = 0;
            cursor.visits[transfer.slot] += 1;
            return None;
        }
        if let Some(think) = transfer.think
            && cursor.call > 0
            && !cursor.has_thought
        {
            cursor.has_thought = true;
            return Some(self.work(rank, think));
        }
        let base = transfer.offset + cursor.visits[transfer.slot] * transfer.step;
        transfer.place.list(rank, cursor.call, base, &mut self.access, list);
        cursor.has_thought = false;
        cursor.call += 1;
        self.count(rank, transfer.direction, list);
        Some(transfer.command(rank))
    }

    fn count(&mut self, rank: u32, direction: Direction, list: &[Extent]) {
        let Some(phase) = self.cursors[rank as usize].phase else { return };
        let bytes: u64 = list.iter().map(|extent| extent.length).sum();
        let totals = &mut self.totals[phase];
        totals.calls += 1;
        match direction {
            // Counted when it is known how much of it the file has.
            Direction::Read => self.cursors[rank as usize].read_phase = phase,
            Direction::Write => totals.written_bytes += bytes,
        }
    }

    fn command(&self, rank: u32, operation: &Operation, list: &mut Vec<Extent>) -> Command {
        match *operation {
            Operation::Compute(work) => self.work(rank, work),
            Operation::File(operation, file) => operation.of(file.of(rank)),
            Operation::SetSize(file, bytes) => {
                list.push(Extent::new(0, bytes));
                FileOperation::SetSize.of(file.of(rank))
            }
            Operation::Wait(ticket) => What::Wait(ticket).awaited(),
            Operation::Collective { kind, root, bytes, within } => {
                let communicator = self.application.communicator(within, rank);
                What::Collective { kind, root, bytes, communicator }.awaited()
            }
            Operation::Message(message) => self.message(rank, message),
            Operation::Transfer(_) => unreachable!("transfers give their calls one by one"),
        }
    }

    fn message(&self, rank: u32, message: Message) -> Command {
        let Message { send, receive, tag, within, ticket } = message;
        let communicator = self.application.communicator(within, rank);
        let place = |partner| self.application.partner(within, rank, partner);
        let what = match (send, receive) {
            (Some((to, bytes)), Some(from)) => What::SendReceive {
                to: place(to),
                send_tag: tag,
                bytes,
                from: place(from),
                receive_tag: tag,
                communicator,
            },
            (Some((to, bytes)), None) => What::Send { to: place(to), tag, bytes, communicator },
            (None, Some(from)) => What::Receive { from: place(from), tag, communicator },
            (None, None) => unreachable!("a message is sent or received"),
        };
        Command { what, ticket }
    }
}

impl Application {
    /// How many ranks a communicator has, and the place of `rank` among them.
    pub(super) fn place_in(&self, within: Within, rank: u32) -> (u32, u32) {
        match within {
            Within::World => (self.rank_count, rank),
            Within::Alone => (1, 0),
            Within::Group(index) => {
                let ranks = &self.communicators[index as usize].ranks;
                let place = ranks.iter().position(|&one| one == rank);
                (ranks.len() as u32, place.expect("only members come here") as u32)
            }
        }
    }

    /// The rank within the communicator that `partner` is to `rank`.
    pub(super) fn partner(&self, within: Within, rank: u32, partner: Partner) -> u32 {
        match partner {
            Partner::Rank(rank) => rank,
            Partner::Any => ANY_SOURCE,
            Partner::Relative(step) => {
                let (count, place) = self.place_in(within, rank);
                (i64::from(place) + step).rem_euclid(i64::from(count)) as u32
            }
        }
    }
}

impl Transfer {
    fn command(&self, rank: u32) -> Command {
        let operation = FileOperation::access(self.direction, self.is_collective);
        Command { ticket: self.ticket, ..operation.of(self.file.of(rank)) }
    }
}

impl Program for Steps {
    fn next(&mut self, rank: u32, list: &mut Vec<Extent>) -> Option<Command> {
        let code = self.application.code.clone();
        if !self.cursors[rank as usize].has_started {
            self.cursors[rank as usize].has_started = true;
            return Some(What::Idle { nanos: self.application.start }.awaited());
        }
        loop {
            let cursor = &mut self.cursors[rank as usize];
            match code.get(cursor.at) {
                None => {
                    self.enter(rank, None);
                    return None;
                }
                Some(&Instruction::Enter(phase)) => {
                    cursor.at += 1;
                    self.enter(rank, Some(phase));
                }
                Some(&Instruction::Loop { slot, times }) => {
                    cursor.counters[slot] = times;
                    cursor.given_before[slot] = cursor.given;
                    cursor.at += 1;
                }
                Some(&Instruction::Again { slot, begin }) => {
                    cursor.at = if cursor.another_round(slot) { begin + 1 } else { cursor.at + 1 };
                }
                Some(Instruction::Do { who, .. }) if !who.includes(rank) => cursor.at += 1,
                Some(Instruction::Do { operation: Operation::Transfer(transfer), .. }) => {
                    match self.transfer(rank, transfer, list) {
                        Some(command) => {
                            self.cursors[rank as usize].given += 1;
                            return Some(command);
                        }
                        None => self.cursors[rank as usize].at += 1,
                    }
                }
                Some(Instruction::Do { operation, .. }) => {
                    cursor.at += 1;
                    cursor.given += 1;
                    return Some(self.command(rank, operation, list));
                }
            }
        }
    }

    fn got(&mut self, rank: u32, bytes: u64) {
        let phase = self.cursors[rank as usize].read_phase;
        if let Some(totals) = self.totals.get_mut(phase) {
            totals.read_bytes += bytes;
        }
    }

    fn reached(&mut self, rank: u32, now: Nanos) {
        self.cursors[rank as usize].now = now;
    }

    fn rank_count(&self) -> u32 {
        self.application.rank_count
    }

    fn communicators(&self) -> Vec<Vec<u32>> {
        let declared = self.application.communicators.iter().map(|group| group.ranks.clone());
        let alone = self.application.is_alone_somewhere();
        let alone = (0..self.application.rank_count).filter(|_| alone).map(|rank| vec![rank]);
        declared.chain(alone).collect()
    }

    fn communicator_of(&self, rank: u32, file: File) -> Communicator {
        let held = |entry: &&(FileRef, Within)| entry.0.of(rank) == file;
        let within = self.application.file_groups.iter().find(held);
        self.application.communicator(within.map_or(Within::World, |entry| entry.1), rank)
    }

    fn phases(&self) -> Vec<PhaseTotals> {
        self.totals.clone()
    }
}
