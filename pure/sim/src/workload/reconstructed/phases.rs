//! When files were used: stretches of time with accesses, and what came to pass in each.
//!
//! A heat map tells bytes by bins of time; without one each record tells when its first access began and its
//! last one ended. Stretches that lie close together are one phase; what lies between phases is
//! taken for computing.

use super::sizes::Group;
use iolab_trace::import::counted::{Counted, Heat, Module, Record, Way};
use iolab_vocab::{Direction, Nanos};

/// More phases say no more.
const MOST_PHASES: usize = 16;
/// A pause below this share of the run is none.
const PAUSE_SHARE: u64 = 100;

pub(super) struct Phases {
    /// Beginnings and ends, ascending, with pauses between them.
    spans: Vec<(u64, u64)>,
    took_ns: u64,
    /// Bytes over time of the layer that was chosen.
    heat: Option<Heat>,
    source: &'static str,
}

impl Phases {
    /// The phases of a run.
    pub(super) fn of<'a>(
        counted: &Counted,
        records: impl Iterator<Item = &'a Record> + Clone,
    ) -> Phases {
        let name = match counted.modules.contains(&Module::Posix) {
            true => "POSIX",
            false => "MPIIO",
        };
        let heat = counted.heat.iter().find(|heat| heat.module == name);
        let took_ns = counted.took_ns.max(1);
        let mut stretches: Vec<(u64, u64)> = ways(records)
            .filter_map(|way| Some((way.first?.0, way.last?.0)))
            .filter(|(first, last)| *first <= took_ns && first <= last)
            .map(|(first, last)| (first, last.min(took_ns)))
            .collect();
        let heat =
            heat.filter(|heat| heat.read.iter().chain(&heat.written).any(|bytes| *bytes > 0));
        if let Some(heat) = heat {
            let bins = heat.read.iter().zip(&heat.written).enumerate();
            let active = bins.filter(|(_, (read, written))| **read > 0 || **written > 0);
            let active = active.map(|(bin, _)| {
                let start = (bin as u64).saturating_mul(heat.bin_ns);
                (start, start.saturating_add(heat.bin_ns))
            });
            let last = heat.read.len() as u64 * heat.bin_ns;
            // Streams are in no heat map of POSIX, and accesses may come behind its end.
            stretches.retain(|(first, _)| *first > last);
            stretches.extend(active);
        }
        let source = match heat.is_some() {
            true => "phases, from the bins of the heat map, and what share each file has in one",
            false => {
                "phases, from the first and the last access of each record, as if they were spread evenly between"
            }
        };
        Phases { spans: merged(stretches, took_ns), took_ns, heat: heat.cloned(), source }
    }

    /// All in one phase, from the first access on.
    pub(super) fn one<'a>(
        counted: &Counted,
        records: impl Iterator<Item = &'a Record> + Clone,
    ) -> Phases {
        let took_ns = counted.took_ns.max(1);
        let first = ways(records.clone()).filter_map(|way| way.first).min();
        let last = ways(records).filter_map(|way| way.last).max();
        let span = (
            first.map_or(0, |moment| moment.0.min(took_ns)),
            last.map_or(took_ns, |moment| moment.0.min(took_ns)),
        );
        let source = "that all accesses came one file after the other, as there are many records";
        Phases { spans: vec![span], took_ns, heat: None, source }
    }

    /// Where they come from.
    pub(super) fn source(&self) -> &'static str {
        self.source
    }

    pub(super) fn count(&self) -> usize {
        self.spans.len()
    }

    pub(super) fn span(&self, phase: usize) -> (u64, u64) {
        self.spans[phase]
    }

    /// The pause before a phase.
    pub(super) fn idle_ns(&self, phase: usize) -> u64 {
        let before = phase.checked_sub(1).map_or(0, |before| self.spans[before].1);
        self.spans[phase].0.saturating_sub(before)
    }

    /// From the end of the last one to the end of the run.
    pub(super) fn rest_ns(&self) -> u64 {
        self.took_ns.saturating_sub(self.spans.last().map_or(0, |span| span.1))
    }

    /// The phase of a moment, or the next one.
    pub(super) fn at(&self, moment: Nanos) -> usize {
        let next = self.spans.partition_point(|span| span.1 < moment.0);
        next.min(self.spans.len() - 1)
    }

    /// How many calls of each size fall into which phase.
    pub(super) fn split(
        &self,
        way: &Way,
        direction: Direction,
        groups: &[Group],
    ) -> Vec<(usize, Vec<Group>)> {
        let weights = self.weights(way, direction);
        let all: f64 = weights.iter().sum();
        let mut parts = Vec::new();
        let mut before = 0.0;
        for (phase, weight) in weights.iter().enumerate() {
            let after = before + weight;
            let is_last = weights[phase + 1..].iter().all(|weight| *weight == 0.0);
            let until =
                |share: f64, calls: u64| ((share / all * calls as f64).round() as u64).min(calls);
            let own = groups.iter().map(|group| {
                let end = if is_last { group.calls } else { until(after, group.calls) };
                Group { calls: end - until(before, group.calls).min(end), ..*group }
            });
            let own: Vec<Group> = own.filter(|group| group.calls > 0).collect();
            if *weight > 0.0 && !own.is_empty() {
                parts.push((phase, own));
            }
            before = after;
        }
        parts
    }

    /// What share of a record's accesses each phase has; one of them has some.
    fn weights(&self, way: &Way, direction: Direction) -> Vec<f64> {
        let first = way.first.map_or(0, |moment| moment.0);
        let last = way.last.map_or(first, |moment| moment.0);
        let overlap =
            |from: u64, until: u64| until.min(last.max(first + 1)).saturating_sub(from.max(first));
        let mut weights: Vec<f64> = vec![0.0; self.spans.len()];
        if let Some(heat) = &self.heat {
            let bins = match direction {
                Direction::Read => &heat.read,
                Direction::Write => &heat.written,
            };
            for (bin, bytes) in bins.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
                let start = (bin as u64).saturating_mul(heat.bin_ns);
                let part = overlap(start, start.saturating_add(heat.bin_ns));
                let share = part as f64 / heat.bin_ns as f64;
                weights[self.at(Nanos(start + heat.bin_ns / 2))] += *bytes as f64 * share;
            }
        }
        if weights.iter().all(|weight| *weight <= 0.0) {
            let spans = self.spans.iter().map(|(from, until)| overlap(*from, *until) as f64);
            weights = spans.collect();
        }
        if weights.iter().all(|weight| *weight <= 0.0) {
            weights[self.at(Nanos(first))] = 1.0;
        }
        weights
    }
}

fn ways<'a>(records: impl Iterator<Item = &'a Record>) -> impl Iterator<Item = &'a Way> {
    records.flat_map(|record| [&record.reads, &record.writes]).filter(|way| way.calls > 0)
}

/// Stretches as phases: close ones together, and the closest until there are few.
fn merged(mut stretches: Vec<(u64, u64)>, took_ns: u64) -> Vec<(u64, u64)> {
    stretches.sort_unstable();
    let pause = took_ns / PAUSE_SHARE;
    let mut spans: Vec<(u64, u64)> = Vec::new();
    for (first, last) in stretches {
        match spans.last_mut() {
            Some(span) if first <= span.1.saturating_add(pause) => span.1 = span.1.max(last),
            _ => spans.push((first, last)),
        }
    }
    while spans.len() > MOST_PHASES {
        let gap = |at: &usize| spans[at + 1].0 - spans[*at].1;
        let closest = (0..spans.len() - 1).min_by_key(gap).unwrap_or(0);
        spans[closest].1 = spans.remove(closest + 1).1;
    }
    if spans.is_empty() {
        spans.push((0, 0));
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_shared_out_over_the_phases_that_a_record_spans_and_none_is_lost() {
        let phases = Phases {
            spans: vec![(0, 100), (500, 600), (900, 1_000)],
            took_ns: 1_000,
            heat: None,
            source: "",
        };
        let way = Way { first: Some(Nanos(50)), last: Some(Nanos(600)), ..Way::default() };
        let groups = [Group { bytes: 8, calls: 10 }, Group { bytes: 9, calls: 1 }];
        let split = phases.split(&way, Direction::Read, &groups);
        let calls = |phase: usize| split[phase].1.iter().map(|group| group.calls).sum::<u64>();
        assert_eq!(split.iter().map(|part| part.0).collect::<Vec<_>>(), [0, 1]);
        assert_eq!((calls(0), calls(0) + calls(1)), (3, 11));
        let never = phases.split(&Way::default(), Direction::Read, &groups);
        assert_eq!(never, [(0, groups.to_vec())]);
    }

    #[test]
    fn stretches_with_short_pauses_are_one_phase_and_there_are_few_of_them() {
        assert_eq!(merged(vec![(500, 600), (0, 10), (15, 20)], 1_000), [(0, 20), (500, 600)]);
        let many: Vec<_> =
            (0..100).map(|at| (at * 1_000 + at * at, at * 1_000 + at * at + 1)).collect();
        let spans = merged(many, 100_000);
        assert_eq!(spans.len(), MOST_PHASES);
        assert_eq!((spans[0].0, spans[MOST_PHASES - 1].1), (0, 99 * 1_000 + 99 * 99 + 1));
        assert_eq!(merged(Vec::new(), 5), [(0, 0)]);
    }
}
