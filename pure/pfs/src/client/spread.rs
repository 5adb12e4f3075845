//! Questions about a whole file to all who have a part of it: how long it is, another length, sync.
//!
//! Where there are cache managers, they are asked first: what they bring to the servers meanwhile, the
//! servers tell of. For another length they bring all to the servers, so that little is left when others wait.
//! Then each manager keeps others from its part, brings the rest, so that a server that cannot cut has what was
//! written last, and cuts: one manager after the other in their order, so that two who want that never wait for
//! each other. Then the servers are asked; then the managers let the others go on.
//!
//! Where a sync is for devices, the managers are asked once more behind the servers: one that has ended since
//! it brought its data to them may have taken that along, if their host ended with it.

use super::answers::{answer, failure, failure_of, not_open};
use super::events::{Action, CallNumber, Done, Failure, FileNumber};
use super::group::Then;
use super::{Client, Errand, Settings, Task};
use crate::configuration::Durability;
use crate::plant::{Plant, is_planted};
use crate::{Attributes, Code, Division, Inode, Layout, Managers, Message, Opened, Party};
use iolab_policy::placement::Rule;
use iolab_vocab::Nanos;

/// The largest file.
const LARGEST: u64 = i64::MAX as u64;

/// What is asked about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    Measure,
    Resize {
        bytes: u64,
    },
    Sync,
    /// By an open that ends then.
    SyncToClose,
}

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// All cache managers.
    Caches,
    /// One of them to hold others back, when all before it do.
    Hold(u32),
    /// The servers of all subfiles.
    Subfiles,
    /// All cache managers, whether they are still there.
    Confirm,
    /// So many cache managers that hold others back, to let them go on.
    Resume(u32),
}

/// A question about a file.
#[derive(Debug)]
pub(super) struct Spread {
    question: Question,
    asked: Asked,
    inode: Inode,
    layout: Layout,
    left: u32,
    /// How long the file is, if that was asked.
    bytes: u64,
    failure: Option<Failure>,
    /// The open that asks, if one does, and how many writes it had made.
    file: Option<(FileNumber, u64)>,
}

impl Spread {
    /// Whether the file is no more.
    fn has_gone(&self) -> bool {
        self.failed() == Some(Code::STALE)
    }

    /// Why it has failed so far, if it has.
    pub(super) fn failed(&self) -> Option<Code> {
        self.failure.as_ref().map(|failure| failure.code)
    }

    /// The open that it ends, if it does.
    pub(super) fn closes(&self) -> Option<FileNumber> {
        let (file, _) = self.file?;
        (self.question == Question::SyncToClose).then_some(file)
    }

    /// Takes what a part says, of an instance with those cache managers. Tells whether it was the last.
    pub(super) fn told(
        &mut self,
        managers: Managers,
        from: Party,
        part: u32,
        message: Message,
    ) -> bool {
        self.left -= 1;
        let division = match from {
            Party::Cache(_) => managers.divide(self.layout),
            _ => self.layout.into(),
        };
        match (message, self.question) {
            (Message::End { bytes }, Question::Measure) => {
                self.bytes = division.file_bytes(part, bytes).max(self.bytes);
            }
            (Message::End { .. }, _) if self.asked == Asked::Confirm => {}
            (Message::Done, question) if question != Question::Measure => {}
            (message, _) => {
                self.failure.get_or_insert(failure_of(from, message));
            }
        }
        self.left == 0
    }

    fn is_resize(&self) -> bool {
        matches!(self.question, Question::Resize { .. })
    }

    fn is_sync(&self) -> bool {
        matches!(self.question, Question::Sync | Question::SyncToClose)
    }

    /// Who is asked next, of so many cache managers' parts; nobody if that was all.
    fn next(&self, caches: u32, durability: Durability) -> Option<Asked> {
        let for_devices = durability == Durability::Device && caches > 0;
        match (self.asked, self.failure.is_some()) {
            (Asked::Caches, false) if self.is_resize() => Some(Asked::Hold(0)),
            (Asked::Caches, false) => Some(Asked::Subfiles),
            // The last one may do so, too, and have been heard by nobody.
            (Asked::Hold(last), true) => Some(Asked::Resume(last + 1)),
            (Asked::Hold(last), false) if last + 1 < caches => Some(Asked::Hold(last + 1)),
            (Asked::Hold(_), false) => Some(Asked::Subfiles),
            (Asked::Subfiles, _) if self.is_resize() => {
                (caches > 0).then_some(Asked::Resume(caches))
            }
            (Asked::Subfiles, false) if self.is_sync() && for_devices => Some(Asked::Confirm),
            (Asked::Caches | Asked::Subfiles | Asked::Confirm | Asked::Resume(_), _) => None,
        }
    }
}

fn message_of(
    (question, asked): (Question, Asked),
    (inode, division): (Inode, Division),
    subfile: u32,
) -> Message {
    match question {
        _ if matches!(asked, Asked::Resume(_)) => Message::Resume { inode, subfile },
        _ if asked == Asked::Confirm => Message::Measure { inode, subfile },
        Question::Resize { .. } if asked == Asked::Caches => Message::Sync { inode, subfile },
        Question::Measure => Message::Measure { inode, subfile },
        Question::Sync | Question::SyncToClose => Message::Sync { inode, subfile },
        Question::Resize { bytes } => {
            // The part with the last byte is as long as the file says; others at most so long.
            let extends = bytes.checked_sub(1).is_some_and(|x| division.part_of(x) == subfile);
            let bytes = division.bytes_below(subfile, bytes);
            Message::Resize { inode, subfile, bytes, extends }
        }
    }
}

impl Client {
    /// Asks about a file that is open.
    pub(super) fn spread_file(
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
        let file = Some((number, file.unsynced.writes()));
        let spread = self.spread(question, (inode, layout), file);
        let asked = spread.asked;
        self.tasks.insert(call, Task::Spread(spread));
        self.ask_parts(now, call, (inode, layout, asked), question, out);
    }

    fn spread(
        &self,
        question: Question,
        (inode, layout): (Inode, Layout),
        file: Option<(FileNumber, u64)>,
    ) -> Spread {
        let asked = if self.managers().asked() > 0 { Asked::Caches } else { Asked::Subfiles };
        let left = self.parts(layout, asked);
        Spread { question, asked, inode, layout, left, bytes: 0, failure: None, file }
    }

    /// How many there are to ask.
    pub(super) fn parts(&self, layout: Layout, asked: Asked) -> u32 {
        match asked {
            Asked::Caches | Asked::Confirm => self.divide(layout).parts(),
            Asked::Hold(_) => 1,
            Asked::Resume(held) => held,
            Asked::Subfiles => layout.subfiles(),
        }
    }

    pub(super) fn ask_parts(
        &mut self,
        now: Nanos,
        call: CallNumber,
        (inode, layout, asked): (Inode, Layout, Asked),
        question: Question,
        out: &mut Vec<Action>,
    ) {
        let first = if let Asked::Hold(one) = asked { one } else { 0 };
        for part in first..first + self.parts(layout, asked) {
            let (division, party) = match asked {
                Asked::Subfiles => (layout.into(), self.server_party(layout, part)),
                _ => {
                    let division = self.divide(layout);
                    (division, self.party_of(division, part))
                }
            };
            let message = message_of((question, asked), (inode, division), part);
            self.ask(now, party, (message, None), Errand::Part(call, part), out);
        }
    }

    /// How a file is divided among those who are asked for its data.
    pub(super) fn divide(&self, layout: Layout) -> Division {
        let is_other = is_planted(Plant::PlacementOfOther);
        let of_each = matches!(self.settings.placement.rule, Rule::Each(_));
        self.managers().divide(if is_other && of_each { layout.starting_at(0) } else { layout })
    }

    /// The cache managers that there are.
    pub(super) fn managers(&self) -> Managers {
        let Settings { caches, servers, placement, .. } = self.settings;
        Managers { count: caches, servers, placement }
    }

    /// Whom to ask for a part of a file's data.
    pub(super) fn party_of(&self, division: Division, part: u32) -> Party {
        match self.managers().asked() {
            0 => Party::Server(division.keeper_of(part, self.settings.servers)),
            caches => Party::Cache(division.keeper_of(part, caches)),
        }
    }

    fn server_party(&self, layout: Layout, subfile: u32) -> Party {
        Party::Server(layout.server_of(subfile, self.settings.servers))
    }

    /// Asks what a name stands for.
    pub(super) fn look(
        &mut self,
        now: Nanos,
        call: CallNumber,
        path: Vec<u8>,
        out: &mut Vec<Action>,
    ) {
        let question = (Message::Look { path: path.clone() }, None);
        self.tasks.insert(call, Task::Look { path, found: None });
        self.ask(now, Party::Metadata, question, Errand::Answer(call), out);
    }

    /// What a name stands for is known; how long a file is, its parts know.
    pub(super) fn looked(
        &mut self,
        now: Nanos,
        call: CallNumber,
        (path, found): (Vec<u8>, Attributes),
        out: &mut Vec<Action>,
    ) {
        let Some(layout) = found.layout else {
            return answer(call, Ok(Done::Attributes { attributes: found, bytes: 0 }), out);
        };
        let (inode, question) = (found.inode, Question::Measure);
        let spread = self.spread(question, (inode, layout), None);
        let asked = spread.asked;
        self.tasks.insert(call, Task::Look { path, found: Some((found, spread)) });
        self.ask_parts(now, call, (inode, layout, asked), question, out);
    }

    /// All who were asked have told: others are asked, or the call is over.
    pub(super) fn told_all(&mut self, now: Nanos, call: CallNumber, out: &mut Vec<Action>) {
        let lanes = self.managers().asked().min(crate::SUBFILES_MAX);
        let spread = match self.tasks.get_mut(&call) {
            Some(Task::Spread(spread) | Task::Look { found: Some((_, spread)), .. }) => spread,
            _ => return,
        };
        if let Some(asked) = spread.next(lanes, self.settings.durability) {
            spread.asked = asked;
            let Spread { inode, layout, question, .. } = *spread;
            let left = self.parts(layout, asked);
            if let Some(Task::Spread(spread) | Task::Look { found: Some((_, spread)), .. }) =
                self.tasks.get_mut(&call)
            {
                spread.left = left;
            }
            return self.ask_parts(now, call, (inode, layout, asked), question, out);
        }
        match self.tasks.remove(&call) {
            // The file went while its parts were asked: the name may stand for another one by now.
            Some(Task::Look { path, found: Some((_, spread)) }) if spread.has_gone() => {
                self.look(now, call, path, out);
            }
            Some(Task::Look { found: Some((attributes, spread)), .. }) => {
                let Spread { failure, bytes, .. } = spread;
                let done = Ok(Done::Attributes { attributes, bytes });
                answer(call, failure.map_or(done, Err), out);
            }
            Some(Task::Spread(spread)) => self.spread_over(now, call, spread, out),
            _ => {}
        }
    }

    /// What a question about an open file has come to.
    fn spread_over(&mut self, now: Nanos, call: CallNumber, spread: Spread, out: &mut Vec<Action>) {
        let is_sync = spread.is_sync();
        let is_resize = spread.is_resize();
        let Spread { question, bytes, mut failure, file, layout, .. } = spread;
        if let (true, Some((number, _))) = (is_resize, file) {
            // A cut of the file is to be synced as writes are.
            for subfile in 0..layout.subfiles() {
                self.wrote(number, self.server_party(layout, subfile));
            }
        }
        if let Some((number, writes)) = file
            && is_sync
            && let Some(file) = self.files.get_mut(&number)
        {
            if failure.is_none() {
                file.unsynced.synced(writes);
            }
            // What is lost weighs more than what may still be there.
            failure = file.unsynced.take_loss().or(failure);
        }
        let done = if question == Question::Measure { Done::Size(bytes) } else { Done::Nothing };
        let outcome = failure.map_or(Ok(done), Err);
        match (question, file) {
            (Question::SyncToClose, Some((file, _))) => {
                self.agree(now, call, file, outcome, Then::Close, out);
            }
            _ => answer(call, outcome, out),
        }
    }
}
