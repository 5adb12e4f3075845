//! The null member of the file collectives: each rank accesses its own list, alone.

use super::{Action, Collective, Event, FileCall};
use iolab_vocab::{Direction, Extent};

/// One rank of a collective access that is none.
#[derive(Debug)]
pub struct DirectAccess {
    direction: Direction,
    extents: Vec<Extent>,
    is_asked: bool,
}

impl DirectAccess {
    /// The machine for one rank.
    pub fn new(call: FileCall) -> DirectAccess {
        let wanted = &call.access.wanted[call.rank as usize];
        let extents = wanted.within(wanted.span()).collect();
        DirectAccess { direction: call.access.direction, extents, is_asked: false }
    }
}

impl Collective for DirectAccess {
    fn step(&mut self, _event: Event, out: &mut Vec<Action>) {
        if std::mem::replace(&mut self.is_asked, true) || self.extents.is_empty() {
            return out.push(Action::Finish);
        }
        out.push(match self.direction {
            Direction::Read => Action::ReadFile,
            Direction::Write => Action::WriteFile,
        });
    }

    fn extents(&self) -> &[Extent] {
        &self.extents
    }
}
