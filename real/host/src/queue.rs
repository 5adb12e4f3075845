//! Transfers between one file and one arena that go on while the caller does something else.
//!
//! A queue owns the arena and the file, so that the kernel's pointers stay valid without any promise
//! from the caller: neither is handed out before what is under way is done, and dropping a queue
//! waits for it. `uring` and `aio` are its two forms.

use crate::arena::Arena;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// What a transfer came to: the id it was started with, and how many bytes it moved.
pub type Landed = (u64, io::Result<u32>);

/// The two ends of every transfer of a queue.
pub struct Ends {
    arena: Arena,
    file: Option<File>,
}

impl Ends {
    pub(crate) fn new(arena: Arena) -> Ends {
        Ends { arena, file: None }
    }

    pub(crate) fn memory(&mut self) -> &mut [u8] {
        &mut self.arena
    }

    /// Descriptor and buffer of a transfer; both stay valid as long as nothing else takes them.
    pub(crate) fn of(&mut self, at: usize, length: u32) -> io::Result<(RawFd, *mut u8)> {
        let file = self.file.as_ref().ok_or_else(|| io::Error::other("no file is open"))?;
        let buffer = self.arena.get_mut(at..at + length as usize);
        let buffer = buffer.ok_or_else(|| io::Error::other("a buffer leaves the memory"))?;
        Ok((file.as_raw_fd(), buffer.as_mut_ptr()))
    }
}

/// A queue of transfers.
pub trait Queue: Send {
    /// What it is called in a message.
    const NAME: &'static str;

    /// What transfers go between.
    fn ends(&self) -> &Ends;

    /// The same, to be changed. Waits for what is under way first: whoever has this may take file
    /// and memory away.
    fn ends_mut(&mut self) -> &mut Ends;

    /// The memory, after waiting for what is under way.
    fn arena(&mut self) -> &mut Arena {
        &mut self.ends_mut().arena
    }

    /// The bytes of the memory, without waiting: it cannot be taken away through them. The caller
    /// changes nothing that a transfer under way uses.
    fn spare(&mut self) -> &mut [u8];

    /// Takes the file that transfers go to.
    fn attach(&mut self, file: File) {
        self.ends_mut().file = Some(file);
    }

    /// The file, if there is one.
    fn file(&self) -> Option<&File> {
        self.ends().file.as_ref()
    }

    /// Gives the file back, after waiting for what is under way.
    fn detach(&mut self) -> Option<File> {
        self.ends_mut().file.take()
    }

    /// Starts a transfer of `length` bytes between `offset` of the file and `at` in the arena.
    ///
    /// # Errors
    /// When no file is open, the buffer leaves the arena, or the queue is full.
    fn start(
        &mut self,
        write: bool,
        offset: u64,
        at: usize,
        length: u32,
        id: u64,
    ) -> io::Result<()>;

    /// A transfer that is done, without waiting for one.
    ///
    /// # Errors
    /// When the queue itself fails; a transfer's own failure is in what landed.
    fn look(&mut self) -> io::Result<Option<Landed>>;

    /// Waits for a transfer; `None` when none is under way.
    ///
    /// # Errors
    /// As `look`.
    fn finish(&mut self) -> io::Result<Option<Landed>>;

    /// Waits for all that is under way and forgets it.
    fn drain(&mut self) {
        while let Ok(Some(_)) = self.finish() {}
    }
}
