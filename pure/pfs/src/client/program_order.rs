//! The order of a program: its accesses to the same bytes take effect as they were called, and its ranks
//! come to the collectives of a file as they have called them.
//!
//! An access waits while one that was called before it is under way or waits itself, if both touch bytes
//! between the first and the last of each other, one of them writing. So calls that are started and waited
//! for later cost nothing as long as they keep apart. A collective call moves its data at once, but comes to the
//! other ranks only when those called before it are decided: ranks count collectives, and must count alike.
//!
//! Costs: O(accesses under way) for each access.

use super::events::{Action, CallNumber};
use super::stretch::Stretch;
use super::{Client, File, Task};
use crate::Inode;
use crate::plant::{Plant, is_planted};
use iolab_vocab::{Direction, Extent, Nanos};
use std::collections::{BTreeMap, VecDeque};

/// What an access touches.
#[derive(Clone, Copy, Debug)]
struct Touch {
    inode: Inode,
    direction: Direction,
    /// From its first byte to its last.
    range: Extent,
    waits: bool,
}

impl Touch {
    /// Whether one of both has to be over before the other begins.
    fn conflicts(&self, other: &Touch) -> bool {
        let writes = self.direction == Direction::Write || other.direction == Direction::Write;
        let meet = self.range.offset < other.range.end() && other.range.offset < self.range.end();
        self.inode == other.inode && writes && meet
    }
}

/// The accesses of a process whose transfers are not over, as they were called.
#[derive(Debug, Default)]
pub(super) struct ProgramOrder(BTreeMap<CallNumber, Touch>);

/// From the first byte of a stretch to its last; of a view that is not proper they may be anywhere.
fn range_of(stretch: &Stretch) -> Extent {
    let Stretch { view, from, to, .. } = stretch;
    let ends = match from < to {
        true => (view.at(*from), view.at(to - 1)),
        false => return Extent::new(0, 0),
    };
    match ends {
        (Some(first), Some(last)) if view.proper() => Extent::new(first, last + 1 - first),
        _ => Extent::new(0, u64::MAX),
    }
}

impl ProgramOrder {
    /// An access is called. Tells whether it may begin.
    pub(super) fn comes(
        &mut self,
        call: CallNumber,
        (inode, direction): (Inode, Direction),
        stretch: &Stretch,
    ) -> bool {
        let touch = Touch { inode, direction, range: range_of(stretch), waits: false };
        let waits = self.0.values().any(|other| other.conflicts(&touch));
        let waits = waits && !is_planted(Plant::ProgramOrderForgotten);
        self.0.insert(call, Touch { waits, ..touch });
        !waits
    }

    /// The transfers of an access are over; which others may begin.
    fn over(&mut self, call: CallNumber) -> Vec<CallNumber> {
        let Some(over) = self.0.remove(&call) else { return Vec::new() };
        let may_begin = |(number, touch): &(&CallNumber, &Touch)| {
            let mut before = self.0.range(..*number);
            touch.waits
                && touch.conflicts(&over)
                && !before.any(|(_, other)| other.conflicts(touch))
        };
        let free: Vec<CallNumber> = self.0.iter().filter(may_begin).map(|it| *it.0).collect();
        for call in &free {
            self.0.entry(*call).and_modify(|touch| touch.waits = false);
        }
        free
    }
}

impl Client {
    /// The transfers of an access are over: those that have waited for it begin.
    pub(super) fn pass_on(&mut self, now: Nanos, call: CallNumber, out: &mut Vec<Action>) {
        for next in self.program_order.over(call) {
            self.begin_access(now, next, out);
        }
    }

    /// The next collective of a file that a call has come to, if it is its turn: the ranks are told.
    pub(super) fn come_in_turn(
        &mut self,
        now: Nanos,
        file: super::FileNumber,
        out: &mut Vec<Action>,
    ) {
        let Some(File { collectives, .. }) = self.files.get(&file) else { return };
        let Some(&call) = collectives.front() else { return };
        if let Some(Task::Agree { has_come: false, .. }) = self.tasks.get(&call) {
            self.arrive(now, call, file, out);
        }
    }
}

/// The collective calls on a file that are not decided, as they were called.
pub(super) type Collectives = VecDeque<CallNumber>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn stretch(view: &str, from: u64, to: u64) -> Stretch {
        Stretch { view: Arc::new(view.parse().unwrap()), from, to, origin: from }
    }

    fn comes(order: &mut ProgramOrder, call: u64, direction: Direction, at: (u64, u64)) -> bool {
        let bytes = stretch("1 every 1", at.0, at.1);
        order.comes(CallNumber(call), (Inode(1), direction), &bytes)
    }

    #[test]
    fn an_access_waits_for_all_before_it_that_touch_its_bytes() {
        use Direction::{Read, Write};
        let mut order = ProgramOrder::default();
        assert!(comes(&mut order, 1, Write, (0, 10)));
        assert!(comes(&mut order, 2, Write, (10, 20)));
        assert!(!comes(&mut order, 3, Read, (5, 15)));
        assert!(!comes(&mut order, 4, Read, (0, 10)));
        // Also for those that wait themselves.
        assert!(!comes(&mut order, 5, Write, (12, 14)));
        assert_eq!(order.over(CallNumber(1)), [CallNumber(4)]);
        assert_eq!(order.over(CallNumber(2)), [CallNumber(3)]);
        assert_eq!(order.over(CallNumber(4)), []);
        assert_eq!(order.over(CallNumber(3)), [CallNumber(5)]);
    }

    #[test]
    fn reads_and_what_keeps_apart_wait_for_nobody() {
        use Direction::{Read, Write};
        let mut order = ProgramOrder::default();
        assert!(comes(&mut order, 1, Read, (0, 10)) && comes(&mut order, 2, Read, (0, 10)));
        assert!(comes(&mut order, 3, Write, (10, 20)) && comes(&mut order, 4, Write, (15, 15)));
        let other = stretch("1 every 1", 0, 10);
        assert!(order.comes(CallNumber(5), (Inode(2), Write), &other));
        // Parts of one view, one behind the other.
        let vector = |from, to| stretch("4 every 16 from 100", from, to);
        assert!(order.comes(CallNumber(6), (Inode(1), Write), &vector(0, 8)));
        assert!(order.comes(CallNumber(7), (Inode(1), Write), &vector(8, 16)));
        assert!(!order.comes(CallNumber(8), (Inode(1), Write), &vector(6, 10)));
    }
}
