//! The columns of causes: for each event how many it has, then where each of them is drawn.

use super::column::Column;
use super::order::Order;
use iolab_trace::{Links, Trace};

/// `begun_by` and `ended_by`; nothing where no cause is known.
pub(super) fn columns(
    trace: &Trace,
    order: &Order,
    positions: &[u32],
) -> Vec<(&'static str, Column)> {
    if trace.causes.is_empty() {
        return Vec::new();
    }
    let column = |links: &Links| column(links, order, positions);
    vec![("begun_by", column(&trace.causes.begun_by)), ("ended_by", column(&trace.causes.ended_by))]
}

/// Each cause is the difference from the place behind the last one: what causes rows that follow each other
/// mostly follows each other, too.
fn column(links: &Links, order: &Order, positions: &[u32]) -> Column {
    let mut column = Column::with_capacity(order.events.len());
    let mut expected = 0;
    for &row in &order.events {
        let causes = links.of(row as usize).iter();
        let places: Vec<u32> =
            causes.filter_map(|&cause| positions.get(cause as usize).copied()).collect();
        column.unsigned(places.len() as u64);
        for place in places {
            column.signed(i64::from(place) - expected);
            expected = i64::from(place) + 1;
        }
    }
    column
}
