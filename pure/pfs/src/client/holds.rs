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
use super::stretch::Stretch;
use super::{Client, Errand, Task};
use crate::plant::{Plant, is_planted};
use crate::{Code, HoldNumber, Inode, Layout, Message, Opened, Party, Portion};
use iolab_vocab::{Direction, Extent, Nanos};
use std::collections::{BTreeSet, VecDeque};

/// How many calls of a process hold something at a time. Those that wait for holds leave room on links for
/// the transfers of those that have them.
const HOLDERS_MAX: usize = 16;

/// What an atomic call holds.
#[derive(Debug)]
pub(super) struct Holding {
    inode: Inode,
    /// How the file is partitioned: that says where the holds are, whoever carries the data.
    layout: Layout,
    /// Still to be taken, in their order.
    wanted: VecDeque<(u32, Extent)>,
    /// Taken, or asked for.
    taken: Vec<u32>,
    /// Releases under way.
    going: usize,
}

impl Holding {
    /// What a call has to hold for a stretch, if that has any bytes. Of a view that is not proper
    /// nobody knows the ends before all its runs were looked at: they may be anywhere.
    pub(super) fn of(opened: Opened, stretch: &Stretch) -> Option<Holding> {
        let Opened { inode, layout, .. } = opened;
        let Stretch { view, from, to, .. } = stretch.clone();
        let anywhere = (from < to && !view.proper()).then(|| Extent::new(0, u64::MAX));
        let range = |subfile| {
            let portion =
                Portion { view: view.clone(), division: layout.into(), subfile, from, to };
            Some((subfile, anywhere.or_else(|| portion.span())?))
        };
        let mut wanted: VecDeque<_> = (0..layout.subfiles()).filter_map(range).collect();
        if is_planted(Plant::HoldLeftOut) {
            wanted.pop_back();
        }
        let holding = Holding { inode, layout, wanted, taken: Vec::new(), going: 0 };
        (!holding.wanted.is_empty()).then_some(holding)
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
        let Some(holding) = &mut transfers.holding else { return };
        let next = match is_planted(Plant::HoldsUnordered) && call.0 % 2 == 1 {
            true => holding.wanted.pop_back(),
            false => holding.wanted.pop_front(),
        };
        let Some((subfile, range)) = next else { return self.go_on(now, call, out) };
        holding.taken.push(subfile);
        let (inode, layout) = (holding.inode, holding.layout);
        let (hold, from, to) = (HoldNumber(call.0), range.offset, range.end());
        let excludes = transfers.direction == Direction::Write;
        let message = Message::Hold { hold, inode, subfile, from, to, excludes };
        let party = self.keeper(layout, subfile);
        self.ask(now, party, (message, None), Errand::Hold(call), out);
    }

    /// Where the holds of a subfile are.
    fn keeper(&self, layout: Layout, subfile: u32) -> Party {
        Party::Server(layout.server_of(subfile, self.settings.servers))
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
        let Some(holding) = &mut transfers.holding else { return false };
        let taken = std::mem::take(&mut holding.taken);
        holding.going = taken.len();
        let (inode, layout) = (holding.inode, holding.layout);
        for &subfile in &taken {
            let message = Message::Release { hold: HoldNumber(call.0), inode, subfile };
            let errand = Errand::Release(call, subfile);
            self.ask(now, self.keeper(layout, subfile), (message, None), errand, out);
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
        let Some(holding) = &mut transfers.holding else { return };
        holding.going -= 1;
        let (inode, is_last) = (holding.inode, holding.going == 0);
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
