//! Traces of DFTracer on disk: the file of a process, or a directory of them.

use crate::failed;
use iolab_trace::{Trace, import};
use iolab_vocab::Refusal;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// Bytes that tell what a file is: in a compressed one the first event begins far before.
const HEAD_BYTES: u64 = 4_096;

/// Whether a file begins as a trace of DFTracer does, or a directory holds some and none of ours.
pub(crate) fn is_trace(path: &Path) -> bool {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => is_named_so(path) || begins_as_trace(path),
        Ok(metadata) if metadata.is_dir() => !files(path).is_empty(),
        _ => false,
    }
}

fn begins_as_trace(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    read.is_ok() && import::is_dftracer(&head)
}

/// Whether it has the name of such a trace: one that says nothing is one all the same.
fn is_named_so(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    (name.ends_with(".pfw") || name.ends_with(".pfw.gz")) && path.is_file()
}

/// The traces in a directory, in the order of their names.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let mut files: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| is_named_so(path)).collect();
    files.sort();
    files
}

/// Reads a file, or all files of a directory as one run.
pub(crate) fn load(path: &Path) -> Result<Trace, Refusal> {
    let parts = if path.is_dir() { files(path) } else { vec![path.to_owned()] };
    let of = |path: &Path, error: import::DftracerError| {
        Refusal::new(format!("{}: {error}", path.display()), error.hint())
    };
    let mut run = import::Dftracer::default();
    for part in &parts {
        let file = File::open(part)
            .map_err(|error| failed(part, &error, "DFTracer writes a .pfw file per process"))?;
        run.file(BufReader::new(file)).map_err(|error| of(part, error))?;
    }
    run.finish().map_err(|error| of(path, error))
}
