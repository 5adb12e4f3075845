//! Traces of Recorder on disk: texts `N.txt` for each rank, as `recorder2text` writes them into `_text`, or the
//! tables that `recorder2parquet` writes into `_parquet`.

use crate::failed;
use iolab_iot::{is_recorder_table, read_recorder_table};
use iolab_trace::import::{Recorder, RecorderError};
use iolab_trace::{Trace, import};
use iolab_vocab::Refusal;
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// Bytes that hold the first call.
const HEAD_BYTES: u64 = 8_192;

const TO_TEXT: &str = "make its text: recorder2text DIRECTORY (of Recorder) writes DIRECTORY/_text";

/// Whether a file is the text of a rank or a table, or a directory a trace of Recorder, even one without either.
pub(crate) fn is_trace(path: &Path) -> bool {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => begins_as_text(path) || is_table(path),
        Ok(metadata) if metadata.is_dir() => {
            let has_text = || texts(path).iter().any(|(_, text)| begins_as_text(text));
            is_binary(path) || has_text() || tables(path).iter().any(|table| is_table(table))
        }
        _ => false,
    }
}

fn is_table(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| is_recorder_table(&file))
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
    let paths = entries(directory, "_text");
    let mut texts: Vec<_> = paths.filter_map(|path| Some((rank_of(&path)?, path))).collect();
    texts.sort();
    texts
}

/// The tables in a directory, or in `_parquet` there; what is of one rank in several comes in the order it was
/// written: `4.parquet`, or `0_0.parquet`, `0_1.parquet`.
fn tables(directory: &Path) -> Vec<PathBuf> {
    let is_named_so = |path: &PathBuf| path.extension().is_some_and(|it| it == "parquet");
    let mut tables: Vec<_> = entries(directory, "_parquet").filter(is_named_so).collect();
    let numbers = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let numbers = name.split('_').map(|part| part.parse::<u64>().ok()).collect::<Vec<_>>();
        (numbers, name)
    };
    tables.sort_by_cached_key(numbers);
    tables
}

/// What lies in a directory, or in the one below where there is one.
fn entries(directory: &Path, below: &str) -> impl Iterator<Item = PathBuf> {
    let below = directory.join(below);
    let place = if below.is_dir() { &below } else { directory };
    fs::read_dir(place).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path())
}

/// Reads the text of one rank or one table, or those of all ranks of a directory as one run. Where a directory has
/// both, texts are read: their times are finer.
pub(crate) fn load(path: &Path) -> Result<Trace, Refusal> {
    let (texts, tables) = match path.is_dir() {
        true => (texts(path), tables(path)),
        false if is_table(path) => (Vec::new(), vec![path.to_owned()]),
        false => (vec![(rank_of(path).unwrap_or(0), path.to_owned())], Vec::new()),
    };
    let mut run = Recorder::default();
    for (rank, text) in &texts {
        let file = opened(text)?;
        run.rank(*rank, BufReader::new(file)).map_err(|error| refused(text, &error))?;
    }
    for table in tables.iter().filter(|_| texts.is_empty()) {
        read_recorder_table(opened(table)?, &mut run).map_err(|error| refused(table, &error))?;
    }
    match texts.is_empty() && tables.is_empty() {
        true => {
            let message = format!("{}: a trace of Recorder without its text", path.display());
            Err(Refusal::new(message, TO_TEXT))
        }
        false => run.finish().map_err(|error| refused(path, &error)),
    }
}

fn opened(path: &Path) -> Result<File, Refusal> {
    File::open(path).map_err(|error| failed(path, &error, TO_TEXT))
}

fn refused(path: &Path, error: &RecorderError) -> Refusal {
    Refusal::new(format!("{}: {error}", path.display()), error.hint())
}
