//! A trace as the viewer reads it: `docs/format/timeline.md` is the byte-exact description.
//!
//! A JSON head (names, rows, sizes of columns) and eleven columns, three more where causes are known. Costs one pass over the events
//! per side and about 3 to 5 bytes per event of a recorded program.

use super::causes;
use super::column::{Column, clamp};
use super::head::{Head, Packed, Shape, head, span};
use super::order::{Order, order, parent_of, times_of};
use super::sums::{Fineness, Gathered, gather};
use super::{Part, Timeline, spent};
use iolab_trace::{Event, Function, Trace};
use std::collections::BTreeMap;

/// First bytes of the form.
const MAGIC: &[u8; 4] = b"IOTL";
/// A viewer refuses any other.
const VERSION: u32 = 2;

/// A trace encoded, with what the page needs to point into it.
pub(super) struct Encoded {
    pub(super) bytes: Vec<u8>,
    /// Drawing position of each row number of the trace.
    pub(super) positions: Vec<u32>,
    /// How many events of the trace stand in sums.
    pub(super) gathered_count: usize,
}

/// The exchange form of a trace.
pub fn encode(label: &str, trace: &Trace) -> Vec<u8> {
    encode_ordered(&Timeline::new(label, trace), &order(trace)).bytes
}

/// The exchange form of a trace whose calls are gathered in so many cells of time, all but the failed ones and the
/// longest of each row and class.
pub fn encode_in_cells(label: &str, trace: &Trace, cells: u64) -> Vec<u8> {
    let timeline = Timeline::new(label, trace);
    let fineness = Fineness { cells: cells.max(1), longest: 1 };
    encode_gathered(&timeline, &order(trace), |_| false, fineness).bytes
}

/// The exchange form of a trace in its order, and where each of its rows went.
pub(super) fn encode_ordered(timeline: &Timeline<'_>, order: &Order) -> Encoded {
    let trace = timeline.trace;
    let positions = positions(order);
    let functions = functions_used(trace);
    let columns = columns(timeline, order, &positions, &functions);
    let packed = packed(columns);
    let head = head(timeline, order, &functions, &packed);
    Encoded { bytes: assemble(&head, &packed), positions, gathered_count: 0 }
}

/// The same with calls gathered; rows that are `kept` stay single ones.
pub(super) fn encode_gathered(
    timeline: &Timeline<'_>,
    order: &Order,
    kept: impl Fn(u32) -> bool,
    fineness: Fineness,
) -> Encoded {
    let whole = timeline.trace;
    let Gathered { trace, order: drawn, calls, numbers, places, cell_ns } =
        gather(whole, order, kept, fineness);
    let part = Part {
        rows: numbers.iter().map(|&row| timeline.number(row)).collect(),
        left_out: timeline.part.as_ref().and_then(|part| part.left_out),
    };
    let gathered = Timeline {
        trace: &trace,
        label: timeline.label.clone(),
        stretches: timeline.stretches,
        part: Some(part),
        kept: Vec::new(),
    };
    let functions = functions_used(&trace);
    let mut columns = columns(&gathered, &drawn, &positions(&drawn), &functions);
    let mut stood_for = Column::with_capacity(calls.len());
    calls.iter().for_each(|&calls| stood_for.unsigned(clamp(calls as i64) as u64));
    columns.push(("calls", stood_for));
    let packed = packed(columns);
    let head = head(&gathered, &drawn, &functions, &packed).gathered(whole.events.len(), cell_ns);
    let single = calls.iter().filter(|&&calls| calls == 0).count();
    Encoded {
        bytes: assemble(&head, &packed),
        positions: places,
        gathered_count: whole.events.len() - single,
    }
}

fn columns(
    timeline: &Timeline<'_>,
    order: &Order,
    positions: &[u32],
    functions: &BTreeMap<Function, u8>,
) -> Vec<(&'static str, Column)> {
    let trace = timeline.trace;
    let columns = [
        times(trace, order, span(trace).0),
        names(trace, order, functions),
        details(trace, order, functions),
        references(timeline, order, positions),
        causes::columns(trace, order, positions),
        spent::columns(timeline, order),
    ];
    columns.into_iter().flatten().collect()
}

fn packed(columns: Vec<(&'static str, Column)>) -> Vec<Packed> {
    let pack = |(name, column): (&'static str, Column)| Packed {
        name,
        raw_bytes: column.raw_bytes(),
        bytes: column.deflate(),
    };
    columns.into_iter().map(pack).collect()
}

pub(super) fn assemble(head: &Head<'_>, columns: &[Packed]) -> Vec<u8> {
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
pub(super) fn functions_used(trace: &Trace) -> BTreeMap<Function, u8> {
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

/// `gap`: from the end of the event before it in the row; `duration`.
fn times(trace: &Trace, order: &Order, start_ns: u64) -> Vec<(&'static str, Column)> {
    let mut gaps = Column::with_capacity(order.events.len());
    let mut durations = Column::with_capacity(order.events.len());
    for row in &order.rows {
        let mut before = clamp(start_ns as i64);
        for &index in &order.events[row.first..row.first + row.count] {
            let event = &trace.events[index as usize];
            let (start, end) = times_of(event);
            let start = clamp(start.0 as i64);
            let end = clamp(end.0 as i64).max(start);
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
fn references(
    timeline: &Timeline<'_>,
    order: &Order,
    positions: &[u32],
) -> Vec<(&'static str, Column)> {
    let (trace, number) = (timeline.trace, |index: u32| timeline.number(index));
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
        rows.signed(i64::from(number(index)) - row_expected);
        parent_before = parent;
        row_expected = i64::from(number(index)) + 1;
    }
    vec![("parent", parents), ("row", rows)]
}
