//! A run with its time stretched piece by piece, so that its calls stand where the same calls of another run stand.

use super::calls::{lanes, span};
use super::matching::join;
use super::pair;
use iolab_trace::Trace;
use iolab_vocab::Nanos;
use std::collections::BTreeMap;

/// Moments of one run with the moments of another they are put at; ascending on both sides.
type Ties = Vec<(u64, u64)>;

/// The second run on the time axis of the first; none where no call of it is one of the first.
pub(super) fn stretched(a: &Trace, b: &Trace) -> Option<Trace> {
    let pairing = pair::pair(a, b);
    let (lanes_a, lanes_b) = (lanes(a, &pair::identity(a)), lanes(b, &pairing.numbering));
    let ends = (span(a), span(b));
    let mut ties: BTreeMap<(u32, u32), Ties> = BTreeMap::new();
    for both in join(&lanes_a, &lanes_b) {
        let (Some(one), Some(other)) = (both.a, both.b) else { continue };
        let mut lane: Ties = vec![(ends.1.0, ends.0.0)];
        let mut of = None;
        for (at, to) in both.pairs {
            let (from, to) = (&b.events[other.calls[to].row], &a.events[one.calls[at].row]);
            of = Some((from.process, from.thread));
            add(&mut lane, (from.start.0, to.start.0));
            add(&mut lane, (from.end.0, to.end.0));
        }
        add(&mut lane, (ends.1.1, ends.0.1));
        ties.extend(of.map(|of| (of, lane)));
    }
    if ties.is_empty() {
        return None;
    }
    let whole = vec![(ends.1.0, ends.0.0), (ends.1.1, ends.0.1)];
    let mut trace = b.clone();
    for event in &mut trace.events {
        let lane = ties.get(&(event.process, event.thread)).unwrap_or(&whole);
        (event.start, event.end) = (Nanos(put(lane, event.start.0)), Nanos(put(lane, event.end.0)));
    }
    for (process, entry) in (0..).zip(&mut trace.header.processes) {
        let lane = ties.get(&(process, 0)).unwrap_or(&whole);
        (entry.start_ns, entry.end_ns) = (put(lane, entry.start_ns), put(lane, entry.end_ns));
    }
    Some(trace)
}

/// Adds a tie, unless time would run backwards.
fn add(ties: &mut Ties, tie: (u64, u64)) {
    if ties.last().is_none_or(|last| last.0 < tie.0 && last.1 <= tie.1) {
        ties.push(tie);
    }
}

/// Where a moment is put: between its ties in proportion, beyond them as far away as it was.
fn put(ties: &Ties, moment: u64) -> u64 {
    let next = ties.partition_point(|tie| tie.0 <= moment);
    let Some(last) = next.checked_sub(1).map(|at| ties[at]) else {
        return ties.first().map_or(moment, |first| first.1.saturating_sub(first.0 - moment));
    };
    match ties.get(next) {
        None => last.1.saturating_add(moment - last.0),
        Some(next) => {
            let part = u128::from(moment - last.0) * u128::from(next.1 - last.1);
            last.1 + (part / u128::from(next.0 - last.0)) as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_trace::{Event, Function, Header, ProcessEntry};

    #[test]
    fn matched_calls_stand_above_each_other_and_others_between_them() {
        let call = |offset, start: u64, end: u64| Event {
            offset,
            start: Nanos(start),
            end: Nanos(end),
            ..Event::of(Function::PWRITE)
        };
        let run = |events| Trace {
            header: Header { processes: vec![ProcessEntry::default()], ..Header::default() },
            events,
            ..Trace::default()
        };
        let a = run(vec![call(0, 0, 10), call(1, 100, 110)]);
        let b = run(vec![call(0, 0, 40), call(7, 60, 80), call(1, 130, 190)]);
        let times = |trace: &Trace| -> Vec<(u64, u64)> {
            trace.events.iter().map(|event| (event.start.0, event.end.0)).collect()
        };
        assert_eq!(times(&stretched(&a, &b).unwrap()), [(0, 10), (30, 50), (100, 110)]);
        assert_eq!(stretched(&a, &run(vec![call(9, 1, 2)])), None);
    }
}
