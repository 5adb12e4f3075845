//! The null member of the file collectives: each rank accesses its own list, alone.

use super::{Action, Event, FileCall};
use crate::machine::Machine;
use iolab_vocab::{Direction, Extent, Nanos};

/// One rank of a collective access that is none.
#[derive(Debug)]
pub struct DirectAccess {
    direction: Direction,
    /// Not yet accessed.
    left: Vec<Extent>,
}

impl DirectAccess {
    /// The machine for one rank.
    pub fn new(call: FileCall) -> DirectAccess {
        let wanted = &call.access.wanted[call.rank as usize];
        let left = wanted.within(wanted.span()).collect();
        DirectAccess { direction: call.access.direction, left }
    }
}

impl Machine for DirectAccess {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _now: Nanos, _event: Event, out: &mut Vec<Action>) {
        let extents = std::mem::take(&mut self.left);
        out.push(match self.direction {
            _ if extents.is_empty() => Action::Finish,
            Direction::Read => Action::ReadFile(extents),
            Direction::Write => Action::WriteFile(extents),
        });
    }
}
