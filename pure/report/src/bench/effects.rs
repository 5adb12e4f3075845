//! What caches do, and what single ranks do.

use super::curve::{Curve, told};
use super::observation::{Observation, observation};
use super::outcome::{Measurement, Outcome};
use super::rows::{Labels, Row};
use crate::evidence::{Evidence, binomial_tail};
use crate::statistics::median;
use std::collections::BTreeMap;

/// A wait for the device is worth a word from this share of the phase on.
const WAIT_SHARE: f64 = 0.2;
/// A rank is slow when it needs that many times as long as the median of the others.
const SLOW: f64 = 1.5;

/// Everything that is not a matter of size.
pub(super) fn observations(
    evidence: &Evidence,
    outcomes: &[Outcome],
    rows: &[Row],
    curves: &[Curve],
) -> Vec<Observation> {
    let mut found = second_time(evidence, curves, "read", "re-read");
    found.extend(second_time(evidence, curves, "write", "re-write"));
    found.extend(write_behind(evidence, outcomes, rows));
    found.extend(read_ahead(evidence, curves));
    found.extend(slow_ranks(evidence, rows));
    found
}

/// The second time against the first. The cause is not told: caches, allocation and read-ahead
/// all come in, and what was found in the cache stands beside it.
fn second_time(
    evidence: &Evidence,
    curves: &[Curve],
    first: &str,
    second: &str,
) -> Vec<Observation> {
    let mut found = Vec::new();
    for after in curves.iter().filter(|c| c.is("temporal", second) && c.is("phase", second)) {
        let but = ["phase", "cache found", "allocation", "data"];
        let before = |c: &&Curve| c.is("phase", first) && c.like(after, &but);
        for before in curves.iter().filter(before) {
            if let Some(text) = told(evidence, &after.over(before)) {
                let text = format!("{} over the first {first}: {text}", after.label);
                found.push(observation("second time", text));
            }
        }
    }
    found
}

/// Reads in order against reads of the same size in no order.
fn read_ahead(evidence: &Evidence, curves: &[Curve]) -> Vec<Observation> {
    let reads = |wanted: &'static [&str]| {
        let fits = move |c: &&Curve| c.is("phase", "read") && wanted.contains(&c.family());
        curves.iter().filter(fits)
    };
    let mut found = Vec::new();
    for random in reads(&["random-blocks", "database"]) {
        for ordered in reads(&["segmented", "sequential"]) {
            if !ordered.like(random, &["pattern", "cache found", "data"]) {
                continue;
            }
            if let Some(text) = told(evidence, &ordered.over(random)) {
                let text = format!("{} over {}: {text}", ordered.label, random.family());
                found.push(observation("read-ahead", text));
            }
        }
    }
    found
}

/// How much of a write is waiting for the device after the last operation. Null hypothesis: the
/// wait is as often below a fifth of the phase as above.
fn write_behind(evidence: &Evidence, outcomes: &[Outcome], rows: &[Row]) -> Vec<Observation> {
    let mut groups: BTreeMap<_, Vec<&Row>> = BTreeMap::new();
    let writes = |row: &&Row| ["write", "re-write"].contains(&row.setting("phase"));
    for row in rows.iter().filter(writes) {
        groups.entry(row.shape()).or_default().push(row);
    }
    let labels = Labels::of(groups.keys());
    let mut found = Vec::new();
    for (shape, rows) in &groups {
        let all: Vec<&Measurement> = (rows.iter())
            .flat_map(|row| row.settled())
            .map(|(_, m)| *m)
            .filter(|m| m.sync_ns > 0 && m.transfer_ns > 0 && m.predicted.is_none())
            .collect();
        let share = |m: &&Measurement| m.sync_ns as f64 / m.transfer_ns as f64;
        let shares: Vec<f64> = all.iter().map(share).collect();
        let hits = shares.iter().filter(|share| **share > WAIT_SHARE).count();
        let chance = binomial_tail(all.len(), hits, 0.5);
        let least = 0.5f64.powi(all.len() as i32);
        if all.is_empty() || !evidence.unlikely(chance, least) {
            continue;
        }
        let taken: Vec<f64> = all.iter().map(|m| before_the_wait(m)).collect();
        let limit = copy_limit(outcomes, all[0].ranks);
        let text = format!(
            "{}: in {hits} of {} repetitions more than {:.0} % of the phase was the wait for the device, in the \
             middle {:.0} %{}",
            labels.label(shape),
            all.len(),
            WAIT_SHARE * 100.0,
            median(&shares) * 100.0,
            until_then(median(&taken), limit)
        );
        found.push(observation("write-behind", text));
    }
    found
}

/// MiB/s until the last operation was done.
fn before_the_wait(m: &Measurement) -> f64 {
    m.bytes as f64 / f64::from(1 << 20) / (m.last_done_ns.max(1) as f64 / 1e9)
}

/// Nothing that is copied is taken faster than memory is copied.
fn copy_limit(outcomes: &[Outcome], ranks: u32) -> Option<f64> {
    let limit = |outcome: &Outcome| {
        let prices = outcome.surroundings.prices?;
        let together = f64::from(ranks).min(outcome.surroundings.processors.max(1) as f64);
        Some(prices.copy_mib_per_second * together)
    };
    outcomes.iter().filter_map(limit).min_by(f64::total_cmp)
}

fn until_then(speed: f64, limit: Option<f64>) -> String {
    match limit {
        Some(limit) if speed <= limit => {
            format!("; until then the data was taken at {speed:.0} MiB/s")
        }
        _ => String::new(),
    }
}

/// A rank that is the slowest again and again. Null hypothesis: the ranks are alike, so that each is
/// the slowest of a phase as often as any other. All phases of a result count, the first repetition too.
fn slow_ranks(evidence: &Evidence, rows: &[Row]) -> Vec<Observation> {
    let mut results: BTreeMap<(&str, &str), Vec<&Measurement>> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.is_predicted()) {
        let own = row.measurements.iter().map(|(_, m)| *m);
        results.entry((row.setting("result"), row.setting("ranks"))).or_default().extend(own);
    }
    let mut found = Vec::new();
    for ((result, _), all) in &results {
        let all: Vec<_> = all.iter().filter(|m| m.done_by_rank_ns.len() >= 2).collect();
        let Some(first) = all.first() else { continue };
        let ranks = first.done_by_rank_ns.len();
        let slowest = |m: &Measurement| {
            let each = (0..ranks).filter_map(|rank| m.behind(rank).map(|factor| (rank, factor)));
            each.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, factor)| *factor > SLOW)
        };
        let slow: Vec<(usize, f64)> = all.iter().filter_map(|m| slowest(m)).collect();
        let hits = |rank: usize| slow.iter().filter(|(other, _)| *other == rank).count();
        let Some(rank) = (0..ranks).max_by_key(|rank| hits(*rank)) else { continue };
        let each = 1.0 / ranks as f64;
        let chance = |hits| (ranks as f64 * binomial_tail(all.len(), hits, each)).min(1.0);
        // In half of the phases at least: an unlucky rank of many is not a slow one.
        let named = evidence.unlikely(chance(hits(rank)), chance(all.len()));
        if !named || hits(rank) * 2 <= all.len() {
            continue;
        }
        let factors: Vec<f64> =
            slow.iter().filter(|(other, _)| *other == rank).map(|(_, factor)| *factor).collect();
        let within = if result.is_empty() { String::new() } else { format!(" of result {result}") };
        found.push(observation(
            "slow rank",
            format!(
                "rank {rank} was the slowest in {} of {} phases{within}, {:.1} times as slow as the median of the \
                 others in the middle",
                hits(rank),
                all.len(),
                median(&factors)
            ),
        ));
    }
    found
}
