//! Broadcast by a binomial tree.
//!
//! Rank r (counted from the root) receives from r with its lowest one-bit cleared and sends to r
//! plus each lower power of two, highest first. Data above 1 MiB goes block by block, so a rank
//! passes on one block while the next is on its way.

use super::tree::Tree;
use super::{Action, Collective, Event, HEADER_BYTES, Shape};

/// Data is cut into blocks of this size.
const BLOCK_BYTES: u64 = 1 << 20;

/// One rank of a broadcast.
#[derive(Debug)]
pub struct Broadcast {
    shape: Shape,
    left_bytes: u64,
    has_block: bool,
}

impl Broadcast {
    /// The machine for one rank.
    pub fn new(shape: Shape) -> Broadcast {
        Broadcast { shape, left_bytes: shape.bytes, has_block: shape.rank == shape.root }
    }

    fn pass_on(&self, bytes: u64, out: &mut Vec<Action>) {
        let children = Tree::of(self.shape).children();
        out.extend(children.map(|to| Action::Send { to, tag: 0, bytes }));
    }
}

impl Collective for Broadcast {
    fn step(&mut self, _event: Event, out: &mut Vec<Action>) {
        let parent = Tree::of(self.shape).parent();
        let block = self.left_bytes.min(BLOCK_BYTES);
        if !self.has_block {
            out.extend(parent.map(|from| Action::Receive { from, tag: 0 }));
            self.has_block = true;
            return;
        }
        self.pass_on(block + HEADER_BYTES, out);
        self.left_bytes -= block;
        if self.left_bytes == 0 {
            out.push(Action::Finish);
        } else {
            self.has_block = parent.is_none();
        }
    }
}
