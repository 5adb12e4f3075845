//! The verdict on a strategy.

use super::{Interval, median_interval, ratio_interval};
use crate::statistics::Kind;

/// Differences below this share are called none, however sure they are: nobody changes a program's
/// I/O for them, and the order of runs alone can make as much.
const NOTEWORTHY: f64 = 0.02;

/// What was observed of one strategy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Seconds of the plain run of each round.
    pub plain: Vec<f64>,
    /// Seconds of the reshaped run of the same rounds.
    pub reshaped: Vec<f64>,
    /// Why the output is not that of the plain run, if it is not.
    pub difference: Option<String>,
    /// Why a run failed, if one did.
    pub failure: Option<String>,
    /// Output files that could not be compared, because plain runs differ in them, too.
    pub incomparable_count: usize,
    /// Predicted run time, if there is a prediction, in seconds.
    pub predicted: Option<f64>,
    /// How many strategies are held against plain, of whose verdicts chance may make none, this one among them.
    pub compared: usize,
}

/// What is to be said about a strategy.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The output differs from the plain run's: never use it, its time means nothing.
    Wrong(String),
    /// A run ended differently from the plain run.
    Failed(String),
    /// Faster, beyond what chance explains.
    Faster,
    /// Slower, beyond what chance explains.
    Slower,
    /// No difference that these runs can show.
    Same,
    /// Too few runs to say anything about time.
    Undecided,
}

/// A strategy, judged. Times are there only when its output is right.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// What is to be said.
    pub verdict: Verdict,
    /// See `Observation`.
    pub incomparable_count: usize,
    /// Seconds, median with interval.
    pub measured: Option<Interval>,
    /// How many times as fast as plain, with an interval that holds together with those of the other strategies.
    pub speedup: Option<Interval>,
    /// Predicted seconds.
    pub predicted: Option<f64>,
    /// (predicted - measured) / measured.
    pub prediction_error: Option<f64>,
}

/// Judges one strategy by its runs.
pub fn judge(seen: &Observation) -> Judgement {
    let without_times = |verdict| Judgement {
        verdict,
        incomparable_count: seen.incomparable_count,
        measured: None,
        speedup: None,
        predicted: seen.predicted,
        prediction_error: None,
    };
    // A run that failed has left other output, too; that it failed says more.
    if let Some(failure) = &seen.failure {
        return without_times(Verdict::Failed(failure.clone()));
    }
    if let Some(difference) = &seen.difference {
        return without_times(Verdict::Wrong(difference.clone()));
    }
    if seen.reshaped.is_empty() {
        return without_times(Verdict::Failed("it was not run".to_owned()));
    }
    let measured = median_interval(&seen.reshaped);
    let speedup = ratio_interval(&seen.plain, &seen.reshaped, seen.compared);
    Judgement {
        verdict: match speedup.kind {
            Kind::Median => by_speedup(speedup),
            // Of so few rounds chance alone puts all ratios on one side too often.
            Kind::Range | Kind::Unknown => Verdict::Undecided,
        },
        incomparable_count: seen.incomparable_count,
        measured: Some(measured),
        speedup: Some(speedup),
        predicted: seen.predicted,
        prediction_error: seen.predicted.map(|time| (time - measured.middle) / measured.middle),
    }
}

fn by_speedup(speedup: Interval) -> Verdict {
    if speedup.low > 1.0 && speedup.middle > 1.0 + NOTEWORTHY {
        Verdict::Faster
    } else if speedup.high < 1.0 && speedup.middle < 1.0 - NOTEWORTHY {
        Verdict::Slower
    } else {
        Verdict::Same
    }
}

impl Judgement {
    /// The verdict in words, short enough for a table.
    pub fn words(&self) -> String {
        let times = self.speedup.map_or(1.0, |speedup| speedup.middle);
        match &self.verdict {
            Verdict::Wrong(why) => format!("WRONG: {why}"),
            Verdict::Failed(why) => format!("FAILED: {why}"),
            Verdict::Faster => format!("{times:.2}× as fast, {}", self.agreement()),
            Verdict::Slower => format!("slower ({times:.2}×), {}", self.agreement()),
            Verdict::Same => format!("no difference in time, {}", self.agreement()),
            Verdict::Undecided => format!("too few runs to tell, {}", self.agreement()),
        }
    }

    fn agreement(&self) -> String {
        match self.incomparable_count {
            0 => "output identical".to_owned(),
            1 => "output identical but for 1 file that no two runs agree on".to_owned(),
            n => format!("output identical but for {n} files that no two runs agree on"),
        }
    }

    /// The verdict in one word, for programs.
    pub fn word(&self) -> &'static str {
        match self.verdict {
            Verdict::Wrong(_) => "wrong",
            Verdict::Failed(_) => "failed",
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Same => "same",
            Verdict::Undecided => "undecided",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(plain: &[f64], reshaped: &[f64]) -> Observation {
        let (plain, reshaped) = (plain.to_vec(), reshaped.to_vec());
        Observation { plain, reshaped, ..Observation::default() }
    }

    #[test]
    fn a_strategy_that_changes_the_output_is_wrong_however_fast_it_was() {
        let difference = Some("out.dat differs at byte 7".to_owned());
        let judged = judge(&Observation { difference, ..seen(&[9.0; 5], &[0.1; 5]) });
        assert_eq!((judged.word(), judged.speedup, judged.measured), ("wrong", None, None));
        assert!(judged.words().contains("byte 7"));
    }

    #[test]
    fn a_clear_gain_is_faster_and_a_clear_loss_slower() {
        let plain = [1.00, 1.02, 0.99, 1.01, 1.00, 1.01];
        let judged = judge(&seen(&plain, &[0.50, 0.52, 0.49, 0.50, 0.51, 0.505]));
        assert_eq!(judged.verdict, Verdict::Faster);
        assert!(judged.words().starts_with("2.00× as fast"), "{}", judged.words());
        assert_eq!(
            judge(&seen(&plain, &[1.2, 1.25, 1.22, 1.21, 1.3, 1.2])).verdict,
            Verdict::Slower
        );
    }

    #[test]
    fn what_noise_can_explain_is_no_difference() {
        let judged = judge(&seen(&[1.0, 1.3, 0.9, 1.1, 1.2, 1.0], &[1.1, 0.9, 1.2, 1.0, 1.2, 1.1]));
        assert_eq!(judged.verdict, Verdict::Same);
        let tiny = judge(&seen(&[1.0; 6], &[0.995; 6]));
        assert_eq!(tiny.verdict, Verdict::Same, "half a percent is not worth a word");
    }

    #[test]
    fn a_few_runs_decide_nothing_about_time_but_everything_about_output() {
        let few = seen(&[1.0; 5], &[0.1; 5]);
        assert_eq!(judge(&few).verdict, Verdict::Undecided);
        let of_four =
            |rounds| Observation { compared: 4, ..seen(&vec![1.0; rounds], &vec![0.1; rounds]) };
        assert_eq!(judge(&of_four(7)).verdict, Verdict::Undecided);
        assert_eq!(judge(&of_four(8)).verdict, Verdict::Faster);
        let difference = Some("out.dat is missing".to_owned());
        assert_eq!(judge(&Observation { difference, ..few }).word(), "wrong");
    }

    #[test]
    fn the_error_of_a_prediction_is_relative_to_what_was_measured() {
        let judged = judge(&Observation { predicted: Some(0.6), ..seen(&[1.0; 3], &[0.5; 3]) });
        assert!((judged.prediction_error.unwrap() - 0.2).abs() < 1e-12);
    }

    #[test]
    fn a_strategy_without_a_run_has_not_succeeded() {
        assert_eq!(judge(&seen(&[1.0], &[])).word(), "failed");
    }
}
