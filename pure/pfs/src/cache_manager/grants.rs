//! What servers have granted of their devices: a block may only have bytes that its server does not have
//! when there is room for them, so that who writes is told of a full device, and not who syncs.
//!
//! What is granted lies in a pool for each server; a block takes of it what it may need there, and what was
//! taken is spent when the server has the block, whatever it needed. Where the pool is too small the server
//! is asked; where it cannot give enough, blocks of it are flushed, as those that replace older data
//! give back more than they take; only then a write is refused. What is not used for [`Settings::age`] goes back.
//!
//! Costs: a question for each [`Settings::grant_bytes`] that are written, and a few words for each server.
//!
//! [`Settings::age`]: super::Settings::age
//! [`Settings::grant_bytes`]: super::Settings::grant_bytes

use super::CacheManager;
use super::blocks::Key;
use super::events::Action;
use super::upstream::{Errand, failure};
use crate::plant::{Plant, is_planted};
use crate::serving::Operation;
use crate::{Code, Inode, Message, Party};
use iolab_vocab::Nanos;
use std::collections::BTreeMap;

/// In which units a device gives space, as long as it has not told.
const UNIT_BYTES: u64 = 4096;

/// Whether a block may get bytes that its server does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cover {
    Granted,
    /// The server is asked, or blocks of it are flushed.
    Waits,
    /// It has no room, and what is told of that.
    Refused(Code),
}

/// A question under way.
#[derive(Debug)]
struct Asked {
    /// For whom, for which block, and what that may take.
    by: Option<(Operation, Key, u64)>,
    /// What was spent since.
    spent: u64,
}

/// What one server has granted.
#[derive(Debug, Default)]
struct Grant {
    pool: u64,
    /// What blocks have taken that the server does not have as they are.
    taken: u64,
    /// The server may keep something for this manager.
    stands: bool,
    unit: Option<u64>,
    /// What is told of it if it has no room, as it has told last.
    refusal: Option<Code>,
    asked: Option<Asked>,
    /// Of the block that was asked for last and that the pool is too small for: how much of it has no place.
    missing: Option<(Key, u64)>,
    waiting: Vec<Operation>,
    used: Nanos,
}

impl Grant {
    /// How much a row of a subfile takes at most.
    fn cost(&self, (from, to): (u64, u64)) -> u64 {
        let unit = self.unit.unwrap_or(UNIT_BYTES).max(1);
        (to.div_ceil(unit) - from / unit).saturating_mul(unit)
    }

    fn ask(&mut self, now: Nanos, by: Option<(Operation, Key, u64)>) {
        // What is in the pool goes back, and comes again with the rest.
        (self.pool, self.missing, self.used) = (0, None, now);
        self.stands = true;
        self.asked = Some(Asked { by, spent: 0 });
    }

    fn take(&mut self, now: Nanos, bytes: u64) -> u64 {
        self.pool -= bytes;
        self.taken += bytes;
        (self.missing, self.used) = (None, now);
        bytes
    }

    fn is_idle(&self) -> bool {
        self.stands && self.taken == 0 && self.asked.is_none()
    }
}

/// What all servers have granted.
#[derive(Debug, Default)]
pub(super) struct Grants {
    of: BTreeMap<u32, Grant>,
    /// Who waited for a grant, and may try again.
    ready: Vec<Operation>,
}

impl Grants {
    /// A server has a block as it is, or nobody needs it any more.
    pub(super) fn spent(&mut self, server: u32, bytes: u64) {
        let Some(grant) = self.of.get_mut(&server) else { return };
        grant.taken -= bytes;
        if is_planted(Plant::GrantSpentTwice) {
            grant.pool += bytes;
        }
        match &mut grant.asked {
            Some(asked) => asked.spent += bytes,
            // There may be enough now.
            None => self.ready.append(&mut grant.waiting),
        }
    }

    /// Who may try again.
    pub(super) fn take_ready(&mut self) -> Vec<Operation> {
        std::mem::take(&mut self.ready)
    }

    /// Whether anybody waits for what flushing may give back.
    pub(super) fn is_short(&self) -> bool {
        self.of.values().any(|grant| grant.asked.is_none() && !grant.waiting.is_empty())
    }

    /// Who waits for a server that does not take what it should.
    pub(super) fn given_up(&mut self, server: u32) -> Vec<Operation> {
        self.of.get_mut(&server).map(|grant| std::mem::take(&mut grant.waiting)).unwrap_or_default()
    }

    /// What is granted in all, used or not.
    pub(super) fn bytes(&self) -> u64 {
        self.of.values().map(|grant| grant.pool + grant.taken).sum()
    }

    /// When something goes back that has not been used for so long.
    pub(super) fn wakes_at(&self, age: Nanos) -> Option<Nanos> {
        let idle = self.of.values().filter(|grant| grant.is_idle());
        idle.map(|grant| grant.used.after(age)).min()
    }
}

impl CacheManager {
    /// The server of a block, and where the block lies in its subfile.
    fn at_server(&self, (inode, base): Key, bytes: u32) -> Option<(u32, u32, (u64, u64))> {
        let layout = self.files.get(&inode)?.layout;
        let subfile = layout.subfile_of(base);
        let place = layout.place_of(base);
        let server = layout.server_of(subfile, self.settings.servers);
        Some((server, subfile, (place, place + u64::from(bytes))))
    }

    /// Who waits for room that the flush of a block was to make.
    pub(super) fn give_up_grants(&mut self, key: Key) -> Vec<Operation> {
        match self.at_server(key, 0) {
            Some((server, ..)) => self.blocks.grants.given_up(server),
            None => Vec::new(),
        }
    }

    /// Whether a block may get bytes that its server does not have; if not, `operation` tries again when
    /// that may have changed.
    pub(super) fn cover(
        &mut self,
        now: Nanos,
        operation: Operation,
        key: Key,
        out: &mut Vec<Action>,
    ) -> Cover {
        let Some(block) = self.blocks.get(key) else { return Cover::Refused(Code::NO_SPACE) };
        if self.settings.grant_bytes == 0 || block.is_unsaved() {
            return Cover::Granted;
        }
        let Some((server, subfile, row)) = self.at_server(key, block.bytes) else {
            return Cover::Refused(Code::NO_SPACE);
        };
        let grant = self.blocks.grants.of.entry(server).or_default();
        let cost = grant.cost(row);
        let missing = grant.missing.filter(|(of, _)| *of == key).map(|(_, missing)| missing);
        if grant.pool >= missing.unwrap_or(cost).min(cost) {
            let bytes = grant.take(now, missing.unwrap_or(cost).min(cost));
            self.blocks.charge(key, (server, bytes));
            return Cover::Granted;
        }
        if missing.is_some() {
            grant.missing = None;
            if grant.taken == 0 {
                let refusal = grant.refusal.unwrap_or(Code::NO_SPACE);
                self.blocks.grants.ready.append(&mut grant.waiting);
                return Cover::Refused(refusal);
            }
            grant.waiting.push(operation);
            return Cover::Waits;
        }
        grant.waiting.push(operation);
        if grant.asked.is_none() {
            grant.ask(now, Some((operation, key, cost)));
            let (taken, more) = (grant.taken, self.settings.grant_bytes);
            let ((from, to), inode) = (row, key.0);
            let bytes = taken + cost;
            let message = Message::Grant { inode, subfile, from, to, taken, bytes, more };
            self.ask_for_grant(now, server, message, out);
        }
        Cover::Waits
    }

    fn ask_for_grant(&mut self, now: Nanos, server: u32, message: Message, out: &mut Vec<Action>) {
        let link = self.links.to(Party::Server(server));
        link.ask(now, message, None, Errand::Grant(server), out);
    }

    /// A server has answered a wish for a grant.
    pub(super) fn granted(
        &mut self,
        server: u32,
        (from, message): (Party, Message),
        out: &mut Vec<Action>,
    ) {
        let Some(grant) = self.blocks.grants.of.get_mut(&server) else { return };
        let Some(asked) = grant.asked.take() else { return };
        let mut waiting = std::mem::take(&mut grant.waiting);
        let asker = asked.by.filter(|(operation, ..)| waiting.contains(operation));
        let is_asker = |it: &Operation| asker.is_some_and(|(operation, ..)| *it == operation);
        waiting.retain(|operation| !is_asker(operation));
        match message {
            Message::Granted { bytes, missing, unit, refusal } => {
                (grant.unit, grant.refusal) = (Some(unit), Some(refusal));
                grant.pool = bytes.saturating_sub(asked.spent).saturating_sub(grant.taken);
                grant.stands = bytes > 0;
                grant.missing = asker.map(|(_, key, _)| (key, missing));
                if asker.is_some_and(|(_, _, cost)| grant.pool < cost.min(missing)) {
                    // The others wait until it has met what there is.
                    std::mem::swap(&mut grant.waiting, &mut waiting);
                }
                let asker = asker.map(|(operation, ..)| operation);
                self.blocks.grants.ready.extend(asker.into_iter().chain(waiting));
            }
            // Only its own file is no more.
            Message::Failed { code: Code::STALE, text } => {
                self.blocks.grants.ready.extend(waiting);
                let asker = asker.map(|(operation, ..)| operation);
                asker.into_iter().for_each(|it| self.fail(it, (Code::STALE, &text), out));
            }
            message => {
                let (code, why) = failure(from, message);
                let asker = asker.map(|(operation, ..)| operation);
                let all = asker.into_iter().chain(waiting);
                all.for_each(|operation| self.fail(operation, (code, &why), out));
            }
        }
    }

    /// A server knows nothing any more of what it has granted: it is asked for what blocks have taken.
    pub(super) fn grants_forgotten(&mut self, now: Nanos, server: u32, out: &mut Vec<Action>) {
        let Some(grant) = self.blocks.grants.of.get_mut(&server) else { return };
        grant.pool = 0;
        if grant.taken > 0 && grant.asked.is_none() {
            grant.ask(now, None);
            let message = of_no_block(grant.taken);
            self.ask_for_grant(now, server, message, out);
        }
    }

    /// Gives back what has not been used for long.
    pub(super) fn give_back(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let age = self.settings.age;
        let grants = &mut self.blocks.grants.of;
        let idle: Vec<u32> = grants
            .iter_mut()
            .filter(|(_, grant)| grant.is_idle() && grant.used.after(age) <= now)
            .map(|(&server, grant)| {
                grant.ask(now, None);
                server
            })
            .collect();
        for server in idle {
            self.ask_for_grant(now, server, of_no_block(0), out);
        }
    }
}

/// A wish that is not about a block.
fn of_no_block(taken: u64) -> Message {
    let (inode, subfile, from, to) = (Inode(0), 0, 0, 0);
    Message::Grant { inode, subfile, from, to, taken, bytes: taken, more: 0 }
}
