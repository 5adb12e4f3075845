//! Rows that stand for many calls on a stream weigh as many as they stand for, and take no time.

use iolab_report::text::{Style, write};
use iolab_report::{Analysis, Report};
use iolab_trace::{Event, FileEntry, Function, Header, ProcessEntry};
use iolab_vocab::{FileId, Nanos};

fn on_file(function: Function, times: (u64, u64), argument: i64, bytes: i64) -> Event {
    Event {
        file: FileId(0),
        fd: 3,
        argument,
        length: bytes,
        result: bytes,
        start: Nanos(times.0),
        end: Nanos(times.1),
        ..Event::of(function)
    }
}

fn report(events: &[Event]) -> Report {
    let mut analysis = Analysis::new(Header {
        files: vec![FileEntry { path: "/f".into(), file_system: "ext4".into() }],
        processes: vec![ProcessEntry { end_ns: 1_000_000, ..ProcessEntry::default() }],
        ..Header::default()
    });
    events.iter().for_each(|event| analysis.observe(event));
    analysis.finish()
}

fn stream() -> Vec<Event> {
    vec![
        on_file(Function::OPEN, (10, 60), -1, 3),
        on_file(Function::FPUTC, (100, 200), -1, 1),
        on_file(Function::FPUTC, (300, 300), 4094, 4094),
        on_file(Function::FPUTC, (5_000, 6_000), -1, 1),
        Event { parent: 3, offset: 0, ..on_file(Function::WRITE, (5_000, 5_900), -1, 4096) },
        on_file(Function::FSEEK, (7_000, 7_000), 300 << 8, 0),
    ]
}

#[test]
fn totals_are_of_what_reached_the_system_and_counted_calls_are_told_of() {
    let report = report(&stream());
    let summary = &report.summary;
    assert_eq!(summary.call_count, 2);
    assert_eq!(summary.written_bytes, 4096);
    assert_eq!(summary.io_ns, 50 + 900);
    let stdio = report.layers.iter().find(|row| row.layer == "stdio").expect("a row");
    assert_eq!((stdio.call_count, stdio.written_bytes), (4096 + 300, 4096));
    assert_eq!(report.lacks.counted_call_count, 4094 + 300);
    let text = write(&report, Style::default());
    assert!(text.contains("the times of 4,394 calls on streams"), "{text}");
}

#[test]
fn requests_of_a_trace_without_system_calls_have_the_mean_size_of_counted_calls() {
    let counted: Vec<_> = (0..40)
        .map(|row| Event { offset: row * 640, ..on_file(Function::FWRITE, (100, 100), 10, 640) })
        .collect();
    let report = report(&counted);
    let finding = report.findings.iter().find(|it| it.rule == "small-sequential-writes");
    let finding = finding.expect("400 writes of 64 B");
    assert_eq!(finding.message, "400 writes of 64 B, each right after the one before");
}

#[test]
fn a_stream_that_never_reached_the_system_wrote_nothing() {
    let mut rows = vec![on_file(Function::OPEN, (10, 60), -1, 3)];
    rows.extend((0..500).map(|row| on_file(Function::FPRINTF, (100 + row, 101 + row), -1, 6)));
    let report = report(&rows);
    assert_eq!(report.summary.written_bytes, 0);
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn what_a_stream_flushes_outside_its_calls_counts_once() {
    let mut rows = vec![on_file(Function::OPEN, (10, 60), -1, 3)];
    rows.extend((0..500).map(|row| on_file(Function::FPRINTF, (100 + row, 101 + row), -1, 6)));
    rows.push(Event { offset: 0, ..on_file(Function::WRITE, (900, 950), -1, 3000) });
    let report = report(&rows);
    assert_eq!((report.summary.written_bytes, report.files[0].write_count), (3000, 1));
}

#[test]
fn a_copy_reads_its_source_and_writes_its_target() {
    let mut analysis = Analysis::new(Header {
        files: ["/from", "/to"]
            .map(|path| FileEntry { path: path.into(), ..FileEntry::default() })
            .to_vec(),
        processes: vec![ProcessEntry { end_ns: 1_000_000, ..ProcessEntry::default() }],
        ..Header::default()
    });
    let open = on_file(Function::OPEN, (0, 0), -1, 4);
    analysis.observe(&Event { file: FileId(1), ..open });
    analysis.observe(&on_file(Function::COPY_FILE_RANGE, (0, 1000), 1, 700));
    // Into a socket.
    analysis.observe(&on_file(Function::SENDFILE, (2000, 2500), -1, 30));
    let report = analysis.finish();
    let summary = &report.summary;
    assert_eq!((summary.read_bytes, summary.written_bytes, summary.io_ns), (730, 700, 1500));
    let of = |path: &str| report.files.iter().find(|file| file.path == path).expect("a row");
    assert_eq!((of("/from").read_bytes, of("/from").written_bytes), (730, 0));
    assert_eq!((of("/to").read_bytes, of("/to").written_bytes), (0, 700));
}
