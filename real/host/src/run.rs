//! The run of a program under strategies that hold bytes back: the directory and segment its
//! processes share (`iolab_segment`), from before the first one to after the last.
//!
//! The directory is this user's alone, has a name nobody can guess, and lies in memory where there
//! is room. While the run goes on the launcher writes out what killed processes held; at its end it
//! writes out what is left and removes what it made. Processes that go on without it hold nothing
//! from then on. If the launcher itself is killed, [`recover`] does the same later.

use crate::launch::Watcher;
use iolab_segment::{AttachError, FILE_NAME, Run, Shape, Undrained, VARIABLE};
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fmt, fs, io};

/// How often it is asked whether processes of the run have died while something is held.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Why there is no segment.
#[derive(Debug)]
pub struct RunError {
    place: PathBuf,
    why: String,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place.display(), self.why)
    }
}

impl std::error::Error for RunError {}

/// Variable that says where the directories of runs go.
pub const PLACE_VARIABLE: &str = "IOLAB_RUN_PLACE";
/// What the names of runs' directories begin with.
const PREFIX: &str = "iolab-run-";
/// A run whose segment is not there after this time is not about to begin.
const BEGINS_WITHIN: Duration = Duration::from_secs(600);

/// A run that goes on.
pub struct SharedRun {
    directory: PathBuf,
    run: Run,
}

impl SharedRun {
    /// Makes directory and segment for strategies whose stages hold at most that much each.
    ///
    /// # Errors
    /// When there is no place for them.
    pub fn begin(staging_bytes: u64) -> Result<SharedRun, RunError> {
        let mut failure = None;
        for place in places() {
            match SharedRun::begin_in(&place, staging_bytes) {
                Ok(run) => return Ok(run),
                Err(why) => failure = failure.or(Some(RunError { place, why })),
            }
        }
        let nowhere = || RunError { place: env::temp_dir(), why: "no place for it".to_owned() };
        Err(failure.unwrap_or_else(nowhere))
    }

    fn begin_in(place: &Path, staging_bytes: u64) -> Result<SharedRun, String> {
        let place = place.canonicalize().map_err(|error| error.to_string())?;
        let private = fs::Permissions::from_mode(0o700);
        let directory = tempfile::Builder::new()
            .prefix(PREFIX)
            .rand_bytes(16)
            .permissions(private)
            .tempdir_in(place)
            .map_err(|error| error.to_string())?;
        let path = c_path(&directory.path().join(FILE_NAME));
        let run = with_large_files(|| Run::create(&path, Shape { staging_bytes }))
            .map_err(|error| error.to_string())?;
        Ok(SharedRun { directory: directory.keep(), run })
    }

    /// Variables the processes of the run must have.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        vec![(VARIABLE.into(), self.directory.join(FILE_NAME).into_os_string())]
    }

    /// The directory, for a message to a person.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes out what is still held and removes what was made; the directory stays when something
    /// could not be written out, which the answer names.
    pub fn end(self) -> Vec<String> {
        end(&self.run, &self.directory)
    }
}

impl Watcher for SharedRun {
    /// Whoever kills the launcher means the program, and nobody would look after what it holds.
    fn is_needed(&self) -> bool {
        true
    }

    fn tick(&mut self) -> Duration {
        self.run.answer();
        if self.run.is_any_holding() || self.run.is_moving() {
            self.run.sweep_processes();
        }
        LOOK_EVERY
    }
}

/// Whether this process is part of a run that goes on, whose memory has room for such stages:
/// programs started here share it with those around them.
pub fn has_memory_from_around(staging_bytes: u64) -> bool {
    let around = env::var_os(VARIABLE).map(PathBuf::from).map(|path| Run::attach(&c_path(&path)));
    matches!(around, Some(Ok(run)) if run.can_hold(staging_bytes))
}

/// Does for a run whose launcher was killed what that would have done at its end. `None` when the
/// directory is none of a run.
pub fn recover(directory: &Path) -> Option<Result<Vec<String>, RunError>> {
    let path = directory.join(FILE_NAME);
    if !path.is_file() {
        return None;
    }
    let failed = |error: AttachError| RunError { place: path.clone(), why: error.to_string() };
    Some(Run::attach(&c_path(&path)).map_err(failed).map(|run| {
        run.inherit();
        end(&run, directory)
    }))
}

/// Looks for what killed launchers of this user left: the directories of those runs that still hold
/// bytes, for `iolab recover`. The others are removed. A run some process of which goes on, or of
/// which this process cannot tell (another node's, on a disk that both have), is let be.
pub fn leftovers() -> Vec<PathBuf> {
    // SAFETY: takes nothing and cannot fail.
    let user = unsafe { libc::geteuid() };
    let is_own =
        |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|it| it.is_dir() && it.uid() == user);
    let is_named = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_bytes().starts_with(PREFIX.as_bytes()))
    };
    let found = places()
        .into_iter()
        .filter(|path| is_in_memory(path))
        .filter_map(|place| fs::read_dir(place).ok())
        .flatten();
    let runs = found.filter_map(|entry| Some(entry.ok()?.path())).filter(is_named).filter(is_own);
    runs.filter(|directory| is_leftover(directory)).collect()
}

/// Whether a run has ended and holds bytes still; one that holds none goes.
fn is_leftover(directory: &Path) -> bool {
    let path = directory.join(FILE_NAME);
    let is_empty = match Run::attach(&c_path(&path)) {
        Ok(run) if run.is_abandoned() && run.is_any_holding() => return true,
        Ok(run) => run.is_abandoned(),
        // Killed before it began.
        Err(AttachError::System(libc::ENOENT)) => is_old(directory),
        Err(AttachError::Unfinished) => is_old(&path),
        Err(_) => false,
    };
    if is_empty {
        let _ = fs::remove_file(&path);
        let _ = fs::remove_dir(directory);
    }
    false
}

fn is_old(path: &Path) -> bool {
    let changed = fs::symlink_metadata(path).and_then(|it| it.modified()).ok();
    changed.and_then(|then| then.elapsed().ok()).is_some_and(|age| age > BEGINS_WITHIN)
}

fn end(run: &Run, directory: &Path) -> Vec<String> {
    let failures: Vec<String> = run.close().iter().map(words).collect();
    if failures.is_empty() {
        let _ = fs::remove_file(directory.join(FILE_NAME));
        let _ = fs::remove_dir(directory);
    }
    failures
}

fn words(failure: &Undrained) -> String {
    match failure {
        Undrained::Busy => "a process does not let go of a file".to_owned(),
        Undrained::Unwritten(it) => it.to_string(),
    }
}

/// A path as the system takes it; empty where it holds a NUL, which no path does.
pub(crate) fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}

/// Where the user says; else in memory, if there is any; else where temporary files go.
fn places() -> Vec<PathBuf> {
    if let Some(place) = env::var_os(PLACE_VARIABLE) {
        return vec![place.into()];
    }
    let own = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let memory = [Some(PathBuf::from("/dev/shm")), own];
    memory
        .into_iter()
        .flatten()
        .filter(|path| is_in_memory(path))
        .chain([env::temp_dir()])
        .collect()
}

fn is_in_memory(path: &Path) -> bool {
    crate::file_system_of(path).is_ok_and(|kind| kind == "tmpfs")
}

/// The segment is a long file with few pages: a limit on the size of files is about something else.
fn with_large_files<T>(work: impl FnOnce() -> Result<T, AttachError>) -> Result<T, AttachError> {
    let limit = |new: *const libc::rlimit, old: *mut libc::rlimit| {
        // SAFETY: both are null or structures that live through the call.
        let done = unsafe { libc::prlimit(0, libc::RLIMIT_FSIZE, new, old) };
        (done == 0).then_some(()).ok_or_else(io::Error::last_os_error)
    };
    let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let _ = limit(std::ptr::null(), &mut before);
    if before.rlim_max != libc::RLIM_INFINITY {
        // Beyond a hard limit the system would end this process by a signal.
        return Err(AttachError::System(libc::EFBIG));
    }
    let unlimited = libc::rlimit { rlim_cur: before.rlim_max, ..before };
    let _ = limit(&unlimited, std::ptr::null_mut());
    let done = work();
    let _ = limit(&before, std::ptr::null_mut());
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_a_directory_of_its_own_and_leaves_nothing() {
        let run = SharedRun::begin(1 << 20).unwrap();
        let directory = run.directory().to_owned();
        let mode = fs::metadata(&directory).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert_eq!(run.end(), Vec::<String>::new());
        assert!(!directory.exists());
    }

    #[test]
    fn a_run_that_goes_on_is_no_leftover() {
        let run = SharedRun::begin(1 << 20).unwrap();
        let directory = run.directory().to_owned();
        assert!(!is_leftover(&directory));
        assert!(directory.join(FILE_NAME).exists());
        run.end();
    }
}
