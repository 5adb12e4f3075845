//! A small platform, and what runs on a file system there.

#![allow(dead_code, reason = "every test file uses its own part of this")]

use iolab_sim::file_system::Configuration;
use iolab_sim::platform::Platform;
use iolab_sim::program::{FileOperation, Program};
use iolab_sim::scenario::Scenario;
use iolab_sim::workload::{Job, Line, Outcome, Script, Settings, Workload, run};
use iolab_vocab::{Extent, Refusal};
use std::ops::ControlFlow;

const PLATFORM: &str = "
name = 'four and four'
switches = [{ name = 's' }]
[[nodes]]
name = 'client'
count = 9
cpus = 2
instructions_per_second = 1e9
clients = 1
[[nodes]]
name = 'io'
count = 4
cpus = 2
instructions_per_second = 1e9
server = { device = { model = 'ssd' } }
";

pub(crate) fn platform() -> Platform {
    Platform::parse(PLATFORM).unwrap()
}

pub(crate) fn on(configuration: &str) -> Settings {
    let configuration = Configuration::parse(configuration).unwrap();
    Settings { file_system: Some(configuration), ..Settings::default() }
}

pub(crate) fn simulate(workload: &str, settings: &Settings) -> Result<Outcome, Refusal> {
    run(&Workload::parse(workload).unwrap(), &platform(), settings)
}

/// Ranks that write a matrix of interleaved strips together and read it again.
pub(crate) fn strided(ranks: u32, strip: u64, stripes: u64) -> String {
    format!(
        "name = 'strided'
files = [{{ name = 'matrix' }}]
[[applications]]
name = 'ranks'
ranks = {ranks}
[[applications.phases]]
name = 'write'
commands = [
  {{ open = 'matrix' }},
  {{ write_all = 'matrix', pattern = 'strided:strip={strip},stripes={stripes}', per_call = 'all' }},
]
[[applications.phases]]
name = 'read'
commands = [
  {{ read_all = 'matrix', pattern = 'strided:strip={strip},stripes={stripes}', per_call = 'all' }},
  {{ close = 'matrix' }},
]
"
    )
}

pub(crate) const SMALL: &str = "[layout]\ndefault = 'stripe:unit=4k'";

/// Runs listed commands on one file.
pub(crate) fn simulate_script(
    ranks: Vec<Vec<Line>>,
    settings: &Settings,
    file_bytes: u64,
) -> Result<Outcome, Refusal> {
    simulate_program(Box::new(Script::new(ranks)), settings, file_bytes)
}

pub(crate) fn simulate_program(
    program: Box<dyn Program>,
    settings: &Settings,
    file_bytes: u64,
) -> Result<Outcome, Refusal> {
    let files = vec![("matrix".to_owned(), file_bytes)];
    let job = Job { files, applications: vec![("script".to_owned(), program)] };
    let watch = &mut |_| ControlFlow::Continue(());
    iolab_sim::workload::simulate(job, &platform(), settings, watch)
}

pub(crate) fn line(operation: FileOperation, extents: &[(u64, u64)]) -> Line {
    let list = extents.iter().map(|&(offset, length)| Extent::new(offset, length)).collect();
    (operation.of(0), list)
}

pub(crate) fn faulty(settings: Settings, scenario: &str) -> Settings {
    Settings { faults: Some(Scenario::parse(scenario).unwrap()), ..settings }
}

/// Bytes that all devices have read and written.
pub(crate) fn device_bytes(outcome: &Outcome) -> (u64, u64) {
    let totals = || outcome.servers.iter().map(|server| server.totals.device);
    (totals().map(|one| one.read_bytes).sum(), totals().map(|one| one.written_bytes).sum())
}
