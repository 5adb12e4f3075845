//! What the runs of a study come to: every strategy with its judgement, its times and its prediction.

use super::{Candidate, Judgement, Observation, judge, median};
use crate::Report;
use iolab_sim::band::Band;
use iolab_sim::platform::Platform;
use iolab_trace::Trace;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Everything a study found out.
#[derive(Clone, Debug)]
pub struct Study {
    /// The command with its arguments.
    pub command: Vec<String>,
    /// Where it writes.
    pub directory: PathBuf,
    /// Rounds that were wanted.
    pub rounds: usize,
    /// The recorded run.
    pub recorded: Trace,
    /// What is said about it.
    pub report: Report,
    /// What predictions are for.
    pub platform: Platform,
    /// Seconds of the plain runs, by round.
    pub plain: Vec<f64>,
    /// Seconds the simulation gives the plain run, over orders of simultaneous events.
    pub plain_predicted: Option<Band>,
    /// Every strategy, in the order of the plan.
    pub tried: Vec<Tried>,
    /// The best right strategy, as simulated and as recorded, for the timeline.
    pub shown: Option<Shown>,
    /// What else to know, a sentence each.
    pub notes: Vec<String>,
    /// Why there are fewer rounds than wanted, if there are.
    pub incomplete: Option<String>,
}

/// A strategy with what became of it.
#[derive(Clone, Debug)]
pub struct Tried {
    /// What was tried.
    pub candidate: Candidate,
    /// What is to be said of it.
    pub judgement: Judgement,
    /// Range of what is predicted, in seconds.
    pub predicted: Option<Band>,
    /// Seconds of its runs, by round.
    pub seconds: Vec<f64>,
}

/// Traces of one strategy.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The strategy.
    pub label: String,
    /// As the simulation has it.
    pub simulated: Option<Trace>,
    /// As it was recorded under it.
    pub measured: Option<Trace>,
    /// What makes it faster or slower than plain, a sentence; see [`why`](super::why).
    pub why: Option<String>,
}

/// What the runs of a strategy, or the plain ones, came to so far.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// Seconds of each.
    pub seconds: Vec<f64>,
    /// Seconds of the plain run of the same rounds; empty for the plain runs themselves.
    pub plain: Vec<f64>,
    /// What they left that the first plain run did not: output and the difference.
    pub differences: BTreeMap<String, String>,
    /// How one failed, if one did.
    pub failure: Option<String>,
}

/// Judges every strategy by its runs. What plain runs differ in, too, is nobody's fault.
pub fn conclude(
    candidates: Vec<Candidate>,
    runs: Vec<Runs>,
    plain: &Runs,
    plain_predicted: Option<Band>,
    predicted: &[Option<Band>],
) -> Vec<Tried> {
    let compared = candidates.len();
    (candidates.into_iter().zip(runs).zip(predicted))
        .map(|((candidate, runs), predicted)| {
            let mut differences = runs.differences.iter();
            let wrong = differences.find(|(name, _)| !plain.differences.contains_key(*name));
            let predicted = anchored(&plain.seconds, plain_predicted, *predicted);
            let judgement = judge(&Observation {
                plain: runs.plain,
                reshaped: runs.seconds.clone(),
                difference: wrong.map(|(name, what)| format!("{name} {what}")),
                failure: runs.failure,
                incomparable_count: plain.differences.len(),
                predicted: predicted.map(|band| band.median),
                compared,
            });
            Tried { candidate, judgement, predicted, seconds: runs.seconds }
        })
        .collect()
}

/// The simulation says by which factor a strategy changes the run; the measured plain time says
/// from where. So what the simulation gets wrong about both runs alike does not count twice.
fn anchored(plain: &[f64], plain_predicted: Option<Band>, predicted: Option<Band>) -> Option<Band> {
    let (plain, Band { count, low, median: middle, high }) =
        (median(plain), predicted?.ratio(&plain_predicted?));
    Some(Band { count, low: plain * low, median: plain * middle, high: plain * high })
}

/// The fastest right strategy, if there is one. The first one only tells what the machinery costs.
pub fn best(tried: &[Tried]) -> Option<&Tried> {
    let speedup = |tried: &Tried| tried.judgement.speedup.map_or(0.0, |speedup| speedup.middle);
    let best = tried.iter().skip(1).max_by(|a, b| speedup(a).total_cmp(&speedup(b)))?;
    best.judgement.speedup.is_some().then_some(best)
}

/// How long a recorded program ran, in seconds.
pub fn span_seconds(trace: &Trace) -> f64 {
    let processes = &trace.header.processes;
    let start = processes.iter().map(|process| process.start_ns).min().unwrap_or(0);
    let end = processes.iter().map(|process| process.end_ns).max().unwrap_or(0);
    end.saturating_sub(start) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(seconds: &[f64], differing: &[&str]) -> Runs {
        let differences = differing.iter().map(|name| (name.to_string(), "differs".to_owned()));
        let seconds = seconds.to_vec();
        Runs { plain: seconds.clone(), seconds, differences: differences.collect(), failure: None }
    }

    fn concluded(names: &[&str], seen: Vec<Runs>, plain: &Runs) -> Vec<Tried> {
        let candidates = names.iter().map(|name| Candidate::parse(name, "/out", "test").unwrap());
        let predicted = vec![Band::of(&[5.0]); seen.len()];
        conclude(candidates.collect(), seen, plain, Band::of(&[10.0]), &predicted)
    }

    #[test]
    fn what_plain_runs_differ_in_is_held_against_no_strategy() {
        let seen = vec![runs(&[1.0], &["log"]), runs(&[1.0], &["data", "log"])];
        let tried = concluded(&["null", "write-back"], seen, &runs(&[1.0], &["log"]));
        let words: Vec<_> = tried.iter().map(|one| one.judgement.word()).collect();
        assert_eq!(words, ["undecided", "wrong"]);
        assert!(tried[1].judgement.words().contains("data differs"));
    }

    #[test]
    fn a_prediction_is_the_simulated_factor_times_the_measured_plain_time() {
        let tried = concluded(&["null"], vec![runs(&[1.0], &[])], &runs(&[3.0, 2.0, 4.0], &[]));
        assert_eq!(tried[0].predicted.unwrap().median, 1.5);
    }

    #[test]
    fn the_best_strategy_is_none_of_null_and_none_of_the_wrong_ones() {
        let fast = |names: &[&str]| Runs { plain: vec![1.0], ..runs(&[0.1], names) };
        let plain = runs(&[1.0], &[]);
        assert!(best(&concluded(&["null"], vec![fast(&[])], &plain)).is_none());
        let wrong = concluded(&["null", "cruel"], vec![fast(&[]), fast(&["data"])], &plain);
        assert!(best(&wrong).is_none());
        let seen = vec![fast(&[]), runs(&[1.0], &[]), fast(&[])];
        let tried = concluded(&["null", "seek-elide", "write-back"], seen, &plain);
        assert_eq!(best(&tried).unwrap().candidate.label, "write-back");
    }
}
