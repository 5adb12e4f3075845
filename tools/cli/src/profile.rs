//! Profiles on a command line: `@profile.toml`, where it is used, and why it steps aside there.

use crate::failure::Failure;
use iolab_host::file_system_of;
use iolab_host::job::Job;
use iolab_policy::insitu::StrategySpec;
use iolab_report::profile::{Profile, Site, day};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Programs that start the ranks of another one, without what follows a dot or a dash in their names.
const LAUNCHERS: [&str; 7] = ["mpiexec", "mpirun", "orterun", "prterun", "srun", "aprun", "jsrun"];
/// Their options for the number of ranks.
const RANK_OPTIONS: [&str; 4] = ["-n", "-np", "--np", "--ntasks"];

/// Reads `@FILE` as it stands in a command line.
pub(crate) fn named(text: &str) -> Result<PathBuf, String> {
    match text.strip_prefix('@') {
        Some(path) if !path.is_empty() => Ok(PathBuf::from(path)),
        _ => Err("a profile is written @FILE, and the command comes after `--`".to_owned()),
    }
}

/// Reads a profile.
pub(crate) fn load(path: &Path) -> Result<Profile, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::new(format!("{name}: {error}"))
            .hint("`iolab advise --profile FILE` and `iolab tune` write profiles")
    })?;
    Ok(Profile::parse(&text, &name)?)
}

/// The strategies of a profile for this command; none, with a line on stderr, where it steps aside.
pub(crate) fn for_command(
    path: &Path,
    command: &[OsString],
) -> Result<Option<Vec<StrategySpec>>, Failure> {
    let profile = load(path)?;
    let here = working_directory()?;
    let root = Path::new(profile.root(&here));
    let site = Site { file_system: file_system_around(root), ranks: ranks_of(command) };
    match profile.steps_aside(&site) {
        None => Ok(Some(profile.specs(&here))),
        Some(why) => {
            let name = path.display();
            eprintln!("iolab: {name} steps aside, the command runs without it: {why}");
            Ok(None)
        }
    }
}

/// Where relative globs count from on a command line.
pub(crate) fn working_directory() -> Result<String, Failure> {
    let here = std::env::current_dir()
        .map_err(|error| Failure::new(format!("the current directory: {error}")))?;
    Ok(here.to_string_lossy().into_owned())
}

/// Strategies with relative globs counted from the working directory. One that was removed is only missed where a glob
/// counts from it.
pub(crate) fn rooted_here(specs: Vec<StrategySpec>) -> Result<Vec<StrategySpec>, Failure> {
    if specs.iter().all(|spec| spec.selection.rooted("/") == spec.selection) {
        return Ok(specs);
    }
    let here = working_directory()?;
    Ok(specs.into_iter().map(|spec| spec.rooted(&here)).collect())
}

/// The date of now, for what is written down.
pub(crate) fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    day(since.as_secs())
}

/// The type of the file system a directory is on, or will be on once it is made.
pub(crate) fn file_system_around(directory: &Path) -> Option<String> {
    directory.ancestors().find_map(|existing| file_system_of(existing).ok())
}

/// How many ranks the command will have: of the job this process is in, or as its launcher is told.
fn ranks_of(command: &[OsString]) -> Option<u32> {
    if let Some(job) = Job::find() {
        return Some(job.size).filter(|&size| size > 0);
    }
    let program = Path::new(command.first()?).file_name()?.to_string_lossy().into_owned();
    let stem = program.split(['.', '-']).next().unwrap_or_default();
    if !LAUNCHERS.contains(&stem) {
        return None;
    }
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let counts: Vec<u32> = (words.windows(2))
        .filter(|pair| RANK_OPTIONS.contains(&&*pair[0]))
        .filter_map(|pair| pair[1].parse().ok())
        .collect();
    // Several are of several programs, or of the program itself.
    <[u32; 1]>::try_from(counts).ok().map(|[count]| count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_tells_how_many_ranks_there_will_be() {
        let ranks = |text: &str| ranks_of(&text.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(ranks("mpiexec.mpich -n 4 ./solver"), Some(4));
        assert_eq!(ranks("/usr/bin/mpirun -np 2 ./solver -x 3"), Some(2));
        assert_eq!(ranks("mpiexec -n 1 ./a : -n 2 ./b"), None);
        assert_eq!(ranks("./solver -n 4"), None);
        assert_eq!(ranks("mpiexec ./solver"), None);
    }

    #[test]
    fn a_profile_is_written_with_an_at_sign() {
        assert_eq!(named("@a.toml"), Ok(PathBuf::from("a.toml")));
        assert!(named("a.toml").is_err() && named("@").is_err());
    }
}
