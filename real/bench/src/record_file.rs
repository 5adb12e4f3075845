//! The Parquet file of single operations: one row each, written in groups of bounded size.
//!
//! Columns: `test`, `pattern`, `temporal`, `phase`, `method`, `repetition`, `rank`, `operation` (its
//! index in the rank's pattern), `direction` (`read`, `write`, `read-write`), `way` (the same, as files of
//! earlier versions call it: `both` instead of `read-write`), `bytes_read`, `bytes_written`, `offset` (of its first byte in the
//! file), `bytes`, `start_ns` (from the rank's leaving the first barrier), `latency_ns`. The file
//! has its name only when it is complete.

use crate::failure::Told;
use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use iolab_host::eprintln;
use iolab_host::result_file::{ResultFile, Writing};
use iolab_report::bench::Measurement;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows of a group: what the writer holds in memory at most.
const GROUP_ROWS: usize = 1 << 18;

const TEXTS: [&str; 7] = ["test", "pattern", "temporal", "phase", "method", "way", "direction"];
const NUMBERS: [&str; 7] =
    ["operation", "offset", "bytes", "start_ns", "latency_ns", "bytes_read", "bytes_written"];
const WAYS: [&str; 3] = ["read", "write", "both"];
const DIRECTIONS: [&str; 3] = ["read", "write", "read-write"];

/// One operation of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) operation: u64,
    /// Index into [`WAYS`].
    pub(crate) way: u64,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) start_ns: u64,
    pub(crate) latency_ns: u64,
}

impl Row {
    /// Length of a row when it travels.
    pub(crate) const BYTES: usize = 48;

    pub(crate) fn bytes(self) -> Vec<u8> {
        let Row { operation, way, offset, bytes, start_ns, latency_ns } = self;
        [operation, way, offset, bytes, start_ns, latency_ns]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect()
    }

    /// Bytes that went this way; of an operation of both, half of them.
    fn moved(&self, way: u64) -> u64 {
        match self.way {
            own if own == way => self.bytes,
            2 => self.bytes / 2,
            _ => 0,
        }
    }

    pub(crate) fn of(text: &[u8]) -> Row {
        let word = |index: usize| {
            text[index * 8..index * 8 + 8].try_into().map(u64::from_le_bytes).unwrap_or_default()
        };
        Row {
            operation: word(0),
            way: word(1).min(2),
            offset: word(2),
            bytes: word(3),
            start_ns: word(4),
            latency_ns: word(5),
        }
    }
}

/// The file while it is written.
pub(crate) struct RecordFile {
    writer: ArrowWriter<Writing>,
    schema: Arc<Schema>,
    path: PathBuf,
}

impl RecordFile {
    /// Begins the file, so that an hour of measuring does not end at a folder that is not there.
    pub(crate) fn create(path: &Path) -> Result<RecordFile, Told> {
        let texts = TEXTS.map(|name| Field::new(name, DataType::Utf8, false));
        let shorts = ["repetition", "rank"].map(|name| Field::new(name, DataType::UInt32, false));
        let numbers = NUMBERS.map(|name| Field::new(name, DataType::UInt64, false));
        let fields: Vec<_> = texts.into_iter().chain(shorts).chain(numbers).collect();
        let schema = Arc::new(Schema::new(fields));
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .build();
        let file = ResultFile::at(path).and_then(ResultFile::begin);
        let file = file.map_err(|error| failed(path, &error))?;
        let writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties));
        let writer = writer.map_err(|error| failed(path, &error))?;
        Ok(RecordFile { writer, schema, path: path.to_owned() })
    }

    /// Adds operations of one rank in one phase.
    pub(crate) fn append(&mut self, m: &Measurement, rank: u32, rows: &[Row]) -> Result<(), Told> {
        if rows.is_empty() {
            return Ok(());
        }
        let same = |text: &str| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(rows.iter().map(|_| text)))
        };
        let short =
            |value: u32| -> ArrayRef { Arc::new(UInt32Array::from_value(value, rows.len())) };
        let number = |pick: fn(&Row) -> u64| -> ArrayRef {
            Arc::new(UInt64Array::from_iter_values(rows.iter().map(pick)))
        };
        let ways = rows.iter().map(|row| WAYS[row.way as usize]);
        let directions = rows.iter().map(|row| DIRECTIONS[row.way as usize]);
        let columns = vec![
            same(&m.test),
            same(&m.spatial),
            same(&m.temporal),
            same(&m.phase),
            same(&m.method),
            Arc::new(StringArray::from_iter_values(ways)),
            Arc::new(StringArray::from_iter_values(directions)),
            short(m.repetition),
            short(rank),
            number(|row| row.operation),
            number(|row| row.offset),
            number(|row| row.bytes),
            number(|row| row.start_ns),
            number(|row| row.latency_ns),
            number(|row| row.moved(0)),
            number(|row| row.moved(1)),
        ];
        let written = RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .map_err(ParquetError::from)
            .and_then(|batch| self.writer.write(&batch));
        written.map_err(|error| failed(&self.path, &error))
    }

    /// Completes the file and gives it its name.
    pub(crate) fn finish(self) -> Result<(), Told> {
        let path = self.path;
        let file = self.writer.into_inner().map_err(|error| failed(&path, &error))?;
        match file.finish().map_err(|error| failed(&path, &error))? {
            None => Ok(()),
            Some(beside) => {
                let (path, beside) = (path.display(), beside.display());
                eprintln!("iolab: warning: {path} appeared meanwhile; the records are in {beside}");
                Ok(())
            }
        }
    }
}

fn failed(path: &Path, error: &dyn std::fmt::Display) -> Told {
    (format!("cannot write {}: {error}", path.display()), "choose another --records".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_travels_unchanged() {
        let row = Row { operation: 1, way: 2, offset: 3, bytes: 4, start_ns: 5, latency_ns: 6 };
        assert_eq!(row.bytes().len(), Row::BYTES);
        assert_eq!(Row::of(&row.bytes()), row);
    }

    #[test]
    fn a_file_that_is_not_finished_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("records.parquet");
        drop(RecordFile::create(&path).expect("created"));
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
        let (message, _) = RecordFile::create(Path::new("/nowhere/x")).err().expect("no folder");
        assert!(message.contains("/nowhere/x"), "{message}");
    }
}
