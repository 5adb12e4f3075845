//! The files of a report as a table for spreadsheets (RFC 4180).

use crate::report::{FileRow, Report};

const COLUMNS: &str = "path,file_system,open_count,read_count,read_bytes,write_count,written_bytes,\
                       metadata_count,time_ns,metadata_ns,system_read_count,system_write_count,\
                       process_count,read_pattern,write_pattern\n";

/// One line per file, the one that took longest first.
pub fn files(report: &Report) -> String {
    let mut table = COLUMNS.to_owned();
    for file in &report.files {
        table.push_str(&line(file));
    }
    table
}

fn line(file: &FileRow) -> String {
    let pattern = |pattern: &Option<crate::SharedPattern>| {
        quoted(pattern.as_ref().map_or("", |pattern| &pattern.description))
    };
    let numbers = [
        file.open_count,
        file.read_count,
        file.read_bytes,
        file.write_count,
        file.written_bytes,
        file.metadata_count,
        file.time_ns,
        file.metadata_ns,
        file.system_read_count,
        file.system_write_count,
        file.process_count as u64,
    ]
    .map(|number| number.to_string());
    format!(
        "{},{},{},{},{}\n",
        quoted(&file.path),
        quoted(&file.file_system),
        numbers.join(","),
        pattern(&file.read_pattern),
        pattern(&file.write_pattern)
    )
}

/// A field as it is, or in quotes when it holds what would end it.
pub fn quoted(field: &str) -> String {
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_comma_and_quote_stays_one_field() {
        assert_eq!(quoted("/a,\"b\""), "\"/a,\"\"b\"\"\"");
        assert_eq!(quoted("/plain"), "/plain");
    }
}
