//! A slow device: any back end whose operations take at least their bytes at a given rate.
//!
//! The rest of the time is slept, as a call that waits for a device does. It is what overlap can
//! be measured against when no slow device is at hand.

use crate::{Arena, Backend, Direction, IoError, Moved, Opening, Ran};
use iolab_comm::Comm;
use iolab_pattern::Access;
use std::time::{Duration, Instant};

/// A back end with a speed limit.
pub struct Paced {
    inner: Box<dyn Backend>,
    bytes_per_second: f64,
    ran: Ran,
}

impl Paced {
    /// Slows `inner` to that many bytes per second.
    pub fn new(inner: Box<dyn Backend>, bytes_per_second: f64) -> Paced {
        Paced { inner, bytes_per_second, ran: None }
    }
}

impl Backend for Paced {
    fn arena(&mut self) -> &mut Arena {
        self.inner.arena()
    }

    fn open(&mut self, opening: &Opening, comm: &dyn Comm) -> Result<(), IoError> {
        self.inner.open(opening, comm)
    }

    fn run(&mut self, way: Direction, access: &Access, at: usize) -> Result<Moved, IoError> {
        let start = Instant::now();
        let moved = self.inner.run(way, access, at)?;
        let wanted = Duration::from_secs_f64(moved.bytes as f64 / self.bytes_per_second);
        std::thread::sleep(wanted.saturating_sub(start.elapsed()));
        Ok(moved)
    }

    fn ran(&mut self) -> Option<&mut Ran> {
        Some(&mut self.ran)
    }

    fn sync(&mut self) -> Result<(), IoError> {
        self.inner.sync()
    }

    fn close(&mut self) -> Result<(), IoError> {
        self.inner.close()
    }
}
