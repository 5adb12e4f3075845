//! The fast place of a run: made before the program starts, waited for after its end, and what is said of it.

use crate::failure::Failure;
use crate::say::number_of;
use iolab_host::job::Job;
use iolab_host::stage::{Ended, Staging};
use iolab_policy::insitu::StrategySpec;
use iolab_segment::STAGE_VARIABLE;
use iolab_vocab::format_bytes;
use std::env;
use std::process::Command;

/// Whether files begin elsewhere with it, which is told here.
pub(super) fn is_placed(spec: &StrategySpec) -> bool {
    spec.place().is_some()
}

/// Makes the fast place, if a strategy wants one.
pub(super) fn begin(
    command: &mut Command,
    specs: &[StrategySpec],
    is_quiet: bool,
) -> Result<Option<Staging>, Failure> {
    let Some(stage) = specs.iter().find_map(StrategySpec::place) else { return Ok(None) };
    refuse_where_somebody_would_not_see()?;
    let staging = Staging::begin(&stage, is_quiet).map_err(|error| {
        Failure::new(error).hint(
            "to= names a directory on this node that you can write to, of a file system that has \
             leases (ext4, XFS, tmpfs)",
        )
    })?;
    command.envs(staging.environment());
    Ok(Some(staging))
}

/// Whoever runs without the library's knowledge of the fast place would find files empty.
fn refuse_where_somebody_would_not_see() -> Result<(), Failure> {
    for variable in ["IOLAB_ONLY", "IOLAB_NEVER"] {
        if env::var_os(variable).is_some() {
            let message = format!("`stage` with {variable}: programs left out find files empty");
            return Err(
                Failure::new(message).hint(format!("unset {variable}, or leave `stage` out"))
            );
        }
    }
    if env::var_os(STAGE_VARIABLE).is_some() {
        return Err(Failure::new("`stage` within a run that has a fast place already")
            .hint("leave it out here: what this starts is part of that run"));
    }
    if Job::find().is_some() {
        return Err(Failure::new(
            "every rank has an `iolab run` of its own, and would find the files of others empty",
        )
        .hint("`iolab run … -- mpiexec …` makes one run of all ranks of a node"));
    }
    Ok(())
}

/// Waits until everything is at home, and says what came of it; true when nothing stays.
pub(super) fn end(staging: Staging, is_quiet: bool) -> bool {
    let directory = staging.directory().to_owned();
    let ended = staging.end(&mut |line| eprintln!("iolab: stage: {line}"));
    if !is_quiet {
        eprintln!("iolab: stage: {}", moved(&ended));
    }
    for line in &ended.left {
        eprintln!("iolab: warning: stage: {line}");
    }
    if !ended.left.is_empty() {
        eprintln!(
            "iolab: nothing is lost yet: mend that, then `iolab stage recover {}`",
            directory.display()
        );
    }
    ended.left.is_empty()
}

fn moved(ended: &Ended) -> String {
    let passed = match ended.passed_files {
        0 => String::new(),
        passed => format!(", {} began at home", number_of(passed, "chosen file", "chosen files")),
    };
    if (ended.moved_files, ended.passed_files, ended.left.len()) == (0, 0, 0) {
        return "no file was chosen".to_owned();
    }
    let files = number_of(ended.moved_files, "file", "files");
    format!("{files} of {} moved home{passed}", format_bytes(ended.moved_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_came_of_the_files() {
        let nothing = Ended::default();
        assert_eq!(moved(&nothing), "no file was chosen");
        let some = Ended { moved_files: 1, moved_bytes: 4096, ..nothing.clone() };
        assert_eq!(moved(&some), format!("1 file of {} moved home", format_bytes(4096)));
        let passed = Ended { passed_files: 2, ..nothing };
        assert!(moved(&passed).ends_with("moved home, 2 chosen files began at home"));
    }
}
