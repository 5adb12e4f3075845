//! What caches do, and what single ranks do.

use super::{Curve, Insight, insight, ratio_of_medians, speeds, verdict};
use crate::outcome::Measurement;
use crate::statistics::median;
use iolab_vocab::format_bytes;

/// Everything that is not a matter of size.
pub(super) fn insights(all: &[&Measurement], curves: &[Curve]) -> Vec<Insight> {
    let mut found = second_time(all, "read", "re-read", "read-ahead and the page cache");
    found.extend(second_time(all, "write", "re-write", "allocation and write-behind"));
    found.extend(write_behind(all));
    found.extend(read_ahead(curves));
    found.extend(slow_ranks(all));
    found
}

/// How much of a write is waiting for the device after the last operation.
fn write_behind(all: &[&Measurement]) -> Vec<Insight> {
    let name = |m: &Measurement| format!("{} of {} by {}", m.phase, m.spatial, m.method);
    let mut names: Vec<String> = all.iter().filter(|m| m.sync_ns > 0).map(|m| name(m)).collect();
    names.sort_unstable();
    names.dedup();
    let told = |what: String| {
        let share = |m: &&&Measurement| m.sync_ns as f64 / m.transfer_ns.max(1) as f64;
        let same = || all.iter().filter(|m| name(m) == what);
        let waiting = median(&same().map(|m| share(&m)).collect::<Vec<_>>());
        let taken = |m: &&Measurement| m.mib_per_second / (1.0 - share(&m)).max(1e-3);
        let taken = median(&same().map(taken).collect::<Vec<_>>());
        let whole = median(&same().map(|m| m.mib_per_second).collect::<Vec<_>>());
        // Below, the cache was no buffer worth naming.
        (waiting >= 0.2).then(|| {
            let percent = waiting * 100.0;
            let text = format!(
                "{what}: {percent:.0} % of the time is the wait for the device at the end; the caches \
                 took the data at {taken:.0} MiB/s, with the device it is {whole:.0}"
            );
            insight("write-behind", text)
        })
    };
    names.into_iter().filter_map(told).collect()
}

/// Reads in order against reads of the same size in no order.
fn read_ahead(curves: &[Curve]) -> Vec<Insight> {
    let family = |curve: &Curve| curve.pattern.split(':').next().unwrap_or_default().to_owned();
    let reads = |wanted: &'static [&str]| {
        let wanted = move |c: &&Curve| c.phase == "read" && wanted.contains(&family(c).as_str());
        curves.iter().filter(wanted)
    };
    let mut found = Vec::new();
    for random in reads(&["random-blocks", "database"]) {
        let same = |c: &&Curve| (&c.method, c.ranks) == (&random.method, random.ranks);
        for ordered in reads(&["segmented", "sequential"]).filter(same) {
            let ratios: Vec<String> = (random.points.iter())
                .filter_map(|point| {
                    let other = ordered.points.iter().find(|other| other.0 == point.0)?;
                    Some(format!("{} {:.2}", format_bytes(point.0), other.1 / point.1))
                })
                .collect();
            if !ratios.is_empty() {
                let (a, b, method) = (&ordered.pattern, &random.pattern, &random.method);
                let text = format!("reads of {a} over {b} by {method}: {}", ratios.join(", "));
                found.push(insight("read-ahead", text));
            }
        }
    }
    found
}

fn second_time(all: &[&Measurement], first: &str, second: &str, why: &str) -> Vec<Insight> {
    let mut keys: Vec<(&str, &str)> = all
        .iter()
        .filter(|m| m.phase == second)
        .map(|m| (m.spatial.as_str(), m.method.as_str()))
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let compare = |(spatial, method): (&str, &str)| {
        let of = |phase: &str| {
            let same = |m: &Measurement| {
                m.phase == phase
                    && m.temporal == second
                    && m.spatial == spatial
                    && m.method == method
            };
            speeds(all, same)
        };
        let (before, after) = (of(first), of(second));
        let (ratio, interval) = ratio_of_medians(&after, &before)?;
        let verdict = verdict(&after, &before, interval);
        let text = format!(
            "{second}/{first} of {spatial} by {method} is {ratio:.2} ({:.2} to {:.2}): {verdict}; \
             that is the part of {why}",
            interval.low, interval.high
        );
        Some(insight("second time", text))
    };
    keys.into_iter().filter_map(compare).collect()
}

/// Ranks that need half as long again as the median rank, in most repetitions of a phase.
fn slow_ranks(all: &[&Measurement]) -> Vec<Insight> {
    let mut counts: std::collections::BTreeMap<(String, usize), (u32, u32)> = Default::default();
    for m in all.iter().filter(|m| m.done_by_rank_ns.len() >= 3) {
        let times: Vec<f64> = m.done_by_rank_ns.iter().map(|&ns| ns as f64).collect();
        let middle = median(&times);
        for (rank, &time) in times.iter().enumerate() {
            let name = format!("{} of {} by {}", m.phase, m.spatial, m.method);
            let slot = counts.entry((name, rank)).or_default();
            slot.0 += u32::from(time > 1.5 * middle);
            slot.1 += 1;
        }
    }
    let often = counts.into_iter().filter(|(_, (slow, runs))| *slow * 2 > *runs && *runs >= 2);
    often
        .map(|((name, rank), (slow, runs))| {
            let text = format!("rank {rank} was 1.5 times slower than the median rank in {slow} of {runs} runs: {name}");
            insight("slow rank", text)
        })
        .collect()
}
