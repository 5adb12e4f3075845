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
        on_file(Function::FPUTC, (100, 200), -1, 1),
        on_file(Function::FPUTC, (300, 300), 4094, 4094),
        on_file(Function::FPUTC, (5_000, 6_000), -1, 1),
        Event { parent: 2, offset: 0, ..on_file(Function::WRITE, (5_000, 5_900), -1, 4096) },
        on_file(Function::FSEEK, (7_000, 7_000), 300 << 8, 0),
    ]
}

#[test]
fn calls_and_bytes_are_those_of_all_calls_and_time_only_that_of_timed_ones() {
    let report = report(&stream());
    let summary = &report.summary;
    assert_eq!(summary.call_count, 4096 + 300);
    assert_eq!(summary.written_bytes, 4096);
    assert_eq!(summary.io_ns, 1100);
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
    let finding = report.findings.iter().find(|it| it.rule == "tiny-sequential-writes");
    let finding = finding.expect("400 writes of 64 B");
    assert_eq!(finding.message, "400 writes of 64 B, each right after the one before");
}
