//! `iolab import`: what another tool recorded, as a trace.

use crate::failure::Failure;
use crate::output::Output;
use crate::record::output;
use crate::{reconstructed, say, trace_file};
use clap::{Args, ValueEnum};
use iolab_trace::import;
use iolab_traces::Format;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Make a trace of what another tool recorded; what was inferred stands in its header.
#[derive(Args)]
pub(crate) struct Arguments {
    /// What the other tool wrote.
    file: PathBuf,
    /// Which tool; need not be said of a .proj file, a log of Darshan, a trace of DFTracer, an archive of OTF2, a text or table of Recorder
    #[arg(long)]
    from: Option<From>,
    /// What is made of it; a workload to simulate is reconstructed from the counters of a log of Darshan
    #[arg(long = "as", value_name = "WHAT", default_value = "trace")]
    kind: Kind,
    /// Where it goes; `-` is stdout. [default: run.iot, a workload to stdout]
    #[arg(short, long, value_name = "RUN.iot|W.toml")]
    output: Option<PathBuf>,
}

/// What can be made of what another tool recorded.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Trace,
    Workload,
}

/// Formats as they are named on the command line.
#[derive(Clone, Copy, ValueEnum)]
enum From {
    /// The output of `strace -f -T -ttt -o FILE COMMAND`.
    Strace,
    /// A project of HDTrace (.proj), with its trace files beside it.
    Hdtrace,
    /// A log of Darshan 3 with single accesses (`DXT_ENABLE_IO_TRACE=1`).
    Darshan,
    /// A trace of DFTracer (`.pfw`, `.pfw.gz`), or a directory of them.
    Dftracer,
    /// An archive of OTF2, as Score-P writes it: its anchor (`traces.otf2`) or its directory.
    Otf2,
    /// What `recorder2text` or `recorder2parquet` makes of a trace of Recorder, of one rank or a directory of all.
    Recorder,
}

impl From {
    fn format(self) -> Format {
        match self {
            From::Strace => Format::Strace,
            From::Hdtrace => Format::Hdtrace,
            From::Darshan => Format::Darshan,
            From::Dftracer => Format::Dftracer,
            From::Otf2 => Format::Otf2,
            From::Recorder => Format::Recorder,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if arguments.kind == Kind::Workload {
        return as_workload(arguments);
    }
    let format = arguments.format()?;
    let output = output(arguments.output.as_deref(), &[&arguments.file])?;
    let path = output.path().to_owned();
    let trace = format.load(&arguments.file)?;
    trace_file::save_to(output, &trace)?;
    let (calls, files) = (trace.events.len(), trace.header.files.len());
    eprintln!("iolab: {calls} calls on {files} files in {}", path.display());
    if trace.header.inferred.iter().any(|fact| fact == import::NO_DURATIONS) {
        eprintln!("iolab: warning: inferred {}", import::NO_DURATIONS);
    }
    tell_counts("left out", &trace.header.losses.left_out_calls);
    tell_counts("lost", &trace.header.losses.lost_calls);
    Ok(ExitCode::SUCCESS)
}

/// A workload that makes the accesses a log counts.
fn as_workload(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let path = &arguments.file;
    if !matches!(arguments.format()?, Format::Darshan) {
        return Err(Failure::new(format!("{} is no log of Darshan", path.display())).hint(
            "a workload is made of counters; a trace is simulated as it is: iolab simulate --trace",
        ));
    }
    let output = match arguments.output.as_deref() {
        Some(to) if to != Path::new("-") => Some(Output::begin(to, "-o", &[path.as_path()])?),
        _ => None,
    };
    let text = reconstructed::workload(path)?;
    let Some(output) = output else {
        say::text(&text)?;
        return Ok(ExitCode::SUCCESS);
    };
    let to = output.path().to_owned();
    output.write(text.as_bytes())?;
    eprintln!("iolab: a workload in {}; what is inferred stands at its beginning", to.display());
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    fn format(&self) -> Result<Format, Failure> {
        if let Err(error) = fs::metadata(&self.file) {
            return Err(Failure::new(format!("{}: {error}", self.file.display()))
                .hint("give what the other tool wrote: a file, or a directory of them"));
        }
        self.from.map(From::format).or_else(|| Format::of(&self.file)).ok_or_else(|| {
            Failure::new(format!("{}: which tool wrote it?", self.file.display()))
                .hint("say so by --from strace, --from hdtrace, --from darshan, --from dftracer, --from otf2 or --from recorder")
        })
    }
}

/// Says which calls the trace lacks, most frequent first.
fn tell_counts(how: &str, calls: &BTreeMap<String, u64>) {
    if calls.is_empty() {
        return;
    }
    let mut calls: Vec<_> = calls.iter().collect();
    calls.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let words: Vec<_> =
        calls.iter().take(12).map(|(name, count)| format!("{count} {name}")).collect();
    let more = if calls.len() > 12 { ", and more" } else { "" };
    eprintln!("iolab: {how}: {}{more}", words.join(", "));
}
