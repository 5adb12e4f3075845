//! Traces that another tool wrote: strings as they are, no checksums, row groups of any length.

mod traces;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, UInt32Array};
use bytes::Bytes;
use iolab_iot::{HEADER_KEY, IotError, Joined, Reader, read};
use iolab_trace::Event;
use iolab_vocab::Nanos;
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::KeyValue;
use std::sync::Arc;
use traces::{bytes, header, trace};

const COUNT: usize = 5;
const GROUP_ROWS: usize = 3;

fn calls() -> Vec<Event> {
    trace(COUNT, 7).events
}

fn wide(calls: &[Event], cell: impl Fn(&Event) -> i64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(calls.iter().map(cell)))
}

/// The columns `docs/format/trace.md` lists, strings being plain strings.
fn columns(calls: &[Event]) -> Vec<(&'static str, ArrayRef)> {
    let signed = |cell: fn(&Event) -> i32| -> ArrayRef {
        Arc::new(Int32Array::from_iter_values(calls.iter().map(cell)))
    };
    let unsigned = |cell: fn(&Event) -> u32| -> ArrayRef {
        Arc::new(UInt32Array::from_iter_values(calls.iter().map(cell)))
    };
    let operations = calls.iter().map(|call| call.function.name());
    vec![
        ("rank", signed(|call| call.rank)),
        ("process", unsigned(|call| call.process)),
        ("thread", unsigned(|call| call.thread)),
        ("layer", Arc::new(StringArray::from_iter_values(calls.iter().map(|_| "posix")))),
        ("op", Arc::new(StringArray::from_iter_values(operations))),
        ("file", unsigned(|call| call.file.0)),
        ("fd", signed(|call| call.fd)),
        ("offset", wide(calls, |call| call.offset)),
        ("length", wide(calls, |call| call.length)),
        ("argument", wide(calls, |call| call.argument)),
        ("start_ns", wide(calls, |call| call.start.0 as i64)),
        ("end_ns", wide(calls, |call| call.end.0 as i64)),
        ("result", wide(calls, |call| call.result)),
        ("parent", wide(calls, |call| call.parent)),
    ]
}

/// A Parquet file of these columns in row groups of `GROUP_ROWS`, with the header of a trace.
fn file(columns: Vec<(&str, ArrayRef)>) -> Bytes {
    let nullable = columns.into_iter().map(|(name, cells)| (name, cells, true));
    let batch = RecordBatch::try_from_iter_with_nullable(nullable).unwrap();
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), None).unwrap();
    for first in (0..COUNT).step_by(GROUP_ROWS) {
        writer.write(&batch.slice(first, GROUP_ROWS.min(COUNT - first))).unwrap();
        writer.flush().unwrap();
    }
    let json = serde_json::to_string(&header()).unwrap();
    writer.append_key_value_metadata(KeyValue::new(HEADER_KEY.to_owned(), json));
    writer.close().unwrap();
    Bytes::from(file)
}

/// What reading says when the column `name` holds `cells` instead.
fn refusal(name: &str, cells: ArrayRef) -> String {
    let mut columns = columns(&calls());
    columns.iter_mut().find(|column| column.0 == name).unwrap().1 = cells;
    read(file(columns)).unwrap_err().to_string()
}

#[test]
fn a_trace_rewritten_by_another_tool_is_the_same_trace() {
    let calls = calls();
    let mut reader = Reader::new(file(columns(&calls))).unwrap();
    assert_eq!(reader.rows(), COUNT as u64);
    let groups: Vec<_> = reader.by_ref().map(|group| group.unwrap()).collect();
    assert_eq!(groups, [&calls[..GROUP_ROWS], &calls[GROUP_ROWS..]]);
    let ours = read(Bytes::from(bytes(&trace(COUNT, 7)))).unwrap();
    assert_eq!((groups.concat(), reader.header()), (ours.events, &ours.header));
}

#[test]
fn row_groups_that_tell_other_times_are_passed_over_and_those_that_tell_none_are_read() {
    let mut calls = calls();
    for (call, start) in calls.iter_mut().zip([10, 20, 30, 100, 200]) {
        (call.start, call.end, call.parent) = (Nanos(start), Nanos(start + 5), -1);
    }
    // A damaged row, which ends before it begins.
    (calls[1].start, calls[1].end) = (Nanos(40), Nanos(20));
    let file = file(columns(&calls));
    let left = |from, to| {
        let mut joined = Joined::new(vec![Reader::new(file.clone()).unwrap()]);
        assert_eq!(joined.first_start(), Some(10));
        let mut passed = joined.pass_over(from, to);
        let mut left = Vec::new();
        while let Some(group) = joined.next() {
            left.extend(group.unwrap().iter().map(|call| call.start.0));
            passed += joined.pass_over(from, to);
        }
        (passed, left)
    };
    let (first, second) = (vec![10, 40, 30], vec![100, 200]);
    assert_eq!(left(0, u64::MAX), (0, [first.clone(), second.clone()].concat()));
    assert_eq!(left(15, 90), (2, first.clone()));
    assert_eq!(left(40, 40), (2, first));
    assert_eq!(left(41, 1000), (3, second));
    assert_eq!(left(41, 99), (5, vec![]));
    // Cells without a value tell none; they are refused when they are read.
    let mut none = columns(&calls);
    let starts = Int64Array::from_iter(calls.iter().map(|_| None::<i64>));
    none.iter_mut().find(|column| column.0 == "start_ns").unwrap().1 = Arc::new(starts);
    let mut joined = Joined::new(vec![Reader::new(self::file(none)).unwrap()]);
    assert_eq!((joined.first_start(), joined.pass_over(41, 99)), (None, 0));
}

#[test]
fn a_single_part_keeps_the_order_its_tool_gave_it() {
    let mut calls = calls();
    calls.reverse();
    calls.iter_mut().for_each(|call| call.parent = -1);
    let part = || Reader::new(file(columns(&calls))).unwrap();
    assert_eq!(Joined::new(vec![part()]).into_trace().unwrap().events, calls);
}

#[test]
fn columns_that_iolab_does_not_know_are_somebody_elses() {
    let mut columns = columns(&calls());
    columns.insert(3, ("mood", Arc::new(StringArray::from(vec!["good"; COUNT]))));
    assert_eq!(read(file(columns)).unwrap().events, calls());
}

#[test]
fn a_time_before_time_zero_is_told_with_its_row() {
    for name in ["start_ns", "end_ns"] {
        let early = Int64Array::from(vec![1, 2, 3, 4, -9]);
        assert_eq!(refusal(name, Arc::new(early)), format!("row 4: {name} is -9"));
        let early = Int64Array::from(vec![1, -9, 3, 4, 5]);
        assert_eq!(refusal(name, Arc::new(early)), format!("row 1: {name} is -9"));
    }
}

#[test]
fn a_function_of_a_later_version_is_told_with_its_row() {
    let names = StringArray::from(vec!["read", "write", "read", "write", "levitate"]);
    let wanted = "row 4: op is `levitate`, which this version does not know";
    assert_eq!(refusal("op", Arc::new(names)), wanted);
}

#[test]
fn an_empty_cell_is_told_by_its_column() {
    let holes = Int32Array::from(vec![Some(1), None, None, Some(1), Some(1)]);
    let wanted = "column `fd` should be filled in every row but is empty in 2";
    assert_eq!(refusal("fd", Arc::new(holes)), wanted);
}

/// The header lists two files and two processes, the file has `COUNT` rows.
#[test]
fn a_row_that_names_what_the_trace_does_not_have_is_refused() {
    let none = u32::MAX;
    let files = UInt32Array::from(vec![0, none, 1, 0, 2]);
    let told = refusal("file", Arc::new(files));
    assert!(told.starts_with("row 4: file 2, ") && told.contains("2 files"), "{told}");

    let processes = UInt32Array::from(vec![0, 1, 0, 2, 0]);
    let told = refusal("process", Arc::new(processes));
    assert!(told.starts_with("row 3: ") && told.contains(", process 2 or "), "{told}");

    for parent in [COUNT as i64, -2, i64::MIN] {
        let parents = Int64Array::from(vec![-1, 0, parent, -1, -1]);
        let told = refusal("parent", Arc::new(parents));
        assert!(told.starts_with("row 2: "), "{told}");
        assert!(told.contains(&format!("parent {parent} is not there")), "{told}");
        assert!(told.ends_with("2 processes, 5 rows"), "{told}");
    }
}

#[test]
fn the_last_file_process_and_row_may_be_named() {
    let mut calls = calls();
    let last = calls.last_mut().unwrap();
    (last.file, last.process) = (iolab_vocab::FileId(1), 1);
    calls[0].parent = COUNT as i64 - 1;
    assert_eq!(read(file(columns(&calls))).unwrap().events, calls);
}

#[test]
fn the_first_group_that_cannot_be_read_is_the_last_thing_said() {
    let mut columns = columns(&calls());
    columns[7].1 = Arc::new(Int64Array::from(vec![1; COUNT]));
    columns[10].1 = Arc::new(Int64Array::from(vec![-1; COUNT]));
    let mut reader = Reader::new(file(columns)).unwrap();
    assert!(matches!(reader.next(), Some(Err(IotError::Row { row: 0, .. }))));
    assert!(reader.next().is_none());
}
