//! Rules about the servers of a simulated cluster, whose devices a trace shows.

use super::{Confidence, Evidence, Finding, Remedy, Severity, grouped};
use crate::analysis::Totals;
use crate::facts::Facts;
use iolab_vocab::format_bytes;

pub(super) const NAMES: &[&str] = &["one-busy-server"];

/// Twice the time of the others is no accident of the stripes.
const BUSY_FACTOR: f64 = 2.0;
/// A share of the run below this is not worth a word.
const NEGLIGIBLE_SHARE: f64 = 0.02;
/// Bytes within half as much again count as the same work.
const SAME_WORK: f64 = 1.5;

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    one_busy(facts).into_iter().collect()
}

/// The device's process in the trace, and what it did; also those that did nothing.
fn devices<'a>(facts: &'a Facts) -> Vec<(usize, &'a str, Totals)> {
    let names = facts.analysis.header.processes.iter().enumerate();
    let devices = names.filter(|(_, entry)| entry.rank < 0 && entry.name.ends_with(" device"));
    let state = |index: usize| facts.analysis.devices.get(&(index as u32)).copied();
    devices.map(|(index, entry)| (index, &*entry.name, state(index).unwrap_or_default())).collect()
}

fn median(mut values: Vec<u64>) -> f64 {
    values.sort_unstable();
    values[(values.len() - 1) / 2] as f64
}

fn one_busy(facts: &Facts) -> Option<Finding> {
    let mut all = devices(facts);
    let busiest = all.iter().max_by_key(|(_, _, did)| did.io_ns())?.0;
    let place = all.iter().position(|(index, ..)| *index == busiest)?;
    let (index, name, did) = all.remove(place);
    if all.is_empty() {
        return None;
    }
    let bytes = |did: &Totals| did.reads.bytes + did.writes.bytes;
    let others_ns = median(all.iter().map(|(_, _, did)| did.io_ns()).collect());
    let others_bytes = median(all.iter().map(|(_, _, did)| bytes(did)).collect());
    let wall_ns = facts.wall_ns.get(index).copied().unwrap_or(0).max(1) as f64;
    let excess_ns = did.io_ns() as f64 - others_ns;
    let share_of_run = (excess_ns / wall_ns).clamp(0.0, 1.0);
    if (did.io_ns() as f64) < BUSY_FACTOR * others_ns || share_of_run < NEGLIGIBLE_SHARE {
        return None;
    }
    let moves_more = bytes(&did) as f64 > SAME_WORK * others_bytes;
    let (why, remedy) = match moves_more {
        true => (
            format!(
                "it moves {}, each of the others {}",
                format_bytes(bytes(&did)),
                format_bytes(others_bytes as u64)
            ),
            "let more servers take part: smaller stripes, files that begin on different servers, \
             or accesses whose distance is no multiple of stripe times servers",
        ),
        false => (
            format!("for about as many bytes ({})", format_bytes(bytes(&did))),
            "look at its accesses in the timeline: other offsets, shorter pieces, or a slower device \
             than the others have",
        ),
    };
    let message = format!(
        "transfers of {name} take {:.3} s, of the other {} in the middle {:.3} s: {why}",
        did.io_ns() as f64 / 1e9,
        grouped(all.len() as u64),
        others_ns / 1e9
    );
    let row = if did.writes.ns > did.reads.ns { did.writes.row } else { did.reads.row };
    Some(Finding {
        rule: NAMES[0],
        severity: Severity::of(share_of_run),
        confidence: Confidence::Certain,
        message,
        evidence: Evidence {
            calls: did.reads.count + did.writes.count,
            bytes: bytes(&did),
            time_ns: excess_ns as u64,
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
