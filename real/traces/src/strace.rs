//! What strace wrote.

use crate::failed;
use iolab_trace::{Trace, import};
use iolab_vocab::Refusal;
use std::path::Path;

const WRITTEN_BY: &str = "record with `strace -f -T -ttt -o FILE COMMAND`";

/// Reads an output of strace.
pub(crate) fn load(path: &Path) -> Result<Trace, Refusal> {
    let bytes = std::fs::read(path).map_err(|error| failed(path, &error, WRITTEN_BY))?;
    import::strace(&String::from_utf8_lossy(&bytes))
        .map_err(|error| Refusal::new(format!("{}: {error}", path.display()), WRITTEN_BY))
}
