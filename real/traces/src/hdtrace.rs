//! Traces of HDTrace on disk: a project file and the trace files beside it.

use crate::failed;
use iolab_trace::Trace;
use iolab_trace::import::hdtrace::{HdtraceError, Project, TraceFile};
use iolab_vocab::Refusal;
use std::path::Path;

/// What a project is made of.
const FILES: &str =
    "a project X.proj needs X_HOST_RANK_THREAD.trc beside it for every place of its topology";

fn damaged(error: HdtraceError) -> Refusal {
    Refusal::new(
        error.to_string(),
        "iolab reads the .proj and .trc files that HDTrace writes when the program calls \
         MPI_Finalize; a run that was cut leaves files it cannot use",
    )
}

/// Whether a path names a project of HDTrace.
pub fn is_project(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "proj")
}

/// Reads a project and its trace files.
pub(crate) fn load(path: &Path) -> Result<Trace, Refusal> {
    let project = Project::parse(&path.display().to_string(), &read(path)?).map_err(damaged)?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut files = Vec::new();
    for name in project.trace_names(&stem) {
        let file = path.with_file_name(name);
        files.push((file.display().to_string(), read(&file)?));
    }
    let files: Vec<_> = files.iter().map(|(name, bytes)| TraceFile { name, bytes }).collect();
    project.import(&files).map_err(damaged)
}

fn read(path: &Path) -> Result<Vec<u8>, Refusal> {
    std::fs::read(path).map_err(|error| failed(path, &error, FILES))
}
