//! How strategies reach a program: by the preloaded library, or by a mount over the directories of
//! its data, for this command alone.

use super::Arguments;
use crate::failure::Failure;
use crate::mount;
use crate::record::launch_failure;
use clap::{Args, ValueEnum};
use iolab_host::launch;
use iolab_mount::{NamespaceError, enter, outermost};
use iolab_policy::insitu::StrategySpec;
use iolab_policy::insitu::stacking::{self, Setting};
use iolab_segment::Missed;
use std::env;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// How strategies reach the program.
#[derive(Args)]
pub(crate) struct Via {
    /// The preloaded library, a mount over the directories of the data (static, Go and io_uring
    /// programs as well), or whichever suits the program.
    #[arg(long, value_name = "WAY", default_value = "preload")]
    via: Way,
    /// With a mount: cover this directory. Without: the ones that `paths=` of the strategies name.
    #[arg(long, value_name = "DIR")]
    over: Vec<PathBuf>,
}

/// The ways there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Way {
    Preload,
    Mount,
    Auto,
}

impl Via {
    /// Whether this program gets a mount; `auto` says which way it took, and why.
    pub(super) fn is_mount(&self, program: &OsStr) -> Result<bool, Failure> {
        let (is_mount, why) = match self.via {
            Way::Mount => return Ok(true),
            Way::Preload if self.over.is_empty() => return Ok(false),
            Way::Preload => {
                return Err(Failure::new("--over is for a mount, and there is none")
                    .hint("add --via mount (or auto), or leave --over out"));
            }
            Way::Auto => judge(program),
        };
        let way = if is_mount { "mount" } else { "preload" };
        eprintln!("iolab: --via {way}: {} {why}", program.to_string_lossy());
        Ok(is_mount)
    }
}

/// Whether only a mount reaches a program, and why.
fn judge(program: &OsStr) -> (bool, &'static str) {
    match launch::missed(Path::new(program)) {
        Some((_, Missed::SetUser)) => {
            (true, "runs as another user, so it loads no library of ours")
        }
        Some((_, Missed::Static)) => (true, "is static, so it loads no library"),
        Some((_, Missed::ForeignLibc)) => (true, "is of another C library than glibc"),
        Some((_, Missed::Environment)) | None => (false, "loads libraries"),
    }
}

/// Runs the command with its directories covered by themselves, seen through the strategies.
pub(super) fn mounted(
    arguments: &Arguments,
    specs: Vec<StrategySpec>,
) -> Result<ExitCode, Failure> {
    let inside = "record inside: iolab run --via mount … -- iolab record -o RUN.iot -- COMMAND";
    let elsewhere = "leave it out, or choose --via preload";
    for (is_given, option, way_out) in [
        (arguments.record.is_some(), "--record", inside),
        (arguments.decisions.is_some(), "--decisions", elsewhere),
        (arguments.collective.is_given(), "--collective", elsewhere),
    ] {
        if is_given {
            let failure = format!("{option} needs the preloaded library, not a mount");
            return Err(Failure::new(failure).hint(way_out));
        }
    }
    mount::refuse_destroyers(&specs)?;
    stacking::is_heard(&specs, Setting::Mounted)?;
    let named = match arguments.via.over.is_empty() {
        true => directories_of(&specs)?,
        false => arguments.via.over.clone(),
    };
    let directories = outermost(&named).map_err(mount::failure)?;
    let specs: Vec<StrategySpec> = specs.into_iter().map(resolved).collect::<Result<_, _>>()?;
    let server = start_server(&specs, &directories)?;
    enter(&server, &directories).map_err(|error| match error {
        // It has said itself what it met.
        NamespaceError::Server => Failure::new(&error).hint("its message is above"),
        other => mount::server::failure(other),
    })?;
    drop(server);
    let program = &arguments.command[0];
    let mut command = Command::new(program);
    let failure = command.args(&arguments.command[1..]).exec();
    Err(launch_failure(launch::start_error(program, failure)))
}

/// Starts the server, outside of the namespace that is to come. It lives as long as the last process
/// of the command, which may wait for its children: so it is nobody's child.
fn start_server(specs: &[StrategySpec], directories: &[PathBuf]) -> Result<UnixStream, Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("the server of the files: {error}"));
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    let mut command = Command::new(env::current_exe().map_err(failed)?);
    command.arg("mount-server");
    for spec in specs {
        command.arg("--apply").arg(&spec.text);
    }
    command.arg("--").args(directories).stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
    launch::orphan(&mut command).map_err(failed)?;
    Ok(ours)
}

/// The directories that `paths=` name.
fn directories_of(specs: &[StrategySpec]) -> Result<Vec<PathBuf>, Failure> {
    let mut directories = Vec::new();
    for spec in specs {
        let unclear = |what: String| {
            Failure::new(format!("strategy `{}`: {what}", spec.text)).hint(
                "name the directory of the data: --over DIR, or paths=DIR/GLOB in the strategy",
            )
        };
        if spec.selection.paths.is_empty() {
            return Err(unclear("without paths= it is not clear what to mount over".to_owned()));
        }
        for glob in &spec.selection.paths {
            match literal_directory(glob) {
                Some(directory) => directories.push(PathBuf::from(directory)),
                None => {
                    return Err(unclear(format!("its glob `{glob}` begins with no directory")));
                }
            }
        }
    }
    Ok(directories)
}

/// The same strategy with globs by the names a mount knows: absolute ones, without symbolic links.
fn resolved(spec: StrategySpec) -> Result<StrategySpec, Failure> {
    let resolve = |glob: &String| {
        let directory = literal_directory(glob)?;
        let canonical = Path::new(directory).canonicalize().ok()?;
        let literal: String = canonical
            .to_string_lossy()
            .chars()
            .flat_map(|it| "*?[]{}\\".contains(it).then_some('\\').into_iter().chain([it]))
            .collect();
        Some(format!("{literal}{}", &glob[directory.len()..]))
    };
    let all = |key: &str, globs: &[String]| -> Vec<String> {
        let new = globs.iter().map(|glob| resolve(glob).unwrap_or_else(|| glob.clone()));
        new.map(|glob| format!("{key}={glob}")).collect()
    };
    let mut words: Vec<String> =
        spec.parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
    words.extend(all("paths", &spec.selection.paths));
    words.extend(all("exclude", &spec.selection.exclude));
    let end = if words.is_empty() { String::new() } else { format!(":{}", words.join(",")) };
    Ok(StrategySpec::parse(&format!("{}{end}", spec.name))?)
}

/// The part of a glob before its first wildcard, up to the last `/`.
fn literal_directory(glob: &str) -> Option<&str> {
    let literal = glob.split(['*', '?', '[', '{', '\\']).next().unwrap_or(glob);
    let (directory, _) = literal.rsplit_once('/')?;
    Some(directory).filter(|directory| !directory.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_of_a_glob_ends_before_its_first_wildcard() {
        let found = literal_directory;
        assert_eq!(found("/data/run/*.chk"), Some("/data/run"));
        assert_eq!(found("/data/run[0-9]/a.chk"), Some("/data"));
        assert_eq!(found("out/{a,b}/c"), Some("out"));
        assert_eq!(found("./out/a.chk"), Some("./out"));
        for unclear in ["*.chk", "**/a", "/*", "/a.chk", "a.chk", "{a,b}/c"] {
            assert_eq!(found(unclear), None, "{unclear}");
        }
    }

    #[test]
    fn globs_become_those_of_the_names_a_mount_knows() {
        let place = tempfile::tempdir().unwrap();
        let real = place.path().canonicalize().unwrap().join("a[1]");
        std::fs::create_dir(&real).unwrap();
        let link = place.path().join("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let text = format!("write-back:buffer=4k,paths={0}/*.chk,exclude={0}/x*", link.display());
        let spec = resolved(StrategySpec::parse(&text).unwrap()).unwrap();
        let chooses = |name: &str| spec.selection.chooses(&real.join(name).to_string_lossy());
        assert!(chooses("a.chk") && !chooses("x.chk") && !chooses("a.dat"), "{}", spec.text);
        assert_eq!(spec.parameters, [("buffer".to_owned(), "4k".to_owned())]);
    }

    #[test]
    fn relative_globs_count_from_the_working_directory() {
        let spec = resolved(StrategySpec::parse("null:paths=src/*.rs").unwrap()).unwrap();
        let here = env::current_dir().unwrap().canonicalize().unwrap();
        assert!(
            spec.selection.chooses(&here.join("src/main.rs").to_string_lossy()),
            "{}",
            spec.text
        );
    }

    #[test]
    fn a_strategy_that_names_no_directory_is_refused_with_a_way_out() {
        for text in ["null", "null:paths=*.chk", "null:paths=**/x"] {
            let refused = directories_of(&[StrategySpec::parse(text).unwrap()]).unwrap_err();
            assert!(refused.message().contains(text), "{refused}");
            assert!(refused.way_out().is_some_and(|hint| hint.contains("--over")), "{refused}");
        }
    }
}
