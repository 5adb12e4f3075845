//! The runs of a sweep as Parquet. It stays here, so that what only makes text needs no Arrow.

use crate::failure::Failure;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use iolab_report::sweep::{NUMBERS, Results};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::sync::Arc;

/// One column per parameter and number.
pub(super) fn written(results: &Results) -> Result<Vec<u8>, Failure> {
    let Results { sweep, lines } = results;
    let mut fields = vec![Field::new("run", DataType::UInt64, false)];
    let mut columns: Vec<ArrayRef> =
        vec![Arc::new(UInt64Array::from_iter_values(lines.iter().map(|line| line.run)))];
    let rows: Vec<Vec<String>> = lines.iter().map(|line| results.values(line)).collect();
    for (index, name) in sweep.names().into_iter().enumerate() {
        fields.push(Field::new(name, DataType::Utf8, false));
        columns.push(Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row[index]))));
    }
    for (index, name) in NUMBERS.into_iter().enumerate() {
        fields.push(Field::new(name, DataType::Float64, true));
        let numbers = lines.iter().map(|line| line.numbers.get(index).copied());
        columns.push(Arc::new(Float64Array::from_iter(numbers)));
    }
    fields.push(Field::new("error", DataType::Utf8, true));
    columns.push(Arc::new(StringArray::from_iter(lines.iter().map(|line| line.error.as_deref()))));
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
