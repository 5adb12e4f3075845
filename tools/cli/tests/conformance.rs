//! One policy, three drivers: the preloaded library on a live program, replay on real files and
//! the simulator in virtual time must make the same decisions on the same activities. Each
//! program below is recorded bare, then run, replayed and simulated under the same strategies;
//! the sequences of commands that came out of every stack are compared row by row.

use iolab_trace::{Event, Trace};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

const IOLAB: &str = env!("CARGO_BIN_EXE_iolab");

/// What each program does in its working directory, in C; `check` ends it with a message.
const PRELUDE: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#define check(x) do { if ((long)(x) < 0) { perror(#x); exit(1); } } while (0)
static char b[65536];
"#;

const PROGRAMS: &[(&str, &str)] = &[
    (
        "shares a file with a program it starts",
        r#"
        int fd, one, two;
        check(fd = open("a.dat", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
        check(one = open("b.dat", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
        for (int i = 0; i < 20; i++) { check(write(fd, b, 30)); check(write(one, b, 40)); }
        char *arguments[] = {"dd", "if=/dev/zero", "of=a.dat", "bs=50", "count=9", "conv=notrunc", "status=none", 0};
        pid_t child; check(-posix_spawnp(&child, "dd", 0, 0, arguments, environ));
        check(waitpid(child, 0, 0));
        for (int i = 0; i < 20; i++) { check(write(fd, b, 30)); check(write(one, b, 40)); }
        check(two = open("a.dat", O_WRONLY | O_CLOEXEC)); check(write(two, b, 7)); check(close(two));
        check(close(fd)); check(close(one));
        check(fd = open("a.dat", O_WRONLY | O_APPEND));
        for (int i = 0; i < 9; i++) check(write(fd, b, 30));
        check(close(fd));"#,
    ),
    (
        "appends small records",
        r#"
        int fd; check(fd = open("a.dat", O_WRONLY | O_CREAT | O_TRUNC, 0644));
        for (int i = 0; i < 3000; i++) check(write(fd, b, 1 + i % 90));
        check(close(fd));"#,
    ),
    (
        "rewrites its header",
        r#"
        int fd; check(fd = open("a.dat", O_RDWR | O_CREAT | O_TRUNC, 0644));
        for (int i = 0; i < 500; i++) {
            check(lseek(fd, 0, SEEK_SET)); check(write(fd, b, 64));
            check(lseek(fd, 0, SEEK_END)); check(write(fd, b, 100));
            if (i % 100 == 99) check(fsync(fd));
        }
        check(close(fd));"#,
    ),
    (
        "reads streams of each course",
        r#"
        int fd; check(fd = open("a.dat", O_RDWR | O_CREAT | O_TRUNC, 0644));
        for (int i = 0; i < 40; i++) check(write(fd, b, 5000 + i));
        check(close(fd)); check(fd = open("a.dat", O_RDONLY));
        for (int i = 0; i < 900; i++) check(i % 4 ? read(fd, b, 60) : pread(fd, b, 60, 9000 + i * 60));
        for (int i = 0; i < 300; i++) check(pread(fd, b, 100, i * 500));
        for (int i = 300; i > 0; i--) check(pread(fd, b, 100, i * 100));
        check(lseek(fd, -300, SEEK_END));
        for (int i = 0; i < 9; i++) check(read(fd, b, 60));
        check(close(fd));"#,
    ),
    (
        "writes at random places and reads back",
        r#"
        int fd; unsigned s = 7; check(fd = open("a.dat", O_RDWR | O_CREAT | O_TRUNC, 0644));
        for (int i = 0; i < 800; i++) {
            s = s * 1664525u + 1013904223u;
            check(pwrite(fd, b, 10 + s % 50, (s >> 8) % 20000));
            if (i % 7 == 0) check(pread(fd, b, 40, (s >> 4) % 20000));
            if (i % 50 == 0) check(read(fd, b, 33));
        }
        check(ftruncate(fd, 9000)); check(write(fd, b, 20)); check(close(fd));"#,
    ),
    (
        "appends with O_APPEND through two descriptors",
        r#"
        int one, two;
        check(one = open("log", O_WRONLY | O_CREAT | O_APPEND, 0644));
        check(two = open("log", O_WRONLY | O_APPEND));
        for (int i = 0; i < 300; i++) { check(write(i % 3 ? one : two, b, 17)); }
        check(close(one)); check(write(two, b, 5)); check(close(two));"#,
    ),
    (
        "dups, stats and closes in odd order",
        r#"
        struct stat st; int fd, other;
        check(fd = open("a.dat", O_RDWR | O_CREAT | O_TRUNC, 0644));
        check(write(fd, b, 100)); check(other = dup(fd)); check(write(other, b, 100));
        check(close(fd)); check(write(other, b, 100)); check(fstat(other, &st));
        if (st.st_size != 300) exit(2);
        check(fd = open("b.dat", O_WRONLY | O_CREAT, 0644)); check(write(fd, b, 10));
        check(dup2(fd, other)); check(write(other, b, 10)); check(close(fd)); check(close(other));
        check(stat("a.dat", &st)); if (st.st_size != 300) exit(3);"#,
    ),
    (
        "forks with an open file",
        r#"
        int fd; check(fd = open("a.dat", O_WRONLY | O_CREAT | O_TRUNC, 0644));
        check(write(fd, b, 100));
        pid_t child = fork(); check(child);
        if (child == 0) { check(write(fd, b, 50)); _exit(0); }
        check(waitpid(child, 0, 0)); check(write(fd, b, 25)); check(close(fd));
        check(fd = open("c.dat", O_WRONLY | O_CREAT | O_TRUNC, 0644));
        check(write(fd, b, 40)); check(write(fd, b, 40)); check(close(fd));"#,
    ),
    (
        "maps a file it writes",
        r#"
        int fd; check(fd = open("a.dat", O_RDWR | O_CREAT | O_TRUNC, 0644));
        for (int i = 0; i < 50; i++) check(write(fd, b, 100));
        char *m = mmap(0, 5000, PROT_READ, MAP_SHARED, fd, 0);
        if (m == MAP_FAILED) exit(2);
        check(write(fd, b, 100)); check(munmap(m, 5000)); check(close(fd));"#,
    ),
    (
        "mixes large and small, and overfills",
        r#"
        int fd; check(fd = open("a.dat", O_WRONLY | O_CREAT | O_TRUNC, 0644));
        for (int i = 0; i < 60; i++) { check(write(fd, b, 3000)); if (i % 9 == 0) check(write(fd, b, 40000)); }
        check(fdatasync(fd)); check(close(fd));"#,
    ),
    (
        "renames what it writes, as editors do",
        r#"
        int fd; check(fd = open("new.tmp", O_WRONLY | O_CREAT | O_TRUNC, 0644));
        for (int i = 0; i < 20; i++) check(write(fd, b, 30));
        check(rename("new.tmp", "final")); check(write(fd, b, 30)); check(close(fd));
        check(fd = open("new.tmp", O_WRONLY | O_CREAT | O_TRUNC, 0644));
        check(write(fd, b, 30)); check(close(fd)); check(unlink("new.tmp"));"#,
    ),
    (
        "locks what it appends to, in every way",
        r#"
        int fd; check(fd = open("a.dat", O_RDWR | O_CREAT | O_TRUNC, 0644));
        struct flock range = {.l_whence = SEEK_SET, .l_len = 1};
        for (int i = 0; i < 12; i++) {
            range.l_type = i % 2 ? F_UNLCK : F_WRLCK;
            if (i % 3 == 0) check(flock(fd, i % 2 ? LOCK_UN : LOCK_EX));
            if (i % 3 == 1) check(fcntl(fd, F_SETLK, &range));
            if (i % 3 == 2) check(lockf(fd, i % 2 ? F_ULOCK : F_LOCK, 10));
            check(write(fd, b, 70)); check(lseek(fd, -20, SEEK_CUR)); check(write(fd, b, 30));
        }
        check(close(fd));"#,
    ),
    (
        "reads and writes the same file beside its strategies",
        r#"
        int fd, direct; check(fd = open("a.dat", O_RDWR | O_CREAT | O_TRUNC, 0644));
        for (int i = 0; i < 9; i++) check(write(fd, b, 50));
        check(direct = open("a.dat", O_RDONLY | O_SYNC));
        check(write(fd, b, 50)); check(read(direct, b, 100)); check(write(fd, b, 50));
        check(close(direct)); check(write(fd, b, 50));
        check(direct = open("a.dat", O_WRONLY | O_SYNC));
        check(write(fd, b, 50)); check(write(direct, b, 10)); check(write(fd, b, 50));
        check(close(direct)); check(close(fd));
        check(fd = open("a.dat", O_WRONLY)); check(write(fd, b, 50)); check(close(fd));"#,
    ),
    (
        "truncates by path what it writes",
        r#"
        int fd; check(fd = open("a.dat", O_WRONLY | O_CREAT | O_TRUNC, 0644));
        check(write(fd, b, 500)); check(truncate("a.dat", 100)); check(write(fd, b, 50));
        check(close(fd)); check(fd = open("a.dat", O_WRONLY | O_APPEND));
        check(write(fd, b, 5)); check(write(fd, b, 5)); check(close(fd));"#,
    ),
    (
        "writes through streams",
        r#"
        FILE *f = fopen("a.dat", "w+"); if (!f) exit(1);
        for (int i = 0; i < 2000; i++) fprintf(f, "record %d\n", i);
        rewind(f); if (!fgets(b, 100, f)) exit(2);
        fseek(f, 0, SEEK_END); fputs("end", f); fflush(f); fputs("behind", f); fclose(f);
        f = fopen("a.dat", "a"); fputs("again", f); fclose(f);"#,
    ),
    (
        "spawns a program that its file actions give a file to",
        r#"
        int fd, end; pid_t child; posix_spawn_file_actions_t acts; char *command[] = {"true", 0};
        check(fd = open("a.dat", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
        check(write(fd, b, 10)); check(write(fd, b, 10));
        check(-posix_spawnp(&child, "true", 0, 0, command, environ)); check(waitpid(child, &end, 0));
        check(write(fd, b, 10)); check(write(fd, b, 10));
        check(-posix_spawn_file_actions_init(&acts));
        check(-posix_spawn_file_actions_adddup2(&acts, fd, 7));
        check(-posix_spawnp(&child, "true", &acts, 0, command, environ)); check(waitpid(child, &end, 0));
        check(write(fd, b, 10)); check(close(fd));"#,
    ),
    (
        "writes with flags of a single call",
        r#"
        int fd; struct iovec one = {b, 30};
        check(fd = open("a.dat", O_RDWR | O_CREAT | O_TRUNC, 0644));
        check(write(fd, b, 10)); check(pwritev2(fd, &one, 1, 3, 0));
        check(write(fd, b, 10)); check(pwritev2(fd, &one, 1, 50, RWF_DSYNC));
        check(write(fd, b, 10)); check(pread(fd, b, 20, 1)); check(close(fd));"#,
    ),
    (
        "renames a file over another one that is open",
        r#"
        int one, two;
        check(one = open("a.dat", O_RDWR | O_CREAT | O_TRUNC, 0644));
        check(two = open("b.dat", O_RDWR | O_CREAT | O_TRUNC, 0644));
        for (int i = 0; i < 5; i++) { check(write(one, b, 10)); check(write(two, b, 20)); }
        check(rename("a.dat", "b.dat"));
        for (int i = 0; i < 5; i++) { check(write(one, b, 10)); check(write(two, b, 20)); }
        check(close(two)); check(close(one));"#,
    ),
];

const STACKS: &[&[&str]] = &[
    &["null"],
    &["seek-elide"],
    &["write-back:buffer=1m"],
    &["write-back:buffer=4k,largest=2k"],
    &["fsync-relax + write-back:buffer=8k"],
    &["fsync-relax:every=0", "seek-elide"],
    &["read-ahead"],
    &["align:block=4k", "read-ahead:via=buffer,outsiders=none"],
];

#[test]
fn live_replayed_and_simulated_stacks_decide_alike() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let platform = scratch.path().join("platform.toml");
    iolab(scratch.path(), &["calibrate", ".", "-o", "platform.toml"]);
    decide_at_no_cost(&platform);
    for (number, (name, body)) in PROGRAMS.iter().enumerate() {
        let program = compile(scratch.path(), number, body);
        for strategies in STACKS {
            let place = fresh(&scratch.path().join("run"));
            let decisions = decisions_of_all_drivers(&place, &program, &platform, strategies);
            let [live, replayed, simulated] = &decisions;
            assert!(!live.is_empty(), "{name} under {strategies:?}: nothing was staged");
            assert_same("replay", name, strategies, live, replayed);
            assert_same("simulator", name, strategies, live, simulated);
        }
    }
}

#[test]
fn what_comes_by_is_counted_alike_live_replayed_and_simulated() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let place = scratch.path();
    let body = PROGRAMS.iter().find(|(name, _)| *name == "rewrites its header").expect("known").1;
    let program = compile(place, 0, body);
    let program = program.to_str().expect("a plain path");
    let glob = format!("paths={}/*.dat", place.display());
    let stack = format!("count:{glob} + write-back:{glob} + count:{glob}");
    iolab(place, &["record", "-o", "bare.iot", "--", program]);
    let simulate = ["simulate", "--trace", "bare.iot", "--platform", "local-ext4"];
    let drivers: [&[&str]; 3] = [
        &["run", "--quiet", "--apply", &stack, "--", program],
        &["replay", "bare.iot", "--into", "replayed", "--apply", &stack],
        &[&simulate[..], &["--apply", &stack]].concat(),
    ];
    let file = place.join("a.dat");
    let expected = [
        format!(
            "count above-write-back: {}: 1 open, 1000 writes of 80.1 KiB, 1000 seeks, 5 syncs",
            file.display()
        ),
        // What was appended goes out at each sync, and the header beside it but the first time.
        format!(
            "count below-write-back: {}: 1 open, 9 writes of 49.1 KiB, 5 syncs",
            file.display()
        ),
    ];
    for driver in drivers {
        let said = iolab(place, driver);
        let lines: Vec<&str> = said
            .lines()
            .map(|line| line.strip_prefix("iolab: ").unwrap_or(line))
            .filter(|line| line.starts_with("count ") && !line.starts_with("count:"))
            .collect();
        assert_eq!(lines, expected, "{driver:?}: {said}");
    }
}

/// What is decided must not depend on what deciding costs, and many decisions of one moment are the
/// hardest to keep in order.
fn decide_at_no_cost(platform: &Path) {
    let text = fs::read_to_string(platform).expect("a platform");
    let priced = |line: &&str| line.starts_with("step_ns =") || line.starts_with("hook_ns =");
    assert_eq!(text.lines().filter(priced).count(), 2, "{text}");
    let free = |line: &str| match priced(&line) {
        true => format!("{} = 0.0\n", line.split(' ').next().expect("a key")),
        false => format!("{line}\n"),
    };
    fs::write(platform, text.lines().map(free).collect::<String>()).expect("written");
}

fn decisions_of_all_drivers(
    place: &Path,
    program: &Path,
    platform: &Path,
    strategies: &[&str],
) -> [Vec<String>; 3] {
    let program = program.to_str().expect("a plain path");
    let platform = platform.to_str().expect("a plain path");
    let apply: Vec<String> = strategies
        .iter()
        .map(|stack| {
            let named = stack.split(" + ").map(|text| {
                let separator = if text.contains(':') { ',' } else { ':' };
                format!("{text}{separator}paths={}/scratch/*", place.display())
            });
            named.collect::<Vec<_>>().join(" + ")
        })
        .collect();
    let mut applied = Vec::new();
    for strategy in &apply {
        applied.extend(["--apply", strategy]);
    }
    let scratch = fresh(&place.join("scratch"));
    iolab(&scratch, &["record", "-o", "../bare.iot", "--", program]);
    let scratch = fresh(&place.join("scratch"));
    let run = [
        &["run", "--allow", "weaker-durability"],
        &applied[..],
        &["--decisions", "../live.iot", "--", program],
    ]
    .concat();
    iolab(&scratch, &run);
    let replay = [
        &["replay", "bare.iot", "--into", "replayed", "--decisions", "replayed.iot"],
        &applied[..],
    ]
    .concat();
    iolab(place, &replay);
    let simulate = [
        &["simulate", "--trace", "bare.iot", "--platform", platform],
        &["--decisions", "simulated.iot"][..],
        &applied[..],
    ]
    .concat();
    iolab(place, &simulate);
    ["live.iot", "replayed.iot", "simulated.iot"].map(|name| decisions(&place.join(name)))
}

/// The decisions of a trace, in order for each file of each process.
fn decisions(path: &Path) -> Vec<String> {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let trace = iolab_iot::read(file).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut by_place: BTreeMap<(usize, String), Vec<String>> = BTreeMap::new();
    let mut processes: Vec<u32> = Vec::new();
    let is_decision = |event: &&Event| event.function.layer().name() == "insitu";
    for event in trace.events.iter().filter(is_decision) {
        let known = processes.iter().position(|&process| process == event.process);
        let process = known.unwrap_or_else(|| {
            processes.push(event.process);
            processes.len() - 1
        });
        by_place.entry((process, file_name(&trace, event))).or_default().push(row(event));
    }
    by_place
        .into_iter()
        .flat_map(|((process, name), rows)| {
            rows.into_iter().map(move |row| format!("process {process}, {name}: {row}"))
        })
        .collect()
}

fn file_name(trace: &Trace, event: &Event) -> String {
    let index = event.file.index().expect("a decision is about a file");
    let path = Path::new(&trace.header.files[index].path);
    path.file_name().expect("a file has a name").to_string_lossy().into_owned()
}

fn row(event: &Event) -> String {
    format!(
        "{} handle {} offset {} length {} argument {} result {}",
        event.function.name(),
        event.fd,
        event.offset,
        event.length,
        event.argument,
        event.result
    )
}

fn assert_same(driver: &str, name: &str, strategies: &[&str], live: &[String], other: &[String]) {
    let differing = live.iter().zip(other).position(|(one, two)| one != two);
    let scene = format!("`{name}` under {strategies:?}, live against {driver}");
    if let Some(index) = differing {
        panic!("{scene}: decision {index} differs:\n  {}\n  {}", live[index], other[index]);
    }
    assert_eq!(live.len(), other.len(), "{scene}: not as many decisions");
}

fn compile(place: &Path, number: usize, body: &str) -> PathBuf {
    let source = place.join(format!("program{number}.c"));
    fs::write(&source, format!("{PRELUDE}int main(void) {{{body}\nreturn 0; }}\n"))
        .expect("written");
    let program = source.with_extension("");
    let status = Command::new("cc").args(["-O1", "-o"]).args([&program, &source]).status();
    assert!(status.expect("cc runs (package gcc)").success(), "{body}");
    program
}

fn fresh(place: &Path) -> PathBuf {
    if place.exists() {
        fs::remove_dir_all(place).expect("removed");
    }
    fs::create_dir_all(place).expect("made");
    place.to_owned()
}

/// What it said, on both of its outputs.
fn iolab(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new(IOLAB).args(arguments).current_dir(directory).output();
    let output = output.expect("iolab runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "iolab {arguments:?}: {:?}\n{said}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned() + &said
}
