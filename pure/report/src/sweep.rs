//! The runs of a sweep: what is told of each, as a table and as a picture.
//!
//! A [`Line`] is one combination of parameters, the median of its orders of simultaneous events, or
//! why it failed. It reads back from its JSON as it was written, to the last bit of every number, so
//! that a sweep that was killed goes on where it was. [`Results`] costs one pass over the lines for a
//! table; the picture looks at every line once for each of its points.

mod plot;
mod table;

use iolab_sim::band::Band;
use iolab_sim::sweep::{Sweep, written};
use iolab_sim::workload::Outcome;
use iolab_vocab::Refusal;
use serde::{Deserialize, Serialize};

/// What is told of each run, beside its parameters: of the median run, then the range of all.
pub const NUMBERS: [&str; 16] = [
    "seconds",
    "events",
    "read_bytes",
    "written_bytes",
    "device_read_bytes",
    "device_written_bytes",
    "no_seek",
    "near",
    "far",
    "queue_max",
    "server_busy_mean",
    "server_busy_max",
    "link_busy_max",
    "seconds_low",
    "seconds_high",
    "tie_seeds",
];

/// A finished run.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Line {
    /// Its number in the sweep.
    pub run: u64,
    /// Why it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// As [`NUMBERS`] names them; empty for a run that failed.
    #[serde(with = "exact")]
    pub numbers: Vec<f64>,
}

impl Line {
    /// What the runs of a combination came to: the median one and the band of all.
    pub fn of(run: u64, outcome: Result<(Outcome, Band), Refusal>) -> Line {
        match outcome {
            Ok((outcome, band)) => {
                let numbers = [numbers(&outcome), vec![band.low, band.high, band.count as f64]];
                Line { run, error: None, numbers: numbers.concat() }
            }
            Err(error) => Line { run, error: Some(error.message), numbers: Vec::new() },
        }
    }

    /// Whether it tells all that is told of a run, or why there is nothing to tell. Lines of single runs,
    /// from before answers were medians, do not.
    pub fn is_whole(&self) -> bool {
        self.error.is_some() || self.numbers.len() == NUMBERS.len()
    }

    /// Least, median and greatest seconds of a run that did not fail.
    pub fn range(&self) -> Option<[f64; 3]> {
        let number = |name: &str| {
            let place = NUMBERS.iter().position(|one| *one == name)?;
            self.numbers.get(place).copied()
        };
        Some([number("seconds_low")?, number("seconds")?, number("seconds_high")?])
    }
}

/// Numbers as the shortest text that reads back as the same number; a JSON number may not.
mod exact {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(numbers: &[f64], to: S) -> Result<S::Ok, S::Error> {
        let texts: Vec<String> = numbers.iter().map(f64::to_string).collect();
        texts.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
    }
}

fn numbers(outcome: &Outcome) -> Vec<f64> {
    let phases = || outcome.applications.iter().flat_map(|one| &one.phases);
    let servers = || outcome.servers.iter().map(|server| server.totals);
    let sum = |values: &mut dyn Iterator<Item = u64>| values.sum::<u64>() as f64;
    let end = outcome.end.0.max(1) as f64;
    let busy = |nanos: u64| nanos as f64 / end;
    let busy_sum = sum(&mut servers().map(|all| all.device.busy_nanos));
    let most = |values: &mut dyn Iterator<Item = u64>| values.max().unwrap_or(0);
    vec![
        outcome.end.seconds(),
        outcome.event_count as f64,
        sum(&mut phases().map(|phase| phase.read_bytes)),
        sum(&mut phases().map(|phase| phase.written_bytes)),
        sum(&mut servers().map(|all| all.device.read_bytes)),
        sum(&mut servers().map(|all| all.device.written_bytes)),
        sum(&mut servers().map(|all| all.device.no_seek_count)),
        sum(&mut servers().map(|all| all.device.near_count)),
        sum(&mut servers().map(|all| all.device.far_count)),
        most(&mut servers().map(|all| all.queue_max)) as f64,
        busy_sum / end / outcome.servers.len().max(1) as f64,
        busy(most(&mut servers().map(|all| all.device.busy_nanos))),
        busy(most(&mut outcome.links.iter().map(|link| link.totals.busy_nanos))),
    ]
}

/// The runs of a sweep, by number.
#[derive(Clone, Copy, Debug)]
pub struct Results<'a> {
    /// What was varied.
    pub sweep: &'a Sweep,
    /// What came of it.
    pub lines: &'a [Line],
}

impl Results<'_> {
    /// The parameters of a run as text, in the order of their names.
    pub fn values(&self, line: &Line) -> Vec<String> {
        self.sweep.values(line.run).into_iter().map(written).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_back_as_it_was_written_to_the_last_bit() {
        let numbers = vec![0.1 + 0.2, 1e-300, f64::MAX, 3.0];
        let line = Line { run: 7, error: None, numbers };
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(serde_json::from_str::<Line>(&text).unwrap(), line);
        assert!(!text.contains("error") && !line.is_whole(), "{text}");
        let failed = Line::of(3, Err(Refusal::new("no such cache", "name another")));
        assert_eq!((failed.error.as_deref(), failed.range()), (Some("no such cache"), None));
        assert!(failed.is_whole());
    }
}
