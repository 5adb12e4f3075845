//! Strategies that reach a program by a mount over the directories of its data, for this command alone.

use super::{Arguments, deferred, save};
use crate::failure::Failure;
use crate::mount;
use crate::mounted::{self, Manner, Server, become_command};
use crate::output::Output as Target;
use crate::packed;
use crate::record::{Output, RESOLUTION_NS, named_in, spool_failure, summarize};
use iolab_host::recording::{Recording, Settings, StreamCalls};
use iolab_mount::outermost;
use iolab_policy::insitu::StrategySpec;
use iolab_policy::insitu::stacking::{self, Consent, Setting};
use iolab_trace::finish::Side;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs the command under strategies of which some need a mount. Where one keeps small files, all are at work there;
/// else the first of them and those below it, and those above it in each process that loads the library,
/// if the way was not chosen.
pub(super) fn needed(
    arguments: &Arguments,
    mut specs: Vec<StrategySpec>,
    consent: Consent,
) -> Result<ExitCode, Failure> {
    if arguments.via.is_given() {
        return mounted(arguments, specs, &arguments.command);
    }
    if let Some(spec) = specs.iter().find(|spec| spec.deferral().is_some()) {
        if !arguments.quiet {
            eprintln!("iolab: --via mount: `{}` needs one", spec.name);
        }
        return mounted(arguments, specs, &arguments.command);
    }
    let first = specs.iter().position(|spec| spec.needs_mount()).unwrap_or(0);
    let node = specs.split_off(first);
    let asker = node[0].name;
    let mut command = arguments.command.clone();
    if !specs.is_empty() {
        let program = env::current_exe()
            .map_err(|error| Failure::new(format!("this program cannot be found: {error}")))?;
        let mut inner = vec![program.into_os_string(), "run".into(), "--quiet".into()];
        if !arguments.quiet {
            inner.push("--within".into());
        }
        for spec in &specs {
            inner.extend(["--apply".into(), spec.text.clone().into()]);
        }
        inner.extend(consent.flags().flat_map(str::split_whitespace).map(OsString::from));
        inner.push("--".into());
        command.splice(0..0, inner);
    }
    if !arguments.quiet {
        let above = match specs.is_empty() {
            true => String::new(),
            false => format!("; {} in each process above it", stack_of(&specs)),
        };
        eprintln!("iolab: `{asker}` is for all processes, so a mount reaches them{above}");
    }
    mounted(arguments, node, &command)
}

/// A stack as people write it.
fn stack_of(specs: &[StrategySpec]) -> String {
    let names: Vec<&str> = specs.iter().map(|spec| spec.name).collect();
    format!("`{}`", names.join(" + "))
}

/// Runs a command with its directories covered by themselves, seen through the strategies.
pub(super) fn mounted(
    arguments: &Arguments,
    mut specs: Vec<StrategySpec>,
    command: &[OsString],
) -> Result<ExitCode, Failure> {
    for (is_given, option) in [
        (arguments.decisions.is_some(), "--decisions"),
        (arguments.collective.is_given(), "--collective"),
    ] {
        if is_given {
            let failure = format!("{option} needs the preloaded library, not a mount");
            return Err(Failure::new(failure).hint("leave it out, or choose --via preload"));
        }
    }
    mount::refuse_destroyers(&specs)?;
    stacking::is_heard(&specs, Setting::Mounted)?;
    let named = match arguments.via.over.is_empty() {
        true => directories_of(&specs)?,
        false => arguments.via.over.clone(),
    };
    let directories = outermost(&named).map_err(mount::failure)?;
    packed::resolve_places(&mut specs, &directories)?;
    let specs: Vec<StrategySpec> = specs.into_iter().map(resolved).collect::<Result<_, _>>()?;
    let is_deferred = specs.iter().any(|spec| spec.deferral().is_some());
    let inputs = named_in(&arguments.command);
    if let Some(target) = Target::begin_if(arguments.record.as_deref(), "--record", &inputs)? {
        return recorded((arguments, command), target, &specs, &directories);
    }
    if is_deferred {
        let (code, _) = deferred::run((arguments, command), &specs, &directories, None)?;
        return Ok(code);
    }
    let server = Server::start(&specs, &directories, None, Manner::default())?;
    become_command(&server.socket, &directories, command)
}

/// The same, with the calls of the program in a trace.
fn recorded(
    (arguments, command): (&Arguments, &[OsString]),
    target: Target,
    specs: &[StrategySpec],
    directories: &[PathBuf],
) -> Result<ExitCode, Failure> {
    let mut output = Output::reserve(target, RESOLUTION_NS, summarize)?;
    let texts: Vec<String> = specs.iter().map(|spec| spec.text.clone()).collect();
    let settings = Settings { posix: true, stdio: StreamCalls::Nothing, ..Settings::default() };
    let mut recording = Recording::begin(&settings, &arguments.command, &texts)
        .map_err(|error| spool_failure(&error))?;
    output.recorded_in(recording.directory());
    if specs.iter().any(|spec| spec.deferral().is_some()) {
        let ran = deferred::run((arguments, command), specs, directories, Some(&mut recording));
        return written(recording, specs, output, ran);
    }
    let ran = mounted::run(specs, directories, command, &mut recording);
    let ran = ran.map(|ended| (ExitCode::from(ended.ending.follow()), ended.has_started));
    written(recording, specs, output, ran)
}

/// Writes what was recorded of a command that has come to be.
fn written(
    recording: Recording,
    specs: &[StrategySpec],
    output: Output,
    ran: Result<(ExitCode, bool), Failure>,
) -> Result<ExitCode, Failure> {
    match ran {
        Ok((code, has_started)) => {
            if has_started {
                save(&recording, specs, Side::Program, output, |_| true)?;
            }
            recording.discard();
            Ok(code)
        }
        Err(failure) => {
            recording.discard();
            Err(failure)
        }
    }
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
