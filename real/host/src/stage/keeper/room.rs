//! A write that met no room in the fast place: others come home, or the file itself does. So does one of which is
//! asked what a copy cannot have.

use super::super::home;
use super::super::journal::Entry;
use super::{Keeper, open_copy};
use iolab_policy::insitu::stage::Event;
use iolab_segment::Inode;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Why a file that is open leaves the fast place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaving {
    Full,
    Leased,
}

impl Leaving {
    fn words(self) -> &'static str {
        match self {
            Leaving::Full => "the fast place is full",
            Leaving::Leased => "a lease is asked for, which is about others who open it there",
        }
    }
}

impl Keeper {
    /// A write by that descriptor met no room. First others come home; if that is no help, this file does,
    /// if the descriptor is the only one that leads to its copy.
    pub(super) fn full(&self, file: File, flags: i32, process: u32) -> io::Result<Option<File>> {
        let status = file.metadata()?;
        let copy_inode = (status.dev(), status.ino());
        let Some(home) = self.table.find(copy_inode).filter(|it| !it.is_home) else {
            return Ok(None);
        };
        let before = self.moved_files.load(Relaxed);
        let others: Vec<Inode> =
            self.files().staged.keys().copied().filter(|&it| it != home.home).collect();
        for inode in others {
            self.attempt(inode);
        }
        if self.moved_files.load(Relaxed) != before {
            return Err(io::Error::from_raw_os_error(libc::EAGAIN));
        }
        self.send_home(file, flags, process, (home.home, Leaving::Full))
    }

    /// A file by that descriptor is asked for what its copy cannot have.
    pub(super) fn leave(&self, file: File, flags: i32, process: u32) -> io::Result<Option<File>> {
        let status = file.metadata()?;
        match self.table.find((status.dev(), status.ino())).filter(|it| !it.is_home) {
            Some(home) => self.send_home(file, flags, process, (home.home, Leaving::Leased)),
            None => Ok(None),
        }
    }

    /// Has a file that is open go on at home. `flags` says that its process has one thread.
    fn send_home(
        &self,
        file: File,
        flags: i32,
        process: u32,
        (inode, why): (Inode, Leaving),
    ) -> io::Result<Option<File>> {
        if flags == 0 || !self.hold(inode) {
            return Ok(None);
        }
        let gone = self.only_through(&file, process, inode).then(|| self.bring(inode, &|| true));
        let replacement = match gone {
            Some(Ok((home, true))) => reopened(&home, &file),
            _ => None,
        };
        let mut files = self.files();
        if let Some(staged) = files.staged.get_mut(&inode) {
            staged.residence.step(Event::LetGo);
        }
        if replacement.is_some() {
            let _said = files.journal.add(&Entry::Home(inode));
            let staged = files.staged.get(&inode);
            staged.into_iter().for_each(|it| self.count_moved(it));
            let name = staged.map(|it| it.name.clone()).unwrap_or_default();
            if why == Leaving::Full || !self.is_quiet {
                eprintln!("iolab: stage: {} goes on at home, {}", name.display(), why.words());
            }
            self.forget(&mut files, inode, &Entry::Home(inode));
        }
        Ok(replacement)
    }

    /// Whether nothing leads to the copy but one descriptor of that process, which is handed here.
    fn only_through(&self, file: &File, process: u32, inode: Inode) -> bool {
        let path = self.copy_path(inode);
        let is_alone = {
            let mut files = self.files();
            let Some(staged) = files.staged.get_mut(&inode) else { return false };
            // Our own is one more, so it goes for that moment.
            let Ok(nothing) = File::open("/dev/null") else { return false };
            staged.copy = Arc::new(nothing);
            let is_alone = home::is_alone(file) == Some(true);
            match OpenOptions::new().read(true).write(true).open(&path) {
                Ok(again) => staged.copy = Arc::new(again),
                // It stays where it is: without its bytes nothing is copied.
                Err(_) => return false,
            }
            is_alone
        };
        is_alone
            && descriptors_of(&path) == [process]
            && !is_mapped(process, &path)
            && !is_locked(file)
    }
}

/// The real file, opened as a description of its copy is, at the same position.
fn reopened(home: &File, like: &File) -> Option<File> {
    // SAFETY: no memory is involved.
    let (flags, position) = unsafe {
        (
            libc::fcntl(like.as_raw_fd(), libc::F_GETFL),
            libc::lseek64(like.as_raw_fd(), 0, libc::SEEK_CUR),
        )
    };
    if flags < 0 || position < 0 {
        return None;
    }
    let path = PathBuf::from(format!("/proc/self/fd/{}", home.as_raw_fd()));
    let file = open_copy(&path, flags & !libc::O_TRUNC).ok()?;
    // SAFETY: no memory is involved.
    let sought = unsafe { libc::lseek64(file.as_raw_fd(), position, libc::SEEK_SET) };
    (sought == position).then_some(file)
}

/// The processes that have a file open, as often as they have descriptors of it; but for this one.
fn descriptors_of(path: &Path) -> Vec<u32> {
    let is_number = |entry: &fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    let processes = entries(Path::new("/proc")).filter_map(|entry| is_number(&entry));
    let others = processes.filter(|&pid| pid != std::process::id());
    let leads = |entry: &fs::DirEntry| fs::read_link(entry.path()).is_ok_and(|it| it == path);
    let of = |pid: u32| {
        let folder = PathBuf::from(format!("/proc/{pid}/fd"));
        entries(&folder).filter(leads).map(move |_| pid).collect::<Vec<_>>()
    };
    others.flat_map(of).collect()
}

/// Whether anybody has locks on a file: they would not go along.
fn is_locked(file: &File) -> bool {
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let inode = file.metadata().map_or(0, |it| it.ino());
    let is_its =
        |word: &str| word.rsplit_once(':').is_some_and(|(_, its)| its == inode.to_string());
    locks.is_empty() || locks.split_whitespace().any(is_its)
}

fn is_mapped(process: u32, path: &Path) -> bool {
    let maps = fs::read(format!("/proc/{process}/maps")).unwrap_or_default();
    let name = path.as_os_str().as_bytes();
    maps.is_empty() || maps.windows(name.len()).any(|it| it == name)
}
