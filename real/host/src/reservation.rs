//! An output belongs to one recording at a time, or to the recordings of one parallel job.
//!
//! Who records into an output is a member of it: a file in the user's own place of this node, locked
//! for as long as the member lives. So a member that was killed blocks nobody, and whoever is left
//! finds what it had begun. Members of one job are welcome together, everybody else is refused before
//! the program starts. Nothing of this lies where the program works.

use crate::job::Job;
use crate::own_place;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Seek, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What a member tells the others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Member {
    /// Process number of the recorder.
    pub pid: u32,
    /// Its job, if it has one.
    pub job: Option<Job>,
    /// Where its raw records are.
    pub spool: PathBuf,
}

/// Why an output cannot be had.
#[derive(Debug)]
pub enum ReservationError {
    /// Another recording, which goes on, writes it.
    Taken(Member),
    /// The user's own place, or something in it.
    Io(io::Error),
}

impl From<io::Error> for ReservationError {
    fn from(error: io::Error) -> ReservationError {
        ReservationError::Io(error)
    }
}

/// Who else is there.
#[derive(Debug, Default)]
pub struct Others {
    /// Members that go on.
    pub alive: Vec<Member>,
    /// Members that were killed.
    pub dead: Vec<Member>,
}

/// A member's hold on its output; ends with the value.
pub struct Reservation {
    place: PathBuf,
    entry: PathBuf,
    file: Option<File>,
    member: Member,
}

impl Reservation {
    /// Reserves `output` for this process. What dead members of other recordings left is forgotten,
    /// except for their spools, which are handed back.
    ///
    /// # Errors
    /// That somebody else has it, or what the system says.
    pub fn make(
        output: &Path,
        job: Option<&Job>,
    ) -> Result<(Reservation, Vec<PathBuf>), ReservationError> {
        let outputs = own_place::on_this_node()?.join("outputs");
        Reservation::below(&outputs, output, job)
    }

    fn below(
        outputs: &Path,
        output: &Path,
        job: Option<&Job>,
    ) -> Result<(Reservation, Vec<PathBuf>), ReservationError> {
        let place = outputs.join(name_of(output)?);
        let _lock = lock(&place)?;
        let mut left = Vec::new();
        for (path, member, alive) in members(&place, None)? {
            let welcome = match (&member.job, job) {
                (Some(theirs), Some(mine)) => theirs.key == mine.key && theirs.rank != mine.rank,
                _ => false,
            };
            match (alive, welcome) {
                (true, false) => return Err(ReservationError::Taken(member)),
                (false, false) => {
                    fs::remove_file(path)?;
                    left.extend(Some(member.spool).filter(|spool| spool.is_dir()));
                }
                _ => {}
            }
        }
        let member = Member { pid: std::process::id(), job: job.cloned(), spool: PathBuf::new() };
        let entry =
            place.join(format!("{}-{}.member", std::process::id(), job.map_or(0, |job| job.rank)));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&entry)?;
        file.lock()?;
        let mut made = Reservation { place, entry, file: Some(file), member };
        made.write()?;
        forget_the_dead(outputs, &made.place);
        Ok((made, left))
    }

    /// Tells where the raw records are, for whoever finds this member dead.
    ///
    /// # Errors
    /// What the system says.
    pub fn tell_spool(&mut self, spool: &Path) -> io::Result<()> {
        self.member.spool = spool.to_owned();
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        let text = serde_json::to_vec(&self.member)?;
        let Some(file) = &mut self.file else { return Ok(()) };
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(&text)
    }

    /// Waits, in another process than the member's, until the member is gone; then takes its place.
    /// The answer is whether it left something undone.
    ///
    /// # Errors
    /// What the system says.
    pub fn wait_for_death(&mut self) -> io::Result<bool> {
        // What was inherited is the member's own lock, which `fork::keeper` has closed here.
        if let Some(closed) = self.file.take() {
            let _ = closed.into_raw_fd();
        }
        let file = match File::open(&self.entry) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            opened => opened?,
        };
        file.lock()?;
        let undone = same_file(&file, &self.entry);
        if undone {
            self.member = read(&file).unwrap_or_default();
            self.file = Some(file);
        }
        Ok(undone)
    }

    /// What this member told last.
    pub fn member(&self) -> &Member {
        &self.member
    }

    /// Leaves. While nobody can come or go, `last_words` learns who else is there; members found
    /// dead are gone afterwards.
    pub fn leave<T>(mut self, last_words: impl FnOnce(&Others) -> T) -> T {
        let held = lock(&self.place).ok();
        let mut others = Others::default();
        let mut dead_entries = Vec::new();
        for (path, member, alive) in members(&self.place, Some(&self.entry)).unwrap_or_default() {
            match alive {
                true => others.alive.push(member),
                false => {
                    others.dead.push(member);
                    dead_entries.push(path);
                }
            }
        }
        let words = last_words(&others);
        for path in dead_entries {
            let _ = fs::remove_file(path);
        }
        self.end();
        drop(held);
        words
    }

    fn end(&mut self) {
        if self.file.is_some() {
            // Removed while locked: a keeper that gets the lock then sees that nothing is left undone.
            let _ = fs::remove_file(&self.entry);
            self.file = None;
            if members(&self.place, None).is_ok_and(|rest| rest.is_empty()) {
                remove_place(&self.place);
                let _ = self.place.parent().map(fs::remove_dir);
            }
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.file.is_some() {
            let held = lock(&self.place);
            self.end();
            drop(held);
        }
    }
}

/// Forgets the places of other outputs whose members were all killed and left nothing to recover:
/// nobody may ever record into those outputs again.
fn forget_the_dead(outputs: &Path, but: &Path) {
    for place in fs::read_dir(outputs).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if place == but {
            continue;
        }
        // Whoever holds the lock comes or goes right now.
        let Ok(file) = File::open(place.join("lock")) else { continue };
        let Ok(()) = file.try_lock() else { continue };
        let rest = members(&place, None).unwrap_or_default();
        if rest.iter().any(|(_, member, alive)| *alive || member.spool.is_dir()) {
            continue;
        }
        for (path, ..) in rest {
            let _ = fs::remove_file(path);
        }
        remove_place(&place);
    }
}

/// Removes the place of an output without members, whose lock is held.
fn remove_place(place: &Path) {
    let _ = fs::remove_file(place.join("lock"));
    let _ = fs::remove_dir(place);
}

/// A name for an output that differs for different files.
fn name_of(output: &Path) -> io::Result<String> {
    let folder = output.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let path = folder.canonicalize()?.join(output.file_name().unwrap_or_default());
    let mut hasher = std::hash::DefaultHasher::new();
    path.canonicalize().unwrap_or(path).hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}

/// The lock under which members come and go.
fn lock(place: &Path) -> io::Result<File> {
    loop {
        DirBuilder::new().mode(0o700).recursive(true).create(place)?;
        let path = place.join("lock");
        let opened =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = match opened {
            // The last member removed the place in between.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened?,
        };
        file.lock()?;
        if same_file(&file, &path) {
            return Ok(file);
        }
    }
}

/// Whether the path still leads to the opened file.
fn same_file(file: &File, path: &Path) -> bool {
    let (Ok(opened), Ok(found)) = (file.metadata(), fs::symlink_metadata(path)) else {
        return false;
    };
    (opened.dev(), opened.ino()) == (found.dev(), found.ino())
}

/// All members with their file and whether they live, but for one.
fn members(place: &Path, but: Option<&Path>) -> io::Result<Vec<(PathBuf, Member, bool)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(place)? {
        let path = entry?.path();
        if path.extension().is_none_or(|it| it != "member") || but == Some(path.as_path()) {
            continue;
        }
        let Ok(file) = File::open(&path) else { continue };
        let alive = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        found.push((path, read(&file).unwrap_or_default(), alive));
    }
    found.sort_by_key(|(_, member, _)| member.job.as_ref().map(|job| job.rank));
    Ok(found)
}

fn read(mut file: &File) -> io::Result<Member> {
    let mut text = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(key: &str, rank: u32) -> Job {
        Job { key: key.into(), rank, size: 2, ..Job::default() }
    }

    #[test]
    fn two_recordings_do_not_share_an_output_and_a_job_does() {
        let place = tempfile::tempdir().unwrap();
        let outputs = place.path().join("outputs");
        let make = |name: &str, job: Option<&Job>| {
            Reservation::below(&outputs, &place.path().join(name), job)
        };
        let first = make("a", None).map(|it| it.0).unwrap();
        assert!(matches!(make("a", None), Err(ReservationError::Taken(_))));
        assert!(make("b", None).is_ok());
        drop(first);
        let again = make("a", None).unwrap();
        drop(again);
        assert!(!outputs.exists(), "nothing is left");
        let rank = make("a", Some(&job("x", 0))).unwrap().0;
        assert!(make("a", Some(&job("y", 1))).is_err());
        assert!(make("a", Some(&job("x", 0))).is_err(), "the same rank twice");
        drop(rank);
    }

    #[test]
    fn a_dead_member_blocks_nobody_and_its_spool_is_told() {
        let place = tempfile::tempdir().unwrap();
        let outputs = place.path().join("outputs");
        let output = place.path().join("a");
        let mut dead = Reservation::below(&outputs, &output, None).unwrap().0;
        dead.tell_spool(place.path()).unwrap();
        let entry = dead.place.join("7.member");
        fs::rename(&dead.entry, &entry).unwrap();
        dead.entry = entry;
        // As if killed: the lock goes, the file stays.
        dead.file = None;
        let (living, left) = Reservation::below(&outputs, &output, None).unwrap();
        assert_eq!(left, [place.path().to_owned()]);
        living.leave(|others| assert!(others.alive.is_empty() && others.dead.is_empty()));
    }

    #[test]
    fn outputs_of_the_dead_are_forgotten_unless_something_is_to_be_recovered() {
        let place = tempfile::tempdir().unwrap();
        let outputs = place.path().join("outputs");
        let make = |name: &str| {
            Reservation::below(&outputs, &place.path().join(name), None).map(|it| it.0).unwrap()
        };
        let (mut bare, mut spooled, living) = (make("a"), make("b"), make("c"));
        spooled.tell_spool(place.path()).unwrap();
        for dead in [&mut bare, &mut spooled] {
            dead.file = None;
        }
        let other = make("d");
        assert!(!bare.place.exists(), "nothing was left of it");
        assert!(spooled.place.exists(), "its spool can be recovered");
        assert!(living.place.exists() && living.entry.exists());
        drop(other);
        let left = Reservation::below(&outputs, &place.path().join("b"), None).unwrap().1;
        assert_eq!(left, [place.path().to_owned()]);
    }
}
