//! Processes of our own: forked, watched, ended.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Mutex;
use std::time::Duration;

/// Children that die with this process.
static DEPENDENT: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// A child made by [`fork`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child {
    pid: i32,
}

/// How a child is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It runs.
    Running,
    /// It ended with this exit code.
    Exited(i32),
    /// A signal ended it.
    Killed(i32),
}

/// Splits the process. The child (`None`) dies with its parent. Only for programs that have no
/// other thread yet: a lock held by one would stay locked in the child for ever.
///
/// # Errors
/// What `fork` says, or that there are other threads.
pub fn fork() -> io::Result<Option<Child>> {
    // SAFETY: getpid takes nothing and cannot fail.
    let parent = unsafe { libc::getpid() };
    let child = fork_independent()?;
    let mut dependent = DEPENDENT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    match child {
        Some(child) => dependent.push(child),
        None => {
            // A child's children are others.
            dependent.clear();
            die_with(parent);
        }
    }
    drop(dependent);
    Ok(child)
}

/// The same, but the child outlives its parent.
///
/// # Errors
/// As of [`fork`].
pub(crate) fn fork_independent() -> io::Result<Option<Child>> {
    let threads = std::fs::read_dir("/proc/self/task").map(Iterator::count).unwrap_or(1);
    if threads > 1 {
        return Err(io::Error::other("the process already has several threads"));
    }
    // SAFETY: single-threaded, as just checked, so the child may use everything.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        pid => Ok(Some(Child { pid })),
    }
}

fn die_with(parent: i32) {
    // SAFETY: prctl and getppid take no pointers here. The parent may have died before the
    // request, so look once more.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != parent {
            libc::_exit(1);
        }
    }
}

/// Ends the children that would die with this process, and waits until they have: what they were
/// at is over then. For a process that is about to end itself.
pub fn end_dependent() {
    let dependent = DEPENDENT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let running = |child: &&Child| child.peek() == Some(Life::Running);
    dependent.iter().filter(running).for_each(|child| child.kill());
    dependent.iter().for_each(|child| _ = child.wait());
}

/// Waits until one of the children ends otherwise than by exit code 0, and says which and how;
/// `None` when the other end of `ear` is closed before. They can still be looked at afterwards.
pub fn wait_for_loss(children: &[Child], ear: BorrowedFd) -> Option<(usize, Life)> {
    let handles: Vec<Option<OwnedFd>> = children.iter().map(|child| child.handle()).collect();
    // Where the kernel has no handles one has to look from time to time.
    let rest = if handles.iter().all(Option::is_some) { -1 } else { 100 };
    let (mut done, mut ended) = (vec![false; children.len()], Vec::new());
    loop {
        let number = |handle: &Option<OwnedFd>| handle.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        let watched = handles.iter().zip(&done).map(|(handle, done)| match done {
            true => -1,
            false => number(handle),
        });
        let mut polled: Vec<libc::pollfd> = std::iter::once(ear.as_raw_fd())
            .chain(watched)
            .map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 })
            .collect();
        // SAFETY: the structures live in a vector of that length.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, rest) };
        if polled[0].revents != 0 {
            return None;
        }
        for (index, child) in children.iter().enumerate().filter(|(index, _)| !done[*index]) {
            match child.peek() {
                Some(Life::Running) => {}
                // Ended properly, or somebody has seen its end already.
                None | Some(Life::Exited(0)) => ended.push(index),
                Some(end) => return Some((index, end)),
            }
        }
        ended.drain(..).for_each(|index| done[index] = true);
    }
}

/// Whether the other end of a pipe is closed, now or before the time is over.
pub fn has_ended(ear: BorrowedFd, limit: Duration) -> bool {
    let mut polled = libc::pollfd { fd: ear.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one structure on this stack.
    unsafe { libc::poll(&raw mut polled, 1, limit.as_millis() as libc::c_int) };
    polled.revents != 0
}

impl Child {
    /// Looks without waiting and without taking note: others may still look.
    pub fn peek(self) -> Option<Life> {
        // SAFETY: the structure is zeroed, which is valid, and lives on this stack.
        let (found, facts) = unsafe {
            let mut facts: libc::siginfo_t = std::mem::zeroed();
            let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            let found = libc::waitid(libc::P_PID, self.pid as libc::id_t, &raw mut facts, flags);
            (found, facts)
        };
        if found != 0 {
            return None;
        }
        // SAFETY: waitid has filled these fields, or left them 0 when nothing has happened.
        let (pid, status) = unsafe { (facts.si_pid(), facts.si_status()) };
        Some(match facts.si_code {
            _ if pid == 0 => Life::Running,
            libc::CLD_EXITED => Life::Exited(status),
            _ => Life::Killed(status),
        })
    }

    /// A descriptor that tells of its end.
    fn handle(self) -> Option<OwnedFd> {
        // SAFETY: pidfd_open takes two numbers and gives a descriptor nobody else owns.
        unsafe {
            let handle = libc::syscall(libc::SYS_pidfd_open, self.pid, 0);
            (handle >= 0).then(|| OwnedFd::from_raw_fd(handle as i32))
        }
    }

    /// Its process id.
    pub fn pid(self) -> i32 {
        self.pid
    }

    /// Looks without waiting. Whoever saw an end must not look again.
    pub fn look(self) -> Life {
        self.wait_with(libc::WNOHANG)
    }

    /// Waits for the end.
    pub fn wait(self) -> Life {
        self.wait_with(0)
    }

    fn wait_with(self, flags: i32) -> Life {
        let mut status = 0;
        // SAFETY: waitpid writes one int on this stack.
        match unsafe { libc::waitpid(self.pid, &raw mut status, flags) } {
            0 => Life::Running,
            -1 => Life::Exited(0), // Already collected.
            _ if libc::WIFSIGNALED(status) => Life::Killed(libc::WTERMSIG(status)),
            _ => Life::Exited(libc::WEXITSTATUS(status)),
        }
    }

    /// Ends it at once.
    pub fn kill(self) {
        // SAFETY: the pid is a child of ours that nobody collected yet.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
    }
}

/// Ends this process without running anything registered by the parent it was forked from.
pub fn leave(code: i32) -> ! {
    // SAFETY: _exit never returns and has no precondition.
    unsafe { libc::_exit(code) }
}
