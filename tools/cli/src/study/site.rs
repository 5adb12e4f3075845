//! Where a command that is run over and over finds its files, and where what comes of it goes.

use crate::failure::Failure;
use crate::output::Kind;
use crate::platform_file::read_platform;
use iolab_sim::platform::Platform;
use iolab_study::{Job, Same};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The places, by their real names, and what else a job needs beside its command.
pub(crate) struct Site {
    /// Where the user stands.
    pub(crate) start: PathBuf,
    /// Where the command writes.
    pub(crate) directory: PathBuf,
    /// Where the results go.
    pub(crate) results: PathBuf,
    platform: Option<Platform>,
    iolab: PathBuf,
    /// Goes with this.
    _made: Made,
}

/// A directory that was made for results, if it was: as long as nothing is in it, it goes again.
struct Made(Option<PathBuf>);

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(directory) = &self.0 {
            _ = fs::remove_dir(directory);
        }
    }
}

impl Site {
    /// Finds the places, and makes that of the results, in which nothing may lie under one of these names
    /// that is of no earlier run of the same `purpose`.
    pub(crate) fn prepared(
        output: Option<&Path>,
        (results, names, purpose): (&Path, &[(&str, Kind)], &str),
        platform: Option<&str>,
    ) -> Result<Site, Failure> {
        let start = env::current_dir()
            .map_err(|error| Failure::new(format!("the current directory: {error}")))?;
        let directory = absolute(output.unwrap_or(&start), "output")?;
        let results = absolute(results, "results")?;
        let _made = Made((!results.exists()).then(|| results.clone()));
        fs::create_dir_all(&results).map_err(|error| {
            Failure::new(format!("{}: {error}", results.display()))
                .hint("name a directory for the report with --results")
        })?;
        for (name, kind) in names {
            kind.refuse_foreign(&results.join(name), purpose)?;
        }
        let platform = platform.map(read_platform).transpose()?;
        let iolab = env::current_exe().map_err(Failure::new)?;
        Ok(Site { start, directory, results, platform, iolab, _made })
    }

    /// The command with all of it.
    pub(crate) fn job<'a>(&'a self, command: &'a [OsString], same: &'a [Same]) -> Job<'a> {
        Job {
            platform: self.platform.as_ref(),
            command,
            iolab: &self.iolab,
            start: &self.start,
            directory: &self.directory,
            results: &self.results,
            same,
        }
    }
}

/// The directory by its real name, so that it can be set aside; it need not exist yet, but its
/// parent must.
fn absolute(path: &Path, purpose: &str) -> Result<PathBuf, Failure> {
    let failure = |error: std::io::Error| {
        Failure::new(format!("{}: {error}", path.display()))
            .hint(format!("name an existing place for the {purpose} directory"))
    };
    match path.canonicalize() {
        Ok(found) if found.is_dir() => Ok(found),
        Ok(_) => Err(failure(std::io::Error::from(std::io::ErrorKind::NotADirectory))),
        Err(_) => {
            let whole = std::path::absolute(path).map_err(failure)?;
            let (Some(parent), Some(name)) = (whole.parent(), whole.file_name()) else {
                return Ok(whole);
            };
            fs::create_dir_all(parent).map_err(failure)?;
            Ok(parent.canonicalize().map_err(failure)?.join(name))
        }
    }
}
