//! Archives of OTF2: what they hold is what the trace does. Libotf2 and otf2-print are needed (Debian, Ubuntu:
//! otf2-tools).

use iolab_trace::{Class, Event, Function, Header, Layer, ProcessEntry, Trace};
use iolab_trace::{FileEntry, open_flags};
use iolab_vocab::{FileId, Nanos};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};

fn iolab(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iolab"));
    command.args(arguments).current_dir(directory).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Two ranks and a process beside them; a file with an end of line and a backslash in its name.
fn trace() -> Trace {
    let process = |name: &str, rank, host: &str| ProcessEntry {
        name: name.to_owned(),
        rank,
        host: host.to_owned(),
        ..ProcessEntry::default()
    };
    let file = |path: &str| FileEntry { path: path.to_owned(), ..FileEntry::default() };
    let header = Header {
        command: vec!["./solver".to_owned()],
        host: "node0".to_owned(),
        processes: vec![
            process("helper", -1, ""),
            process("rank 0", 0, "node0"),
            process("rank 1", 1, "node1"),
        ],
        files: vec![file("/data/a"), file("/data/odd\n\\n, Mode: READ <3>")],
        ..Header::default()
    };
    let mut events = Vec::new();
    for process in 0..3_u32 {
        let rank = process as i32 - 1;
        let mut row = |function, times: (u64, u64), fields: Event| {
            let (start, end) = (Nanos(times.0), Nanos(times.1));
            events.push(Event { rank, process, function, start, end, ..fields });
        };
        let on = |file, fd| Event { file: FileId(file), fd, ..Event::of(Function::READ) };
        let flags = open_flags::CREATE | open_flags::TRUNCATE | 2;
        row(
            Function::OPEN,
            (10, 20),
            Event { fd: -1, argument: flags, result: 3, length: 0, ..on(0, -1) },
        );
        for at in 0..50_u64 {
            let access = Event { offset: 100 * at as i64, length: 100, result: 100, ..on(0, 3) };
            row(Function::PWRITE, (100 + 10 * at, 105 + 10 * at), access);
        }
        row(Function::LSEEK, (700, 710), Event { offset: 0, argument: 0, result: 0, ..on(0, 3) });
        let short = Event { offset: 0, length: 4_000, result: 1_234, ..on(0, 3) };
        row(Function::READ, (720, 730), short);
        row(
            Function::READ,
            (730, 740),
            Event { offset: 1_234, length: 10, result: -5, ..on(0, 3) },
        );
        row(Function::FSYNC, (740, 800), Event { result: 0, ..on(0, 3) });
        row(Function::CLOSE, (800, 801), Event { result: 0, ..on(0, 3) });
        row(Function::UNLINK, (810, 820), Event { result: 0, ..on(1, -1) });
        // A write that begins before the one before it has ended: it needs a location of its own.
        let beside = |offset| Event { offset, length: 7, result: 7, ..on(1, 9) };
        row(Function::PWRITE, (900, 950), beside(0));
        row(Function::PWRITE, (920, 990), beside(7));
    }
    // What a server does is no call.
    let of_a_server = Event { start: Nanos(5), end: Nanos(9), ..Event::of(Function::SERVE_READ) };
    events.push(Event { rank: 1, process: 2, ..of_a_server });
    Trace { header, events, ..Trace::default() }
}

fn save(trace: &Trace, path: &Path) {
    iolab_iot::write(trace, File::create(path).unwrap()).unwrap();
}

/// Calls, bytes, time, and the sum of offsets by rank and function.
type Sums = BTreeMap<(i32, &'static str), (u64, u64, u64, i64)>;

fn sums(trace: &Trace) -> Sums {
    let mut sums = Sums::new();
    for event in &trace.events {
        if !matches!(event.function.layer(), Layer::Posix | Layer::Stdio | Layer::Mpiio) {
            continue;
        }
        // A failure loses its number, a seek and an access keep their places.
        let offset = if event.function.class().moves_data() { event.offset } else { 0 };
        let sum = sums.entry((event.rank, event.function.name())).or_default();
        sum.0 += 1;
        sum.1 += event.moved_bytes();
        sum.2 += event.end.0 - event.start.0;
        sum.3 += offset;
    }
    sums
}

#[test]
fn an_archive_is_read_again_with_the_same_calls() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let trace = trace();
    save(&trace, &home.join("run.iot"));
    let words = ["export", "run.iot", "--to", "otf2", "-o", "archive"];
    let output = iolab(home, &words);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("left out: 1 row"), "{}", said(&output));
    let printed =
        Command::new("otf2-print").arg(home.join("archive/traces.otf2")).output().unwrap();
    assert!(printed.status.success(), "{}", said(&printed));
    let output = iolab(home, &["import", "archive", "-o", "back.iot"]);
    assert!(output.status.success(), "{}", said(&output));
    let back = iolab_iot::read(File::open(home.join("back.iot")).unwrap()).unwrap();
    assert_eq!(sums(&back), sums(&trace));
    let paths = |trace: &Trace| {
        let mut paths: Vec<_> = trace.header.files.iter().map(|it| it.path.clone()).collect();
        paths.sort();
        paths
    };
    assert_eq!(paths(&back), paths(&trace));
    assert!(back.header.losses.lost_calls.is_empty(), "{:?}", back.header.losses);
    let open = back.events.iter().find(|it| it.function.class() == Class::Open).unwrap();
    assert_eq!(open.argument, open_flags::CREATE | open_flags::TRUNCATE | 2);
    let failed = back.events.iter().filter(|event| event.result < 0).count();
    assert_eq!(failed, 3);
    let mut hosts: Vec<_> = back.header.processes.iter().map(|it| it.host.as_str()).collect();
    hosts.sort_unstable();
    assert_eq!(hosts, ["node0", "node0", "node1"]);
}

#[test]
fn what_is_there_stays_and_nothing_is_left_of_an_archive_that_fails() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    save(&trace(), &home.join("run.iot"));
    let names = || {
        let entries = fs::read_dir(home).unwrap();
        let mut names: Vec<_> = entries.map(|it| it.unwrap().file_name()).collect();
        names.sort();
        names
    };
    fs::create_dir(home.join("full")).unwrap();
    fs::write(home.join("full/mine"), "").unwrap();
    let before = names();
    let refused = |words: &[&str], problem: &str| {
        let output = iolab(home, words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        assert!(
            said(&output).contains(problem) && said(&output).contains("hint: "),
            "{}",
            said(&output)
        );
        assert_eq!(names(), before, "{words:?}");
    };
    refused(&["export", "run.iot", "--to", "otf2", "-o", "full"], "full exists");
    refused(&["export", "run.iot", "--to", "otf2"], "is a directory, not a file");
    let whole = fs::read(home.join("run.iot")).unwrap();
    // A byte of the rows, which are read when the archive has begun.
    let mut damaged = whole.clone();
    damaged[100] ^= 1;
    fs::write(home.join("run.iot"), damaged).unwrap();
    refused(&["export", "run.iot", "--to", "otf2", "-o", "archive"], "damaged");
    fs::write(home.join("run.iot"), whole).unwrap();
    fs::create_dir(home.join("empty")).unwrap();
    let output = iolab(home, &["export", "run.iot", "--to", "otf2", "-o", "empty"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(home.join("empty/traces.otf2").is_file());
}
