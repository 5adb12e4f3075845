//! Traces of programs that open a file, write to it and close it, made by hand.

#![allow(dead_code, reason = "every test file uses its own part of this")]

use iolab_policy::insitu::StrategySpec;
use iolab_trace::{Event, FileEntry, Function, Header, ProcessEntry, Trace};
use iolab_vocab::{FileId, Nanos};

pub(crate) fn process(pid: u32, parent_pid: u32, start_ns: u64, end_ns: u64) -> ProcessEntry {
    let name = format!("process {pid}");
    ProcessEntry { name, pid, parent_pid, rank: -1, start_ns, end_ns, ..ProcessEntry::default() }
}

pub(crate) fn trace(processes: Vec<ProcessEntry>, events: Vec<Event>) -> Trace {
    let files = vec![FileEntry { path: "/d/file".to_owned(), file_system: "round".to_owned() }];
    Trace { header: Header { processes, files, ..Header::default() }, events, ..Trace::default() }
}

pub(crate) fn call(function: Function, start: u64, end: u64) -> Event {
    let (start, end) = (Nanos(start), Nanos(end));
    Event { file: FileId(0), fd: 3, start, end, ..Event::of(function) }
}

/// `O_WRONLY | O_CREAT | O_TRUNC` on Linux.
pub(crate) const CREATE: i64 = 0o1101;

pub(crate) fn open(start: u64, end: u64) -> Event {
    Event { fd: -1, argument: CREATE, length: 0, result: 3, ..call(Function::OPEN, start, end) }
}

pub(crate) fn write(offset: i64, length: i64, start: u64, end: u64) -> Event {
    Event { offset, length, result: length, ..call(Function::WRITE, start, end) }
}

/// Opens, writes 100 bytes `writes` times (1200 ns each, 50 ns between), closes.
pub(crate) fn small_writer(writes: i64) -> Trace {
    let mut events = vec![open(100, 140)];
    let mut now = 140;
    for n in 0..writes {
        events.push(write(100 * n, 100, now + 50, now + 1250));
        now += 1250;
    }
    events.push(call(Function::CLOSE, now + 50, now + 70));
    trace(vec![process(1, 0, 0, now + 100)], events)
}

pub(crate) fn apply(texts: &[&str]) -> Vec<StrategySpec> {
    texts.iter().map(|text| StrategySpec::parse(text).unwrap()).collect()
}
