//! The runs of a sweep as one table: CSV, Parquet, and text for a terminal.

use super::NUMBERS;
use super::journal::Line;
use crate::failure::Failure;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use iolab_report::table;
use iolab_sim::sweep::{Sweep, written};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::sync::Arc;

pub(super) struct Table<'a> {
    sweep: &'a Sweep,
    lines: &'a [Line],
}

impl<'a> Table<'a> {
    pub(super) fn new(sweep: &'a Sweep, lines: &'a [Line]) -> Table<'a> {
        Table { sweep, lines }
    }

    fn values(&self, line: &Line) -> Vec<String> {
        self.sweep.values(line.run).into_iter().map(written).collect()
    }

    pub(super) fn csv(&self) -> String {
        let names = ["run"].into_iter().chain(self.sweep.names()).chain(NUMBERS).chain(["error"]);
        let mut table = table::Table::of(names);
        for line in self.lines {
            let number = |index| line.numbers.get(index).map_or_else(String::new, f64::to_string);
            let numbers = (0..NUMBERS.len()).map(number);
            let (run, error) = (line.run.to_string(), line.error.clone().unwrap_or_default());
            let first = [run].into_iter().chain(self.values(line));
            table.push(first.chain(numbers).chain([error]));
        }
        table.csv()
    }

    /// Parameters and the run time; the files have the rest.
    pub(super) fn text(&self) -> String {
        let mut table = table::Table::of(self.sweep.names().into_iter().chain(["seconds"]));
        for line in self.lines {
            let seconds = match line.range() {
                None => "failed".to_owned(),
                Some([low, seconds, high]) if low == high => format!("{seconds:.6}"),
                Some([low, seconds, high]) => format!("{seconds:.6} ({low:.6} to {high:.6})"),
            };
            table.push(self.values(line).into_iter().chain([seconds]));
        }
        table.text()
    }

    pub(super) fn parquet(&self) -> Result<Vec<u8>, Failure> {
        let mut fields = vec![Field::new("run", DataType::UInt64, false)];
        let mut columns: Vec<ArrayRef> =
            vec![Arc::new(UInt64Array::from_iter_values(self.lines.iter().map(|line| line.run)))];
        let rows: Vec<Vec<String>> = self.lines.iter().map(|line| self.values(line)).collect();
        for (index, name) in self.sweep.names().into_iter().enumerate() {
            fields.push(Field::new(name, DataType::Utf8, false));
            columns
                .push(Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row[index]))));
        }
        for (index, name) in NUMBERS.into_iter().enumerate() {
            fields.push(Field::new(name, DataType::Float64, true));
            let numbers = self.lines.iter().map(|line| line.numbers.get(index).copied());
            columns.push(Arc::new(Float64Array::from_iter(numbers)));
        }
        fields.push(Field::new("error", DataType::Utf8, true));
        columns.push(Arc::new(StringArray::from_iter(
            self.lines.iter().map(|line| line.error.as_deref()),
        )));
        let schema = Arc::new(Schema::new(fields));
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .build();
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(Failure::new)?;
        let mut writer =
            ArrowWriter::try_new(Vec::new(), schema, Some(properties)).map_err(Failure::new)?;
        writer.write(&batch).map_err(Failure::new)?;
        writer.into_inner().map_err(Failure::new)
    }
}
