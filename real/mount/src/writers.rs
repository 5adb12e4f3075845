//! The threads of a mount that write what stacks have been handed (`single-writer`): so many, and no more of
//! the mount's threads write at a time to files whose stacks hand over. A file takes its turn behind the
//! others, one piece at a time.
//!
//! Whoever holds a permit waits for nobody but the file below, so a call may wait for one in the midst of
//! its own work.

use crate::staged::Turn;
use crate::tree::Inode;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// The threads; they end with this.
pub(crate) struct Writers(Arc<Queue>);

/// Files whose stacks have work, and who may write.
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    files: VecDeque<Arc<Inode>>,
    permits: usize,
    is_over: bool,
}

/// Leave to write, given back when it goes.
pub(crate) struct Permit<'a>(&'a Queue);

impl Writers {
    /// Starts so many.
    pub(crate) fn start(count: usize) -> std::io::Result<Writers> {
        let state = State { files: VecDeque::new(), permits: count, is_over: false };
        let writers =
            Writers(Arc::new(Queue { state: Mutex::new(state), changed: Condvar::new() }));
        for _ in 0..count {
            let queue = writers.0.clone();
            thread::Builder::new().name("writer".to_owned()).spawn(move || write(&queue))?;
        }
        Ok(writers)
    }

    /// What stacks need of it.
    pub(crate) fn queue(&self) -> Arc<Queue> {
        self.0.clone()
    }
}

impl Drop for Writers {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.changed.notify_all();
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// A file has work.
    pub(crate) fn put(&self, file: Arc<Inode>) {
        self.lock().files.push_back(file);
        self.changed.notify_all();
    }

    /// The file whose turn it is; nothing when all is over.
    fn next(&self) -> Option<Arc<Inode>> {
        let mut state = self.lock();
        loop {
            if state.is_over {
                return None;
            }
            if let Some(file) = state.files.pop_front() {
                return Some(file);
            }
            state = self.wait(state);
        }
    }

    /// Leave to write, once somebody else has given it back.
    pub(crate) fn permit(&self) -> Permit<'_> {
        let mut state = self.lock();
        while state.permits == 0 {
            state = self.wait(state);
        }
        state.permits -= 1;
        Permit(self)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.lock().permits += 1;
        self.0.changed.notify_all();
    }
}

/// A writer's life.
fn write(queue: &Queue) {
    let mut bytes = Vec::new();
    while let Some(file) = queue.next() {
        let work = file.opened().staged().and_then(|staged| staged.begin(&mut bytes));
        let Some(work) = work else { continue };
        work.carry_out(&bytes, queue);
        let turn = file.opened().staged().map(|staged| staged.finish(&work));
        if turn == Some(Turn::Again) {
            queue.put(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_when_all_permits_are_out_waits_for_one() {
        let queue = Writers::start(2).unwrap().queue();
        let (asked, order) = (Mutex::new(false), Mutex::new(Vec::new()));
        let note = |what: &'static str| order.lock().unwrap().push(what);
        let (first, second) = (queue.permit(), queue.permit());
        thread::scope(|scope| {
            scope.spawn(|| {
                *asked.lock().unwrap() = true;
                let _third = queue.permit();
                note("the third writes");
            });
            while !*asked.lock().unwrap() {
                thread::yield_now();
            }
            (0..1000).for_each(|_| thread::yield_now());
            note("the first is done");
            drop(first);
        });
        drop(second);
        assert_eq!(*order.lock().unwrap(), ["the first is done", "the third writes"]);
    }

    #[test]
    fn the_threads_end_with_the_mount() {
        let writers = Writers::start(3).unwrap();
        let queue = writers.queue();
        drop(writers);
        while Arc::strong_count(&queue) > 1 {
            thread::yield_now();
        }
        assert!(queue.next().is_none());
    }
}
