//! Where a call's name leads to.

use crate::run::Run;
use iolab_processor::system_call;
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};
use std::ffi::{CStr, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A name as a call has it.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) directory: c_int,
    pub(crate) name: *const c_char,
    /// Whether a link leads further.
    pub(crate) follows: bool,
}

impl Place {
    pub(crate) fn of(name: *const c_char) -> Place {
        Place { directory: libc::AT_FDCWD, name, follows: true }
    }

    pub(crate) fn at(directory: c_int, name: *const c_char) -> Place {
        Place { directory, name, follows: true }
    }

    /// The name itself, also if it is a link.
    pub(crate) fn itself(self) -> Place {
        Place { follows: false, ..self }
    }

    /// What is there, as the kernel says; `-errno` if nothing is. It also finds out whether there is a name.
    fn status(&self) -> Result<Stat, isize> {
        let flags = if self.follows { 0 } else { libc::AT_SYMLINK_NOFOLLOW };
        let mut status = std::mem::MaybeUninit::<Stat>::uninit();
        // A call of the kernel's own, since the name may be anything and libc's function is ours.
        let (directory, name) = (self.directory as usize, self.name as usize);
        let a = [directory, name, status.as_mut_ptr() as usize, flags as usize, 0, 0];
        // SAFETY: the kernel reads the name and writes the status, or says that it cannot.
        unsafe {
            let answer = system_call(libc::SYS_newfstatat, a);
            if answer == 0 { Ok(status.assume_init()) } else { Err(answer) }
        }
    }

    /// What is there, if it may be a stand-in or lead to some.
    pub(crate) fn candidate(&self, run: &Run) -> Option<(Stat, FileType)> {
        let status = self.status().ok()?;
        let kind = FileType::from_raw_mode(status.st_mode);
        let fits = matches!(kind, FileType::RegularFile | FileType::Directory);
        (fits && run.stand_ins.may_have(status.st_dev, status.st_ino)).then_some((status, kind))
    }

    fn directory(&self) -> BorrowedFd<'_> {
        // SAFETY: the program's own descriptor, or the current directory; it is used for this call.
        unsafe { BorrowedFd::borrow_raw(self.directory) }
    }

    fn text(&self) -> &CStr {
        // SAFETY: the kernel has read it.
        unsafe { CStr::from_ptr(self.name) }
    }

    /// The name in the file system of what is there. None: it is not chosen.
    pub(crate) fn chosen(&self, run: &Run) -> Option<Vec<u8>> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let flags = if self.follows { flags } else { flags | OFlags::NOFOLLOW };
        let found = fs::openat(self.directory(), self.text(), flags, Mode::empty());
        let real = found.ok().and_then(|found: OwnedFd| path_of(found.as_raw_fd()));
        match real {
            Some(real) if run.chosen.holds(real.as_os_str().as_bytes()) => {
                Some(real.into_os_string().into_vec())
            }
            _ => self.name_to_be(run),
        }
    }

    /// The same of what may only come to be there.
    pub(crate) fn name_to_be(&self, run: &Run) -> Option<Vec<u8>> {
        if self.status().is_err_and(|error| error == -(libc::EFAULT as isize)) {
            return None;
        }
        let text = Path::new(OsStr::from_bytes(self.text().to_bytes()));
        let whole = match self.directory {
            libc::AT_FDCWD => text.to_owned(),
            _ if text.is_absolute() => text.to_owned(),
            directory => path_of(directory)?.join(text),
        };
        match self.follows {
            true => run.chosen.name(&whole),
            false => run.chosen.name_itself(&whole),
        }
    }

    /// Whether the program may open it so.
    pub(crate) fn is_open_to(&self, reads: bool, writes: bool) -> bool {
        let mut access = fs::Access::EXISTS;
        access.set(fs::Access::READ_OK, reads);
        access.set(fs::Access::WRITE_OK, writes);
        fs::accessat(self.directory(), self.text(), access, AtFlags::EACCESS).is_ok()
    }
}

/// What a descriptor is of.
pub(crate) fn path_of(descriptor: c_int) -> Option<PathBuf> {
    let path = fs::readlink(format!("/proc/self/fd/{descriptor}"), Vec::new()).ok()?;
    Some(OsString::from_vec(path.into_bytes()).into())
}
