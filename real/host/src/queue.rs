//! Transfers between one file and one arena that go on while the caller does something else.
//!
//! A queue owns the arena and the file, so that the kernel's pointers stay valid without any promise
//! from the caller: neither is handed out before what is under way is done, and dropping a queue
//! waits for it. `uring` and `aio` are its two forms.

use crate::arena::Arena;
use std::fs::File;
use std::io;

/// What a transfer came to: the id it was started with, and how many bytes it moved.
pub type Landed = (u64, io::Result<u32>);

/// A queue of transfers.
pub trait Queue: Send {
    /// What it is called in a message.
    const NAME: &'static str;

    /// The memory. Waits for what is under way first.
    fn arena(&mut self) -> &mut Arena;

    /// Takes the file that transfers go to.
    fn attach(&mut self, file: File);

    /// The file, if there is one.
    fn file(&self) -> Option<&File>;

    /// Gives the file back, after waiting for what is under way.
    fn detach(&mut self) -> Option<File>;

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
