//! The file itself, by a descriptor of our own.
//!
//! It is opened by the name that the program gave, as soon as the library has opened it, for what the
//! program may do with it, and closed before the library closes it. Another descriptor of the library's
//! would do as well, but MPI does not tell which one that is, a rank may have none (ROMIO opens late where
//! others collect for it), and a second `MPI_File_open` would cost a call of MPI for each access. Both see
//! the same bytes: neither library keeps data of a POSIX file in the process.

use crate::call::Call;
use crate::files::path_of;
use crate::pfs::numbers::Class;
use crate::pfs::trouble::Trouble;
use iolab_pfs::Code;
use iolab_pfs::client::Failure;
use std::ffi::{CStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Modes of an open, as older families number them.
pub(crate) mod mode {
    pub(super) const READ_ONLY: i32 = 2;
    pub(super) const WRITE_ONLY: i32 = 4;
    pub(crate) const SEQUENTIAL: i32 = 256;
}

/// Reads and writes by offset.
pub(super) trait Storage {
    /// Reads what there is from `offset` on; how many bytes.
    fn read(&mut self, offset: u64, to: &mut [u8]) -> Result<usize, Trouble>;

    /// Writes all of it.
    fn write(&mut self, offset: u64, from: &[u8]) -> Result<(), Trouble>;
}

/// A file of the host.
pub(crate) struct Plain {
    pub(crate) path: PathBuf,
    file: File,
    reads: bool,
    writes: bool,
}

/// The path of an `MPI_File_open`.
pub(crate) fn path_of_open(call: &Call<'_>) -> PathBuf {
    // SAFETY: the name that MPI has just read.
    let name = unsafe { CStr::from_ptr(call.word(1) as *const _) };
    PathBuf::from(OsString::from_vec(path_of(name.to_bytes(), call.family)))
}

impl Plain {
    /// The file of an `MPI_File_open` that succeeded, or why not.
    pub(crate) fn of(call: &Call<'_>) -> Result<Plain, &'static str> {
        let mode = call.family.mode(call.int(2));
        if mode & mode::SEQUENTIAL != 0 {
            return Err("it is sequential");
        }
        let path = path_of_open(call);
        let reads = mode & mode::WRITE_ONLY == 0;
        let writes = mode & mode::READ_ONLY == 0;
        let opened = OpenOptions::new().read(reads).write(writes).open(&path);
        match opened {
            Ok(file) if file.metadata().is_ok_and(|it| it.is_file()) => {
                Ok(Plain { path, file, reads, writes })
            }
            Ok(_) => Err("it is no regular file"),
            Err(_) => Err("it cannot be opened a second time by its name"),
        }
    }

    pub(crate) fn size(&self) -> u64 {
        self.file.metadata().map_or(0, |it| it.len())
    }

    /// Whether the program may do that with it.
    pub(crate) fn check(&self, writes: bool) -> Result<(), Trouble> {
        match writes {
            true if !self.writes => {
                Err(Trouble::new(Class::ReadOnly, "the file is open for reading"))
            }
            false if !self.reads => {
                Err(Trouble::new(Class::Access, "the file is open for writing"))
            }
            _ => Ok(()),
        }
    }
}

impl Storage for &Plain {
    fn read(&mut self, offset: u64, to: &mut [u8]) -> Result<usize, Trouble> {
        let mut done = 0;
        while done < to.len() {
            match self.file.read_at(&mut to[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(bytes) => done += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(trouble(&error, "read", offset)),
            }
        }
        Ok(done)
    }

    fn write(&mut self, offset: u64, from: &[u8]) -> Result<(), Trouble> {
        self.file.write_all_at(from, offset).map_err(|error| trouble(&error, "write", offset))
    }
}

fn trouble(error: &io::Error, what: &str, offset: u64) -> Trouble {
    let code = Code(error.raw_os_error().unwrap_or(libc::EIO) as u16);
    Failure { code, text: format!("{what} at {offset}: {error}") }.into()
}
