//! Rules about a simulated cluster, by what its ranks wait for in calls that move data.

use super::finding::{Confidence, Evidence, Finding};
use crate::facts::Facts;
use crate::parts::cluster::{Cluster, Device, SMALL_REQUEST_BYTES, Write};
use crate::parts::{Part, Parts};
use crate::text::duration;
use crate::thousands::grouped;
use iolab_vocab::format_bytes;
use std::collections::BTreeMap;

pub(super) const NAMES: &[&str] = &[
    "seek-bound-devices",
    "servers-idle-while-ranks-wait",
    "small-requests",
    "saturated-link",
    "cache-full",
];

/// A share of the run below this is not worth a word.
const NEGLIGIBLE_SHARE: f64 = 0.02;
/// Fewer accesses or requests are no habit.
const HABIT: u64 = 50;
/// Most of something.
const MOST: f64 = 0.5;
/// A quarter of the devices at work is as if the others were not there.
const IDLE_SHARE: f64 = 0.75;
/// So little that it can be left out.
const FEW: f64 = 0.1;
/// Nearly all requests are of one kind.
const NEARLY_ALL: f64 = 0.9;
/// A call so many times as large as its requests was cut up.
const CUT_UP: u64 = 8;
/// Messages leave gaps of about a latency, so a full link carries a little less than it could.
const FULL_LINK: f64 = 0.8;
/// Writes before memory was full that show that it was not always.
const WRITES_MIN: usize = 3;

pub(super) fn judge(facts: &Facts, knows_uneven: bool) -> Vec<Finding> {
    let Some(cluster) = &facts.analysis.cluster else { return Vec::new() };
    let found = [
        seek_bound(facts, cluster),
        idle(facts, cluster).filter(|_| !knows_uneven),
        small_requests(facts, cluster),
        saturated_link(facts, cluster),
        cache_full(facts, cluster),
    ];
    let matters = |finding: &Finding| finding.evidence.share_of_run >= NEGLIGIBLE_SHARE;
    found.into_iter().flatten().filter(matters).collect()
}

/// A finding about some of the time that ranks spend in calls.
fn finding(
    facts: &Facts,
    cluster: &Cluster,
    name: usize,
    ns_of: impl Fn(&Parts) -> u64,
    (message, remedy): (String, &str),
    row: Option<u64>,
) -> Finding {
    let times = cluster.by_process.iter().map(|(&process, parts)| (process, ns_of(parts)));
    let by_process: BTreeMap<u32, u64> = times.collect();
    let evidence = Evidence {
        calls: cluster.call_count,
        bytes: cluster.call_bytes,
        time_ns: sum(by_process.values().copied()),
        rows: row.into_iter().collect(),
        ..Evidence::default()
    };
    Finding::of_run(NAMES[name], facts, &by_process, evidence, message, remedy)
}

/// A damaged trace may say anything.
fn sum(values: impl Iterator<Item = u64>) -> u64 {
    values.fold(0, u64::saturating_add)
}

fn link_ns(parts: &Parts) -> u64 {
    parts.sum(&[Part::Sending, Part::Wire, Part::Answering])
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Devices that spend most of their time getting to places.
fn seek_bound(facts: &Facts, cluster: &Cluster) -> Option<Finding> {
    let of_all = |value: fn(&Device) -> u64| sum(cluster.devices.iter().map(value));
    let (seeking, count) =
        (of_all(|device| device.seeking_ns), of_all(|device| device.sought_count));
    let seeking_share = share(seeking, of_all(|device| device.access_ns));
    if seeking_share < MOST || count < HABIT {
        return None;
    }
    let cost = |parts: &Parts| {
        let waiting = parts.sum(&[Part::Memory, Part::DeviceWait]) as f64 * seeking_share;
        parts.of(Part::Positioning).saturating_add(waiting as u64)
    };
    let message = format!(
        "devices spend {:.0} % of their time on the way to {} places, {} at each on average",
        100.0 * seeking_share,
        grouped(count),
        format_bytes(of_all(|device| device.sought_bytes) / count)
    );
    let remedy = "larger accesses in order: larger or collective calls, a cache layer that joins \
                  (aggregation, server-directed), larger stripes, or devices that need not seek";
    let longest = cluster.devices.iter().filter_map(|device| device.row).max();
    let row = longest.map(|(_, row)| row);
    Some(finding(facts, cluster, 0, cost, (message, remedy), row))
}

/// Ranks wait for devices, of which most do nothing.
fn idle(facts: &Facts, cluster: &Cluster) -> Option<Finding> {
    let parts = cluster.parts();
    let busy = sum(cluster.devices.iter().map(|device| device.busy_calling_ns));
    let count = cluster.devices.len() as u64;
    let idle_share = 1.0 - share(busy, cluster.calling_ns.saturating_mul(count));
    if count < 2 || idle_share < IDLE_SHARE || share(parts.for_devices(), parts.total()) < MOST {
        return None;
    }
    let message = format!(
        "while ranks wait for devices, {:.1} of {count} are at work on average",
        share(busy, cluster.calling_ns)
    );
    let remedy = "keep more under way: larger calls that reach more servers, several at once \
                  (non-blocking calls, more ranks), or smaller stripes";
    Some(finding(facts, cluster, 1, Parts::for_devices, (message, remedy), None))
}

/// Calls that were cut up into many small requests.
fn small_requests(facts: &Facts, cluster: &Cluster) -> Option<Finding> {
    let requests = cluster.requests;
    let small_share = share(requests.small_count, requests.count);
    if requests.small_count < HABIT || small_share < NEARLY_ALL || cluster.call_count == 0 {
        return None;
    }
    let (of_request, of_call) =
        (requests.bytes / requests.count, cluster.call_bytes / cluster.call_count);
    if of_call < of_request.saturating_mul(CUT_UP) {
        return None;
    }
    let cost = |parts: &Parts| {
        let useful = parts.of(Part::Transferring).saturating_add(parts.of(Part::Rest));
        parts.total().saturating_sub(useful)
    };
    let message = format!(
        "calls of {} on average reach servers as {} requests, {:.0} % of them below {}",
        format_bytes(of_call),
        grouped(requests.count),
        100.0 * small_share,
        format_bytes(SMALL_REQUEST_BYTES)
    );
    let remedy =
        "larger stripes, so that a call reaches fewer servers with more for each, or larger calls";
    let found = finding(facts, cluster, 2, cost, (message, remedy), requests.row);
    Some(Finding { confidence: Confidence::Likely, ..found })
}

/// Ranks wait for messages over a link that carries all it can, and for no device.
fn saturated_link(facts: &Facts, cluster: &Cluster) -> Option<Finding> {
    let parts = cluster.parts();
    let is_for_devices = share(parts.for_devices(), parts.total()) > FEW;
    if is_for_devices || share(link_ns(&parts), parts.total()) < MOST || cluster.link_rate <= 0.0 {
        return None;
    }
    let full_bytes = cluster.link_rate * cluster.calling_ns as f64 / 1e9;
    let (process, link) = cluster.links.iter().max_by_key(|(_, link)| link.bytes)?;
    let load = link.bytes as f64 / full_bytes;
    if load < FULL_LINK || link.message_count < HABIT {
        return None;
    }
    let name = facts.analysis.header.processes.get(*process as usize)?.name.as_str();
    let message = format!(
        "{name}: {} at {}/s while ranks are in calls; the fastest message of the run went at {}/s",
        format_bytes(link.bytes),
        format_bytes((link.bytes as f64 * 1e9 / cluster.calling_ns.max(1) as f64) as u64),
        format_bytes(cluster.link_rate as u64)
    );
    let remedy = "less over this link: more nodes or servers that take part, data aggregated or \
                  compressed before it is sent, or a faster link";
    let found = finding(facts, cluster, 3, link_ns, (message, remedy), link.row);
    Some(Finding { confidence: Confidence::Likely, ..found })
}

/// From some moment on writes wait for devices, before it they did not.
fn cache_full(facts: &Facts, cluster: &Cluster) -> Option<Finding> {
    let writes = &cluster.writes;
    let waits = |write: &Write| share(write.device_ns, write.took_ns) >= MOST;
    let first = writes.iter().position(waits)?;
    let (before, since) = writes.split_at(first);
    let waiting = since.iter().filter(|write| waits(write)).count();
    let is_turn = before.len() >= WRITES_MIN
        && since.len() >= WRITES_MIN
        && share(waiting as u64, since.len() as u64) >= MOST;
    if !is_turn {
        return None;
    }
    let mean =
        |writes: &[Write]| sum(writes.iter().map(|write| write.took_ns)) / writes.len() as u64;
    let (bytes, calls) = (sum(since.iter().map(|write| write.bytes)), since.len() as u64);
    let mut by_process: BTreeMap<u32, u64> = BTreeMap::new();
    for write in since {
        let time = by_process.entry(write.process).or_default();
        *time = u64::saturating_add(*time, write.device_ns);
    }
    let message = format!(
        "after {} written, servers have no memory left: since {} writes wait for devices ({} each, before {})",
        format_bytes(sum(before.iter().map(|write| write.bytes))),
        duration(since[0].start_ns),
        duration(mean(since)),
        duration(mean(before))
    );
    let time_ns = sum(by_process.values().copied());
    let rows = vec![since[0].row];
    let evidence = Evidence { calls, bytes, time_ns, rows, ..Evidence::default() };
    let remedy = "more memory on servers, a cache layer whose accesses are larger, or writes that come \
                  no faster than devices take them";
    Some(Finding::of_run(NAMES[4], facts, &by_process, evidence, message, remedy))
}
