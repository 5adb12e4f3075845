//! What a thread's process is, asked of the system by a thread of its own.
//!
//! The system does not answer about a process that executes a program before it has closed its files, and if one of these
//! is served by whoever asks, both would wait for each other for ever.

use std::fs;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// An answer takes some 50 µs; who is kept waiting longer is told nothing.
const PATIENCE: Duration = Duration::from_millis(50);
/// The same where no call of a program waits.
const LEISURE: Duration = Duration::from_secs(5);

/// Asks.
pub(super) struct Asking(Mutex<Sender<Question>>);

type Question = (u32, Sender<Found>);

/// What is known of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) pid: u32,
    pub(super) parent: u32,
    /// Path of its program.
    pub(super) program: Vec<u8>,
    /// Command line, each argument ended by NUL; empty when nobody says it.
    pub(super) command: Vec<u8>,
    /// It makes no calls any more, though its parent may not know it yet.
    pub(super) has_ended: bool,
}

impl Asking {
    pub(super) fn begin() -> Asking {
        let (questions, asked) = channel();
        thread::spawn(move || answer(asked));
        Asking(Mutex::new(questions))
    }

    /// About the process of a thread; nothing if the answer takes long.
    pub(super) fn about(&self, thread: u32) -> Option<Found> {
        self.within(PATIENCE, thread)
    }

    /// The same for somebody that no call waits for.
    pub(super) fn at_leisure(&self, thread: u32) -> Option<Found> {
        self.within(LEISURE, thread)
    }

    fn within(&self, patience: Duration, thread: u32) -> Option<Found> {
        let (answer, found) = channel();
        let questions = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        questions.send((thread, answer)).ok()?;
        found.recv_timeout(patience).ok()
    }
}

fn answer(asked: Receiver<Question>) {
    for (thread, answer) in asked {
        // Whoever asked may have given up.
        let _ = answer.send(Found::of(thread));
    }
}

impl Found {
    /// As the system says.
    fn of(thread: u32) -> Found {
        let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
        let value =
            |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let number = |key: &str| value(key)?.parse().ok();
        // One that is gone is told under its own number.
        let pid = number("Tgid:").unwrap_or(thread);
        let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        Found {
            pid,
            parent: number("PPid:").unwrap_or(0),
            program: program.into_os_string().into_encoded_bytes(),
            command: fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default(),
            has_ended: value("State:").is_none_or(|state| state.starts_with(['Z', 'X'])),
        }
    }

    /// Of a thread about which nobody says anything.
    pub(super) fn unknown(thread: u32) -> Found {
        Found { pid: thread, ..Found::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{self, Command};

    #[test]
    fn a_thread_leads_to_its_process() {
        let asking = Asking::begin();
        // SAFETY: takes nothing.
        let own = unsafe { libc::gettid() } as u32;
        let found = asking.at_leisure(own).unwrap();
        assert_eq!(found.pid, process::id());
        assert!(!found.has_ended && !found.program.is_empty() && !found.command.is_empty());
    }

    #[test]
    fn a_child_that_nobody_has_waited_for_has_ended() {
        let mut child = Command::new("true").spawn().unwrap();
        let asking = Asking::begin();
        while !asking.at_leisure(child.id()).unwrap().has_ended {
            thread::sleep(Duration::from_millis(1));
        }
        child.wait().unwrap();
        assert!(asking.at_leisure(child.id()).unwrap().has_ended);
    }
}
