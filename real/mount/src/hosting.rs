//! How the descriptions of a file are served, while somebody has it open: the same way for all of
//! them, because the kernel does not mix its ways, and a stack must hear every call.

use crate::staged::Staged;
use fuser::BackingId;
use std::sync::Arc;

/// A file's open descriptions.
#[derive(Default)]
pub(crate) struct Opened {
    pub(crate) hosting: Option<Hosting>,
    /// How many descriptions there are.
    pub(crate) count: usize,
}

/// One way to serve.
pub(crate) enum Hosting {
    /// Strategies answer.
    Staged(Box<Staged>),
    /// The kernel moves bytes to and from the file below by itself.
    Kernel(Arc<BackingId>),
    /// The kernel's page cache stands in front of the file below.
    Cached,
}

impl Opened {
    /// The stack, if strategies have chosen the file.
    pub(crate) fn staged(&mut self) -> Option<&mut Staged> {
        match &mut self.hosting {
            Some(Hosting::Staged(staged)) => Some(staged),
            _ => None,
        }
    }

    /// One description less.
    pub(crate) fn forget_one(&mut self) {
        self.count -= 1;
        if self.count == 0 {
            self.hosting = None;
        }
    }
}
