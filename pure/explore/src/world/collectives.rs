//! Collectives of groups: who has come to which, and whether all ranks hear the same of it.

use super::clients::Process;
use super::{Node, World};
use crate::marks::Mark;
use crate::shadow::{OpNumber, Tick};
use iolab_pfs::client::Outcome;
use iolab_pfs::{Code, Inode, Message, OpenNumber, Opened, Request, SessionId};
use std::collections::{BTreeMap, BTreeSet};

/// A collective of a group: who has come to it, and what it came to.
#[derive(Clone, Debug, Default)]
pub(super) struct Collective {
    called: BTreeSet<u32>,
    /// What which rank was told, and when its home told it that, if it did.
    answers: Vec<(u32, Code, Option<Tick>)>,
    pub(super) writes: Vec<(Inode, OpNumber)>,
    done_at: Option<Tick>,
}

/// What homes decide, as it can be seen from outside.
#[derive(Clone, Debug, Default)]
pub(super) struct Verdicts {
    /// Which collective of which group a request to a server is about.
    asked: BTreeMap<(u32, SessionId, Request), (OpenNumber, u64)>,
    /// When a home last told a session what that came to.
    told: BTreeMap<(OpenNumber, u64, SessionId), Tick>,
}

impl Verdicts {
    /// A rank has come to the home of its group.
    pub(super) fn asked(&mut self, server: u32, from: (SessionId, Request), message: &Message) {
        if let Message::Arrive { group, sequence, .. } = *message {
            self.asked.insert((server, from.0, from.1), (group, sequence));
        }
    }

    /// A home tells what that collective came to.
    pub(super) fn told(&mut self, server: u32, to: (SessionId, Request), now: Tick) {
        if let Some(&(group, sequence)) = self.asked.get(&(server, to.0, to.1)) {
            self.told.insert((group, sequence, to.0), now);
        }
    }
}

impl World {
    /// A process comes to the next collective of a file.
    pub(super) fn come_to_collective(
        &mut self,
        client: usize,
        slot: usize,
    ) -> Option<(usize, u64)> {
        let file = self.processes[client].files[slot].as_mut()?;
        file.collectives += 1;
        let (bulletin, sequence) = (file.bulletin, file.collectives);
        Some(self.come_to(client, bulletin, sequence))
    }

    pub(super) fn come_to(
        &mut self,
        client: usize,
        bulletin: usize,
        sequence: u64,
    ) -> (usize, u64) {
        let rank = self.processes[client].rank;
        let key = (bulletin, sequence);
        let collective = self.collectives.entry(key).or_default();
        collective.called.insert(rank);
        key
    }

    /// All ranks that are told hear the same of a collective, and none of success before all have come.
    pub(super) fn collective_ends(
        &mut self,
        client: usize,
        (key, is_close): ((usize, u64), bool),
        outcome: &Outcome,
    ) {
        let Process { rank, size, .. } = self.processes[client];
        let code = outcome.as_ref().map_or_else(|failure| failure.code, |_| Code::OK);
        let now = self.tick();
        let Some(Some(Opened { open, inode, .. })) = self.bulletins[key.0] else { return };
        let home = (inode.0 % u64::from(self.plan.servers)) as u32;
        // Who heard nothing does not know what it came to; rank 0 may fail to tell of a close.
        let out_of_sight = [Mark::TimedOut, Mark::SessionExpired, Mark::RankFailed]
            .iter()
            .any(|&mark| self.marks.count(mark) > 0);
        if code == Code::TIMED_OUT || code == Code::SESSION_LOST && out_of_sight {
            return;
        }
        // The manager may not be able to make it durable that the open has ended.
        if code == Code::IO && is_close && self.marks.count(Mark::JournalFailed) > 0 {
            return;
        }
        let session = self.session_of(Node::Client(client));
        let told = self.verdicts.told.get(&(open, key.1, session)).copied();
        let Some(collective) = self.collectives.get_mut(&key) else { return };
        let mut is_lost = false;
        let other = collective.answers.iter().find(|&&(_, other, then)| {
            // Nobody may be left who knows what a collective came to in an earlier life of its home.
            let is_excused = [code, other].contains(&Code::RANK_FAILED)
                && told.zip(then).is_some_and(|(told, then)| {
                    self.shadow.has_crashed(home, (told.min(then), told.max(then)))
                });
            is_lost |= other != code && is_excused;
            other != code && !is_excused
        });
        let other = other.map(|&(other, was, _)| (other, was));
        collective.answers.push((rank, code, told));
        if is_lost {
            self.marks.meet(Mark::VerdictLost);
        }
        if let Some((other, was)) = other {
            let what = format!(
                "collective {key:?} came to {} on rank {rank}, {} on rank {other}",
                code.0, was.0
            );
            return self.fail(what);
        }
        if code.is_ok() && collective.called.len() < size as usize {
            let called = collective.called.len();
            return self.fail(format!(
                "collective {key:?} is over on rank {rank} when {called} of {size} ranks have come"
            ));
        }
        if code.is_ok() && collective.done_at.is_none() {
            collective.done_at = Some(now);
            for (inode, op) in collective.writes.clone() {
                self.shadow.done(inode, op, now);
            }
        }
    }
}
