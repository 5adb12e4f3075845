//! What is predicted of a recorded program: the recorded run, the plain one and the one under
//! strategies beside each other, and the files that take the time.
//!
//! A prediction is the median run of a band of orders of simultaneous events ([`Predicted`]). The plain
//! run is predicted twice, with recorded times of calls and by the model alone; how far these are
//! apart is the bias of the model. Both faces cost one pass over the events of the trace.

use crate::text::signed_percent;
use iolab_policy::insitu::{Counts, StrategySpec, Totals};
use iolab_sim::band::Band;
use iolab_sim::guest::Prediction;
use iolab_trace::Trace;
use iolab_vocab::{Nanos, format_bytes, printable};
use serde_json::{Value, json};

/// Why there is no bias of the model where storage is of another kind.
const NOT_COMPARABLE: &str = "no bias of the model: the calls were recorded on local storage, the platform is a \
                              cluster, and their times cannot be compared";

/// The prediction that is the median, and the band of run times it is of.
#[derive(Clone, Debug)]
pub struct Predicted {
    /// The run in the middle.
    pub prediction: Prediction,
    /// How far the others are from it.
    pub band: Band,
}

/// What is told: the recorded run, the plain one and the one under strategies.
#[derive(Clone, Debug)]
pub struct Summary {
    /// How long the recorded run took.
    pub recorded: Nanos,
    /// Its time in calls.
    pub recorded_io: Nanos,
    /// The run without strategies.
    pub plain: Predicted,
    /// The same where no call keeps its recorded time.
    pub plain_by_model: Predicted,
    /// The run under strategies where no call keeps its recorded time.
    pub by_model: Predicted,
    /// The run under strategies.
    pub predicted: Predicted,
    /// The program was recorded on local storage; here its transfers go to servers.
    pub is_cluster: bool,
    /// What to know about the platform.
    pub notes: Vec<String>,
}

/// Bytes moved and time in calls of one file.
struct PerFile {
    path: String,
    calls: u64,
    bytes: u64,
    recorded: Nanos,
    predicted: Nanos,
}

impl Summary {
    /// How far the model alone is off on the plain run, relative; nothing where the calls were
    /// recorded on storage of another kind than the model is of.
    fn bias(&self) -> Option<f64> {
        let io = |predicted: &Predicted| predicted.prediction.io.seconds();
        (!self.is_cluster).then(|| io(&self.plain_by_model) / io(&self.plain).max(1e-9) - 1.0)
    }

    fn files(&self, trace: &Trace) -> Vec<PerFile> {
        let empty = |path: &String| PerFile {
            path: path.clone(),
            calls: 0,
            bytes: 0,
            recorded: Nanos::ZERO,
            predicted: Nanos::ZERO,
        };
        let mut files: Vec<PerFile> =
            trace.header.files.iter().map(|entry| empty(&entry.path)).collect();
        let pairs = trace.events.iter().zip(&self.predicted.prediction.trace.events);
        for (recorded, predicted) in pairs {
            let Some(file) = recorded.file.index().and_then(|file| files.get_mut(file)) else {
                continue;
            };
            if recorded.function.is_system_call() {
                file.calls += 1;
                file.bytes += recorded.moved_bytes();
                file.recorded = file.recorded.after(recorded.duration());
                file.predicted = file.predicted.after(predicted.duration());
            }
        }
        files.retain(|file| file.calls > 0);
        files.sort_by_key(|file| std::cmp::Reverse(file.recorded));
        files
    }

    /// For people: a line per run, what they rest on, and the files that took the most time.
    pub fn text(&self, trace: &Trace, apply: &[StrategySpec]) -> String {
        let row = |name: &str, wall: Nanos, io: Nanos| {
            format!("{name:<44} {:>12} {:>12}", milliseconds(wall), milliseconds(io))
        };
        let banded = |name: &str, Predicted { prediction, band }: &Predicted| {
            let range = match band.is_one_value() {
                true => String::new(),
                false => format!("  run time {:.3} to {:.3}", band.low * 1e3, band.high * 1e3),
            };
            format!("{}{range}\n", row(name, prediction.wall, prediction.io))
        };
        let mut text = format!("{:<44} {:>12} {:>12}\n", "", "run time ms", "in calls ms");
        text += &row("recorded (with the recorder)", self.recorded, self.recorded_io);
        text.push('\n');
        text += &banded("plain, predicted", &self.plain);
        text += &banded("plain, by the model alone", &self.plain_by_model);
        if !apply.is_empty() {
            let names: Vec<_> = apply.iter().map(|spec| spec.text.as_str()).collect();
            text += &banded(&names.join(" + "), &self.predicted);
            text += &banded("  by the model alone", &self.by_model);
            text += &self.speed_up();
        }
        let prediction = &self.predicted.prediction;
        for line in prediction.counted.lines() {
            text += &format!("{line}\n");
        }
        if let Some(stored) = prediction.stored {
            let stored = milliseconds(stored);
            text += &format!("all data on the servers' devices after {stored} ms\n");
        }
        text += &self.orders();
        text += &format!(
            "starting the command takes {} ms, {:.0} % of the plain run time\n",
            milliseconds(self.plain.prediction.starting),
            self.plain.prediction.starting_share() * 100.0
        );
        text += &match self.bias() {
            Some(bias) => {
                format!("bias of the model on the recorded calls {}\n", signed_percent(bias))
            }
            None => format!("{NOT_COMPARABLE}\n"),
        };
        for note in &self.notes {
            text += &format!("note: {note}\n");
        }
        text += &format!("event hash {:016x}\n", prediction.event_hash);
        text + &self.file_table(trace)
    }

    /// What the predictions rest on.
    fn orders(&self) -> String {
        match self.predicted.band.count {
            1 => "one order of simultaneous events\n".to_owned(),
            count => format!(
                "predictions are medians over {count} orders of simultaneous events (--seeds)\n"
            ),
        }
    }

    fn speed_up(&self) -> String {
        let ratio = self.plain.band.ratio(&self.predicted.band);
        let range = match ratio.is_one_value() {
            true => String::new(),
            false => format!(" ({:.2} to {:.2})", ratio.low, ratio.high),
        };
        let prediction = &self.predicted.prediction;
        let (staged, performed) = (prediction.staged_calls, prediction.performed_calls);
        format!("speed-up {:.2}{range}; {staged} calls in, {performed} calls out\n", ratio.median)
    }

    /// The files that took the most time.
    fn file_table(&self, trace: &Trace) -> String {
        let titles = ["calls", "bytes", "recorded ms", "predicted ms"];
        let line = |cells: [&str; 4], path: &str| {
            let [calls, bytes, recorded, predicted] = cells;
            format!("{calls:>10} {bytes:>10} {recorded:>12} {predicted:>12}  {path}\n")
        };
        let mut text = format!("\n{}", line(titles, "file"));
        for file in self.files(trace).iter().take(20) {
            let (calls, bytes) = (file.calls.to_string(), format_bytes(file.bytes));
            let (recorded, predicted) = (milliseconds(file.recorded), milliseconds(file.predicted));
            let path = printable(&file.path);
            text += &line([&calls, &bytes, &recorded, &predicted], &path);
        }
        text
    }

    /// The same as one document; times in nanoseconds.
    pub fn json(&self, trace: &Trace) -> Value {
        let nanos = |seconds: f64| (seconds * 1e9).round() as u64;
        let run = |Predicted { prediction, band }: &Predicted| {
            json!({
                "wall_ns": prediction.wall.0,
                "io_ns": prediction.io.0,
                "starting_ns": prediction.starting.0,
                "wall_low_ns": nanos(band.low),
                "wall_high_ns": nanos(band.high),
                "tie_seeds": band.count,
            })
        };
        let prediction = &self.predicted.prediction;
        let files: Vec<_> = self
            .files(trace)
            .iter()
            .map(|file| {
                json!({
                    "path": file.path,
                    "calls": file.calls,
                    "bytes": file.bytes,
                    "recorded_ns": file.recorded.0,
                    "predicted_ns": file.predicted.0,
                })
            })
            .collect();
        json!({
            "recorded": { "wall_ns": self.recorded.0, "io_ns": self.recorded_io.0 },
            "plain": run(&self.plain),
            "plain_by_model": run(&self.plain_by_model),
            "predicted": run(&self.predicted),
            "predicted_by_model": run(&self.by_model),
            "stored_ns": prediction.stored.map(Nanos::get),
            "model_bias": self.bias(),
            "notes": self.notes,
            "staged_calls": prediction.staged_calls,
            "performed_calls": prediction.performed_calls,
            "counted": counted(&prediction.counted),
            "event_hash": format!("{:016x}", prediction.event_hash),
            "files": files,
        })
    }
}

/// What strategies that count have counted, as rows of place, file and numbers.
pub fn counted(totals: &Totals) -> Value {
    let row = |(place, file, counts): (&str, &str, &Counts)| {
        let numbers = Counts::KINDS.iter().map(|kind| kind.replace(' ', "_")).zip(counts.0);
        let mut row = json!({ "place": place, "file": file });
        numbers.for_each(|(kind, number)| row[kind] = number.into());
        row
    };
    totals.rows().map(row).collect()
}

fn milliseconds(time: Nanos) -> String {
    format!("{:.3}", time.seconds() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_sim::band::over_ties;
    use iolab_sim::guest::{Settings, orders, predict};
    use iolab_sim::platform::Platform;
    use iolab_trace::{Event, FileEntry, Function, Header, Origin, ProcessEntry};
    use iolab_vocab::{FileId, Seed};

    /// One process that opens a file and writes to it ten times.
    fn trace() -> Trace {
        let file = FileId(0);
        let (start, end) = (Nanos(1000), Nanos(6000));
        let mut events =
            vec![Event { file, fd: 3, result: 3, start, end, ..Event::of(Function::OPEN) }];
        for number in 0..10 {
            let start = Nanos(10_000 * (number + 1));
            let (offset, end) = (4096 * number as i64, Nanos(start.0 + 5000));
            let write = Event {
                file,
                fd: 3,
                offset,
                length: 4096,
                result: 4096,
                start,
                end,
                ..Event::of(Function::WRITE)
            };
            events.push(write);
        }
        let process = ProcessEntry { pid: 1, rank: -1, end_ns: 120_000, ..ProcessEntry::default() };
        let path = "/data/f".to_owned();
        let header = Header {
            origin: Origin::Recorded,
            processes: vec![process],
            files: vec![FileEntry { path, ..FileEntry::default() }],
            ..Header::default()
        };
        Trace { header, events, ..Trace::default() }
    }

    fn told(platform: &str) -> (String, Value) {
        let (trace, platform) = (trace(), Platform::preset(platform).unwrap());
        let seeds = [Seed(1), Seed(2), Seed(3)];
        let run = |seed| predict(&trace, &platform, &[], &Settings { seed, ..Settings::default() });
        let predict = || {
            let seeds = orders(&trace, &platform, &seeds);
            let (prediction, band) = over_ties(seeds, run, |one| one.wall.seconds()).unwrap();
            Predicted { prediction, band }
        };
        let summary = Summary {
            recorded: Nanos(120_000),
            recorded_io: Nanos(55_000),
            plain: predict(),
            plain_by_model: predict(),
            by_model: predict(),
            predicted: predict(),
            is_cluster: !platform.nodes.is_empty(),
            notes: Vec::new(),
        };
        (summary.text(&trace, &[]), summary.json(&trace))
    }

    #[test]
    fn a_local_trace_has_a_bias_of_the_model_only_on_local_storage() {
        let (text, json) = told("local-ext4");
        assert!(text.contains("bias of the model on the recorded calls"), "{text}");
        assert!(json["model_bias"].is_number() && text.contains("one order of simultaneous"));
        let (text, json) = told("classic-hdd");
        assert!(
            text.contains("cannot be compared") && !text.contains("recorded calls +"),
            "{text}"
        );
        assert!(json["model_bias"].is_null() && json["predicted"]["tie_seeds"] == 3);
    }

    #[test]
    fn what_starting_the_command_takes_is_told_as_a_share_of_the_run_time() {
        let (text, json) = told("local-ext4");
        assert!(text.contains("% of the plain run time"), "{text}");
        assert!(json["plain"]["starting_ns"].as_u64() <= json["plain"]["wall_ns"].as_u64());
    }
}
