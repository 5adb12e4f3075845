//! Texts of Recorder on disk: `N.txt` for each rank, as `recorder2text` writes them.

use crate::failed;
use iolab_trace::import::{Recorder, RecorderError};
use iolab_trace::{Trace, import};
use iolab_vocab::Refusal;
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// Bytes that hold the first call.
const HEAD_BYTES: u64 = 8_192;

const TO_TEXT: &str = "make its text: recorder2text DIRECTORY (of Recorder) writes DIRECTORY/_text";

/// Whether a file is the text of a rank, or a directory a trace of Recorder, even one without text.
pub(crate) fn is_trace(path: &Path) -> bool {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => begins_as_text(path),
        Ok(metadata) if metadata.is_dir() => {
            is_binary(path) || texts(path).iter().any(|(_, text)| begins_as_text(text))
        }
        _ => false,
    }
}

fn begins_as_text(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    read.is_ok() && import::is_recorder(&head)
}

/// Whether it is what Recorder itself writes.
fn is_binary(directory: &Path) -> bool {
    directory.join("recorder.mt").is_file()
}

fn rank_of(path: &Path) -> Option<u32> {
    let is_text = path.extension().is_some_and(|extension| extension == "txt");
    path.file_stem()?.to_str()?.parse().ok().filter(|_| is_text)
}

/// The texts of the ranks in a directory, or in `_text` there, by rank.
fn texts(directory: &Path) -> Vec<(u32, PathBuf)> {
    let below = directory.join("_text");
    let place = if below.is_dir() { &below } else { directory };
    let entries = fs::read_dir(place).into_iter().flatten().filter_map(Result::ok);
    let paths = entries.map(|entry| entry.path());
    let mut texts: Vec<_> = paths.filter_map(|path| Some((rank_of(&path)?, path))).collect();
    texts.sort();
    texts
}

/// Reads the text of one rank, or those of all ranks of a directory as one run.
pub(crate) fn load(path: &Path) -> Result<Trace, Refusal> {
    let of = |path: &Path, error: RecorderError| {
        Refusal::new(format!("{}: {error}", path.display()), error.hint())
    };
    let is_directory = path.is_dir();
    let texts = match is_directory {
        true => texts(path),
        false => vec![(rank_of(path).unwrap_or(0), path.to_owned())],
    };
    if texts.is_empty() {
        let message = format!("{}: a trace of Recorder without its text", path.display());
        return Err(Refusal::new(message, TO_TEXT));
    }
    let mut run = Recorder::default();
    for (rank, text) in &texts {
        let file = File::open(text).map_err(|error| failed(text, &error, TO_TEXT))?;
        run.rank(*rank, BufReader::new(file)).map_err(|error| of(text, error))?;
    }
    run.finish().map_err(|error| of(path, error))
}
