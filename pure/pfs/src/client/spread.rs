//! Questions to all subfiles of a file: how long they are, another length, sync.

use super::answers::{answer, failure, failure_of, not_open};
use super::events::{Action, CallNumber, Done, Failure, FileNumber};
use super::{Client, Errand, Task};
use crate::{Attributes, Code, Inode, Layout, Message, Opened, Party};
use iolab_vocab::Nanos;

/// The largest file.
const LARGEST: u64 = i64::MAX as u64;

/// What all subfiles of a file are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
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

/// A question to all subfiles of a file.
#[derive(Debug, Default)]
pub(super) struct Spread {
    pub(super) layout: Option<Layout>,
    pub(super) left: u32,
    /// How long the file is, if that was asked.
    pub(super) bytes: Option<u64>,
    pub(super) failure: Option<Failure>,
}

impl Spread {
    /// Whether the file is no more.
    fn has_gone(&self) -> bool {
        self.failure.as_ref().is_some_and(|failure| failure.code == Code::STALE)
    }

    /// Takes what a subfile says. Tells whether it was the last.
    pub(super) fn told(&mut self, from: Party, subfile: u32, message: Message) -> bool {
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

impl Client {
    /// Asks all subfiles of a file that is open.
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
        let spread = Spread {
            layout: Some(layout),
            left: layout.subfiles(),
            bytes: (question == Question::Measure).then_some(0),
            failure: None,
        };
        self.tasks.insert(call, Task::Spread(spread));
        self.ask_subfiles(now, call, (inode, layout), question, out);
    }

    pub(super) fn ask_subfiles(
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

    pub(super) fn party_of(&self, layout: Layout, subfile: u32) -> Party {
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
        let task = Task::Look { path, attributes: None, spread: Spread::default() };
        self.tasks.insert(call, task);
        self.ask(now, Party::Metadata, question, Errand::Answer(call), out);
    }

    /// What a name stands for is known; how long a file is, its subfiles know.
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
        let left = layout.subfiles();
        let spread = Spread { layout: Some(layout), left, bytes: Some(0), failure: None };
        self.tasks.insert(call, Task::Look { path, attributes: Some(found), spread });
        self.ask_subfiles(now, call, (found.inode, layout), Question::Measure, out);
    }

    pub(super) fn told_all(&mut self, now: Nanos, call: CallNumber, out: &mut Vec<Action>) {
        let (attributes, spread) = match self.tasks.remove(&call) {
            Some(Task::Spread(spread)) => (None, spread),
            // The file went while its subfiles were asked: the name may stand for another one by now.
            Some(Task::Look { path, spread, .. }) if spread.has_gone() => {
                return self.look(now, call, path, out);
            }
            Some(Task::Look { attributes, spread, .. }) => (attributes, spread),
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
}
