//! Alltoall: every rank has a block of its own for every other.
//!
//! Direct sends all n - 1 blocks at once, so every receiver's link is fought for. Pairwise takes
//! n - 1 rounds; in round k rank r sends to r + k and receives from r - k, so every link carries
//! one block at a time (Thakur, Rabenseifner and Gropp 2005).

use super::{Action, Collective, Event, HEADER_BYTES, Shape};

const TAG: u32 = 5;

/// One rank of an alltoall, all blocks at once.
#[derive(Debug)]
pub struct Alltoall(Shape);

/// One rank of an alltoall with a length of its own for every other rank, all blocks at once.
#[derive(Debug)]
pub struct Alltoallv {
    shape: Shape,
    lengths: Vec<u64>,
}

/// One rank of an alltoall, one partner after the other.
#[derive(Debug)]
pub struct PairwiseAlltoall {
    shape: Shape,
    round: u32,
}

impl Alltoall {
    /// The machine for one rank.
    pub fn new(shape: Shape) -> Alltoall {
        Alltoall(shape)
    }
}

impl Alltoallv {
    /// The machine for one rank; `lengths` has what goes to each, itself included.
    pub fn new(shape: Shape, lengths: Vec<u64>) -> Alltoallv {
        assert!(lengths.len() as u32 == shape.rank_count, "a length for each of {shape:?}");
        Alltoallv { shape, lengths }
    }
}

/// Everyone receives from everyone and sends to everyone.
fn exchange(shape: Shape, bytes_for: impl Fn(u32) -> u64, out: &mut Vec<Action>) {
    for other in shape.others() {
        out.push(Action::Receive { from: other, tag: TAG });
        out.push(Action::Send { to: other, tag: TAG, bytes: bytes_for(other) + HEADER_BYTES });
    }
    out.push(Action::Finish);
}

impl PairwiseAlltoall {
    /// The machine for one rank.
    pub fn new(shape: Shape) -> PairwiseAlltoall {
        PairwiseAlltoall { shape, round: 0 }
    }
}

impl Collective for Alltoall {
    fn step(&mut self, _event: Event, out: &mut Vec<Action>) {
        exchange(self.0, |_| self.0.bytes, out);
    }
}

impl Collective for Alltoallv {
    fn step(&mut self, _event: Event, out: &mut Vec<Action>) {
        exchange(self.shape, |other| self.lengths[other as usize], out);
    }
}

impl Collective for PairwiseAlltoall {
    fn step(&mut self, _event: Event, out: &mut Vec<Action>) {
        self.round += 1;
        let bytes = self.shape.bytes + HEADER_BYTES;
        if self.round < self.shape.rank_count {
            let (to, from) = (self.shape.above(self.round), self.shape.below(self.round));
            out.push(Action::Receive { from, tag: TAG });
            out.push(Action::Send { to, tag: TAG, bytes });
        }
        if self.round + 1 >= self.shape.rank_count {
            out.push(Action::Finish);
        }
    }
}
