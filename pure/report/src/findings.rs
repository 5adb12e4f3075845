//! What is wrong with the I/O of a run, how sure that is, and what would help.
//!
//! A rule is data: which calls it is about, when it applies, how to say it and what to do. Rules
//! about files are judged per file and reported once with the worst file first; rules about ranks
//! look at the run. How bad a finding is follows from one number, the share of a process' run that
//! the calls in question take, so that a habit that costs nothing is not shouted about.

mod data;
mod metadata;
mod ranks;
mod run;
mod servers;

use crate::facts::{Facts, FileFacts};
use crate::stream::{Calls, Stream};
use serde::Serialize;
use std::collections::BTreeMap;

/// Share of a run from which a finding is severe: a tenth is worth a change of the program.
const HIGH_SHARE: f64 = 0.10;
/// From here on it is worth a strategy or a flag.
const MEDIUM_SHARE: f64 = 0.02;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Good to know; costs little here.
    Low,
    /// At least 2 % of the run.
    Medium,
    /// At least 10 % of the run.
    High,
}

impl Severity {
    /// In one word.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
        }
    }

    fn of(share: f64) -> Severity {
        match share {
            HIGH_SHARE.. => Severity::High,
            MEDIUM_SHARE.. => Severity::Medium,
            _ => Severity::Low,
        }
    }
}

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Counted.
    Certain,
    /// Counted, but whether it hurts depends on what the trace does not show.
    Likely,
    /// A guess that needs a look.
    Possible,
}

impl Confidence {
    /// In one word.
    pub const fn name(self) -> &'static str {
        match self {
            Confidence::Certain => "certain",
            Confidence::Likely => "likely",
            Confidence::Possible => "possible",
        }
    }
}

/// The numbers behind a finding.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Evidence {
    /// How many calls it is about.
    pub calls: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Time they took, over all processes.
    pub time_ns: u64,
    /// The largest share of one process' run they took, 0 to 1.
    pub share_of_run: f64,
    /// Of what that is a share, as in "rank 3's run time".
    pub share_of: String,
    /// Row numbers of examples in the trace.
    pub rows: Vec<u64>,
    /// Ranks it is about, when it is about ranks.
    pub ranks: Vec<i32>,
}

/// What would help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// For people.
    pub sentence: String,
    /// For `iolab run --apply` and `iolab study`, when a strategy does it without changing the program.
    pub strategy: Option<String>,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Which rule found it: `tiny-sequential-writes`.
    pub rule: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// How sure it is.
    pub confidence: Confidence,
    /// What happens, in one sentence.
    pub message: String,
    /// The numbers behind it.
    pub evidence: Evidence,
    /// What would help.
    pub remedy: Option<Remedy>,
    /// The file it is worst for, as its number in the header.
    pub file: Option<usize>,
    /// Paths of all files it is about, worst first.
    pub files: Vec<String>,
}

/// A rule about single files.
pub(crate) struct FileRule {
    pub(crate) name: &'static str,
    pub(crate) confidence: Confidence,
    /// The calls it is about.
    pub(crate) calls: fn(&Stream) -> Calls,
    /// Whether the file has the problem, given those calls.
    pub(crate) applies: fn(&FileFacts, Calls) -> bool,
    /// What happens, about the worst file.
    pub(crate) message: fn(&FileFacts, Calls) -> String,
    pub(crate) remedy: &'static str,
    /// Strategy that helps, to which the paths are added.
    pub(crate) strategy: Option<&'static str>,
    /// Never reported as worse than this: what it costs is not the time of its calls.
    pub(crate) worst: Severity,
}

/// Applies every rule; the worst first.
pub(crate) fn judge(facts: &Facts) -> Vec<Finding> {
    let files = data::RULES.iter().chain(metadata::RULES);
    let mut findings: Vec<Finding> = files.filter_map(|rule| judge_files(rule, facts)).collect();
    findings.extend(ranks::judge(facts));
    findings.extend(run::judge(facts));
    findings.extend(servers::judge(facts));
    findings.sort_by(|a, b| {
        let weight = |f: &Finding| (f.severity, f.evidence.share_of_run, f.evidence.time_ns as f64);
        weight(b).partial_cmp(&weight(a)).unwrap_or(std::cmp::Ordering::Equal)
    });
    findings
}

/// Names of all rules, in the order they are applied.
pub fn rule_names() -> Vec<&'static str> {
    let files = data::RULES.iter().chain(metadata::RULES).map(|rule| rule.name);
    let others = [ranks::NAMES, run::NAMES, servers::NAMES];
    files.chain(others.into_iter().flatten().copied()).collect()
}

fn judge_files(rule: &FileRule, facts: &Facts) -> Option<Finding> {
    let mut hits: Vec<(&FileFacts, Calls)> = facts
        .files
        .iter()
        .map(|file| (file, file.sum(rule.calls)))
        .filter(|(file, calls)| calls.count > 0 && (rule.applies)(file, *calls))
        .collect();
    hits.sort_by_key(|(file, calls)| (std::cmp::Reverse(calls.ns), file.index));
    let (worst, worst_calls) = *hits.first()?;
    let total = hits.iter().fold(Calls::default(), |sum, (_, calls)| sum.and(*calls));
    let mut by_process: BTreeMap<u32, u64> = BTreeMap::new();
    for (process, ns) in hits.iter().flat_map(|(file, _)| file.time_by_process(rule.calls)) {
        *by_process.entry(process).or_default() += ns;
    }
    let (share_of_run, share_of) = facts.share(&by_process);
    let files: Vec<String> = hits.iter().map(|(file, _)| file.path.to_owned()).collect();
    let strategy = rule.strategy.map(|name| format!("{name}:paths={}", paths_glob(&files)));
    Some(Finding {
        rule: rule.name,
        severity: Severity::of(share_of_run).min(rule.worst),
        confidence: rule.confidence,
        message: (rule.message)(worst, worst_calls),
        evidence: Evidence {
            calls: total.count,
            bytes: total.bytes,
            time_ns: total.ns,
            share_of_run,
            share_of,
            rows: hits.iter().filter_map(|(_, calls)| calls.row).take(3).collect(),
            ranks: Vec::new(),
        },
        remedy: Some(Remedy { sentence: rule.remedy.to_owned(), strategy }),
        file: Some(worst.index),
        files,
    })
}

/// More files than this are written as the directory they are in.
const LISTED_FILES: usize = 4;

/// A glob that matches these absolute paths, as strategies take it.
fn paths_glob(paths: &[String]) -> String {
    match paths {
        [path] => literal_glob(path),
        _ if paths.len() <= LISTED_FILES => {
            let globs: Vec<_> = paths.iter().map(|path| literal_glob(path)).collect();
            format!("{{{}}}", globs.join(","))
        }
        _ => format!("{}/**", literal_glob(common_directory(paths))),
    }
}

/// Characters that mean something in a glob or in the list of parameters match themselves as `?`.
fn literal_glob(path: &str) -> String {
    path.chars().map(|c| if ",*?[]{}!\\:=".contains(c) { '?' } else { c }).collect()
}

fn common_directory(paths: &[String]) -> &str {
    let directory = |path: &'_ str| path.rfind('/').unwrap_or(0);
    let mut common = &paths[0][..directory(&paths[0])];
    for path in paths {
        while !path.starts_with(&format!("{common}/")) && !common.is_empty() {
            common = &common[..directory(common)];
        }
    }
    common
}

/// `1,048,576`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_names_few_files_and_the_directory_of_many() {
        let paths =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(paths_glob(&paths(&["/a/b [1],2"])), "/a/b ?1??2");
        assert_eq!(paths_glob(&paths(&["/a/b", "/c"])), "{/a/b,/c}");
        let many = paths(&["/a/b/1", "/a/b/2", "/a/b/c/3", "/a/bc/4", "/a/b/5"]);
        assert_eq!(paths_glob(&many), "/a/**");
    }

    #[test]
    fn digits_are_grouped_by_three() {
        let numbers = [7, 1000, 1_048_576].map(grouped);
        assert_eq!(numbers, ["7", "1,000", "1,048,576"]);
    }
}
