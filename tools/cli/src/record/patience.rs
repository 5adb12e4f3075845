//! What a person waiting for a trace is told: nothing within a second, then what goes on, and for how
//! long it has.

use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What takes less is not worth a line.
const FIRST: Duration = Duration::from_secs(1);
/// Between two lines on the same work.
const NEXT: Duration = Duration::from_secs(5);

/// Work under way after the command has ended. Dropped, it is over.
pub(crate) struct Patience {
    steps: Option<Sender<String>>,
    teller: Option<JoinHandle<()>>,
}

impl Patience {
    /// Work begins. Where no thread can be had for it, nothing is told.
    pub(crate) fn begin(step: String) -> Patience {
        let (steps, next) = channel::<String>();
        let tell = move || {
            let begun = Instant::now();
            let (mut step, mut wait) = (step, FIRST);
            loop {
                match next.recv_timeout(wait) {
                    Ok(text) => {
                        step = text;
                        wait = FIRST;
                    }
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {
                        let seconds = begun.elapsed().as_secs();
                        // Nobody may be reading.
                        _ = writeln!(std::io::stderr(), "iolab: {step} ({seconds} s)");
                        wait = NEXT;
                    }
                }
            }
        };
        let teller = std::thread::Builder::new().spawn(tell).ok();
        Patience { steps: Some(steps), teller }
    }

    /// The next step of it begins.
    pub(crate) fn step(&self, text: String) {
        if let Some(steps) = &self.steps {
            // Without a teller nobody listens.
            _ = steps.send(text);
        }
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        self.steps = None;
        if let Some(teller) = self.teller.take() {
            _ = teller.join();
        }
    }
}
