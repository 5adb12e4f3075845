//! Trace Event Format (JSON), which Perfetto and chrome://tracing open.
//!
//! A call is a complete event, a piece of an access a point; times are microseconds there, three decimals keep every nanosecond. A
//! process of the trace is a process there, by its position in the header, because process numbers may repeat.
//! A track is a lane of a thread: on none do two events overlap unless one was made inside the other (see
//! `lanes`). Causes are flows, what is under way at servers and devices are counters.
//!
//! Rows may come from anywhere, so a trace need not fit in memory: 28 bytes are kept for each row that is or
//! has a cause, and 24 for each row of a server or device.

mod counters;
mod flows;
mod lanes;
mod processes;

use super::{path_of, quoted};
use crate::{Causes, Event, Header};
use counters::Counters;
use flows::Flows;
use iolab_vocab::Nanos;
use lanes::Lanes;
use serde::Serialize;
use std::fmt;
use std::io::{self, Write};

/// What of the header has no place among the events.
#[derive(Serialize)]
struct Facts<'a> {
    written_by: String,
    command: String,
    host: &'a str,
    origin: crate::Origin,
    zero_unix_ns: u64,
    losses: &'a crate::Losses,
    inferred: &'a [String],
}

/// Writes the whole document. `rows` gives the rows in the order of the trace, which the causes number them in; it is
/// asked twice where there are causes.
pub fn chrome<Rows: IntoIterator<Item = Event>>(
    header: &Header,
    causes: &Causes,
    rows: impl Fn() -> Rows,
    sink: impl Write,
) -> io::Result<()> {
    let mut document = Document { sink, separator: "\n" };
    document.sink.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    processes::write(header, &mut document)?;
    let mut flows = Flows::of(causes);
    // Rows may turn out to be damaged when they are read again: flows are where they were at first.
    let mut places = Lanes::new(header);
    if !causes.is_empty() {
        for (row, event) in rows().into_iter().enumerate() {
            let is_linked = flows.is_next(row);
            let placed = places.place(row as u64, &event, is_linked);
            flows.keep(row, placed.track, &event);
            if is_linked && flows::is_early(&event) {
                call(header, row, &event, (placed.track, false), &mut document)?;
            }
        }
        flows.write(true, &places, &mut document)?;
    }
    let mut lanes = Lanes::new(header);
    let mut counters = Counters::default();
    for (row, event) in rows().into_iter().enumerate() {
        let is_linked = flows.has(row);
        let placed = lanes.place(row as u64, &event, is_linked);
        if let Some(index) = placed.opened {
            processes::name_lane(&event, placed.track, index, &mut document)?;
        }
        counters.keep(&event);
        if !(is_linked && flows::is_early(&event)) {
            let is_point = lanes::is_point(&event, is_linked);
            call(header, row, &event, (placed.track, is_point), &mut document)?;
        }
    }
    flows.write(false, &places, &mut document)?;
    counters.write(&mut document)?;
    facts(header, &mut document)
}

fn facts(header: &Header, document: &mut Document<impl Write>) -> io::Result<()> {
    let facts = Facts {
        written_by: format!("iolab {}", header.iolab_version),
        command: header.command.join(" "),
        host: &header.host,
        origin: header.origin,
        zero_unix_ns: header.clock.zero_unix_ns,
        losses: &header.losses,
        inferred: &header.inferred,
    };
    document.sink.write_all(b"\n],\"otherData\":")?;
    serde_json::to_writer(&mut document.sink, &facts)?;
    document.sink.write_all(b"}\n")
}

fn call(
    header: &Header,
    row: usize,
    event: &Event,
    (track, is_point): (u32, bool),
    document: &mut Document<impl Write>,
) -> io::Result<()> {
    let sink = document.next()?;
    let (phase, took) = match is_point {
        true => ("i\",\"s\":\"t", String::new()),
        false => ("X", format!("\"dur\":{},", Micros(event.duration()))),
    };
    write!(
        sink,
        "{{\"ph\":\"{phase}\",\"name\":{},\"cat\":\"{}\",\"pid\":{},\"tid\":{track},\"ts\":{},{took}\"args\":{{\"row\":{row},",
        quoted(event.function.name()),
        event.function.layer().name(),
        processes::number(event.process),
        Micros(event.start),
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

/// The list of events, so far.
struct Document<W> {
    sink: W,
    separator: &'static str,
}

impl<W: Write> Document<W> {
    /// Where the next event is written.
    fn next(&mut self) -> io::Result<&mut W> {
        self.sink.write_all(self.separator.as_bytes())?;
        self.separator = ",\n";
        Ok(&mut self.sink)
    }
}

/// A time as the format has it, every nanosecond kept.
struct Micros(Nanos);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0.0 / 1000, self.0.0 % 1000)
    }
}
