//! `iolab simulate --faults`: the scenario is read.

use crate::failure::Failure;
use iolab_sim::scenario::Scenario;
use std::path::Path;

/// Reads a scenario file.
pub(crate) fn read_scenario(path: &Path) -> Result<Scenario, Failure> {
    let place = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::new(format!("{place}: {error}")).hint("docs/howto/faults.md shows a scenario")
    })?;
    Scenario::parse(&text)
        .map_err(|error| Failure::new(format!("{place}: {}", error.message)).hint(error.hint))
}
