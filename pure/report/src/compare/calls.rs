//! The calls of a run as a comparison looks at them: by process and thread, each with the time that is its
//! own and the time before it.
//!
//! Only calls that a program made itself count (calls inside others are their time), no work of a simulated
//! platform's parts. The time of a thread is divided without rest: into calls, into waiting for child
//! processes, and into what lies outside of calls.

use super::mixed;
use iolab_trace::{Class, Event, Function, Layer, ProcessEntry, Trace};
use std::collections::BTreeMap;

/// A call, or a row that counts several.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) row: usize,
    pub(super) function: Function,
    /// In the numbering that both runs share.
    pub(super) file: u32,
    pub(super) offset: i64,
    pub(super) bytes: u64,
    pub(super) count: u64,
    pub(super) start: u64,
    /// Time that no call before it had.
    pub(super) cost: u64,
    pub(super) before: Between,
    /// Equal where function, file, offset and length are.
    pub(super) key: u64,
}

/// Time without a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Between {
    pub(super) outside: u64,
    /// While a child process ran.
    pub(super) for_children: u64,
}

/// A thread of a process.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    /// In the numbering that both runs share.
    pub(super) process: u32,
    pub(super) thread: u32,
    pub(super) calls: Vec<Call>,
    pub(super) after: Between,
}

impl Lane {
    /// From its beginning to its end.
    pub(super) fn time(&self) -> u64 {
        let of = |between: Between| between.outside + between.for_children;
        self.calls.iter().map(|call| call.cost + of(call.before)).sum::<u64>() + of(self.after)
    }
}

/// How files and processes of a run are numbered in a comparison.
#[derive(Clone, Debug)]
pub(super) struct Numbering {
    pub(super) files: Vec<u32>,
    pub(super) processes: Vec<u32>,
}

/// No row counts more calls, whatever a damaged trace says: sums of them stay in range.
const COUNT_MAX: u64 = 1 << 39;
/// No file.
pub(super) const NO_FILE: u32 = u32::MAX;

/// The calls that the program made itself, with their rows. Calls of HDF5 and NetCDF show in those they make, so that a
/// run compares with one that was recorded without them, and with a simulation.
pub(super) fn own(trace: &Trace) -> impl Iterator<Item = (usize, &Event)> {
    trace.events.iter().enumerate().filter(|(_, event)| {
        let function = event.function;
        let kept = !matches!(
            function.class(),
            Class::Compute | Class::Decision | Class::Piece | Class::Unseen
        );
        let is_call = !function.layer().is_component() && !function.layer().names_objects();
        kept && is_call
            && function != Function::INHERITED
            && event.is_outermost_but_for_objects(&trace.events)
    })
}

/// When the first process began and the last one ended, or the first and the last call.
pub(super) fn span(trace: &Trace) -> (u64, u64) {
    let told = trace.header.processes.iter().filter(|entry| entry.end_ns > entry.start_ns);
    let told = told.map(|entry| (entry.start_ns, entry.end_ns));
    let seen = own(trace).map(|(_, event)| (event.start.0, event.end.0));
    let all = told.chain(seen).reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
    all.unwrap_or_default()
}

/// The calls of each thread, in the order of their beginning.
pub(super) fn lanes(trace: &Trace, numbering: &Numbering) -> Vec<Lane> {
    let mut rows: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
    for (row, event) in own(trace) {
        rows.entry((event.process, event.thread)).or_default().push(row);
    }
    let entries = &trace.header.processes;
    let mut lanes: Vec<Lane> = rows
        .into_iter()
        .map(|((process, thread), mut rows)| {
            rows.sort_by_key(|&row| trace.events[row].start);
            let entry = entries.get(process as usize).filter(|_| thread == 0);
            let children = entry.map_or_else(Vec::new, |entry| children(entry, entries));
            let process = numbering.processes.get(process as usize).copied().unwrap_or(process);
            Lane { process, thread, ..lane(trace, &rows, entry, &children, numbering) }
        })
        .collect();
    lanes.sort_by_key(|lane| (lane.process, lane.thread));
    lanes
}

fn lane(
    trace: &Trace,
    rows: &[usize],
    entry: Option<&ProcessEntry>,
    children: &[(u64, u64)],
    numbering: &Numbering,
) -> Lane {
    let first = rows.first().map_or(0, |&row| trace.events[row].start.0);
    let told = entry.filter(|entry| entry.end_ns > entry.start_ns);
    let mut now = told.map_or(first, |entry| entry.start_ns.min(first));
    let mut calls = Vec::with_capacity(rows.len());
    for &row in rows {
        let event = &trace.events[row];
        let begin = event.start.0.max(now);
        let end = event.end.0.max(begin);
        let before = between(now, begin, children);
        calls.push(Call { cost: end - begin, before, ..call(row, event, numbering) });
        now = end;
    }
    let last = told.map_or(now, |entry| entry.end_ns.max(now));
    Lane { calls, after: between(now, last, children), ..Lane::default() }
}

fn call(row: usize, event: &Event, numbering: &Numbering) -> Call {
    let function = event.function;
    let file = event.file.index().and_then(|file| numbering.files.get(file));
    let file = file.copied().unwrap_or(NO_FILE);
    // The size of a file at its opening and the name of a new one say nothing about which call it is.
    let length = if function.class() == Class::Open { -1 } else { event.length };
    let parts = [u64::from(function.0), file.into(), event.offset as u64, length as u64];
    Call {
        row,
        function,
        file,
        offset: event.offset,
        bytes: event.moved_bytes(),
        count: event.calls().min(COUNT_MAX),
        start: event.start.0,
        cost: 0,
        before: Between::default(),
        key: parts.into_iter().fold(0, mixed),
    }
}

/// When children of a process ran: stretches that do not touch, ascending.
fn children(entry: &ProcessEntry, all: &[ProcessEntry]) -> Vec<(u64, u64)> {
    let is_child = |other: &&ProcessEntry| {
        let within = other.start_ns >= entry.start_ns && other.start_ns < entry.end_ns;
        entry.pid != 0 && other.parent_pid == entry.pid && other.host == entry.host && within
    };
    let mut spans: Vec<_> =
        all.iter().filter(is_child).map(|child| (child.start_ns, child.end_ns)).collect();
    spans.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.0 <= last.1 => last.1 = last.1.max(span.1),
            _ => merged.push(span),
        }
    }
    merged
}

fn between(from: u64, to: u64, children: &[(u64, u64)]) -> Between {
    let first = children.partition_point(|child| child.1 <= from);
    let inside = children[first..].iter().take_while(|child| child.0 < to);
    let for_children = inside.map(|child| child.1.min(to) - child.0.max(from)).sum();
    Between { outside: to - from - for_children, for_children }
}

/// Whether the function waits for others instead of moving or naming data.
pub(super) fn is_waiting(function: Function) -> bool {
    function.layer() == Layer::Mpi && matches!(function.class(), Class::Message | Class::Collective)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_trace::Header;
    use iolab_vocab::Nanos;

    #[test]
    fn the_time_of_a_thread_is_divided_without_rest() {
        let event = |start, end| Event {
            start: Nanos(start),
            end: Nanos(end),
            ..Event::of(Function::WRITE)
        };
        let process = |pid, parent_pid, start_ns, end_ns| ProcessEntry {
            pid,
            parent_pid,
            start_ns,
            end_ns,
            ..ProcessEntry::default()
        };
        let processes = vec![process(1, 0, 0, 100), process(2, 1, 50, 70), process(3, 1, 60, 80)];
        let header = Header { processes, ..Header::default() };
        let trace = Trace {
            header,
            events: vec![event(10, 30), event(20, 35), event(90, 95)],
            ..Trace::default()
        };
        let numbering = Numbering { files: Vec::new(), processes: vec![0, 1, 2] };
        let lane = &lanes(&trace, &numbering)[0];
        assert_eq!(lane.calls.iter().map(|call| call.cost).collect::<Vec<_>>(), [20, 5, 5]);
        assert_eq!(lane.calls[2].before, Between { outside: 25, for_children: 30 });
        assert_eq!(lane.after, Between { outside: 5, for_children: 0 });
    }
}
