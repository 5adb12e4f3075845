//! What the calls of a stretch of time come to, per class, function, file and process.
//!
//! The viewer shows this table for whatever range its user drags; here is what it must say. Golden files
//! (`tools/viewer/test/golden/ranges.json`) hold `tools/viewer/src/statistics.ts` to it, to the last digit.
//! Costs a pass over the events and a sort of the durations per table.

use super::head::Kind;
use super::order::parent_of;
use crate::parts::{self, Ways};
use iolab_trace::{Class, Event, Layer, Trace};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Calls and their time: of a class, a function, a file, a process, or of all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sum {
    /// Whose.
    pub name: String,
    /// Calls that overlap the range; a counted row stands for as many as it counts.
    pub calls: u64,
    /// Bytes that moved, once: a call inside one that moves data moves none of its own.
    pub bytes: u64,
    /// Whole durations.
    pub time: u64,
    /// Durations cut to the range.
    pub cut: u64,
    /// Of these what is not spent in calls inside, as far as their processes are chosen. Calls inside
    /// that overlap each other can take more than there is.
    pub own: i64,
    /// Rows with an error.
    pub failures: u64,
    /// Half of the rows take at most so long.
    pub p50: u64,
    /// And 99 % of them.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

/// The statistics of a range. Each list has those with calls, most of their own time first, then by
/// number of calls and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "each is by what it is called")]
pub struct RangeTables {
    pub total: Sum,
    pub classes: Vec<Sum>,
    pub functions: Vec<Sum>,
    pub files: Vec<Sum>,
    pub processes: Vec<Sum>,
    /// Where the time of calls on a simulated cluster went, whole, in the order of [`parts::Part::ALL`]; empty
    /// where nobody knows.
    pub parts: Vec<u64>,
}

/// What a call is coloured as on the page, by the name it has in searches.
pub fn class_of(event: &Event) -> String {
    match event.function.layer() {
        Layer::Device => ["device", "device-near", "device-far"]
            [usize::try_from(event.argument).map_or(0, |seek| seek.min(2))]
        .to_owned(),
        Layer::Server if Kind::of(event.function) == Kind::Read => "serve-read".to_owned(),
        Layer::Server => "serve-write".to_owned(),
        Layer::Network if event.function == iolab_trace::Function::SEND => "sent".to_owned(),
        Layer::Network => "received".to_owned(),
        _ => format!("{:?}", Kind::of(event.function)).to_lowercase(),
    }
}

/// A sum being made.
#[derive(Default)]
struct Part {
    sum: Sum,
    durations: Vec<u64>,
}

type Parts = BTreeMap<String, Part>;

/// The statistics of the calls of some processes (`None`: all) that overlap the time from `from` to `to`
/// (excluded), in nanoseconds of the trace. A call without duration belongs to the moment it stands at.
pub fn range(trace: &Trace, from: u64, to: u64, processes: Option<&BTreeSet<u32>>) -> RangeTables {
    let events = &trace.events;
    let is_chosen = |event: &Event| processes.is_none_or(|chosen| chosen.contains(&event.process));
    let mut tables: [Parts; 5] = Default::default();
    let ways = Ways::new(trace);
    let mut spent = parts::Parts::default();
    for (row, event) in events.iter().enumerate() {
        let (start, end) = (event.start.0, event.end.0.max(event.start.0));
        let is_call = event.function.class() != Class::Piece;
        if !is_call || !is_chosen(event) || !event.overlaps(from, to) {
            continue;
        }
        if let Some(ways) = ways.as_ref().filter(|ways| ways.is_call(event)) {
            spent.merge(&ways.spent(row as u32).parts);
        }
        let cut = end.min(to) - start.max(from);
        let bytes = if is_inside_data(events, row) { 0 } else { event.moved_bytes() };
        for (table, name) in tables.iter_mut().zip(names(trace, event)) {
            let part = table.entry(name).or_default();
            part.sum.calls += event.calls();
            part.sum.bytes += bytes;
            part.sum.time += end - start;
            part.sum.cut += cut;
            part.sum.own += cut as i64;
            part.sum.failures += u64::from(event.errno().is_some());
            part.durations.push(end - start);
        }
        let Some(parent) = parent_of(events, row).map(|at| &events[at]) else { continue };
        if parent.end.0 > from && parent.start.0 < to {
            for (table, name) in tables.iter_mut().zip(names(trace, parent)) {
                table.entry(name).or_default().sum.own -= cut as i64;
            }
        }
    }
    let [total, classes, functions, files, processes] = tables.map(finished);
    let total = total.into_iter().next();
    RangeTables {
        total: total.unwrap_or_else(|| Sum { name: "all".to_owned(), ..Sum::default() }),
        classes,
        functions,
        files,
        processes,
        parts: spent.iter().filter(|_| ways.is_some()).map(|(_, ns)| ns).collect(),
    }
}

/// Under which names a call is summed, table by table.
fn names(trace: &Trace, event: &Event) -> [String; 5] {
    let file = event.file.index().and_then(|index| trace.header.files.get(index));
    let process = event.process as usize;
    let (name, rank) = match trace.header.processes.get(process) {
        Some(entry) => (entry.name.as_str(), entry.rank),
        None => ("", -1),
    };
    [
        "all".to_owned(),
        class_of(event),
        event.function.name().to_owned(),
        file.map_or_else(String::new, |file| file.path.clone()),
        super::head::process_name(process, name, rank),
    ]
}

/// Whether a call around it moves data.
fn is_inside_data(events: &[Event], row: usize) -> bool {
    let mut at = row;
    // A damaged trace may have parents in a ring.
    for _ in 0..64 {
        match parent_of(events, at) {
            Some(parent) if events[parent].function.class().moves_data() => return true,
            Some(parent) => at = parent,
            None => return false,
        }
    }
    false
}

fn finished(parts: Parts) -> Vec<Sum> {
    let finish = |(name, mut part): (String, Part)| {
        part.durations.sort_unstable();
        let nearest = |percent: usize| {
            let rank = (part.durations.len() * percent).div_ceil(100);
            rank.checked_sub(1).map_or(0, |at| part.durations[at])
        };
        let (p50, p99, max) = (nearest(50), nearest(99), nearest(100));
        Sum { name, p50, p99, max, ..part.sum }
    };
    let mut sums: Vec<Sum> = parts.into_iter().map(finish).collect();
    sums.sort_by(|a, b| (b.own, b.calls).cmp(&(a.own, a.calls)).then_with(|| a.name.cmp(&b.name)));
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_trace::{FileEntry, Function, Header, ProcessEntry};
    use iolab_vocab::{FileId, Nanos};

    fn call(function: Function, start: u64, end: u64, parent: i64) -> Event {
        let (start, end) = (Nanos(start), Nanos(end));
        Event { start, end, parent, file: FileId(0), result: 10, ..Event::of(function) }
    }

    fn trace(events: Vec<Event>) -> Trace {
        let file = FileEntry { path: "/f".to_owned(), ..FileEntry::default() };
        let process = |name: &str| ProcessEntry {
            name: name.to_owned(),
            rank: -1,
            ..ProcessEntry::default()
        };
        let header = Header {
            files: vec![file],
            processes: vec![process("a"), process("b")],
            ..Header::default()
        };
        Trace { header, events, ..Trace::default() }
    }

    #[test]
    fn a_call_that_sticks_out_counts_whole_and_cut() {
        let tables = range(&trace(vec![call(Function::WRITE, 0, 100, -1)]), 40, 60, None);
        let total = tables.total;
        assert_eq!(
            (total.calls, total.bytes, total.time, total.cut, total.own),
            (1, 10, 100, 20, 20)
        );
        assert_eq!((total.p50, total.p99, total.max), (100, 100, 100));
    }

    #[test]
    fn a_range_has_its_beginning_and_not_its_end() {
        let moments = trace([40, 60].map(|at| call(Function::WRITE, at, at, -1)).to_vec());
        assert_eq!(range(&moments, 40, 60, None).total.calls, 1);
        let beside =
            trace([(0, 40), (60, 90)].map(|(s, e)| call(Function::READ, s, e, -1)).to_vec());
        assert_eq!(
            range(&beside, 40, 60, None),
            RangeTables {
                total: Sum { name: "all".to_owned(), ..Sum::default() },
                ..RangeTables::default()
            }
        );
    }

    #[test]
    fn what_is_inside_is_not_the_outer_calls_own_and_moves_nothing_again() {
        let events = vec![call(Function::FWRITE, 0, 100, -1), call(Function::WRITE, 10, 50, 0)];
        let tables = range(&trace(events), 0, 30, None);
        let own = |name: &str| tables.functions.iter().find(|sum| sum.name == name).unwrap().own;
        assert_eq!((own("fwrite"), own("write")), (10, 20));
        assert_eq!((tables.total.bytes, tables.total.own, tables.total.cut), (10, 30, 50));
    }

    #[test]
    fn only_chosen_processes_count() {
        let events = vec![
            call(Function::WRITE, 0, 10, -1),
            Event { process: 1, ..call(Function::READ, 0, 10, -1) },
        ];
        let tables = range(&trace(events), 0, 10, Some(&BTreeSet::from([1])));
        let names: Vec<&str> = tables.processes.iter().map(|sum| sum.name.as_str()).collect();
        assert_eq!((tables.total.calls, names), (1, vec!["b"]));
    }
}
