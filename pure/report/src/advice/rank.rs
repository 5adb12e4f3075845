//! Candidates in the order of what the simulator says of them.

use super::Candidate;

/// A gain below this share is called none: nobody changes how a program is started for it, and the
/// order of runs alone can make as much.
pub const NOTEWORTHY: f64 = 0.02;
/// Run times this near to each other are one, and the plainest stack of them is preferred.
const ALIKE: f64 = 0.005;

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
