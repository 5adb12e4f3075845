//! Metadata operations: create, stat, open and close, unlink, make and remove directories.
//!
//! As in mdtest: every phase visits the same number of names on every rank, either all in one
//! directory or each rank in its own.

use crate::failure::BenchError;
use crate::names::{Name, clear_names};
use crate::phase::{Stages, named, timed};
use crate::plan::Case;
use crate::runner::Runner;
use crate::timed::Tally;
use iolab_backend::{IoError, Verb};
use iolab_host::tick::TickClock;
use iolab_report::bench::{Measurement, PhaseLabel, measurement};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is done to one name.
pub(crate) type Operation = fn(&Path) -> io::Result<()>;

/// The phases in their order; each leaves what the next needs.
pub(crate) const PHASES: [(&str, Operation); 6] = [
    ("create", |path| File::create_new(path).map(drop)),
    ("stat", |path| fs::metadata(path).map(drop)),
    ("open-close", |path| File::open(path).map(drop)),
    ("unlink", |path| fs::remove_file(path)),
    ("mkdir", |path| fs::create_dir(path)),
    ("rmdir", |path| fs::remove_dir(path)),
];

/// One phase on one rank.
pub(crate) struct Visit {
    pub(crate) directory: PathBuf,
    pub(crate) rank: u32,
    pub(crate) files: u64,
    pub(crate) clock: TickClock,
    pub(crate) operation: Operation,
    /// The null method: names are made, nothing is done.
    pub(crate) null: bool,
}

impl Stages for Visit {
    fn open(&mut self) -> Result<(), (String, String)> {
        if self.null {
            return Ok(());
        }
        // Below the directory that the run made; a rank makes its own at the first phase.
        match fs::create_dir(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                let message = format!("cannot make {}: {error}", self.directory.display());
                Err((message, "choose a target that you may write to".to_owned()))
            }
            _ => Ok(()),
        }
    }

    fn work(&mut self) -> Tally {
        let mut tally = Tally::new();
        // The names are made beforehand, a string at a time: pushing digits is far below any call.
        for index in 0..self.files {
            let path = self.directory.join(format!("{}.{index}", self.rank));
            let start = self.clock.stamp();
            let done = if self.null { Ok(()) } else { (self.operation)(&path) };
            let stop = self.clock.stamp();
            if let Err(error) = done {
                let (error, code) = (error.to_string(), error.raw_os_error().unwrap_or(0));
                let (verb, offset, length) = (Verb::Open, 0, 0);
                tally.error = Some(IoError::System { verb, path, offset, length, error, code });
                break;
            }
            tally.histogram.saturating_record(self.clock.nanos(start, stop));
            tally.operations += 1;
        }
        tally
    }

    fn sync(&mut self) -> Result<(), (String, String)> {
        Ok(())
    }

    fn close(&mut self) -> Result<(), (String, String)> {
        Ok(())
    }
}

impl Runner<'_> {
    /// All phases of metadata operations, one after the other.
    pub(crate) fn metadata(
        &self,
        case: &Case,
        repetition: u32,
    ) -> Result<Vec<Measurement>, BenchError> {
        let root = self.files.path(Name::Metadata);
        let rank = self.comm.rank().0;
        let directory =
            if case.file_per_rank { root.join(format!("rank-{rank}")) } else { root.clone() };
        let mut measurements = Vec::new();
        for (name, operation) in PHASES {
            std::thread::sleep(Duration::from_secs_f64(self.plan.settle));
            let visit = Visit {
                directory: directory.clone(),
                rank,
                files: case.files,
                clock: self.clock,
                operation,
                null: !case.method.keeps_data,
            };
            let times = timed(self.comm, visit)?;
            let label = PhaseLabel { phase: name.to_owned(), ..PhaseLabel::default() };
            let mut phase = measurement(&times, &label, self.barrier_cost_ns, self.one_clock);
            named(&mut phase, case, self.plan, repetition);
            measurements.push(phase);
        }
        self.comm.barrier()?;
        if rank == 0 {
            clear_names(&root, self.comm.size());
        }
        Ok(measurements)
    }
}
