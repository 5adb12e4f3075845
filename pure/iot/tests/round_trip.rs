//! What was written comes back.

mod traces;

use bytes::Bytes;
use iolab_iot::{GROUP_ROWS, IotError, Reader, Writer, read};
use iolab_trace::{Event, Function, Header, Trace};
use iolab_vocab::{FileId, Nanos};
use proptest::prelude::*;
use traces::{bytes, header, trace};

#[test]
fn a_trace_comes_back_as_it_was() {
    for count in [0, 1, 2, 1000] {
        let trace = trace(count, 1);
        assert_eq!(read(Bytes::from(bytes(&trace))).unwrap(), trace);
    }
}

#[test]
fn every_function_of_the_table_comes_back() {
    let rows = iolab_trace::function::TABLE.iter();
    let events = rows.map(|row| Event::of(row.function)).collect();
    let trace = Trace { header: header(), events, ..Trace::default() };
    assert_eq!(read(Bytes::from(bytes(&trace))).unwrap(), trace);
}

#[test]
fn rows_are_sorted_by_thread_and_start_and_their_parents_follow() {
    let call = |rank: i32, start: u64, end: u64, parent: i64| Event {
        rank,
        start: Nanos(start),
        end: Nanos(end),
        parent,
        ..Event::of(Function::WRITE)
    };
    // As a recorder logs them: in the order of return, the inner call before the outer one.
    let events = vec![call(1, 5, 6, 2), call(0, 7, 9, -1), call(1, 5, 8, -1), call(0, 1, 2, -1)];
    let back =
        read(Bytes::from(bytes(&Trace { header: header(), events, ..Trace::default() }))).unwrap();
    let wanted = [call(0, 1, 2, -1), call(0, 7, 9, -1), call(1, 5, 8, -1), call(1, 5, 6, 2)];
    assert_eq!(back.events, wanted);
}

/// A seek that took no time comes before the write behind it, one inside a call comes behind its start.
#[test]
fn rows_that_begin_together_stay_in_their_order_and_outer_calls_come_first() {
    let row = |length: i64, end: u64, parent: i64| Event {
        length,
        start: Nanos(5),
        end: Nanos(end),
        parent,
        ..Event::of(Function::WRITE)
    };
    let events = vec![row(0, 5, -1), row(1, 7, 3), row(2, 6, 1), row(3, 9, -1), row(4, 99, -1)];
    let back = read(Bytes::from(bytes(&Trace {
        header: header(),
        events: events.clone(),
        ..Trace::default()
    })))
    .unwrap();
    let wanted = [row(0, 5, -1), row(3, 9, -1), row(1, 7, 1), row(2, 6, 2), row(4, 99, -1)];
    assert_eq!(back.events, wanted);
    let mut sorted = events;
    iolab_trace::sort(&mut sorted);
    assert_eq!(sorted, wanted);
}

#[test]
fn an_inner_call_waits_for_its_outer_call_across_row_groups() {
    let at =
        |start: u64| Event { start: Nanos(start), end: Nanos(start), ..Event::of(Function::READ) };
    let mut writer = Writer::new(Vec::new()).unwrap();
    let filler: Vec<Event> = (0..GROUP_ROWS as u64 - 1).map(at).collect();
    writer.append(&filler).unwrap();
    let outer = GROUP_ROWS as u64;
    writer.append(&[Event { parent: outer as i64, ..at(outer) }]).unwrap();
    writer.append(&[at(outer), at(outer + 1)]).unwrap();
    let file = writer.finish(&header()).unwrap();

    let mut reader = Reader::new(Bytes::from(file)).unwrap();
    assert_eq!(reader.rows(), GROUP_ROWS as u64 + 2);
    let groups: Vec<_> = reader.by_ref().map(|group| group.unwrap()).collect();
    assert_eq!(groups.iter().map(Vec::len).sum::<usize>(), GROUP_ROWS + 2);
    let inner = groups.iter().flatten().find(|event| event.parent >= 0).unwrap();
    let outer_event = groups.iter().flatten().nth(inner.parent as usize).unwrap();
    assert_eq!((outer_event.start, outer_event.parent), (Nanos(outer), -1));
}

#[test]
fn the_writer_refuses_what_no_reader_could_use() {
    let refused = |event: Event| {
        let trace = Trace { header: header(), events: vec![event], ..Trace::default() };
        iolab_iot::write(&trace, Vec::new()).unwrap_err()
    };
    let good = Event::of(Function::READ);
    assert!(matches!(refused(Event::of(Function(9))), IotError::Row { row: 0, .. }));
    for parent in [1, 0, -2, i64::MIN] {
        let refused = refused(Event { parent, ..good });
        assert!(matches!(refused, IotError::Row { row: 0, .. }), "parent {parent}: {refused}");
    }
    assert!(matches!(refused(Event { end: Nanos(u64::MAX), ..good }), IotError::Row { .. }));
    let error = refused(Event { file: FileId(2), ..good }).to_string();
    assert!(error.contains("lists 2 of file, but an event names file 2"), "{error}");
    assert!(matches!(refused(Event { process: 2, ..good }), IotError::Header(_)));
}

#[test]
fn times_are_rounded_to_the_resolution_the_header_states() {
    let mut trace = trace(100, 6);
    trace.header.clock.resolution_ns = 16;
    let back = read(Bytes::from(bytes(&trace))).unwrap();
    assert_eq!(back.header.clock.resolution_ns, 16);
    for (exact, rounded) in trace.events.iter().zip(&back.events) {
        assert_eq!(rounded.start, Nanos(exact.start.0 / 16 * 16));
        assert_eq!(rounded.end, Nanos(exact.end.0 / 16 * 16));
    }
}

#[test]
fn a_writer_that_rounds_says_so_in_the_header() {
    let mut writer = Writer::new(Vec::new()).unwrap();
    writer.round_times(16);
    let file = writer.finish(&header()).unwrap();
    assert_eq!(Reader::new(Bytes::from(file)).unwrap().header().clock.resolution_ns, 16);
}

#[test]
fn the_last_nanosecond_of_63_bits_comes_back() {
    let last = Nanos(i64::MAX as u64);
    let events = vec![Event { start: last, end: last, ..Event::of(Function::READ) }];
    let trace = Trace { header: header(), events, ..Trace::default() };
    assert_eq!(read(Bytes::from(bytes(&trace))).unwrap(), trace);
}

#[test]
fn the_writer_stamps_the_format_version() {
    let header = Header { format_version: 0, ..header() };
    let file = bytes(&Trace { header, events: Vec::new(), ..Trace::default() });
    let version = Reader::new(Bytes::from(file)).unwrap().header().format_version;
    assert_eq!(version, iolab_trace::FORMAT_VERSION);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_numbers_in_any_field_come_back(
        rank: i32, thread: u32, fd: i32, offset: i64, length: i64, argument: i64, result: i64,
        start in 0..=i64::MAX as u64, end in 0..=i64::MAX as u64,
    ) {
        let event = Event {
            rank, thread, fd, offset, length, argument, result,
            start: Nanos(start), end: Nanos(end), ..Event::of(Function::PWRITE)
        };
        let trace = Trace { header: header(), events: vec![event], ..Trace::default() };
        prop_assert_eq!(read(Bytes::from(bytes(&trace))).unwrap(), trace);
    }
}

/// A disk with room for this many bytes, and what it says when asked to make them last.
struct Disk {
    free: usize,
    lasts: bool,
}

impl std::io::Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.free == 0 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        let count = bytes.len().min(self.free).min(100);
        self.free -= count;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.lasts { Ok(()) } else { Err(std::io::ErrorKind::BrokenPipe.into()) }
    }
}

#[test]
fn a_full_disk_is_told_as_what_it_is_wherever_it_is_full() {
    let trace = trace(300, 8);
    let length = bytes(&trace).len();
    for free in (0..length).step_by(97) {
        let error = iolab_iot::write(&trace, Disk { free, lasts: true }).unwrap_err();
        let IotError::Io(error) = error else { panic!("{free} of {length} bytes: {error}") };
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{free} of {length} bytes");
    }
    iolab_iot::write(&trace, Disk { free: length, lasts: true }).unwrap();
    let error = iolab_iot::write(&trace, Disk { free: length, lasts: false }).unwrap_err();
    assert!(matches!(error, IotError::Io(_)), "{error}");
}

#[test]
fn a_sink_that_takes_a_little_at_a_time_gets_the_same_file() {
    struct Sip(Vec<u8>);
    impl std::io::Write for Sip {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.write(&bytes[..bytes.len().min(7)])
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let trace = trace(300, 9);
    let mut writer = Writer::new(Sip(Vec::new())).unwrap();
    writer.append(&trace.events).unwrap();
    assert_eq!(writer.finish(&trace.header).unwrap().0, bytes(&trace));
}
