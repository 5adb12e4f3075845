//! What is wrong with the I/O of a run, how sure that is, and what would help.
//!
//! A rule is data: which calls it is about, when it applies, how to say it and what to do. Rules
//! about files are judged per file and reported once with the worst file first; rules about ranks
//! look at the run. How bad a finding is follows from one number, the share of a process' run that
//! the calls in question take, so that a habit that costs nothing is not shouted about.

mod cluster;
mod crowd;
mod data;
mod file_rule;
mod finding;
mod hdf5;
mod metadata;
mod ranks;
mod run;
mod servers;

use crate::facts::Facts;
use file_rule::judge_files;

pub(crate) use crowd::{SMALL_FILE_BYTES, crowded_directory};
pub(crate) use file_rule::common_directory;
pub use finding::{Confidence, Evidence, Finding, Remedy, Severity};

/// Applies every rule; the worst first.
pub(crate) fn judge(facts: &Facts) -> Vec<Finding> {
    let files = data::RULES.iter().chain(metadata::RULES);
    let mut findings: Vec<Finding> = files.filter_map(|rule| judge_files(rule, facts)).collect();
    findings.extend(ranks::judge(facts));
    findings.extend(run::judge(facts));
    let uneven = servers::judge(facts);
    findings.extend(cluster::judge(facts, !uneven.is_empty()));
    findings.extend(uneven);
    findings.extend(hdf5::judge(facts));
    worst_first(findings)
}

/// By severity, then by the share of the run, then by time.
pub(crate) fn worst_first(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by(|a, b| {
        let weight = |f: &Finding| (f.severity, f.evidence.share_of_run, f.evidence.time_ns as f64);
        weight(b).partial_cmp(&weight(a)).unwrap_or(std::cmp::Ordering::Equal)
    });
    findings
}

/// Names of all rules, in the order they are applied.
pub fn rule_names() -> Vec<&'static str> {
    let files = data::RULES.iter().chain(metadata::RULES).map(|rule| rule.name);
    let others = [ranks::NAMES, run::NAMES, servers::NAMES, cluster::NAMES, hdf5::NAMES];
    files.chain(others.into_iter().flatten().copied()).collect()
}
