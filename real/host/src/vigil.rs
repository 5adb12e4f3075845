//! A promise kept after death: something that is done when this process ends without calling it off,
//! with what this process said before.
//!
//! A second process waits at a pipe whose other end this process holds. However the holder ends,
//! by an error, a launcher's clean-up or SIGKILL, the system closes its end, and the waiting one
//! wakes. It is in a session of its own, so a signal to the job does not meet it, and it holds none
//! of the job's descriptors but standard error, so no launcher waits for it. Where a batch system
//! ends everything of a job, sessions or not, it dies with the others.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};

/// Keeps the promise open; dropping it without [`Vigil::call_off`] fulfils it.
#[derive(Debug)]
pub struct Vigil {
    line: File,
}

impl Vigil {
    /// Promises `work`. Forked children hold the line too: it is only over when all have ended.
    /// Only for programs that have no other thread yet, as [`crate::fork::fork`].
    ///
    /// # Errors
    /// What `pipe` and `fork` say, or that there are other threads.
    pub fn over(work: impl FnOnce(Vec<Vec<u8>>)) -> io::Result<Vigil> {
        let (mut ear, line) = io::pipe()?;
        if let Some(child) = crate::fork::fork_independent()? {
            child.wait();
            return Ok(Vigil { line: File::from(std::os::fd::OwnedFd::from(line)) });
        }
        drop(line);
        leave_the_job(ear.as_raw_fd());
        let mut said = Vec::new();
        loop {
            match hear(&mut ear) {
                Some(Word::CalledOff) => break,
                Some(Word::Said(words)) => said.push(words),
                None => {
                    work(said);
                    break;
                }
            }
        }
        crate::fork::leave(0)
    }

    /// Says something that the work is to know.
    pub fn say(&mut self, words: &[u8]) {
        let mut framed = (words.len() as u64).to_le_bytes().to_vec();
        framed.extend_from_slice(words);
        let _ = self.line.write_all(&framed);
    }

    /// All went well: the promise is void.
    pub fn call_off(mut self) {
        let _ = self.line.write_all(&CALLED_OFF.to_le_bytes());
    }
}

/// Stands where the length of words would.
const CALLED_OFF: u64 = u64::MAX;

enum Word {
    Said(Vec<u8>),
    CalledOff,
}

/// What comes next; `None` when the line is broken. Words cut short by that do not count.
fn hear(ear: &mut impl Read) -> Option<Word> {
    let mut length = [0; 8];
    ear.read_exact(&mut length).ok()?;
    let length = u64::from_le_bytes(length);
    if length == CALLED_OFF {
        return Some(Word::CalledOff);
    }
    let mut words = Vec::new();
    ear.take(length).read_to_end(&mut words).ok()?;
    (words.len() as u64 == length).then_some(Word::Said(words))
}

/// Becomes a grandchild in a session of its own that holds `ear` and standard error only.
fn leave_the_job(ear: RawFd) {
    // SAFETY: setsid and fork take no pointers; this process was just forked from one thread.
    unsafe {
        libc::setsid();
        if libc::fork() != 0 {
            libc::_exit(0);
        }
    }
    let keep = ear as u32;
    for (first, last) in [(0, 1), (3, keep.saturating_sub(1)), (keep + 1, u32::MAX)] {
        if first <= last {
            // SAFETY: nobody in this process uses any of these descriptors again.
            unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// The tests of a program run in threads, so a forked child stands for the program.
    fn promise(called_off: bool) -> bool {
        let folder = tempfile::tempdir().expect("a folder");
        let witness = folder.path().join("kept");
        // SAFETY: the child does nothing but what follows, and ends without returning.
        if unsafe { libc::fork() } == 0 {
            let vigil = Vigil::over(|said| _ = std::fs::write(&witness, said.concat()));
            if let Ok(mut vigil) = vigil {
                vigil.say(b"last ");
                vigil.say(b"words");
                if called_off {
                    vigil.call_off();
                    crate::fork::leave(0)
                }
            }
            // SAFETY: a signal to oneself.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
        let start = Instant::now();
        let patience = Duration::from_millis(if called_off { 300 } else { 10_000 });
        while !witness.exists() && start.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(5));
        }
        // The witness is written in one piece, but not at the moment that it appears.
        while witness.exists() && std::fs::read(&witness).is_ok_and(|said| said != b"last words") {
            assert!(start.elapsed() < patience, "other words");
            std::thread::sleep(Duration::from_millis(5));
        }
        witness.exists()
    }

    #[test]
    fn a_promise_is_kept_when_its_maker_is_killed_and_not_when_it_was_called_off() {
        assert!(promise(false));
        assert!(!promise(true));
    }
}
