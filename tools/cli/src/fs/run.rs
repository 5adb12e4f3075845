//! `iolab fs run`: an MPI program on a file system that lives as long as the program.
//!
//! Up, run, export, down. Files that the program writes through MPI-IO live in the file system under their
//! plain names, and become plain files at the end: each is written beside, compared, and renamed. What
//! could not be exported stays where it is, and is named.

use super::launch::{Shape, start};
use super::runs;
use super::{Place, copy, failure, name_of, shown};
use crate::failure::Failure;
use crate::record::{Recorder, launch_failure};
use clap::Args;
use iolab_host::launch::{self, AsOne, Both, Ending, Watcher};
use iolab_host::own_place;
use iolab_host::recording::Recording;
use iolab_pfs::client::Call;
use iolab_pfs::configuration::Durability;
use iolab_pfs::{Code, Kind};
use iolab_pfs_node::chosen::{self, Chosen};
use iolab_pfs_node::instance::{self, Description, ServingNode, Wish};
use iolab_pfs_node::launch::{Life, Started};
use iolab_pfs_node::stand_ins::{self, StandIns};
use iolab_pfs_node::{Client, NoMemory, files, plain};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;
use std::{env, fs};

/// Run an MPI program with its files in a file system of their own, which ends with it.
///
/// Files that the program creates or opens for writing through MPI-IO in this directory or below live in
/// the file system; at the end they become plain files. POSIX calls of all its processes see them meanwhile.
/// The exit code is the command's. With --keep it may be one that `iolab fs up` serves, for several runs at a time.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    shape: Shape,
    /// Which files live in the file system, by absolute name. [default: those in this directory or below]
    #[arg(long, value_name = "GLOB", num_args = 1..)]
    files: Vec<String>,
    /// Directory of the file system, which stays. [default: one in $TMPDIR that goes]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Leave the files in DIR instead of exporting them.
    #[arg(long, requires = "dir", conflicts_with = "stage_out")]
    keep: bool,
    /// Plain files that are brought into the file system first.
    #[arg(long, value_name = "SRC", num_args = 1..)]
    stage_in: Vec<PathBuf>,
    /// Export the files into this directory, instead of to where they have their names.
    #[arg(long, value_name = "DST")]
    stage_out: Option<PathBuf>,
    /// Record what the program does, MPI-IO on files of the file system among it, into a trace.
    #[arg(long, value_name = "RUN.iot")]
    trace: Option<PathBuf>,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Files that are named when they cannot be exported.
const NAMED: usize = 16;

/// Where the file system is, and whether it goes with the run.
struct Home {
    directory: PathBuf,
    goes: bool,
}

/// Which files live in the file system.
struct Scope {
    here: PathBuf,
    globs: Vec<String>,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if arguments.keep && promises_nothing(arguments) {
        return Err(Failure::new("--durability none promises nothing of files that --keep keeps")
            .hint("take --durability process or device, or leave --keep out"));
    }
    let libraries = [launch::find_mpi_library(), launch::find_names_library()];
    let [mpi, names] = libraries.map(|found| found.map_err(launch_failure));
    let mut libraries = vec![mpi?, names?];
    if arguments.trace.is_some() {
        libraries.insert(0, launch::find_library().map_err(launch_failure)?);
    }
    let scope = Scope::of(&arguments.files)?;
    let home = Home::of(arguments.dir.as_deref())?;
    let wish = arguments.shape.wish();
    let mut keeper = match joins(arguments, &wish)? {
        true => None,
        false => {
            let started = start(&home.directory, &wish, Life::Bound);
            let node = Some(started.inspect_err(|_| home.go())?);
            Some(Keeper { home: &home, wish, node, left: SUCCESSORS })
        }
    };
    let staged = stage_in(&home, &arguments.stage_in);
    let mut recorder = None;
    let ended = staged.and_then(|staged| {
        let place = stand_for_all(&home, &scope)?;
        let trace = arguments.trace.as_deref();
        recorder = trace.map(|it| Recorder::of_job(it, &arguments.command)).transpose()?;
        let recording = recorder.as_mut().map(|it| &mut it.recording);
        let watcher: &mut dyn Watcher = match &mut keeper {
            Some(keeper) => keeper,
            None => &mut AsOne,
        };
        let ending = carry_out(arguments, &libraries, (&scope, recording), (&home, watcher))?;
        Ok((staged, place, ending))
    });
    let (staged, place, ending) = match ended {
        Ok(ended) => ended,
        Err(failure) => {
            // The program has not run, so nothing is lost.
            let _ = keeper.and_then(|keeper| keeper.node).map(Started::stop);
            recorder.into_iter().for_each(|recorder| recorder.recording.discard());
            home.go();
            return Err(failure);
        }
    };
    let saved = recorder.map_or(Ok(()), Recorder::save);
    let node = keeper.map(Keeper::end).transpose()?;
    let exported = match arguments.keep {
        true => keep(&scope, &home, &place),
        false => export(arguments, &scope, &home, &staged),
    };
    let stopped = node.map_or(Ok(()), Started::stop);
    exported.map_err(|failure| {
        let place = home.directory.display();
        failure
            .note(format!("the file system of the run is kept in {place}"))
            .hint(format!(
                "mend that, then `iolab fs up --dir {place}` and `iolab fs cp --dir {place} iolab:NAME NAME`"
            ))
            .code(ending.code().max(1))
    })?;
    stopped?;
    home.go();
    saved?;
    Ok(ExitCode::from(ending.follow()))
}

/// Whether the run is on a file system that is served already, and may be.
fn joins(arguments: &Arguments, wish: &Wish) -> Result<bool, Failure> {
    let Some(directory) = &arguments.dir else { return Ok(false) };
    // Whatever else is the matter with it is told by who would serve it.
    let Ok(Some(ServingNode { pid, is_bound })) = instance::serving_node(directory) else {
        return Ok(false);
    };
    let place = directory.display();
    let served = |what: &str| format!("{place} is served by process {pid}, {what}");
    if is_bound {
        return Err(Failure::new(served("which ends with the run that it is for")).hint(
            "wait for the end of that run, or serve it for both by `iolab fs up --dir DIR`",
        ));
    }
    if !arguments.keep {
        return Err(Failure::new(served("and other runs may use its files")).hint(format!(
            "leave yours there by --keep, or end it first with `iolab fs stop --dir {place}`"
        )));
    }
    if *wish != Wish::default() {
        return Err(Failure::new(served("which is as it was started")).hint(
            "leave out what says how it is to be, or end it and start it anew with `iolab fs up`",
        ));
    }
    Ok(true)
}

/// Whether the class of durability that is asked for, or that the directory has, is `none`.
fn promises_nothing(arguments: &Arguments) -> bool {
    let of_directory = || {
        let found = Description::read(arguments.dir.as_deref()?).ok()?;
        Some(found.durability.name().to_owned())
    };
    let class = arguments.shape.durability.clone().or_else(of_directory);
    class.as_deref() == Some(Durability::None.name())
}

impl Home {
    fn of(given: Option<&Path>) -> Result<Home, Failure> {
        if let Some(directory) = given {
            return Ok(Home { directory: directory.to_owned(), goes: false });
        }
        let parent = env::temp_dir();
        let made = own_place::make(&parent, "iolab-fs").map_err(|error| {
            Failure::new(format!("{}: {error}", parent.display()))
                .hint("set TMPDIR to a directory where you may write, or give --dir DIR")
        });
        Ok(Home { directory: made?, goes: true })
    }

    /// The end of a file system that nobody asked to stay.
    fn go(&self) {
        if self.goes
            && let Err(error) = fs::remove_dir_all(&self.directory)
        {
            eprintln!("iolab: warning: {} is left: {error}", self.directory.display());
        }
    }

    fn client(&self) -> Result<Client, Failure> {
        Place { dir: Some(self.directory.clone()) }.client()
    }
}

impl Scope {
    fn of(globs: &[String]) -> Result<Scope, Failure> {
        let here =
            env::current_dir().map_err(|error| Failure::new(format!("directory: {error}")))?;
        let mut scope = Scope { here, globs: Vec::new() };
        for glob in globs {
            if glob.contains('\n') {
                return Err(Failure::new(format!("--files {glob:?} has more than one line"))
                    .hint("write --files once for each glob"));
            }
            scope.globs.push(match glob.starts_with('/') || glob.starts_with("**") {
                true => glob.clone(),
                false => format!("{}/{glob}", escaped(&scope.here)),
            });
        }
        if scope.globs.is_empty() {
            scope.globs.push(below(&scope.here));
            // A shell may know this directory by another name, over links, and programs are told that one.
            let named = env::var_os("PWD").map(PathBuf::from);
            let named = named.filter(|it| *it != scope.here && it.is_absolute());
            let same = named.filter(|it| it.canonicalize().is_ok_and(|it| it == scope.here));
            scope.globs.extend(same.map(|it| below(&it)));
        }
        Ok(scope)
    }

    fn chosen(&self) -> Chosen {
        Chosen::by(self.globs.join("\n"))
    }

    fn holds(&self, path: &[u8]) -> bool {
        self.chosen().holds(path)
    }
}

/// All names below a directory.
fn below(directory: &Path) -> String {
    format!("{}/**", escaped(directory).trim_end_matches('/'))
}

/// A path as a glob that only means itself.
fn escaped(path: &Path) -> String {
    let text = path.to_string_lossy();
    let mut glob = String::new();
    for letter in text.chars() {
        if "*?[]{}!\\".contains(letter) {
            glob.push('\\');
        }
        glob.push(letter);
    }
    glob
}

/// Brings plain files into the file system; their names there.
fn stage_in(home: &Home, sources: &[PathBuf]) -> Result<BTreeSet<Vec<u8>>, Failure> {
    let mut names = BTreeSet::new();
    if sources.is_empty() {
        return Ok(names);
    }
    let client = home.client()?;
    for source in sources {
        let name = name_of(source)?;
        copy::bring(&client, source, &name)?;
        names.insert(name);
    }
    Ok(names)
}

/// Sees that files which are there before the program have their places among plain ones.
fn stand_for_all(home: &Home, scope: &Scope) -> Result<runs::Place, Failure> {
    let named =
        |error: std::io::Error| Failure::new(format!("{}: {error}", home.directory.display()));
    let place =
        runs::Place::take(&home.directory, || StandIns::begin(&home.directory).map_err(named))?;
    let Some(stand_ins) = StandIns::of(&home.directory) else { return Ok(place) };
    let (client, chosen) = (home.client()?, scope.chosen());
    let all = files::walk(&client, b"/").map_err(|error| failure(b"/", error))?;
    for (path, it) in all.iter().filter(|(path, it)| it.kind == Kind::File && chosen.holds(path)) {
        if let Err(error) = stand_ins.stand(path, it.mode, &chosen) {
            let name = shown(path);
            eprintln!("iolab: warning: {name} is not seen by POSIX calls: {error}");
        }
    }
    Ok(place)
}

/// Looks after the servers of a run: they and the command end with this process. Servers that end before
/// get successors, for which calls wait: what was answered is in the directory.
struct Keeper<'a> {
    home: &'a Home,
    wish: Wish,
    node: Option<Started>,
    /// Successors that there may still be.
    left: u32,
}

/// A node that ends again and again is of no use to anybody.
const SUCCESSORS: u32 = 5;

impl Watcher for Keeper<'_> {
    fn is_needed(&self) -> bool {
        true
    }

    fn tick(&mut self) -> Duration {
        if self.left > 0 && self.node.as_mut().is_none_or(Started::has_ended) {
            self.left -= 1;
            match self.succeed() {
                Ok(()) => {}
                Err(failure) => eprintln!("iolab: warning: {}", failure.message()),
            }
        }
        Duration::from_millis(100)
    }
}

impl Keeper<'_> {
    fn succeed(&mut self) -> Result<(), Failure> {
        self.node = None;
        let place = self.home.directory.display();
        eprintln!(
            "iolab: warning: the servers have ended and are started again; see {place}/node.log"
        );
        self.node = Some(start(&self.home.directory, &self.wish, Life::Bound)?);
        Ok(())
    }

    /// The servers at the end, alive.
    fn end(mut self) -> Result<Started, Failure> {
        if self.node.as_mut().is_none_or(Started::has_ended) {
            self.succeed().map_err(|failure| {
                let place = self.home.directory.display();
                failure.note(format!("the file system of the run is kept in {place}"))
            })?;
        }
        Ok(self.node.expect("they are there or were started"))
    }
}

fn carry_out(
    arguments: &Arguments,
    libraries: &[PathBuf],
    (scope, recording): (&Scope, Option<&mut Recording>),
    (home, keeper): (&Home, &mut dyn Watcher),
) -> Result<Ending, Failure> {
    let directory = &home.directory;
    let absolute = directory.canonicalize();
    let absolute =
        absolute.map_err(|error| Failure::new(format!("{}: {error}", directory.display())))?;
    let mut command = Command::new(&arguments.command[0]);
    command.args(&arguments.command[1..]);
    command.env("IOLAB_FS", absolute).env(chosen::GLOBS, scope.globs.join("\n"));
    launch::preload(&mut command, libraries);
    let ending = match recording {
        None => launch::run(&mut command, keeper),
        Some(recording) => {
            command.envs(recording.environment());
            launch::run(&mut command, &mut Both(keeper, recording))
        }
    };
    ending.map_err(launch_failure)
}

/// Leaves files where they are: nothing stands in for them, once no run is left that may look for them.
fn keep(scope: &Scope, home: &Home, place: &runs::Place) -> Result<(), Failure> {
    if !place.is_alone()? {
        return Ok(());
    }
    let all = files::walk(&home.client()?, b"/").map_err(|error| failure(b"/", error))?;
    let stand_ins = StandIns::of(&home.directory);
    // Those of the runs that ended before are still there.
    let stands = |path: &[u8]| stand_ins.as_ref().is_some_and(|it| it.has(path));
    let ours = |path: &[u8]| scope.holds(path) || stands(path);
    for (path, _) in all.iter().filter(|(path, it)| it.kind == Kind::File && ours(path)) {
        stand_ins::withdraw(path);
    }
    Ok(())
}

/// Makes plain files of those of the run.
fn export(
    arguments: &Arguments,
    scope: &Scope,
    home: &Home,
    staged: &BTreeSet<Vec<u8>>,
) -> Result<(), Failure> {
    let client = home.client()?;
    let all = files::walk(&client, b"/").map_err(|error| failure(b"/", error))?;
    let (files, others): (Vec<_>, Vec<_>) = all
        .iter()
        .filter(|(_, it)| it.kind == Kind::File)
        .partition(|(path, _)| staged.contains(path) || scope.holds(path));
    // The directories that led to a file are there when the program has deleted it again.
    let came = |(path, it): &(_, iolab_pfs::Attributes)| {
        (it.kind == Kind::Directory && staged.is_empty())
            || (it.kind == Kind::File && !staged.contains(path))
    };
    if !all.iter().any(came) {
        say_nothing_came(&arguments.command[0]);
    }
    if home.goes {
        for (path, _) in others {
            // Its name began with `iolab:`, so it has no place among plain files.
            let name = shown(path);
            eprintln!(
                "iolab: {name} goes with the file system: give --dir DIR and --keep to keep it"
            );
        }
    }
    // One that cannot come home keeps none of the others.
    let exported = files.iter().map(|(path, _)| {
        let plain = plain_name(arguments, scope, path);
        let is_as_it_was = staged.contains(path)
            && arguments.stage_out.is_none()
            && plain::is_same(&client, path, &plain).map_err(|error| failure(path, error))?;
        if !is_as_it_was {
            plain::export_file(&client, path, &plain).map_err(|error| failure(path, error))?;
        }
        if arguments.stage_out.is_some() && scope.holds(path) {
            stand_ins::withdraw(path);
        }
        if !home.goes {
            // The plain file is the one that counts from now on.
            plain::forget(&client, path).map_err(|error| failure(path, error))?;
        }
        Ok(())
    });
    let failures: Vec<Failure> = exported.filter_map(Result::err).collect();
    all_told(failures)?;
    if !home.goes {
        remove_empty(&client, &all)?;
    }
    Ok(())
}

/// What went wrong with several files, as one failure that names the first of them.
fn all_told(failures: Vec<Failure>) -> Result<(), Failure> {
    let further = failures.len().saturating_sub(NAMED);
    let mut named = failures.into_iter().take(NAMED);
    let Some(first) = named.next() else { return Ok(()) };
    let told = named.fold(first, |told, next| told.note(next.message()));
    Err(if further > 0 { told.note(format!("and {further} files more")) } else { told })
}

/// Removes directories that have nothing in them any more, the lowest first.
fn remove_empty(client: &Client, all: &[(Vec<u8>, iolab_pfs::Attributes)]) -> Result<(), Failure> {
    for (path, _) in all.iter().rev().filter(|(_, it)| it.kind == Kind::Directory) {
        let call = Call::Remove { path: path.clone(), kind: Kind::Directory };
        match client.call(call, &mut NoMemory) {
            Err(error) if error.code != Code::NOT_EMPTY => return Err(failure(path, error)),
            _ => {}
        }
    }
    Ok(())
}

/// Where a file goes.
fn plain_name(arguments: &Arguments, scope: &Scope, path: &[u8]) -> PathBuf {
    let name = Path::new(OsStr::from_bytes(path));
    let Some(target) = &arguments.stage_out else { return name.to_owned() };
    let inner = name.strip_prefix(&scope.here).or_else(|_| name.strip_prefix("/"));
    target.join(inner.unwrap_or(name))
}

fn say_nothing_came(command: &OsStr) {
    eprintln!(
        "iolab: nothing came to the file system: {} opened no file for writing through MPI-IO where \
         --files says, or is linked statically, which a preloaded library does not reach",
        shown(command.as_bytes())
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_below_a_directory_are_ours_whatever_its_name() {
        let scope = |directory: &str, globs: &[&str]| {
            let here = PathBuf::from(directory);
            let globs = globs.iter().map(|it| (*it).to_owned()).chain([below(&here)]).collect();
            Scope { here, globs }
        };
        let strange = scope("/a/[b]*{c}!", &[]);
        assert!(strange.holds(b"/a/[b]*{c}!/x/y"));
        assert!(!strange.holds(b"/a/b/x") && !strange.holds(b"/a/[b]xx{c}!/x"));
        assert!(scope("/", &[]).holds(b"/x"));
        assert!(scope("/run", &["/scratch/*.dat"]).holds(b"/scratch/a.dat"));
    }
}
