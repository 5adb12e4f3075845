//! POSIX asynchronous I/O over one file and one arena: `aio_read`, `aio_write`, `aio_suspend`.
//!
//! In glibc these are threads behind the scenes, which carry out one transfer per file at a time,
//! in order; so a deeper queue gains nothing there, but a caller that computes does.

use crate::arena::Arena;
use crate::queue::{Ends, Landed, Queue};
use std::io;

/// A queue of control blocks.
pub struct Aio {
    ends: Ends,
    /// Boxed, as a block must not move while the library knows it.
    under_way: Vec<(u64, Box<libc::aiocb>)>,
    depth: usize,
}

// SAFETY: the pointers in the blocks lead into the arena, which travels along; POSIX lets any thread
// of the process ask for the state of a transfer.
unsafe impl Send for Aio {}

impl Aio {
    /// A queue of at most `depth` transfers.
    pub fn new(arena: Arena, depth: usize) -> Aio {
        Aio { ends: Ends::new(arena), under_way: Vec::new(), depth }
    }

    /// The first transfer that is done.
    fn done(&self) -> Option<usize> {
        // SAFETY: every block was given to the library by `start` and not taken back yet.
        let state = |block: &libc::aiocb| unsafe { libc::aio_error(block) };
        self.under_way.iter().position(|(_, block)| state(block) != libc::EINPROGRESS)
    }

    /// Sleeps until one transfer is done, or a signal comes.
    fn suspend(&self) -> io::Result<()> {
        let list: Vec<*const libc::aiocb> =
            self.under_way.iter().map(|(_, block)| &raw const **block).collect();
        // SAFETY: the list and the blocks it names outlive the call; no time limit.
        let code = unsafe { libc::aio_suspend(list.as_ptr(), list.len() as i32, std::ptr::null()) };
        match (code, io::Error::last_os_error()) {
            (0, _) => Ok(()),
            (_, error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            (_, error) => Err(error),
        }
    }
}

impl Queue for Aio {
    const NAME: &'static str = "POSIX aio";

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
        if self.under_way.len() == self.depth {
            return Err(io::Error::other("more transfers than the queue is deep"));
        }
        let (descriptor, buffer) = self.ends.of(at, length)?;
        // SAFETY: all zero is a valid block: no signal, no priority.
        let mut block: Box<libc::aiocb> = Box::new(unsafe { std::mem::zeroed() });
        block.aio_fildes = descriptor;
        block.aio_buf = buffer.cast();
        block.aio_nbytes = length as usize;
        block.aio_offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
        block.aio_sigevent.sigev_notify = libc::SIGEV_NONE;
        let start = &raw mut *block;
        // SAFETY: block, buffer and file are owned here and stay in place until the transfer is
        // done; the buffer lies within the arena.
        let code = unsafe { if write { libc::aio_write(start) } else { libc::aio_read(start) } };
        if code != 0 {
            return Err(io::Error::last_os_error());
        }
        self.under_way.push((id, block));
        Ok(())
    }

    fn look(&mut self) -> io::Result<Option<Landed>> {
        let Some(done) = self.done() else { return Ok(None) };
        let (id, mut block) = self.under_way.remove(done);
        // SAFETY: the transfer is done, and this is the one time its result is taken.
        let (error, moved) = unsafe {
            let error = libc::aio_error(&raw const *block);
            (error, libc::aio_return(&raw mut *block))
        };
        let failed = || io::Error::from_raw_os_error(error);
        Ok(Some((id, u32::try_from(moved).map_err(|_| failed()))))
    }

    fn finish(&mut self) -> io::Result<Option<Landed>> {
        while !self.under_way.is_empty() {
            if let Some(landed) = self.look()? {
                return Ok(Some(landed));
            }
            self.suspend()?;
        }
        Ok(None)
    }
}

impl Drop for Aio {
    fn drop(&mut self) {
        // Not even a failing `aio_suspend` may free memory that the library still writes to.
        while !self.under_way.is_empty() {
            self.drain();
        }
    }
}
