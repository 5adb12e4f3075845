//! Broadcast by a binomial tree.
//!
//! Rank r (counted from the root) receives from r with its lowest one-bit cleared and sends to r
//! plus each lower power of two, highest first. Data above 1 MiB goes block by block, so a rank
//! passes on one block while the next is on its way.

use super::tree::Tree;
use super::{Action, Event, Payload, Shape};
use crate::machine::Machine;
use iolab_vocab::{Extent, Nanos};

/// Data is cut into blocks of this size.
const BLOCK_BYTES: u64 = 1 << 20;

/// One rank of a broadcast.
#[derive(Debug)]
pub struct Broadcast {
    shape: Shape,
    done_bytes: u64,
    has_block: bool,
}

impl Broadcast {
    /// The machine for one rank.
    pub fn new(shape: Shape) -> Broadcast {
        Broadcast { shape, done_bytes: 0, has_block: shape.rank == shape.root }
    }
}

impl Machine for Broadcast {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _now: Nanos, _event: Event, out: &mut Vec<Action>) {
        let tree = Tree::of(self.shape);
        let block = BLOCK_BYTES.min(self.shape.bytes - self.done_bytes);
        let what = Payload::Vector(Extent::new(self.done_bytes, block));
        if !self.has_block {
            out.extend(tree.parent().map(|from| Action::Receive { from, tag: 0, what }));
            self.has_block = true;
            return;
        }
        out.extend(tree.children().map(|to| Action::Send { to, tag: 0, what }));
        self.done_bytes += block;
        if self.done_bytes == self.shape.bytes {
            out.push(Action::Finish);
        } else {
            self.has_block = tree.parent().is_none();
        }
    }
}
