//! What caches do, and what single ranks do.

use super::{Curve, Insight, insight, ratio_of_medians, shape, size, speeds, verdict};
use crate::outcome::Measurement;
use crate::statistics::median;
use iolab_vocab::format_bytes;
use std::collections::BTreeMap;

/// Everything that is not a matter of size.
pub(super) fn insights(all: &[&Measurement], curves: &[Curve]) -> Vec<Insight> {
    let mut found = second_time(all, "read", "re-read", "read-ahead and the page cache");
    found.extend(second_time(all, "write", "re-write", "allocation and write-behind"));
    found.extend(write_behind(all));
    found.extend(read_ahead(curves));
    found.extend(slow_ranks(all));
    found
}

/// A pattern, whatever its swept size, in one phase by one method: its measurements by size.
fn sweeps<'a>(
    all: &[&'a Measurement],
    wanted: impl Fn(&Measurement) -> bool,
) -> BTreeMap<(&'a str, &'a str), BTreeMap<u64, Vec<&'a Measurement>>> {
    let mut sweeps: BTreeMap<_, BTreeMap<_, Vec<_>>> = BTreeMap::new();
    for m in all.iter().filter(|m| wanted(m)) {
        let sizes = sweeps.entry((shape(m), m.method.as_str())).or_default();
        sizes.entry(size(m)).or_default().push(*m);
    }
    sweeps
}

/// How much of a write is waiting for the device after the last operation.
fn write_behind(all: &[&Measurement]) -> Vec<Insight> {
    let mut found = Vec::new();
    for phase in ["write", "re-write"] {
        let waits = |m: &Measurement| m.phase == phase && m.sync_ns > 0;
        for ((shape, method), sizes) in sweeps(all, waits) {
            let told: Vec<_> = sizes.iter().filter_map(|(size, ms)| waited(*size, ms)).collect();
            if !told.is_empty() {
                let text = format!("{phase} of {shape} by {method}: {}", told.join("; "));
                found.push(insight("write-behind", text));
            }
        }
    }
    found
}

/// Of one size; nothing below a fifth, as the caches were no buffer worth naming then.
fn waited(size: u64, measurements: &[&Measurement]) -> Option<String> {
    let share = |m: &Measurement| m.sync_ns as f64 / m.transfer_ns.max(1) as f64;
    let middle = |of: &dyn Fn(&Measurement) -> f64| {
        median(&measurements.iter().map(|m| of(m)).collect::<Vec<_>>())
    };
    let waiting = middle(&share);
    let taken = middle(&|m| m.mib_per_second / (1.0 - share(m)).max(1e-3));
    let whole = middle(&|m| m.mib_per_second);
    (waiting >= 0.2).then(|| {
        format!(
            "at {} the caches took the data at {taken:.0} MiB/s, then {:.0} % of the time was the \
             wait for the device, with which it is {whole:.0}",
            format_bytes(size),
            waiting * 100.0
        )
    })
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
    let both = |m: &Measurement| m.temporal == second && (m.phase == first || m.phase == second);
    let mut found = Vec::new();
    for ((shape, method), sizes) in sweeps(all, both) {
        let compare = |(size, ms): (&u64, &Vec<&Measurement>)| {
            let (before, after) =
                (speeds(ms, |m| m.phase == first), speeds(ms, |m| m.phase == second));
            let (ratio, interval) = ratio_of_medians(&after, &before)?;
            let verdict = verdict(&after, &before, interval);
            let (size, low, high) = (format_bytes(*size), interval.low, interval.high);
            Some(format!("{ratio:.2} at {size} ({low:.2} to {high:.2}: {verdict})"))
        };
        let told: Vec<_> = sizes.iter().filter_map(compare).collect();
        if !told.is_empty() {
            let told = told.join(", ");
            let shown = ["faster", "slower"].iter().any(|verdict| told.contains(verdict));
            let why = if shown { format!("; that is the part of {why}") } else { String::new() };
            let text = format!("{second}/{first} of {shape} by {method} is {told}{why}");
            found.push(insight("second time", text));
        }
    }
    found
}

/// Ranks that need half as long again as the median rank, in most repetitions of a phase.
fn slow_ranks(all: &[&Measurement]) -> Vec<Insight> {
    let mut counts: BTreeMap<(String, usize), (u32, u32)> = Default::default();
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
