//! The client of one process: turns calls on files into requests, and answers each call exactly once.
//!
//! Promises: a call is answered when everything it asked for is done, or nothing of it is under way any
//! more; a server that gives no sign of life for the failure time ends the calls that need it. Requests are
//! asked again after a lost connection. Of a collective call all ranks get the same result.
//!
//! Costs: O(log n) in calls and requests under way for each message; a transfer looks once at each stripe.

mod access;
mod answers;
mod events;
mod group;
mod holds;
mod lanes;
mod losses;
mod program_order;
mod spread;
mod stretch;
mod transfers;
mod views;

pub use events::{Action, Call, CallNumber, Done, Event, Failure, FileNumber, Gather, Outcome};

use crate::configuration::Durability;
use crate::links::{Heard, Links, Wish};
use crate::message::PATH_BYTES_MAX;
use crate::{Attributes, Buffer, Code, Message, Opened, Party, PartyEvent};
use answers::{answer, failure, failure_of, not_open, outcome_of};
use group::Then;
use holds::Holders;
use iolab_policy::Machine;
use iolab_policy::placement::catalog as placement;
use iolab_policy::schedule::catalog as schedule;
use iolab_policy::write_policy::catalog as write_policy;
use iolab_vocab::Nanos;
use losses::Unsynced;
use program_order::{Collectives, ProgramOrder};
use spread::{Question, Spread};
use std::collections::BTreeMap;
use stretch::Stretch;
use transfers::{Transfer, Transfers};
use views::Views;

/// What a client is built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// I/O servers of the instance.
    pub servers: u32,
    /// Cache managers of the instance; with none, servers are asked for data themselves.
    pub caches: u32,
    /// Payload of one transfer, about: stripes are added until there is so much. At most 1 MiB.
    pub transfer_bytes: u64,
    /// Transfers in flight to one server.
    pub depth: u32,
    /// Which cache manager has which blocks.
    pub placement: &'static placement::Row,
    /// When cache managers bring to servers what was written.
    pub write_policy: &'static write_policy::Row,
    /// In which order an access comes to its servers.
    pub schedule: &'static schedule::Row,
    /// How long calls wait for a server that does not answer.
    pub failure_timeout: Nanos,
    /// What a sync makes of what was written.
    pub durability: Durability,
}

impl Settings {
    /// No caches, transfers of 256 KiB, two at a time to each server, in turn from the own one on; a failure
    /// after 8 s; class `process`.
    pub fn usual(servers: u32) -> Settings {
        Settings {
            servers,
            caches: 0,
            placement: placement::USUAL,
            write_policy: write_policy::USUAL,
            transfer_bytes: 256 << 10,
            depth: 2,
            schedule: schedule::USUAL,
            failure_timeout: Nanos(8_000_000_000),
            durability: Durability::Process,
        }
    }
}

/// The client machine. One per process; any number of calls may be under way.
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    links: Links<Errand, Gather>,
    files: BTreeMap<FileNumber, File>,
    last_file: u32,
    views: Views,
    tasks: BTreeMap<CallNumber, Task>,
    holders: Holders,
    program_order: ProgramOrder,
}

/// A file of this process.
#[derive(Clone, Debug)]
struct File {
    opened: Opened,
    rank: u32,
    size: u32,
    /// The next collective of the group.
    sequence: u64,
    /// Those that this process has called.
    collectives: Collectives,
    /// What the one before came to.
    previous: Code,
    is_atomic: bool,
    /// What its parties may still lose of it.
    unsynced: Unsynced,
}

/// What a reply is for.
#[derive(Debug)]
enum Errand {
    /// Nobody waits for it.
    Nobody,
    /// The one answer that a call waits for.
    Answer(CallNumber),
    /// What a part of a file says to a call that asks all of them.
    Part(CallNumber, u32),
    /// A transfer.
    Transfer(Transfer),
    /// What a collective came to.
    Verdict(CallNumber),
    /// A hold in a subfile.
    Hold(CallNumber),
    /// The release of the hold in a subfile.
    Release(CallNumber, u32),
    /// What a server did not hear in time though others there wait for it, an arrival at a collective or a
    /// release: it is told until it is heard.
    Missed(Message),
}

/// A call under way.
#[derive(Debug)]
enum Task {
    /// A question to the manager whose answer is the outcome.
    Ask,
    /// What a name stands for; then how long its subfiles are.
    Look {
        path: Vec<u8>,
        found: Option<(Attributes, Spread)>,
    },
    /// A question to all who have a part of a file.
    Spread(Spread),
    Access {
        transfers: Box<Transfers>,
        failure: Option<Failure>,
    },
    /// Its own part is done; the ranks wait for each other.
    Agree {
        file: FileNumber,
        own: Outcome,
        then: Then,
        /// Whether the others have been told: those called before come first.
        has_come: bool,
    },
    /// The end of an open; what it comes to is known.
    Close {
        outcome: Outcome,
    },
}

impl Client {
    /// A client without connections.
    pub fn new(settings: Settings) -> Client {
        Client {
            settings,
            links: Links::new(settings.failure_timeout),
            files: BTreeMap::new(),
            last_file: 0,
            views: Views::default(),
            tasks: BTreeMap::new(),
            holders: Holders::default(),
            program_order: ProgramOrder::default(),
        }
    }

    /// The parties that ought to have answered for a second. Where one runs all the same, [`PartyEvent::Runs`] tells.
    pub fn silent(&self, now: Nanos) -> Vec<Party> {
        self.links.silent(now)
    }

    fn ask(
        &mut self,
        now: Nanos,
        to: Party,
        (message, payload): (Message, Option<Gather>),
        errand: Errand,
        out: &mut Vec<Action>,
    ) {
        let has_waited = self.has_waited_in_vain(&errand);
        let link = self.links.to(to);
        match has_waited {
            true => link.ask_briefly(now, message, payload, errand, out),
            false => link.ask(now, message, payload, errand, out),
        }
    }

    /// Whether the call of an errand has failed already because a party did not answer, or is a close behind a
    /// collective call that has.
    fn has_waited_in_vain(&self, errand: &Errand) -> bool {
        let call = match errand {
            Errand::Nobody | Errand::Missed(_) => return false,
            Errand::Answer(call) | Errand::Part(call, _) => call,
            Errand::Verdict(call) | Errand::Hold(call) | Errand::Release(call, _) => call,
            Errand::Transfer(transfer) => &transfer.call,
        };
        let code = match self.tasks.get(call) {
            Some(Task::Access { failure, .. }) => failure.as_ref().map(|failure| failure.code),
            Some(Task::Agree { own: outcome, .. } | Task::Close { outcome }) => {
                outcome.as_ref().err().map(|failure| failure.code)
            }
            Some(Task::Spread(spread) | Task::Look { found: Some((_, spread)), .. }) => {
                let closed = spread.closes().and_then(|file| self.files.get(&file));
                spread.failed().or(closed.map(|file| file.previous))
            }
            Some(Task::Ask | Task::Look { found: None, .. }) | None => None,
        };
        code == Some(Code::TIMED_OUT)
    }

    fn called(&mut self, now: Nanos, call: CallNumber, what: Call, out: &mut Vec<Action>) {
        if what.path_bytes() > PATH_BYTES_MAX {
            // The manager would say the same, if it fits a frame.
            return answer(call, failure(Code::NAME_TOO_LONG, "the path is too long"), out);
        }
        self.queue_collective(call, &what);
        if let Some((file, loss)) = self.take_loss(&what) {
            return self.tell_loss(now, call, (file, what), loss, out);
        }
        let message = match what {
            Call::Open { path, wish } => Message::Open { path, wish },
            Call::MakeDirectory { path, mode } => Message::MakeDirectory { path, mode },
            Call::Remove { path, kind } => Message::Remove { path, kind },
            Call::Rename { from, to } => Message::Rename { from, to },
            Call::List { path, after } => Message::List { path, after },
            Call::SetAtomic { file, atomic } => {
                let Some(file) = self.files.get_mut(&file) else {
                    return answer(call, not_open(), out);
                };
                file.is_atomic = atomic;
                return answer(call, Ok(Done::Nothing), out);
            }
            Call::Advance { file, setting, from, by } => match self.files.get(&file) {
                Some(file) => Message::Advance { open: file.opened.open, setting, from, by },
                None => return answer(call, not_open(), out),
            },
            Call::Look { path } => return self.look(now, call, path, out),
            Call::Adopt { opened, rank, size } => {
                let file = File {
                    opened,
                    rank,
                    size,
                    sequence: 0,
                    collectives: Collectives::new(),
                    previous: Code::OK,
                    is_atomic: false,
                    unsynced: Unsynced::default(),
                };
                return self.adopt(now, call, file, out);
            }
            Call::Access { file, direction, view, from, to, collective } => {
                let stretch = Stretch { view, from, to, origin: from };
                return self.access(now, call, (file, direction, collective), stretch, out);
            }
            Call::Agree { file, result } => {
                let own = match result.is_ok() {
                    true => Ok(Done::Nothing),
                    false => Err(Failure { code: result, text: result.to_string() }),
                };
                return self.agree(now, call, file, own, Then::Answer, out);
            }
            Call::Close { file } if self.settings.durability == Durability::None => {
                let own = self.nothing_synced(file);
                return self.agree(now, call, file, own, Then::Close, out);
            }
            Call::Sync { file } if self.settings.durability == Durability::None => {
                return answer(call, self.nothing_synced(file), out);
            }
            Call::Close { file } => {
                return match self.files.get(&file).is_some_and(|file| file.unsynced.is_some()) {
                    true => self.spread_file(now, call, file, Question::SyncToClose, out),
                    false => self.agree(now, call, file, Ok(Done::Nothing), Then::Close, out),
                };
            }
            Call::Size { file } => {
                return self.spread_file(now, call, file, Question::Measure, out);
            }
            Call::Resize { file, bytes } => {
                let question = Question::Resize { bytes };
                return self.spread_file(now, call, file, question, out);
            }
            Call::Sync { file } => return self.spread_file(now, call, file, Question::Sync, out),
        };
        self.tasks.insert(call, Task::Ask);
        self.ask(now, Party::Metadata, (message, None), Errand::Answer(call), out);
    }

    /// A reply, or what stands for one that will not come.
    fn replied(
        &mut self,
        now: Nanos,
        from: Party,
        errand: Errand,
        (message, payload): (Message, Option<Buffer>),
        out: &mut Vec<Action>,
    ) {
        let Errand::Transfer(transfer) = errand else {
            out.extend(payload.map(|buffer| Action::Release { buffer }));
            return match errand {
                Errand::Nobody | Errand::Missed(_) | Errand::Transfer(_) => {}
                Errand::Answer(call) => self.answered(now, call, from, message, out),
                Errand::Part(call, part) => {
                    self.part_told(now, call, (from, part), message, out);
                }
                Errand::Verdict(call) => self.verdict(now, call, from, message, out),
                Errand::Hold(call) => self.held(now, call, from, message, out),
                Errand::Release(call, subfile) => {
                    self.released(now, call, (from, subfile), message, out);
                }
            };
        };
        self.landed(now, from, transfer, (message, payload), out);
    }

    /// The one answer that a call waits for.
    fn answered(
        &mut self,
        now: Nanos,
        call: CallNumber,
        from: Party,
        message: Message,
        out: &mut Vec<Action>,
    ) {
        match self.tasks.remove(&call) {
            Some(Task::Ask) => answer(call, outcome_of(from, message), out),
            Some(Task::Close { outcome }) => {
                // What happened before weighs more than that the manager could not be told.
                let outcome = outcome.and_then(|done| outcome_of(from, message).map(|_| done));
                answer(call, outcome, out);
            }
            Some(Task::Look { path, found: None }) => match message {
                Message::Attributes(attributes) => self.looked(now, call, (path, attributes), out),
                message => answer(call, Err(failure_of(from, message)), out),
            },
            _ => {}
        }
    }

    /// A part of a file has answered a call that asks all of them.
    fn part_told(
        &mut self,
        now: Nanos,
        call: CallNumber,
        (from, part): (Party, u32),
        message: Message,
        out: &mut Vec<Action>,
    ) {
        let managers = self.managers();
        match self.tasks.get_mut(&call) {
            Some(Task::Access { transfers, .. }) => {
                transfers.pending -= 1;
                let is_lane = managers.asked() == 0 || matches!(from, Party::Cache(_));
                let file = self.files.get(&transfers.file);
                let subfiles = file.map(|file| file.opened.layout.into());
                match message {
                    Message::End { bytes } => transfers.told(subfiles, is_lane, part, bytes),
                    message => return self.fail(now, call, failure_of(from, message), out),
                }
                if transfers.pending > 0 {
                    return;
                }
                match transfers.is_measuring && !transfers.tails.is_empty() {
                    true => self.measure_further(now, call, from, out),
                    // It failed meanwhile.
                    false => self.go_on(now, call, out),
                }
            }
            Some(Task::Spread(spread) | Task::Look { found: Some((_, spread)), .. }) => {
                let is_last = spread.told(managers, from, part, message);
                is_last.then(|| self.told_all(now, call, out));
            }
            _ => {}
        }
    }

    /// Requests that will not be answered: each is as if it had failed.
    fn unanswered(
        &mut self,
        now: Nanos,
        from: Party,
        errands: Vec<Errand>,
        code: Code,
        out: &mut Vec<Action>,
    ) {
        for errand in errands {
            if let Errand::Missed(message) = errand {
                let again = Errand::Missed(message.clone());
                self.ask(now, from, (message, None), again, out);
                continue;
            }
            let message = Message::Failed { code, text: code.to_string() };
            self.replied(now, from, errand, (message, None), out);
        }
    }
}

impl From<Wish<Gather>> for Action {
    fn from(wish: Wish<Gather>) -> Action {
        match wish {
            Wish::Party(action) => Action::Party(action),
            Wish::WakeAt(at) => Action::WakeAt(at),
        }
    }
}

impl Client {
    fn told_by_party(&mut self, now: Nanos, event: PartyEvent, out: &mut Vec<Action>) {
        match self.links.hear(now, event, out) {
            Heard::Nothing => {}
            Heard::Connected { to, incarnation, forgotten } => {
                if forgotten.views {
                    self.views.forgotten(to);
                    self.restarted(to, incarnation);
                }
                self.unanswered(now, to, forgotten.lost, Code::SESSION_LOST, out);
            }
            Heard::Replied { from, context: errand, message, payload } => {
                self.replied(now, from, errand, (message, payload), out);
            }
            Heard::Unwanted(buffer) => out.push(Action::Release { buffer }),
        }
    }
}

impl Machine for Client {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Called { call, what } => self.called(now, call, what, out),
            Event::Party(event) => self.told_by_party(now, event, out),
            Event::Moved { call } => {
                self.one_less(call);
                self.go_on(now, call, out);
            }
            Event::Woke => {
                for party in self.links.parties() {
                    let late = self.links.woke(now, party, out);
                    self.unanswered(now, party, late, Code::TIMED_OUT, out);
                }
            }
        }
    }
}
