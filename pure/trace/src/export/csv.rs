//! Comma-separated values (RFC 4180): the columns of the trace file, and the path of the file.

use super::path_of;
use crate::{Event, Header};
use ::csv::{Error, ErrorKind, WriterBuilder};
use std::io::{self, Write};

const COLUMNS: [&str; 14] = [
    "rank", "process", "thread", "layer", "op", "path", "fd", "offset", "length", "argument",
    "start_ns", "end_ns", "result", "parent",
];

/// Writes a line of names and one line per event.
pub fn csv(
    header: &Header,
    events: impl IntoIterator<Item = Event>,
    sink: impl Write,
) -> io::Result<()> {
    let mut writer = WriterBuilder::new().has_headers(false).from_writer(sink);
    writer.write_record(COLUMNS).map_err(of_sink)?;
    for event in events {
        let function = event.function;
        let row = (
            (event.rank, event.process, event.thread),
            (function.layer().name(), function.name(), path_of(header, &event)),
            (event.fd, event.offset, event.length, event.argument),
            (event.start.0, event.end.0, event.result, event.parent),
        );
        writer.serialize(row).map_err(of_sink)?;
    }
    writer.flush()
}

/// What the sink said itself: its kind tells a closed pipe from a full disk.
fn of_sink(error: Error) -> io::Error {
    match error.into_kind() {
        ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
