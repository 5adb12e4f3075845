//! A spool that the library made alone, where no launcher looked after it (`IOLAB_RECORD`): what a
//! launcher would have known is in small files that the first process left.

use super::{finish_directory, lives, machine, process_files};
use crate::recording::RecordingError;
use iolab_trace::finish::{Launch, Side};
use iolab_trace::spool::{CONTROL_BYTES, CONTROL_MAGIC, process as head, read_u32};
use iolab_trace::{Header, Part, Trace};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Name of the run; there where a library alone has made the spool.
const RUN: &str = "run";

/// Whether a directory is a spool that a library alone has made.
pub fn is_unattended(directory: &Path) -> bool {
    directory.join(RUN).is_file() && is_spool(directory)
}

fn is_spool(directory: &Path) -> bool {
    let mut start = [0; 8];
    let control = directory.join("control");
    let is_whole = fs::metadata(&control).is_ok_and(|it| it.len() >= CONTROL_BYTES as u64);
    is_whole
        && File::open(&control).and_then(|mut file| file.read_exact(&mut start)).is_ok()
        && u64::from_le_bytes(start) == CONTROL_MAGIC
}

/// The spools that libraries alone have made in a directory, by name.
///
/// # Errors
/// That it cannot be read.
pub fn unattended_in(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if is_unattended(&path) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Makes the part of a run of what its library left on a node; the spool stays.
///
/// # Errors
/// What is wrong with the spool.
pub fn part_of(directory: &Path) -> Result<Trace, RecordingError> {
    let mut trace = finish_directory(directory, Side::Program)?;
    let header = &mut trace.header;
    let run = text(&directory.join(RUN));
    let size = process_files(directory)?.iter().map(|file| read_u32(file, head::SIZE)).max();
    let size = size.unwrap_or(0);
    header.command = first_command(header);
    let part = |rank: u32, size: u32| Part {
        job: run.clone(),
        rank,
        size,
        host: header.host.clone(),
        machine: header.clock.machine.clone(),
    };
    let mut ranks: Vec<u32> =
        header.processes.iter().filter_map(|it| u32::try_from(it.rank).ok()).collect();
    ranks.sort_unstable();
    ranks.dedup();
    header.parts = match ranks.is_empty() {
        true => vec![part(0, 0)],
        false => ranks.into_iter().map(|rank| part(rank, size)).collect(),
    };
    let is_here = header.clock.machine == machine::boot();
    let goes_on = header.processes.iter().filter(|it| it.ending == "cut" && lives(it.pid)).count();
    if is_here && goes_on > 0 {
        let line =
            format!("{goes_on} processes that went on when the trace was made, from then on");
        header.losses.unseen.push(line);
    }
    Ok(trace)
}

/// What was started first is what a launcher would have started.
fn first_command(header: &Header) -> Vec<String> {
    let first = header.processes.iter().min_by_key(|it| it.start_ns);
    first.map_or_else(Vec::new, |process| process.command.clone())
}

/// What a launcher would have known.
pub(super) fn launch(directory: &Path) -> Option<Launch> {
    is_unattended(directory).then(|| Launch {
        environment: machine::mattering(variables(directory)),
        mounts: machine::mounts(&text(&directory.join("mounts"))),
        host: text(&directory.join("host")),
        machine: text(&directory.join("machine")),
        ..Launch::default()
    })
}

fn text(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

fn variables(directory: &Path) -> BTreeMap<String, String> {
    let bytes = fs::read(directory.join("environment")).unwrap_or_default();
    let each = bytes.split(|&byte| byte == 0).map(String::from_utf8_lossy);
    each.filter_map(|line| line.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned())))
        .collect()
}
