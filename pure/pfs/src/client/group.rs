//! What the ranks of a group do together: they adopt an open, agree on results, close.

use super::answers::{answer, failure, failure_of, not_open};
use super::events::{Action, Call, CallNumber, Done, Failure, FileNumber, Outcome};
use super::program_order::Collectives;
use super::{Client, Errand, File, Task};
use crate::plant::{Plant, is_planted};
use crate::{Code, Message, Party, ViewNumber};
use iolab_vocab::Nanos;
use std::collections::BTreeSet;

/// What follows when all ranks have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    Answer,
    /// A file that could not be opened by all is no file.
    Adopt,
    Close,
}

impl File {
    /// This rank comes to the next collective.
    fn arrival(&self, result: Code, then: Then) -> Message {
        Message::Arrive {
            group: self.opened.open,
            size: self.size,
            rank: self.rank,
            sequence: self.sequence,
            result,
            previous: self.previous,
            last: then == Then::Close,
        }
    }
}

impl Client {
    pub(super) fn adopt(
        &mut self,
        now: Nanos,
        call: CallNumber,
        file: File,
        out: &mut Vec<Action>,
    ) {
        if file.rank >= file.size {
            let text = format!("rank {} of a group of {}", file.rank, file.size);
            return answer(call, failure(Code::INVALID, text), out);
        }
        self.last_file += 1;
        let number = FileNumber(self.last_file);
        let collectives = Collectives::from([call]);
        self.files.insert(number, File { collectives, ..file });
        self.agree(now, call, number, Ok(Done::Adopted(number)), Then::Adopt, out);
    }

    /// Comes to the next collective of a file's group with what this process has.
    pub(super) fn agree(
        &mut self,
        now: Nanos,
        call: CallNumber,
        number: FileNumber,
        own: Outcome,
        then: Then,
        out: &mut Vec<Action>,
    ) {
        let Some(file) = self.files.get_mut(&number) else {
            return answer(call, not_open(), out);
        };
        if file.size == 1 {
            return self.agreed(now, call, number, own, then, out);
        }
        self.tasks.insert(call, Task::Agree { file: number, own, then, has_come: false });
        match is_planted(Plant::CollectivesUnordered) {
            true => self.arrive(now, call, number, out),
            false => self.come_in_turn(now, number, out),
        }
    }

    /// Collectives of a file are decided in the order in which they were called.
    pub(super) fn queue_collective(&mut self, call: CallNumber, what: &Call) {
        let is_collective = matches!(
            what,
            Call::Access { collective: true, .. } | Call::Agree { .. } | Call::Close { .. }
        );
        if is_collective
            && let Some(file) = what.file().and_then(|number| self.files.get_mut(&number))
            && file.size > 1
        {
            file.collectives.push_back(call);
        }
    }

    /// Tells the home of a file what this process has come with to the next collective.
    pub(super) fn arrive(
        &mut self,
        now: Nanos,
        call: CallNumber,
        number: FileNumber,
        out: &mut Vec<Action>,
    ) {
        let Some(Task::Agree { own, then, has_come, .. }) = self.tasks.get_mut(&call) else {
            return;
        };
        *has_come = true;
        let result = own.as_ref().map_or_else(|failure| failure.code, |_| Code::OK);
        let then = *then;
        let Some(file) = self.files.get_mut(&number) else { return };
        let message = file.arrival(result, then);
        file.sequence += 1;
        let home = (file.opened.inode.0 % u64::from(self.settings.servers)) as u32;
        self.ask(now, Party::Server(home), (message, None), Errand::Verdict(call), out);
    }

    /// All ranks have come, or there are no others.
    pub(super) fn agreed(
        &mut self,
        now: Nanos,
        call: CallNumber,
        number: FileNumber,
        outcome: Outcome,
        then: Then,
        out: &mut Vec<Action>,
    ) {
        match then {
            Then::Answer => answer(call, outcome, out),
            Then::Adopt => {
                if outcome.is_err() {
                    self.files.remove(&number);
                }
                answer(call, outcome, out);
            }
            Then::Close => self.close(now, call, number, outcome, out),
        }
    }

    /// This process is through with a file; its views go, and with rank 0 the open.
    pub(super) fn close(
        &mut self,
        now: Nanos,
        call: CallNumber,
        number: FileNumber,
        outcome: Outcome,
        out: &mut Vec<Action>,
    ) {
        let Some(file) = self.files.remove(&number) else { return };
        let inode = file.opened.inode;
        for late in file.collectives {
            // Called behind the close, and waited for its turn.
            if let Some(Task::Agree { .. }) = self.tasks.get(&late) {
                self.tasks.remove(&late);
                answer(late, not_open(), out);
            }
        }
        if !self.files.values().any(|other| other.opened.inode == inode) {
            let views = self.views.close(inode);
            self.drop_views(now, views, out);
        }
        if file.rank > 0 {
            return answer(call, outcome, out);
        }
        self.tasks.insert(call, Task::Close { outcome });
        let message = Message::Close { open: file.opened.open };
        self.ask(now, Party::Metadata, (message, None), Errand::Answer(call), out);
    }

    pub(super) fn drop_views(
        &mut self,
        now: Nanos,
        views: Vec<(ViewNumber, BTreeSet<Party>)>,
        out: &mut Vec<Action>,
    ) {
        for (view, stored) in views {
            for at in stored {
                let message = Message::DropView { view };
                self.ask(now, at, (message, None), Errand::Nobody, out);
            }
        }
    }

    /// What a collective came to.
    pub(super) fn verdict(
        &mut self,
        now: Nanos,
        call: CallNumber,
        from: Party,
        message: Message,
        out: &mut Vec<Action>,
    ) {
        let Some(Task::Agree { file: number, own, then, .. }) = self.tasks.remove(&call) else {
            return;
        };
        if let Some(file) = self.files.get_mut(&number) {
            file.collectives.retain(|other| *other != call);
            let told =
                if let Message::Verdict { result, .. } = &message { *result } else { Code::OK };
            if let Err(own) = &own
                && own.code == Code::LOST
                && told != Code::LOST
            {
                // The call fails for another reason.
                file.unsynced.keep_loss(own.clone());
            }
        }
        let (code, who) = match message {
            Message::Verdict { result, rank: u32::MAX } => (result, None),
            Message::Verdict { result, rank } => (result, Some(rank)),
            message => {
                let why = failure_of(from, message);
                if let Some(file) = self.files.get_mut(&number) {
                    let before = file.sequence.saturating_sub(1);
                    let arrival = File { sequence: before, ..file.clone() }.arrival(why.code, then);
                    file.previous = why.code;
                    if why.code == Code::TIMED_OUT {
                        let missed = Errand::Missed(arrival.clone());
                        self.ask(now, from, (arrival, None), missed, out);
                    }
                }
                self.agreed(now, call, number, Err(why), then, out);
                return self.come_in_turn(now, number, out);
            }
        };
        if let Some(file) = self.files.get_mut(&number) {
            file.previous = code;
        }
        let outcome = match (own, code.is_ok()) {
            (own, true) => own,
            (Err(own), false) => Err(Failure { code, text: own.text }),
            (Ok(_), false) => {
                let who = who.map_or("another rank".to_owned(), |rank| format!("rank {rank}"));
                failure(code, format!("{who} failed in the same collective call: {code}"))
            }
        };
        self.agreed(now, call, number, outcome, then, out);
        self.come_in_turn(now, number, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Event, Settings};
    use crate::{Incarnation, Inode, Layout, OpenNumber, Opened, PartyEvent, Request};
    use iolab_policy::Machine;

    fn at(milliseconds: u64) -> Nanos {
        Nanos(milliseconds * 1_000_000)
    }

    /// What a client does when it hears that at that time.
    fn does(client: &mut Client, milliseconds: u64, event: Event) -> Vec<Action> {
        let mut out = Vec::new();
        client.step(at(milliseconds), event, &mut out);
        out
    }

    fn connected(to: Party) -> Event {
        Event::Party(PartyEvent::Connected { to, incarnation: Incarnation(1), known: false })
    }

    /// A client with so many servers, the last of them the home of the file that its group of two has open.
    fn with_a_file(servers: u32) -> Client {
        let mut client = Client::new(Settings::usual(servers));
        let home = Party::Server(servers - 1);
        let inode = Inode(u64::from(servers) - 1);
        let layout = Layout::striped(4096, 1, 0).unwrap();
        let opened = Opened { open: OpenNumber(1), inode, layout, created: true };
        let adopt = Call::Adopt { opened, rank: 0, size: 2 };
        does(&mut client, 0, Event::Called { call: CallNumber(1), what: adopt });
        does(&mut client, 0, connected(home));
        let message = Message::Verdict { result: Code::OK, rank: u32::MAX };
        let request = Request(1);
        let all_here = PartyEvent::Replied { from: home, request, message, payload: None };
        does(&mut client, 1, Event::Party(all_here));
        client
    }

    /// When, in milliseconds, a call is answered that is made now, while nobody answers.
    fn answered(client: &mut Client, now: u64, what: Call) -> Option<u64> {
        let call = CallNumber(now + 2);
        does(client, now, Event::Called { call, what });
        let is_told =
            |action: &Action| matches!(action, Action::Answer { call: it, .. } if *it == call);
        (now..now + 20_000).find(|&at| does(client, at, Event::Woke).iter().any(is_told))
    }

    #[test]
    fn a_close_that_has_waited_for_one_party_in_vain_does_not_wait_as_long_for_the_next() {
        let mut client = with_a_file(1);
        // The home is given up at 8.001 s; the manager is told of the close, and is as silent.
        let close = Call::Close { file: FileNumber(1) };
        assert_eq!(answered(&mut client, 1, close), Some(8_501));
    }

    #[test]
    fn a_close_behind_a_collective_call_that_nobody_answered_does_not_wait_as_long_for_a_sync() {
        let mut client = with_a_file(2);
        client.wrote(FileNumber(1), Party::Server(0));
        let agree = Call::Agree { file: FileNumber(1), result: Code::OK };
        assert_eq!(answered(&mut client, 1, agree), Some(8_001));
        // Half a second each: the server of its data, beside the home, which is asked again and again for the call
        // before; then the manager.
        let close = Call::Close { file: FileNumber(1) };
        assert_eq!(answered(&mut client, 8_001, close), Some(9_001));
    }
}
