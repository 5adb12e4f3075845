//! The output directory of a study: fresh for every run, and the user's own again at the end.
//!
//! While a study runs, the user's directory stands aside under another name in the same parent
//! directory, untouched, and copies of it take its place one after the other; so the command needs
//! no other arguments than usual. The order of steps is such that at every moment the user's
//! directory exists whole under one of the two names. When a study is killed, the next one (of the
//! same directory) puts it back first.

use crate::StudyError;
use crate::tree;
use iolab_host::eprintln;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Copies are made for every run; more than this is not meant.
const LARGEST: tree::Extent = tree::Extent { entries: 50_000, bytes: 2 << 30 };

/// The directory the command writes to.
#[derive(Debug)]
pub(crate) struct Workplace {
    directory: PathBuf,
    aside: PathBuf,
    /// Where results go meanwhile.
    results: PathBuf,
    left_out: Option<PathBuf>,
    kept: bool,
}

impl Workplace {
    /// Takes `directory` over, making it when it does not exist. `results` lies inside of it
    /// perhaps and is not copied then.
    pub(crate) fn claim(directory: &Path, results: &Path) -> Result<Workplace, StudyError> {
        let aside = aside_of(directory)?;
        put_back_if_interrupted(directory, &aside)?;
        fs::create_dir_all(directory).map_err(|error| {
            failure(directory, &error).hint("name a directory that the command may write to")
        })?;
        refuse_large(directory)?;
        fs::create_dir(&aside).map_err(|error| {
            failure(&aside, &error).hint("the parent of the output directory must be writable")
        })?;
        fs::write(aside.join("owner"), std::process::id().to_string())
            .map_err(|error| failure(&aside, &error))?;
        // A directory renamed onto itself tells whether it can be: not the root of a mount, say.
        fs::rename(directory, aside.join("original")).map_err(|error| {
            let _ = tree::remove(&aside);
            failure(directory, &format!("cannot be set aside: {error}"))
                .hint("give a directory below it with --output; a mount point cannot be renamed")
        })?;
        let inside = results.strip_prefix(directory).ok().filter(|p| !p.as_os_str().is_empty());
        let left_out = inside.map(|inside| aside.join("original").join(inside));
        let results = left_out.clone().unwrap_or_else(|| results.to_owned());
        Ok(Workplace { directory: directory.to_owned(), aside, results, left_out, kept: true })
    }

    /// Where the directory of the results is meanwhile: inside of the user's, it stands aside with it.
    pub(crate) fn results(&self) -> &Path {
        &self.results
    }

    /// Where a study keeps what it needs, on the same file system.
    pub(crate) fn aside(&self) -> &Path {
        &self.aside
    }

    /// Puts a fresh copy of the user's directory in its place.
    pub(crate) fn refresh(&self) -> Result<(), StudyError> {
        tree::remove(&self.directory)
            .and_then(|()| {
                let original = self.aside.join("original");
                tree::copy(&original, &self.directory, self.left_out.as_deref())
            })
            .map_err(|error| {
                StudyError::new(format!("cannot make a fresh output directory: {error}"))
                    .hint("it takes room for two copies of the output directory")
            })
    }

    /// Moves what a run has left to `name` aside, in place of what was there.
    pub(crate) fn collect(&self, name: &str) -> Result<PathBuf, StudyError> {
        let kept = self.aside.join(name);
        tree::remove(&kept)
            .and_then(|()| fs::rename(&self.directory, &kept))
            .map_err(|error| failure(&self.directory, &error))?;
        Ok(kept)
    }

    /// Gives the user's directory back.
    pub(crate) fn restore(mut self) -> Result<(), StudyError> {
        self.kept = false;
        put_back(&self.directory, &self.aside)
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        if self.kept
            && let Err(failure) = put_back(&self.directory, &self.aside)
        {
            eprintln!("{failure}");
        }
    }
}

fn failure(path: &Path, error: &dyn std::fmt::Display) -> StudyError {
    StudyError::new(format!("{}: {error}", path.display()))
}

/// `.NAME.iolab-study` beside `NAME`.
fn aside_of(directory: &Path) -> Result<PathBuf, StudyError> {
    let (Some(parent), Some(name)) = (directory.parent(), directory.file_name()) else {
        return Err(StudyError::new(format!("{} cannot be set aside", directory.display()))
            .hint("name the directory the command writes to with --output"));
    };
    Ok(parent.join(format!(".{}.iolab-study", name.to_string_lossy())))
}

fn refuse_large(directory: &Path) -> Result<(), StudyError> {
    let found = tree::extent(directory, LARGEST).map_err(StudyError::new)?;
    if found.entries <= LARGEST.entries && found.bytes <= LARGEST.bytes {
        return Ok(());
    }
    let what = format!("{} is too large to be copied for every run", directory.display());
    Err(StudyError::new(what).hint("name the directory the command writes to with --output DIR"))
}

/// What a killed study left: the user's directory aside, and perhaps a copy in its place.
fn put_back_if_interrupted(directory: &Path, aside: &Path) -> Result<(), StudyError> {
    if !aside.exists() {
        return Ok(());
    }
    let Ok(owner) = fs::read_to_string(aside.join("owner")) else {
        let empty = fs::read_dir(aside).is_ok_and(|mut entries| entries.next().is_none());
        // A study that was killed at its very first step.
        if empty && fs::remove_dir(aside).is_ok() {
            return Ok(());
        }
        return Err(failure(aside, &"is of no study, and lies where one puts your files aside")
            .hint("name another directory with --output"));
    };
    if !owner.is_empty() && Path::new("/proc").join(&owner).join("exe").exists() {
        let what = format!("process {owner} is studying {} already", directory.display());
        return Err(StudyError::new(what).hint("wait for it to end"));
    }
    if aside.join("original").exists() {
        eprintln!("study: an earlier study was interrupted; putting {} back", directory.display());
        keep_interrupted(directory).map_err(|error| failure(directory, &error))?;
    }
    put_back(directory, aside)
}

/// What stands in the directory's place may have become the user's meanwhile: it is kept.
fn keep_interrupted(directory: &Path) -> io::Result<()> {
    if !directory.exists() {
        return Ok(());
    }
    let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let free = (1..).map(|n| directory.with_file_name(format!("{name}.interrupted-{n}")));
    let kept = free.into_iter().find(|path| !path.exists()).expect("there are many numbers");
    eprintln!("study: what its last run left is in {}", kept.display());
    fs::rename(directory, kept)
}

fn put_back(directory: &Path, aside: &Path) -> Result<(), StudyError> {
    let original = aside.join("original");
    let restored = if original.exists() { swap(directory, &original, aside) } else { Ok(()) };
    restored.map_err(|error| {
        failure(directory, &error)
            .hint(format!("your directory is safe as {}; move it back", original.display()))
    })?;
    tree::remove(aside).map_err(|error| failure(aside, &error))
}

fn swap(directory: &Path, original: &Path, aside: &Path) -> io::Result<()> {
    if directory.exists() {
        let last = aside.join("last");
        tree::remove(&last)?;
        fs::rename(directory, &last)?;
    }
    fs::rename(original, directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn place_with_file() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("out");
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("precious"), "mine").unwrap();
        (place, directory)
    }

    #[test]
    fn every_run_starts_from_the_users_files_and_the_user_gets_them_back_untouched() {
        let (place, directory) = place_with_file();
        let inode = fs::metadata(&directory).unwrap().ino();
        let results = directory.join("results");
        fs::create_dir(&results).unwrap();
        let workplace = Workplace::claim(&directory, &results).unwrap();
        fs::write(workplace.results().join("trace"), "of this study").unwrap();
        for run in 0..3 {
            workplace.refresh().unwrap();
            assert_eq!(fs::read_to_string(directory.join("precious")).unwrap(), "mine");
            assert!(!results.exists(), "results of earlier studies are no input");
            fs::write(directory.join("precious"), format!("spoilt {run}")).unwrap();
            fs::write(directory.join("more"), "x").unwrap();
            let kept = workplace.collect("reference").unwrap();
            assert!(kept.join("more").exists());
        }
        workplace.restore().unwrap();
        assert_eq!(fs::read_to_string(directory.join("precious")).unwrap(), "mine");
        assert!(!directory.join("more").exists());
        assert_eq!(fs::read_to_string(results.join("trace")).unwrap(), "of this study");
        assert_eq!(fs::metadata(&directory).unwrap().ino(), inode);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failing_study_puts_the_directory_back_by_itself() {
        let (place, directory) = place_with_file();
        let workplace = Workplace::claim(&directory, Path::new("/elsewhere")).unwrap();
        workplace.refresh().unwrap();
        fs::write(directory.join("precious"), "spoilt").unwrap();
        drop(workplace);
        assert_eq!(fs::read_to_string(directory.join("precious")).unwrap(), "mine");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_a_killed_study_left_is_put_back_by_the_next_one() {
        let (_place, directory) = place_with_file();
        let workplace = Workplace::claim(&directory, Path::new("/elsewhere")).unwrap();
        workplace.refresh().unwrap();
        fs::write(directory.join("precious"), "spoilt").unwrap();
        let aside = workplace.aside().to_owned();
        std::mem::forget(workplace);
        let still_running = Workplace::claim(&directory, Path::new("/elsewhere")).unwrap_err();
        assert!(still_running.to_string().contains("already"), "{still_running}");
        // No process has this number: it is above the kernel's limit.
        fs::write(aside.join("owner"), "4999999").unwrap();
        let next = Workplace::claim(&directory, Path::new("/elsewhere")).unwrap();
        next.refresh().unwrap();
        assert_eq!(fs::read_to_string(directory.join("precious")).unwrap(), "mine");
        next.restore().unwrap();
        assert_eq!(fs::read_to_string(directory.join("precious")).unwrap(), "mine");
        let left = directory.with_file_name("out.interrupted-1");
        assert_eq!(fs::read_to_string(left.join("precious")).unwrap(), "spoilt");
    }

    #[test]
    fn the_root_directory_is_refused() {
        let error = Workplace::claim(Path::new("/"), Path::new("/elsewhere")).unwrap_err();
        assert!(error.to_string().contains("--output"), "{error}");
    }
}
