//! What is alike, and how it is called.
//!
//! A row is a phase under one set of settings: those of its test, of its run, and of the machine
//! and file system it ran on, and the state of the cache that was found. Repetitions of a row are put
//! together; nothing else is. Every setting in which two rows of a table differ stands in their
//! labels ([`Labels`]).

use super::outcome::{Measurement, Outcome, Summary};
use crate::evidence::{Sample, wander};
use crate::statistics::{Interval, median};
use iolab_vocab::format_bytes;
use std::collections::{BTreeMap, BTreeSet};

/// The settings of a row, by name.
pub type Settings = BTreeMap<String, String>;

/// Shown in every label, in this order.
const ALWAYS: [&str; 4] = ["phase", "temporal", "pattern", "method"];
/// What a sweep is over.
const SIZE: &str = "size";

/// All repetitions of one phase under the same settings.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// Under which settings.
    pub settings: Settings,
    /// What was measured, with its place in the order of measuring.
    pub measurements: Vec<(u64, &'a Measurement)>,
    /// Which of the results it is of.
    run: usize,
    /// How far its whole result wandered while it was measured.
    wander: f64,
    /// It was measured in less than half of the time of its result.
    in_one_stretch: bool,
}

/// Everything that could make a difference to a measurement.
pub fn settings(outcome: &Outcome, m: &Measurement) -> Settings {
    let place = &outcome.surroundings;
    let mut all = match m.settings.is_empty() {
        false => m.settings.clone(),
        true => of_plan(outcome, m),
    };
    let mut put = |key: &str, value: String| _ = all.insert(key.to_owned(), value);
    put("phase", m.phase.clone());
    put("temporal", m.temporal.clone());
    put("pattern", m.spatial.clone());
    put("method", m.method.clone());
    // Another benchmark's result has its name for all three: who made it, which version, which test.
    let is_foreign = m.settings.contains_key("source");
    if !is_foreign {
        put("test", m.test.clone());
        put("iolab", outcome.version.clone());
    }
    put("ranks", if m.ranks == 0 { "unknown".to_owned() } else { m.ranks.to_string() });
    put("predicted on", m.predicted.clone().unwrap_or_else(|| "nothing".to_owned()));
    if !m.cache.is_empty() {
        put("cache found", cache_class(&m.cache).to_owned());
    }
    if !m.allocation.is_empty() {
        put("allocation", m.allocation.clone());
    }
    if let Some(size) = m.size {
        put(SIZE, size.to_string());
    }
    if m.predicted.is_none() {
        put("host", place.host.clone());
        put("kernel", place.kernel.clone());
        put("processors", place.processors.to_string());
        put("file system", place.file_system.clone());
        put("mounted at", place.mount_point.clone());
        put("mount options", place.mount_options.clone());
        put("ranks are", outcome.communication.clone());
    }
    put("seed", outcome.seed.to_string());
    all
}

/// Shares that were found cached are one class: no two are the same number.
fn cache_class(found: &str) -> &str {
    if found.ends_with("% cached") { "partly cached" } else { found }
}

/// Version 1 had the settings in the plan only.
fn of_plan(outcome: &Outcome, m: &Measurement) -> Settings {
    let mut all = Settings::new();
    let Ok(plan) = outcome.plan.parse::<toml::Table>() else { return all };
    let mut put = |table: &toml::Table, but: &[&str]| {
        for (key, value) in table.iter().filter(|(key, _)| !but.contains(&key.as_str())) {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            all.insert(key.clone(), text);
        }
    };
    if let Some(global) = plan.get("global").and_then(toml::Value::as_table) {
        put(global, &["ranks", "repetitions", "seed", "keep", "records", "target"]);
    }
    let tests = plan.get("test").and_then(toml::Value::as_array);
    for (index, test) in tests.into_iter().flatten().enumerate() {
        let Some(test) = test.as_table() else { continue };
        let unnamed = format!("test {}", index + 1);
        let name = test.get("name").and_then(toml::Value::as_str).unwrap_or(&unnamed);
        if name == m.test {
            put(test, &["name", "spatial", "pattern", "temporal", "method", "sizes", "weight"]);
        }
    }
    all
}

/// All rows of all results, in order of first appearance. What must not be used is left out: it is
/// invalid, or contradicts itself.
pub fn rows(outcomes: &[Outcome]) -> Vec<Row<'_>> {
    let mut rows: Vec<Row> = Vec::new();
    let mut places: BTreeMap<(usize, Settings), usize> = BTreeMap::new();
    // One result was measured after the other, not at the same time.
    let mut measured_before = 0;
    for (document, outcome) in outcomes.iter().enumerate() {
        let before = rows.len();
        for (order, m) in (measured_before..).zip(&outcome.measurements) {
            if m.invalid.is_some() || m.contradiction().is_some() {
                continue;
            }
            let mut settings = settings(outcome, m);
            if outcomes.len() > 1 {
                settings.insert("result".to_owned(), (document + 1).to_string());
            }
            let place = *places.entry((document, settings.clone())).or_insert_with(|| {
                rows.push(Row {
                    settings,
                    measurements: Vec::new(),
                    run: document,
                    wander: 0.0,
                    in_one_stretch: false,
                });
                rows.len() - 1
            });
            rows[place].measurements.push((order, m));
        }
        measured_before += outcome.measurements.len() as u64;
        let own = &mut rows[before..];
        let (wander, whole) =
            (wander_of(own), own.iter().map(Row::stretch).fold((u64::MAX, 0), hull));
        for row in own {
            let (from, to) = row.stretch();
            row.wander = wander;
            row.in_one_stretch = 2 * (to - from) < whole.1 - whole.0;
        }
    }
    rows
}

fn hull(one: (u64, u64), other: (u64, u64)) -> (u64, u64) {
    (one.0.min(other.0), one.1.max(other.1))
}

/// How far the values of one result wandered.
fn wander_of(rows: &[Row]) -> f64 {
    let mut all: Vec<(u64, f64)> = Vec::new();
    for row in rows.iter().filter(|row| row.settled().len() > 1) {
        let own: Vec<(u64, f64)> =
            row.settled().iter().map(|(order, m)| (*order, m.speed().0.max(1e-12).ln())).collect();
        let middle = median(&own.iter().map(|(_, value)| *value).collect::<Vec<_>>());
        all.extend(own.iter().map(|(order, value)| (*order, value - middle)));
    }
    all.sort_by_key(|(order, _)| *order);
    wander(&all.iter().map(|(_, value)| *value).collect::<Vec<_>>())
}

impl Row<'_> {
    /// A setting; nothing where it has none.
    pub fn setting(&self, key: &str) -> &str {
        self.settings.get(key).map_or("", String::as_str)
    }

    /// The repetitions that count: without the first, when there are others.
    pub fn settled(&self) -> &[(u64, &Measurement)] {
        let first = self.measurements.iter().all(|(_, m)| m.repetition == 0);
        match first {
            true => &self.measurements,
            false => {
                let from = self.measurements.iter().take_while(|(_, m)| m.repetition == 0).count();
                &self.measurements[from..]
            }
        }
    }

    /// The first and the last place of those in the order of measuring.
    fn stretch(&self) -> (u64, u64) {
        let places = self.settled().iter().map(|(order, _)| (*order, *order));
        places.fold((u64::MAX, 0), hull)
    }

    /// Their speeds.
    pub fn samples(&self) -> Vec<Sample> {
        let sample = |(order, m): &(u64, &Measurement)| Sample {
            order: Some(*order),
            run: self.run,
            value: m.speed().0,
            wander: self.wander,
            in_one_stretch: self.in_one_stretch,
        };
        self.settled().iter().map(sample).collect()
    }

    /// The unit of the speeds.
    pub fn unit(&self) -> &'static str {
        self.measurements.first().map_or("MiB/s", |(_, m)| m.speed().1)
    }

    /// Whether it was predicted instead of measured.
    pub fn is_predicted(&self) -> bool {
        self.measurements.iter().all(|(_, m)| m.predicted.is_some())
    }

    /// The size swept, else bytes per operation.
    pub fn size(&self) -> u64 {
        let of = |(_, m): &(u64, &Measurement)| m.size.unwrap_or(m.bytes / m.operations.max(1));
        self.measurements.first().map_or(0, of)
    }

    /// The name of the pattern, without parameters.
    pub fn family(&self) -> &str {
        self.setting("pattern").split(':').next().unwrap_or_default()
    }

    /// The settings without the size that is swept, so that a sweep is one curve.
    pub fn shape(&self) -> Settings {
        let mut shape = self.settings.clone();
        if let Some(size) = shape.remove(SIZE)
            && let Some(pattern) = shape.get_mut("pattern")
            && let Some((rest, last)) = pattern.rsplit_once([',', ':'])
            && last.ends_with(&format!("={size}"))
        {
            *pattern = rest.to_owned();
        }
        shape
    }

    /// All repetitions together.
    pub fn summary(&self, labels: &Labels) -> Option<Summary> {
        let (_, first) = self.measurements.first()?;
        let values: Vec<f64> = self.samples().iter().map(|sample| sample.value).collect();
        Some(Summary {
            label: labels.label(&self.settings),
            test: first.test.clone(),
            spatial: first.spatial.clone(),
            phase: first.phase.clone(),
            method: first.method.clone(),
            size: first.size,
            unit: self.unit().to_owned(),
            first: first.speed().0,
            median: median(&values),
            interval: Interval::of_median(&values),
            repetitions: values.len(),
            slowest: self.slowest(),
        })
    }

    /// The rank that needed longest in the middle, over the median of the others.
    fn slowest(&self) -> Option<(u32, f64)> {
        let factors = |rank: usize| -> Vec<f64> {
            self.measurements.iter().filter_map(|(_, m)| m.behind(rank)).collect()
        };
        let ranks = self.measurements.first().map_or(0, |(_, m)| m.done_by_rank_ns.len());
        let all = (0..ranks).map(|rank| (rank as u32, median(&factors(rank))));
        all.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, factor)| *factor > 0.0)
    }
}

impl Measurement {
    /// How many times as long as the median of the others this rank needed, for each byte where
    /// the ranks moved different amounts.
    pub fn behind(&self, rank: usize) -> Option<f64> {
        let times = &self.done_by_rank_ns;
        if times.len() < 2 {
            return None;
        }
        let uneven = self.bytes_by_rank.len() == times.len() && self.bytes > 0;
        let cost = |rank: usize| match uneven {
            true => times[rank] as f64 / self.bytes_by_rank[rank].max(1) as f64,
            false => times[rank] as f64,
        };
        let others: Vec<f64> = (0..times.len()).filter(|other| *other != rank).map(cost).collect();
        let middle = median(&others);
        (middle > 0.0).then(|| cost(rank) / middle)
    }
}

/// Every row of all results, told apart.
pub fn summaries(outcomes: &[Outcome]) -> Vec<Summary> {
    let rows = rows(outcomes);
    let labels = Labels::of(rows.iter().map(|row| &row.settings));
    rows.iter().filter_map(|row| row.summary(&labels)).collect()
}

/// All rows of one result, summed up.
pub fn summarise(outcome: &Outcome) -> Vec<Summary> {
    summaries(std::slice::from_ref(outcome))
}

/// Which settings tell the rows of a table apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    differing: Vec<String>,
}

impl Labels {
    /// Learns in which settings the rows differ.
    pub fn of<'a>(rows: impl Iterator<Item = &'a Settings>) -> Labels {
        let mut values: BTreeMap<&str, BTreeSet<Option<&str>>> = BTreeMap::new();
        let all: Vec<&Settings> = rows.collect();
        let keys: BTreeSet<&str> =
            all.iter().flat_map(|row| row.keys()).map(String::as_str).collect();
        for row in all {
            for key in &keys {
                values.entry(key).or_default().insert(row.get(*key).map(String::as_str));
            }
        }
        let told = |key: &str| ALWAYS.contains(&key) || key == SIZE;
        let differing = |(key, values): (&str, BTreeSet<Option<&str>>)| {
            let found = values.iter().flatten().count();
            (found > 1 && !told(key)).then(|| key.to_owned())
        };
        Labels { differing: values.into_iter().filter_map(differing).collect() }
    }

    /// Phase, pattern and method, and every setting in which some rows differ.
    pub fn label(&self, settings: &Settings) -> String {
        let of = |key: &str| settings.get(key).map_or("", String::as_str);
        let within = if of("temporal") == of("phase") || of("phase").is_empty() {
            String::new()
        } else {
            format!(" ({})", of("temporal"))
        };
        let what = match of("temporal") {
            "metadata" => format!("{} by {}", of("phase"), of("method")),
            _ => format!("{}{within} of {} by {}", of("phase"), of("pattern"), of("method")),
        };
        match self.extra(settings) {
            extra if extra.is_empty() => what,
            extra => format!("{what} [{extra}]"),
        }
    }

    /// Only what stands in brackets.
    pub fn extra(&self, settings: &Settings) -> String {
        let shown = |key: &String| {
            let value = settings.get(key).filter(|value| !value.is_empty())?;
            Some(format!("{key} {value}"))
        };
        self.differing.iter().filter_map(shown).collect::<Vec<_>>().join(", ")
    }
}

/// A pattern as a table shows it: the size it is swept over in front.
pub fn shown_pattern(settings: &Settings) -> String {
    let pattern = settings.get("pattern").map_or("", String::as_str);
    let size = settings.get(SIZE).and_then(|size| size.parse().ok());
    match size.map(format_bytes) {
        Some(size) if !pattern.is_empty() => format!("{size} {pattern}"),
        _ => pattern.to_owned(),
    }
}
