//! The back end that does nothing: what the harness itself costs.

use crate::{Arena, Backend, Direction, IoError, Moved, Opening, Ran};
use iolab_comm::Comm;
use iolab_pattern::Access;

/// Accepts everything, moves nothing.
#[derive(Default)]
pub(crate) struct Null {
    arena: Arena,
    ran: Ran,
}

impl Null {
    pub(crate) fn new(arena: Arena) -> Null {
        Null { arena, ran: None }
    }
}

impl Backend for Null {
    fn arena(&mut self) -> &mut Arena {
        &mut self.arena
    }

    fn open(&mut self, _opening: &Opening, _comm: &dyn Comm) -> Result<(), IoError> {
        Ok(())
    }

    #[inline]
    fn run(&mut self, _way: Direction, access: &Access, _at: usize) -> Result<Moved, IoError> {
        Ok(Moved { bytes: access.bytes(), short: 0 })
    }

    fn ran(&mut self) -> Option<&mut Ran> {
        Some(&mut self.ran)
    }

    fn sync(&mut self) -> Result<(), IoError> {
        Ok(())
    }

    fn close(&mut self) -> Result<(), IoError> {
        Ok(())
    }
}
