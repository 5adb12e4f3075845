//! Threads that do what may take long, so that a server itself goes on answering.

use rustix::event::EventfdFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Wakes a thread that waits in `poll` or `epoll`.
#[derive(Clone, Debug)]
pub(crate) struct Bell(Arc<OwnedFd>);

impl Bell {
    /// A bell that nobody has rung.
    pub(crate) fn new() -> io::Result<Bell> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Bell(Arc::new(rustix::event::eventfd(0, flags)?)))
    }

    /// Wakes who waits, now or when they next do.
    pub(crate) fn ring(&self) {
        // It fails only when it was rung 2^64 times without being heard.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }

    /// Makes it silent again.
    pub(crate) fn hear(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0u8; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Does jobs one after the other; ends when it is dropped, after those that were given.
pub(crate) struct Worker<J, R> {
    jobs: Option<Sender<J>>,
    done: Receiver<R>,
    thread: Option<JoinHandle<()>>,
}

impl<J: Send + 'static, R: Send + 'static> Worker<J, R> {
    /// A worker that rings when it has done something.
    pub(crate) fn new(
        name: &str,
        bell: Bell,
        mut work: impl FnMut(J) -> R + Send + 'static,
    ) -> io::Result<Worker<J, R>> {
        let (jobs, todo) = channel();
        let (answers, done) = channel();
        let work = move || {
            for job in todo {
                if answers.send(work(job)).is_err() {
                    return;
                }
                bell.ring();
            }
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(work)?;
        Ok(Worker { jobs: Some(jobs), done, thread: Some(thread) })
    }

    /// Has something done.
    pub(crate) fn give(&self, job: J) {
        let jobs = self.jobs.as_ref().expect("it is there until it is dropped");
        // The thread ends only with this value.
        let _ = jobs.send(job);
    }

    /// What was done since.
    pub(crate) fn done(&self) -> impl Iterator<Item = R> + '_ {
        self.done.try_iter()
    }
}

impl<J, R> Drop for Worker<J, R> {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
