//! The head of the exchange form: names, lines, sizes of columns, as JSON.

use super::Timeline;
use super::order::{Order, Placement, Row};
use iolab_trace::{Class, Function, Header, Layer, PhaseEntry, ProcessKind, Trace};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a call is coloured as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "each is the field's own word")]
pub enum Kind {
    Read,
    Write,
    Copy,
    Open,
    Seek,
    Sync,
    Metadata,
    Map,
    Process,
    Compute,
    Message,
    Decision,
    Other,
    /// Where the data of the call around it lie: no call.
    Piece,
}

impl Kind {
    /// The kind of a function.
    pub fn of(function: Function) -> Kind {
        use Class::*;
        match function.class() {
            Read => Kind::Read,
            Write => Kind::Write,
            Copy => Kind::Copy,
            Open | Close | Dup => Kind::Open,
            Seek => Kind::Seek,
            Sync | Flush => Kind::Sync,
            Truncate | Allocate | Advise | Lock | Control | Attribute | Stat | Rename | Unlink
            | MakeDirectory | RemoveDirectory | ListDirectory => Kind::Metadata,
            Map | Unmap => Kind::Map,
            Process => Kind::Process,
            Compute => Kind::Compute,
            Message | Collective => Kind::Message,
            Decision => Kind::Decision,
            Piece => Kind::Piece,
            Unseen => Kind::Other,
        }
    }
}

#[derive(Serialize)]
pub(super) struct Head<'a> {
    label: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    stretches: Option<usize>,
    origin: String,
    strategies: &'a [String],
    count: usize,
    /// Of an overview, and where calls are gathered: how many events the trace has.
    #[serde(skip_serializing_if = "Option::is_none")]
    stands_for: Option<usize>,
    /// Where calls are gathered: how long the cells are in which they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    cell_ns: Option<u64>,
    /// Of a part of a trace: how many rows of it are not here.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<usize>,
    /// Earliest and latest moment of the trace; the viewer's axis begins at `start_ns`.
    start_ns: u64,
    end_ns: u64,
    lost_calls: u64,
    functions: Vec<FunctionEntry>,
    files: Vec<&'a str>,
    processes: Vec<ProcessEntry<'a>>,
    /// Of applications, where they are known.
    phases: &'a [PhaseEntry],
    /// What the column of parts tells of; empty where there is none.
    parts: Vec<&'static str>,
    rows: Vec<RowEntry>,
    columns: Vec<ColumnEntry>,
}

impl Head<'_> {
    /// The head of an overview of a trace of so many events: what only single calls refer to is left out.
    pub(super) fn standing_for(self, events: usize) -> Self {
        Head { stands_for: Some(events), files: Vec::new(), parts: Vec::new(), ..self }
    }

    /// The head of a trace of so many events whose calls are gathered in cells of such a length.
    pub(super) fn gathered(self, events: usize, cell_ns: u64) -> Self {
        Head { stands_for: Some(events), cell_ns: Some(cell_ns), ..self }
    }
}

#[derive(Serialize)]
struct FunctionEntry {
    name: &'static str,
    layer: &'static str,
    kind: Kind,
    /// How its detail columns are predicted: `data`, `seek` or `plain`.
    shape: Shape,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Shape {
    Data,
    Seek,
    Plain,
}

#[derive(Serialize)]
struct ProcessEntry<'a> {
    name: String,
    kind: ProcessKind,
    rank: i32,
    /// The node it ran on: its host, or that of the trace.
    node: &'a str,
    application: &'a str,
    pid: u32,
    host: &'a str,
    command: String,
    start_ns: u64,
    end_ns: u64,
    ending: &'a str,
}

#[derive(Serialize)]
struct RowEntry {
    process: u32,
    thread: u32,
    depth: u8,
    placement: Placement,
    count: usize,
}

#[derive(Serialize)]
struct ColumnEntry {
    name: &'static str,
    bytes: usize,
    raw_bytes: usize,
}

impl Shape {
    pub(super) fn of(function: Function) -> Shape {
        match function.class() {
            class if class.moves_data() => Shape::Data,
            Class::Seek if function.layer() == Layer::Posix => Shape::Seek,
            _ => Shape::Plain,
        }
    }
}

/// A compressed column.
pub(super) struct Packed {
    pub(super) name: &'static str,
    pub(super) raw_bytes: usize,
    pub(super) bytes: Vec<u8>,
}

/// The head of a trace whose columns are packed.
pub(super) fn head<'a>(
    timeline: &'a Timeline<'_>,
    order: &Order,
    functions: &BTreeMap<Function, u8>,
    packed: &[Packed],
) -> Head<'a> {
    let Timeline { label, trace, stretches, part, .. } = timeline;
    let (start_ns, end_ns) = span(trace);
    let column = |column: &Packed| ColumnEntry {
        name: column.name,
        bytes: column.bytes.len(),
        raw_bytes: column.raw_bytes,
    };
    Head {
        label,
        stretches: *stretches,
        origin: format!("{:?}", trace.header.origin).to_lowercase(),
        strategies: &trace.header.strategies,
        count: order.rows.iter().map(|row| row.count).sum(),
        stands_for: None,
        cell_ns: None,
        left_out: part.as_ref().and_then(|part| part.left_out),
        start_ns,
        end_ns,
        lost_calls: trace.header.losses.lost_calls.values().copied().fold(0, u64::saturating_add),
        functions: functions.keys().map(|&function| function_entry(function)).collect(),
        files: trace.header.files.iter().map(|file| file.path.as_str()).collect(),
        processes: process_entries(trace),
        phases: &trace.header.phases,
        parts: super::spent::names(timeline),
        rows: row_entries(order),
        columns: packed.iter().map(column).collect(),
    }
}

/// Earliest and latest moment of a trace, in nanoseconds of it.
pub fn span(trace: &Trace) -> (u64, u64) {
    let starts = trace.events.iter().map(|event| event.start.0);
    let ends = trace.events.iter().map(|event| event.end.0);
    let processes = trace.header.processes.iter().filter(|process| process.end_ns > 0);
    let end = ends.chain(processes.map(|process| process.end_ns)).max();
    (zero(&trace.header, starts.min()), end.unwrap_or(0))
}

/// Where the axis begins, when the first call of a trace does so.
pub fn zero(header: &Header, first_call: Option<u64>) -> u64 {
    let processes = header.processes.iter().filter(|process| process.end_ns > 0);
    let starts = processes.map(|process| process.start_ns).chain(first_call);
    starts.min().unwrap_or(0)
}

fn function_entry(function: Function) -> FunctionEntry {
    FunctionEntry {
        name: function.name(),
        layer: function.layer().name(),
        kind: Kind::of(function),
        shape: Shape::of(function),
    }
}

/// The processes of the header, and nameless ones for events that name none of them.
fn process_entries(trace: &Trace) -> Vec<ProcessEntry<'_>> {
    let known = trace.header.processes.len();
    let used = trace.events.iter().map(|event| event.process as usize + 1).max().unwrap_or(0);
    let named = trace.header.processes.iter().enumerate().map(|(index, process)| ProcessEntry {
        name: process_name(index, &process.name, process.rank),
        kind: process.kind(),
        rank: process.rank,
        node: if process.host.is_empty() { &trace.header.host } else { &process.host },
        application: application(process),
        pid: process.pid,
        host: &process.host,
        command: process.command.join(" "),
        start_ns: process.start_ns,
        end_ns: process.end_ns,
        ending: &process.ending,
    });
    let nameless = (known..used.max(known)).map(|index| ProcessEntry {
        name: process_name(index, "", -1),
        kind: ProcessKind::Process,
        rank: -1,
        node: "",
        application: "",
        pid: 0,
        host: "",
        command: String::new(),
        start_ns: 0,
        end_ns: 0,
        ending: "",
    });
    named.chain(nameless).collect()
}

/// The application a process says it belongs to, or else the name of its program.
fn application(process: &iolab_trace::ProcessEntry) -> &str {
    let program = process.command.first().map_or("", String::as_str);
    match process.application.as_str() {
        "" => program.rsplit('/').next().unwrap_or_default(),
        application => application,
    }
}

pub(super) fn process_name(index: usize, name: &str, rank: i32) -> String {
    match (name, rank) {
        ("", rank) if rank >= 0 => format!("rank {rank}"),
        ("", _) => format!("process {index}"),
        (name, rank) if rank >= 0 && !name.contains("rank") => format!("rank {rank} · {name}"),
        (name, _) => name.to_owned(),
    }
}

fn row_entries(order: &Order) -> Vec<RowEntry> {
    let entry = |row: &Row| RowEntry {
        process: row.process,
        thread: row.thread,
        depth: row.depth,
        placement: row.placement,
        count: row.count,
    };
    order.rows.iter().map(entry).collect()
}
