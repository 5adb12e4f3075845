//! Two results beside each other: ratio, interval, verdict.
//!
//! Rows are matched by their settings. What the two results differ in as a whole (another file
//! system, another depth) is what is being compared, and told; every other setting must be the same,
//! so that a row is only ever held against its like.

use super::outcome::Outcome;
use super::rows::{Labels, Row, Settings, rows};
use crate::evidence::{Block, Difference, Evidence, ratio_interval};
use crate::statistics::Interval;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// One line of a comparison of two results.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Phase, pattern, method, and what tells the row from the others.
    pub what: String,
    /// Median of the second over that of the first.
    pub ratio: f64,
    /// Its interval, or the range of all pairs.
    pub interval: Interval,
    /// How many values there are of the first, and of the second.
    pub values: (usize, usize),
    /// What follows.
    pub verdict: &'static str,
}

/// A comparison of two results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compared {
    /// In which settings the results differ as a whole: name, first, second.
    pub differs: Vec<(String, String, String)>,
    /// What both have measured.
    pub lines: Vec<Comparison>,
    /// Rows that only one of them has, or that several of the other could be.
    pub unmatched: usize,
}

impl Compared {
    /// A line per phase that both have, below the settings in which they differ.
    pub fn text(&self) -> String {
        let mut text = "second over first\n".to_owned();
        for (setting, first, second) in &self.differs {
            let _ = writeln!(text, "  {setting}: {first} in the first, {second} in the second");
        }
        for line in &self.lines {
            let Comparison { what, ratio, interval, values, verdict } = line;
            let (kind, low, high) = (interval.name(), interval.low, interval.high);
            let _ = writeln!(
                text,
                "  {ratio:>6.2} ({kind} {low:.2} to {high:.2}, n = {} and {})  {verdict:<34} {what}",
                values.0, values.1
            );
        }
        match (self.lines.len(), self.unmatched) {
            (0, _) => text += "  nothing was measured under the same settings in both\n",
            (_, 0) => {}
            (_, rows) => _ = writeln!(text, "  {rows} rows have no like in the other result"),
        }
        text
    }
}

/// The second result against the first, for everything both have measured. Null hypothesis of each
/// line: both sides are drawn from one distribution.
pub fn compare(first: &Outcome, second: &Outcome) -> Compared {
    let (before, after) = (rows(std::slice::from_ref(first)), rows(std::slice::from_ref(second)));
    let differs = differing(&before, &after);
    let ignored: BTreeSet<&str> = differs.iter().map(|(key, ..)| key.as_str()).collect();
    let rest = |row: &Row| -> Settings {
        let told = row.settings.iter().filter(|(key, _)| !ignored.contains(key.as_str()));
        told.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    let by_rest = |rows: &[Row]| {
        let mut found: BTreeMap<Settings, Vec<usize>> = BTreeMap::new();
        for (index, row) in rows.iter().enumerate() {
            found.entry(rest(row)).or_default().push(index);
        }
        found
    };
    let (mut ones, others) = (by_rest(&before), by_rest(&after));
    ones.retain(|settings, rows| {
        rows.len() == 1 && others.get(settings).is_some_and(|o| o.len() == 1)
    });
    let labels = Labels::of(ones.keys());
    let mut pairs: Vec<(usize, usize, String)> = (ones.iter())
        .map(|(settings, rows)| (rows[0], others[settings][0], labels.label(settings)))
        .collect();
    pairs.sort_by_key(|(first, ..)| *first);
    let unmatched = before.len() + after.len() - 2 * pairs.len();
    let lines = Evidence::report(|evidence| {
        let line = |(one, other, what): &(usize, usize, String)| {
            line(evidence, &before[*one], &after[*other], what)
        };
        pairs.iter().filter_map(line).collect()
    });
    Compared { differs, lines, unmatched }
}

/// Settings that have one value in each result, and not the same.
fn differing(before: &[Row], after: &[Row]) -> Vec<(String, String, String)> {
    let only = |rows: &[Row], key: &str| -> Option<String> {
        let values: BTreeSet<&str> =
            rows.iter().filter_map(|row| row.settings.get(key)).map(String::as_str).collect();
        (values.len() == 1).then(|| values.into_iter().collect())
    };
    let keys: BTreeSet<&String> = before.iter().flat_map(|row| row.settings.keys()).collect();
    let differs = |key: &&String| {
        let (one, other) = (only(before, key)?, only(after, key)?);
        (one != other).then(|| ((*key).clone(), one, other))
    };
    // What is measured has to be the same, or there is nothing to compare.
    let measured = ["phase", "temporal"];
    keys.iter().filter(|key| !measured.contains(&key.as_str())).filter_map(differs).collect()
}

fn line(evidence: &Evidence, before: &Row, after: &Row, what: &str) -> Option<Comparison> {
    let block = Block { above: after.samples(), below: before.samples() };
    let found = Difference::of(std::slice::from_ref(&block))?;
    let predicted = before.is_predicted() && after.is_predicted();
    let shown = evidence.shows(&found);
    let verdict = match found.ratio {
        _ if predicted => predicted_verdict(before, after),
        _ if !evidence.enough(&found) => "too few repetitions for a verdict",
        ratio if shown && ratio > 1.0 => "faster",
        _ if shown => "slower",
        _ => "no difference shown",
    };
    Some(Comparison {
        what: what.to_owned(),
        ratio: found.ratio,
        interval: ratio_interval(&block),
        values: (block.below.len(), block.above.len()),
        verdict,
    })
}

/// Predictions are apart when the bands over the orders of simultaneous events are.
fn predicted_verdict(before: &Row, after: &Row) -> &'static str {
    let band = |row: &Row| row.measurements.first().and_then(|(_, m)| m.predicted_range_ns);
    match (band(before), band(after)) {
        (Some(before), Some(after)) if after.1 < before.0 => "faster, predicted",
        (Some(before), Some(after)) if after.0 > before.1 => "slower, predicted",
        (Some(_), Some(_)) => "no difference predicted",
        _ => "predicted, spread not known",
    }
}
