//! What a keeper that was killed left in the fast place: found, and moved home.
//!
//! A copy is moved when the file of its last name is the one it belongs to, by device and inode, and nobody has
//! written to it since. A name that the run changed in its last moment is found in the same directory. Everything else stays and is named. Each step may be repeated: bytes are overwritten
//! with the same bytes, and a copy goes only after the journal has its line.

use super::home::{self, Pace};
use super::journal::{self, Entry, Journal, Known};
use super::{PREFIX, remove};
use iolab_segment::{Inode, file_name};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A keeper that lives touches its journal more often than this while it copies.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// How a directory of copies stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its run goes on.
    GoesOn,
    /// Its run has ended, and left it.
    Left,
}

/// A directory of copies in a fast place.
#[derive(Clone, Debug)]
pub struct Found {
    /// Where it is.
    pub directory: PathBuf,
    /// How it stands.
    pub standing: Standing,
    /// The last names of its files, and their bytes.
    pub files: Vec<(PathBuf, u64)>,
    /// Lines of the journal that are cut or damaged.
    pub damaged_lines: usize,
}

/// What came of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Files that came home.
    pub moved: Vec<PathBuf>,
    /// What stays, and why.
    pub left: Vec<String>,
}

/// The directories of copies in a fast place, or the directory itself if it is one.
///
/// # Errors
/// When the place cannot be read.
pub fn found(place: &Path) -> io::Result<Vec<Found>> {
    if place.join(journal::NAME).is_file() {
        return Ok(vec![look(place)?]);
    }
    let mut all = Vec::new();
    for entry in fs::read_dir(place)? {
        let path = entry?.path();
        let is_named =
            path.file_name().is_some_and(|name| name.as_bytes().starts_with(PREFIX.as_bytes()));
        if is_named && path.join(journal::NAME).is_file() {
            all.push(look(&path)?);
        }
    }
    all.sort_by(|one, other| one.directory.cmp(&other.directory));
    Ok(all)
}

fn look(directory: &Path) -> io::Result<Found> {
    let (known, damaged_lines) = journal::read(directory)?;
    let standing = match Journal::take_over(directory)? {
        Some(_) => Standing::Left,
        None => Standing::GoesOn,
    };
    let mut files = Vec::new();
    for (inode, path) in copies(directory)? {
        let name = known.get(&inode).map_or(path.clone(), |known| known.path.clone());
        files.push((name, fs::metadata(path)?.len()));
    }
    Ok(Found { directory: directory.to_owned(), standing, files, damaged_lines })
}

/// The copies that are there, by the files they belong to.
fn copies(directory: &Path) -> io::Result<BTreeMap<Inode, PathBuf>> {
    let mut copies = BTreeMap::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if let Some(inode) = journal::parse_name(entry.file_name().as_bytes()) {
            copies.insert(inode, entry.path());
        }
    }
    Ok(copies)
}

/// Moves home what is left in a directory of copies; `None` while its run goes on.
///
/// # Errors
/// When directory or journal cannot be read.
pub fn recover(directory: &Path) -> io::Result<Option<Recovered>> {
    home::hear_no_leases();
    let ended = fs::metadata(directory.join(journal::NAME))?.modified()? + HEARTBEAT;
    let Some(mut journal) = Journal::take_over(directory)? else { return Ok(None) };
    let (known, _) = journal::read(directory)?;
    let mut recovered = Recovered::default();
    for (inode, path) in copies(directory)? {
        match bring_home(inode, &path, known.get(&inode), ended) {
            Ok(name) => {
                journal.add(&Entry::Home(inode))?;
                fs::remove_file(&path)?;
                recovered.moved.extend(name);
            }
            Err(why) => recovered.left.push(format!("{}: {why}", path.display())),
        }
    }
    if recovered.left.is_empty() {
        remove(directory);
    }
    Ok(Some(recovered))
}

/// Copies one file home; the answer is its name, unless it was at home already.
fn bring_home(
    inode: Inode,
    path: &Path,
    known: Option<&Known>,
    ended: std::time::SystemTime,
) -> Result<Option<PathBuf>, String> {
    let Some(known) = known else {
        return Err("the journal does not say which file it belongs to".to_owned());
    };
    if known.is_over {
        return Ok(None);
    }
    let place = name_now(inode, &known.path);
    let name = place.display();
    let of = |error: io::Error| format!("{name}: {error}");
    let copy = OpenOptions::new().read(true).write(true).open(path).map_err(of)?;
    if home::is_alone(&copy) == Some(false) {
        return Err(format!("a process that goes on has it open, for {name}"));
    }
    let home = open_home(&place).map_err(of)?;
    let status = home.metadata().map_err(of)?;
    if (status.dev(), status.ino()) != inode {
        let wanted = String::from_utf8_lossy(file_name(inode).bytes()).into_owned();
        return Err(format!("{name} is another file now, not {wanted}"));
    }
    if status.len() > 0 && status.modified().map_err(of)? > ended {
        return Err(format!("{name} was written to since"));
    }
    let pace = Pace { bytes_per_second: None, goes_on: &|| true };
    match home::bring(&copy, &home, &pace).and_then(|whole| {
        home::give_times(&copy, &home)?;
        home.sync_all()?;
        Ok(whole)
    }) {
        Ok(true) => Ok(Some(place)),
        Ok(false) => Err(format!("it changes, for {}", place.display())),
        Err(error) => Err(format!("{}: {error}", place.display())),
    }
}

/// What a file is called now: its last name, unless another one in the same directory leads to it.
fn name_now(inode: Inode, last: &Path) -> PathBuf {
    let leads = |path: &Path| {
        fs::symlink_metadata(path).is_ok_and(|it| it.is_file() && (it.dev(), it.ino()) == inode)
    };
    let siblings = || {
        let parent = last.parent().filter(|parent| !parent.as_os_str().is_empty());
        fs::read_dir(parent.unwrap_or(Path::new("."))).into_iter().flatten().flatten()
    };
    match leads(last) {
        true => last.to_owned(),
        false => siblings()
            .map(|entry| entry.path())
            .find(|path| leads(path))
            .unwrap_or_else(|| last.to_owned()),
    }
}

/// The file of that name, to be written whatever its mode says its owner may.
fn open_home(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).custom_flags(libc::O_NOFOLLOW).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Left {
        folder: tempfile::TempDir,
        directory: PathBuf,
    }

    impl Left {
        /// A directory as a killed keeper leaves it, with one file `home` of bytes that are not at home.
        fn new() -> Left {
            let folder = tempfile::tempdir().unwrap();
            let directory = folder.path().join("iolab-stage-test");
            fs::create_dir(&directory).unwrap();
            fs::write(folder.path().join("home"), "").unwrap();
            let left = Left { folder, directory };
            let mut journal = Journal::create(&left.directory).unwrap();
            journal.add(&Entry::At(left.inode(), left.home())).unwrap();
            fs::write(left.copy(), "new bytes").unwrap();
            left
        }

        fn home(&self) -> PathBuf {
            self.folder.path().join("home")
        }

        fn inode(&self) -> Inode {
            let status = fs::metadata(self.home()).unwrap();
            (status.dev(), status.ino())
        }

        fn copy(&self) -> PathBuf {
            let name = file_name(self.inode());
            self.directory.join(std::str::from_utf8(name.bytes()).unwrap())
        }
    }

    #[test]
    fn a_file_that_was_renamed_in_the_last_moment_is_found() {
        let left = Left::new();
        let renamed = left.folder.path().join("renamed");
        fs::rename(left.home(), &renamed).unwrap();
        fs::write(left.home(), "of another one").unwrap();
        let recovered = recover(&left.directory).unwrap().unwrap();
        assert_eq!(recovered, Recovered { moved: vec![renamed.clone()], left: vec![] });
        assert_eq!(fs::read(renamed).unwrap(), b"new bytes");
        assert_eq!(fs::read(left.home()).unwrap(), b"of another one");
    }

    #[test]
    fn what_was_left_comes_home_and_the_directory_goes() {
        let left = Left::new();
        let all = found(left.folder.path()).unwrap();
        assert_eq!((all.len(), all[0].standing), (1, Standing::Left));
        assert_eq!(all[0].files, [(left.home(), 9)]);
        let recovered = recover(&left.directory).unwrap().unwrap();
        assert_eq!(recovered, Recovered { moved: vec![left.home()], left: vec![] });
        assert_eq!(fs::read(left.home()).unwrap(), b"new bytes");
        assert!(!left.directory.exists());
    }

    #[test]
    fn a_file_that_is_another_one_now_is_not_overwritten() {
        let left = Left::new();
        let copy = left.copy();
        let elsewhere = left.folder.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::rename(left.home(), elsewhere.join("moved")).unwrap();
        fs::write(left.home(), "another").unwrap();
        let recovered = recover(&left.directory).unwrap().unwrap();
        assert!(recovered.left[0].contains("is another file now"), "{recovered:?}");
        assert_eq!(fs::read(left.home()).unwrap(), b"another");
        assert_eq!(fs::read(copy).unwrap(), b"new bytes");
    }

    #[test]
    fn a_file_that_was_written_to_since_is_not_overwritten() {
        let left = Left::new();
        fs::write(left.home(), "newer").unwrap();
        let later = std::time::SystemTime::now() + 2 * HEARTBEAT;
        File::open(left.home()).unwrap().set_modified(later).unwrap();
        let recovered = recover(&left.directory).unwrap().unwrap();
        assert!(recovered.left[0].contains("was written to since"), "{recovered:?}");
        assert_eq!(fs::read(left.home()).unwrap(), b"newer");
    }

    #[test]
    fn a_run_that_goes_on_is_let_be() {
        let left = Left::new();
        let _keeper = Journal::take_over(&left.directory).unwrap().unwrap();
        assert_eq!(recover(&left.directory).unwrap(), None);
        assert_eq!(found(&left.directory).unwrap()[0].standing, Standing::GoesOn);
        assert_eq!(fs::read(left.home()).unwrap(), b"");
    }
}
