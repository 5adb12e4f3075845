//! The back end that does nothing: what the harness itself costs.

use crate::{Arena, Backend, Direction, IoError, Moved, Opening};
use iolab_comm::Comm;
use iolab_pattern::Access;

/// Accepts everything, moves nothing.
#[derive(Default)]
pub(crate) struct Null {
    arena: Arena,
    started: Option<(u64, Moved)>,
}

impl Null {
    pub(crate) fn new(arena: Arena) -> Null {
        Null { arena, started: None }
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

    fn start(
        &mut self,
        way: Direction,
        access: &Access,
        at: usize,
        tag: u64,
    ) -> Result<(), IoError> {
        self.started = Some((tag, self.run(way, access, at)?));
        Ok(())
    }

    fn finish(&mut self) -> Result<(u64, Moved), IoError> {
        self.started.take().ok_or_else(|| IoError::Cannot("nothing was started".to_owned()))
    }

    fn sync(&mut self) -> Result<(), IoError> {
        Ok(())
    }

    fn close(&mut self) -> Result<(), IoError> {
        Ok(())
    }
}
