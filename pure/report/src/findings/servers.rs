//! Rules about the servers of a simulated cluster, whose devices a trace shows.

use super::finding::{Confidence, Evidence, Finding, Remedy, Severity};
use crate::facts::Facts;
use crate::text::duration;
use crate::totals::Totals;
use iolab_vocab::format_bytes;

pub(super) const NAMES: &[&str] = &["uneven-servers"];

/// Twice the time of the others is no accident of the stripes.
const BUSY_FACTOR: f64 = 2.0;
/// A share of the run below this is not worth a word.
const NEGLIGIBLE_SHARE: f64 = 0.02;
/// Below this, differences among servers cost nothing.
const NEGLIGIBLE_NS: f64 = 1e6;
const NEGLIGIBLE_BYTES: u64 = 1 << 20;
/// Bytes within half as much again count as the same work.
const SAME_WORK: f64 = 1.5;
/// So many servers are named, the rest is counted.
const NAMED: usize = 3;

/// A device and what it did; also those that did nothing.
struct Device<'a> {
    index: usize,
    name: &'a str,
    did: Totals,
}

impl Device<'_> {
    fn bytes(&self) -> u64 {
        self.did.reads.and(self.did.writes).bytes
    }
}

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    uneven(facts).into_iter().collect()
}

/// The longest busy first.
fn devices<'a>(facts: &'a Facts) -> Vec<Device<'a>> {
    let names = facts.analysis.header.processes.iter().enumerate();
    let devices = names.filter(|(_, entry)| entry.rank < 0 && entry.name.ends_with(" device"));
    let state = |index: usize| facts.analysis.devices.get(&(index as u32)).copied();
    let device = |(index, entry): (usize, &'a iolab_trace::ProcessEntry)| Device {
        index,
        name: entry.name.trim_end_matches(" device"),
        did: state(index).unwrap_or_default(),
    };
    let mut devices: Vec<_> = devices.map(device).collect();
    devices.sort_by_key(|device| std::cmp::Reverse(device.did.io_ns()));
    devices
}

fn mean(devices: &[Device], value: impl Fn(&Device) -> u64) -> f64 {
    devices.iter().map(value).sum::<u64>() as f64 / devices.len() as f64
}

/// At most half of the servers, each of which took twice as long as any other.
fn uneven(facts: &Facts) -> Option<Finding> {
    let all = devices(facts);
    let is_gap = |count: &usize| {
        let (least, next) = (all[count - 1].did.io_ns() as f64, all[*count].did.io_ns() as f64);
        least > 0.0 && least >= BUSY_FACTOR * next
    };
    let count = (1..=all.len() / 2).find(is_gap)?;
    let (busy, others) = all.split_at(count);
    let ns = |one: &Device| one.did.io_ns();
    let (busy_ns, others_ns) = (mean(busy, ns), mean(others, ns));
    let (busy_bytes, others_bytes) =
        (mean(busy, |one| one.bytes()), mean(others, |one| one.bytes()));
    let wall_ns = facts.wall_ns.get(busy[0].index).copied().unwrap_or(0).max(1) as f64;
    let excess_ns = busy_ns - others_ns;
    let share_of_run = (excess_ns / wall_ns).clamp(0.0, 1.0);
    let bytes: u64 = busy.iter().map(Device::bytes).fold(0, u64::saturating_add);
    if bytes < NEGLIGIBLE_BYTES || excess_ns < NEGLIGIBLE_NS || share_of_run < NEGLIGIBLE_SHARE {
        return None;
    }
    let (why, remedy) = match busy_bytes > SAME_WORK * others_bytes {
        true => (
            format!(
                "{} each, against {}",
                format_bytes(busy_bytes as u64),
                format_bytes(others_bytes as u64)
            ),
            "let more servers take part: smaller stripes, files that begin on different servers, \
             or accesses whose distance is no multiple of stripe times servers",
        ),
        false => (
            format!("for about as many bytes ({} each)", format_bytes(busy_bytes as u64)),
            "look at their accesses in the timeline: other offsets, shorter pieces, or slower devices \
             than the others have",
        ),
    };
    let message = format!(
        "{} of {} servers work for {} each, the others for {} ({}): {why}",
        count,
        all.len(),
        duration(busy_ns as u64),
        duration(others_ns as u64),
        named(busy)
    );
    let did = &busy[0].did;
    let row = if did.writes.ns > did.reads.ns { did.writes.row } else { did.reads.row };
    Some(Finding {
        rule: NAMES[0],
        severity: Severity::of(share_of_run),
        confidence: Confidence::Certain,
        message,
        evidence: Evidence {
            calls: busy
                .iter()
                .map(|one| one.did.reads.and(one.did.writes).count)
                .fold(0, u64::saturating_add),
            bytes,
            time_ns: (excess_ns * count as f64) as u64,
            share_of_run,
            share_of: "the run time".to_owned(),
            rows: row.into_iter().collect(),
            ranks: Vec::new(),
        },
        remedy: Some(Remedy { sentence: remedy.to_owned(), strategy: None }),
        file: None,
        files: Vec::new(),
    })
}

fn named(devices: &[Device]) -> String {
    let mut names: Vec<_> =
        devices.iter().take(NAMED).map(|device| device.name.to_owned()).collect();
    if devices.len() > NAMED {
        names.push(format!("{} more", devices.len() - NAMED));
    }
    names.join(", ")
}
