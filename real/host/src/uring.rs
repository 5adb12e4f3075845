//! io_uring over one file and one arena.

use crate::arena::Arena;
use crate::queue::{Ends, Landed, Queue};
use io_uring::{IoUring, opcode, types::Fd};
use std::io;

/// A queue in the kernel.
pub struct Ring {
    ring: IoUring,
    ends: Ends,
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
        Ok(Ring { ring: IoUring::new(entries)?, ends: Ends::new(arena), under_way: 0 })
    }
}

impl Queue for Ring {
    const NAME: &'static str = "io_uring";

    fn ends(&self) -> &Ends {
        &self.ends
    }

    fn ends_mut(&mut self) -> &mut Ends {
        self.drain();
        &mut self.ends
    }

    fn spare(&mut self) -> &mut [u8] {
        self.ends.memory()
    }

    fn start(
        &mut self,
        write: bool,
        offset: u64,
        at: usize,
        length: u32,
        id: u64,
    ) -> io::Result<()> {
        let (descriptor, start) = self.ends.of(at, length)?;
        let fd = Fd(descriptor);
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
