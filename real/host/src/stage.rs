//! The fast place of a run: who keeps the files that programs write there (strategy `stage`), moves them home
//! when nobody has them open any more, and finds them again after a crash.
//!
//! What becomes of a file decides `iolab_policy::insitu::stage::Residence`; here is its driver. The launcher
//! of a run keeps the place itself ([`Staging`]), in threads beside the one that waits for the program: one
//! that hears calls, one per question, one that moves. A copy is a file `DEVICE-INODE` in a directory of this
//! user's in the fast place, beside a socket and a journal. Processes of the run get descriptors of the copy
//! from here, so that nobody has it open without the keeper's knowledge; that nobody has it open any more is
//! what the system says when it grants a lease.
//!
//! Nothing of the program's is lost by a failure: a file that cannot be moved stays in the fast place, and
//! [`recover`] moves it later.

mod home;
mod journal;
mod keeper;
mod recover;

pub use recover::{Found, Recovered, Standing, found, recover};

use iolab_policy::insitu::Stage;
use iolab_segment::{FastPlace, Listener, STAGE_VARIABLE};
use keeper::Keeper;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use std::{fmt, fs, io, thread};

/// What the names of the directories begin with.
const PREFIX: &str = "iolab-stage-";
/// How often a person hears that files are still on their way.
const TELL_EVERY: Duration = Duration::from_secs(5);
/// How soon at first.
const TELL_AFTER: Duration = Duration::from_secs(1);

/// Why there is no fast place.
#[derive(Debug)]
pub struct StageError {
    place: PathBuf,
    why: String,
}

impl fmt::Display for StageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the fast place {}: {}", self.place.display(), self.why)
    }
}

impl std::error::Error for StageError {}

/// The fast place of a run that goes on.
pub struct Staging {
    keeper: Arc<Keeper>,
    listener: Arc<Listener>,
    directory: PathBuf,
    page: String,
    mover: thread::JoinHandle<()>,
}

/// What came of a run's files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Files that were moved home.
    pub moved_files: u64,
    /// Their bytes.
    pub moved_bytes: u64,
    /// Files that strategies chose and that began at home all the same.
    pub passed_files: u64,
    /// What is still in the fast place, and why.
    pub left: Vec<String>,
}

impl Staging {
    /// Begins to keep files in a directory of its own within the fast place. Starts threads, so whoever
    /// forks without executing has done so before. `is_quiet`: nothing is said of files that pass.
    ///
    /// # Errors
    /// The place is missing, cannot be written to, or has too long a name.
    pub fn begin(stage: &Stage, is_quiet: bool) -> Result<Staging, StageError> {
        let place = PathBuf::from(&stage.directory);
        let failed = |why: String| StageError { place: place.clone(), why };
        let of = |error: io::Error| failed(error.to_string());
        let place_found = place.canonicalize().map_err(of)?;
        crate::limits::lift();
        home::hear_no_leases();
        let directory = tempfile::Builder::new()
            .prefix(PREFIX)
            .rand_bytes(8)
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(place_found)
            .map_err(of)?;
        let has_leases = tempfile::tempfile_in(directory.path()).map(|file| home::is_alone(&file));
        if has_leases.map_err(of)? != Some(true) {
            return Err(failed("its file system does not tell whether a file is open".to_owned()));
        }
        let errno = |errno: i32| match errno {
            libc::ENAMETOOLONG => failed(format!(
                "its path is longer than the {} bytes that a socket there can have",
                iolab_segment::DIRECTORY_BYTES_MAX
            )),
            errno => failed(io::Error::from_raw_os_error(errno).to_string()),
        };
        let device = directory.path().metadata().map_err(of)?.dev();
        let bytes = directory.path().as_os_str().as_bytes();
        let (table, page) = FastPlace::create(bytes, device).map_err(errno)?;
        let listener = Arc::new(Listener::open(table).map_err(errno)?);
        let keeper = Keeper::begin(stage.clone(), table, directory.path(), is_quiet).map_err(of)?;
        let keeper = Arc::new(keeper);
        let mover = Arc::clone(&keeper);
        let mover = thread::spawn(move || mover.move_files());
        let (ear, heard) = (Arc::clone(&listener), Arc::clone(&keeper));
        thread::spawn(move || keeper::hear(&ear, &heard));
        let directory = directory.keep();
        Ok(Staging { keeper, listener, directory, page, mover })
    }

    /// Variables the processes of the run must have.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        vec![(STAGE_VARIABLE.into(), self.page.clone().into())]
    }

    /// The directory of the copies, for a message to a person.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Waits until all files are at home or cannot be moved, and says every few seconds how it stands.
    /// Whoever does not want to wait ends this process: [`recover`] does the rest.
    pub fn end(self, tell: &mut dyn FnMut(&str)) -> Ended {
        self.keeper.retry();
        let begin = Instant::now();
        let mut next = TELL_AFTER;
        while !self.keeper.is_settled() {
            thread::sleep(Duration::from_millis(5));
            if begin.elapsed() >= next {
                next = begin.elapsed() + TELL_EVERY;
                tell(&format!(
                    "{}; to leave them to `iolab stage recover {}`, interrupt this",
                    self.keeper.standing(),
                    self.directory.display()
                ));
            }
        }
        self.listener.close();
        self.keeper.stop.store(true, Relaxed);
        let _ended = self.mover.join();
        let left = self.keeper.left();
        if left.is_empty() {
            remove(&self.directory);
        }
        Ended {
            moved_files: self.keeper.moved_files.load(Relaxed),
            moved_bytes: self.keeper.moved_bytes.load(Relaxed),
            passed_files: self.keeper.passed_files.load(Relaxed),
            left,
        }
    }
}

/// Removes a directory of copies with what we put there, if nothing else is in it.
fn remove(directory: &Path) {
    for name in [journal::NAME, "agent"] {
        let _not_there = fs::remove_file(directory.join(name));
    }
    let _in_use = fs::remove_dir(directory);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_missing_or_too_deep_is_refused_by_name_and_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let stage = |directory: &Path| Stage {
            directory: directory.to_str().unwrap().to_owned(),
            spare_bytes: 0,
            bytes_per_second: None,
        };
        let missing = folder.path().join("nowhere");
        let error = Staging::begin(&stage(&missing), true).err().unwrap().to_string();
        assert!(error.contains("nowhere"), "{error}");
        let deep = folder.path().join("x".repeat(90));
        fs::create_dir(&deep).unwrap();
        let error = Staging::begin(&stage(&deep), true).err().unwrap().to_string();
        assert!(error.contains("longer than"), "{error}");
        assert_eq!(fs::read_dir(&deep).unwrap().count(), 0);
    }

    #[test]
    fn a_run_without_files_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().to_str().unwrap().to_owned();
        let stage = Stage { directory, spare_bytes: 0, bytes_per_second: None };
        let staging = Staging::begin(&stage, true).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(staging.end(&mut |_| {}), Ended::default());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
