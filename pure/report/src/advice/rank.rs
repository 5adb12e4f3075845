//! Candidates in the order of what the simulator says of them.

use super::Candidate;

/// A gain below this share is called none: nobody changes how a program is started for it, and the
/// order of runs alone can make as much.
pub const NOTEWORTHY: f64 = 0.02;
/// Run times this near to each other are one, and the plainest stack of them is preferred.
const ALIKE: f64 = 0.005;

/// What is predicted to take longer than this, relative to plain, does not run.
const HOPELESS: f64 = 1.1;
/// Stacks of one kind that run for real at most: a simulation tells parameters apart well, and kinds less.
const OF_EACH_KIND: usize = 2;

/// What a simulation says of a stack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Run time.
    pub wall_s: f64,
    /// Calls that its stages heard.
    pub staged_calls: u64,
}

/// The places of the candidates that reached a call, fastest first; those of equal run time the plainest
/// first.
pub fn ranked(candidates: &[Candidate], estimates: &[Option<Estimate>]) -> Vec<usize> {
    let class = |wall_s: f64| (wall_s.max(1e-9).ln() / ALIKE).round() as i64;
    let mut places: Vec<(i64, (usize, usize), usize)> = (estimates.iter().enumerate())
        .filter_map(|(at, estimate)| Some((at, (*estimate)?)))
        .filter(|(_, estimate)| estimate.staged_calls > 0)
        .map(|(at, estimate)| (class(estimate.wall_s), candidates[at].words(), at))
        .collect();
    places.sort_unstable();
    places.into_iter().map(|(_, _, at)| at).collect()
}

/// Of these places, best first, the first ones of each kind, at most so many of one and so many in all.
/// A prediction is surer of parameters than of kinds, so that real runs need several of these.
pub fn best_of_kinds(
    candidates: &[Candidate],
    ranked: &[usize],
    of_each: usize,
    all: usize,
) -> Vec<usize> {
    let mut chosen: Vec<usize> = Vec::new();
    for &at in ranked {
        let kind = candidates[at].kind();
        let known = chosen.iter().filter(|&&other| candidates[other].kind() == kind).count();
        if chosen.len() < all && known < of_each {
            chosen.push(at);
        }
    }
    chosen
}

/// The places of those who are to run for real, the most promising first. Stacks that no simulation can speak of
/// take turns with the others: nothing but a run tells what they bring. Without a prediction of the plain
/// run (`plain_s`) none of another says anything, and the plainest go first.
pub fn field(
    candidates: &[Candidate],
    plain_s: Option<f64>,
    estimates: &[Option<Estimate>],
) -> Vec<usize> {
    let is_told = |at: usize| plain_s.is_some() && candidates[at].is_predictable();
    let told = match plain_s {
        None => Vec::new(),
        Some(plain_s) => {
            let mut places = ranked(candidates, estimates);
            let wall_s = |at: usize| estimates[at].map_or(f64::INFINITY, |it| it.wall_s);
            places.retain(|&at| is_told(at) && wall_s(at) < plain_s * HOPELESS);
            best_of_kinds(candidates, &places, OF_EACH_KIND, usize::MAX)
        }
    };
    let untold: Vec<usize> = (0..candidates.len()).filter(|&at| !is_told(at)).collect();
    alternately(told, one_of_each_first(candidates, &untold))
}

/// The plainest of each kind, then the second of each, each time those of fewer stages first.
fn one_of_each_first(candidates: &[Candidate], places: &[usize]) -> Vec<usize> {
    let mut kinds: Vec<(Vec<&str>, usize)> = Vec::new();
    let mut ordered: Vec<(usize, usize, usize)> = Vec::new();
    for &at in places {
        let kind = candidates[at].kind();
        let known = kinds.iter_mut().find(|(other, _)| *other == kind);
        let before = match known {
            Some((_, count)) => {
                *count += 1;
                *count - 1
            }
            None => {
                kinds.push((kind, 1));
                0
            }
        };
        if before < OF_EACH_KIND {
            ordered.push((candidates[at].stack.len(), before, at));
        }
    }
    ordered.sort_unstable();
    ordered.into_iter().map(|(_, _, at)| at).collect()
}

fn alternately(first: Vec<usize>, second: Vec<usize>) -> Vec<usize> {
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut merged = Vec::new();
    loop {
        let (one, other) = (first.next(), second.next());
        if one.is_none() && other.is_none() {
            return merged;
        }
        merged.extend(one.into_iter().chain(other));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_policy::insitu::StrategySpec;

    fn candidate(text: &str) -> Candidate {
        Candidate { stack: StrategySpec::parse_all(text).unwrap(), reasons: Vec::new() }
    }

    fn labels(texts: &[&str], plain_s: Option<f64>, walls: &[Option<f64>]) -> Vec<String> {
        let candidates: Vec<Candidate> = texts.iter().map(|text| candidate(text)).collect();
        let estimate =
            |wall_s: &Option<f64>| wall_s.map(|wall_s| Estimate { wall_s, staged_calls: 1 });
        let estimates: Vec<_> = walls.iter().map(estimate).collect();
        let places = field(&candidates, plain_s, &estimates);
        places.into_iter().map(|at| texts[at].to_owned()).collect()
    }

    #[test]
    fn what_no_simulation_can_tell_takes_turns_with_what_one_has_told() {
        let texts = ["write-back", "align", "demote", "demote + write-back", "h5:chunk-cache=1m"];
        let walls = [Some(0.9), Some(0.5), None, None, None];
        assert_eq!(
            labels(&texts, Some(1.0), &walls),
            ["align", "demote", "write-back", "h5:chunk-cache=1m", "demote + write-back"]
        );
    }

    #[test]
    fn what_is_predicted_to_be_slower_does_not_run_and_of_a_kind_two_do() {
        let texts = ["align", "write-back", "write-back:buffer=4m", "write-back:buffer=8m"];
        let walls = [Some(1.2), Some(0.5), Some(0.6), Some(0.7)];
        let ran = labels(&texts, Some(1.0), &walls);
        assert_eq!(ran, ["write-back", "write-back:buffer=4m"]);
        let hints = ["hints:a=1", "hints:a=2", "hints:a=3", "demote"];
        assert_eq!(labels(&hints, Some(1.0), &[None; 4]), ["hints:a=1", "demote", "hints:a=2"]);
    }

    #[test]
    fn without_a_prediction_of_the_plain_run_the_plainest_run_first() {
        let texts = ["align + null", "write-back", "write-back:buffer=4m"];
        assert_eq!(
            labels(&texts, None, &[None; 3]),
            ["write-back", "write-back:buffer=4m", "align + null"]
        );
    }
}
