//! What an access moves: a row of bytes of a view, and where they are in the program's memory.

use crate::plant::{Plant, is_planted};
use iolab_pattern::Nest;
use std::sync::Arc;

/// A row of bytes of a view.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    pub(super) view: Arc<Nest>,
    pub(super) from: u64,
    pub(super) to: u64,
    /// Byte `y` of the view is byte `y - origin` of the program's, wrapping.
    pub(super) origin: u64,
}

impl Stretch {
    /// Its end, as far as transfers go.
    pub(super) fn end(&self) -> u64 {
        let Stretch { view, from, to, .. } = self;
        let is_short = is_planted(Plant::TailDropped) && to > from && to % view.root().size() == 0;
        to - u64::from(is_short)
    }

    /// Its first run, as bytes of the file itself: where offsets of the view do not ascend.
    pub(super) fn first_run(&self) -> Stretch {
        let cut = self.view.cut(self.from, self.to);
        let run = cut.runs().next().unwrap_or_default();
        let (from, to) = (run.offset, run.offset + run.length.min(self.to - self.from));
        let at = self.from.wrapping_sub(self.origin);
        Stretch { view: Arc::new(Nest::WHOLE_FILE), from, to, origin: from.wrapping_sub(at) }
    }
}
