//! The runs of a sweep as one table: CSV, Parquet, and text for a terminal.

use super::NUMBERS;
use super::journal::Line;
use crate::failure::Failure;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use iolab_report::csv;
use iolab_sim::sweep::{Sweep, written};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::fmt::Write;
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
        let names: Vec<String> = names.map(str::to_owned).collect();
        csv::lines(std::iter::once(names).chain(self.lines.iter().map(|line| self.cells(line))))
    }

    fn cells(&self, line: &Line) -> Vec<String> {
        let number = |index| line.numbers.get(index).map_or_else(String::new, f64::to_string);
        let mut cells = vec![line.run.to_string()];
        cells.extend(self.values(line));
        cells.extend((0..NUMBERS.len()).map(number));
        cells.push(line.error.clone().unwrap_or_default());
        cells
    }

    /// Parameters and the run time; the files have the rest.
    pub(super) fn text(&self) -> String {
        let mut rows = vec![
            [
                self.sweep.names().iter().map(|name| (*name).to_owned()).collect(),
                vec!["seconds".to_owned()],
            ]
            .concat(),
        ];
        for line in self.lines {
            let seconds = match line.range() {
                None => "failed".to_owned(),
                Some([low, seconds, high]) if low == high => format!("{seconds:.6}"),
                Some([low, seconds, high]) => format!("{seconds:.6} ({low:.6} to {high:.6})"),
            };
            rows.push([self.values(line), vec![seconds]].concat());
        }
        let width =
            |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
        let mut text = String::new();
        for row in &rows {
            let cells: Vec<String> =
                row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            let _ = writeln!(text, "{}", cells.join("  ").trim_end());
        }
        text
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
