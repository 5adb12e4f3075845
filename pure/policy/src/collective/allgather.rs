//! Allgather, the direct way: everyone sends to everyone.

use super::{Action, Collective, Event, HEADER_BYTES, Shape};

/// One rank of an allgather.
#[derive(Debug)]
pub struct Allgather {
    shape: Shape,
}

impl Allgather {
    /// The machine for one rank.
    pub fn new(shape: Shape) -> Allgather {
        Allgather { shape }
    }
}

impl Collective for Allgather {
    fn step(&mut self, _event: Event, out: &mut Vec<Action>) {
        let bytes = self.shape.bytes + HEADER_BYTES;
        for other in self.shape.others() {
            out.push(Action::Receive { from: other, tag: 0 });
            out.push(Action::Send { to: other, tag: 0, bytes });
        }
        out.push(Action::Finish);
    }
}
