//! Tables of Recorder: the Parquet files of `recorder2parquet`, a call a row, of one rank or of several.
//!
//! Columns by name: `rank`, `thread_id`, `tstart`, `tend` (seconds, floats of 32 bits), `func_id` (a symbol),
//! `arg_count`, `args_1` to `args_10`; later versions have more. Until 2022 numbers were repeated fields, with one
//! value in each row.
//!
//! These files have no checksums, and the Parquet library panics on some that are damaged; that is caught and
//! told as an error.

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float32Type, Float64Type, Int32Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray, RecordBatch, StringArray};
use bytes::Buf;
use iolab_trace::import::{Recorder, RecorderError, RecorderRow};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;
use parquet::file::reader::ChunkReader;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

const MAGIC: &[u8] = b"PAR1";
/// Length of the footer and the magic word after it.
const TAIL_BYTES: u64 = 8;
/// Footers are shorter: they grow by a few kilobytes for each row group.
const FOOTER_BYTES_MAX: u64 = 1 << 28;
/// The arguments that a table has room for.
const ARGUMENTS_MAX: usize = 10;
const BATCH_ROWS: usize = 1 << 14;
/// Names of columns that no other table has.
const OWN: [&[u8]; 2] = [b"func_id", b"tstart"];

/// Whether this is such a table, by the names in its footer; nothing is made of the bytes around them.
pub fn is_recorder_table(source: &impl ChunkReader) -> bool {
    let footer = || {
        let tail_start = source.len().checked_sub(TAIL_BYTES)?;
        let mut tail = source.get_bytes(tail_start, TAIL_BYTES as usize).ok()?;
        let length = u64::from(tail.get_u32_le());
        let start = tail_start.checked_sub(length)?;
        let is_one = &tail[..] == MAGIC && length <= FOOTER_BYTES_MAX;
        is_one.then(|| source.get_bytes(start, length as usize).ok()).flatten()
    };
    footer().is_some_and(|footer| {
        let has = |name: &[u8]| footer.windows(name.len()).any(|part| part == name);
        OWN.into_iter().all(has)
    })
}

/// Gives all rows of a table to `run`.
///
/// # Errors
/// That it is no such table, is damaged, or has more calls than are taken.
pub fn read_recorder_table<R: ChunkReader + 'static>(
    source: R,
    run: &mut Recorder,
) -> Result<(), RecorderError> {
    // What was taken before a panic are whole rows.
    let read = catch_unwind(AssertUnwindSafe(|| read_rows(source, run)));
    read.unwrap_or_else(|_| Err(RecorderError::Table("its bytes make no sense".to_owned())))
}

fn read_rows<R: ChunkReader + 'static>(source: R, run: &mut Recorder) -> Result<(), RecorderError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(source).map_err(wrong)?;
    let schema = builder.parquet_schema();
    let names = schema.root_schema().get_fields().iter().map(|field| field.name());
    let wanted = names.enumerate().filter(|(_, name)| is_wanted(name)).map(|(at, _)| at);
    let mask = ProjectionMask::roots(schema, wanted.collect::<Vec<_>>());
    let batches = builder.with_projection(mask).with_batch_size(BATCH_ROWS).build();
    for batch in batches.map_err(wrong)? {
        let batch = batch.map_err(|error| wrong(ParquetError::from(error)))?;
        take(&batch, run)?;
    }
    Ok(())
}

fn is_wanted(name: &str) -> bool {
    let others = ["rank", "thread_id", "tstart", "tend", "func_id", "arg_count"];
    others.contains(&name) || name.starts_with("args_")
}

fn take(batch: &RecordBatch, run: &mut Recorder) -> Result<(), RecorderError> {
    let ranks = integers(batch, "rank")?;
    // Tables of the first versions know no threads.
    let threads = match batch.column_by_name("thread_id") {
        Some(_) => Some(integers(batch, "thread_id")?),
        None => None,
    };
    let (starts, ends) = (seconds(batch, "tstart")?, seconds(batch, "tend")?);
    let names = texts(batch, "func_id")?;
    let counts = integers(batch, "arg_count")?;
    let columns = (1..=ARGUMENTS_MAX)
        .map(|number| texts(batch, &format!("args_{number}")))
        .collect::<Result<Vec<_>, _>>()?;
    for row in 0..batch.num_rows() {
        let count = usize::try_from(counts.value(row)).unwrap_or(0);
        let of_row = columns.iter().take(count);
        run.row(RecorderRow {
            rank: ranks.value(row),
            thread: threads.as_ref().map_or(0, |threads| threads.value(row)),
            start_s: starts[row],
            end_s: ends[row],
            name: names.value(row),
            arguments: of_row.map(|column| column.value(row)).collect(),
        })?;
    }
    Ok(())
}

/// A column with one value in each row, also where that is the only one of a list.
fn column(batch: &RecordBatch, name: &str) -> Result<ArrayRef, RecorderError> {
    let missing = || {
        RecorderError::Table(format!(
            "it has no column `{name}`; recorder2parquet of Recorder writes it, converters of other tools leave it out"
        ))
    };
    let found = batch.column_by_name(name).ok_or_else(missing)?;
    let Some(lists) = found.as_list_opt::<i32>() else { return Ok(found.clone()) };
    let has_one_each = (0..lists.len()).all(|row| lists.value_length(row) == 1);
    match has_one_each {
        true => Ok(lists.values().slice(lists.value_offsets()[0] as usize, lists.len())),
        false => {
            Err(RecorderError::Table(format!("column `{name}` has not one value in each row")))
        }
    }
}

fn integers(batch: &RecordBatch, name: &str) -> Result<PrimitiveArray<Int32Type>, RecorderError> {
    let found = column(batch, name)?;
    numbers::<Int32Type>(&found).ok_or_else(|| odd(name, "integers of 32 bits", &found))
}

fn seconds(batch: &RecordBatch, name: &str) -> Result<Vec<f64>, RecorderError> {
    let found = column(batch, name)?;
    let single = numbers::<Float32Type>(&found)
        .map(|times| times.values().iter().map(|&time| f64::from(time)).collect());
    let double = || numbers::<Float64Type>(&found).map(|times| times.values().to_vec());
    single.or_else(double).ok_or_else(|| odd(name, "floats", &found))
}

fn numbers<T: ArrowPrimitiveType>(found: &ArrayRef) -> Option<PrimitiveArray<T>> {
    found.as_primitive_opt::<T>().filter(|values| values.null_count() == 0).cloned()
}

/// Texts; an empty cell is an empty text.
fn texts(batch: &RecordBatch, name: &str) -> Result<StringArray, RecorderError> {
    let found = column(batch, name)?;
    found.as_string_opt::<i32>().cloned().ok_or_else(|| odd(name, "texts", &found))
}

fn odd(name: &str, wanted: &str, found: &ArrayRef) -> RecorderError {
    let empty = if found.null_count() > 0 { " with empty cells" } else { "" };
    let kind = found.data_type();
    RecorderError::Table(format!("column `{name}` should be {wanted} but is {kind}{empty}"))
}

fn wrong(error: impl Display) -> RecorderError {
    RecorderError::Table(error.to_string())
}
