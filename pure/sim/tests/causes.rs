//! What rows of a recorded run say about what caused them.

mod busy_runs;

use busy_runs::{EVERYTHING, full_memories, recorded};
use iolab_sim::platform::Platform;
use iolab_sim::workload::{Settings, Workload, run};
use iolab_trace::{Event, Function, Moment, ProcessKind, Trace};
use iolab_vocab::Nanos;
use std::collections::BTreeMap;

fn rows_of(trace: &Trace, function: Function) -> Vec<u32> {
    let rows = trace.events.iter().zip(0..);
    rows.filter(|(event, _)| event.function == function).map(|(_, row)| row).collect()
}

fn event(trace: &Trace, row: u32) -> &Event {
    &trace.events[row as usize]
}

fn functions(trace: &Trace, rows: &[u32]) -> Vec<&'static str> {
    rows.iter().map(|&row| event(trace, row).function.name()).collect()
}

fn only(rows: &[u32]) -> u32 {
    let &[row] = rows else { panic!("one cause, not {rows:?}") };
    row
}

fn one_rank(commands: &str) -> String {
    format!(
        "name = 'one'
files = [{{ name = 'f', size = '8m' }}]
[[applications]]
name = 'one'
ranks = 1
[[applications.phases]]
name = 'all'
commands = [{{ open = 'f' }}, {commands}, {{ close = 'f' }}]
"
    )
}

#[test]
fn no_cause_of_any_run_is_impossible() {
    for (name, mut trace) in busy_runs::all() {
        let before = trace.causes.clone();
        let told = trace.causes.keep_possible(&trace.events);
        assert_eq!(told.count(), 0, "{name}: {told:?}");
        assert_eq!(trace.causes, before, "{name}");
        assert!(!trace.causes.is_empty(), "{name}");
    }
}

#[test]
fn every_message_that_came_was_sent_and_carries_what_was_sent() {
    for (name, trace) in busy_runs::all() {
        let receives = rows_of(&trace, Function::RECEIVE);
        assert!(receives.len() > 100, "{name}");
        for row in receives {
            let causes = &trace.causes;
            let send = only(causes.begun_by.of(row as usize));
            assert_eq!(causes.ended_by.of(row as usize), [send], "{name}");
            let (sent, received) = (event(&trace, send), event(&trace, row));
            assert_eq!(sent.function, Function::SEND, "{name}");
            let what = |event: &Event| (event.length, event.argument);
            assert_eq!(what(sent), what(received), "{name}");
            assert!(sent.start <= received.start && sent.end <= received.end, "{name}");
        }
    }
}

#[test]
fn requests_are_begun_by_their_message_and_device_accesses_by_something() {
    for (name, trace) in busy_runs::all() {
        let is_device = |event: &Event| {
            [Function::DEVICE_READ, Function::DEVICE_WRITE].contains(&event.function)
        };
        for (row, it) in trace.events.iter().enumerate() {
            let begun_by = trace.causes.begun_by.of(row);
            match it.function {
                Function::SERVE_READ | Function::SERVE_WRITE => {
                    let receive = event(&trace, only(begun_by));
                    assert_eq!((receive.function, receive.end), (Function::RECEIVE, it.start));
                }
                _ if is_device(it) => assert!(!begun_by.is_empty(), "{name}: {it:?}"),
                Function::SEND => assert!(!begun_by.is_empty(), "{name}: {it:?}"),
                _ => {}
            }
        }
    }
}

#[test]
fn what_a_read_waited_for_leads_from_its_end_to_its_start() {
    let trace = recorded(
        &one_rank("{ read = 'f', bytes = '4k' }"),
        "classic-hdd",
        &Settings { cache: Some("none".to_owned()), ..Settings::default() },
    );
    let read = only(&rows_of(&trace, Function::MPI_FILE_READ));
    let mut moment = Moment { row: read, is_end: true };
    let mut way = Vec::new();
    while moment != (Moment { row: read, is_end: false }) {
        let time = moment.time(&trace.events);
        let causes = trace.causes.of(moment).iter();
        let before = causes.filter_map(|&cause| Moment::of_cause(&trace.events, cause, time));
        let start = Moment { row: moment.row, is_end: false };
        let own = Some(start).filter(|_| moment.is_end);
        let before = before.chain(own).max_by_key(|one| one.time(&trace.events));
        moment = before.expect("there is a way back");
        let process = event(&trace, moment.row).process as usize;
        let kind = trace.header.processes[process].kind();
        let end = if moment.is_end { "end" } else { "start" };
        way.push(format!("{} {kind:?} {end}", event(&trace, moment.row).function.name()));
    }
    assert_eq!(
        way,
        [
            // A message of one packet arrives at once.
            "receive NicIn end",
            "receive NicIn start",
            // It could leave when the device had the last of it.
            "send NicOut end",
            "device read Device end",
            "device read Device start",
            "serve read Server start",
            "receive NicIn end",
            "receive NicIn start",
            "send NicOut end",
            "send NicOut start",
            "MPI_File_read Rank start",
        ]
    );
}

#[test]
fn an_access_of_the_device_that_serves_several_requests_names_them_all() {
    let settings = Settings { cache: Some("aggregation".to_owned()), ..Settings::default() };
    let trace = recorded(EVERYTHING, "classic-hdd", &settings);
    let joined = |row: &u32| {
        let begun_by = trace.causes.begun_by.of(*row as usize);
        functions(&trace, begun_by).iter().filter(|name| name.starts_with("serve")).count() > 1
    };
    assert!(rows_of(&trace, Function::DEVICE_READ).iter().any(joined));
    assert!(rows_of(&trace, Function::DEVICE_WRITE).iter().any(joined));
}

#[test]
fn with_write_behind_a_write_ends_before_the_device_has_it() {
    let commands = "{ write = 'f', bytes = '4k' }, { compute = '1s' }";
    let settings = Settings { cache: Some("write-behind".to_owned()), ..Settings::default() };
    let trace = recorded(&one_rank(commands), "classic-hdd", &settings);
    let serve = only(&rows_of(&trace, Function::SERVE_WRITE));
    let ended_by = trace.causes.ended_by.of(serve as usize);
    assert_eq!(functions(&trace, ended_by), ["receive"], "the last data");
    let access = only(&rows_of(&trace, Function::DEVICE_WRITE));
    assert!(trace.causes.begun_by.of(access as usize).contains(&serve));
    assert!(event(&trace, access).end > event(&trace, serve).end);
}

#[test]
fn a_barrier_is_ended_by_the_rank_that_came_last() {
    let text = "name = 'late'
[[applications]]
name = 'late'
ranks = 3
[[applications.phases]]
name = 'all'
commands = [{ compute = '5ms', only = [1] }, { barrier = true }, { compute = 7 }, { barrier = true }]
";
    let trace = recorded(text, "classic-hdd", &Settings::default());
    let barriers = rows_of(&trace, Function::MPI_BARRIER);
    let last = *barriers.iter().find(|&&row| event(&trace, row).rank == 1).unwrap();
    for &row in &barriers {
        let it = event(&trace, row);
        let is_first = it.start <= event(&trace, last).start;
        match (is_first, it.rank) {
            (true, 1) => assert_eq!(trace.causes.ended_by.of(row as usize), [0; 0]),
            (true, _) => assert_eq!(trace.causes.ended_by.of(row as usize), [last]),
            _ => {
                let end = trace.causes.ended_by.of(row as usize);
                assert!(end.iter().all(|&row| event(&trace, row).function == it.function));
            }
        }
    }
}

#[test]
fn a_receive_is_ended_by_the_message_it_waited_for() {
    let text = "name = 'pair'
[[applications]]
name = 'pair'
ranks = 2
[[applications.phases]]
name = 'all'
commands = [{ send_to = 1, bytes = 1000, only = [0] }, { receive_from = 0, only = [1] }]
";
    let trace = recorded(text, "classic-hdd", &Settings::default());
    let receive = only(&rows_of(&trace, Function::MPI_RECV));
    let came = only(trace.causes.ended_by.of(receive as usize));
    let sent = only(trace.causes.begun_by.of(came as usize));
    let command = only(trace.causes.begun_by.of(sent as usize));
    assert_eq!(functions(&trace, &[came, sent, command]), ["receive", "send", "MPI_Send"]);
}

#[test]
fn recording_changes_no_moment_of_a_run() {
    let workload = Workload::parse(EVERYTHING).unwrap();
    let platform = Platform::preset("classic-hdd").unwrap();
    let of = |record| {
        let outcome = run(&workload, &platform, &Settings { record, ..Settings::default() });
        let outcome = outcome.unwrap();
        (outcome.end, outcome.event_hash, outcome.event_count)
    };
    assert_eq!(of(true), of(false));
}

/// Random runs that fill memories. Where servers direct or order writes, they send invitations, too.
fn full() -> impl Iterator<Item = (String, Trace)> {
    let all = (1..).map(full_memories::random);
    all.filter(|(name, _)| !name.contains("server-")).take(10)
}

/// Moments by the node they were at, in order.
fn by_node(
    trace: &Trace,
    rows: &[u32],
    moment: fn(&Event) -> Nanos,
) -> BTreeMap<String, Vec<Nanos>> {
    let mut nodes: BTreeMap<String, Vec<Nanos>> = BTreeMap::new();
    for &row in rows {
        let it = event(trace, row);
        let node = &trace.header.processes[it.process as usize].host;
        nodes.entry(node.clone()).or_default().push(moment(it));
    }
    nodes.values_mut().for_each(|moments| moments.sort());
    nodes
}

#[test]
fn no_cause_begins_after_its_effect_has_ended_however_full_memories_are() {
    for (name, trace) in full() {
        for (is_end, links) in [(false, &trace.causes.begun_by), (true, &trace.causes.ended_by)] {
            for (row, cause) in links.pairs() {
                let time = Moment { row, is_end }.time(&trace.events);
                let cause = event(&trace, cause);
                assert!(cause.start <= time, "{name}: {cause:?} of {:?}", event(&trace, row));
            }
        }
        assert_eq!(trace.causes.clone().keep_possible(&trace.events).count(), 0, "{name}");
    }
}

#[test]
fn no_write_is_answered_before_its_row_begins_or_after_it_ends() {
    let mut overtaken = 0;
    for (name, trace) in full() {
        let serves = rows_of(&trace, Function::SERVE_WRITE);
        for &row in &serves {
            let it = event(&trace, row);
            assert!(it.start <= it.end, "{name}: {it:?}");
            let begun_by = event(&trace, only(trace.causes.begun_by.of(row as usize)));
            overtaken += u32::from(begun_by.argument == 1);
        }
        let of_server = |row: &u32| {
            let it = event(&trace, *row);
            let kind = trace.header.processes[it.process as usize].kind();
            kind == ProcessKind::NicOut && it.argument == 3
        };
        let mut answers = rows_of(&trace, Function::SEND);
        answers.retain(of_server);
        let answers = by_node(&trace, &answers, |it| it.start);
        let begun = by_node(&trace, &serves, |it| it.start);
        let ended = by_node(&trace, &serves, |it| it.end);
        assert!(answers.keys().eq(begun.keys()), "{name}");
        for (node, answers) in &answers {
            assert_eq!(answers.len(), begun[node].len(), "{name}: {node}");
            for (at, answer) in answers.iter().enumerate() {
                let (begun, ended) = (begun[node][at], ended[node][at]);
                assert!(begun <= *answer, "{name}: {node} answers at {answer}, begins at {begun}");
                assert!(*answer <= ended, "{name}: {node} answers at {answer}, ends at {ended}");
            }
        }
    }
    assert!(overtaken > 0, "no data came before its request: nothing was tried");
}
