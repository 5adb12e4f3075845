//! The program of a cell: its ranks open a file, write it, sync it and read it, as far as they are to, each part
//! behind a barrier, by one of the two ways of collective I/O.

use super::two_phase::Exchange;
use super::work::{Part, RANKS, Work};
use crate::file_system::Costs;
use crate::program::{Command, FileOperation, Program, WORLD, What};
use iolab_pattern::Nest;
use iolab_vocab::{Direction, Extent, Nanos, Refusal};

/// How ranks access a file together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The file system's own: each rank sends its bytes to the servers, which scatter them.
    Direct,
    /// Two phases: ranks exchange bytes, then each accesses one contiguous domain.
    TwoPhase,
}

/// What a step of a program belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Before,
    Write,
    Sync,
    Read,
    Again,
}

/// A part of a program, which ends when all ranks have met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Everything is written; if that is said, each call ends when servers have it.
    Write { is_flushed: bool },
    /// What was written goes to devices.
    Sync,
    /// Everything is read.
    Read,
    /// And once more.
    ReadAgain,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Open,
    Close,
    /// All wait for the slowest; for a round of two phases that is waiting for servers.
    Meet,
    Sync,
    /// A collective access of the file system's own.
    Together(Direction, u64),
    /// Lists of runs go to the aggregators of a call.
    Lists(u64),
    /// A rank's own bytes leave its memory, or come there.
    Own(u64, u64),
    /// All exchange the bytes of a round.
    Exchange(Direction, u64, u64),
    /// An aggregator's buffer is filled, or emptied, run by run.
    Buffer(u64, u64),
    /// An aggregator accesses its piece.
    Piece(Direction, u64, u64),
}

impl Step {
    /// Whether its time is that of the exchange among ranks.
    fn is_shuffle(self) -> bool {
        matches!(self, Step::Lists(_) | Step::Own(..) | Step::Exchange(..) | Step::Buffer(..))
    }
}

/// How long the two ways' parts took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Spent {
    /// From the first rank's begin to the last one's end.
    pub(super) seconds: f64,
    /// In the exchange among ranks, mean over ranks.
    pub(super) shuffle_seconds: f64,
}

/// See the module.
pub(super) struct CellProgram {
    work: Work,
    costs: Costs,
    steps: Vec<(Phase, Step)>,
    /// Calls of the program, the one under way and the one before it: ranks are at most one apart.
    exchanges: Vec<(u64, Exchange)>,
    /// By rank: what it accesses together with the others.
    parts: Vec<Option<Part>>,
    /// By rank: how many steps it has begun, and when the last one.
    at: Vec<(usize, Nanos)>,
    /// By phase: first begin, last end, nanoseconds of all ranks in the exchange.
    times: [(Option<Nanos>, Nanos, u64); 5],
    /// Bytes that ranks have sent each other, those to themselves left out.
    exchanged_bytes: u64,
    failed: Option<Refusal>,
}

impl CellProgram {
    pub(super) fn new(work: Work, method: Method, costs: Costs, stages: &[Stage]) -> CellProgram {
        let mut steps = vec![(Phase::Before, Step::Open), (Phase::Before, Step::Meet)];
        for &stage in stages {
            let (phase, direction) = match stage {
                Stage::Write { .. } => (Phase::Write, Some(Direction::Write)),
                Stage::Sync => (Phase::Sync, None),
                Stage::Read => (Phase::Read, Some(Direction::Read)),
                Stage::ReadAgain => (Phase::Again, Some(Direction::Read)),
            };
            let calls = direction.map_or(0, |_| work.calls());
            for (direction, call) in direction.into_iter().cycle().zip(0..calls) {
                let mut more = match method {
                    Method::Direct => vec![Step::Together(direction, call)],
                    Method::TwoPhase => two_phases(work, direction, call),
                };
                if stage == (Stage::Write { is_flushed: true }) {
                    more.push(Step::Sync);
                }
                steps.extend(more.into_iter().map(|step| (phase, step)));
            }
            if stage == Stage::Sync {
                steps.push((phase, Step::Sync));
            }
            steps.push((Phase::Before, Step::Meet));
        }
        steps.push((Phase::Before, Step::Close));
        CellProgram {
            work,
            costs,
            steps,
            exchanges: Vec::new(),
            parts: vec![None; RANKS as usize],
            at: vec![(0, Nanos::ZERO); RANKS as usize],
            times: [(None, Nanos::ZERO, 0); 5],
            exchanged_bytes: 0,
            failed: None,
        }
    }

    /// How long the write, the sync, the read and the second read took.
    pub(super) fn spent(&self) -> [Spent; 4] {
        [Phase::Write, Phase::Sync, Phase::Read, Phase::Again].map(|phase| {
            let (start, end, shuffle_nanos) = self.times[phase as usize];
            Spent {
                seconds: start.map_or(0.0, |start| end.since(start).seconds()),
                shuffle_seconds: Nanos(shuffle_nanos).seconds() / f64::from(RANKS),
            }
        })
    }

    /// Bytes that ranks have sent each other.
    pub(super) fn exchanged_bytes(&self) -> u64 {
        self.exchanged_bytes
    }

    /// A set that could not be made.
    pub(super) fn failed(&self) -> Option<&Refusal> {
        self.failed.as_ref()
    }

    fn exchange(&mut self, call: u64) -> Result<&Exchange, Refusal> {
        if let Some(at) = self.exchanges.iter().position(|one| one.0 == call) {
            return Ok(&self.exchanges[at].1);
        }
        self.exchanges.retain(|one| one.0 + 1 == call);
        self.exchanges.push((call, Exchange::new(self.work, call)?));
        Ok(&self.exchanges[self.exchanges.len() - 1].1)
    }

    /// The command of a step, or none if this rank has nothing to do in it.
    fn command(
        &mut self,
        rank: u32,
        step: Step,
        list: &mut Vec<Extent>,
    ) -> Result<Option<Command>, Refusal> {
        let costs = self.costs;
        let access =
            |direction, is_collective| FileOperation::access(direction, is_collective).of(0);
        Ok(Some(match step {
            Step::Open => FileOperation::Open.of(0),
            Step::Close => FileOperation::Close.of(0),
            Step::Sync => FileOperation::Sync.of(0),
            Step::Meet => What::barrier(WORLD).awaited(),
            Step::Together(direction, call) => {
                self.parts[rank as usize] = Some(self.work.part(rank, call)?);
                access(direction, true)
            }
            Step::Lists(call) => {
                let exchange = self.exchange(call)?;
                list.extend(exchange.lists(rank).map(|bytes| Extent::new(0, bytes)));
                What::Alltoallv { communicator: WORLD }.awaited()
            }
            Step::Exchange(direction, call, round) => {
                let exchange = self.exchange(call)?;
                let bytes = |other| match direction {
                    Direction::Write => exchange.between(rank, other, round),
                    Direction::Read => exchange.between(other, rank, round),
                };
                list.extend((0..RANKS).map(|other| Extent::new(0, bytes(other))));
                let to_others: u64 = (0..RANKS).filter(|other| *other != rank).map(bytes).sum();
                self.exchanged_bytes += to_others;
                What::Alltoallv { communicator: WORLD }.awaited()
            }
            Step::Own(call, round) => {
                computed(self.exchange(call)?.own_seconds(rank, round, &costs))
            }
            Step::Buffer(call, round) => {
                computed(self.exchange(call)?.buffer_seconds(rank, round, &costs))
            }
            Step::Piece(direction, call, round) => {
                let piece = self.exchange(call)?.piece(rank, round);
                if piece.is_empty() {
                    return Ok(None);
                }
                list.push(piece);
                access(direction, false)
            }
        }))
    }
}

/// Instructions per second of the platform's nodes.
const SPEED: f64 = 1e6;

fn computed(seconds: f64) -> Command {
    What::Compute { instructions: seconds * SPEED }.awaited()
}

fn two_phases(work: Work, direction: Direction, call: u64) -> Vec<Step> {
    let mut steps = vec![Step::Lists(call)];
    for round in 0..Exchange::rounds(work) {
        let exchange = Step::Exchange(direction, call, round);
        let (own, buffer) = (Step::Own(call, round), Step::Buffer(call, round));
        let piece = Step::Piece(direction, call, round);
        // No rank is ahead of a slow server: in the next round all wait for all anyway.
        steps.extend(match direction {
            Direction::Write => [own, exchange, buffer, piece, Step::Meet],
            Direction::Read => [piece, Step::Meet, buffer, exchange, own],
        });
    }
    steps
}

impl Program for CellProgram {
    fn next(&mut self, rank: u32, list: &mut Vec<Extent>) -> Option<Command> {
        loop {
            let (begun, _) = &mut self.at[rank as usize];
            let &(_, step) = self.steps.get(*begun)?;
            *begun += 1;
            match self.command(rank, step, list) {
                Ok(None) => {}
                Ok(command) => return command,
                Err(refusal) => {
                    self.failed.get_or_insert(refusal);
                    return None;
                }
            }
        }
    }

    fn view(&self, rank: u32) -> Option<(Nest, u64, u64)> {
        self.parts[rank as usize].as_ref().map(Part::view)
    }

    fn reached(&mut self, rank: u32, now: Nanos) {
        let (begun, since) = &mut self.at[rank as usize];
        let since = std::mem::replace(since, now);
        let Some(&(phase, step)) = begun.checked_sub(1).and_then(|last| self.steps.get(last))
        else {
            return;
        };
        let (start, end, shuffle_nanos) = &mut self.times[phase as usize];
        let first = start.get_or_insert(since);
        *first = (*first).min(since);
        *end = (*end).max(now);
        if step.is_shuffle() {
            *shuffle_nanos += now.since(since).0;
        }
    }

    fn rank_count(&self) -> u32 {
        RANKS
    }
}
