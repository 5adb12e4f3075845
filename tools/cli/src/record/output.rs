//! Where a recording's trace goes, alone or as one rank of a parallel job.
//!
//! A recorder that a parallel launcher started (`mpiexec -n 2 iolab record …`) writes the part of its
//! rank into `RUN.iot.parts/`; the last one of the job makes one trace of the parts: a file where all
//! ranks were on one node, else the directory itself under the name of the trace. A rank whose recorder
//! is killed is looked after by a keeper, a process outside of what its launcher kills.

use super::parts;
use crate::failure::Failure;
use crate::output::Output as Target;
use crate::trace_file;
use iolab_host::fork;
use iolab_host::job::Job;
use iolab_host::recording;
use iolab_host::reservation::{Member, Others, Reservation, ReservationError};
use iolab_trace::{Part, Trace};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A trace's place, which nobody else writes while this lives.
pub(crate) struct Output {
    target: Target,
    path: PathBuf,
    resolution_ns: u64,
    begun: SystemTime,
    job: Option<Job>,
    /// None for what is no regular file (`/dev/stdout`): it belongs to nobody.
    reservation: Option<Reservation>,
    pub(crate) tell: Tell,
}

/// Tells what was recorded, and where the trace is.
pub(crate) type Tell = fn(&Trace, &Path);

/// What became of a trace.
pub(crate) enum Saved {
    /// The whole trace, and where it now stands on disk.
    Whole(Box<Trace>, PathBuf),
    /// A part; the others follow.
    Part,
}

impl Output {
    /// Finds out before the command runs that its trace could not be written or has another owner.
    pub(crate) fn reserve(
        target: Target,
        resolution_ns: u64,
        tell: Tell,
    ) -> Result<Output, Failure> {
        let path = target.path().to_owned();
        let path = path.as_path();
        let found = fs::metadata(path).ok();
        let mut output = Output {
            target,
            path: path.to_owned(),
            resolution_ns,
            begun: SystemTime::now(),
            job: Job::find(),
            reservation: None,
            tell,
        };
        if found.as_ref().is_some_and(|it| !it.is_file() && !it.is_dir()) {
            output.job = None;
            return Ok(output);
        }
        if found.is_some_and(|it| it.is_dir()) && !output.goes_on_in(path) {
            return Err(Failure::new(format!("{} is a directory", path.display()))
                .hint("give the trace another name, or remove the directory if it holds parts of an earlier job"));
        }
        probe(path)?;
        let made = reserved(path, output.job.as_ref());
        let (reservation, left) = made.map_err(|error| refused(path, &error))?;
        output.reservation = Some(reservation);
        for spool in left {
            eprintln!(
                "iolab: an earlier recording into {} was cut off: `iolab recover {}` makes its trace",
                path.display(),
                spool.display()
            );
        }
        parts::set_aside_stale(path, output.job.as_ref(), output.begun)?;
        Ok(output)
    }

    /// Whether a directory holds parts of this very job, without this rank's.
    fn goes_on_in(&self, directory: &Path) -> bool {
        let Some(job) = &self.job else { return false };
        parts::is_of(directory, job, self.begun) && !parts::of_rank(directory, job.rank).exists()
    }

    /// The recording goes on in this spool directory from here. In a job, a keeper is left with it,
    /// so this must come before the process has a second thread.
    pub(crate) fn recorded_in(&mut self, spool: &Path) {
        let Some(reservation) = &mut self.reservation else { return };
        if reservation.tell_spool(spool).is_err() || self.job.is_none() {
            return;
        }
        if let Ok(None) = fork::keeper() {
            self.keep();
            fork::leave(0);
        }
    }

    /// The keeper's life: until its recorder is gone, and then what the recorder left undone.
    fn keep(&mut self) {
        let Some(mut reservation) = self.reservation.take() else { return };
        if !reservation.wait_for_death().unwrap_or(false) {
            return;
        }
        let member = reservation.member().clone();
        recording::wait_for_guest(&member.spool);
        if let Some(job) = member.job.clone() {
            self.rescue(&job, &member);
            let done = reservation.leave(|others| self.complete(&job, others));
            if let Ok(Some(trace)) = done {
                (self.tell)(&trace, &self.path);
            }
        }
    }

    /// Saves the trace of a recording that ended; the spools are not needed any more afterwards.
    pub(crate) fn save(mut self, mut trace: Trace) -> Result<Saved, Failure> {
        trace.header.clock.resolution_ns = self.resolution_ns;
        let (Some(job), Some(reservation)) = (self.job.clone(), self.reservation.take()) else {
            let place = trace_file::save_to(self.target, &trace)?;
            return Ok(Saved::Whole(Box::new(trace), place));
        };
        self.save_part(&job, trace)?;
        match reservation.leave(|others| self.complete(&job, others))? {
            Some(whole) => Ok(Saved::Whole(Box::new(whole), self.path)),
            None => Ok(Saved::Part),
        }
    }

    fn save_part(&self, job: &Job, mut trace: Trace) -> Result<(), Failure> {
        trace.header.parts = vec![Part {
            job: job.key.clone(),
            rank: job.rank,
            size: job.size,
            host: job.host.clone(),
            machine: job.machine.clone(),
        }];
        let directory = parts::open(&self.path, job, self.begun)?;
        trace_file::save(&parts::of_rank(&directory, job.rank), &trace)
    }

    /// Makes a part of what a killed recorder left.
    fn rescue(&self, job: &Job, member: &Member) {
        let Ok(mut trace) = recording::recover(&member.spool) else { return };
        trace.header.clock.resolution_ns = self.resolution_ns;
        let cut = format!("the end of rank {}, whose recorder was killed", job.rank);
        trace.header.losses.unseen.push(cut);
        match self.save_part(job, trace) {
            Ok(()) => recording::remove(&member.spool),
            Err(failure) => eprintln!("{failure}"),
        }
    }

    /// Makes one trace of the parts, when nobody on this node will do it later.
    fn complete(&self, job: &Job, others: &Others) -> Result<Option<Trace>, Failure> {
        let here = |member: &&Member| member.job.as_ref().is_some_and(|it| it.host == job.host);
        for member in others.dead.iter().filter(here) {
            if let Some(job) = &member.job {
                self.rescue(job, member);
            }
        }
        if others.alive.iter().any(|member| here(&member)) {
            return Ok(None);
        }
        parts::complete(&self.path, job)
    }
}

/// Reserves the output. A recording whose recorder was killed (a launcher of ranks does so when one
/// aborts) is about to be completed by its keeper: that is waited for.
fn reserved(
    path: &Path,
    job: Option<&Job>,
) -> Result<(Reservation, Vec<PathBuf>), ReservationError> {
    let mut is_told = false;
    for _ in 0..COMPLETED_WITHIN.as_millis() / LOOK_EVERY.as_millis() {
        match Reservation::make(path, job) {
            Err(ReservationError::Taken(member)) if !is_alive(member.pid) => {
                if !std::mem::replace(&mut is_told, true) {
                    eprintln!(
                        "iolab: waiting for the trace of an earlier recording into {}",
                        path.display()
                    );
                }
                std::thread::sleep(LOOK_EVERY);
            }
            made => return made,
        }
    }
    Reservation::make(path, job)
}

const COMPLETED_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Whether there is a process of that number on this node.
fn is_alive(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

fn refused(path: &Path, error: &ReservationError) -> Failure {
    match error {
        ReservationError::Taken(member) => Failure::new(format!(
            "{} is being written by another recording (process {})",
            path.display(),
            member.pid
        ))
        .hint("give this one another output with -o, or wait until that one is done"),
        ReservationError::Io(error) => {
            Failure::new(format!("{} cannot be reserved: {error}", path.display()))
                .hint("iolab needs a directory of its own in /dev/shm, /tmp or ~/.cache")
        }
    }
}

/// Whether the folder takes a file of ours. The output itself is not touched.
fn probe(output: &Path) -> Result<(), Failure> {
    let folder = match output.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let probe = folder.join(format!(".iolab-probe-{}", std::process::id()));
    let made = fs::OpenOptions::new().write(true).create_new(true).open(&probe);
    made.and_then(|_| fs::remove_file(&probe)).map_err(|error| {
        Failure::new(format!("{} cannot be written to: {error}", folder.display()))
            .hint("give the trace another place with -o")
    })
}
