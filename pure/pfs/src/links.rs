//! Connections to those who are asked: what is under way on each, sent again after a loss, given up after
//! a time without any sign of life. Where a party shares the host, the host tells of another sign than its
//! answers: that it runs, but has no processor or waits for its device. That counts for a minute.
//!
//! A link connects when there is something to ask, and again when it loses a connection. Requests have
//! ascending numbers; after a loss those without a reply are sent again with the same ones, in their order.
//! At most [`WINDOW`] are under way, since a server refuses more of a session; and of those that change
//! something no more than that lie between the oldest without a reply and the newest, because a server
//! remembers as many answers.

mod all;

pub(crate) use all::{Heard, Links};

use crate::plant::{Plant, is_planted};
use crate::{Code, Incarnation, Message, Party, PartyAction, Request};
use iolab_vocab::Nanos;
use std::collections::{BTreeMap, VecDeque};

/// How many requests of a session may be under way, and how many answers to changing ones a server
/// remembers.
pub(crate) const WINDOW: u64 = 64;
/// How long a link is silent before it asks whether anybody is there.
const PING_AFTER: Nanos = Nanos(1_000_000_000);
/// How long after a failed attempt the next one to connect follows.
const RETRY_AFTER: Nanos = Nanos(50_000_000);
/// How long it counts as a sign of life that a party runs, when it does not answer.
const RUNNING_MAX: Nanos = Nanos(60_000_000_000);
/// A party that was given up has so long to be there again when it is asked something: calls that follow
/// the one that waited for it do not wait as long again. And so long has a party that nothing is asked of, when
/// a call comes to it that has waited in vain for another one.
const FOUND_IN: Nanos = Nanos(500_000_000);

/// What a link wants; payload is `P`. The actions of machines are made of it.
#[derive(Debug)]
pub(crate) enum Wish<P> {
    Party(PartyAction<P>),
    WakeAt(Nanos),
}

/// The link to one party; `C` says what a reply is for.
#[derive(Debug)]
pub(crate) struct Link<C, P> {
    party: Party,
    failure_timeout: Nanos,
    state: State,
    incarnation: Option<Incarnation>,
    /// Number of the last request.
    last: u64,
    /// How many requests change something, with those that wait.
    changes: u64,
    asked: BTreeMap<Request, Asked<C, P>>,
    /// Requests that do not fit the window, and what was asked behind them.
    waiting: VecDeque<Asked<C, P>>,
    /// Since when there is nothing but silence where a sign of life is due.
    silent_since: Nanos,
    /// When it was heard last, or not yet waited for.
    heard: Nanos,
    pinged: Nanos,
    /// It was given up, and has not been seen since.
    is_given_up: bool,
    /// The wish to be woken that stands; in the past if none does.
    woken_at: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Down { retry_at: Nanos },
    Connecting,
    Up,
}

#[derive(Debug)]
struct Asked<C, P> {
    message: Message,
    payload: Option<P>,
    /// What the reply is for; of a ping, nothing.
    context: Option<C>,
    /// Which of the changing requests it is.
    change: Option<u64>,
    /// Whether it was sent on a connection, so that it may have been carried out.
    is_sent: bool,
}

impl<C, P: Clone> Link<C, P> {
    pub(crate) fn new(party: Party, failure_timeout: Nanos) -> Link<C, P> {
        Link {
            party,
            failure_timeout,
            state: State::Down { retry_at: Nanos::ZERO },
            incarnation: None,
            last: 0,
            changes: 0,
            asked: BTreeMap::new(),
            waiting: VecDeque::new(),
            silent_since: Nanos::ZERO,
            heard: Nanos::ZERO,
            pinged: Nanos::ZERO,
            is_given_up: false,
            woken_at: Nanos::ZERO,
        }
    }

    /// The life that the party was last seen in.
    pub(crate) fn incarnation(&self) -> Option<Incarnation> {
        self.incarnation
    }

    /// Puts a question, now or when its time has come.
    pub(crate) fn ask<A: From<Wish<P>>>(
        &mut self,
        now: Nanos,
        message: Message,
        payload: Option<P>,
        context: C,
        out: &mut Vec<A>,
    ) {
        self.pass_over_absence(now);
        if self.asked.is_empty() {
            (self.silent_since, self.heard, self.pinged) = (now, now, now);
            if self.is_given_up {
                // Its time is over; it only has the one to be found again.
                self.shorten(now);
                self.heard = Nanos(now.0.saturating_sub(RUNNING_MAX.0));
            }
        }
        let change = message.changes().then(|| {
            self.changes += 1;
            self.changes
        });
        let asked = Asked { message, payload, context: Some(context), change, is_sent: false };
        if self.waiting.is_empty() && self.fits(&asked) {
            self.put(asked, out);
        } else {
            self.waiting.push_back(asked);
        }
        self.connect_if_needed(now, out);
        self.wake(now, out);
    }

    /// Puts a question for a call that has failed already, since another party did not answer: where nobody waits
    /// for an answer yet, the party only has the time to be found, by a connection or a sign of life that is asked
    /// for. Those of one host are often gone together.
    pub(crate) fn ask_briefly<A: From<Wish<P>>>(
        &mut self,
        now: Nanos,
        message: Message,
        payload: Option<P>,
        context: C,
        out: &mut Vec<A>,
    ) {
        let is_idle = self.asked.is_empty();
        self.ask(now, message, payload, context, out);
        if is_idle {
            self.shorten(now);
            if self.state == State::Up {
                self.ping(out);
            }
            self.wake(now, out);
        }
    }

    /// All but the time to be found is over.
    fn shorten(&mut self, now: Nanos) {
        let over = self.failure_timeout.since(FOUND_IN);
        self.silent_since = Nanos(now.0.saturating_sub(over.0));
    }

    /// Whether a request lies in the window.
    fn fits(&self, asked: &Asked<C, P>) -> bool {
        if self.asked.len() as u64 >= WINDOW {
            return false;
        }
        let Some(change) = asked.change else { return true };
        let oldest = self.asked.values().find_map(|asked| asked.change);
        oldest.is_none_or(|oldest| change - oldest < WINDOW)
    }

    /// Gives a request its number, and sends it if there is a connection.
    fn put<A: From<Wish<P>>>(&mut self, mut asked: Asked<C, P>, out: &mut Vec<A>) {
        self.last += 1;
        let request = Request(self.last);
        if self.state == State::Up {
            asked.is_sent = true;
            out.push(asked.wish(self.party, request).into());
        }
        self.asked.insert(request, asked);
    }

    fn connect_if_needed<A: From<Wish<P>>>(&mut self, now: Nanos, out: &mut Vec<A>) {
        if let State::Down { retry_at } = self.state
            && !self.asked.is_empty()
            && retry_at <= now
        {
            self.state = State::Connecting;
            out.push(Wish::Party(PartyAction::Connect { to: self.party }).into());
        }
    }

    /// When there is something to look at again.
    fn wake<A: From<Wish<P>>>(&mut self, now: Nanos, out: &mut Vec<A>) {
        if self.asked.is_empty() {
            return;
        }
        let next = match self.state {
            State::Down { retry_at } => retry_at,
            State::Connecting => self.silent_since.after(self.failure_timeout),
            // A ping is due so long after the last sign of life or the last ping.
            State::Up => self.pinged.after(PING_AFTER),
        };
        let end = self.silent_since.after(self.failure_timeout);
        let at = next.min(end).max(now.after(Nanos(1)));
        if self.woken_at <= now || self.woken_at > at {
            self.woken_at = at;
            out.push(Wish::WakeAt(at).into());
        }
    }

    /// There is a connection. Tells whether the party has forgotten this session's views. Requests whose
    /// fate nobody knows any more are given back.
    pub(crate) fn connected<A: From<Wish<P>>>(
        &mut self,
        now: Nanos,
        incarnation: Incarnation,
        known: bool,
        out: &mut Vec<A>,
    ) -> Forgotten<C> {
        let before = self.incarnation.replace(incarnation);
        let is_new = before != Some(incarnation);
        (self.state, self.silent_since, self.heard, self.pinged) = (State::Up, now, now, now);
        self.is_given_up = false;
        let mut lost = Vec::new();
        // The manager of names keeps its answers over its lives; what others do again in a new one is what it was.
        if !known && (!is_new || self.party == Party::Metadata) {
            // The session is forgotten: what changes something may have been carried out.
            // A file that a forgotten session had open is closed; to say so again changes nothing.
            let closes = |asked: &Asked<C, P>| matches!(asked.message, Message::Close { .. });
            let changing =
                |asked: &Asked<C, P>| asked.change.is_some() && asked.is_sent && !closes(asked);
            let numbers: Vec<Request> = self
                .asked
                .iter()
                .filter(|(_, asked)| changing(asked))
                .map(|(&request, _)| request)
                .collect();
            let asked = numbers.iter().filter_map(|request| self.asked.remove(request));
            lost.extend(asked.filter_map(|asked| asked.context));
        }
        self.asked.retain(|_, asked| asked.context.is_some());
        for (&request, asked) in &mut self.asked {
            asked.is_sent = true;
            out.push(asked.wish(self.party, request).into());
        }
        self.go_on(out);
        self.wake(now, out);
        Forgotten { views: is_new || !known, lost }
    }

    /// There is no connection, or it could not be made.
    pub(crate) fn disconnected<A: From<Wish<P>>>(&mut self, now: Nanos, out: &mut Vec<A>) {
        let wait = if self.state == State::Up { Nanos::ZERO } else { RETRY_AFTER };
        let was_up = self.state == State::Up;
        self.pass_over_absence(now);
        self.state = State::Down { retry_at: now.after(wait) };
        if was_up && self.asked.is_empty() && !is_planted(Plant::OpensForgotten) {
            // Who is not seen for long is forgotten, with the files it has open.
            (self.silent_since, self.heard, self.pinged) = (now, now, now);
            self.ping(out);
        }
        self.connect_if_needed(now, out);
        self.wake(now, out);
    }

    /// A reply has come. Gives what it is for, once.
    pub(crate) fn replied<A: From<Wish<P>>>(
        &mut self,
        now: Nanos,
        request: Request,
        out: &mut Vec<A>,
    ) -> Option<C> {
        (self.silent_since, self.heard) = (now, now);
        let context = self.asked.remove(&request)?.context;
        self.go_on(out);
        context
    }

    fn is_silent(&self, now: Nanos) -> bool {
        !self.asked.is_empty() && now.since(self.silent_since) >= PING_AFTER
    }

    /// The party has not answered, but runs.
    pub(crate) fn runs(&mut self, now: Nanos) {
        if now.since(self.heard) < RUNNING_MAX {
            self.silent_since = now;
        }
    }

    /// Who is woken long after the wish was not there to hear anybody or to ask for a sign of life: it was suspended, as a
    /// job by its scheduler or a virtual machine with all that runs in it. That time is nobody's silence. Whatever comes first
    /// then finds it, as a new wish forgets the old one; and nobody is heard of later than now.
    fn pass_over_absence(&mut self, now: Nanos) {
        let absence = now.since(self.woken_at);
        if !self.asked.is_empty() && absence >= PING_AFTER {
            self.silent_since = self.silent_since.after(absence).min(now);
            self.heard = self.heard.after(absence).min(now);
            self.woken_at = now;
        }
    }

    /// Sends what fits the window now.
    fn go_on<A: From<Wish<P>>>(&mut self, out: &mut Vec<A>) {
        while let Some(asked) = self.waiting.front()
            && self.fits(asked)
        {
            let Some(asked) = self.waiting.pop_front() else { return };
            self.put(asked, out);
        }
    }

    /// Looks at the time: connects again, asks for a sign of life, or gives up and gives back all that
    /// was asked.
    pub(crate) fn woke<A: From<Wish<P>>>(&mut self, now: Nanos, out: &mut Vec<A>) -> Vec<C> {
        if self.asked.is_empty() {
            return Vec::new();
        }
        self.pass_over_absence(now);
        if now.since(self.silent_since) >= self.failure_timeout {
            return self.give_up(now, out);
        }
        if self.state == State::Up && now.since(self.pinged.max(self.silent_since)) >= PING_AFTER {
            self.pinged = now;
            // One that is not answered is enough, however long it takes.
            if self.asked.values().all(|asked| asked.context.is_some()) {
                self.ping(out);
            }
        }
        self.pinged = self.pinged.max(self.silent_since);
        self.connect_if_needed(now, out);
        self.wake(now, out);
        Vec::new()
    }

    /// Asks for a sign of life.
    fn ping<A: From<Wish<P>>>(&mut self, out: &mut Vec<A>) {
        let ping = Asked {
            message: Message::Ping,
            payload: None,
            context: None,
            change: None,
            is_sent: false,
        };
        self.put(ping, out);
    }

    fn give_up<A: From<Wish<P>>>(&mut self, now: Nanos, out: &mut Vec<A>) -> Vec<C> {
        if matches!(self.state, State::Connecting | State::Up) {
            out.push(Wish::Party(PartyAction::Disconnect { from: self.party }).into());
        }
        self.state = State::Down { retry_at: now };
        self.is_given_up = true;
        let asked = std::mem::take(&mut self.asked).into_values();
        asked.chain(self.waiting.drain(..)).filter_map(|asked| asked.context).collect()
    }
}

/// What a party has forgotten that was connected to again.
#[derive(Debug)]
pub(crate) struct Forgotten<C> {
    /// The views that were stored there.
    pub(crate) views: bool,
    /// What these requests came to.
    pub(crate) lost: Vec<C>,
}

impl<C, P: Clone> Asked<C, P> {
    fn wish(&self, to: Party, request: Request) -> Wish<P> {
        let (message, payload) = (self.message.clone(), self.payload.clone());
        Wish::Party(PartyAction::Ask { to, request, message, payload })
    }
}

impl Message {
    /// Whether a request changes something, so that it must not be carried out twice.
    pub(crate) fn changes(&self) -> bool {
        matches!(
            self,
            Message::Open { .. }
                | Message::Close { .. }
                | Message::MakeDirectory { .. }
                | Message::Remove { .. }
                | Message::Rename { .. }
                | Message::Advance { by: 1.., .. }
                | Message::Write(_)
                | Message::Resize { .. }
                | Message::Release { .. }
                | Message::Resume { .. }
        )
    }

    /// The reply that says that something was not done.
    pub(crate) fn failed(code: Code, text: impl Into<String>) -> Message {
        Message::Failed { code, text: text.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Wished {
        is_ping: bool,
    }

    impl From<Wish<()>> for Wished {
        fn from(wish: Wish<()>) -> Wished {
            use PartyAction::Ask;
            Wished { is_ping: matches!(wish, Wish::Party(Ask { message: Message::Ping, .. })) }
        }
    }

    fn at(milliseconds: u64) -> Nanos {
        Nanos(milliseconds * 1_000_000)
    }

    fn question() -> Message {
        Message::Look { path: b"/".to_vec() }
    }

    /// A link that gives up after 8 s, connected at the start.
    fn connected() -> Link<u32, ()> {
        let mut link = Link::new(Party::Metadata, at(8_000));
        link.connected(at(0), Incarnation(1), false, &mut Vec::<Wished>::new());
        link
    }

    /// When, in milliseconds, a link that is woken all the time gives back questions, and which.
    fn given_up(link: &mut Link<u32, ()>, from: u64) -> (u64, Vec<u32>) {
        let out = &mut Vec::<Wished>::new();
        let mut late = Vec::new();
        let end = (from..from + 100_000).find(|&now| {
            late = link.woke(at(now), out);
            !late.is_empty()
        });
        (end.unwrap(), late)
    }

    #[test]
    fn who_was_given_up_is_not_waited_for_as_long_again_until_seen() {
        let mut link: Link<u32, ()> = Link::new(Party::Metadata, at(8_000));
        let out = &mut Vec::<Wished>::new();
        link.ask(at(0), question(), None, 1, out);
        assert_eq!(given_up(&mut link, 0), (8_000, vec![1]));
        link.ask(at(9_000), question(), None, 2, out);
        assert_eq!(given_up(&mut link, 9_000), (9_500, vec![2]));
        link.ask(at(11_000), question(), None, 3, out);
        link.connected(at(11_500), Incarnation(1), false, out);
        assert_eq!(given_up(&mut link, 11_500), (19_500, vec![3]));
    }

    #[test]
    fn a_call_that_has_waited_in_vain_waits_only_half_a_second_more_for_one_that_is_not_heard() {
        let (mut link, out) = (connected(), &mut Vec::<Wished>::new());
        link.ask_briefly(at(20_000), question(), None, 1, out);
        assert!(link.woke(at(20_499), out).is_empty());
        // That it runs counts as ever.
        link.runs(at(20_499));
        assert_eq!(given_up(&mut link, 20_499), (28_499, vec![1]));

        // A sign of life was asked for with the question; who gives it has the time that all have.
        link.connected(at(30_000), Incarnation(1), true, out);
        out.clear();
        link.ask_briefly(at(40_000), question(), None, 4, out);
        assert!(out.iter().any(|wished| wished.is_ping));
        assert!(link.replied(at(40_400), Request(4), out).is_none());
        assert_eq!(given_up(&mut link, 40_400), (48_400, vec![4]));

        // Who is waited for already by others has the time that they give.
        link.connected(at(50_000), Incarnation(1), true, out);
        link.ask(at(50_000), question(), None, 2, out);
        link.ask_briefly(at(50_100), question(), None, 3, out);
        assert_eq!(given_up(&mut link, 50_100), (58_000, vec![2, 3]));
    }

    #[test]
    fn what_a_forgotten_session_had_changed_is_done_again_by_servers_and_not_by_the_manager() {
        let change = || Message::MakeDirectory { path: b"/d".to_vec(), mode: 0o755 };
        let lost = |party, known| {
            let (mut link, out) =
                (Link::<u32, ()>::new(party, at(8_000)), &mut Vec::<Wished>::new());
            link.connected(at(0), Incarnation(1), false, out);
            link.ask(at(0), change(), None, 1, out);
            link.ask(at(0), question(), None, 2, out);
            link.ask(at(0), Message::Close { open: crate::OpenNumber(1) }, None, 3, out);
            link.disconnected(at(1), out);
            link.connected(at(2), Incarnation(2), known, out).lost
        };
        assert_eq!(lost(Party::Metadata, false), [1]);
        assert_eq!(lost(Party::Metadata, true), [0; 0]);
        assert_eq!(lost(Party::Server(0), false), [0; 0]);
    }

    #[test]
    fn time_that_the_own_process_was_suspended_is_no_silence_of_others() {
        let (mut link, out) = (connected(), &mut Vec::<Wished>::new());
        link.ask(at(0), question(), None, 1, out);
        assert!(link.woke(at(1_000), out).is_empty());
        // It wished to be woken at 2 s: two seconds of silence have been heard.
        assert_eq!(given_up(&mut link, 1_000_000), (1_006_000, vec![1]));
    }

    #[test]
    fn a_suspension_is_no_silence_whatever_is_met_first_after_it() {
        let at = |seconds: u64| Nanos(seconds * 1_000_000_000);
        let question = || Message::Look { path: b"/".to_vec() };
        let suspended = |out: &mut Vec<Wished>| {
            let mut link: Link<u32, ()> = Link::new(Party::Metadata, at(8));
            link.connected(at(0), Incarnation(1), false, out);
            link.ask(at(0), question(), None, 1, out);
            assert!(link.woke(at(1), out).is_empty());
            link
        };
        let out = &mut Vec::<Wished>::new();
        let mut link = suspended(out);
        link.ask(at(1_000), question(), None, 2, out);
        assert!(link.woke(at(1_001), out).is_empty(), "a call");
        let mut link = suspended(out);
        link.disconnected(at(1_000), out);
        assert!(link.woke(at(1_001), out).is_empty(), "a connection that was lost");
    }

    #[test]
    fn who_falls_silent_after_a_suspension_is_waited_for_no_longer_than_others() {
        let at = |seconds: u64| Nanos(seconds * 1_000_000_000);
        let question = || Message::Look { path: b"/".to_vec() };
        let mut link: Link<u32, ()> = Link::new(Party::Metadata, at(8));
        let out = &mut Vec::<Wished>::new();
        link.connected(at(0), Incarnation(1), false, out);
        link.ask(at(0), question(), None, 1, out);
        link.ask(at(0), question(), None, 2, out);
        // An hour later an answer is there, and is heard before anything else.
        assert_eq!(link.replied(at(3_600), Request(1), out), Some(1));
        let mut given_up = (3_600..3_620).map(|second| (second, link.woke(at(second), out)));
        let (second, lost) = given_up.find(|(_, lost)| !lost.is_empty()).expect("it is given up");
        assert_eq!((second, lost), (3_608, vec![2]));
    }

    #[test]
    fn who_runs_but_does_not_answer_is_waited_for_a_minute_and_then_no_longer_than_others() {
        let (mut link, out) = (connected(), &mut Vec::<Wished>::new());
        link.ask(at(0), question(), None, 1, out);
        for second in 1..67 {
            link.runs(at(second * 1_000));
            assert!(link.woke(at(second * 1_000), out).is_empty(), "at {second} s");
        }
        link.runs(at(67_000));
        assert_eq!(link.woke(at(67_000), out), [1]);
        // It has been waited for: who asks it again has only the time to find it.
        link.ask(at(70_000), question(), None, 2, out);
        link.runs(at(70_000));
        assert_eq!(given_up(&mut link, 70_000), (70_500, vec![2]));
    }
}
