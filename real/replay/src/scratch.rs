//! The scratch tree: where the files of a trace lie during a replay, and nothing outside it.
//!
//! A path of the trace, taken as text without `.` and `..`, becomes a path relative to the scratch
//! directory, which is the root of every path ([`Root`]). A used directory that has a symbolic link on such a
//! path is refused.

use crate::content::{fill, seed_of};
use crate::initial::Initial;
use crate::root::{Directories, Root};
use crate::unseen::Change;
use crate::{ReplayError, Settings};
use iolab_trace::Trace;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Files that existed are filled up to this many bytes altogether; the rest is left sparse.
const FILL_BYTES_MAX: u64 = 1 << 30;

/// The prepared tree.
pub(crate) struct Scratch {
    root: Root,
    places: Vec<Option<PathBuf>>,
    seeds: Vec<u64>,
    pub(crate) notes: Vec<String>,
}

impl Scratch {
    /// Makes the tree as it was before the program ran.
    pub(crate) fn prepare(
        settings: &Settings,
        trace: &Trace,
        initial: &[Initial],
    ) -> Result<Scratch, ReplayError> {
        let directory = settings.directory.as_path();
        fs::create_dir_all(directory).map_err(at(directory))?;
        let is_empty = fs::read_dir(directory).map_err(at(directory))?.next().is_none();
        if !is_empty && !settings.into_used_directory {
            return Err(ReplayError::DirectoryInUse(directory.to_owned()));
        }
        let files = &trace.header.files;
        let mut scratch = Scratch {
            root: Root::open(directory).map_err(at(directory))?,
            places: files.iter().map(|entry| relative(&entry.path)).collect(),
            seeds: files.iter().map(|entry| seed_of(&entry.path)).collect(),
            notes: Vec::new(),
        };
        if !is_empty {
            scratch.clear_the_way(directory)?;
        }
        scratch.make_directories(directory, initial)?;
        scratch.make_files(directory, initial)?;
        Ok(scratch)
    }

    /// The directory everything lies below.
    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    /// Where a file lies, relative to the root; `None` for what has no path.
    pub(crate) fn place(&self, file: usize) -> Option<&Path> {
        self.places.get(file)?.as_deref()
    }

    /// What a file's content is drawn from.
    pub(crate) fn seed(&self, file: usize) -> u64 {
        self.seeds.get(file).copied().unwrap_or_default()
    }

    /// Makes or removes a name as somebody did whose calls the trace does not have. `false`: nothing was to be done.
    pub(crate) fn change(&self, file: usize, change: Change) -> io::Result<bool> {
        let Some(place) = self.place(file) else { return Ok(false) };
        let parent = place.parent().filter(|parent| *parent != Path::new(""));
        let there = self.root.status(place).ok();
        match (change, there) {
            (Change::ParentComes, _) => return Ok(self.make_all(parent.unwrap_or(place))?),
            (Change::DirectoryComes, None) => _ = self.make_all(place)?,
            (Change::FileComes { bytes }, there) if there.is_none_or(|it| is_empty_file(&it)) => {
                if there.is_some() && bytes == 0 {
                    return Ok(false);
                }
                parent.map(|parent| self.make_all(parent)).transpose()?;
                self.make_file(place, self.seed(file), bytes.min(FILL_BYTES_MAX), bytes)?;
            }
            (Change::Goes, Some(_)) => self.root.remove(place, Directories::Too)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Gives a file the size that somebody has given it whose calls the trace does not have. `false`: it has it.
    pub(crate) fn resize(&self, file: usize, bytes: u64) -> io::Result<bool> {
        let Some(place) = self.place(file) else { return Ok(false) };
        let flags = OFlags::WRONLY | OFlags::NONBLOCK;
        let Ok(open) = self.root.file(place, flags, Mode::empty()) else { return Ok(false) };
        let status = rustix::fs::fstat(&open)?;
        let is_file = FileType::from_raw_mode(status.st_mode).is_file();
        if !is_file || status.st_size as u64 == bytes {
            return Ok(false);
        }
        let from = (status.st_size as u64).min(bytes);
        fill_file(open.into(), self.seed(file), from..bytes.min(from + FILL_BYTES_MAX), bytes)?;
        Ok(true)
    }

    /// Makes a file of that many bytes, or makes the one that is there such a file.
    fn make_file(&self, place: &Path, seed: u64, filled: u64, bytes: u64) -> io::Result<()> {
        let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY;
        let file = self.root.file(place, flags, Mode::from_raw_mode(0o644))?;
        fill_file(file.into(), seed, 0..filled, bytes)
    }

    /// Makes a directory and those above it. `false`: all were there.
    fn make_all(&self, place: &Path) -> Result<bool, Errno> {
        let prefixes = place.ancestors().filter(|prefix| !prefix.as_os_str().is_empty());
        let prefixes: Vec<&Path> = prefixes.collect();
        let mut has_made = false;
        for prefix in prefixes.into_iter().rev() {
            match self.root.make_directory(prefix) {
                Ok(()) => has_made = true,
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(has_made)
    }

    /// In a directory that was in use: removes files in the way, refuses links.
    fn clear_the_way(&self, directory: &Path) -> Result<(), ReplayError> {
        for place in self.places.iter().flatten() {
            for prefix in place.ancestors().filter(|prefix| !prefix.as_os_str().is_empty()) {
                let path = directory.join(prefix);
                match fs::symlink_metadata(&path) {
                    Ok(found) if found.is_symlink() => {
                        let error = io::Error::other("it is a symbolic link and could lead out");
                        return Err(ReplayError::Prepare { path, error });
                    }
                    Ok(found) if found.is_file() => fs::remove_file(&path).map_err(at(&path))?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Directories above every file, but for those the program makes itself, and files that it looked below.
    fn make_directories(&self, directory: &Path, initial: &[Initial]) -> Result<(), ReplayError> {
        let mut not_made: BTreeSet<&Path> = (initial.iter().zip(&self.places))
            .filter(|(file, _)| file.is_regular || file.directory && file.existed == Some(false))
            .filter_map(|(_, place)| place.as_deref())
            .collect();
        not_made.extend(self.unfound(initial, |file| file.is_below_file));
        not_made.extend(self.unfound(initial, |file| file.is_below_nothing));
        // What is missing is missing without a directory of its own, too.
        let looked_for = initial.iter().zip(&self.places).filter(|(file, _)| !file.is_only_missed);
        for (file, place) in looked_for {
            let Some(place) = place else { continue };
            let wanted = match file.directory {
                true => Some(place.as_path()),
                false => place.parent(),
            };
            // Up to the first that is none, or that the program makes.
            let ancestors: Vec<&Path> = wanted.into_iter().flat_map(Path::ancestors).collect();
            let there = ancestors.iter().rev().take_while(|path| !not_made.contains(*path));
            if let Some(deepest) = there.last() {
                let made = self.make_all(deepest).map_err(io::Error::from);
                made.map_err(at(&directory.join(deepest)))?;
            }
        }
        Ok(())
    }

    fn make_files(&mut self, directory: &Path, initial: &[Initial]) -> Result<(), ReplayError> {
        let mut budget = FILL_BYTES_MAX;
        for (index, file) in initial.iter().enumerate() {
            let (Some(place), Some(true), false) =
                (&self.places[index], file.existed, file.directory)
            else {
                continue;
            };
            let path = directory.join(place);
            // What is in a directory that the program makes or moves there comes when its turn comes.
            if path.is_dir() || !path.parent().is_some_and(Path::is_dir) {
                continue;
            }
            let filled = file.bytes.min(budget);
            budget -= filled;
            self.make_file(place, self.seeds[index], filled, file.bytes).map_err(at(&path))?;
            if filled < file.bytes {
                self.notes.push(format!("{} is left sparse beyond {filled} bytes", path.display()));
            }
        }
        for place in self.unfound(initial, |file| file.is_below_file) {
            let path = directory.join(place);
            if fs::symlink_metadata(&path).is_err() && path.parent().is_some_and(Path::is_dir) {
                self.make_file(place, 0, 0, 0).map_err(at(&path))?;
            }
        }
        Ok(())
    }

    /// What calls could find nothing below, as such a file tells, and as far as nothing else was found there.
    fn unfound(&self, initial: &[Initial], tells: impl Fn(&Initial) -> bool) -> BTreeSet<&Path> {
        let places = || initial.iter().zip(&self.places);
        let found = places().filter(|(file, _)| file.existed == Some(true));
        let directories: BTreeSet<&Path> = found
            .flat_map(|(_, place)| place.iter().flat_map(|it| it.ancestors().skip(1)))
            .collect();
        let below = places().filter(|(file, _)| tells(file));
        let files = below.filter_map(|(_, place)| place.as_deref()?.parent());
        files.filter(|file| !directories.contains(file)).collect()
    }
}

fn is_empty_file(status: &rustix::fs::Stat) -> bool {
    FileType::from_raw_mode(status.st_mode).is_file() && status.st_size == 0
}

fn fill_file(mut file: File, seed: u64, filled: Range<u64>, bytes: u64) -> io::Result<()> {
    let mut block = vec![0; (filled.end - filled.start).min(1 << 20) as usize];
    let mut at = filled.start;
    file.seek(SeekFrom::Start(at))?;
    while at < filled.end {
        let length = (filled.end - at).min(block.len() as u64) as usize;
        fill(seed, at, &mut block[..length]);
        file.write_all(&block[..length])?;
        at += length as u64;
    }
    file.set_len(bytes)
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> ReplayError + '_ {
    move |error| ReplayError::Prepare { path: path.to_owned(), error }
}

/// An absolute path as a path below the root, by its text alone; the root itself is `.`.
pub(crate) fn relative(path: &str) -> Option<PathBuf> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.strip_prefix('/')?.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            // No system makes such a name; a damaged trace may.
            part if part.contains('\0') || part.len() > 255 => return None,
            part => parts.push(part),
        }
    }
    Some(if parts.is_empty() { PathBuf::from(".") } else { parts.iter().collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_of_a_trace_leads_out_of_the_scratch_directory() {
        for path in ["/../../etc/passwd", "/a/../../etc/passwd", "//etc/./passwd"] {
            assert_eq!(relative(path), Some(PathBuf::from("etc/passwd")), "{path}");
        }
        assert_eq!(relative("/"), Some(PathBuf::from(".")));
        assert_eq!(relative("pipe:[42]"), None);
        assert_eq!(relative("/a\0b"), None);
    }
}
