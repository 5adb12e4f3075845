//! Parts read as one trace.

mod traces;

use bytes::Bytes;
use iolab_iot::{GROUP_ROWS, IotError, Joined, Reader, Writer};
use iolab_trace::{Event, Function, Header, ProcessEntry, Trace};
use iolab_vocab::Nanos;
use traces::{bytes, trace};

fn reader(trace: &Trace) -> Reader<Bytes> {
    Reader::new(Bytes::from(bytes(trace))).unwrap()
}

/// What one rank did: calls that begin at these times, each but the first inside the first.
fn of_rank(rank: i32, starts: &[u64]) -> Trace {
    let entry = ProcessEntry { name: format!("rank {rank}"), rank, ..ProcessEntry::default() };
    let header = Header { processes: vec![entry], ..Header::default() };
    let call = |(at, start): (usize, &u64)| Event {
        rank,
        start: Nanos(*start),
        end: Nanos(if at == 0 { 1 << 20 } else { *start }),
        parent: if at == 0 { -1 } else { 0 },
        ..Event::of(Function::WRITE)
    };
    Trace { header, events: starts.iter().enumerate().map(call).collect(), ..Trace::default() }
}

#[test]
fn one_part_is_the_trace_that_it_is() {
    let one = trace(1000, 1);
    let joined = Joined::new(vec![reader(&one)]);
    assert_eq!(joined.header().processes, one.header.processes);
    assert_eq!(joined.rows(), 1000);
    assert_eq!(joined.into_trace().unwrap(), one);
}

#[test]
fn parts_follow_each_other_by_rank_and_rows_keep_their_parents() {
    let (first, second) = (of_rank(0, &[5, 6]), of_rank(1, &[1, 2, 3]));
    let joined = Joined::new(vec![reader(&second), reader(&first)]);
    let names: Vec<_> = joined.header().processes.iter().map(|it| it.name.clone()).collect();
    assert_eq!(names, ["rank 0", "rank 1"]);
    let whole = joined.into_trace().unwrap();
    let rows: Vec<_> = whole.events.iter().map(|row| (row.rank, row.process, row.parent)).collect();
    assert_eq!(rows, [(0, 0, -1), (0, 0, 0), (1, 1, -1), (1, 1, 2), (1, 1, 2)]);
}

#[test]
fn rows_of_ranks_that_were_recorded_together_are_sorted_and_parents_go_along() {
    let mut both = of_rank(0, &[10, 11]);
    let other = of_rank(2, &[1, 2]);
    both.header.processes.extend(other.header.processes);
    both.events.extend(other.events.iter().map(|row| Event {
        process: 1,
        parent: if row.parent < 0 { -1 } else { 2 },
        ..*row
    }));
    let whole = Joined::new(vec![reader(&both), reader(&of_rank(1, &[3, 4]))]).into_trace();
    let events = whole.unwrap().events;
    let rows: Vec<_> = events.iter().map(|row| (row.rank, row.start.0, row.parent)).collect();
    let wanted = [(0, 10, -1), (0, 11, 0), (1, 3, -1), (1, 4, 2), (2, 1, -1), (2, 2, 4)];
    assert_eq!(rows, wanted);
}

#[test]
fn a_row_that_names_what_is_not_there_is_told_by_its_number_in_the_file() {
    let header = Header { processes: vec![ProcessEntry::default()], ..Header::default() };
    let mut writer = Writer::new(Vec::new()).unwrap();
    assert!(writer.is_empty());
    let call = |start: u64| Event { start: Nanos(start), ..Event::of(Function::READ) };
    let calls: Vec<_> = (0..GROUP_ROWS as u64 + 2).map(call).collect();
    writer.append(&calls).unwrap();
    assert!(!writer.is_empty());
    assert_eq!(writer.len(), GROUP_ROWS as u64 + 2);
    // A parent that never comes is refused by the writer.
    writer.append(&[Event { parent: GROUP_ROWS as i64 + 9, ..call(1 << 40) }]).unwrap();
    let error = writer.finish(&header);
    assert!(matches!(error, Err(IotError::Row { .. })), "{error:?}");
}

#[test]
fn errors_have_ways_out_and_causes() {
    let damaged = IotError::Damaged { part: "the footer".to_owned() };
    assert_eq!(damaged.hint(), Some("copy or record it again"));
    let io = IotError::Io(std::io::Error::other("no"));
    assert_eq!(io.hint(), None);
    assert_eq!(std::error::Error::source(&io).unwrap().to_string(), "no");
    assert!(std::error::Error::source(&damaged).is_none());
}

#[test]
fn parts_of_two_machines_are_gone_through_for_their_clocks_and_then_read_from_the_start() {
    let part_of = |rank: i32, ahead_ns: u64| {
        let mut part = of_rank(rank, &[]);
        part.header.communicators = vec![vec![0, 1]];
        part.header.processes[0].end_ns = 1_000_000;
        part.header.clock.machine = format!("m{rank}");
        part.header.clock.zero_unix_ns = 1_000_000_000 + ahead_ns;
        part.events = (0..100)
            .map(|at| Event {
                rank,
                fd: 0,
                start: Nanos(at * 10_000),
                end: Nanos(at * 10_000 + 500),
                ..Event::of(Function::MPI_BARRIER)
            })
            .collect();
        part
    };
    let joined = Joined::new(vec![reader(&part_of(0, 0)), reader(&part_of(1, 1 << 30))]);
    let clock = joined.header().clocks[1].clone();
    assert!(clock.by_messages && clock.bound_ns.unwrap() < 3000, "{clock:?}");
    let whole = joined.into_trace().unwrap();
    assert_eq!(whole.events.len(), 200);
    for (one, other) in whole.events[..100].iter().zip(&whole.events[100..]) {
        assert!(one.start.0.abs_diff(other.start.0) < 3000, "{one:?} {other:?}");
    }
}
