//! The scratch directory as the root of every path: nothing leads out of it.
//!
//! A replay makes the symbolic links that the program made, and a link to a directory changes what `..` in another
//! one means. So no path is left to the kernel's usual way of following links: each is resolved with the
//! scratch directory as its `/` (`openat2` with `RESOLVE_IN_ROOT`, Linux 5.6). Where that is not to be had no links
//! are made, and there are none in the way of a path.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// The kernel gives up where directories are moved while it follows `..`; they stand still soon.
const TRIES: usize = 100;

pub(crate) struct Root {
    directory: OwnedFd,
    /// The kernel resolves paths within a directory.
    is_closed: bool,
}

impl Root {
    /// # Errors
    /// The directory cannot be opened.
    pub(crate) fn open(directory: &Path) -> io::Result<Root> {
        let directory = OwnedFd::from(File::open(directory)?);
        let found = within(directory.as_fd(), Path::new("."), OFlags::PATH, Mode::empty());
        Ok(Root { is_closed: found.is_ok(), directory })
    }

    /// Whether symbolic links may be made below it.
    pub(crate) fn may_have_links(&self) -> bool {
        self.is_closed
    }

    pub(crate) fn file(&self, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC;
        match self.is_closed {
            true => within(self.as_fd(), path, flags, mode),
            false => fs::openat(&self.directory, path, flags, mode),
        }
    }

    /// The directory of a name, and the name in it, for calls that do not follow it. A slash behind it stays.
    fn folder<'a>(&self, path: &'a Path) -> Result<(OwnedFd, Cow<'a, OsStr>), Errno> {
        let name = match path.components().next_back() {
            Some(Component::Normal(name)) if path.as_os_str().as_bytes().ends_with(b"/") => {
                Path::new(name).join("").into_os_string().into()
            }
            Some(Component::Normal(name)) => Cow::from(name),
            _ => Cow::from(OsStr::new(".")),
        };
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let folder = folder.unwrap_or(Path::new("."));
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        Ok((self.file(folder, flags, Mode::empty())?, name))
    }

    pub(crate) fn status(&self, path: &Path) -> Result<fs::Stat, Errno> {
        let (folder, name) = self.folder(path)?;
        fs::statat(folder, &*name, AtFlags::SYMLINK_NOFOLLOW)
    }

    pub(crate) fn make_directory(&self, path: &Path) -> Result<(), Errno> {
        let (folder, name) = self.folder(path)?;
        fs::mkdirat(folder, &*name, Mode::from_raw_mode(0o755))
    }

    pub(crate) fn rename(&self, path: &Path, to: &Path, how: RenameFlags) -> Result<(), Errno> {
        let ((from, name), (to, new_name)) = (self.folder(path)?, self.folder(to)?);
        fs::renameat_with(from, &*name, to, &*new_name, how)
    }

    pub(crate) fn link(&self, path: &Path, to: &Path) -> Result<(), Errno> {
        let ((from, name), (to, new_name)) = (self.folder(path)?, self.folder(to)?);
        fs::linkat(from, &*name, to, &*new_name, AtFlags::empty())
    }

    /// Gives an open file a name.
    pub(crate) fn link_open(&self, file: impl AsFd, to: &Path) -> Result<(), Errno> {
        let (to, name) = self.folder(to)?;
        let itself = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
        fs::linkat(fs::CWD, itself, to, &*name, AtFlags::SYMLINK_FOLLOW)
    }

    /// Makes `link` a symbolic link to `path`. Both are relative to the root.
    pub(crate) fn symbolic_link(&self, path: &Path, link: &Path) -> Result<(), Errno> {
        let to_root = link.components().skip(1).map(|_| "..");
        let (folder, name) = self.folder(link)?;
        fs::symlinkat(to_root.collect::<PathBuf>().join(path), folder, &*name)
    }

    /// Removes a name; that of a directory only if `directories` may go, too.
    pub(crate) fn remove(&self, path: &Path, directories: Directories) -> Result<(), Errno> {
        let (folder, name) = self.folder(path)?;
        let is_directory = || {
            fs::statat(&folder, &*name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_dir())
        };
        let as_directory = match directories {
            Directories::Only => true,
            Directories::Too => is_directory(),
            Directories::Not => false,
        };
        let how = if as_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        fs::unlinkat(&folder, &*name, how)
    }
}

/// What a removal takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Directories {
    Only,
    Too,
    Not,
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

fn within(root: BorrowedFd<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    // `openat2` refuses a mode where nothing can be made.
    let makes = flags.intersects(OFlags::CREATE) || flags.contains(OFlags::TMPFILE);
    let mode = if makes { mode } else { Mode::empty() };
    let mut result = Err(Errno::AGAIN);
    for _ in 0..TRIES {
        result = fs::openat2(root, path, flags, mode, ResolveFlags::IN_ROOT);
        if !matches!(result, Err(Errno::AGAIN | Errno::INTR)) {
            break;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_below_a_link_leads_no_further_up_than_the_root() {
        let outside = tempfile::tempdir().unwrap();
        let mine = outside.path().join("mine");
        std::fs::write(&mine, "mine").unwrap();
        let directory = outside.path().join("a/b/c");
        std::fs::create_dir_all(directory.join("d/e")).unwrap();
        let root = Root::open(&directory).unwrap();
        if !root.may_have_links() {
            return eprintln!("not tried: this kernel has no openat2");
        }
        // `d/e/up` is the root itself, so what counts its way up from below it starts too high.
        root.symbolic_link(Path::new("."), Path::new("d/e/up")).unwrap();
        root.symbolic_link(Path::new("mine"), Path::new("d/e/up/link")).unwrap();
        assert_eq!(std::fs::read(directory.join("link")).unwrap(), b"mine", "the usual way");
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::TRUNC;
        root.file(Path::new("d/e/up/link"), flags, Mode::from_raw_mode(0o644)).unwrap();
        assert_eq!(std::fs::read(&mine).unwrap(), b"mine");
        assert!(directory.join("mine").exists(), "the link leads to the root's own");
    }

    #[test]
    fn names_in_a_linked_directory_outside_are_not_reached() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("mine"), "mine").unwrap();
        let directory = outside.path().join("scratch");
        std::fs::create_dir(&directory).unwrap();
        let root = Root::open(&directory).unwrap();
        if !root.may_have_links() {
            return eprintln!("not tried: this kernel has no openat2");
        }
        std::os::unix::fs::symlink(outside.path(), directory.join("out")).unwrap();
        let there = Path::new("out/mine");
        assert!(root.remove(there, Directories::Too).is_err());
        assert!(root.rename(there, Path::new("taken"), RenameFlags::empty()).is_err());
        assert!(root.link(there, Path::new("taken")).is_err());
        assert!(root.status(there).is_err());
        assert!(root.make_directory(Path::new("out/new")).is_err());
        assert_eq!(std::fs::read(outside.path().join("mine")).unwrap(), b"mine");
        assert!(!outside.path().join("new").exists());
    }
}
