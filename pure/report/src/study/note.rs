//! What else to know about a study: a sentence where something makes its numbers mean less than they
//! seem to.

use super::{Interval, Runs, Tried, Verdict};
use crate::compare::{Run, compare};
use crate::prediction::Predicted;
use crate::text::signed_percent;
use crate::thousands::of_files;
use iolab_sim::band::Band;
use iolab_trace::{Class, Trace};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Up to so much a prediction of the plain run may be off without a word: three times the median
/// error of `benchmarks/prediction/results.md`.
const PLAIN_OFF: f64 = 0.25;

/// From this share on, a run is dominated by its start.
const START_SHARE: f64 = 0.2;

/// What to say where the plain run is predicted outside of what was measured by more than
/// [`PLAIN_OFF`]: by how much, and what the prediction starts from.
pub fn plain_missed(measured: Interval, predicted: Band, recorded_s: f64) -> Option<String> {
    let off = predicted.median / measured.middle - 1.0;
    let is_inside = (measured.low..=measured.high).contains(&predicted.median);
    if is_inside || off.abs() <= PLAIN_OFF {
        return None;
    }
    let milliseconds = |seconds: f64| format!("{:.1} ms", seconds * 1e3);
    Some(format!(
        "the plain run is predicted {} off: {} where {} to {} were measured. A prediction starts from \
         the recorded run, which lasted {}: what recording cost it beyond the usual for each call, as at \
         opening many files, and what else the machine did then, is still in it. Predictions of \
         strategies are their factor times the measured time, so of this error they have only what \
         it changes in the factor",
        signed_percent(off),
        milliseconds(predicted.median),
        milliseconds(measured.low),
        milliseconds(measured.high),
        milliseconds(recorded_s),
    ))
}

/// A run that mostly consists of starting the command says little about its I/O.
pub fn short_run(Predicted { prediction, .. }: &Predicted) -> Option<String> {
    let share = prediction.starting_share();
    (share >= START_SHARE).then(|| {
        format!(
            "{:.0} % of the predicted plain run is starting and loading the command ({:.1} of \
             {:.1} ms), which no model of storage knows well: predictions of so short a run are rough",
            share * 100.0,
            prediction.starting.seconds() * 1e3,
            prediction.wall.seconds() * 1e3
        )
    })
}

/// Why there is no prediction for a strategy, or for the plain run.
pub fn without_prediction(label: Option<&str>, why: &str) -> String {
    format!("no prediction for {}: {why}", label.unwrap_or("the plain run"))
}

/// Output outside of `directory`, which a study neither compares nor puts back.
pub fn writes_elsewhere(trace: &Trace, directory: &Path) -> Option<String> {
    let mut elsewhere: BTreeMap<&str, u64> = BTreeMap::new();
    let removals = trace.events.iter().filter(|e| e.function.class() == Class::Unlink);
    let removed: BTreeSet<_> = removals.filter(|e| e.result >= 0).map(|e| e.file).collect();
    for event in trace.events.iter().filter(|e| e.function.class() == Class::Write) {
        let entry = event.file.index().and_then(|index| trace.header.files.get(index));
        let path = entry.map_or("", |entry| entry.path.as_str());
        let inside = Path::new(path).starts_with(directory);
        let other = !path.starts_with('/') || path.starts_with("/dev/");
        // What is removed again is no output.
        if !inside && !other && !removed.contains(&event.file) {
            *elsewhere.entry(path).or_default() += event.moved_bytes();
        }
    }
    let (path, _) = elsewhere.iter().max_by_key(|(_, bytes)| **bytes)?;
    Some(format!(
        "the command writes {} outside {} ({path}), which are neither compared nor \
         put back; name its output directory with --output",
        of_files(elsewhere.len() as u64),
        directory.display(),
    ))
}

/// That plain runs differ among themselves, and in what.
pub fn not_deterministic(plain: &Runs) -> Option<String> {
    not_compared(&plain.differences)
}

/// The same of these differences.
pub fn not_compared(differences: &BTreeMap<String, String>) -> Option<String> {
    if differences.is_empty() {
        return None;
    }
    let names: Vec<&str> = differences.keys().map(String::as_str).take(5).collect();
    let names = names.join(", ");
    let told = match differences.len() {
        1 => format!("1 output ({names}), which is not compared"),
        count => format!("{count} outputs ({names}), which are not compared"),
    };
    Some(format!("the command is not deterministic: plain runs differ in {told}"))
}

/// Why the strategy that is shown is faster or slower, where it is: the largest difference of its recorded run
/// from the plain one in the same direction.
pub fn why(tried: &Tried, plain: &Trace, measured: &Trace) -> Option<String> {
    let run = |trace| Run { name: String::new(), trace };
    let found = compare(&[run(plain)], &[run(measured)]);
    let agrees = match tried.judgement.verdict {
        Verdict::Faster => found.slower_by() < 0.0,
        Verdict::Slower => found.slower_by() > 0.0,
        _ => false,
    };
    let reason = found.reason().filter(|_| agrees)?;
    let label = &tried.candidate.label;
    Some(format!("Most of it, in one recorded run of each (A plain, B {label}): {reason}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Kind;
    use iolab_trace::{Event, FileEntry, Function, Header};
    use iolab_vocab::FileId;

    #[test]
    fn a_plain_run_predicted_far_from_what_was_measured_is_told_with_what_it_starts_from() {
        let measured = Interval { low: 0.012, middle: 0.013, high: 0.014, kind: Kind::Median };
        let told = |seconds: f64| plain_missed(measured, Band::of(&[seconds]).unwrap(), 0.020);
        let note = told(0.0208).unwrap();
        for part in ["+60 %", "20.8 ms", "12.0 ms to 14.0 ms", "lasted 20.0 ms"] {
            assert!(note.contains(part), "{note}");
        }
        assert!(told(0.0065).unwrap().contains("-50 %"));
        assert_eq!((told(0.0139), told(0.0155)), (None, None));
    }

    #[test]
    fn output_elsewhere_is_told_unless_it_is_a_device_or_removed_again() {
        let paths = ["/out/a", "/tmp/small", "/tmp/large", "/dev/null", "/tmp/removed", "pipe"];
        let entry = |path: &&str| FileEntry { path: path.to_string(), ..FileEntry::default() };
        let event = |file, function, result| Event {
            file: FileId(file),
            length: result,
            result,
            ..Event::of(function)
        };
        let bytes = [9, 1, 5, 9, 9, 9];
        let writes = (0..).zip(bytes).map(|(file, bytes)| event(file, Function::WRITE, bytes));
        let events = writes.chain([event(4, Function::UNLINK, 0)]).collect();
        let header = Header { files: paths.iter().map(entry).collect(), ..Header::default() };
        let mut trace = Trace { header, events, ..Trace::default() };
        let note = writes_elsewhere(&trace, Path::new("/out")).unwrap();
        assert!(note.contains("writes 2 files outside /out (/tmp/large)"), "{note}");
        trace.events.truncate(1);
        assert_eq!(writes_elsewhere(&trace, Path::new("/out")), None);
    }

    #[test]
    fn a_command_whose_plain_runs_agree_is_deterministic() {
        assert_eq!(not_deterministic(&Runs::default()), None);
        let differences = ('a'..='g').map(|name| (name.to_string(), "differs".to_owned()));
        let plain = Runs { differences: differences.collect(), ..Runs::default() };
        let note = not_deterministic(&plain).unwrap();
        assert!(note.contains("in 7 outputs (a, b, c, d, e), which are"), "{note}");
        let one = Runs { differences: [("a".to_owned(), String::new())].into(), ..plain };
        assert!(
            not_deterministic(&one).unwrap().ends_with("in 1 output (a), which is not compared")
        );
    }
}
