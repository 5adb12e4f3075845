//! Ranks that carry out collective machines by themselves: messages arrive in any order, rounds
//! settle when they are complete, and every broken promise is reported.

use iolab_policy::collective::{Action, Collective, Event, HEADER_BYTES};
use iolab_vocab::{Extent, Random, Seed};
use std::collections::{BTreeMap, BTreeSet};

struct Rank {
    machine: Box<dyn Collective>,
    /// Whose data it has, directly or combined.
    knows: BTreeSet<u32>,
    awaited: Vec<(u32, u32)>,
    early: Vec<(u32, Message)>,
    has_begun: bool,
    is_last: bool,
    is_over: bool,
}

#[derive(Clone, Debug)]
struct Message {
    tag: u32,
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
    on_the_way: Vec<(u32, u32, Message)>,
    random: Random,
    rounds: Vec<u64>,
    outcome: Outcome,
}

impl World {
    pub(crate) fn new(machines: Vec<Box<dyn Collective>>, seed: u64) -> World {
        let count = machines.len();
        let rank = |(index, machine)| Rank {
            machine,
            knows: BTreeSet::from([index as u32]),
            awaited: Vec::new(),
            early: Vec::new(),
            has_begun: false,
            is_last: false,
            is_over: false,
        };
        World {
            ranks: machines.into_iter().enumerate().map(rank).collect(),
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
                None => self.arrive(index - ready.len()),
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
            true => Event::Settled,
        };
        let mut actions = Vec::new();
        state.machine.step(event, &mut actions);
        let transfers = actions.iter().filter(|action| **action != Action::Finish).count();
        self.rounds[rank as usize] += u64::from(transfers > 0);
        for action in actions {
            self.carry_out(rank, action)?;
        }
        Ok(())
    }

    fn carry_out(&mut self, rank: u32, action: Action) -> Result<(), String> {
        let count = self.ranks.len() as u32;
        let state = &mut self.ranks[rank as usize];
        let history = &mut self.outcome.history[rank as usize];
        match action {
            Action::Send { to, .. } | Action::Receive { from: to, .. }
                if to >= count || to == rank =>
            {
                return Err(format!("rank {rank} of {count} talks to {to}"));
            }
            Action::Send { bytes, .. } if bytes < HEADER_BYTES => {
                return Err(format!("a message of {bytes} bytes has no header"));
            }
            Action::Send { to, tag, bytes } => {
                self.outcome.messages += 1;
                self.outcome.wire_bytes += bytes;
                history.push(Deed::Sent { to, tag, bytes: bytes - HEADER_BYTES });
                let message = Message { tag, bytes, knows: state.knows.clone() };
                self.on_the_way.push((rank, to, message));
            }
            Action::Receive { from, tag } => {
                let is_it = |(sender, early): &(u32, Message)| *sender == from && early.tag == tag;
                match state.early.iter().position(is_it) {
                    Some(index) => {
                        let (_, message) = state.early.remove(index);
                        self.receive(from, rank, message);
                    }
                    None => state.awaited.push((from, tag)),
                }
            }
            Action::ReadFile => history.push(Deed::Read(state.machine.extents().to_vec())),
            Action::WriteFile | Action::PostWrite => {
                history.push(Deed::Wrote(state.machine.extents().to_vec()))
            }
            Action::Finish => state.is_last = true,
        }
        Ok(())
    }

    fn receive(&mut self, from: u32, rank: u32, message: Message) {
        let bytes = message.bytes - HEADER_BYTES;
        let key = (from, rank, message.tag % 2 == 1);
        *self.outcome.received.entry(key).or_default() += bytes;
        let deed = Deed::Received { from, tag: message.tag, bytes };
        self.outcome.history[rank as usize].push(deed);
        self.ranks[rank as usize].knows.extend(message.knows);
    }

    fn arrive(&mut self, index: usize) {
        let (from, to, message) = self.on_the_way.swap_remove(index);
        let state = &mut self.ranks[to as usize];
        match state.awaited.iter().position(|awaited| *awaited == (from, message.tag)) {
            Some(index) => {
                state.awaited.swap_remove(index);
                self.receive(from, to, message);
            }
            None => state.early.push((from, message)),
        }
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
