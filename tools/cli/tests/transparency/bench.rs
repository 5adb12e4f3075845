//! Runs a script bare and under iolab and compares everything it leaves.

#[path = "../built/mounts.rs"]
mod mounts;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

/// A way for iolab to stand between a program and its files.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// `iolab record`.
    Record,
    /// `iolab run` with these strategies.
    Run(&'static [&'static str]),
    /// `iolab run` with a fast place, from which files come home at this rate: so slowly that programs meet
    /// them there again.
    Stage(&'static str),
    /// `iolab run --via mount` with these strategies, over the place of the program.
    Mount(&'static [&'static str]),
}

/// The ways through a mount that every program must bear: chosen by no strategy, heard, and held.
pub(crate) const MOUNTED: &[Way] = &[
    Way::Mount(&["null:paths=*.nothing"]),
    Way::Mount(&["null"]),
    Way::Mount(&["write-back:buffer=8k"]),
];

/// The ways in which a mount brings together what several processes write to one file.
pub(crate) const SHARED: &[Way] = &[
    Way::Mount(&["aggregate:block=4k,buffer=64k,paths=**"]),
    Way::Mount(&["single-writer:buffer=64k,paths=**"]),
    Way::Mount(&["aggregate:block=64k,paths=**", "single-writer:writers=2,paths=**"]),
];

/// Whether this host lets its user mount; where it does not, one line says that a test was skipped.
pub(crate) fn can_mount() -> bool {
    mounts::can_mount(iolab())
}

/// The ways every program must bear.
pub(crate) const WAYS: &[Way] = &[
    Way::Record,
    Way::Run(&["write-back"]),
    Way::Run(&["write-back:buffer=300,largest=200"]),
    Way::Run(&["null", "write-back:buffer=8k", "null"]),
    Way::Stage("20m"),
];

/// As `WAYS`, and each strategy alone.
pub(crate) const WAYS_AND_ALONE: &[Way] = &[
    Way::Record,
    Way::Run(&["null"]),
    Way::Run(&["seek-elide"]),
    Way::Run(&["write-back"]),
    Way::Run(&["write-back:buffer=300,largest=200"]),
    Way::Run(&["null", "write-back:buffer=8k", "null"]),
    Way::Stage("2m"),
];

/// As `WAYS`, and with transfers cut short below: for programs that go on after a short transfer,
/// as all should.
pub(crate) const WAYS_AND_CRUEL: &[Way] = &[
    Way::Record,
    Way::Run(&["write-back"]),
    Way::Run(&["write-back:buffer=300,largest=200"]),
    Way::Run(&["null", "write-back:buffer=8k", "null"]),
    Way::Run(&["write-back:buffer=4k,largest=2k", "cruel:short=40,seed=11"]),
];

/// Strategies for readers, and align.
pub(crate) const DATA_WAYS: &[Way] = &[
    Way::Run(&["read-ahead", "align:block=4k"]),
    Way::Run(&["read-ahead:via=buffer,outsiders=none", "data-sieve:outsiders=none,hole=200"]),
];

/// What a run left: output, exit code and files.
#[derive(PartialEq, Eq)]
struct Trail {
    stdout: String,
    stderr: String,
    /// Exit code; 128 + n after signal n, as a shell says it.
    ending: i32,
    files: BTreeMap<PathBuf, Kept>,
}

/// What a run left of one file.
#[derive(PartialEq, Eq)]
struct Kept {
    bytes: Vec<u8>,
    /// Mode and owner.
    status: String,
    /// Modification time in nanoseconds, if the program has set it: it lies before the run.
    set_time: Option<i128>,
    attributes: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// The `iolab` under test.
pub(crate) fn iolab() -> Command {
    Command::new(env!("CARGO_BIN_EXE_iolab"))
}

/// A place for the memory that processes of a run share, where no run of another test is found.
pub(crate) fn run_place() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("iolab-test-").tempdir_in("/dev/shm").unwrap()
}

/// Panics with the package's name when a tool is missing: a test that cannot run has failed.
pub(crate) fn need(tool: &str, package: &str) {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(tool).is_file()));
    assert!(found, "`{tool}` is missing: apt-get install {package}");
}

/// A guest program of `guests/`, there as long as this is.
pub(crate) struct Guest {
    program: PathBuf,
    _folder: tempfile::TempDir,
}

impl Deref for Guest {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.program
    }
}

impl AsRef<OsStr> for Guest {
    fn as_ref(&self) -> &OsStr {
        self.program.as_os_str()
    }
}

/// Compiles a guest program afresh.
pub(crate) fn guest(name: &str) -> Guest {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join(name);
    need("cc", "gcc");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests").join(name);
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-w", "-pthread", "-o"]).arg(&program).arg(source.with_extension("c"));
    assert!(cc.status().unwrap().success(), "{name}.c does not compile");
    Guest { program, _folder: folder }
}

/// Runs the script in every way and compares with the bare run. `$GUEST` is the guest program.
pub(crate) fn same_everywhere(script: &str, guest: Option<&Path>, ways: &[Way]) {
    let (home, fast) = (tempfile::tempdir().unwrap(), run_place());
    std::os::unix::fs::symlink(fast.path(), home.path().join("fast")).unwrap();
    let bare = run(None, script, guest, home.path());
    for &way in ways {
        let other = run(Some(way), script, guest, home.path());
        if let Some(difference) = difference(&bare, &other) {
            panic!("{way:?} is not transparent to\n{script}\n{difference}");
        }
        assert_eq!(fs::read_dir(fast.path()).unwrap().count(), 0, "{way:?} left something");
    }
}

fn run(way: Option<Way>, script: &str, guest: Option<&Path>, home: &Path) -> Trail {
    let work = home.join("work");
    fs::create_dir(&work).unwrap();
    let mut command = match way {
        None => Command::new("bash"),
        Some(way) => under(way, home),
    };
    command.arg("-c").arg(script).current_dir(&work);
    settle_environment(&mut command, &work);
    command.env("GUEST", guest.map_or(OsStr::new(""), Path::as_os_str));
    let began = SystemTime::now() - Duration::from_secs(1);
    let output = command.output().unwrap();
    let mut trail = trail(&output, &work, began);
    // What was recorded, that strategies stepped aside and that somebody's run was killed is told on
    // standard error, by a run inside of the bare script, too.
    trail.stderr = trail.stderr.lines().filter(|line| !is_ours(line)).map(with_end).collect();
    fs::remove_dir_all(&work).unwrap();
    trail
}

fn is_ours(line: &str) -> bool {
    line.starts_with("iolab: ")
}

fn with_end(line: &str) -> String {
    format!("{line}\n")
}

/// `iolab … -- bash`.
pub(crate) fn under(way: Way, home: &Path) -> Command {
    let mut command = iolab();
    match way {
        Way::Record => {
            command.arg("record").arg("-o").arg(home.join("run.iot"));
            command.arg("--spool").arg(home.join("spool"));
            fs::create_dir_all(home.join("spool")).unwrap();
        }
        Way::Stage(rate) => {
            let place = home.join("fast");
            let place = fs::canonicalize(place).unwrap();
            let strategy =
                format!("stage:to={},rate={rate},paths={}/**", place.display(), home.display());
            command.args(["run", "--allow", "late-visibility", "--apply", &strategy]);
        }
        Way::Run(strategies) | Way::Mount(strategies) => {
            command.arg("run");
            if strategies.iter().any(|strategy| strategy.starts_with("cruel")) {
                command.arg("--cruel");
            }
            if strategies.iter().any(|strategy| strategy.ends_with("paths=**")) {
                command.args(["--allow", "late-visibility"]);
            }
            for strategy in strategies {
                command.arg("--apply").arg(strategy);
            }
        }
    }
    if let Way::Mount(_) = way {
        command.args(["--via", "mount", "--over"]).arg(home.join("work"));
    }
    command.args(["--", "bash"]);
    command
}

/// The same environment for every run, and nothing in it that changes from day to day.
fn settle_environment(command: &mut Command, work: &Path) {
    command.env("HOME", work).env("TMPDIR", work).env("LC_ALL", "C").env("TZ", "UTC");
    command.env("GIT_CONFIG_NOSYSTEM", "1").env_remove("LD_PRELOAD");
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "A").env(format!("GIT_{role}_EMAIL"), "a@b.c");
        command.env(format!("GIT_{role}_DATE"), "2001-02-03T04:05:06Z");
    }
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONHASHSEED", "0");
}

fn trail(output: &Output, work: &Path, began: SystemTime) -> Trail {
    let mut files = BTreeMap::new();
    collect(work, work, began, &mut files);
    Trail {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        ending: output.status.code().or(output.status.signal().map(|it| 128 + it)).unwrap_or(-999),
        files,
    }
}

fn collect(folder: &Path, root: &Path, began: SystemTime, files: &mut BTreeMap<PathBuf, Kept>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap().to_owned();
        let metadata = fs::symlink_metadata(&path).unwrap();
        let kind = metadata.file_type();
        let bytes = if kind.is_dir() {
            collect(&path, root, began, files);
            b"(directory)".to_vec()
        } else if kind.is_symlink() {
            fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
        } else if kind.is_file() {
            fs::read(&path).unwrap()
        } else {
            continue;
        };
        files.insert(name, kept(&path, &metadata, began, bytes));
    }
}

fn kept(path: &Path, metadata: &fs::Metadata, began: SystemTime, bytes: Vec<u8>) -> Kept {
    let (mode, uid, gid) = (metadata.mode(), metadata.uid(), metadata.gid());
    let time = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
    let set = metadata.modified().unwrap() < began && !metadata.is_symlink();
    Kept {
        bytes,
        status: format!("{mode:o} {uid}:{gid}"),
        set_time: set.then_some(time),
        attributes: attributes(path),
    }
}

fn attributes(path: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut names = vec![0; 4096];
    let length = rustix::fs::llistxattr(path, &mut names[..]).unwrap_or(0);
    let names = names[..length].split(|&byte| byte == 0).filter(|name| !name.is_empty());
    let value = |name: &[u8]| {
        let mut value = vec![0; 4096];
        let length = rustix::fs::lgetxattr(path, name, &mut value[..]).unwrap_or(0);
        value[..length].to_vec()
    };
    names.map(|name| (name.to_vec(), value(name))).collect()
}

/// What is not the same, for a person to read; `None` when everything is.
fn difference(bare: &Trail, other: &Trail) -> Option<String> {
    if bare.ending != other.ending {
        let (stdout, stderr) = (&other.stdout, &other.stderr);
        return Some(format!(
            "it ended {} instead of {}:\n{stdout}\n{stderr}",
            other.ending, bare.ending
        ));
    }
    text_difference("output", &bare.stdout, &other.stdout)
        .or_else(|| text_difference("error output", &bare.stderr, &other.stderr))
        .or_else(|| file_difference(&bare.files, &other.files))
}

fn text_difference(what: &str, bare: &str, other: &str) -> Option<String> {
    if bare == other {
        return None;
    }
    let lines = || bare.lines().zip(other.lines()).enumerate();
    let first = lines().find(|(_, (a, b))| a != b);
    Some(match first {
        Some((line, (a, b))) => format!("{what}, line {}:\n  bare:  {a}\n  under: {b}", line + 1),
        None => format!("{what} is of {} instead of {} bytes: {other}", other.len(), bare.len()),
    })
}

fn file_difference(
    bare: &BTreeMap<PathBuf, Kept>,
    other: &BTreeMap<PathBuf, Kept>,
) -> Option<String> {
    let only = |a: &BTreeMap<PathBuf, Kept>, b: &BTreeMap<PathBuf, Kept>| {
        a.keys().find(|name| !b.contains_key(*name)).cloned()
    };
    if let Some(name) = only(bare, other) {
        return Some(format!("{} is missing", name.display()));
    }
    if let Some(name) = only(other, bare) {
        return Some(format!("{} should not be there", name.display()));
    }
    bare.iter().find(|(name, kept)| other[*name] != **kept).map(|(name, kept)| {
        let (name, there) = (name.display(), &other[name]);
        if kept.status != there.status {
            return format!("{name}: {} instead of {}", there.status, kept.status);
        }
        if kept.set_time != there.set_time {
            return format!("{name}: time {:?} instead of {:?}", there.set_time, kept.set_time);
        }
        if kept.attributes != there.attributes {
            return format!("{name}: other extended attributes");
        }
        let at = kept.bytes.iter().zip(&there.bytes).position(|(a, b)| a != b);
        let (length, found) = (kept.bytes.len(), there.bytes.len());
        format!("{name}: {found} instead of {length} bytes, first difference at {at:?}")
    })
}
