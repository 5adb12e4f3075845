//! Gather and scatter, the direct way: everyone to the root, or the root to everyone, in one round.
//!
//! n - 1 messages, all through the root's link; so it is what a root can take that limits it.

use super::{Action, Collective, Event, HEADER_BYTES, Shape};

const GATHER_TAG: u32 = 3;
const SCATTER_TAG: u32 = 4;

/// One rank of a gather.
#[derive(Debug)]
pub struct Gather(Shape);

/// One rank of a scatter. Where every block is the same this is the flat broadcast, and a gather
/// whose root combines what comes is the flat reduce.
#[derive(Debug)]
pub struct Scatter(Shape);

impl Gather {
    /// The machine for one rank.
    pub fn new(shape: Shape) -> Gather {
        Gather(shape)
    }
}

impl Scatter {
    /// The machine for one rank.
    pub fn new(shape: Shape) -> Scatter {
        Scatter(shape)
    }
}

impl Collective for Gather {
    fn step(&mut self, _event: Event, out: &mut Vec<Action>) {
        let (root, bytes) = (self.0.root, self.0.bytes + HEADER_BYTES);
        match self.0.rank == root {
            true => {
                let receive = |from| Action::Receive { from, tag: GATHER_TAG };
                out.extend(self.0.others().map(receive));
            }
            false => out.push(Action::Send { to: root, tag: GATHER_TAG, bytes }),
        }
        out.push(Action::Finish);
    }
}

impl Collective for Scatter {
    fn step(&mut self, _event: Event, out: &mut Vec<Action>) {
        let (root, bytes) = (self.0.root, self.0.bytes + HEADER_BYTES);
        match self.0.rank == root {
            true => {
                let send = |to| Action::Send { to, tag: SCATTER_TAG, bytes };
                out.extend(self.0.others().map(send));
            }
            false => out.push(Action::Receive { from: root, tag: SCATTER_TAG }),
        }
        out.push(Action::Finish);
    }
}
