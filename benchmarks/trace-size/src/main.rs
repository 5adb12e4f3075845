//! Traces of known kinds, and what each of their columns takes in the file.
//!
//! `trace-size make KIND COUNT FILE` writes one, `trace-size columns FILE` measures any trace. What
//! came out is in the README beside this.

mod kinds;

use clap::{Parser, Subcommand};
use kinds::Kind;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Write a trace of a kind.
    Make {
        /// What the calls are.
        kind: Kind,
        /// How many.
        count: u64,
        /// The trace.
        file: PathBuf,
        /// Round times to multiples of this many nanoseconds.
        #[arg(long, default_value_t = 1)]
        resolution: u64,
    },
    /// Round the times of a trace and write it again.
    Round {
        /// The trace.
        from: PathBuf,
        /// The trace with rounded times.
        to: PathBuf,
        /// To multiples of this many nanoseconds.
        resolution: u64,
    },
    /// Say how many bytes per row each column takes.
    Columns {
        /// The trace.
        file: PathBuf,
    },
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match Arguments::parse().task {
        Task::Make { kind, count, file, resolution } => make(kind, count, &file, resolution),
        Task::Round { from, to, resolution } => round(&from, &to, resolution),
        Task::Columns { file } => columns(&file),
    }
}

/// Written in pieces, so that 10⁸ events need no more memory than 10⁶.
fn make(
    kind: Kind,
    count: u64,
    file: &Path,
    resolution: u64,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut writer = iolab_iot::Writer::new(BufWriter::new(File::create(file)?))?;
    writer.round_times(resolution);
    let mut calls = kind.calls()?;
    let mut batch = Vec::new();
    for index in 0..count {
        batch.push(calls.next(index, count)?);
        if batch.len() == iolab_iot::GROUP_ROWS {
            writer.append(&batch)?;
            batch.clear();
        }
    }
    writer.append(&batch)?;
    writer.finish(&kinds::header())?;
    Ok(())
}

fn round(from: &Path, to: &Path, resolution: u64) -> Result<(), Box<dyn std::error::Error>> {
    let mut reader = iolab_iot::Reader::new(File::open(from)?)?;
    let mut writer = iolab_iot::Writer::new(BufWriter::new(File::create(to)?))?;
    writer.round_times(resolution);
    for group in &mut reader {
        writer.append(&group?)?;
    }
    writer.finish(reader.header())?;
    Ok(())
}

fn columns(file: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let length = std::fs::metadata(file)?.len();
    let reader = SerializedFileReader::new(File::open(file)?)?;
    let metadata = reader.metadata();
    let rows = metadata.file_metadata().num_rows().max(1) as f64;
    let mut bytes: BTreeMap<String, i64> = BTreeMap::new();
    for column in metadata.row_groups().iter().flat_map(|group| group.columns()) {
        *bytes.entry(column.column_path().string()).or_default() += column.compressed_size();
    }
    let mut sorted: Vec<_> = bytes.into_iter().collect();
    sorted.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    println!("{:.3} B per row ({length} bytes, {rows} rows)", length as f64 / rows);
    for (name, bytes) in sorted {
        println!("  {:>7.3}  {name}", bytes as f64 / rows);
    }
    Ok(())
}
