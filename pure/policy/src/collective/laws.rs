//! The discipline of collective machines, rank by rank.
//!
//! **The driver** says `Began` first, then `RoundCompleted` after each round but the last, and
//! nothing after that. **The machine** names ranks that exist and are others, ends a round with
//! `Finish` or not at all, and accesses a file only in a collective access. Its messages carry what
//! it has: its own data, and what came or was read in rounds before, for what comes in this round
//! may not be there yet; messages of one tag between two ranks do not overtake each other. When it finishes, it has what the call promises it, and has given away or
//! written what others are promised by it.

use super::{Action, Collective, CollectiveKind, Event, FileCall, Payload, Ranks, Shape, Sizes};
use crate::extents::Covered;
use crate::machine::{Checked, Laws};
use iolab_vocab::{Direction, Extent, Nanos};
use std::collections::BTreeSet;

/// One rank of one call, as far as its discipline goes.
#[derive(Debug)]
pub struct CollectiveLaws {
    kind: CollectiveKind,
    rank: u32,
    rank_count: u32,
    root: u32,
    sizes: Sizes,
    phase: Phase,
    /// Whether all payload was named; of what is opaque nobody knows who has it.
    is_named: bool,
    has: Having,
    /// What comes or is read in this round.
    coming: Vec<Coming>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    New,
    Running,
    Finished,
}

/// What a rank has at the beginning of a round.
#[derive(Debug, Default)]
struct Having {
    /// Parts of the vector.
    vector: Covered,
    /// Blocks of ranks; where each rank has one for each, those for this rank.
    blocks: BTreeSet<u32>,
    /// Ranks whose contributions are combined.
    combined: BTreeSet<u32>,
    /// Bytes of the file, whoever wants them.
    bytes: Covered,
    /// Those among them that this rank wanted and got, or had to write and gave away.
    settled: Covered,
}

#[derive(Debug)]
enum Coming {
    Message { from: u32, what: Payload },
    Extents(Vec<Extent>),
}

/// Holds the machine of one rank of a command of messages to its discipline.
pub fn checked(
    kind: CollectiveKind,
    shape: Shape,
    machine: Box<dyn Collective>,
) -> Box<dyn Collective> {
    Box::new(Checked::new(machine, CollectiveLaws::new(kind, shape)))
}

/// Holds the machine of one rank of a collective access to its discipline.
pub fn checked_file(call: &FileCall, machine: Box<dyn Collective>) -> Box<dyn Collective> {
    Box::new(Checked::new(machine, CollectiveLaws::of_file(call)))
}

impl CollectiveLaws {
    /// Of one rank of a command of messages.
    pub fn new(kind: CollectiveKind, shape: Shape) -> CollectiveLaws {
        let Shape { rank, rank_count, root, bytes, .. } = shape;
        let mut has = Having::default();
        has.blocks.insert(rank);
        has.combined.insert(rank);
        if kind == CollectiveKind::Broadcast && rank == root {
            has.vector.insert(Extent::new(0, bytes));
        }
        CollectiveLaws::start(kind, rank, rank_count, root, Sizes::of(shape), has)
    }

    /// Of one rank of a collective access.
    pub fn of_file(call: &FileCall) -> CollectiveLaws {
        let (access, rank) = (&call.access, call.rank);
        let mut has = Having::default();
        if access.direction == Direction::Write {
            let wanted = &access.wanted[rank as usize];
            wanted.within(wanted.span()).for_each(|part| has.bytes.insert(part));
        }
        let rank_count = access.wanted.len() as u32;
        CollectiveLaws::start(CollectiveKind::File, rank, rank_count, 0, Sizes::of_file(call), has)
    }

    fn start(
        kind: CollectiveKind,
        rank: u32,
        rank_count: u32,
        root: u32,
        sizes: Sizes,
        has: Having,
    ) -> CollectiveLaws {
        let (phase, coming) = (Phase::New, Vec::new());
        CollectiveLaws { kind, rank, rank_count, root, sizes, phase, is_named: true, has, coming }
    }

    fn everyone(&self) -> Ranks {
        Ranks { first: 0, count: self.rank_count }
    }

    fn has_all(&self, set: &BTreeSet<u32>, ranks: Ranks) -> bool {
        ranks.iter(self.rank_count).all(|rank| set.contains(&rank))
    }

    /// All contributions are here, in whatever form.
    fn has_result(&self) -> bool {
        self.has_all(&self.has.combined, self.everyone())
            || self.has_all(&self.has.blocks, self.everyone())
    }

    fn has_own_blocks_for_all(&self) -> bool {
        match self.kind {
            CollectiveKind::Scatter => self.rank == self.root,
            kind => kind == CollectiveKind::Alltoall,
        }
    }

    fn arrive(&mut self) {
        for coming in std::mem::take(&mut self.coming) {
            match coming {
                Coming::Extents(extents) => extents.into_iter().for_each(|extent| {
                    self.has.bytes.insert(extent);
                    self.has.settled.insert(extent);
                }),
                Coming::Message { from, what } => self.message_arrived(from, what),
            }
        }
    }

    fn message_arrived(&mut self, from: u32, what: Payload) {
        match what {
            Payload::Vector(part) => self.has.vector.insert(part),
            Payload::Combined(ranks) => self.has.combined.extend(ranks.iter(self.rank_count)),
            Payload::Blocks(_)
                if matches!(self.kind, CollectiveKind::Scatter | CollectiveKind::Alltoall) =>
            {
                _ = self.has.blocks.insert(from);
            }
            Payload::Blocks(ranks) => self.has.blocks.extend(ranks.iter(self.rank_count)),
            Payload::Pieces { of, within } => {
                for part in self.sizes.pieces(of, within).collect::<Vec<_>>() {
                    self.has.bytes.insert(part);
                    if of == self.rank {
                        self.has.settled.insert(part);
                    }
                }
            }
            Payload::Nothing | Payload::List { .. } | Payload::Opaque(_) => {}
        }
    }

    fn told(&mut self, event: &Event) -> Result<(), String> {
        match (event, self.phase) {
            (Event::Began, Phase::New) => self.phase = Phase::Running,
            (Event::RoundCompleted, Phase::Running) => self.arrive(),
            (_, phase) => return Err(format!("a call that is {phase:?} was told {event:?}")),
        }
        Ok(())
    }

    fn take(&mut self, action: &Action) -> Result<(), String> {
        if self.phase == Phase::Finished {
            return Err(format!("{action:?} comes behind Finish"));
        }
        match action {
            Action::Send { to, what, .. } => {
                self.is_possible(*to, *what)?;
                self.send(*to, *what)
            }
            Action::Receive { from, what, .. } => {
                self.is_possible(*from, *what)?;
                self.coming.push(Coming::Message { from: *from, what: *what });
                Ok(())
            }
            Action::ReadFile(extents) => {
                self.may_access(Direction::Read)?;
                self.coming.push(Coming::Extents(extents.clone()));
                Ok(())
            }
            Action::WriteFile(extents) | Action::PostWrite(extents) => self.write(extents),
            Action::Finish => {
                self.phase = Phase::Finished;
                Ok(())
            }
        }
    }

    fn is_possible(&mut self, partner: u32, what: Payload) -> Result<(), String> {
        let (rank, count) = (self.rank, self.rank_count);
        if partner >= count || partner == rank {
            return Err(format!("rank {rank} of {count} talks to rank {partner}"));
        }
        self.is_named &= !matches!(what, Payload::Opaque(_));
        let is_possible = match what {
            Payload::Vector(part) => part.end() <= self.sizes.bytes,
            Payload::Combined(ranks) | Payload::Blocks(ranks) => {
                ranks.first < count && ranks.count <= count
            }
            _ => true,
        };
        match is_possible && what.wire_bytes(&self.sizes).is_some() {
            true => Ok(()),
            false => Err(format!("there is no {what:?} in {} of {count} ranks", self.kind.name())),
        }
    }

    fn send(&mut self, to: u32, what: Payload) -> Result<(), String> {
        let has = match what {
            Payload::Vector(part) => self.has.vector.contains(part) || self.has_result(),
            Payload::Combined(ranks) => self.has_all(&self.has.combined, ranks),
            Payload::Blocks(ranks) => {
                self.has_own_blocks_for_all() || self.has_all(&self.has.blocks, ranks)
            }
            Payload::Pieces { of, within } => {
                let parts = || self.sizes.pieces(of, within);
                let has = parts().all(|part| self.has.bytes.contains(part));
                if of == self.rank {
                    parts().for_each(|part| self.has.settled.insert(part));
                }
                has
            }
            Payload::Nothing | Payload::List { .. } | Payload::Opaque(_) => true,
        };
        match has || !self.is_named {
            true => Ok(()),
            false => {
                Err(format!("rank {} sends {what:?} to {to}, but does not have it", self.rank))
            }
        }
    }

    fn write(&mut self, extents: &[Extent]) -> Result<(), String> {
        self.may_access(Direction::Write)?;
        if self.is_named
            && let Some(foreign) = extents.iter().find(|extent| !self.has.bytes.contains(**extent))
        {
            return Err(format!("rank {} writes {foreign}, but does not have it", self.rank));
        }
        extents.iter().for_each(|extent| self.has.settled.insert(*extent));
        Ok(())
    }

    fn may_access(&self, direction: Direction) -> Result<(), String> {
        let access = self.sizes.access.as_ref();
        match access.is_some_and(|access| access.direction == direction) {
            true => Ok(()),
            false => Err(format!("{direction:?} of a file in {}", self.kind.name())),
        }
    }

    /// Whether a call may end that brings what is still coming.
    fn check_end(&mut self) -> Result<(), String> {
        self.arrive();
        let has = &self.has;
        let is_root = self.rank == self.root;
        let whole = Extent::new(0, self.sizes.bytes);
        let is_kept = match self.kind {
            CollectiveKind::Broadcast => has.vector.contains(whole),
            CollectiveKind::Reduce => !is_root || self.has_result(),
            CollectiveKind::Allreduce => has.vector.contains(whole) || self.has_result(),
            CollectiveKind::Gather => !is_root || self.has_all(&has.blocks, self.everyone()),
            CollectiveKind::Scatter => is_root || has.blocks.contains(&self.root),
            CollectiveKind::Allgather | CollectiveKind::Alltoall => {
                self.has_all(&has.blocks, self.everyone())
            }
            CollectiveKind::Barrier => true,
            CollectiveKind::File => {
                let all = Extent::new(0, u64::MAX);
                self.sizes.pieces(self.rank, all).all(|part| has.settled.contains(part))
            }
        };
        match is_kept || !self.is_named {
            true => Ok(()),
            false => Err(format!("rank {} finishes without what it was promised", self.rank)),
        }
    }
}

impl Laws for CollectiveLaws {
    type Event = Event;
    type Action = Action;

    fn check(&mut self, _now: Nanos, event: &Event, actions: &[Action]) -> Result<(), String> {
        self.told(event)?;
        actions.iter().try_for_each(|action| self.take(action))?;
        match self.phase {
            Phase::Finished => self.check_end(),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Access, Wanted};
    use super::*;
    use std::sync::Arc;

    type Rounds<'a> = &'a [&'a [Action]];

    /// What a machine breaks by these rounds.
    fn broken(mut laws: CollectiveLaws, rounds: Rounds<'_>) -> Option<String> {
        let events = std::iter::once(Event::Began).chain(std::iter::repeat(Event::RoundCompleted));
        let mut steps = events.zip(rounds);
        steps.find_map(|(event, actions)| laws.check(Nanos::ZERO, &event, actions).err())
    }

    fn messages(kind: CollectiveKind, rank: u32) -> CollectiveLaws {
        let shape = Shape { rank, rank_count: 3, root: 0, bytes: 8, eager_bytes: 0 };
        CollectiveLaws::new(kind, shape)
    }

    fn send(to: u32, what: Payload) -> Action {
        Action::Send { to, tag: 0, what }
    }

    fn receive(from: u32, what: Payload) -> Action {
        Action::Receive { from, tag: 0, what }
    }

    fn block(rank: u32) -> Payload {
        Payload::Blocks(Ranks::one(rank))
    }

    /// Rank 0 of two wants the first 10 bytes, rank 1 the next 10.
    fn access(direction: Direction) -> CollectiveLaws {
        let wanted =
            [0, 10].map(|from| Wanted::new(vec![Extent::new(from, 10)])).into_iter().collect();
        let access = Arc::new(Access { direction, wanted });
        let call = FileCall { access, rank: 0, buffer_bytes: 100, costs: None };
        CollectiveLaws::of_file(&call)
    }

    fn pieces(of: u32) -> Payload {
        Payload::Pieces { of, within: Extent::new(0, 20) }
    }

    const WHOLE: Payload = Payload::Vector(Extent::new(0, 8));

    #[test]
    fn whoever_has_what_it_sends_and_ends_with_what_it_was_promised_breaks_nothing() {
        let (finish, nothing) = (Action::Finish, Payload::Nothing);
        let relay: Rounds = &[&[receive(0, WHOLE)], &[send(2, WHOLE), finish.clone()]];
        assert_eq!(broken(messages(CollectiveKind::Broadcast, 1), relay), None);
        let ring: Rounds = &[
            &[receive(2, block(2)), send(0, block(1))],
            &[receive(2, block(0)), send(0, block(2)), finish.clone()],
        ];
        assert_eq!(broken(messages(CollectiveKind::Allgather, 1), ring), None);
        let barrier: Rounds = &[&[send(0, nothing), receive(0, nothing), finish.clone()]];
        assert_eq!(broken(messages(CollectiveKind::Barrier, 1), barrier), None);
        let both: Rounds =
            &[&[Action::ReadFile(vec![Extent::new(0, 20)])], &[send(1, pieces(1)), finish.clone()]];
        assert_eq!(broken(access(Direction::Read), both), None);
        let both: Rounds = &[
            &[receive(1, pieces(1))],
            &[Action::WriteFile(vec![Extent::new(0, 20)])],
            std::slice::from_ref(&finish),
        ];
        assert_eq!(broken(access(Direction::Write), both), None);
        let opaque: Rounds = &[&[send(0, Payload::Opaque(9)), finish]];
        assert_eq!(broken(messages(CollectiveKind::Gather, 1), opaque), None);
    }

    #[test]
    fn each_law_that_a_machine_breaks_is_named() {
        let finish = Action::Finish;
        let combined = Payload::Combined(Ranks { first: 1, count: 2 });
        let long = Payload::Vector(Extent::new(1, 8));
        let read = |from| Action::ReadFile(vec![Extent::new(from, 10)]);
        let write = |from| Action::WriteFile(vec![Extent::new(from, 10)]);
        let (reads, writes) = (|| access(Direction::Read), || access(Direction::Write));
        let many: [(CollectiveLaws, Rounds, &str); 17] = [
            (messages(CollectiveKind::Barrier, 1), &[&[send(3, WHOLE)]], "talks to rank 3"),
            (messages(CollectiveKind::Barrier, 1), &[&[receive(1, WHOLE)]], "talks to rank 1"),
            (
                messages(CollectiveKind::Barrier, 1),
                &[&[finish.clone(), send(0, WHOLE)]],
                "behind Finish",
            ),
            (messages(CollectiveKind::Broadcast, 0), &[&[send(1, long)]], "there is no"),
            (messages(CollectiveKind::Gather, 1), &[&[send(0, block(3))]], "there is no"),
            (messages(CollectiveKind::Gather, 1), &[&[send(0, pieces(1))]], "there is no"),
            (messages(CollectiveKind::Gather, 1), &[&[read(0)]], "of a file in gather"),
            (
                messages(CollectiveKind::Broadcast, 1),
                &[&[receive(0, WHOLE), send(2, WHOLE)]],
                "does not have",
            ),
            (messages(CollectiveKind::Allgather, 1), &[&[send(0, block(2))]], "does not have"),
            (messages(CollectiveKind::Reduce, 1), &[&[send(0, combined)]], "does not have"),
            (
                messages(CollectiveKind::Broadcast, 1),
                &[std::slice::from_ref(&finish)],
                "what it was promised",
            ),
            (
                messages(CollectiveKind::Reduce, 0),
                &[&[receive(1, block(1)), finish.clone()]],
                "promised",
            ),
            (
                messages(CollectiveKind::Alltoall, 0),
                &[&[receive(1, block(0)), finish.clone()]],
                "promised",
            ),
            (reads(), &[&[read(0), send(1, pieces(1))]], "does not have"),
            (reads(), &[&[write(0)]], "Write of a file in file"),
            (reads(), &[&[read(10)], std::slice::from_ref(&finish)], "what it was promised"),
            (writes(), &[&[receive(1, pieces(1)), write(10)]], "does not have"),
        ];
        for (laws, rounds, law) in many {
            let told = broken(laws, rounds).unwrap_or_else(|| panic!("{law}: {rounds:?}"));
            assert!(told.contains(law), "{told} instead of {law}");
        }
    }

    #[test]
    fn a_driver_begins_once_and_stops_at_the_end() {
        let finish = [Action::Finish];
        let mut laws = messages(CollectiveKind::Barrier, 0);
        assert!(laws.check(Nanos::ZERO, &Event::RoundCompleted, &[]).is_err());
        assert!(laws.check(Nanos::ZERO, &Event::Began, &[]).is_ok());
        assert!(laws.check(Nanos::ZERO, &Event::Began, &[]).is_err());
        assert!(laws.check(Nanos::ZERO, &Event::RoundCompleted, &finish).is_ok());
        assert!(laws.check(Nanos::ZERO, &Event::RoundCompleted, &[]).is_err());
    }
}
