//! A page about traces and nothing else: what each run holds, and their timelines on one axis.

use super::{Cell, Page, Section, Table, Timeline};
use iolab_trace::{Event, Header, Once, Trace};
use iolab_vocab::{Nanos, format_bytes};
use std::collections::BTreeSet;

use crate::chart::Unit;
use crate::thousands::{grouped, of_processes};

/// A page that lays runs beside each other; each comes with the name it is known by (its file's).
pub fn compare<'a>(runs: &[(String, &'a Trace)]) -> Page<'a> {
    let labels = labels(runs);
    let timelines = runs
        .iter()
        .zip(&labels)
        .map(|((_, trace), label)| Timeline::new(label.clone(), trace))
        .collect();
    let first = runs.first().map(|(_, trace)| &trace.header);
    Page {
        title: first.map_or_else(String::new, title),
        headline: headline(runs),
        facts: first.map_or_else(Vec::new, facts),
        sections: vec![Section::Timeline, Section::Table(table(runs, &labels))],
        timelines,
    }
}

fn title(header: &Header) -> String {
    match header.command.is_empty() {
        true => "Trace without a command".to_owned(),
        false => header.command.join(" "),
    }
}

fn facts(header: &Header) -> Vec<(String, String)> {
    let pairs = [
        ("host", header.host.clone()),
        ("directory", header.working_directory.clone()),
        ("clock", header.clock.source.clone()),
        ("iolab", header.iolab_version.clone()),
    ];
    let filled = pairs.into_iter().filter(|(_, value)| !value.is_empty());
    filled.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// How the runs came to be; two that would be called the same get their file's name too.
fn labels(runs: &[(String, &Trace)]) -> Vec<String> {
    let origins: Vec<String> = runs.iter().map(|(_, trace)| label(&trace.header)).collect();
    let distinct = |(at, (name, _)): (usize, &(String, &Trace))| {
        let is_shared = origins.iter().filter(|&origin| *origin == origins[at]).count() > 1;
        match is_shared {
            true => format!("{}: {name}", origins[at]),
            false => origins[at].clone(),
        }
    };
    runs.iter().enumerate().map(distinct).collect()
}

/// What to call a run: how it came to be, and what was applied to it.
pub fn label(header: &Header) -> String {
    let origin = format!("{:?}", header.origin).to_lowercase();
    match header.strategies.is_empty() {
        true => origin,
        false => format!("{origin}: {}", header.strategies.join(" over ")),
    }
}

/// What a run adds up to. Bytes are of the calls that count (`Once`), time in calls is of the outermost
/// ones; what the parts of a simulated platform did for them is not counted again.
struct Sum {
    calls: u64,
    processes: usize,
    moved_bytes: u64,
    in_calls: Nanos,
    span: Nanos,
    lost: u64,
}

fn sum(trace: &Trace) -> Sum {
    let calls = || trace.events.iter().filter(|event| !event.function.layer().is_component());
    let outer = calls().filter(|event| event.parent < 0);
    let mut once = Once::default();
    let counted = trace.events.iter().filter(|event| once.counts(event));
    let moved_bytes = counted.map(|event| event.moved_bytes()).fold(0, u64::saturating_add);
    let called: BTreeSet<u32> = calls().map(|event| event.process).collect();
    let starts = trace.events.iter().map(|event| event.start.0);
    let ends = trace.events.iter().map(|event| event.end.0);
    Sum {
        calls: calls().map(Event::calls).fold(0, u64::saturating_add),
        processes: match trace.events.iter().any(|event| event.function.layer().is_component()) {
            true => called.len(),
            false => trace.header.processes.len().max(1),
        },
        moved_bytes,
        in_calls: Nanos(outer.map(|event| event.duration().0).fold(0, u64::saturating_add)),
        span: Nanos(ends.max().unwrap_or(0).saturating_sub(starts.min().unwrap_or(0))),
        lost: trace.header.losses.lost_calls.values().copied().fold(0, u64::saturating_add),
    }
}

fn headline(runs: &[(String, &Trace)]) -> String {
    let [(_, trace), others @ ..] = runs else { return "No trace.".to_owned() };
    let sum = sum(trace);
    let line = format!(
        "{} calls of {} moved {} in {}",
        grouped(sum.calls),
        of_processes(sum.processes as u64),
        format_bytes(sum.moved_bytes),
        Unit::Seconds.format(sum.span.seconds())
    );
    match others.len() {
        0 => format!("{line}."),
        1 => format!("{line}; beside it, another run."),
        count => format!("{line}; beside it, {count} other runs."),
    }
}

fn table(runs: &[(String, &Trace)], labels: &[String]) -> Table {
    let columns = [
        "run",
        "calls",
        "bytes moved",
        "first to last call",
        "in calls, all threads",
        "dropped events",
    ];
    let mut table = Table::new("Runs", columns);
    for ((_, trace), label) in runs.iter().zip(labels) {
        let sum = sum(trace);
        let seconds = |time: Nanos| Unit::Seconds.format(time.seconds());
        let cells = [
            label.clone(),
            grouped(sum.calls),
            format_bytes(sum.moved_bytes),
            seconds(sum.span),
            seconds(sum.in_calls),
            grouped(sum.lost),
        ];
        table.rows.push(cells.into_iter().map(Cell::from).collect());
    }
    table.caption("Calls made inside other calls are counted as calls, but neither their time nor their bytes twice.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_trace::{Function, Origin};

    fn run(origin: Origin, strategies: &[&str]) -> Trace {
        let inner = Event { length: 9, result: 9, parent: 0, ..Event::of(Function::WRITE) };
        let outer = Event { length: 9, result: 9, end: Nanos(50), ..Event::of(Function::FWRITE) };
        let strategies = strategies.iter().map(|&name| name.to_owned()).collect();
        let header = Header { origin, strategies, ..Header::default() };
        Trace { header, events: vec![outer, inner], ..Trace::default() }
    }

    #[test]
    fn runs_are_called_by_origin_and_strategies_and_by_file_only_where_needed() {
        let traces = [
            run(Origin::Recorded, &[]),
            run(Origin::Simulated, &["write-back"]),
            run(Origin::Recorded, &[]),
        ];
        let names = ["a.iot", "b.iot", "c.iot"];
        let runs: Vec<_> = names.iter().map(|&name| name.to_owned()).zip(&traces).collect();
        assert_eq!(labels(&runs), ["recorded: a.iot", "simulated: write-back", "recorded: c.iot"]);
    }

    #[test]
    fn bytes_and_time_of_calls_inside_calls_are_not_counted_twice() {
        let trace = run(Origin::Recorded, &[]);
        let page = compare(&[("a.iot".to_owned(), &trace)]);
        assert_eq!(page.headline, "2 calls of 1 process moved 9 B in 50 ns.");
    }

    #[test]
    fn a_page_of_nothing_is_still_a_page() {
        assert_eq!(compare(&[]).headline, "No trace.");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(999), "999");
    }
}
