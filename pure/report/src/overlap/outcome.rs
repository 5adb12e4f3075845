//! The result document of the overlap benchmark.

use super::{OverlapPoint, OverlapSummary, Reference};
use crate::bench::{Incomplete, Refused, Surroundings};
use serde::{Deserialize, Serialize};

/// How an operation is made non-blocking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AsyncMode {
    /// A helper thread around the blocking call.
    Thread,
    /// What the method itself offers.
    Native,
}

/// What is transferred in an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// What the pattern says.
    Pattern,
    /// Every operation is carried out with nothing to move: nothing can be overlapped.
    ZeroBytes,
    /// No operation at all: the computation alone.
    None,
}

/// A case as it stands in the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseEntry {
    /// Name of the test in the plan.
    pub test: String,
    /// The pattern with its parameters.
    pub spatial: String,
    /// `read` or `write`.
    pub direction: String,
    /// The access method.
    pub method: String,
    /// How it was made non-blocking.
    pub way: AsyncMode,
    /// Whether progress was asked for while computing.
    pub poll: bool,
    /// Bytes per second that the device was slowed to.
    pub throttle: Option<f64>,
    /// Around the page cache.
    pub direct: bool,
    /// What was transferred.
    pub load: Load,
    /// All that in a few words.
    pub title: String,
}

/// What a run found: one document, complete enough to be repeated and compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverlapOutcome {
    /// `iolab-overlap`.
    pub format: String,
    /// Version of this document.
    pub format_version: u32,
    /// Version of iolab.
    pub version: String,
    /// Command line.
    pub command: Vec<String>,
    /// The plan as TOML.
    pub plan: String,
    /// How many ranks took part.
    pub ranks: u32,
    /// What carried their words.
    pub communication: String,
    /// Host, kernel, file system.
    pub surroundings: Surroundings,
    /// What others found.
    pub reference: Reference,
    /// What a reader should know.
    pub warnings: Vec<String>,
    /// The cases of the plan.
    pub cases: Vec<CaseEntry>,
    /// All points.
    pub points: Vec<OverlapPoint>,
    /// The usable ones together.
    pub summaries: Vec<OverlapSummary>,
    /// Cases that cannot be run here.
    pub refused: Vec<Refused>,
    /// Why the run ended before its plan, if it did, and what it lacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<Incomplete>,
}

impl OverlapOutcome {
    /// Reads a document.
    ///
    /// # Errors
    /// What is no such document, or speaks of cases that it does not have.
    pub fn read(text: &str) -> Result<OverlapOutcome, serde_json::Error> {
        let outcome: OverlapOutcome = serde_json::from_str(text)?;
        let cases = outcome.cases.len();
        let points = outcome.points.iter().map(|point| point.case);
        let mut all = points.chain(outcome.summaries.iter().map(|summary| summary.case));
        match all.find(|case| *case >= cases) {
            None => Ok(outcome),
            Some(case) => {
                let problem = format!("a point of case {case}, of {cases} cases");
                Err(serde::de::Error::custom(problem))
            }
        }
    }
}
