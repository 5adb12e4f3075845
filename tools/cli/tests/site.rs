//! Programs that are recorded by variables alone (`iolab env`), on one node or several, and what
//! `iolab merge` makes of what they left.

#[path = "built/mod.rs"]
mod built;

use iolab_trace::Trace;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn iolab() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iolab"));
    command.env("IOLAB_LIBRARY", built::library());
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What `iolab env words` prints, as variables.
fn variables(place: &Path, words: &[&str]) -> BTreeMap<String, String> {
    let output = iolab().arg("env").args(words).current_dir(place).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let pair = |line: &str| line.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned()));
    text.lines().filter_map(pair).collect()
}

fn merge(place: &Path, words: &[&str]) -> Output {
    iolab().arg("merge").args(words).current_dir(place).output().unwrap()
}

/// Merges a directory and reads the trace.
fn merged(place: &Path, directory: &str) -> (Trace, String) {
    let output = merge(place, &[directory, "-o", "merged.iot", "--force"]);
    assert!(output.status.success(), "{}", said(&output));
    let trace = iolab_iot::read(File::open(place.join("merged.iot")).unwrap()).unwrap();
    (trace, said(&output))
}

/// A place with a directory to work in.
fn workshop() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let work = place.path().join("work");
    fs::create_dir(&work).unwrap();
    for name in ["one", "two"] {
        fs::write(work.join(name), vec![7; 50_000]).unwrap();
    }
    (place, work)
}

/// Calls and bytes moved by function and file, of files in a directory.
fn totals(trace: &Trace, work: &Path) -> BTreeMap<(String, String), (u64, u64)> {
    let mut totals = BTreeMap::new();
    for event in &trace.events {
        let Some(file) = event.file.index().map(|at| trace.header.files[at].path.clone()) else {
            continue;
        };
        if let Ok(name) = Path::new(&file).strip_prefix(work) {
            let key = (event.function.name().to_owned(), name.display().to_string());
            let total: &mut (u64, u64) = totals.entry(key).or_default();
            *total = (total.0 + event.calls(), total.1 + event.moved_bytes());
        }
    }
    totals
}

/// A shell, tar, and Python with a child of its own; the database is nobody else's.
const SCRIPT: &str = r#"
tar cf - one two | dd of=all.tar bs=10240 iflag=fullblock 2> /dev/null
python3 -c '
import os, sqlite3
base = sqlite3.connect("base.db")
base.execute("create table t (x)")
base.executemany("insert into t values (?)", [(n,) for n in range(100)])
base.commit()
if os.fork() == 0:
    open("child", "w").write("c" * 1000)
    os._exit(0)
os.wait()
'
"#;

#[test]
fn programs_with_the_variables_leave_what_a_launcher_would_have_recorded() {
    let (place, work) = workshop();
    let run = |command: &mut Command| {
        let output = command.current_dir(&work).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        for name in ["all.tar", "base.db", "child"] {
            fs::remove_file(work.join(name)).unwrap();
        }
        output
    };
    run(iolab().args(["record", "-q", "-o", "../run.iot", "--", "sh", "-c", SCRIPT]));
    let launched = iolab_iot::read(File::open(place.path().join("run.iot")).unwrap()).unwrap();
    let variables = variables(place.path(), &["--record", "parts"]);
    let output = run(Command::new("sh").args(["-c", SCRIPT]).envs(&variables));
    assert_eq!(said(&output), "");
    let (alone, told) = merged(place.path(), "parts");
    let work = work.canonicalize().unwrap();
    let expected = totals(&launched, &work);
    assert!(expected.len() > 10, "{expected:?}");
    assert_eq!(totals(&alone, &work), expected);
    assert!(told.contains("on 1 node, from 1 part"), "{told}");
    assert_eq!(alone.header.processes.len(), launched.header.processes.len());
    let cut = |trace: &Trace| trace.header.processes.iter().filter(|it| it.ending == "cut").count();
    assert_eq!(cut(&alone), cut(&launched), "{told}");
    assert_eq!(alone.header.mounts, launched.header.mounts);
    assert_eq!(alone.header.clock.machine, launched.header.clock.machine);
    assert!(!alone.header.environment.is_empty());
    let report = iolab().args(["report", "merged.iot"]).current_dir(place.path()).output().unwrap();
    assert!(report.status.success(), "{}", said(&report));
}

/// Writes seven bytes again and again, and says when it has done so twenty times.
const WRITER: &str = r#"
import os, sys, time
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT, 0o600)
for n in range(int(sys.argv[2])):
    os.write(file, b"7 bytes")
    if n == 20:
        open(sys.argv[1] + ".begun", "w").close()
    if n >= 20:
        time.sleep(0.01)
"#;

#[test]
fn of_two_processes_at_once_one_that_is_killed_keeps_what_it_had() {
    let (place, work) = workshop();
    let variables = variables(place.path(), &["--record", "parts"]);
    let start = |name: &str, count: &str| {
        let mut command = Command::new("python3");
        command.args(["-c", WRITER, name, count]).envs(&variables).current_dir(&work);
        command.spawn().unwrap()
    };
    let mut killed = start("killed", "100000");
    let mut whole = start("whole", "30");
    while !work.join("killed.begun").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let (alive, told) = merged(place.path(), "parts");
    assert!(told.contains("processes that went on when the trace was made"), "{told}");
    assert!(alive.events.len() > 20);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(whole.wait().unwrap().success());
    let (trace, told) = merged(place.path(), "parts");
    let work = work.canonicalize().unwrap();
    let written = |name: &str| totals(&trace, &work)[&("write".to_owned(), name.to_owned())];
    let length = fs::metadata(work.join("killed")).unwrap().len();
    let (calls, bytes) = written("killed");
    assert!(bytes >= 20 * 7 && (bytes == length || bytes + 7 == length), "{bytes} of {length}");
    assert_eq!(calls * 7, bytes);
    assert_eq!(written("whole"), (30, 210));
    // `python3` may be a script that finds the right one.
    let writers =
        trace.header.processes.iter().filter(|it| {
            it.name.starts_with("python") && it.command.iter().any(|word| word == WRITER)
        });
    let mut endings: Vec<_> = writers.map(|it| &*it.ending).collect();
    endings.sort_unstable();
    assert_eq!(endings, ["cut", "exited"], "{told}");
    assert_eq!(trace.header.parts.len(), 1, "both found one spool");
}

#[test]
fn nothing_is_replaced_unasked_and_different_runs_are_refused_by_name() {
    let (place, work) = workshop();
    for _ in 0..2 {
        let variables = variables(place.path(), &["--record", "parts"]);
        let ran = Command::new("cat").arg("one").envs(&variables).current_dir(&work).output();
        assert!(ran.unwrap().status.success());
    }
    let mut spools: Vec<_> = fs::read_dir(place.path().join("parts")).unwrap().collect();
    assert_eq!(spools.len(), 2);
    let output = merge(place.path(), &["parts", "-o", "m.iot"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("are of different runs (`run "), "{}", said(&output));
    assert!(!place.path().join("m.iot").exists());
    let spool = spools.pop().unwrap().unwrap().path();
    let spool = spool.to_str().unwrap();
    assert!(merge(place.path(), &[spool, "-o", "m.iot"]).status.success());
    let before = fs::read(place.path().join("m.iot")).unwrap();
    let output = merge(place.path(), &[spool, "-o", "m.iot"]);
    assert!(!output.status.success() && said(&output).contains("--force"), "{}", said(&output));
    assert_eq!(fs::read(place.path().join("m.iot")).unwrap(), before);
    // The spool and the trace made of it hold the same processes.
    let output = merge(place.path(), &[spool, "m.iot", "-o", "n.iot"]);
    assert!(said(&output).contains("is left out: "), "{}", said(&output));
    assert!(output.status.success());
    let output = merge(place.path(), &["work", "-o", "o.iot"]);
    assert!(said(&output).contains("work holds no part of a trace"), "{}", said(&output));
    let output = merge(place.path(), &["m.iot", "-o", "m.iot", "--force"]);
    assert!(said(&output).contains("both read and written"), "{}", said(&output));
    let rest: Vec<_> =
        fs::read_dir(place.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert!(rest.iter().all(|it| !it.to_string_lossy().contains("iolab-merge")), "{rest:?}");
    assert!(Path::new(spool).exists(), "what was merged stays");
    // What is wrong with a part is said of the part, not of the trace it was to become.
    let mut damaged = before.clone();
    damaged[40] ^= 0xff;
    fs::write(place.path().join("damaged.iot"), damaged).unwrap();
    let output = merge(place.path(), &["damaged.iot", "-o", "p.iot"]);
    assert!(said(&output).starts_with("error: damaged.iot: row group 0 is damaged"), "{output:?}");
    assert!(!output.status.success() && !place.path().join("p.iot").exists());
    // The same spool by the command for those that were cut off.
    let output = iolab().args(["recover", spool, "-o", "r.iot"]).current_dir(place.path()).output();
    assert!(output.unwrap().status.success());
}

#[test]
fn a_value_that_cannot_be_read_is_one_line_and_everything_passes() {
    let (place, work) = workshop();
    let library = built::library().to_str().unwrap().to_owned();
    let parts = place.path().join("parts").to_str().unwrap().to_owned();
    let nowhere = "/proc/no/such/place".to_owned();
    let wrong = [
        vec![("IOLAB_RECORD", "here".to_owned())],
        vec![("IOLAB_RECORD", nowhere)],
        vec![("IOLAB_RECORD", parts.clone()), ("IOLAB_LAYERS", "posix,mpo".to_owned())],
        vec![("IOLAB_RECORD", format!("/{}", "long/".repeat(1000)))],
        vec![("IOLAB_APPLY", "no-such-strategy".to_owned())],
    ];
    for values in wrong {
        let mut command = Command::new("cat");
        command.arg("one").env("LD_PRELOAD", &library).envs(values.clone()).current_dir(&work);
        let output = command.output().unwrap();
        assert!(output.status.success() && output.stdout == vec![7; 50_000], "{values:?}");
        assert_eq!(said(&output).lines().count(), 1, "{values:?}: {}", said(&output));
        assert!(said(&output).starts_with("iolab: "), "{}", said(&output));
    }
    assert!(!place.path().join("parts").exists());
}

#[test]
fn programs_are_chosen_by_name() {
    let (place, work) = workshop();
    let programs = |words: &[&str]| -> Vec<String> {
        let _ = fs::remove_dir_all(place.path().join("parts"));
        let variables = variables(place.path(), &[&["--record", "parts"], words].concat());
        let script = "cat one | wc -c > count; head -c 10 two > ten";
        let ran =
            Command::new("sh").args(["-c", script]).envs(variables).current_dir(&work).output();
        assert!(ran.unwrap().status.success());
        let (trace, _) = merged(place.path(), "parts");
        let mut names: Vec<String> =
            trace.header.processes.iter().map(|it| it.name.clone()).collect();
        names.sort();
        names.dedup();
        names
    };
    let all = programs(&[]);
    assert!(["cat", "wc", "head"].iter().all(|it| all.iter().any(|name| name == it)), "{all:?}");
    assert_eq!(programs(&["--only", "cat,head"]), ["cat", "head"]);
    let rest = programs(&["--never", "cat,sh,dash,bash"]);
    assert_eq!(rest, ["head", "wc"]);
}

#[test]
fn strategies_that_need_a_launcher_are_refused_and_others_are_applied() {
    let (place, work) = workshop();
    let env = |words: &[&str]| iolab().arg("env").args(words).current_dir(&work).output().unwrap();
    let output = env(&["--apply", "write-back"]);
    assert!(said(&output).contains("needs a launcher"), "{}", said(&output));
    assert!(said(&output).contains("iolab run --apply 'write-back'"), "{}", said(&output));
    assert!(!env(&[]).status.success());
    let variables = variables(place.path(), &["--apply", "null"]);
    assert_eq!(variables["IOLAB_APPLY"], "null");
    let ran = Command::new("cp").args(["one", "copy"]).envs(variables).current_dir(&work).output();
    assert_eq!(said(&ran.unwrap()), "");
    assert_eq!(fs::read(work.join("copy")).unwrap(), vec![7; 50_000]);
}

/// Whether this user may make namespaces that stand for nodes.
fn has_namespaces() -> bool {
    let tried = Command::new("unshare").args(["-Urmu", "hostname", "north"]).output();
    let may = tried.is_ok_and(|it| it.status.success());
    if !may {
        eprintln!("skipped: no user namespaces here (`unshare -Urmu`)");
    }
    may
}

/// A task of a step on a node of its own: with its own host name, `/dev/shm` and boot id.
fn on_node(host: &str, work: &Path, variables: &BTreeMap<String, String>, rank: &str) -> Command {
    let boot = work.parent().unwrap().join(format!("boot-{host}"));
    fs::write(&boot, format!("boot of {host}\n")).unwrap();
    let script = format!(
        "hostname {host} && mount -t tmpfs none /dev/shm && \
         mount --bind {} /proc/sys/kernel/random/boot_id && exec env \"$@\"",
        boot.display()
    );
    let mut command = Command::new("unshare");
    command.args(["-Urmu", "sh", "-c", &script, "sh"]);
    command.args(variables.iter().map(|(name, value)| format!("{name}={value}")));
    command.args(["SLURM_JOB_ID=7", "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=2"]);
    command.args(["SLURM_STEP_NUM_NODES=2", &format!("SLURM_PROCID={rank}")]);
    command.args(["dd", "if=one", &format!("of=out{rank}"), "bs=100", "count=50"]);
    command.current_dir(work).stderr(Stdio::piped());
    command
}

#[test]
fn two_nodes_make_one_trace_with_what_one_node_records_and_a_missing_one_is_named() {
    if !has_namespaces() {
        return;
    }
    let (place, work) = workshop();
    let variables = variables(place.path(), &["--record", "parts"]);
    let nodes: Vec<_> = [("north", "0"), ("south", "1")]
        .map(|(host, rank)| on_node(host, &work, &variables, rank).spawn().unwrap())
        .into_iter()
        .map(|child| child.wait_with_output().unwrap())
        .collect();
    assert!(nodes.iter().all(|it| it.status.success()), "{nodes:?}");
    let (both, told) = merged(place.path(), "parts");
    assert!(told.contains("(2 ranks) on 2 nodes, from 2 parts"), "{told}");
    assert!(
        told.contains("times between 2 machines, aligned by their wall clocks alone"),
        "{told}"
    );
    assert!(!told.contains("of its job"), "{told}");
    assert_eq!(both.header.clocks.len(), 2);
    let hosts: Vec<_> = both.header.processes.iter().map(|it| it.host.as_str()).collect();
    assert_eq!(hosts, ["north", "south"]);
    let work = work.canonicalize().unwrap();
    let transfers = |trace: &Trace| {
        // By the last part of the name: on two nodes a local file is a file of each.
        let mut all: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
        for event in trace.events.iter().filter(|it| it.function.class().moves_data()) {
            let Some(at) = event.file.index() else { continue };
            let path = &trace.header.files[at].path;
            if path.contains(work.to_str().unwrap()) {
                let name = path.rsplit('/').next().unwrap().to_owned();
                let total = all.entry((event.function.name().to_owned(), name)).or_default();
                *total = (total.0 + event.calls(), total.1 + event.moved_bytes());
            }
        }
        all
    };
    let script = "for r in 0 1; do dd if=one of=out$r bs=100 count=50; done";
    let alone = iolab()
        .args(["record", "-q", "-o", "../run.iot", "--", "sh", "-c", script])
        .current_dir(&work)
        .output()
        .unwrap();
    assert!(alone.status.success());
    let alone = iolab_iot::read(File::open(place.path().join("run.iot")).unwrap()).unwrap();
    assert_eq!(transfers(&both), transfers(&alone));
    assert_eq!(transfers(&both)[&("read".to_owned(), "one".to_owned())], (100, 10_000));

    let spools = fs::read_dir(place.path().join("parts")).unwrap().map(|it| it.unwrap().path());
    let south = spools.into_iter().find(|it| it.to_string_lossy().contains("/south-")).unwrap();
    fs::rename(&south, place.path().join("lost")).unwrap();
    let (one, told) = merged(place.path(), "parts");
    assert!(told.contains("not seen: rank 1 of 2 of its job, which left no part"), "{told}");
    assert!(told.contains("all but north of 2 nodes of its job, which left no part"), "{told}");
    assert_eq!(one.header.processes.len(), 1);
}

#[test]
fn ranks_with_the_variables_leave_one_spool_and_one_trace() {
    let (place, work) = workshop();
    let mut variables = variables(place.path(), &["--record", "parts"]);
    variables.insert("PATH".into(), std::env::var("PATH").unwrap());
    let script = "dd if=one of=out$PMI_RANK bs=1000 count=$((PMI_RANK + 1)) 2> /dev/null";
    let mut command = Command::new("mpiexec.mpich");
    command.args(["-n", "2", "sh", "-c", script]).envs(&variables).current_dir(&work);
    let output = command.output().expect("mpiexec.mpich: apt-get install mpich");
    assert!(output.status.success(), "{}", said(&output));
    let (trace, told) = merged(place.path(), "parts");
    let work = work.canonicalize().unwrap();
    for (rank, bytes) in [(0, 1000), (1, 2000)] {
        let total = totals(&trace, &work)[&("write".to_owned(), format!("out{rank}"))];
        assert_eq!(total.1, bytes, "{told}");
    }
    let mut ranks: Vec<u32> = trace.header.parts.iter().map(|part| part.rank).collect();
    ranks.dedup();
    assert_eq!(ranks, [0, 1], "{told}");
    assert!(!told.contains("of its job"), "{told}");
}
