//! What whoever started this process gave it, and a command that it starts is to get again.
//!
//! The Rust runtime changes some of it before `main`: it ignores SIGPIPE, and has programs it starts find the default;
//! it opens what is closed of the standard streams. And a process of ours cannot wait for a command while SIGCHLD
//! is ignored. So it is looked at before the runtime begins.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Signals that were ignored and are not left so.
const SIGNALS: [libc::c_int; 2] = [libc::SIGPIPE, libc::SIGCHLD];
/// Standard input, output and error.
const STREAMS: [libc::c_int; 3] = [0, 1, 2];

/// A bit of each signal that was ignored.
static IGNORED: AtomicU32 = AtomicU32::new(0);
/// A bit of each standard stream that was closed.
static CLOSED: AtomicU32 = AtomicU32::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    for signal in SIGNALS {
        // SAFETY: asks, and fills the structure it is given.
        let is_ignored = unsafe {
            let mut action = std::mem::zeroed::<libc::sigaction>();
            libc::sigaction(signal, std::ptr::null(), &mut action) == 0
                && action.sa_sigaction == libc::SIG_IGN
        };
        IGNORED.fetch_or(u32::from(is_ignored) << signal, Relaxed);
    }
    for stream in STREAMS {
        // SAFETY: takes a number.
        let is_closed = unsafe { libc::fcntl(stream, libc::F_GETFD) } < 0;
        CLOSED.fetch_or(u32::from(is_closed) << stream, Relaxed);
    }
}

/// This process can wait for those it starts from now on.
pub fn hear_of_children() {
    if IGNORED.load(Relaxed) & 1 << libc::SIGCHLD != 0 {
        // SAFETY: the default action of a signal.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    }
}

/// The command gets it as this process did.
pub fn hand_on(command: &mut Command) {
    let (ignored, closed) = (IGNORED.load(Relaxed), CLOSED.load(Relaxed));
    if ignored | closed != 0 {
        // SAFETY: only makes system calls between fork and exec.
        unsafe { command.pre_exec(move || restore(ignored, closed)) };
    }
}

fn restore(ignored: u32, closed: u32) -> io::Result<()> {
    for signal in SIGNALS.into_iter().filter(|signal| ignored & 1 << signal != 0) {
        // SAFETY: a signal is ignored, as it was.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    for stream in STREAMS.into_iter().filter(|stream| closed & 1 << stream != 0) {
        if is_nothing(stream) {
            // SAFETY: takes a number. What the runtime put there is of use to nobody.
            unsafe { libc::close(stream) };
        }
    }
    Ok(())
}

/// Whether a descriptor leads to `/dev/null`, so not to what a command was given on purpose.
fn is_nothing(fd: libc::c_int) -> bool {
    const NULL: libc::dev_t = libc::makedev(1, 3);
    // SAFETY: fills the structure it is given.
    unsafe {
        let mut status = std::mem::zeroed::<libc::stat>();
        libc::fstat(fd, &mut status) == 0
            && status.st_mode & libc::S_IFMT == libc::S_IFCHR
            && status.st_rdev == NULL
    }
}
