//! Lines that the processes of a command leave, each whole, in one file that this process makes and takes away.

use iolab_host::own_place;
use std::fs::{self, File};
use std::path::PathBuf;
use std::{env, io};

/// Where lines are left.
pub(crate) struct Lines {
    directory: PathBuf,
}

/// The file's name.
const FILE: &str = "lines";

impl Lines {
    /// A fresh place, which nobody else can read.
    pub(crate) fn begin(name: &str) -> io::Result<Lines> {
        let directory = own_place::make(&env::temp_dir(), name)?;
        File::create(directory.join(FILE))?;
        Ok(Lines { directory })
    }

    /// The file to append to.
    pub(crate) fn place(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    /// What was left.
    pub(crate) fn end(self) -> io::Result<String> {
        let read = fs::read(self.place());
        match fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                eprintln!("iolab: warning: {} is left: {error}", self.directory.display());
            }
            _ => {}
        }
        Ok(String::from_utf8_lossy(&read?).into_owned())
    }
}
