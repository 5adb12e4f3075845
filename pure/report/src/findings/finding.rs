//! A finding: what is wrong, how much it matters, how sure it is, the numbers behind it and the remedy.
//!
//! How much it matters follows from the share of a process' run that the calls in question take.

use crate::facts::Facts;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
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

    pub(crate) fn of(share: f64) -> Severity {
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
    /// Which rule found it: `small-sequential-writes`. In JSON beside it `formerly`, what the rule was called
    /// until version 0.1, if it was called otherwise.
    #[serde(flatten, serialize_with = "rule_and_former_name")]
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

/// What rules were called before they had the names that other tools' users know.
const FORMER_NAMES: &[(&str, &str)] = &[
    ("missing-file-lookups", "looking-for-what-is-not-there"),
    ("rewrites", "writing-again"),
    ("rereads", "reading-again"),
    ("small-sequential-writes", "tiny-sequential-writes"),
    ("small-random-writes", "tiny-random-writes"),
    ("small-sequential-reads", "tiny-sequential-reads"),
    ("small-random-reads", "tiny-random-reads"),
    ("small-dataset-accesses", "tiny-dataset-accesses"),
    ("single-rank-io", "one-rank-does-the-io"),
    ("rank-imbalance", "uneven-bytes"),
];

fn rule_and_former_name<S: Serializer>(rule: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("rule", rule)?;
    if let Some((_, former)) = FORMER_NAMES.iter().find(|(name, _)| *name == rule) {
        map.serialize_entry("formerly", former)?;
    }
    map.end()
}

impl Finding {
    /// Something certain about no file or rank; its weight is the time by process.
    pub(super) fn of_run(
        rule: &'static str,
        facts: &Facts,
        by_process: &BTreeMap<u32, u64>,
        evidence: Evidence,
        message: String,
        remedy: &str,
    ) -> Finding {
        let (share_of_run, share_of) = facts.share(by_process);
        Finding {
            rule,
            severity: Severity::of(share_of_run),
            confidence: Confidence::Certain,
            message,
            evidence: Evidence { share_of_run, share_of, ..evidence },
            remedy: Some(Remedy { sentence: remedy.to_owned(), strategy: None }),
            file: None,
            files: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{counted_rule_names, rule_names};

    #[test]
    fn a_finding_tells_what_its_rule_was_called_before() {
        let finding = |rule| Finding {
            rule,
            severity: Severity::Low,
            confidence: Confidence::Certain,
            message: String::new(),
            evidence: Evidence::default(),
            remedy: None,
            file: None,
            files: Vec::new(),
        };
        let told = |rule| serde_json::to_string(&finding(rule)).unwrap();
        let begin = r#"{"rule":"rewrites","formerly":"writing-again","severity":"low""#;
        assert!(told("rewrites").starts_with(begin), "{}", told("rewrites"));
        assert!(told("lock-storm").starts_with(r#"{"rule":"lock-storm","severity""#));
    }

    #[test]
    fn former_names_are_those_of_rules_and_of_none_now() {
        let rules = [rule_names(), counted_rule_names()].concat();
        for (now, former) in FORMER_NAMES {
            assert!(rules.contains(now) && !rules.contains(former), "{now}, once {former}");
        }
    }
}
