//! Result files: begun before an hour of measuring, named only when they are complete.

use crate::failure::Failure;
use std::fs;
use std::path::{Path, PathBuf};

/// A file that will be written.
pub(super) struct Output {
    path: PathBuf,
    partial: PathBuf,
}

impl Output {
    /// Sees that it can be; `flag` is what the user may change if not.
    pub(super) fn begin(path: &Path, flag: &str) -> Result<Output, Failure> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let output = Output { path: path.to_owned(), partial: partial.into() };
        fs::write(&output.partial, "").map_err(|error| output.failed(&error, flag))?;
        Ok(output)
    }

    /// Writes all of it and gives it its name.
    pub(super) fn finish(self, text: &str, flag: &str) -> Result<(), Failure> {
        let written = fs::write(&self.partial, text);
        let named = written.and_then(|()| fs::rename(&self.partial, &self.path));
        named.map_err(|error| self.failed(&error, flag))
    }

    fn failed(&self, error: &std::io::Error, flag: &str) -> Failure {
        Failure::new(format!("cannot write {}: {error}", self.path.display()))
            .hint(format!("choose another {flag}"))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // Gone already when it was finished.
        let _ = fs::remove_file(&self.partial);
    }
}
