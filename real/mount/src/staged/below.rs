//! A stack below a stack: what follows where one hands over.

use super::{Memory, Passage, Staged};
use iolab_policy::insitu::{Call, Handle, Outcome, Slot};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A stack with its lock. Its descriptions have the names they have above.
#[derive(Clone)]
pub(crate) struct Below(Arc<Mutex<Staged>>);

impl Below {
    pub(super) fn lock(&self) -> MutexGuard<'_, Staged> {
        // What panicked in it has broken down, and passes calls.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Staged {
    /// The same file, with this stack between it and the one it has; before anybody opens it.
    pub(crate) fn above(mut self, below: Staged) -> Staged {
        self.bottom.below = Some(Below(Arc::new(Mutex::new(below))));
        self
    }
}

impl Passage<'_> {
    /// Carries out a call on the stack below.
    pub(super) fn hand_down(
        &mut self,
        below: &Below,
        handle: Handle,
        call: Call,
        memory: Slot,
    ) -> Outcome {
        let mut below = below.lock();
        match call {
            Call::Open { .. } => below.tell(handle).map(|()| 0),
            Call::Close => below.close(handle),
            Call::Read { length, .. } => {
                below.call(handle, call, Memory::Read(self.room(memory, length)?))
            }
            Call::Write { length, .. } => {
                below.call(handle, call, Memory::Written(self.bytes(memory, length)?))
            }
            _ => below.call(handle, call, Memory::Nothing),
        }
    }
}
