//! Three traces and twenty random ranges of each, with what these come to: what the viewer's statistics
//! are held to.

use iolab_report::page::{encode, encode_in_cells, range};
use iolab_trace::{
    Causes, Event, FileEntry, Function, Header, Links, Origin, ProcessEntry, ProcessKind, Trace,
};
use iolab_vocab::{FileId, Nanos, Random, Seed};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const RANGES: usize = 20;
/// Of traces whose calls are gathered.
const CELLS: u64 = 12;

/// By name: the bytes of each trace, and the ranges of all.
pub(crate) fn files() -> Vec<(String, Vec<u8>)> {
    let traces = [("nested", nested()), ("cluster", cluster()), ("bursts", bursts())];
    let ranges: Vec<Value> = traces.iter().flat_map(|(name, trace)| ranges(name, trace)).collect();
    let text = serde_json::to_string(&ranges).expect("only strings and numbers") + "\n";
    let mut files: Vec<(String, Vec<u8>)> = traces
        .iter()
        .map(|(name, trace)| (format!("ranges-{name}.iotl"), encode(name, trace)))
        .collect();
    files.extend(traces.iter().map(|(name, trace)| {
        (format!("gathered-{name}.iotl"), encode_in_cells(name, trace, CELLS))
    }));
    files.push(("ranges.json".to_owned(), text.into_bytes()));
    files
}

fn ranges(name: &str, trace: &Trace) -> Vec<Value> {
    let mut random = Random::new(Seed(17));
    let zero = trace.events.iter().map(|event| event.start.0).min().unwrap_or(0);
    let last = trace.events.iter().map(|event| event.end.0).max().unwrap_or(0);
    let edges: Vec<u64> =
        trace.events.iter().flat_map(|event| [event.start.0, event.end.0]).collect();
    let mut one = |turn: usize| {
        // Every other range begins and ends where calls do, which is where errors by one show.
        let mut edge = || match turn % 2 {
            0 => edges[random.below(edges.len() as u64) as usize],
            _ => zero + random.below(last - zero),
        };
        let (a, b) = (edge(), edge());
        let (from, to) = (a.min(b), a.max(b) + 1);
        let chosen: Option<BTreeSet<u32>> = (!turn.is_multiple_of(3)).then(|| {
            let count = trace.header.processes.len() as u32;
            (0..count).filter(|_| random.below(2) == 0).collect()
        });
        let tables = range(trace, from, to, chosen.as_ref());
        json!({ "trace": name, "from": from, "to": to, "processes": chosen, "tables": tables })
    };
    (0..RANGES).map(&mut one).collect()
}

fn trace_of(origin: Origin, names: &[(&str, i32)], files: &[&str], events: Vec<Event>) -> Trace {
    let process = |&(name, rank): &(&str, i32)| ProcessEntry {
        name: name.to_owned(),
        rank,
        host: name.split(' ').next().unwrap_or_default().to_owned(),
        ..ProcessEntry::default()
    };
    let file = |path: &&str| FileEntry { path: (*path).to_owned(), ..FileEntry::default() };
    let header = Header {
        origin,
        files: files.iter().map(file).collect(),
        processes: names.iter().map(process).collect(),
        ..Header::default()
    };
    Trace { header, events, ..Trace::default() }
}

/// Calls in calls in calls, some of which fail, rows that count calls on a stream, and extents of calls.
fn nested() -> Trace {
    let mut random = Random::new(Seed(5));
    let mut events: Vec<Event> = Vec::new();
    for process in 0..3 {
        let mut now = 1_000 + random.below(500);
        for _ in 0..40 {
            let length = 64 * (1 + random.below(64)) as i64;
            let file = FileId(random.below(3) as u32);
            let outer = events.len() as i64;
            let at = |start, end, parent, function| Event {
                process,
                rank: process as i32,
                thread: 0,
                file,
                length,
                offset: 0,
                result: length,
                start: Nanos(start),
                end: Nanos(end),
                parent,
                ..Event::of(function)
            };
            match random.below(6) {
                0 => events.push(Event { result: -28, ..at(now, now + 700, -1, Function::PWRITE) }),
                1 => events.push(Event { argument: 30, ..at(now, now, -1, Function::FWRITE) }),
                2 => events.push(Event { result: 0, ..at(now, now + 90, -1, Function::FSYNC) }),
                3 => events.push(at(now, now + 300, -1, Function::READ)),
                4 => {
                    events.push(at(now, now + 600, -1, Function::MPI_FILE_WRITE));
                    let extent = at(now, now + 600, outer, Function::VIEW_PIECE);
                    events.extend(vec![Event { length: length / 4, result: 0, ..extent }; 4]);
                }
                _ => {
                    events.push(at(now, now + 1_000, -1, Function::MPI_FILE_WRITE));
                    events.push(at(now + 50, now + 900, outer, Function::FWRITE));
                    events.push(Event {
                        result: 0,
                        ..at(now + 100, now + 150, outer + 1, Function::LSEEK)
                    });
                    events.push(at(now + 200, now + 850, outer + 1, Function::WRITE));
                }
            }
            now += 1_000 + random.below(400);
        }
    }
    let names = [("solver", 0), ("solver", 1), ("rank 2", 2)];
    trace_of(Origin::Recorded, &names, &["/data/a", "/data/b"], events)
}

/// Ranks, a server that works on several requests at once, its device, its links.
fn cluster() -> Trace {
    let mut random = Random::new(Seed(6));
    let mut events = Vec::new();
    let functions = [
        &[Function::MPI_FILE_WRITE, Function::MPI_FILE_READ, Function::MPI_BARRIER][..],
        &[Function::SERVE_READ, Function::SERVE_WRITE],
        &[Function::DEVICE_READ, Function::DEVICE_WRITE],
        &[Function::SEND],
        &[Function::RECEIVE],
    ];
    for (process, choice) in [0, 0, 1, 2, 3, 4].into_iter().enumerate() {
        let mut now = random.below(1_000);
        for _ in 0..120 {
            let length = 1_000 + random.below(9_000);
            events.push(Event {
                process: process as u32,
                rank: if process < 2 { process as i32 } else { -1 },
                file: FileId(0),
                length: 65_536,
                result: 65_536,
                argument: random.below(3) as i64,
                start: Nanos(now),
                end: Nanos(now + length),
                ..Event::of(
                    functions[choice][random.below(functions[choice].len() as u64) as usize],
                )
            });
            // A server begins with the next request before this one is done.
            now += if choice == 1 { length / 4 } else { length + random.below(3_000) };
        }
    }
    let names = [
        ("rank 0", 0),
        ("rank 1", 1),
        ("node requests", -1),
        ("node device", -1),
        ("node sent", -1),
        ("node received", -1),
    ];
    let mut trace = trace_of(Origin::Simulated, &names, &["checkpoint"], events);
    let kinds = [ProcessKind::Server, ProcessKind::Device, ProcessKind::NicOut, ProcessKind::NicIn];
    for (entry, kind) in trace.header.processes[2..].iter_mut().zip(kinds) {
        entry.kind = kind;
    }
    trace.causes = any_causes(&trace.events, &mut random);
    trace.keep_possible_causes();
    trace
}

/// Of each end of each event a few of the others.
fn any_causes(events: &[Event], random: &mut Random) -> Causes {
    let count = events.len() as u64;
    let mut links = || {
        let mut pair = |at| ((at / 3) as u32, random.below(count) as u32);
        Links::from_pairs((0..3 * count).map(&mut pair).collect())
    };
    Causes { begun_by: links(), ended_by: links() }
}

/// Bursts of short calls that touch each other, long after the beginning of time.
fn bursts() -> Trace {
    let mut random = Random::new(Seed(7));
    let mut events = Vec::new();
    for process in 0..2 {
        let mut now = 4_000_000_000_000 + u64::from(process);
        for call in 0..600 {
            let length = random.below(4);
            let function = if call % 7 == 0 { Function::READ } else { Function::WRITE };
            events.push(Event {
                process,
                file: FileId(process),
                length: 8,
                result: if random.below(40) == 0 { -5 } else { 8 },
                start: Nanos(now),
                end: Nanos(now + length),
                ..Event::of(function)
            });
            now += length + if call % 100 == 99 { 1_000_000_000 } else { 0 };
        }
    }
    trace_of(Origin::Recorded, &[("first", -1), ("second", -1)], &["/x", "/y"], events)
}
