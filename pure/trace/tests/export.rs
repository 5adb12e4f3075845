//! What other tools get to read.

use iolab_trace::{Causes, Event, FileEntry, Function, Header, ProcessEntry, Trace, export};
use iolab_vocab::{FileId, Nanos};
use std::io;

fn trace() -> Trace {
    let file = FileEntry { path: "/data/a \"b\",c".to_owned(), file_system: "ext4".to_owned() };
    let process =
        ProcessEntry { name: "rank 3".to_owned(), pid: 77, rank: 3, ..Default::default() };
    let header = Header {
        command: vec!["./solver".to_owned()],
        host: "node7".to_owned(),
        mounts: [("/", "ext4"), ("/data", "ext4")]
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .into(),
        files: vec![file],
        processes: vec![process],
        ..Default::default()
    };
    let call = |function: Function, start: u64, offset: i64, result: i64| Event {
        rank: 3,
        file: FileId(0),
        fd: 5,
        offset,
        length: 100,
        start: Nanos(start),
        end: Nanos(start + 1_500),
        result,
        ..Event::of(function)
    };
    let events = vec![
        call(Function::OPEN, 1_000, -1, 5),
        call(Function::PWRITE, 1_234_567, 4096, 100),
        call(Function::READ, 2_000_000, 0, 60),
        call(Function::READ, 3_000_000, 60, -5),
    ];
    Trace { header, events, ..Trace::default() }
}

#[test]
fn perfetto_gets_valid_json_with_exact_times() {
    let trace = trace();
    let mut text = Vec::new();
    let rows = || trace.events.clone();
    export::chrome(&trace.header, &Causes::default(), rows, &mut text).unwrap();
    let document: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    assert_eq!(events[0]["args"]["name"], "rank 3 (pid 77)");
    let calls: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
    assert_eq!(calls.len(), 4);
    assert_eq!((&calls[1]["ts"], &calls[1]["dur"]), (&1234.567.into(), &1.5.into()));
    assert_eq!(calls[1]["args"]["file"], "/data/a \"b\",c");
    assert_eq!(calls[3]["args"]["result"], -5);
}

#[test]
fn ranks_of_a_damaged_trace_are_exported_as_they_are() {
    let mut trace = trace();
    trace.header.processes[0].rank = i32::MAX;
    let mut text = Vec::new();
    export::dxt(&trace, &mut text).unwrap();
    assert!(String::from_utf8(text).unwrap().contains("# nprocs: 2147483648\n"));
}

#[test]
fn the_dxt_text_lists_what_moved_by_file_and_rank() {
    let mut text = Vec::new();
    export::dxt(&trace(), &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains(
        "# DXT, file_id: 0, file_name: /data/a \"b\",c\n# DXT, rank: 3, hostname: node7"
    ));
    assert!(
        text.contains("# DXT, write_count: 1, read_count: 1\n# DXT, mnt_pt: /data, fs_type: ext4")
    );
    let segments: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with(" X_POSIX"))
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(segments[0], ["X_POSIX", "3", "write", "0", "4096", "100", "0.0012", "0.0012"]);
    assert_eq!(segments[1], ["X_POSIX", "3", "read", "0", "0", "60", "0.0020", "0.0020"]);
    assert_eq!(segments.len(), 2, "opens and failures are not in it");
}

#[test]
fn each_event_is_a_line_of_values() {
    let trace = trace();
    let mut text = Vec::new();
    export::csv(&trace.header, trace.events.clone(), &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.lines().count(), 5);
    assert_eq!(
        text.lines().nth(2).unwrap(),
        "3,0,0,posix,pwrite,\"/data/a \"\"b\"\",c\",5,4096,100,-1,1234567,1236067,100,-1"
    );
}

#[test]
fn a_trace_without_events_is_a_table_without_lines() {
    let mut text = Vec::new();
    export::csv(&Header::default(), [], &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.starts_with("rank,process,thread,") && text.ends_with(",parent\n"), "{text}");
    assert_eq!(text.lines().count(), 1);
}

/// A pipe whose reader has gone.
struct Closed;

impl io::Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_a_sink_says_is_handed_on_as_it_is() {
    let trace = trace();
    let many = || trace.events.iter().cycle().take(10_000).copied();
    for written in [
        export::csv(&trace.header, trace.events.clone(), Closed),
        export::csv(&trace.header, many(), Closed),
        export::chrome(&trace.header, &trace.causes, many, Closed),
        export::dftracer(&trace.header, many(), Closed).map(drop),
    ] {
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
