//! io_uring over one file and one arena.

use crate::arena::Arena;
use crate::queue::{Landed, Queue};
use io_uring::{IoUring, opcode, types::Fd};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// A queue in the kernel.
pub struct Ring {
    ring: IoUring,
    arena: Arena,
    file: Option<File>,
    under_way: usize,
}

/// Whether the kernel lets this process use io_uring.
pub fn works() -> bool {
    IoUring::new(1).is_ok()
}

impl Ring {
    /// A queue of at most `depth` transfers.
    ///
    /// # Errors
    /// When the kernel has no io_uring or forbids it.
    pub fn new(arena: Arena, depth: usize) -> io::Result<Ring> {
        let entries = u32::try_from(depth.next_power_of_two()).unwrap_or(4096).clamp(1, 4096);
        Ok(Ring { ring: IoUring::new(entries)?, arena, file: None, under_way: 0 })
    }
}

impl Queue for Ring {
    const NAME: &'static str = "io_uring";

    fn arena(&mut self) -> &mut Arena {
        self.drain();
        &mut self.arena
    }

    fn attach(&mut self, file: File) {
        self.drain();
        self.file = Some(file);
    }

    fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }

    fn detach(&mut self) -> Option<File> {
        self.drain();
        self.file.take()
    }

    fn start(
        &mut self,
        write: bool,
        offset: u64,
        at: usize,
        length: u32,
        id: u64,
    ) -> io::Result<()> {
        let file = self.file.as_ref().ok_or_else(|| io::Error::other("no file is open"))?;
        let buffer = self.arena.get_mut(at..at + length as usize);
        let buffer = buffer.ok_or_else(|| io::Error::other("a buffer leaves the memory"))?;
        let (fd, start) = (Fd(file.as_raw_fd()), buffer.as_mut_ptr());
        let entry = match write {
            true => opcode::Write::new(fd, start, length).offset(offset).build(),
            false => opcode::Read::new(fd, start, length).offset(offset).build(),
        };
        // SAFETY: file and arena are owned by the ring, neither moves nor is freed or handed out
        // before the transfer is done, and the buffer lies within the arena.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(id)) };
        pushed.map_err(|_| io::Error::other("more transfers than the ring is deep"))?;
        self.under_way += 1;
        self.ring.submit().map(|_| ())
    }

    fn look(&mut self) -> io::Result<Option<Landed>> {
        let Some(done) = self.ring.completion().next() else { return Ok(None) };
        self.under_way -= 1;
        let moved = u32::try_from(done.result());
        let moved = moved.map_err(|_| io::Error::from_raw_os_error(-done.result()));
        Ok(Some((done.user_data(), moved)))
    }

    fn finish(&mut self) -> io::Result<Option<Landed>> {
        while self.under_way > 0 {
            if let Some(landed) = self.look()? {
                return Ok(Some(landed));
            }
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        }
        Ok(None)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.drain();
    }
}
