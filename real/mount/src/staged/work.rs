//! Work that a stack has done while no call waits for it, by a thread of the mount's.

use super::{Below, EBADF, EIO, Memory, Passage, Staged, errno};
use crate::tree::Inode;
use crate::writers::Queue;
use iolab_policy::insitu::{At, Call, Driver, Errno, Handle, Outcome, Slot};
use rustix::fd::OwnedFd;
use rustix::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// A write that no call waits for, unless it has to.
pub(crate) struct UnderWay {
    into: Into,
    at: At,
    came_to: Mutex<Option<Outcome>>,
    came: Condvar,
}

/// What is written to.
enum Into {
    File(Arc<OwnedFd>),
    Stack(Below, Handle),
}

/// What a file does after a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It has more of it.
    Again,
    /// It has none.
    Over,
}

impl UnderWay {
    /// Writes `bytes`, with leave of `writers`, and tells who waits.
    pub(crate) fn carry_out(&self, bytes: &[u8], writers: &Queue) {
        let outcome = match &self.into {
            Into::File(fd) => self.write(fd, bytes, writers),
            Into::Stack(below, handle) => {
                let call = Call::Write { at: self.at, length: bytes.len() as u64 };
                below.lock().call(*handle, call, Memory::Written(bytes))
            }
        };
        let mut came_to = self.came_to.lock().unwrap_or_else(PoisonError::into_inner);
        *came_to = Some(outcome);
        self.came.notify_all();
    }

    fn write(&self, fd: &OwnedFd, bytes: &[u8], writers: &Queue) -> Outcome {
        let _permit = writers.permit();
        let written = io::retry_on_intr(|| match self.at {
            At::Position => io::write(fd, bytes),
            At::Offset(offset) => io::pwrite(fd, bytes, offset),
        });
        written.map(|moved| moved as u64).map_err(errno)
    }

    /// What it has come to, once it has.
    pub(super) fn outcome(&self) -> Outcome {
        let mut came_to = self.came_to.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(outcome) = *came_to {
                return outcome;
            }
            came_to = self.came.wait(came_to).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Staged {
    /// Has the file stand in line, if it may have work and does not yet.
    pub(crate) fn queue(&mut self, file: &Arc<Inode>) {
        let holds = self.stack.as_ref().is_some_and(|stack| stack.holds());
        if let Some(writers) = self.bottom.writers.as_ref().filter(|_| holds && !self.is_queued) {
            self.is_queued = true;
            writers.put(file.clone());
        }
    }

    /// Its turn has come: the work that is to be done now, if there is some, with its bytes.
    pub(crate) fn begin(&mut self, bytes: &mut Vec<u8>) -> Option<Arc<UnderWay>> {
        self.is_queued = false;
        let stack = self.stack.as_mut()?;
        let Ok(work) = catch_unwind(AssertUnwindSafe(|| stack.begin())) else {
            self.break_down();
            return None;
        };
        let work = work?;
        let mut passage = Passage { bottom: &mut self.bottom, memory: Memory::Nothing };
        work.copies.iter().for_each(|&(from, to, length)| passage.copy(from, to, length));
        match passage.begun(work.handle, work.call, work.memory, bytes) {
            Ok(under_way) => {
                let under_way = Arc::new(under_way);
                self.bottom.work = Some(under_way.clone());
                Some(under_way)
            }
            Err(error) => {
                self.ended(Err(error));
                None
            }
        }
    }

    /// That work is done: the stack hears of it, if no call has waited for it.
    pub(crate) fn finish(&mut self, work: &Arc<UnderWay>) -> Turn {
        let is_this = |under_way: &mut Arc<UnderWay>| Arc::ptr_eq(under_way, work);
        if self.bottom.work.take_if(is_this).is_some() {
            self.ended(work.outcome());
        }
        let has_more = self.stack.as_ref().is_some_and(|stack| stack.holds());
        match has_more && !self.is_queued {
            true => {
                self.is_queued = true;
                Turn::Again
            }
            false => Turn::Over,
        }
    }

    fn ended(&mut self, outcome: Outcome) {
        let Some(stack) = &mut self.stack else { return };
        if catch_unwind(AssertUnwindSafe(|| stack.ended(outcome))).is_err() {
            self.break_down();
        }
    }
}

impl Passage<'_> {
    /// Work that is under way from now on; its bytes are put where they stay as they are.
    fn begun(
        &self,
        handle: Handle,
        call: Call,
        memory: Slot,
        bytes: &mut Vec<u8>,
    ) -> Result<UnderWay, Errno> {
        let Call::Write { at, length } = call else { return Err(EIO) };
        bytes.clear();
        bytes.extend_from_slice(self.bytes(memory, length)?);
        let into = match &self.bottom.below {
            Some(below) => Into::Stack(below.clone(), handle),
            None => Into::File(self.bottom.descriptions.get(&handle).ok_or(EBADF)?.fd.clone()),
        };
        Ok(UnderWay { into, at, came_to: Mutex::new(None), came: Condvar::new() })
    }
}
