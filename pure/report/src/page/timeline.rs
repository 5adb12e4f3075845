//! A trace as the viewer reads it: `docs/format/timeline.md` is the byte-exact description.
//!
//! A JSON head (names, rows, sizes of columns) and eleven columns. Costs one pass over the events
//! per side and about 3 to 5 bytes per event of a recorded program.

use super::column::{Column, clamp};
use super::order::{Order, order, parent_of};
use iolab_trace::{Class, Event, Function, Layer, Trace};
use serde::Serialize;
use std::collections::BTreeMap;

/// First bytes of the form.
const MAGIC: &[u8; 4] = b"IOTL";
/// A viewer refuses any other.
const VERSION: u32 = 1;

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
            Unseen | Piece => Kind::Other,
        }
    }
}

#[derive(Serialize)]
struct Head<'a> {
    label: &'a str,
    origin: String,
    strategies: &'a [String],
    count: usize,
    /// Earliest and latest moment of the trace; the viewer's axis begins at `start_ns`.
    start_ns: u64,
    end_ns: u64,
    lost_calls: u64,
    functions: Vec<FunctionEntry>,
    files: Vec<&'a str>,
    processes: Vec<ProcessEntry<'a>>,
    rows: Vec<RowEntry>,
    columns: Vec<ColumnEntry>,
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
enum Shape {
    Data,
    Seek,
    Plain,
}

#[derive(Serialize)]
struct ProcessEntry<'a> {
    name: String,
    rank: i32,
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
    count: usize,
}

#[derive(Serialize)]
struct ColumnEntry {
    name: &'static str,
    bytes: usize,
    raw_bytes: usize,
}

impl Shape {
    fn of(function: Function) -> Shape {
        match function.class() {
            class if class.moves_data() => Shape::Data,
            Class::Seek if function.layer() == Layer::Posix => Shape::Seek,
            _ => Shape::Plain,
        }
    }
}

/// A trace encoded, with what the page needs to point into it.
pub(super) struct Encoded {
    pub(super) bytes: Vec<u8>,
    /// Drawing position of each row number of the trace.
    pub(super) positions: Vec<u32>,
}

/// The exchange form of a trace.
pub fn encode(label: &str, trace: &Trace) -> Vec<u8> {
    encode_with_positions(label, trace).bytes
}

/// The exchange form of a trace, and where each of its rows went.
pub(super) fn encode_with_positions(label: &str, trace: &Trace) -> Encoded {
    let order = order(trace);
    let positions = positions(&order);
    let functions = functions_used(trace);
    let columns = [
        times(trace, &order, span(trace).0),
        names(trace, &order, &functions),
        details(trace, &order, &functions),
        references(trace, &order, &positions),
    ];
    let packed: Vec<Packed> = columns
        .iter()
        .flatten()
        .map(|(name, column)| Packed {
            name,
            raw_bytes: column.raw_bytes(),
            bytes: column.deflate(),
        })
        .collect();
    let head = head(label, trace, &order, &functions, &packed);
    Encoded { bytes: assemble(&head, &packed), positions }
}

/// A compressed column.
struct Packed {
    name: &'static str,
    raw_bytes: usize,
    bytes: Vec<u8>,
}

fn head<'a>(
    label: &'a str,
    trace: &'a Trace,
    order: &Order,
    functions: &BTreeMap<Function, u8>,
    packed: &[Packed],
) -> Head<'a> {
    let (start_ns, end_ns) = span(trace);
    let column = |column: &Packed| ColumnEntry {
        name: column.name,
        bytes: column.bytes.len(),
        raw_bytes: column.raw_bytes,
    };
    Head {
        label,
        origin: format!("{:?}", trace.header.origin).to_lowercase(),
        strategies: &trace.header.strategies,
        count: trace.events.len(),
        start_ns,
        end_ns,
        lost_calls: trace.header.losses.lost_calls.values().copied().fold(0, u64::saturating_add),
        functions: functions.keys().map(|&function| function_entry(function)).collect(),
        files: trace.header.files.iter().map(|file| file.path.as_str()).collect(),
        processes: process_entries(trace),
        rows: row_entries(order),
        columns: packed.iter().map(column).collect(),
    }
}

fn assemble(head: &Head<'_>, columns: &[Packed]) -> Vec<u8> {
    let head = serde_json::to_vec(head).expect("a head has only strings and numbers");
    let mut bytes = Vec::with_capacity(
        12 + head.len() + columns.iter().map(|column| column.bytes.len()).sum::<usize>(),
    );
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&(head.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&head);
    for column in columns {
        bytes.extend_from_slice(&column.bytes);
    }
    bytes
}

fn positions(order: &Order) -> Vec<u32> {
    let mut positions = vec![0; order.events.len()];
    for (position, &row) in order.events.iter().enumerate() {
        positions[row as usize] = position as u32;
    }
    positions
}

/// The functions that occur, each with its index in the head.
fn functions_used(trace: &Trace) -> BTreeMap<Function, u8> {
    let mut used: BTreeMap<Function, u8> = BTreeMap::new();
    for event in &trace.events {
        used.entry(event.function).or_insert(0);
    }
    assert!(used.len() <= 256, "{} different functions do not fit a byte", used.len());
    for (index, slot) in used.values_mut().enumerate() {
        *slot = index as u8;
    }
    used
}

fn span(trace: &Trace) -> (u64, u64) {
    let starts = trace.events.iter().map(|event| event.start.0);
    let ends = trace.events.iter().map(|event| event.end.0);
    let processes = trace.header.processes.iter().filter(|process| process.end_ns > 0);
    let start = starts.chain(processes.clone().map(|process| process.start_ns)).min();
    let end = ends.chain(processes.map(|process| process.end_ns)).max();
    (start.unwrap_or(0), end.unwrap_or(0))
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
        rank: process.rank,
        pid: process.pid,
        host: &process.host,
        command: process.command.join(" "),
        start_ns: process.start_ns,
        end_ns: process.end_ns,
        ending: &process.ending,
    });
    let nameless = (known..used.max(known)).map(|index| ProcessEntry {
        name: process_name(index, "", -1),
        rank: -1,
        pid: 0,
        host: "",
        command: String::new(),
        start_ns: 0,
        end_ns: 0,
        ending: "",
    });
    named.chain(nameless).collect()
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
    let entry = |row: &super::order::Row| RowEntry {
        process: row.process,
        thread: row.thread,
        depth: row.depth,
        count: row.count,
    };
    order.rows.iter().map(entry).collect()
}

/// `gap`: from the end of the event before it in the row; `duration`.
fn times(trace: &Trace, order: &Order, start_ns: u64) -> Vec<(&'static str, Column)> {
    let mut gaps = Column::with_capacity(order.events.len());
    let mut durations = Column::with_capacity(order.events.len());
    for row in &order.rows {
        let mut before = clamp(start_ns as i64);
        for &index in &order.events[row.first..row.first + row.count] {
            let event = &trace.events[index as usize];
            let start = clamp(event.start.0 as i64);
            let end = clamp(event.end.0 as i64).max(start);
            gaps.signed(start - before);
            durations.unsigned((end - start) as u64);
            before = end;
        }
    }
    vec![("gap", gaps), ("duration", durations)]
}

/// `function` (a byte) and `file` (difference of index + 1).
fn names(
    trace: &Trace,
    order: &Order,
    functions: &BTreeMap<Function, u8>,
) -> Vec<(&'static str, Column)> {
    let mut names = Column::with_capacity(order.events.len());
    let mut files = Column::with_capacity(order.events.len());
    let mut before = 0;
    for &index in &order.events {
        let event = &trace.events[index as usize];
        names.byte(functions[&event.function]);
        let slot = file_slot(trace, event) as i64;
        files.signed(slot - before);
        before = slot;
    }
    vec![("function", names), ("file", files)]
}

/// 0 for no file, else the index plus one; an index outside the table counts as none.
fn file_slot(trace: &Trace, event: &Event) -> usize {
    match event.file.index() {
        Some(index) if index < trace.header.files.len() => index + 1,
        _ => 0,
    }
}

/// What was last seen of a function, to guess its next call from.
#[derive(Clone, Copy)]
struct Last {
    offset: i64,
    length: i64,
    argument: i64,
    result: i64,
}

/// `length`, `offset`, `result`, `argument`, `fd`, each as the difference from a guess.
fn details(
    trace: &Trace,
    order: &Order,
    functions: &BTreeMap<Function, u8>,
) -> Vec<(&'static str, Column)> {
    let empty = || Column::with_capacity(order.events.len());
    let (mut lengths, mut offsets, mut results) = (empty(), empty(), empty());
    let (mut arguments, mut fds) = (empty(), empty());
    let mut last = vec![Last { offset: -1, length: -1, argument: -1, result: 0 }; functions.len()];
    let mut expected = vec![0; trace.header.files.len() + 1];
    let mut last_fd = vec![-1; trace.header.files.len() + 1];
    for &index in &order.events {
        let event = &trace.events[index as usize];
        let shape = Shape::of(event.function);
        let last = &mut last[functions[&event.function] as usize];
        let slot = file_slot(trace, event);
        let [offset, length] = [clamp(event.offset), clamp(event.length)];
        let [argument, result] = [clamp(event.argument), clamp(event.result)];
        let offset_guess = if shape == Shape::Plain { last.offset } else { expected[slot] };
        let result_guess = match shape {
            Shape::Data => length,
            Shape::Seek => offset,
            Shape::Plain => last.result,
        };
        lengths.signed(length - last.length);
        offsets.signed(offset - offset_guess);
        results.signed(result - result_guess);
        arguments.signed(argument - last.argument);
        fds.signed(i64::from(event.fd) - last_fd[slot]);
        match shape {
            Shape::Data => expected[slot] = clamp(offset + result.max(0)),
            Shape::Seek => expected[slot] = result,
            Shape::Plain => {}
        }
        last_fd[slot] = i64::from(event.fd);
        *last = Last { offset, length, argument, result };
    }
    vec![
        ("length", lengths),
        ("offset", offsets),
        ("result", results),
        ("argument", arguments),
        ("fd", fds),
    ]
}

/// `parent` (drawing position + 1, 0 for none) and `row` (number in the trace), as differences.
fn references(trace: &Trace, order: &Order, positions: &[u32]) -> Vec<(&'static str, Column)> {
    let mut parents = Column::with_capacity(order.events.len());
    let mut rows = Column::with_capacity(order.events.len());
    let mut parent_before = 0;
    let mut row_expected = 0;
    for &index in &order.events {
        let parent = match parent_of(&trace.events, index as usize) {
            Some(parent) => i64::from(positions[parent]) + 1,
            None => 0,
        };
        parents.signed(parent - parent_before);
        rows.signed(i64::from(index) - row_expected);
        parent_before = parent;
        row_expected = i64::from(index) + 1;
    }
    vec![("parent", parents), ("row", rows)]
}
