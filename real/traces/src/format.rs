//! Which tool wrote a trace.

use crate::{darshan, dftracer, hdtrace, otf2, recorder, strace};
use iolab_trace::Trace;
use iolab_vocab::Refusal;
use std::path::Path;

/// A tool whose traces are imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The output of `strace -f -T -ttt -o FILE COMMAND`; only by its name, any text may be one.
    Strace,
    /// A project of HDTrace (.proj), with its trace files beside it.
    Hdtrace,
    /// A log of Darshan 3 with single accesses.
    Darshan,
    /// A trace of DFTracer (`.pfw`, `.pfw.gz`), or a directory of them.
    Dftracer,
    /// An archive of OTF2, by its anchor (`traces.otf2`) or its directory.
    Otf2,
    /// What `recorder2text` or `recorder2parquet` makes of a trace of Recorder, of one rank or a directory of all.
    Recorder,
}

impl Format {
    /// The tool that wrote what lies at `path`, where that can be told from its name or content.
    pub fn of(path: &Path) -> Option<Format> {
        if hdtrace::is_project(path) {
            Some(Format::Hdtrace)
        } else if darshan::is_log(path) {
            Some(Format::Darshan)
        } else if otf2::is_archive(path) {
            Some(Format::Otf2)
        } else if recorder::is_trace(path) {
            Some(Format::Recorder)
        } else {
            dftracer::is_trace(path).then_some(Format::Dftracer)
        }
    }

    /// Reads it.
    ///
    /// # Errors
    /// That it is not there, is not of this tool, or is damaged.
    pub fn load(self, path: &Path) -> Result<Trace, Refusal> {
        match self {
            Format::Strace => strace::load(path),
            Format::Hdtrace => hdtrace::load(path),
            Format::Darshan => darshan::load(path),
            Format::Dftracer => dftracer::load(path),
            Format::Otf2 => otf2::load(path),
            Format::Recorder => recorder::load(path),
        }
    }
}
