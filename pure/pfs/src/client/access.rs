//! Accesses: from a call to transfers, and from their replies to what the call comes to.

use super::answers::{answer, failed, failure, failure_of, not_open};
use super::events::{Action, CallNumber, Done, Failure, FileNumber, Gather};
use super::group::Then;
use super::holds::Holding;
use super::lanes::Pace;
use super::spread::{Asked, Question};
use super::stretch::Stretch;
use super::transfers::{Transfer, Transfers, has_bytes};
use super::{Client, Errand, File, Task};
use crate::message::PAYLOAD_BYTES_MAX;
use crate::{Access, Buffer, Code, Message, Opened, Party, Portion};
use iolab_policy::schedule::Place;
use iolab_vocab::{Direction, Nanos, Seed};

impl Client {
    pub(super) fn access(
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
        let &File { opened, rank, is_atomic, .. } = file;
        let Opened { inode, layout, .. } = opened;
        if let Err(why) = check(&stretch) {
            let failed = failure(Code::INVALID, why);
            return match is_collective {
                true => self.agree(now, call, number, failed, Then::Answer, out),
                false => answer(call, failed, out),
            };
        }
        let holding = if is_atomic { Holding::of(opened, &stretch) } else { None };
        let may_begin = self.program_order.comes(call, (inode, direction), &stretch);
        let division = self.divide(layout);
        let pace = Pace {
            schedule: self.settings.schedule,
            place: Place { own: rank, partners: division.parts(), seed: Seed(call.0) },
            transfer_bytes: self.settings.transfer_bytes.clamp(1, PAYLOAD_BYTES_MAX),
            depth: self.settings.depth.max(1),
        };
        let transfers = Transfers::new(number, direction, division, stretch, is_collective, pace);
        let mut transfers = Box::new(transfers);
        transfers.number = self.views.take(inode, layout, &transfers.stretch.view);
        transfers.holding = holding;
        self.tasks.insert(call, Task::Access { transfers, failure: None });
        if may_begin {
            self.begin_access(now, call, out);
        }
    }

    /// Nothing that was called before keeps an access from beginning.
    pub(super) fn begin_access(&mut self, now: Nanos, call: CallNumber, out: &mut Vec<Action>) {
        let Some(Task::Access { transfers, .. }) = self.tasks.get(&call) else { return };
        match transfers.holding.is_some() {
            true => self.hold(now, call, out),
            false => self.go_on(now, call, out),
        }
    }

    /// Begins what may begin of an access; ends it if nothing is left.
    pub(super) fn go_on(&mut self, now: Nanos, call: CallNumber, out: &mut Vec<Action>) {
        loop {
            while let Some(Task::Access { transfers, .. }) = self.tasks.get_mut(&call)
                && let Some((portion, bytes)) = transfers.lanes.next()
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
    pub(super) fn take_view(&mut self, call: CallNumber) {
        let Some(Task::Access { transfers, .. }) = self.tasks.get_mut(&call) else { return };
        if let Some(file) = self.files.get(&transfers.file) {
            let Opened { inode, layout, .. } = file.opened;
            transfers.number = self.views.take(inode, layout, &transfers.stretch.view);
        } else {
            transfers.stop();
        }
    }

    /// Sends a transfer, with its view if the server does not have that.
    pub(super) fn transfer(
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
        let party = self.party_of(portion.division, portion.subfile);
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

    /// Asks where the file ends: first those who have data that the subfiles do not have yet.
    pub(super) fn measure(&mut self, now: Nanos, call: CallNumber, out: &mut Vec<Action>) {
        let Some(Task::Access { transfers, .. }) = self.tasks.get_mut(&call) else { return };
        transfers.measure();
        match self.managers().asked() {
            0 => self.measure_parts(now, call, Asked::Subfiles, out),
            _ => self.measure_parts(now, call, Asked::Caches, out),
        }
    }

    /// All of those who were asked have told an access where the file ends.
    pub(super) fn measure_further(
        &mut self,
        now: Nanos,
        call: CallNumber,
        last: Party,
        out: &mut Vec<Action>,
    ) {
        match last {
            Party::Cache(_) => self.measure_parts(now, call, Asked::Subfiles, out),
            _ => self.measured(now, call, out),
        }
    }

    fn measure_parts(&mut self, now: Nanos, call: CallNumber, asked: Asked, out: &mut Vec<Action>) {
        let Some(Task::Access { transfers, .. }) = self.tasks.get_mut(&call) else { return };
        let file = transfers.file;
        let Some(Opened { inode, layout, .. }) = self.files.get(&file).map(|file| file.opened)
        else {
            return self.fail(
                now,
                call,
                failed(Code::BAD_FILE, "the file was closed meanwhile"),
                out,
            );
        };
        let parts = self.parts(layout, asked);
        if let Some(Task::Access { transfers, .. }) = self.tasks.get_mut(&call) {
            transfers.pending += parts;
        }
        self.ask_parts(now, call, (inode, layout, asked), Question::Measure, out);
    }

    /// All subfiles have told an access how long they are.
    pub(super) fn measured(&mut self, now: Nanos, call: CallNumber, out: &mut Vec<Action>) {
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

    /// The transfers of an access are over; it is, once it holds nothing any more.
    pub(super) fn transferred(&mut self, now: Nanos, call: CallNumber, out: &mut Vec<Action>) {
        if self.let_go(now, call, out) {
            return;
        }
        self.next_holder(now, call, out);
        let Some(Task::Access { transfers, failure }) = self.tasks.remove(&call) else { return };
        let own = match failure {
            None => Ok(Done::Bytes(transfers.bytes)),
            Some(failure) => Err(failure),
        };
        match transfers.is_collective {
            true => self.agree(now, call, transfers.file, own, Then::Answer, out),
            false => answer(call, own, out),
        }
        self.pass_on(now, call, out);
    }

    /// Something failed that an access needs: nothing more is begun.
    pub(super) fn fail(
        &mut self,
        now: Nanos,
        call: CallNumber,
        why: Failure,
        out: &mut Vec<Action>,
    ) {
        if let Some(Task::Access { transfers, failure }) = self.tasks.get_mut(&call) {
            failure.get_or_insert(why);
            transfers.stop();
            self.go_on(now, call, out);
        }
    }

    /// One request or move of an access is over.
    pub(super) fn one_less(&mut self, call: CallNumber) {
        if let Some(Task::Access { transfers, .. }) = self.tasks.get_mut(&call) {
            transfers.pending -= 1;
        }
    }

    /// A transfer is over.
    pub(super) fn landed(
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
                transfers.lanes.landed(portion.subfile);
                let end = end.clamp(portion.from, portion.to);
                let tail = portion.behind(end);
                if has_bytes(&tail) {
                    transfers.tails.push(tail);
                }
                let portion = portion.before(end);
                if let Some(from) = payload {
                    transfers.seen(&portion);
                    transfers.pending += 1;
                    out.push(Action::Move { call, from, portion, origin });
                } else if has_bytes(&portion) {
                    let text = format!("{from} told of data and sent none");
                    return self.fail(now, call, failed(Code::BAD_MESSAGE, text), out);
                }
            }
            Message::Done if !is_read => {
                let file = transfers.file;
                transfers.lanes.landed(portion.subfile);
                self.wrote(file, from);
            }
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
}

/// Whether a stretch lies in its view; or why not.
fn check(stretch: &Stretch) -> Result<(), String> {
    let Stretch { view, from, to, .. } = stretch;
    match from > to || *to > view.size() {
        true => Err(format!("bytes {from} to {to} of a view of {} bytes", view.size())),
        false => Ok(()),
    }
}
