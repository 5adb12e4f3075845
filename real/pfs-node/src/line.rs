//! One line for people on standard error, from inside of a program that knows nothing of it.
//!
//! The program may have closed standard error, nobody may read it any more, or it is a file that has reached its
//! limit: the line is lost then, and with it the signal that the system sends, which the program would die of.

use std::mem::MaybeUninit;
use std::sync::OnceLock;

/// Says the line, unless nobody wants to hear any (`IOLAB_FS_QUIET=1`).
pub fn say_in_guest(line: &str) {
    static IS_QUIET: OnceLock<bool> = OnceLock::new();
    let is_quiet = || std::env::var_os("IOLAB_FS_QUIET").is_some_and(|quiet| quiet == "1");
    if !line.is_empty() && !IS_QUIET.get_or_init(is_quiet) {
        // In one piece, as others say theirs.
        write_without_signals(format!("iolab: {line}\n").as_bytes());
    }
}

fn write_without_signals(bytes: &[u8]) {
    let (deadly, pending) = (set_of(&[libc::SIGPIPE, libc::SIGXFSZ]), set_of(&[]));
    let before = set_of(&[]);
    // SAFETY: all of them are sets that live through the calls; the bytes are only read.
    unsafe {
        let (mut before, mut pending) = (before, pending);
        if libc::pthread_sigmask(libc::SIG_BLOCK, &raw const deadly, &raw mut before) != 0 {
            return;
        }
        libc::sigpending(&raw mut pending);
        let written = libc::write(libc::STDERR_FILENO, bytes.as_ptr().cast(), bytes.len());
        let sent = match (written, std::io::Error::last_os_error().raw_os_error()) {
            (-1, Some(libc::EPIPE)) => Some(libc::SIGPIPE),
            (-1, Some(libc::EFBIG)) => Some(libc::SIGXFSZ),
            _ => None,
        };
        // What was pending already is the program's.
        if let Some(signal) = sent
            && libc::sigismember(&raw const pending, signal) == 0
        {
            let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            let ours = set_of(&[signal]);
            libc::sigtimedwait(&raw const ours, std::ptr::null_mut(), &raw const at_once);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
    }
}

fn set_of(signals: &[i32]) -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is made before it is used.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for &signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}
