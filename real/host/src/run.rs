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
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fmt, fs, io};

/// How often it is asked whether processes of the run have died while something is held.
const LOOK_EVERY: Duration = Duration::from_millis(100);

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
            .prefix("iolab-run-")
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
    fn tick(&mut self) -> Duration {
        if self.run.is_any_holding() {
            self.run.sweep_processes();
        }
        LOOK_EVERY
    }
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

fn end(run: &Run, directory: &Path) -> Vec<String> {
    let failures: Vec<String> = run.close().iter().filter_map(words).collect();
    if failures.is_empty() {
        let _ = fs::remove_file(directory.join(FILE_NAME));
        let _ = fs::remove_dir(directory);
    }
    failures
}

fn words(failure: &Undrained) -> Option<String> {
    match failure {
        Undrained::Busy => Some("a process does not let go of a file".to_owned()),
        // Nobody can see the bytes of a file that has no name any more.
        Undrained::Unwritten(it) if it.path.ends_with(b" (deleted)") => None,
        Undrained::Unwritten(it) => Some(it.to_string()),
    }
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}

/// In memory, if there is any; what the user alone may enter comes before what all may.
fn places() -> Vec<PathBuf> {
    let in_memory = |path: &PathBuf| crate::file_system_of(path).is_ok_and(|kind| kind == "tmpfs");
    let own = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let memory = [Some(PathBuf::from("/dev/shm")), own];
    memory.into_iter().flatten().filter(in_memory).chain([env::temp_dir()]).collect()
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
}
