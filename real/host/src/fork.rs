//! Processes of our own: forked, watched, ended.

use std::io;

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
    if child.is_none() {
        die_with(parent);
    }
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

/// The same, for a child that looks after what this process may leave undone: it has a session of
/// its own, so that what ends this process and its group does not reach it, and of all descriptors
/// only standard error.
///
/// # Errors
/// As of [`fork`].
pub fn keeper() -> io::Result<Option<Child>> {
    let child = fork_independent()?;
    if child.is_none() {
        // SAFETY: plain calls; descriptors 0 and 1 become those of the null device.
        unsafe {
            libc::setsid();
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE] {
                libc::signal(signal, libc::SIG_IGN);
            }
            let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
            for fd in [0, 1] {
                libc::dup2(null, fd);
            }
            // All others too: its launcher may wait until a socket it gave the recorder is closed.
            libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0);
        }
    }
    Ok(child)
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

impl Child {
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
