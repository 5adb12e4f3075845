//! The malformed corpus: its files, and the error each leads to.
#![allow(clippy::disallowed_methods, reason = "the corpus is a directory of files")]

use iolab_sim::platform::Platform;
use iolab_sim::scenario::Scenario;
use iolab_sim::workload::{Settings, Workload, run};
use std::path::{Path, PathBuf};

/// Gives the error of an input, or nothing if it is taken.
pub(crate) type Refuse = fn(&str) -> Option<String>;

/// Folders of the corpus, and what refuses their files.
pub(crate) const KINDS: [(&str, Refuse); 3] =
    [("workloads", workload), ("platforms", platform), ("scenarios", scenario)];

const WRITER: &str = "files = [{ name = 'f' }]\n[[applications]]\n[[applications.phases]]\n\
    commands = [{ open = 'f' }, { write = 'f', bytes = 4096 }, { close = 'f' }]";

/// The error of a workload, when read or when run.
fn workload(text: &str) -> Option<String> {
    let workload = match Workload::parse(text) {
        Ok(workload) => workload,
        Err(error) => return Some(error.to_string()),
    };
    let platform = Platform::preset("classic-hdd").unwrap();
    let error = run(&workload, &platform, &Settings::default()).err()?;
    Some(error.to_string())
}

/// The error of a platform, when read, checked or used.
fn platform(text: &str) -> Option<String> {
    let platform = match Platform::parse(text) {
        Ok(platform) => platform,
        Err(error) => return Some(error.to_string()),
    };
    let writer = Workload::parse(WRITER).unwrap();
    let error = run(&writer, &platform, &Settings::default()).err()?;
    Some(error.to_string())
}

/// The error of a scenario, when read or when laid on the classic cluster.
fn scenario(text: &str) -> Option<String> {
    let platform = Platform::preset("classic-hdd").unwrap();
    let error = Scenario::parse(text).and_then(|scenario| scenario.resolve(&platform)).err()?;
    Some(error.to_string())
}

/// The inputs of a folder, by name.
pub(crate) fn corpus(kind: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/malformed").join(kind);
    let files = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    files.sort();
    files
}

/// What the user reads.
pub(crate) fn refused(path: &Path, refuse: Refuse) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let error = refuse(&text);
    let error = error.unwrap_or_else(|| panic!("{} is not refused", path.display()));
    format!("{}\n", error.trim_end())
}
