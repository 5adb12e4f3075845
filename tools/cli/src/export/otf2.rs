//! `iolab export --to otf2`: a directory with an archive, which another process writes: libotf2 is loaded by it alone.

use crate::failure::Failure;
use clap::Args;
use iolab_host::otf2;
use std::env;
use std::fs;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};

const NO_LIBRARY: &str = "OTF2 3 brings it, and Score-P brings OTF2: put its lib directory into LD_LIBRARY_PATH, or \
                          install your system's package (Debian, Ubuntu: otf2-tools)";

/// Write an archive of OTF2 from standard input, for `iolab export`, which starts this.
#[derive(Args)]
#[command(hide = true)]
pub(crate) struct Arguments {
    /// Where to; it is there.
    directory: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let written = otf2::write(&arguments.directory, io::stdin().lock());
    written.map(|()| ExitCode::SUCCESS).map_err(Failure::new)
}

/// Writes an archive: `fill` says what is in it. The directory is there with all of it, or not at all.
pub(super) fn write(
    directory: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let at = |error: io::Error| {
        Failure::new(format!("{}: {error}", directory.display())).hint("choose another -o")
    };
    // What is there stays, but for a directory without anything in it.
    let is_empty = || fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none());
    if directory.symlink_metadata().is_ok() && !is_empty() {
        return Err(Failure::new(format!("{} exists", directory.display()))
            .hint("an archive of OTF2 is a directory: name one by -o that is not there"));
    }
    let above = directory.parent().filter(|above| !above.as_os_str().is_empty());
    let place = tempfile::Builder::new()
        .prefix(".iolab-otf2-")
        .tempdir_in(above.unwrap_or(Path::new(".")))
        .map_err(at)?;
    let archive = place.path().join("archive");
    fs::create_dir(&archive).map_err(at)?;
    let program = env::current_exe().map_err(Failure::new)?;
    let mut command = Command::new(program);
    command.arg("write-otf2").arg(&archive).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut writer = Writer(command.spawn().map_err(Failure::new)?);
    let filled = match writer.0.stdin.take() {
        Some(lines) => fill_pipe(lines, fill),
        None => Ok(()),
    };
    let complaint = writer.complaint();
    match (filled, complaint) {
        // Of who stopped reading comes the reason.
        (_, Some(complaint)) => Err(complaint),
        (Err(failure), None) => Err(failure),
        (Ok(()), None) => fs::rename(&archive, directory).map_err(at),
    }
}

fn fill_pipe(
    lines: ChildStdin,
    fill: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut lines = BufWriter::new(lines);
    fill(&mut lines)?;
    lines.flush().map_err(Failure::new)
}

/// The process that writes; it ends before this is gone.
struct Writer(Child);

impl Writer {
    /// Waits for it; says why there is no archive, if there is none.
    fn complaint(&mut self) -> Option<Failure> {
        let mut said = String::new();
        if let Some(mut errors) = self.0.stderr.take() {
            let _ = errors.read_to_string(&mut said);
        }
        let status = match self.0.wait() {
            Ok(status) if status.success() => return None,
            Ok(status) => status,
            Err(error) => return Some(Failure::new(error)),
        };
        let mut words = said.lines().filter_map(|line| line.strip_prefix("error: "));
        let failure = match words.next_back() {
            Some(problem) => Failure::new(problem),
            None => Failure::new(format!("what writes the archive ended with {status}")),
        };
        Some(match said.contains("there is no libotf2") {
            true => failure.hint(NO_LIBRARY),
            false => failure.hint("is there room? else export to another format"),
        })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
