//! No command touches what it did not make: every sub-command, right and wrong, in a folder full of
//! files that lie where commands like to put theirs.

use iolab_trace::{Event, FileEntry, Function, Header, ProcessEntry, Trace};
use iolab_vocab::{FileId, Nanos};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// One line each, split at blanks. `T` is a trace, `S` a sweep, `W` a workload.
const COMMANDS: &[&str] = &[
    // Test files that exist, in every shape and for every kind of case.
    "bench -o t",
    "bench -r -o t",
    "bench -w -o t",
    "bench -w -r -F -N 2 -o t",
    "bench -w -F -o t",
    "bench -w -k -o t",
    "bench -w -o t --no-sync --threads -N 2",
    "bench --temporal metadata --files 3 -o t",
    "bench --temporal metadata --files 3 -F -o t",
    "bench --temporal metadata --files 3 -o t --overwrite",
    "bench --temporal metadata --files 3 -o t -a null",
    "bench -o t -a null",
    "bench -o t -a sim --platform classic-hdd",
    "bench -o t -a sim,posix --platform classic-hdd",
    "bench -o t -a independent",
    "bench -o t -a uring,aio",
    "bench -o t -b 1024g -t 1g",
    "bench -o t -b 3 -t 2",
    "bench -o t -p strided:colour=red",
    "bench -o t -N 0",
    "bench -o t --hint nothing",
    "bench -o t --cache direct -b 1000 -t 1000",
    "bench -r -R -E -o t",
    "bench -r -E -o t -b 1g",
    "bench -r -E -b 1 -t 1 -o t",
    "bench -w -E -o t",
    "bench -r -E -F -N 2 -o t -b 1 -t 1",
    "bench -r -E -o new",
    "bench -o link",
    "bench -r -E -b 1 -t 1 -o link",
    "bench -o dangling",
    "bench -o folder",
    "bench -o folder --overwrite",
    "bench -o pipe",
    "bench -o pipe -E -r",
    "bench -o pipe --overwrite",
    "bench -o t/below",
    "bench -o nowhere/t",
    "bench",
    "bench --output t --records t -o new",
    "bench --output new -o new",
    "bench --output new.0 -F -o new",
    "bench --records new -o new",
    "bench --output folder -o new",
    "bench --output nowhere/x -o new",
    "bench --records nowhere/x -o new",
    "bench plan.toml --output plan.toml -o new",
    "bench plan.toml",
    "bench report R --html R",
    "overlap -o t",
    "overlap --direction read -o t",
    "overlap -o t -a null --count 1 -i 1",
    "overlap -o t --compute-only --count 1 -i 1",
    "overlap -o t -b 0 --count 1 -i 1 --max-tries 3",
    "overlap -o link",
    "overlap -E -o t",
    "overlap -E --direction read -o t",
    "overlap",
    "overlap --output new --plot new -o other",
    "overlap --output t -o t",
    // Names that nobody gave.
    "record -- true",
    "import strace.txt --from strace",
    "recover folder",
    "calibrate folder",
    "view T",
    "study --runs 1 --output work -- true",
    "sweep S",
    // Results at the place of what is read, or where nothing can be written.
    "view T -o T",
    "view T -o folder",
    "view t -o new",
    "export T --to csv -o T",
    "export T --to chrome -o nowhere/x",
    "export t --to csv -o new",
    "report T --html T",
    "report T --html linked.iot",
    "report t --html new",
    "import strace.txt --from strace -o strace.txt",
    "import t --from hdtrace -o new",
    "simulate --trace T --platform local-ext4 -o T",
    "simulate --trace t --platform local-ext4 -o new",
    "simulate --workload W --platform classic-hdd -o W",
    "simulate --show --platform t -o t",
    "simulate --show=svg --platform classic-hdd -o folder",
    "replay T --into folder",
    "replay T --into t",
    "replay T --into new --decisions T",
    "run --apply null --record folder -- true",
    "run --apply null --record new --decisions new -- true",
    "record -o folder -- true",
    "record -o nowhere/x -- true",
    "reproduce piosimhd --plots folder",
];

/// Everything that lies in a folder: kind, permissions, content.
fn tree(folder: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let facts = fs::symlink_metadata(&path).expect("facts");
        let kind = facts.file_type();
        let content = match () {
            () if kind.is_dir() => {
                found.append(&mut tree(&path));
                Vec::new()
            }
            () if kind.is_symlink() => {
                fs::read_link(&path).expect("a link").as_os_str().as_bytes().to_vec()
            }
            () if kind.is_fifo() => Vec::new(),
            () => fs::read(&path).expect("a file"),
        };
        found.insert(path, (facts.mode(), content));
    }
    found
}

fn trace(path: &Path) {
    let event = |function, offset: i64, start| Event {
        file: FileId(0),
        offset,
        length: 8,
        result: 8,
        start: Nanos(start),
        end: Nanos(start + 1),
        ..Event::of(function)
    };
    let files = vec![FileEntry { path: "/data/file".to_owned(), ..FileEntry::default() }];
    let header = Header { files, processes: vec![ProcessEntry::default()], ..Header::default() };
    let events = vec![event(Function::PWRITE, 0, 10), event(Function::PWRITE, 8, 20)];
    iolab_iot::write(
        &Trace { header, events, ..Trace::default() },
        File::create(path).expect("a file"),
    )
    .expect("a trace");
}

/// What a user may have lying about.
fn decoys(folder: &Path) {
    let write = |name: &str| fs::write(folder.join(name), format!("mine: {name}\n")).expect(name);
    for name in ["t", "t.0", "t.1", "t.partial", "T.partial", "precious", "strace.txt"] {
        write(name);
    }
    for name in ["iolab-bench.data", "iolab-overlap.data", "run.iot", "T.html", "trace.html"] {
        write(name);
    }
    for name in ["this-machine.toml", "R", "new.partial", "planned", "planned.meta", "S.sweep"] {
        write(name);
    }
    for name in ["t.meta", "t.meta/rank-0", "folder", "iolab-study", "work", "sweep.sweep"] {
        fs::create_dir(folder.join(name)).expect(name);
    }
    for name in [
        "t.meta/0.0",
        "t.meta/rank-0/0.1",
        "folder/file",
        "iolab-study/study.html",
        "iolab-study/study.json",
        "work/file",
        "sweep.sweep/results.csv",
    ] {
        write(name);
    }
    symlink("precious", folder.join("link")).expect("a link");
    symlink("nowhere/deep", folder.join("dangling")).expect("a link");
    trace(&folder.join("trace.iot"));
    symlink("trace.iot", folder.join("linked.iot")).expect("a link");
    let pipe = Command::new("mkfifo").arg(folder.join("pipe")).status().expect("mkfifo");
    assert!(pipe.success());
    let plan = "[global]\ntarget = 'planned'\n[[test]]\nspatial = 'strided'\n\
                temporal = ['write', 'read', 'metadata']\n";
    fs::write(folder.join("plan.toml"), plan).expect("a plan");
    let workload = "[[file]]\nname = 'f'\n";
    fs::write(folder.join("workload.toml"), workload).expect("a workload");
    let sweep = "workload = 'workload.toml'\nplatform = 'classic-hdd'\n[parameters]\nranks = [1]\n";
    fs::write(folder.join("sweep.toml"), sweep).expect("a sweep");
}

fn run(folder: &Path, words: &[&OsStr]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_iolab"))
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("it starts")
}

fn words(line: &str) -> Vec<&OsStr> {
    let word = |word| match word {
        "T" => "trace.iot",
        "S" => "sweep.toml",
        "W" => "workload.toml",
        other => other,
    };
    line.split(' ').map(|one| OsStr::new(word(one))).collect()
}

#[test]
fn no_command_touches_what_it_did_not_make() {
    let folder = TempDir::new().expect("a folder");
    decoys(folder.path());
    let before = tree(folder.path());
    for line in COMMANDS {
        let output = run(folder.path(), &words(line));
        let after = tree(folder.path());
        let said = String::from_utf8_lossy(&output.stderr);
        for (path, there) in &before {
            assert_eq!(after.get(path), Some(there), "{line} changed {}: {said}", path.display());
        }
        for path in after.keys().filter(|path| !before.contains_key(*path)).rev() {
            assert!(output.status.success(), "{line} left {}: {said}", path.display());
            let gone = if path.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) };
            gone.expect("removed");
        }
    }
}

#[test]
fn names_of_unusual_bytes_are_the_files_that_are_used() {
    let folder = TempDir::new().expect("a folder");
    let odd = OsStr::from_bytes(b"o\xff d\n");
    // What the name looks like when it is shown.
    let shown = folder.path().join(odd.to_string_lossy().as_ref());
    fs::write(&shown, "mine").expect("written");
    let command = |extra: &[&OsStr]| {
        let mut all = vec![OsStr::new("bench"), OsStr::new("-o"), odd];
        all.extend_from_slice(extra);
        run(folder.path(), &all)
    };
    let kept = command(&["-w", "-k", "-i", "1", "--no-sync"].map(OsStr::new));
    assert!(kept.status.success(), "{}", String::from_utf8_lossy(&kept.stderr));
    assert_eq!(fs::read(folder.path().join(odd)).expect("kept").len(), 1 << 20);
    let again = command(&["-w"].map(OsStr::new));
    assert!(!again.status.success());
    let read = command(&["-r", "-E", "-R"].map(OsStr::new));
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    assert_eq!(fs::read(&shown).expect("there"), b"mine");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
}
