//! Signals that ask a program to end, told to a thread that can still do something about it.
//!
//! SIGINT, SIGTERM and SIGHUP go into a pipe instead of ending the program, each once: the second of
//! its kind ends it as ever, so nobody is held up. What was ignored from the start (`nohup`, a
//! background job of a shell) stays ignored. System calls that a signal meets go on by themselves,
//! and nothing runs until one comes, so measurements are not disturbed.

use std::io::{self, PipeReader, Read};
use std::os::fd::{IntoRawFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// Where the handler writes to.
static LINE: AtomicI32 = AtomicI32::new(-1);

/// The end of the line at which one waits.
#[derive(Debug)]
pub struct Interruptions {
    ear: PipeReader,
}

impl Interruptions {
    /// From now on the signals come here. Once in a program.
    ///
    /// # Errors
    /// What `pipe` says.
    pub fn expect() -> io::Result<Interruptions> {
        let (ear, line) = io::pipe()?;
        LINE.store(line.into_raw_fd(), Ordering::Release);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            redirect(signal)?;
        }
        Ok(Interruptions { ear })
    }

    /// Ends the wait without a signal: it gives 0.
    pub fn forget() {
        tell(0);
    }

    /// Waits for the first of them.
    ///
    /// # Errors
    /// What reading the pipe says.
    pub fn wait(&mut self) -> io::Result<i32> {
        let mut signal = [0];
        self.ear.read_exact(&mut signal)?;
        Ok(i32::from(signal[0]))
    }
}

/// What a person calls it.
pub fn name(signal: i32) -> String {
    match signal {
        libc::SIGINT => "SIGINT".to_owned(),
        libc::SIGTERM => "SIGTERM".to_owned(),
        libc::SIGHUP => "SIGHUP".to_owned(),
        other => format!("signal {other}"),
    }
}

fn redirect(signal: i32) -> io::Result<()> {
    // SAFETY: both structures live on this stack and are zeroed, which is a valid empty one; the
    // handler does nothing but one write.
    let done = unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut before);
        if before.sa_sigaction == libc::SIG_IGN {
            return Ok(());
        }
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = tell as *const () as usize;
        action.sa_flags = libc::SA_RESTART | libc::SA_RESETHAND;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut())
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

extern "C" fn tell(signal: i32) {
    let line: RawFd = LINE.load(Ordering::Acquire);
    let word = signal as u8;
    // SAFETY: write is safe in a handler, errno is put back, the byte lives on this stack.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(line, (&raw const word).cast(), 1);
        *libc::__errno_location() = errno;
    }
}

/// The terminal's interrupt is left to somebody else of the job.
pub fn leave_interrupts_to_others() {
    // SAFETY: ignoring a signal has no precondition.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
}
