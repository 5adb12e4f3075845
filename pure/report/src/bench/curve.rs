//! Throughput over size: where it saturates, which sizes lie on a grid, who is faster from where.

use super::observation::{Observation, observation};
use super::rows::{Labels, Row, Settings};
use crate::evidence::{Block, Difference, Evidence, Sample, ratio_interval};
use crate::statistics::{Interval, median};
use iolab_vocab::format_bytes;

/// Throughput over size under settings that are otherwise the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// All settings but the size.
    pub settings: Settings,
    /// What tells it from the other curves.
    pub label: String,
    /// The unit of its speeds.
    pub unit: &'static str,
    /// By size, ascending.
    pub points: Vec<Point>,
}

/// All repetitions at one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Bytes.
    pub size: u64,
    /// Speeds in the order of measuring.
    pub samples: Vec<Sample>,
}

impl Point {
    /// The values alone.
    pub fn values(&self) -> Vec<f64> {
        self.samples.iter().map(|sample| sample.value).collect()
    }

    /// The middle one.
    pub fn median(&self) -> f64 {
        median(&self.values())
    }

    /// How far they are apart.
    pub fn interval(&self) -> Interval {
        Interval::of_median(&self.values())
    }
}

/// All curves, in order of appearance.
pub(super) fn curves(rows: &[Row]) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for row in rows {
        let shape = row.shape();
        let point = Point { size: row.size(), samples: row.samples() };
        match curves.iter_mut().find(|curve| curve.settings == shape && curve.unit == row.unit()) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve {
                settings: shape,
                label: String::new(),
                unit: row.unit(),
                points: vec![point],
            }),
        }
    }
    let labels = Labels::of(curves.iter().map(|curve| &curve.settings));
    for curve in &mut curves {
        curve.label = labels.label(&curve.settings);
        curve.points.sort_by_key(|point| point.size);
    }
    curves
}

impl Curve {
    pub(super) fn is(&self, key: &str, value: &str) -> bool {
        self.settings.get(key).is_some_and(|found| found == value)
    }

    pub(super) fn family(&self) -> &str {
        let pattern = self.settings.get("pattern").map_or("", String::as_str);
        pattern.split(':').next().unwrap_or_default()
    }

    /// Whether the settings are the same but for these, and for how tests and results are called.
    pub(super) fn like(&self, other: &Curve, but: &[&str]) -> bool {
        let told = |key: &String| !but.contains(&key.as_str()) && key != "test";
        let of = |curve: &Curve| -> Vec<(String, String)> {
            let told = curve.settings.iter().filter(|(key, _)| told(key));
            told.map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        self.unit == other.unit && of(self) == of(other)
    }

    /// The sizes that both have, each with the values of both.
    pub(super) fn over(&self, other: &Curve) -> Vec<(u64, Block)> {
        let pair = |point: &Point| {
            let same = other.points.iter().find(|other| other.size == point.size)?;
            let (above, below) = (point.samples.clone(), same.samples.clone());
            Some((point.size, Block { above, below }))
        };
        self.points.iter().filter_map(pair).collect()
    }
}

/// The ratio of two curves size by size, as far as anything is shown. Null hypothesis: at each
/// size, both sides are drawn from one distribution.
pub(super) fn told(evidence: &Evidence, blocks: &[(u64, Block)]) -> Option<String> {
    let all: Vec<Block> = blocks.iter().map(|(_, block)| block.clone()).collect();
    let whole = Difference::of(&all)?;
    let mut shown = evidence.shows(&whole);
    let (mut parts, mut steps) = (Vec::new(), Vec::new());
    for (size, block) in blocks {
        let Some(found) = Difference::of(std::slice::from_ref(block)) else { continue };
        // A single size is the whole: not a question of its own.
        let alone = blocks.len() > 1 && evidence.shows(&found);
        shown |= alone;
        let interval = ratio_interval(block);
        let sure = if alone { ", shown at this size alone" } else { "" };
        parts.push(format!(
            "{:.2} at {} ({} {:.2} to {:.2}, n = {} and {}{sure})",
            found.ratio,
            format_bytes(*size),
            interval.name(),
            interval.low,
            interval.high,
            block.above.len(),
            block.below.len()
        ));
        if alone {
            steps.push((*size, found.ratio > 1.0));
        }
    }
    let crossing = steps.windows(2).find(|pair| pair[0].1 != pair[1].1).map(|pair| {
        let (from, to) = (format_bytes(pair[0].0), format_bytes(pair[1].0));
        format!("; break-even between {from} and {to}")
    });
    shown.then(|| parts.join(", ") + &crossing.unwrap_or_default())
}

/// What the curves say.
pub(super) fn observations(evidence: &Evidence, curves: &[Curve]) -> Vec<Observation> {
    let mut found: Vec<Observation> = curves.iter().filter_map(|c| knee(evidence, c)).collect();
    found.extend(curves.iter().filter_map(|curve| alignment(evidence, curve)));
    found.extend(break_even(evidence, curves));
    found.extend(scaling(evidence, curves));
    found
}

/// Where the curve reaches 90 % of its best. Null hypothesis: speed does not depend on size; the
/// smaller half of the sizes is held against the larger half.
fn knee(evidence: &Evidence, curve: &Curve) -> Option<Observation> {
    let half = curve.points.len() / 2;
    if half < 2 {
        return None;
    }
    let larger = &curve.points[curve.points.len() - half..];
    let pair = |(small, large): (&Point, &Point)| Block {
        above: large.samples.clone(),
        below: small.samples.clone(),
    };
    let blocks: Vec<Block> = curve.points.iter().zip(larger).map(pair).take(half).collect();
    let found = Difference::of(&blocks)?;
    if !evidence.shows(&found) {
        return None;
    }
    let best = curve.points.iter().max_by(|a, b| a.median().total_cmp(&b.median()))?;
    let last = curve.points.last()?;
    let (unit, label) = (curve.unit, &curve.label);
    let (speed, at) = (best.median(), format_bytes(best.size));
    if found.ratio < 1.0 {
        let text = format!(
            "{label} gets slower with size: {speed:.0} {unit} at {at}, {:.0} at {}",
            last.median(),
            format_bytes(last.size)
        );
        return Some(observation("saturation", text));
    }
    let low = curve.points.iter().rposition(|point| point.median() < 0.9 * speed);
    let from = &curve.points[low.map_or(0, |low| low + 1).min(curve.points.len() - 1)];
    let text = match from.size == last.size {
        true => format!(
            "{label} still grows at {}: {:.0} {unit}",
            format_bytes(last.size),
            last.median()
        ),
        false => format!(
            "{label} saturates at {}: from there on at least 90 % of the best median, {speed:.0} {unit} at {at}",
            format_bytes(from.size)
        ),
    };
    Some(observation("saturation", text))
}

/// The grid on which sizes are faster than the sizes between. Null hypothesis: being a multiple
/// makes no difference. Only sizes beside one another are held against each other, and every size
/// between must be slower than both its neighbours, so that mere growth is no grid.
fn alignment(evidence: &Evidence, curve: &Curve) -> Option<Observation> {
    let mut seen: Vec<Vec<bool>> = Vec::new();
    let mut best: Option<(u64, Difference)> = None;
    for grid in (9..=26).rev().map(|power| 1u64 << power) {
        let on: Vec<bool> = curve.points.iter().map(|p| p.size.is_multiple_of(grid)).collect();
        if seen.contains(&on) {
            continue;
        }
        seen.push(on.clone());
        let Some((block, dips)) = beside(curve, &on) else { continue };
        let Some(found) = Difference::of(&[block]) else { continue };
        let shown = evidence.shows(&found) && dips && found.ratio >= 1.2;
        if shown && best.as_ref().is_none_or(|(_, other)| found.ratio > other.ratio) {
            best = Some((grid, found));
        }
    }
    let (grid, found) = best?;
    let text = format!(
        "{}: multiples of {} are {:.2} times as fast as the sizes between them; a stripe or block of the \
         file system may be that large",
        curve.label,
        format_bytes(grid),
        found.ratio
    );
    Some(observation("alignment", text))
}

/// The sizes off the grid that have neighbours on it, against those neighbours; and whether each is
/// slower than both. At least two on either side: fewer would be a guess of a guess.
fn beside(curve: &Curve, on: &[bool]) -> Option<(Block, bool)> {
    let points = &curve.points;
    let between: Vec<usize> =
        (1..points.len().max(1) - 1).filter(|&i| !on[i] && on[i - 1] && on[i + 1]).collect();
    let mut beside: Vec<usize> = between.iter().flat_map(|&i| [i - 1, i + 1]).collect();
    beside.dedup();
    if between.len() < 2 || beside.len() < 2 {
        return None;
    }
    let take = |which: &[usize]| -> Vec<Sample> {
        which.iter().flat_map(|&index| points[index].samples.clone()).collect()
    };
    let dips = between.iter().all(|&i| {
        points[i].median() < points[i - 1].median() && points[i].median() < points[i + 1].median()
    });
    Some((Block { above: take(&beside), below: take(&between) }, dips))
}

/// Collective transfers against independent ones.
fn break_even(evidence: &Evidence, curves: &[Curve]) -> Vec<Observation> {
    let mut found = Vec::new();
    for one in curves.iter().filter(|curve| curve.is("method", "collective")) {
        let other = |c: &&Curve| c.is("method", "independent") && one.like(c, &["method"]);
        for other in curves.iter().filter(other) {
            if let Some(text) = told(evidence, &one.over(other)) {
                let text = format!("{} over independent: {text}", one.label);
                found.push(observation("collective", text));
            }
        }
    }
    found
}

/// More ranks against fewer.
fn scaling(evidence: &Evidence, curves: &[Curve]) -> Vec<Observation> {
    let ranks = |c: &Curve| c.settings.get("ranks").and_then(|n| n.parse::<u32>().ok());
    let mut found = Vec::new();
    for few in curves {
        for many in curves.iter().filter(|many| many.like(few, &["ranks", "result"])) {
            let (Some(less), Some(more)) = (ranks(few), ranks(many)) else { continue };
            if more <= less {
                continue;
            }
            let blocks = many.over(few);
            let Some(text) = told(evidence, &blocks) else { continue };
            let all: Vec<Block> = blocks.into_iter().map(|(_, block)| block).collect();
            let growth = Difference::of(&all).map_or(1.0, |found| found.ratio);
            let ideal = f64::from(more) / f64::from(less);
            let share = match growth <= ideal {
                true => format!(
                    "{:.0} % of what {ideal} times the ranks could bring",
                    100.0 * growth / ideal
                ),
                false => "more than the ranks explain: something else differs".to_owned(),
            };
            let text = format!("{}: {more} ranks over {less}: {text}; {share}", many.label);
            found.push(observation("scaling", text));
        }
    }
    found
}
