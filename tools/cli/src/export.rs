//! `iolab export`: a trace in the format of another tool.

use crate::failure::Failure;
use crate::output::Output;
use crate::trace_file;
use clap::{Args, ValueEnum};
use iolab_iot::{IotError, Reader};
use iolab_trace::{Event, export};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write a trace in the format of another tool.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The trace.
    trace: PathBuf,
    /// The format.
    #[arg(long)]
    to: Format,
    /// Where to; standard output when not given.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// Chrome's trace events (JSON): open with ui.perfetto.dev.
    Chrome,
    /// Text as darshan-dxt-parser prints it: for Drishti and DXT Explorer.
    Dxt,
    /// Comma-separated values.
    Csv,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.output {
        Some(path) => {
            let output = Output::begin(path, "-o", &[&arguments.trace])?;
            output.write_with(|sink| write(arguments, sink, path), |error| at(path, &error))?;
        }
        None => {
            write(arguments, BufWriter::new(io::stdout().lock()), Path::new("standard output"))?
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn write(arguments: &Arguments, mut sink: impl Write, place: &Path) -> Result<(), Failure> {
    let written = match arguments.to {
        Format::Dxt => export::dxt(&trace_file::load(&arguments.trace)?, &mut sink),
        Format::Chrome | Format::Csv => {
            let reader = trace_file::open(&arguments.trace)?;
            let header = reader.header().clone();
            let mut broken = None;
            let events = Events { reader, group: Vec::new().into_iter(), broken: &mut broken };
            let written = match arguments.to {
                Format::Chrome => export::chrome(&header, events, &mut sink),
                _ => export::csv(&header, events, &mut sink),
            };
            if let Some(error) = broken {
                return Err(trace_file::of(&arguments.trace, &error));
            }
            written
        }
    };
    match written.and_then(|()| sink.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(at(place, &error)),
        _ => Ok(()),
    }
}

fn at(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("{}: {error}", path.display()))
}

/// The events of a trace one by one; ends at the first error and keeps it.
struct Events<'a> {
    reader: Reader<File>,
    group: std::vec::IntoIter<Event>,
    broken: &'a mut Option<IotError>,
}

impl Iterator for Events<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.group.next() {
                return Some(event);
            }
            match self.reader.next()? {
                Ok(group) => self.group = group.into_iter(),
                Err(error) => {
                    *self.broken = Some(error);
                    return None;
                }
            }
        }
    }
}
