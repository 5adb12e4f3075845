//! A helper thread around the blocking call: the emulation of non-blocking I/O by Büttner (2007).
//!
//! The back end itself travels to the helper with the operation and comes back with the result,
//! so nothing is shared. The helper tells how long the call took, which no native non-blocking
//! interface does.

use crate::{Arena, Backend, Direction, IoError, Moved, Opening};
use iolab_comm::Comm;
use iolab_host::tick::monotonic;
use iolab_pattern::Access;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

struct Order {
    inner: Box<dyn Backend>,
    way: Direction,
    access: Access,
    at: usize,
    tag: u64,
}

struct Done {
    inner: Box<dyn Backend>,
    tag: u64,
    result: Result<Moved, IoError>,
    call: (u64, u64),
}

/// Any back end, made non-blocking by a thread.
pub struct Threaded {
    inner: Option<Box<dyn Backend>>,
    orders: Option<Sender<Order>>,
    done: Receiver<Done>,
    /// What `poll` received and `finish` has not given yet.
    seen: Option<Done>,
    helper: Option<JoinHandle<()>>,
    /// When the last finished call began and returned in the helper.
    call: (u64, u64),
}

impl Threaded {
    /// Puts a helper thread before `inner`.
    pub fn new(inner: Box<dyn Backend>) -> Threaded {
        let (orders, received) = channel::<Order>();
        let (finished, done) = channel();
        let helper = std::thread::spawn(move || {
            for mut order in received {
                let start = monotonic();
                let result = order.inner.run(order.way, &order.access, order.at);
                let call = (start, monotonic());
                let done = Done { inner: order.inner, tag: order.tag, result, call };
                if finished.send(done).is_err() {
                    return;
                }
            }
        });
        Threaded {
            inner: Some(inner),
            orders: Some(orders),
            done,
            seen: None,
            helper: Some(helper),
            call: (0, 0),
        }
    }

    fn here(&mut self) -> Result<&mut Box<dyn Backend>, IoError> {
        self.inner.as_mut().ok_or_else(|| IoError::Cannot("an operation is under way".to_owned()))
    }
}

fn ended() -> IoError {
    IoError::Cannot("the helper thread has ended".to_owned())
}

impl Backend for Threaded {
    fn arena(&mut self) -> &mut Arena {
        if self.inner.is_none() {
            let _ = self.finish();
        }
        self.inner.as_mut().expect("nothing is under way after finishing").arena()
    }

    fn open(&mut self, opening: &Opening, comm: &dyn Comm) -> Result<(), IoError> {
        self.here()?.open(opening, comm)
    }

    fn run(&mut self, way: Direction, access: &Access, at: usize) -> Result<Moved, IoError> {
        self.here()?.run(way, access, at)
    }

    fn start(
        &mut self,
        way: Direction,
        access: &Access,
        at: usize,
        tag: u64,
    ) -> Result<(), IoError> {
        self.here()?;
        let (Some(inner), Some(orders)) = (self.inner.take(), &self.orders) else {
            return Err(ended());
        };
        let order = Order { inner, way, access: access.clone(), at, tag };
        orders.send(order).map_err(|_| ended())
    }

    /// The blocking call goes on by itself; this only looks.
    fn poll(&mut self) -> Result<bool, IoError> {
        if self.inner.is_none() && self.seen.is_none() {
            self.seen = self.done.try_recv().ok();
        }
        Ok(self.seen.is_some())
    }

    fn finish(&mut self) -> Result<(u64, Moved), IoError> {
        if self.inner.is_some() {
            return Err(IoError::Cannot("nothing was started".to_owned()));
        }
        let done = match self.seen.take() {
            Some(done) => done,
            None => self.done.recv().map_err(|_| ended())?,
        };
        self.inner = Some(done.inner);
        self.call = done.call;
        done.result.map(|moved| (done.tag, moved))
    }

    fn call(&self) -> Option<(u64, u64)> {
        Some(self.call)
    }

    fn sync(&mut self) -> Result<(), IoError> {
        self.here()?.sync()
    }

    fn close(&mut self) -> Result<(), IoError> {
        self.here()?.close()
    }
}

impl Drop for Threaded {
    fn drop(&mut self) {
        // Closing the channel ends the helper; an operation under way is finished by it first.
        self.orders = None;
        if let Some(helper) = self.helper.take() {
            let _ = helper.join();
        }
    }
}
