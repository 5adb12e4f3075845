//! A recorded run beside its prediction: how long each call of MPI-IO took, and was predicted to take.
//!
//! Calls are paired by rank, function and order: the same program makes the same calls in the same order.
//! The error of a call is how far its prediction is from what was measured, over what was measured; of many
//! calls, half are within the median error, and nine of ten within the other bound that is told.
//! Costs: one pass over both traces, and sorting.

use crate::statistics::median;
use crate::text::duration;
use iolab_trace::{Function, Layer, Trace};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;

/// Measured and predicted calls of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    kinds: Vec<Kind>,
    all: Vec<f64>,
    /// Measured calls that were not predicted, or the other way round.
    unpaired: u64,
}

/// The calls of one function.
#[derive(Clone, Debug, PartialEq)]
struct Kind {
    name: &'static str,
    measured_ns: Vec<f64>,
    predicted_ns: Vec<f64>,
    errors: Vec<f64>,
}

impl Compared {
    /// Pairs the calls of both traces.
    pub fn of(measured: &Trace, predicted: &Trace) -> Compared {
        let mut waiting = by_call(predicted);
        let mut pairs: BTreeMap<Function, Vec<(u64, u64)>> = BTreeMap::new();
        let mut unpaired = 0;
        for (call, times) in by_call(measured) {
            let predicted = waiting.remove(&call).unwrap_or_default();
            unpaired += times.len().abs_diff(predicted.len()) as u64;
            pairs.entry(call.1).or_default().extend(times.into_iter().zip(predicted));
        }
        unpaired += waiting.values().map(|times| times.len() as u64).sum::<u64>();
        pairs.retain(|_, pairs| !pairs.is_empty());
        let kinds: Vec<Kind> = pairs.iter().map(|(it, pairs)| Kind::of(*it, pairs)).collect();
        let mut all: Vec<f64> = kinds.iter().flat_map(|kind| kind.errors.clone()).collect();
        all.sort_by(f64::total_cmp);
        Compared { kinds, all, unpaired }
    }

    /// Half of the calls are predicted within this share of what they took, and nine of ten within that.
    fn bounds(&self) -> Option<(f64, f64)> {
        let last = self.all.len().checked_sub(1)?;
        Some((median(&self.all), self.all[last * 9 / 10]))
    }

    /// For people: a row for each kind of call, and how far to trust the prediction.
    pub fn text(&self) -> String {
        let Some((half, most)) = self.bounds() else {
            return "\nno call that was recorded is among those that were simulated\n".to_owned();
        };
        let mut text = format!(
            "\n{:<30} {:>8} {:>12} {:>12} {:>9}\n",
            "call, medians", "calls", "measured", "predicted", "error"
        );
        for kind in &self.kinds {
            let [measured, predicted] =
                [&kind.measured_ns, &kind.predicted_ns].map(|times| duration(median(times) as u64));
            let error = percent(median(&kind.errors));
            let (name, count) = (kind.name, kind.errors.len());
            let _ =
                writeln!(text, "{name:<30} {count:>8} {measured:>12} {predicted:>12} {error:>9}");
        }
        let (half, most) = (percent(half), percent(most));
        let _ = writeln!(
            text,
            "half of the calls are predicted within {half}, nine of ten within {most}"
        );
        if self.unpaired > 0 {
            let _ = writeln!(text, "{} calls have no counterpart and are left out", self.unpaired);
        }
        text
    }

    /// The same as a document.
    pub(super) fn json(&self) -> Value {
        let kinds: Vec<Value> = self
            .kinds
            .iter()
            .map(|kind| {
                json!({
                    "call": kind.name,
                    "count": kind.errors.len(),
                    "measured_ns": median(&kind.measured_ns),
                    "predicted_ns": median(&kind.predicted_ns),
                    "error": median(&kind.errors),
                })
            })
            .collect();
        let bounds = self.bounds();
        json!({
            "calls": kinds,
            "error_half": bounds.map(|bounds| bounds.0),
            "error_nine_of_ten": bounds.map(|bounds| bounds.1),
            "unpaired": self.unpaired,
        })
    }
}

impl Kind {
    fn of(function: Function, pairs: &[(u64, u64)]) -> Kind {
        let error = |&(measured, predicted): &(u64, u64)| {
            measured.abs_diff(predicted) as f64 / measured.max(1) as f64
        };
        Kind {
            name: function.name(),
            measured_ns: pairs.iter().map(|pair| pair.0 as f64).collect(),
            predicted_ns: pairs.iter().map(|pair| pair.1 as f64).collect(),
            errors: pairs.iter().map(error).collect(),
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// How long the calls of MPI-IO took, by rank and function, in their order.
fn by_call(trace: &Trace) -> BTreeMap<(i32, Function), VecDeque<u64>> {
    let mut calls: BTreeMap<_, VecDeque<u64>> = BTreeMap::new();
    let is_call =
        |function: Function| function.layer() == Layer::Mpiio && function != Function::VIEW_PIECE;
    for event in trace.events.iter().filter(|event| event.rank >= 0 && is_call(event.function)) {
        let times = calls.entry((event.rank, event.function)).or_default();
        times.push_back(event.end.since(event.start).0);
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_trace::Event;
    use iolab_vocab::Nanos;

    fn trace(calls: &[(i32, Function, u64, u64)]) -> Trace {
        let event = |&(rank, function, start, bytes): &(i32, Function, u64, u64)| Event {
            rank,
            start: Nanos(start),
            end: Nanos(start + bytes),
            ..Event::of(function)
        };
        Trace { events: calls.iter().map(event).collect(), ..Trace::default() }
    }

    #[test]
    fn calls_are_paired_by_rank_function_and_order() {
        let (write, sync) = (Function::MPI_FILE_WRITE_ALL, Function::MPI_FILE_SYNC);
        let measured = trace(&[
            (0, write, 0, 100),
            (1, write, 0, 200),
            (0, write, 500, 400),
            (0, sync, 900, 50),
        ]);
        let predicted = trace(&[(1, write, 0, 300), (0, write, 0, 110), (0, write, 200, 200)]);
        let compared = Compared::of(&measured, &predicted);
        assert_eq!(compared.unpaired, 1);
        assert_eq!(compared.all, [0.1, 0.5, 0.5]);
        assert_eq!(compared.kinds.len(), 1);
        let text = compared.text();
        assert!(text.contains("within 50 %, nine of ten within 50 %"), "{text}");
        assert!(Compared::of(&measured, &trace(&[])).text().contains("no call that was recorded"));
    }
}
