//! The columns of causes, which only a trace has in which some are known: for each row two lists of row numbers.
//!
//! They are stored as differences, because the rows that cause each other mostly follow each other.

use crate::IotError;
use crate::columns::{filled, mismatch_of};
use arrow_array::builder::{Int64Builder, ListBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field};
use iolab_trace::{Causes, Links};
use std::sync::Arc;

/// Their names, of what began a row and of what ended it.
pub(crate) const CAUSE_COLUMNS: [&str; 2] = ["begun_by", "ended_by"];

const KIND: &str = "a list of int64";

/// What a list has, as Parquet calls it.
fn element() -> Field {
    Field::new("element", DataType::Int64, false)
}

pub(crate) fn field(name: &str) -> Field {
    Field::new(name, DataType::List(Arc::new(element())), false)
}

/// Where the numbers of a column lie in the file.
pub(crate) fn leaf(name: &str) -> Vec<String> {
    [name, "list", "element"].map(str::to_owned).to_vec()
}

/// The lists of these rows, each of which may have become another one by `row_of`.
pub(crate) fn column(links: &Links, rows: &[u32], row_of: impl Fn(u32) -> u32) -> ArrayRef {
    let mut lists = ListBuilder::new(Int64Builder::new()).with_field(element());
    for &row in rows {
        for &cause in links.of(row as usize) {
            lists.values().append_value(row_of(cause).into());
        }
        lists.append(true);
    }
    Arc::new(lists.finish())
}

/// Whether a file has the column; `None` when it has one of another type.
pub(crate) fn is_there(
    schema: &arrow_schema::Schema,
    name: &'static str,
) -> Result<bool, IotError> {
    let Ok(field) = schema.field_with_name(name) else { return Ok(false) };
    match field.data_type() {
        DataType::List(element) if element.data_type() == &DataType::Int64 => Ok(true),
        other => Err(mismatch_of(name, KIND, other)),
    }
}

/// Appends the causes of a batch as pairs (place behind `before`, row of the trace). Rows must be among the
/// `rows` of the trace and not the row itself; the batch begins at row `first_row`.
pub(crate) fn decode(
    batch: &RecordBatch,
    name: &'static str,
    (first_row, before, rows): (u64, usize, u64),
    pairs: &mut Vec<(u32, u32)>,
) -> Result<(), IotError> {
    if batch.column_by_name(name).is_none() {
        return Ok(());
    }
    let array = filled(batch, name)?;
    let mismatch = || mismatch_of(name, KIND, array.data_type());
    let lists = array.as_list_opt::<i32>().ok_or_else(mismatch)?;
    let values = lists.values().as_primitive_opt::<Int64Type>().ok_or_else(mismatch)?;
    for (place, ends) in lists.value_offsets().windows(2).enumerate() {
        let row = first_row + place as u64;
        for at in ends[0] as usize..ends[1] as usize {
            let cause = values.value(at);
            let known = u32::try_from(cause).ok().filter(|_| !values.is_null(at));
            match known.filter(|&cause| u64::from(cause) < rows && u64::from(cause) != row) {
                Some(cause) => pairs.push(((before + place) as u32, cause)),
                None => {
                    let problem = match (values.is_null(at), cause as u64 == row) {
                        (true, _) => format!("{name} has an empty element"),
                        (_, true) => format!("{name} is the row itself"),
                        _ => format!("{name} is {cause}, but the trace has {rows} rows"),
                    };
                    return Err(IotError::Row { row, problem });
                }
            }
        }
    }
    Ok(())
}

/// Causes of pairs that were decoded, of what began and of what ended.
pub(crate) fn causes([begun_by, ended_by]: [Vec<(u32, u32)>; 2]) -> Causes {
    Causes { begun_by: Links::from_pairs(begun_by), ended_by: Links::from_pairs(ended_by) }
}
