//! A directory of parts: each rank's trace as `rank-R.iot`, and `job.json`, which says whose it is.
//!
//! While a job runs it is `RUN.iot.parts`; the parts of ranks on several nodes stay parts, in a
//! directory with the name of the trace.

use crate::failure::Failure;
use crate::trace_file;
use iolab_host::job::Job;
use iolab_trace::Trace;
use iolab_traces::parts::{beside, in_directory};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io};

const JOB: &str = "job.json";

/// Whose parts these are.
#[derive(Serialize, Deserialize)]
struct Owner {
    job: Job,
    /// Unix time in seconds when the directory was made: the end of the first rank.
    made_s: u64,
}

/// The file of a rank.
pub(super) fn of_rank(directory: &Path, rank: u32) -> PathBuf {
    directory.join(format!("rank-{rank}.iot"))
}

fn owner(directory: &Path) -> Option<Owner> {
    serde_json::from_slice(&fs::read(directory.join(JOB)).ok()?).ok()
}

/// Whether the parts belong to this job, whose recording began at `begun`.
pub(super) fn is_of(directory: &Path, job: &Job, begun: SystemTime) -> bool {
    owner(directory).is_some_and(|owner| {
        let made = UNIX_EPOCH + Duration::from_secs(owner.made_s + 1);
        job.same_as(&owner.job, between(begun, made) > Duration::ZERO)
    })
}

/// Time from the first to the second, none when they are the other way round.
fn between(first: SystemTime, second: SystemTime) -> Duration {
    second.duration_since(first).unwrap_or_default()
}

/// Moves away what a recording that is no more left beside the output; a job that goes on keeps its
/// own. Nothing is lost: the parts are a trace under their new name.
pub(super) fn set_aside_stale(
    output: &Path,
    job: Option<&Job>,
    begun: SystemTime,
) -> Result<(), Failure> {
    let directory = beside(output);
    let goes_on =
        |job: &Job| is_of(&directory, job, begun) && !of_rank(&directory, job.rank).exists();
    if !directory.join(JOB).exists() || job.is_some_and(goes_on) {
        return Ok(());
    }
    if job.is_some_and(|job| owner(&directory).is_some_and(|owner| owner.job.key == job.key)) {
        return Err(Failure::new(format!(
            "this rank has already recorded into {} in this job",
            output.display()
        ))
        .hint("give each recording of a job its own output with -o"));
    }
    let free = (1..).map(|number| {
        let mut name = directory.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    });
    for aside in free {
        if !aside.exists() && fs::rename(&directory, &aside).is_ok() {
            eprintln!(
                "iolab: an earlier recording was cut off; its parts are now in {}",
                aside.display()
            );
            break;
        }
        if !directory.exists() {
            break;
        }
    }
    Ok(())
}

/// The directory for this job's parts, made when it is not there yet.
pub(super) fn open(output: &Path, job: &Job, begun: SystemTime) -> Result<PathBuf, Failure> {
    if output.is_dir() && is_of(output, job, begun) {
        return Ok(output.to_owned());
    }
    let directory = beside(output);
    // Made complete under another name: whoever finds it finds its owner in it.
    let mut draft = directory.as_os_str().to_owned();
    draft.push(format!("-{}-{}", job.host, job.rank));
    let draft = PathBuf::from(draft);
    let failed = |error: io::Error| Failure::new(format!("{}: {error}", directory.display()));
    let made_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let owner = Owner { job: job.clone(), made_s };
    let text = serde_json::to_vec(&owner).unwrap_or_default();
    fs::create_dir(&draft).map_err(failed)?;
    let made = fs::write(draft.join(JOB), text).and_then(|()| fs::rename(&draft, &directory));
    if let Err(error) = made {
        let _ = fs::remove_file(draft.join(JOB));
        let _ = fs::remove_dir(&draft);
        if !is_of(&directory, job, begun) {
            return Err(failed(error));
        }
    }
    Ok(directory)
}

/// Makes one trace of what is there; `None` when other nodes still have parts to bring, or when
/// the parts stay what they are.
pub(super) fn complete(output: &Path, job: &Job) -> Result<Option<Trace>, Failure> {
    let directory = beside(output);
    if !directory.is_dir() {
        return Ok(None);
    }
    let mut files = in_directory(&directory).unwrap_or_default();
    let headers: Vec<_> = files
        .iter()
        .filter_map(|path| iolab_traces::join(std::slice::from_ref(path)).ok())
        .map(|reader| reader.header().clone())
        .collect();
    let hosts: std::collections::BTreeSet<_> =
        headers.iter().flat_map(|it| &it.parts).map(|it| it.host.clone()).collect();
    let all = job.size > 0 && headers.len() as u32 >= job.size;
    if hosts.len() > 1 || !(job.is_on_one_node() || all) {
        return if all {
            stay_parts(&directory, output)
        } else {
            Ok(told_to_wait(&directory, job, headers.len()))
        };
    }
    if is_earlier_rest(output, job) {
        files.insert(0, output.to_owned());
    }
    let mut trace = trace_file::load_parts(&files)?;
    trace.header.clock.resolution_ns = trace.header.clock.resolution_ns.max(1);
    trace_file::save(output, &trace)?;
    remove(&directory);
    Ok(Some(trace))
}

/// Whether the output is what ranks of this very job made that ended before others began.
fn is_earlier_rest(output: &Path, job: &Job) -> bool {
    let directory = beside(output);
    let opened = || iolab_traces::join(&[output.to_owned()]);
    output.is_file()
        && opened().is_ok_and(|reader| {
            let parts = &reader.header().parts;
            parts.iter().all(|it| it.job == job.key && !of_rank(&directory, it.rank).exists())
                && !parts.is_empty()
        })
}

/// Gives the directory the name of the trace.
fn stay_parts(directory: &Path, output: &Path) -> Result<Option<Trace>, Failure> {
    if output.is_file() {
        let _ = fs::remove_file(output);
    }
    match fs::rename(directory, output) {
        // Another node was faster.
        Err(_) if !directory.exists() => Ok(None),
        Err(error) => Err(Failure::new(format!("{}: {error}", output.display()))),
        Ok(()) => {
            eprintln!(
                "iolab: the ranks were on several nodes: {} is a directory of parts, which every \
                 command reads as one trace",
                output.display()
            );
            Ok(None)
        }
    }
}

fn told_to_wait(directory: &Path, job: &Job, count: usize) -> Option<Trace> {
    eprintln!(
        "iolab: {count} of {} ranks are in {}, which every command reads as one trace",
        job.size,
        directory.display()
    );
    None
}

/// Removes a directory of parts: only what it is known to hold.
fn remove(directory: &Path) {
    for part in in_directory(directory).unwrap_or_default() {
        let _ = fs::remove_file(part);
    }
    let _ = fs::remove_file(directory.join(JOB));
    let _ = fs::remove_dir(directory);
}
