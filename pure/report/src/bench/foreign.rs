//! Results of other benchmarks, as measurements beside ours: IOR (JSON), mdtest, IO500 and elbencho (CSV).
//!
//! What such a result does not say stays empty (0 in a document): times of single ranks, latencies, the
//! machine. Where a speed is told and bytes are not, bytes are speed times time. The tool is told as a
//! setting, `source`, so that no two tools are taken for repetitions of each other.
//!
//! Source of the forms: `ior-output.c` and `mdtest.c` of IOR 3.3 to 4.0, `io500` of 2020 on (its README),
//! `docs/csv-docs` and the statistics of elbencho 3.

use super::{FORMAT_VERSION, Measurement, Outcome};
use serde_json::Value;
use std::collections::BTreeMap;

const MIB: f64 = 1_048_576.0;
/// No benchmark was faster or longer; what is above is damaged.
const MOST: f64 = 1e18;

/// A result of another tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Foreign {
    /// The tool.
    pub source: String,
    /// Its measurements.
    pub outcome: Outcome,
    /// What it says besides, a sentence each.
    pub notes: Vec<String>,
}

/// What a text is the result of, if it is one of a tool that is known.
///
/// # Errors
/// What is wrong with it, if it begins as such a result does.
pub fn foreign(text: &str) -> Option<Result<Foreign, String>> {
    let read = if text.trim_start().starts_with('{') {
        let document: Value = serde_json::from_str(text).ok()?;
        if document.get("format").is_some() || document.get("tests").is_none() {
            return None;
        }
        ior(&document)
    } else if text.lines().any(|line| line.starts_with("[RESULT]")) {
        io500(text)
    } else if text.contains("mdtest") && text.lines().any(|line| line.starts_with("SUMMARY")) {
        mdtest(text)
    } else if text.lines().next().is_some_and(|line| line.contains("MiB/s [last]")) {
        elbencho(text)
    } else {
        return None;
    };
    Some(read.and_then(|foreign| match foreign.outcome.measurements.is_empty() {
        true => {
            Err(format!("it looks like a result of {}, but has no measurement", foreign.source))
        }
        false => Ok(foreign),
    }))
}

/// Measurements in the making; repetitions of what is alike are numbered.
struct Draft {
    foreign: Foreign,
    seen: BTreeMap<Vec<String>, u32>,
}

/// One phase, as other tools tell it.
#[derive(Default)]
struct Phase {
    phase: String,
    pattern: String,
    method: String,
    size: Option<u64>,
    ranks: u32,
    mib_per_second: f64,
    operations_per_second: f64,
    operations: f64,
    seconds: f64,
    open_s: f64,
    close_s: f64,
    total_s: f64,
    bytes: Option<f64>,
    invalid: Option<String>,
    settings: Vec<(&'static str, String)>,
}

impl Draft {
    fn of(source: &str) -> Draft {
        let outcome = Outcome {
            format: "iolab-bench".to_owned(),
            format_version: FORMAT_VERSION,
            version: source.to_owned(),
            ..Outcome::default()
        };
        let foreign = Foreign { source: source.to_owned(), outcome, notes: Vec::new() };
        Draft { foreign, seen: BTreeMap::new() }
    }

    fn push(&mut self, phase: Phase) {
        let ns = |seconds: f64| (bounded(seconds) * 1e9) as u64;
        let bytes = phase.bytes.unwrap_or(phase.mib_per_second * MIB * phase.seconds);
        let mut settings: BTreeMap<String, String> =
            phase.settings.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        settings.insert("source".to_owned(), self.foreign.source.clone());
        let key = vec![
            phase.phase.clone(),
            phase.pattern.clone(),
            phase.method.clone(),
            format!("{:?} {} {settings:?}", phase.size, phase.ranks),
        ];
        let repetition = self.seen.entry(key).or_default();
        self.foreign.outcome.ranks = self.foreign.outcome.ranks.max(phase.ranks);
        self.foreign.outcome.measurements.push(Measurement {
            test: self.foreign.source.clone(),
            spatial: phase.pattern,
            temporal: phase.phase.clone(),
            method: phase.method,
            phase: phase.phase,
            size: phase.size,
            repetition: *repetition,
            ranks: phase.ranks,
            // Something was moved, or there is no bandwidth.
            bytes: match phase.mib_per_second > 0.0 {
                true => (bounded(bytes) as u64).max(1),
                false => 0,
            },
            operations: bounded(phase.operations) as u64,
            transfer_ns: ns(phase.seconds),
            open_ns: ns(phase.open_s),
            close_ns: ns(phase.close_s),
            total_ns: ns(phase.total_s),
            mib_per_second: bounded(phase.mib_per_second),
            operations_per_second: bounded(phase.operations_per_second),
            invalid: phase.invalid,
            settings,
            ..Measurement::default()
        });
        *repetition += 1;
    }
}

/// A number that a measurement may have; 0 for what is none.
fn bounded(value: f64) -> f64 {
    if value.is_finite() { value.clamp(0.0, MOST) } else { 0.0 }
}

fn ior(document: &Value) -> Result<Foreign, String> {
    let text = |value: &Value, key: &str| match value.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    };
    let number = |value: &Value, key: &str| match value.get(key) {
        Some(Value::String(text)) => text.trim().parse().unwrap_or(0.0),
        Some(other) => other.as_f64().unwrap_or(0.0),
        None => 0.0,
    };
    let version = text(document, "Version");
    let mut draft = Draft::of(format!("IOR {version}").trim_end());
    let tests = document.get("tests").and_then(Value::as_array).ok_or("`tests` is no list")?;
    draft.foreign.outcome.surroundings.host =
        text(document, "Machine").split_whitespace().nth(1).unwrap_or_default().to_owned();
    draft.foreign.outcome.command =
        text(document, "Command line").split_whitespace().map(str::to_owned).collect();
    let nothing = Value::Null;
    for test in tests {
        let options = test.get("Options").unwrap_or(&nothing);
        let parameters = test.get("Parameters").unwrap_or(&nothing);
        let results = test.get("Results").or_else(|| options.get("Results"));
        let results = results.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let collective = number(parameters, "collective") > 0.0;
        let method =
            format!("{}{}", text(options, "api"), if collective { " collective" } else { "" });
        let order = text(options, "ordering in a file");
        let access = [text(options, "access"), order].join(" ").trim().to_owned();
        // Some versions have a list of each repetition.
        let flat = results
            .iter()
            .flat_map(|it| it.as_array().map_or(std::slice::from_ref(it), Vec::as_slice));
        for result in flat {
            let xfer = number(result, "xferKiB") * 1024.0;
            draft.push(Phase {
                phase: text(result, "access"),
                pattern: access.clone(),
                method: method.clone(),
                size: (xfer >= 1.0).then_some(bounded(xfer) as u64),
                ranks: bounded(number(options, "tasks")).min(u32::MAX.into()) as u32,
                mib_per_second: number(result, "bwMiB"),
                operations_per_second: number(result, "iops"),
                seconds: match number(result, "totalTime") {
                    0.0 => number(result, "wrRdTime"),
                    total => total,
                },
                open_s: number(result, "openTime"),
                close_s: number(result, "closeTime"),
                total_s: number(result, "totalTime"),
                settings: vec![
                    ("block", format!("{} KiB", number(result, "blockKiB"))),
                    ("segments", text(options, "segments")),
                ],
                ..Phase::default()
            });
        }
    }
    Ok(draft.foreign)
}

fn io500(text: &str) -> Result<Foreign, String> {
    let mut draft = Draft::of("IO500");
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["[RESULT]", name, value, unit, ..] => {
                let wrong = || format!("`{line}` is no result");
                let value: f64 = value.parse().map_err(|_| wrong())?;
                let seconds = words.iter().position(|word| *word == "time");
                let seconds =
                    seconds.and_then(|at| words.get(at + 1)?.parse::<f64>().ok()).unwrap_or(0.0);
                let (mib_per_second, operations_per_second) = match unit {
                    "GiB/s" => (value * 1024.0, 0.0),
                    "kIOPS" => (0.0, value * 1000.0),
                    _ => return Err(wrong()),
                };
                draft.push(Phase {
                    phase: name.to_owned(),
                    pattern: name.rsplit_once('-').map_or(name, |(pattern, _)| pattern).to_owned(),
                    method: if name.starts_with("ior") { "IOR" } else { "mdtest" }.to_owned(),
                    mib_per_second,
                    operations_per_second,
                    operations: operations_per_second * seconds,
                    seconds,
                    invalid: line.contains("[INVALID]").then(|| "IO500 says so".to_owned()),
                    ..Phase::default()
                });
            }
            ["[SCORE", ..] | ["[SCORE]", ..] => {
                draft.foreign.notes.push(
                    line.trim_start_matches("[SCORE")
                        .trim_start_matches([' ', ']'])
                        .trim()
                        .to_owned(),
                );
            }
            _ => {}
        }
    }
    Ok(draft.foreign)
}

fn mdtest(text: &str) -> Result<Foreign, String> {
    let version = text.split_whitespace().find(|word| word.starts_with("mdtest-"));
    let version = version.and_then(|word| word.strip_prefix("mdtest-")).unwrap_or_default();
    let mut draft = Draft::of(format!("mdtest {version}").trim_end());
    let mut ranks = 0;
    let mut iterations = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [tasks, "tasks,", ..] = words[..] {
            ranks = tasks.parse().unwrap_or(0);
        }
        if let Some(rest) = line.strip_prefix("SUMMARY") {
            // Newer ones tell times as well, in a summary of their own.
            let count = rest
                .split("(of ")
                .nth(1)
                .and_then(|it| it.split_whitespace().next()?.parse::<u32>().ok());
            iterations = count.filter(|_| !rest.trim_start().starts_with("time"));
            continue;
        }
        let Some(count) = iterations else { continue };
        let is_name = |word: &&str| word.parse::<f64>().is_err();
        let Some(at) = words.iter().rposition(is_name) else { continue };
        let (name, numbers) = words.split_at(at + 1);
        let numbers: Vec<f64> = numbers.iter().filter_map(|word| word.parse().ok()).collect();
        // With statistics of ranks it tells those of single ranks before those of iterations.
        let [.., max, min, mean, _] = numbers[..] else { continue };
        let name = name.join(" ").trim_end_matches([':', ' ']).to_lowercase();
        let mut settings = Vec::new();
        if count > 1 {
            settings.push(("statistic", format!("mean of {count}, {min:.1} to {max:.1}")));
        }
        draft.push(Phase {
            phase: name,
            pattern: "-".to_owned(),
            method: "POSIX".to_owned(),
            ranks,
            operations_per_second: mean,
            settings,
            ..Phase::default()
        });
    }
    Ok(draft.foreign)
}

fn elbencho(text: &str) -> Result<Foreign, String> {
    let mut draft = Draft::of("elbencho");
    let mut reader = ::csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let columns = reader.headers().map_err(|error| error.to_string())?.clone();
    let place = |name: &str| columns.iter().position(|column| column.trim() == name);
    let operation = place("operation").ok_or("it has no column `operation`")?;
    for (line, record) in reader.records().enumerate() {
        let record = record.map_err(|error| format!("line {}: {error}", line + 2))?;
        let cell =
            |name: &str| place(name).and_then(|at| record.get(at)).unwrap_or_default().trim();
        let number = |name: &str| cell(name).parse::<f64>().unwrap_or(0.0);
        let Some(phase) = record.get(operation).filter(|phase| !phase.is_empty()) else {
            return Err(format!("line {} is cut", line + 2));
        };
        let mib = number("MiB [last]");
        let entries = number("entries/s [last]");
        let iops = number("IOPS [last]");
        let size = bounded(number("block size"));
        let random = if cell("random") == "1" { "random" } else { "sequential" };
        let settings =
            ["hosts", "threads", "IO depth", "label", "file size", "files", "dirs", "path type"];
        draft.push(Phase {
            phase: phase.to_lowercase(),
            pattern: random.to_owned(),
            method: if cell("direct IO") == "1" { "direct" } else { "buffered" }.to_owned(),
            size: (size >= 1.0 && number("MiB/s [last]") > 0.0).then_some(size as u64),
            ranks: bounded(number("threads")).min(u32::MAX.into()) as u32,
            mib_per_second: number("MiB/s [last]"),
            operations_per_second: if iops > 0.0 { iops } else { entries },
            operations: if iops > 0.0 { number("I/Os [last]") } else { number("entries [last]") },
            seconds: number("time ms [last]") / 1e3,
            bytes: (mib > 0.0).then_some(mib * MIB),
            settings: settings
                .into_iter()
                .map(|name| (name, cell(name).to_owned()))
                .filter(|(_, value)| !value.is_empty())
                .collect(),
            ..Phase::default()
        });
    }
    Ok(draft.foreign)
}
