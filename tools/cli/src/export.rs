//! `iolab export`: a trace in the format of another tool.

pub(crate) mod otf2;

use crate::failure::Failure;
use crate::output::Output;
use crate::say::number_of;
use crate::trace_file;
use clap::{Args, ValueEnum};
use flate2::{Compression, write::GzEncoder};
use iolab_trace::{Event, export};
use iolab_traces::Source;
use iolab_vocab::Refusal;
use std::cell::Cell;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write a trace in the format of another tool.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The trace, as `iolab record` writes it, or what another tool recorded.
    trace: PathBuf,
    /// The format.
    #[arg(long)]
    to: Format,
    /// Where to; standard output when not given. A name that ends in .gz is compressed. For otf2 a directory.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// Trace events of Chrome (JSON): one track per lane, causes as flows, counters of servers. For
    /// ui.perfetto.dev and chrome://tracing.
    Chrome,
    /// The same.
    Perfetto,
    /// Lines of DFTracer (.pfw, .pfw.gz): calls of POSIX and stdio, in microseconds.
    Dftracer,
    /// Text as darshan-dxt-parser prints it: for Drishti and DXT Explorer.
    Dxt,
    /// Comma-separated values.
    Csv,
    /// An archive of OTF2, for Vampir and other tools of Score-P; libotf2 has to be there.
    Otf2,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if let Format::Otf2 = arguments.to {
        return run_otf2(arguments);
    }
    match &arguments.output {
        Some(path) => {
            let output = Output::begin(path, "-o", &[&arguments.trace])?;
            let is_packed = path.extension().is_some_and(|extension| extension == "gz");
            let mut wrong = None;
            let written = output.write_with(
                |sink| {
                    let filled = match is_packed {
                        true => packed(arguments, sink, path),
                        false => write(arguments, sink, path),
                    };
                    // What is wrong may be the trace: it is told as it is, not as what is written.
                    filled.map_err(|failure| {
                        wrong = Some(failure);
                        io::Error::other("the export ended early")
                    })
                },
                |error| error,
            );
            match wrong {
                Some(failure) => return Err(failure),
                None => written?,
            };
        }
        None => {
            write(arguments, BufWriter::new(io::stdout().lock()), Path::new("standard output"))?
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// An archive is a directory.
fn run_otf2(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let directory = arguments.output.as_deref().ok_or_else(|| {
        Failure::new("an archive of OTF2 is a directory, not a file")
            .hint("name one that is not there: -o DIRECTORY")
    })?;
    let source = trace_file::source(&arguments.trace)?;
    otf2::write(directory, |lines| {
        let broken = Cell::new(None);
        let written = export::otf2(source.header(), until_broken(&source, &broken), lines);
        match broken.into_inner() {
            Some(refusal) => Err(refusal.into()),
            None => written.map(tell_left_out).map_err(|error| at(directory, &error)),
        }
    })?;
    eprintln!("wrote {}", directory.join("traces.otf2").display());
    Ok(ExitCode::SUCCESS)
}

fn packed(arguments: &Arguments, sink: &mut impl Write, place: &Path) -> Result<(), Failure> {
    let mut packed = GzEncoder::new(sink, Compression::default());
    write(arguments, BufWriter::new(&mut packed), place)?;
    packed.finish().map(drop).map_err(|error| at(place, &error))
}

fn write(arguments: &Arguments, mut sink: impl Write, place: &Path) -> Result<(), Failure> {
    let source = trace_file::source(&arguments.trace)?;
    let broken = Cell::new(None);
    let written = match arguments.to {
        Format::Dxt => export::dxt(&source.into_trace()?, &mut sink),
        Format::Chrome | Format::Perfetto => {
            let events = || until_broken(&source, &broken);
            export::chrome(source.header(), &*source.causes()?, events, &mut sink)
        }
        // A directory, which `run` has turned to.
        Format::Otf2 => Ok(()),
        Format::Csv => export::csv(source.header(), until_broken(&source, &broken), &mut sink),
        Format::Dftracer => {
            let events = until_broken(&source, &broken);
            export::dftracer(source.header(), events, &mut sink).map(tell_left_out)
        }
    };
    if let Some(refusal) = broken.into_inner() {
        return Err(refusal.into());
    }
    match written.and_then(|()| sink.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(at(place, &error)),
        _ => Ok(()),
    }
}

/// The events up to the first error, which is kept.
fn until_broken<'a>(
    source: &'a Source,
    broken: &'a Cell<Option<Refusal>>,
) -> impl Iterator<Item = Event> + 'a {
    let opened = source.events().map_err(|refusal| broken.set(Some(refusal))).ok();
    let events = opened.into_iter().flatten();
    events.map_while(|event| event.map_err(|refusal| broken.set(Some(refusal))).ok())
}

fn tell_left_out(rows: u64) {
    if rows > 0 {
        let rows = number_of(rows, "row", "rows");
        eprintln!("iolab: left out: {rows} of other layers, or of no call");
    }
}

fn at(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {error}", path.display())).hint("choose another -o")
}
