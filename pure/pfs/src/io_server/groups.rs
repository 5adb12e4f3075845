//! Groups of ranks that make collective calls: who has come, and what it comes to.
//!
//! A collective ends when every rank has arrived or its session has ended; all get the result of the lowest
//! rank that failed. A rank that has come to its last one is not waited for again, also where others, that have given
//! another number of collectives up, are further. A server in a new life knows no group: it goes on with the first collective that
//! somebody still waits for, and learns from ranks that are further what that came to.

use crate::plant::{Plant, is_planted};
use crate::{Code, Message, OpenNumber, Request, SessionId};
use iolab_vocab::Nanos;
use std::collections::{BTreeMap, VecDeque};

/// Ranks of a group.
const SIZE_MAX: u32 = 1 << 16;
/// How many groups are remembered that have ended.
const ENDED_MAX: usize = 1024;
/// How many times the time without a connection a group waits for ranks that nobody has seen in this life:
/// they may compute.
const WAITS: u64 = 4;
/// Nobody's rank.
const NOBODY: u32 = u32::MAX;

/// An arrival.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) group: OpenNumber,
    pub(super) size: u32,
    pub(super) rank: u32,
    pub(super) sequence: u64,
    pub(super) result: Code,
    pub(super) previous: Code,
    pub(super) last: bool,
}

/// A reply to a request of a session.
pub(super) type Reply = (SessionId, Request, Message);

/// What a collective came to.
#[derive(Clone, Copy, Debug)]
struct Verdict {
    sequence: u64,
    result: Code,
    rank: u32,
}

impl Verdict {
    fn message(self) -> Message {
        Message::Verdict { result: self.result, rank: self.rank }
    }

    /// What a rank is told that comes to a collective; if it was another one, why it is not told what it came to.
    fn to(self, sequence: u64, why: &str) -> Message {
        match self.sequence == sequence {
            true => self.message(),
            false => Message::failed(Code::SESSION_LOST, why),
        }
    }
}

/// A rank, as far as it is known.
#[derive(Debug, Default)]
struct Member {
    /// None if it was never here.
    session: Option<SessionId>,
    /// It does not come any more: its session has ended, or it is through with its last collective.
    is_gone: bool,
    /// What it came with last is its last one.
    is_closing: bool,
    /// What it came with to the collective that is under way.
    result: Option<Code>,
    /// What is to be answered once there is a verdict.
    request: Option<Request>,
}

#[derive(Debug)]
struct Group {
    size: u32,
    /// The collective that is under way.
    sequence: u64,
    members: BTreeMap<u32, Member>,
    before: Option<Verdict>,
    is_last: bool,
}

/// The groups whose files are at home at a server.
#[derive(Debug, Default)]
pub(super) struct Groups {
    under_way: BTreeMap<OpenNumber, Group>,
    /// When those of a group who have not come to its first collective in this life are taken for gone:
    /// nobody would tell of their end, since they have not been here.
    until: BTreeMap<OpenNumber, Nanos>,
    ended: VecDeque<(OpenNumber, Verdict)>,
    /// What groups were last told that nobody was left of: who comes back was not told, but others may have been.
    left: VecDeque<(OpenNumber, Verdict)>,
}

impl Groups {
    /// A rank has come. `wait` is how long a session without connection is kept.
    pub(super) fn arrive(
        &mut self,
        now: Nanos,
        wait: Nanos,
        from: (SessionId, Request),
        arrival: Arrival,
        out: &mut Vec<Reply>,
    ) {
        let (session, request) = from;
        let mut reply = |message| out.push((session, request, message));
        let wrong = |text: &str| Message::failed(Code::INVALID, text);
        if arrival.size > SIZE_MAX || arrival.rank >= arrival.size {
            return reply(wrong("no such rank of the group"));
        }
        if !self.under_way.contains_key(&arrival.group) {
            let ended = self.ended.iter().find(|(group, _)| *group == arrival.group);
            if let Some((_, verdict)) = ended {
                return reply(verdict.to(arrival.sequence, "the group has ended"));
            }
            let left = self.left.iter().rfind(|(group, _)| *group == arrival.group);
            if let Some((_, verdict)) = left.filter(|left| left.1.sequence >= arrival.sequence) {
                return reply(verdict.to(arrival.sequence, "a collective that is over for long"));
            }
            let until = now.after(Nanos(wait.0.saturating_mul(WAITS)));
            self.until.insert(arrival.group, until);
        }
        let group = self.under_way.entry(arrival.group).or_insert_with(|| Group {
            size: arrival.size,
            sequence: arrival.sequence,
            members: BTreeMap::new(),
            // Who has come knows what the one before came to; others may still wait for it.
            before: arrival
                .sequence
                .checked_sub(1)
                .filter(|_| !is_planted(Plant::VerdictForgotten))
                .map(|sequence| Verdict { sequence, result: arrival.previous, rank: NOBODY }),
            is_last: false,
        });
        if group.size != arrival.size {
            return reply(wrong("the ranks disagree on the size of their group"));
        }
        if arrival.sequence < group.sequence {
            let before = group.before.filter(|before| before.sequence == arrival.sequence);
            reply(match before {
                Some(verdict) => verdict.message(),
                // Others were through with it without this rank.
                None => Message::failed(Code::SESSION_LOST, "a collective that is over for long"),
            });
            if arrival.last {
                group.close(session, arrival.rank);
                self.settle(arrival.group, out);
            }
            return;
        }
        if arrival.sequence > group.sequence {
            group.decided_before(arrival, out);
        }
        group.take(session, request, arrival);
        self.settle(arrival.group, out);
    }

    /// A session has ended: its ranks do not come any more.
    pub(super) fn gone(&mut self, session: SessionId, out: &mut Vec<Reply>) {
        let numbers: Vec<OpenNumber> = self.under_way.keys().copied().collect();
        for number in numbers {
            let Some(group) = self.under_way.get_mut(&number) else { continue };
            let mut is_touched = false;
            for member in
                group.members.values_mut().filter(|member| member.session == Some(session))
            {
                (member.is_gone, member.request, is_touched) = (true, None, true);
            }
            if is_touched {
                self.settle(number, out);
            }
        }
    }

    /// Looks at the time: those who should have come since a restart are taken for gone.
    pub(super) fn woke(&mut self, now: Nanos, out: &mut Vec<Reply>) {
        let late = self.until.iter().filter(|(_, until)| **until <= now);
        let numbers: Vec<OpenNumber> = late.map(|(&number, _)| number).collect();
        for number in numbers {
            self.until.remove(&number);
            if let Some(group) = self.under_way.get_mut(&number) {
                if is_planted(Plant::MissingWaitedFor) {
                    let (sequence, result) = (group.sequence, Code::TIMED_OUT);
                    group.decide(Verdict { sequence, result, rank: NOBODY }, out);
                } else {
                    group.give_up_missing();
                }
            }
            self.settle(number, out);
        }
    }

    /// When the next group is late.
    pub(super) fn wakes_at(&self) -> Option<Nanos> {
        self.until.values().min().copied()
    }

    /// Ends what all have come to, and the group with the last of them.
    fn settle(&mut self, number: OpenNumber, out: &mut Vec<Reply>) {
        let Some(group) = self.under_way.get_mut(&number) else { return };
        if group.is_left() && !group.is_last {
            return self.leave(number);
        }
        if let Some(verdict) = group.verdict() {
            let is_last = group.is_last;
            group.decide(verdict, out);
            self.until.remove(&number);
            if is_last {
                self.under_way.remove(&number);
                remember(&mut self.ended, number, verdict);
                return;
            }
        }
        if self.under_way.get(&number).is_some_and(Group::is_left) {
            self.leave(number);
        }
    }

    /// Forgets a group that nobody is left of, but for what somebody may have been told last.
    fn leave(&mut self, number: OpenNumber) {
        let group = self.under_way.remove(&number);
        self.until.remove(&number);
        if let Some(verdict) = group.and_then(|group| group.before) {
            remember(&mut self.left, number, verdict);
        }
    }
}

/// Keeps what a group came to, and forgets the oldest of many.
fn remember(verdicts: &mut VecDeque<(OpenNumber, Verdict)>, number: OpenNumber, verdict: Verdict) {
    if is_planted(Plant::EndedForgotten) {
        return;
    }
    if verdicts.len() == ENDED_MAX {
        verdicts.pop_front();
    }
    verdicts.push_back((number, verdict));
}

impl Group {
    fn take(&mut self, session: SessionId, request: Request, arrival: Arrival) {
        let Arrival { rank, result, last, .. } = arrival;
        if is_planted(Plant::ArrivalCountedTwice)
            && self.members.get(&rank).is_some_and(|member| member.result.is_some())
            && let Some(missing) = (0..self.size).find(|rank| !self.members.contains_key(rank))
        {
            let result = Some(Code::OK);
            let member = Member { result, ..Member::default() };
            self.members.insert(missing, member);
        }
        let member = self.members.entry(rank).or_default();
        (member.session, member.is_gone, member.request) = (Some(session), false, Some(request));
        member.is_closing = last;
        // Who comes again may have given the call up since: then nobody is to hear that it went well.
        let known = member.result.get_or_insert(result);
        if known.is_ok() {
            *known = result;
        }
        self.is_last |= last;
    }

    /// A rank has come to its last collective, which is over.
    fn close(&mut self, session: SessionId, rank: u32) {
        let member = self.members.entry(rank).or_default();
        (member.session, member.is_gone, member.request) = (Some(session), true, None);
    }

    /// Whether all who were ever here are gone.
    fn is_left(&self) -> bool {
        !self.members.is_empty() && self.members.values().all(|member| member.is_gone)
    }

    /// Ranks that were never here are gone, for this collective and those behind it.
    fn give_up_missing(&mut self) {
        let gone = || Member { is_gone: true, ..Member::default() };
        for rank in 0..self.size {
            self.members.entry(rank).or_insert_with(gone);
        }
    }

    /// What the collective under way comes to, if nobody is missing.
    fn verdict(&self) -> Option<Verdict> {
        let of = |rank: u32| -> Option<Code> {
            let member = self.members.get(&rank)?;
            member.result.or(member.is_gone.then_some(Code::RANK_FAILED))
        };
        let mut verdict = Verdict { sequence: self.sequence, result: Code::OK, rank: NOBODY };
        for rank in 0..self.size {
            let result = of(rank)?;
            if verdict.result.is_ok() && !result.is_ok() {
                (verdict.result, verdict.rank) = (result, rank);
            }
        }
        Some(verdict)
    }

    /// Tells everybody who waits, and goes on to the next collective.
    fn decide(&mut self, verdict: Verdict, out: &mut Vec<Reply>) {
        for member in self.members.values_mut() {
            member.result = None;
            if let (Some(session), Some(request)) = (member.session, member.request.take()) {
                out.push((session, request, verdict.message()));
                member.is_gone = member.is_closing;
            }
        }
        (self.before, self.sequence) = (Some(verdict), verdict.sequence + 1);
    }

    /// A rank is further than what this life knows: it says what the one before came to.
    fn decided_before(&mut self, arrival: Arrival, out: &mut Vec<Reply>) {
        let (sequence, result) = (arrival.sequence - 1, arrival.previous);
        self.decide(Verdict { sequence, result, rank: NOBODY }, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Nanos = Nanos(8_000_000_000);

    /// What is answered to a rank of three that comes to a collective of its own session's.
    fn arrives(groups: &mut Groups, rank: u32, sequence: u64) -> Vec<Reply> {
        arrives_with(groups, rank, (sequence, Request(sequence)), Code::OK)
    }

    /// The same by that request, with a result.
    fn arrives_with(
        groups: &mut Groups,
        rank: u32,
        (sequence, request): (u64, Request),
        result: Code,
    ) -> Vec<Reply> {
        let (group, previous) = (OpenNumber(1), Code::OK);
        let arrival = Arrival { group, size: 3, rank, sequence, result, previous, last: false };
        let mut out = Vec::new();
        let from = (SessionId(rank.into()), request);
        groups.arrive(Nanos::ZERO, WAIT, from, arrival, &mut out);
        out
    }

    #[test]
    fn who_has_come_to_its_last_collective_is_not_waited_for_by_those_who_are_further() {
        let closes = |groups: &mut Groups, rank: u32, sequence| {
            let (group, previous, result) = (OpenNumber(1), Code::TIMED_OUT, Code::OK);
            let arrival = Arrival { group, size: 3, rank, sequence, result, previous, last: true };
            let (mut out, from) = (Vec::new(), (SessionId(rank.into()), Request(sequence)));
            groups.arrive(Nanos::ZERO, WAIT, from, arrival, &mut out);
            out
        };
        let told = |result, rank: u32, to: u64, sequence| {
            (SessionId(to.into()), Request(sequence), Message::Verdict { result, rank })
        };
        let without_one = [0, 2].map(|rank| told(Code::RANK_FAILED, 1, rank, 4));
        // They gave one more up than rank 1, which comes when they are at the next already.
        let mut groups = Groups::default();
        assert_eq!(closes(&mut groups, 0, 4), []);
        assert_eq!(closes(&mut groups, 2, 4), []);
        let late = told(Code::TIMED_OUT, NOBODY, 1, 3);
        assert_eq!(closes(&mut groups, 1, 3), [&[late.clone()][..], &without_one].concat());
        // Or before them.
        let mut groups = Groups::default();
        assert_eq!(closes(&mut groups, 1, 3), []);
        assert_eq!(closes(&mut groups, 0, 4), [late]);
        assert_eq!(closes(&mut groups, 2, 4), without_one);
    }

    #[test]
    fn who_gave_up_after_it_had_come_well_makes_the_call_fail_for_all_who_come_later() {
        let mut groups = Groups::default();
        assert_eq!(arrives(&mut groups, 0, 3), []);
        assert_eq!(arrives_with(&mut groups, 0, (3, Request(9)), Code::TIMED_OUT), []);
        // And not the other way round.
        assert_eq!(arrives_with(&mut groups, 0, (3, Request(10)), Code::OK), []);
        assert_eq!(arrives(&mut groups, 1, 3), []);
        let told = arrives(&mut groups, 2, 3);
        let failed = || Message::Verdict { result: Code::TIMED_OUT, rank: 0 };
        let requests = [(0, 10), (1, 3), (2, 3)];
        let expected = requests.map(|(rank, number)| (SessionId(rank), Request(number), failed()));
        assert_eq!(told, expected);
    }

    #[test]
    fn who_comes_back_to_a_group_that_all_had_left_hears_what_others_heard() {
        let mut groups = Groups::default();
        assert_eq!((0..3).map(|rank| arrives(&mut groups, rank, 0).len()).sum::<usize>(), 3);
        assert_eq!(arrives(&mut groups, 2, 1), []);
        let mut out = Vec::new();
        (0..3).for_each(|rank| groups.gone(SessionId(rank), &mut out));
        let failed = || Message::Verdict { result: Code::RANK_FAILED, rank: 0 };
        assert_eq!(out, [(SessionId(2), Request(1), failed())]);
        assert_eq!(arrives(&mut groups, 0, 1), [(SessionId(0), Request(1), failed())]);
        let old = arrives(&mut groups, 1, 0);
        assert!(matches!(old[0].2, Message::Failed { code: Code::SESSION_LOST, .. }), "{old:?}");
        assert_eq!(arrives(&mut groups, 0, 2), [], "others are waited for");
    }

    #[test]
    fn who_is_alone_in_a_new_life_of_a_home_is_told_of_failed_ranks_and_who_comes_later_the_same() {
        let mut groups = Groups::default();
        assert_eq!(arrives(&mut groups, 2, 7), []);
        let mut out = Vec::new();
        groups.woke(Nanos(WAITS * WAIT.0 - 1), &mut out);
        assert_eq!(out, []);
        groups.woke(Nanos(WAITS * WAIT.0), &mut out);
        let failed = || Message::Verdict { result: Code::RANK_FAILED, rank: 0 };
        assert_eq!(out, [(SessionId(2), Request(7), failed())]);
        assert_eq!(arrives(&mut groups, 0, 7), [(SessionId(0), Request(7), failed())]);
    }
}
