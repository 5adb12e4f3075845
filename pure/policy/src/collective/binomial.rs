//! Broadcast by a binomial tree.
//!
//! Rank r (counted from the root) receives from r with its lowest one-bit cleared and sends to r
//! plus each lower power of two, highest first. Data above 1 MiB goes block by block, so a rank
//! passes on one block while the next is on its way.

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

    /// Rank counted from the root.
    fn relative(&self) -> u32 {
        (self.shape.rank + self.shape.rank_count - self.shape.root) % self.shape.rank_count
    }

    fn absolute(&self, relative: u32) -> u32 {
        (relative + self.shape.root) % self.shape.rank_count
    }

    fn pass_on(&self, bytes: u64, out: &mut Vec<Action>) {
        let relative = self.relative();
        let mut power = match relative {
            0 => self.shape.rank_count.next_power_of_two(),
            _ => 1 << relative.trailing_zeros(),
        };
        while power > 1 {
            power >>= 1;
            if relative + power < self.shape.rank_count {
                let to = self.absolute(relative + power);
                out.push(Action::Send { to, tag: 0, bytes });
            }
        }
    }
}

impl Collective for Broadcast {
    fn step(&mut self, _event: Event, out: &mut Vec<Action>) {
        let relative = self.relative();
        let block = self.left_bytes.min(BLOCK_BYTES);
        if !self.has_block {
            let from = self.absolute(relative & (relative - 1));
            out.push(Action::Receive { from, tag: 0 });
            self.has_block = true;
            return;
        }
        self.pass_on(block + HEADER_BYTES, out);
        self.left_bytes -= block;
        if self.left_bytes == 0 {
            out.push(Action::Finish);
        } else {
            self.has_block = relative == 0;
        }
    }
}
