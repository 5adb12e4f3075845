//! Traces on disk, for every sub-command that reads or writes one.

use crate::failure::Failure;
use crate::output::Output;
use iolab_iot::IotError;
use iolab_trace::Trace;
use iolab_traces::Source;
use iolab_vocab::format_bytes;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Reads the whole trace at `path`; what another tool wrote is imported on the way.
pub(crate) fn load(path: &Path) -> Result<Trace, Failure> {
    tell_unfinished(path);
    Ok(iolab_traces::load_with(path, |rows| tell_large(path, rows))?)
}

/// The whole trace that these parts make.
pub(crate) fn load_parts(parts: &[PathBuf]) -> Result<Trace, Failure> {
    let first = parts.first().map_or(Path::new(""), PathBuf::as_path);
    iolab_traces::join(parts)?.into_trace().map_err(|error| of(first, &error))
}

/// Any trace at `path`, to go through event by event.
pub(crate) fn source(path: &Path) -> Result<Source, Failure> {
    tell_unfinished(path);
    Ok(Source::open(path)?)
}

/// Warns before a trace is read that does not fit into memory: the kernel ends who takes too much without a word.
fn tell_large(path: &Path, rows: u64) {
    if let Some(words) = available_bytes().and_then(|free| too_large(rows, free)) {
        eprintln!("iolab: warning: {} {words}", path.display());
    }
}

/// What is to be said of a trace of so many rows where so many bytes are free.
fn too_large(rows: u64, free: u64) -> Option<String> {
    /// A row in memory, with what is made of it, about.
    const ROW_BYTES: u64 = 115;
    let needed = rows.saturating_mul(ROW_BYTES);
    (needed > free).then(|| {
        format!(
            "has {rows} rows, which take about {} of memory, and {} are available; `iolab report` needs little, and \
             `iolab view` of a part by --from and --to, --ranks or --files as much as the part has",
            format_bytes(needed),
            format_bytes(free),
        )
    })
}

/// Memory that may be taken without swapping.
fn available_bytes() -> Option<u64> {
    let told = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = told.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib * 1024)
}

fn tell_unfinished(path: &Path) {
    if let Some(note) = iolab_traces::unfinished(path) {
        eprintln!("iolab: warning: {note}");
    }
}

/// Writes a whole trace to `path`; what was there is replaced only when all of it is written.
pub(crate) fn save(path: &Path, trace: &Trace) -> Result<(), Failure> {
    save_to(Output::begin(path, "-o", &[])?, trace).map(drop)
}

/// Writes a whole trace to a place that was looked at before; the answer is where it lies now.
pub(crate) fn save_to(output: Output, trace: &Trace) -> Result<PathBuf, Failure> {
    output.write_with(|file| iolab_iot::write(trace, BufWriter::new(file)), IotError::Io)
}

/// Writes any bytes to `path`, in the same way.
pub(crate) fn save_bytes(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    save_quietly(path, bytes)?;
    eprintln!("wrote {}", path.display());
    Ok(())
}

/// The same without a word about it.
pub(crate) fn save_quietly(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    Output::begin(path, "-o", &[])?.write(bytes)
}

/// The failure of reading the trace at `path`.
pub(crate) fn of(path: &Path, error: &IotError) -> Failure {
    iolab_traces::unreadable(path, error).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_too_large_where_its_rows_take_more_than_there_is() {
        assert!(available_bytes().is_some_and(|free| free > 1 << 20));
        assert_eq!(too_large(1_000_000, 1 << 30), None);
        let words = too_large(100_000_000, 1 << 30).unwrap();
        assert!(words.contains("100000000 rows") && words.contains("1 GiB"), "{words}");
    }
}
