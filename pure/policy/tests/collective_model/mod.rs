//! Ranks that carry out collective machines by themselves: messages arrive in any order, and every
//! broken promise is reported. Messages of one tag between two ranks do not overtake each other, as
//! in MPI. Each rank is held to its laws; that a message carries what its receiver takes it for, and
//! that somebody waits for it, is seen here.

use iolab_policy::collective::{
    Action, Collective, CollectiveLaws, Event, HEADER_BYTES, Payload, Sizes,
};
use iolab_policy::{Laws, Machine};
use iolab_vocab::{Extent, Nanos, Random, Seed};
use std::collections::{BTreeMap, BTreeSet};

struct Rank {
    machine: Box<dyn Collective>,
    laws: CollectiveLaws,
    /// Whose data it has, directly or combined.
    knows: BTreeSet<u32>,
    awaited: Vec<(u32, u32, Payload)>,
    early: Vec<(u32, Message)>,
    has_begun: bool,
    is_last: bool,
    is_over: bool,
}

#[derive(Clone, Debug)]
struct Message {
    tag: u32,
    what: Payload,
    bytes: u64,
    knows: BTreeSet<u32>,
}

/// What one call came to.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) messages: u64,
    pub(crate) wire_bytes: u64,
    /// Most rounds with transfers that any rank had.
    pub(crate) rounds: u64,
    /// Per rank, whose data it has at the end.
    pub(crate) knows: Vec<BTreeSet<u32>>,
    /// Payload that each rank received from each other, by whether its tag is odd.
    pub(crate) received: BTreeMap<(u32, u32, bool), u64>,
    /// File accesses and data messages per rank, in their order.
    pub(crate) history: Vec<Vec<Deed>>,
}

/// What matters of a rank's doings for the bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Read(Vec<Extent>),
    Wrote(Vec<Extent>),
    Sent { to: u32, tag: u32, bytes: u64 },
    Received { from: u32, tag: u32, bytes: u64 },
}

pub(crate) struct World {
    ranks: Vec<Rank>,
    sizes: Sizes,
    on_the_way: Vec<(u32, u32, Message)>,
    random: Random,
    rounds: Vec<u64>,
    outcome: Outcome,
}

impl World {
    /// Each rank's machine with its laws; payload is measured by `sizes`.
    pub(crate) fn new(
        machines: Vec<(Box<dyn Collective>, CollectiveLaws)>,
        sizes: Sizes,
        seed: u64,
    ) -> World {
        let count = machines.len();
        let rank = |(index, (machine, laws))| Rank {
            machine,
            laws,
            knows: BTreeSet::from([index as u32]),
            awaited: Vec::new(),
            early: Vec::new(),
            has_begun: false,
            is_last: false,
            is_over: false,
        };
        World {
            ranks: machines.into_iter().enumerate().map(rank).collect(),
            sizes,
            on_the_way: Vec::new(),
            random: Random::new(Seed(seed)),
            rounds: vec![0; count],
            outcome: Outcome { history: vec![Vec::new(); count], ..Outcome::default() },
        }
    }

    /// Lets ranks and messages move in random order until nothing can.
    pub(crate) fn run(mut self) -> Result<Outcome, String> {
        for _ in 0..1_000_000 {
            let ready: Vec<u32> = self.ready().collect();
            let count = ready.len() + self.on_the_way.len();
            if count == 0 {
                return self.end();
            }
            let index = self.random.below(count as u64) as usize;
            match ready.get(index) {
                Some(&rank) => self.step(rank)?,
                None => self.arrive(index - ready.len())?,
            }
        }
        Err("the ranks never come to an end".to_owned())
    }

    fn ready(&self) -> impl Iterator<Item = u32> {
        let is_ready = |rank: &Rank| !rank.is_over && rank.awaited.is_empty();
        let ranks = self.ranks.iter().enumerate().filter(move |(_, rank)| is_ready(rank));
        ranks.map(|(index, _)| index as u32)
    }

    fn step(&mut self, rank: u32) -> Result<(), String> {
        let state = &mut self.ranks[rank as usize];
        if state.is_last {
            state.is_over = true;
            return Ok(());
        }
        let event = match std::mem::replace(&mut state.has_begun, true) {
            false => Event::Began,
            true => Event::RoundCompleted,
        };
        let mut actions = Vec::new();
        state.machine.step(Nanos::ZERO, event, &mut actions);
        state.laws.check(Nanos::ZERO, &event, &actions)?;
        let transfers = actions.iter().filter(|action| **action != Action::Finish).count();
        self.rounds[rank as usize] += u64::from(transfers > 0);
        for action in actions {
            self.carry_out(rank, action)?;
        }
        Ok(())
    }

    fn carry_out(&mut self, rank: u32, action: Action) -> Result<(), String> {
        let state = &mut self.ranks[rank as usize];
        let history = &mut self.outcome.history[rank as usize];
        match action {
            Action::Send { to, tag, what } => {
                let bytes = what.wire_bytes(&self.sizes).expect("the laws have seen to that");
                self.outcome.messages += 1;
                self.outcome.wire_bytes += bytes;
                history.push(Deed::Sent { to, tag, bytes: bytes - HEADER_BYTES });
                let message = Message { tag, what, bytes, knows: state.knows.clone() };
                self.on_the_way.push((rank, to, message));
            }
            Action::Receive { from, tag, what } => {
                let is_it = |(sender, early): &(u32, Message)| *sender == from && early.tag == tag;
                match state.early.iter().position(is_it) {
                    Some(index) => {
                        let (_, message) = state.early.remove(index);
                        self.receive(from, rank, message, what)?;
                    }
                    None => state.awaited.push((from, tag, what)),
                }
            }
            Action::ReadFile(extents) => history.push(Deed::Read(extents)),
            Action::WriteFile(extents) | Action::PostWrite(extents) => {
                history.push(Deed::Wrote(extents));
            }
            Action::Finish => state.is_last = true,
        }
        Ok(())
    }

    fn receive(
        &mut self,
        from: u32,
        rank: u32,
        message: Message,
        awaited: Payload,
    ) -> Result<(), String> {
        if message.what != awaited {
            let what = message.what;
            return Err(format!("rank {rank} awaits {awaited:?} of {from}, which sent {what:?}"));
        }
        let bytes = message.bytes - HEADER_BYTES;
        let key = (from, rank, message.tag % 2 == 1);
        *self.outcome.received.entry(key).or_default() += bytes;
        let deed = Deed::Received { from, tag: message.tag, bytes };
        self.outcome.history[rank as usize].push(deed);
        self.ranks[rank as usize].knows.extend(message.knows);
        Ok(())
    }

    fn arrive(&mut self, index: usize) -> Result<(), String> {
        let lane = |(from, to, message): &(u32, u32, Message)| (*from, *to, message.tag);
        let wanted = lane(&self.on_the_way[index]);
        let first = self.on_the_way.iter().position(|other| lane(other) == wanted);
        let (from, to, message) = self.on_the_way.remove(first.unwrap_or(index));
        let state = &mut self.ranks[to as usize];
        let is_it = |awaited: &(u32, u32, Payload)| (awaited.0, awaited.1) == (from, message.tag);
        match state.awaited.iter().position(is_it) {
            Some(index) => {
                let (_, _, awaited) = state.awaited.remove(index);
                return self.receive(from, to, message, awaited);
            }
            None => state.early.push((from, message)),
        }
        Ok(())
    }

    fn end(mut self) -> Result<Outcome, String> {
        for (index, rank) in self.ranks.iter().enumerate() {
            if !rank.is_over {
                return Err(format!("rank {index} waits for ever for {:?}", rank.awaited));
            }
            if let Some((from, message)) = rank.early.first() {
                return Err(format!("rank {index} never received {message:?} of rank {from}"));
            }
        }
        self.outcome.knows = self.ranks.into_iter().map(|rank| rank.knows).collect();
        self.outcome.rounds = self.rounds.into_iter().max().unwrap_or(0);
        Ok(self.outcome)
    }
}
