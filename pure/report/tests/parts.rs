//! Where the time of calls on simulated clusters went.

#[path = "../../sim/tests/busy_runs/mod.rs"]
mod busy_runs;

use busy_runs::{EVERYTHING, full_memories, recorded};
use iolab_report::parts::{Part, PartRow, PartSums, Parts, Ways};
use iolab_report::{Analysis, report_page};
use iolab_sim::platform::{PRESETS, Platform};
use iolab_sim::workload::{Settings, Workload, run};
use iolab_trace::{Causes, Event, Function, Layer, Links, Trace};
use iolab_vocab::{Nanos, Random, Seed};
use std::collections::BTreeMap;

fn calls<'a>(trace: &'a Trace, ways: &Ways<'_>) -> Vec<(u32, &'a Event)> {
    let rows = trace.events.iter().zip(0..).filter(|(event, _)| ways.is_call(event));
    rows.map(|(event, row)| (row, event)).collect()
}

fn took(event: &Event) -> u64 {
    event.end.since(event.start).0
}

/// All of them, added up.
#[track_caller]
fn assert_parts_add_up(name: &str, trace: &Trace) -> Parts {
    let ways = Ways::new(trace).unwrap();
    let calls = calls(trace, &ways);
    assert!(calls.len() > 10, "{name}");
    for &(row, event) in &calls {
        assert_eq!(ways.spent(row).parts.total(), took(event), "{name}: {event:?}");
    }
    let total = PartSums::of(trace).unwrap().total;
    assert_eq!(total.call_count, calls.len() as u64, "{name}");
    assert_eq!(total.time_ns, calls.iter().map(|(_, event)| took(event)).sum::<u64>(), "{name}");
    total.parts
}

#[test]
fn the_parts_of_every_call_add_up_to_what_it_took() {
    for (name, trace) in (1..=10).map(full_memories::random).chain(busy_runs::all()) {
        let parts = assert_parts_add_up(&name, &trace);
        for part in [Part::Client, Part::Sending, Part::Wire, Part::Transferring, Part::Answering] {
            assert!(parts.of(part) > 0, "{name}: nothing {}", part.name());
        }
    }
}

/// A workload of one rank with one file of that size.
fn alone(size: &str, command: &str) -> String {
    format!(
        "name = 'one'
files = [{{ name = 'f', size = '{size}' }}]
[[applications]]
name = 'one'
ranks = 1
phases = [{{ name = 'all', commands = [{{ open = 'f' }}, {command}, {{ close = 'f' }}] }}]
"
    )
}

fn one_rank(command: &str, cache: &str) -> Trace {
    let text = alone("8m", command);
    let settings = Settings { cache: Some(cache.to_owned()), ..Settings::default() };
    recorded(&text, "classic-hdd", &settings)
}

fn only(trace: &Trace, function: Function) -> (u32, &Event) {
    let rows: Vec<_> =
        trace.events.iter().zip(0..).filter(|(event, _)| event.function == function).collect();
    let &[(event, row)] = rows.as_slice() else { panic!("{} of {}", rows.len(), function.name()) };
    (row, event)
}

#[test]
fn a_read_alone_spends_its_time_with_what_its_rows_say() {
    let trace = one_rank("{ read = 'f', bytes = '4k' }", "none");
    let ways = Ways::new(&trace).unwrap();
    let spent = ways.spent(only(&trace, Function::MPI_FILE_READ).0);
    let access = only(&trace, Function::DEVICE_READ).1;
    let carrying = |function, argument| {
        let is_it = |event: &&Event| event.function == function && event.argument == argument;
        trace.events.iter().filter(is_it).collect::<Vec<_>>()
    };
    let (request, data) = (carrying(Function::SEND, 0)[0], carrying(Function::SEND, 2)[0]);
    let arrived = |argument| carrying(Function::RECEIVE, argument)[0].end;
    let parts = spent.parts;
    assert_eq!(parts.of(Part::Sending), took(request));
    assert_eq!(
        parts.of(Part::Wire),
        arrived(0).since(request.end).0 + arrived(2).since(data.end).0
    );
    assert!(access.fd > 0);
    assert_eq!(parts.of(Part::Positioning), access.fd as u64);
    assert_eq!(parts.of(Part::Transferring), took(access) - access.fd as u64);
    assert_eq!(parts.of(Part::Answering), data.end.since(access.end).0);
    let left = [Part::DeviceWait, Part::ServerWait, Part::Rest].map(|part| parts.of(part));
    assert_eq!(left, [0, 0, 0]);
    assert_eq!(spent.server.map(|at| ways.servers()[at]), Some("server0"));
}

#[test]
fn a_write_that_is_kept_in_memory_waits_for_no_device() {
    let trace = one_rank("{ write = 'f', bytes = '4k' }, { compute = '1s' }", "write-behind");
    let ways = Ways::new(&trace).unwrap();
    let parts = ways.spent(only(&trace, Function::MPI_FILE_WRITE).0).parts;
    let device = [Part::DeviceWait, Part::Positioning, Part::Transferring];
    assert_eq!(device.map(|part| parts.of(part)), [0, 0, 0]);
    assert!(parts.of(Part::Wire) > 0 && parts.of(Part::Answering) > 0);
}

/// The parts of one write to one server with so much memory, whose device is slower than its link.
fn parts_of_a_write(bytes: &str, memory: &str) -> Parts {
    let workload = alone("1000m", &format!("{{ write = 'f', bytes = '{bytes}' }}"));
    let (_, platform) = PRESETS.iter().find(|(name, _)| *name == "classic-hdd").unwrap();
    let mut platform = (*platform).to_owned();
    let memory = format!("memory_bytes = \"{memory}\"");
    for (before, after) in [
        ("memory_bytes = \"1000m\"", memory.as_str()),
        ("stripe_bytes = \"64k\"", "stripe_bytes = \"1000m\""),
    ] {
        assert!(platform.contains(before), "{before}");
        platform = platform.replace(before, after);
    }
    let platform = Platform::parse(&platform).unwrap();
    let cache = Some("write-behind".to_owned());
    let settings = Settings { record: true, cache, ..Settings::default() };
    let trace =
        run(&Workload::parse(&workload).unwrap(), &platform, &settings).unwrap().trace.unwrap();
    let ways = Ways::new(&trace).unwrap();
    ways.spent(only(&trace, Function::MPI_FILE_WRITE).0).parts
}

#[test]
fn what_a_full_server_holds_back_is_not_on_the_wire() {
    let (roomy, full) = (parts_of_a_write("400m", "1000m"), parts_of_a_write("400m", "2m"));
    let moving = |parts: &Parts| parts.of(Part::Sending) + parts.of(Part::Wire);
    assert_eq!(roomy.of(Part::Memory), 0);
    assert!(full.of(Part::Memory) > full.total() / 10, "{full:?}");
    assert!(moving(&full) <= moving(&roomy) * 11 / 10, "{full:?} against {roomy:?}");
}

#[test]
fn who_waits_for_a_late_rank_waits_for_no_server() {
    let text = "name = 'late'
[[applications]]
name = 'late'
ranks = 3
[[applications.phases]]
name = 'all'
commands = [{ compute = '50ms', only = [1] }, { barrier = true }]
";
    let trace = recorded(text, "classic-hdd", &Settings::default());
    let barriers = PartSums::of(&trace).unwrap();
    let rest = barriers.total.parts.of(Part::Rest);
    assert!((99_000_000..=101_000_000).contains(&rest), "two ranks waited 50 ms each, not {rest}");
    assert!(barriers.servers.is_empty() && barriers.files.is_empty());
}

#[test]
fn what_waits_for_a_slow_server_is_told_under_its_name() {
    let text = "name = 'writers'
files = [{ name = 'f', size = '80m' }]
[[applications]]
name = 'writers'
ranks = 4
phases = [{ name = 'all', commands = [{ open = 'f' }, { read = 'f', pattern = 'segmented:request=1m,count=8' }, { close = 'f' }] }]
";
    let faults = "[[faults]]\nkind = 'slow-device'\nserver = 'server4'\nfactor = 8\n";
    let faults = Some(iolab_sim::scenario::Scenario::parse(faults).unwrap());
    let trace = recorded(text, "classic-hdd", &Settings { faults, ..Settings::default() });
    let servers = PartSums::of(&trace).unwrap().servers;
    let time = |row: &PartRow| row.time_ns;
    assert_eq!(servers[0].name, "server4");
    assert!(time(&servers[0]) > 9 * servers[1..].iter().map(time).sum::<u64>());
}

#[test]
fn every_grouping_has_each_call_at_most_once() {
    let trace = recorded(EVERYTHING, "classic-hdd", &Settings::default());
    let sums = PartSums::of(&trace).unwrap();
    let count = |rows: &[PartRow]| rows.iter().map(|row| row.call_count).sum::<u64>();
    let time = |rows: &[PartRow]| rows.iter().map(|row| row.time_ns).sum::<u64>();
    for whole in [&sums.functions, &sums.phases] {
        let all = (sums.total.call_count, sums.total.time_ns);
        assert_eq!((count(whole), time(whole)), all);
        assert!(whole.is_sorted_by_key(|row| std::cmp::Reverse(row.time_ns)));
    }
    assert_eq!(sums.files.len(), 5, "one shared, one for each of four ranks");
    assert!(count(&sums.files) < sums.total.call_count);
    assert!(count(&sums.servers) < sums.total.call_count);
    for row in sums.functions.iter().chain(&sums.phases).chain(&sums.files).chain(&sums.servers) {
        assert_eq!(row.parts.total(), row.time_ns, "{}", row.name);
    }
}

#[test]
fn calls_are_told_under_each_server_whose_answer_they_waited_for_last() {
    let trace = recorded(EVERYTHING, "classic-hdd", &Settings::default());
    let ways = Ways::new(&trace).unwrap();
    let calls = trace.events.iter().zip(0..).filter(|(event, _)| ways.is_call(event));
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for server in calls.filter_map(|(_, row)| ways.spent(row).server) {
        *counts.entry(ways.servers()[server]).or_default() += 1;
    }
    let servers = PartSums::of(&trace).unwrap().servers;
    let told = servers.iter().map(|row| (row.name.as_str(), row.call_count)).collect();
    assert_eq!(counts, told);
    assert!(counts.contains_key(ways.servers()[0]) && counts.len() > 2, "{counts:?}");
}

#[test]
fn a_trace_without_causes_or_without_devices_has_no_parts() {
    let mut trace = recorded(EVERYTHING, "classic-hdd", &Settings::default());
    let causes = std::mem::take(&mut trace.causes);
    assert!(PartSums::of(&trace).is_none());
    trace.causes = causes;
    assert!(PartSums::of(&trace).is_some());
    trace.header.processes.clear();
    assert!(PartSums::of(&trace).is_none());
}

/// So many causes of nothing, of the future, of each other.
fn damaged(trace: &Trace, random: &mut Random, count: u64) -> Causes {
    let rows = trace.events.len() as u64;
    let mut pairs = || {
        let mut pair = |_| (random.below(rows) as u32, random.below(rows + rows / 8) as u32);
        Links::from_pairs((0..count).map(&mut pair).collect())
    };
    Causes { begun_by: pairs(), ended_by: pairs() }
}

#[test]
fn the_parts_add_up_however_damaged_causes_are() {
    let mut trace = recorded(EVERYTHING, "classic-hdd", &Settings::default());
    let mut random = Random::new(Seed(7));
    for count in [1, 100, 10_000, 100_000] {
        trace.causes = damaged(&trace, &mut random, count);
        assert_parts_add_up(&format!("{count} causes"), &trace);
    }
    // Times may be damaged, too.
    for event in trace.events.iter_mut().filter(|event| event.function.layer() != Layer::Mpi) {
        let (start, end) = (random.below(1 << 30), random.below(1 << 30));
        (event.start, event.end, event.fd) = (Nanos(start), Nanos(end), start as i32);
    }
    assert_parts_add_up("damaged times", &trace);
    // And everything may be as large as can be; a report and a page are still made.
    for event in &mut trace.events {
        if random.below(3) > 0 {
            (event.length, event.result, event.end) = (i64::MAX, i64::MAX, Nanos(u64::MAX));
        }
        event.argument = random.below(4) as i64 - 1;
    }
    let report = Analysis::of(&trace);
    assert!(report.parts.is_some());
    assert!(!report_page(&report, &trace).is_empty());
}

#[test]
fn causes_in_a_circle_are_followed_once_and_what_is_left_is_rest() {
    let mut trace = one_rank("{ read = 'f', bytes = '4k' }", "none");
    let read = only(&trace, Function::MPI_FILE_READ).0;
    let (start, end) = (trace.events[read as usize].start, trace.events[read as usize].end);
    let middle = Nanos((start.0 + end.0) / 2);
    let sends: Vec<u32> = (0..trace.events.len() as u32)
        .filter(|&row| trace.events[row as usize].function == Function::SEND)
        .collect();
    for &row in &sends {
        let event = &mut trace.events[row as usize];
        (event.start, event.end) = (middle, middle);
    }
    let next = sends.iter().zip(sends.iter().cycle().skip(1));
    let mut pairs: Vec<(u32, u32)> = next.map(|(&row, &cause)| (row, cause)).collect();
    let ring = Links::from_pairs(pairs.clone());
    pairs.push((read, sends[0]));
    trace.causes = Causes { begun_by: ring, ended_by: Links::from_pairs(pairs) };
    let parts = Ways::new(&trace).unwrap().spent(read).parts;
    assert_eq!(parts.of(Part::Rest), middle.since(start).0);
    assert_eq!(parts.of(Part::Client), end.since(middle).0);
    assert_eq!(parts.total(), end.since(start).0);
}
