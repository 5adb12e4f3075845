//! The mapping functions of a node: from the y-th byte of the order to its offset, and back.
//!
//! Promises: `at` is right for any order; `rank` for proper nodes, where it is the number of bytes
//! below an offset. No number can leave its range, because those of the node cannot.
//!
//! Costs: O(D log f) for depth D and the widest sequence f; no allocation.

use super::node::{Form, Node, Part};

impl Node {
    /// Where byte `y` of the order lies; `y` is below the size.
    pub fn at(&self, y: u64) -> u64 {
        self.run_at(y).0
    }

    /// Where byte `y` of the order lies, and how many bytes its run still has from there on.
    pub(super) fn run_at(&self, mut y: u64) -> (u64, u64) {
        assert!(y < self.size(), "byte {y} of a set of {} bytes", self.size());
        let mut node = self;
        let mut offset = 0;
        loop {
            match &node.0 {
                Form::Bytes(length) => return (offset + y, length - y),
                Form::Repeat(repeat) => {
                    offset += y / repeat.body.size() * repeat.stride;
                    y %= repeat.body.size();
                    node = &repeat.body;
                }
                Form::Sequence(sequence) => {
                    let part = &sequence.parts[holding(&sequence.parts, y)];
                    offset += part.offset;
                    y -= part.before;
                    node = &part.node;
                }
            }
        }
    }

    /// How many bytes lie below offset `x`, in a proper node.
    pub(super) fn rank(&self, mut x: u64) -> u64 {
        let mut node = self;
        let mut before = 0;
        loop {
            if x >= node.end() {
                return before + node.size();
            }
            match &node.0 {
                Form::Bytes(_) => return before + x,
                Form::Repeat(repeat) => {
                    // In range because x is below the end.
                    before += x / repeat.stride * repeat.body.size();
                    x %= repeat.stride;
                    node = &repeat.body;
                }
                Form::Sequence(sequence) => {
                    let after = sequence.parts.partition_point(|part| part.offset <= x);
                    let part = &sequence.parts[after - 1];
                    before += part.before;
                    x -= part.offset;
                    node = &part.node;
                }
            }
        }
    }
}

/// The index of the part that holds byte `y` of the order.
pub(super) fn holding(parts: &[Part], y: u64) -> usize {
    parts.partition_point(|part| part.before <= y) - 1
}
