//! `iolab merge`: one trace of the parts that ranks or nodes of a run recorded each for itself.
//!
//! Spools that the library made alone are made parts first, one after the other, in a directory beside the
//! output; then rows go part by part into the trace, so that memory is that of the largest part.

use crate::failure::Failure;
use crate::output::Output;
use crate::record::{Patience, RESOLUTION_NS, spool_failure};
use crate::say::number_of;
use crate::trace_file;
use clap::Args;
use iolab_host::recording;
use iolab_iot::{IotError, Joined, Writer};
use iolab_trace::join::{self, Named};
use iolab_trace::{Header, Origin};
use iolab_traces::parts;
use iolab_vocab::printable;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Make one trace of the parts of a run: of its ranks, or of its nodes.
///
/// Checks that they are of one run, leaves out doubles, aligns the clocks of several machines, and tells which
/// ranks and nodes are missing. What was merged stays; remove it when the trace is what you wanted.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Parts (`rank-N.iot`), spools that the library made alone (`iolab env --record DIR`), or directories of
    /// either.
    #[arg(required = true, value_name = "PARTS")]
    parts: Vec<PathBuf>,
    /// Where the trace goes.
    #[arg(short, long, required = true, value_name = "RUN.iot")]
    output: PathBuf,
    /// Replace a file that is there.
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let (files, spools) = found(&arguments.parts)?;
    let path = &arguments.output;
    if !arguments.force && fs::symlink_metadata(path).is_ok() {
        return Err(Failure::new(format!("{} exists", path.display()))
            .hint("give another name with -o, or --force to replace it"));
    }
    let inputs: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let output = Output::begin(path, "-o", &inputs)?;
    let patience = Patience::begin("making parts of the raw records".to_owned());
    let place = beside(path)?;
    let mut named = Vec::new();
    let mut paths = Vec::new();
    for file in files {
        named.push(Named { name: shown(&file), header: header_of(&file)? });
        paths.push(file);
    }
    for (number, spool) in spools.iter().enumerate() {
        let part = finished(spool, &place.path().join(format!("part-{number}.iot")))?;
        named.push(Named { name: shown(spool), header: header_of(&part)? });
        paths.push(part);
    }
    let chosen = join::choose(&named)?;
    for (double, other) in &chosen.doubles {
        eprintln!("iolab: {} is left out: {} has it all", named[*double].name, named[*other].name);
    }
    patience.step(format!("merging {}", number_of(chosen.kept.len() as u64, "part", "parts")));
    let kept: Vec<PathBuf> = chosen.kept.iter().map(|&at| paths[at].clone()).collect();
    let joined = iolab_traces::join(&kept)?;
    let header = merged(joined.header());
    let rows = joined.rows();
    let place = match header.origin {
        Origin::Recorded => {
            let written = output.write_with(|file| stream(joined, &header, file), IotError::Io);
            written.map_err(|failure| unreadable_part(&kept).unwrap_or(failure))?
        }
        // Others have causes, which are only kept whole.
        _ => {
            let mut trace = trace_file::load_parts(&kept)?;
            trace.header = header.clone();
            trace_file::save_to(output, &trace)?
        }
    };
    drop(patience);
    tell(&header, rows, kept.len(), &place);
    Ok(ExitCode::SUCCESS)
}

/// The parts and the spools that the user named, each once.
fn found(named: &[PathBuf]) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Failure> {
    let (mut files, mut spools) = (Vec::new(), Vec::new());
    for path in named {
        let failed = |error: io::Error| {
            Failure::new(format!("{}: {error}", path.display()))
                .hint("give parts of a trace, or a directory with parts or spools in it")
        };
        let is_directory = fs::metadata(path).map_err(failed)?.is_dir();
        if !is_directory {
            files.push(path.clone());
            continue;
        }
        if recording::is_unattended(path) {
            spools.push(path.clone());
            continue;
        }
        let parts = parts::in_directory(path).map_err(failed)?;
        let of_library = recording::unattended_in(path).map_err(failed)?;
        if parts.is_empty() && of_library.is_empty() {
            return Err(Failure::new(format!("{} holds no part of a trace", path.display())).hint(
                "parts are `rank-N.iot`, or the directories that IOLAB_RECORD made; a spool that \
                 `iolab record` left is finished by `iolab recover`",
            ));
        }
        files.extend(parts);
        spools.extend(of_library);
    }
    let once = |paths: Vec<PathBuf>| {
        let mut seen = BTreeSet::new();
        let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        paths.into_iter().filter(|path| seen.insert(real(path))).collect()
    };
    Ok((once(files), once(spools)))
}

fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy()).into_owned()
}

fn header_of(path: &Path) -> Result<Header, Failure> {
    Ok(iolab_traces::join(&[path.to_owned()])?.header().clone())
}

/// A directory for parts that only this command sees; it goes at its end.
fn beside(output: &Path) -> Result<tempfile::TempDir, Failure> {
    let folder = output.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    tempfile::Builder::new().prefix(".iolab-merge-").tempdir_in(folder).map_err(|error| {
        Failure::new(format!("{} cannot be written to: {error}", folder.display()))
            .hint("give the trace another place with -o")
    })
}

/// Makes a part of a spool; only one is in memory at a time.
fn finished(spool: &Path, part: &Path) -> Result<PathBuf, Failure> {
    let mut trace = recording::part_of(spool).map_err(|error| spool_failure(&error))?;
    trace.header.clock.resolution_ns = RESOLUTION_NS;
    trace_file::save(part, &trace)?;
    Ok(part.to_owned())
}

/// What is wrong with the first part that cannot be read to its end: what a trace cannot be written for may be what
/// it is made of.
fn unreadable_part(parts: &[PathBuf]) -> Option<Failure> {
    parts.iter().find_map(|part| match iolab_traces::join(std::slice::from_ref(part)) {
        Err(refusal) => Some(refusal.into()),
        Ok(joined) => {
            let error = joined.into_iter().find_map(Result::err)?;
            Some(iolab_traces::unreadable(part, &error).into())
        }
    })
}

fn merged(header: &Header) -> Header {
    let mut header = header.clone();
    header.clock.resolution_ns = header.clock.resolution_ns.max(1);
    header
}

fn stream(
    joined: Joined<File>,
    header: &Header,
    file: &mut iolab_host::result_file::Writing,
) -> Result<(), IotError> {
    let mut writer = Writer::new(BufWriter::new(file))?;
    writer.round_times(header.clock.resolution_ns);
    for events in joined {
        writer.append(&events?)?;
    }
    writer.finish(header).map(drop)
}

/// What was made and what is missing, on standard error.
fn tell(header: &Header, rows: u64, parts: usize, place: &Path) {
    let hosts: BTreeSet<&str> = header.processes.iter().map(|it| it.host.as_str()).collect();
    eprintln!(
        "iolab: {} of {} ({}) on {}, from {}, in {}",
        number_of(rows, "row", "rows"),
        number_of(header.processes.len() as u64, "process", "processes"),
        number_of(header.rank_count() as u64, "rank", "ranks"),
        number_of(hosts.len() as u64, "node", "nodes"),
        number_of(parts as u64, "part", "parts"),
        place.display()
    );
    for (reason, count) in &header.losses.lost_calls {
        eprintln!("iolab: warning: calls lost: {reason} {count}");
    }
    for unseen in &header.losses.unseen {
        eprintln!("iolab: warning: not seen: {unseen}");
    }
    header.inferred.iter().filter(|it| it.starts_with("times between")).for_each(|line| {
        eprintln!("iolab: {line}");
    });
}
