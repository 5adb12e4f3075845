//! Limits of this process, which a user's shell may have set for the program and not for us.

use std::sync::OnceLock;

/// `ulimit -f`.
pub(crate) const FILE_SIZE: u32 = libc::RLIMIT_FSIZE;
/// `ulimit -v`.
pub(crate) const ADDRESS_SPACE: u32 = libc::RLIMIT_AS;
/// `ulimit -n`.
const FILES: u32 = libc::RLIMIT_NOFILE;

fn get(which: u32) -> libc::rlimit {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: fills the structure it is given.
    unsafe { libc::getrlimit(which, &mut limit) };
    limit
}

/// The limit that holds now; none when there is none.
pub(crate) fn of(which: u32) -> Option<u64> {
    Some(get(which).rlim_cur).filter(|&it| it != libc::RLIM_INFINITY)
}

/// What the program is to be started with again.
#[derive(Clone, Copy)]
pub(crate) struct Inherited([(u32, libc::rlimit); 3]);

static INHERITED: OnceLock<Inherited> = OnceLock::new();

/// What was lifted, if anything was.
pub(crate) fn inherited() -> Option<Inherited> {
    INHERITED.get().copied()
}

/// Lifts the limits on this process as far as it may, once, and has a file that would grow too large
/// be an error instead of an end.
pub(crate) fn lift() -> Inherited {
    *INHERITED.get_or_init(lifted)
}

/// A file of this process that would grow beyond the limit is an error, which can be told, instead of
/// an end.
pub fn fail_when_too_large() {
    extern "C" fn nothing(_: i32) {}
    // SAFETY: a handler that does nothing; unlike an ignored signal, it is not handed on to programs.
    unsafe {
        let mut before = std::mem::zeroed::<libc::sigaction>();
        libc::sigaction(libc::SIGXFSZ, std::ptr::null(), &mut before);
        if before.sa_sigaction == libc::SIG_DFL {
            libc::signal(libc::SIGXFSZ, nothing as *const () as libc::sighandler_t);
        }
    }
}

fn lifted() -> Inherited {
    fail_when_too_large();
    Inherited([FILE_SIZE, ADDRESS_SPACE, FILES].map(|which| {
        let before = get(which);
        let unlimited =
            libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        let lifted = libc::rlimit { rlim_cur: before.rlim_max, ..before };
        // SAFETY: plain structures; a refusal leaves the limit as it is. More descriptors than the
        // user may have are of no use to us, so that limit is only raised as anybody may.
        unsafe {
            if which == FILES || libc::setrlimit(which, &unlimited) != 0 {
                libc::setrlimit(which, &lifted);
            }
        }
        (which, before)
    }))
}

impl Inherited {
    /// Sets the limits as they were. Only makes system calls, so a forked child may call it.
    pub(crate) fn restore(&self) {
        for (which, limit) in &self.0 {
            // SAFETY: a plain structure; lowering a limit is always allowed.
            unsafe { libc::setrlimit(*which, limit) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lifted_is_restored() {
        let before = of(FILES);
        let inherited = lift();
        assert!(of(FILES) >= before);
        inherited.restore();
        assert_eq!(of(FILES), before);
    }
}
