//! Programs that load no library, recorded by a mount over their directory.

#[path = "../built/mounts.rs"]
mod mounts;

use crate::{iolab, need, record, trace};
use iolab_trace::{Event, Trace};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    static char b[3 << 20]; int fd, i;
    mkdir("d", 0755);
    fd = open("d/data", O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (i = 0; i < 100; i++) if (write(fd, b, 4096) != 4096) return 1;
    lseek(fd, 0, SEEK_SET);
    for (i = 0; i < 50; i++) if (read(fd, b, 8192) != 8192) return 2;
    fdatasync(fd); ftruncate(fd, 1000);
    if (!fork()) { pwrite(fd, "child", 5, 0); _exit(0); }
    wait(0); close(fd);
    rename("d/data", "d/moved"); unlink("d/moved"); rmdir("d");
    fd = open("large", O_RDWR | O_CREAT, 0644);
    if (write(fd, b, sizeof b) != sizeof b) return 3;
    char *m = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    memcpy(m, "mapped", 6); munmap(m, 4096); close(fd);
    puts("done"); return 7;
}
"#;

fn can_mount() -> bool {
    mounts::can_mount(iolab())
}

/// A directory with the program, which is static.
fn workshop() -> tempfile::TempDir {
    need("gcc", "gcc");
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("p.c"), PROGRAM).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-w", "-static", "-o", "p", "p.c"]).current_dir(home.path());
    assert!(gcc.status().unwrap().success());
    home
}

fn rows<'a>(trace: &'a Trace, name: &str, file: &str) -> Vec<&'a Event> {
    let is_it = |event: &&Event| {
        let path = event.file.index().map(|at| trace.header.files[at].path.as_str());
        event.function.name() == name && path.is_some_and(|path| path.ends_with(file))
    };
    trace.events.iter().filter(is_it).collect()
}

fn moved(rows: &[&Event]) -> i64 {
    rows.iter().map(|row| row.result).sum()
}

#[track_caller]
fn assert_is_that_of_the_program(home: &Path) {
    let trace = trace(home);
    let header = &trace.header;
    assert_eq!(header.interposer, "mount");
    let names: Vec<_> = header.processes.iter().map(|process| process.name.as_str()).collect();
    assert_eq!(names, ["p", "p"]);
    assert_eq!(header.processes[0].command, ["./p"]);
    assert!(header.processes.iter().all(|process| process.ending == "exited"), "{header:?}");
    let writes = rows(&trace, "pwrite", "/d/data");
    assert_eq!((writes.len(), moved(&writes)), (101, 100 * 4096 + 5));
    assert_eq!((writes[99].offset, writes[99].length), (99 * 4096, 4096));
    assert_ne!(writes[100].process, writes[99].process, "the last one is the child's");
    assert_eq!(moved(&rows(&trace, "pread", "/d/data")), 50 * 8192);
    assert_eq!(rows(&trace, "ftruncate", "/d/data")[0].length, 1000);
    for (name, file) in [
        ("mkdir", "/d"),
        ("open", "/d/data"),
        ("fdatasync", "/d/data"),
        ("rename", "/d/data"),
        ("unlink", "/d/moved"),
        ("rmdir", "/d"),
    ] {
        assert_eq!(rows(&trace, name, file).len(), 1, "{name} {file}");
    }
    assert!(rows(&trace, "close", "/d/data").len() >= 2, "the program's and its child's");
    // The kernel asks for large calls piece by piece, and for pages of what is mapped.
    let large = rows(&trace, "pwrite", "/large");
    assert!(moved(&large) >= (3 << 20) + 4096, "{large:?}");
    assert!(rows(&trace, "pread", "/large").iter().any(|row| row.offset == 0));
    assert!(header.losses.unseen.iter().any(|text| text.contains("files outside of")));
}

#[test]
fn calls_of_a_static_program_are_rows() {
    if !can_mount() {
        return;
    }
    let home = workshop();
    let output = record(home.path(), &["--via", "auto"], &["./p"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert_eq!(output.stdout, b"done\n");
    assert!(said.contains("--via mount: ./p is static"), "{said}");
    assert_is_that_of_the_program(home.path());
    let large = fs::read(home.path().join("large")).unwrap();
    assert!(large.len() == 3 << 20 && large.starts_with(b"mapped\0"));
}

#[test]
fn calls_are_rows_above_strategies_as_well() {
    if !can_mount() {
        return;
    }
    let home = workshop();
    let mut command = iolab();
    command.args(["run", "--via", "mount", "--apply", "write-back:paths=**/data", "--over", "."]);
    command.args(["--record", "run.iot", "--", "./p"]).current_dir(home.path());
    assert_eq!(command.output().unwrap().status.code(), Some(7));
    assert_is_that_of_the_program(home.path());
    let strategies = trace(home.path()).header.strategies;
    assert!(strategies.len() == 1 && strategies[0].starts_with("write-back:"), "{strategies:?}");
}

/// A shell saves descriptors that its commands close as they begin, when the system says nothing of them.
#[test]
fn commands_that_close_files_as_they_begin_are_not_waited_for() {
    if !can_mount() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let script = "i=0; while [ $i -lt 30 ]; do echo $i >> log; ls >> list; cat < log | tail -1 >> last; \
                  i=$((i+1)); done";
    let mut command = iolab();
    command.args(["record", "-q", "-o", "run.iot", "--via", "mount", "--", "sh", "-c", script]);
    command.current_dir(home.path()).stdout(Stdio::null());
    let mut recorder = command.spawn().unwrap();
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = recorder.try_wait().unwrap() {
            break status;
        }
        // Nobody can wait for processes that wait for each other, nor kill them.
        assert!(begun.elapsed() < Duration::from_secs(120), "it does not end");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(status.success());
    assert_eq!(fs::read_to_string(home.path().join("log")).unwrap().lines().count(), 30);
    let trace = trace(home.path());
    assert_eq!(rows(&trace, "pwrite", "/log").len(), 30);
    assert_eq!(rows(&trace, "pwrite", "/last").len(), 30);
}

/// A shell opens for its commands, duplicates and closes; two directories number what is open each by itself.
#[test]
fn what_commands_share_with_their_shell_is_replayed_as_it_was() {
    if !can_mount() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    for directory in ["a", "b"] {
        fs::create_dir(home.path().join(directory)).unwrap();
    }
    let script = "(seq 3; seq 4) > a/f; cat a/f; exec 5> a/x 6> b/x; echo one >&5; echo more >&6; exec 5>&- 6>&-; \
                  cat a/x b/x; cat > b/here <<END\nsome\nEND\ncat b/here";
    let over = ["--via", "mount", "--over", "a", "--over", "b"];
    let output = record(home.path(), &over, &["sh", "-c", script]);
    assert!(output.status.success(), "{output:?}");
    let trace = trace(home.path());
    let opened: Vec<i64> = ["a/f", "a/x", "b/x", "b/here"]
        .into_iter()
        .flat_map(|name| rows(&trace, "open", name))
        .map(|open| open.result)
        .collect();
    let numbers: std::collections::BTreeSet<i64> = opened.iter().copied().collect();
    assert_eq!((opened.len(), numbers.len()), (8, 8), "{opened:?}");
    assert_eq!(rows(&trace, "inherited", "a/f").len(), 1);
    let replayed = iolab()
        .args(["replay", "run.iot", "--into", "again", "--json"])
        .current_dir(home.path())
        .output()
        .unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&replayed.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&replayed.stderr)));
    assert_eq!(summary["identical"], true);
    for name in ["a/f", "a/x", "b/x", "b/here"] {
        let file = home.path().join(name);
        let again = home.path().join("again").join(file.strip_prefix("/").unwrap());
        let bytes = |path: &Path| fs::metadata(path).unwrap().len();
        assert_eq!(bytes(&again), bytes(&file), "{name}");
    }
}

const PRELUDE: &str = "import ctypes, os
os.chdir('source')
def put(name, text):
    with open(name, 'w') as file: file.write(text)
";

/// Records a program in Python by a mount, replays the recording, and gives both: what the calls are by name, and whether
/// the replay came out the same.
fn python_through_a_mount(program: &str) -> (Vec<(String, String)>, serde_json::Value) {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("source")).unwrap();
    let program = format!("{PRELUDE}{program}");
    let output =
        record(home.path(), &["--via", "mount", "--over", "source"], &["python3", "-c", &program]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let trace = trace(home.path());
    let calls = trace
        .events
        .iter()
        .filter(|event| !matches!(event.function.name(), "close" | "pread" | "pwrite"));
    let name =
        |file: iolab_vocab::FileId| file.index().map(|at| trace.header.files[at].path.clone());
    let below = |path: &str| path.rsplit_once("/source/").map_or(path, |(_, name)| name).to_owned();
    let told = calls.map(|event| {
        let names = [event.file, event.second_file()].into_iter().filter_map(name);
        let names: Vec<String> = names.map(|path| below(&path)).collect();
        (event.function.name().to_owned(), names.join(" "))
    });
    let told = told.collect();
    let mut replay = iolab();
    replay.args(["replay", "run.iot", "--into", "again", "--json"]).current_dir(home.path());
    let replayed = replay.output().unwrap();
    let summary = serde_json::from_slice(&replayed.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&replayed.stderr)));
    (told, summary)
}

#[track_caller]
fn assert_told(program: &str, expected: &[(&str, &str)]) {
    let (told, summary) = python_through_a_mount(program);
    let told: Vec<_> = told.iter().map(|(call, names)| (call.as_str(), names.as_str())).collect();
    assert_eq!(told, expected);
    assert_eq!(summary["identical"], true, "{summary}");
}

#[test]
fn a_file_whose_first_name_is_gone_is_called_by_the_one_it_has() {
    if !can_mount() {
        return;
    }
    assert_told(
        "put('a', 'x'); os.link('a', 'b'); os.unlink('a'); open('b').read(); os.truncate('b', 5); os.unlink('b')",
        &[
            ("open", "a"),
            ("link", "a b"),
            ("unlink", "a"),
            ("open", "b"),
            ("truncate", "b"),
            ("unlink", "b"),
        ],
    );
}

#[test]
fn a_file_of_several_names_is_called_by_that_which_the_program_says() {
    if !can_mount() {
        return;
    }
    assert_told(
        "put('a', 'x'); os.link('a', 'b'); open('a').read(); open('b').read(); open('a').read(); os.link('b', 'c')",
        &[
            ("open", "a"),
            ("link", "a b"),
            ("open", "a"),
            ("open", "b"),
            ("open", "a"),
            ("link", "b c"),
        ],
    );
}

#[test]
fn names_follow_what_is_renamed_and_the_directories_above_it() {
    if !can_mount() {
        return;
    }
    assert_told(
        "os.mkdir('d'); put('d/a', 'x'); os.link('d/a', 'd/b'); os.rename('d', 'e'); os.unlink('e/a')\n\
         open('e/b').read(); os.rename('e/b', 'c'); open('c').read(); put('e/b', 'y'); os.replace('e/b', 'c'); open('c').read()",
        &[
            ("mkdir", "d"),
            ("open", "d/a"),
            ("link", "d/a d/b"),
            ("rename", "d e"),
            ("unlink", "e/a"),
            ("open", "e/b"),
            ("rename", "e/b c"),
            ("open", "c"),
            ("open", "e/b"),
            ("rename", "e/b c"),
            ("open", "c"),
        ],
    );
}

#[test]
fn names_that_change_places_lead_to_each_others_files_in_a_replay() {
    if !can_mount() {
        return;
    }
    assert_told(
        "say = ctypes.CDLL(None).renameat2\nhere = -100\nput('a', 'x'); put('b', 'longer')\n\
         assert say(here, b'a', here, b'b', 2) == 0\nassert open('a').read() == 'longer' and open('b').read() == 'x'\n\
         assert say(here, b'a', here, b'b', 1) == -1 and say(here, b'a', here, b'c', 1) == 0; open('c').read()",
        &[
            ("open", "a"),
            ("open", "b"),
            ("renameat2(RENAME_EXCHANGE)", "a b"),
            ("open", "a"),
            ("open", "b"),
            ("renameat2(RENAME_NOREPLACE)", "a c"),
            ("open", "c"),
        ],
    );
}

/// Mail is delivered so: written under one name, linked to another one, and the first one removed.
#[test]
fn a_file_that_has_lost_the_name_it_was_made_by_is_told_by_the_one_it_has() {
    if !can_mount() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let script = "mkdir tmp new; echo mail > tmp/1; ln tmp/1 new/1; rm tmp/1; cat new/1; rmdir tmp; mv new/1 new/2; \
                  ln new/2 new/3; rm new/2; cat new/3";
    let output = record(home.path(), &["--via", "mount"], &["sh", "-c", script]);
    assert!(output.status.success(), "{output:?}");
    let trace = trace(home.path());
    assert_eq!(rows(&trace, "open", "new/1").len(), 1);
    assert_eq!(rows(&trace, "open", "new/3").len(), 1);
    let files = &trace.header.files;
    assert!(files.iter().all(|file| !file.path.ends_with("(deleted)")), "{files:?}");
    let mut replay = iolab();
    replay.args(["replay", "run.iot", "--into", "again"]).current_dir(home.path());
    let replayed = replay.output().unwrap();
    assert!(replayed.status.success(), "{}", String::from_utf8_lossy(&replayed.stderr));
}

#[test]
fn a_process_that_goes_on_keeps_nobody() {
    if !can_mount() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let script = "(while [ ! -e go ]; do sleep 0.05; done; echo late > late) > /dev/null 2>&1 & echo a > first";
    let output = record(home.path(), &["--via", "mount"], &["sh", "-c", script]);
    assert!(output.status.success());
    let recorded = trace(home.path());
    assert_eq!(rows(&recorded, "pwrite", "/first").len(), 1);
    assert!(rows(&recorded, "pwrite", "/late").is_empty());
    fs::write(home.path().join("go"), "").unwrap();
    let late = home.path().join("late");
    while fs::read(&late).unwrap_or_default() != b"late\n" {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_a_mount_does_not_record_is_refused_and_nothing_is_left() {
    let home = tempfile::tempdir().unwrap();
    let mut wrong: Vec<(&[&str], &str, &str)> = vec![
        (&["--via", "mount", "--layer", "mpi"], "true", "--layer"),
        (&["--via", "mount", "--when-full", "ring"], "true", "ring"),
        (&["--via", "mount", "--over", "nowhere"], "true", "nowhere"),
        (&["--over", "."], "true", "--via mount"),
    ];
    if can_mount() {
        wrong.push((&["--via", "mount"], "no-such-command", "no-such-command"));
    }
    for (options, command, offender) in wrong {
        let output = record(home.path(), options, &[command]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{options:?}");
        assert!(said.contains(offender) && said.contains("hint"), "{options:?}: {said}");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0, "{options:?}: {said}");
    }
}

#[test]
fn calls_beyond_the_limit_are_counted() {
    if !can_mount() {
        return;
    }
    let home = workshop();
    let output = record(home.path(), &["--via", "mount", "--spool-limit", "1k"], &["./p"]);
    assert_eq!(output.status.code(), Some(7));
    let losses = trace(home.path()).header.losses.lost_calls;
    assert!(losses.get("spool limit").is_some_and(|&count| count > 150), "{losses:?}");
}
