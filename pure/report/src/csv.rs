//! Tables for spreadsheets (RFC 4180): a line of names, then a line per row. A field stands in quotes
//! where it holds what would end it; lines end with a line feed alone.

use crate::report::{FileRow, Report};
use ::csv::Writer;
use serde::{Serialize, Serializer};

/// Lines of cells, the names among them. Every line has as many cells.
pub fn lines<L>(lines: impl IntoIterator<Item = L>) -> String
where
    L: IntoIterator<Item: AsRef<str>>,
{
    text(|writer| {
        for line in lines {
            for cell in line {
                writer.write_field(cell.as_ref())?;
            }
            writer.write_record(None::<&[u8]>)?;
        }
        Ok(())
    })
}

/// Lines of structures, whose fields name the columns. Without any line there are no names either.
pub fn rows(rows: impl IntoIterator<Item = impl Serialize>) -> String {
    text(|writer| rows.into_iter().try_for_each(|row| writer.serialize(row)))
}

fn text(write: impl FnOnce(&mut Writer<Vec<u8>>) -> ::csv::Result<()>) -> String {
    let mut writer = Writer::from_writer(Vec::new());
    write(&mut writer).expect("memory takes every line, and lines have as many cells");
    let bytes = writer.into_inner().expect("memory takes every line");
    String::from_utf8(bytes).expect("cells are text")
}

/// A number in a structure for [`rows`], with as many digits as it needs and never as a power of ten.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plain(pub f64);

impl Serialize for Plain {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

const COLUMNS: [&str; 15] = [
    "path",
    "file_system",
    "open_count",
    "read_count",
    "read_bytes",
    "write_count",
    "written_bytes",
    "metadata_count",
    "time_ns",
    "metadata_ns",
    "system_read_count",
    "system_write_count",
    "process_count",
    "read_pattern",
    "write_pattern",
];

/// The files of a report, the one that took longest first.
pub fn files(report: &Report) -> String {
    let names = COLUMNS.map(str::to_owned);
    lines(std::iter::once(names).chain(report.files.iter().map(cells)))
}

fn cells(file: &FileRow) -> [String; 15] {
    let pattern = |pattern: &Option<crate::SharedPattern>| {
        pattern.as_ref().map_or_else(String::new, |pattern| pattern.description.clone())
    };
    [
        file.path.clone(),
        file.file_system.clone(),
        file.open_count.to_string(),
        file.read_count.to_string(),
        file.read_bytes.to_string(),
        file.write_count.to_string(),
        file.written_bytes.to_string(),
        file.metadata_count.to_string(),
        file.time_ns.to_string(),
        file.metadata_ns.to_string(),
        file.system_read_count.to_string(),
        file.system_write_count.to_string(),
        file.process_count.to_string(),
        pattern(&file.read_pattern),
        pattern(&file.write_pattern),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_with_what_would_end_it_stays_one_cell() {
        let evil = "/a,\"b\"\r\nc";
        assert_eq!(lines([[evil, "/plain"]]), "\"/a,\"\"b\"\"\r\nc\",/plain\n");
    }

    #[test]
    fn numbers_in_rows_are_written_out_and_missing_ones_left_out() {
        #[derive(Serialize)]
        struct Row {
            seconds: Plain,
            count: Option<u64>,
        }
        let row = |seconds, count| Row { seconds: Plain(seconds), count };
        let table = rows([row(0.0, Some(3)), row(1e-7, None), row(1e21, Some(0))]);
        assert_eq!(table, "seconds,count\n0,3\n0.0000001,\n1000000000000000000000,0\n");
    }
}
