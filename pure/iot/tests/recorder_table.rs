//! Tables of Recorder: rows of either kind of file are taken, and no file is too bad.

use bytes::Bytes;
use iolab_iot::{is_recorder_table, read_recorder_table};
use iolab_trace::import::{Recorder, RecorderError};
use iolab_trace::{Function, Trace};
use parquet::data_type::{ByteArray, ByteArrayType, FloatType, Int32Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::fmt::Write;
use std::sync::Arc;

const SAMPLE: &[u8] = include_bytes!("../../../samples/recorder/_parquet/0_0.parquet");

fn read(bytes: &[u8]) -> Result<Trace, RecorderError> {
    let mut run = Recorder::default();
    read_recorder_table(Bytes::copy_from_slice(bytes), &mut run)?;
    run.finish()
}

/// A row of the first kind of table: times, function, arguments.
type Row = (f32, f32, &'static str, &'static [&'static str]);

/// What `recorder2parquet` wrote until 2022: numbers as repeated fields with one value a row.
fn early(rank: i32, rows: &[Row]) -> Vec<u8> {
    let arguments = (1..=10).fold(String::new(), |mut text, at| {
        _ = write!(text, "optional binary args_{at} (UTF8);");
        text
    });
    let schema = format!(
        "message schema {{ repeated int32 rank; repeated int32 thread_id; repeated float tstart; repeated float tend; \
         optional binary func_id (UTF8); repeated int32 arg_count; {arguments} }}"
    );
    let schema = Arc::new(parse_message_type(&schema).unwrap());
    let properties = Arc::new(WriterProperties::default());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let (there, first) = (vec![1; rows.len()], vec![0; rows.len()]);
    let integers = |of: fn(&Row) -> i32| rows.iter().map(of).collect::<Vec<_>>();
    let mut column = 0;
    while let Some(mut next) = group.next_column().unwrap() {
        match column {
            0 | 1 | 5 => {
                let values = match column {
                    0 => vec![rank; rows.len()],
                    1 => vec![4_711; rows.len()],
                    _ => integers(|row| row.3.len() as i32),
                };
                next.typed::<Int32Type>().write_batch(&values, Some(&there), Some(&first)).unwrap();
            }
            2 | 3 => {
                let time = |row: &Row| if column == 2 { row.0 } else { row.1 };
                let values: Vec<f32> = rows.iter().map(time).collect();
                next.typed::<FloatType>().write_batch(&values, Some(&there), Some(&first)).unwrap();
            }
            _ => {
                let text = |row: &Row| match column {
                    4 => row.2,
                    _ => row.3.get(column - 6).copied().unwrap_or(""),
                };
                let values: Vec<ByteArray> = rows.iter().map(|row| text(row).into()).collect();
                next.typed::<ByteArrayType>().write_batch(&values, Some(&there), None).unwrap();
            }
        }
        next.close().unwrap();
        column += 1;
    }
    group.close().unwrap();
    writer.into_inner().unwrap()
}

#[test]
fn a_table_has_the_calls_of_its_text_and_its_threads() {
    assert!(is_recorder_table(&Bytes::from_static(SAMPLE)));
    let trace = read(SAMPLE).unwrap();
    let of = |rank| trace.events.iter().filter(move |event| event.rank == rank);
    let moved = |rank| of(rank).map(|event| event.moved_bytes()).sum::<u64>();
    assert_eq!((of(0).count(), moved(0)), (16, 4096 + 4096 + 100 + 60 + 30 + 128));
    assert_eq!((of(1).count(), moved(1)), (3, 21));
    let mut threads: Vec<u32> = of(1).map(|event| event.thread).collect();
    threads.sort_unstable();
    assert_eq!(threads, [0, 0, 1]);
    let write = of(0).find(|event| event.function == Function::PWRITE).unwrap();
    assert_eq!(trace.header.files[write.file.index().unwrap()].path, "/data/shared file");
    assert_eq!((write.offset, write.length), (8_192, 4_096));
    assert_eq!(trace.events[write.parent as usize].function, Function::MPI_FILE_WRITE_ALL);
    // As near as a float of 32 bits is.
    assert!(
        write.start.0.abs_diff(350_000) <= 1 && write.end.0.abs_diff(450_000) <= 1,
        "{write:?}"
    );
    let told = trace.header.inferred.iter().find(|fact| fact.starts_with("times")).unwrap();
    assert!(told.contains("7.63 µs apart"), "{told}");
    assert_eq!(trace.header.losses.left_out_calls["MPI_Barrier"], 1);
}

#[test]
fn a_table_of_the_early_kind_has_the_same_rows() {
    let rows: [Row; 4] = [
        (0.25, 0.5, "open", &["/data/a b", "66", "420"]),
        (0.5, 0.75, "write", &["/data/a b", "0x1", "100"]),
        (0.75, 1.0, "write", &["/data/a b", "0x1", "50"]),
        (2.0, 1.0, "write", &["/data/a b", "0x1", "50"]),
    ];
    let bytes = early(5, &rows);
    assert!(is_recorder_table(&Bytes::from(bytes.clone())));
    let trace = read(&bytes).unwrap();
    let writes = trace.events.iter().filter(|event| event.function == Function::WRITE);
    let told: Vec<_> = writes.map(|it| (it.rank, it.offset, it.length, it.start.0)).collect();
    assert_eq!(told, [(5, 0, 100, 500_000_000), (5, 100, 50, 750_000_000)]);
    assert_eq!(trace.header.files[0].path, "/data/a b");
    assert_eq!(trace.header.losses.lost_calls["unreadable rows"], 1);
}

#[test]
fn other_tables_are_told_by_what_they_lack() {
    let hidden = |name: &[u8]| {
        let mut bytes = SAMPLE.to_vec();
        for at in 0..bytes.len() - name.len() {
            if bytes[at..].starts_with(name) {
                bytes[at] = b'x';
            }
        }
        bytes
    };
    for name in ["rank", "tend", "arg_count", "args_7"] {
        let bytes = hidden(name.as_bytes());
        let error = read(&bytes).unwrap_err();
        assert!(error.to_string().contains(&format!("no column `{name}`")), "{error}");
        assert!(error.hint().contains("recorder2parquet"));
    }
    for name in ["func_id", "tstart"] {
        assert!(!is_recorder_table(&Bytes::from(hidden(name.as_bytes()))), "{name}");
    }
    for other in [&b""[..], b"PAR1", b"PAR1PAR1", b"func_id tstart \xff\xff\xff\xffPAR1"] {
        assert!(!is_recorder_table(&Bytes::from_static(other)), "{other:?}");
        assert!(read(other).is_err());
    }
}

/// Each byte changed, and the file cut before it.
#[test]
fn no_table_is_too_bad() {
    let mut refused = 0;
    for at in 0..SAMPLE.len() {
        let mut changed = SAMPLE.to_vec();
        changed[at] ^= 0x81;
        for bytes in [&changed[..], &SAMPLE[..at]] {
            match read(bytes) {
                Ok(trace) => {
                    for (row, event) in trace.events.iter().enumerate() {
                        assert!(event.file.index().unwrap() < trace.header.files.len());
                        assert!(event.start <= event.end && event.parent < row as i64);
                    }
                }
                Err(error) => {
                    refused += 1;
                    assert!(!error.to_string().is_empty() && !error.hint().is_empty());
                }
            }
        }
    }
    assert!(refused >= SAMPLE.len(), "cut ones at least");
}
