//! A slow device: any back end whose operations take at least their bytes at a given rate.
//!
//! The rest of the time is slept, as a call that waits for a device does. What was started is done
//! when a device that serves one operation after the other would have done it. It is what overlap
//! can be measured against when no slow device is at hand.

use crate::{Arena, Backend, Direction, IoError, Moved, Opening, Ran};
use iolab_comm::Comm;
use iolab_pattern::Access;
use std::time::{Duration, Instant};

/// A back end with a speed limit.
pub struct Paced {
    inner: Box<dyn Backend>,
    bytes_per_second: f64,
    /// Whether `start` of `inner` returns before the operation is done.
    queues: bool,
    /// When the device has done what it was given.
    free: Instant,
    /// When each operation under way is done, by its tag.
    done: Vec<(u64, Instant)>,
    ran: Ran,
}

impl Paced {
    /// Slows `inner` to that many bytes per second. `queues` when it is non-blocking by itself.
    pub fn new(inner: Box<dyn Backend>, bytes_per_second: f64, queues: bool) -> Paced {
        let (free, done) = (Instant::now(), Vec::new());
        Paced { inner, bytes_per_second, queues, free, done, ran: None }
    }

    /// When the device has moved these bytes too.
    fn serve(&mut self, bytes: u64) -> Instant {
        let takes = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second);
        self.free = self.free.max(Instant::now()) + takes;
        self.free
    }
}

fn sleep_until(moment: Instant) {
    std::thread::sleep(moment.saturating_duration_since(Instant::now()));
}

impl Backend for Paced {
    fn arena(&mut self) -> &mut Arena {
        self.inner.arena()
    }

    fn spare(&mut self) -> &mut [u8] {
        self.inner.spare()
    }

    fn open(&mut self, opening: &Opening, comm: &dyn Comm) -> Result<(), IoError> {
        self.done.clear();
        self.ran = None;
        self.inner.open(opening, comm)
    }

    fn run(&mut self, way: Direction, access: &Access, at: usize) -> Result<Moved, IoError> {
        let done = self.serve(access.bytes());
        let moved = self.inner.run(way, access, at)?;
        sleep_until(done);
        Ok(moved)
    }

    fn start(
        &mut self,
        way: Direction,
        access: &Access,
        at: usize,
        tag: u64,
    ) -> Result<(), IoError> {
        if !self.queues {
            self.ran = Some((tag, self.run(way, access, at)?));
            return Ok(());
        }
        let done = self.serve(access.bytes());
        self.inner.start(way, access, at, tag)?;
        self.done.push((tag, done));
        Ok(())
    }

    fn poll(&mut self) -> Result<bool, IoError> {
        let inner = self.inner.poll()?;
        let now = Instant::now();
        Ok(self.ran.is_some() || inner && self.done.iter().any(|(_, done)| *done <= now))
    }

    fn finish(&mut self) -> Result<(u64, Moved), IoError> {
        if let Some(ran) = self.ran.take() {
            return Ok(ran);
        }
        let (tag, moved) = self.inner.finish()?;
        if let Some(place) = self.done.iter().position(|(of, _)| *of == tag) {
            sleep_until(self.done.swap_remove(place).1);
        }
        Ok((tag, moved))
    }

    fn sync(&mut self) -> Result<(), IoError> {
        self.inner.sync()
    }

    fn close(&mut self) -> Result<(), IoError> {
        self.inner.close()
    }
}
