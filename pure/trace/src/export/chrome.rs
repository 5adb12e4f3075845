//! Trace Event Format, which Perfetto and chrome://tracing open: one complete event per call.
//!
//! Times are microseconds there; three decimals keep every nanosecond. A process of the trace is a
//! process there, by its position in the header, because process numbers may repeat.

use super::path_of;
use crate::{Event, Header};
use std::io::{self, Write};

/// Writes the whole document. Events may come from anywhere, so a trace need not fit in memory.
pub fn chrome(
    header: &Header,
    events: impl IntoIterator<Item = Event>,
    mut sink: impl Write,
) -> io::Result<()> {
    sink.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    let mut separator = "\n";
    for (index, process) in header.processes.iter().enumerate() {
        let name = quoted(&format!("{} (pid {})", process.name, process.pid));
        write!(
            sink,
            "{separator}{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{index},\"args\":{{\"name\":{name}}}}}"
        )?;
        separator = ",\n";
    }
    for event in events {
        write!(sink, "{separator}")?;
        call(header, &event, &mut sink)?;
        separator = ",\n";
    }
    sink.write_all(b"\n]}\n")
}

fn call(header: &Header, event: &Event, sink: &mut impl Write) -> io::Result<()> {
    let (start, took) = (event.start.0, event.duration().0);
    write!(
        sink,
        "{{\"ph\":\"X\",\"name\":{},\"cat\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{}.{:03},\"dur\":{}.{:03},\"args\":{{",
        quoted(event.function.name()),
        event.function.layer().name(),
        event.process,
        event.thread,
        start / 1000,
        start % 1000,
        took / 1000,
        took % 1000,
    )?;
    let path = path_of(header, event);
    if !path.is_empty() {
        write!(sink, "\"file\":{},", quoted(path))?;
    }
    let named = [("fd", i64::from(event.fd)), ("offset", event.offset), ("length", event.length)];
    for (name, value) in named.iter().filter(|(_, value)| *value >= 0) {
        write!(sink, "\"{name}\":{value},")?;
    }
    if event.is_counted() {
        write!(sink, "\"calls\":{},", event.calls())?;
    }
    write!(sink, "\"result\":{}}}}}", event.result)
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
