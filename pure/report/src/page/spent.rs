//! The column of parts: of each call of a rank on a simulated cluster, where its time went.

use super::Timeline;
use super::column::{Column, clamp};
use super::order::Order;
use crate::parts::{Part, Ways};

/// What the viewer calls the parts, in the order of their bits; none where the trace tells nothing of them.
pub(super) fn names(timeline: &Timeline<'_>) -> Vec<&'static str> {
    match ways(timeline) {
        Some(_) => Part::ALL.map(Part::name).to_vec(),
        None => Vec::new(),
    }
}

/// Where the time of calls went. In a part of a trace what a call waited for may be missing, so that nothing is told.
fn ways<'a>(timeline: &Timeline<'a>) -> Option<Ways<'a>> {
    if timeline.part.is_some() { None } else { Ways::new(timeline.trace) }
}

/// For each event which parts took any time, as bits, then how long each of these took. What is no call
/// has none.
pub(super) fn columns(timeline: &Timeline<'_>, order: &Order) -> Vec<(&'static str, Column)> {
    let Some(ways) = ways(timeline) else { return Vec::new() };
    let trace = timeline.trace;
    let mut column = Column::with_capacity(order.events.len());
    for &row in &order.events {
        if !ways.is_call(&trace.events[row as usize]) {
            column.unsigned(0);
            continue;
        }
        let parts = ways.spent(row).parts;
        let taken = || parts.iter().zip(0..).filter(|((_, ns), _)| *ns > 0);
        column.unsigned(taken().fold(0, |bits, (_, bit)| bits | 1 << bit));
        taken().for_each(|((_, ns), _)| column.unsigned(clamp(ns as i64) as u64));
    }
    vec![("parts", column)]
}
