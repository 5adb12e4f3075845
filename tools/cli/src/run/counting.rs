//! What `iolab run` says of what strategies have counted: they are there for that, so it is said with
//! `--quiet` as well.

use iolab_policy::insitu::{Counts, StrategySpec, Totals};
use iolab_segment::{COUNTED_VARIABLE, Counted};
use std::process::Command;

/// The counters of a run.
pub(super) struct Counting(Counted);

impl Counting {
    /// Counters for the processes of a command, which finds them by its environment. None where no strategy
    /// counts, or where they could not be made.
    pub(super) fn begin(command: &mut Command, specs: &[StrategySpec]) -> Option<Counting> {
        let counts = |spec: &StrategySpec| spec.build().counts().is_some();
        match specs.iter().any(counts).then(Counted::create)? {
            Ok((counted, place)) => {
                command.env(COUNTED_VARIABLE, place);
                Some(Counting(counted))
            }
            Err(errno) => {
                let error = std::io::Error::from_raw_os_error(errno);
                eprintln!("iolab: warning: nothing will be told of what is counted: {error}");
                None
            }
        }
    }

    /// Says it.
    pub(super) fn end(self) {
        let mut totals = Totals::default();
        self.0
            .rows()
            .for_each(|(place, file, numbers)| totals.add(&place, &file, &Counts(numbers)));
        if totals.is_empty() {
            eprintln!("iolab: count: no file came by");
        }
        totals.lines().iter().for_each(|line| eprintln!("iolab: {line}"));
    }
}
