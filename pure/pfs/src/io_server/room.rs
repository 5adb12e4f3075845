//! How much space of the device is whose: what cache managers were granted for data that they still have in
//! memory, and what is left for those who were granted nothing.
//!
//! Promises: what was granted is there when it is written, unless somebody else fills the device; all that
//! is granted and used together stays within the capacity. What stands is not taken back. A life of the
//! server knows nothing of what was granted before. Costs: an entry for each session that has asked.

use super::{Action, IoServer, Limit, Operation, Outcome, Subfile, Work};
use crate::plant::{Plant, is_planted};
use crate::{Code, Message, SessionId};
use iolab_vocab::Extent;
use std::collections::BTreeMap;

/// What those are told who are refused.
const FULL: &str = "no room is left on the device";
const USED_UP: &str = "the capacity that the file system was given is used up";
const QUOTA: &str = "the quota of the file system's user is used up";
/// A session is granted one part in so many of what is left beyond its need: others need some, too.
const SHARES: u64 = 4;

/// What somebody wants kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// What stands and is in use.
    pub(super) taken: u64,
    /// In all.
    pub(super) bytes: u64,
    /// Beyond that, if there is more.
    pub(super) more: u64,
}

/// What the device says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) free: u64,
    pub(super) used: u64,
    pub(super) missing: u64,
    pub(super) unit: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Room {
    limit: Option<Limit>,
    /// Of those who have asked in this life.
    granted: BTreeMap<SessionId, u64>,
    /// Writes under way of those who have not, or whose session has ended since, and what each takes.
    passed: BTreeMap<Operation, u64>,
    /// In which units the device gives space, as it has told last.
    unit: u64,
}

impl Room {
    pub(super) fn of(limit: Option<Limit>) -> Room {
        Room { limit, ..Room::default() }
    }

    /// What is granted, to all together.
    pub(super) fn granted_bytes(&self) -> u64 {
        self.granted.values().sum()
    }

    /// Whether a write of a session depends on what is left.
    fn limits(&self, session: Option<SessionId>) -> bool {
        let is_granted = session.is_some_and(|session| self.granted.contains_key(&session));
        !is_granted && (self.limit.is_some() || self.granted_bytes() > 0)
    }

    /// What is neither used nor promised to somebody other than `session`.
    fn left(&self, session: Option<SessionId>, found: Found) -> u64 {
        let within = self.limit.map_or(u64::MAX, |limit| limit.bytes().saturating_sub(found.used));
        self.left_of(found.free.min(within), session, found)
    }

    /// The same of so many bytes.
    fn left_of(&self, bytes: u64, session: Option<SessionId>, found: Found) -> u64 {
        let others = self.granted.iter().filter(|&(id, _)| Some(*id) != session);
        let others: u64 = match is_planted(Plant::GrantsOverlap) {
            true => 0,
            false => others.map(|(_, bytes)| bytes).sum(),
        };
        let passed: u64 = self.passed.values().sum();
        // Less than a unit is none.
        let unit = found.unit.max(1);
        let left = bytes / unit * unit;
        left.saturating_sub(others.saturating_add(passed))
    }

    /// What is told to who needs more than there is of what was found: on the device, or within the limit.
    fn refusal(&self, session: Option<SessionId>, found: Found) -> (Code, &'static str) {
        let on_device = self.left_of(found.free, session, found);
        match self.limit {
            _ if found.missing > on_device => (Code::NO_SPACE, FULL),
            Some(Limit::Quota(_)) if is_planted(Plant::QuotaAsFull) => (Code::NO_SPACE, FULL),
            Some(Limit::Quota(_)) => (Code::QUOTA, QUOTA),
            Some(Limit::Capacity(_)) | None => (Code::NO_SPACE, USED_UP),
        }
    }

    /// Keeps space for a session, which is told how much.
    fn grant(&mut self, session: SessionId, wanted: Wanted, found: Found) -> u64 {
        let left = self.left(Some(session), found);
        let stands = self.granted.get(&session).copied().unwrap_or(0);
        let bytes = match left.checked_sub(wanted.bytes) {
            Some(beyond) => wanted.bytes + wanted.more.min(beyond / SHARES),
            // What was spent is not left twice.
            None => left.min(wanted.bytes).max(stands.min(wanted.taken)),
        };
        self.granted.insert(session, bytes);
        bytes
    }

    /// A session is over; these writes of it are still under way.
    fn end(&mut self, session: SessionId, writes: impl Iterator<Item = (Operation, Vec<Extent>)>) {
        if is_planted(Plant::GrantKept) {
            return;
        }
        if self.granted.remove(&session).is_some() {
            let unit = self.unit.max(1);
            let units = |it: &Extent| it.end().div_ceil(unit) - it.offset / unit;
            let bytes = |extents: Vec<Extent>| extents.iter().map(units).sum::<u64>() * unit;
            self.passed.extend(writes.map(|(operation, extents)| (operation, bytes(extents))));
        }
    }

    /// An operation is over.
    pub(super) fn over(&mut self, operation: Operation) {
        self.passed.remove(&operation);
    }
}

impl IoServer {
    /// What is granted to cache managers.
    pub fn granted_bytes(&self) -> u64 {
        self.room.granted_bytes()
    }

    /// What of the device is kept for what is not written yet: granted, or on its way.
    pub fn promised_bytes(&self) -> u64 {
        self.room.granted_bytes() + self.room.passed.values().sum::<u64>()
    }

    /// A session ends, and with it what it was granted, but for what is being written of it.
    pub(super) fn end_grant(&mut self, id: SessionId) {
        let writes = self.serving.jobs_of(id).filter_map(|(operation, work)| match work {
            Work::Write { portion, .. } => Some((operation, portion.extents())),
            _ => None,
        });
        self.room.end(id, writes);
    }

    /// Whether a write has to ask for room first; asks, if it has.
    pub(super) fn asks_for_room(&mut self, operation: Operation, out: &mut Vec<Action>) -> bool {
        let session = self.serving.session_of(operation);
        let is_limited = self.room.limits(session);
        match self.serving.job(operation) {
            Some(Work::Write { subfile, portion, asks_room, .. }) if is_limited => {
                *asks_room = true;
                let (subfile, extents) = (*subfile, portion.extents());
                out.push(Action::Room { operation, subfile, extents });
                true
            }
            _ => false,
        }
    }

    /// The device has told how much room there is.
    pub(super) fn room_told(
        &mut self,
        operation: Operation,
        result: Result<Outcome, Code>,
        out: &mut Vec<Action>,
    ) {
        let session = self.serving.session_of(operation);
        let found = match result {
            Ok(Outcome::Room { free, used, missing, unit }) => Found { free, used, missing, unit },
            Ok(_) => {
                return self.refuse(operation, (Code::IO, "the device told something else"), out);
            }
            Err(code) => {
                return self.refuse(operation, (code, "the device could not tell its room"), out);
            }
        };
        self.room.unit = found.unit;
        match self.serving.job(operation) {
            Some(&mut Work::Grant { wanted, .. }) => {
                let bytes = session.map_or(0, |session| self.room.grant(session, wanted, found));
                let (missing, unit) = (found.missing, found.unit);
                let (refusal, _) = self.room.refusal(session, found);
                let message = Message::Granted { bytes, missing, unit, refusal };
                self.end(operation, message, None, out);
            }
            Some(Work::Write { asks_room, .. }) => {
                *asks_room = false;
                if found.missing > 0 && found.missing > self.room.left(None, found) {
                    let why = self.room.refusal(None, found);
                    return self.refuse(operation, why, out);
                }
                self.room.passed.insert(operation, found.missing);
                self.change(operation, out);
            }
            _ => {}
        }
    }

    /// A job that needs room is over without it.
    fn refuse(&mut self, operation: Operation, (code, why): (Code, &str), out: &mut Vec<Action>) {
        self.refuse_with(operation, Message::failed(code, why), out);
    }

    /// A change is over before it has begun, with this answer.
    pub(super) fn refuse_with(
        &mut self,
        operation: Operation,
        message: Message,
        out: &mut Vec<Action>,
    ) {
        if let Some(&mut Work::Write { buffer, .. }) = self.serving.job(operation) {
            out.push(Action::Release { buffer });
        }
        self.end(operation, message, None, out);
    }
}

/// What a cache manager wants kept, for a block of a subfile or for none.
pub(super) fn wish(
    subfile: Subfile,
    (from, to): (u64, u64),
    wanted: Wanted,
) -> Result<Work, Message> {
    match to.checked_sub(from) {
        Some(length) => Ok(Work::Grant { subfile, block: Extent::new(from, length), wanted }),
        None => Err(Message::failed(Code::INVALID, "a block that ends before it begins")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(free: u64, used: u64) -> Found {
        Found { free, used, missing: 0, unit: 1 }
    }

    fn wanted(bytes: u64, more: u64) -> Wanted {
        Wanted { taken: 0, bytes, more }
    }

    #[test]
    fn what_is_granted_is_granted_once_and_within_what_is_there() {
        let (one, other) = (SessionId(1), SessionId(2));
        let mut room = Room::of(Some(Limit::Capacity(1000)));
        assert_eq!(room.grant(one, wanted(100, 400), found(5000, 300)), 250);
        assert_eq!(room.grant(other, wanted(100, 0), found(5000, 300)), 100);
        assert_eq!(room.grant(other, wanted(500, 0), found(5000, 300)), 450);
        assert_eq!(room.left(None, found(5000, 300)), 0);
        // The device has less than the capacity.
        assert_eq!(room.grant(other, wanted(600, 0), found(650, 300)), 400);
        room.end(one, std::iter::empty());
        assert_eq!(room.grant(other, wanted(600, 1000), found(5000, 300)), 625);
    }

    #[test]
    fn who_is_refused_is_told_whether_the_device_is_full_or_the_quota_used_up() {
        let told = |limit, missing| {
            let found = Found { missing, ..found(100, 0) };
            Room::of(Some(limit)).refusal(None, found).0
        };
        assert_eq!(told(Limit::Quota(50), 60), Code::QUOTA);
        assert_eq!(told(Limit::Quota(50), 101), Code::NO_SPACE);
        assert_eq!(told(Limit::Capacity(50), 60), Code::NO_SPACE);
    }

    #[test]
    fn what_stands_is_not_taken_back_when_others_fill_the_device() {
        let one = SessionId(1);
        let mut room = Room::of(None);
        assert_eq!(room.grant(one, wanted(100, 0), found(100, 0)), 100);
        let taken = |taken| Wanted { taken, ..wanted(120, 9) };
        assert_eq!(room.grant(one, taken(100), found(7, 0)), 100);
        assert_eq!(room.grant(one, taken(40), found(7, 0)), 40);
        // The rest was spent.
        assert_eq!(room.grant(one, taken(0), found(7, 0)), 7);
        assert_eq!(room.grant(one, wanted(0, 0), found(7, 0)), 0);
    }

    #[test]
    fn only_those_who_were_granted_nothing_depend_on_what_is_left() {
        let mut room = Room::of(None);
        assert!(!room.limits(Some(SessionId(1))), "nothing is limited");
        room.grant(SessionId(2), wanted(1, 0), found(10, 0));
        assert!(room.limits(Some(SessionId(1))) && room.limits(None));
        assert!(!room.limits(Some(SessionId(2))));
        room.end(SessionId(2), std::iter::empty());
        assert!(!room.limits(Some(SessionId(1))));
        assert!(Room::of(Some(Limit::Quota(1))).limits(Some(SessionId(1))));
    }

    #[test]
    fn what_a_session_that_has_ended_is_still_writing_is_left_to_nobody() {
        let mut room = Room { unit: 10, ..Room::of(None) };
        let (one, other) = (SessionId(1), SessionId(2));
        assert_eq!(room.grant(one, wanted(100, 0), found(100, 0)), 100);
        let write = (Operation(7), vec![Extent::new(5, 10), Extent::new(40, 10)]);
        room.end(one, std::iter::once(write));
        assert_eq!(room.grant(other, wanted(100, 0), found(100, 0)), 70);
        room.over(Operation(7));
        assert_eq!(room.grant(other, wanted(70, 0), found(70, 70)), 70);
    }
}
