//! Workloads made of what a log of Darshan counts.

use crate::failure::Failure;
use iolab_sim::workload::reconstruct;
use iolab_traces::darshan;
use std::path::Path;

/// A workload that makes the accesses a log counts.
pub(crate) fn workload(path: &Path) -> Result<String, Failure> {
    let name =
        path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    reconstruct(&darshan::counted(path)?, &name).map_err(|error| {
        Failure::new(format!("{}: {}", path.display(), error.message)).hint(error.hint)
    })
}
