//! The file of single operations holds every operation of every rank, where it went and when.

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use iolab_bench::{Abilities, Outcome, Plan, TestFiles, run};
use iolab_comm::{Comm, LocalKind, run_local};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs::File;
use std::path::Path;

fn run_plan(folder: &Path, test: &str) -> Outcome {
    let (target, records) = (folder.join("data"), folder.join("records.parquet"));
    let text = format!(
        "[global]\ntarget = '{}'\nrecords = '{}'\nrepetitions = 2\nsync = false\n[[test]]\n{test}",
        target.display(),
        records.display()
    );
    let plan = Plan::parse(&text).expect("a plan");
    let abilities = Abilities::default();
    let files = TestFiles::of(&plan.target, 2, plan.files).expect("memory");
    let work = |comm: &dyn Comm| run(&plan, comm, &abilities, &files, &|_| ());
    let outcome = run_local(LocalKind::Threads, 2, work);
    outcome.expect("threads").expect("an outcome")
}

/// Repetition, rank, operation, way, offset, bytes, start and latency.
type Row = (u32, u32, u64, String, u64, u64, u64, u64);

fn rows(folder: &Path) -> Vec<Row> {
    let file = File::open(folder.join("records.parquet")).expect("a file");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet").build();
    let mut rows = Vec::new();
    for batch in reader.expect("a reader") {
        let batch = batch.expect("a batch");
        let column = |name: &str| batch.column_by_name(name).expect(name).clone();
        let short = |name: &str| column(name).as_primitive::<UInt32Type>().values().to_vec();
        let long = |name: &str| column(name).as_primitive::<UInt64Type>().values().to_vec();
        let way = column("way");
        let numbers = ["operation", "offset", "bytes", "start_ns", "latency_ns"].map(long);
        let (repetition, rank) = (short("repetition"), short("rank"));
        for row in 0..batch.num_rows() {
            let [operation, offset, bytes, start, latency] =
                [0, 1, 2, 3, 4].map(|column: usize| numbers[column][row]);
            let way = way.as_string::<i32>().value(row).to_owned();
            rows.push((repetition[row], rank[row], operation, way, offset, bytes, start, latency));
        }
    }
    rows
}

/// Direction, bytes read and bytes written of every row.
fn directions(folder: &Path) -> Vec<(String, u64, u64)> {
    let file = File::open(folder.join("records.parquet")).expect("a file");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet").build();
    let mut found = Vec::new();
    for batch in reader.expect("a reader") {
        let batch = batch.expect("a batch");
        let column = |name: &str| batch.column_by_name(name).expect(name).clone();
        let long = |name: &str| column(name).as_primitive::<UInt64Type>().values().to_vec();
        let (direction, read, written) =
            (column("direction"), long("bytes_read"), long("bytes_written"));
        for row in 0..batch.num_rows() {
            let direction = direction.as_string::<i32>().value(row).to_owned();
            found.push((direction, read[row], written[row]));
        }
    }
    found
}

#[test]
fn every_operation_of_every_rank_and_repetition_is_a_row_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    run_plan(
        folder.path(),
        "spatial = 'strided:strip=512,stripes=5'\ntemporal = 'write'\nheader = 64",
    );
    let rows = rows(folder.path());
    assert_eq!(rows.len(), 2 * 2 * 5);
    for (_, rank, operation, way, offset, bytes, _, latency) in &rows {
        let wanted = 64 + operation * 1024 + u64::from(*rank) * 512;
        assert_eq!((way.as_str(), *offset, *bytes), ("write", wanted, 512));
        assert!(*latency > 0);
    }
    let mut starts = rows.iter().filter(|row| (row.0, row.1) == (1, 1)).map(|row| row.6);
    let mut last = starts.next().expect("rows of rank 1");
    for start in starts {
        assert!(start > last, "in order of time");
        last = start;
    }
    assert!(!folder.path().join("records.parquet.partial").exists());
}

#[test]
fn both_ways_of_a_phase_are_told_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let outcome = run_plan(
        folder.path(),
        "spatial = 'segmented:request=1k,count=40'\ntemporal = ['mixed', 'read-modify-write']",
    );
    let rows = rows(folder.path());
    let columns = directions(folder.path());
    let moved = |wanted: &str, index: usize| -> u64 {
        let of = columns.iter().filter(|column| column.0 == wanted);
        of.map(|column| [column.1, column.2][index]).sum()
    };
    assert!(moved("read", 0) > 0 && moved("read", 1) == 0);
    assert!(moved("write", 1) > 0 && moved("write", 0) == 0);
    assert_eq!(moved("read-write", 0), moved("read-write", 1));
    let count = |way: &str| rows.iter().filter(|row| row.3 == way).count();
    assert_eq!(count("read") + count("write"), 2 * 2 * 40);
    assert!(count("read") > 20 && count("write") > 20);
    assert_eq!(count("both"), 2 * 2 * 40);
    let bytes: u64 = rows.iter().map(|row| row.5).sum();
    assert_eq!(bytes, outcome.measurements.iter().map(|m| m.bytes).sum::<u64>());
}
