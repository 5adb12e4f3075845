//! A rule about single files: judged per file, and reported once with the worst file first.

use super::finding::{Confidence, Evidence, Finding, Remedy, Severity};
use crate::facts::{Facts, FileFacts};
use crate::stream::{Calls, Stream};
use iolab_policy::insitu::{StrategySpec, literal_glob};
use std::collections::BTreeMap;

/// A rule about single files.
pub(super) struct FileRule {
    pub(super) name: &'static str,
    pub(super) confidence: Confidence,
    /// The calls of a stream of the file that it is about: those that its sentence counts.
    pub(super) calls: fn(&FileFacts, &Stream) -> Calls,
    /// Whether the file has the problem, given those calls.
    pub(super) applies: fn(&FileFacts, Calls) -> bool,
    /// What happens, about the worst file.
    pub(super) message: fn(&FileFacts, Calls) -> String,
    pub(super) remedy: &'static str,
    /// What helps without changing the program.
    pub(super) strategy: Option<ByStrategy>,
    /// Never reported as worse than this: what it costs is not the time of its calls.
    pub(super) worst: Severity,
}

/// A strategy that helps, with files of one process at a time if it holds bytes.
pub(super) struct ByStrategy {
    /// To which the paths are added.
    pub(super) name: &'static str,
    /// How the sentence of the remedy goes on.
    pub(super) clause: &'static str,
    /// Whether it has something to do in this file.
    pub(super) helps: fn(&FileFacts) -> bool,
}

/// Write-back, which holds small writes.
pub(super) const fn write_back(clause: &'static str) -> Option<ByStrategy> {
    Some(ByStrategy { name: "write-back", clause, helps: |file| file.has_writes_to_hold() })
}

/// What the rule finds in all files together, if anything.
pub(super) fn judge_files(rule: &FileRule, facts: &Facts) -> Option<Finding> {
    let mut hits: Vec<(&FileFacts, Calls)> = facts
        .files
        .iter()
        .map(|file| (file, file.sum(|stream| (rule.calls)(file, stream))))
        .filter(|(file, calls)| calls.count > 0 && (rule.applies)(file, *calls))
        .collect();
    hits.sort_by_key(|(file, calls)| (std::cmp::Reverse(calls.ns), file.index));
    let (worst, worst_calls) = *hits.first()?;
    let total = hits.iter().fold(Calls::default(), |sum, (_, calls)| sum.and(*calls));
    let mut by_process: BTreeMap<u32, u64> = BTreeMap::new();
    for (file, _) in &hits {
        for (process, ns) in file.time_by_process(|stream| (rule.calls)(file, stream)) {
            *by_process.entry(process).or_default() += ns;
        }
    }
    let (share_of_run, share_of) = facts.share(&by_process);
    let files: Vec<String> = hits.iter().map(|(file, _)| file.path.to_owned()).collect();
    let remedy = remedy(rule, &hits.iter().map(|(file, _)| *file).collect::<Vec<_>>());
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
        remedy: Some(remedy),
        file: Some(worst.index),
        files,
    })
}

/// What to do about these files, the worst one first.
fn remedy(rule: &FileRule, files: &[&FileFacts]) -> Remedy {
    let in_program = Remedy { sentence: rule.remedy.to_owned(), strategy: None };
    let Some(ByStrategy { name, clause, helps }) = &rule.strategy else { return in_program };
    let files: Vec<&FileFacts> = files.iter().copied().filter(|file| helps(file)).collect();
    if files.is_empty() {
        return in_program;
    }
    let owns_files = StrategySpec::parse(name).is_ok_and(|spec| spec.owns_files());
    let is_beyond = |file: &FileFacts| owns_files && file.is_shared_at_once();
    let alone = files.iter().filter(|file| !is_beyond(file));
    let alone: Vec<String> = alone.map(|file| file.path.to_owned()).collect();
    let more = match files.first().is_some_and(|worst| is_beyond(worst)) {
        true => {
            &format!("; {name} would hold nothing of it, which several processes have open at once")
        }
        false => *clause,
    };
    Remedy {
        sentence: format!("{}{more}", rule.remedy),
        strategy: (!alone.is_empty()).then(|| format!("{name}:paths={}", paths_glob(&alone))),
    }
}

/// More files than this are written as the directory they are in.
const LISTED_FILES: usize = 4;

/// A glob that matches these absolute paths, and perhaps others, as strategies take it.
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

pub(crate) fn common_directory<P: AsRef<str>>(paths: &[P]) -> &str {
    let directory = |path: &'_ str| path.rfind('/').unwrap_or(0);
    let first = paths[0].as_ref();
    let mut common = &first[..directory(first)];
    for path in paths.iter().map(AsRef::as_ref) {
        while !path.starts_with(&format!("{common}/")) && !common.is_empty() {
            common = &common[..directory(common)];
        }
    }
    common
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
}
