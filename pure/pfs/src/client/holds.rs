//! Atomic calls: what they hold at servers, from before their first transfer until after the last.
//!
//! A call holds, of each subfile that it touches, all from its first byte there to its last. It takes one
//! hold after the other in the order of subfiles, so that calls which wait for each other form no circle,
//! and releases them when nothing of it is under way any more. Servers say then whether the holds stood;
//! if all did, the call took effect as a whole, at an instant between its last hold and its first release,
//! and if one did not, it fails.
//!
//! Costs: a round trip for each subfile before the transfers, and one for all of them behind.

use super::answers::failure_of;
use super::events::{Action, CallNumber};
use super::{Client, Errand, Task};
use crate::plant::{Plant, is_planted};
use crate::{Code, HoldNumber, Inode, Message, Party};
use iolab_vocab::{Direction, Extent, Nanos};
use std::collections::{BTreeSet, VecDeque};

/// How many calls of a process hold something at a time. Those that wait for holds leave room on links for
/// the transfers of those that have them.
const HOLDERS_MAX: usize = 16;

/// What an atomic call holds.
#[derive(Debug, Default)]
pub(super) struct Holding {
    inode: Inode,
    /// Still to be taken, in their order.
    wanted: VecDeque<(u32, Extent)>,
    /// Taken, or asked for.
    taken: Vec<u32>,
    /// Releases under way.
    going: usize,
}

impl Holding {
    pub(super) fn of(inode: Inode, mut spans: Vec<(u32, Extent)>) -> Holding {
        if is_planted(Plant::HoldLeftOut) {
            spans.pop();
        }
        Holding { inode, wanted: spans.into(), ..Holding::default() }
    }
}

/// The calls that hold something, and those that wait to begin with it.
#[derive(Debug, Default)]
pub(super) struct Holders {
    calls: BTreeSet<CallNumber>,
    waiting: VecDeque<CallNumber>,
}

impl Client {
    /// An atomic call begins to take its holds, or waits for its turn.
    pub(super) fn hold(&mut self, now: Nanos, call: CallNumber, out: &mut Vec<Action>) {
        if self.holders.calls.len() >= HOLDERS_MAX {
            return self.holders.waiting.push_back(call);
        }
        self.holders.calls.insert(call);
        self.hold_next(now, call, out);
    }

    /// Takes the next hold; behind the last one, transfers begin.
    fn hold_next(&mut self, now: Nanos, call: CallNumber, out: &mut Vec<Action>) {
        let Some(Task::Access { transfers, .. }) = self.tasks.get_mut(&call) else { return };
        let holding = &mut transfers.holding;
        let next = match is_planted(Plant::HoldsUnordered) && call.0 % 2 == 1 {
            true => holding.wanted.pop_back(),
            false => holding.wanted.pop_front(),
        };
        let Some((subfile, range)) = next else { return self.go_on(now, call, out) };
        holding.taken.push(subfile);
        let message = Message::Hold {
            hold: HoldNumber(call.0),
            inode: holding.inode,
            subfile,
            from: range.offset,
            to: range.end(),
            excludes: transfers.direction == Direction::Write,
        };
        let layout = transfers.layout;
        let party = self.party_of(layout, subfile);
        self.ask(now, party, (message, None), Errand::Hold(call), out);
    }

    /// A hold stands, or there will be none.
    pub(super) fn held(
        &mut self,
        now: Nanos,
        call: CallNumber,
        from: Party,
        message: Message,
        out: &mut Vec<Action>,
    ) {
        match message {
            Message::Done => self.hold_next(now, call, out),
            message => self.fail(now, call, failure_of(from, message), out),
        }
    }

    /// A call lets go of all that it holds. Tells whether that is anything.
    pub(super) fn let_go(&mut self, now: Nanos, call: CallNumber, out: &mut Vec<Action>) -> bool {
        let Some(Task::Access { transfers, .. }) = self.tasks.get_mut(&call) else { return false };
        let taken = std::mem::take(&mut transfers.holding.taken);
        transfers.holding.going = taken.len();
        let (inode, layout) = (transfers.holding.inode, transfers.layout);
        for &subfile in &taken {
            let message = Message::Release { hold: HoldNumber(call.0), inode, subfile };
            let errand = Errand::Release(call, subfile);
            self.ask(now, self.party_of(layout, subfile), (message, None), errand, out);
        }
        !taken.is_empty()
    }

    /// A hold is no more; whether it was one until then, the message says.
    pub(super) fn released(
        &mut self,
        now: Nanos,
        call: CallNumber,
        (from, subfile): (Party, u32),
        message: Message,
        out: &mut Vec<Action>,
    ) {
        let Some(Task::Access { transfers, failure }) = self.tasks.get_mut(&call) else { return };
        transfers.holding.going -= 1;
        let (inode, is_last) = (transfers.holding.inode, transfers.holding.going == 0);
        if message != Message::Done {
            let why = failure_of(from, message);
            let is_late = why.code == Code::TIMED_OUT && !is_planted(Plant::HoldKept);
            failure.get_or_insert(why);
            if is_late {
                let message = Message::Release { hold: HoldNumber(call.0), inode, subfile };
                let missed = Errand::Missed(message.clone());
                self.ask(now, from, (message, None), missed, out);
            }
        }
        if is_last {
            self.transferred(now, call, out);
        }
    }

    /// A call holds nothing any more: another one may begin.
    pub(super) fn next_holder(&mut self, now: Nanos, call: CallNumber, out: &mut Vec<Action>) {
        if self.holders.calls.remove(&call)
            && let Some(next) = self.holders.waiting.pop_front()
        {
            self.hold(now, next, out);
        }
    }
}
