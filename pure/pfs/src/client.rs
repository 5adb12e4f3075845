//! The client of one process: turns calls on files into requests, and answers each call exactly once.
//!
//! Promises: a call is answered when everything it asked for is done, or nothing of it is under way any
//! more; a server that gives no sign of life for the failure time ends the calls that need it. Requests are
//! asked again after a lost connection. Of a collective call all ranks get the same result.
//!
//! Costs: O(log n) in calls and requests under way for each message; a transfer looks once at each stripe.

mod transfers;
mod views;

use crate::links::{FromWish, Link, Wish};
use crate::message::PAYLOAD_BYTES_MAX;
use crate::{
    Access, Attributes, Buffer, Code, Entry, Incarnation, Inode, Kind, Layout, Message, OpenWish,
    Opened, Party, Portion, Request, ViewNumber,
};
use iolab_pattern::Nest;
use iolab_policy::Machine;
use iolab_vocab::{Direction, Nanos};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use transfers::{Stretch, Transfer, Transfers, has_bytes};
use views::Views;

/// A call, as the driver numbers them; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallNumber(pub u64);

/// A file that this process has open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileNumber(pub u32);

/// What a program wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// Opens a file for a group of ranks, or for this process alone; by one of them. Every rank then
    /// adopts what was opened.
    Open {
        /// Its path.
        path: Vec<u8>,
        /// How.
        wish: OpenWish,
    },
    /// Takes part in an open of the group.
    Adopt {
        /// What the rank that opened has got.
        opened: Opened,
        /// This process in the group.
        rank: u32,
        /// Processes of the group.
        size: u32,
    },
    /// Reads or writes bytes `[from, to)` of a view; in a collective call, together with all ranks.
    Access {
        /// The file.
        file: FileNumber,
        /// Which way.
        direction: Direction,
        /// The view; equal views are stored once. A view that is written must be proper.
        view: Arc<Nest>,
        /// First byte.
        from: u64,
        /// The byte after the last one.
        to: u64,
        /// All ranks make this call, and all get the worst of their results.
        collective: bool,
    },
    /// Comes together with all ranks: all get the worst of their results.
    Agree {
        /// The file of the group.
        file: FileNumber,
        /// This rank's result.
        result: Code,
    },
    /// How long the file is.
    Size {
        /// The file.
        file: FileNumber,
    },
    /// Gives the file that length.
    Resize {
        /// The file.
        file: FileNumber,
        /// In bytes.
        bytes: u64,
    },
    /// Makes what was written as durable as the class says.
    Sync {
        /// The file.
        file: FileNumber,
    },
    /// This process is through with a file; rank 0 ends the open.
    Close {
        /// The file.
        file: FileNumber,
    },
    /// What a name stands for, and how long it is.
    Look {
        /// Its path.
        path: Vec<u8>,
    },
    /// Makes a directory.
    MakeDirectory {
        /// Its path.
        path: Vec<u8>,
        /// Permissions.
        mode: u32,
    },
    /// Removes a name.
    Remove {
        /// Its path.
        path: Vec<u8>,
        /// A file's or a directory's.
        kind: Kind,
    },
    /// Gives something another name.
    Rename {
        /// The path so far.
        from: Vec<u8>,
        /// The path from now on.
        to: Vec<u8>,
    },
    /// Entries of a directory.
    List {
        /// Its path.
        path: Vec<u8>,
        /// Names that come after this one.
        after: Vec<u8>,
    },
}

/// What came of a call.
pub type Outcome = Result<Done, Failure>;

/// What a call that succeeded came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// Nothing to tell.
    Nothing,
    /// A file was opened; to be adopted by every rank, this one too.
    Opened(Opened),
    /// It was adopted.
    Adopted(FileNumber),
    /// So many bytes were written, or were there to be read: the rest is behind the end of the file.
    Bytes(u64),
    /// A file's length, or what a name stands for and its length.
    Size(u64),
    /// What a name stands for.
    Attributes {
        /// As the manager has them.
        attributes: Attributes,
        /// How long it is.
        bytes: u64,
    },
    /// Entries of a directory.
    Entries {
        /// In the order of names.
        entries: Vec<Entry>,
        /// Whether there are more.
        more: bool,
    },
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind.
    pub code: Code,
    /// What or who failed, for people: one line.
    pub text: String,
}

/// What a client is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The program has called.
    Called {
        /// As which.
        call: CallNumber,
        /// What.
        what: Call,
    },
    /// There is a connection.
    Connected {
        /// To whom.
        to: Party,
        /// Its life: if another than before, it knows nothing of this session but what its files have.
        incarnation: Incarnation,
        /// Whether it knows this session, with its views and answers.
        known: bool,
    },
    /// There is no connection: it was lost, or none could be made.
    Disconnected {
        /// With whom.
        from: Party,
    },
    /// A reply has come.
    Replied {
        /// From whom.
        from: Party,
        /// To which request.
        request: Request,
        /// What it says.
        message: Message,
        /// What it carries.
        payload: Option<Buffer>,
    },
    /// Bytes that were read are where the program wants them.
    Moved {
        /// Of which call.
        call: CallNumber,
    },
    /// The time has come. Drivers say so once at the start, too.
    Woke,
}

/// What a client wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A connection. Answered by [`Event::Connected`] or [`Event::Disconnected`].
    Connect {
        /// To whom.
        to: Party,
    },
    /// The end of a connection, or of the attempt to make one. No event of it follows.
    Disconnect {
        /// With whom.
        from: Party,
    },
    /// A request on its way.
    Ask {
        /// To whom.
        to: Party,
        /// Its number.
        request: Request,
        /// What.
        message: Message,
        /// What it carries.
        payload: Option<Gather>,
    },
    /// Bytes from a reply to the program's memory; the buffer is the driver's again. Answered by
    /// [`Event::Moved`].
    Move {
        /// Of which call.
        call: CallNumber,
        /// The bytes, from its first on: those of the portion.
        from: Buffer,
        /// Which bytes of the view they are; byte `y` of it is byte `y - origin` of the program's.
        portion: Portion,
        /// First byte of the view that the call is about.
        origin: u64,
    },
    /// Zeros in the program's memory: a hole of the file was read. Answered by [`Event::Moved`].
    Zero {
        /// Of which call.
        call: CallNumber,
        /// Which bytes of the view.
        portion: Portion,
        /// First byte of the view that the call is about.
        origin: u64,
    },
    /// A buffer is the driver's again.
    Release {
        /// Which.
        buffer: Buffer,
    },
    /// What came of a call; its memory is the program's again.
    Answer {
        /// Which.
        call: CallNumber,
        /// What.
        outcome: Outcome,
    },
    /// [`Event::Woke`] at that time or soon after; earlier wishes stand.
    WakeAt(Nanos),
}

/// The bytes of a portion, out of the program's memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Gather {
    /// The call whose memory it is.
    pub call: CallNumber,
    /// Which bytes of the view; byte `y` of it is byte `y - origin` of the program's.
    pub portion: Portion,
    /// First byte of the view that the call is about.
    pub origin: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// What a client is built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// I/O servers of the instance.
    pub servers: u32,
    /// Payload of one transfer, about: stripes are added until there is so much. At most 1 MiB.
    pub transfer_bytes: u64,
    /// Transfers in flight to one server.
    pub depth: u32,
    /// How long calls wait for a server that does not answer.
    pub failure_timeout: Nanos,
}

impl Settings {
    /// Transfers of 256 KiB, two at a time to each server; a failure after 8 s.
    pub fn usual(servers: u32) -> Settings {
        Settings {
            servers,
            transfer_bytes: 256 << 10,
            depth: 2,
            failure_timeout: Nanos(8_000_000_000),
        }
    }
}

/// The client machine. One per process; any number of calls may be under way.
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    links: BTreeMap<Party, Link<Errand, Gather>>,
    files: BTreeMap<FileNumber, File>,
    last_file: u32,
    views: Views,
    tasks: BTreeMap<CallNumber, Task>,
}

/// A file of this process.
#[derive(Debug)]
struct File {
    opened: Opened,
    rank: u32,
    size: u32,
    /// The next collective of the group.
    sequence: u64,
    /// What the one before came to.
    previous: Code,
}

/// What a reply is for.
#[derive(Debug)]
enum Errand {
    /// Nobody waits for it.
    Nobody,
    /// The one answer that a call waits for.
    Answer(CallNumber),
    /// What a subfile says to a call that asks all of them.
    Subfile(CallNumber, u32),
    /// A transfer.
    Transfer(Transfer),
    /// What a collective came to.
    Verdict(CallNumber),
}

/// A call under way.
#[derive(Debug)]
enum Task {
    /// A question to the manager whose answer is the outcome.
    Ask,
    /// What a name stands for; then how long its subfiles are.
    Look {
        attributes: Option<Attributes>,
        spread: Spread,
    },
    /// A question to all subfiles of a file.
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
    },
    /// The end of an open; what it comes to is known.
    Close {
        outcome: Outcome,
    },
}

/// What follows when all ranks have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Answer,
    /// A file that could not be opened by all is no file.
    Adopt,
    Close,
}

/// A question to all subfiles of a file.
#[derive(Debug, Default)]
struct Spread {
    layout: Option<Layout>,
    left: u32,
    /// How long the file is, if that was asked.
    bytes: Option<u64>,
    failure: Option<Failure>,
}

impl Client {
    /// A client without connections.
    pub fn new(settings: Settings) -> Client {
        Client {
            settings,
            links: BTreeMap::new(),
            files: BTreeMap::new(),
            last_file: 0,
            views: Views::default(),
            tasks: BTreeMap::new(),
        }
    }

    fn ask(
        &mut self,
        now: Nanos,
        to: Party,
        (message, payload): (Message, Option<Gather>),
        errand: Errand,
        out: &mut Vec<Action>,
    ) {
        let timeout = self.settings.failure_timeout;
        let link = self.links.entry(to).or_insert_with(|| Link::new(to, timeout));
        link.ask(now, message, payload, errand, out);
    }

    fn called(&mut self, now: Nanos, call: CallNumber, what: Call, out: &mut Vec<Action>) {
        let message = match what {
            Call::Open { path, wish } => Message::Open { path, wish },
            Call::MakeDirectory { path, mode } => Message::MakeDirectory { path, mode },
            Call::Remove { path, kind } => Message::Remove { path, kind },
            Call::Rename { from, to } => Message::Rename { from, to },
            Call::List { path, after } => Message::List { path, after },
            Call::Look { path } => {
                let task = Task::Look { attributes: None, spread: Spread::default() };
                self.tasks.insert(call, task);
                let question = (Message::Look { path }, None);
                return self.ask(now, Party::Metadata, question, Errand::Answer(call), out);
            }
            Call::Adopt { opened, rank, size } => {
                return self.adopt(
                    now,
                    call,
                    File { opened, rank, size, sequence: 0, previous: Code::OK },
                    out,
                );
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
            Call::Close { file } => {
                return self.agree(now, call, file, Ok(Done::Nothing), Then::Close, out);
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

    fn adopt(&mut self, now: Nanos, call: CallNumber, file: File, out: &mut Vec<Action>) {
        if file.rank >= file.size {
            let text = format!("rank {} of a group of {}", file.rank, file.size);
            return answer(call, failure(Code::INVALID, text), out);
        }
        self.last_file += 1;
        let number = FileNumber(self.last_file);
        self.files.insert(number, file);
        self.agree(now, call, number, Ok(Done::Adopted(number)), Then::Adopt, out);
    }

    /// Comes to the next collective of a file's group with what this process has.
    fn agree(
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
        let result = own.as_ref().map_or_else(|failure| failure.code, |_| Code::OK);
        let message = Message::Arrive {
            group: file.opened.open,
            size: file.size,
            rank: file.rank,
            sequence: file.sequence,
            result,
            previous: file.previous,
            last: then == Then::Close,
        };
        file.sequence += 1;
        let home = (file.opened.inode.0 % u64::from(self.settings.servers)) as u32;
        self.tasks.insert(call, Task::Agree { file: number, own, then });
        self.ask(now, Party::Server(home), (message, None), Errand::Verdict(call), out);
    }

    /// All ranks have come, or there are no others.
    fn agreed(
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
    fn close(
        &mut self,
        now: Nanos,
        call: CallNumber,
        number: FileNumber,
        outcome: Outcome,
        out: &mut Vec<Action>,
    ) {
        let Some(file) = self.files.remove(&number) else { return };
        let inode = file.opened.inode;
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

    fn drop_views(
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

    /// Asks all subfiles of a file that is open.
    fn spread_file(
        &mut self,
        now: Nanos,
        call: CallNumber,
        number: FileNumber,
        question: Question,
        out: &mut Vec<Action>,
    ) {
        let Some(file) = self.files.get(&number) else {
            return answer(call, not_open(), out);
        };
        if let Question::Resize { bytes } = question
            && bytes > LARGEST
        {
            return answer(call, failure(Code::TOO_LARGE, format!("a file of {bytes} bytes")), out);
        }
        let Opened { inode, layout, .. } = file.opened;
        let spread = Spread {
            layout: Some(layout),
            left: layout.subfiles(),
            bytes: (question == Question::Measure).then_some(0),
            failure: None,
        };
        self.tasks.insert(call, Task::Spread(spread));
        self.ask_subfiles(now, call, (inode, layout), question, out);
    }

    fn ask_subfiles(
        &mut self,
        now: Nanos,
        call: CallNumber,
        (inode, layout): (Inode, Layout),
        question: Question,
        out: &mut Vec<Action>,
    ) {
        for subfile in 0..layout.subfiles() {
            let message = question.to_subfile(inode, layout, subfile);
            let party = self.party_of(layout, subfile);
            self.ask(now, party, (message, None), Errand::Subfile(call, subfile), out);
        }
    }

    fn party_of(&self, layout: Layout, subfile: u32) -> Party {
        Party::Server(layout.server_of(subfile, self.settings.servers))
    }

    fn access(
        &mut self,
        now: Nanos,
        call: CallNumber,
        (number, direction, is_collective): (FileNumber, Direction, bool),
        stretch: Stretch,
        out: &mut Vec<Action>,
    ) {
        let Some(file) = self.files.get(&number) else {
            return answer(call, not_open(), out);
        };
        let Opened { inode, layout, .. } = file.opened;
        let rank = file.rank;
        if let Err(why) = check(direction, &stretch) {
            let failed = failure(Code::INVALID, why);
            return match is_collective {
                true => self.agree(now, call, number, failed, Then::Answer, out),
                false => answer(call, failed, out),
            };
        }
        let transfers = Transfers::new(number, direction, layout, stretch, is_collective, rank);
        let mut transfers = Box::new(transfers);
        transfers.number = self.views.take(inode, layout, &transfers.stretch.view);
        self.tasks.insert(call, Task::Access { transfers, failure: None });
        self.go_on(now, call, out);
    }

    /// Begins what may begin of an access; ends it if nothing is left.
    fn go_on(&mut self, now: Nanos, call: CallNumber, out: &mut Vec<Action>) {
        let settings =
            (self.settings.transfer_bytes.clamp(1, PAYLOAD_BYTES_MAX), self.settings.depth.max(1));
        loop {
            let mut turn = 0;
            while let Some(Task::Access { transfers, .. }) = self.tasks.get_mut(&call)
                && let Some((portion, bytes)) = transfers.next(&mut turn, settings)
            {
                self.transfer(now, call, portion, bytes, out);
            }
            let Some(Task::Access { transfers, failure }) = self.tasks.get_mut(&call) else {
                return;
            };
            if transfers.pending > 0 {
                return;
            }
            if failure.is_none() && !transfers.tails.is_empty() {
                return self.measure(now, call, out);
            }
            let over = transfers.number;
            let more = failure.is_none() && transfers.next_stretch();
            let dropped = self.views.give_back(over);
            self.drop_views(now, dropped, out);
            if !more {
                return self.transferred(now, call, out);
            }
            self.take_view(call);
        }
    }

    /// The stretch of an access is another one: its view is in use from now on.
    fn take_view(&mut self, call: CallNumber) {
        let Some(Task::Access { transfers, .. }) = self.tasks.get_mut(&call) else { return };
        if let Some(file) = self.files.get(&transfers.file) {
            let Opened { inode, layout, .. } = file.opened;
            transfers.number = self.views.take(inode, layout, &transfers.stretch.view);
        } else {
            transfers.stop();
        }
    }

    /// Sends a transfer, with its view if the server does not have that.
    fn transfer(
        &mut self,
        now: Nanos,
        call: CallNumber,
        portion: Portion,
        bytes: u64,
        out: &mut Vec<Action>,
    ) {
        let Some(Task::Access { transfers, .. }) = self.tasks.get_mut(&call) else { return };
        transfers.pending += 1;
        let (number, origin) = (transfers.number, transfers.stretch.origin);
        let direction = transfers.direction;
        let party = self.party_of(portion.layout, portion.subfile);
        for part in self.views.store(number, party) {
            self.ask(now, party, (part, None), Errand::Nobody, out);
        }
        let Portion { subfile, from, to, .. } = portion;
        let access = Access { view: number, subfile, from, to };
        let question = match direction {
            Direction::Read => (Message::Read(access), None),
            Direction::Write => {
                let gather = Gather { call, portion: portion.clone(), origin, bytes };
                (Message::Write(access), Some(gather))
            }
        };
        let transfer = Transfer { call, number, portion, origin };
        self.ask(now, party, question, Errand::Transfer(transfer), out);
    }

    /// Asks all subfiles where the file ends.
    fn measure(&mut self, now: Nanos, call: CallNumber, out: &mut Vec<Action>) {
        let Some(Task::Access { transfers, .. }) = self.tasks.get_mut(&call) else { return };
        let (layout, file) = (transfers.layout, transfers.file);
        let Some(inode) = self.files.get(&file).map(|file| file.opened.inode) else {
            return self.fail(
                now,
                call,
                failed(Code::BAD_FILE, "the file was closed meanwhile"),
                out,
            );
        };
        transfers.is_measuring = true;
        transfers.pending += layout.subfiles();
        transfers.ends = vec![0; layout.subfiles() as usize];
        self.ask_subfiles(now, call, (inode, layout), Question::Measure, out);
    }

    /// All subfiles have told an access how long they are.
    fn measured(&mut self, now: Nanos, call: CallNumber, out: &mut Vec<Action>) {
        let Some(Task::Access { transfers, .. }) = self.tasks.get_mut(&call) else { return };
        transfers.is_measuring = false;
        let (again, holes) = transfers.measured();
        let origin = transfers.stretch.origin;
        transfers.pending += holes.len() as u32;
        out.extend(holes.into_iter().map(|portion| Action::Zero { call, portion, origin }));
        for portion in again {
            self.transfer(now, call, portion, 0, out);
        }
        self.go_on(now, call, out);
    }

    /// The transfers of an access are over.
    fn transferred(&mut self, now: Nanos, call: CallNumber, out: &mut Vec<Action>) {
        let Some(Task::Access { transfers, failure }) = self.tasks.remove(&call) else { return };
        let own = match failure {
            None => Ok(Done::Bytes(transfers.bytes)),
            Some(failure) => Err(failure),
        };
        match transfers.is_collective {
            true => self.agree(now, call, transfers.file, own, Then::Answer, out),
            false => answer(call, own, out),
        }
    }

    /// Something failed that an access needs: nothing more is begun.
    fn fail(&mut self, now: Nanos, call: CallNumber, why: Failure, out: &mut Vec<Action>) {
        if let Some(Task::Access { transfers, failure }) = self.tasks.get_mut(&call) {
            failure.get_or_insert(why);
            transfers.stop();
            self.go_on(now, call, out);
        }
    }

    /// One request or move of an access is over.
    fn one_less(&mut self, call: CallNumber) {
        if let Some(Task::Access { transfers, .. }) = self.tasks.get_mut(&call) {
            transfers.pending -= 1;
        }
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
                Errand::Nobody | Errand::Transfer(_) => {}
                Errand::Answer(call) => self.answered(now, call, from, message, out),
                Errand::Subfile(call, subfile) => {
                    self.subfile_told(now, call, (from, subfile), message, out);
                }
                Errand::Verdict(call) => self.verdict(now, call, from, message, out),
            };
        };
        self.landed(now, from, transfer, (message, payload), out);
    }

    /// A transfer is over.
    fn landed(
        &mut self,
        now: Nanos,
        from: Party,
        transfer: Transfer,
        (message, payload): (Message, Option<Buffer>),
        out: &mut Vec<Action>,
    ) {
        let Transfer { call, number, portion, origin } = transfer;
        self.one_less(call);
        let Some(Task::Access { transfers, failure }) = self.tasks.get_mut(&call) else {
            return out.extend(payload.map(|buffer| Action::Release { buffer }));
        };
        let may_repeat = failure.is_none() && transfers.may_repeat();
        let is_read = transfers.direction == Direction::Read;
        match message {
            Message::Data { end } if is_read => {
                transfers.landed(portion.subfile);
                let end = end.clamp(portion.from, portion.to);
                let tail = portion.behind(end);
                if has_bytes(&tail) {
                    transfers.tails.push(tail);
                }
                let portion = portion.before(end);
                if let Some(from) = payload {
                    transfers.pending += 1;
                    out.push(Action::Move { call, from, portion, origin });
                } else if has_bytes(&portion) {
                    let text = format!("{from} told of data and sent none");
                    return self.fail(now, call, failed(Code::BAD_MESSAGE, text), out);
                }
            }
            Message::Done if !is_read => transfers.landed(portion.subfile),
            Message::Failed { code: Code::UNKNOWN_VIEW, .. } if may_repeat => {
                transfers.unknown_count += 1;
                self.views.unknown(number, from);
                let bytes = portion.bytes();
                return self.transfer(now, call, portion, bytes, out);
            }
            message => {
                out.extend(payload.map(|buffer| Action::Release { buffer }));
                return self.fail(now, call, failure_of(from, message), out);
            }
        }
        self.go_on(now, call, out);
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
            Some(Task::Look { attributes: None, .. }) => match message {
                Message::Attributes(attributes) => self.looked(now, call, attributes, out),
                message => answer(call, Err(failure_of(from, message)), out),
            },
            _ => {}
        }
    }

    /// What a name stands for is known; how long a file is, its subfiles know.
    fn looked(&mut self, now: Nanos, call: CallNumber, found: Attributes, out: &mut Vec<Action>) {
        let Some(layout) = found.layout else {
            return answer(call, Ok(Done::Attributes { attributes: found, bytes: 0 }), out);
        };
        let left = layout.subfiles();
        let spread = Spread { layout: Some(layout), left, bytes: Some(0), failure: None };
        self.tasks.insert(call, Task::Look { attributes: Some(found), spread });
        self.ask_subfiles(now, call, (found.inode, layout), Question::Measure, out);
    }

    /// A subfile has answered a call that asks all of them.
    fn subfile_told(
        &mut self,
        now: Nanos,
        call: CallNumber,
        (from, subfile): (Party, u32),
        message: Message,
        out: &mut Vec<Action>,
    ) {
        match self.tasks.get_mut(&call) {
            Some(Task::Access { transfers, .. }) => {
                transfers.pending -= 1;
                match message {
                    Message::End { bytes } => transfers.ends[subfile as usize] = bytes,
                    message => return self.fail(now, call, failure_of(from, message), out),
                }
                if transfers.pending > 0 {
                    return;
                }
                match transfers.is_measuring && !transfers.tails.is_empty() {
                    true => self.measured(now, call, out),
                    // It failed meanwhile.
                    false => self.go_on(now, call, out),
                }
            }
            Some(Task::Spread(spread) | Task::Look { spread, .. }) => {
                let is_last = spread.told(from, subfile, message);
                is_last.then(|| self.told_all(call, out));
            }
            _ => {}
        }
    }

    fn told_all(&mut self, call: CallNumber, out: &mut Vec<Action>) {
        let (attributes, spread) = match self.tasks.remove(&call) {
            Some(Task::Spread(spread)) => (None, spread),
            Some(Task::Look { attributes, spread }) => (attributes, spread),
            _ => return,
        };
        let outcome = match (spread.failure, attributes, spread.bytes) {
            (Some(failure), ..) => Err(failure),
            (None, Some(attributes), bytes) => {
                Ok(Done::Attributes { attributes, bytes: bytes.unwrap_or(0) })
            }
            (None, None, Some(bytes)) => Ok(Done::Size(bytes)),
            (None, None, None) => Ok(Done::Nothing),
        };
        answer(call, outcome, out);
    }

    /// What a collective came to.
    fn verdict(
        &mut self,
        now: Nanos,
        call: CallNumber,
        from: Party,
        message: Message,
        out: &mut Vec<Action>,
    ) {
        let Some(Task::Agree { file: number, own, then }) = self.tasks.remove(&call) else {
            return;
        };
        let (code, who) = match message {
            Message::Verdict { result, rank: u32::MAX } => (result, None),
            Message::Verdict { result, rank } => (result, Some(rank)),
            message => {
                let why = failure_of(from, message);
                return self.agreed(now, call, number, Err(why), then, out);
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
            let message = Message::Failed { code, text: code.to_string() };
            self.replied(now, from, errand, (message, None), out);
        }
    }
}

/// The largest file.
const LARGEST: u64 = i64::MAX as u64;

/// What all subfiles of a file are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Measure,
    Resize { bytes: u64 },
    Sync,
}

impl Question {
    fn to_subfile(self, inode: Inode, layout: Layout, subfile: u32) -> Message {
        match self {
            Question::Measure => Message::Measure { inode, subfile },
            Question::Sync => Message::Sync { inode, subfile },
            Question::Resize { bytes } => {
                // The subfile with the last byte is as long as the file says; others at most so long.
                let extends = bytes.checked_sub(1).is_some_and(|x| layout.subfile_of(x) == subfile);
                let bytes = layout.bytes_below(subfile, bytes);
                Message::Resize { inode, subfile, bytes, extends }
            }
        }
    }
}

impl Spread {
    /// Takes what a subfile says. Tells whether it was the last.
    fn told(&mut self, from: Party, subfile: u32, message: Message) -> bool {
        self.left -= 1;
        match (message, &mut self.bytes, self.layout) {
            (Message::End { bytes: end }, Some(bytes), Some(layout)) => {
                *bytes = layout.file_bytes(subfile, end).max(*bytes);
            }
            (Message::Done, None, _) => {}
            (message, ..) => {
                self.failure.get_or_insert(failure_of(from, message));
            }
        }
        self.left == 0
    }
}

/// Whether a stretch may be moved that way; or why not.
fn check(direction: Direction, stretch: &Stretch) -> Result<(), String> {
    let Stretch { view, from, to, .. } = stretch;
    if from > to || *to > view.size() {
        return Err(format!("bytes {from} to {to} of a view of {} bytes", view.size()));
    }
    match direction {
        Direction::Write => view.check_proper().map_err(|refusal| refusal.message),
        Direction::Read => Ok(()),
    }
}

fn answer(call: CallNumber, outcome: Outcome, out: &mut Vec<Action>) {
    out.push(Action::Answer { call, outcome });
}

fn failed(code: Code, text: impl Into<String>) -> Failure {
    Failure { code, text: text.into() }
}

fn failure(code: Code, text: impl Into<String>) -> Outcome {
    Err(failed(code, text))
}

fn not_open() -> Outcome {
    failure(Code::BAD_FILE, "the file is not open")
}

/// The failure that a reply tells of; one that is no answer to the question is a failure, too.
fn failure_of(from: Party, message: Message) -> Failure {
    match message {
        Message::Failed { code, text } if text.is_empty() => {
            failed(code, format!("{from}: {code}"))
        }
        Message::Failed { code, text } => failed(code, format!("{from}: {text}")),
        _ => failed(Code::BAD_MESSAGE, format!("{from} answered something else")),
    }
}

/// What the manager's answer comes to.
fn outcome_of(from: Party, message: Message) -> Outcome {
    match message {
        Message::Done => Ok(Done::Nothing),
        Message::Opened(opened) => Ok(Done::Opened(opened)),
        Message::Entries { entries, more } => Ok(Done::Entries { entries, more }),
        message => Err(failure_of(from, message)),
    }
}

impl FromWish<Gather> for Action {
    fn from_wish(wish: Wish<Gather>) -> Action {
        match wish {
            Wish::Connect(to) => Action::Connect { to },
            Wish::Disconnect(from) => Action::Disconnect { from },
            Wish::Ask { to, request, message, payload } => {
                Action::Ask { to, request, message, payload }
            }
            Wish::WakeAt(at) => Action::WakeAt(at),
        }
    }
}

impl Machine for Client {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Called { call, what } => self.called(now, call, what, out),
            Event::Connected { to, incarnation, known } => {
                let Some(link) = self.links.get_mut(&to) else { return };
                let forgotten = link.connected(now, incarnation, known, out);
                if forgotten.views {
                    self.views.forgotten(to);
                }
                self.unanswered(now, to, forgotten.lost, Code::SESSION_LOST, out);
            }
            Event::Disconnected { from } => {
                if let Some(link) = self.links.get_mut(&from) {
                    link.disconnected(now, out);
                }
            }
            Event::Replied { from, request, message, payload } => {
                let link = self.links.get_mut(&from);
                match link.and_then(|link| link.replied(now, request, out)) {
                    Some(errand) => self.replied(now, from, errand, (message, payload), out),
                    None => out.extend(payload.map(|buffer| Action::Release { buffer })),
                }
            }
            Event::Moved { call } => {
                self.one_less(call);
                self.go_on(now, call, out);
            }
            Event::Woke => {
                let parties: Vec<Party> = self.links.keys().copied().collect();
                for party in parties {
                    let Some(link) = self.links.get_mut(&party) else { continue };
                    let late = link.woke(now, out);
                    self.unanswered(now, party, late, Code::TIMED_OUT, out);
                }
            }
        }
    }
}
