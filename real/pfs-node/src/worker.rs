//! The thread of a server that does what may take long, so that the server itself goes on answering.

use iolab_pfs::io_server::Operation;
use iolab_pfs::{Code, Inode};
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

/// Removes files; ends when it is dropped, after what was begun.
pub(crate) struct Worker {
    jobs: Option<Sender<(Operation, Inode)>>,
    done: Receiver<(Operation, Result<(), Code>)>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// A worker on the directory of a server's subfiles, which rings when it has done something.
    pub(crate) fn on(directory: OwnedFd, bell: Bell) -> io::Result<Worker> {
        let (jobs, todo) = channel();
        let (answers, done) = channel();
        let work = move || {
            for (operation, inode) in todo {
                let result = crate::subfiles::remove(&directory, inode);
                if answers.send((operation, result)).is_err() {
                    return;
                }
                bell.ring();
            }
        };
        let thread = std::thread::Builder::new().name("pfs-worker".into()).spawn(work)?;
        Ok(Worker { jobs: Some(jobs), done, thread: Some(thread) })
    }

    /// Has all subfiles of a file removed.
    pub(crate) fn remove(&self, operation: Operation, inode: Inode) {
        let jobs = self.jobs.as_ref().expect("it is there until it is dropped");
        // The thread ends only with this value.
        let _ = jobs.send((operation, inode));
    }

    /// What was done since.
    pub(crate) fn done(&self) -> impl Iterator<Item = (Operation, Result<(), Code>)> + '_ {
        self.done.try_iter()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
