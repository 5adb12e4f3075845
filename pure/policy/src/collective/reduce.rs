//! Reduce by a binomial tree: the broadcast's tree, walked from the leaves.
//!
//! Rank r (counted from the root) awaits its children, r plus each power of two below its lowest
//! one-bit, all at once, and then sends one result to its parent. Above the eager limit a parent
//! gives each child a permission of 20 B first, so that no large message comes unasked (Kuhn 2009).
//! Combining the values is free, as in the original. Costs n - 1 messages (twice that with
//! permissions) in at most log2 n levels.

use super::tree::Tree;
use super::{Action, Event, Payload, Shape};
use crate::machine::Machine;
use iolab_vocab::Nanos;

const PERMISSION_TAG: u32 = 1;
const RESULT_TAG: u32 = 2;

/// One rank of a reduce.
#[derive(Debug)]
pub struct Reduce {
    shape: Shape,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Children,
    Permission,
    Parent,
}

impl Reduce {
    /// The machine for one rank.
    pub fn new(shape: Shape) -> Reduce {
        Reduce { shape, phase: Phase::Children }
    }

    fn needs_permission(&self) -> bool {
        self.shape.bytes > self.shape.eager_bytes
    }

    fn await_children(&self, out: &mut Vec<Action>) {
        let tree = Tree::of(self.shape);
        for from in tree.children() {
            if self.needs_permission() {
                let what = Payload::Nothing;
                out.push(Action::Send { to: from, tag: PERMISSION_TAG, what });
            }
            let what = Payload::Combined(tree.below(from));
            out.push(Action::Receive { from, tag: RESULT_TAG, what });
        }
    }
}

impl Machine for Reduce {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _now: Nanos, _event: Event, out: &mut Vec<Action>) {
        let tree = Tree::of(self.shape);
        let parent = tree.parent();
        match (self.phase, parent) {
            (Phase::Children, _) => {
                self.await_children(out);
                self.phase =
                    if self.needs_permission() { Phase::Permission } else { Phase::Parent };
                out.extend(parent.is_none().then_some(Action::Finish));
            }
            (_, None) => out.push(Action::Finish),
            (Phase::Permission, Some(from)) => {
                self.phase = Phase::Parent;
                let what = Payload::Nothing;
                out.push(Action::Receive { from, tag: PERMISSION_TAG, what });
            }
            (Phase::Parent, Some(to)) => {
                let what = Payload::Combined(tree.below(self.shape.rank));
                out.extend([Action::Send { to, tag: RESULT_TAG, what }, Action::Finish]);
            }
        }
    }
}
