//! Causes in a trace file: they come back, follow their rows, and are refused where they cannot be.

mod traces;

use arrow_array::builder::{Int64Builder, ListBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use bytes::Bytes;
use iolab_iot::{HEADER_KEY, IotError, Joined, Reader, read};
use iolab_trace::{Causes, Event, Function, Header, Links, ProcessEntry, Trace};
use iolab_vocab::{Nanos, Random, Seed};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::KeyValue;
use std::sync::Arc;
use traces::{bytes, header, trace};

/// Rows of a server: each takes 10 ns, the next begins when it ends.
fn row(rank: i32, at: u64) -> Event {
    Event { rank, start: Nanos(10 * at), end: Nanos(10 * at + 10), ..Event::of(Function::SEND) }
}

fn links(pairs: &[(u32, u32)]) -> Links {
    Links::from_pairs(pairs.to_vec())
}

/// Any rows that may cause each other.
fn any(count: usize, seed: u64) -> Trace {
    let mut trace = trace(count, seed);
    let mut random = Random::new(Seed(seed));
    let mut pairs = || {
        let any = |random: &mut Random| random.below(count as u64) as u32;
        let pairs = (0..count).map(|_| (any(&mut random), any(&mut random)));
        Links::from_pairs(pairs.filter(|(row, cause)| row != cause).collect())
    };
    trace.causes = Causes { begun_by: pairs(), ended_by: pairs() };
    trace.causes.keep_possible(&trace.events);
    trace
}

#[test]
fn causes_come_back_as_they_were() {
    for seed in 1..20 {
        let trace = any(200, seed);
        assert!(!trace.causes.begun_by.is_empty() && !trace.causes.ended_by.is_empty());
        assert_eq!(read(Bytes::from(bytes(&trace))).unwrap(), trace);
    }
}

#[test]
fn causes_follow_the_rows_that_writing_sorts() {
    let events = vec![row(1, 2), row(0, 1), row(-1, 0)];
    let causes = Causes { begun_by: links(&[(0, 1), (1, 2)]), ended_by: links(&[(0, 2)]) };
    let trace = Trace { header: header(), events, causes };
    let back = read(Bytes::from(bytes(&trace))).unwrap();
    assert_eq!(back.events, [row(-1, 0), row(0, 1), row(1, 2)]);
    assert_eq!(back.causes.begun_by, links(&[(2, 1), (1, 0)]));
    assert_eq!(back.causes.ended_by, links(&[(2, 0)]));
}

#[test]
fn a_trace_without_causes_has_no_columns_for_them() {
    let columns = |trace: &Trace| {
        let file = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes(trace))).unwrap();
        file.schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>()
    };
    let with = columns(&any(9, 1));
    assert_eq!(with[with.len() - 2..], ["begun_by", "ended_by"]);
    assert_eq!(columns(&trace(9, 1)), with[..with.len() - 2]);
}

#[test]
fn causes_cross_row_groups_both_ways() {
    let count = iolab_iot::GROUP_ROWS as u32 + 3;
    let events = (0..u64::from(count)).map(|at| row(0, at)).collect();
    let (last, first) = (count - 1, 0);
    // What ends the first row is far behind it and was over before: a row that is written late.
    let mut trace = Trace { header: header(), events, ..Trace::default() };
    trace.events[last as usize].rank = 1;
    trace.events[last as usize].start = Nanos(0);
    trace.events[last as usize].end = Nanos(5);
    trace.causes.ended_by = links(&[(first, last)]);
    trace.causes.begun_by = links(&[(last - 1, first), (last - 1, last)]);
    let back = read(Bytes::from(bytes(&trace))).unwrap();
    assert_eq!(back.causes, trace.causes);
}

#[test]
fn rows_of_one_part_are_not_causes_in_another() {
    let part = |rank: i32| {
        let entry = ProcessEntry { name: format!("rank {rank}"), rank, ..ProcessEntry::default() };
        let header = Header { processes: vec![entry], ..Header::default() };
        let events = vec![row(rank, 0), row(rank, 1)];
        let causes = Causes { begun_by: links(&[(1, 0)]), ended_by: links(&[(1, 0)]) };
        let trace = Trace { header, events, causes };
        Reader::new(Bytes::from(bytes(&trace))).unwrap()
    };
    let joined = Joined::new(vec![part(1), part(0)]).into_trace().unwrap();
    assert_eq!(joined.causes.begun_by, links(&[(1, 0), (3, 2)]));
    assert_eq!(joined.causes.ended_by, joined.causes.begun_by);
}

#[test]
fn parts_whose_rows_are_mixed_keep_their_causes() {
    let part = |ranks: &[i32]| {
        let entry = |&rank: &i32| ProcessEntry { rank, ..ProcessEntry::default() };
        let header = Header { processes: ranks.iter().map(entry).collect(), ..Header::default() };
        let events = vec![row(ranks[0], 0), row(ranks[1], 1)];
        let causes = Causes { begun_by: links(&[(1, 0)]), ..Causes::default() };
        Reader::new(Bytes::from(bytes(&Trace { header, events, causes }))).unwrap()
    };
    let joined = Joined::new(vec![part(&[0, 2]), part(&[1, 3])]).into_trace().unwrap();
    assert_eq!(joined.events.iter().map(|row| row.rank).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(joined.causes.begun_by, links(&[(2, 0), (3, 1)]));
}

#[test]
fn who_only_wants_rows_gets_them_without_causes() {
    let trace = any(50, 3);
    let mut reader = Reader::new(Bytes::from(bytes(&trace))).unwrap();
    assert_eq!(reader.next().unwrap().unwrap(), trace.events);
    assert!(reader.next_group().is_none());
    let mut reader = Reader::new(Bytes::from(bytes(&trace))).unwrap();
    let group = reader.next_group().unwrap().unwrap();
    assert_eq!((group.events, group.causes), (trace.events, trace.causes));
    assert!(reader.next().is_none());
}

#[test]
fn the_writer_refuses_causes_that_are_not_there_or_the_row_itself() {
    for pair in [(0, 0), (0, 2), (2, 0)] {
        let causes = Causes { ended_by: links(&[pair]), ..Causes::default() };
        let trace = Trace { header: header(), events: vec![row(0, 0), row(0, 1)], causes };
        let error = iolab_iot::write(&trace, Vec::new()).unwrap_err();
        assert!(matches!(error, IotError::Row { .. }), "{pair:?}: {error}");
    }
}

/// The file of a trace as another tool would write it, with one column replaced.
fn rewritten(name: &str, column: ArrayRef) -> Bytes {
    let file = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes(&any(4, 1)))).unwrap();
    let batch = file.build().unwrap().next().unwrap().unwrap();
    let schema = batch.schema();
    let names = schema.fields().iter().map(|field| field.name().as_str());
    let columns = names.zip(batch.columns()).map(|(known, cells)| {
        (known, if known == name { column.clone() } else { cells.clone() }, true)
    });
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    let json = serde_json::to_string(&header()).unwrap();
    writer.append_key_value_metadata(KeyValue::new(HEADER_KEY.to_owned(), json));
    writer.close().unwrap();
    Bytes::from(file)
}

fn lists(lists: &[&[Option<i64>]]) -> ArrayRef {
    let mut builder = ListBuilder::new(Int64Builder::new());
    for list in lists {
        builder.append_value(list.iter().copied());
    }
    Arc::new(builder.finish())
}

#[test]
fn causes_of_another_tool_are_read_and_those_that_point_nowhere_are_told_by_their_row() {
    let told = |column| read(rewritten("ended_by", column)).unwrap_err().to_string();
    let read_back = read(rewritten("ended_by", lists(&[&[], &[Some(0)], &[], &[]]))).unwrap();
    assert_eq!(read_back.causes.ended_by, links(&[(1, 0)]));
    for wrong in [4, -1, i64::MAX, i64::MIN] {
        let wanted = format!("row 2: ended_by is {wrong}, but the trace has 4 rows");
        assert_eq!(told(lists(&[&[], &[], &[Some(0), Some(wrong)], &[]])), wanted);
    }
    assert_eq!(told(lists(&[&[], &[Some(1)], &[], &[]])), "row 1: ended_by is the row itself");
    assert_eq!(told(lists(&[&[None], &[], &[], &[]])), "row 0: ended_by has an empty element");
    let numbers: ArrayRef = Arc::new(arrow_array::Int64Array::from(vec![0, 0, 0, 0]));
    let wanted = "column `ended_by` should be a list of int64 but is int64";
    assert_eq!(told(numbers), wanted);
}

#[test]
fn causes_that_come_later_or_in_a_circle_are_left_out_and_the_trace_says_so() {
    let at_once = |row: &mut Event| (row.start, row.end) = (Nanos(50), Nanos(50));
    let mut trace = Trace { header: header(), ..Trace::default() };
    trace.events = (0..4).map(|at| row(0, at)).collect();
    trace.events[2..].iter_mut().for_each(at_once);
    trace.causes.begun_by = links(&[(0, 1), (1, 0), (2, 3), (3, 2)]);
    let back = read(Bytes::from(bytes(&trace))).unwrap();
    assert_eq!(back.causes.begun_by.pairs().count(), 2);
    assert_eq!(back.header.losses.unseen, ["2 causes of rows that cannot be, left out"]);
}

#[test]
fn a_trace_with_causes_takes_few_bytes_for_them() {
    let count = 20_000;
    let events: Vec<Event> = (0..count).map(|at| row(0, at)).collect();
    let plain = Trace { header: header(), events, ..Trace::default() };
    let pairs = (1..count as u32).map(|row| (row, row - 1)).collect();
    let mut with = plain.clone();
    with.causes.begun_by = Links::from_pairs(pairs);
    let more = bytes(&with).len() - bytes(&plain).len();
    assert!(more < count as usize / 4, "{more} bytes for {count} causes");
}

#[test]
fn a_damaged_list_of_causes_is_never_a_panic() {
    let file = bytes(&any(100, 5));
    for at in (0..file.len()).step_by(7) {
        let mut damaged = file.clone();
        damaged[at] ^= 0x55;
        assert!(read(Bytes::from(damaged)).is_err(), "byte {at}");
    }
    let column = rewritten("begun_by", lists(&[&[], &[], &[], &[]]));
    assert!(read(column).is_ok());
}
