//! Archives of OTF2 on disk, read through `otf2-print`, which comes with every OTF2.
//!
//! The archive is read by that process and not by this one: damaged archives make libotf2 crash or run for
//! ever. Its text is taken as it comes.

use iolab_trace::import::{Otf2, Otf2Error};
use iolab_trace::{Trace, import};
use iolab_vocab::Refusal;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

/// Bytes that tell what a file is.
const HEAD_BYTES: u64 = 16;

/// What reads an archive.
const READER: &str = "otf2-print";

/// So long it may say nothing: it opens the files of all locations before the first event.
const SILENCE: Duration = Duration::from_secs(120);

const NO_READER: &str = "OTF2 brings it, and Score-P brings OTF2: put its bin directory into PATH, or install \
                         your system's package (Debian, Ubuntu: otf2-tools)";

const DAMAGED: &str = "see what `otf2-print -A` says of it: a later OTF2 may read it; else copy it again, all of its files";

const NO_ANCHOR: &str = "Score-P writes traces.otf2 beside traces.def when the program ends in order; of a run \
                         that was cut off there is none, and nothing of OTF2 reads it";

/// Whether a file is the anchor of an archive, or a directory an archive, even one that lacks its anchor.
pub(crate) fn is_archive(path: &Path) -> bool {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => {
            is_named_anchor(path) || is_part(path) || begins_as_anchor(path)
        }
        Ok(metadata) if metadata.is_dir() => {
            anchor_in(path).is_some() || path.join("traces.def").is_file()
        }
        _ => false,
    }
}

fn is_named_anchor(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "otf2")
}

/// Whether a file is what lies behind an anchor: definitions, or the events of a location.
fn is_part(path: &Path) -> bool {
    let is_named_so = path.extension().is_some_and(|it| it == "def" || it == "evt");
    is_named_so && anchor_of_part(path).is_some()
}

fn anchor_of_part(part: &Path) -> Option<PathBuf> {
    let beside = part.with_extension("otf2");
    let above = part.parent()?.with_extension("otf2");
    [beside, above].into_iter().find(|anchor| anchor.is_file())
}

fn begins_as_anchor(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    read.is_ok() && import::is_otf2(&head)
}

/// The anchor of the archive in a directory: `traces.otf2`, else the only one.
fn anchor_in(directory: &Path) -> Option<PathBuf> {
    let usual = directory.join("traces.otf2");
    if usual.is_file() {
        return Some(usual);
    }
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let mut anchors = entries.map(|entry| entry.path()).filter(|path| is_named_anchor(path));
    let first = anchors.next()?;
    anchors.next().is_none().then_some(first)
}

/// Reads an archive, named by its anchor, its directory or a file of it.
pub(crate) fn load(path: &Path) -> Result<Trace, Refusal> {
    let anchor = if path.is_dir() {
        anchor_in(path).ok_or_else(|| {
            Refusal::new(
                format!("{}: an archive of OTF2 without anchor", path.display()),
                NO_ANCHOR,
            )
        })?
    } else if is_part(path) {
        anchor_of_part(path).unwrap_or_else(|| path.to_owned())
    } else {
        path.to_owned()
    };
    if let Err(error) = File::open(&anchor) {
        return Err(crate::failed(&anchor, &error, "give the anchor file, traces.otf2"));
    }
    if !begins_as_anchor(&anchor) {
        return Err(Refusal::new(
            format!("{}: this is no anchor file of OTF2", anchor.display()),
            "an archive is named by its traces.otf2, or by the directory that it is in",
        ));
    }
    let mut command = Command::new(READER);
    command.args([OsStr::new("-A"), OsStr::new("--"), anchor.as_os_str()]).env("LC_ALL", "C");
    through(&mut command, SILENCE)
        .map_err(|(message, hint)| Refusal::new(format!("{}: {message}", anchor.display()), hint))
}

/// The trace in what a command prints, which must not be silent for so long.
fn through(command: &mut Command, silence: Duration) -> Result<Trace, (String, String)> {
    iolab_host::launch::end_with_us(command);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.map_err(|error| (cannot_start(&error), NO_READER.to_owned()))?;
    let mut reader = Printer(child);
    let complaints = reader.0.stderr.take().map(|pipe| thread::spawn(|| last_line(pipe)));
    let mut text = Text::of(reader.0.stdout.take(), silence);
    let mut archive = Otf2::default();
    let refused = |error: &Otf2Error| (error.to_string(), error.hint().to_owned());
    let read = archive.text(BufReader::new(&mut text));
    // It still runs where its text was not taken to the end: it is ended, and with it its pipes.
    let is_over = read.is_ok() && !text.is_silent;
    let ended = if is_over { reader.0.wait().ok() } else { None };
    drop(reader);
    read.map_err(|error| refused(&error))?;
    let complaint = complaints.and_then(|thread| thread.join().ok()).unwrap_or_default();
    let stopped = stopped(ended, silence).map(|how| match complaint.as_str() {
        "" => how,
        said => format!("{how}: {said}"),
    });
    match stopped {
        Some(why) if !archive.has_events() => return Err((why, DAMAGED.to_owned())),
        Some(why) => archive.cut(&why),
        None => {}
    }
    archive.finish().map_err(|error| refused(&error))
}

fn cannot_start(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            format!("archives of OTF2 are read by {READER}, which is not here")
        }
        _ => format!("{READER} does not start: {error}"),
    }
}

/// How the reader ended, if not as it should; none of a status is that it had to be ended.
fn stopped(ended: Option<ExitStatus>, silence: Duration) -> Option<String> {
    match ended {
        Some(status) if status.success() => None,
        Some(status) => Some(format!("{READER} could not read it ({status})")),
        None => Some(format!("{READER} said nothing for {} s and was ended", silence.as_secs())),
    }
}

/// A process that does not outlive who asked it, and where that is killed, is so too (`end_with_us`).
struct Printer(Child);

impl Drop for Printer {
    fn drop(&mut self) {
        // One that has ended already is no failure.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The last line that says something, of a text of any length.
fn last_line(mut pipe: impl Read) -> String {
    const KEPT_BYTES: usize = 2_048;
    let mut last: Vec<u8> = Vec::new();
    let mut buffer = [0; KEPT_BYTES];
    while let Ok(read @ 1..) = pipe.read(&mut buffer) {
        last.extend_from_slice(&buffer[..read]);
        last.drain(..last.len().saturating_sub(KEPT_BYTES));
    }
    let text = String::from_utf8_lossy(&last);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("");
    line.to_owned()
}

/// What comes through a pipe, ending where it stays silent for too long.
struct Text {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: io::Cursor<Vec<u8>>,
    silence: Duration,
    is_silent: bool,
}

/// Pieces that wait to be read: what is printed faster than it is read, waits in the pipe.
const PIECES: usize = 4;

const PIECE_BYTES: usize = 1 << 18;

impl Text {
    fn of(pipe: Option<impl Read + Send + 'static>, silence: Duration) -> Text {
        let (sender, pieces) = sync_channel(PIECES);
        thread::spawn(move || {
            let Some(mut pipe) = pipe else { return };
            loop {
                let mut piece = vec![0; PIECE_BYTES];
                let read = pipe.read(&mut piece).map(|read| {
                    piece.truncate(read);
                    piece
                });
                let is_end = read.as_ref().map_or(true, Vec::is_empty);
                if sender.send(read).is_err() || is_end {
                    return;
                }
            }
        });
        Text { pieces, piece: io::Cursor::default(), silence, is_silent: false }
    }
}

impl Read for Text {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.piece.position() >= self.piece.get_ref().len() as u64 {
            let piece = match self.pieces.recv_timeout(self.silence) {
                Ok(piece) => piece?,
                Err(RecvTimeoutError::Disconnected) => Vec::new(),
                Err(RecvTimeoutError::Timeout) => {
                    self.is_silent = true;
                    Vec::new()
                }
            };
            self.piece = io::Cursor::new(piece);
        }
        self.piece.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: &str = "=== Global Definitions ===\\nIO_PARADIGM 0  Identification: \"POSIX\" <1>\\n=== Events ===\\n\
                         IO_SEEK  0   5  Handle: INVALID <9>\\n";

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn refusal(script: &str) -> String {
        let silence = Duration::from_millis(300);
        let (message, hint) = through(&mut shell(script), silence).unwrap_err();
        assert!(!hint.is_empty());
        message
    }

    #[test]
    fn a_reader_that_fails_crashes_or_falls_silent_is_told_as_such() {
        assert!(refusal("echo one >&2; echo 'bad version' >&2; exit 3").ends_with("bad version"));
        assert!(refusal("kill -SEGV $$").contains("signal"));
        assert!(refusal("exec sleep 60").contains("said nothing"));
        let (message, _) = through(&mut Command::new("/nowhere/otf2-print"), SILENCE).unwrap_err();
        assert!(message.contains("is not here"), "{message}");
    }

    #[test]
    fn what_was_read_before_the_reader_failed_counts() {
        let message = refusal(&format!("printf '{EVENT}'; exit 1"));
        assert!(message.contains("1 events are none of I/O or MPI"), "{message}");
        assert!(refusal("true").contains("no event"));
    }
}
